//! The memory of a role: what it has seen and asked, which deeds follow from the answer, and what its results were worth.
//!
//! It is a workflow of the engine. A look, an answer and the end of a deed are events; deeds on the forge and notices are
//! effects, ordered with the decision that wants them. `planning` has the way of the roles that ask a model, from the answer to
//! the last deed, `supervising` the supervisor's. A role has one memory in each project; it never ends, and wakes nobody.
//!
//! Not here: when a role looks, which is [`crate::timetable`]'s, and whether a session may be asked, which depends on budgets.

mod planning;
mod supervising;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value;

pub use planning::Obstacle;
pub(crate) use planning::{Closing, Planning};

use crate::action;
use crate::config::Config;
use crate::deed::{Act, Ending};
use crate::forge::Issue;
use crate::gardener::{self, RepositoryFacts};
use crate::health::{self, Assessment};
use crate::ids::{Number, ProjectName, RoleKey};
use crate::log;
use crate::planner::{self, PlanInputs};
use crate::predictor::{self, Figures, Sample};
use crate::role::Role;
use crate::run::RunId;
use crate::task::{Effect, Notice};
use crate::time::Timestamp;
use crate::value::{Outcome, RoleValue};
use crate::words;
use crate::workflow::Refused;

/// The memory of a role in a project.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleMemory {
    pub key: RoleKey,
    pub memory: Memory,
    /// What its results were worth.
    pub value: RoleValue,
}

/// The part of a memory that depends on the role.
#[derive(Clone, Debug, PartialEq)]
pub enum Memory {
    Gardener(Box<gardener::Memory>),
    Planner(Box<planner::Memory>),
    Predictor(Box<predictor::Memory>),
    Supervisor(Box<health::Memory>),
    Action(Box<action::Memory>),
    /// The role is known by its results alone.
    Nothing,
}

/// An event in the work of a role. Events are not stored: the log has the entry that each brings.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// It looked.
    Looked {
        look: Box<Look>,
        /// The run that it asks, if it asks anybody.
        run: Option<RunId>,
        /// What the log says of it, if anything.
        lines: Vec<String>,
    },
    /// It has a question, and nobody can be asked just now. It looks again in a while.
    Hindered {
        found: String,
        why: String,
    },
    /// The run that it asked is over.
    Heard {
        run: RunId,
        heard: Heard,
    },
    /// The figures of a day.
    Measured {
        sample: Sample,
        figures: Figures,
        /// The keys of predictions that are open as issues.
        open: BTreeSet<String>,
    },
    /// The machine and the project were looked at.
    Inspected {
        assessment: Assessment,
        /// What was done about it, one line each.
        done: Vec<String>,
        /// The run that is asked about what no recipe covers, if there is one.
        run: Option<RunId>,
    },
    /// A person has said something to it.
    Spoken {
        by: String,
        words: String,
        /// A warning that nobody wants to hear, until when.
        ignore: Option<(health::Kind, Timestamp)>,
        /// What the person was answered.
        answer: String,
    },
    /// An action cannot begin as its issue stands.
    ActionRefused {
        issue: Number,
        why: String,
    },
    /// A deed has ended.
    DeedEnded {
        name: String,
        ending: Ending,
    },
    /// A result turned out to be useful, or noise.
    Counted {
        outcome: Outcome,
    },
    /// A person lets it ask again.
    Resumed,
    TimePassed,
    /// An order that is no deed can never be carried out.
    EffectGaveUp {
        effect: String,
        error: String,
    },
}

/// The things that a role saw in one look.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    Gardener {
        issues: Vec<Issue>,
        ground: RepositoryFacts,
        /// People have said something: what they were asked about is not decided any more.
        reconsider: bool,
    },
    Planner(PlanInputs),
}

/// The end of a run that a role has asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Answer {
        result: Option<Value>,
        /// The open issues as they are now.
        issues: Vec<Issue>,
        /// The formulas there are.
        formulas: Vec<String>,
    },
    /// The run has no answer.
    Nothing {
        why: String,
        /// Whether no session is to blame for that: then it is asked again.
        unheard: bool,
    },
}

/// The next memory and what is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub memory: RoleMemory,
    pub effects: Vec<Effect>,
    /// Entries of the log, and the issues they are about.
    pub logged: Vec<(Option<Number>, log::Entry)>,
}

impl RoleMemory {
    /// The name under which the role's results are counted.
    pub fn value_name(role: Role) -> String {
        format!("value.{role}")
    }
}

