//! What must be so on every homeserver.

use pointsman_testkit::{TestDaemon, not_run};
use serde_json::{Value, json};

use super::lab::{Lab, id, in_thread, thread_of};
use super::{asks, in_room};
use crate::e2e::health::make_due;

fn answers(daemon: &TestDaemon, issue: u64) -> Vec<Value> {
    daemon.events(issue).into_iter().filter(|event| event["kind"] == "answered").collect()
}

/// A question goes to a thread, a stranger's word does not count, a listed person's reaches the agent.
fn escalation(lab: &Lab) {
    let daemon = in_room(lab).set("timing.escalation_renotify", "\"3s\"").start();
    let issue = daemon.file_issue("Apples", &asks());
    daemon.wait_state(issue, "escalated");
    let root = lab.wait_told("shop#1 needs a person");
    let body = root["content"]["body"].as_str().unwrap();
    assert!(
        body.starts_with("shop#1 needs a person\nReply in this thread"),
        "what is needed comes first: {body}"
    );
    assert!(body.contains("Why: Which apples?"), "{body}");
    assert_eq!(root["content"]["m.mentions"]["user_ids"], json!([lab.ann.id]), "who has to act is called");
    assert!(root["content"]["m.relates_to"].is_null());
    let reminder = lab.wait_told("(asked 2 times)");
    assert_eq!(thread_of(&reminder), id(&root), "one thread for one task");

    lab.eve.reply(id(&root), "The blue ones.");
    let mistaken = lab.ann.send(&json!({ "msgtype": "m.notice", "body": "The green ones.",
        "m.relates_to": in_thread(id(&root), "")["m.relates_to"] }));
    lab.ann.edit(&mistaken, "The yellow ones.");
    lab.ann.reply(id(&root), "The red ones, <b>$(id)</b>.");
    daemon.wait_closed(issue);
    let answered = answers(&daemon, issue);
    assert_eq!(answered.len(), 1, "{answered:?}");
    let data = &answered[0]["data"];
    assert_eq!(
        (&data["by"], &data["text"]),
        (&lab.ann.id.as_str().into(), &"The red ones, <b>$(id)</b>.".into())
    );
    let told = lab.wait_told("shop#1 has your answer and continues.");
    assert_eq!(thread_of(&told), id(&root));
    let edit = lab.wait_edited("shop#1 is closed");
    assert_eq!(
        edit["content"]["m.relates_to"]["event_id"],
        id(&root),
        "the first message tells how things stand"
    );
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    assert!(
        !daemon.log().contains(&lab.bot_token)
            && !daemon.run(&["status", "--json"]).stdout.contains(&lab.bot_token)
    );

    lab.ann.reply(id(&root), "One more thing.");
    lab.wait_told("Nobody will read this: shop#1 is closed");
}

/// The daemon is killed while a person answers: the answer is found, and taken once.
fn killed_in_between(lab: &Lab) {
    let daemon = in_room(lab).start();
    let issue = daemon.file_issue("Apples", &asks());
    let root = lab.wait_told("shop#1 needs a person");
    daemon.wait_for("the notice to be written down", || {
        let listed = daemon.json(&["notify", "list"]);
        (listed[0]["told"][0]["status"] == "sent").then_some(())
    });
    daemon.kill_daemon();
    lab.ann.reply(id(&root), "The red ones.");
    // Said and taken back while nobody listened.
    let regretted = lab.ann.reply(id(&root), "kill that agent");
    lab.ann.edit(&regretted, "never mind");
    daemon.start();
    daemon.wait_closed(issue);
    assert_eq!(answers(&daemon, issue).len(), 1);
    daemon.restart();
    lab.ann.say("what's stuck?");
    lab.wait_told("Nothing of shop is stuck.");
    assert_eq!(lab.count_told("shop#1 needs a person"), 1, "asked once");
    assert_eq!(lab.count_told("has your answer"), 1);
    assert_eq!(answers(&daemon, issue).len(), 1, "and answered once");
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
}

const HANDLER: &str = r#"["/bin/sh", "-c", "echo ran >> \"$HOME/runs-$POINTSMAN_VAULT_ID\""]"#;

fn submit(daemon: &TestDaemon, name: &str) {
    let action = json!({
        "id": name, "type": "deploy", "source": "planner", "risk": "low", "reversible": true, "requires_human": false,
        "payload": {"say": "APPROVE"},
    });
    let file = daemon.path("home/action.json");
    std::fs::write(&file, action.to_string()).unwrap();
    assert_eq!(daemon.run(&["vault", "submit", &file.to_string_lossy()]).code, Some(0));
}

fn show(daemon: &TestDaemon, name: &str) -> Value {
    serde_json::from_str(&daemon.run(&["vault", "show", name, "--json"]).stdout).unwrap_or_default()
}

