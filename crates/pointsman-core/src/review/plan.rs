//! The next step for a pull request. It is decided anew at every look.

use std::sync::LazyLock;

use regex::Regex;

use super::TRIES;
use crate::forge::{IssueState, PullRequest};
use crate::ids::{Number, Sha};
use crate::task::ReviewVerdict;

/// The verdict of CI on a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ci {
    /// It is green, there is none, or the change has no code.
    Green,
    /// It is not finished, or red.
    NotGreen,
}

/// A review of a head that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    UnderWay,
    /// It has an answer that can be used.
    Answered,
    Unusable,
    Stopped,
}

/// A pull request as it is.
#[derive(Clone, Copy, Debug)]
pub struct ReviewFacts<'a> {
    pub pr: &'a PullRequest,
    /// The branch that work lands on.
    pub primary: &'a str,
    /// The account that our reviews are written under.
    pub reviewer: &'a str,
    /// What CI says about its head.
    pub ci: Ci,
    /// What was tried for its head, in order.
    pub attempts: &'a [Attempt],
}

/// The next step for a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Nothing,
    /// Ask a reviewer; so many answers were unusable.
    Ask {
        unusable: usize,
    },
    /// Post the answer of this attempt.
    Post {
        attempt: usize,
    },
    /// A person has to review it.
    GiveUp,
}

/// Decides. One head is asked about [`TRIES`] times at most, and not at all if somebody whose word counts has decided.
pub fn plan(facts: &ReviewFacts<'_>) -> Next {
    let ReviewFacts { pr, primary, reviewer, ci, attempts } = *facts;
    let Some(head) = pr.head_sha.as_ref().filter(|_| pr.state == IssueState::Open && !pr.merged) else {
        return Next::Nothing;
    };
    if pr.base != primary || is_draft(&pr.title) || is_decided(pr, head, reviewer) {
        return Next::Nothing;
    }
    if let Some(attempt) = attempts.iter().position(|attempt| *attempt == Attempt::Answered) {
        return Next::Post { attempt };
    }
    if attempts.contains(&Attempt::UnderWay) {
        return Next::Nothing;
    }
    let unusable = attempts.iter().filter(|attempt| **attempt == Attempt::Unusable).count();
    if attempts.contains(&Attempt::Stopped) || unusable >= TRIES {
        return Next::GiveUp;
    }
    match ci {
        Ci::Green => Next::Ask { unusable },
        Ci::NotGreen => Next::Nothing,
    }
}

/// The issue that a pull request is for, as its text says: `For issue #12`, `Closes #12`.
pub fn closes(body: &str) -> Option<Number> {
    static CLOSES: LazyLock<Regex> = LazyLock::new(|| {
        let closes = r"(?i)\b(?:for issue|close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#([0-9]{1,9})\b";
        Regex::new(closes).expect("a constant that the tests compile")
    });
    CLOSES.captures(body)?.get(1)?.as_str().parse().ok()
}

/// Whether its head was reviewed: by us in any way, or by somebody else with a verdict that stands.
fn is_decided(pr: &PullRequest, head: &Sha, reviewer: &str) -> bool {
    pr.reviews.iter().filter(|review| review.sha == *head).any(|review| {
        let verdict = matches!(review.verdict, ReviewVerdict::Approve | ReviewVerdict::RequestChanges);
        review.author == reviewer || (verdict && !review.dismissed)
    })
}

/// Whether its author says that it is not ready.
fn is_draft(title: &str) -> bool {
    let title = title.trim_start().to_lowercase();
    ["wip:", "[wip]", "draft:", "[draft]"].iter().any(|start| title.starts_with(start))
}
