//! Names of branches and references, checked before they reach git: the rules of `git check-ref-format`, and a few
//! more so that a name can be an argument and a file name wherever it goes.

use std::fmt;

use pointsman_core::config::invalid_branch;

/// The short name of a branch, such as `main` or `pointsman/issue-7`. It may hold `$(id)`; it cannot hold white space,
/// control characters or a leading `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BranchName(String);

impl BranchName {
    /// Takes a name that git takes for a branch, or nothing.
    pub fn new(name: &str) -> Option<Self> {
        let good = valid(name) && !name.starts_with("refs/");
        good.then(|| Self(name.to_owned()))
    }

    /// The short name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The full name, `refs/heads/…`.
    pub fn full(&self) -> RefName {
        RefName(format!("refs/heads/{}", self.0))
    }

    /// The reference for the branch as it was last seen on the remote, `refs/remotes/origin/…`.
    pub fn tracking(&self) -> RefName {
        RefName(format!("refs/remotes/origin/{}", self.0))
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The full name of a reference, `refs/…`, or `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefName(String);

impl RefName {
    /// Takes a full name that git takes, or nothing.
    pub fn new(name: &str) -> Option<Self> {
        let good = name.strip_prefix("refs/").is_some_and(|rest| rest.contains('/')) && valid(name);
        good.then(|| Self(name.to_owned()))
    }

    /// Whatever is checked out.
    pub fn head() -> Self {
        Self("HEAD".to_owned())
    }

    /// The reference of a session's `n`th capture, `refs/pointsman/rescue/<session>/<n>`; none if the session's name
    /// cannot be part of a reference.
    pub fn rescue(session: &str, n: u32) -> Option<Self> {
        if session.contains('/') {
            return None;
        }
        Self::new(&format!("refs/pointsman/rescue/{session}/{n}"))
    }

    /// The full name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A reference follows the same rules as a branch.
fn valid(name: &str) -> bool {
    invalid_branch(name).is_none()
}

#[cfg(test)]
mod tests {
    use super::{BranchName, RefName};

    #[test]
    fn what_git_takes_is_taken_even_if_a_shell_would_choke() {
        for good in
            ["main", "pointsman/issue-7", "$(id)", "a;b", "a'b\"c", "`id`", "#(touch)", "é", "a@b", "x-", "|"]
        {
            assert!(BranchName::new(good).is_some(), "{good}");
        }
    }

    #[test]
    fn what_could_be_something_else_is_refused() {
        let long = "a".repeat(201);
        for bad in [
            "",
            "-x",
            "--upload-pack=x",
            "a b",
            "a\nb",
            "a\tb",
            "a\0b",
            "a\x7fb",
            "a..b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[b",
            "a\\b",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a.",
            "@",
            "a@{1}",
            "HEAD",
            "refs/heads/main",
            "+HEAD:main",
            &long,
        ] {
            assert!(BranchName::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_reference_is_given_in_full() {
        assert!(RefName::new("refs/heads/main").is_some());
        for bad in ["main", "HEAD", "refs/x", "refs//x", "refs/heads/", "refs/heads/a b"] {
            assert!(RefName::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_rescue_reference_names_session_and_number() {
        assert_eq!(RefName::rescue("dev-a-1.2", 3).unwrap().as_str(), "refs/pointsman/rescue/dev-a-1.2/3");
        for bad in ["", "..", "a/b", "a b", ".x", "x.lock"] {
            assert!(RefName::rescue(bad, 1).is_none(), "{bad:?}");
        }
    }
}
