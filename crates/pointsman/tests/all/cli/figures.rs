//! `report` against an independent count: a log of many issues, counted once more from what `events` prints.

use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::log::{Entry, TaskEntry, TaskMove};
use pointsman_core::session::budget::Spent;
use pointsman_core::task::{CiVerdict, Event, Exit, QueueOutcome, ReviewVerdict, State};
use pointsman_store::{Change, SessionRow};
use serde_json::Value;

use super::environment::Environment;
use super::registry::{alive, minutes_ago, store};

/// The issues of the log.
const ISSUES: u64 = 40;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn sha(number: u64) -> Sha {
    Sha::new(&format!("{number:040x}")).unwrap()
}

/// The life of one issue, as events `(minutes since it began, event, state after it)`.
fn life(dice: &mut Dice, issue: u64) -> Vec<(u64, Event, State)> {
    let mut at = 0;
    let mut events = vec![(0, Event::Claimed, State::Working)];
    let mut commit = issue * 100;
    for _ in 0..dice.below(3) {
        at += 1 + dice.below(9);
        let verdict = CiVerdict::Failed { summary: "red".to_owned(), log: String::new() };
        events.push((
            at,
            Event::ChecksFinished { sha: sha(commit), run: 1, verdict, flaky: false },
            State::Working,
        ));
        commit += dice.below(2);
    }
    at += 1 + dice.below(9);
    let passed = Event::ChecksFinished {
        sha: sha(commit),
        run: 2,
        verdict: CiVerdict::Passed,
        flaky: dice.below(5) == 0,
    };
    events.push((at, passed, State::AwaitingReview));
    at += 1 + dice.below(30);
    let verdict = if dice.below(4) == 0 { ReviewVerdict::RequestChanges } else { ReviewVerdict::Approve };
    let by = ["ada", "bob"][usize::try_from(dice.below(2)).unwrap()].to_owned();
    let review = Event::ReviewPosted { sha: sha(commit), verdict, by, by_agent: false, body: String::new() };
    events.push((at, review, State::MergeQueue));
    at += 1 + dice.below(9);
    events.push(if dice.below(5) == 0 {
        (at, Event::TimePassed, State::Blocked)
    } else {
        let outcome = QueueOutcome::Landed { sha: sha(commit) };
        (at, Event::QueueReported { head: sha(commit), outcome }, State::Merged)
    });
    events
}

