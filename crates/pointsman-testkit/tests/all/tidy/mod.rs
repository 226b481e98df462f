//! The rules of the house, run on the workspace's own files.
//!
//! `layers` says who may know whom, `fences` who may touch the world, `files` what every file looks like, `papers`
//! that the documentation tells the truth, `matches` that no arm catches what nobody thought of, `kinds` that nobody asks
//! what a kind is called, `prose` where sentences stand and that items are explained, `views` that what the program shows is
//! a view. A rule that only people know is not one.
//!
//! A rule that the code does not keep everywhere yet has a list of exceptions in `known/`, with a count per file. The list
//! may only shrink: a new finding fails, and so does an entry that is no longer needed.

mod fences;
mod files;
mod kinds;
mod layers;
mod matches;
mod papers;
mod prose;
mod views;

use std::collections::BTreeMap;

use pointsman_testkit::source::root;
use regex::Regex;

/// Set to any value, this variable has the lists in `known/` written anew. They are read in review like all code.
const WRITE_LISTS: &str = "POINTSMAN_TIDY_WRITE";

/// Compares findings, each with its file, with the list of known exceptions.
#[track_caller]
fn only_shrinks(rule: &str, list: &str, findings: &[(String, String)]) {
    let path = root().join("crates/pointsman-testkit/tests/all/tidy/known").join(list);
    let mut found = BTreeMap::<&str, usize>::new();
    for (file, _) in findings {
        *found.entry(file).or_default() += 1;
    }
    if std::env::var_os(WRITE_LISTS).is_some() {
        let lines = found.iter().map(|(file, count)| format!("{file} {count}\n")).collect::<String>();
        std::fs::write(&path, lines).expect("the list can be written");
    }
    let text = std::fs::read_to_string(&path).expect("every list is checked in");
    let known: BTreeMap<&str, usize> = text
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(file, count)| (file, count.parse().expect("a count")))
        .collect();
    let mut wrong = Vec::new();
    for (file, count) in &found {
        let allowed = known.get(file).copied().unwrap_or(0);
        if *count > allowed {
            wrong.push(format!("{file}: {count} places, {allowed} are known:"));
            wrong.extend(findings.iter().filter(|(f, _)| f == file).map(|(_, what)| format!("    {what}")));
        }
    }
    for (file, count) in &known {
        let present = found.get(file).copied().unwrap_or(0);
        if present < *count {
            wrong
                .push(format!("{file}: only {present} of {count} are left. Lower the count in known/{list}"));
        }
    }
    nothing_found(rule, &wrong);
}

/// Fails with all findings at once.
#[track_caller]
fn nothing_found(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n  {}\n", findings.join("\n  "));
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are fixed")
}

/// Whether code mentions a module of the standard library, by its path or in a list of imports.
fn mentions_std(code: &str, module: &str) -> bool {
    let path = pattern(&format!(r"\bstd::{module}\b"));
    let list = pattern(&format!(r"\buse std::\{{[^}};]*\b{module}\b"));
    path.is_match(code) || list.is_match(code)
}

#[test]
fn a_module_is_found_by_its_path_and_in_a_list() {
    for code in
        ["use std::fs;", "std::fs::read(p)", "use std::{fs, io};", "use std::{\n    io,\n    fs::File,\n};"]
    {
        assert!(mentions_std(code, "fs"), "{code}");
    }
    for code in ["use std::fmt;", "use std::{io, fmt};", "use std::io;\nlet fs = 1;"] {
        assert!(!mentions_std(code, "fs"), "{code}");
    }
}
