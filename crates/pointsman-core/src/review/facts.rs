//! Facts about a change, collected before anybody judges it.

use std::sync::LazyLock;

use regex::Regex;

use super::patch::{Change, Hunk, Kind, diff_sections, parse_hunks, path_of};
use super::paths::{is_code, is_test, protected};
use super::secrets::{Secret, secrets};
use crate::config::Config;
use crate::ids::Sha;
use crate::text::clean_line;
use crate::words;

/// More lines than this in one change are worth a word.
const LARGE: usize = 600;
/// The most of anything that is told one by one.
const TOLD: usize = 20;
/// Hunks with less than this in them are alike by chance, in bytes without white space.
const CHANCE: usize = 8;
/// What begins a commit in [`Landed::parse`]; no line of a patch does.
const COMMIT: &str = "pointsman-commit ";

/// The facts about a change, whatever anybody says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// How large it is, against what its issue is about.
    pub scope: Scope,
    /// Paths that need a person.
    pub protected: Vec<String>,
    /// Tests that are gone or switched off, in words.
    pub fewer_tests: Vec<String>,
    /// Landed work that it takes back.
    pub taken_back: Vec<RevertedWork>,
    /// What looks like a secret.
    pub secrets: Vec<Secret>,
}

/// The size and the reach of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    pub files: usize,
    pub added: usize,
    pub removed: usize,
    /// Whether anything of it is more than prose.
    pub has_code: bool,
    /// Paths that the issue names.
    pub named: Vec<String>,
    /// Files outside of these, if it names any.
    pub outside: Vec<String>,
}

/// A commit of the main branch, with what it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landed {
    pub sha: Sha,
    /// What it says it does.
    pub subject: String,
    /// What it changed, by path.
    pub hunks: Vec<(String, Hunk)>,
}

/// Landed work that a change takes back in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevertedWork {
    /// The commit that brought it.
    pub sha: Sha,
    /// What that says it did.
    pub subject: String,
    pub path: String,
}

impl Landed {
    /// How git has to tell commits for [`Self::parse`].
    pub const FORMAT: &str = "--format=pointsman-commit %H %s";

    /// Reads commits with their patches, as `git log -p -U0` tells them in that format.
    pub fn parse(log: &[u8]) -> Vec<Self> {
        let text = String::from_utf8_lossy(log);
        let mut commits: Vec<(Sha, String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            let header = line.strip_prefix(COMMIT).and_then(|rest| rest.trim_end().split_once(' '));
            match header.and_then(|(sha, subject)| Some((Sha::new(sha)?, subject))) {
                Some((sha, subject)) => commits.push((sha, clean_line(subject, 100), String::new())),
                None => {
                    if let Some((_, _, patch)) = commits.last_mut() {
                        patch.push_str(line);
                    }
                }
            }
        }
        let landed = |(sha, subject, patch): (Sha, String, String)| {
            let hunks = parse_hunks(patch.as_bytes());
            Self { sha, subject, hunks }
        };
        commits.into_iter().map(landed).collect()
    }
}

impl Facts {
    /// Looks at a change. `asked` is the text of its issue and its pull request, `landed` what lately came to the files
    /// that it touches.
    pub fn of(config: &Config, change: &Change, asked: &str, landed: &[Landed]) -> Self {
        Self {
            scope: Scope::of(change, asked),
            protected: paths(change).filter(|path| protected(config, path)).map(str::to_owned).collect(),
            fewer_tests: fewer_tests(change),
            taken_back: taken_back(change, landed),
            secrets: secrets(change),
        }
    }

    /// The reason why only a person may let it through; none if a reviewer is enough.
    pub fn needs_person(&self) -> Option<String> {
        let mut why = Vec::new();
        if !self.protected.is_empty() {
            why.push(words::review::changes_protected(&self.protected));
        }
        if !self.secrets.is_empty() {
            why.push(words::review::brings_secret(&self.secrets));
        }
        if !self.taken_back.is_empty() {
            why.push(words::review::takes_back(&self.taken_back));
        }
        (!why.is_empty()).then(|| why.join("; "))
    }
}

fn paths(change: &Change) -> impl Iterator<Item = &str> {
    change.files.iter().map(|file| file.path.as_str())
}

impl Scope {
    fn of(change: &Change, asked: &str) -> Self {
        let (added, removed) = change.size();
        let named = named_paths(asked);
        let outside = outside(&named, paths(change));
        Self {
            files: change.files.len(),
            added,
            removed,
            has_code: paths(change).any(is_code),
            named,
            outside,
        }
    }

    /// Whether it is more than a reviewer can hold in mind.
    pub fn is_large(&self) -> bool {
        self.added + self.removed > LARGE
    }
}

/// The paths that none of the named ones covers, tests aside; none if nothing is named.
fn outside<'p>(named: &[String], paths: impl Iterator<Item = &'p str>) -> Vec<String> {
    let covered = |path: &str| {
        named.iter().any(|name| {
            let name = name.trim_end_matches('/');
            path == name || path.starts_with(&format!("{name}/")) || path.ends_with(&format!("/{name}"))
        })
    };
    if named.is_empty() {
        return Vec::new();
    }
    paths.filter(|path| !covered(path) && !is_test(path)).map(str::to_owned).collect()
}

