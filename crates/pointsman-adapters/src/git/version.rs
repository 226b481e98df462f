//! The version of the installed git, and what it cannot do yet.

use super::{Error, Git};

/// A release of git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// As git tells it, such as `2.39.5`.
    pub text: String,
    number: (u32, u32),
}

impl Version {
    /// The oldest that everything works with: the one whose `merge-tree` makes many merges in one process.
    pub const OLDEST: (u32, u32) = (2, 39);

    /// Since then `merge-tree` takes a merge base (2.40) and attributes can come from a commit (2.41).
    const MERGES_AS_TOLD: (u32, u32) = (2, 41);

    /// Since then `merge-tree` merges trees, which need not be commits yet.
    const MERGES_TREES: (u32, u32) = (2, 45);

    /// Whether this release is new enough.
    pub fn is_supported(&self) -> bool {
        self.number >= Self::OLDEST
    }

    /// Whether a merge can be told its base and its attributes; see [`older_git`](super::older_git) if not.
    pub(super) fn merges_as_told(&self) -> bool {
        self.number >= Self::MERGES_AS_TOLD
    }

    /// Whether trees can be merged that no commit has yet: then a whole chain is replayed by a few processes.
    pub(super) fn merges_trees(&self) -> bool {
        self.number >= Self::MERGES_TREES
    }

    /// What cannot be read counts as too old.
    pub(super) fn parse(output: &str) -> Self {
        let text = output.trim().trim_start_matches("git version ").to_owned();
        let mut numbers = text.split(['.', ' ', '-']).map_while(|part| part.parse().ok());
        let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Self { text, number }
    }
}

impl Git {
    /// The release of the installed program. It is asked once: whoever replaces git by an older one starts us again.
    pub fn version(&self) -> Result<&Version, Error> {
        if let Some(version) = self.version.get() {
            return Ok(version);
        }
        let told = Version::parse(&self.call("version").text()?);
        Ok(self.version.get_or_init(|| told))
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn versions_are_compared_by_number() {
        for (told, supported, merges) in [
            ("git version 2.38.9", false, false),
            ("git version 2.39.5\n", true, false),
            ("git version 2.40.0.rc1-5-g1234", true, false),
            ("git version 2.41.0 (Apple Git-155)", true, true),
            ("git version 2.100", true, true),
            ("git version 3.0-rc1", true, true),
            ("git version unknown", false, false),
        ] {
            let version = Version::parse(told);
            assert_eq!((version.is_supported(), version.merges_as_told()), (supported, merges), "{told}");
        }
        assert_eq!(Version::parse("git version 2.39.5\n").text, "2.39.5");
    }
}
