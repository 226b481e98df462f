//! Issues that sessions file by themselves. Each names the session that filed it, and by it the issue that the session works
//! on, its parent. Limits keep sessions from making work for ever more sessions.

use crate::config::Limits;
use crate::ids::Number;
use crate::words;
use crate::workflow::WorkflowId;

/// The longest chain of issues, each filed by a session that works on the one before, that nobody is asked about. An issue that a
/// person filed has none before it.
pub const DEEPEST: u32 = 2;

/// The most parents that are looked up: what is beyond is deep enough.
const LOOKED_UP: u32 = 8;

/// The facts about a session that wants to file an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilingFacts {
    /// Issues that this session has filed.
    pub by_session: u64,
    /// Issues that sessions of the project have filed within a day.
    pub today: u64,
    /// The length of the chain that the new issue would end.
    pub depth: u32,
    /// Whether a person let this session go on.
    pub approved: bool,
}

/// The answer to a session that wants to file an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filing {
    Allowed,
    /// Not, for this reason.
    Refused(String),
    /// Not before a person has said yes.
    Asks(String),
}

/// Decides whether a session may file an issue.
pub fn judge(session: &str, facts: FilingFacts, limits: &Limits) -> Filing {
    if facts.by_session >= u64::from(limits.session_issues) {
        return Filing::Refused(words::access::filed_enough(session, limits.session_issues));
    }
    if facts.today >= u64::from(limits.session_issues_per_day) {
        return Filing::Refused(words::access::filed_enough_today(limits.session_issues_per_day));
    }
    if facts.depth > DEEPEST && !facts.approved {
        return Filing::Asks(words::access::chain_too_deep(session, facts.depth));
    }
    Filing::Allowed
}

/// The issue that the author of another one worked on; none if a person wrote it, or a session without an issue.
pub fn parent(author: &str) -> Option<Number> {
    WorkflowId::parse_session(author).and_then(|(id, _)| id.issue())
}

/// Whether a session wrote an issue.
pub fn by_session(author: &str) -> bool {
    WorkflowId::parse_session(author).is_some()
}

/// The length of the chain that an issue of this author ends: 0 for a person's, 1 for one that a session filed which works on a
/// person's issue. `author_of` looks up whoever filed an issue.
pub fn depth(author: &str, mut author_of: impl FnMut(Number) -> Option<String>) -> u32 {
    let mut author = author.to_owned();
    let mut depth = 0;
    while by_session(&author) && depth < LOOKED_UP {
        depth += 1;
        match parent(&author).and_then(&mut author_of) {
            Some(earlier) => author = earlier,
            None => break,
        }
    }
    depth
}

/// The mark at the end of an issue's text that names its parent.
pub fn mark(author: &str) -> Option<String> {
    by_session(author).then(|| match parent(author) {
        Some(issue) => words::comment::filed_for(author, issue),
        None => words::comment::filed_by(author),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn limits() -> Limits {
        Config::default().limits
    }

    #[test]
    fn a_session_files_within_its_limits_and_asks_when_the_chain_is_long() {
        let facts = FilingFacts { by_session: 0, today: 0, depth: 1, approved: false };
        let judged = |facts| judge("dev-shop-3.1", facts, &limits());
        assert_eq!(judged(facts), Filing::Allowed);
        assert_eq!(judged(FilingFacts { depth: 2, ..facts }), Filing::Allowed);
        assert!(matches!(judged(FilingFacts { depth: 3, ..facts }), Filing::Asks(_)));
        assert_eq!(judged(FilingFacts { depth: 3, approved: true, ..facts }), Filing::Allowed);
        let full = FilingFacts { by_session: 3, approved: true, ..facts };
        assert!(matches!(judged(full), Filing::Refused(why) if why.contains("limits.session_issues")));
        let day = FilingFacts { today: 20, approved: true, ..facts };
        assert!(matches!(judged(day), Filing::Refused(why) if why.contains("limits.session_issues_per_day")));
    }

    #[test]
    fn a_chain_is_as_long_as_the_issues_that_sessions_filed() {
        let author_of = |number: Number| {
            Some(match number {
                1 => "ann".to_owned(),
                2 => "dev-shop-1.1".to_owned(),
                3 => "dev-shop-2.4".to_owned(),
                // One that names itself ends all the same.
                9 => "dev-shop-9.1".to_owned(),
                _ => return None,
            })
        };
        let depth = |author: &str| depth(author, author_of);
        assert_eq!(depth("ann"), 0);
        assert_eq!(depth("dev-shop-1.1"), 1);
        assert_eq!(depth("dev-shop-2.1"), 2);
        assert_eq!(depth("dev-shop-3.1"), 3);
        assert_eq!(depth("dev-shop-77.1"), 1, "an issue that is not there");
        assert_eq!(depth("dev-shop-9.2"), LOOKED_UP);
    }

    #[test]
    fn an_issue_of_a_session_names_its_parent() {
        assert_eq!(mark("dev-shop-3.1").unwrap(), "<!-- filed by dev-shop-3.1, which works on #3 -->");
        assert_eq!(mark("ann"), None);
    }
}
