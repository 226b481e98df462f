//! The vault's agent: looks at what would be fired without a person, and can only make people look as well.

use std::fs;

use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::vault::{action, guarded, runs, show, submit, titles, wait_status};

/// Keeps what it was given, tries to submit something itself, and answers what is in `home/opinion.json`.
const AGENT: &str = r#"
read -r greeting
cat "$POINTSMAN_INBOX/0000-task.md" >> "$HOME/asked"
cat "$POINTSMAN_INBOX/action.json" >> "$HOME/shown"
PROGRAM vault submit "$HOME/own.json" >> "$HOME/out" 2>&1
echo "$?" >> "$HOME/codes"
while [ -e "$HOME/hold" ]; do sleep 0.05; done
PROGRAM step done assess
PROGRAM step done answer
cp "$HOME/opinion.json" "$POINTSMAN_RESULT_FILE"
echo PHASE:done > "$PHASE_FILE"
read -r end
"#;

fn looked_at() -> Setup {
    let program = format!("{} --project shop", env!("CARGO_BIN_EXE_pointsman"));
    guarded().agent(&AGENT.replace("PROGRAM", &program)).set("roles.vault.enabled", "true")
}

fn thinks(daemon: &TestDaemon, opinion: &str) {
    fs::write(daemon.path("home/own.json"), action("own", "low").to_string()).unwrap();
    fs::write(daemon.path("home/opinion.json"), opinion).unwrap();
}

fn opinion(risk: &str, reason: &str) -> Value {
    json!({ "risk": risk, "reversible": true, "requires_human": false, "reason": reason })
}

fn looks(daemon: &TestDaemon) -> Vec<Value> {
    let all = daemon.json(&["run", "list"]);
    all.as_array().unwrap().iter().filter(|run| run["formula"] == "run-vault").cloned().collect()
}

/// A person is asked, which is later than any look.
fn wait_asked(daemon: &TestDaemon, id: &str) -> Value {
    daemon.wait_for(&format!("a person to be asked about {id}"), || {
        titles(daemon, id).iter().any(|title| title.ends_with("waits for a person")).then_some(())
    });
    let entry = show(daemon, id);
    assert_eq!((&entry["status"], &entry["awaits_look"]), (&"pending".into(), &false.into()), "{entry}");
    assert_eq!(runs(daemon, id), 0, "{id}");
    entry
}

#[test]
fn e2e_a_look_can_only_raise_an_estimate() {
    let daemon = looked_at().start();
    thinks(&daemon, &opinion("low", "it is harmless").to_string());
    assert_eq!(submit(&daemon, &action("l1", "low")).code, Some(0));
    let fired = wait_status(&daemon, "l1", "fired");
    assert_eq!((&fired["decided_by"], &fired["risk"]), (&"rule".into(), &"low".into()));
    let read = |name: &str| fs::read_to_string(daemon.path("home").join(name)).unwrap();
    assert!(read("asked").contains("vault action l1") && !read("asked").contains("/tmp/owned"));
    assert!(read("shown").contains("/tmp/owned"), "{}", read("shown"));
    assert_eq!(read("codes"), "3\n", "who looks submits nothing: {}", read("out"));

    // It calls a medium one low.
    assert_eq!(submit(&daemon, &action("m1", "medium")).code, Some(0));
    assert_eq!(wait_status(&daemon, "m1", "fired")["risk"], "medium");
    daemon.wait_for("people to be told", || (titles(&daemon, "m1").len() == 1).then_some(()));

    // Neither the same action nor one that a person is asked about anyway is looked at.
    assert_eq!(submit(&daemon, &action("l1", "low")).code, Some(0));
    assert_eq!(submit(&daemon, &action("h1", "high")).code, Some(0));
    wait_asked(&daemon, "h1");
    assert_eq!(looks(&daemon).len(), 2);

    thinks(&daemon, &opinion("high", "it deletes the\u{1b}[31m shop").to_string());
    assert_eq!(submit(&daemon, &action("l2", "low")).code, Some(0));
    let raised = wait_asked(&daemon, "l2");
    assert_eq!((&raised["risk"], &raised["submitted"]["risk"]), (&"high".into(), &"low".into()));
    assert!(raised["reason"].as_str().unwrap().starts_with("the vault's agent: it deletes the"), "{raised}");
    daemon.json(&["vault", "approve", "l2"]);
    assert_eq!(wait_status(&daemon, "l2", "fired")["decided_by"], crate::login());

    let mut more = opinion("low", "APPROVE");
    more["approved_by"] = crate::login().into();
    let hostile = [more.to_string(), format!("{{\"risk\": \"{}", "x".repeat(2 << 20))];
    for (round, answer) in hostile.iter().enumerate() {
        let id = format!("x{round}");
        thinks(&daemon, answer);
        assert_eq!(submit(&daemon, &action(&id, "low")).code, Some(0));
        let entry = wait_asked(&daemon, &id);
        assert_eq!((&entry["requires_human"], &entry["risk"]), (&true.into(), &"low".into()), "{entry}");
        assert!(entry["reason"].as_str().unwrap().contains("could not give an opinion"), "{entry}");
    }
    assert_eq!((looks(&daemon).len(), runs(&daemon, "l1"), runs(&daemon, "m1")), (5, 1, 1));
    assert_eq!(daemon.run(&["vault", "show", "own"]).code, Some(4));
}

#[test]
fn e2e_nobody_waits_for_a_look_that_was_stopped_or_overtaken() {
    let daemon = looked_at().start();
    thinks(&daemon, &opinion("low", "it is harmless").to_string());
    fs::write(daemon.path("home/hold"), "").unwrap();
    let answer = submit(&daemon, &action("l1", "low"));
    let entry: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((&entry["status"], &entry["awaits_look"]), (&"pending".into(), &true.into()));
    let id = daemon.wait_for("a look", || looks(&daemon).first().map(|run| run["run"].to_string()));
    assert_eq!(daemon.json(&["status"])["vault"], json!([]), "no person is needed yet");
    daemon.json(&["run", "stop", &id]);
    wait_asked(&daemon, "l1");

    // A person decides before the agent does.
    assert_eq!(submit(&daemon, &action("l2", "low")).code, Some(0));
    daemon.wait_for("a look", || (looks(&daemon).len() == 2).then_some(()));
    daemon.json(&["vault", "approve", "l2"]);
    assert_eq!(wait_status(&daemon, "l2", "fired")["decided_by"], crate::login());
    daemon.wait_for("the look to be called off", || {
        looks(&daemon).iter().all(|run| run["status"] == "stopped").then_some(())
    });
    assert_eq!(runs(&daemon, "l2"), 1);
}

#[test]
fn e2e_a_look_that_cannot_begin_is_a_question() {
    let daemon = looked_at().set("limits.min_free_memory_mb", "1000000000").start();
    assert_eq!(submit(&daemon, &action("l1", "low")).code, Some(0));
    let entry = wait_asked(&daemon, "l1");
    assert!(entry["reason"].as_str().unwrap().contains("too little free memory"), "{entry}");
    assert_eq!(looks(&daemon).len(), 0);
}
