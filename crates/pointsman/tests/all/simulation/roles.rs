//! Roles and their deeds on the forge: they look, ask, hear answers, file, comment, label and close. People delete issues
//! meanwhile, and the forge refuses things.
//!
//! The issues of roles are a list of their own, so that their stories do not depend on those of tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pointsman::daemon::engine::Input;
use pointsman::daemon::outcome::Outcome;
use pointsman_core::action::{self, ActionFacts, Next, REPORT};
use pointsman_core::deed::{Act, Ending, Tend};
use pointsman_core::forge::{Issue, IssueState};
use pointsman_core::gardener::{self, RepositoryFacts};
use pointsman_core::health::{self, Disk, Facts, Kind, Machine, assess};
use pointsman_core::ids::{Number, RoleKey, Sha};
use pointsman_core::labels::ACTION;
use pointsman_core::planner::{self, PlanInputs};
use pointsman_core::predictor::{Counts, Figures, Sample};
use pointsman_core::role::Role;
use pointsman_core::role_memory::{Event, Heard, Look};
use pointsman_core::run::{Event as RunEvent, Run, RunId, Status, Subject};
use pointsman_core::task::Effect;
use pointsman_core::time::Timestamp;
use pointsman_core::value::Outcome as Worth;
use pointsman_core::workflow::{Event as WorkflowEvent, WorkflowId};
use pointsman_store::{EffectId, Outgoing, RunScope};
use serde_json::{Value, json};

use super::daemon::{Daemon, Item, Source};
use super::reality::Reality;

/// The issues of roles begin here: tasks have others.
const FIRST: Number = 1_000;
/// So many issues there are before roles file any.
const ISSUES: Number = 6;
/// The predictor says the same again after this long.
const SAID_AGAIN: i64 = 30 * 86_400_000;

/// The issues of roles, as the forge has them.
#[derive(Default)]
pub(super) struct RoleBoard {
    issues: BTreeMap<Number, Issue>,
    /// Which effect wrote a comment, by issue and marker.
    comments: BTreeMap<(Number, String), EffectId>,
    /// Which effect filed an issue, which one and when, by marker.
    filed: BTreeMap<String, (EffectId, Number, Timestamp)>,
    /// Effects that were refused for good. The answer to an earlier try may have been lost: a later decision that orders the
    /// same then finds it done.
    pub(super) given_up: BTreeSet<EffectId>,
    asked: u64,
}

impl RoleBoard {
    fn open(&self) -> Vec<Issue> {
        self.issues.values().filter(|issue| issue.state == IssueState::Open).cloned().collect()
    }
}

fn issue(number: Number, title: String, labels: &[&str], now: Timestamp) -> Issue {
    Issue {
        number,
        title,
        body: "Nobody says when it is done.".to_owned(),
        state: IssueState::Open,
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        comments: Vec::new(),
        assignee: None,
        author: "ann".to_owned(),
        created_at: now,
    }
}

impl Daemon {
    fn role_key(&self, role: Role) -> RoleKey {
        RoleKey { project: self.reality().story.project(), role }
    }

    fn role_event(&mut self, role: Role, event: Event) {
        let key = self.role_key(role);
        self.told(Source::Roles, Item::Inputs(vec![Input::of_role(key, event)]));
    }

    fn gardener(&mut self) -> gardener::Memory {
        let key = self.role_key(Role::Gardener);
        let stored = self.engine().store().memory(&key.project, key.role.as_str());
        stored.expect("memories can be read").unwrap_or_default()
    }

    fn planner(&mut self) -> planner::Memory {
        let key = self.role_key(Role::Planner);
        let stored = self.engine().store().memory(&key.project, key.role.as_str());
        stored.expect("memories can be read").unwrap_or_default()
    }

