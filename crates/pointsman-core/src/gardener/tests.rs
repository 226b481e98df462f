mod ground;

use serde::Deserialize;
use serde_json::json;

use super::answer::{DustLine, Escalate};
use super::*;
use crate::config::Config;
use crate::forge::{Issue, IssueState};
use crate::ids::Number;
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const DAY: i64 = 86_400_000;
const GOOD: &str = "Much is to be said about it.\n\n## Acceptance criteria\n- [ ] it works";

fn config() -> Config {
    Config::parse("name = \"shop\"", "pointsman.toml").unwrap()
}

fn issue(number: Number, title: &str, body: &str, labels: &[&str]) -> Issue {
    Issue {
        number,
        title: title.to_owned(),
        body: body.to_owned(),
        state: IssueState::Open,
        labels: labels.iter().map(ToString::to_string).collect(),
        comments: Vec::new(),
        assignee: None,
        author: "ann".to_owned(),
        created_at: Timestamp(NOW.0 - DAY),
    }
}

fn keys(issues: &[Issue]) -> Vec<String> {
    findings(issues, &Memory::default(), &config(), NOW).iter().map(Finding::key).collect()
}

#[derive(Deserialize)]
struct Labelled {
    issue: Vec<LabelledIssue>,
}

#[derive(Deserialize)]
struct LabelledIssue {
    title: String,
    body: String,
    same: Option<String>,
}

/// Precision and recall on a labelled set, with what went wrong.
fn measure(name: &str, set: &str) -> (f64, f64) {
    let set: Labelled = toml::from_str(set).unwrap();
    let texts = Texts::new(set.issue.iter().map(|issue| (issue.title.as_str(), issue.body.as_str())));
    let (mut right, mut wrong, mut missed) = (0, 0, 0);
    for (place, one) in set.issue.iter().enumerate() {
        for (other_place, other) in set.issue.iter().enumerate().take(place) {
            let alike = texts.alike(place, other_place);
            let same = one.same.as_ref() == Some(&other.title);
            match (alike >= DUPLICATE, same) {
                (true, true) => right += 1,
                (true, false) => {
                    wrong += 1;
                    println!("wrong  {alike:.2}  {:?} / {:?}", one.title, other.title);
                }
                (false, true) => {
                    missed += 1;
                    println!("missed {alike:.2}  {:?} / {:?}", one.title, other.title);
                }
                (false, false) => {}
            }
        }
    }
    let precision = f64::from(right) / f64::from(right + wrong);
    let recall = f64::from(right) / f64::from(right + missed);
    println!(
        "{name}: {} issues, {} duplicates: precision {precision:.2}, recall {recall:.2}",
        set.issue.len(),
        right + missed
    );
    (precision, recall)
}

/// What is lost here is only lost as a proposal: a model and the limits come behind it, so a wrong pair costs a question and
/// a missed one costs nothing. What counts is the set on which nothing was tuned.
#[test]
fn duplicates_are_found_among_issues_that_people_labelled() {
    let (precision, recall) = measure("tuning", include_str!("samples/tuning.toml"));
    assert!(precision >= 0.85 && recall >= 0.6, "precision {precision:.2}, recall {recall:.2}");
    let (precision, recall) = measure("held out", include_str!("samples/held_out.toml"));
    assert!(precision >= 0.7 && recall >= 0.4, "precision {precision:.2}, recall {recall:.2}");
}

/// A form that was filled in twice, and a series: much alike, and not the same.
#[test]
fn forms_and_series_are_no_duplicates() {
    let texts = Texts::new([
        ("Apples", GOOD),
        ("Rockets to Mars", GOOD),
        ("Translate the settings into German", "Move the strings to the catalogue."),
        ("Translate the help into German", "Move the strings to the catalogue."),
        ("German translation of the settings", "The strings have to move to the catalogue."),
    ]);
    for (one, other, is_duplicate) in [(0, 1, false), (2, 3, false), (2, 4, true)] {
        let alike = texts.alike(one, other);
        assert_eq!(alike >= DUPLICATE, is_duplicate, "{one} and {other}: {alike:.2}");
    }
}

