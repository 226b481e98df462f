//! The Debian package: built by the script, installed into a root of its own with dpkg, and removed again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use pointsman_testkit::not_run;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Every file below a directory, from there.
fn files(dir: &Path) -> Vec<String> {
    let listed = run(Command::new("find").arg(".").args(["-type", "f"]).current_dir(dir));
    let mut files: Vec<String> =
        listed.lines().map(|line| line.trim_start_matches("./").to_owned()).collect();
    files.sort();
    files
}

#[test]
fn the_package_is_built_installed_and_removed() {
    for tool in ["dpkg-deb", "dpkg"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return not_run(tool, "packages are built on Debian");
        }
    }
    if !rustix::process::getuid().is_root() {
        return not_run("root", "dpkg installs as root");
    }
    let dir = tempfile::tempdir().unwrap();
    // The program of the tests is a few hundred megabytes; what stands for it answers in the same way.
    let program = dir.path().join("pointsman");
    fs::write(&program, format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_pointsman"))).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let build = |out: &str| {
        let out = dir.path().join(out);
        run(Command::new(format!("{root}/scripts/package"))
            .args([&program, &out])
            .env("SOURCE_DATE_EPOCH", "1700000000"));
        let names = files(&out);
        let package = names.iter().find(|name| name.ends_with(".deb")).expect("a package").clone();
        run(Command::new("sha256sum").args(["--check", &format!("{package}.sha256")]).current_dir(&out));
        out.join(package)
    };
    let package = build("first");
    assert_eq!(
        fs::read(&package).unwrap(),
        fs::read(build("second")).unwrap(),
        "the same program, the same package"
    );

    let system = dir.path().join("system");
    for part in ["info", "updates", "triggers"] {
        fs::create_dir_all(system.join("var/lib/dpkg").join(part)).unwrap();
    }
    fs::write(system.join("var/lib/dpkg/status"), "").unwrap();
    let dpkg = |arguments: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", system.display())).arg("--force-depends").args(arguments);
        run(&mut command)
    };
    dpkg(&["--install", &package.to_string_lossy()]);
    let installed = files(&system.join("usr"));
    for file in [
        "bin/pointsman",
        "lib/systemd/user/pointsman.service",
        "share/bash-completion/completions/pointsman",
        "share/doc/pointsman/copyright",
        "share/fish/vendor_completions.d/pointsman.fish",
        "share/man/man1/pointsman-init.1.gz",
        "share/man/man1/pointsman.1.gz",
        "share/zsh/vendor-completions/_pointsman",
    ] {
        assert!(installed.iter().any(|own| own == file), "{file} is not among {installed:#?}");
    }
    let version = run(Command::new(system.join("usr/bin/pointsman")).arg("--version"));
    assert!(version.starts_with("pointsman "), "{version}");
    dpkg(&["--purge", "pointsman"]);
    assert_eq!(files(&system).iter().filter(|file| !file.starts_with("var/")).count(), 0);
}
