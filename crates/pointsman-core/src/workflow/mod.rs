//! Workflows: the durable things of Pointsman. A task, a run of a formula, a vault action, a concern,
//! the memory of a role and a notifier each are one.
//!
//! A workflow is a snapshot with a pure step: an event comes in, the next snapshot and orders to the world come out. The
//! engine knows workflows only by [`WorkflowId`], [`Workflow`] and [`Event`], so that all of them share one way in, one
//! commit and one outbox. Not here: the parts that workflows share ([`crate::part`]), and anything that writes or acts.

mod id;
mod signals;

use std::fmt;
use std::sync::{Arc, LazyLock};

pub use id::WorkflowId;
pub use signals::signals;

use crate::concern::{self, Concern};
use crate::config::Config;
use crate::deed::Ending;
use crate::ids::{ActionKey, Number};
use crate::log;
use crate::notifier::{self, Notifier};
use crate::part::contribution::{self, Contribution};
use crate::part::question::{self, Question};
use crate::part::session::{self, Demand, Session, Stage};
use crate::role::Role;
use crate::role_memory::{self, RoleMemory};
use crate::run::{self, Run, Subject};
use crate::task::{self, Effect, Opening, State, Task};
use crate::time::Timestamp;
use crate::vault;

/// An event that changes nothing. It is logged and shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It speaks of an earlier session, commit or try.
    Stale(String),
    /// The present state does not allow it.
    NotNow(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(why) | Self::NotNow(why) => f.write_str(why),
        }
    }
}

/// An event of some workflow.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Task(task::Event),
    Run(run::Event),
    Vault(vault::Event),
    Concern(concern::Event),
    Role(role_memory::Event),
    Notifier(notifier::Event),
}

impl Event {
    /// An event about the session of a workflow.
    pub fn of_session(id: &WorkflowId, generation: u32, event: session::Event) -> Self {
        match id {
            WorkflowId::Task(_) => Self::Task(task::Event::of_session(generation, event)),
            // The others have no session: as every event of another kind, they refuse this one.
            WorkflowId::Run(_)
            | WorkflowId::Vault(_)
            | WorkflowId::Concern(_)
            | WorkflowId::Role(_)
            | WorkflowId::Notifier(_) => Self::Run(run::Event::Session { generation, told: event }),
        }
    }

    /// An event about the contribution of a workflow.
    pub fn of_contribution(id: &WorkflowId, event: contribution::Event) -> Self {
        match id {
            WorkflowId::Task(_) => Self::Task(task::Event::of_contribution(event)),
            // The others have none: as every event of another kind, they refuse this one.
            WorkflowId::Run(_)
            | WorkflowId::Vault(_)
            | WorkflowId::Concern(_)
            | WorkflowId::Role(_)
            | WorkflowId::Notifier(_) => Self::Run(run::Event::Contribution { about: event }),
        }
    }

    /// A deadline of a workflow may have passed.
    pub fn time_passed(id: &WorkflowId) -> Self {
        match id {
            WorkflowId::Task(_) => Self::Task(task::Event::TimePassed),
            WorkflowId::Run(_) => Self::Run(run::Event::TimePassed),
            WorkflowId::Vault(_) => Self::Vault(vault::Event::TimePassed),
            WorkflowId::Concern(_) => Self::Concern(concern::Event::TimePassed),
            WorkflowId::Role(_) => Self::Role(role_memory::Event::TimePassed),
            WorkflowId::Notifier(_) => Self::Notifier(notifier::Event::TimePassed),
        }
    }

    /// Time went by in which this machine was not awake. Those whose deadlines are people's alone do not hear of it.
    pub fn time_skipped(id: &WorkflowId, by_ms: i64) -> Option<Self> {
        match id {
            WorkflowId::Task(_) => Some(Self::Task(task::Event::TimeSkipped { by_ms })),
            WorkflowId::Run(_) => Some(Self::Run(run::Event::TimeSkipped { by_ms })),
            WorkflowId::Vault(_) | WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => {
                None
            }
        }
    }

    /// The working tree of a workflow could not be set up. None for those that have none.
    pub fn setup_failed(
        id: &WorkflowId,
        (generation, opening): (u32, Opening),
        error: String,
        log: String,
    ) -> Option<Self> {
        match id {
            WorkflowId::Task(_) => {
                Some(Self::Task(task::Event::SetupFailed { generation, opening, error, log }))
            }
            WorkflowId::Run(_) => {
                Some(Self::Run(run::Event::SetupFailed { generation, opening, error, log }))
            }
            WorkflowId::Vault(_) | WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => {
                None
            }
        }
    }

    /// The sessions of a workflow have these ports. None for those without sessions.
    pub fn ports_assigned(id: &WorkflowId, ports: Vec<u16>) -> Option<Self> {
        match id {
            WorkflowId::Task(_) => Some(Self::Task(task::Event::PortsAssigned { ports })),
            WorkflowId::Run(_) => Some(Self::Run(run::Event::PortsAssigned { ports })),
            WorkflowId::Vault(_) | WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => {
                None
            }
        }
    }

