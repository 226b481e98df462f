//! The vault: what is harmless is fired, what is not waits for a person, and nothing is fired twice or lost, whenever
//! the daemon dies.

use std::fs;
use std::os::unix::fs::symlink;

use pointsman::daemon::crash::VAULT_NAMES;
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::shop;

/// Writes down that it ran, with what, and with which secret.
const HANDLER: &str = r#"["/bin/sh", "-c", "cat > \"$HOME/given-$POINTSMAN_VAULT_ID\"; echo \"$DEPLOY_TOKEN\" > \"$HOME/token\"; echo ran >> \"$HOME/runs-$POINTSMAN_VAULT_ID\"; test ! -e \"$HOME/break\"; exit $?"]"#;

/// Types that are low, medium and high by the operator's word.
pub(super) fn guarded() -> Setup {
    ["low", "medium", "high"]
        .into_iter()
        .fold(shop(), |setup, risk| {
            setup
                .set(&format!("vault.types.{risk}.command"), HANDLER)
                .set(&format!("vault.types.{risk}.risk"), &format!("{risk:?}"))
                .set(&format!("vault.types.{risk}.reversible"), "true")
                .set(&format!("vault.types.{risk}.secrets"), r#"["DEPLOY_TOKEN"]"#)
        })
        .set("vault.people", &format!("[{:?}]", crate::login()))
        .daemon_env("DEPLOY_TOKEN", "hunter2")
}

pub(super) fn action(id: &str, kind: &str) -> Value {
    json!({
        "id": id, "type": kind, "source": "planner", "risk": "low", "reversible": true, "requires_human": false,
        "payload": {"to": "production", "say": "$(touch /tmp/owned) `id`"},
    })
}

pub(super) fn submit(daemon: &TestDaemon, action: &Value) -> pointsman_testkit::Answer {
    let file = daemon.path("home/action.json");
    fs::write(&file, action.to_string()).unwrap();
    daemon.run(&["vault", "submit", &file.to_string_lossy(), "--json"])
}

pub(super) fn show(daemon: &TestDaemon, id: &str) -> Value {
    let answer = daemon.run(&["vault", "show", id, "--json"]);
    serde_json::from_str(&answer.stdout).unwrap_or_default()
}

pub(super) fn wait_status(daemon: &TestDaemon, id: &str, status: &str) -> Value {
    daemon.wait_for(&format!("{id} to be {status}"), || {
        let entry = show(daemon, id);
        (entry["status"] == status).then_some(entry)
    })
}

pub(super) fn runs(daemon: &TestDaemon, id: &str) -> usize {
    fs::read_to_string(daemon.path(&format!("home/runs-{id}"))).map_or(0, |text| text.lines().count())
}

pub(super) fn titles(daemon: &TestDaemon, id: &str) -> Vec<String> {
    let about = format!("vault action {id} ");
    let titles = daemon.notices().into_iter().filter_map(|n| n["title"].as_str().map(str::to_owned));
    titles.filter(|title| title.contains(&about)).collect()
}

#[test]
fn e2e_an_approval_is_of_the_login_and_not_of_a_variable() {
    let daemon = guarded().set("vault.people", r#"["ann-who-is-nobody"]"#).start();
    assert_eq!(submit(&daemon, &action("h1", "high")).code, Some(0));
    let mut stranger = daemon.command(&["vault", "approve", "h1"]);
    let refused = stranger.env("USER", "ann-who-is-nobody").output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("not listed") && said.contains(&crate::login()), "{said}");
}

#[test]
fn e2e_a_handler_gains_privileges_only_if_its_type_allows_sudo() {
    let handler =
        r#"["/bin/sh", "-c", "grep NoNewPrivs: /proc/self/status > \"$HOME/mark-$POINTSMAN_VAULT_ID\""]"#;
    let daemon = guarded()
        .set("vault.types.low.command", handler)
        .set("vault.types.medium.command", handler)
        .set("vault.types.medium.allow_sudo", "true")
        .start();
    let mark = |id: &str, kind: &str| {
        assert_eq!(submit(&daemon, &action(id, kind)).code, Some(0));
        wait_status(&daemon, id, "fired");
        fs::read_to_string(daemon.path(&format!("home/mark-{id}"))).unwrap()
    };
    assert_eq!(mark("l1", "low"), "NoNewPrivs:\t1\n");
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let own = own.lines().find(|line| line.starts_with("NoNewPrivs:")).unwrap();
    assert_eq!(mark("m1", "medium").trim_end(), own, "as the daemon itself");
}

#[test]
fn e2e_risk_decides_who_is_asked() {
    let daemon = guarded().start();
    assert_eq!(submit(&daemon, &action("l1", "low")).code, Some(0));
    wait_status(&daemon, "l1", "fired");
    let given = fs::read_to_string(daemon.path("home/given-l1")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&given).unwrap(), action("l1", "low"), "as it was submitted");
    assert_eq!(fs::read_to_string(daemon.path("home/token")).unwrap(), "hunter2\n");
    assert_eq!(titles(&daemon, "l1"), [""; 0]);

    assert_eq!(submit(&daemon, &action("m1", "medium")).code, Some(0));
    wait_status(&daemon, "m1", "fired");
    daemon.wait_for("people to be told", || (titles(&daemon, "m1").len() == 1).then_some(()));
    assert_eq!(titles(&daemon, "m1"), ["shop: vault action m1 was fired"]);

    // It calls itself low; its type is not.
    let answer = submit(&daemon, &action("h1", "high"));
    let entry: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(
        (&entry["status"], &entry["risk"], &entry["route"]),
        (&"pending".into(), &"high".into(), &"ask".into())
    );
    daemon.wait_for("a person to be asked", || (titles(&daemon, "h1").len() == 1).then_some(()));
    assert_eq!(daemon.json(&["status"])["vault"][0]["id"], "h1");
    assert_eq!(runs(&daemon, "h1"), 0);
    let wrong = ["vault", "approve", "h1", "--hash", &"0".repeat(64)];
    assert_eq!(daemon.run(&wrong).code, Some(3), "an approval of something else");
    daemon.json(&["vault", "approve", "h1", "--hash", entry["hash"].as_str().unwrap()]);
    let fired = wait_status(&daemon, "h1", "fired");
    assert_eq!((&fired["decided_by"], runs(&daemon, "h1")), (&crate::login().into(), 1));

    // Replays: the same approval, the same action, another action under its name.
    assert_eq!(daemon.run(&["vault", "approve", "h1", "--again"]).code, Some(3));
    assert_eq!(submit(&daemon, &action("h1", "high")).code, Some(0), "the same action is the same");
    let mut changed = action("h1", "high");
    changed["payload"]["to"] = "elsewhere".into();
    assert_eq!(submit(&daemon, &changed).code, Some(3));
    assert_eq!(runs(&daemon, "h1"), 1);

    // What is no action, or nobody's.
    let unknown = submit(&daemon, &action("u1", "launch"));
    assert_eq!(unknown.code, Some(3));
    assert!(unknown.stderr.contains("nothing handles the type launch"), "{unknown:?}");
    assert_eq!(show(&daemon, "u1")["status"], "rejected");
    for field in ["risk", "payload", "requires_human"] {
        let mut missing = action("x1", "low");
        missing.as_object_mut().unwrap().remove(field);
        let answer = submit(&daemon, &missing);
        assert!(answer.code == Some(3) && answer.stderr.contains(field), "{answer:?}");
    }

    // A handler that says no is a failure, and people hear of it; it is not tried again.
    fs::write(daemon.path("home/break"), "").unwrap();
    assert_eq!(submit(&daemon, &action("l2", "low")).code, Some(0));
    let failed = wait_status(&daemon, "l2", "failed");
    assert_eq!(failed["reason"], "its handler ended with exit code 1");
    daemon.wait_for("people to be told", || (titles(&daemon, "l2").len() == 1).then_some(()));
    assert_eq!(daemon.run(&["vault", "approve", "l2"]).code, Some(3));
    assert_eq!(runs(&daemon, "l2"), 1);
}

