//! The risk of a change: rules put it into a class, and the class says who has to look at it.
//!
//! Every rule looks at one thing and can only raise the class. A rule that cannot tell raises it so far that a person looks:
//! what nobody understood is never waved through. The draw of changes that people see all the same comes from the commit's own
//! name, so the same commit is always drawn or never.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::facts::fewer_tests;
use super::patch::{Change, Kind};
use super::paths::{is_test, path_matches};
use crate::config::{Risk as Settings, RiskClass as Class, RiskReviewer as Reviewer, RiskRule, RiskWhen};
use crate::ids::Sha;
use crate::words;

/// The class of what a rule could not judge.
const UNTOLD: Class = Class::High;
/// The most reasons that are kept.
const REASONS: usize = 12;
/// The draw counts in hundredths.
const HUNDREDTHS: u32 = 100;

/// Files that name what a project depends on, by their names in lower case.
const DEPENDENCIES: [&str; 44] = [
    "cargo.toml",
    "cargo.lock",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    ".npmrc",
    ".yarnrc.yml",
    "bun.lock",
    "bun.lockb",
    "deno.json",
    "deno.lock",
    "requirements.txt",
    "constraints.txt",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "pipfile",
    "pipfile.lock",
    "poetry.lock",
    "uv.lock",
    "environment.yml",
    "go.mod",
    "go.sum",
    "gemfile",
    "gemfile.lock",
    "composer.json",
    "composer.lock",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "gradle.lockfile",
    "libs.versions.toml",
    "packages.lock.json",
    "directory.packages.props",
    "mix.exs",
    "mix.lock",
    "package.swift",
    "package.resolved",
    "flake.nix",
    "flake.lock",
    "dockerfile",
];
/// Their endings.
const DEPENDENCY_ENDS: [&str; 6] =
    [".csproj", ".gemspec", ".podspec", ".cabal", "-requirements.txt", ".dockerfile"];
/// Directories that hold copies of them.
const VENDORED: [&str; 4] = ["vendor", "third_party", "node_modules", "vendored"];

/// What gives somebody or something more rights, in a line.
static RIGHTS: LazyLock<Regex> = LazyLock::new(|| {
    let rights = r"(?i)\b(?:chmod|chown|setfacl|setcap|setuid|setgid|seteuid|sudo|doas|umask|cap_add|uses-permission|clusterrolebinding|nopasswd)\b|--privileged\b|^\s*permissions\s*:|\bGRANT\s+\w+|\bid-token\s*:\s*write|dangerously";
    Regex::new(rights).expect("a constant that the tests compile")
});

/// The risk of one commit of a branch, as its rules told it when the branch was pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    pub class: Class,
    /// Why it is not in a lower class, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Whether it was drawn, so that a person looks at it although its class needs none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// The class that it is in if the review agent finds something.
    pub findings: Class,
}

/// The fate of an agent's work in the files of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Commits of agents on the main branch.
    pub landed: u32,
    /// Those of them that another commit takes back.
    pub reverted: u32,
}

/// A commit of the main branch that touched one of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    pub sha: Sha,
    /// Whether a session wrote it.
    pub by_agent: bool,
    pub message: String,
}

impl Record {
    /// Counts the commits of agents among these, and those of them that others take back.
    pub fn of(commits: &[Past]) -> Self {
        const SAYS: &str = "This reverts commit ";
        let reverted = |sha: &Sha| {
            commits.iter().any(|commit| commit.message.contains(&format!("{SAYS}{}", sha.as_str())))
        };
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let by_agent = || commits.iter().filter(|commit| commit.by_agent);
        Self {
            landed: count(by_agent().count()),
            reverted: count(by_agent().filter(|commit| reverted(&commit.sha)).count()),
        }
    }
}

