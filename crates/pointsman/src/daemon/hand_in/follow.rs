//! Hand-ins on their way: pushed, opened as a pull request, tested, approved, and put into the merge queue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use pointsman_adapters::git::BranchName;
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::retry::Retry;
use pointsman_core::config::CiRunner;
use pointsman_core::hand_in::{
    Checks, HandIn, HandInFacts, HandInFiles, Memory, Need, Next, QueueStatus, UnreportedCi, next,
};
use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::role::Role;
use pointsman_core::task::{CiVerdict, Notice, Policy};
use pointsman_core::time::Timestamp;
use pointsman_core::verdict::of_checks;
use pointsman_core::words;
use pointsman_store::EntryStatus;

use super::{HandInEvent, HandInReport, memory, send};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::Inbound;
use crate::daemon::jobs::CHECK;
use crate::daemon::served::Served;
use crate::daemon::sources::forge::{NET, ReadTimes};

/// Looks after what is open, of all projects.
pub(crate) struct HandIns {
    world: Arc<EffectPerformer>,
    /// What was seen and needs nothing. All of it can be lost.
    looks: Mutex<BTreeMap<OfRole, ReadTimes<PullRequestSigns>>>,
    /// Since when the CI of which commit is waited for.
    waits: Mutex<BTreeMap<OfRole, (Sha, Timestamp)>>,
}

/// A role of a project.
type OfRole = (ProjectName, Role);

/// Signs of news about a pull request: if none has changed, nothing needs to be asked.
#[derive(Clone, PartialEq)]
pub(crate) struct PullRequestSigns {
    mark: String,
    hand_in: HandIn,
    newer: Option<Sha>,
    line: QueueStatus,
}

impl HandIns {
    /// Nothing was seen yet.
    pub(crate) fn new(world: &Arc<EffectPerformer>) -> Arc<Self> {
        Arc::new(Self { world: Arc::clone(world), looks: Mutex::default(), waits: Mutex::default() })
    }

    /// Looks at what is open of a project, on a thread of its own; once more if that is under way.
    pub(crate) fn look(self: &Arc<Self>, served: &Arc<Served>) {
        let project = &served.config.name;
        let is_open = |role: Role| {
            self.world.read(|store| memory(store, project, role)).map_or(true, |memory| memory.open.is_some())
        };
        if !Role::handing_in().any(is_open) {
            return;
        }
        let (hand_ins, jobs) = (Arc::clone(self), Arc::clone(&self.world.jobs));
        jobs.submit_anew(format!("hand-ins {project}"), served, move |_, served| {
            for role in Role::handing_in() {
                if let Err(error) = hand_ins.attend(served, role) {
                    // It is tried again when the forge is next asked.
                    tracing::warn!(%role, error = format!("{error:#}"), "what was handed in has to wait");
                }
            }
        });
    }

    /// Does what is next for what a role has handed in.
    fn attend(&self, served: &Arc<Served>, role: Role) -> anyhow::Result<()> {
        let (project, now) = (&served.config.name, clock::now());
        let memory = self.world.read(|store| memory(store, project, role))?;
        let Some(open) = &memory.open else { return Ok(()) };
        let line = self.in_line(open)?;
        let signs = self.signs(served, &memory, open, &line);
        let net = served.config.timing.forge_poll.duration() * NET;
        if signs.as_ref().is_some_and(|signs| self.is_seen(project, role, signs, net, now)) {
            return Ok(());
        }
        let pr = match open.pr {
            Some(number) => served.forge.pull_request(number)?,
            None => None,
        };
        let look = |checks| {
            let newer = memory.newer.as_ref().map(|newer| &newer.commit);
            let review = Policy::new(&served.config).review;
            next(&HandInFacts { hand_in: open, pr: pr.as_ref(), line: line.clone(), checks, review, newer })
        };
        // What CI says is asked for only if it matters.
        let mut checks = Checks::Green;
        let mut next = look(Checks::Green);
        if matches!(next, Next::Enter | Next::AskReview | Next::Tell(Need::Review { .. })) {
            checks = self.checks(served, role, open)?;
            next = look(checks.clone());
        }
        match next {
            Next::Open => self.open(served, role, open),
            Next::Replace => {
                let head = pr.and_then(|pr| pr.head_sha);
                self.replace(served, role, open, memory.newer.as_ref(), head)
            }
            Next::PutBack => self.put_back(served, role, open, pr.and_then(|pr| pr.head_sha)),
            Next::Wait => {
                if let Some(signs) = signs.filter(|_| checks != Checks::Open) {
                    self.saw(project, role, signs, now);
                }
                Ok(())
            }
            Next::AskReview => {
                self.ask_review(served, role, open);
                Ok(())
            }
            Next::Enter => {
                moved(&self.world, served, role, open, HandInEvent::Entered)?;
                crash_point("hand-in-entered");
                self.world.jobs.land(served);
                Ok(())
            }
            Next::Leave => moved(&self.world, served, role, open, HandInEvent::Left),
            Next::Tell(need) => tell(&self.world, served, role, open, need),
            Next::Over(outcome) => moved(&self.world, served, role, open, HandInEvent::Over(outcome)),
        }
    }

