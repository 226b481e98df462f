use std::time::Duration;

use super::{
    Act, Binding, Cause, Change, Due, Event, Expiry, Kind, Owner, Policy, Question, QuestionId, Settled,
    Settlement, Source, Urgency, bind, changes, decision, named,
};
use crate::ids::ProjectName;
use crate::run::RunId;
use crate::time::Timestamp;

const HOUR: Duration = Duration::from_secs(3600);
const POLICY: Policy = Policy { remind: HOUR.saturating_mul(6), timeout: HOUR.saturating_mul(24) };
const ASKED: Timestamp = Timestamp(1_000_000_000_000);

fn source() -> Source {
    Source {
        project: ProjectName::new("shop").unwrap(),
        owner: Owner::Task(3),
        issue: Some(3),
        pr: None,
        session: Some("dev-shop-3.1".to_owned()),
    }
}

pub(super) fn asked(kind: Kind) -> Question {
    let question = Question::ask(kind, Cause::Agent, source(), "which colour?", &POLICY, ASKED);
    Question { id: Some(QuestionId(7)), ..question }
}

pub(super) fn hours(hours: u32) -> Timestamp {
    ASKED.after(HOUR * hours)
}

fn settled(question: &Question) -> (Option<&str>, &Settlement) {
    let settled = question.settled.as_ref().unwrap();
    (settled.by.as_deref(), &settled.how)
}

#[test]
fn every_kind_has_a_name_of_its_own_and_a_way_to_be_settled() {
    let mut names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert!(Kind::ALL.iter().all(|kind| !kind.traits().acts.is_empty()));
    for kind in Kind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Kind::ALL.len());
    // A person may be away for long: only what a session or an action waits for is given up.
    let gives_up = Kind::ALL.into_iter().filter(|kind| kind.traits().expiry == Expiry::AfterTimeout);
    let names: Vec<&str> = gives_up.map(Kind::as_str).collect();
    assert_eq!(names, ["question", "approval", "conflict", "host_access", "plan", "filing"]);
    let endangers = Kind::ALL.into_iter().filter(|kind| kind.traits().urgency == Urgency::Endangers);
    let names: Vec<&str> = endangers.map(Kind::as_str).collect();
    assert_eq!(names, ["alarm", "secret", "service_down", "disk", "host_lost"]);
}

#[test]
fn a_question_is_settled_once_and_only_in_a_way_that_its_kind_takes() {
    use Act::{Answer, Approve, Dismiss, Reject};
    let cases = [
        (Kind::Question, vec![Answer]),
        (Kind::Approval, vec![Approve, Reject]),
        (Kind::Plan, vec![Approve, Reject, Answer]),
        (Kind::Blocked, vec![Dismiss]),
    ];
    for (kind, takes) in cases {
        for act in [Approve, Reject, Answer, Dismiss] {
            let event = match act {
                Approve => Event::Approved { by: "ann" },
                Reject => Event::Rejected { by: "ann", reason: "no" },
                Answer => Event::Answered { by: "ann", text: "blue" },
                Dismiss => Event::Dismissed { by: "ann" },
            };
            let next = asked(kind).step(&event, &POLICY, hours(1));
            assert_eq!(next.is_ok(), takes.contains(&act), "{kind} {act:?}");
            let Ok(next) = next else { continue };
            assert_eq!(settled(&next).0, Some("ann"));
            // Whoever is second learns who was first, and when.
            let second = Event::Answered { by: "bob", text: "red" };
            let why = next.step(&second, &POLICY, hours(3)).unwrap_err().to_string();
            assert!(why.starts_with("question 7 was ") && why.ends_with(" by ann 2h ago"), "{why}");
            assert_eq!((next.wake_at(), next.due(hours(100))), (None, Due::Nothing));
        }
    }
    let why =
        asked(Kind::Approval).step(&Event::Answered { by: "ann", text: "hm" }, &POLICY, ASKED).unwrap_err();
    assert!(why.to_string().contains("pointsman inbox approve 7"), "{why}");
}

