//! Messages of the commits that the merge queue makes itself: a merge says what it merges, a squash keeps what its
//! commits said and who made them.

use std::collections::BTreeSet;

use crate::ids::Number;
use crate::text::clean_line;

/// The longest message.
const LONGEST: usize = 64 << 10;
/// The longest first line.
const SUBJECT: usize = 200;
/// How many commits a merge names.
const NAMED: usize = 50;
/// How many people a squash names: a branch may bring as many trailers as it likes.
const PEOPLE: usize = 200;

/// The branch that lands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heading {
    Branch(String),
    PullRequest { number: Number, title: String, branch: String },
}

/// One commit of the branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCommit {
    /// Name and address, as git writes them.
    pub author: String,
    pub message: String,
}

/// The message of a merge commit. `commits` are those of the branch, oldest first.
pub fn merge(heading: &Heading, commits: &[BranchCommit]) -> String {
    let mut message = match heading {
        Heading::Branch(branch) => format!("Merge branch '{}'\n", clean_line(branch, SUBJECT)),
        Heading::PullRequest { number, title, branch } => format!(
            "Merge pull request #{number} from {}\n\n{}\n",
            clean_line(branch, SUBJECT),
            clean_line(title, SUBJECT)
        ),
    };
    if !commits.is_empty() {
        message.push('\n');
    }
    for commit in commits.iter().take(NAMED) {
        message += &format!("* {}\n", subject(&commit.message));
    }
    if commits.len() > NAMED {
        message += &format!("* and {} more\n", commits.len() - NAMED);
    }
    message
}

/// The message of one commit by `author` that stands for a whole branch: every subject and body, then everybody who had a
/// part in it and everybody who signed off, once each.
pub fn squash(heading: &Heading, author: &str, commits: &[BranchCommit]) -> String {
    let parts: Vec<Parts> = commits.iter().map(|commit| Parts::of(&commit.message)).collect();
    let title = match heading {
        Heading::Branch(branch) => match parts.as_slice() {
            [only] => only.subject.clone(),
            _ => clean_line(branch, SUBJECT),
        },
        Heading::PullRequest { number, title, .. } => format!("{} (#{number})", clean_line(title, SUBJECT)),
    };
    let mut blocks = Vec::new();
    for part in &parts {
        let is_title = parts.len() == 1 && title.starts_with(&part.subject);
        if !is_title {
            blocks.push(format!("* {}", part.subject));
        }
        blocks.extend((!part.body.is_empty()).then(|| part.body.clone()));
    }
    let mut text = title;
    for block in blocks {
        if text.len() + block.len() > LONGEST {
            text += "\n\n* and more";
            break;
        }
        text += &format!("\n\n{block}");
    }
    let people = people(author, commits, &parts);
    if !people.is_empty() {
        text += &format!("\n\n{}", people.join("\n"));
    }
    text.push('\n');
    text
}

/// The trailers at the end: co-authors first. Whoever is the author of the whole is not named again.
fn people(author: &str, commits: &[BranchCommit], parts: &[Parts]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut known = BTreeSet::new();
    let mut add = |line: String| {
        if lines.len() < PEOPLE && known.insert(line.to_ascii_lowercase()) {
            lines.push(line);
        }
    };
    for person in commits.iter().map(|commit| commit.author.as_str()).chain(all(parts, CO_AUTHOR)) {
        if !address(person).eq_ignore_ascii_case(address(author)) {
            add(format!("{CO_AUTHOR}: {person}"));
        }
    }
    for person in all(parts, SIGNED) {
        add(format!("{SIGNED}: {person}"));
    }
    lines
}

const CO_AUTHOR: &str = "Co-authored-by";
const SIGNED: &str = "Signed-off-by";

fn all<'a>(parts: &'a [Parts], key: &'a str) -> impl Iterator<Item = &'a str> {
    let people = parts.iter().flat_map(|part| &part.people);
    people.filter(move |(known, _)| *known == key).map(|(_, person)| person.as_str())
}

/// What is between the brackets of `Name <address>`, or all of it.
fn address(person: &str) -> &str {
    let inside = person.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inside.map_or(person, |(address, _)| address).trim()
}

