//! The gardener, and a night in which nothing happens.

use pointsman::daemon::factory::gardener::{look, memory};
use pointsman::daemon::factory::{Seen, Settled, ask, settle, value};
use pointsman::daemon::timetable::{Standing, tick};
use pointsman_adapters::forge::forgejo::Forgejo;
use pointsman_adapters::forge::{Forge, Opening};
use pointsman_adapters::http::{Limits, Patience};
use pointsman_adapters::secret::Secret;
use pointsman_core::forge::{Issue, IssueState};
use pointsman_core::gardener::{findings, questions};
use pointsman_core::planner::Plan;
use pointsman_core::run::{Event, Policy, Run, RunId, step};
use pointsman_core::schedule::{Ears, forge_pace};
use pointsman_core::time::Timestamp;
use pointsman_core::value::Outcome;
use pointsman_store::{Change, RunScope};
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, REPO, Rules};
use serde_json::json;

use super::{Stage, at, planner, shop};

const ON: &str = "[roles.gardener]\nenabled = true\n[roles.supervisor]\nenabled = true\n";

fn issue(number: u64, title: &str) -> Issue {
    Issue {
        number,
        title: title.to_owned(),
        body: "Nobody says when it is done.".to_owned(),
        state: IssueState::Open,
        labels: Vec::new(),
        comments: Vec::new(),
        assignee: None,
        author: "ann".to_owned(),
        created_at: Timestamp(at(0).0 - 86_400_000),
    }
}

impl Stage {
    /// One look of the gardener's.
    fn garden(&mut self, minute: i64, issues: &[Issue]) {
        let seen = Seen { issues: issues.to_vec(), at: at(minute) };
        let before = memory(self.engine.store(), &shop()).unwrap();
        if before.asked.is_none() {
            let looked = look(&seen, &before, &self.config(), at(minute));
            ask(&mut self.engine, &shop(), &looked, at(minute)).unwrap();
        }
    }

    /// All runs that are under way are over, and this came of them.
    fn answer(&mut self, minute: i64, outcome: Outcome) {
        for run in self.engine.store().runs(&shop(), RunScope::Open).unwrap() {
            let policy = Policy::new(&self.config(), run.formula.role());
            let over = step(&run, &Event::Stopped { by: "test".to_owned() }, &policy, at(minute)).unwrap();
            let away = step(&over, &Event::SessionEnded, &policy, at(minute)).unwrap();
            let mut change = Change::new(at(minute), "run_over");
            change.run = Some(away);
            self.engine.store().commit(&[change]).unwrap();
            let mut after = memory(self.engine.store(), &shop()).unwrap();
            after.asked = None;
            let settled = Settled {
                role: "gardener",
                kind: "gardener_groomed",
                run: run.id,
                memory: json!(after),
                lines: vec!["noise".to_owned()],
                events: Vec::new(),
                outcome,
            };
            settle(&mut self.engine, &shop(), &settled, at(minute)).unwrap();
            settle(&mut self.engine, &shop(), &settled, at(minute)).unwrap();
        }
    }

    fn runs(&mut self) -> Vec<Run> {
        self.engine.store().runs(&shop(), RunScope::Last(1000)).unwrap()
    }
}

#[test]
fn a_session_is_asked_once_and_reads_what_was_found() {
    let mut stage = Stage::new(ON);
    let issues = [issue(1, "Apples"), issue(2, "A rocket to Mars")];
    stage.garden(0, &issues);
    let mut stage = stage.restart();
    stage.garden(1, &issues);
    let [run] = stage.runs().try_into().unwrap();
    let briefing = run.briefing.unwrap();
    assert!(briefing.contains("- #1 does not say when it is done\n- #2 does not say"), "{briefing}");
    assert!(briefing.contains("### #2 A rocket to Mars"), "{briefing}");
    assert_eq!(run.id, RunId(1));
}

