//! A run is one execution of a formula by a session, step by step.
//!
//! The session reports each step as done, in an order that the steps' needs allow. A session that dies is replaced,
//! and its successor continues with the first step that is not done. A run ends well only if all steps are done and
//! its result can be read. Its session is the same part that a task has ([`crate::part::session`]), so a run hears hooks,
//! hands over, parks, asks and recovers as a task does.

mod event;
mod step;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use event::Event;
pub use step::{Transition, questions, step};

use crate::config::Config;
use crate::deed::Deeds;
use crate::formula::{Formula, Step};
use crate::hand_in::{HandIn, Landing};
use crate::ids::{Number, ProjectName, RunKey, Sha};
use crate::part::contribution::{self, Contribution};
use crate::part::question::{self, Owner, Question, Source};
use crate::part::session::{self, Demand, Session, Stage};
use crate::role::Role;
use crate::task::Phase;
use crate::time::Timestamp;
use crate::vault::{self, ActionId};
use crate::words;
use crate::{action, json, review};

/// Largest result that is read.
pub const RESULT_BYTES: usize = 1 << 20;

/// A run's number in its project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The state of a run. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A session is to be started.
    Starting,
    /// A session works on it.
    Running,
    Done,
    /// It will not be finished.
    Failed,
    Stopped,
}

impl Status {
    /// The name that scripts see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        match self {
            Self::Done | Self::Failed | Self::Stopped => true,
            Self::Starting | Self::Running => false,
        }
    }
}

/// The subject of a run, if it is not about the whole project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// A commit of a pull request that is to be reviewed.
    Review {
        pr: Number,
        sha: Sha,
        /// A fingerprint of all that the reviewer is given.
        inputs: String,
    },
    /// An issue whose action is to be carried out.
    Action { issue: Number },
    /// An action in the vault that is to be looked at.
    Vault {
        id: ActionId,
        /// Exactly which: a changed one is another.
        hash: String,
    },
}

impl Subject {
    /// A key that is the same for all runs about the same thing: `review/12`.
    pub fn key(&self) -> String {
        match self {
            Self::Review { pr, .. } => review_key(*pr),
            Self::Action { issue } => action_key(*issue),
            Self::Vault { hash, .. } => vault_key(hash),
        }
    }
}

/// The key of all reviews of a pull request.
pub fn review_key(pr: Number) -> String {
    format!("review/{pr}")
}

/// The key of all actions of an issue.
pub fn action_key(issue: Number) -> String {
    format!("action/{issue}")
}

/// The key of the look at an action in the vault.
pub fn vault_key(hash: &str) -> String {
    format!("vault/{hash}")
}

/// A step that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDone {
    pub id: String,
    pub at: Timestamp,
    /// By which session of the run.
    pub generation: u32,
}

/// One execution of a formula.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub project: ProjectName,
    /// The formula as it was when the run began; a changed file changes the next run.
    pub formula: Formula,
    /// The model its sessions are asked to use.
    pub model: Option<String>,
    pub by: String,
    pub status: Status,
    pub session: Session,
    /// The claim that the agent waits on: `done` until its result is read, `escalate` until a person answers.
    #[serde(default)]
    pub phase: Option<Phase>,
    pub done: Vec<StepDone>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// The time that it waited for people and for services. Its lifetime does not count it.
    #[serde(default)]
    pub waited_ms: u64,
    /// The question to a person, while it waits for the answer.
    #[serde(default)]
    pub question: Option<Question>,
    /// An end that could not be carried out is ordered again at this time.
    #[serde(default)]
    pub retry_at: Option<Timestamp>,
    /// It is over, and what its sessions left is still to be put away.
    #[serde(default)]
    pub cleaning: bool,
    /// Why it stands where it stands.
    pub reason: Option<String>,
    /// What the agent wrote down as its result.
    pub result: Option<serde_json::Value>,
    /// What rules have found and it is asked about; it belongs to the prompt.
    #[serde(default)]
    pub briefing: Option<String>,
    /// What it is about; nothing for the whole project.
    #[serde(default)]
    pub subject: Option<Subject>,
    /// Its working tree was looked through for files to hand in.
    #[serde(default)]
    pub looked_through: bool,
    /// What it hands in, once that holds something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_in: Option<HandIn>,
    /// What is done on the forge about it.
    #[serde(default, skip_serializing_if = "Deeds::is_empty")]
    pub deeds: Deeds,
    /// The ports that its sessions have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// How often the set-up of its working tree failed.
    #[serde(default)]
    pub setup_failures: u32,
    /// Whether no session of it could ever begin.
    #[serde(default)]
    pub never_began: bool,
    /// Whether its session was told that its result cannot be used.
    #[serde(default)]
    pub corrected: bool,
}

