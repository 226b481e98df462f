//! Working trees beside git: the untracked files that they need, and whether there is room for another one.

use serde::{Deserialize, Serialize};

use crate::review::path_matches;
use crate::sandbox::holds_credentials;

/// A file of main that names untracked files which every working tree needs. Other tools read it, too.
pub const INCLUDE_FILE: &str = ".worktreeinclude";
/// The directory of a repository, which is never copied.
const GIT: &str = ".git";

/// The rules that say which untracked files of a checkout are copied into a new tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyRules {
    patterns: Vec<String>,
}

impl CopyRules {
    /// The paths of `tree.copy`, and the lines of main's `.worktreeinclude`.
    ///
    /// The file has the patterns of a `.gitignore`: one without a slash fits at any depth. Lines that take something out
    /// again are left out, so that less is copied and never more.
    pub fn new(configured: &[String], include_file: Option<&str>) -> Self {
        let lines = include_file.unwrap_or_default().lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
        let included = lines.map(|line| match line.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None if line.trim_end_matches('/').contains('/') => line.to_owned(),
            None => format!("**/{line}"),
        });
        Self { patterns: configured.iter().cloned().chain(included).collect() }
    }

    /// Whether they name nothing.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a file is copied. One that holds credentials never is, whoever names it.
    pub fn wants(&self, path: &str) -> bool {
        let is_guarded = |part: &str| part == GIT || holds_credentials(part);
        !path.split('/').any(is_guarded) && self.patterns.iter().any(|pattern| path_matches(pattern, path))
    }

    /// Whether a directory can contain anything that is copied: others are not even looked into.
    pub fn enters(&self, dir: &str) -> bool {
        let is_guarded = |part: &str| part == GIT || holds_credentials(part);
        !dir.split('/').any(is_guarded) && self.patterns.iter().any(|pattern| leads_into(pattern, dir))
    }
}

/// Whether something below `dir` can fit the pattern, or `dir` itself lies below what does.
fn leads_into(pattern: &str, dir: &str) -> bool {
    let mut wanted = pattern.trim_end_matches('/').split('/');
    for part in dir.split('/') {
        match wanted.next() {
            // All that is in a directory that fits.
            None => return true,
            Some(deep) if deep.contains("**") => return true,
            Some(name) if path_matches(name, part) => {}
            Some(_) => return false,
        }
    }
    true
}

/// The progress of a tree's set-up, kept beside the tree so that a set-up that was cut off is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupRecord {
    pub progress: SetupProgress,
    /// No agent has been in the tree: it can be made anew.
    pub untouched: bool,
}

/// The progress of a set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupProgress {
    Begun,
    Done,
}

/// The next step for a tree before a session starts in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeStep {
    /// It is set up.
    Use,
    SetUp,
    /// A set-up was cut off or failed in a tree that holds nobody's work: it is made again from git.
    MakeAnew,
}

/// The next step for a tree with this record. `is_there` tells whether the tree itself exists.
pub fn next_step(record: Option<SetupRecord>, is_there: bool) -> TreeStep {
    match record {
        _ if !is_there => TreeStep::SetUp,
        Some(SetupRecord { progress: SetupProgress::Done, .. }) => TreeStep::Use,
        Some(SetupRecord { progress: SetupProgress::Begun, untouched: true }) => TreeStep::MakeAnew,
        // What an agent has done is never thrown away for a set-up: it runs again on top of it.
        Some(SetupRecord { progress: SetupProgress::Begun, untouched: false }) | None => TreeStep::SetUp,
    }
}

#[cfg(test)]
mod tests {
    use super::SetupProgress::{Begun, Done};
    use super::{CopyRules, SetupRecord, TreeStep, next_step};

    fn rules(configured: &[&str], include: &str) -> CopyRules {
        let configured: Vec<String> = configured.iter().map(|&pattern| pattern.to_owned()).collect();
        CopyRules::new(&configured, Some(include))
    }

    #[test]
    fn files_are_copied_by_the_configuration_and_by_mains_own_list() {
        let include = "# for every tree\n.env\n/config/local.toml\nfixtures/big/\n!fixtures/big/no\n\n";
        let rules = rules(&["data/*.db", "certs/**"], include);
        for path in
            [".env", "app/.env", "config/local.toml", "fixtures/big/a/b", "data/x.db", "certs/dev/ca.crt"]
        {
            assert!(rules.wants(path), "{path}");
        }
        for path in ["env", "app/config/local.toml", "data/deep/x.db", "README.md", "x/fixtures/big/a"] {
            assert!(!rules.wants(path), "{path}");
        }
        assert!(CopyRules::new(&[], None).is_empty() && CopyRules::new(&[], Some("# nothing\n")).is_empty());
    }

    #[test]
    fn a_credential_is_never_copied_whoever_names_it() {
        let rules = rules(&["**", ".npmrc", ".ssh/**"], ".netrc\n.git\n");
        for path in [".npmrc", "app/.npmrc", ".ssh/id_ed25519", ".netrc", ".git/config", "a/.aws/credentials"]
        {
            assert!(!rules.wants(path), "{path}");
        }
        assert!(!rules.enters(".ssh") && !rules.enters("a/.git"));
        assert!(rules.wants(".env.local"));
    }

    #[test]
    fn only_directories_that_can_hold_something_are_looked_into() {
        let anchored = rules(&["data/*.db", "certs/", "a/*/c.txt"], "");
        for (dir, enters) in [
            ("data", true),
            ("certs", true),
            ("certs/deep/er", true),
            ("a", true),
            ("a/b", true),
            ("node_modules", false),
            ("src/data", false),
        ] {
            assert_eq!(anchored.enters(dir), enters, "{dir}");
        }
        assert!(rules(&[], ".env").enters("node_modules"), "it may be anywhere");
    }

    #[test]
    fn a_tree_is_set_up_once_and_anew_only_where_nobody_has_worked() {
        let record = |progress, untouched| Some(SetupRecord { progress, untouched });
        for (record, is_there, step) in [
            (None, false, TreeStep::SetUp),
            (None, true, TreeStep::SetUp),
            (record(Done, true), true, TreeStep::Use),
            (record(Done, false), true, TreeStep::Use),
            (record(Done, true), false, TreeStep::SetUp),
            (record(Begun, true), true, TreeStep::MakeAnew),
            (record(Begun, false), true, TreeStep::SetUp),
            (record(Begun, true), false, TreeStep::SetUp),
        ] {
            assert_eq!(next_step(record, is_there), step, "{record:?} {is_there}");
        }
    }
}
