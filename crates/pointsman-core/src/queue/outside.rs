//! Commits that reached the main branch without the merge queue: whether people merged a pull request, whether they pushed
//! something that can be taken, or whether the queue pauses and asks.

use crate::config::OutsidePushes;
use crate::ids::{Number, Sha};
use crate::words;

/// The end of the address under which sessions commit.
pub const SESSION_ADDRESS: &str = "@pointsman.invalid";

/// Whoever moved the main branch, as far as that can be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pusher {
    /// The forge names this account, and it is none of ours.
    Person { login: String },
    /// Only people can have reached the repository: every session since the last landing ran inside the sandbox.
    NoSession,
    /// This session ran outside the sandbox, or nobody can tell any more, and could have pushed.
    Session { session: String },
    /// The forge names an account of ours, which did not push through the queue.
    OurAccount { login: String },
    /// The forge does not say.
    Unknown,
}

/// A commit on the main branch that the queue did not put there and that is no merge of an approved pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideCommit {
    pub sha: Sha,
    /// The address of whoever made the commit, as it says.
    pub committer: String,
    /// The pull request or branch that it belongs to and that is not approved.
    pub unapproved: Option<Unapproved>,
}

/// Work that nobody has approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unapproved {
    PullRequest(Number),
    /// The pull request is approved, and the commit on main is not its merge.
    NotTheMergeOf(Number),
    Branch(String),
}

/// The facts about a movement of the main branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideFacts {
    /// Whether the main branch lost commits that it had.
    pub rewritten: bool,
    pub pusher: Pusher,
    /// All commits of it that are not ours, not only those along first parents.
    pub commits: Vec<OutsideCommit>,
}

/// The consequence for the merge queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The queue goes on from there, and its gate tests it.
    Accept,
    /// The queue pauses, for this reason.
    Pause { why: String },
}

/// Judges what reached the main branch from outside. Without a reason to take it, the queue pauses.
pub fn judge(policy: OutsidePushes, facts: &OutsideFacts) -> Judgement {
    let pause = |why: String| Judgement::Pause { why };
    if facts.rewritten {
        return pause(words::queue::outside::REWRITTEN.to_owned());
    }
    match policy {
        OutsidePushes::Pause => return pause(words::queue::outside::PAUSED_BY_SETTING.to_owned()),
        OutsidePushes::Accept => {}
    }
    let unapproved = |commit: &OutsideCommit| Some((commit.sha.clone(), commit.unapproved.clone()?));
    if let Some((sha, work)) = facts.commits.iter().find_map(unapproved) {
        return pause(words::queue::outside::unapproved(&sha, &work));
    }
    if let Some(commit) = facts.commits.iter().find(|commit| is_session(&commit.committer)) {
        return pause(words::queue::outside::by_session(&commit.sha, &commit.committer));
    }
    match &facts.pusher {
        Pusher::Person { .. } | Pusher::NoSession => Judgement::Accept,
        Pusher::Session { session } => pause(words::queue::outside::session_could(session)),
        Pusher::OurAccount { login } => pause(words::queue::outside::our_account(login)),
        Pusher::Unknown => pause(words::queue::outside::PUSHER_UNKNOWN.to_owned()),
    }
}

/// Whether a session made a commit, by what the commit says. It may lie, so this alone proves nothing.
pub fn is_session(committer: &str) -> bool {
    committer.to_ascii_lowercase().ends_with(SESSION_ADDRESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(committer: &str, unapproved: Option<Unapproved>) -> OutsideCommit {
        OutsideCommit { sha: Sha::new(&"a".repeat(40)).unwrap(), committer: committer.to_owned(), unapproved }
    }

    fn facts(pusher: Pusher, commit: OutsideCommit) -> OutsideFacts {
        OutsideFacts { rewritten: false, pusher, commits: vec![commit] }
    }

    fn person() -> Pusher {
        Pusher::Person { login: "ann".to_owned() }
    }

    fn plain() -> OutsideCommit {
        commit("ann@example.org", None)
    }

    #[test]
    fn only_a_fast_forward_that_no_session_can_have_made_is_taken() {
        let rewritten = OutsideFacts { rewritten: true, ..facts(person(), plain()) };
        let rows: Vec<(&str, OutsideFacts, Option<&str>)> = vec![
            ("a person's push", facts(person(), plain()), None),
            ("sandboxed sessions only", facts(Pusher::NoSession, plain()), None),
            ("a forge that does not say", facts(Pusher::Unknown, plain()), Some("does not say who")),
            (
                "a session outside",
                facts(Pusher::Session { session: "dev-shop-3.1".to_owned() }, plain()),
                Some("dev-shop-3.1"),
            ),
            (
                "our own account",
                facts(Pusher::OurAccount { login: "bot".to_owned() }, plain()),
                Some("account `bot`"),
            ),
            ("a rewritten main", rewritten, Some("lost commits")),
            (
                "an unapproved head",
                facts(person(), commit("ann@example.org", Some(Unapproved::PullRequest(4)))),
                Some("pull request #4, which is not approved"),
            ),
            (
                "a merge with something else in it",
                facts(person(), commit("ann@example.org", Some(Unapproved::NotTheMergeOf(4)))),
                Some("is not what merging pull request #4 gives"),
            ),
            (
                "a task's branch",
                facts(person(), commit("x@y", Some(Unapproved::Branch("pointsman/issue-3".to_owned())))),
                Some("pointsman/issue-3"),
            ),
            (
                "a session's commit",
                facts(person(), commit("dev-shop-3@POINTSMAN.invalid", None)),
                Some("made by a session"),
            ),
        ];
        for (name, facts, why) in rows {
            match (judge(OutsidePushes::Accept, &facts), why) {
                (Judgement::Accept, None) => {}
                (Judgement::Pause { why }, Some(part)) => assert!(why.contains(part), "{name}: {why}"),
                (judgement, _) => panic!("{name}: {judgement:?}"),
            }
            assert!(matches!(judge(OutsidePushes::Pause, &facts), Judgement::Pause { .. }), "{name}");
        }
    }
}
