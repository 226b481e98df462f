//! Records of a step: what is written beside the snapshot of a workflow.

use pointsman_core::concern;
use pointsman_core::config::{Config, Runtime};
use pointsman_core::ids::{Number, RoleKey};
use pointsman_core::log;
use pointsman_core::part::question;
use pointsman_core::part::session;
use pointsman_core::role_memory::{self, RoleMemory};
use pointsman_core::run;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::work::{Action, Observation, WorkState};
use pointsman_core::task::{self, Phase, Refused, State};
use pointsman_core::time::Timestamp;
use pointsman_core::vault;
use pointsman_core::workflow::{Event, Workflow};
use pointsman_store::{Change, Error, Memory, SessionRow, Store};

use super::Input;

/// The change that an event makes, with the workflow before and after it.
pub(super) fn change(
    input: &Input,
    now: Timestamp,
    event: &Event,
    before: &Workflow,
    after: Result<&Workflow, &Refused>,
    logged: &[(Option<Number>, log::Entry)],
) -> Change {
    match (before, event, after) {
        (Workflow::Task(before), Event::Task(event), Ok(Workflow::Task(after))) => {
            input.task_change(now, event, before, Ok(after.state))
        }
        (Workflow::Task(before), Event::Task(event), Err(refused)) => {
            input.task_change(now, event, before, Err(refused))
        }
        (Workflow::Run(before), Event::Run(event), Ok(Workflow::Run(after))) => {
            input.run_change(now, event, before, Ok(after))
        }
        (Workflow::Run(before), Event::Run(event), Err(refused)) => {
            input.run_change(now, event, before, Err(refused))
        }
        (Workflow::Vault(before), Event::Vault(event), Ok(Workflow::Vault(after))) => {
            input.action_change(now, event, before, Ok(after))
        }
        (Workflow::Vault(before), Event::Vault(event), Err(refused)) => {
            input.action_change(now, event, before, Err(refused))
        }
        (Workflow::Role(before), Event::Role(_), after) => {
            input.role_change(now, &before.key, logged, after.err())
        }
        (Workflow::Concern(before), Event::Concern(event), after) => {
            let refused = after.err().map(ToString::to_string);
            let about = before.key.about.clone();
            input.change(now, &log::Entry::ConcernChanged { about, event: event.clone(), refused })
        }
        // Nobody follows what notifiers do: the notices say what became of them.
        (Workflow::Notifier(_), Event::Notifier(_), _) => Change {
            project: Some(input.workflow.project().clone()),
            ..input.only_settles(now).unwrap_or_else(|| Change::quiet(now, Vec::new()))
        },
        // The step refuses events of another kind: all that can be left of one is the effect whose result it was.
        (
            Workflow::Task(_)
            | Workflow::Run(_)
            | Workflow::Vault(_)
            | Workflow::Concern(_)
            | Workflow::Role(_)
            | Workflow::Notifier(_),
            Event::Task(_)
            | Event::Run(_)
            | Event::Vault(_)
            | Event::Concern(_)
            | Event::Role(_)
            | Event::Notifier(_),
            _,
        ) => input.only_settles(now).unwrap_or_else(|| Change::quiet(now, Vec::new())),
    }
}

/// The changes of a workflow's question because of an event.
pub(super) fn question_changes(
    before: &Workflow,
    event: &Event,
    after: &Workflow,
    now: Timestamp,
) -> Vec<question::Change> {
    match (before, event, after) {
        (Workflow::Task(before), Event::Task(event), Workflow::Task(after)) => {
            task::questions(before, event, after, now)
        }
        (Workflow::Run(before), Event::Run(event), Workflow::Run(after)) => {
            run::questions(before, event, after, now)
        }
        (Workflow::Vault(before), Event::Vault(event), Workflow::Vault(after)) => {
            vault::questions(before, event, after, now)
        }
        (Workflow::Concern(before), Event::Concern(_), Workflow::Concern(after)) => {
            concern::questions(before, after, now)
        }
        (
            Workflow::Task(_)
            | Workflow::Run(_)
            | Workflow::Vault(_)
            | Workflow::Concern(_)
            | Workflow::Role(_)
            | Workflow::Notifier(_),
            Event::Task(_)
            | Event::Run(_)
            | Event::Vault(_)
            | Event::Concern(_)
            | Event::Role(_)
            | Event::Notifier(_),
            _,
        ) => Vec::new(),
    }
}

