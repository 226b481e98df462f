//! Texts about a merge queue: one line for what became of a branch, and what is known of a red test.

use crate::ids::{Number, Sha};
use crate::text::clean_line;
use crate::time::Timestamp;

/// The longest line.
const LINE: usize = 600;

/// The end of a branch in the queue, for whoever watches `merge-queue serve`.
pub struct Outcome<'a> {
    pub branch: &'a str,
    /// `landed`, `red`, `conflict` …
    pub status: &'a str,
    /// The commit that is on main.
    pub commit: Option<&'a str>,
    pub reason: Option<&'a str>,
    pub files: &'a [String],
    /// Where the gate's log is.
    pub log: Option<&'a str>,
}

/// The outcome as one line.
pub fn outcome(outcome: &Outcome<'_>) -> String {
    let mut line = format!("{} {}", outcome.status, clean_line(outcome.branch, 200));
    if let Some(commit) = outcome.commit {
        line += &format!(" as {}", clean_line(commit, 12));
    }
    let files: Vec<String> = outcome.files.iter().take(5).map(|file| clean_line(file, 100)).collect();
    let why = [files.join(", "), outcome.reason.map(|why| clean_line(why, LINE)).unwrap_or_default()];
    let why: Vec<&str> = why.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    if !why.is_empty() {
        line += &format!(": {}", why.join("; "));
    }
    if let Some(log) = outcome.log {
        line += &format!(" (log: {})", clean_line(log, 300));
    }
    line
}

/// The reason why nobody is blamed for red tests: main has them too. The time is that of the last test.
pub fn main_is_red(main: &str, tested_at: Option<Timestamp>) -> String {
    let tested = tested_at.map(|at| format!(", as tested at {}", clock_time(at))).unwrap_or_default();
    format!(
        "main itself is red at {main}{tested}: it waits for a fix. To test it again now, run `pointsman merge-queue \
            retest main`"
    )
}

/// A summary of red tests that were run for an earlier look.
pub fn tested_before(summary: &str, tested_at: Timestamp) -> String {
    format!("{summary}, as tested at {}", clock_time(tested_at))
}

/// The reason why a branch whose changes are all on main is refused.
pub fn nothing_to_land(branch: &str, main: &str) -> String {
    format!(
        "{branch} changes nothing on {main}, so there is nothing to land; the branch stays. To keep its commits in the \
         history, add it with --style merge"
    )
}

/// The reason why a branch without a pull request leaves a queue that the forge works on.
pub const FORGE_TAKES_PULL_REQUESTS: &str =
    "with merge.engine = \"forge\", only pull requests land; open one for this branch";
/// The state of a pull request that a person told the forge to merge.
pub const AUTO_MERGE_IS_ON: &str = "auto-merge is on, so the forge merges it as soon as its rules are met";

/// The reason of an entry that the forge has.
pub fn handed_to_forge(words: &str) -> String {
    format!("the forge merges it: {}", clean_line(words, LINE))
}

/// The forge does not merge a pull request.
pub fn forge_refused_merge(reason: &str) -> String {
    format!("the forge did not merge it: {}", clean_line(reason, LINE))
}

/// The pull request of an entry is closed or gone.
pub fn pull_request_gone(number: Number) -> String {
    format!("pull request #{number} was closed without a merge")
}

/// The reason why the queue stops when the forge made something else than was tested.
pub fn forge_merged_something_else(branch: &str, sha: &Sha) -> String {
    format!(
        "the forge merged {} as {}, whose files differ from those that were tested; check it, then run `pointsman \
            merge-queue resume`",
        clean_line(branch, 200),
        sha.short()
    )
}

/// The refusal of `merge-queue try` where the tests run on a server.
pub const TRIED_BY_CI: &str = "this project's gate is its CI on a server, which tests every pushed branch; push the \
    branch and read its checks";
/// The refusal of `merge-queue try` where nothing is tested.
pub const NO_GATE_TO_TRY: &str =
    "this project has no gate, so there is nothing to try; set merge.gate or ci.command";

/// The begin of `merge-queue try`.
pub fn trying(branch: &str, candidate: &Sha, base: &Sha) -> String {
    format!("testing {} as {} on {}", clean_line(branch, 200), candidate.short(), base.short())
}

/// A server refused a push; it is asked once more.
pub fn push_refused(branch: &str, message: &str) -> String {
    format!("the server refused the push to {branch}: {message}")
}

/// The reason why the queue is paused when a server goes on refusing.
pub fn push_refused_twice(branch: &str, message: &str) -> String {
    format!(
        "the server refused the push to {branch} twice: {message}. Allow this account to push there (the branch may \
            be protected), then run `pointsman merge-queue resume`"
    )
}

/// The comment on a pull request whose changes reached main without it.
pub fn landed_by_another_way(main: &str) -> String {
    format!(
        "Everything that this pull request changes is already on the main branch, as of {main}, so nothing was \
            merged."
    )
}