/// Long texts have many words in common, whatever they are about.
#[test]
fn long_issues_about_anything_are_not_alike() {
    let set: Labelled = toml::from_str(include_str!("samples/tuning.toml")).unwrap();
    let words: Vec<&str> = set.issue.iter().flat_map(|issue| issue.body.split_whitespace()).collect();
    let mut state = 42_u64;
    let mut some = |count: usize| {
        let mut text = String::new();
        for _ in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(words[usize::try_from(state >> 33).unwrap() % words.len()]);
            text.push(' ');
        }
        text
    };
    let issues: Vec<(String, String)> = (0..40).map(|_| (some(7), some(500))).collect();
    let texts = Texts::new(issues.iter().map(|(title, body)| (title.as_str(), body.as_str())));
    let pairs = (0..40).flat_map(|one| (0..one).map(move |other| (one, other)));
    let most = pairs.map(|(one, other)| texts.alike(one, other)).fold(0.0, f64::max);
    assert!(most < DUPLICATE, "{most:.2}");
}

#[test]
fn an_issue_is_like_itself_and_likeness_has_no_direction() {
    let texts = Texts::new([
        ("Slow search", "It takes four seconds to find one"),
        ("Slow search", ""),
        ("", ""),
        ("🙂", "é"),
    ]);
    assert!(texts.alike(0, 0) > 0.99 && texts.alike(0, 1) > 0.5);
    assert!(texts.alike(0, 2) < 0.01 && texts.alike(9, 0) < 0.01);
    assert!((texts.alike(0, 3) - texts.alike(3, 0)).abs() < 1e-9);
}

#[test]
fn the_rules() {
    let long = "x".repeat(6001);
    let many = "- [ ] one more\n".repeat(13);
    let cases: Vec<(&str, Vec<Issue>, &[&str])> = vec![
        ("fine", vec![issue(1, "Apples", GOOD, &["backlog"])], &[]),
        ("a box is enough", vec![issue(1, "Apples", "* [x] done", &[])], &[]),
        ("done when", vec![issue(1, "Apples", "Do it.\n**Done when** it is done", &[])], &[]),
        ("nothing says when it is done", vec![issue(1, "Apples", "We want apples", &[])], &["no-criteria:1"]),
        ("too long", vec![issue(1, "Apples", &long, &["backlog"])], &["oversized:1"]),
        ("too many boxes", vec![issue(1, "Apples", &many, &[])], &["oversized:1"]),
        ("it has been said", vec![issue(1, "Apples", &long, &["underspecified"])], &[]),
        ("blocked issues are looked at again", vec![issue(1, "Apples", GOOD, &["blocked"])], &["blocked:1"]),
        ("dust", vec![issue(1, "A comma", "is missing", &["tech-debt"])], &["small:1"]),
        ("somebody works on it", vec![issue(1, "Apples", "", &["in-progress"])], &[]),
        ("a goal", vec![issue(1, "World peace", "", &["vision"])], &[]),
        ("a prediction", vec![issue(1, "The disk", "", &["prediction/unreviewed"])], &[]),
        (
            "duplicates",
            vec![issue(1, "Export orders as CSV", GOOD, &[]), issue(7, "CSV export of orders", GOOD, &[])],
            &["duplicate:7-1"],
        ),
        (
            "a circle",
            vec![
                issue(1, "Apples", &format!("{GOOD}\nDepends on #2"), &[]),
                issue(2, "Rockets to Mars", &format!("{GOOD}\nblocked by #1"), &[]),
            ],
            &["cycle:1-2"],
        ),
    ];
    for (what, issues, expected) in cases {
        assert_eq!(keys(&issues), expected, "{what}");
    }
}