    /// An order of a workflow can never be carried out.
    pub fn effect_gave_up(id: &WorkflowId, effect: &Effect, error: String) -> Self {
        if let Effect::StartSession { generation, .. } = effect {
            return Self::of_session(id, *generation, session::Event::NotStarted { error });
        }
        if let Effect::Deed { name, .. } = effect {
            return Self::deed_ended(id, name, Ending::Refused { error });
        }
        let kind = effect.kind().to_owned();
        match id {
            WorkflowId::Task(_) => Self::Task(task::Event::EffectGaveUp { effect: kind, error }),
            WorkflowId::Run(_) => Self::Run(run::Event::EffectGaveUp { effect: kind, error }),
            WorkflowId::Vault(_) => Self::Vault(vault::Event::effect_gave_up(effect, &error)),
            WorkflowId::Concern(_) => Self::Concern(concern::Event::EffectGaveUp { error }),
            WorkflowId::Role(_) => Self::Role(role_memory::Event::EffectGaveUp { effect: kind, error }),
            WorkflowId::Notifier(_) => Self::Notifier(notifier::Event::EffectGaveUp { error }),
        }
    }

    /// A deed of a workflow has ended.
    pub fn deed_ended(id: &WorkflowId, name: &str, ending: Ending) -> Self {
        let name = name.to_owned();
        match id {
            WorkflowId::Role(_) => Self::Role(role_memory::Event::DeedEnded { name, ending }),
            // The others order no deeds: as every event of another kind, they refuse this one.
            WorkflowId::Run(_)
            | WorkflowId::Task(_)
            | WorkflowId::Vault(_)
            | WorkflowId::Concern(_)
            | WorkflowId::Notifier(_) => Self::Run(run::Event::DeedEnded { name, ending }),
        }
    }
}

/// A workflow as it is. Cheap to clone: everybody who looks at it shares one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Workflow {
    Task(Arc<Task>),
    Run(Arc<Run>),
    Vault(Arc<vault::Entry>),
    Concern(Arc<Concern>),
    Role(Arc<RoleMemory>),
    Notifier(Arc<Notifier>),
}

/// The session of those who have none.
static NO_SESSION: LazyLock<Session> = LazyLock::new(Session::default);

impl Workflow {
    /// Its name among all workflows.
    pub fn id(&self) -> WorkflowId {
        match self {
            Self::Task(task) => WorkflowId::Task(task.key.clone()),
            Self::Run(run) => WorkflowId::Run(run.key()),
            Self::Vault(entry) => WorkflowId::Vault(entry.key()),
            Self::Concern(concern) => WorkflowId::Concern(concern.key.clone()),
            Self::Role(memory) => WorkflowId::Role(memory.key.clone()),
            Self::Notifier(notifier) => WorkflowId::Notifier(notifier.key.clone()),
        }
    }

    /// Its session, as it remembers it.
    pub fn session(&self) -> &Session {
        match self {
            Self::Task(task) => &task.session,
            Self::Run(run) => &run.session,
            Self::Vault(_) | Self::Concern(_) | Self::Role(_) | Self::Notifier(_) => &NO_SESSION,
        }
    }

    /// Its contribution to the main branch, if it makes one.
    pub fn contribution(&self) -> Option<&Contribution> {
        match self {
            Self::Task(task) => Some(&task.contribution),
            Self::Run(run) => run.contribution(),
            Self::Vault(_) | Self::Concern(_) | Self::Role(_) | Self::Notifier(_) => None,
        }
    }

    /// The name of its present session, if one may exist.
    pub fn session_name(&self) -> Option<String> {
        let session = self.session();
        (session.stage != Stage::None).then(|| self.id().session(session.generation))
    }

    /// The role that its sessions have.
    pub fn role(&self) -> Role {
        match self {
            Self::Task(_) => Task::ROLE,
            Self::Run(run) => run.formula.role(),
            Self::Vault(_) => vault::ROLE,
            // They have no sessions.
            Self::Concern(_) | Self::Notifier(_) => Task::ROLE,
            Self::Role(memory) => memory.key.role,
        }
    }

    /// Its need of a session at present.
    pub fn demand(&self) -> Demand {
        match self {
            Self::Task(task) => task.state.demand(),
            Self::Run(run) => run.demand(),
            Self::Vault(_) | Self::Concern(_) | Self::Role(_) | Self::Notifier(_) => Demand::Nothing,
        }
    }

    /// Whether the agent has written a phase that explains its silence.
    pub fn has_phase(&self) -> bool {
        match self {
            Self::Task(task) => task.phase.is_some(),
            Self::Run(run) => run.phase.is_some(),
            Self::Vault(_) | Self::Concern(_) | Self::Role(_) | Self::Notifier(_) => false,
        }
    }

    /// A line that says what its agent works on.
    pub fn title(&self) -> &str {
        match self {
            Self::Task(task) => &task.title,
            Self::Run(run) => &run.formula.name,
            Self::Vault(entry) => entry.id().as_str(),
            Self::Concern(concern) => concern.key.about.as_str(),
            Self::Role(memory) => memory.key.role.as_str(),
            Self::Notifier(notifier) => notifier.key.kind.as_str(),
        }
    }

