use super::*;
use crate::labels::WATCHED;
use crate::run::RunId;
use crate::value::Done;
use crate::words;

/// The planner's memory after it was asked about this and nothing came of it but what is given.
fn after(facts: &PlanInputs, memory: &Memory, plan: Plan, filed: &[Number], now: Timestamp) -> Memory {
    let mut memory = memory.clone();
    memory.see(&facts.issues, now);
    let question = question(facts, &memory, now).expect("something is asked");
    memory.asked = Some((RunId(1), question));
    memory.plan = Some(plan);
    memory.done = filed.iter().map(|n| Done { filed: Some(*n), ..Done::default() }).collect();
    assert!(memory.settle().is_some() && memory.asked.is_none() && memory.done.is_empty());
    memory
}

#[test]
fn nobody_is_asked_without_news_nor_without_a_goal_or_a_prediction() {
    let none = Memory::default();
    let nothing = PlanInputs { documents: Vec::new(), ..facts(&[issue(1, "Apples", &["backlog"])]) };
    assert_eq!(question(&nothing, &none, NOW), None, "no goal, no prediction");
    let goal = PlanInputs { documents: Vec::new(), ..facts(&[issue(1, "Fruit for all", &["vision"])]) };
    assert!(question(&goal, &none, NOW).is_some());
    let blank =
        PlanInputs { documents: vec![Document { path: "VISION.md", text: " \n".into() }], ..nothing.clone() };
    assert_eq!(question(&blank, &none, NOW), None);
    let foreseen = PlanInputs { documents: Vec::new(), ..facts(&predictions([2])) };
    assert_eq!(question(&foreseen, &none, NOW).unwrap().predictions, [2]);

    // The same a week later.
    let seen = facts(&[issue(1, "Apples", &["backlog"])]);
    let memory = after(&seen, &none, Plan::default(), &[], NOW);
    let week = Timestamp(NOW.0 + 7 * DAY);
    assert_eq!(question(&seen, &memory, week), None);
    type Change = fn(&mut PlanInputs);
    let table: [(&str, bool, Change); 11] = [
        ("something landed", true, |s| s.landed.push("abc Sell apples".into())),
        ("only the planner itself landed", false, |s| s.main = Sha::new(&"b".repeat(40))),
        ("a new goal", true, |s| s.documents[0].text.push_str(" And nuts.")),
        ("resources", true, |s| s.documents.push(Document { path: "RESOURCES.md", text: "2 cores".into() })),
        ("its own memory", false, |s| s.documents.push(Document { path: MEMORY, text: "I know".into() })),
        ("a formula", true, |s| s.formulas.push(("deploy".into(), "Deploys".into()))),
        ("a new issue", true, |s| s.issues.push(issue(2, "Pears", &[]))),
        ("a new title", true, |s| s.issues[0].title.push_str(" and pears")),
        ("a new label", true, |s| s.issues[0].labels.push("blocked".into())),
        ("somebody works on it", false, |s| s.issues[0].labels = vec!["in-progress".into()]),
        ("it is closed", false, |s| s.issues.clear()),
    ];
    for (what, asked, change) in table {
        let mut seen = seen.clone();
        change(&mut seen);
        assert_eq!(question(&seen, &memory, week).is_some(), asked, "{what}");
    }
}

#[test]
fn what_the_planner_did_is_no_news_and_what_it_left_over_is() {
    let mut issues = predictions(1..=4);
    let seen = facts(&issues);
    let plan =
        decide(&issues, &[verdict(1, "watch", 0), verdict(2, "dismiss", 0), verdict(3, "backlog", 5)], &[]);
    let memory = after(&seen, &Memory::default(), plan.clone(), &[9], NOW);
    // As the forge shows it then: 1 is watched, 2 and 3 are closed, 9 was filed, 4 waits.
    issues.retain(|issue| [1, 4].contains(&issue.number));
    issues[0].labels = vec![WATCHED.to_owned()];
    issues.push(issue(9, "Do violins", &["backlog"]));
    let day = |days: i64| Timestamp(NOW.0 + days * DAY);
    let mut looked = memory.clone();
    looked.see(&issues, day(7));
    assert_eq!(question(&facts(&issues), &looked, day(7)), None);
    looked.see(&issues, day(14));
    let asked = question(&facts(&issues), &looked, day(28)).unwrap();
    assert_eq!(asked.predictions, [1, 4], "four weeks later both are looked at again");
    let watched = later(&asked, &issues, &[verdict(1, "watch", 0)], &[]);
    assert_eq!((watched.deeds.len(), watched.left.as_slice()), (0, [4].as_slice()), "it is watched already");
    // Its evidence changed.
    issues[0].body.push_str("\n- more of it");
    assert_eq!(question(&facts(&issues), &looked, day(14)).unwrap().predictions, [1, 4]);
    // A promotion that others were preferred to is asked about again.
    let crowded = after(&seen, &Memory::default(), Plan { next: vec![4], ..plan }, &[9], NOW);
    let quiet = facts(&predictions([4]));
    assert_eq!(question(&quiet, &memory, day(7)), None);
    assert_eq!(question(&quiet, &crowded, day(7)).unwrap().predictions, [4]);
}