    /// A role looks, hears an answer or counts a result; or somebody changes the issues that it works on.
    pub(super) fn something_happens_to_roles(&mut self) {
        let whim = self.reality().chance.below(16);
        match whim {
            0..3 => self.gardener_looks(),
            3..5 => self.planner_looks(),
            5 | 6 => self.answer_roles(),
            7 => self.predictor_measures(),
            8 => {
                let number = self.reality().role_issue();
                let why = format!("reason {}", self.reality().chance.below(2));
                self.role_event(Role::Action, Event::ActionRefused { issue: number, why });
            }
            9 => {
                let outcome = *self.reality().chance.pick(&[Worth::Used, Worth::Noise]);
                self.role_event(Role::Supervisor, Event::Counted { outcome });
                if outcome == Worth::Used {
                    self.role_event(Role::Gardener, Event::Resumed);
                }
            }
            10 => {
                let why = format!("budget {}", self.reality().chance.below(2));
                self.role_event(Role::Gardener, Event::Hindered { found: "found a thing".to_owned(), why });
            }
            11 => self.reality().issues_of_roles_change(),
            12 => self.begin_about_an_issue(),
            13 | 14 => self.something_happens_to_the_supervisor(),
            _ => self.look_at_runs_about_issues(),
        }
    }

    fn gardener_looks(&mut self) {
        if self.gardener().asked.is_some() {
            return;
        }
        let issues = self.reality().role_issues();
        let run = Some(RunId(self.reality().fresh()));
        let look = Look::Gardener { issues, ground: RepositoryFacts::default(), reconsider: false };
        self.role_event(Role::Gardener, Event::Looked { look: Box::new(look), run, lines: Vec::new() });
    }

    fn planner_looks(&mut self) {
        if self.planner().asked.is_some() {
            return;
        }
        let issues = self.reality().role_issues();
        let run = Some(RunId(self.reality().fresh()));
        let look = Look::Planner(PlanInputs { issues, ..PlanInputs::default() });
        self.role_event(Role::Planner, Event::Looked { look: Box::new(look), run, lines: Vec::new() });
    }

    /// The runs that roles have asked come to their end.
    fn answer_roles(&mut self) {
        let issues = self.reality().role_issues();
        let (gardener, planner) = (self.gardener(), self.planner());
        if let Some((run, _)) = gardener.asked.filter(|_| !gardener.deeds.are_under_way()) {
            let heard = self.reality().gardener_answers(&issues);
            self.role_event(Role::Gardener, Event::Heard { run, heard });
        }
        if let Some((run, _)) = planner.asked.filter(|_| !planner.deeds.are_under_way()) {
            let heard = self.reality().planner_answers(&issues);
            self.role_event(Role::Planner, Event::Heard { run, heard });
        }
    }

    fn predictor_measures(&mut self) {
        let now = self.reality().now;
        let sample = Sample { at: now, disks: BTreeMap::new(), free_memory_mb: None };
        let week = Counts { checks: 12, red: 3, infra: 6, crashes: 12, blocked: 4 };
        let figures = Figures { week, ..Figures::default() };
        let open: BTreeSet<String> = BTreeSet::new();
        self.role_event(Role::Predictor, Event::Measured { sample, figures, open });
    }

    /// The machine is looked at, a model has judged, or a person says something.
    fn something_happens_to_the_supervisor(&mut self) {
        let whim = self.reality().chance.below(4);
        let now = self.reality().now;
        let asked = self.supervisor().run;
        let event = match (whim, asked) {
            (0, _) => {
                let ignore = Some((Kind::Disk, now.after(Duration::from_secs(86_400))));
                let (by, words) = ("ann".to_owned(), "ignore disk warning".to_owned());
                Event::Spoken { by, words, ignore, answer: "so be it".to_owned() }
            }
            (1, Some(run)) => {
                let result = Some(json!({ "summary": "Look at the disk." }));
                let heard = Heard::Answer { result, issues: Vec::new(), formulas: Vec::new() };
                Event::Heard { run, heard }
            }
            (_, asked) => {
                let used_percent = 70 + 5 * u64::try_from(whim).expect("a small number");
                let disk = Disk { path: "/state".to_owned(), used_percent, free_mb: 100 };
                let machine = Machine { disks: vec![disk], ..Machine::default() };
                let facts = Facts { machine, ..Facts::default() };
                let config = Arc::clone(&self.reality().story.config);
                let assessment = assess(&facts, &config, &self.supervisor().keys(), now);
                let run = asked.is_none().then(|| RunId(self.reality().fresh()));
                Event::Inspected { assessment, done: Vec::new(), run }
            }
        };
        self.role_event(Role::Supervisor, event);
    }