/// The facts about a change by which its risk is judged.
#[derive(Clone, Copy, Debug)]
pub struct RiskFacts<'a> {
    /// None if git's account of it cannot be read.
    pub change: Option<&'a Change>,
    /// Its paths that need a person in every mode.
    pub protected: &'a [String],
    /// None if the history cannot be read.
    pub record: Option<Record>,
}

/// What a rule says about a change.
enum Told {
    No,
    Yes(String),
    /// It cannot tell, for this reason.
    CannotTell(String),
}

impl Risk {
    /// Judges the change up to `head`.
    pub fn of(settings: &Settings, facts: &RiskFacts<'_>, head: &Sha) -> Self {
        let (mut class, mut reasons) = (Class::Low, Vec::new());
        let mut raise = |to: Class, why: String| {
            class = class.max(to);
            if !reasons.contains(&(to, why.clone())) {
                reasons.push((to, why));
            }
        };
        if !facts.protected.is_empty() {
            raise(UNTOLD, words::review::changes_protected(facts.protected));
        }
        for rule in &settings.rules {
            match tell(rule, facts) {
                Told::No => {}
                Told::Yes(why) => raise(rule.class, why),
                Told::CannotTell(why) => raise(rule.class.max(UNTOLD), why),
            }
        }
        // The heaviest reason first; those of one class in the order of the rules.
        reasons.sort_by_key(|(class, _)| std::cmp::Reverse(*class));
        let reasons = reasons.into_iter().map(|(_, why)| why).take(REASONS).collect();
        let of_findings = settings.rules.iter().filter(|rule| rule.when == RiskWhen::Findings);
        let findings = of_findings.map(|rule| rule.class).max().map_or(UNTOLD, |class| class.max(UNTOLD));
        Self { class, reasons, sampled: class == Class::Low && is_drawn(head, settings.sample), findings }
    }

    /// The same change after the review agent found something, or did not know what to say.
    #[must_use]
    pub fn with_findings(&self, why: String) -> Self {
        let mut reasons = vec![why];
        reasons.extend(self.reasons.iter().cloned());
        reasons.truncate(REASONS);
        Self { class: self.class.max(self.findings), reasons, sampled: false, findings: self.findings }
    }
}

/// Whom each class needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reviewers {
    low: Reviewer,
    medium: Reviewer,
    high: Reviewer,
    critical: Reviewer,
}

impl Reviewers {
    /// Those of a configuration.
    pub fn new(settings: &Settings) -> Self {
        let Settings { low, medium, high, critical, .. } = *settings;
        Self { low, medium, high, critical }
    }

    /// Whom a change needs. One whose risk nobody has judged needs a person.
    pub fn of(self, risk: Option<&Risk>) -> Reviewer {
        let Some(risk) = risk else { return Reviewer::Person };
        let needed = match risk.class {
            Class::Low => self.low,
            Class::Medium => self.medium,
            Class::High => self.high,
            Class::Critical => self.critical,
        };
        if risk.sampled { needed.max(Reviewer::Person) } else { needed }
    }
}

/// Whether a commit is one of those that people see all the same, `percent` of a hundred. Its name is as good as a die.
fn is_drawn(head: &Sha, percent: u32) -> bool {
    let start = head.as_str().get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    // What cannot be read is looked at.
    start.is_none_or(|number| number % HUNDREDTHS < percent)
}

