//! The next duties of all runs, decided anew at every look.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pointsman_adapters::phase_file::{self, Reading, read_result_file};
use pointsman_adapters::process::{self, free_memory_mb};
use pointsman_core::action::is_idle;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::run::{
    Duty, Event, Policy, RESULT_BYTES, Run, Status, Subject, check_result, duty, read_result,
};
use pointsman_core::task::Phase;
use pointsman_core::time::Timestamp;
use pointsman_core::timetable::entries;
use pointsman_core::words;
use pointsman_store::{RunScope, SessionRow};
use sha2::{Digest, Sha256};

use super::replies;
use super::session::{self, RunSessionFiles};
use crate::daemon::clock;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::{Inbound, Inbox};
use crate::daemon::served::Served;
use crate::daemon::timetable::ProjectFacts;

/// Timetables have minutes; they are looked at this often.
const CLOCK: Duration = Duration::from_secs(10);
/// A process must be missed so often before it counts as dead.
const MISSES: u32 = 2;

/// Writes down what happened to a run, with the sessions it is about; false if the run did not allow it.
pub(super) type Tell<'t> = dyn Fn(Event, Vec<SessionRow>) -> bool + 't;

/// Looks after all runs.
pub(crate) struct Watch {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    /// How often a session's process was looked for in vain.
    missed: BTreeMap<String, u32>,
    /// When the clock is looked at next.
    clock_at: Timestamp,
}

impl Watch {
    /// Nothing was seen yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, missed: BTreeMap::new(), clock_at: Timestamp::default() }
    }

    /// Does what is due.
    pub(crate) fn look(&mut self) {
        let projects = self.world.projects.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut followed = BTreeSet::new();
        let now = clock::now();
        // The clock may have been set back.
        let clock_due = self.clock_at <= now || self.clock_at > now.after(CLOCK);
        if clock_due {
            self.clock_at = now.after(CLOCK);
        }
        for served in projects.values() {
            if clock_due {
                self.tell_the_time(served);
            }
            match self.world.read(|store| store.runs(&served.config.name, RunScope::Open)) {
                Ok(open) => {
                    for run in &open {
                        followed.insert(run.session(run.generation));
                        self.attend(served, run);
                    }
                }
                Err(error) => tracing::error!(%error, "runs could not be read"),
            }
        }
        self.missed.retain(|session, _| followed.contains(session));
    }

    /// Has the loop look at the clock, where anything runs by itself.
    pub(in crate::daemon) fn tell_the_time(&self, served: &Arc<Served>) {
        let config = &served.config;
        if entries(config).is_empty() {
            return;
        }
        let main = served.mirror.remote_head(&served.primary).ok().flatten();
        let tasks = self.world.read(|store| store.tasks(Some(&config.name))).unwrap_or_default();
        let tasks: Vec<_> = tasks.iter().map(|task| (task.key.issue, task.state, task.phase)).collect();
        let inputs = format!("{main:?} {tasks:?}");
        let digest: String = Sha256::digest(inputs).iter().map(|byte| format!("{byte:02x}")).collect();
        let standing = ProjectFacts { free_memory_mb: free_memory_mb(), inputs: digest };
        self.inbox.send(Inbound::Timetable { project: config.name.clone(), standing });
    }

    fn attend(&mut self, served: &Arc<Served>, run: &Run) {
        let policy = Policy::new(&served.config, run.formula.role());
        match duty(run, &policy, clock::now()) {
            Duty::Wait => {}
            Duty::Time => {
                // Nothing but a word is missing: what was done counts.
                let through = run.status == Status::Running && run.next_step().is_none();
                let session_files = RunSessionFiles::new(served, run);
                let event = if through { finished(run, &session_files) } else { Event::TimePassed };
                drop(tell(&self.inbox, run, event, Vec::new()));
            }
            Duty::Start => self.with_session(served, run, session::start),
            Duty::End => self.with_session(served, run, session::end),
            Duty::Follow => self.follow(served, run),
        }
    }

    /// Sessions are started and ended on threads of their own, one thing at a time for each run.
    fn with_session(
        &self,
        served: &Arc<Served>,
        run: &Run,
        work: fn(&EffectPerformer, &Served, &Run, &Tell<'_>) -> anyhow::Result<()>,
    ) {
        let (inbox, world, owned) = (self.inbox.clone(), Arc::clone(&self.world), run.clone());
        let jobs = Arc::clone(&self.world.jobs);
        jobs.submit(format!("run {} {}", run.project, run.id), served, move |_, served| {
            let told = |event, sessions| tell(&inbox, &owned, event, sessions).is_some();
            if let Err(error) = work(&world, served, &owned, &told) {
                // It is tried again at the next look, until the run's time is up.
                tracing::warn!(run = %owned.identity(), error = format!("{error:#}"), "not yet");
            }
        });
    }

    /// Looks at what the session says, and whether it is there.
    fn follow(&mut self, served: &Arc<Served>, run: &Run) {
        let generation = run.generation;
        let session_files = RunSessionFiles::new(served, run);
        let event = match phase_file::read(&session_files.phase_file) {
            Reading::Text { first_line, reason, .. } => match Phase::parse(&first_line) {
                Some(Phase::Failed) => Some(Event::GaveUp {
                    generation,
                    why: reason.unwrap_or_else(|| words::daemon::run::without_reason().to_owned()),
                }),
                Some(Phase::Done) => Some(finished(run, &session_files)),
                Some(Phase::Escalate) => {
                    self.ask(run, reason.as_deref().unwrap_or(words::daemon::session::no_reason_given()));
                    if let Err(error) = replies::pass_on(&self.world, &self.inbox, &session_files, run) {
                        tracing::warn!(run = %run.identity(), error = format!("{error:#}"), "not answered yet");
                    }
                    None
                }
                Some(Phase::AwaitingCi | Phase::AwaitingReview) | None => None,
            },
            Reading::Missing | Reading::Empty | Reading::Refused(_) => None,
        };
        let event = event.or_else(|| self.idle(served, run, &session_files));
        let event = match (event, run.next_step()) {
            (Some(event), _) => Some(event),
            // All steps are done, and who could still write a result is gone.
            (None, None) => self.is_dead(run).then(|| finished(run, &session_files)),
            (None, Some(_)) => self.is_dead(run).then_some(Event::SessionDied { generation }),
        };
        if let Some(event) = event {
            drop(tell(&self.inbox, run, event, Vec::new()));
        }
    }

    /// An action whose session shows no sign of life for too long is given up.
    fn idle(&self, served: &Served, run: &Run, session_files: &RunSessionFiles) -> Option<Event> {
        let limit = run.formula.role().idle_limit(&served.config.timing)?.duration();
        let since = session_files
            .last_active()
            .into_iter()
            .chain(run.done.iter().map(|done| done.at))
            .chain([run.started_at])
            .max()?;
        let idle = run.next_step().is_some() && is_idle(since, limit, clock::now());
        idle.then(|| Event::GaveUp { generation: run.generation, why: words::action::idle(limit) })
    }

    /// Whether the session's process is gone, seen twice.
    fn is_dead(&mut self, run: &Run) -> bool {
        let session = run.session(run.generation);
        let row = self.world.read(|store| store.session(&session)).ok().flatten();
        let Some((pid, start_time)) = row.and_then(|row| row.pid.zip(row.start_time)) else { return false };
        if process::is_alive(pid, start_time) {
            self.missed.remove(&session);
            return false;
        }
        let missed = self.missed.entry(session).or_default();
        *missed += 1;
        *missed >= MISSES
    }

    fn ask(&self, run: &Run, why: &str) {
        let posting = Posting {
            key: format!("run/{}/{}/{}/{why}", run.project, run.id, run.generation),
            project: run.project.clone(),
            topic: Topic::of_formula(&run.formula.name),
            link: None,
            question: None,
            notice: pointsman_core::words::run::question(run, why),
        };
        if let Err(error) = self.world.put_up(&posting) {
            tracing::error!(%error, "nobody could be told of a run");
        }
    }
}