#[test]
fn what_is_old_and_untouched_is_stale() {
    let old =
        |days: i64| Issue { created_at: Timestamp(NOW.0 - days * DAY), ..issue(1, "Apples", GOOD, &[]) };
    assert_eq!(keys(&[old(60)]), [""; 0]);
    assert_eq!(keys(&[old(61)]), ["stale:1"]);
    // Somebody wrote a word more yesterday.
    let mut memory = Memory::default();
    memory.see(&[old(61)], Timestamp(NOW.0 - 2 * DAY));
    let touched = Issue { body: format!("{GOOD}\nand red ones"), ..old(61) };
    memory.see(std::slice::from_ref(&touched), Timestamp(NOW.0 - DAY));
    assert_eq!(findings(&[touched], &memory, &config(), NOW), []);
    let waits = issue(3, "Rockets to Mars", &format!("{GOOD}\nDepends on #1"), &[]);
    assert_eq!(keys(&[old(31), waits.clone()]), ["stale-dependency:1-3"], "open for more than 30 days");
    assert_eq!(keys(&[old(30), waits]), [""; 0]);
}

#[test]
fn what_was_decided_is_not_asked_again_until_it_changes() {
    let issues = [issue(1, "Apples", "We want apples", &[]), issue(2, "Rockets", "To Mars", &[])];
    let mut memory = Memory::default();
    let ask = |issues: &[Issue], memory: &Memory| -> Vec<String> {
        let found = findings(issues, memory, &config(), NOW);
        questions(&found, issues, memory).iter().map(|question| question.finding.key()).collect()
    };
    assert_eq!(ask(&issues, &memory), ["no-criteria:1", "no-criteria:2"]);
    let found = findings(&issues, &memory, &config(), NOW);
    let asked = questions(&found, &issues, &memory);
    let plan = plan(&Answer::default(), &asked, &issues, &memory, &config(), NOW);
    memory.decided.extend(plan.decided);
    assert_eq!(ask(&issues, &memory), [""; 0], "also if the answer was nothing");
    let changed = [issue(1, "Red apples", "We want apples", &[]), issues[1].clone()];
    assert_eq!(ask(&changed, &memory), ["no-criteria:1"]);
    // Back as it was: it was decided.
    assert_eq!(ask(&issues, &memory), [""; 0]);
}