    fn supervisor(&mut self) -> health::Memory {
        let key = self.role_key(Role::Supervisor);
        let stored = self.engine().store().memory(&key.project, key.role.as_str());
        stored.expect("memories can be read").unwrap_or_default()
    }

    /// An issue asks for an action, or its pull request for a review.
    fn begin_about_an_issue(&mut self) {
        let runs = self.runs_about_issues();
        if runs.len() >= 6 {
            return;
        }
        let number = self.reality().role_issue();
        let review = self.reality().chance.one_in(3);
        if review {
            let sha = Sha::new(&"d".repeat(40)).expect("forty digits");
            let subject = Subject::Review { pr: number, sha, inputs: "same".to_owned() };
            return self.begin(Role::Review.formula(), Some(subject));
        }
        let about: Vec<Run> =
            runs.into_iter().filter(|run| run.subject == Some(Subject::Action { issue: number })).collect();
        let labels = vec![ACTION.to_owned()];
        if action::plan(&ActionFacts { labels: &labels, waits: false, runs: &about }) == Next::Begin {
            self.begin(Role::Action.formula(), Some(Subject::Action { issue: number }));
        }
    }

    fn runs_about_issues(&mut self) -> Vec<Run> {
        let project = self.reality().story.project();
        let all = self.engine().store().runs(&project, RunScope::Last(1_000)).expect("runs can be read");
        let about = |run: &Run| matches!(run.subject, Some(Subject::Action { .. } | Subject::Review { .. }));
        all.into_iter().filter(about).collect()
    }

    /// What is over is told, as often as somebody looks.
    pub(super) fn look_at_runs_about_issues(&mut self) {
        let calm = self.reality().calm;
        let wanted = |run: &Run| run.status.is_over() && !run.cleaning && !(calm && is_told(run));
        for run in self.runs_about_issues().into_iter().filter(wanted) {
            let (name, act) = match &run.subject {
                Some(Subject::Action { issue }) => (REPORT.to_owned(), action::report(&run, *issue)),
                Some(Subject::Review { pr, sha, .. }) if run.status == Status::Done => {
                    (format!("review/{sha}"), Act::PostReview { pr: *pr, head: sha.clone() })
                }
                Some(Subject::Review { pr, .. }) => {
                    let (marker, body) = (format!("review-error:{}", run.id), "no use".to_owned());
                    ("unusable".to_owned(), Act::Remark { pr: *pr, marker, body })
                }
                Some(Subject::Vault { .. }) | None => continue,
            };
            let event = RunEvent::DeedWanted { name, act };
            self.told(Source::Roles, Item::Inputs(vec![Input::of_run(run.key(), event)]));
        }
    }

    /// Every answer is given, and every deed is wanted.
    pub(super) fn everybody_answers_roles(&mut self) {
        self.answer_roles();
        self.look_at_runs_about_issues();
    }

    /// Whether no role waits for anything, and every issue and pull request was told what came of its runs.
    pub(super) fn are_roles_over(&mut self) -> bool {
        let all_told = self.runs_about_issues().iter().all(is_told);
        all_told && self.gardener().asked.is_none() && self.planner().asked.is_none()
    }

    /// At the end every deed has ended, and nothing is left in a lane.
    pub(super) fn check_roles(&mut self) {
        for role in Role::ALL {
            let id = WorkflowId::Role(self.role_key(role));
            let pending = self.engine().store().pending_effects(&id).expect("the outbox can be read");
            assert!(pending.is_empty(), "the {role} has orders left: {pending:?}");
        }
        let (gardener, planner) = (self.gardener(), self.planner());
        assert!(gardener.deeds.is_empty() && gardener.plan.is_none() && gardener.done.is_empty());
        assert!(planner.deeds.is_empty() && planner.plan.is_none() && planner.done.is_empty());
    }
}

