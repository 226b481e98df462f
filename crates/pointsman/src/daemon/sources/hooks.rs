//! Reports from the hooks of agents, over the control socket or from a spool that was filled while no daemon ran.
//!
//! A session says so itself, and may lie: a report counts for the session it names only if that one is the present one,
//! and a message is acknowledged only by the session it was sent to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pointsman_adapters::phase_file;
use pointsman_core::config::Runtime;
use pointsman_core::hook::{HookEvent, Report};
use pointsman_core::part::session::{self, Stage};
use pointsman_core::session::context::{self, ResponseTimes, Symptom};
use pointsman_core::session::work::Observation;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{Change, EffectId, SessionRow, Write};
use pointsman_view::session::HookReply;

use crate::control::protocol::{FailureKind, Reply};
use crate::daemon::answer::{done, failed};
use crate::daemon::board::WorkflowMap;
use crate::daemon::effects::{EffectPerformer, chain};
use crate::daemon::engine::{Engine, Input};
use crate::daemon::inbound::Inbox;
use crate::daemon::served::SessionFiles;
use crate::daemon::{budget, clock};
use crate::hook_spool::Spool;

/// A limit that has stopped a session is used up, or nearly: what is told of it may be a moment old.
const LIMIT_REACHED: u32 = 90;

/// Says in an idle marker who wrote it.
const IDLE_MARK: &str = "hook\n";

/// Under which name it is remembered that a session's hooks work: Claude's own name for the conversation.
pub(crate) fn conversation_name(session: &str) -> String {
    format!("hooks-{session}")
}

/// Whether a session of this name is the present one of its workflow.
fn is_present(engine: &Engine, session: &str) -> bool {
    let Some((id, generation)) = WorkflowId::parse_session(session) else { return false };
    engine
        .workflow(&id)
        .is_some_and(|owner| owner.session().generation == generation && owner.session().is_listening())
}

/// Whether a report names a session of this workflow.
pub(crate) fn is_of(report: &Report, id: &WorkflowId) -> bool {
    WorkflowId::parse_session(&report.session).is_some_and(|(named, _)| named == *id)
}

/// Takes one report in.
pub(crate) fn take(engine: &mut Engine, report: &Report) -> Reply {
    let Some((id, generation)) = WorkflowId::parse_session(&report.session) else {
        return failed(FailureKind::NotFound, words::daemon::request::no_session(&report.session));
    };
    if !is_present(engine, &report.session) {
        return failed(FailureKind::Refused, words::daemon::request::session_over(&report.session));
    }
    match act(engine, &id, generation, report) {
        Ok(()) => done(HookReply { taken: true }),
        Err(error) => failed(FailureKind::Failed, chain(&error)),
    }
}

