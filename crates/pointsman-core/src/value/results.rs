//! Results of roles, followed to their end: issues that they filed or closed, and commits that were taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{Number, Sha};
use crate::role::Role;
use crate::time::Timestamp;

/// What was closed or landed is undone if it is within so long.
const UNDONE_WITHIN: Duration = Duration::from_secs(7 * 86_400);
/// What is closed is looked at after so long: whoever closed it may still be writing down why.
const GRACE: Duration = Duration::from_secs(3600);
/// An issue that is open for longer is not followed any more.
const FOLLOWED: Duration = Duration::from_secs(90 * 86_400);

/// The results that are still followed. All of it stands in the log; this is what is left of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Following {
    /// How far the log was read.
    pub seq: i64,
    /// Open issues that a role filed: whose, and when.
    pub filed: BTreeMap<Number, (Role, Timestamp)>,
    /// Those of them that are not open any more, and since when.
    pub gone: BTreeMap<Number, Timestamp>,
    /// Issues that a role closed a short while ago: whose, and when.
    pub closed: BTreeMap<Number, (Role, Timestamp)>,
}

/// An entry of the log that says something about a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedResult {
    /// A role filed an issue.
    Filed {
        role: Role,
    },
    Closed {
        role: Role,
    },
    Triaged {
        /// As what: `action`, `backlog`, `watch` or `dismiss`.
        verdict: String,
    },
}

/// The fate of something that a role did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultEnd {
    /// What an issue asked for was done by us.
    Landed,
    /// A prediction became an issue or an action.
    Promoted,
    /// A prediction is kept in sight.
    Watched,
    /// It was closed, and nothing of ours was done for it.
    Dismissed,
    /// What was closed is open again.
    Reopened,
}

impl ResultEnd {
    /// Its word in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landed => "landed",
            Self::Promoted => "promoted",
            Self::Watched => "watched",
            Self::Dismissed => "dismissed",
            Self::Reopened => "reopened",
        }
    }
}

/// A result and its fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub role: Role,
    pub issue: Number,
    pub became: ResultEnd,
}

impl Following {
    /// Takes in what the log says about an issue.
    pub fn hear(&mut self, issue: Number, heard: &LoggedResult, at: Timestamp) -> Option<Outcome> {
        match heard {
            LoggedResult::Filed { role } => drop(self.filed.insert(issue, (*role, at))),
            LoggedResult::Closed { role } => drop(self.closed.insert(issue, (*role, at))),
            LoggedResult::Triaged { verdict } => {
                let became = match verdict.as_str() {
                    "action" | "backlog" => ResultEnd::Promoted,
                    "watch" => ResultEnd::Watched,
                    "dismiss" => ResultEnd::Dismissed,
                    _ => return None,
                };
                self.gone.remove(&issue);
                let (role, _) = self.filed.remove(&issue)?;
                return Some(Outcome { role, issue, became });
            }
        }
        None
    }

    /// Looks at what is open. `seen_at` is when the forge said so, `is_done` whether something of ours was done for an
    /// issue.
    pub fn see(
        &mut self,
        open: &BTreeSet<Number>,
        seen_at: Timestamp,
        is_done: impl Fn(Number) -> bool,
        now: Timestamp,
    ) -> Vec<Outcome> {
        let mut over = Vec::new();
        // What happened after the forge was asked cannot be seen.
        let gone = &mut self.gone;
        self.filed.retain(|issue, (role, at)| {
            if seen_at <= *at || open.contains(issue) {
                gone.remove(issue);
                return now.since(*at) <= FOLLOWED;
            }
            if now.since(*gone.entry(*issue).or_insert(seen_at)) < GRACE {
                return true;
            }
            gone.remove(issue);
            let became = if is_done(*issue) { ResultEnd::Landed } else { ResultEnd::Dismissed };
            over.push(Outcome { role: *role, issue: *issue, became });
            false
        });
        self.closed.retain(|issue, (role, at)| {
            if seen_at > *at && open.contains(issue) {
                over.push(Outcome { role: *role, issue: *issue, became: ResultEnd::Reopened });
                return false;
            }
            now.since(*at) <= UNDONE_WITHIN
        });
        over
    }
}

