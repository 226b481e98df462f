//! A homeserver that is down, slow, wrong or encrypted keeps nobody from working, and nothing is lost or said twice.

use pointsman::daemon::crash::CHAT_NAMES;
use pointsman_testkit::fake_homeserver::Trouble;
use pointsman_testkit::http::Reply;
use serde_json::Value;

use super::lab::{Lab, id};
use super::{LAND, adds, asks, in_room};

fn check(daemon: &pointsman_testkit::TestDaemon, lab: &Lab, name: &str) -> Value {
    let mut doctor = daemon.command(&["doctor", "--json"]);
    let answer = doctor.env("MATRIX_TOKEN", &lab.bot_token).output().unwrap();
    let told: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let found = told["checks"].as_array().unwrap().iter().find(|check| check["id"] == name);
    found.cloned().unwrap_or_else(|| panic!("no check {name}: {told}"))
}

#[test]
fn e2e_chat_a_server_that_is_down_delays_nobody_and_hears_of_it_later() {
    let lab = Lab::fake();
    let fake = lab.fake.as_ref().unwrap();
    let daemon = in_room(&lab).start();
    daemon.wait_for("the room to be listened to", || {
        fake.requests().iter().any(|(_, p)| p.ends_with("/sync")).then_some(())
    });
    let ill = ["/send/", "/state/", "/whoami"];
    for part in ill {
        fake.trouble(part, vec![Trouble::Instead(Reply::html(502, "<title>Bad Gateway</title>")); 1000]);
    }
    let issue = daemon
        .file_issue("Apples", &format!("phase escalate Which?\nexpect Answer\n{}\n{LAND}", adds("apples")));
    let status = daemon.wait_for("the trouble to be seen", || {
        let status = daemon.json(&["status"]);
        status["notifiers"].as_array().is_some_and(|ill| !ill.is_empty()).then_some(status)
    });
    let ill = &status["notifiers"][0];
    assert_eq!((&ill["part"], &ill["waiting"]), (&"matrix".into(), &1.into()), "{ill}");
    assert!(ill["error"].as_str().unwrap().contains("answered 502 (Bad Gateway)"), "{ill}");
    daemon.wait_state(issue, "escalated");
    daemon.wait_settled(issue);
    assert_eq!(daemon.notices().len(), 1, "the log was told at once");
    daemon.answer(issue, "The red ones.");
    daemon.wait_closed(issue);
    assert_eq!(lab.told().len(), 0);
    fake.recover();
    lab.wait_told("shop#1 needs a person");
    daemon.wait_for("all to be well", || {
        daemon.json(&["status"])["notifiers"].as_array().unwrap().is_empty().then_some(())
    });
    assert_eq!(check(&daemon, &lab, "matrix")["status"], "ok");
    assert_eq!(lab.count_told("shop#1 needs a person"), 1);
}

#[test]
fn e2e_chat_lost_answers_limits_and_garbage_double_nothing() {
    let lab = Lab::fake();
    let fake = lab.fake.as_ref().unwrap();
    let cut = Reply::empty(200).body("{\"event_id\": \"$");
    fake.trouble("/send/", [Trouble::Lost, Trouble::Cut, Trouble::Limited(30), Trouble::Instead(cut)]);
    fake.trouble(
        "/sync",
        [Trouble::Instead(Reply::html(200, "<title>Sign in</title>")), Trouble::Lost, Trouble::Cut],
    );
    let daemon = in_room(&lab).start();
    let issue = daemon.file_issue("Apples", &asks());
    let root = lab.wait_told("shop#1 needs a person");
    fake.trouble("/sync", [Trouble::Lost, Trouble::Cut, Trouble::Limited(20)]);
    lab.ann.reply(id(&root), "The red ones.");
    daemon.wait_closed(issue);
    lab.wait_told("has your answer");
    assert_eq!(lab.count_told("shop#1 needs a person"), 1);
    assert_eq!(lab.count_told("has your answer"), 1);
}