impl Run {
    /// Whether nobody has answered, and not because a session did not know how to.
    pub fn is_unheard(&self) -> bool {
        self.never_began || self.status == Status::Stopped
    }

    /// A run that is about to begin.
    pub fn new(id: RunId, formula: Formula, config: &Config, by: &str, now: Timestamp) -> Self {
        let model = config.roles.get(formula.role()).model.clone().or_else(|| formula.model.clone());
        Self {
            id,
            project: config.name.clone(),
            formula,
            model,
            by: crate::text::clean_line(by, 100),
            status: Status::Starting,
            session: Session::default(),
            phase: None,
            done: Vec::new(),
            started_at: now,
            ended_at: None,
            waited_ms: 0,
            question: None,
            retry_at: None,
            cleaning: false,
            reason: None,
            result: None,
            briefing: None,
            subject: None,
            looked_through: false,
            hand_in: None,
            deeds: Deeds::default(),
            ports: Vec::new(),
            setup_failures: 0,
            never_began: false,
            corrected: false,
        }
    }

    /// The same about one thing.
    pub fn about(self, subject: Option<Subject>) -> Self {
        Self { subject, ..self }
    }

    /// The place that its questions come from.
    pub fn source(&self) -> Source {
        let (issue, pr) = match &self.subject {
            Some(Subject::Action { issue }) => (Some(*issue), None),
            Some(Subject::Review { pr, .. }) => (None, Some(*pr)),
            Some(Subject::Vault { .. }) | None => (None, None),
        };
        let session = Some(self.session_name());
        Source { project: self.project.clone(), owner: Owner::Run(self.id), issue, pr, session }
    }

    /// Its name among all workflows.
    pub fn key(&self) -> RunKey {
        RunKey { project: self.project.clone(), role: self.formula.role(), id: self.id }
    }

    /// The same across its sessions: `planner-shop-7`.
    pub fn identity(&self) -> String {
        self.key().identity()
    }

    /// The present session, or the last one: `planner-shop-7.1`.
    pub fn session_name(&self) -> String {
        self.key().session(self.session.generation)
    }

    /// The first step that is not done.
    pub fn next_step(&self) -> Option<&Step> {
        self.formula.steps.iter().find(|step| !self.is_done(&step.id))
    }

    /// Whether a step is done.
    pub fn is_done(&self, id: &str) -> bool {
        self.done.iter().any(|done| done.id == id)
    }

    /// Whether something is still to be done about it.
    pub fn is_open(&self) -> bool {
        let lands = self.hand_in.as_ref().is_some_and(HandIn::is_open);
        let acts = self.deeds.are_under_way();
        !self.status.is_over() || self.session.stage != Stage::None || self.cleaning || lands || acts
    }

    /// Whether what it changes in files may be handed in.
    pub fn may_hand_in(&self) -> bool {
        self.subject.is_none() && self.formula.role().hands_in().is_some()
    }

    /// Whether its working tree is still to be looked through for files to hand in.
    pub fn is_to_be_looked_through(&self) -> bool {
        self.may_hand_in() && self.status == Status::Done && !self.looked_through
    }

    /// The way of what it hands in to the main branch, while it is on it.
    pub fn landing(&self) -> Option<&Landing> {
        self.hand_in.as_ref().and_then(HandIn::landing)
    }

