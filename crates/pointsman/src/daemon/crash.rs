//! Named places where the daemon can be made to die, so that tests can kill it exactly there.
//!
//! `POINTSMAN_CRASH_AT=after-deliver:2` raises SIGKILL when that place is passed for the second
//! time. Without the variable a place costs one comparison. [`NAMES`] lists the fixed ones; every
//! kind of effect has `before-<kind>` and `after-<kind>` as well.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The fixed places.
pub const NAMES: [&str; 13] = [
    "before-commit",
    "after-commit",
    "outcome-absorbed",
    "claim-assigned",
    "checkpoint-saved",
    "job-started",
    "session-prepared",
    "session-in-tmux",
    "landing-tested",
    "landing-branch-pushed",
    "landing-main-pushed",
    "landing-tidied",
    "queue-reported",
];

/// The places on the way of a vault action. They are passed by that alone.
pub const VAULT_NAMES: [&str; 6] = [
    "vault-file-taken",
    "vault-before-intent",
    "vault-intent-written",
    "vault-handler-ran",
    "vault-outcome-written",
    "vault-told",
];

/// The place on the way of a look at a vault action, beside those of its run. It is passed by that alone.
pub const LOOK_NAMES: [&str; 1] = ["vault-look-taken"];

/// The places on the way of a run. They are passed by that alone.
pub const RUN_NAMES: [&str; 4] =
    ["run-session-prepared", "run-session-in-tmux", "run-event-written", "run-session-put-away"];

/// The places on the way of a review by the agent, beside those of its run. They are passed by that alone.
pub const REVIEW_NAMES: [&str; 3] = ["review-follow-ups-filed", "review-before-verdict", "review-posted"];

/// The places on the way of what the gardener does, beside those of its run. They are passed by that alone.
pub const GARDENER_NAMES: [&str; 2] = ["gardener-planned", "gardener-deed-done"];

/// The places on the way of a plan, beside those of its run. They are passed by that alone.
pub const PLANNER_NAMES: [&str; 3] = ["planner-planned", "planner-deed-done", "planner-issue-filed"];

/// The places on the way of files that a role hands in, beside those of its run and of the merge queue. They are passed by
/// that alone.
pub const HAND_IN_NAMES: [&str; 6] = [
    "hand-in-taken",
    "hand-in-written",
    "hand-in-pushed",
    "hand-in-opened",
    "hand-in-noted",
    "hand-in-entered",
];

/// The place where something newer that a role hands in takes the place of what is open. It is passed by that alone.
pub const HAND_IN_AGAIN_NAMES: [&str; 1] = ["hand-in-replaced"];

/// The place on the way of an action, beside those of its run. It is passed by that alone.
pub const ACTION_NAMES: [&str; 1] = ["action-told"];

/// The places on the way of a notice and of what a person says to it. They are passed by these alone.
pub const CHAT_NAMES: [&str; 5] =
    ["notice-posted", "notice-sent", "notice-settled", "reply-read", "reply-taken"];

struct Plan {
    place: String,
    left: AtomicU32,
}

static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

/// Dies here if this is the place and the time.
pub(crate) fn crash_point(place: &str) {
    let Some(plan) = PLAN.get_or_init(plan) else { return };
    if plan.place == place && plan.left.fetch_sub(1, Ordering::SeqCst) == 1 {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
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
