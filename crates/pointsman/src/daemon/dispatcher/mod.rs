//! The loop receives every input, has it decided and committed, and hands out the effects. It waits only for its
//! channel and the disk.

mod batch;
mod reports;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use pointsman_core::hook::Activity;
use pointsman_core::ids::ProjectName;
use pointsman_core::log;
use pointsman_core::part::session::{self, Stage};
use pointsman_core::task::Effect;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{Change, EffectId, MessageRow, Outgoing, Write};
use pointsman_view::status::Daemon;

use batch::Batch;

use super::answer::{Follow, answer, done};
use super::board::TaskBoard;
use super::clock;
use super::crash::crash_point;
use super::decisions::{self, Made};
use super::effects::{EffectPerformer, Redelivery, ResendOutcome};
use super::engine::{Engine, Input};
use super::halt;
use super::hand_ins;
use super::inbound::Inbound;
use super::outcome::Outcome;
use super::own_identity::LoopTurns;
use super::poller::Poller;
use super::projections::Projections;
use super::projects;
use super::sleep::SleepWatch;
use super::sources::exits::Exits;
use super::sources::phase::Phases;
use super::unreadable;
use super::watch_thread::WatchThread;
use super::web::Bell;
use super::workers::{Work, Workers};
use crate::control::protocol::{Reply, Request};

/// How many things are taken into one transaction at most.
const BATCH: usize = 512;
/// Without anything due the loop still looks at the clock this often: it may have jumped.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// A write that failed (a full disk) is tried again this often; nothing is taken in meanwhile.
const WRITE_AGAIN: Duration = Duration::from_millis(500);

/// Everything the loop needs.
pub(crate) struct Dispatcher {
    pub engine: Engine,
    pub inbound: Receiver<Inbound>,
    pub board: TaskBoard,
    /// What effects are performed with.
    pub world: Arc<EffectPerformer>,
    pub workers: Workers,
    pub phases: Arc<Phases>,
    pub exits: Arc<Exits>,
    /// Identities and work states as files.
    pub(crate) projections: Projections,
    pub(crate) turns: LoopTurns,
    /// The forge, asked now and then.
    pub poller: Arc<Poller>,
    pub runs: Arc<WatchThread>,
    pub notices: Arc<WatchThread>,
    /// Roles that work by rules.
    pub factory: Arc<WatchThread>,
    pub started_at: Timestamp,
    /// What stands in the way of projects.
    pub problems: Vec<String>,
    /// Only merge queues are worked on; what follows for tasks is left to the next daemon.
    pub only_queue: bool,
    /// Messages that are looked after: none while a worker does, else when they may be again.
    pub redelivering: BTreeMap<EffectId, Option<Timestamp>>,
    /// Since when all work is halted.
    pub(crate) halted_since: Option<Timestamp>,
    /// None while it looks.
    pub(crate) sleep: Option<SleepWatch>,
    /// Sessions whose turn has just ended: what was held back is for them now.
    pub between_turns: BTreeSet<String>,
    /// Rings after every turn that wrote something.
    pub(crate) bell: Bell,
    /// The newest entry of the log when it rang last.
    pub(crate) rung_at: i64,
}

impl Dispatcher {
    /// Runs until told to stop. Sessions stay.
    pub(crate) fn run(mut self) {
        if self.only_queue {
            self.engine.only_ask_people();
        }
        let mut acknowledgements_at = clock::now();
        loop {
            let now = clock::now();
            self.turns.turned(now);
            if !self.only_queue {
                let mut sleep = self.sleep.take();
                if let Some(sleep) = &mut sleep {
                    self.until_written("sleep", |d| sleep.look(&mut d.engine, now));
                }
                self.sleep = sleep;
                if !self.engine.is_held() {
                    self.until_written("time", |d| d.engine.tick(now));
                }
                if now >= acknowledgements_at || acknowledgements_at > now.after(LONGEST_SLEEP) {
                    self.until_written("messages", |d| d.chase_acknowledgements(now));
                    acknowledgements_at = now.after(LONGEST_SLEEP);
                }
                self.hand_out();
                self.show();
                self.ring();
            } else {
                self.until_written("concerns", |d| d.engine.look_at_concerns(now));
                self.hand_out();
            }
            let batch = self.receive();
            if self.take(batch) {
                return;
            }
        }
    }

