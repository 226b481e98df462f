//! Long work: CI, review programs, landings. Jobs run on their own threads and report their results as events.
//!
//! Jobs are level-triggered: whoever finds that a result is missing submits the job again, and a job that already
//! runs is left alone. Only the result of a job has to survive a crash.

mod board;
mod checkpoint;
mod checks;
mod outside;
mod program;
mod queue;
mod review;
mod warm;
mod wishes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pointsman_adapters::process::JobKiller;
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::part::contribution::{Awaited, Contribution};
use pointsman_core::queue::EntryId;
use pointsman_core::task::{Effect, ReviewMode, Task};
use pointsman_core::workflow::{self, Workflow, WorkflowId};
use pointsman_store::Store;

pub(super) use checkpoint::adopt;
pub(crate) use checks::{CHECK, ci_log, ci_log_of_pull, ci_verdict};
pub(super) use program::{TreeProgram, check_out, clear_leftovers};
pub(crate) use program::{run_in_checkout, tail, verdict_of};
pub use queue::Outcomes;
pub(super) use queue::style_of;

use super::board::WorkflowMap;
use super::engine::Input;
use super::inbound::Inbox;
use super::reader::Reader;
use super::served::Served;

/// All jobs of the daemon.
pub(crate) struct Jobs {
    pub(crate) inbox: Inbox,
    reader: Reader,
    running: Mutex<Running>,
    freed: Condvar,
    stopping: AtomicBool,
    /// All work is halted.
    halted: AtomicBool,
    boards: Mutex<BTreeMap<ProjectName, board::Following>>,
    /// The file into which notices are logged.
    notices: PathBuf,
}

#[derive(Default)]
struct Running {
    /// Jobs that are queued or at work, by name.
    names: BTreeSet<String>,
    /// Those of them that were asked for once more and look at something that moves on.
    again: BTreeSet<String>,
    /// Programs at work, by the job's name.
    killers: BTreeMap<String, JobKiller>,
    /// Programs that nobody wants any more, by the job's name: also those that are still being prepared.
    called_off: BTreeSet<String>,
    /// How many of a project's runners are taken.
    taken: BTreeMap<ProjectName, u32>,
    /// Merges that a forge does not show yet, by pull request; none for a project whose last landings were not looked at.
    unshown: BTreeMap<ProjectName, BTreeMap<Number, Sha>>,
    /// Projects whose records may be older than their main branch: what happened there is taken as it is, once.
    restored: BTreeSet<ProjectName>,
    /// Who is told of outcomes.
    outcomes: Option<Outcomes>,
    /// The one entry that `merge-queue process` works on.
    only: Option<EntryId>,
    /// Merge queues at work: told when something changes.
    wakers: BTreeMap<ProjectName, Sender<queue::WakeReason>>,
    /// Trees that a person wants tested again, until the project's merge queue takes them. They are kept here and not
    /// with the project because a reload replaces the project.
    retests: BTreeMap<ProjectName, BTreeSet<Sha>>,
    /// The warm trees of projects.
    warm: BTreeMap<ProjectName, Arc<warm::WarmSlot>>,
    /// The projects as they were last read.
    served: BTreeMap<ProjectName, Arc<Served>>,
}