fn tell(rule: &RiskRule, facts: &RiskFacts<'_>) -> Told {
    let limit = rule.limit.unwrap_or(0);
    let patterns = rule.paths.as_deref().unwrap_or_default();
    let fits = |path: &str| {
        let path = path.to_lowercase();
        patterns.iter().any(|pattern| path_matches(&pattern.to_lowercase(), &path))
    };
    let files = |of: &dyn Fn(&str) -> bool, say: fn(&[String]) -> String| match facts.change {
        None => unreadable(),
        Some(change) => {
            named(change.files.iter().map(|file| file.path.as_str()).filter(|path| of(path)), say)
        }
    };
    match rule.when {
        RiskWhen::Paths => files(&fits, words::risk::paths),
        RiskWhen::OtherPaths => files(&|path| !fits(path), words::risk::other_paths),
        RiskWhen::Dependencies => files(&names_dependencies, words::risk::dependencies),
        RiskWhen::Lines => lines(facts.change, limit),
        RiskWhen::Tests => tests(facts.change),
        RiskWhen::Permissions => permissions(facts.change),
        RiskWhen::Reverted => match facts.record {
            None => Told::CannotTell(words::risk::NO_RECORD.to_owned()),
            Some(record) => told(record.reverted > limit, || words::risk::reverted(record)),
        },
        RiskWhen::Unproven => match facts.record {
            None => Told::CannotTell(words::risk::NO_RECORD.to_owned()),
            Some(record) => told(record.landed < limit, || words::risk::unproven(record, limit)),
        },
        // Nobody has looked yet. `with_findings` says what follows.
        RiskWhen::Findings => Told::No,
    }
}

fn unreadable() -> Told {
    Told::CannotTell(words::risk::UNREADABLE.to_owned())
}

fn told(is_so: bool, why: impl FnOnce() -> String) -> Told {
    if is_so { Told::Yes(why()) } else { Told::No }
}

fn named<'p>(paths: impl Iterator<Item = &'p str>, say: fn(&[String]) -> String) -> Told {
    let paths: Vec<String> = paths.map(str::to_owned).collect();
    told(!paths.is_empty(), || say(&paths))
}

fn lines(change: Option<&Change>, limit: u32) -> Told {
    let Some(change) = change else { return unreadable() };
    let opaque: Vec<String> =
        change.files.iter().filter(|file| file.is_opaque).map(|file| file.path.clone()).collect();
    let (added, removed) = change.size();
    let lines = added.saturating_add(removed);
    if lines > usize::try_from(limit).unwrap_or(usize::MAX) {
        return Told::Yes(words::risk::lines(lines, limit));
    }
    match opaque.is_empty() {
        true => Told::No,
        false => Told::CannotTell(words::risk::opaque(&opaque)),
    }
}

fn tests(change: Option<&Change>) -> Told {
    let Some(change) = change else { return unreadable() };
    let fewer = fewer_tests(change);
    if !fewer.is_empty() {
        return Told::Yes(words::risk::fewer_tests(&fewer));
    }
    let opaque = change.files.iter().filter(|file| file.is_opaque && file.kind != Kind::Added);
    let opaque: Vec<String> =
        opaque.filter(|file| is_test(&file.path)).map(|file| file.path.clone()).collect();
    match opaque.is_empty() {
        true => Told::No,
        false => Told::CannotTell(words::risk::opaque(&opaque)),
    }
}

fn permissions(change: Option<&Change>) -> Told {
    let Some(change) = change else { return unreadable() };
    let special = change.files.iter().filter(|file| file.mode.is_special(file.kind));
    let rights = change.files.iter().filter(|file| {
        let mut added = file.hunks.iter().flat_map(|hunk| &hunk.added);
        // A line that is too long to be looked at says nothing for the change.
        added.any(|line| line.len() > LONGEST_LINE || RIGHTS.is_match(line))
    });
    let mut paths: Vec<&str> = special.chain(rights).map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    named(paths.into_iter(), words::risk::permissions)
}

/// A line that is longer is not searched, and counts as one that was found.
const LONGEST_LINE: usize = 64 << 10;

fn names_dependencies(path: &str) -> bool {
    let path = path.to_lowercase();
    let parts: Vec<&str> = path.split('/').collect();
    let Some((name, dirs)) = parts.split_last() else { return true };
    DEPENDENCIES.contains(name)
        || DEPENDENCY_ENDS.iter().any(|end| name.ends_with(end))
        || name.starts_with("requirements")
        || name.starts_with("dockerfile.")
        || dirs.iter().any(|dir| VENDORED.contains(dir))
}
