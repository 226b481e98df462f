//! Reports of sessions, as they come over the control socket or out of a spool.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::hook::{HookEvent, Report};
use pointsman_core::part::session;
use pointsman_core::session::context::Symptom;
use pointsman_core::session::work::Observation;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_view::session::HookReply;

use super::answer::{done, failed};
use super::board::TaskBoard;
use super::effects::EffectPerformer;
use super::engine::Input;
use super::inbound::{Inbound, Inbox, ThreadReport};
use super::served::Served;
use super::sources::hooks::{self, SessionResponseTimes};
use crate::control::protocol::{FailureKind, Reply, Request};
use crate::hook_spool::Spool;

/// The loop answers in milliseconds; this is for a disk that hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(50);

/// Asks the loop, and waits for its answer.
pub(crate) fn ask_loop(inbox: &Inbox, request: Request) -> Reply {
    let (reply, answer) = sync_channel(1);
    inbox.send(Inbound::Ask { request, reply });
    answer
        .recv_timeout(ANSWER_LIMIT)
        .unwrap_or_else(|_| failed(FailureKind::Failed, words::access::BUSY.to_owned()))
}

/// Takes reports in. Whether their sender may speak for the session is decided before.
pub(crate) struct Reports {
    inbox: Inbox,
    board: TaskBoard,
    world: Arc<EffectPerformer>,
    paces: Mutex<SessionResponseTimes>,
}

impl Reports {
    /// Reports for this loop.
    pub(crate) fn new(inbox: Inbox, board: TaskBoard, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, board, world, paces: Mutex::default() }
    }

    /// Takes one report in.
    pub(crate) fn take(&self, report: Report) -> Reply {
        match self.at_once(&report) {
            Some(reply) => reply,
            None => ask_loop(&self.inbox, Request::Hook { report }),
        }
    }

    /// Takes in what waits in the spool of a workflow. It counts as if it had come over the socket in the first place, so
    /// it counts for this workflow's sessions only: whoever can write a spool is none of the others.
    pub(crate) fn fetch(&self, id: &WorkflowId) {
        let generation = self.board.workflows().get(id).map_or(0, |owner| owner.session().generation);
        for spool in Spool::read_by_daemon(&self.world.paths, id, generation) {
            self.fetch_from(&spool, id);
        }
    }

    fn fetch_from(&self, spool: &Spool, id: &WorkflowId) {
        let fetched = spool.drain_some(|report| {
            if !hooks::is_of(report, id) {
                tracing::warn!(workflow = %id, session = report.session, "a report in another session's spool");
                return true;
            }
            match self.take(report.clone()) {
                Reply::Done { .. } => true,
                // Over: nobody waits for it any more.
                Reply::Failed { kind: FailureKind::Refused | FailureKind::NotFound, .. } => true,
                Reply::Failed { message, .. } => {
                    tracing::warn!(workflow = %id, message, "a report stays in the spool");
                    false
                }
            }
        });
        if let Err(error) = fetched {
            tracing::warn!(workflow = %id, %error, "a spool of reports could not be read");
        }
    }

    /// What can be answered before the loop has written it down; none if the loop must be asked.
    fn at_once(&self, report: &Report) -> Option<Reply> {
        let (id, generation) = WorkflowId::parse_session(&report.session)?;
        let served = self.world.project(id.project())?;
        let picture = self.board.workflows();
        let present = picture.get(&id).is_some_and(|owner| owner.session().generation == generation);
        if !present {
            return None;
        }
        // Before the answer: the agent goes on only then.
        self.world.stances.hear(report);
        hooks::mark_idle(&served.files_of(&id), &report.told);
        if self.paces.lock().unwrap_or_else(PoisonError::into_inner).take(&id, generation, report) {
            let slow = session::Event::SymptomSeen { symptom: Symptom::Slow };
            self.inbox.tell(Input::of_session(id.clone(), generation, slow));
        }
        match &report.told {
            HookEvent::Asked { what } => {
                let identity = id.identity();
                let running = self.world.drivers.find(&identity).ok().flatten();
                let picture =
                    running.map(|running| self.world.tail(&served, &identity, &running)).unwrap_or_default();
                let seen = session::Event::DialogSeen { what: what.clone(), picture };
                let mut input = Input::of_session(id, generation, seen);
                input.dedup = Some(format!("hook-{}", report.id));
                self.inbox.tell(input);
                Some(done(HookReply { taken: true }))
            }
            told if told.matters() => None,
            _ => {
                if let HookEvent::Tool { work, used_tokens, .. } = &report.told {
                    if let Some(event) = used_tokens.and_then(|tokens| self.measured(&served, report, tokens))
                    {
                        self.inbox.tell(Input::of_session(id.clone(), generation, event));
                    }
                    let observations = vec![Observation::Did((*work).into())];
                    self.inbox.report(ThreadReport::Observed { workflow: id, observations, read_to: None });
                }
                Some(done(HookReply { taken: true }))
            }
        }
    }

    /// What a transcript's figures say, by the model that the session runs.
    fn measured(&self, served: &Served, report: &Report, tokens: u64) -> Option<session::Event> {
        let row = self.world.read(|store| store.session(&report.session)).ok().flatten();
        hooks::measured(tokens, row.as_ref(), served.config.context.window)
    }
}
