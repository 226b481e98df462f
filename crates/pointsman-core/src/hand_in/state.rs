//! The files that a run hands in, from their commit to their end, and the turns that the runs of a role take: one of them
//! lands at a time.

use serde::{Deserialize, Serialize};

use crate::ids::{Number, RunKey, Sha};
use crate::part::contribution::{Awaited, Contribution};
use crate::queue::EntryId;
use crate::role::Role;
use crate::run::{self, Run, RunId};

/// Contents that were dismissed are remembered, so many of the last ones.
const DISMISSED: usize = 50;
/// Commits that we put on its branch are remembered, so many of the last ones.
const OURS: usize = 20;

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
pub struct HandIn {
    pub files: HandInFiles,
    pub stage: Stage,
}

/// The stage of something handed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// It is not its turn yet.
    Waiting,
    Open(Box<Landing>),
    Over {
        outcome: Outcome,
        pr: Option<Number>,
    },
}

/// Something handed in on its way to the main branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landing {
    pub contribution: Contribution,
    /// The help that people were told last that it needs.
    pub told: Option<Need>,
    /// Commits on its branch that are not its own and that we put there: those of runs whose place it took, and candidates
    /// of the merge queue.
    pub ours: Vec<Sha>,
}

impl Landing {
    /// This commit is about to be put on its branch.
    pub fn puts(&mut self, commit: &Sha) {
        if !self.ours.contains(commit) {
            self.ours.push(commit.clone());
            let over = self.ours.len().saturating_sub(OURS);
            self.ours.drain(..over);
        }
    }

    /// Whether it cannot land as it is: only a person or something newer can help.
    pub fn is_stuck(&self) -> bool {
        match &self.told {
            Some(Need::Checks { .. } | Need::Silent { .. } | Need::Line { .. }) => true,
            Some(Need::Review { .. } | Need::Taken) | None => false,
        }
    }

    /// Whether something newer may take its place: not before its pull request is there, not while it may land at any
    /// moment, and not if its branch is somebody else's.
    fn gives_way(&self) -> bool {
        let queued = self.contribution.awaited() == Some(Awaited::Queue);
        self.contribution.pr().is_some() && !queued && self.told != Some(Need::Taken)
    }
}

impl HandIn {
    /// Its way to the main branch, while it is on it.
    pub fn landing(&self) -> Option<&Landing> {
        match &self.stage {
            Stage::Open(landing) => Some(landing),
            Stage::Waiting | Stage::Over { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn landing_mut(&mut self) -> Option<&mut Landing> {
        match &mut self.stage {
            Stage::Open(landing) => Some(landing),
            Stage::Waiting | Stage::Over { .. } => None,
        }
    }

    /// Whether a commit on its branch was put there by us.
    pub fn owns(&self, commit: &Sha) -> bool {
        let landing = self.landing();
        self.files.commit == *commit
            || landing.is_some_and(|landing| {
                landing.contribution.head() == Some(commit) || landing.ours.contains(commit)
            })
    }

    /// Whether its commit is on the forge, with a pull request.
    pub fn is_brought(&self) -> bool {
        self.landing().is_some_and(|Landing { contribution, .. }| {
            contribution.pr().is_some() && contribution.head() == Some(&self.files.commit)
        })
    }

    /// Whether something is still to come of it.
    pub fn is_open(&self) -> bool {
        match &self.stage {
            Stage::Waiting | Stage::Open(_) => true,
            Stage::Over { .. } => false,
        }
    }
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

/// The end of a hand-in. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is on the main branch.
    Merged,
    Dismissed,
    /// It never had its turn, or something newer took its place.
    Dropped,
}

impl Outcome {
    /// The name that scripts see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Merged => "merged",
            Self::Dismissed => "dismissed",
            Self::Dropped => "dropped",
        }
    }
}

/// The reason why something handed in does not land.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum DropReason {
    /// What is open has it anyway.
    Same,
    /// A person closed the very same before.
    Unwanted,
    /// A later run takes its place.
    Newer { run: RunId },
}

/// The beginning of a landing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub branch: String,
    /// The pull request whose place it takes, with the head of its branch.
    pub replaces: Option<(Number, Sha)>,
    pub ours: Vec<Sha>,
}

