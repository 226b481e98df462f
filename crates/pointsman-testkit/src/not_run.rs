//! Tests that cannot do their work because a tool is missing.
//!
//! A test that returns early looks like a test that passed. So it calls [`not_run`], which writes its name down for
//! the summary of `scripts/test`, and fails if the script had promised that the tool is there.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;

/// The file that `scripts/test` shows at its end, one line per test.
const REPORT: &str = "POINTSMAN_NOT_RUN";
/// The tools that a script has installed, separated by spaces. A test may not miss one of these.
const INSTALLED: &str = "POINTSMAN_INSTALLED";

/// Reports that the calling test does not run, because `tool` is missing.
///
/// # Panics
///
/// If the script that started the suite has installed the tool: then the test should have run.
#[track_caller]
pub fn not_run(tool: &str, why: &str) {
    let name = test_name(Location::caller());
    let installed = std::env::var(INSTALLED).unwrap_or_default();
    assert!(!is_listed(&installed, tool), "{name} did not run, although {tool} was installed for it: {why}");
    let line = format!("{name}: {tool}: {why}\n");
    eprint!("NOT RUN: {line}");
    if let Some(path) = std::env::var_os(REPORT).filter(|path| !path.is_empty()) {
        // One write of one short line: several test processes may append at the same time.
        let report = OpenOptions::new().create(true).append(true).open(path);
        let written = report.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("the report of tests that did not run can be written");
    }
}

fn is_listed(installed: &str, tool: &str) -> bool {
    installed.split_whitespace().any(|word| word == tool)
}

/// The test's own name. Nextest runs each test on the main thread of a process; cargo's runner names the thread.
fn test_name(location: &Location<'_>) -> String {
    let thread = std::thread::current().name().filter(|name| *name != "main").map(str::to_owned);
    let argument = || std::env::args().skip_while(|argument| argument != "--exact").nth(1);
    let named_first = || std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    thread
        .or_else(|| argument().filter(|argument| !argument.starts_with('-')))
        .or_else(named_first)
        .unwrap_or_else(|| format!("the test at {}:{}", location.file(), location.line()))
}

#[cfg(test)]
mod tests {
    use super::{is_listed, test_name};

    #[test]
    fn a_tool_is_listed_as_a_whole_word() {
        assert!(is_listed("git strace tmux", "strace"));
        assert!(!is_listed("git strace-ng", "strace"));
        assert!(!is_listed("", "strace"));
    }

    #[test]
    fn a_test_knows_its_name() {
        let name = test_name(std::panic::Location::caller());
        assert!(name.ends_with("a_test_knows_its_name"), "{name}");
    }
}