    /// Its contribution to the main branch, while it is on its way.
    pub fn contribution(&self) -> Option<&Contribution> {
        self.landing().map(|landing| &landing.contribution)
    }

    /// Its need of a session at present.
    pub fn demand(&self) -> Demand {
        if self.status.is_over() {
            Demand::Nothing
        } else if self.question.is_some() {
            Demand::Answer
        } else if self.phase == Some(Phase::Done) {
            // Its result is being read; nothing more is expected of the agent.
            Demand::Farewell
        } else {
            Demand::Work
        }
    }

    /// The moment at which time alone will next change something.
    pub fn wake_at(&self, policy: &Policy) -> Option<Timestamp> {
        if self.status.is_over() {
            // Nobody works on a run that is over: a session that outlived it is ended.
            let outlived = self.session.is_listening().then(|| self.retry_at.unwrap_or_default());
            return [outlived, self.contribution().and_then(Contribution::wake_at)]
                .into_iter()
                .flatten()
                .min();
        }
        [self.session.wake_at(), self.deadline(policy)].into_iter().flatten().min()
    }

    /// The moment at which people are asked again, or its time is up.
    fn deadline(&self, policy: &Policy) -> Option<Timestamp> {
        match (&self.question, self.demand()) {
            (Some(question), _) => question.wake_at(),
            (None, Demand::Work) => Some(self.out_of_time_at(policy)),
            (None, _) => None,
        }
    }

    fn out_of_time_at(&self, policy: &Policy) -> Timestamp {
        self.started_at.after(policy.lifetime).after(Duration::from_millis(self.waited_ms))
    }
}

/// Reads the result that an agent wrote: nothing, or one JSON object.
pub fn read_result(bytes: Option<&[u8]>) -> Result<Option<serde_json::Value>, String> {
    let Some(bytes) = bytes.filter(|bytes| !bytes.trim_ascii().is_empty()) else { return Ok(None) };
    if bytes.len() > RESULT_BYTES {
        return Err(words::run::result_too_large(RESULT_BYTES));
    }
    match json::read(bytes) {
        Ok(value @ serde_json::Value::Object(_)) => Ok(Some(value)),
        Ok(_) => Err(words::run::RESULT_NOT_AN_OBJECT.to_owned()),
        Err(error) => Err(words::run::result_not_json(&error)),
    }
}

/// Whether a run's result can be used: what is posted in its name is decided by it alone.
pub fn check_result(run: &Run, result: Option<&serde_json::Value>) -> Result<(), String> {
    match &run.subject {
        Some(Subject::Review { .. }) => review::Answer::read(result).map(drop),
        Some(Subject::Action { .. }) => action::Report::read(result).map(drop),
        Some(Subject::Vault { .. }) => vault::Opinion::read(result).map(drop),
        // Only what rules have asked has an answer, and a project's own formula for a role may answer otherwise.
        None if run.briefing.is_some() && run.formula.name == run.formula.role().formula() => {
            run.formula.role().check_answer(result)
        }
        None => Ok(()),
    }
}

/// The limits that a project sets for a run.
#[derive(Clone, Debug)]
pub struct Policy {
    /// It is given up after this long.
    pub lifetime: Duration,
    /// How many ports its sessions get.
    pub ports: u16,
    /// The numbers for its questions.
    pub question: question::Policy,
    /// The numbers for its sessions.
    pub session: session::Policy,
    /// The numbers for what it hands in.
    pub contribution: contribution::Policy,
}

impl Policy {
    /// As it is configured for a role.
    pub fn new(config: &Config, role: Role) -> Self {
        let timing = &config.timing;
        Self {
            lifetime: role.lifetime(timing).duration(),
            ports: config.tree.ports,
            question: question::Policy {
                remind: timing.escalation_renotify.duration(),
                timeout: timing.escalation_timeout.duration(),
            },
            session: session::Policy::new(config),
            contribution: contribution::Policy::new(config),
        }
    }
}
