//! The state of a hand-in, from its commit to its end. There is one at a time for each role.

use serde::{Deserialize, Serialize};

use crate::forge::{IssueState, PullRequest};
use crate::ids::{Number, Sha};
use crate::queue::EntryId;
use crate::role::Role;
use crate::run::RunId;
use crate::task::{ReviewMode, ReviewVerdict};

/// Contents that were dismissed are remembered, so many of the last ones.
const DISMISSED: usize = 50;
/// Commits that we put on its branch are remembered, so many of the last ones.
const PUSHED: usize = 20;

/// The commit that was made from a run's working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandInFiles {
    pub run: RunId,
    pub commit: Sha,
    /// The head of the main branch that it stands on.
    pub base: Sha,
    /// Tells one content of the files from another, whatever they stand on.
    pub content: String,
    pub files: Vec<String>,
}

/// Something handed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandIn {
    pub taken: HandInFiles,
    /// Its branch on the forge.
    pub branch: String,
    /// Its pull request, once there is one.
    #[serde(default)]
    pub pr: Option<Number>,
    /// Its place in the merge queue, once it had one.
    #[serde(default)]
    pub entry: Option<EntryId>,
    /// Whether it was we who took it out of the queue again.
    #[serde(default)]
    pub left: bool,
    /// What people were told last that it needs.
    #[serde(default)]
    pub told: Option<Need>,
    /// What we ourselves put on its branch later, or were about to: candidates of the merge queue, and what is newer.
    #[serde(default)]
    pub pushed: Vec<Sha>,
}

impl HandIn {
    /// Nothing was done about it yet.
    pub fn new(role: Role, taken: HandInFiles) -> Self {
        let branch = format!("pointsman/{role}-{}-{}", taken.run, taken.commit.short());
        Self { taken, branch, pr: None, entry: None, left: false, told: None, pushed: Vec::new() }
    }

    /// Whether a branch has the name of one that a role hands in.
    pub fn is_branch_of(role: Role, branch: &str) -> bool {
        branch
            .strip_prefix("pointsman/")
            .and_then(|rest| rest.strip_prefix(role.as_str()))
            .is_some_and(|rest| rest.starts_with('-'))
    }

    /// This commit is about to be put on its branch.
    pub fn pushes(&mut self, commit: &Sha) {
        if !self.pushed.contains(commit) {
            self.pushed.push(commit.clone());
            let over = self.pushed.len().saturating_sub(PUSHED);
            self.pushed.drain(..over);
        }
    }

    /// Whether it cannot land as it is: only a person or something newer can help.
    pub fn is_stuck(&self) -> bool {
        match &self.told {
            Some(Need::Checks { .. } | Need::Silent { .. } | Need::Line { .. }) => true,
            Some(Need::Review { .. } | Need::Taken) | None => false,
        }
    }
}

/// The memory of a role's hand-ins. A field that is not known stops it: to leave it out could forget an open pull
/// request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// The last run that was looked at.
    pub looked: Option<RunId>,
    pub open: Option<HandIn>,
    /// What is newer and waits to take its place.
    pub newer: Option<HandInFiles>,
    /// Contents that people did not want.
    pub dismissed: Vec<String>,
}

/// The result of taking over a run's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewFiles {
    /// It was looked at before.
    Before,
    /// Nothing changed, or what is open has it anyway.
    Nothing,
    /// A person closed the very same before.
    Dismissed,
    New,
}

/// The end of a hand-in. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is on the main branch.
    Merged,
    Dismissed,
}

impl Outcome {
    /// The name that scripts see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Merged => "merged",
            Self::Dismissed => "dismissed",
        }
    }
}

impl Memory {
    /// Takes in what a run left.
    pub fn take(&mut self, role: Role, run: RunId, taken: Option<HandInFiles>) -> NewFiles {
        if self.looked.is_some_and(|looked| looked >= run) {
            return NewFiles::Before;
        }
        self.looked = Some(run);
        let Some(taken) = taken else { return NewFiles::Nothing };
        let stuck = self.newer.is_none() && self.open.as_ref().is_some_and(HandIn::is_stuck);
        if let Some(known) = self.latest().filter(|known| known.content == taken.content) {
            // What cannot land where it stands may land on another main.
            if !stuck || known.base == taken.base {
                return NewFiles::Nothing;
            }
            self.newer = Some(taken);
            return NewFiles::New;
        }
        if self.dismissed.contains(&taken.content) {
            return NewFiles::Dismissed;
        }
        match self.open {
            None => self.open = Some(HandIn::new(role, taken)),
            Some(_) => self.newer = Some(taken),
        }
        NewFiles::New
    }

    /// The last commit that was handed in and has not ended.
    pub fn latest(&self) -> Option<&HandInFiles> {
        self.newer.as_ref().or(self.open.as_ref().map(|open| &open.taken))
    }

    /// Ends the open hand-in; the one that waited behind it is next.
    pub fn end(&mut self, role: Role, outcome: Outcome) -> Option<HandIn> {
        let open = self.open.take()?;
        if outcome == Outcome::Dismissed {
            self.dismissed.push(open.taken.content.clone());
            let over = self.dismissed.len().saturating_sub(DISMISSED);
            self.dismissed.drain(..over);
        }
        self.open = self.newer.take().map(|newer| HandIn::new(role, newer));
        Some(open)
    }

