//! Sessions whose process is gone.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pointsman_adapters::driver;
use pointsman_adapters::process;
use pointsman_adapters::watch::exits::{Error, ExitWatch, Exited};
use pointsman_core::part::session::{self, Stage};
use pointsman_core::session::liveness::{is_believed, is_mass_death};
use pointsman_core::task::Exit;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::SessionRow;

use super::phase::Phases;
use crate::daemon::board::WorkflowMap;
use crate::daemon::clock;
use crate::daemon::effects::{EffectPerformer, epoch};
use crate::daemon::engine::Input;
use crate::daemon::inbound::Inbox;

/// tmux notices the end of a program a moment after the kernel does, on a busy machine a long one.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);

/// Deaths within this long count as "at once".
const AT_ONCE: Duration = Duration::from_secs(2);

/// Watches the processes of all sessions.
pub(crate) struct Exits {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    phases: Arc<Phases>,
    watched: Mutex<BTreeSet<String>>,
    /// When sessions died lately.
    deaths: Mutex<Vec<Instant>>,
}

impl Exits {
    /// Nothing is watched yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>, phases: Arc<Phases>) -> Self {
        Self { inbox, world, phases, watched: Mutex::default(), deaths: Mutex::default() }
    }

    /// Watches every session that is known to run, once.
    pub(crate) fn follow(self: &Arc<Self>, picture: &WorkflowMap, watch: &ExitWatch) {
        let gone = self.watch_new(picture, watch);
        if gone.is_empty() {
            return;
        }
        // Their last lines take a moment to come, and the loop waits for nothing.
        let exits = Arc::clone(self);
        let told = std::thread::Builder::new()
            .name("ends".to_owned())
            .spawn(move || gone.iter().for_each(|session| exits.gone(session)));
        if let Err(error) = told {
            tracing::error!(%error, "no thread to tell the end of sessions; looked at again");
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Watches what is not watched yet; answers those whose process is gone already.
    fn watch_new(&self, picture: &WorkflowMap, watch: &ExitWatch) -> Vec<String> {
        let mut gone = Vec::new();
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let alive: BTreeSet<String> = picture
            .values()
            .filter(|owner| owner.session().stage == Stage::Alive)
            .filter_map(|owner| owner.session_name())
            .collect();
        watched.retain(|session| alive.contains(session));
        if self.world.jobs.is_halted() {
            watched.clear();
            return gone;
        }
        for session in alive {
            if watched.contains(&session) {
                continue;
            }
            let row = match self.world.read(|store| store.session(&session)) {
                Ok(Some(row)) => row,
                Ok(None) => continue,
                Err(error) => {
                    tracing::error!(session, %error, "a session cannot be looked up");
                    continue;
                }
            };
            watched.insert(session.clone());
            match (row.pid, row.start_time) {
                (Some(pid), Some(start)) => match watch.watch(session.clone(), pid, start) {
                    Ok(()) => {}
                    Err(Error::AlreadyGone { .. }) => gone.push(session),
                    Err(error) => tracing::error!(session, %error, "its end will not be noticed"),
                },
                // It was gone before tmux could say which process it was.
                _ => gone.push(session),
            }
        }
        gone
    }

    /// The kernel says that a watched process is gone.
    pub(crate) fn exited(&self, exited: &Exited) {
        self.gone(&exited.key);
    }

    /// Tells the end of a session: first what it last wrote, then that it is over.
    fn gone(&self, session: &str) {
        let Some((id, generation)) = WorkflowId::parse_session(session) else { return };
        // Ended by us, and not to be replaced yet. It is found gone again when work goes on.
        if self.world.jobs.is_halted() {
            return;
        }
        let row = self.world.read(|store| store.session(session)).ok().flatten();
        // The second witness: the pid does not mean that process any more.
        if let Some(SessionRow { pid: Some(pid), start_time: Some(start), .. }) = &row
            && process::is_alive(*pid, *start)
        {
            tracing::warn!(session, "reported gone, but its process is there: not believed");
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
            return;
        }
        if !self.is_believable(session) {
            return;
        }
        // At once: what outlived it must not go on until its successor starts, which may be much later.
        if let Some(served) = self.world.project(id.project()) {
            self.world.end_processes(&served.files_of(&id), generation);
        }
        self.phases.look_before_end(&id);
        let (exit, tail) = self.last_of(&id, session);
        let mut input = Input::of_session(id, generation, session::Event::Ended { exit, tail });
        if let Some(row) = row {
            input.sessions.push(SessionRow { ended_at: Some(clock::now()), exit: Some(exit), ..row });
        }
        self.inbox.tell(input);
    }

    /// If most sessions look dead at once, suspect ourselves: can this witness see a process that is
    /// certainly alive, namely our own? What it then says is believed; otherwise nothing is.
    fn is_believable(&self, session: &str) -> bool {
        let sessions = self.watched.lock().unwrap_or_else(PoisonError::into_inner).len();
        let mut deaths = self.deaths.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        deaths.retain(|at| now.duration_since(*at) < AT_ONCE);
        deaths.push(now);
        let sees_itself = || {
            let me = std::process::id();
            process::start_time(me).is_some_and(|started| process::is_alive(me, started))
        };
        let believed = is_believed(deaths.len(), sessions, sees_itself);
        if !believed {
            tracing::error!(session, "most sessions look dead, and so do we: nothing is believed");
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
        } else if is_mass_death(deaths.len(), sessions.max(deaths.len())) {
            let deaths = deaths.len();
            tracing::warn!(deaths, sessions, "most sessions died at once; their processes are gone");
        }
        believed
    }

    /// How it ended, and its last lines. Without anybody who saw an exit status it died.
    fn last_of(&self, id: &WorkflowId, session: &str) -> (Exit, String) {
        let died = (Exit::Crashed, String::new());
        let Some(served) = self.world.project(id.project()) else { return died };
        match self.world.drivers.wait_for_exit(&id.identity(), NOTICED_WITHIN) {
            Ok(Some(running)) if running.epoch == epoch(session) => {
                let exit = match running.exit {
                    Some(driver::Exit { status: Some(0), signal: None }) => Exit::Exited,
                    Some(driver::Exit { .. }) | None => Exit::Crashed,
                };
                (exit, self.world.tail(&served, &id.identity(), &running))
            }
            Ok(_) => died,
            Err(error) => {
                tracing::debug!(session, %error, "no last lines");
                died
            }
        }
    }
}
