//! What runs hand in: its branch and its pull request, what the daemon is told of them, what people do to them, and its way
//! through the merge queue.

use std::collections::{BTreeMap, BTreeSet};

use pointsman::daemon::engine::Input;
use pointsman::daemon::outcome::{Note, Outcome};
use pointsman_core::hand_in::{HandInFiles, Landing, Need};
use pointsman_core::ids::{Number, RunKey, Sha};
use pointsman_core::part::contribution::{Awaited, Event as About, PrFact};
use pointsman_core::run::{Event, Run};
use pointsman_core::task::{Effect, QueueOutcome, ReviewVerdict};
use pointsman_core::workflow;
use pointsman_store::{EntryStatus, NewEntry, QueueEntry};

use super::daemon::{Daemon, Item, Source, moved};
use super::reality::forge::PullRequest;
use super::reality::{Quality, Reality};

/// Pull requests of no issue.
const NO_ISSUE: Number = 0;

/// The branches that runs hand in on, and CI that is at work for them.
#[derive(Default)]
pub(super) struct HandIns {
    branches: BTreeMap<String, Branch>,
    /// What each run left in its tree: done again, it is the same commit.
    left: BTreeMap<RunKey, Option<HandInFiles>>,
    /// It belongs to the daemon and dies with it.
    pub(super) checks: BTreeSet<(RunKey, Sha, u32)>,
}

/// A branch on the forge.
#[derive(Clone, Debug, Default)]
struct Branch {
    head: Option<Sha>,
    pr: Option<Number>,
}

fn learned(event: Event) -> Outcome {
    Outcome::learned(workflow::Event::Run(event))
}

fn about(about: About) -> Outcome {
    learned(Event::Contribution { about })
}

impl Reality {
    /// Looks through the tree of a run.
    pub(super) fn look_through(&mut self, run: &Run) -> Outcome {
        let found = self.hand_ins.left.get(&run.key()).cloned();
        let files = found.unwrap_or_else(|| {
            let quality = if self.fault(6) { Quality::Red } else { Quality::Good };
            let (commit, base) = (self.commit(quality), self.chance.below(2));
            let files = HandInFiles {
                run: run.id,
                commit,
                base: Sha::new(&format!("{base:040x}")).expect("forty digits"),
                content: (*self.chance.pick(&["one", "another", "third"])).to_owned(),
                files: vec!["AGENTS.md".to_owned()],
            };
            Some(files).filter(|_| !self.fault(8))
        });
        self.hand_ins.left.insert(run.key(), files.clone());
        learned(Event::HandedIn { files, refused: Vec::new() })
    }

    /// What effects about something handed in do.
    pub(super) fn act_for_hand_in(&mut self, effect: &Effect, run: &Run) -> Outcome {
        let Some((handed_in, landing)) = run.hand_in.as_ref().zip(run.landing()) else {
            return Outcome::done();
        };
        let contribution = &landing.contribution;
        let branch = self.hand_ins.branches.entry(contribution.branch.clone()).or_default();
        if let Effect::SyncBranch = effect {
            if let Some(commit) = branch.head.clone().filter(|at| !handed_in.owns(at)) {
                return learned(Event::BranchTaken { commit });
            }
            let head = Some(handed_in.files.commit.clone());
            branch.head.clone_from(&head);
            return about(About::Pushed { head, protected: Vec::new(), secret: None, risk: None });
        }
        if let Effect::OpenPullRequest = effect {
            let (known, name) = (branch.pr, contribution.branch.clone());
            let number = known.unwrap_or_else(|| 1_000 + self.fresh());
            self.hand_ins.branches.entry(name).or_default().pr = Some(number);
            let new = || PullRequest { issue: NO_ISSUE, open: true, merged_as: None, reviews: Vec::new() };
            self.pull_requests.entry(number).or_insert_with(new);
            return about(About::Opened { number });
        }
        if let Effect::RunChecks { sha, run: number } = effect {
            self.hand_ins.checks.insert((run.key(), sha.clone(), *number));
            return Outcome::done();
        }
        if let Effect::Enqueue { head } = effect {
            return Outcome::note(Note::Enqueue(Box::new(NewEntry {
                project: run.project.clone(),
                branch: contribution.branch.clone(),
                issue: None,
                pr: contribution.pr(),
                identity: Some(run.identity()),
                head: head.clone(),
                requested_at: self.now,
                priority: 0,
                worktree: None,
                style: None,
            })));
        }
        assert_eq!(*effect, Effect::Dequeue, "no hand-in orders this");
        Outcome::note(Note::Dequeue { branch: contribution.branch.clone() })
    }