    /// Pushes the branch and opens its pull request; both are found if they are there.
    fn open(&self, served: &Served, role: Role, open: &HandIn) -> anyhow::Result<()> {
        let base = served.primary.as_str();
        // One that is closed was opened and closed while nobody wrote it down.
        let number = match served.forge.pull_request_from(&open.branch, base)? {
            Some(pr) => pr.number,
            None => {
                let why = match push(served, &open.branch, &open.taken.commit, Expect::Absent)? {
                    PushOutcome::Done => None,
                    PushOutcome::Stale { refname, .. } => {
                        Some(words::daemon::git::moved_by_somebody(refname))
                    }
                    PushOutcome::Refused { message } => {
                        Some(words::daemon::git::push_refused(&open.branch, &message))
                    }
                };
                if let Some(why) = why {
                    return self.not_opened(served, role, open, &why);
                }
                crash_point("hand-in-pushed");
                let (title, body) = words::hand_in::pull_request(role, &open.taken, &served.config);
                match served.forge.ensure_pull_request(&open.branch, base, &title, &body) {
                    Ok(number) => number,
                    Err(error) if error.retry() == Retry::Never => {
                        return self.not_opened(served, role, open, &error.to_string());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        crash_point("hand-in-opened");
        moved(&self.world, served, role, open, HandInEvent::Opened(number))?;
        crash_point("hand-in-noted");
        Ok(())
    }

    /// The forge says no: people are told, once, and it is tried again when the forge is next asked.
    fn not_opened(&self, served: &Served, role: Role, open: &HandIn, why: &str) -> anyhow::Result<()> {
        let run = open.taken.run;
        let notice = words::hand_in::not_opened(&served.config.name, role, run, why);
        self.world.put_up(&posting(served, role, &format!("{run}/not-opened"), None, notice))?;
        anyhow::bail!(words::daemon::hand_in::not_opened_yet(why))
    }

    /// What is newer takes the place of what is open, if its branch is still where we left it.
    fn replace(
        &self,
        served: &Served,
        role: Role,
        open: &HandIn,
        newer: Option<&HandInFiles>,
        head: Option<Sha>,
    ) -> anyhow::Result<()> {
        let (Some(newer), Some(pr), Some(head)) = (newer, open.pr, head) else { return Ok(()) };
        // Before it is there: something still newer may come before this one is written down.
        if !open.pushed.contains(&newer.commit) {
            moved(&self.world, served, role, open, HandInEvent::Pushing(newer.commit.clone()))?;
        }
        match push(served, &open.branch, &newer.commit, Expect::At(head))? {
            PushOutcome::Done => {}
            // Whose it is now is seen at the next look.
            PushOutcome::Stale { refname, .. } => {
                anyhow::bail!(words::daemon::git::moved_by_somebody(refname))
            }
            PushOutcome::Refused { message } => {
                let (project, link) = (&served.config.name, served.forge.pull_request_link(pr));
                let notice = words::hand_in::not_replaced(project, role, pr, newer.run, &message);
                let key = format!("{pr}/not-replaced/{}", newer.run);
                self.world.put_up(&posting(served, role, &key, Some(link), notice))?;
                anyhow::bail!(words::daemon::git::push_refused(&open.branch, &message))
            }
        }
        crash_point("hand-in-replaced");
        let marker = format!("hand-in-{}", newer.run);
        match served.forge.comment_on_pull_request_once(pr, &marker, &words::hand_in::replaced(newer)) {
            Ok(_) => {}
            // It is there, whether or not people can be told below it.
            Err(error) if error.retry() == Retry::Never => {
                tracing::warn!(pr, %error, "no comment on what is newer")
            }
            Err(error) => return Err(error.into()),
        }
        moved(&self.world, served, role, open, HandInEvent::Replaced(newer.commit.clone()))
    }

    /// A candidate of the merge queue gives way to the commit that people look at.
    fn put_back(&self, served: &Served, role: Role, open: &HandIn, head: Option<Sha>) -> anyhow::Result<()> {
        let Some(head) = head else { return Ok(()) };
        match push(served, &open.branch, &open.taken.commit, Expect::At(head))? {
            PushOutcome::Done => Ok(()),
            // Whose it is now is seen at the next look.
            PushOutcome::Stale { refname, .. } => {
                anyhow::bail!(words::daemon::git::moved_by_somebody(refname))
            }
            PushOutcome::Refused { message } => {
                let need = Need::Line { commit: open.taken.commit.clone(), why: message };
                let refused = words::daemon::git::push_refused_again(&open.branch);
                anyhow::ensure!(open.told.as_ref() != Some(&need), refused);
                tell(&self.world, served, role, open, need)
            }
        }
    }

    fn in_line(&self, open: &HandIn) -> anyhow::Result<QueueStatus> {
        let Some(id) = open.entry else { return Ok(QueueStatus::No) };
        let Some(entry) = self.world.read(|store| store.queue_entry(id))? else { return Ok(QueueStatus::No) };
        Ok(match entry.status {
            EntryStatus::Queued | EntryStatus::Building | EntryStatus::Testing => QueueStatus::Waiting,
            EntryStatus::Landed => QueueStatus::Landed,
            EntryStatus::Removed if open.left => QueueStatus::No,
            EntryStatus::Conflict | EntryStatus::Red | EntryStatus::Stale | EntryStatus::Removed => {
                QueueStatus::Out(
                    entry.reason.unwrap_or_else(|| words::daemon::hand_in::no_reason().to_owned()),
                )
            }
        })
    }

    /// What CI says about the very commit; where nobody else would, it is run.
    fn checks(&self, served: &Arc<Served>, role: Role, open: &HandIn) -> anyhow::Result<Checks> {
        let (config, commit) = (&served.config, &open.taken.commit);
        // Only a forge's list tells that a CI has not even begun.
        let mut begun = true;
        let verdict = match config.ci.kind.capabilities().runner {
            CiRunner::Nobody => Some(CiVerdict::Passed),
            // The forge may not have taken what our CI said.
            CiRunner::Ourselves => match of_checks(&served.forge.checks(commit)?, &[CHECK.to_owned()]) {
                Some(verdict) => Some(verdict),
                None => self.world.jobs.tested(served, commit)?,
            },
            CiRunner::Outside => match &served.woodpecker {
                Some(ci) => ci.verdict(commit)?,
                None => {
                    let checks = served.forge.checks(commit)?;
                    begun = !checks.is_empty();
                    of_checks(&checks, &config.ci.required)
                }
            },
        };
        match verdict {
            Some(CiVerdict::Passed) => return Ok(Checks::Green),
            Some(CiVerdict::Failed { .. } | CiVerdict::Infra { .. } | CiVerdict::TimedOut { .. }) => {
                return Ok(Checks::Red);
            }
            None => {}
        }
        if let Some(pr) = open.pr {
            self.world.jobs.check_pull_request(served, pr, commit);
        }
        let silence = UnreportedCi {
            waited: self.waited(&config.name, role, commit, clock::now()),
            limit: config.timing.ci_timeout.duration(),
            begun,
            required: !config.ci.required.is_empty(),
            gate: config.gate().is_some(),
            files: &open.taken.files,
        };
        Ok(silence.checks())
    }

    /// How long its CI was waited for. A daemon that was not there gives it its time anew.
    fn waited(&self, project: &ProjectName, role: Role, commit: &Sha, now: Timestamp) -> Duration {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let since = waits.entry((project.clone(), role)).or_insert_with(|| (commit.clone(), now));
        if since.0 != *commit {
            *since = (commit.clone(), now);
        }
        now.since(since.1)
    }

    /// A program is asked here; the review agent finds it among the open pull requests.
    fn ask_review(&self, served: &Arc<Served>, role: Role, open: &HandIn) {
        let Some(pr) = open.pr else { return };
        let (world, open) = (Arc::clone(&self.world), open.clone());
        let commit = open.taken.commit.clone();
        self.world.jobs.review_pull_request(served, pr, &commit.clone(), move |served, why| {
            tracing::warn!(pr, why, "the review program is of no use");
            let need = Need::Review { commit: commit.clone() };
            if let Err(error) = tell(&world, served, role, &open, need) {
                tracing::warn!(pr, error = format!("{error:#}"), "nobody was told of it yet");
            }
        });
    }

    /// Where the forge tells when it changed; one that it does not list is not open.
    fn signs(
        &self,
        served: &Served,
        memory: &Memory,
        open: &HandIn,
        line: &QueueStatus,
    ) -> Option<PullRequestSigns> {
        let mark = served.forge.marks()?.remove(&open.pr?)?;
        let newer = memory.newer.as_ref().map(|newer| newer.commit.clone());
        Some(PullRequestSigns { mark, hand_in: open.clone(), newer, line: line.clone() })
    }

    fn is_seen(
        &self,
        project: &ProjectName,
        role: Role,
        signs: &PullRequestSigns,
        net: Duration,
        now: Timestamp,
    ) -> bool {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.get(&(project.clone(), role)).is_some_and(|look| look.is_enough(signs, net, now))
    }

    fn saw(&self, project: &ProjectName, role: Role, signs: PullRequestSigns, now: Timestamp) {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (project.clone(), role);
        let look = ReadTimes::again(looks.get(&key), signs, now);
        looks.insert(key, look);
    }
}

/// Moves the branch from where we left it. If it is where it should be, that is the same.
fn push(served: &Served, branch: &str, to: &Sha, expect: Expect) -> anyhow::Result<PushOutcome> {
    let branch = BranchName::new(branch).with_context(|| words::daemon::git::not_a_branch_name(branch))?;
    let push = PushRef { refname: branch.full(), change: Change::To(to.clone()), expect };
    Ok(served.mirror.push(&[push])?)
}

/// Tells people what it needs, and has that written down.
fn tell(
    world: &EffectPerformer,
    served: &Served,
    role: Role,
    open: &HandIn,
    need: Need,
) -> anyhow::Result<()> {
    let Some(pr) = open.pr else { return Ok(()) };
    let link = served.forge.pull_request_link(pr);
    let notice = words::hand_in::notice(&served.config.name, role, pr, &need, &link);
    let what = match &need {
        Need::Review { commit } => format!("review/{commit}"),
        Need::Checks { commit } => format!("checks/{commit}"),
        Need::Silent { commit } => format!("silent/{commit}"),
        Need::Line { commit, .. } => format!("line/{commit}"),
        Need::Taken => "taken".to_owned(),
    };
    world.put_up(&posting(served, role, &format!("{pr}/{what}"), Some(link), notice))?;
    moved(world, served, role, open, HandInEvent::Told(need))
}

fn posting(served: &Served, role: Role, key: &str, link: Option<String>, notice: Notice) -> Posting {
    let project = &served.config.name;
    Posting {
        key: format!("hand-in/{project}/{role}/{key}"),
        project: project.clone(),
        topic: Topic::of_role(role),
        link,
        question: None,
        notice,
    }
}

fn moved(
    world: &EffectPerformer,
    served: &Served,
    role: Role,
    open: &HandIn,
    moved: HandInEvent,
) -> anyhow::Result<()> {
    let goes_on = matches!(moved, HandInEvent::Opened(_) | HandInEvent::Replaced(_) | HandInEvent::Left);
    let (inbox, project) = (&world.jobs.inbox, &served.config.name);
    send(inbox, project, role, HandInReport::Moved { commit: open.taken.commit.clone(), moved })?;
    if goes_on {
        inbox.send(Inbound::AskForge { project: project.clone() });
    }
    Ok(())
}
