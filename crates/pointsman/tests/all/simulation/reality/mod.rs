//! The pretended world: a forge, a remote, sessions with agents, CI. It outlives the daemon.
//!
//! `forge` has issues, pull requests and the main branch, `agents` what sessions do, `perform` what
//! effects do to all of it. Like the real one it finds out first whether a thing is so already, and
//! it records everything that can be seen from outside. Not here: what the daemon is told and when
//! (`sources`), what people do (`people`).

pub(super) mod agents;
pub(super) mod forge;
mod perform;
pub(super) mod runs;

use std::collections::{BTreeMap, BTreeSet};

use pointsman_core::ids::{Number, RunKey, Sha, TaskKey};
use pointsman_core::time::Timestamp;
use pointsman_core::vault::ActionId;
use pointsman_store::{EffectId, SessionRow};

use super::chance::Chance;
use super::hand_ins::HandIns;
use super::played::Played;
use super::roles::RoleBoard;
use super::story::Story;
use super::trace::Trace;
use agents::Desk;
use forge::{Issue, Landed, PullRequest};
pub(super) use perform::Pretended;
use runs::RunDesk;

/// Everything outside the daemon.
pub(super) struct Reality {
    pub(super) story: Story,
    pub(super) now: Timestamp,
    pub(super) chance: Chance,
    /// No more faults: everything answers, and honestly.
    pub(super) calm: bool,
    pub(super) issues: BTreeMap<Number, Issue>,
    pub(super) pull_requests: BTreeMap<Number, PullRequest>,
    pub(super) main: Vec<Landed>,
    pub(super) desks: BTreeMap<Number, Desk>,
    pub(super) runs: BTreeMap<RunKey, RunDesk>,
    /// CI that is at work. It belongs to the daemon and dies with it.
    pub(super) checks: BTreeSet<(Number, Sha, u32)>,
    pub(super) hand_ins: HandIns,
    pub(super) roles: RoleBoard,
    pub(super) quality: BTreeMap<Sha, Quality>,
    /// Commits that CI has called green.
    pub(super) green: BTreeSet<Sha>,
    pub(super) record: Record,
    pub(super) trace: Trace,
    pub(super) played: Played,
    counter: u64,
}

/// What a commit is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quality {
    Good,
    Red,
}

/// What could be seen from outside, for the promise that nothing is seen twice.
#[derive(Default)]
pub(super) struct Record {
    /// Which effect posted a comment.
    pub(super) comments: BTreeMap<(Number, String), EffectId>,
    /// The lines on each terminal.
    pub(super) typed: BTreeSet<(Number, u32, EffectId)>,
    /// Things said once (a CI try, a review, an answer), and the message that said them.
    pub(super) said: BTreeMap<String, EffectId>,
    pub(super) started: BTreeSet<(Number, u32)>,
    /// Sessions that somebody was unable to end.
    pub(super) unended: BTreeSet<(Number, u32)>,
    /// The ports of tasks that are not over.
    pub(super) ports: BTreeMap<Number, u16>,
    /// The same of runs.
    pub(super) run_ports: BTreeMap<RunKey, u16>,
    /// Notices by the effect that sent them.
    pub(super) notices: BTreeSet<String>,
    /// Which effect told a notice, by notifier and key.
    pub(super) told: BTreeMap<(&'static str, String), EffectId>,
    /// Which effect closed an issue; a person who reopens it makes room for the next.
    pub(super) closed_by: BTreeMap<Number, EffectId>,
    /// The same of runs.
    pub(super) started_runs: BTreeSet<(RunKey, u32)>,
    pub(super) unended_runs: BTreeSet<(RunKey, u32)>,
    pub(super) run_lines: BTreeSet<(RunKey, u32, EffectId)>,
    /// Runs of handlers of vault actions.
    pub(super) handled: BTreeSet<(ActionId, u32)>,
    /// Sessions as they were written down.
    pub(super) rows: BTreeMap<String, SessionRow>,
}

impl Reality {
    pub(super) fn new(story: Story, chance: Chance, trace: Trace, played: Played) -> Self {
        let issues = story.issues();
        let desks = issues.keys().map(|number| (*number, Desk::default())).collect();
        Self {
            story,
            now: Timestamp(1_700_000_000_000),
            chance,
            calm: false,
            issues,
            pull_requests: BTreeMap::new(),
            main: Vec::new(),
            desks,
            runs: BTreeMap::new(),
            checks: BTreeSet::new(),
            hand_ins: HandIns::default(),
            roles: RoleBoard::default(),
            quality: BTreeMap::new(),
            green: BTreeSet::new(),
            record: Record::default(),
            trace,
            played,
            counter: 0,
        }
    }

    /// A number that was never given before.
    pub(super) fn fresh(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Something goes wrong, once in so many times, as long as things go wrong at all.
    pub(super) fn fault(&mut self, one_in: usize) -> bool {
        !self.calm && self.chance.one_in(one_in * self.story.smoothness)
    }

    /// A commit that is like this.
    pub(super) fn commit(&mut self, quality: Quality) -> Sha {
        let sha = Sha::new(&format!("{:040x}", self.fresh())).expect("forty digits");
        self.quality.insert(sha.clone(), quality);
        sha
    }

    pub(super) fn key(&self, issue: Number) -> TaskKey {
        TaskKey { project: self.story.project(), issue }
    }

    pub(super) fn session_files(&mut self, issue: Number) -> &mut Desk {
        self.desks.get_mut(&issue).expect("every issue has a desk")
    }

    pub(super) fn issue(&mut self, issue: Number) -> &mut Issue {
        self.issues.get_mut(&issue).expect("a task has an issue")
    }
}
