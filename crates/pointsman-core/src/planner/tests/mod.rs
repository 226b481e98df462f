//! What a plan is made from and what is done of one, in tables.

mod decide;
mod look;

use serde_json::{Value, json};

use super::*;
use crate::config::Config;
use crate::forge::{Issue, IssueState};
use crate::ids::{Number, Sha};
use crate::labels::UNREVIEWED;
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const DAY: i64 = 86_400_000;

fn config() -> Config {
    Config::parse("name = \"shop\"", "pointsman.toml").unwrap()
}

fn issue(number: Number, title: &str, labels: &[&str]) -> Issue {
    Issue {
        number,
        title: title.to_owned(),
        body: format!("What {title} is about.\n\n## Evidence\n\n- figures"),
        state: IssueState::Open,
        labels: labels.iter().map(ToString::to_string).collect(),
        comments: Vec::new(),
        assignee: None,
        author: "ann".to_owned(),
        created_at: Timestamp(NOW.0 - DAY),
    }
}

/// Words that are like no others.
fn topic(n: u64) -> String {
    const THINGS: [&str; 10] = [
        "apples", "rockets", "violins", "harbour", "glacier", "pepper", "lantern", "saddle", "copper",
        "walnut",
    ];
    let thing = usize::try_from(n).ok().and_then(|n| THINGS.get(n));
    format!("{} {}", thing.map_or_else(|| format!("thing{n}"), ToString::to_string), n * 7919)
}

fn predictions(numbers: impl IntoIterator<Item = Number>) -> Vec<Issue> {
    numbers.into_iter().map(|n| issue(n, &format!("Forecast {}", topic(n)), &[UNREVIEWED])).collect()
}

fn facts(issues: &[Issue]) -> PlanInputs {
    PlanInputs {
        issues: issues.to_vec(),
        documents: vec![Document { path: "VISION.md", text: "Fruit for all.".to_owned() }],
        main: Sha::new(&"a".repeat(40)),
        landed: Vec::new(),
        formulas: vec![
            ("run-planner".to_owned(), "Plans".to_owned()),
            ("tidy".to_owned(), "Tidies".to_owned()),
        ],
    }
}

fn verdict(issue: Number, verdict: &str, leverage: u8) -> Value {
    let promotion = json!({
        "issue": issue, "verdict": verdict, "why": "because", "title": format!("Do {}", topic(issue)), "text": format!("About {}", topic(issue)),
        "criteria": ["it works"], "leverage": leverage,
    });
    match verdict {
        "action" | "backlog" => promotion,
        _ => json!({ "issue": issue, "verdict": verdict, "why": "because" }),
    }
}

fn gap(n: u64, leverage: u8) -> Value {
    json!({
        "title": format!("Build {}", topic(n)), "why": format!("We lack {}", topic(n)), "criteria": ["it works"],
        "depends_on": [], "leverage": leverage, "label": "backlog",
    })
}

fn with(mut one: Value, key: &str, value: Value) -> Value {
    one[key] = value;
    one
}

fn read(triage: &[Value], issues: &[Value]) -> Result<Answer, Unusable> {
    Answer::of_result(Some(&json!({ "triage": triage, "issues": issues })))
}

/// What becomes of an answer to a question about these issues.
fn decide(issues: &[Issue], triage: &[Value], gaps: &[Value]) -> Plan {
    let asked = question(&facts(issues), &Memory::default(), NOW).unwrap();
    later(&asked, issues, triage, gaps)
}

fn later(asked: &Question, issues: &[Issue], triage: &[Value], gaps: &[Value]) -> Plan {
    let formulas = ["run-planner".to_owned(), "tidy".to_owned()];
    plan(&read(triage, gaps).unwrap(), asked, issues, &formulas, &config())
}
