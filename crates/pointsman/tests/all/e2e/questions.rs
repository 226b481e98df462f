//! Questions to people: each has a number and a thread of its own, an answer reaches the one that asked, and whoever is
//! second learns who was first.

use std::fs;

use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::chat::lab::{Lab, id, thread_of};
use super::vault::{action, guarded, runs, submit, wait_status};
use super::{LAND, adds, shop};

const FORMULA: &str = "name = \"buckets\"\ndescription = \"Buckets\"\nversion = 1\n[[steps]]\nid = \"look\"\ntitle = \"Look\"\n\
                       description = \"Look.\"\n";

/// An action's session that asks, and writes down what it hears until it is done.
const AGENT: &str = r#"
read -r greeting
name="${POINTSMAN_SESSION%.*}"
printf 'PHASE:escalate\nReason: May I go on, %s?\n' "$name" > "$PHASE_FILE"
read -r answer
echo "$answer" >> "$HOME/heard-$name"
cat "${answer##*Details: }" >> "$HOME/heard-$name"
# However often the daemon is away: code 3 means that the step counted although the answer got lost.
while :; do
    PROGRAM step done look
    case $? in 0|3) break ;; esac
    sleep 0.05
done
echo '{"summary": "Done."}' > "$POINTSMAN_RESULT_FILE"
echo PHASE:done > "$PHASE_FILE"
read -r end
"#;

