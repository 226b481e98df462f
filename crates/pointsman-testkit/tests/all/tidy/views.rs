//! What the program shows is a view: a struct of `pointsman-view`, never JSON written by hand or read by key.

use std::collections::BTreeMap;

use pointsman_testkit::source::files;

use super::{nothing_found, pattern};

/// Where commands print and where requests are answered.
const SHOWING: [&str; 5] = [
    "crates/pointsman/src/cli/",
    "crates/pointsman/src/claim/",
    "crates/pointsman/src/control/",
    "crates/pointsman/src/demo/",
    "crates/pointsman/src/embedded_forge/",
];

/// JSON that is not ours to shape, with how many places there are. The list may only shrink.
const WRITTEN_BY_HAND: [(&str, usize, &str); 1] =
    [("crates/pointsman/src/cli/hook/output.rs", 3, "Claude Code prescribes what a hook prints")];

/// The same for values that are read by key.
const READ_BY_KEY: [(&str, usize, &str); 3] = [
    ("crates/pointsman/src/cli/doctor/hooks.rs", 3, "Claude Code's own settings"),
    ("crates/pointsman/src/cli/hook/supervised.rs", 3, "the payload of Claude Code's hooks"),
    ("crates/pointsman/src/cli/statusline.rs", 6, "the payload of Claude Code's status line"),
];

#[test]
fn commands_and_answers_are_views() {
    let written = pattern(r"\bjson!");
    listed("JSON is not written by hand: it is a view of pointsman-view", &written, &WRITTEN_BY_HAND);
}

#[test]
fn answers_are_not_read_by_key() {
    let read = pattern(r#"[\w\])?]\["[a-z_]+"\]|\.(get|pointer)\("[a-z_/]+"\)"#);
    listed("answers are read as views of pointsman-view, not by key", &read, &READ_BY_KEY);
}

#[test]
fn replies_of_the_daemon_are_views() {
    let reply = pattern(r"\b(done|Reply::done)\(\s*(&?serde_json::)?(json!|Value)|Reply::Done \{ value:");
    let found: Vec<String> = files()
        .iter()
        .filter(|f| f.is_rust() && f.path.starts_with("crates/pointsman/src/daemon/"))
        .flat_map(|file| {
            let code = file.shipped_code();
            reply.find_iter(&code).map(|m| format!("{}: {}", file.path, m.as_str())).collect::<Vec<_>>()
        })
        .collect();
    nothing_found("the daemon answers with views of pointsman-view", &found);
}

#[track_caller]
fn listed(rule: &str, what: &regex::Regex, known: &[(&str, usize, &str)]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let files = files();
    let showing =
        |path: &str| SHOWING.iter().any(|folder| path.starts_with(folder)) || path.ends_with("_view.rs");
    for file in files.iter().filter(|f| f.is_rust() && showing(&f.path) && !f.path.contains("/tests/")) {
        let count = what.find_iter(&file.shipped_code()).count();
        if count > 0 {
            counts.insert(file.path.clone(), count);
        }
    }
    let mut found = Vec::new();
    for (path, count, reason) in known {
        let there = counts.remove(*path).unwrap_or(0);
        if there != *count {
            found.push(format!("{path}: {there} places, {count} are listed ({reason})"));
        }
    }
    found.extend(counts.into_iter().map(|(path, count)| format!("{path}: {count} places")));
    nothing_found(rule, &found);
}
