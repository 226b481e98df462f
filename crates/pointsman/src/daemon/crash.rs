//! Crash points: named places in the code where the daemon can be made to die, so that tests can kill it exactly there.
//!
//! `POINTSMAN_CRASH_AT=after-deliver:2` raises SIGKILL when that place is passed for the second
//! time. Without the variable a place costs one comparison. [`NAMES`] lists the fixed ones; every
//! kind of effect has `before-<kind>` and `after-<kind>` as well.
//!
//! `POINTSMAN_CRASH_COMMITS=3:FILE` needs no names: the daemon dies before and after the first three commits of every kind
//! of change there is. The file tells the next daemon which deaths there were. Commands that act in the daemon's place die
//! in the same way if they have the variable.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pointsman_store::Change;

/// The names of the fixed crash points.
pub const NAMES: [&str; 15] = [
    "before-commit",
    "after-commit",
    "outcome-absorbed",
    "claim-assigned",
    "checkpoint-saved",
    "tree-copied",
    "tree-set-up",
    "job-started",
    "session-prepared",
    "session-in-tmux",
    "landing-tested",
    "landing-branch-pushed",
    "landing-main-pushed",
    "landing-tidied",
    "queue-reported",
];

/// The crash points on the way of a vault action. They are passed by that alone.
pub const VAULT_NAMES: [&str; 6] = [
    "vault-file-taken",
    "before-fire_action",
    "vault-intent-written",
    "vault-handler-ran",
    "after-fire_action",
    "after-notify_action",
];

/// The crash points on the way of a run. They are passed by that alone.
pub const RUN_NAMES: [&str; 4] =
    ["run-session-prepared", "run-session-in-tmux", "run-result-read", "run-session-put-away"];

/// The crash points on the way of a review by the agent, beside those of its run. They are passed by that alone.
pub const REVIEW_NAMES: [&str; 3] = ["review-follow-ups-filed", "review-before-verdict", "review-posted"];

/// The crash points on the way of a deed on the forge, of roles and of runs alike. They are passed by that alone.
pub const DEED_NAMES: [&str; 3] = ["before-deed", "deed-begun", "after-deed"];

/// The crash points on the way of files that a role hands in, beside those of its run and of the merge queue. They are passed by
/// that alone.
pub const HAND_IN_NAMES: [&str; 5] =
    ["hand-in-taken", "hand-in-written", "hand-in-pushed", "hand-in-opened", "hand-in-entered"];

/// The place where something newer that a role hands in takes the place of what is open. It is passed by that alone.
pub const HAND_IN_AGAIN_NAMES: [&str; 1] = ["hand-in-replaced"];

/// The crash points after a person was asked about a secret: at the push, and in the merge queue. They are passed by that alone.
pub const SECRET_NAMES: [&str; 2] = ["secret-asked", "secret-asked-in-queue"];

/// The crash points on the way of a notice and of what a person says to it. They are passed by these alone.
pub const CHAT_NAMES: [&str; 5] =
    ["notice-posted", "notice-sent", "notice-settled", "reply-read", "reply-taken"];

/// The crash point of work that a person gives back: the old tree is away, the new one is not there. It is passed by that alone.
pub const HANDOVER_NAMES: [&str; 1] = ["given-work-aside"];

struct Plan {
    place: String,
    left: AtomicU32,
}

static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

/// Dies here if this is the place and the time.
pub(crate) fn crash_point(place: &str) {
    let Some(plan) = PLAN.get_or_init(plan) else { return };
    if plan.place == place && plan.left.fetch_sub(1, Ordering::SeqCst) == 1 {
        die();
    }
}

fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

/// The same, for a place with a name in two parts.
pub(crate) fn crash_point_of(when: &str, kind: &str) {
    if PLAN.get_or_init(plan).is_some() {
        crash_point(&format!("{when}-{kind}"));
    }
}

#[allow(clippy::disallowed_methods, reason = "set by tests alone, for the daemon as a whole")]
fn plan() -> Option<Plan> {
    let wanted = std::env::var("POINTSMAN_CRASH_AT").ok()?;
    let (place, times) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    Some(Plan { place: place.to_owned(), left: AtomicU32::new(times.parse().unwrap_or(1)) })
}

/// The side of a commit on which the daemon dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Before,
    After,
}

/// Dies on this side of a commit if one of its kinds has not had its deaths there.
pub(crate) fn commit_point(side: Side, changes: &[Change]) {
    static DEATHS: OnceLock<Option<Mutex<CommitDeaths>>> = OnceLock::new();
    let Some(deaths) = DEATHS.get_or_init(|| CommitDeaths::planned().map(Mutex::new)) else { return };
    let kinds: BTreeSet<String> = changes.iter().flat_map(Change::names).collect();
    if deaths.lock().unwrap_or_else(PoisonError::into_inner).pass(side, &kinds) {
        die();
    }
}

/// Deaths at commits, by side and kind. They are kept in a file, because each daemon has only one.
struct CommitDeaths {
    file: PathBuf,
    /// A kind has this many deaths on each side.
    most: u32,
    counts: BTreeMap<(Side, String), KillCount>,
}

/// A side of all commits of one kind.
#[derive(Clone, Copy, Default)]
struct KillCount {
    passes: u32,
    deaths: u32,
    /// The last daemon died before a commit of this kind, which has therefore not happened: the next one gets past it.
    owed: bool,
}

impl CommitDeaths {
    #[allow(clippy::disallowed_methods, reason = "set by tests alone, for the daemon as a whole")]
    fn planned() -> Option<Self> {
        let wanted = std::env::var("POINTSMAN_CRASH_COMMITS").ok()?;
        let (most, file) = wanted.split_once(':')?;
        let (most, file) = (most.parse().ok()?, PathBuf::from(file));
        let known = fs::read_to_string(&file).unwrap_or_default();
        let counts = known.lines().filter_map(Self::read).collect();
        Some(Self { file, most, counts })
    }

    /// A line of the file: side, kind, passes, deaths, whether a pass is owed.
    fn read(line: &str) -> Option<((Side, String), KillCount)> {
        let [side, kind, passes, deaths, owed] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let side = if side == "before" { Side::Before } else { Side::After };
        let place =
            KillCount { passes: passes.parse().ok()?, deaths: deaths.parse().ok()?, owed: owed == "owed" };
        Some(((side, kind.to_owned()), place))
    }

    /// Counts a pass; answers whether the daemon dies of it.
    fn pass(&mut self, side: Side, kinds: &BTreeSet<String>) -> bool {
        let mut dies = false;
        for kind in kinds {
            let place = self.counts.entry((side, kind.clone())).or_default();
            place.passes += 1;
            if !std::mem::take(&mut place.owed) && place.deaths < self.most {
                place.deaths += 1;
                dies = true;
            }
        }
        if dies && side == Side::Before {
            for kind in kinds {
                self.counts.entry((side, kind.clone())).or_default().owed = true;
            }
        }
        // The file outlives us: a kill takes nothing that was written.
        if let Err(error) = fs::write(&self.file, self.text()) {
            tracing::error!(%error, "deaths could not be written down, so nobody dies");
            return false;
        }
        dies
    }

    fn text(&self) -> String {
        let line = |((side, kind), place): (&(Side, String), &KillCount)| {
            let side = match side {
                Side::Before => "before",
                Side::After => "after",
            };
            let owed = if place.owed { "owed" } else { "-" };
            format!("{side} {kind} {} {} {owed}\n", place.passes, place.deaths)
        };
        self.counts.iter().map(line).collect()
    }
}