fn with_actions(setup: Setup) -> Setup {
    setup
        .set("roles.action.enabled", "true")
        .set("limits.min_free_memory_mb", "0")
        .agent(&AGENT.replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman")))
        .file("formulas/buckets.toml", FORMULA)
}

/// Two actions that ask, by their issues; the first asks before the second.
fn two_questions(daemon: &TestDaemon) -> [(u64, Value); 2] {
    ["Delete bucket A", "List bucket B"].map(|title| {
        let order =
            ["forge", "issue", "create", "--title", title, "--body", "Formula: buckets", "--label", "action"];
        let issue = daemon.json(&order)["number"].as_u64().unwrap();
        let asked = daemon.wait_for("its question", || {
            let open = daemon.json(&["inbox"]);
            open.as_array()?.iter().find(|question| question["issue"] == issue).cloned()
        });
        (issue, asked)
    })
}

fn number(question: &Value) -> String {
    question["id"].to_string()
}

/// The words that the session of an owner (`run/2`) heard.
fn heard(daemon: &TestDaemon, question: &Value) -> Option<String> {
    let run = question["owner"].as_str().unwrap().strip_prefix("run/").unwrap();
    fs::read_to_string(daemon.path(&format!("home/heard-action-shop-{run}"))).ok()
}

fn wait_done(daemon: &TestDaemon, question: &Value) -> String {
    let run = question["owner"].as_str().unwrap().strip_prefix("run/").unwrap();
    daemon.wait_for("the run to be done", || {
        (daemon.json(&["run", "show", run])["status"] == "done").then_some(())
    });
    heard(daemon, question).unwrap()
}

fn is_open(daemon: &TestDaemon, question: &Value) -> bool {
    daemon.json(&["inbox", "show", &number(question)])["settled"].is_null()
}

#[test]
fn e2e_two_questions_by_command_each_answer_reaches_its_own_run_once() {
    let daemon = with_actions(shop()).start();
    let [(_, a), (_, b)] = two_questions(&daemon);
    assert_eq!((&a["kind"], &b["kind"]), (&json!("question"), &json!("question")));
    assert_eq!(b["subject"], "May I go on, action-shop-2?");
    assert_eq!(b["settle"], json!([format!("pointsman inbox answer {} \"…\"", number(&b))]));
    let status = daemon.json(&["status"]);
    assert_eq!(status["questions"].as_array().unwrap().len(), 2, "{status}");
    assert!(daemon.run(&["status"]).stdout.contains("May I go on, action-shop-1?"));

    let answered = daemon.json(&["inbox", "answer", &number(&b), "Yes, list it."]);
    assert_eq!(
        (&answered["settled"]["how"], &answered["settled"]["by"]),
        (&json!("answered"), &crate::login().into())
    );
    let said = wait_done(&daemon, &b);
    assert!(said.contains("Yes, list it."), "{said}");
    assert!(is_open(&daemon, &a) && heard(&daemon, &a).is_none(), "nobody answered this one");

    let second = daemon.run(&["inbox", "answer", &number(&b), "No, do not."]);
    assert_eq!(second.code, Some(3));
    assert!(second.stderr.contains(&format!("was answered by {}", crate::login())), "{second:?}");
    let wrong = daemon.run(&["inbox", "approve", &number(&a)]);
    assert!(wrong.code == Some(3) && wrong.stderr.contains("inbox answer"), "{wrong:?}");
    assert_eq!(daemon.run(&["inbox", "answer", "99", "Yes"]).code, Some(4));

    daemon.json(&["inbox", "answer", &number(&a), "No, keep it."]);
    assert!(wait_done(&daemon, &a).contains("No, keep it."));
    assert_eq!(daemon.json(&["inbox"]), json!([]));
}

#[test]
fn e2e_two_questions_by_comments_each_answer_reaches_its_own_run() {
    let daemon = with_actions(shop()).start();
    let [(first, a), (second, b)] = two_questions(&daemon);
    daemon.wait_for("the question to be on the issue", || {
        let comments = daemon.comments(second);
        comments.iter().any(|comment| comment.contains("May I go on, action-shop-2?")).then_some(())
    });
    daemon.json(&["forge", "issue", "comment", &second.to_string(), "--body", "Yes, go ahead with B."]);
    assert!(wait_done(&daemon, &b).contains("Yes, go ahead with B."));
    assert!(is_open(&daemon, &a) && heard(&daemon, &a).is_none(), "nobody answered this one");
    let other = format!("question {}: for somebody else", number(&b));
    daemon.json(&["forge", "issue", "comment", &first.to_string(), "--body", &other]);
    daemon.json(&["forge", "issue", "comment", &first.to_string(), "--body", "No, keep A."]);
    let said = wait_done(&daemon, &a);
    assert!(said.contains("No, keep A.") && !said.contains("somebody else"), "{said}");
}

#[test]
fn e2e_chat_two_questions_have_two_threads_and_an_answer_reaches_its_own_run() {
    let lab = Lab::fake();
    let daemon = with_actions(super::chat::in_room(&lab)).start();
    let [(_, a), (_, b)] = two_questions(&daemon);
    let roots = [1, 2].map(|run| lab.wait_told(&format!("shop: run {run} of buckets needs a person")));
    assert!(roots.iter().all(|root| root["content"]["m.relates_to"].is_null()), "two threads: {roots:?}");
    lab.ann.reply(id(&roots[1]), "Yes, go ahead with listing bucket B.");
    assert!(wait_done(&daemon, &b).contains("go ahead with listing bucket B."));
    let told = lab.wait_told("shop: run 2 of buckets has your answer and continues.");
    assert_eq!(thread_of(&told), id(&roots[1]));
    assert!(is_open(&daemon, &a) && heard(&daemon, &a).is_none(), "nobody answered this one");

    lab.ann.reply(id(&roots[1]), "And delete it.");
    let told = lab.wait_told(&format!("Not accepted: question {} was answered by", number(&b)));
    assert_eq!(thread_of(&told), id(&roots[1]));
    lab.ann.reply(id(&roots[0]), "No, keep bucket A.");
    assert!(wait_done(&daemon, &a).contains("No, keep bucket A."));
}

#[test]
fn e2e_an_answer_outlives_the_daemon_that_took_it() {
    let daemon = with_actions(shop()).start();
    let [(_, a), (_, b)] = two_questions(&daemon);
    daemon.json(&["inbox", "answer", &number(&b), "Yes, list it."]);
    daemon.kill_daemon();
    // Without a daemon nobody can tell who answers.
    let alone = daemon.run(&["inbox", "answer", &number(&a), "Yes, delete it."]);
    assert_eq!(alone.code, Some(5), "{alone:?}");
    daemon.start();
    let second = daemon.run(&["inbox", "answer", &number(&b), "No."]);
    assert_eq!(second.code, Some(3), "{second:?}");
    let said = wait_done(&daemon, &b);
    assert_eq!(said.matches("Yes, list it.").count(), 1, "{said}");
    assert!(is_open(&daemon, &a) && heard(&daemon, &a).is_none());
}

#[test]
fn e2e_nobody_answers_a_run_so_people_are_reminded_and_it_fails() {
    let daemon = with_actions(shop())
        .set("timing.escalation_renotify", "\"1s\"")
        .set("timing.escalation_timeout", "\"3s\"")
        .start();
    let order =
        ["forge", "issue", "create", "--title", "A", "--body", "Formula: buckets", "--label", "action"];
    daemon.json(&order);
    daemon.wait_for("a reminder", || {
        let again = |notice: &Value| notice["title"].as_str().is_some_and(|t| t.contains("(asked 2 times)"));
        daemon.notices().iter().any(again).then_some(())
    });
    let run = daemon.wait_for("its end", || {
        Some(daemon.json(&["run", "show", "1"])).filter(|run| run["status"] == "failed")
    });
    assert_eq!(run["reason"], "nobody answered within 3s: May I go on, action-shop-1?");
    assert_eq!(daemon.json(&["inbox", "show", "1"])["settled"]["how"], "expired");
}

#[test]
fn e2e_a_task_s_question_is_settled_once_from_wherever() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", "phase escalate Which apples?\nexpect Answer\nidle");
    daemon.wait_state(issue, "escalated");
    let asked = daemon.json(&["inbox"])[0].clone();
    assert_eq!((&asked["owner"], &asked["subject"]), (&json!("task/1"), &json!("Which apples?")));
    daemon.json(&["inbox", "answer", &number(&asked), "The red ones."]);
    daemon.wait_state(issue, "working");
    for second in [vec!["task", "answer", "1", "Green."], vec!["inbox", "answer", "1", "Green."]] {
        let second = daemon.run(&second);
        assert_eq!(second.code, Some(3));
        assert!(second.stderr.contains("question 1 was answered by"), "{second:?}");
    }
    let kinds: Vec<Value> = daemon.events(issue).into_iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "answered").count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == "question_settled").count(), 1);
}

