//! The rules of the house, run on the workspace's own files.
//!
//! `layers` says who may know whom, `fences` who may touch the world, `files` what every file looks like, `papers`
//! that the documentation tells the truth. A rule that only people know is not one.

mod fences;
mod files;
mod layers;
mod papers;

use regex::Regex;

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