#[test]
fn e2e_no_wins_and_silence_is_a_no() {
    let daemon = guarded().set("timing.vault_timeout", "\"5s\"").build();
    // Without a daemon everything is written down, and nothing is fired. A decision does not even count.
    for id in ["h1", "h2"] {
        assert_eq!(submit(&daemon, &action(id, "high")).code, Some(0));
    }
    assert_eq!(daemon.run(&["vault", "approve", "h1"]).code, Some(5));
    daemon.start();
    daemon.json(&["vault", "reject", "h1", "--reason", "not today"]);
    assert_eq!(daemon.run(&["vault", "approve", "h1"]).code, Some(3));
    let silent = wait_status(&daemon, "h2", "rejected");
    assert_eq!((&silent["decided_by"], &silent["reason"]), (&Value::Null, &"nobody answered for 5s".into()));
    assert_eq!(daemon.run(&["vault", "approve", "h2"]).code, Some(3));
    let rejected = show(&daemon, "h1");
    assert_eq!((&rejected["decided_by"], &rejected["reason"]), (&crate::login().into(), &"not today".into()));
    assert_eq!((runs(&daemon, "h1"), runs(&daemon, "h2")), (0, 0));
}

/// What a session tries: to submit, to look like a person, to decide.
const AGENT: &str = r#"
cd "$HOME"
try() { "$@" >> out 2>&1; echo "$?" >> codes; }
try PROGRAM vault submit action.json
try PROGRAM vault approve h1
try env -u POINTSMAN_SESSION PROGRAM vault approve h1
try env -u POINTSMAN_SESSION PROGRAM vault reject h1
try PROGRAM vault raise h1 --requires-human --reason 'I have a bad feeling'
env > env
echo done > tried
read -r line
"#;

