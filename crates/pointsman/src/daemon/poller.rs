//! The thread of everything that has to be asked: forges, phase files as a net, idle terminals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::ids::ProjectName;
use pointsman_core::schedule::{WebhookSupport, forge_pace};
use pointsman_core::task::Stage;
use pointsman_core::time::Timestamp;

use super::actions;
use super::board::{TaskBoard, TaskMap};
use super::clock;
use super::effects::EffectPerformer;
use super::inbound::{Inbox, ThreadReport};
use super::reports::Reports;
use super::restored;
use super::reviews::Reviews;
use super::served::Served;
use super::sources::{
    forge, heartbeat::Heartbeats, hooks::SilentSessions, idle::Idle, outages, phase::Phases, work::Work,
};
use super::webhooks::{Topic, Webhooks};

/// Without anything due the thread still looks at the clock this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// A forge that does not answer is asked again after this long, or its own pace if that is slower.
const AFTER_TROUBLE: Duration = Duration::from_secs(5);

/// However often a server rings, it is asked no more often than this.
const BETWEEN_RINGS: Duration = Duration::from_secs(2);
/// Servers ring several times for one thing: so long after the first ring they are asked.
const GATHER: Duration = Duration::from_millis(500);
/// Main on a server is looked at every so many paces, beside when the queue or a ring asks for it.
const MAIN_EVERY: u32 = 720;

/// A question to the forge after a webhook came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    /// What is open, and whether it has changed.
    Plain,
    /// Where main is as well.
    WithMain,
}

/// Wakes the thread.
#[derive(Default)]
pub(crate) struct Poller {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Default)]
struct Wanted {
    projects: BTreeSet<ProjectName>,
    soon: BTreeMap<ProjectName, Question>,
    all: bool,
    stop: bool,
}

impl Poller {
    /// Ask this project's forge now.
    pub(crate) fn ask(&self, project: &ProjectName) {
        self.change(|wanted| {
            wanted.projects.insert(project.clone());
        });
    }

    /// Ask this project's forge, now or as soon as the last time is a moment ago: a server that tells everything twice,
    /// or ten things at once, is asked once.
    pub(crate) fn ask_soon(&self, project: &ProjectName, question: Question) {
        self.change(|wanted| {
            let wants = wanted.soon.entry(project.clone()).or_insert(question);
            *wants = question.max(*wants);
        });
    }

    /// Ask every forge now.
    pub(crate) fn ask_all(&self) {
        self.change(|wanted| wanted.all = true);
    }

    /// End the thread.
    pub(crate) fn stop(&self) {
        self.change(|wanted| wanted.stop = true);
    }

    fn change(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Starts the thread.
    pub(crate) fn start(
        self: &Arc<Self>,
        inbox: Inbox,
        board: TaskBoard,
        world: Arc<EffectPerformer>,
        phases: Arc<Phases>,
        reports: Arc<Reports>,
    ) -> std::io::Result<std::thread::JoinHandle<()>> {
        let mut asking = self.asking(inbox, board, world, phases, reports);
        std::thread::Builder::new().name("poller".to_owned()).spawn(move || {
            loop {
                let next = asking.round(clock::now());
                if !asking.wait(next.since(clock::now())) {
                    return;
                }
            }
        })
    }

    /// What the thread does, a round at a time.
    pub(super) fn asking(
        self: &Arc<Self>,
        inbox: Inbox,
        board: TaskBoard,
        world: Arc<EffectPerformer>,
        phases: Arc<Phases>,
        reports: Arc<Reports>,
    ) -> PollSchedule {
        let poller = Arc::clone(self);
        let idle = Idle::new(inbox.clone(), Arc::clone(&world));
        let work = Work::new(inbox.clone(), Arc::clone(&world));
        let pulse = Heartbeats::new(inbox.clone(), Arc::clone(&world));
        let silence = SilentSessions::new(inbox.clone(), Arc::clone(&world));
        let webhooks = Webhooks::new(&world, self);
        let reviews = Reviews::new(&world);
        PollSchedule {
            poller,
            inbox,
            board,
            world,
            phases,
            reports,
            idle,
            work,
            pulse,
            silence,
            webhooks,
            reviews,
            forge_at: BTreeMap::new(),
            asked_at: BTreeMap::new(),
            seen: BTreeSet::new(),
            main_at: BTreeMap::new(),
            memories: BTreeMap::new(),
            files_at: None,
        }
    }
}

/// Decides what is asked when. Time comes in, so that a test plays a night in a moment.
pub(super) struct PollSchedule {
    poller: Arc<Poller>,
    inbox: Inbox,
    board: TaskBoard,
    world: Arc<EffectPerformer>,
    phases: Arc<Phases>,
    reports: Arc<Reports>,
    idle: Idle,
    work: Work,
    pulse: Heartbeats,
    silence: SilentSessions,
    webhooks: Webhooks,
    reviews: Arc<Reviews>,
    forge_at: BTreeMap<ProjectName, Timestamp>,
    asked_at: BTreeMap<ProjectName, Timestamp>,
    /// Projects whose forge was looked at since the daemon began.
    seen: BTreeSet<ProjectName>,
    main_at: BTreeMap<ProjectName, Timestamp>,
    memories: BTreeMap<ProjectName, forge::ForgeCache>,
    files_at: Option<Timestamp>,
}

/// Our own forge costs nothing to ask; one on a server is asked as often as there is something to expect.
fn pace(served: &Served, picture: &TaskMap, now: Timestamp) -> Duration {
    let pace = served.config.timing.forge_poll.duration();
    if !served.config.forge.kind.is_hosted() {
        return pace;
    }
    let ours = picture.values().filter(|task| task.key.project == served.config.name);
    let webhook_support =
        served.listening.as_ref().map_or(WebhookSupport::Asking, |l| l.webhook_support(Topic::Talk, now));
    forge_pace(pace, webhook_support, ours.map(|task| &**task), now)
}

impl PollSchedule {
    /// A forge that has been silent for long is a question, and so no more when it answers.
    fn tell_outage(&self, served: &Served, now: Timestamp) {
        if let Some(input) = outages::of_forge(served, &self.board.workflows(), now) {
            self.inbox.tell(input);
        }
    }