fn act(
    engine: &mut Engine,
    id: &WorkflowId,
    generation: u32,
    report: &Report,
) -> Result<(), pointsman_store::Error> {
    let now = clock::now();
    let project = id.project();
    let tell = |engine: &mut Engine, told: session::Event| {
        let mut input = Input::of_session(id.clone(), generation, told);
        input.dedup = Some(named(report));
        engine.take(&[input], now).map(drop)
    };
    match &report.told {
        HookEvent::Started { conversation, model, .. } => {
            let name = conversation_name(&report.session);
            let conversation = conversation.as_deref().unwrap_or("unknown");
            let mut writes = vec![Write::cursor(project, name, conversation)];
            if let Some(mut row) = engine.store().session(&report.session)? {
                row.acknowledges = true;
                row.model = model.clone().or(row.model);
                writes.push(Write::Session(Box::new(row)));
            }
            engine.write(&[Change::quiet(now, writes)]).map(drop)
        }
        HookEvent::Prompted { messages } => acknowledge(engine, id, generation, messages),
        HookEvent::Tool { work, .. } => engine.observe(id, &[Observation::Did((*work).into())], None, now),
        HookEvent::Stopped { messages, used_tokens, said, .. } => {
            acknowledge(engine, id, generation, messages)?;
            if let (Some(tokens), Some(config)) = (*used_tokens, engine.config(project)) {
                let row = engine.store().session(&report.session)?;
                if let Some(measured) = measured(tokens, row.as_ref(), config.context.window) {
                    engine.take(&[Input::of_session(id.clone(), generation, measured)], now)?;
                }
            }
            // A headless program reports its turns itself.
            let role = engine.workflow(id).map(|owner| owner.role());
            let runtime = engine.config(project).zip(role).map(|(config, role)| config.runtime(role));
            if runtime != Some(Runtime::Headless) {
                budget::turn_ended(engine, id, &report.session, &named(report), now)?;
            }
            tell(engine, session::Event::TurnEnded)?;
            let streams = engine.config(project).is_some_and(|config| config.agent.stream_responses);
            let Some(text) = said.clone().filter(|_| streams) else { return Ok(()) };
            let mut input = Input::of_session(id.clone(), generation, session::Event::ResponseGiven { text });
            input.dedup = Some(format!("said-{}", report.id));
            engine.take(&[input], now).map(drop)
        }
        HookEvent::Failed { error, details, until } => {
            let (error, details) = (error.clone(), details.clone());
            let full = budget::used_up_quota(engine.store(), project, LIMIT_REACHED, now)?;
            let full = full.filter(|_| error == "rate_limit");
            let until = until.or(full.map(|window| window.resets_at));
            tell(engine, session::Event::TurnFailed { error, details, until })
        }
        HookEvent::Measured { gauge, spent } => match engine.store().session(&report.session)? {
            Some(row) => {
                let spent = budget::beside_relay(engine, &row, *spent)?;
                budget::count(engine, id, generation, &row, *gauge, Some(spent))
            }
            None => Ok(()),
        },
        HookEvent::Asked { what } => {
            tell(engine, session::Event::DialogSeen { what: what.clone(), picture: String::new() })
        }
        HookEvent::Compacting => tell(engine, session::Event::SymptomSeen { symptom: Symptom::Compacting }),
        HookEvent::Compacted => tell(engine, session::Event::ContextCompacted),
        HookEvent::Idle | HookEvent::Ended { .. } | HookEvent::Other { .. } => Ok(()),
    }
}

/// Under which name it is remembered that a report was taken in.
fn named(report: &Report) -> String {
    format!("hook-{}", report.id)
}

/// Turns the figures of a session's transcript into an event about its context.
pub(crate) fn measured(tokens: u64, row: Option<&SessionRow>, window: Option<u64>) -> Option<session::Event> {
    let model = row.and_then(|row| row.model.as_deref());
    let gauge = context::from_tokens(tokens, model, window)?;
    Some(session::Event::ContextMeasured { gauge })
}

/// The pace at which sessions answer, by their hooks. Only in memory: a new daemon takes its baseline anew.
#[derive(Default)]
pub(crate) struct SessionResponseTimes(BTreeMap<WorkflowId, (u32, ResponseTimes)>);

impl SessionResponseTimes {
    /// Takes the report of a session in; says whether that one has become slow.
    pub(crate) fn take(&mut self, id: &WorkflowId, generation: u32, report: &Report) -> bool {
        let (of, pace) = self.0.entry(id.clone()).or_default();
        if *of != generation {
            (*of, *pace) = (generation, ResponseTimes::default());
        }
        match &report.told {
            HookEvent::Prompted { .. } | HookEvent::Tool { done: true, .. } => pace.asked(report.at),
            HookEvent::Tool { done: false, .. } | HookEvent::Stopped { .. } => {
                return pace.answered(report.at);
            }
            HookEvent::Compacted => pace.compacted(),
            HookEvent::Started { .. }
            | HookEvent::Failed { .. }
            | HookEvent::Measured { .. }
            | HookEvent::Asked { .. }
            | HookEvent::Idle
            | HookEvent::Compacting
            | HookEvent::Ended { .. }
            | HookEvent::Other { .. } => {}
        }
        false
    }
}

fn acknowledge(
    engine: &mut Engine,
    workflow: &WorkflowId,
    generation: u32,
    messages: &[i64],
) -> Result<(), pointsman_store::Error> {
    let mut writes = Vec::new();
    for id in messages.iter().map(|id| EffectId(*id)) {
        let theirs = engine.store().message(id)?;
        if theirs.is_some_and(|row| row.workflow == *workflow && row.generation == generation) {
            writes.push(Write::MessageAcknowledged(id));
        }
    }
    if writes.is_empty() {
        return Ok(());
    }
    engine.write(&[Change::quiet(clock::now(), writes)]).map(drop)
}