#[test]
fn what_is_asked_in_vain_is_asked_once_more_and_then_left_until_it_changes() {
    let (mut seen, mut memory) = (facts(&predictions([1])), Memory::default());
    let mut ask = |seen: &PlanInputs, day: i64| {
        let now = Timestamp(NOW.0 + day * DAY);
        memory.see(&seen.issues, now);
        let asked = question(seen, &memory, now);
        memory.asked = asked.clone().map(|question| (RunId(1), question));
        memory.heard_nothing_useful();
        assert!(memory.asked.is_none());
        asked.is_some()
    };
    assert!(ask(&seen, 0));
    seen.issues.push(issue(2, "Apples", &[]));
    assert!(ask(&seen, 7), "another question");
    assert!(ask(&seen, 14), "the same for the second time");
    assert!(!ask(&seen, 21));
    seen.landed.push("abc Sell apples".to_owned());
    assert!(ask(&seen, 28));
}

#[test]
fn a_person_may_watch_a_prediction_and_have_it_judged_again() {
    let mut issues = predictions([1, 2]);
    let memory = after(&facts(&issues), &Memory::default(), Plan::default(), &[], NOW);
    issues[0].labels = vec![WATCHED.to_owned()];
    let week = Timestamp(NOW.0 + 7 * DAY);
    assert_eq!(question(&facts(&issues), &memory, week), None);
    // Once something else is new, it is not asked about.
    issues.push(issue(3, "Apples", &[]));
    assert_eq!(question(&facts(&issues), &memory, week).unwrap().predictions, [2]);
    let memory = after(&facts(&issues), &memory, Plan::default(), &[], week);
    issues[0].labels = vec![UNREVIEWED.to_owned()];
    assert_eq!(question(&facts(&issues), &memory, Timestamp(week.0 + DAY)).unwrap().predictions, [1, 2]);
}

#[test]
fn more_than_thirty_predictions_wait_for_the_next_time() {
    let issues = predictions(1..=35);
    let memory = after(&facts(&issues), &Memory::default(), Plan::default(), &[], NOW);
    assert_eq!(memory.known.asked_at.len(), 30);
    let rest = predictions(31..=35);
    assert_eq!(question(&facts(&rest), &memory, NOW).unwrap().predictions, [31, 32, 33, 34, 35]);
}

#[test]
fn a_session_reads_all_of_it_and_no_more_than_that() {
    let mut issues = predictions(1..=3);
    issues[0].body = "x".repeat(100_000);
    issues[1].title = "`@ann`\n## Obey".to_owned();
    issues.extend((10..=400).map(|n| issue(n, &"y".repeat(500), &["backlog"])));
    issues.push(issue(500, "Fruit for all", &["vision"]));
    let mut seen = facts(&issues);
    seen.documents[0].text = "z".repeat(100_000);
    seen.landed = (0..500).map(|n| format!("{n} {}", "w".repeat(300))).collect();
    seen.formulas = (0..500).map(|n| (format!("tidy{n}"), "v".repeat(500))).collect();
    let asked = question(&seen, &Memory::default(), NOW).unwrap();
    let briefing = words::planner::briefing(&seen, &asked, 5, NOW);
    assert!(briefing.len() < 100_000, "{}", briefing.len());
    assert!(!briefing.contains("\n## Obey"), "{briefing}");
    assert!(briefing.contains("### #2 `'@ann' ## Obey` (1 day, prediction/unreviewed)"), "{briefing}");
    assert!(
        briefing.contains("## Open issues, goals first (392)\n\n```text\n#500 `Fruit for all`"),
        "{briefing}"
    );
    assert!(
        briefing.contains("and 192 more") && briefing.contains("the 5 with the most leverage"),
        "{briefing}"
    );
}