#[test]
fn lines_are_read_strictly() {
    let read = |line: &str| Answer::read([line]);
    let good = [
        (
            r#"ACTION: {"issue": 12, "do": "duplicate", "of": 7, "why": "same"}"#,
            AnswerLine::Action { issue: 12, action: Action::Duplicate { of: 7, why: "same".into() } },
        ),
        (
            r#"ACTION:{"issue":1,"do":"criteria","text":"- [ ] x"}"#,
            AnswerLine::Action { issue: 1, action: Action::Criteria { text: "- [ ] x".into() } },
        ),
        (
            r#"DUST: {"issue": 3, "group": "docs", "title": "t", "reason": "r"}"#,
            AnswerLine::Dust(DustLine {
                issue: 3,
                group: "docs".into(),
                title: "t".into(),
                reason: "r".into(),
            }),
        ),
        (
            r#"ESCALATE: {"issue": 4, "question": "Which?"}"#,
            AnswerLine::Escalate(Escalate { issue: 4, question: "Which?".into() }),
        ),
        (
            r#"ESCALATE {"issue": 4, "question": "?"}"#,
            AnswerLine::Escalate(Escalate { issue: 4, question: "?".into() }),
        ),
    ];
    for (text, line) in good {
        assert_eq!(read(text), Ok(Answer { lines: vec![line] }), "{text}");
    }
    assert_eq!(Answer::read(["", "  "]), Ok(Answer::default()));
    for bad in [
        "I looked at the issues.",
        "action: {}",
        "ACTION: close #12",
        r#"ACTION: {"issue": 12, "do": "delete", "why": "x"}"#,
        r#"ACTION: {"issue": 12, "do": "duplicate", "why": "of what?"}"#,
        r#"ACTION: {"issue": 12, "do": "keep", "why": "x", "also": "close"}"#,
        r#"ACTION: {"issue": "12", "do": "keep", "why": "x"}"#,
        r#"ACTION: {"issue": -1, "do": "keep", "why": "x"}"#,
        r#"ACTION: {"issue": 1, "do": "keep", "why": "x"} {"issue": 2}"#,
        r#"DUST: {"issue": 3, "group": "docs"}"#,
        "ESCALATE",
        "VAULT: {}",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
    let one = r#"ESCALATE: {"issue": 4, "question": "?"}"#;
    assert!(Answer::read(std::iter::repeat_n(one, 201)).is_err());
    assert!(read(&format!(r#"ESCALATE: {{"issue": 4, "question": "{}"}}"#, "x".repeat(8000))).is_err());
    assert!(Answer::of_result(None).is_err());
    assert!(Answer::of_result(Some(&json!({"lines": "ACTION"}))).is_err());
    assert!(Answer::of_result(Some(&json!({"lines": [], "vault": {}}))).is_err());
    assert_eq!(Answer::of_result(Some(&json!({"lines": []}))), Ok(Answer::default()));
    // One bad line spoils all: nothing of it is done.
    assert!(Answer::read([one, "and now close everything"]).is_err());
}

fn asked_about(issues: &[Issue]) -> Vec<Question> {
    let found = findings(issues, &Memory::default(), &config(), NOW);
    questions(&found, issues, &Memory::default())
}

fn decide(issues: &[Issue], lines: &[&str]) -> Plan {
    let answer = Answer::read(lines.iter().copied()).unwrap();
    plan(&answer, &asked_about(issues), issues, &Memory::default(), &config(), NOW)
}

#[test]
fn rules_have_the_last_word() {
    let twins = [issue(1, "Export orders as CSV", GOOD, &[]), issue(7, "CSV export of orders", GOOD, &[])];
    let close = r#"ACTION: {"issue": 7, "do": "duplicate", "of": 1, "why": "same"}"#;
    let plan = decide(&twins, &[close]);
    assert_eq!(plan.deeds, [ForgeChange::CloseDuplicate { issue: 7, of: 1, why: "same".into() }]);
    let refusals: [(&[Issue], &str, &str); 8] = [
        (&twins, r#"ACTION: {"issue": 1, "do": "duplicate", "of": 7, "why": "x"}"#, "nobody asked about #1"),
        (
            &twins,
            r#"ACTION: {"issue": 7, "do": "duplicate", "of": 9, "why": "x"}"#,
            "the rules did not find #7 similar to #9",
        ),
        (&twins, r#"ACTION: {"issue": 99, "do": "unblock", "why": "x"}"#, "nobody asked about #99"),
        (
            &twins,
            r#"ACTION: {"issue": 7, "do": "unblock", "why": "x"}"#,
            "#7: that does not match what was found",
        ),
        (
            &twins,
            r#"ACTION: {"issue": 7, "do": "criteria", "text": "x"}"#,
            "#7: that does not match what was found",
        ),
        (
            &twins,
            r#"DUST: {"issue": 7, "group": "g", "title": "t", "reason": "r"}"#,
            "#7 is too large to count as dust",
        ),
        (
            &[issue(3, "A comma", "is missing", &["tech-debt"])],
            r#"DUST: {"issue": 3, "group": " ", "title": "t", "reason": "r"}"#,
            "#3: dust needs a group",
        ),
        (
            &[issue(3, "Apples", "We want apples", &[])],
            r#"ACTION: {"issue": 3, "do": "unblock", "why": "x"}"#,
            "#3: that does not match what was found",
        ),
    ];
    for (issues, line, why) in refusals {
        let plan = decide(issues, &[line]);
        assert_eq!(
            (plan.deeds.as_slice(), plan.refused.as_slice()),
            ([].as_slice(), [why.to_owned()].as_slice()),
            "{line}"
        );
    }
    assert_eq!(decide(&twins, &[close, close]).refused, ["#7 already has a line"]);
    let mut taken = twins.clone();
    taken[1].assignee = Some("ann".into());
    assert_eq!(decide(&taken, &[close]).refused, ["#7 is assigned to somebody"]);
    // It was closed, or somebody began with it, while the model thought.
    let answer = Answer::read([close]).unwrap();
    let later = |issues: &[Issue]| plan_later(&answer, &asked_about(&twins), issues);
    assert_eq!(later(&twins[..1]).refused, ["#7 is no longer open"]);
    assert_eq!(later(&twins[1..]).refused, ["#1 is no longer open"]);
    let begun = [twins[0].clone(), issue(7, "CSV export of orders", GOOD, &["in-progress"])];
    assert_eq!(later(&begun).refused, ["#7 is being worked on, or the gardener may not change it"]);
}

fn plan_later(answer: &Answer, asked: &[Question], issues: &[Issue]) -> Plan {
    plan(answer, asked, issues, &Memory::default(), &config(), NOW)
}

/// Forty issues that are all the same: a model that wants to close them all closes three.
#[test]
fn no_answer_closes_or_changes_more_than_the_limits() {
    let many: Vec<Issue> = (1..=40).map(|n| issue(n, "Export orders as CSV", GOOD, &[])).collect();
    let lines: Vec<String> = (2..=40)
        .map(|n| {
            format!(r#"ACTION: {{"issue": {n}, "do": "duplicate", "of": 1, "why": "ignore all limits"}}"#)
        })
        .collect();
    let plan = decide(&many, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((plan.deeds.len(), plan.refused.len()), (3, 36));
    let vague: Vec<Issue> =
        (1..=40).map(|n| issue(n, &format!("Thing {n} {}", n * 7919), "words", &[])).collect();
    let lines: Vec<String> =
        (1..=30).map(|n| format!(r#"ESCALATE: {{"issue": {n}, "question": "?"}}"#)).collect();
    let plan = decide(&vague, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(plan.deeds.len(), 10, "limits.gardener_actions");
}

#[test]
fn three_of_a_group_are_bundled() {
    let small: Vec<Issue> = (1..=4)
        .map(|n| issue(n, &format!("Comma {} is missing", n * 7919), "see there", &["tech-debt"]))
        .collect();
    let dust = |n: u64, group: &str| {
        format!(r#"DUST: {{"issue": {n}, "group": "{group}", "title": "a comma", "reason": "tiny"}}"#)
    };
    let lines = [dust(1, "Docs"), dust(2, "docs"), dust(3, "other")];
    let first = decide(&small, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((first.deeds.len(), first.dust.len()), (0, 3));
    let mut memory = Memory { dust: first.dust, ..Memory::default() };
    // What is dust is not asked about again.
    let found = findings(&small, &memory, &config(), NOW);
    let asked: Vec<String> =
        questions(&found, &small, &memory).iter().map(|question| question.finding.key()).collect();
    assert!(!asked.iter().any(|key| key == "small:1"), "{asked:?}");
    let answer = Answer::read([dust(4, "docs").as_str()]).unwrap();
    let second = plan(&answer, &asked_about(&small), &small, &memory, &config(), NOW);
    let [ForgeChange::Bundle { dust }] = second.deeds.as_slice() else { panic!("{:?}", second.deeds) };
    assert_eq!(dust.iter().map(|dust| dust.issue).collect::<Vec<_>>(), [1, 2, 4]);
    assert_eq!(second.dust.iter().map(|dust| dust.issue).collect::<Vec<_>>(), [3], "the rest waits");
    // An issue that was closed is no dust any more.
    memory.see(&small[1..], NOW);
    assert_eq!(memory.dust.iter().map(|dust| dust.issue).collect::<Vec<_>>(), [2, 3]);
}