/// What an event says about the work itself: the agent handed it in, or it landed. A question or a failure says nothing of
/// the kind.
pub(super) fn seen_of_work(before: &Workflow, event: &Event, after: &Workflow) -> Option<Observation> {
    if let (Workflow::Task(before), Workflow::Task(after)) = (before, after)
        && before.state != State::Merged
        && after.state == State::Merged
    {
        return Some(Observation::Landed);
    }
    let phase = match event {
        Event::Task(task::Event::PhaseClaimed { phase, .. })
        | Event::Run(run::Event::Session { told: session::Event::PhaseClaimed { phase, .. }, .. }) => *phase,
        Event::Task(_)
        | Event::Run(_)
        | Event::Vault(_)
        | Event::Concern(_)
        | Event::Role(_)
        | Event::Notifier(_) => return None,
    };
    match phase {
        Phase::AwaitingCi | Phase::AwaitingReview | Phase::Done => Some(Observation::Did(Action::Finished)),
        Phase::Escalate | Phase::Failed => None,
    }
}

/// The identity of a session that was just ordered: it exists before anything is launched.
pub(super) fn registered(
    before: &Workflow,
    after: &Workflow,
    config: &Config,
    now: Timestamp,
) -> Option<SessionRow> {
    let (id, role) = (after.id(), after.role());
    let (was, generation) = (before.session().generation, after.session().generation);
    if was == generation {
        return None;
    }
    let model = match after {
        Workflow::Task(_) => config.roles.get(role).model.clone(),
        Workflow::Run(run) => run.model.clone(),
        Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => return None,
    };
    Some(SessionRow {
        session: id.session(generation),
        identity: id.identity(),
        project: id.project().clone(),
        issue: id.issue(),
        role,
        generation,
        host: String::new(),
        model,
        bead_id: None,
        node_id: None,
        hook_path: None,
        tmux_session: match config.runtime(role) {
            Runtime::Tmux => Some(id.identity()),
            Runtime::Headless => None,
        },
        pane: None,
        pid: None,
        start_time: None,
        tree: None,
        created_at: now,
        last_seen: now,
        times_stale: 0,
        ended_at: None,
        exit: None,
        acknowledges: false,
        predecessor: (was > 0).then(|| id.session(was)),
        gauge: None,
        spent: Spent::default(),
    })
}

/// The work state of a workflow that was just begun. Later sessions go on with the one that is there.
pub(super) fn begun(before: &Workflow, after: &Workflow, now: Timestamp) -> Option<WorkState> {
    (before.session().generation == 0 && after.session().generation == 1)
        .then(|| WorkState::begin(after.id().identity(), after.title(), now))
}

/// What a role remembers, as it is stored: its memory and the count of its results, as far as they changed.
pub(super) fn memories(before: &RoleMemory, after: &RoleMemory) -> Result<Vec<Memory>, Error> {
    let role = after.key.role;
    let memory = match &after.memory {
        role_memory::Memory::Gardener(memory) => Some(Memory::new(role.as_str(), &**memory)?),
        role_memory::Memory::Planner(memory) => Some(Memory::new(role.as_str(), &**memory)?),
        role_memory::Memory::Predictor(memory) => Some(Memory::new(role.as_str(), &**memory)?),
        role_memory::Memory::Action(memory) => Some(Memory::new(role.as_str(), &**memory)?),
        role_memory::Memory::Supervisor(memory) => Some(Memory::new(role.as_str(), &**memory)?),
        role_memory::Memory::Nothing => None,
    };
    let memory = memory.filter(|_| before.memory != after.memory);
    let value = (before.value != after.value)
        .then(|| Memory::new(RoleMemory::value_name(role), &after.value))
        .transpose()?;
    Ok(memory.into_iter().chain(value).collect())
}

/// Reads what a role remembers. A role that never did anything remembers nothing.
pub(super) fn remembered(store: &Store, key: &RoleKey) -> Result<RoleMemory, Error> {
    let (project, name) = (&key.project, key.role.as_str());
    let mut memory = key.role.new_memory();
    match &mut memory {
        role_memory::Memory::Gardener(memory) => **memory = store.memory(project, name)?.unwrap_or_default(),
        role_memory::Memory::Planner(memory) => **memory = store.memory(project, name)?.unwrap_or_default(),
        role_memory::Memory::Predictor(memory) => **memory = store.memory(project, name)?.unwrap_or_default(),
        role_memory::Memory::Action(memory) => **memory = store.memory(project, name)?.unwrap_or_default(),
        role_memory::Memory::Supervisor(memory) => {
            **memory = store.memory(project, name)?.unwrap_or_default()
        }
        role_memory::Memory::Nothing => {}
    }
    let value = store.memory(project, &RoleMemory::value_name(key.role))?.unwrap_or_default();
    Ok(RoleMemory { key: key.clone(), memory, value })
}
