//! The toolchains of other languages inside a sandbox, without a setting: JavaScript below nvm, Python below pyenv, uv, Go, make with
//! a C compiler, git with submodules and large files. A session uses each, and then its CI does.
//!
//! `scripts/test-attacks` installs the tools and names a directory with pnpm and uv in `POINTSMAN_TOOLCHAINS`; without that the
//! tests are reported as not run. `rust_project.rs` has the same for Rust, `walls.rs` for debuggers and others.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use pointsman_adapters::process::find_program;
use pointsman_testkit::not_run;

use super::{sandbox_works, shop};

/// Stands for a credential in a place that holds programs.
const CREDENTIAL: &str = "nightingale";

/// Runs what a project's tests are like, and says of each tool whether it works.
const CAN: &str = r#"
can() { name=$1; shift; if "$@" > /tmp/out 2>&1 < /dev/null; then echo "can $name"; else echo "cannot $name"; cat /tmp/out; fi; }
rm -rf /tmp/work && mkdir /tmp/work && cd /tmp/work
"#;

const KEPT: &str = r#"
if grep -rqs nightingale ~; then echo "cannot keep a credential"; grep -rls nightingale ~; fi
touch ~/.anything && echo "can write to the home"
"#;

/// The agent tries the tools, and hands in what they said. CI tries them again.
const AGENT: &str = r#"
read -r greeting
bash tools.sh > said.txt 2>&1
git add said.txt && git commit -qm "Use the tools" && git push -q origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case $line in *Merged*) echo PHASE:done > "$PHASE_FILE" ;; esac; done
"#;

/// The directory with the tools that no distribution has, if this suite is to run.
#[track_caller]
fn tools() -> Option<PathBuf> {
    if !sandbox_works() {
        return None;
    }
    let dir = std::env::var_os("POINTSMAN_TOOLCHAINS").map(PathBuf::from).filter(|dir| dir.is_dir());
    if dir.is_none() {
        not_run("toolchains", "POINTSMAN_TOOLCHAINS names no directory; scripts/test-attacks makes one");
    }
    dir
}

/// A program of the system, without links.
#[track_caller]
fn system(name: &str) -> Option<PathBuf> {
    let path = OsString::from("/usr/local/bin:/usr/bin:/bin");
    let found = find_program(name, Some(&path), Path::new("/"));
    if found.is_none() {
        not_run(name, "it is not installed");
    }
    found?.canonicalize().ok()
}

/// A tool in the directory of tools.
#[track_caller]
fn tool(tools: &Path, name: &str, path: &str) -> Option<PathBuf> {
    let found = Some(tools.join(path)).filter(|path| path.exists());
    if found.is_none() {
        not_run(name, "it could not be installed");
    }
    found
}