/// Whether it is known on the forge what came of a run, or will never be.
fn is_told(run: &Run) -> bool {
    let ended = |name: &str| matches!(run.deeds.get(name), Some(Some(_)));
    match &run.subject {
        Some(Subject::Action { .. }) => ended(REPORT),
        Some(Subject::Review { sha, .. }) => ended("unusable") || ended(&format!("review/{sha}")),
        Some(Subject::Vault { .. }) | None => true,
    }
}

impl Reality {
    /// The issues that roles see. The first ones are there from the beginning.
    fn role_issues(&mut self) -> Vec<Issue> {
        if self.roles.issues.is_empty() {
            let now = self.now;
            for number in FIRST..FIRST + ISSUES {
                let prediction: &[&str] = if number % 3 == 0 { &["prediction/unreviewed"] } else { &[] };
                let made = issue(number, format!("Thing {number} of {}", number % 4), prediction, now);
                self.roles.issues.insert(number, made);
            }
        }
        self.roles.open()
    }

    fn role_issue(&mut self) -> Number {
        FIRST + self.chance.next() % (ISSUES + 2)
    }

    /// A person deletes an issue, closes one or writes it anew.
    fn issues_of_roles_change(&mut self) {
        let number = self.role_issue();
        let (whim, fresh) = (self.chance.below(6), self.fresh());
        self.trace.say(format!("a person changes issue {number} of the roles: {whim}"));
        match whim {
            0 => drop(self.roles.issues.remove(&number)),
            1 => {
                if let Some(issue) = self.roles.issues.get_mut(&number) {
                    issue.state = IssueState::Closed;
                }
            }
            _ => {
                let now = self.now;
                let made = issue(number, format!("Thing {number}, take {fresh}"), &[], now);
                self.roles.issues.insert(number, made);
            }
        }
    }

    fn no_answer(&mut self) -> Option<Heard> {
        let (why, unheard) = ("it came to nothing".to_owned(), self.chance.one_in(2));
        self.fault(4).then_some(Heard::Nothing { why, unheard })
    }