    /// The newer one has taken the place of what is open: its branch, its pull request.
    pub fn replace(&mut self) {
        if let (Some(open), Some(newer)) = (&mut self.open, self.newer.take()) {
            *open = HandIn { taken: newer, entry: None, left: false, told: None, ..open.clone() };
        }
    }
}

/// The verdict of CI on a hand-in's commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checks {
    Open,
    /// Nothing, for longer than a CI may take.
    Silent,
    /// Green, or there is no CI.
    Green,
    Red,
}

/// The place of a hand-in's commit in the merge queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueStatus {
    /// Not in it, or taken out of it by us.
    No,
    Waiting,
    Landed,
    /// Out of it, and it says why.
    Out(String),
}

/// The facts about an open hand-in.
#[derive(Clone, Debug)]
pub struct HandInFacts<'a> {
    pub hand_in: &'a HandIn,
    /// Its pull request; none if the forge has it no more.
    pub pr: Option<&'a PullRequest>,
    pub line: QueueStatus,
    pub checks: Checks,
    /// Who decides whether it may land: the same as for any other.
    pub review: ReviewMode,
    /// The commit that waits to take its place, if one does.
    pub newer: Option<&'a Sha>,
}

/// The help that a hand-in needs from a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "need", rename_all = "snake_case")]
pub enum Need {
    /// An approval by a person.
    Review {
        commit: Sha,
    },
    Checks {
        commit: Sha,
    },
    Silent {
        commit: Sha,
    },
    /// It is out of the merge queue.
    Line {
        commit: Sha,
        why: String,
    },
    /// Somebody else has pushed to its branch.
    Taken,
}

/// The next step for a hand-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Push it and open its pull request.
    Open,
    /// Let the newer one take its place.
    Replace,
    /// Put its commit back on its branch.
    PutBack,
    Wait,
    /// A reviewer is to be asked, where that is a program.
    AskReview,
    /// Put it into the merge queue.
    Enter,
    /// Take it out of the merge queue.
    Leave,
    Tell(Need),
    Over(Outcome),
}

/// Decides what is next. It lands with what any pull request of a task needs, and not with less: CI green on its commit, an
/// approval of that commit where reviews are required, and the merge queue's own gate.
pub fn next(facts: &HandInFacts<'_>) -> Next {
    let commit = &facts.hand_in.taken.commit;
    if facts.hand_in.pr.is_none() {
        return Next::Open;
    }
    let waiting = facts.line == QueueStatus::Waiting;
    let Some(pr) = facts.pr else {
        return if waiting { Next::Leave } else { Next::Over(Outcome::Dismissed) };
    };
    if pr.merged || facts.line == QueueStatus::Landed {
        return Next::Over(Outcome::Merged);
    }
    match pr.state {
        // The queue may be about to say that it landed.
        IssueState::Closed if waiting => return Next::Leave,
        IssueState::Closed => return Next::Over(Outcome::Dismissed),
        IssueState::Open => {}
    }
    let verdict = verdict(pr, commit);
    let approved = facts.review == ReviewMode::None || verdict == Some(ReviewVerdict::Approve);
    if waiting {
        // The queue itself sees to a branch that moved.
        return if approved { Next::Wait } else { Next::Leave };
    }
    let ours = |at: &&Sha| *at == commit || Some(*at) == facts.newer || facts.hand_in.pushed.contains(at);
    let Some(head) = pr.head_sha.as_ref().filter(ours) else { return tell(facts, Need::Taken) };
    if facts.newer.is_some() {
        return Next::Replace;
    }
    if let QueueStatus::Out(why) = &facts.line {
        return tell(facts, Need::Line { commit: commit.clone(), why: why.clone() });
    }
    // A candidate is on its branch that came to nothing.
    if head != commit {
        return Next::PutBack;
    }
    match (&facts.checks, facts.review, verdict) {
        (Checks::Open, _, _) => Next::Wait,
        (Checks::Silent, _, _) => tell(facts, Need::Silent { commit: commit.clone() }),
        (Checks::Red, _, _) => tell(facts, Need::Checks { commit: commit.clone() }),
        (Checks::Green, _, _) if approved => Next::Enter,
        (Checks::Green, review, verdict) => {
            let need = Need::Review { commit: commit.clone() };
            // Whoever was to review it may have given it up to people.
            let asked = review == ReviewMode::Command && verdict.is_none();
            if asked && facts.hand_in.told.as_ref() != Some(&need) {
                Next::AskReview
            } else {
                tell(facts, need)
            }
        }
    }
}

/// What the last reviewer whose word counts says about this very commit.
fn verdict(pr: &PullRequest, commit: &Sha) -> Option<ReviewVerdict> {
    pr.reviews.iter().rfind(|review| !review.dismissed && review.sha == *commit).map(|review| review.verdict)
}

/// Once.
fn tell(facts: &HandInFacts<'_>, need: Need) -> Next {
    if facts.hand_in.told.as_ref() == Some(&need) { Next::Wait } else { Next::Tell(need) }
}