#[test]
fn e2e_chat_a_notice_that_was_told_without_our_knowing_is_answered_all_the_same() {
    let lab = Lab::fake();
    let fake = lab.fake.as_ref().unwrap();
    fake.trouble("/send/m.room.message/pointsman-", vec![Trouble::Lost; 1000]);
    let daemon = in_room(&lab).start();
    let issue = daemon.file_issue("Apples", &asks());
    let root = lab.wait_told("shop#1 needs a person");
    lab.ann.reply(id(&root), "The red ones.");
    daemon.wait_closed(issue);
    lab.wait_told("has your answer");
    assert_eq!(lab.count_told("shop#1 needs a person"), 1);
    assert_eq!(lab.count_told("has your answer"), 1);
}

#[test]
fn e2e_chat_a_token_that_is_worth_nothing_is_said_and_tasks_go_on() {
    let lab = Lab::fake();
    lab.fake.as_ref().unwrap().revoke("bot");
    let daemon = in_room(&lab).start();
    let issue = daemon.file_issue("Apples", &super::super::clean("apples"));
    daemon.wait_closed(issue);
    let listening = daemon.wait_for("the trouble to be seen", || {
        let status = daemon.json(&["status"]);
        status["notifiers"].as_array().unwrap().first().cloned()
    });
    assert!(
        listening["error"].as_str().unwrap().contains("401 (Invalid access token passed.)"),
        "{listening}"
    );
    let matrix = check(&daemon, &lab, "matrix");
    assert_eq!(matrix["status"], "fail", "{matrix}");
    assert!(!daemon.log().contains(&lab.bot_token));

    let without = in_room(&lab).daemon_env("MATRIX_TOKEN", "").start();
    let problems = without.json(&["status"])["daemon"]["problems"].clone();
    assert!(problems[0].as_str().unwrap().contains("set MATRIX_TOKEN"), "{problems}");
    let issue = without.file_issue("Pears", &super::super::clean("pears"));
    without.wait_closed(issue);
}

/// An encrypted room is refused, and nothing is written there.
pub(super) fn encrypted(lab: &Lab) {
    lab.ann.encrypt();
    let daemon = in_room(lab).start();
    let issue = daemon.file_issue("Apples", &asks());
    daemon.wait_state(issue, "escalated");
    let told = daemon.wait_for("the refusal to be seen", || {
        let status = daemon.json(&["status"]);
        let ill = status["notifiers"].as_array().cloned().unwrap_or_default();
        ill.into_iter().find(|ill| ill["part"] == "matrix")
    });
    assert!(told["error"].as_str().unwrap().contains("encrypted rooms are not supported"), "{told}");
    let matrix = check(&daemon, lab, "matrix");
    assert!(
        matrix["status"] == "fail" && matrix["detail"].as_str().unwrap().contains("encrypted"),
        "{matrix}"
    );
    assert_eq!(lab.told().len(), 0);
}

#[test]
fn e2e_chat_an_encrypted_room_is_refused() {
    encrypted(&Lab::fake());
}

#[test]
fn e2e_chat_kill_at_every_step_of_a_notice_and_its_answer() {
    for place in CHAT_NAMES {
        let lab = Lab::fake();
        let daemon = in_room(&lab).build();
        let asked = place.starts_with("notice");
        let dies = [("POINTSMAN_CRASH_AT", place)];
        daemon.start_with(if asked { &dies } else { &[] });
        let issue = daemon.file_issue("Apples", &asks());
        if asked {
            daemon.wait_for_death();
            daemon.start();
        }
        let root = lab.wait_told("shop#1 needs a person");
        daemon.wait_state(issue, "escalated");
        if !asked {
            daemon.kill_daemon();
            daemon.start_with(&dies);
        }
        lab.ann.reply(id(&root), "The red ones.");
        if !asked {
            daemon.wait_for_death();
            daemon.start();
        }
        daemon.wait_closed(issue);
        lab.wait_told("has your answer");
        let answered = daemon.events(issue).iter().filter(|event| event["kind"] == "answered").count();
        assert_eq!(answered, 1, "{place}");
        assert_eq!(lab.count_told("shop#1 needs a person"), 1, "{place}: asked once");
        assert_eq!(lab.count_told("has your answer"), 1, "{place}: thanked once");
        assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"], "{place}");
    }
}
