//! Kinds of paths: code, tests, settings of agents, and what only a person may let through.

use crate::config::Config;
use crate::known_secrets::named_fingerprint;
use crate::tree::INCLUDE_FILE;

/// Directories, at any depth, that tell agents what to do.
const STEERING_DIRS: [&str; 9] =
    [".claude", ".cursor", ".codex", ".gemini", ".windsurf", ".clinerules", ".continue", ".opencode", ".roo"];
/// Files, in any directory, that do.
const STEERING_FILES: [&str; 15] = [
    "claude.md",
    "claude.local.md",
    "agents.md",
    "agents.override.md",
    "agent.md",
    "gemini.md",
    "copilot-instructions.md",
    ".mcp.json",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".aider.conf.yml",
    "opencode.json",
    ".goosehints",
    ".rules",
];
/// What ends the name of a file that is prose.
const PROSE: [&str; 9] = [".md", ".markdown", ".rst", ".adoc", ".txt", ".png", ".jpg", ".jpeg", ".gif"];
/// Files of prose without such an end.
const PROSE_FILES: [&str; 6] = ["license", "licence", "copying", "authors", "changelog", "readme"];
/// Directories of tests.
const TEST_DIRS: [&str; 6] = ["test", "tests", "__tests__", "spec", "specs", "testdata"];

/// Whether a file tells agents what to do. Case does not matter: some file systems do not know it.
pub fn is_steering(path: &str) -> bool {
    let path = path.to_lowercase();
    let parts: Vec<&str> = path.split('/').collect();
    let name = parts.last().copied().unwrap_or_default();
    parts.iter().any(|part| STEERING_DIRS.contains(part)) || STEERING_FILES.contains(&name)
}

/// Whether a change of this path needs a person, whoever else approves: the programs that test, review and prepare trees, the file that
/// brings a person's untracked files to agents, what `merge.protected` names, and what `review.protected` adds.
pub fn protected(config: &Config, path: &str) -> bool {
    let lower = path.to_lowercase();
    let named = config.merge.protected.iter().chain(&config.review.protected);
    programs(config).any(|program| program == path)
        || lower == INCLUDE_FILE
        || named.into_iter().any(|pattern| path_matches(&pattern.to_lowercase(), &lower))
}

/// Whether something in this file may look like a secret.
pub fn may_hold_secrets(config: &Config, path: &str) -> bool {
    let lower = path.to_lowercase();
    let paths = config.review.secrets_allowed.iter().filter(|entry| named_fingerprint(entry).is_none());
    paths.into_iter().any(|pattern| path_matches(&pattern.to_lowercase(), &lower))
}

/// The project's own programs that decide about a change or run in every tree, where they are files of the repository.
fn programs(config: &Config) -> impl Iterator<Item = &str> {
    let commands = [&config.ci.command, &config.merge.gate, &config.review.command];
    let of_trees = [&config.tree.setup, &config.tree.teardown];
    commands
        .into_iter()
        .flatten()
        .chain(of_trees)
        .flatten()
        .filter(|part| !part.starts_with('-') && !part.starts_with('/'))
        .map(|part| {
            let part = part.as_str();
            part.strip_prefix("./").unwrap_or(part)
        })
}

/// Whether a path fits a pattern, by the case of its letters: `*` is any part of a name, `**` also of a path; a directory
/// covers what is in it.
pub fn path_matches(pattern: &str, path: &str) -> bool {
    let dir = pattern.strip_suffix('/').unwrap_or(pattern);
    // In no directory is in any.
    if dir.strip_prefix("**/").is_some_and(|rest| path_matches(rest, path)) {
        return true;
    }
    fits(dir.as_bytes(), path.as_bytes())
        || path.char_indices().any(|(at, c)| c == '/' && fits(dir.as_bytes(), &path.as_bytes()[..at]))
}

/// Row by row, so that no pattern takes longer than its length times that of the path.
fn fits(pattern: &[u8], path: &[u8]) -> bool {
    let mut reach = vec![false; path.len() + 1];
    reach[0] = true;
    let mut at = 0;
    while at < pattern.len() {
        let deep = pattern[at..].starts_with(b"**");
        match pattern[at] {
            b'*' => {
                for end in 0..path.len() {
                    reach[end + 1] |= reach[end] && (deep || path[end] != b'/');
                }
            }
            wanted => {
                for end in (0..path.len()).rev() {
                    reach[end + 1] =
                        reach[end] && (path[end] == wanted || (wanted == b'?' && path[end] != b'/'));
                }
                reach[0] = false;
            }
        }
        at += if deep { 2 } else { 1 };
    }
    reach[path.len()]
}

/// Whether a file is code, or anything else that a CI is for. What we do not know is.
pub fn is_code(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let build =
        matches!(name.as_str(), "requirements.txt" | "constraints.txt" | "cmakelists.txt" | "robots.txt");
    let prose = PROSE.iter().any(|end| name.ends_with(end)) || PROSE_FILES.contains(&name.as_str());
    build || !prose
}

/// Whether a file holds tests, by its name.
pub fn is_test(path: &str) -> bool {
    let path = path.to_lowercase();
    let parts: Vec<&str> = path.split('/').collect();
    let Some((name, dirs)) = parts.split_last() else { return false };
    let stem = name.split('.').next().unwrap_or_default();
    dirs.iter().any(|dir| TEST_DIRS.contains(dir))
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem == "tests"
        || stem == "test"
        || name.contains(".test.")
        || name.contains(".spec.")
}