    /// One round of questions; answers when the next one is due.
    pub(super) fn round(&mut self, now: Timestamp) -> Timestamp {
        self.take_wishes(now);
        let projects = self.world.projects.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut next = now.after(LONGEST_SLEEP);
        self.webhooks.follow(&projects, now);
        for (name, served) in &projects {
            let pace = pace(served, &self.board.look(), now);
            self.world.jobs.follow_board(served, &self.board.look(), now);
            let due = self
                .forge_at
                .get(name)
                .is_none_or(|at| *at <= now || *at > now.after(pace.max(AFTER_TROUBLE)));
            if due {
                self.asked_at.insert(name.clone(), now);
                let memory = self.memories.entry(name.clone()).or_default();
                let pause = match forge::ask(served, &self.board.look(), &self.board.workflows(), memory, now)
                {
                    Ok(inputs) => {
                        served.heard_all();
                        self.inbox.tell_all(inputs);
                        // After what it showed.
                        if self.seen.insert(name.clone()) {
                            self.inbox.report(ThreadReport::ForgeSeen { project: name.clone() });
                        }
                        restored::remember_forge(served);
                        self.tell_outage(served, now);
                        self.world.jobs.check_peoples(served, &self.board.workflows());
                        self.world.jobs.enter_peoples(served, &self.board.workflows());
                        self.reviews.look(served);
                        actions::look(&self.world, served);
                        self.look_at_main(served, now);
                        self.world.jobs.land(served);
                        pace
                    }
                    Err(error) => {
                        tracing::warn!(project = %name, %error, "the forge does not answer");
                        served.heard_nothing(now);
                        self.tell_outage(served, now);
                        pace.max(AFTER_TROUBLE)
                    }
                };
                self.forge_at.insert(name.clone(), now.after(pause));
            }
            next = next.min(self.forge_at[name]);
        }
        let rescan = projects.values().map(|s| s.config.timing.phase_rescan.duration()).min();
        if let Some(rescan) = rescan {
            if self.files_at.is_none_or(|at| at <= now || at > now.after(rescan)) {
                self.phases.look_at_all();
                self.work.look(&self.board.workflows(), now);
                self.silence.listen(&self.board.workflows(), now);
                self.fetch_reports();
                if let Err(error) = self.world.drivers.tmux.replace_unmarked() {
                    tracing::warn!(%error, "the tmux server of an earlier release cannot be replaced");
                }
                self.files_at = Some(now.after(rescan));
            }
            next = next.min(self.files_at.unwrap_or(next));
        }
        if let Some(at) = self.idle.look(&self.board.workflows(), now) {
            next = next.min(at);
        }
        next.min(self.pulse.feel(&self.board.workflows(), now).unwrap_or(next))
    }

    /// The last words of a turn that went to a spool, because we were not there yet or too busy: no further hook brings
    /// them.
    fn fetch_reports(&self) {
        for (id, owner) in self.board.workflows().iter() {
            if owner.session().stage == Stage::Alive {
                self.reports.fetch(id);
            }
        }
    }

    /// Our own forge is asked every time. On a server main is looked at now and then, because the queue does so itself
    /// whenever it lands something; and while a merge is not shown yet, which is told again with it.
    fn look_at_main(&mut self, served: &Arc<Served>, now: Timestamp) {
        let name = &served.config.name;
        let hosted = served.config.forge.kind.is_hosted();
        let due = self.main_at.get(name).is_none_or(|at| *at <= now);
        if hosted && !due && !self.world.jobs.owes_the_forge(name) {
            return;
        }
        self.main_at.insert(name.clone(), now.after(served.config.timing.forge_poll.duration() * MAIN_EVERY));
        self.world.jobs.audit(served);
    }

    /// What was wished for since the last round.
    fn take_wishes(&mut self, now: Timestamp) {
        let poller = Arc::clone(&self.poller);
        let mut wanted = poller.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut wanted.all) {
            self.forge_at.clear();
        }
        for project in std::mem::take(&mut wanted.projects) {
            self.forge_at.remove(&project);
        }
        for (project, question) in std::mem::take(&mut wanted.soon) {
            let free = self.asked_at.get(&project).map_or(Timestamp(0), |at| at.after(BETWEEN_RINGS));
            if let Some(at) = self.forge_at.get_mut(&project) {
                *at = (*at).min(free.max(now.after(GATHER)));
            }
            if question == Question::WithMain {
                self.main_at.remove(&project);
            }
        }
    }

    /// Until something is wished for, at most so long; false to stop.
    fn wait(&self, span: Duration) -> bool {
        let mut wanted = self.poller.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if !wanted.stop && !wanted.all && wanted.projects.is_empty() && wanted.soon.is_empty() {
            let waited = self.poller.changed.wait_timeout(wanted, span);
            wanted = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        !wanted.stop
    }
}