/// A unified diff with the files first that lie outside of the paths that a text names, and those files. Where it names none, the
/// diff is as it was.
pub fn outside_first(diff: &str, asked: &str) -> (String, Vec<String>) {
    let named = named_paths(asked);
    let sections: Vec<(&str, Option<&str>)> = diff_sections(diff).map(|part| (part, path_of(part))).collect();
    let outside = outside(&named, sections.iter().filter_map(|(_, path)| *path));
    let is_outside = |path: Option<&str>| path.is_some_and(|path| outside.iter().any(|known| known == path));
    let (first, rest): (Vec<_>, Vec<_>) = sections.into_iter().partition(|(_, path)| is_outside(*path));
    let ordered: String = first.into_iter().chain(rest).map(|(part, _)| part).collect();
    (ordered, outside)
}

/// What looks like a path in a text: something with a slash or an ending, in code or alone.
fn named_paths(text: &str) -> Vec<String> {
    static PATH: LazyLock<Regex> = LazyLock::new(|| {
        let path = r"(?:^|[\s`(\[])((?:[A-Za-z0-9_.-]+/)+[A-Za-z0-9_.-]*|[A-Za-z0-9_-]+\.(?:rs|py|js|jsx|ts|tsx|go|c|h|cc|cpp|hpp|java|kt|rb|php|sh|toml|yml|yaml|json|md|sql|css|html|txt))(?:$|[\s`)\],.:;])";
        Regex::new(path).expect("a constant that the tests compile")
    });
    let mut found: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| line.len() <= 2000) {
        let mut rest = line;
        // A separator ends one name and begins the next: so one after the other.
        while let Some(name) = PATH.captures(rest).and_then(|found| found.get(1)) {
            let path = name.as_str().trim_end_matches('.').trim_start_matches("./");
            if !path.is_empty() && !path.contains("..") && !found.iter().any(|known| known == path) {
                found.push(path.to_owned());
            }
            rest = &rest[name.end()..];
        }
        if found.len() > TOLD {
            break;
        }
    }
    found.truncate(TOLD);
    found
}

/// What declares a test, and what switches one off.
static DECLARES: LazyLock<Regex> = LazyLock::new(|| {
    let declares = r"^\s*(?:#\[(?:[a-z_:]*::)?test\b|def test_|async def test_|func Test[A-Z_]|@Test\b|(?:it|test)(?:\.each)?\(|TEST(?:_F|_P)?\()";
    Regex::new(declares).expect("a constant that the tests compile")
});
static SWITCHES_OFF: LazyLock<Regex> = LazyLock::new(|| {
    let off = r"#\[ignore\b|@(?:pytest\.mark\.)?(?:skip|xfail)|@unittest\.skip|\b(?:it|test|describe)\.(?:skip|todo)\(|\bx(?:it|describe)\(|@Disabled\b|@Ignore\b|\bt\.Skip(?:f|Now)?\(";
    Regex::new(off).expect("a constant that the tests compile")
});

pub(super) fn fewer_tests(change: &Change) -> Vec<String> {
    let mut found = Vec::new();
    for file in &change.files {
        let count = |lines: fn(&Hunk) -> &Vec<String>, what: &Regex| {
            file.hunks.iter().flat_map(lines).filter(|line| line.len() <= 2000 && what.is_match(line)).count()
        };
        let gone = count(|hunk| &hunk.removed, &DECLARES);
        let came = count(|hunk| &hunk.added, &DECLARES);
        if file.kind == Kind::Deleted && (is_test(&file.path) || gone > 0) {
            found.push(words::review::test_file_deleted(&file.path));
        } else if gone > came {
            found.push(words::review::fewer_tests(&file.path, gone - came));
        }
        let off = count(|hunk| &hunk.added, &SWITCHES_OFF);
        let on = count(|hunk| &hunk.removed, &SWITCHES_OFF);
        if off > on {
            found.push(words::review::tests_switched_off(&file.path, off - on));
        }
    }
    found.truncate(TOLD);
    found
}

/// A hunk that undoes another: what came goes, what went comes back. An edit of new lines brings others instead.
fn taken_back(change: &Change, landed: &[Landed]) -> Vec<RevertedWork> {
    let mut found: Vec<RevertedWork> = Vec::new();
    for file in &change.files {
        for commit in landed {
            let of_file = commit.hunks.iter().filter(|(path, _)| *path == file.path).map(|(_, hunk)| hunk);
            let undone = of_file.filter(|theirs| file.hunks.iter().any(|ours| undoes(ours, theirs))).count();
            if undone > 0 {
                let (sha, subject) = (commit.sha.clone(), commit.subject.clone());
                found.push(RevertedWork { sha, subject, path: file.path.clone() });
            }
        }
    }
    found.truncate(TOLD);
    found
}

fn undoes(ours: &Hunk, theirs: &Hunk) -> bool {
    let substance = |lines: &[String]| -> usize {
        lines.iter().flat_map(|line| line.bytes()).filter(|byte| !byte.is_ascii_whitespace()).count()
    };
    if substance(&theirs.added) + substance(&theirs.removed) < CHANCE {
        return false;
    }
    let holds =
        |all: &[String], run: &[String]| run.is_empty() || all.windows(run.len()).any(|window| window == run);
    let replaced = theirs.removed.is_empty() && !ours.added.is_empty();
    // Work that only went may come back as part of anything new.
    let only_went = theirs.added.is_empty() && ours.added != theirs.removed;
    !replaced && !only_went && holds(&ours.removed, &theirs.added) && holds(&ours.added, &theirs.removed)
}
