//! The model's answer: one object, and nothing else. Whatever is not of this form makes all of it useless: whoever
//! wrote it did not understand the question.
//!
//! ```text
//! {"triage": [
//!    {"issue": 12, "verdict": "action", "why": "…", "title": "…", "text": "…", "criteria": ["…"],
//!     "depends_on": [], "leverage": 7, "formula": "tidy"},
//!    {"issue": 13, "verdict": "backlog", "why": "…", "title": "…", "text": "…", "criteria": ["…"],
//!     "depends_on": [4], "leverage": 5},
//!    {"issue": 14, "verdict": "watch", "why": "…"},
//!    {"issue": 15, "verdict": "dismiss", "why": "…"}],
//!  "issues": [
//!    {"title": "…", "why": "…", "criteria": ["…"], "depends_on": [], "leverage": 9, "label": "backlog"}]}
//! ```

use serde::Deserialize;
use serde_json::Value;

use crate::action;
use crate::ids::Number;
use crate::labels::{ACTION, BACKLOG};
use crate::words;

/// Verdicts of one answer.
const TRIAGE: usize = 100;
/// New issues of one answer; how many of them are filed is a limit of the project's.
const ISSUES: usize = 20;
/// Characters of a title.
const TITLE: usize = 120;
/// Characters of a reason.
const WHY: usize = 2_000;
/// Characters of a text.
const TEXT: usize = 4_000;
/// Criteria of one issue.
const CRITERIA: usize = 12;
/// Characters of each.
const CRITERION: usize = 300;
/// Issues that one issue waits for.
const DEPENDENCIES: usize = 10;
/// The most leverage there is.
const LEVERAGE: u8 = 10;
/// Characters of a formula's name.
const FORMULA: usize = 64;

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What it says about predictions.
    pub triage: Vec<Triage>,
    pub issues: Vec<Proposal>,
}

/// A verdict on a prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triage {
    pub issue: Number,
    pub verdict: Verdict,
    pub why: String,
}

/// The fate of a prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An issue is filed about it, for the action agent or for the backlog.
    Promote(Proposal),
    /// It is looked at again later.
    Watch,
    Dismiss,
}

/// An issue that is proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub title: String,
    /// What is to be done and why it matters.
    pub text: String,
    pub criteria: Vec<String>,
    /// What has to be done before.
    pub depends_on: Vec<Number>,
    /// How much it moves, from 1 to 10.
    pub leverage: u8,
    /// `backlog` or `action`.
    pub label: &'static str,
    /// How the action is to be carried out; nothing for the formula of all actions.
    pub formula: Option<String>,
}

/// An answer that cannot be used, and why. Nothing of it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    triage: Vec<WrittenTriage>,
    issues: Vec<WrittenIssue>,
}

/// A verdict as it is written: all fields that one may have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTriage {
    issue: Number,
    verdict: String,
    why: String,
    title: Option<String>,
    text: Option<String>,
    criteria: Option<Vec<String>>,
    depends_on: Option<Vec<Number>>,
    leverage: Option<u8>,
    formula: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenIssue {
    title: String,
    why: String,
    criteria: Vec<String>,
    #[serde(default)]
    depends_on: Vec<Number>,
    leverage: u8,
    label: String,
    formula: Option<String>,
}

impl Answer {
    /// Reads the result of a run.
    pub fn of_result(result: Option<&Value>) -> Result<Self, Unusable> {
        let Some(result) = result else { return Err(Unusable(words::answer::NO_RESULT.to_owned())) };
        let written: Written = serde_json::from_value(result.clone())
            .map_err(|error| Unusable(words::answer::not_a("plan", error)))?;
        if written.triage.len() > TRIAGE || written.issues.len() > ISSUES {
            return Err(Unusable(words::answer::plan_too_long(TRIAGE, ISSUES)));
        }
        let at = |what: &'static str, place: usize| {
            move |why: String| Unusable(words::answer::at(what, place + 1, why))
        };
        let triage = written.triage.into_iter().enumerate();
        let triage = triage.map(|(place, one)| verdict(one).map_err(at("verdict", place)));
        let issues = written.issues.into_iter().enumerate();
        let issues = issues.map(|(place, one)| issue(one).map_err(at("issue", place)));
        Ok(Self { triage: triage.collect::<Result<_, _>>()?, issues: issues.collect::<Result<_, _>>()? })
    }
}

fn verdict(written: WrittenTriage) -> Result<Triage, String> {
    let WrittenTriage { issue, verdict, why, title, text, criteria, depends_on, leverage, formula } = written;
    let why = bounded("why", why, WHY)?;
    let label = match verdict.as_str() {
        "action" => Some(ACTION),
        "backlog" => Some(BACKLOG),
        "watch" | "dismiss" => None,
        _ => return Err(words::answer::UNKNOWN_VERDICT.to_owned()),
    };
    let verdict =
        match (label, title, text, criteria, leverage) {
            (Some(label), Some(title), Some(text), Some(criteria), Some(leverage)) => {
                let depends_on = depends_on.unwrap_or_default();
                let proposal = Proposal { title, text, criteria, depends_on, leverage, label, formula };
                Verdict::Promote(checked(proposal)?)
            }
            (None, None, None, None, None) if depends_on.is_none() && formula.is_none() => {
                if verdict == "watch" { Verdict::Watch } else { Verdict::Dismiss }
            }
            _ => return Err(words::answer::wrong_fields(&verdict)),
        };
    Ok(Triage { issue, verdict, why })
}

fn issue(written: WrittenIssue) -> Result<Proposal, String> {
    let WrittenIssue { title, why, criteria, depends_on, leverage, label, formula } = written;
    let label = [BACKLOG, ACTION].into_iter().find(|known| *known == label);
    let label = label.ok_or_else(|| words::answer::unknown_label([BACKLOG, ACTION]))?;
    checked(Proposal { title, text: why, criteria, depends_on, leverage, label, formula })
}

fn checked(mut proposal: Proposal) -> Result<Proposal, String> {
    proposal.title = bounded("title", proposal.title, TITLE)?;
    proposal.text = bounded("text", proposal.text, TEXT)?;
    if !(1..=CRITERIA).contains(&proposal.criteria.len()) {
        return Err(words::answer::length("it", CRITERIA, "criteria"));
    }
    let criteria = proposal.criteria.into_iter().map(|one| bounded("criterion", one, CRITERION));
    proposal.criteria = criteria.collect::<Result<_, _>>()?;
    if proposal.depends_on.len() > DEPENDENCIES {
        return Err(words::answer::too_many_dependencies(DEPENDENCIES));
    }
    if !(1..=LEVERAGE).contains(&proposal.leverage) {
        return Err(words::answer::leverage(LEVERAGE));
    }
    if let Some(formula) = proposal.formula.take() {
        if proposal.label != ACTION {
            return Err(words::answer::FORMULA_WITHOUT_ACTION.to_owned());
        }
        let formula = bounded("formula", formula, FORMULA)?;
        proposal.formula = Some(formula).filter(|name| name != action::FORMULA);
    }
    Ok(proposal)
}

fn bounded(what: &str, text: String, most: usize) -> Result<String, String> {
    match text.trim().is_empty() || text.chars().count() > most {
        true => Err(words::answer::length(&format!("its {what}"), most, "characters")),
        false => Ok(text),
    }
}
