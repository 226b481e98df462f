//! The hooks of the claim life cycle, decided from the file alone. The forge is asked only where this says so.

use std::time::Duration;

use super::{Claim, Phase};
use crate::time::Timestamp;

/// The forge is asked no more often than this, where the project's `timing.check_backoff` is not known.
pub const POLL_EVERY: Duration = Duration::from_secs(120);

/// The work that the end of an agent's response asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStop {
    /// Nothing: the common case, without any call.
    Nothing,
    /// The board's Status has changed.
    SyncBoard,
    /// The work is handed in.
    OpenPullRequest,
    /// A person has confirmed that the issue can be closed.
    CloseIssue,
}

/// Decides what remains to be done after an agent's response.
pub fn on_stop(claim: &Claim) -> OnStop {
    match claim.phase {
        Phase::ReadyForPr => OnStop::OpenPullRequest,
        Phase::Done => OnStop::CloseIssue,
        Phase::Coding | Phase::PrCreated | Phase::ChecksRunning | Phase::Other(_) => {
            let synced = claim.last_synced_status.as_deref() == Some(claim.status.as_str());
            if synced || claim.status.is_empty() { OnStop::Nothing } else { OnStop::SyncBoard }
        }
    }
}

/// Whether an idle session waits for news about its pull request.
pub fn waits_for_pull_request(claim: &Claim) -> bool {
    match &claim.phase {
        Phase::PrCreated | Phase::ChecksRunning => true,
        // The protocol draws it as a state of its own and writes it nowhere; somebody may have.
        Phase::Other(name) => name == "merged_detected",
        Phase::Coding | Phase::ReadyForPr | Phase::Done => false,
    }
}

/// Whether the forge may be asked again, `pause` after the last time. `last` is none if there was no look or its time cannot be read; a time in the
/// future is as good as none.
pub fn poll_is_due(last: Option<Timestamp>, now: Timestamp, pause: Duration) -> bool {
    last.is_none_or(|last| last > now || now.since(last) >= pause)
}

/// A field that is missing before a pull request can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Branch,
    Summary,
}

/// Looks for what a pull request cannot do without.
pub fn missing(claim: &Claim) -> Option<Missing> {
    if claim.branch.trim().is_empty() {
        Some(Missing::Branch)
    } else if claim.summary.trim().is_empty() {
        Some(Missing::Summary)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Missing, OnStop, missing, on_stop, poll_is_due, waits_for_pull_request};
    use crate::claim::{Claim, Phase};
    use crate::time::Timestamp;

    fn claim(phase: &str) -> Claim {
        let mut claim = Claim::new(42, "I".into(), "claude/x-42".into(), "ann-1".into(), "In Progress");
        claim.phase = Phase::from(phase.to_owned());
        claim
    }

    #[test]
    fn the_phase_decides_what_a_stop_does() {
        for (phase, what) in [
            ("coding", OnStop::Nothing),
            ("ready_for_pr", OnStop::OpenPullRequest),
            ("pr_created", OnStop::Nothing),
            ("checks_running", OnStop::Nothing),
            ("done", OnStop::CloseIssue),
            ("whatever", OnStop::Nothing),
        ] {
            assert_eq!(on_stop(&claim(phase)), what, "{phase}");
        }
    }

    #[test]
    fn the_board_is_told_only_what_is_new() {
        for phase in ["coding", "pr_created", "checks_running", "whatever"] {
            let mut claim = claim(phase);
            claim.status = "In Review".into();
            assert_eq!(on_stop(&claim), OnStop::SyncBoard, "{phase}");
            claim.last_synced_status = None;
            assert_eq!(on_stop(&claim), OnStop::SyncBoard, "{phase}");
            claim.status = String::new();
            assert_eq!(on_stop(&claim), OnStop::Nothing, "there is nothing to tell");
        }
    }

    #[test]
    fn only_an_open_pull_request_makes_an_idle_session_wait() {
        let waiting: Vec<&str> =
            ["coding", "ready_for_pr", "pr_created", "checks_running", "merged_detected", "done", "odd"]
                .into_iter()
                .filter(|phase| waits_for_pull_request(&claim(phase)))
                .collect();
        assert_eq!(waiting, ["pr_created", "checks_running", "merged_detected"]);
    }

    #[test]
    fn the_forge_is_asked_again_after_the_pause() {
        let now = Timestamp(10_000_000);
        let poll_is_due = |last, now| poll_is_due(last, now, Duration::from_secs(120));
        assert!(poll_is_due(None, now), "never, or at a time nobody can read");
        assert!(!poll_is_due(Some(Timestamp(now.0 - 119_999)), now));
        assert!(poll_is_due(Some(Timestamp(now.0 - 120_000)), now));
        assert!(
            poll_is_due(Some(Timestamp(now.0 + 1)), now),
            "a clock that went back does not stop the polling"
        );
    }

    #[test]
    fn a_pull_request_needs_a_branch_and_a_summary() {
        let mut claim = claim("ready_for_pr");
        assert_eq!(missing(&claim), Some(Missing::Summary));
        claim.summary = "Fix the race".into();
        assert_eq!(missing(&claim), None);
        claim.branch = " ".into();
        assert_eq!(missing(&claim), Some(Missing::Branch));
    }
}
