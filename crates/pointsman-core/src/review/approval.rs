//! The approval of a commit: whose review counts, and what a project requires.

use crate::config::ReviewMode;
use crate::forge::Review;
use crate::ids::Sha;
use crate::task::ReviewVerdict;

/// The approval that a change needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    Nothing,
    /// Of the review agent, or of a person.
    Anybody,
    Person,
}

impl Required {
    /// The approval that a project requires of a change, which may touch protected paths.
    pub fn of(mode: ReviewMode, touches_protected: bool) -> Self {
        match (touches_protected, mode) {
            (true, _) | (false, ReviewMode::Human) => Self::Person,
            (false, ReviewMode::Agent) => Self::Anybody,
            (false, ReviewMode::None) => Self::Nothing,
        }
    }
}

/// The accounts whose approval is not a person's.
#[derive(Clone, Copy, Debug)]
pub struct Accounts<'a> {
    /// The author of the pull request, who cannot approve it.
    pub author: &'a str,
    /// The account that our reviews are written under.
    pub reviewer: Option<&'a str>,
}

/// Whether the head is approved by somebody else, as required, and nobody asks for changes. A review counts for the commit
/// that it was written for, and for no other.
pub fn is_approved(reviews: &[Review], head: &Sha, required: Required, accounts: Accounts<'_>) -> bool {
    let by_agent = |review: &Review| accounts.reviewer == Some(review.author.as_str());
    let enough = |review: &Review| match required {
        Required::Nothing | Required::Anybody => true,
        Required::Person => !by_agent(review),
    };
    let stands =
        |review: &Review| !review.dismissed && review.sha == *head && review.author != accounts.author;
    let said = |verdict| reviews.iter().filter(move |review| review.verdict == verdict && stands(review));
    if said(ReviewVerdict::RequestChanges).next().is_some() {
        return false;
    }
    required == Required::Nothing || said(ReviewVerdict::Approve).any(enough)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn review(author: &str, verdict: ReviewVerdict, digit: char, dismissed: bool) -> Review {
        let sha = Sha::new(&digit.to_string().repeat(40)).unwrap();
        Review {
            id: 1,
            author: author.to_owned(),
            verdict,
            body: String::new(),
            sha,
            at: Timestamp(0),
            dismissed,
        }
    }

    #[test]
    fn an_approval_counts_for_its_commit_and_if_the_right_one_gave_it() {
        use ReviewVerdict::{Approve, Discuss, RequestChanges};
        let head = Sha::new(&"a".repeat(40)).unwrap();
        let accounts = Accounts { author: "dev", reviewer: Some("judge") };
        let by = |author| vec![review(author, Approve, 'a', false)];
        // Reviews, and whether they are enough for nothing, for anybody's and for a person's approval.
        let rows: Vec<(&str, Vec<Review>, [bool; 3])> = vec![
            ("nobody said anything", vec![], [true, false, false]),
            ("a person", by("ann"), [true, true, true]),
            ("the review agent", by("judge"), [true, true, false]),
            ("the author", by("dev"), [true, false, false]),
            ("another commit", vec![review("ann", Approve, 'b', false)], [true, false, false]),
            ("taken back", vec![review("ann", Approve, 'a', true)], [true, false, false]),
            ("talk", vec![review("ann", Discuss, 'a', false)], [true, false, false]),
            (
                "somebody wants changes",
                vec![review("ann", Approve, 'a', false), review("bob", RequestChanges, 'a', false)],
                [false, false, false],
            ),
        ];
        for (name, reviews, enough) in rows {
            for (required, enough) in
                [Required::Nothing, Required::Anybody, Required::Person].into_iter().zip(enough)
            {
                assert_eq!(is_approved(&reviews, &head, required, accounts), enough, "{name}, {required:?}");
            }
        }
    }

    #[test]
    fn protected_paths_need_a_person_in_every_mode() {
        for mode in [ReviewMode::Human, ReviewMode::Agent, ReviewMode::None] {
            assert_eq!(Required::of(mode, true), Required::Person, "{mode}");
        }
        assert_eq!(Required::of(ReviewMode::Human, false), Required::Person);
        assert_eq!(Required::of(ReviewMode::Agent, false), Required::Anybody);
        assert_eq!(Required::of(ReviewMode::None, false), Required::Nothing);
    }
}
