//! The approval of a commit: whose review counts, and what a project requires.

use std::collections::BTreeSet;

use super::risk::{Reviewers, Risk};
use crate::config::{Config, ReviewMode, RiskReviewer};
use crate::forge::Review;
use crate::ids::Sha;
use crate::part::contribution::{self, Approvals};
use crate::task::ReviewVerdict;

/// The approval that a change needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    Nothing,
    /// Of the review agent, or of a person.
    Anybody,
    /// Of so many different people.
    People(usize),
}

impl Required {
    /// The approval that a project requires of a change, which may touch protected paths. Its risk counts where that decides.
    pub fn of(config: &Config, touches_protected: bool, risk: Option<&Risk>) -> Self {
        let mode = contribution::ReviewMode::new(config);
        let people = Approvals::new(config).needed(mode, touches_protected, risk);
        match (touches_protected, config.review.mode) {
            (true, _) | (false, ReviewMode::Human) => Self::People(people),
            (false, ReviewMode::Agent) => Self::Anybody,
            (false, ReviewMode::None) => Self::Nothing,
            (false, ReviewMode::Risk) => match Reviewers::new(&config.risk).of(risk) {
                RiskReviewer::Nobody => Self::Nothing,
                RiskReviewer::Agent => Self::Anybody,
                RiskReviewer::Person | RiskReviewer::TwoPeople => Self::People(people),
            },
        }
    }
}

/// The accounts whose approval is not a person's, and the people behind the others.
#[derive(Clone, Copy)]
pub struct Accounts<'a> {
    /// The author of the pull request, who cannot approve it.
    pub author: &'a str,
    /// The account that our reviews are written under.
    pub reviewer: Option<&'a str>,
    /// The person behind an account; none if its word does not count.
    pub person: &'a dyn Fn(&str) -> Option<String>,
}

/// Whether the head is approved by others than its author, as required, and nobody asks for changes. A review counts for the
/// commit that it was written for, and for no other. The same person twice is one approval.
pub fn is_approved(reviews: &[Review], head: &Sha, required: Required, accounts: Accounts<'_>) -> bool {
    let by_agent = |review: &Review| accounts.reviewer == Some(review.author.as_str());
    let stands =
        |review: &Review| !review.dismissed && review.sha == *head && review.author != accounts.author;
    let said = |verdict| reviews.iter().filter(move |review| review.verdict == verdict && stands(review));
    if said(ReviewVerdict::RequestChanges).next().is_some() {
        return false;
    }
    let author = (accounts.person)(accounts.author);
    let people: BTreeSet<String> = said(ReviewVerdict::Approve)
        .filter(|review| !by_agent(review))
        .filter_map(|review| (accounts.person)(&review.author))
        .filter(|person| author.as_ref() != Some(person))
        .collect();
    match required {
        Required::Nothing => true,
        Required::Anybody => said(ReviewVerdict::Approve).any(by_agent) || !people.is_empty(),
        Required::People(needed) => people.len() >= needed.max(1),
    }
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
        let person = |account: &str| match account {
            "ann-2" => Some("ann".to_owned()),
            "stranger" => None,
            account => Some(account.to_owned()),
        };
        let accounts = Accounts { author: "dev", reviewer: Some("judge"), person: &person };
        let by = |author| vec![review(author, Approve, 'a', false)];
        let both = |one, other| vec![review(one, Approve, 'a', false), review(other, Approve, 'a', false)];
        // Reviews, and whether they are enough for nothing, for anybody's approval, for a person's and for two people's.
        let rows: Vec<(&str, Vec<Review>, [bool; 4])> = vec![
            ("two people", both("ann", "bob"), [true, true, true, true]),
            ("one person with two accounts", both("ann", "ann-2"), [true, true, true, false]),
            ("the same account twice", both("ann", "ann"), [true, true, true, false]),
            ("a person and the review agent", both("ann", "judge"), [true, true, true, false]),
            ("a person and a stranger", both("ann", "stranger"), [true, true, true, false]),
            ("a stranger", by("stranger"), [true, false, false, false]),
            ("nobody said anything", vec![], [true, false, false, false]),
            ("a person", by("ann"), [true, true, true, false]),
            ("the review agent", by("judge"), [true, true, false, false]),
            ("the author", by("dev"), [true, false, false, false]),
            ("another commit", vec![review("ann", Approve, 'b', false)], [true, false, false, false]),
            ("taken back", vec![review("ann", Approve, 'a', true)], [true, false, false, false]),
            ("talk", vec![review("ann", Discuss, 'a', false)], [true, false, false, false]),
            (
                "somebody wants changes",
                vec![review("ann", Approve, 'a', false), review("bob", RequestChanges, 'a', false)],
                [false, false, false, false],
            ),
        ];
        for (name, reviews, enough) in rows {
            for (required, enough) in
                [Required::Nothing, Required::Anybody, Required::People(1), Required::People(2)]
                    .into_iter()
                    .zip(enough)
            {
                assert_eq!(is_approved(&reviews, &head, required, accounts), enough, "{name}, {required:?}");
            }
        }
    }

    #[test]
    fn protected_paths_need_a_person_in_every_mode() {
        let of = |keys: &str, touches_protected| {
            let text = format!("name = \"shop\"\n[review]\n{keys}");
            Required::of(&Config::parse(&text, "pointsman.toml").unwrap(), touches_protected, None)
        };
        let agent = "command = [\"./review.sh\"]";
        for keys in ["", agent, "mode = \"none\""] {
            assert_eq!(of(keys, true), Required::People(1), "{keys}");
            let two = format!("protected_approvals = 2\n{keys}");
            assert_eq!(of(&two, true), Required::People(2), "{keys}");
        }
        assert_eq!(of("", false), Required::People(1));
        assert_eq!(of("approvals = 2", false), Required::People(2));
        assert_eq!(of("approvals = 2", true), Required::People(2));
        assert_eq!(of(agent, false), Required::Anybody);
        assert_eq!(of("mode = \"none\"", false), Required::Nothing);
        assert_eq!(of("mode = \"risk\"", false), Required::People(1), "nobody judged it");
        assert_eq!(of("mode = \"risk\"\nprotected_approvals = 2", true), Required::People(2));
    }
}
