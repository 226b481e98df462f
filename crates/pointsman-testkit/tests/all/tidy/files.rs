//! What every file looks like.

use std::os::unix::fs::PermissionsExt;

use pointsman_testkit::source::{files, root};

use super::{nothing_found, pattern};

/// Split before this; 100 to 350 lines is the aim.
const LONGEST_FILE: usize = 800;

#[test]
fn every_folder_says_what_it_is_for() {
    let found: Vec<String> = files()
        .iter()
        .filter(|f| f.path.ends_with("/mod.rs") || f.path.ends_with("/lib.rs"))
        .filter(|f| !f.text.starts_with("//!"))
        .map(|f| f.path.clone())
        .collect();
    nothing_found(
        "mod.rs and lib.rs begin with `//!`: purpose, what does not belong there, where next",
        &found,
    );
}

#[test]
fn no_file_is_too_long() {
    let found: Vec<String> = files()
        .iter()
        .filter(|f| f.is_rust() && f.text.lines().count() > LONGEST_FILE)
        .map(|f| format!("{}: {} lines", f.path, f.text.lines().count()))
        .collect();
    nothing_found("a file that long is two files", &found);
}

#[test]
fn nothing_is_left_for_later_without_a_word() {
    // Spelt so that this file does not find itself.
    let rules = [
        (pattern(&format!(r"#\[{}\b", "ignore")), "a test that does not run is not a test"),
        (pattern(&format!(r"\b({}|{})!\(", "todo", "unimplemented")), "unfinished code does not ship"),
        (pattern(&format!(r"\b({}|{})\b\W{{0,3}}$", "TODO", "FIXME")), "say what is to be done"),
        (pattern(&format!(r"\b{}!\(", "dbg")), "left from debugging"),
    ];
    let mut found = Vec::new();
    for file in files().iter().filter(|f| f.is_rust() || f.path.starts_with("scripts/")) {
        for (number, line) in file.text.lines().enumerate() {
            for (rule, why) in &rules {
                if rule.is_match(line) {
                    found.push(format!("{}:{}: {why}", file.path, number + 1));
                }
            }
        }
    }
    nothing_found("nothing is left for later without a word", &found);
}

#[test]
fn no_file_knows_a_machine() {
    let machine = pattern(&format!(r"(^|[^\w./-])/({}|{}|{})(/|\b)", "work", "farm", "root"));
    let mut found = Vec::new();
    for file in files() {
        for (number, line) in file.text.lines().enumerate().filter(|(_, line)| machine.is_match(line)) {
            found.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
        }
    }
    nothing_found("a path of one machine means nothing on another", &found);
}

#[test]
fn lines_end_cleanly() {
    let mut found = Vec::new();
    for file in files().iter().filter(|f| !f.text.is_empty() && !f.path.starts_with("LICENSE")) {
        // Two spaces at the end of a line mean something in Markdown; we write it otherwise.
        let trailing = file.text.lines().position(|line| line.ends_with([' ', '\t', '\r']));
        if let Some(number) = trailing.filter(|_| !file.path.ends_with(".snap")) {
            found.push(format!("{}:{}: white space at the end of the line", file.path, number + 1));
        }
        if !file.text.ends_with('\n') {
            found.push(format!("{}: no newline at the end", file.path));
        }
    }
    nothing_found("lines end cleanly", &found);
}

#[test]
fn scripts_can_be_run() {
    let files = files();
    let scripts = files.iter().filter(|f| {
        f.path == ".ci/run" || (f.path.starts_with("scripts/") && !f.path.starts_with("scripts/lib/"))
    });
    let mut found = Vec::new();
    for script in scripts.filter(|f| f.text.starts_with("#!")) {
        let mode = root().join(&script.path).metadata().map_or(0, |m| m.permissions().mode());
        if mode & 0o111 == 0 {
            found.push(format!("{}: not executable", script.path));
        }
        if script.text.contains("bash") && !script.text.contains("set -euo pipefail") {
            found.push(format!("{}: without set -euo pipefail", script.path));
        }
    }
    nothing_found("scripts can be run and stop at the first failure", &found);
}
