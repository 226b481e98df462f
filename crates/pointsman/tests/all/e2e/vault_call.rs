//! The vault's built-in call of an address, and secrets that lie in files: given to the handler, and to nobody else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use pointsman_testkit::http::{Fault, Reply, Request, Server};
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::Value;

use super::shop;
use super::vault::{action, show, submit, wait_status};

const TOKEN: &str = "tok-in-a-file-7261";

type Heard = Arc<Mutex<Vec<Request>>>;

/// A server that remembers what it was asked.
fn server(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Server, Heard) {
    let heard = Heard::default();
    let remembers = Arc::clone(&heard);
    let server = Server::start(move |request| {
        remembers.lock().unwrap().push(request.clone());
        answer(request)
    });
    (server, heard)
}

fn heard_of(heard: &Heard, id: &str) -> Vec<Request> {
    let key = format!("shop/{id}");
    let heard = heard.lock().unwrap();
    heard.iter().filter(|request| request.header("idempotency-key") == Some(&key)).cloned().collect()
}

fn private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A type for each path of the server.
fn calling(server: &Server, token: &Path, paths: &[&str]) -> Setup {
    let host = server.url().replace("http://", "");
    paths.iter().fold(shop().set("vault.hosts", &format!("[{host:?}]")), |setup, path| {
        let set = |setup: Setup, key: &str, toml: &str| setup.set(&format!("vault.types.{path}.{key}"), toml);
        let setup = set(setup, "url", &format!("{:?}", format!("{}/hook/{path}", server.url())));
        let setup = set(setup, "token_file", &format!("{:?}", token.to_string_lossy()));
        set(set(setup, "risk", "\"low\""), "reversible", "true")
    })
}

fn fire(daemon: &TestDaemon, id: &str, kind: &str, status: &str) -> Value {
    assert_eq!(submit(daemon, &action(id, kind)).code, Some(0));
    wait_status(daemon, id, status)
}

/// Everything that people and programs could read of it.
fn traces(daemon: &TestDaemon, ids: &[&str]) -> String {
    let mut text = daemon.log();
    for id in ids {
        text.push_str(&show(daemon, id).to_string());
        let log = daemon.state().join(format!("projects/shop/logs/vault-{id}.1.log"));
        text.push_str(&fs::read_to_string(log).unwrap_or_default());
    }
    text
}

#[test]
fn e2e_an_address_is_called_and_its_status_decides() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    private(&token, &format!("{TOKEN}\n"));
    let (other, elsewhere) = server(|_| Reply::empty(200));
    let target = format!("{}/stolen", other.url());
    let (server, heard) = server(move |request| match request.path.as_str() {
        "/hook/good" => Reply::empty(202).body(format!("welcome, {TOKEN}")),
        "/hook/moved" => Reply::empty(307).with("Location", target.clone()),
        "/hook/denied" => Reply::empty(403).body(format!("{TOKEN} may not")),
        "/hook/ill" => Reply::empty(503),
        "/hook/between" => Reply::empty(504),
        _ => Reply::empty(200).faulty(Fault::Drop),
    });
    let kinds = ["good", "moved", "denied", "ill", "between", "silent"];
    let daemon = calling(&server, &token, &kinds).start();

    fire(&daemon, "good-1", "good", "fired");
    let calls = heard_of(&heard, "good-1");
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].method.as_str(), calls[0].path.as_str()), ("POST", "/hook/good"));
    assert_eq!(calls[0].json(), action("good-1", "good")["payload"]);
    assert_eq!(calls[0].header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    assert_eq!(calls[0].header("content-type"), Some("application/json"));

    for (kind, status, why) in [
        ("moved", "failed", "answered 307 and points to"),
        ("denied", "failed", "answered 403 (… may not)"),
        ("ill", "failed", "answered 503"),
        ("between", "uncertain", "answered 504"),
        ("silent", "uncertain", "did not answer"),
    ] {
        let entry = fire(&daemon, kind, kind, status);
        assert!(entry["reason"].as_str().unwrap().contains(why), "{entry}");
        assert_eq!(heard_of(&heard, kind).len(), 1, "{kind}: once");
    }
    // The action is over: nobody can follow any more.
    assert_eq!(elsewhere.lock().unwrap().len(), 0, "a redirect is not followed");

    let ids = ["good-1", "moved", "denied", "ill", "between", "silent"];
    let text = traces(&daemon, &ids);
    assert!(text.contains("welcome, …"), "what was answered is kept: {text}");
    assert!(!text.contains(TOKEN), "{text}");

    // Others could read the token: nothing is called.
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let open = fire(&daemon, "open-1", "good", "failed");
    assert!(open["reason"].as_str().unwrap().contains("can be read by others"), "{open}");
    assert_eq!(heard_of(&heard, "open-1").len(), 0);

    // A host that nobody listed is refused with the configuration.
    let file = daemon.checkout().join("pointsman.toml");
    let written = fs::read_to_string(&file).unwrap();
    fs::write(&file, written.replace(&server.url(), &other.url())).unwrap();
    let refused = daemon.run(&["config", "show"]);
    assert!(
        refused.code != Some(0) && refused.stderr.contains("is not listed in vault.hosts"),
        "{refused:?}"
    );
}