#[test]
fn people_are_reminded_and_then_it_is_over() {
    let mut question = asked(Kind::Question);
    assert_eq!(question.wake_at(), Some(hours(6)));
    for (hour, times) in [(6, 2), (12, 3), (18, 4)] {
        assert_eq!(question.due(Timestamp(hours(hour).0 - 1)), Due::Nothing);
        question = question.step(&Event::TimePassed, &POLICY, hours(hour)).unwrap();
        assert_eq!((question.notices, question.is_open()), (times, true));
    }
    assert_eq!(question.due(hours(24)), Due::Expiry);
    let over = question.step(&Event::TimePassed, &POLICY, hours(24)).unwrap();
    assert_eq!(settled(&over), (None, &Settlement::Expired));
}

#[test]
fn a_deadline_that_passed_during_sleep_is_due_once_with_the_reminder_first() {
    let question = asked(Kind::Question);
    assert_eq!(question.due(hours(60)), Due::Reminder);
    let reminded = question.step(&Event::TimePassed, &POLICY, hours(60)).unwrap();
    // One reminder for all that were missed, and time to answer it.
    assert_eq!((reminded.notices, reminded.due(hours(60))), (2, Due::Nothing));
    assert_eq!(reminded.wake_at(), Some(hours(66)));
    assert_eq!(reminded.due(hours(66)), Due::Expiry);
    // A reminder alone that is late leaves an expiry that is far off as it is.
    let reminded = question.step(&Event::TimePassed, &POLICY, hours(10)).unwrap();
    assert_eq!((reminded.remind_at, reminded.expires_at), (Some(hours(16)), Some(hours(24))));
    // Somebody who wakes right before the end has time as well.
    let reminded = question.step(&Event::TimePassed, &POLICY, hours(23)).unwrap();
    assert_eq!(reminded.expires_at, Some(hours(29)));
    // Whoever was awake all the time and comes a moment late was reminded before.
    let moment = Timestamp(hours(24).0 + 900);
    assert_eq!(question.due(moment), Due::Expiry);
}

#[test]
fn a_clock_that_was_set_back_makes_nothing_due_and_nothing_void() {
    let question = asked(Kind::Question);
    let before = Timestamp(ASKED.0 - 86_400_000);
    assert_eq!(question.due(before), Due::Nothing);
    assert!(question.step(&Event::TimePassed, &POLICY, before).is_err());
    let answered = question.step(&Event::Answered { by: "ann", text: "blue" }, &POLICY, before).unwrap();
    assert_eq!(settled(&answered).1, &Settlement::Answered { text: "blue".to_owned() });
}

#[test]
fn what_neither_reminds_nor_expires_waits_for_ever() {
    let question = asked(Kind::Upgrade);
    assert_eq!((question.wake_at(), question.due(hours(10_000))), (None, Due::Nothing));
    let gone = question.step(&Event::CauseGone { why: "installed" }, &POLICY, hours(1)).unwrap();
    assert_eq!(settled(&gone), (None, &Settlement::Withdrawn { why: "installed".to_owned() }));
}

#[test]
fn outside_text_is_made_fit_to_be_shown() {
    let text = "may I?\u{1b}]0;owned\u{7}\n\nmore \u{202e}here";
    let question = Question::ask(Kind::Question, Cause::Agent, source(), text, &POLICY, ASKED);
    assert!(!question.subject.contains(['\u{1b}', '\u{7}', '\n', '\u{202e}']), "{:?}", question.subject);
    assert!(question.body.contains('\n') && !question.body.contains('\u{1b}'), "{:?}", question.body);
    let answered =
        asked(Kind::Question).step(&Event::Answered { by: "a\u{1b}[31m", text: "b\u{7}" }, &POLICY, ASKED);
    let answered = answered.unwrap();
    assert!(!settled(&answered).0.unwrap().contains('\u{1b}'));
    assert_eq!(settled(&answered).1, &Settlement::Answered { text: "b".to_owned() });
}