fn wait_status(daemon: &TestDaemon, name: &str, status: &str) -> Value {
    daemon.wait_for(&format!("{name} to be {status}"), || {
        Some(show(daemon, name)).filter(|entry| entry["status"] == status)
    })
}

fn runs(daemon: &TestDaemon, name: &str) -> usize {
    std::fs::read_to_string(daemon.path(&format!("home/runs-{name}"))).map_or(0, |text| text.lines().count())
}

/// A vault action is approved by a listed person's plain word in its own thread, and by nothing else.
fn approval(lab: &Lab) {
    let daemon = in_room(lab)
        .set("vault.types.deploy.command", HANDLER)
        .set("vault.people", &format!("[{:?}]", lab.ann.id))
        .start();
    submit(&daemon, "d1");
    submit(&daemon, "d2");
    let first = lab.wait_told("shop: vault action d1 waits for a person");
    let second = lab.wait_told("shop: vault action d2 waits for a person");
    let (first, second) = (id(&first).to_owned(), id(&second).to_owned());
    assert_ne!(first, second, "each action has a thread of its own");

    // Nothing of this lets it go.
    lab.eve.reply(&first, "APPROVE");
    lab.ann.say("APPROVE");
    lab.ann.quote(&first, "APPROVE");
    let doubtful = lab.ann.reply(&first, "hm");
    lab.ann.edit(&doubtful, "APPROVE");
    lab.ann.reply(&first, "> APPROVE");
    lab.ann.reply(&first, "```\nAPPROVE\n```");
    let mut with_settings = in_thread(&first, "APPROVE");
    with_settings["format"] = "org.matrix.custom.html".into();
    with_settings["formatted_body"] = "<pre><code>APPROVE</code></pre>".into();
    lab.ann.send(&with_settings);
    lab.ann.reply(&first, "approve d2");
    lab.wait_told("that is the name or hash of an action that this thread is not about");
    assert_eq!((&show(&daemon, "d1")["status"], runs(&daemon, "d1")), (&"pending".into(), 0));
    assert_eq!(lab.count_told("a quoted, formatted or hidden word does not count"), 2);

    let hash = show(&daemon, "d1")["hash"].as_str().unwrap().to_owned();
    lab.ann.reply(&first, &format!("APPROVE {}", &hash[..10]));
    let fired = wait_status(&daemon, "d1", "fired");
    assert_eq!((&fired["decided_by"], runs(&daemon, "d1")), (&lab.ann.id.as_str().into(), 1));
    let told = lab.wait_told("Approved. d1 runs once.");
    assert_eq!(thread_of(&told), first);

    // A second yes is none, also after a restart.
    daemon.restart();
    lab.ann.reply(&first, "APPROVE AGAIN");
    lab.wait_told("Not accepted: it is already fired (question 1 was approved by");
    assert_eq!(runs(&daemon, "d1"), 1);

    // It became more dangerous since it was asked about: the question is asked anew.
    daemon.json(&["vault", "raise", "d2", "--requires-human", "--reason", "it is Friday"]);
    lab.ann.reply(&second, "APPROVE");
    lab.wait_told("vault action d2 has changed since the question was asked");
    assert_eq!(show(&daemon, "d2")["status"], "pending");
    lab.ann.reply(&second, "reject: not on a Friday");
    let rejected = wait_status(&daemon, "d2", "rejected");
    assert_eq!((&rejected["reason"], runs(&daemon, "d2")), (&"not on a Friday".into(), 0));
    lab.wait_edited("shop: vault action d2 was rejected");
}

/// A run of a formula asks for a person, and hears what is said in its agent's thread.
fn a_run_asks(lab: &Lab) {
    let formula = "name = \"tidy\"\ndescription = \"Tidies\"\nversion = 1\n[[steps]]\nid = \"look\"\ntitle = \"Look\"\n\
                   description = \"Look.\"\n";
    let agent = r#"
read -r greeting
printf 'PHASE:escalate\nReason: Where is the broom?\n' > "$PHASE_FILE"
read -r answer
echo "$answer" >> "$HOME/heard"
cat "${answer##*Details: }" >> "$HOME/heard"
PROGRAM step done look
echo '{}' > "$POINTSMAN_RESULT_FILE"
echo PHASE:done > "$PHASE_FILE"
read -r end
"#;
    let agent = agent.replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman"));
    let daemon = in_room(lab).agent(&agent).file("formulas/tidy.toml", formula).start();
    daemon.json(&["formula", "run", "tidy"]);
    let root = lab.wait_told("shop: run 1 of tidy needs a person");
    lab.ann.reply(id(&root), "In the cupboard.");
    let told = lab.wait_told("shop: run 1 of tidy has your answer and continues.");
    assert_eq!(thread_of(&told), id(&root));
    daemon.wait_for("the run to be done", || {
        (daemon.json(&["run", "show", "1"])["status"] == "done").then_some(())
    });
    let heard = std::fs::read_to_string(daemon.path("home/heard")).unwrap();
    assert!(heard.starts_with("[pointsman m-") && heard.contains("] Answer to your question."), "{heard}");
    assert!(heard.contains("In the cupboard."), "{heard}");
}

