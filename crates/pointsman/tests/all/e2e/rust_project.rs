//! A Rust project with a vendored dependency and a toolchain below the home, from `init` to merged, inside the sandbox and
//! without a setting.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use pointsman_adapters::process::Run;
use pointsman_adapters::sandbox::Bubblewrap;
use pointsman_testkit::{TestDaemon, not_run};

use super::shop;

/// What the agent does: it looks at where it is, writes a function with its test, tests it and hands it in.
const AGENT: &str = r#"#!/bin/bash
read -r greeting
{
    command -v cargo
    ls ~/.cargo
    cat ~/.cargo/credentials.toml
    touch ~/.rustup/planted && echo "toolchain is writable"
} > "$(dirname "$POINTSMAN_RESULT_FILE")/seen" 2>&1
cat >> src/lib.rs <<'RUST'

/// The price of some pears.
pub fn pears(number: u32) -> u32 {
    fruit::price("pear") * number
}

#[test]
fn pears_cost_three_each() {
    assert_eq!(pears(2), 6);
}
RUST
run=$(dirname "$POINTSMAN_RESULT_FILE")
cargo test > "$run/testing" 2>&1
mv "$run/testing" "$run/tested"
git add src && git commit -qm "Sell pears" && git push -q origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do
    case $line in
        *"CI passed"*) echo PHASE:awaiting_review > "$PHASE_FILE" ;;
        *Merged*) echo PHASE:done > "$PHASE_FILE" ;;
    esac
done
"#;

const FILES: [(&str, &str); 7] = [
    (
        "Cargo.toml",
        "[package]\nname = \"orchard\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nfruit = \"1\"\n",
    ),
    (
        "src/lib.rs",
        "/// The price of some apples.\npub fn apples(number: u32) -> u32 {\n    fruit::price(\"apple\") * number\n}\n",
    ),
    (
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"vendor\"\n",
    ),
    (".gitignore", "/target\n/Cargo.lock\n"),
    ("vendor/fruit/Cargo.toml", "[package]\nname = \"fruit\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"),
    (
        "vendor/fruit/src/lib.rs",
        "/// What a fruit costs.\npub fn price(name: &str) -> u32 {\n    if name == \"pear\" { 3 } else { 2 }\n}\n",
    ),
    ("vendor/fruit/.cargo-checksum.json", "{\"files\":{},\"package\":null}"),
];

/// Puts a toolchain of this machine below a home, as rustup does. False if there is none.
pub(super) fn install_toolchain(home: &Path) -> bool {
    let found = |words: &[&str]| {
        let run = Run::new(words[0]).args(&words[1..]).inherit(&[
            "PATH",
            "HOME",
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
        ]);
        let done = run.finish().ok().filter(|done| done.end.success())?;
        Some(PathBuf::from(String::from_utf8(done.stdout).ok()?.trim()))
    };
    let rustup = pointsman_adapters::process::find_program(
        "rustup",
        std::env::var_os("PATH").as_deref(),
        Path::new("/"),
    );
    let (Some(rustup), Some(sysroot)) = (rustup, found(&["rustc", "--print", "sysroot"])) else {
        return false;
    };
    let Some(name) = sysroot.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        return false;
    };
    let toolchain = home.join(".rustup/toolchains").join(&name);
    for part in ["bin", "lib", "libexec"] {
        copy(&sysroot.join(part), &toolchain.join(part));
    }
    for dir in ["downloads", "tmp", "update-hashes"] {
        fs::create_dir_all(home.join(".rustup").join(dir)).unwrap();
    }
    fs::write(
        home.join(".rustup/settings.toml"),
        format!("version = \"12\"\ndefault_toolchain = \"{name}\"\nprofile = \"default\"\n\n[overrides]\n"),
    )
    .unwrap();
    let bin = home.join(".cargo/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::copy(rustup.canonicalize().unwrap(), bin.join("rustup")).unwrap();
    for name in ["cargo", "rustc", "rustdoc"] {
        symlink("rustup", bin.join(name)).unwrap();
    }
    fs::write(home.join(".cargo/credentials.toml"), "nightingale").unwrap();
    true
}

/// Links files where that is possible: a toolchain is a gigabyte.
fn copy(from: &Path, to: &Path) {
    // Sources and targets of the compiler's own are not needed.
    if from.ends_with("rustlib/src") || !from.exists() {
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&path, &target);
        } else if kind.is_symlink() {
            symlink(fs::read_link(&path).unwrap(), &target).unwrap();
        } else if fs::hard_link(&path, &target).is_err() {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A checkout as a new user has it, without a file of ours.
fn checkout(daemon: &TestDaemon) -> PathBuf {
    let checkout = daemon.checkout();
    fs::remove_dir_all(&checkout).unwrap();
    for (name, text) in FILES {
        let file = checkout.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    for words in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message=Plant"],
    ] {
        daemon.git_in(&checkout, words);
    }
    checkout
}

#[test]
fn e2e_sandbox_a_rust_project_with_rustup_below_the_home_lands_without_a_setting() {
    if let Err(why) = Bubblewrap::probe(std::env::var_os("PATH").as_deref()) {
        return not_run("bwrap", &format!("{why:?}"));
    }
    let daemon = shop().named("orchard").unregistered().build();
    let home = daemon.path("home");
    if !install_toolchain(&home) {
        return not_run("rustup", "no toolchain that can be put below a home");
    }
    checkout(&daemon);
    let agent = home.join(".local/bin/agent");
    fs::create_dir_all(agent.parent().unwrap()).unwrap();
    fs::write(&agent, AGENT).unwrap();
    fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    let set_up = daemon.run(&["init", "--yes", "--agent", &agent.to_string_lossy()]);
    assert_eq!(set_up.code, Some(0), "{}", set_up.stderr);
    let path = format!(
        "{}:{}:/usr/local/bin:/usr/bin:/bin",
        home.join(".cargo/bin").display(),
        agent.parent().unwrap().display()
    );
    daemon.start_with(&[("PATH", &path)]);
    let issue = daemon.file_issue_with("Sell pears", "Pears cost three each.");
    let run = daemon.session_files(issue).join("run-1");
    let tested = daemon.wait_for("the agent to have tested", || fs::read_to_string(run.join("tested")).ok());
    assert!(tested.contains("pears_cost_three_each ... ok"), "{tested}");
    daemon.wait_state(issue, "awaiting_review");
    let seen = fs::read_to_string(run.join("seen")).unwrap();
    assert!(seen.contains(&home.join(".cargo/bin/cargo").display().to_string()), "{seen}");
    assert!(!seen.contains("nightingale") && !seen.contains("toolchain is writable"), "{seen}");
    assert!(!home.join(".rustup/planted").exists());
    assert_eq!(daemon.session(issue)["sandboxed"], true);
    daemon.approve(issue);
    daemon.wait_closed(issue);
    let log = daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    assert!(log.contains("pears_cost_three_each ... ok"), "{log}");
    assert!(daemon.on_main("src/lib.rs").unwrap().contains("pub fn pears"));
}