/// The marker that idle looks go by follows what the session says.
pub(crate) fn mark_idle(session_files: &SessionFiles, told: &HookEvent) {
    let marked = match told {
        HookEvent::Stopped { busy: false, .. } | HookEvent::Idle => {
            phase_file::write_state_file(&session_files.idle_marker, IDLE_MARK.as_bytes())
                .map_err(|e| e.to_string())
        }
        HookEvent::Prompted { .. } | HookEvent::Tool { .. } | HookEvent::Stopped { busy: true, .. } => {
            phase_file::remove_own_file(&session_files.idle_marker).map_err(|e| e.to_string())
        }
        HookEvent::Started { .. }
        | HookEvent::Failed { .. }
        | HookEvent::Measured { .. }
        | HookEvent::Asked { .. }
        | HookEvent::Compacting
        | HookEvent::Compacted
        | HookEvent::Ended { .. }
        | HookEvent::Other { .. } => Ok(()),
    };
    if let Err(error) = marked {
        tracing::debug!(error, "idle marker");
    }
}

/// Takes in what was told while no daemon ran, in its order. A report that was half delivered counts once.
pub(crate) fn read_spools(world: &EffectPerformer, engine: &mut Engine) {
    world.stances.keep(|session| is_present(engine, session));
    let owners = engine.workflows().map(|owner| (owner.id(), owner.session().generation));
    let spools: Vec<(WorkflowId, Spool)> = owners
        .flat_map(|(id, generation)| {
            Spool::read_by_daemon(&world.paths, &id, generation).map(|spool| (id.clone(), spool))
        })
        .collect();
    for (id, spool) in spools {
        let read = spool.drain_some(|report| {
            if !is_of(report, &id) {
                tracing::warn!(workflow = %id, session = report.session, "a report in another session's spool");
                return true;
            }
            match take(engine, report) {
                Reply::Done { .. } => {
                    world.stances.hear(report);
                    true
                }
                // Over: nobody waits for it any more.
                Reply::Failed { kind: FailureKind::Refused | FailureKind::NotFound, .. } => true,
                Reply::Failed { message, .. } => {
                    tracing::warn!(message, "a report stays in the spool");
                    false
                }
            }
        });
        if let Err(error) = read {
            tracing::warn!(workflow = %id, %error, "a spool of reports could not be read");
        }
    }
}

/// Sessions of Claude Code whose hooks have not been heard: told once each, when their time is up.
pub(crate) struct SilentSessions {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    told: BTreeSet<String>,
}

impl SilentSessions {
    /// Nobody is silent yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, told: BTreeSet::new() }
    }

    /// Looks at every session that should have reported by now.
    pub(crate) fn listen(&mut self, picture: &WorkflowMap, now: Timestamp) {
        let mut told = BTreeSet::new();
        for (id, owner) in picture.iter().filter(|(_, owner)| owner.session().stage == Stage::Alive) {
            let (Some(session), Some(served)) = (owner.session_name(), self.world.project(id.project()))
            else {
                continue;
            };
            // What has no terminal tells everything by its output.
            let headless = served.config.runtime(owner.role()) == Runtime::Headless;
            if headless || !served.config.agent_kind(owner.role()).capabilities().hooks {
                continue;
            }
            if self.told.contains(&session) || self.is_heard(id, &session) {
                told.insert(session);
                continue;
            }
            let begun =
                self.world.read(|store| store.session(&session)).ok().flatten().map(|row| row.created_at);
            let patience = served.config.timing.hook_silence.duration();
            if begun.is_some_and(|at| at.after(patience) <= now) {
                let (generation, required) = (owner.session().generation, served.config.agent.require_hooks);
                let identity = id.identity();
                let running = self.world.drivers.find(&identity).ok().flatten();
                let picture =
                    running.map(|running| self.world.tail(&served, &identity, &running)).unwrap_or_default();
                let silent = session::Event::HooksSilent { required, picture };
                let mut input = Input::of_session(id.clone(), generation, silent);
                input.dedup = Some(format!("hooks-silent-{session}"));
                self.inbox.tell(input);
                told.insert(session);
            }
        }
        self.told = told;
    }

    fn is_heard(&self, id: &WorkflowId, session: &str) -> bool {
        let name = conversation_name(session);
        self.world.read(|store| store.cursor(Some(id.project()), &name)).ok().flatten().is_some()
    }
}