    fn gardener_answers(&mut self, issues: &[Issue]) -> Heard {
        if let Some(nothing) = self.no_answer() {
            return nothing;
        }
        let mut lines = Vec::new();
        for issue in issues {
            let n = issue.number;
            lines.push(match self.chance.below(5) {
                0 => format!(r#"ACTION: {{"issue": {n}, "do": "underspecified", "why": "vague"}}"#),
                1 => format!(r#"ACTION: {{"issue": {n}, "do": "criteria", "text": "- [ ] it works"}}"#),
                2 => format!(r#"ESCALATE: {{"issue": {n}, "question": "Which one?"}}"#),
                _ => format!(r#"DUST: {{"issue": {n}, "group": "names", "title": "x", "reason": "small"}}"#),
            });
        }
        let (issues, formulas) = (issues.to_vec(), Vec::new());
        Heard::Answer { result: Some(json!({ "lines": lines })), issues, formulas }
    }

    fn planner_answers(&mut self, issues: &[Issue]) -> Heard {
        if let Some(nothing) = self.no_answer() {
            return nothing;
        }
        let verdicts = ["dismiss", "watch", "backlog"];
        let triage: Vec<Value> = issues
            .iter()
            .filter(|issue| issue.labels.iter().any(|label| label.starts_with("prediction/")))
            .map(|issue| {
                let (issue, verdict) = (issue.number, *self.chance.pick(&verdicts));
                match verdict {
                    "backlog" => json!({
                        "issue": issue, "verdict": verdict, "why": "because", "title": format!("Do {issue}"),
                        "text": format!("About {issue}"), "criteria": ["it works"], "leverage": 3,
                    }),
                    _ => json!({ "issue": issue, "verdict": verdict, "why": "because" }),
                }
            })
            .collect();
        let result = Some(json!({ "triage": triage, "issues": [] }));
        Heard::Answer { result, issues: issues.to_vec(), formulas: Vec::new() }
    }

    /// What a role or a run orders, beside deeds, is to tell people.
    pub(super) fn act_for_role(&mut self, outgoing: &Outgoing) -> Outcome {
        match &outgoing.effect {
            Effect::Deed { name, act } => self.deed(outgoing, name, act),
            Effect::Notify(_) => Outcome::notice(self.posting(outgoing)),
            effect => panic!("no role orders {effect:?}"),
        }
    }

    pub(super) fn deed(&mut self, outgoing: &Outgoing, name: &str, act: &Act) -> Outcome {
        let ending = match act {
            Act::Tend(tend) => self.tend(tend, outgoing.id),
            Act::File { marker, title, labels, .. } => self.file(marker, title, labels, outgoing.id),
            Act::Tell { .. } => {
                self.record.notices.insert(outgoing.key.clone());
                Ending::Done { filed: None }
            }
            Act::Remark { pr, marker, .. } => self.remark(*pr, marker, outgoing.id),
            Act::PostReview { pr, head } => {
                self.remark(*pr, &format!("review:{head}:{}", outgoing.workflow), outgoing.id)
            }
            Act::AskOnIssue { issue } => {
                self.remark(*issue, &format!("question:{}:{name}", outgoing.workflow), outgoing.id)
            }
            Act::ReportAction { issue } => {
                let marker = format!("action:{}", outgoing.workflow);
                let comment = Some("done".to_owned());
                let tend = Tend { issue: *issue, marker, comment, close: true, ..Tend::default() };
                self.tend(&tend, outgoing.id)
            }
        };
        Outcome::learned(WorkflowEvent::deed_ended(&outgoing.workflow, name, ending))
    }

    /// A comment is found instead of written again. That another effect has written it means that a deed was ordered twice.
    fn remark(&mut self, issue: Number, marker: &str, by: EffectId) -> Ending {
        let first = *self.roles.comments.entry((issue, marker.to_owned())).or_insert(by);
        let again =
            ["action:refused", "action:begun"].contains(&marker) || self.roles.given_up.contains(&first);
        assert!(first == by || again, "#{issue}: {marker} was written by effect {first} and by {by}");
        Ending::Done { filed: None }
    }

    fn tend(&mut self, tend: &Tend, by: EffectId) -> Ending {
        let Some(found) = self.roles.issues.get(&tend.issue) else { return Ending::Gone };
        if found.state == IssueState::Closed {
            let ours = self.roles.comments.contains_key(&(tend.issue, tend.marker.clone()));
            return if tend.close && ours { Ending::Done { filed: None } } else { Ending::Gone };
        }
        self.remark(tend.issue, &tend.marker, by);
        let issue = self.roles.issues.get_mut(&tend.issue).expect("it was found");
        issue.labels.retain(|label| !tend.remove.contains(label));
        let new: Vec<String> =
            tend.add.iter().filter(|label| !issue.labels.contains(label)).cloned().collect();
        issue.labels.extend(new);
        if tend.close {
            issue.state = IssueState::Closed;
        }
        Ending::Done { filed: None }
    }

    fn file(&mut self, marker: &str, title: &str, labels: &[String], by: EffectId) -> Ending {
        let now = self.now;
        if let Some((first, number, at)) = self.roles.filed.get(marker).copied() {
            // A prediction of the same kind is filed again after a while.
            let again = marker.starts_with("prediction-") && (now.0 - at.0).abs() >= SAID_AGAIN
                || self.roles.given_up.contains(&first);
            assert!(first == by || again, "{marker} was filed by effect {first} and by {by}");
            return Ending::Done { filed: Some(number) };
        }
        self.roles.asked += 1;
        let number = FIRST + 100 + self.roles.asked;
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        self.roles.issues.insert(number, issue(number, title.to_owned(), &labels, now));
        self.roles.filed.insert(marker.to_owned(), (by, number, now));
        Ending::Done { filed: Some(number) }
    }
}