#[test]
fn the_figures_of_a_report_are_those_of_an_independent_count() {
    let environment = Environment::with_project();
    let project = ProjectName::new("shop").unwrap();
    let mut dice = Dice(7);
    let (mut changes, mut wasted) = (Vec::new(), 0);
    let entry = |at: u64, issue: Option<u64>, (kind, data): (String, Value)| {
        let mut change = Change::new(minutes_ago(at), kind);
        (change.project, change.issue, change.data) = (Some(project.clone()), issue, data);
        change
    };
    for issue in 1..=ISSUES {
        let begins = 500 + dice.below(9_000);
        let events = life(&mut dice, issue);
        let blocked = events.last().unwrap().2 == State::Blocked;
        for (after, event, to) in events {
            let entry_of = TaskEntry { event, moved: TaskMove { from: None, to }, refused: None };
            changes.push(entry(begins - after, Some(issue), entry_of.stored()));
        }
        let mut session = Change::new(minutes_ago(begins), "session_started");
        session.project = Some(project.clone());
        let cents = dice.below(300);
        wasted += if blocked { cents } else { 0 };
        session.sessions = vec![SessionRow {
            created_at: minutes_ago(begins),
            ended_at: Some(minutes_ago(begins - 1)),
            exit: Some(if dice.below(3) == 0 { Exit::Crashed } else { Exit::Done }),
            spent: Spent { micro_usd: cents * 10_000, tokens: 5, turns: 1, ..Spent::default() },
            ..alive(issue, 1)
        }];
        changes.push(session);
    }
    let reverted = Entry::LandingReverted { sha: sha(1), by: sha(2), issue: Some(1), pr: None };
    changes.push(entry(20, None, reverted.stored()));
    changes.sort_by_key(|change| change.at);
    store(&environment).commit(&changes).unwrap();

    let log: Vec<Value> = environment
        .run(&["events", "--json"])
        .ok()
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |issue: u64, kind: &str| -> Vec<&Value> {
        log.iter().filter(|event| event["issue"] == issue && event["kind"] == kind).collect()
    };
    let landed: Vec<u64> = (1..=ISSUES).filter(|issue| !of(*issue, "queue_reported").is_empty()).collect();
    let returned = |issue: u64| {
        let red = of(issue, "checks_finished");
        let red = red.iter().filter(|run| run["data"]["verdict"]["verdict"] == "failed").count();
        let asked = of(issue, "review_posted");
        red + asked.iter().filter(|review| review["data"]["verdict"] == "request_changes").count()
    };
    let time =
        |event: &Value| event["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let mut lead: Vec<i64> = landed
        .iter()
        .map(|issue| time(of(*issue, "queue_reported")[0]) - time(of(*issue, "claimed")[0]))
        .collect();
    lead.sort_unstable();
    let count = |kind: &str| log.iter().filter(|event| event["kind"] == kind).count();

    let report = environment.json(&["report", "--since", "30d"]);
    assert!(landed.len() > 20 && landed.len() < 40, "{landed:?}");
    assert_eq!(report["issues_landed"], landed.len());
    let close = |figure: &Value, wanted: f64| {
        let figure = figure.as_f64().unwrap();
        assert!((figure - wanted).abs() < 1e-6, "{figure} is not {wanted}: {report}");
    };
    let whole = landed.len() as f64;
    close(
        &report["first_pass_rate"],
        landed.iter().filter(|issue| returned(**issue) == 0).count() as f64 / whole,
    );
    close(
        &report["attempts_per_landed"],
        landed.iter().map(|issue| returned(*issue) + 1).sum::<usize>() as f64 / whole,
    );
    close(&report["lead_time"]["p50"], lead[lead.len().div_ceil(2) - 1] as f64 / 1000.0);
    close(&report["lead_time"]["p90"], lead[(lead.len() * 9).div_ceil(10) - 1] as f64 / 1000.0);
    let repeated = log
        .iter()
        .filter(|event| event["kind"] == "checks_finished" && event["data"]["flaky"] == true)
        .count();
    assert!(repeated > 0);
    assert_eq!(report["ci"]["runs"], count("checks_finished") + repeated);
    assert_eq!(report["reviews"]["asked"], ISSUES);
    assert_eq!(report["reverts"], 1);
    let reviews: Vec<&Value> = log.iter().filter(|event| event["kind"] == "review_posted").collect();
    let approved = reviews.iter().filter(|review| review["data"]["verdict"] == "approve").count();
    close(&report["acceptance_rate"], approved as f64 / reviews.len() as f64);
    close(&report["cost"]["wasted"], wasted as f64 / 100.0);
    let per_issue = report["cost"]["per_issue"].as_array().unwrap();
    assert_eq!(per_issue.len(), usize::try_from(ISSUES).unwrap());
    close(&report["cost"]["total"], per_issue.iter().map(|cost| cost["usd"].as_f64().unwrap()).sum());
    assert_eq!(report["by_role"][0]["sessions"], ISSUES);

    // What was before the span is not in it.
    assert_eq!(environment.json(&["report", "--since", "1m"])["issues_landed"], 0);
    environment.run(&["report", "--since", "yesterday"]).code(2);

    let shown = environment.run(&["report", "--since", "30d"]);
    assert!(
        shown.ok().stdout.contains(&format!("Issues landed                    {}", landed.len())),
        "{shown:?}"
    );
    assert!(shown.stdout.contains('█') && !shown.stdout.contains('\u{1b}'), "{shown:?}");
    let file = environment.path("report.html");
    environment.run(&["report", "--since", "30d", "--html", file.to_str().unwrap()]).ok();
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("<svg") && page.contains(&format!("<dd>{}</dd>", landed.len())), "{page}");
    for outside in ["http://", "https://", "src=", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside} in {page}");
    }
}