/// The next memory and its orders after `event` at `now`.
pub fn step(
    before: &RoleMemory,
    event: &Event,
    config: &Config,
    now: Timestamp,
) -> Result<Transition, Refused> {
    let mut after = before.clone();
    let mut orders = Orders { key: &before.key, config, now, effects: Vec::new(), logged: Vec::new() };
    let RoleMemory { memory, value, .. } = &mut after;
    let counts = match (event, memory) {
        (Event::Counted { outcome }, _) => Some(*outcome),
        (Event::Resumed, _) => {
            value.resume();
            orders.log(log::Entry::RoleResumed { role: before.key.role });
            None
        }
        (Event::TimePassed | Event::EffectGaveUp { .. }, _) => None,
        (event, Memory::Gardener(memory)) => planning::step(&mut **memory, event, &mut orders)?,
        (event, Memory::Planner(memory)) => planning::step(&mut **memory, event, &mut orders)?,
        (event, Memory::Supervisor(memory)) => supervising::step(memory, event, &mut orders)?,
        (Event::Measured { sample, figures, open }, Memory::Predictor(memory)) => {
            // The results of one that is paused were noise: it goes on counting, and files nothing.
            let files = value.paused_at.is_none();
            memory.foresee(sample, figures, open, files, &mut orders);
            None
        }
        (Event::DeedEnded { name, ending }, Memory::Predictor(memory)) => {
            memory.deed_ended(name, ending, &mut orders)?;
            None
        }
        (Event::ActionRefused { issue, why }, Memory::Action(memory)) => {
            memory.block(*issue, why, &mut orders);
            None
        }
        (Event::DeedEnded { name, ending }, Memory::Action(memory)) => {
            memory.deeds.end(name, ending)?;
            if let Ending::Refused { error } = ending {
                orders.tell_refused(&words::action::blocking(name), error);
            }
            None
        }
        (
            Event::Looked { .. }
            | Event::Hindered { .. }
            | Event::Heard { .. }
            | Event::Measured { .. }
            | Event::Inspected { .. }
            | Event::Spoken { .. }
            | Event::ActionRefused { .. }
            | Event::DeedEnded { .. },
            Memory::Predictor(_) | Memory::Action(_) | Memory::Nothing,
        ) => return Err(Refused::NotNow(words::reason::OTHER_ROLE.to_owned())),
    };
    if let Some(outcome) = counts {
        let (role, paused) = (before.key.role, value.count(outcome, config, now));
        orders.log(log::Entry::RoleCounted { role, used: outcome == Outcome::Used, paused });
        if paused {
            orders.notify(words::gardener::paused(&before.key.project, role));
        }
    }
    let Orders { effects, mut logged, .. } = orders;
    if logged.is_empty() {
        logged.push((None, log::Entry::Remembered { name: before.key.role.to_string() }));
    }
    Ok(Transition { memory: after, effects, logged })
}

/// The orders and entries of the log that follow from an event, beside the memory itself.
pub(crate) struct Orders<'a> {
    pub(crate) key: &'a RoleKey,
    pub(crate) config: &'a Config,
    pub(crate) now: Timestamp,
    effects: Vec<Effect>,
    logged: Vec<(Option<Number>, log::Entry)>,
}

impl Orders<'_> {
    /// The project that the role works in.
    pub(crate) fn project(&self) -> &ProjectName {
        &self.key.project
    }

    /// Orders a deed.
    pub(crate) fn deed(&mut self, name: impl Into<String>, act: Act) {
        self.effects.push(Effect::Deed { name: name.into(), act });
    }

    /// Tells people something.
    pub(crate) fn notify(&mut self, notice: Notice) {
        self.effects.push(Effect::Notify(notice));
    }

    /// The forge refuses a deed for good: a person learns of it.
    pub(crate) fn tell_refused(&mut self, deed: &str, error: &str) {
        let notice = words::daemon::factory::forge_refused(self.project(), self.key.role, deed, error);
        self.notify(notice);
    }

    /// Writes an entry of the log that is about the project.
    pub(crate) fn log(&mut self, entry: log::Entry) {
        self.logged.push((None, entry));
    }

    /// Writes an entry of the log that is about an issue.
    pub(crate) fn log_about(&mut self, issue: Number, entry: log::Entry) {
        self.logged.push((Some(issue), entry));
    }
}