    /// The moment at which time alone will next change something.
    pub fn wake_at(&self, rules: &Rules) -> Option<Timestamp> {
        match self {
            Self::Task(task) => task.wake_at(),
            Self::Run(run) => run.wake_at(&rules.run(run)),
            Self::Vault(entry) => entry.wake_at(),
            Self::Concern(concern) => concern.wake_at(),
            Self::Role(_) | Self::Notifier(_) => None,
        }
    }

    /// Whether anything may still happen to it, so that it is kept at hand.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Task(task) => {
                task.state != State::Closed || task.session.stage != Stage::None || !task.block_seen
            }
            Self::Run(run) => run.is_open(),
            Self::Vault(entry) => entry.is_open(),
            Self::Concern(concern) => concern.is_open(),
            // They are read when something happens to them, which is seldom.
            Self::Role(_) | Self::Notifier(_) => false,
        }
    }

    /// The question that it asks a person.
    pub fn question(&self) -> Option<&Question> {
        match self {
            Self::Task(task) => task.escalation.as_ref(),
            Self::Run(run) => run.question.as_ref(),
            Self::Vault(entry) => entry.asked.as_ref(),
            Self::Concern(concern) => concern.asked.as_ref(),
            Self::Role(_) | Self::Notifier(_) => None,
        }
    }
}

/// The rules of one project.
#[derive(Clone, Debug)]
pub struct Rules {
    pub config: Arc<Config>,
    task: task::Policy,
    vault: vault::Policy,
    question: question::Policy,
}

impl Rules {
    /// The rules that a configuration sets.
    pub fn new(config: Arc<Config>) -> Self {
        let task = task::Policy::new(&config);
        Self { question: task.question(), task, vault: vault::Policy::new(&config), config }
    }

    fn run(&self, run: &Run) -> run::Policy {
        run::Policy::new(&self.config, run.formula.role())
    }
}

/// The next snapshot of a workflow, and what is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    pub workflow: Workflow,
    /// Orders to the world, in this order.
    pub effects: Vec<Effect>,
    /// Events of other workflows that follow from it.
    pub told: Vec<(WorkflowId, Event)>,
    /// Entries of the log and the issues they are about, where they do not follow from the event alone.
    pub logged: Vec<(Option<Number>, log::Entry)>,
}

impl Next {
    fn new(workflow: Workflow, effects: Vec<Effect>) -> Self {
        Self { workflow, effects, told: Vec::new(), logged: Vec::new() }
    }
}

/// Steps a workflow. An event of another kind of workflow is refused.
pub fn step(workflow: &Workflow, event: &Event, rules: &Rules, now: Timestamp) -> Result<Next, Refused> {
    match (workflow, event) {
        (Workflow::Task(task), Event::Task(event)) => {
            let task::Transition { task, effects } = task::step(task, event, &rules.task, now)?;
            Ok(Next::new(Workflow::Task(Arc::new(task)), effects))
        }
        (Workflow::Run(run), Event::Run(event)) => {
            let was_over = run.status.is_over();
            let run::Transition { run, effects } = run::step(run, event, &rules.run(run), now)?;
            let told = if was_over { None } else { asker(&run) };
            let next = Next::new(Workflow::Run(Arc::new(run)), effects);
            Ok(Next { told: told.into_iter().collect(), ..next })
        }
        (Workflow::Vault(entry), Event::Vault(event)) => {
            let vault::Transition { entry, effects } = vault::step(entry, event, &rules.vault, now)?;
            Ok(Next::new(Workflow::Vault(Arc::new(entry)), effects))
        }
        (Workflow::Concern(concern), Event::Concern(event)) => {
            let concern::Transition { concern, effects } =
                concern::step(concern, event, &rules.question, now)?;
            Ok(Next::new(Workflow::Concern(Arc::new(concern)), effects))
        }
        (Workflow::Role(memory), Event::Role(event)) => {
            let role_memory::Transition { memory, effects, logged } =
                role_memory::step(memory, event, &rules.config, now)?;
            Ok(Next { logged, ..Next::new(Workflow::Role(Arc::new(memory)), effects) })
        }
        (Workflow::Notifier(notifier), Event::Notifier(event)) => {
            let notifier = notifier::step(notifier, event, now);
            Ok(Next::new(Workflow::Notifier(Arc::new(notifier)), Vec::new()))
        }
        (
            Workflow::Task(_)
            | Workflow::Run(_)
            | Workflow::Vault(_)
            | Workflow::Concern(_)
            | Workflow::Role(_)
            | Workflow::Notifier(_),
            _,
        ) => Err(Refused::NotNow(crate::words::reason::OTHER_WORKFLOW.to_owned())),
    }
}

/// The workflow that asked for a run which is over, and what it hears.
fn asker(run: &Run) -> Option<(WorkflowId, Event)> {
    let Some(Subject::Vault { id, .. }) = &run.subject else { return None };
    let key = ActionKey { project: run.project.clone(), id: id.clone() };
    Some((key.into(), Event::Vault(vault::heard(run)?)))
}
