//! The checks of a commit as one verdict.

use crate::forge::{Check, CheckState};
use crate::task::CiVerdict;
use crate::text::{clean_block, clean_line};
use crate::words;

/// How much of what a CI says of a check is handed on, in bytes.
const DETAILS: usize = 16 << 10;

/// The verdict of a commit's checks; nothing as long as that is open. With `required` only these count, and all of
/// them must be there; without, all that are there count, and there must be one.
pub fn of_checks(checks: &[Check], required: &[String]) -> Option<CiVerdict> {
    let counts = |check: &&Check| required.is_empty() || required.contains(&check.name);
    let failed: Vec<&Check> =
        checks.iter().filter(counts).filter(|check| check.state == CheckState::Failure).collect();
    if !failed.is_empty() {
        let names: Vec<String> = failed.iter().map(|check| clean_line(&check.name, 100)).collect();
        let summary = format!("failed: {}", names.join(", "));
        let log: String = failed.iter().map(|check| description(check)).collect();
        return Some(CiVerdict::Failed { summary, log });
    }
    let green = |name: &String| checks.iter().any(|c| c.name == *name && c.state == CheckState::Success);
    let all_there = if required.is_empty() { !checks.is_empty() } else { required.iter().all(green) };
    let pending = checks.iter().filter(counts).any(|check| check.state == CheckState::Pending);
    (all_there && !pending).then_some(CiVerdict::Passed)
}

/// The forge has no log of an outside CI: all there is is what the CI says of the check, and where its log is.
fn description(check: &Check) -> String {
    let details = clean_block(check.details.trim(), DETAILS);
    let more = if details.is_empty() { words::ci::LOG_ELSEWHERE } else { &details };
    format!("== {}\n{more}\n", clean_line(&check.name, 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(list: &[(&str, CheckState)]) -> Vec<Check> {
        list.iter()
            .map(|(name, state)| Check { name: (*name).to_owned(), state: *state, details: String::new() })
            .collect()
    }

    #[test]
    fn what_a_ci_says_of_a_red_check_is_handed_on() {
        let mut red = checks(&[("build", CheckState::Failure), ("lint", CheckState::Failure)]);
        red[0].details = "2 tests failed\nhttps://ci.example.org/7".to_owned();
        let Some(CiVerdict::Failed { summary, log }) = of_checks(&red, &[]) else { panic!("not red") };
        assert_eq!(summary, "failed: build, lint");
        let expected = "== build\n2 tests failed\nhttps://ci.example.org/7\n\
            == lint\nThe CI that reported it has the log.\n";
        assert_eq!(log, expected);
    }

    #[test]
    fn the_checks_of_a_commit_are_one_verdict() {
        use CheckState::{Failure, Pending, Success};
        let required = ["build".to_owned()];
        type Row<'a> = (&'a [(&'a str, CheckState)], &'a [String], &'a str);
        let table: [Row<'_>; 9] = [
            (&[], &[], "open"),
            (&[("a", Pending)], &[], "open"),
            (&[("a", Success), ("b", Pending)], &[], "open"),
            (&[("a", Success), ("b", Success)], &[], "green"),
            (&[("a", Success), ("b", Failure)], &[], "red"),
            (&[("a", Pending), ("b", Failure)], &[], "red"),
            (&[("a", Success)], &required, "open"),
            (&[("a", Failure), ("build", Success)], &required, "green"),
            (&[("a", Success), ("build", Failure)], &required, "red"),
        ];
        for (list, required, expected) in table {
            let said = match of_checks(&checks(list), required) {
                None => "open",
                Some(CiVerdict::Passed) => "green",
                Some(CiVerdict::Failed { .. }) => "red",
                Some(other) => panic!("{other:?}"),
            };
            assert_eq!(said, expected, "{list:?} {required:?}");
        }
    }
}
