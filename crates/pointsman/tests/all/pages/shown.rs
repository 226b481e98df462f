//! What a page shows of an output: the same words each time, although hashes, times and paths differ.

use std::path::Path;

use regex::{Captures, Regex};

/// Replaces what differs from one run to the next. Equal hashes stay equal.
pub(crate) struct Shown {
    rules: Vec<(Regex, &'static str)>,
    paths: Vec<(String, &'static str)>,
    hash: Regex,
    /// The first seven digits of every hash, in the order in which they were first printed.
    seen: Vec<String>,
}

impl Shown {
    /// For a reader whose files are below `root`.
    pub(crate) fn new(root: &Path) -> Self {
        let pattern = |text: &str| Regex::new(text).unwrap();
        let root = root.to_str().unwrap();
        Self {
            paths: vec![
                (format!("{root}/home"), "/home/ann"),
                (format!("{root}/run"), "/run/user/1000/pointsman"),
            ],
            rules: vec![
                (pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "2026-03-02T09:00:00Z"),
                (pattern(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( ?[+-]\d\d:?\d\d| UTC)?"), "2026-03-02 09:00"),
                (pattern(r"\b\d\d:\d\d:\d\d\b"), "09:00:00"),
                (pattern(r"\b\d+(\.\d+)? ?(ms|s|min|m)\b( ?\d+ ?s\b)?"), "5s"),
                (pattern(r"\b\d+\.\d+ USD"), "0.02 USD"),
                (pattern(r"\b[\d,.]+k? (fresh )?tokens\b"), "1000 ${1}tokens"),
                (pattern(r"\b\d+ turns?\b"), "4 turns"),
                (pattern(r"\b\d+% full"), "3% full"),
                (pattern(r"process \d+"), "process 4711"),
            ],
            hash: pattern(r"\b[0-9a-f]{7,40}\b"),
            seen: Vec::new(),
        }
    }

    /// A text as the page has it, without blanks at the ends of lines.
    pub(crate) fn text(&mut self, printed: &str) -> String {
        let mut text = printed.trim_end().to_owned();
        for (path, shown) in &self.paths {
            text = text.replace(path, shown);
        }
        for (pattern, shown) in &self.rules {
            text = pattern.replace_all(&text, *shown).into_owned();
        }
        let seen = &mut self.seen;
        let hash = |found: &Captures<'_>| {
            let (start, length) = (found[0][..7].to_owned(), found[0].len());
            // Git's name for no object at all.
            if start == "0000000" {
                return found[0].to_owned();
            }
            let at = seen.iter().position(|known| *known == start).unwrap_or_else(|| {
                seen.push(start);
                seen.len() - 1
            });
            made_up(at)[..length].to_owned()
        };
        self.hash.replace_all(&text, hash).lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

/// The hash that a page shows as its nth.
fn made_up(nth: usize) -> String {
    let mut state = nth as u64 + 1;
    let mut digit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from_digit((state >> 60) as u32, 16).unwrap()
    };
    (0..40).map(|_| digit()).collect()
}

#[test]
fn equal_hashes_stay_equal_and_everything_else_that_differs_is_gone() {
    let mut shown = Shown::new(Path::new("/tmp/pm1"));
    let first =
        shown.text("0123456789 on 2026-11-18 17:21:32 +00:00 in /tmp/pm1/home/src, 3 s; 0.1234 USD   \n");
    assert!(first.ends_with(" on 2026-03-02 09:00 in /home/ann/src, 5s; 0.02 USD"), "{first}");
    let second = shown.text("fedcba9876543210fedcba9876543210fedcba98 then 01234567");
    assert_eq!(second.split(' ').next_back().unwrap(), &first[..8]);
    assert_ne!(&second[..8], &first[..8]);
}