impl Jobs {
    /// No jobs yet. `reader` sees what the daemon wrote, `notices` is the file into which notices are logged.
    pub(crate) fn new(inbox: Inbox, reader: Store, notices: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            inbox,
            reader: Reader::new(reader),
            running: Mutex::default(),
            freed: Condvar::new(),
            stopping: AtomicBool::new(false),
            halted: AtomicBool::new(false),
            boards: Mutex::default(),
            notices,
        })
    }

    pub(super) fn notices(&self) -> &Path {
        &self.notices
    }

    /// Ends a program with everything it started; one that is still being prepared, as soon as it begins.
    fn call_off(&self, name: &str) {
        let mut running = self.lock();
        running.called_off.insert(name.to_owned());
        if let Some(killer) = running.killers.get(name) {
            killer.kill();
        }
    }

    /// Submits everything that is owed by the look of the workflows: after a restart, or if a job was
    /// lost. Cheap if nothing is.
    pub(crate) fn owed(self: &Arc<Self>, served: &Arc<Served>, workflows: &WorkflowMap) {
        let reviewer = ReviewMode::new(&served.config);
        for (id, workflow) in workflows.iter() {
            let Some(contribution) = workflow.contribution().filter(|_| *id.project() == served.config.name)
            else {
                continue;
            };
            match (contribution.awaited(), contribution.pending(), contribution.head()) {
                (Some(Awaited::Push | Awaited::Checks), Some((sha, run)), _) => {
                    self.check(served, workflow, sha, run);
                }
                (Some(Awaited::Review), _, Some(head))
                    if contribution.judge(reviewer) == ReviewMode::Command =>
                {
                    self.review(served, workflow, head);
                }
                (Some(Awaited::Push | Awaited::Checks | Awaited::Review | Awaited::Queue) | None, _, _) => {}
            }
        }
        self.land(served);
    }

    /// Runs CI on pull requests of people that it has not looked at.
    pub(crate) fn check_peoples(self: &Arc<Self>, served: &Arc<Served>, picture: &WorkflowMap) {
        for job in checks::untested(served, picture) {
            let name = format!("ci {}", job.name(&served.config.name));
            self.submit(name, served, move |jobs, served| {
                job.run(jobs, served);
            });
        }
    }

    /// Lets people's pull requests enter the merge queue that ask for it, and those that take something back.
    pub(crate) fn enter_peoples(self: &Arc<Self>, served: &Arc<Served>, picture: &WorkflowMap) {
        let of_tasks = picture.values().filter_map(|workflow| match workflow {
            Workflow::Task(task) if task.key.project == served.config.name => Some(&task.contribution.branch),
            // What a role hands in and cannot land, people may want all the same.
            Workflow::Task(_)
            | Workflow::Run(_)
            | Workflow::Vault(_)
            | Workflow::Concern(_)
            | Workflow::Role(_)
            | Workflow::Notifier(_) => None,
        });
        let of_tasks: BTreeSet<String> = of_tasks.cloned().collect();
        self.submit(format!("wishes {}", served.config.name), served, move |jobs, served| {
            wishes::enter(jobs, served, &of_tasks);
        });
    }

    /// Runs CI on exactly this commit.
    pub(crate) fn check(self: &Arc<Self>, served: &Arc<Served>, owner: &Workflow, sha: &Sha, run: u32) {
        let job = checks::Check { owner: owner.clone(), sha: sha.clone(), run };
        self.submit(job.name(), served, move |jobs, served| job.run(jobs, served));
    }

    /// Has the project's review program look at this commit. People are asked by the pull request.
    pub(crate) fn review(self: &Arc<Self>, served: &Arc<Served>, owner: &Workflow, sha: &Sha) {
        let pr = owner.contribution().and_then(Contribution::pr);
        let (Some(command), Some(pr)) = (served.config.review.command.clone(), pr) else { return };
        let judge = owner.contribution().map(|part| part.judge(ReviewMode::new(&served.config)));
        if judge != Some(ReviewMode::Command) {
            return;
        }
        let (id, sha) = (owner.id(), sha.clone());
        let (project, issue) = (id.project().clone(), id.issue());
        let job = review::Review { project, issue, pr, sha: sha.clone(), command };
        self.submit(job.name(), served, move |jobs, served| {
            if let Err(error) = job.run(jobs, served) {
                let effect = Effect::RequestReview { sha: sha.clone() };
                let gave_up = workflow::Event::effect_gave_up(&id, &effect, error);
                jobs.inbox.tell(Input::of(id.clone(), gave_up));
            }
        });
    }

    /// Saves the task's working tree; unchanged, it costs next to nothing.
    pub(crate) fn checkpoint(self: &Arc<Self>, served: &Arc<Served>, task: &Task, why: &str) {
        let job = checkpoint::Checkpoint::new(task, why);
        // One at work may have read a file before it changed: it looks once more.
        self.submit_anew(job.name(), served, move |jobs, served| job.run(jobs, served));
    }

    /// Works on the project's merge queue until nothing waits in it.
    pub(crate) fn land(self: &Arc<Self>, served: &Arc<Served>) {
        if self
            .read(|store| store.queue_entries(&served.config.name, pointsman_store::EntryScope::Unfinished))
            .is_ok_and(|e| e.is_empty())
        {
            return;
        }
        let name = landing(&served.config.name);
        {
            let mut running = self.lock();
            if running.names.contains(&name) {
                // It may be about to end: then it begins anew.
                running.again.insert(name);
                if let Some(waker) = running.wakers.get(&served.config.name) {
                    let _ = waker.send(queue::WakeReason::Look);
                }
                return;
            }
        }
        self.submit(name, served, queue::work_through);
    }

    /// The projects were read again. A merge queue that works with an older configuration of its project begins anew.
    pub(crate) fn serve(&self, projects: &BTreeMap<ProjectName, Arc<Served>>) {
        let mut running = self.lock();
        let before = std::mem::replace(&mut running.served, projects.clone());
        for (project, older) in before {
            let is_same = projects.get(&project).is_some_and(|served| Arc::ptr_eq(served, &older));
            let name = landing(&project);
            if is_same || !running.names.contains(&name) {
                continue;
            }
            running.again.insert(name);
            if let Some(waker) = running.wakers.get(&project) {
                let _ = waker.send(queue::WakeReason::Look);
            }
        }
    }

    /// The project as it is served now; nothing if it is served no more.
    fn served_now(&self, project: &ProjectName) -> Option<Arc<Served>> {
        self.lock().served.get(project).cloned()
    }

    /// The project's merge queue tests these trees again, whatever it knows of them.
    pub(crate) fn test_again(&self, project: &ProjectName, trees: &[Sha]) {
        self.lock().retests.entry(project.clone()).or_default().extend(trees.iter().cloned());
    }

    /// The trees that were asked for since the last time.
    fn take_retests(&self, project: &ProjectName) -> BTreeSet<Sha> {
        self.lock().retests.remove(project).unwrap_or_default()
    }

    /// From now on merge queues work on this entry only.
    pub(crate) fn work_on_only(&self, entry: EntryId) {
        self.lock().only = Some(entry);
    }

    /// From now on what becomes of branches is told.
    pub(crate) fn tell_outcomes(&self, outcomes: Outcomes) {
        self.lock().outcomes = Some(outcomes);
    }

    /// The one entry that is worked on, if not all are.
    fn only_entry(&self) -> Option<EntryId> {
        self.lock().only
    }

    /// Waits until the project's merge queue has nothing left to do, or the daemon stops.
    pub(crate) fn wait_until_landed(&self, project: &ProjectName) {
        let name = landing(project);
        let mut running = self.lock();
        while running.names.contains(&name) && !self.is_stopping() {
            running = self.freed.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Accounts for every commit of the main branch.
    pub(crate) fn audit(self: &Arc<Self>, served: &Arc<Served>) {
        self.submit(format!("audit {}", served.config.name), served, queue::look_at_main);
    }

    /// The records of this project may be older than its main branch.
    pub(crate) fn was_restored(&self, project: &ProjectName) {
        self.lock().restored.insert(project.clone());
    }

    /// Whether its forge does not show every merge yet, as far as that was looked at.
    pub(crate) fn owes_the_forge(&self, project: &ProjectName) -> bool {
        self.lock().unshown.get(project).is_none_or(|unshown| !unshown.is_empty())
    }

    /// Ends all jobs: their programs go, their answers are owed again at the next start.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for killer in self.lock().killers.values() {
            killer.kill();
        }
        self.freed.notify_all();
        for waker in self.lock().wakers.values() {
            let _ = waker.send(queue::WakeReason::Look);
        }
        let mut running = self.lock();
        while !running.killers.is_empty() {
            let (next, timeout) = self
                .freed
                .wait_timeout(running, std::time::Duration::from_secs(10))
                .unwrap_or_else(PoisonError::into_inner);
            running = next;
            if timeout.timed_out() {
                break;
            }
        }
    }

    /// Jobs that are queued or at work.
    #[cfg(test)]
    pub(super) fn at_work(&self) -> BTreeSet<String> {
        self.lock().names.clone()
    }

    /// Like [`Self::submit`]; what is under way under this name begins anew when it is through.
    pub(super) fn submit_anew(
        self: &Arc<Self>,
        name: String,
        served: &Arc<Served>,
        work: impl Fn(&Arc<Self>, &Arc<Served>) + Send + 'static,
    ) {
        {
            let mut running = self.lock();
            if running.names.contains(&name) {
                running.again.insert(name);
                return;
            }
        }
        self.submit(name, served, work);
    }

    /// Does something on a thread of its own, unless something of this name is under way.
    pub(super) fn submit(
        self: &Arc<Self>,
        name: String,
        served: &Arc<Served>,
        work: impl Fn(&Arc<Self>, &Arc<Served>) + Send + 'static,
    ) {
        if self.is_stopping() || !self.lock().names.insert(name.clone()) {
            return;
        }
        let (jobs, served, finished) = (Arc::clone(self), Arc::clone(served), name.clone());
        let spawned = std::thread::Builder::new().name("job".to_owned()).spawn(move || {
            loop {
                let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&jobs, &served)));
                if caught.is_err() {
                    tracing::error!(job = finished, "panicked");
                }
                // Until its answer is written it looks owed, and would be begun again.
                jobs.inbox.wait_until_written();
                let mut running = jobs.lock();
                if !running.again.remove(&finished) {
                    running.names.remove(&finished);
                    drop(running);
                    jobs.freed.notify_all();
                    return;
                }
            }
        });
        if let Err(error) = spawned {
            tracing::error!(job = name, %error, "no thread for a job");
            self.lock().names.remove(&name);
        }
    }

    /// Waits for a free runner of the project; none if the daemon stops.
    fn runner(self: &Arc<Self>, served: &Served) -> Option<Runner> {
        let name = served.config.name.clone();
        let limit = served.config.ci.concurrency.max(1);
        let mut running = self.lock();
        loop {
            if self.is_stopping() {
                return None;
            }
            let taken = running.taken.entry(name.clone()).or_default();
            if *taken < limit {
                *taken += 1;
                return Some(Runner { jobs: Arc::clone(self), project: name });
            }
            running = self.freed.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the daemon ends, or all work is halted: nothing begins, and what runs gives up.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst) || self.halted.load(Ordering::SeqCst)
    }

    /// Ends all programs without a verdict. What is owed is begun again after [`go_on`](Self::go_on).
    pub(super) fn halt(&self) {
        self.halted.store(true, Ordering::SeqCst);
        let running = self.lock();
        running.killers.values().for_each(JobKiller::kill);
        for waker in running.wakers.values() {
            let _ = waker.send(queue::WakeReason::Look);
        }
        drop(running);
        self.freed.notify_all();
    }

    /// Whether all work is halted.
    pub(super) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::SeqCst)
    }

    /// Lets jobs begin after a halt.
    pub(super) fn go_on(&self) {
        self.halted.store(false, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, question: impl FnOnce(&Store) -> T) -> T {
        self.reader.read(question)
    }
}

/// A runner of a project, given back when dropped.
struct Runner {
    jobs: Arc<Jobs>,
    project: ProjectName,
}

impl Drop for Runner {
    fn drop(&mut self) {
        if let Some(taken) = self.jobs.lock().taken.get_mut(&self.project) {
            *taken = taken.saturating_sub(1);
        }
        self.jobs.freed.notify_all();
    }
}

/// The branches of a project's tasks and of what its roles hand in.
fn branches<'w>(picture: &'w WorkflowMap, project: &'w ProjectName) -> impl Iterator<Item = &'w str> {
    let of_project = picture.values().filter(move |workflow| workflow.id().project() == project);
    of_project.filter_map(|workflow| workflow.contribution()).map(|part| part.branch.as_str())
}

/// The name of the job that works on a project's merge queue.
fn landing(project: &ProjectName) -> String {
    format!("land {project}")
}

/// A number that no run had before, also none of an earlier daemon.
fn run_number() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = super::clock::now().0;
    let next = |last: i64| Some(now.max(last + 1));
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_or(now, |last| now.max(last + 1))
}

/// A job's name in logs and file names.
fn slug(id: &WorkflowId, what: &str) -> String {
    format!("{}-{what}", id.identity())
}