#[test]
fn what_an_owner_asks_is_told_as_changes() {
    let end = || Settled { by: None, at: hours(1), how: Settlement::Withdrawn { why: "gone".to_owned() } };
    let (seven, eight) =
        (asked(Kind::Question), Question { id: Some(QuestionId(8)), ..asked(Kind::Question) });
    let unnumbered = Question { id: None, ..asked(Kind::Question) };
    let reminded = seven.step(&Event::TimePassed, &POLICY, hours(6)).unwrap();
    let over = Question { settled: Some(end()), ..seven.clone() };
    let cases = [
        (None, None, vec![]),
        (None, Some(&seven), vec![Change::Asked(seven.clone())]),
        (Some(&seven), Some(&seven), vec![]),
        (Some(&seven), Some(&reminded), vec![Change::Reminded(reminded.clone())]),
        (Some(&seven), None, vec![Change::Settled(over.clone())]),
        (Some(&seven), Some(&eight), vec![Change::Settled(over), Change::Asked(eight.clone())]),
        // A snapshot of an earlier program.
        (Some(&unnumbered), Some(&seven), vec![Change::Asked(seven.clone())]),
        (Some(&unnumbered), None, vec![]),
    ];
    for (before, after, expected) in cases {
        assert_eq!(changes(before, after, end), expected);
    }
}

#[test]
fn an_answer_without_a_number_is_bound_only_if_there_is_no_choice() {
    let (one, two) = (QuestionId(1), QuestionId(2));
    let cases = [
        (vec![], "yes", Binding::None),
        (vec![], "question 1: yes", Binding::None),
        (vec![one], "yes", Binding::To(one)),
        (vec![one], "question 9: yes", Binding::None),
        (vec![one, two], "yes", Binding::Ambiguous),
        (vec![one, two], "question 2: yes", Binding::To(two)),
        (vec![one, two], " Question #1 no", Binding::To(one)),
        (vec![one, two], "question 3: yes", Binding::None),
        (vec![one, two], "questionable 2", Binding::Ambiguous),
    ];
    for (open, text, expected) in cases {
        assert_eq!(bind(&open, text), expected, "{open:?} {text}");
    }
    for text in ["", "quest", "question", "question x", "questions", "Frage 3", "qüestion 3"] {
        assert_eq!(named(text), None, "{text}");
    }
}

#[test]
fn an_owner_reads_back() {
    for text in ["task/3", "run/7", "vault/deploy-17"] {
        assert_eq!(Owner::try_from(text.to_owned()).unwrap().to_string(), text);
    }
    for text in ["", "task", "task/", "task/x", "run/-1", "vault/../x", "room/1"] {
        assert!(Owner::try_from(text.to_owned()).is_err(), "{text}");
    }
    assert_eq!(Owner::Run(RunId(7)).to_string(), "run/7");
}

#[test]
fn a_question_is_stored_and_read_back() {
    for how in [
        Settlement::Approved,
        Settlement::Rejected { reason: "no".to_owned() },
        Settlement::Answered { text: "blue".to_owned() },
        Settlement::Dismissed,
        Settlement::Expired,
        Settlement::Withdrawn { why: "gone".to_owned() },
    ] {
        let question =
            Question { settled: Some(Settled { by: None, at: ASKED, how }), ..asked(Kind::Question) };
        let text = serde_json::to_string(&question).unwrap();
        assert_eq!(serde_json::from_str::<Question>(&text).unwrap(), question);
    }
}

#[test]
fn plain_words_decide_where_the_kind_takes_it_and_nothing_else_does() {
    let act = |kind, text| decision(kind, text);
    let plain = |act| Some((act, String::new()));
    for yes in ["yes", "Approve.", " LGTM! ", "go ahead", "👍"] {
        assert_eq!(act(Kind::QueuePaused, yes), plain(Act::Approve), "{yes}");
        assert_eq!(act(Kind::Question, yes), None, "{yes}: the agent reads it");
    }
    assert_eq!(act(Kind::Secret, "no"), plain(Act::Reject));
    assert_eq!(act(Kind::Secret, "No, it is real"), Some((Act::Reject, "it is real".to_owned())));
    assert_eq!(act(Kind::QueuePaused, "no"), None, "a paused queue takes no no");
    assert_eq!(act(Kind::Blocked, "dismiss"), plain(Act::Dismiss));
    for other in ["yes, but use cents", "nobody knows", "what is this?", ""] {
        assert_eq!(act(Kind::Secret, other), None, "{other}");
    }
}
