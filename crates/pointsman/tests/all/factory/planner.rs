//! The planner, on a clock of our own: when it asks, and when it does not.

use pointsman::daemon::engine::Input;
use pointsman::daemon::factory::planner::{look, memory};
use pointsman::daemon::factory::{ask, heard_by, value};
use pointsman::daemon::timetable::{ProjectFacts, remembered, tick};
use pointsman_core::deed::Ending;
use pointsman_core::forge::{Issue, IssueState};
use pointsman_core::ids::RoleKey;
use pointsman_core::planner::{Document, PlanInputs};
use pointsman_core::role::Role;
use pointsman_core::role_memory::{Event, Heard};
use pointsman_core::time::Timestamp;
use serde_json::json;

use super::{Stage, at, shop};

const ON: &str = "[roles.planner]\nenabled = true\n[roles.predictor]\nenabled = true\n";
const DAY: i64 = 24 * 60;
const SEVEN: i64 = 7 * 60;

fn prediction(number: u64, title: &str) -> Issue {
    Issue {
        number,
        title: title.to_owned(),
        body: "## Evidence\n\n- figures".to_owned(),
        state: IssueState::Open,
        labels: vec!["prediction/unreviewed".to_owned()],
        comments: Vec::new(),
        assignee: None,
        author: "pointsman".to_owned(),
        created_at: at(0),
    }
}

fn facts(issues: &[Issue]) -> PlanInputs {
    let documents = vec![Document { path: "VISION.md", text: "Fruit for all.".to_owned() }];
    PlanInputs { issues: issues.to_vec(), documents, ..PlanInputs::default() }
}

impl Stage {
    /// One look of the planner's.
    fn plan(&mut self, minute: i64, facts: &PlanInputs) {
        let before = memory(self.engine.store(), &shop()).unwrap();
        if before.asked.is_none() {
            let asking = look(facts, &before, &self.config(), at(minute));
            ask(&mut self.engine, &shop(), &asking, at(minute)).unwrap();
        }
    }

    /// The run that is under way is over: it has an answer, which is carried out, or none.
    fn planned(&mut self, minute: i64, answer: bool) {
        for run in self.end_runs(minute) {
            let watch =
                json!({ "triage": [{ "issue": 1, "verdict": "watch", "why": "later" }], "issues": [] });
            let issues = vec![prediction(1, "The disk fills")];
            let heard = match answer {
                true => Heard::Answer { result: Some(watch), issues, formulas: Vec::new() },
                false => Heard::Nothing { why: "nothing".to_owned(), unheard: false },
            };
            let heard = heard_by(Role::Planner, &run, heard);
            let mut inputs = vec![heard.clone(), heard];
            if answer {
                let key = RoleKey { project: shop(), role: Role::Planner };
                let (name, ending) = ("0".to_owned(), Ending::Done { filed: None });
                let ended = Input::of_role(key, Event::DeedEnded { name, ending });
                inputs.extend([ended.clone(), ended]);
            }
            let answers = self.engine.take(&inputs, at(minute)).unwrap();
            assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), inputs.len() / 2, "once each");
        }
    }
}

/// "runs weekly", "daily at 06:00 UTC via cron (1h before the planner at 07:00)"
#[test]
fn a_plan_is_made_on_mondays_an_hour_after_the_predictor_and_only_of_something_new() {
    let mut stage = Stage::new(ON);
    let standing = ProjectFacts { free_memory_mb: Some(10), inputs: "same".to_owned() };
    let used = |stage: &mut Stage, formula: &str| -> Option<Timestamp> {
        remembered(stage.engine.store(), &shop(), formula).unwrap().and_then(|times| times.used)
    };
    let (mut looks, mut issues) = (Vec::new(), vec![prediction(1, "The disk fills")]);
    for minute in (0..28 * DAY).step_by(30) {
        let before = used(&mut stage, "run-planner");
        tick(&mut stage.engine, &shop(), &standing, at(minute)).unwrap();
        if used(&mut stage, "run-planner") == before {
            continue;
        }
        assert_eq!(used(&mut stage, "run-predictor"), Some(at(minute - 60)));
        looks.push(minute);
        if minute == 21 * DAY + SEVEN {
            issues.push(prediction(2, "Sessions die more often"));
        }
        stage.plan(minute, &facts(&issues));
        stage.planned(minute + 5, true);
    }
    assert_eq!(looks, [SEVEN, 7 * DAY + SEVEN, 14 * DAY + SEVEN, 21 * DAY + SEVEN]);
    let began: Vec<Timestamp> = stage.runs().iter().map(|run| run.started_at).collect();
    assert_eq!(began, [at(SEVEN), at(21 * DAY + SEVEN)], "the same is not asked twice");
    assert_eq!(stage.events("planner_planned").len(), 2, "each counts once");
    assert_eq!(stage.events("prediction_triaged").len(), 2);
    assert_eq!(stage.told_by(Role::Planner), Vec::<String>::new());
}

#[test]
fn nobody_is_asked_without_a_goal_or_when_something_is_in_the_way_and_that_is_said() {
    let mut stage = Stage::new(ON);
    let aimless = PlanInputs { documents: Vec::new(), ..PlanInputs::default() };
    stage.plan(0, &aimless);
    assert_eq!((stage.runs(), stage.events("planner_looked").len()), (Vec::new(), 0));

    let mut stage = Stage::new(&format!("{ON}[limits]\nmin_free_memory_mb = 9000\n"));
    let before = memory(stage.engine.store(), &shop()).unwrap();
    let mut asking = look(&facts(&[prediction(1, "The disk fills")]), &before, &stage.config(), at(0));
    asking.free_memory_mb = Some(100);
    ask(&mut stage.engine, &shop(), &asking, at(0)).unwrap();
    assert_eq!(stage.runs(), []);
    let said = stage.events("planner_looked").pop().unwrap();
    let line = said.data["lines"][0].as_str().unwrap();
    assert_eq!(line, "found a prediction to judge, and asks later: less than 9000 MB of memory are free");
    // Said once; and its time is not used up by that.
    ask(&mut stage.engine, &shop(), &asking, at(10)).unwrap();
    assert_eq!((stage.runs(), stage.events("planner_looked").len()), (Vec::new(), 1));
    assert_eq!(memory(stage.engine.store(), &shop()).unwrap().looked_at, before.looked_at);
    stage.plan(20, &facts(&[prediction(1, "The disk fills")]));
    assert_eq!(stage.runs().len(), 1);
}

#[test]
fn an_answer_that_is_of_no_use_is_asked_for_once_more_and_a_planner_that_gives_no_other_is_paused() {
    let mut stage = Stage::new(ON);
    for week in 0..5 {
        let titles = ["The disk fills", "The disk fills", "The disk fills", "Sessions die", "Issues pile up"];
        let title = titles[usize::try_from(week).unwrap()];
        stage.plan(week * 7 * DAY, &facts(&[prediction(1, title)]));
        stage.planned(week * 7 * DAY + 5, false);
        stage = stage.restart();
    }
    let began: Vec<Timestamp> = stage.runs().iter().map(|run| run.started_at).collect();
    assert_eq!(
        began,
        [at(0), at(7 * DAY), at(21 * DAY)],
        "the same twice, and after the third nobody any more"
    );
    let worth = value(stage.engine.store(), &shop(), Role::Planner).unwrap();
    assert_eq!((worth.noise, worth.paused_at), (3, Some(at(21 * DAY + 5))));
    assert_eq!(stage.told_by(Role::Planner), ["shop: the planner no longer asks a model"]);
}