/// The commits that a commit takes back, by what git writes into its message, if they landed a short while ago.
pub fn reverted_by(message: &str, landed_at: impl Fn(&Sha) -> Option<Timestamp>, now: Timestamp) -> Vec<Sha> {
    const SAYS: &str = "This reverts commit ";
    let named = message.match_indices(SAYS).filter_map(|(at, _)| {
        let rest = &message[at + SAYS.len()..];
        Sha::new(rest.split(|c: char| !c.is_ascii_hexdigit()).next()?)
    });
    named.filter(|sha| landed_at(sha).is_some_and(|at| now.since(at) <= UNDONE_WITHIN)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Following, LoggedResult, ResultEnd, reverted_by};
    use crate::ids::{Number, Sha};
    use crate::role::Role;
    use crate::time::Timestamp;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;

    fn filed(role: Role) -> LoggedResult {
        LoggedResult::Filed { role }
    }

    fn triaged(verdict: &str) -> LoggedResult {
        LoggedResult::Triaged { verdict: verdict.to_owned() }
    }

    /// What became of the issues when the forge says that these are open, after so long.
    fn see(following: &mut Following, open: &[Number], at: i64) -> Vec<(Role, Number, ResultEnd)> {
        let (open, at) = (open.iter().copied().collect(), Timestamp(at));
        let over = following.see(&open, at, |issue| issue == 7, at);
        over.into_iter().map(|one| (one.role, one.issue, one.became)).collect()
    }

    #[test]
    fn what_was_filed_is_followed_until_it_is_closed() {
        let mut following = Following::default();
        for issue in [7, 8, 9] {
            assert_eq!(following.hear(issue, &filed(Role::Planner), Timestamp(HOUR)), None);
        }
        assert_eq!(see(&mut following, &[], HOUR), [], "the forge was asked before");
        assert_eq!(see(&mut following, &[7, 8, 9], 2 * HOUR), []);
        let planner = |issue, became| (Role::Planner, issue, became);
        assert_eq!(see(&mut following, &[9], 3 * HOUR), [], "somebody may still be writing down why");
        assert_eq!(
            see(&mut following, &[9], 4 * HOUR),
            [planner(7, ResultEnd::Landed), planner(8, ResultEnd::Dismissed)]
        );
        assert_eq!(see(&mut following, &[9], 5 * HOUR), [], "each is told once");
        assert_eq!(see(&mut following, &[9], 92 * DAY), []);
        assert_eq!(following, Following::default(), "not for ever");
    }

    #[test]
    fn a_prediction_is_judged_or_closed_by_a_person() {
        for (verdict, became) in [
            ("action", Some(ResultEnd::Promoted)),
            ("backlog", Some(ResultEnd::Promoted)),
            ("watch", Some(ResultEnd::Watched)),
            ("dismiss", Some(ResultEnd::Dismissed)),
            ("nonsense", None),
        ] {
            let mut following = Following::default();
            following.hear(3, &filed(Role::Predictor), Timestamp(HOUR));
            let over = following.hear(3, &triaged(verdict), Timestamp(2 * HOUR));
            assert_eq!(over.map(|one| one.became), became, "{verdict}");
            see(&mut following, &[], 3 * HOUR);
            let closed = see(&mut following, &[], 4 * HOUR);
            let unjudged = became.is_none().then_some(ResultEnd::Dismissed);
            assert_eq!(closed.first().map(|(_, _, became)| *became), unjudged, "{verdict}");
        }
        assert_eq!(Following::default().hear(3, &triaged("dismiss"), Timestamp(0)), None, "not ours");
    }

    #[test]
    fn what_was_closed_and_is_open_again_within_a_week_was_a_mistake() {
        let closed = LoggedResult::Closed { role: Role::Gardener };
        let mut following = Following::default();
        following.hear(3, &closed, Timestamp(HOUR));
        assert_eq!(see(&mut following, &[3], HOUR), [], "it was listed before it was closed");
        assert_eq!(see(&mut following, &[], 2 * HOUR), []);
        assert_eq!(see(&mut following, &[3], 3 * HOUR), [(Role::Gardener, 3, ResultEnd::Reopened)]);
        following.hear(4, &closed, Timestamp(HOUR));
        assert_eq!(see(&mut following, &[], 8 * DAY), []);
        assert_eq!(see(&mut following, &[4], 9 * DAY), [], "a week has passed");
    }

    #[test]
    fn a_commit_says_what_it_takes_back() {
        let (ours, old, others) = ("a1".repeat(20), "b2".repeat(20), "c3".repeat(20));
        let landed_at = |sha: &Sha| match sha.as_str() {
            sha if sha == ours => Some(Timestamp(9 * DAY)),
            sha if sha == old => Some(Timestamp(2 * DAY)),
            _ => None,
        };
        let read = |message: &str| reverted_by(message, landed_at, Timestamp(10 * DAY));
        let message = format!(
            "Revert \"Apples\"\n\nThis reverts commit {ours}.\nThis reverts commit {old}, reversing\n"
        );
        assert_eq!(read(&message), [Sha::new(&ours).unwrap()]);
        assert_eq!(read(&format!("This reverts commit {others}.")), []);
        assert_eq!(read("This reverts commit a1a1.\nThis reverts commit "), []);
    }
}