    /// What the forge tells of something handed in.
    pub(super) fn about_hand_in(&self, run: &Run) -> Vec<Input> {
        let Some((handed_in, landing)) = run.hand_in.as_ref().zip(run.landing()) else { return Vec::new() };
        let contribution = &landing.contribution;
        let Some(pr) = contribution.pr().map(|number| &self.pull_requests[&number]) else {
            return Vec::new();
        };
        let input = |about| Input::of_run(run.key(), Event::Contribution { about });
        let observed = |fact| vec![input(About::Observed { fact })];
        if let Some(sha) = pr.merged_as.clone() {
            return observed(PrFact::Merged { sha });
        }
        if !pr.open {
            return observed(PrFact::Closed);
        }
        let mut inputs = Vec::new();
        let queued = contribution.awaited() == Some(Awaited::Queue);
        let head = self.hand_ins.branches.get(&contribution.branch).and_then(|branch| branch.head.clone());
        if let Some(commit) = head.filter(|at| !queued && !handed_in.owns(at)) {
            inputs.push(Input::of_run(run.key(), Event::BranchTaken { commit }));
        }
        for review in pr.reviews.iter().filter(|review| contribution.head() == Some(&review.sha)) {
            let (sha, verdict, by) = (review.sha.clone(), review.verdict, "ann".to_owned());
            let posted = input(About::Reviewed { sha, verdict, by, by_agent: false, body: String::new() });
            inputs.push(Input { dedup: Some(format!("review:{}:{}", review.id, run.id)), ..posted });
        }
        inputs
    }
}

impl Daemon {
    fn landings(&mut self) -> Vec<(Run, Landing)> {
        self.runs()
            .into_iter()
            .filter_map(|run| run.landing().cloned().map(|landing| (run, landing)))
            .collect()
    }

    /// Starts CI that is owed to what was handed in, then lets one of those at work finish.
    pub(super) fn check_hand_ins(&mut self) {
        for (run, landing) in self.landings() {
            if let Some((sha, number)) = landing.contribution.pending() {
                self.reality().hand_ins.checks.insert((run.key(), sha.clone(), number));
            }
        }
        let running: Vec<(RunKey, Sha, u32)> = self.reality().hand_ins.checks.iter().cloned().collect();
        if running.is_empty() {
            return;
        }
        let check = self.reality().chance.pick(&running).clone();
        self.reality().hand_ins.checks.remove(&check);
        let (key, sha, run) = check;
        let verdict = self.reality().verdict(NO_ISSUE, &sha, run);
        let inputs = [
            About::ChecksStarted { sha: sha.clone() },
            About::ChecksFinished { sha, run, verdict, flaky: false },
        ]
        .map(|about| Input::of_run(key.clone(), Event::Contribution { about }));
        self.told(Source::Checks, Item::Inputs(inputs.into()));
    }

    /// Somebody does something about what was handed in.
    pub(super) fn somebody_acts_on_hand_ins(&mut self) {
        let landings = self.landings();
        if landings.is_empty() {
            return;
        }
        let (_, landing) = self.reality().chance.pick(&landings).clone();
        let Landing { contribution, .. } = landing;
        let mut reality = self.reality();
        let (Some(pr), Some(head)) = (contribution.pr(), contribution.head().cloned()) else { return };
        let whim = reality.chance.below(20);
        reality.trace.say(format!("person: whim {whim} about !{pr}"));
        match whim {
            0 => reality.pull_requests.get_mut(&pr).expect("it is there").open = false,
            1 => {
                // Somebody pushes to the branch.
                let commit = reality.commit(Quality::Good);
                reality.hand_ins.branches.entry(contribution.branch).or_default().head = Some(commit);
            }
            2 => {
                let branch = reality.hand_ins.branches.get(&contribution.branch).cloned();
                let at = branch.and_then(|branch| branch.head).filter(|at| reality.landed_as(at).is_none());
                if let Some(at) = at.filter(|_| reality.pull_requests[&pr].open) {
                    reality.land(at.clone(), at.clone());
                    reality.record_merge(Some(pr), &at);
                }
            }
            3 => reality.review(pr, head, ReviewVerdict::RequestChanges),
            4 => reality.review(pr, head, ReviewVerdict::Discuss),
            _ => reality.review(pr, head, ReviewVerdict::Approve),
        }
    }

    /// Everybody does what hand-ins wait for; what needs more than a review is closed.
    pub(super) fn everybody_settles_hand_ins(&mut self) {
        for (_, landing) in self.landings() {
            let contribution = &landing.contribution;
            let (Some(pr), Some(head)) = (contribution.pr(), contribution.head().cloned()) else { continue };
            match (&landing.told, contribution.awaited()) {
                (_, Some(Awaited::Review)) => self.reality().review(pr, head, ReviewVerdict::Approve),
                (Some(Need::Review { .. } | Need::Checks { .. } | Need::Silent { .. }), None)
                | (Some(Need::Line { .. } | Need::Taken), None) => {
                    self.reality().pull_requests.get_mut(&pr).expect("it is there").open = false;
                }
                (_, None | Some(Awaited::Push | Awaited::Checks | Awaited::Queue)) => {}
            }
        }
    }

    fn run_on(&mut self, branch: &str) -> Option<Run> {
        let is_on = |landing: &Landing| landing.contribution.branch == branch;
        self.landings().into_iter().find(|(_, landing)| is_on(landing)).map(|(run, _)| run)
    }