#[test]
fn e2e_a_vault_action_is_a_question_that_the_inbox_approves() {
    let daemon = guarded().start();
    assert_eq!(submit(&daemon, &action("h1", "high")).code, Some(0));
    assert_eq!(submit(&daemon, &action("h2", "high")).code, Some(0));
    let open = daemon.json(&["inbox"]);
    assert_eq!((&open[0]["kind"], &open[0]["owner"]), (&json!("approval"), &json!("vault/h1")));
    let settled = daemon.json(&["inbox", "approve", &number(&open[0])]);
    assert_eq!(settled["settled"]["how"], "approved");
    wait_status(&daemon, "h1", "fired");
    assert_eq!(runs(&daemon, "h1"), 1);
    let second = daemon.run(&["inbox", "approve", &number(&open[0])]);
    assert!(second.code == Some(3) && second.stderr.contains("was approved by"), "{second:?}");
    let second = daemon.run(&["vault", "reject", "h1"]);
    assert!(second.code == Some(3) && second.stderr.contains("was approved by"), "{second:?}");
    daemon.json(&["inbox", "reject", &number(&open[1]), "--body", "Not today."]);
    assert_eq!(wait_status(&daemon, "h2", "rejected")["reason"], "Not today.");
    assert_eq!((runs(&daemon, "h2"), daemon.json(&["inbox"])), (0, json!([])));
}

/// The open question of a kind.
fn wait_kind(daemon: &TestDaemon, kind: &str) -> Value {
    daemon.wait_for(kind, || {
        let open = daemon.json(&["inbox"]);
        open.as_array()?.iter().find(|question| question["kind"] == kind).cloned()
    })
}

#[test]
fn e2e_a_pull_request_is_approved_and_rejected_in_the_inbox() {
    let daemon = shop().reviewed().start();
    let script = format!(
        "{}\nexpect Changes requested\nwrite src/apples.txt better apples\ncommit Better apples\npush\nphase \
         awaiting_ci\n{LAND}",
        adds("apples")
    );
    let issue = daemon.file_issue("Apples", &script);
    let asked = wait_kind(&daemon, "review");
    assert_eq!((&asked["issue"], &asked["pr"]), (&json!(issue), &json!(2)), "{asked}");
    assert_eq!(
        asked["settle"],
        json!([
            format!("pointsman inbox approve {}", asked["id"]),
            format!("pointsman inbox reject {}", asked["id"])
        ])
    );
    daemon.wait_for("a notice", || {
        let notices = daemon.notices();
        notices
            .iter()
            .any(|notice| notice["title"] == "shop: a pull request waits for a review")
            .then_some(())
    });
    daemon.json(&["inbox", "reject", &number(&asked), "--body", "Better ones, please."]);
    let again = daemon.wait_for("a question about the new head", || {
        Some(wait_kind(&daemon, "review")).filter(|again| again["id"] != asked["id"])
    });
    let old = daemon.json(&["inbox", "show", &number(&asked)]);
    assert!(!old["settled"].is_null(), "{old}");
    daemon.json(&["inbox", "approve", &number(&again)]);
    daemon.wait_closed(issue);
    daemon.wait_for("an empty inbox", || (daemon.json(&["inbox"]) == json!([])).then_some(()));
}