/// Copies a file or a directory, links as links.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let kind = from.symlink_metadata().unwrap().file_type();
    if kind.is_symlink() {
        symlink(fs::read_link(from).unwrap(), to).unwrap();
    } else if kind.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().flatten() {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    if text.starts_with("#!") {
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A session and its CI use the tools that `install` puts below the home, found by the directories that it answers.
fn work_for_both(script: &str, install: impl FnOnce(&Path) -> Vec<PathBuf>) {
    let script = format!("{CAN}{script}{KEPT}");
    let setup = shop().agent(AGENT).file("tools.sh", &script).file("ci.sh", "#!/bin/bash\nbash tools.sh\n");
    let daemon = setup.set("sandbox.mode", "\"require\"").build();
    let mut path: Vec<String> =
        install(&daemon.path("home")).iter().map(|dir| dir.display().to_string()).collect();
    path.push("/usr/local/bin:/usr/bin:/bin".to_owned());
    daemon.start_with(&[("PATH", &path.join(":"))]);
    let issue = daemon.file_issue_with("Use the tools", "All of them.");
    let session = daemon.wait_for("the tools to be used", || daemon.on_main("said.txt"));
    let ci = daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    // Each line of the script that begins so names a tool.
    let tools = script.lines().filter_map(|line| line.strip_prefix("can ")?.split(' ').next());
    let wanted: Vec<String> = tools.chain(["write to the home"]).map(|tool| format!("can {tool}")).collect();
    for (who, said) in [("the session", session), ("CI", ci)] {
        assert!(!said.contains("cannot"), "{who}: {said}");
        for tool in &wanted {
            assert!(said.contains(tool), "{who}: {tool}: {said}");
        }
    }
}

const JAVASCRIPT: &str = r#"
project() {
    mkdir -p "$1/fruit" && cd "$1"
    echo '{"name": "fruit", "version": "1.0.0", "main": "price.js"}' > fruit/package.json
    echo 'module.exports = 3' > fruit/price.js
    echo '{"name": "shop", "version": "1.0.0", "scripts": {"test": "node test.js"}, "dependencies": {"fruit": "file:./fruit"}}' > package.json
    echo 'require("assert").equal(require("fruit"), 3)' > test.js
}
export -f project
can node-below-nvm bash -c 'case $(command -v node) in "$HOME/.nvm/"*) node -e 1 ;; *) exit 1 ;; esac'
can npm bash -c 'project with-npm && npm install --offline --no-audit --no-fund && npm test && npm ci --offline --no-audit --no-fund'
can pnpm bash -c 'project with-pnpm && pnpm install --offline && pnpm test'
can npx bash -c 'project with-npx && mkdir -p node_modules/.bin && ln -s /bin/true node_modules/.bin/peel && npx --no-install peel'
"#;

#[test]
fn e2e_sandbox_toolchain_of_javascript_below_nvm() {
    let Some(tools) = tools() else { return };
    let (Some(node), Some(npm)) = (system("node"), system("npm")) else { return };
    let Some(pnpm) = tool(&tools, "pnpm", "pnpm/node_modules/pnpm") else { return };
    work_for_both(JAVASCRIPT, |home| {
        let version = home.join(".nvm/versions/node/v20.0.0");
        copy(&node, &version.join("bin/node"));
        // A distribution spreads the package over several directories.
        let package = npm.ancestors().nth(2).unwrap();
        let modules = version.join("lib/node_modules/npm");
        if package.ends_with("lib/node_modules/npm") {
            copy(package, &modules);
        } else {
            fs::create_dir_all(modules.parent().unwrap()).unwrap();
            symlink(package, &modules).unwrap();
        }
        symlink("../lib/node_modules/npm/bin/npm-cli.js", version.join("bin/npm")).unwrap();
        symlink("../lib/node_modules/npm/bin/npx-cli.js", version.join("bin/npx")).unwrap();
        let own = home.join(".local/share/pnpm");
        copy(&pnpm, &own.join("global/5/node_modules/pnpm"));
        symlink("global/5/node_modules/pnpm/bin/pnpm.cjs", own.join("pnpm")).unwrap();
        let token = format!("//registry.example.org/:_authToken={CREDENTIAL}\n");
        for file in [".npmrc", ".nvm/.npmrc", ".nvm/versions/node/v20.0.0/etc/npmrc", ".config/pnpm/rc"] {
            write(&home.join(file), &token);
        }
        vec![own, version.join("bin")]
    });
}

const PYTHON: &str = r#"
cat > wheel.py <<'END'
import zipfile
info = 'fruit-1.0.dist-info/'
with zipfile.ZipFile('fruit-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('fruit.py', 'PRICE = 3\n')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: fruit\nVersion: 1.0\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(info + 'RECORD', 'fruit.py,,\n' + ''.join(info + name + ',,\n' for name in ('METADATA', 'WHEEL', 'RECORD')))
END
can python-below-pyenv bash -c 'case $(python3 -c "import sys; print(sys.executable)") in "$HOME/.pyenv/"*) python3 wheel.py ;; *) exit 1 ;; esac'
can pip bash -c 'python3 -m venv venv && venv/bin/pip install --no-index ./fruit-1.0-py3-none-any.whl && venv/bin/python -c "import fruit; assert fruit.PRICE == 3"'
can unittest bash -c 'printf "import unittest\nclass Test(unittest.TestCase):\n    def test(self): self.assertEqual(1, 1)\n" > test_it.py && python3 -m unittest'
can uv bash -c 'uv venv --offline other && VIRTUAL_ENV=other uv pip install --offline ./fruit-1.0-py3-none-any.whl && other/bin/python -c "import fruit"'
can uv-run bash -c 'uv run --offline --no-project --with ./fruit-1.0-py3-none-any.whl python -c "import fruit; assert fruit.PRICE == 3"'
"#;

/// What pyenv puts in place of every program.
const SHIM: &str = r#"#!/usr/bin/env bash
set -e
program="${0##*/}"
export PYENV_ROOT="$HOME/.pyenv"
exec "$PYENV_ROOT/libexec/pyenv" exec "$program" "$@"
"#;
const PYENV: &str = r#"#!/usr/bin/env bash
shift
program=$1
shift
exec "$PYENV_ROOT/versions/$(cat "$PYENV_ROOT/version")/bin/$program" "$@"
"#;

#[test]
fn e2e_sandbox_toolchain_of_python_below_pyenv_and_uv() {
    let Some(tools) = tools() else { return };
    let (Some(python), Some(uv)) = (system("python3"), tool(&tools, "uv", "uv/bin/uv")) else { return };
    let name = python.file_name().unwrap().to_str().unwrap().to_owned();
    let library = Path::new("/usr/lib").join(&name);
    if !library.join("ensurepip").is_dir() {
        return not_run("python3-venv", "it is not installed");
    }
    work_for_both(PYTHON, |home| {
        let pyenv = home.join(".pyenv");
        let version = pyenv.join("versions/3.99.0");
        copy(&python, &version.join("bin/python3"));
        symlink("python3", version.join("bin/python")).unwrap();
        fs::create_dir_all(version.join("lib")).unwrap();
        symlink(&library, version.join("lib").join(&name)).unwrap();
        write(&pyenv.join("version"), "3.99.0\n");
        write(&pyenv.join("libexec/pyenv"), PYENV);
        for program in ["python3", "python"] {
            write(&pyenv.join("shims").join(program), SHIM);
        }
        copy(&uv, &home.join(".local/bin/uv"));
        for file in [
            ".pypirc",
            ".pyenv/pip.conf",
            ".pyenv/versions/3.99.0/pip.conf",
            ".local/share/uv/credentials/credentials.toml",
        ] {
            write(&home.join(file), CREDENTIAL);
        }
        vec![pyenv.join("shims"), home.join(".local/bin")]
    });
}

const GO_AND_C: &str = r#"
mkdir -p shop/fruit c
printf 'module example.org/shop\n\ngo 1.16\n' > shop/go.mod
printf 'package fruit\n\nconst Price = 3\n' > shop/fruit/fruit.go
cat > shop/shop_test.go <<'END'
package shop

import (
	"testing"

	"example.org/shop/fruit"
)

func TestPrice(t *testing.T) {
	if fruit.Price != 3 {
		t.Fatal(fruit.Price)
	}
}
END
can go bash -c 'cd shop && go test ./...'
can go-below-sdk bash -c 'case $(command -v go) in "$HOME/sdk/"*) ;; *) exit 1 ;; esac'
can program-below-gopath peel
printf 'int price(void) { return 3; }\n' > c/fruit.c
printf 'int price(void);\nint main(void) { return price() != 3; }\n' > c/test.c
printf 'test: fruit.o test.o\n\tcc -o test fruit.o test.o && ./test\n' > c/Makefile
can make make -C c -j2 test
"#;

#[test]
fn e2e_sandbox_toolchain_of_go_and_of_c_with_make() {
    let Some(_) = tools() else { return };
    let (Some(go), Some(_), Some(_)) = (system("go"), system("make"), system("cc")) else { return };
    work_for_both(GO_AND_C, |home| {
        let root = go.ancestors().nth(2).unwrap();
        fs::create_dir_all(home.join("sdk")).unwrap();
        symlink(root, home.join("sdk/go1.99")).unwrap();
        write(&home.join("go/bin/peel"), "#!/bin/sh\nexit 0\n");
        for file in [".netrc", "sdk/keys/private.txt", ".config/go/env"] {
            write(&home.join(file), CREDENTIAL);
        }
        vec![home.join("sdk/go1.99/bin"), home.join("go/bin")]
    });
}

/// Brings a submodule and a large file, is told about the second, and hands in the first.
const WITH_SUBMODULE: &str = r#"
read -r greeting
run=$(dirname "$POINTSMAN_RESULT_FILE")
git init -q /tmp/fruit && git -C /tmp/fruit -c user.name=a -c user.email=a commit -q --allow-empty -m Fruit
{
    git -c protocol.file.allow=always submodule --quiet add /tmp/fruit fruit && git submodule status && echo "can add a submodule"
    git commit -qm "Add fruit"
    git lfs install --local && git lfs track '*.bin' && echo content > large.bin && git add -A && git commit -qm Large && echo "can use git lfs"
    git cat-file blob HEAD:large.bin | head -n 1
    git push -q origin HEAD || echo "cannot push a large file"
    git reset -q --hard HEAD~1
    git push -q origin HEAD && echo "can push the rest"
} > "$run/said" 2>&1
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case $line in *Merged*) echo PHASE:done > "$PHASE_FILE" ;; esac; done
"#;

#[test]
fn e2e_sandbox_toolchain_of_git_takes_submodules_and_refuses_large_files_with_a_reason() {
    let Some(_) = tools() else { return };
    let Some(_) = system("git-lfs") else { return };
    let ci = "#!/bin/bash\ngit ls-tree HEAD fruit\ngit lfs env > /dev/null && echo 'can use git lfs'\n[ -d fruit ]\n";
    let daemon = shop().agent(WITH_SUBMODULE).file("ci.sh", ci).set("sandbox.mode", "\"require\"").start();
    let issue = daemon.file_issue_with("Fruit", "As a submodule.");
    // Where a submodule comes from is for a person to see.
    let task = daemon.wait_state(issue, "escalated");
    assert!(task["reason"].as_str().unwrap().contains("protected paths (.gitmodules)"), "{task}");
    daemon.approve(issue);
    daemon.wait_closed(issue);
    let said = fs::read_to_string(daemon.session_files(issue).join("run-1/said")).unwrap();
    for wanted in [
        "can add a submodule",
        "can use git lfs",
        "version https://git-lfs",
        "large.bin",
        "their content cannot be uploaded from a session",
        "cannot push a large file",
        "can push the rest",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let log = daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    assert!(log.contains("160000 commit") && log.contains("can use git lfs"), "{log}");
    assert!(daemon.on_main(".gitmodules").unwrap().contains("/tmp/fruit"));
    assert!(daemon.on_main("large.bin").is_none());
}