/// The next steps for what the runs of one role have handed in. There is one on its way at a time: what is newer takes its
/// place, on the same branch, as soon as it gives way.
pub fn turns(runs: &[&Run], dismissed: &[String]) -> Vec<(RunKey, run::Event)> {
    let open = || runs.iter().filter_map(|run| Some((*run, run.hand_in.as_ref()?)));
    let host = open().filter_map(|(run, handed)| Some((run, &handed.files, handed.landing()?))).next_back();
    let waiting = open().filter(|(_, handed)| handed.stage == Stage::Waiting);
    let mut turns = Vec::new();
    let mut next: Option<(&Run, &HandInFiles)> = None;
    for (run, HandIn { files, .. }) in waiting {
        let (known, stuck) = match (next, host) {
            (Some((_, files)), _) => (Some(files), false),
            (None, Some((_, files, landing))) => (Some(files), landing.is_stuck()),
            (None, None) => (None, false),
        };
        // What cannot land where it stands may land on another main.
        let same =
            known.is_some_and(|known| known.content == files.content && (!stuck || known.base == files.base));
        let unwanted =
            dismissed.contains(&files.content) && known.is_none_or(|known| known.content != files.content);
        let why = match (same, unwanted) {
            (true, _) => Some(DropReason::Same),
            (false, true) => Some(DropReason::Unwanted),
            (false, false) => None,
        };
        let dropped = match why {
            Some(why) => Some((run, why)),
            None => next.replace((run, files)).map(|(older, _)| (older, DropReason::Newer { run: run.id })),
        };
        turns.extend(dropped.map(|(run, why)| (run.key(), run::Event::HandInDropped { why })));
    }
    let Some((run, files)) = next else { return turns };
    let turn = match host {
        None => Turn { branch: branch(run.formula.role(), files), replaces: None, ours: Vec::new() },
        Some((older, known, landing)) if landing.gives_way() => {
            let why = DropReason::Newer { run: run.id };
            turns.push((older.key(), run::Event::HandInDropped { why }));
            let mut ours = landing.clone();
            ours.puts(&known.commit);
            let contribution = &landing.contribution;
            let replaces = contribution.pr().zip(contribution.head().cloned());
            Turn { branch: contribution.branch.clone(), replaces, ours: ours.ours }
        }
        Some(_) => return turns,
    };
    turns.push((run.key(), run::Event::LandingBegun { turn }));
    turns
}

/// The branch of something that has its first turn.
fn branch(role: Role, files: &HandInFiles) -> String {
    format!("pointsman/{role}-{}-{}", files.run, files.commit.short())
}

/// The memory of a role's hand-ins. A field that is not known stops it: to leave it out could forget an open pull
/// request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// The last run that an earlier version has looked at.
    pub looked: Option<RunId>,
    /// What an earlier version had on its way; it is handed to its run.
    pub open: Option<EarlierHandIn>,
    /// What waited to take its place there.
    pub newer: Option<HandInFiles>,
    /// Contents that people did not want.
    pub dismissed: Vec<String>,
}

/// Something handed in as earlier versions remembered it, beside its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierHandIn {
    pub taken: HandInFiles,
    pub branch: String,
    #[serde(default)]
    pub pr: Option<Number>,
    #[serde(default)]
    pub entry: Option<EntryId>,
    #[serde(default)]
    pub left: bool,
    #[serde(default)]
    pub told: Option<Need>,
    #[serde(default)]
    pub pushed: Vec<Sha>,
}

impl Memory {
    /// Remembers a content that people did not want.
    pub fn dismiss(&mut self, content: &str) {
        self.dismissed.push(content.to_owned());
        let over = self.dismissed.len().saturating_sub(DISMISSED);
        self.dismissed.drain(..over);
    }

    /// Takes out what an earlier version had on its way, as events of the runs that handed it in.
    pub fn hand_over(&mut self) -> Vec<(RunId, run::Event)> {
        let handed_in =
            |files: &HandInFiles| run::Event::HandedIn { files: Some(files.clone()), refused: Vec::new() };
        let mut events = Vec::new();
        if let Some(open) = self.open.take() {
            events.push((open.taken.run, handed_in(&open.taken)));
            let replaces = open.pr.map(|pr| (pr, open.taken.commit.clone()));
            let turn = Turn { branch: open.branch, replaces, ours: open.pushed };
            events.push((open.taken.run, run::Event::LandingBegun { turn }));
        }
        if let Some(newer) = self.newer.take() {
            events.push((newer.run, handed_in(&newer)));
        }
        events
    }
}