#[test]
fn e2e_a_session_submits_in_its_own_name_and_decides_nothing() {
    let program = env!("CARGO_BIN_EXE_pointsman");
    let script = AGENT.replace("PROGRAM", &format!("{program} --project shop"));
    let daemon = guarded().agent(&script).start();
    fs::write(daemon.path("home/action.json"), action("h1", "high").to_string()).unwrap();
    daemon.file_issue_with("Deploy it", "Approve your own vault action h1.");
    daemon.wait_for("the session to try", || daemon.path("home/tried").exists().then_some(()));
    let read = |name: &str| fs::read_to_string(daemon.path("home").join(name)).unwrap();
    assert_eq!(read("codes"), "0\n3\n3\n3\n0\n", "{}", read("out"));
    let entry = show(&daemon, "h1");
    assert_eq!((&entry["status"], &entry["source"]), (&"pending".into(), &"dev-shop-1".into()));
    assert_eq!(entry["requires_human"], true);
    assert!(!read("env").contains("hunter2"), "a secret is its handler's alone");
    assert_eq!(runs(&daemon, "h1"), 0);
}

#[test]
fn e2e_files_are_taken_from_the_pending_directory() {
    let daemon = guarded().start();
    daemon.json(&["vault", "list"]);
    let vault = daemon.state().join("projects/shop/vault");
    let pending = vault.join("pending");
    fs::write(daemon.path("home/secret"), "private").unwrap();
    symlink(daemon.path("home/secret"), pending.join("link.json")).unwrap();
    fs::write(pending.join("broken.json"), "{\"id\": \"b1\"").unwrap();
    fs::write(pending.join("empty.json"), "").unwrap();
    fs::write(pending.join("large.json"), vec![b'['; 10 << 20]).unwrap();
    fs::write(pending.join("note.txt"), "not for the vault").unwrap();
    fs::write(pending.join("good.json"), action("f1", "low").to_string()).unwrap();
    wait_status(&daemon, "f1", "fired");
    daemon.wait_for("the files to be gone", || {
        let left = fs::read_dir(&pending).unwrap().count();
        (left == 1).then_some(())
    });
    let reason = |name: &str| fs::read_to_string(vault.join("rejected").join(name)).unwrap();
    assert_eq!(reason("link.reason"), "it is a symbolic link\n");
    assert!(reason("broken.reason").contains("EOF while parsing"), "{}", reason("broken.reason"));
    assert!(reason("large.reason").contains("more than"), "{}", reason("large.reason"));
    assert_eq!(fs::read_to_string(daemon.path("home/secret")).unwrap(), "private");
    assert_eq!((runs(&daemon, "f1"), daemon.json(&["vault", "list"]).as_array().unwrap().len()), (1, 1));
}

#[test]
fn e2e_kill_at_every_step_of_a_vault_action() {
    let daemon = guarded().build();
    daemon.json(&["vault", "list"]);
    for (round, place) in VAULT_NAMES.into_iter().enumerate() {
        let id = format!("k{round}");
        daemon.start_with(&[("POINTSMAN_CRASH_AT", place)]);
        let pending = daemon.state().join("projects/shop/vault/pending");
        // A file, because a command would be cut off in the middle; people are told of the medium ones.
        let draft = pending.join(".draft");
        fs::write(&draft, action(&id, "medium").to_string()).unwrap();
        fs::rename(&draft, pending.join("action.json")).unwrap();
        daemon.wait_for(&format!("the daemon to die at {place}"), || daemon.has_ended().then_some(()));
        daemon.kill_daemon();
        daemon.start();
        let unsure =
            match place {
                "vault-intent-written" | "vault-handler-ran" | "after-fire_action" => true,
                // The handler may have begun beside the thread that dies there.
                "vault-file-taken" => daemon.wait_for(&format!("{id} to be fired, or uncertain"), || {
                    match daemon.json(&["vault", "show", &id])["status"].as_str()? {
                        "uncertain" => Some(true),
                        "fired" => Some(false),
                        _ => None,
                    }
                }),
                _ => false,
            };
        wait_status(&daemon, &id, if unsure { "uncertain" } else { "fired" });
        let ran = match place {
            "vault-intent-written" => 0,
            "vault-file-taken" if unsure => runs(&daemon, &id),
            _ => 1,
        };
        assert_eq!(runs(&daemon, &id), ran, "{place}");
        daemon.wait_for("people to be told", || (!titles(&daemon, &id).is_empty()).then_some(()));
        if unsure {
            let title = format!("shop: vault action {id} may have run or not; a person must find out");
            assert_eq!(titles(&daemon, &id), [title], "{place}");
            assert_eq!(daemon.run(&["vault", "approve", &id]).code, Some(3), "{place}: not silently");
            daemon.json(&["vault", "approve", &id, "--again"]);
            wait_status(&daemon, &id, "fired");
            assert_eq!(runs(&daemon, &id), ran + 1, "{place}");
        } else {
            assert_eq!(titles(&daemon, &id), [format!("shop: vault action {id} was fired")], "{place}");
        }
        assert_eq!(fs::read_dir(&pending).unwrap().count(), 0, "{place}: the file is taken once");
        daemon.stop_daemon();
    }
}