/// Orders, questions and words for agents that are not running.
fn words(lab: &Lab) {
    let daemon = in_room(lab).start();
    let issue = daemon.file_issue("Apples", &asks());
    let root = lab.wait_told("shop#1 needs a person");
    lab.ann.reply(id(&root), "what's stuck?");
    let stuck = lab.wait_told("One thing of shop is stuck.");
    assert!(stuck["content"]["body"].as_str().unwrap().contains("#1 escalated for"), "{stuck}");
    lab.ann.reply(id(&root), "!frobnicate");
    lab.wait_told("There is no such command");
    lab.ann.say("ignore disk warning");
    lab.wait_told("Kept for the supervisor");
    lab.eve.reply(id(&root), "kill that agent");
    assert_eq!(daemon.task(issue)["state"], "escalated");
    lab.ann.reply(id(&root), "kill that agent");
    daemon.wait_state(issue, "blocked");
    lab.wait_told("Ended, its work is kept: shop#1.");
    daemon.wait_settled(issue);
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(answers(&daemon, issue).len(), 0, "no command was taken for an answer");
}

/// What people say to the supervisor.
fn supervised(lab: &Lab) {
    let daemon = in_room(lab)
        .set("roles.supervisor.enabled", "true")
        .set("health.max_disk_percent", "0")
        .set("health.ask_model", "false")
        // Only when this test says so.
        .set("roles.supervisor.schedule", "\"0 0 29 2 *\"")
        .start();
    let issue = daemon.file_issue("Apples", &asks());
    daemon.wait_state(issue, "escalated");
    make_due(&daemon, "run-supervisor");
    let root = lab.wait_told("shop needs a person, P1: the disk of");
    assert!(
        root["content"]["body"].as_str().unwrap().contains("P2 everything waits for a person: #1"),
        "{root}"
    );
    lab.ann.reply(id(&root), "ignore disk warning");
    let told = lab.wait_told("You will not be notified of disk for 24h.");
    assert_eq!(thread_of(&told), id(&root));
    let health = daemon.json(&["health"]);
    assert!(health["findings"][0]["ignored_until"].is_string(), "{health}");
    // Whoever is not listed is not heard; what is said after it is.
    lab.eve.reply(id(&root), "kill that agent");
    lab.ann.reply(id(&root), "what's stuck?");
    lab.wait_told("One thing of shop is stuck.");
    assert_eq!(daemon.task(issue)["state"], "escalated");
    lab.ann.reply(id(&root), "kill that agent");
    lab.wait_told("Stopped the agent of #1; its work is kept.");
    daemon.wait_state(issue, "blocked");
    daemon.wait_settled(issue);
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    daemon.restart();
    lab.ann.reply(id(&root), "kill that agent");
    lab.wait_told("Which agent?");
    assert_eq!(lab.count_told("Stopped the agent of #1; its work is kept."), 1);
}

#[test]
fn e2e_chat_the_supervisor_hears_what_people_say() {
    supervised(&Lab::fake());
}

#[test]
fn e2e_chat_a_question_goes_to_a_thread_and_the_answer_to_the_agent() {
    escalation(&Lab::fake());
}

#[test]
fn e2e_chat_an_answer_is_found_by_the_next_daemon() {
    killed_in_between(&Lab::fake());
}

#[test]
fn e2e_chat_a_vault_action_is_approved_by_a_plain_word_of_a_listed_person() {
    approval(&Lab::fake());
}

#[test]
fn e2e_chat_orders_questions_and_words_for_later() {
    words(&Lab::fake());
}

#[test]
fn e2e_chat_a_run_of_a_formula_asks_and_is_answered() {
    a_run_asks(&Lab::fake());
}

/// Against the homeserver that `POINTSMAN_TEST_MATRIX_URL` names, as `scripts/test-services` does.
#[test]
fn e2e_chat_on_a_real_server() {
    let Some(lab) = Lab::real() else {
        return not_run(
            "matrix",
            "POINTSMAN_TEST_MATRIX_URL names no server; scripts/test-services starts one",
        );
    };
    for (name, story) in [
        ("escalation", escalation as fn(&Lab)),
        ("killed in between", killed_in_between),
        ("approval", approval),
        ("words", words),
        ("a run asks", a_run_asks),
        ("supervised", supervised),
        ("encrypted", super::trouble::encrypted),
    ] {
        eprintln!("{name}");
        story(&Lab::real().unwrap_or_else(|| panic!("{} is gone", lab.url)));
    }
}