#[test]
fn a_role_that_makes_only_noise_is_paused_and_said() {
    let mut stage = Stage::new(ON);
    let day = 24 * 60;
    for n in 0..20 {
        stage.garden(n * day, &[issue(1, &format!("Apples, take {n}"))]);
        stage.answer(n * day + 10, Outcome::Noise);
    }
    assert_eq!(stage.runs().len(), 15, "14 days and one");
    let worth = value(stage.engine.store(), &shop(), "gardener").unwrap();
    assert_eq!((worth.noise, worth.paused_at), (15, Some(at(14 * day + 10))), "each result counts once");
    let titles: Vec<String> = stage.notices().into_iter().map(|row| row.posting.notice.title).collect();
    assert_eq!(titles, ["shop: no model is asked for the gardener any more"]);
    let said = stage.events("gardener_looked").pop().unwrap();
    assert!(said.data["lines"][0].as_str().unwrap().contains("pointsman roles resume gardener"), "{said:?}");
}

/// What the forge's issues were decided to be, in the evening.
fn decide_all(stage: &mut Stage, issues: &[Issue]) {
    let before = memory(stage.engine.store(), &shop()).unwrap();
    let found = findings(issues, &before, &stage.config(), at(2));
    let asked = questions(&found, issues, &before);
    let mut after = before;
    after.decided.extend(asked.into_iter().map(|one| (one.finding.key(), one.state)));
    let value = serde_json::to_string(&after).unwrap();
    stage.engine.store().set_cursor(Some(&shop()), "gardener", &value).unwrap();
}

fn calls(forge: &Forgejo) -> u64 {
    forge.costs().iter().map(|(_, count)| count.calls).sum()
}

/// Twelve hours in which nothing changes: every role looks when its time has come, no session begins, and the forge is
/// asked one question for all of them, at the pace of a project that expects nothing.
#[test]
fn an_idle_night_asks_no_model_and_the_forge_six_times_an_hour() {
    const NIGHT: i64 = 12 * 60;
    let mut stage =
        Stage::new(&format!("{ON}[roles.predictor]\nenabled = true\n[roles.planner]\nenabled = true\n"));
    let fake = FakeForgejo::start(Rules::default());
    let (url, dev) = (fake.url(), fake.token(DEV));
    let forge = Forgejo::prepare(Opening {
        url: &url,
        repo: REPO,
        token: Secret::new(&dev).unwrap().into(),
        review_token: None,
        clock: || at(0),
        limits: Limits::default(),
        patience: Patience::default(),
    })
    .unwrap();
    for (key, title) in [("a", "Apples"), ("b", "A rocket to Mars")] {
        forge.file_issue_once(key, title, "Nobody says when it is done.", &["backlog"]).unwrap();
    }
    decide_all(&mut stage, &forge.open_issues().unwrap());
    stage.plan(3, &planner::sight(&forge.open_issues().unwrap()));
    stage.planned(4, Some(Plan::default()));
    let evening = stage.runs();
    let pace =
        forge_pace(stage.config().timing.forge_poll.duration(), Ears::Asking, std::iter::empty(), at(0));
    let between = i64::try_from(pace.as_secs() / 60).unwrap();
    let standing = Standing { free_memory_mb: Some(8000), inputs: "same".to_owned() };
    let before = calls(&forge);
    let (mut looks, mut issues) = (0, Vec::new());
    for minute in 10..10 + NIGHT {
        if minute % between == 0 {
            issues = forge.open_issues().unwrap();
        }
        let begun = tick(&mut stage.engine, &shop(), &standing, at(minute)).unwrap();
        if begun > 0 {
            looks += begun;
            stage.garden(minute, &issues);
            stage.plan(minute, &planner::sight(&issues));
        }
    }
    assert_eq!(
        looks,
        36 + 1 + 1 + 1,
        "the supervisor every 20 minutes, the predictor at six, the planner at seven, the gardener at noon"
    );
    assert_eq!(stage.runs(), evening, "no session");
    assert_eq!(stage.notices().len(), 0, "and not a word");
    assert_eq!(calls(&forge) - before, 12 * 6, "fewer than 20 an hour");

    // One new issue: one session, about that issue.
    let pears = ("Pears for winter", "Nobody says when they are ripe.");
    let new = forge.file_issue_once("c", pears.0, pears.1, &["backlog"]).unwrap();
    issues = forge.open_issues().unwrap();
    stage.garden(14 * 60, &issues);
    stage.garden(15 * 60, &issues);
    let runs = stage.runs();
    assert_eq!(runs.len(), evening.len() + 1);
    let briefing = runs.last().unwrap().briefing.clone().unwrap();
    let found: Vec<&str> = briefing.lines().filter(|line| line.starts_with("- #")).collect();
    assert_eq!(found, [format!("- #{new} does not say when it is done")]);
}