/// A message taken apart.
struct Parts {
    subject: String,
    /// Without the subject, and without the trailers that name people.
    body: String,
    people: Vec<(&'static str, String)>,
}

impl Parts {
    fn of(message: &str) -> Self {
        let message = message.trim();
        let (subject, rest) = message.split_once('\n').unwrap_or((message, ""));
        let rest = rest.trim_matches('\n');
        // Trailers are the last paragraph.
        let (before, last) = match rest.rsplit_once("\n\n") {
            Some((before, last)) => (before, last),
            None => ("", rest),
        };
        let mut people = Vec::new();
        let mut kept = Vec::new();
        for line in last.lines() {
            match trailer(line) {
                Some(found) => people.push(found),
                None => kept.push(line),
            }
        }
        let last = kept.join("\n");
        let body = [before.trim_end(), last.trim_end()];
        let body: Vec<&str> = body.into_iter().filter(|part| !part.is_empty()).collect();
        Self { subject: clean_line(subject, SUBJECT), body: body.join("\n\n"), people }
    }
}

fn trailer(line: &str) -> Option<(&'static str, String)> {
    let (key, person) = line.split_once(':')?;
    let known = [CO_AUTHOR, SIGNED].into_iter().find(|known| known.eq_ignore_ascii_case(key.trim()))?;
    Some((known, clean_line(person.trim(), SUBJECT)))
}

fn subject(message: &str) -> String {
    clean_line(message.trim().lines().next().unwrap_or_default(), SUBJECT)
}

#[cfg(test)]
mod tests {
    use super::{BranchCommit, Heading, merge, squash};

    const ANN: &str = "Ann <ann@example.org>";

    fn told(author: &str, message: &str) -> BranchCommit {
        BranchCommit { author: author.to_owned(), message: message.to_owned() }
    }

    fn pull_request() -> Heading {
        Heading::PullRequest { number: 12, title: "Log in".to_owned(), branch: "fix-login".to_owned() }
    }

    #[test]
    fn a_squash_keeps_subjects_bodies_and_people() {
        let commits = [
            told(ANN, "First\n\nWhy it is so.\n\nFixes: #3\nSigned-off-by: Ann <ann@example.org>\n"),
            told("Bob <bob@example.org>", "Second\n\nco-authored-by: Eve <eve@example.org>\n"),
            told(ANN, "Third\n\nCo-authored-by: Bob <BOB@example.org>\nSigned-off-by: Ann <ann@example.org>"),
        ];
        let expected = "Log in (#12)\n\n* First\n\nWhy it is so.\n\nFixes: #3\n\n* Second\n\n* Third\n\n\
            Co-authored-by: Bob <bob@example.org>\nCo-authored-by: Eve <eve@example.org>\n\
            Signed-off-by: Ann <ann@example.org>\n";
        assert_eq!(squash(&pull_request(), ANN, &commits), expected);
        let of_a_branch = squash(&Heading::Branch("fix-login".to_owned()), ANN, &commits);
        assert!(of_a_branch.starts_with("fix-login\n\n* First\n"), "{of_a_branch}");
    }

    #[test]
    fn a_squash_names_so_many_people_and_no_more() {
        let signed: String =
            (0..300_000).map(|n| format!("Signed-off-by: P{n} <p{n}@example.org>\n")).collect();
        let message = squash(&pull_request(), ANN, &[told(ANN, &format!("First\n\n{signed}"))]);
        assert_eq!(message.matches("Signed-off-by: ").count(), 200);
        assert!(message.contains("Signed-off-by: P199 <p199@example.org>"));
    }

    #[test]
    fn a_single_commit_is_its_own_message() {
        let commit = [told(ANN, "Log in\n\nWhy: it is so.\n\nSigned-off-by: Ann <ann@example.org>\n")];
        let body = "\n\nWhy: it is so.\n\nSigned-off-by: Ann <ann@example.org>\n";
        assert_eq!(squash(&Heading::Branch("x".to_owned()), ANN, &commit), format!("Log in{body}"));
        assert_eq!(squash(&pull_request(), ANN, &commit), format!("Log in (#12){body}"));
        let other = [told(ANN, "wip")];
        assert_eq!(squash(&pull_request(), ANN, &other), "Log in (#12)\n\n* wip\n");
    }

    #[test]
    fn a_merge_says_what_it_merges() {
        let commits = [told(ANN, "First\n\nbody"), told(ANN, "Second")];
        assert_eq!(
            merge(&Heading::Branch("fix-login".to_owned()), &commits),
            "Merge branch 'fix-login'\n\n* First\n* Second\n"
        );
        assert_eq!(
            merge(&pull_request(), &commits[..1]),
            "Merge pull request #12 from fix-login\n\nLog in\n\n* First\n"
        );
        let many: Vec<BranchCommit> = (0..53).map(|n| told(ANN, &n.to_string())).collect();
        assert!(merge(&pull_request(), &many).ends_with("* 49\n* and 3 more\n"));
    }
}
