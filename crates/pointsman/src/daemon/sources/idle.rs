//! Looks at sessions that have not said where they are: do they sit at their prompt?

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pointsman_adapters::headless::TurnState;
use pointsman_adapters::phase_file;
use pointsman_adapters::watch::terminal::{TerminalLook, look};
use pointsman_core::action::is_idle;
use pointsman_core::part::session::{self, Demand, Stage};
use pointsman_core::run::{self, Run};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::{Workflow, WorkflowId};
use pointsman_store::MessageRow;

use crate::daemon::board::WorkflowMap;
use crate::daemon::clock;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::engine::Input;
use crate::daemon::inbound::Inbox;
use crate::daemon::served::{Served, SessionFiles};

/// Says in an idle marker that we wrote it, not the agent.
const OUR_MARK: &str = "seen by pointsman\n";

/// A person who typed into a session is given this time to type on.
const TYPED_LATELY: Duration = Duration::from_secs(600);

/// The looks that were made so far.
pub(crate) struct Idle {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    /// When each session is looked at next, and how long its transcript was at the last look.
    looks: BTreeMap<String, (Timestamp, u64)>,
}

impl Idle {
    /// No looks yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, looks: BTreeMap::new() }
    }

    /// Looks at every session whose time has come; answers when the next one's comes.
    pub(crate) fn look(&mut self, picture: &WorkflowMap, now: Timestamp) -> Option<Timestamp> {
        let mut next: BTreeMap<String, (Timestamp, u64)> = BTreeMap::new();
        // A message that waits to be given is somebody's turn, and not the agent's. One that is to hand over must have read
        // the request, too.
        let waiting = self.world.read(|store| store.unacknowledged(now)).unwrap_or_default();
        let may_be_unread = |row: &MessageRow| row.tries == 0 || self.acknowledges(row);
        let unread: BTreeSet<&WorkflowId> =
            waiting.iter().filter(|row| may_be_unread(row)).map(|row| &row.workflow).collect();
        let held: BTreeSet<&WorkflowId> =
            waiting.iter().filter(|row| row.tries == 0).map(|row| &row.workflow).collect();
        let watched = |id: &WorkflowId, owner: &Workflow| match owner.session().handoff {
            Some(_) => owner.session().waits_to_hand_over(owner.demand()) && !unread.contains(id),
            None => is_watched(owner) && !held.contains(id),
        };
        for (id, owner) in picture.iter().filter(|(id, owner)| watched(id, owner)) {
            let (Some(session), Some(served)) = (owner.session_name(), self.world.project(id.project()))
            else {
                continue;
            };
            let pause = served.config.timing.idle_look.duration();
            let session_files = served.files_of(id);
            let identity = id.identity();
            let entry = match self.looks.get(&session) {
                None => (now.after(pause), transcript_length(&session_files)),
                Some((at, length)) if *at > now => (*at, *length),
                Some((_, length)) => {
                    let grown = transcript_length(&session_files);
                    let generation = owner.session().generation;
                    let own = session_files.as_seen_by(generation, &session_files.idle_marker);
                    let at_prompt = (marked_by_agent(&own)
                        || self.at_prompt(&session, &identity, &session_files, grown > *length))
                        && !self.is_typed_into(&identity, now);
                    let looked = session::Event::IdleLooked { at_prompt };
                    self.inbox.tell(Input::of_session(id.clone(), generation, looked));
                    if let Workflow::Run(run) = owner {
                        self.give_up_silent(&served, run, &session_files);
                    }
                    (now.after(pause), grown)
                }
            };
            next.insert(session, entry);
        }
        self.looks = next;
        self.looks.values().map(|(at, _)| *at).min()
    }

    /// Whether the session of a message says what it has read. Of another one nothing more is heard: it has what was typed.
    fn acknowledges(&self, row: &MessageRow) -> bool {
        let session = row.workflow.session(row.generation);
        let known = self.world.read(|store| store.session(&session));
        known.is_ok_and(|known| known.is_some_and(|known| known.acknowledges))
    }

    /// Whether a person typed into its terminal a short while ago: then the next step is theirs.
    fn is_typed_into(&self, identity: &str, now: Timestamp) -> bool {
        let typed_at = self.world.drivers.tmux.typed_at(identity).unwrap_or_else(|error| {
            tracing::debug!(identity, %error, "nobody knows whether a person types");
            None
        });
        typed_at.is_some_and(|at| now.since(at) < TYPED_LATELY)
    }

    /// The agent's own idle marker says so, or it waits on its terminal and printed nothing.
    fn at_prompt(&self, session: &str, identity: &str, session_files: &SessionFiles, printed: bool) -> bool {
        // One without a terminal knows itself whether it has anything to do.
        if let Ok(Some(doing)) = self.world.drivers.headless.doing(identity) {
            return doing == TurnState::Nothing;
        }
        if marked_by_agent(&session_files.idle_marker) {
            return true;
        }
        let pid = self.world.read(|store| store.session(session)).ok().flatten().and_then(|row| row.pid);
        let waits = pid.is_some_and(|pid| look(pid) == TerminalLook::AwaitingInput);
        let idle = waits && !printed;
        let marked = if idle {
            phase_file::write_state_file(&session_files.idle_marker, OUR_MARK.as_bytes())
                .map_err(|e| e.to_string())
        } else {
            phase_file::remove_own_file(&session_files.idle_marker).map_err(|e| e.to_string())
        };
        if let Err(error) = marked {
            tracing::debug!(session, error, "idle marker");
        }
        idle
    }
}

impl Idle {
    /// A run whose session shows no sign of life for too long is given up, where its role has a limit for that.
    fn give_up_silent(&self, served: &Served, run: &Run, session_files: &SessionFiles) {
        let limit = run.formula.role().idle_limit(&served.config.timing);
        let Some(limit) = limit.map(|limit| limit.duration()) else { return };
        let written = std::fs::metadata(&session_files.transcript).ok().map(|file| clock::written(&file));
        let since = written.into_iter().chain(run.done.iter().map(|done| done.at)).chain([run.started_at]);
        let idle = since.max().is_some_and(|since| is_idle(since, limit, clock::now()));
        if idle && run.next_step().is_some() {
            let why = words::action::idle(limit);
            let event = run::Event::GaveUp { generation: run.session.generation, why, unusable: false };
            self.inbox.tell(Input::of_run(run.key(), event));
        }
    }
}

fn is_watched(owner: &Workflow) -> bool {
    let works = owner.demand() == Demand::Work && owner.session().stage == Stage::Alive;
    let session = owner.session();
    works && !(owner.has_phase() && session.reminded) && !session.may_be_idle()
}

fn transcript_length(session_files: &SessionFiles) -> u64 {
    std::fs::symlink_metadata(&session_files.transcript).map_or(0, |m| m.len())
}

fn marked_by_agent(path: &Path) -> bool {
    match phase_file::read_result_file(path, 4096) {
        Ok(Some(bytes)) => bytes != OUR_MARK.as_bytes(),
        Ok(None) | Err(_) => false,
    }
}