    /// Waits for the next thing, then takes everything else that is there too.
    fn receive(&mut self) -> Batch {
        let mut batch = Batch::default();
        let wake_at = self.engine.wake_at().ok().flatten();
        let sleep = wake_at.map_or(LONGEST_SLEEP, |at| at.since(clock::now())).min(LONGEST_SLEEP);
        match self.inbound.recv_timeout(sleep) {
            Ok(first) => batch.add(first),
            Err(RecvTimeoutError::Timeout) => return batch,
            Err(RecvTimeoutError::Disconnected) => batch.stop = true,
        }
        for _ in 1..BATCH {
            let Ok(next) = self.inbound.try_recv() else { break };
            batch.add(next);
        }
        batch
    }

    /// Writes a batch down; says whether to stop.
    fn take(&mut self, mut batch: Batch) -> bool {
        let now = clock::now();
        let rows = batch.quiet(now);
        let mut inputs = batch.inputs;
        let tells = |performed: &(Outgoing, Outcome)| matches!(performed.0.effect, Effect::Tell { .. });
        let told = batch.performed.iter().any(tells);
        for (outgoing, outcome) in batch.performed {
            self.until_written("an outcome", |d| {
                inputs.extend(d.engine.absorb(&outgoing, &outcome, now)?);
                Ok(())
            });
            crash_point("outcome-absorbed");
        }
        // With the verdicts, and before anything lands by them: what was tested is not tested again.
        self.take_events(&inputs, &rows, now);
        if told {
            crash_point("notice-settled");
        }
        for (inputs, answered) in batch.awaited {
            let mut answers = Vec::new();
            self.until_written("events", |d| {
                answers = d.engine.take(&inputs, now)?;
                Ok(())
            });
            let _ = answered.send(answers);
        }
        for report in batch.reports {
            self.write_report(report, now);
        }
        let mut stop = batch.stop;
        for (request, reply) in batch.asks {
            let (answer, follow) = self.answer(&request);
            if let Some(made) = Made::of(&request, &answer) {
                self.until_written("a decision", |d| decisions::settle(&mut d.engine, &made, now));
            }
            if let Request::Hook { report } = &request
                && self.world.stances.of(&report.session) == Some(Activity::AtPrompt)
            {
                // What was held back for the end of the turn need not wait any longer.
                self.between_turns.insert(report.session.clone());
            }
            if follow.reload {
                self.reload();
            }
            if let Some(served) = follow.land.and_then(|project| self.world.project(&project)) {
                self.projections.nudge();
                self.world.jobs.test_again(&served.config.name, &follow.retest);
                self.world.jobs.land(&served);
            }
            if follow.run {
                self.runs.nudge();
            }
            if follow.notices {
                self.notices.nudge();
            }
            if follow.factory {
                self.factory.nudge();
            }
            stop |= follow.stop;
            let _ = reply.send(answer);
        }
        stop
    }

    /// Takes everything that happened in one commit. If that can never be written, each thing is taken by itself: what is
    /// wrong with one must not cost the others.
    fn take_events(&mut self, inputs: &[Input], rows: &[Change], now: Timestamp) {
        let mut apart = false;
        self.until_written("events", |d| match d.engine.take_with(inputs, rows.to_vec(), now) {
            Err(error) if error.retry() == pointsman_store::Retry::Never && inputs.len() + rows.len() > 1 => {
                apart = true;
                Ok(())
            }
            taken => taken.map(drop),
        });
        if apart {
            self.until_written("verdicts", |d| d.engine.write(rows).map(drop));
            for input in inputs {
                self.until_written("an event", |d| d.engine.take(std::slice::from_ref(input), now).map(drop));
            }
        }
    }

