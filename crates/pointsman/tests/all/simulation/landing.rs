//! The merge queue of one, with the steps and the crash points of the real one.

use pointsman::daemon::engine::Input;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::{Event, QueueOutcome};
use pointsman_store::{EntryScope, EntryStatus, QueueEntry};

use super::daemon::{Daemon, Item, Source, moved};
use super::reality::Quality;

/// An entry on its way to the main branch.
pub(super) struct Landing {
    entry: QueueEntry,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The candidate is to be made.
    Build,
    /// The candidate is being tested.
    Test,
    /// Told; waits for that to be written.
    Reported,
}

impl Daemon {
    /// Whether something is in the merge queue: then its turn comes before any deadline.
    pub(super) fn has_to_land(&mut self) -> bool {
        let project = self.reality().story.project();
        let entries = self.engine().store().queue_entries(&project, EntryScope::Unfinished);
        self.memory.landing.is_some() || !entries.expect("the queue can be read").is_empty()
    }

    /// The first entry in line goes one step on.
    pub(super) fn land(&mut self) {
        if self.memory.landing.is_none() {
            let project = self.reality().story.project();
            let entries = self.engine().store().queue_entries(&project, EntryScope::Unfinished);
            let first = entries.expect("the queue can be read").into_iter().next();
            self.memory.landing = first.map(|entry| Landing { entry, stage: Stage::Build });
        }
        let Some(landing) = self.memory.landing.take() else { return };
        match landing.stage {
            Stage::Build if landing.entry.issue.is_none() => self.land_hand_in(landing.entry),
            Stage::Build => self.build(landing.entry),
            Stage::Test => self.test(landing.entry),
            Stage::Reported => self.memory.landing = Some(landing),
        }
    }

    fn build(&mut self, mut entry: QueueEntry) {
        let issue = issue_of(&entry);
        let landed = |sha: &Option<Sha>| {
            let reality = self.reality();
            sha.as_ref().and_then(|sha| reality.landed_as(sha).cloned())
        };
        // A push whose answer we did not live to see, or nothing left to land.
        if let Some(sha) = landed(&entry.candidate).or_else(|| landed(&Some(entry.head.clone()))) {
            return self.report(entry, QueueOutcome::Landed { sha });
        }
        let at = self.reality().session_files(issue).remote.clone();
        if at.as_ref() != Some(&entry.head) && (at.is_none() || at != entry.candidate) {
            return self.report(entry, QueueOutcome::Stale { reason: "the branch moved".to_owned() });
        }
        if self.reality().fault(10) {
            return self
                .report(entry, QueueOutcome::Conflict { files: vec!["a.txt".to_owned()], with: None });
        }
        let rebased = self.reality().chance.one_in(2);
        let candidate = if rebased { self.reality().commit(Quality::Good) } else { entry.head.clone() };
        entry.candidate = Some(candidate);
        entry.status = EntryStatus::Testing;
        let now = self.reality().now;
        self.write("the queue", |e| e.write(&[moved(&entry, now)]));
        self.memory.landing = Some(Landing { entry, stage: Stage::Test });
    }

    fn test(&mut self, entry: QueueEntry) {
        if self.reality().fault(10) {
            let log = format!("once:gate-{}-{};", issue_of(&entry), entry.id);
            return self.report(entry, QueueOutcome::Red { summary: "exit 1".to_owned(), log });
        }
        if self.reality().fault(12) {
            let hosts = vec!["registry.example.org:443".to_owned()];
            return self
                .report(entry, QueueOutcome::Unreached { hosts, programs: Vec::new(), log: String::new() });
        }
        if self.reality().fault(20) {
            return self
                .report(entry, QueueOutcome::Infra { reason: "exit 137".to_owned(), log: String::new() });
        }
        if !self.is_wanted(&entry) {
            return self.report(entry, QueueOutcome::Stale { reason: "taken out".to_owned() });
        }
        let (issue, head) = (issue_of(&entry), entry.head.clone());
        let sha = entry.candidate.clone().expect("what is tested is a candidate");
        if sha != head {
            self.reality().session_files(issue).remote = Some(sha.clone());
            if self.may_crash("after the branch was pushed", 1) {
                return;
            }
        }
        // Main moves by compare-and-swap: what a person merged since the candidate was built is seen, and the next look
        // finds nothing left to land.
        if self.reality().landed_as(&head).is_some() {
            self.say(format!("main moved under #{issue}"));
            self.memory.landing = Some(Landing { entry, stage: Stage::Build });
            return;
        }
        let task = self.stored(issue).expect("an entry has a task");
        self.say(format!("LAND #{issue} {} as {}", head.short(), sha.short()));
        self.ledger.lands(&task, &head, &self.world.look());
        self.reality().land(head, sha.clone());
        if self.may_crash("after main was pushed", 1) {
            return;
        }
        self.report(entry, QueueOutcome::Landed { sha });
    }

    /// Whether the task still wants to land: it may have left while the gate ran.
    fn is_wanted(&mut self, entry: &QueueEntry) -> bool {
        let found = self.engine().store().queue_entry(entry.id).expect("the queue can be read");
        let unfinished = found.is_some_and(|entry| entry.status.is_unfinished());
        unfinished && self.stored(issue_of(entry)).is_some_and(|task| task.wants_to_land(&entry.head))
    }

    fn report(&mut self, mut entry: QueueEntry, outcome: QueueOutcome) {
        let wanted = self.is_wanted(&entry);
        let landed = matches!(outcome, QueueOutcome::Landed { .. });
        entry.status = match &outcome {
            QueueOutcome::Landed { sha } => {
                let mut reality = self.reality();
                reality.record_merge(entry.pr, sha);
                let session_files = reality.session_files(issue_of(&entry));
                if session_files.remote.as_ref() == Some(sha)
                    || session_files.remote.as_ref() == Some(&entry.head)
                {
                    session_files.remote = None;
                }
                EntryStatus::Landed
            }
            _ if !wanted => EntryStatus::Removed,
            QueueOutcome::Conflict { .. } => EntryStatus::Conflict,
            QueueOutcome::Red { .. } => EntryStatus::Red,
            QueueOutcome::Infra { .. } | QueueOutcome::Unreached { .. } | QueueOutcome::Stale { .. } => {
                EntryStatus::Stale
            }
        };
        let event = Event::QueueReported { head: entry.head.clone(), outcome };
        let key = self.reality().key(issue_of(&entry));
        let input = (wanted || landed).then(|| Input::new(key, event));
        self.reported(entry, input);
    }

    /// An entry is over, as soon as that is written.
    pub(super) fn reported(&mut self, entry: QueueEntry, input: Option<Input>) {
        self.memory.landing = Some(Landing { entry: entry.clone(), stage: Stage::Reported });
        self.told(Source::Landing, Item::Reported(input.map(Box::new), Box::new(entry)));
    }
}

fn issue_of(entry: &QueueEntry) -> Number {
    entry.issue.expect("it is a task's")
}