    fn is_hand_in_wanted(&mut self, entry: &QueueEntry) -> bool {
        let found = self.engine().store().queue_entry(entry.id).expect("the queue can be read");
        let queued = self.run_on(&entry.branch).is_some_and(|run| {
            entry.identity == Some(run.identity())
                && run.contribution().is_some_and(|part| part.is_queued(&entry.head))
        });
        queued && found.is_some_and(|entry| entry.status.is_unfinished())
    }

    /// The way of an entry without an issue: its candidate, its test, and the main branch.
    pub(super) fn land_hand_in(&mut self, mut entry: QueueEntry) {
        let landed = |sha: &Option<Sha>| {
            let reality = self.reality();
            sha.as_ref().and_then(|sha| reality.landed_as(sha).cloned())
        };
        if let Some(sha) = landed(&entry.candidate).or_else(|| landed(&Some(entry.head.clone()))) {
            return self.hand_in_reported(entry, QueueOutcome::Landed { sha });
        }
        let branch = self.reality().hand_ins.branches.get(&entry.branch).cloned();
        let at = branch.and_then(|branch| branch.head);
        let moved_on = at.as_ref() != Some(&entry.head) && (at.is_none() || at != entry.candidate);
        let wanted = self.is_hand_in_wanted(&entry);
        let trouble = {
            let mut reality = self.reality();
            let (summary, log) = ("exit 1".to_owned(), String::new());
            match () {
                () if moved_on || !wanted => Some(QueueOutcome::Stale { reason: "it moved".to_owned() }),
                () if reality.fault(12) => Some(QueueOutcome::Conflict { files: Vec::new(), with: None }),
                () if reality.fault(12) => Some(QueueOutcome::Red { summary, log }),
                () if reality.fault(24) => Some(QueueOutcome::Infra { reason: summary, log }),
                () => None,
            }
        };
        if let Some(outcome) = trouble {
            return self.hand_in_reported(entry, outcome);
        }
        let run = self.run_on(&entry.branch).expect("it is wanted");
        let head = entry.head.clone();
        let rebased = self.reality().chance.one_in(2);
        let sha = if rebased { self.reality().commit(Quality::Good) } else { head.clone() };
        entry.candidate = Some(sha.clone());
        entry.status = EntryStatus::Testing;
        let now = self.reality().now;
        self.write("the queue", |e| e.write(&[moved(&entry, now)]));
        if rebased {
            let put = Event::CommitPut { commit: sha.clone() };
            self.take_group(&[Input::of_run(run.key(), put)], Vec::new());
            self.reality().hand_ins.branches.entry(entry.branch.clone()).or_default().head =
                Some(sha.clone());
            if self.may_crash("after the branch was pushed", 2) {
                return;
            }
        }
        self.say(format!("LAND {} {} as {}", run.key(), head.short(), sha.short()));
        self.may_land(&run, &head);
        self.reality().land(head, sha.clone());
        if self.may_crash("after main was pushed", 2) {
            return;
        }
        self.hand_in_reported(entry, QueueOutcome::Landed { sha });
    }

    /// Nothing lands that is not green and approved at that very commit.
    fn may_land(&self, run: &Run, head: &Sha) {
        let (reality, key) = (self.reality(), run.key());
        let contribution = run.contribution().expect("it is on its way");
        let has_ci = reality.story.policy.has_ci;
        assert!(!has_ci || contribution.passed(head), "{key} lands with {:?}", contribution.ci());
        assert!(!has_ci || reality.green.contains(head), "{key} lands untested");
        if reality.story.is_reviewed() {
            assert!(contribution.is_approved(head), "{key} lands with {:?}", contribution.review());
            assert!(reality.is_approved(NO_ISSUE, head), "{key} lands and nobody approved");
        }
    }

    fn hand_in_reported(&mut self, mut entry: QueueEntry, outcome: QueueOutcome) {
        let wanted = self.is_hand_in_wanted(&entry);
        let landed = matches!(outcome, QueueOutcome::Landed { .. });
        entry.status = match &outcome {
            QueueOutcome::Landed { sha } => {
                let mut reality = self.reality();
                reality.record_merge(entry.pr, sha);
                reality.hand_ins.branches.remove(&entry.branch);
                EntryStatus::Landed
            }
            _ if !wanted => EntryStatus::Removed,
            QueueOutcome::Conflict { .. } => EntryStatus::Conflict,
            QueueOutcome::Red { .. } => EntryStatus::Red,
            QueueOutcome::Infra { .. } | QueueOutcome::Unreached { .. } | QueueOutcome::Stale { .. } => {
                EntryStatus::Stale
            }
        };
        let run = self.run_on(&entry.branch).filter(|_| wanted || landed);
        let about = About::QueueReported { head: entry.head.clone(), outcome };
        let input = run.map(|run| Input::of_run(run.key(), Event::Contribution { about }));
        self.reported(entry, input);
    }
}