/// The session is through: what it left as its result decides.
fn finished(run: &Run, session_files: &RunSessionFiles) -> Event {
    let generation = run.generation;
    let read = read_result_file(&session_files.result(generation), RESULT_BYTES as u64)
        .map_err(|why| why.to_string());
    let checked = read.and_then(|bytes| {
        let result = read_result(bytes.as_deref())?;
        // Steps that are missing are the better reason.
        match run.next_step() {
            None => check_result(run, result.as_ref()).map(|()| result),
            Some(_) => Ok(result),
        }
    });
    match checked {
        Ok(result) => Event::Finished { generation, result },
        Err(why) => Event::GaveUp { generation, why },
    }
}

/// Has the loop write down what happened; the run as it is then, if it was taken.
fn tell(inbox: &Inbox, run: &Run, event: Event, sessions: Vec<SessionRow>) -> Option<Run> {
    let (written, answer) = sync_channel(1);
    let project: ProjectName = run.project.clone();
    inbox.send(Inbound::Run { project, id: run.id, event, sessions, written });
    // The daemon's end drops the other side.
    let taken = answer.recv().ok().flatten().map(|run| *run);
    let of_forge = matches!(run.subject, Some(Subject::Review { .. } | Subject::Action { .. }));
    if of_forge && taken.as_ref().is_some_and(|run| run.status.is_over()) {
        // What came of it belongs on the forge.
        inbox.send(Inbound::AskForge { project: run.project.clone() });
    }
    taken
}