    fn answer(&mut self, request: &Request) -> (Reply, Follow) {
        if let Request::Status = request {
            let mut problems = self.problems.clone();
            if self.world.drivers.tmux.is_marked() == Some(false) {
                problems.push(words::access::UNMARKED_TMUX.to_owned());
            }
            let daemon = Daemon {
                pid: std::process::id(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started_at: self.started_at.into(),
                projects: self.engine.served().cloned().collect(),
                problems,
            };
            return (done(daemon), Follow::default());
        }
        let paths = self.world.paths.clone();
        answer(&paths, &mut self.engine, request)
    }

    /// Reads the projects and their configuration again.
    pub(crate) fn reload(&mut self) {
        let before: BTreeMap<_, _> =
            self.world.projects.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let EffectPerformer { paths, git, environment, .. } = &*self.world;
        match projects::open_all(paths, git, *environment, self.engine.store(), &before) {
            Ok(mut opened) => {
                // While work is halted the engine serves no project: nothing begins, nothing is performed, nothing is due.
                let halted = halt::in_force(paths);
                match &halted {
                    Some(halted) => {
                        opened.problems.push(words::daemon::process::halted(&halted.by));
                        self.world.jobs.halt();
                    }
                    None => self.world.jobs.go_on(),
                }
                self.tell_settings(&opened);
                let served = opened.served.values().filter(|_| halted.is_none());
                self.engine.serve(served.map(|s| Arc::clone(&s.config)));
                self.go_on_after_halt(halted.as_ref().map(|halted| halted.at.0));
                for project in opened.served.keys().filter(|_| halted.is_none()) {
                    if let Err(error) = hand_ins::adopt(&mut self.engine, project, clock::now()) {
                        tracing::error!(%project, %error, "what roles had handed in is not followed yet");
                    }
                }
                let asks = |(project, waiting): &(ProjectName, Vec<_>)| {
                    projects::trust_concern(&self.engine, project, waiting)
                };
                let asked: Vec<Input> = opened.waiting.iter().filter_map(asks).collect();
                self.until_written("settings that wait", |d| d.engine.take(&asked, clock::now()).map(drop));
                self.problems = opened.problems;
                match unreadable::tell(&mut self.engine, &self.world, clock::now()) {
                    Ok(lines) => self.problems.extend(lines),
                    Err(error) => tracing::error!(%error, "snapshots could not be looked through"),
                }
                self.world.jobs.serve(&opened.served);
                *self.world.projects.write().unwrap_or_else(std::sync::PoisonError::into_inner) =
                    opened.served;
                self.poller.ask_all();
            }
            Err(error) => tracing::error!(%error, "projects could not be read"),
        }
    }

    /// Work that was halted is given the time that it had left.
    fn go_on_after_halt(&mut self, halted_since: Option<Timestamp>) {
        let before = std::mem::replace(&mut self.halted_since, halted_since);
        let (Some(since), None) = (before, halted_since) else { return };
        let now = clock::now();
        let by_ms = i64::try_from(now.since(since).as_millis()).unwrap_or(i64::MAX);
        self.until_written("a resume", |d| d.engine.skip_time(by_ms, Change::quiet(now, Vec::new()), now));
    }

    /// Says what changed files have changed, or what is wrong with them. A mistake is told once.
    fn tell_settings(&mut self, opened: &projects::Opened) {
        let mut changes = Vec::new();
        for (project, keys) in &opened.changed {
            tracing::info!(%project, keys = keys.join(", "), "the settings have changed");
            let entry = log::Entry::SettingsChanged { keys: keys.clone() };
            changes.push(Change::logged(clock::now(), project, &entry));
        }
        for (project, why) in &opened.refused {
            if !self.problems.contains(why) {
                tracing::error!("{why}");
                let entry = log::Entry::SettingsRefused { why: why.clone() };
                changes.push(Change::logged(clock::now(), project, &entry));
            }
        }
        if changes.is_empty() {
            return;
        }
        if let Err(error) = self.engine.write(&changes) {
            tracing::error!(%error, "a change of the settings was not written down");
        }
    }

    /// Gives due effects to the workers.
    fn hand_out(&mut self) {
        match self.engine.due(clock::now()) {
            Ok(due) => {
                for (outgoing, owner) in due {
                    self.workers.give(Work::Effect(Box::new(outgoing), owner));
                }
            }
            Err(error) => tracing::error!(%error, "the outbox could not be read"),
        }
    }

    /// Tells the web if the log has grown.
    fn ring(&mut self) {
        if let Ok(newest) = self.engine.store().last_seq()
            && newest != self.rung_at
        {
            self.rung_at = newest;
            self.bell.ring();
        }
    }

    /// Shows everybody the new picture and lets them follow it.
    fn show(&mut self) {
        if self.engine.take_runs_changed() {
            self.factory.nudge();
        }
        if !self.engine.take_changed() {
            return;
        }
        self.board.publish(&self.engine);
        self.projections.nudge();
        let workflows = self.board.workflows();
        self.phases.follow(&workflows);
        self.exits.follow(&workflows, &self.world.exits);
        let projects = self.world.projects.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        for served in projects.values() {
            self.world.jobs.owed(served, &workflows);
        }
    }

    /// Messages that an acknowledging agent has not acknowledged in time go out again, as often as
    /// allowed; then it is said aloud. Those that were held back are tried again as well.
    fn chase_acknowledgements(&mut self, now: Timestamp) -> Result<(), pointsman_store::Error> {
        let mut given_up = Vec::new();
        let between_turns = std::mem::take(&mut self.between_turns);
        self.redelivering.retain(|_, again_at| again_at.is_none_or(|at| at > now));
        for row in self.engine.store().unacknowledged(now)? {
            let Some(served) = self.world.project(row.workflow.project()) else { continue };
            let Some(owner) = self.engine.workflow(&row.workflow) else { continue };
            let current =
                owner.session().generation == row.generation && owner.session().stage == Stage::Alive;
            let session = row.workflow.session(row.generation);
            let was_held = row.tries == 0 && between_turns.contains(&session);
            let due = was_held
                || row.sent_at.is_some_and(|at| at.after(served.config.timing.ack_timeout.duration()) <= now);
            let looked_after = match self.redelivering.get(&row.id) {
                Some(Some(again_at)) => *again_at > now && !was_held,
                Some(None) => true,
                None => false,
            };
            if !current || !due || looked_after {
                continue;
            }
            let acknowledges = self.engine.store().session(&session)?.is_some_and(|s| s.acknowledges);
            if row.tries > 0 && !acknowledges {
                continue;
            }
            if row.tries < served.config.limits.delivery_tries {
                self.redelivering.insert(row.id, None);
                self.workers.give(Work::Redelivery(Box::new(Redelivery { row, owner })));
            } else {
                let headline = row.headline.text().to_owned();
                let told = session::Event::MessageUnacknowledged { message: row.id.0, headline };
                let mut input = Input::of_session(row.workflow, row.generation, told);
                input.first.push(Change::quiet(now, vec![Write::MessageUnacknowledged(row.id)]));
                given_up.push(input);
            }
        }
        self.engine.take(&given_up, now).map(drop)
    }

    /// Whatever became of a message, it can be looked after again; one that waits is left alone for a while.
    fn redelivered(
        &mut self,
        message: &MessageRow,
        became: Option<ResendOutcome>,
        now: Timestamp,
    ) -> Option<Write> {
        self.redelivering.remove(&message.id);
        match became {
            Some(ResendOutcome::Sent) => {
                let path = message.path.clone().unwrap_or_default();
                Some(Write::MessageSent { id: message.id, path })
            }
            Some(ResendOutcome::Arrived) => Some(Write::MessageAcknowledged(message.id)),
            Some(ResendOutcome::NotNow) | None => {
                let served = self.world.project(message.workflow.project());
                let pause = served.map_or(LONGEST_SLEEP, |s| s.config.timing.ack_timeout.duration());
                self.redelivering.insert(message.id, Some(now.after(pause)));
                None
            }
        }
    }

    /// Tries a write until it is on disk. While the disk is full nothing is lost: whatever happens
    /// waits in the inbox, and what was taken from it waits here.
    #[allow(clippy::disallowed_methods, reason = "a full disk does not say when it has room again")]
    fn until_written(
        &mut self,
        what: &str,
        mut write: impl FnMut(&mut Self) -> Result<(), pointsman_store::Error>,
    ) {
        loop {
            let written = match write(self) {
                // The memory is behind the disk: it is read again, and the write is computed from that.
                Err(pointsman_store::Error::Overtaken) => self.engine.reload().and_then(|()| write(self)),
                other => other,
            };
            match written {
                Ok(()) => return,
                Err(error) if error.retry() == pointsman_store::Retry::Never => {
                    tracing::error!(
                        what,
                        error = super::effects::chain(&error),
                        "dropped: it can never be written"
                    );
                    return;
                }
                Err(error) => {
                    tracing::error!(
                        what,
                        error = super::effects::chain(&error),
                        "not written yet, trying again"
                    );
                    std::thread::sleep(WRITE_AGAIN);
                }
            }
        }
    }
}