/// The answer to `merge-queue resume`.
pub fn resumed(was_paused: bool) -> &'static str {
    if was_paused { "The merge queue is working again." } else { "The merge queue was not paused." }
}

/// The answer to `merge-queue remove`.
pub fn removed(entry: i64) -> String {
    format!("Entry {entry} was removed from the merge queue.")
}

/// The answer to a request that only the daemon may make.
pub const ONLY_BY_COMMAND: &str =
    "this request is made by the daemon itself; use `merge-queue add` or `merge-queue retest`";

/// The reason why nothing is known of a commit that an outside CI should have tested.
pub fn checks_unreadable(error: &str) -> String {
    format!("the checks of the commit cannot be read: {}", clean_line(error, LINE))
}

/// The answer to a request for an entry that nobody knows.
pub fn unknown_entry(what: &str) -> String {
    format!("the merge queue has no branch or entry called {}", clean_line(what, 200))
}

/// The answer to whoever wants to test a task's branch again.
pub fn belongs_to_task(entry: i64, issue: Number) -> String {
    format!("entry {entry} belongs to the task of issue #{issue}, which brings it back itself")
}

/// Hours and minutes of the day, in UTC.
pub(super) fn clock_time(at: Timestamp) -> String {
    let minutes = at.0.div_euclid(60_000).rem_euclid(24 * 60);
    format!("{:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// The reason of an entry that waits until a person has looked at something in it.
pub fn waits_for_secret(what: &str) -> String {
    format!("waits for a person: {} (see `pointsman inbox`)", clean_line(what, LINE))
}

/// The summary of a branch that a person did not let land.
pub fn is_secret(what: &str) -> String {
    format!("a person says that it contains a secret: {}", clean_line(what, LINE))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, main_is_red, outcome, tested_before};
    use crate::time::Timestamp;

    #[test]
    fn an_outcome_is_one_line() {
        let landed = Outcome {
            branch: "fix-login",
            status: "landed",
            commit: Some("c9f8e7d6a5"),
            reason: None,
            files: &[],
            log: None,
        };
        assert_eq!(outcome(&landed), "landed fix-login as c9f8e7d6a5");
        let red = Outcome {
            status: "red",
            commit: None,
            reason: Some("exit\ncode 1"),
            log: Some("/logs/x.log"),
            ..landed
        };
        assert_eq!(outcome(&red), "red fix-login: exit code 1 (log: /logs/x.log)");
        let files = ["src/a.rs".to_owned()];
        let conflict =
            Outcome { status: "conflict", reason: Some("conflicts with b"), files: &files, log: None, ..red };
        assert_eq!(outcome(&conflict), "conflict fix-login: src/a.rs; conflicts with b");
    }

    #[test]
    fn a_test_has_a_time() {
        let at = Timestamp((12 * 60 + 4) * 60_000 + 86_400_000);
        assert_eq!(tested_before("exit code 1", at), "exit code 1, as tested at 12:04 UTC");
        assert!(
            main_is_red("abc", Some(at)).starts_with("main itself is red at abc, as tested at 12:04 UTC: ")
        );
        assert!(main_is_red("abc", None).starts_with("main itself is red at abc: it waits"));
    }
}

/// Reasons why the queue does not go on from what reached main without it.
pub mod outside {
    use crate::ids::Sha;
    use crate::queue::outside::Unapproved;
    use crate::text::clean_line;

    pub const REWRITTEN: &str = "main lost commits that it had";
    pub const PAUSED_BY_SETTING: &str = "`merge.outside_pushes` is `pause`";
    pub const PUSHER_UNKNOWN: &str = "the forge does not say who pushed it";

    /// Commits that nobody approved.
    pub fn unapproved(sha: &Sha, work: &Unapproved) -> String {
        let sha = sha.short();
        match work {
            Unapproved::PullRequest(number) => {
                format!("{sha} belongs to pull request #{number}, which is not approved at this commit")
            }
            Unapproved::NotTheMergeOf(number) => {
                format!("{sha} is not what merging pull request #{number} gives")
            }
            Unapproved::Branch(branch) => {
                format!("{sha} belongs to the branch {}, which is not approved", clean_line(branch, 200))
            }
        }
    }

    /// A commit that names a session.
    pub fn by_session(sha: &Sha, committer: &str) -> String {
        format!("{} was made by a session ({})", sha.short(), clean_line(committer, 200))
    }

    /// A session that was not enclosed.
    pub fn session_could(session: &str) -> String {
        let session = clean_line(session, 200);
        format!("the session {session} did not verifiably run inside the sandbox and could have pushed it")
    }

    /// An account of ours.
    pub fn our_account(login: &str) -> String {
        format!(
            "the forge names our own account `{}`, and the merge queue did not push it",
            clean_line(login, 100)
        )
    }
}