#[test]
fn e2e_a_blocked_task_is_in_the_inbox_until_it_goes_on() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", "phase failed it is too hard\nhang");
    daemon.wait_state(issue, "blocked");
    let asked = wait_kind(&daemon, "blocked");
    assert!(asked["subject"].as_str().unwrap().contains("it is too hard"), "{asked}");
    daemon.restart();
    assert_eq!(wait_kind(&daemon, "blocked")["id"], asked["id"], "it is asked once");
    daemon.json(&["inbox", "dismiss", &number(&asked)]);
    daemon.restart();
    assert_eq!(daemon.json(&["inbox"]), json!([]), "what a person dismissed is not asked again");
    daemon.json(&["task", "stop", &issue.to_string()]);
}

#[test]
fn e2e_a_queue_that_paused_itself_is_in_the_inbox_and_goes_on_with_a_yes() {
    let daemon = shop().set("merge.outside_pushes", "\"pause\"").start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    daemon.wait_closed(issue);
    // Somebody pushes to main past the queue.
    let (work, url) = (daemon.path("elsewhere"), daemon.run(&["forge", "url"]).stdout.trim().to_owned());
    daemon.git_in(&daemon.path(""), &["clone", "--quiet", &url, work.to_str().unwrap()]);
    fs::write(work.join("src/pears.txt"), "pears\n").unwrap();
    daemon.git_in(&work, &["add", "src"]);
    daemon.git_in(&work, &["commit", "--quiet", "--message", "pears"]);
    daemon.git_in(&work, &["push", "--quiet", "origin", "HEAD:main"]);
    let asked = wait_kind(&daemon, "queue_paused");
    let commands =
        [format!("pointsman inbox approve {}", asked["id"]), "pointsman merge-queue resume".to_owned()];
    assert_eq!(asked["settle"], json!(commands), "{asked}");
    daemon.json(&["inbox", "approve", &number(&asked)]);
    assert_eq!(daemon.json(&["merge-queue", "status"])["paused"], false);
    let other = daemon.file_issue("Plums", &format!("{}\n{LAND}", adds("plums")));
    daemon.wait_closed(other);
    assert_eq!(daemon.json(&["inbox"]), json!([]));
}

#[test]
fn e2e_chat_a_yes_in_the_thread_of_a_question_settles_it_once_also_after_a_kill() {
    let lab = Lab::fake();
    let daemon = super::chat::in_room(&lab).set("merge.outside_pushes", "\"pause\"").start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    daemon.wait_closed(issue);
    let (work, url) = (daemon.path("elsewhere"), daemon.run(&["forge", "url"]).stdout.trim().to_owned());
    daemon.git_in(&daemon.path(""), &["clone", "--quiet", &url, work.to_str().unwrap()]);
    fs::write(work.join("src/pears.txt"), "pears\n").unwrap();
    daemon.git_in(&work, &["add", "src"]);
    daemon.git_in(&work, &["commit", "--quiet", "--message", "pears"]);
    daemon.git_in(&work, &["push", "--quiet", "origin", "HEAD:main"]);
    let asked = wait_kind(&daemon, "queue_paused");
    let root = lab.wait_told("shop: a merge queue is paused");
    lab.ann.reply(id(&root), "no");
    let told = lab.wait_told("Not accepted: question");
    assert_eq!(thread_of(&told), id(&root));
    daemon.kill_daemon();
    lab.ann.reply(id(&root), "yes");
    daemon.restart();
    lab.wait_told(&format!("Question {} is settled.", number(&asked)));
    assert_eq!(daemon.json(&["merge-queue", "status"])["paused"], false);
    let settled = daemon.json(&["inbox", "show", &number(&asked)]);
    assert_eq!(settled["settled"]["how"], "approved", "{settled}");
    let second = daemon.run(&["inbox", "approve", &number(&asked)]);
    assert!(second.code == Some(3) && second.stderr.contains("was approved by"), "{second:?}");
}
