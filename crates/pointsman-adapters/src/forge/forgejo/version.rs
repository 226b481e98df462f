//! The kind and version of a server. Forgejo tells the Gitea version it is compatible with behind its own.

use std::fmt;

/// Major and minor.
type Release = (u32, u32);

/// The oldest Gitea we were made for.
const TARGET: Release = (1, 21);
/// Since when Gitea has native dependencies in its API.
const DEPENDENCIES: Release = (1, 20);

/// A server's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    text: String,
    gitea: Option<Release>,
}

impl Version {
    /// Reads what `/version` says: `1.21.3`, or `7.0.5+gitea-1.21.11`.
    pub fn parse(text: &str) -> Self {
        let compatible = text.split('+').find_map(|part| part.strip_prefix("gitea-"));
        Self { text: text.to_owned(), gitea: release(compatible.unwrap_or(text)) }
    }

    /// Whether issues can depend on each other by the API.
    pub fn has_dependencies(&self) -> bool {
        self.is_at_least(DEPENDENCIES)
    }

    /// The shortcomings of this version, a sentence each.
    pub fn lacks(&self) -> Vec<&'static str> {
        let mut lacking = Vec::new();
        if !self.is_at_least(TARGET) {
            lacking.push("it is older than Gitea 1.21 and Forgejo 7, for which Pointsman was made");
        }
        if !self.has_dependencies() {
            lacking.push("it has no dependencies in its API: only those in the text of an issue are seen");
            lacking.push("without branch protection it counts nobody's review as official: protect the main branch, or nobody can approve");
        }
        lacking
    }

    /// A server that tells no version we can read is taken to be new.
    fn is_at_least(&self, least: Release) -> bool {
        self.gitea.is_none_or(|release| release >= least)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn release(text: &str) -> Option<Release> {
    let mut numbers = text.trim_start_matches('v').split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn forgejo_is_read_by_the_gitea_it_is_compatible_with() {
        for (text, dependencies, lacks) in [
            ("1.15.11", false, 3),
            ("1.20.0", true, 1),
            ("1.21.3", true, 0),
            ("7.0.5+gitea-1.21.11", true, 0),
            ("1.27.0+dev-12-gabc", true, 0),
            ("v1.19.0", false, 3),
            ("next", true, 0),
        ] {
            let version = Version::parse(text);
            assert_eq!((version.has_dependencies(), version.lacks().len()), (dependencies, lacks), "{text}");
        }
    }
}