#[test]
fn e2e_a_call_that_was_cut_off_by_a_crash_is_a_question_for_a_person() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    private(&token, TOKEN);
    let (server, heard) = server(|_| Reply::empty(200));
    let daemon = calling(&server, &token, &["good"]).build();
    for (id, place, calls) in [("k1", "vault-intent-written", 0), ("k2", "vault-handler-ran", 1)] {
        daemon.start_with(&[("POINTSMAN_CRASH_AT", place)]);
        let pending = daemon.state().join("projects/shop/vault/pending");
        let draft = pending.join(".draft");
        fs::write(&draft, action(id, "good").to_string()).unwrap();
        fs::rename(&draft, pending.join("action.json")).unwrap();
        daemon.wait_for(&format!("the daemon to die at {place}"), || daemon.has_ended().then_some(()));
        daemon.kill_daemon();
        daemon.start();
        wait_status(&daemon, id, "uncertain");
        assert_eq!(heard_of(&heard, id).len(), calls, "{place}");
        daemon.json(&["vault", "approve", id, "--again"]);
        wait_status(&daemon, id, "fired");
        assert_eq!(heard_of(&heard, id).len(), calls + 1, "{place}");
        daemon.stop_daemon();
    }
}

#[test]
fn e2e_a_programs_secrets_come_from_files_and_the_dotenv_too() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    private(&key, &format!("{TOKEN}\n"));
    let handler =
        r#"["/bin/sh", "-c", "printf '%s|%s' \"$KEY\" \"$OTHER\" > \"$HOME/given\"; echo said $KEY $OTHER"]"#;
    let daemon = shop()
        .set("vault.types.low.command", handler)
        .set("vault.types.low.risk", "\"low\"")
        .set("vault.types.low.secrets", r#"["OTHER"]"#)
        .set("vault.types.low.secret_files", &format!("[{:?}]", format!("KEY={}", key.display())))
        .start();
    let missing = fire(&daemon, "p0", "low", "failed");
    assert!(missing["reason"].as_str().unwrap().contains("its secret OTHER is neither set"), "{missing}");
    private(&daemon.state().join(".env"), "OTHER=from-the-dotenv\n");
    fire(&daemon, "p1", "low", "fired");
    let given = fs::read_to_string(daemon.path("home/given")).unwrap();
    assert_eq!(given, format!("{TOKEN}|from-the-dotenv"));
    let text = traces(&daemon, &["p0", "p1"]);
    assert!(text.contains("said … …"), "{text}");
    assert!(!text.contains(TOKEN) && !text.contains("from-the-dotenv"), "{text}");
}
