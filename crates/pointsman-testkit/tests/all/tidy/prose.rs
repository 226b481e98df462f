//! Where sentences stand, and which items are explained by one.

use std::sync::LazyLock;

use pointsman_testkit::source::tokens::{Kind, Token, tokens};
use pointsman_testkit::source::{SourceFile, shipped_files};
use regex::Regex;

use super::matches::step;
use super::{nothing_found, pattern};

/// Fewer words than this are a name or a fragment.
const SENTENCE: usize = 4;
/// Fewer words than this beside the placeholders are a form for values, such as a row or a command.
const OWN_WORDS: usize = 3;
/// The end of a constant's name that lists what to look for in the words of other programs.
const PHRASES: &str = "_PHRASES";
/// The derives of clap whose doc comments are help text.
const HELP: [&str; 3] = ["Args", "Subcommand", "ValueEnum"];
/// Macros whose text is for developers: logs and broken promises of our own.
const FOR_DEVELOPERS: [&str; 13] = [
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "panic",
    "unreachable",
    "crash_point",
    "expect",
];

#[test]
fn sentences_stand_in_words() {
    let mut found = Vec::new();
    for file in shipped_files().iter().filter(|file| decides_remembers_or_runs(file)) {
        let code = tokens(file.shipped_text());
        found.extend(sentences(&code).map(|token| {
            let shown: String = token.text.chars().take(60).collect();
            format!("{}:{}: {shown}", file.path, token.line)
        }));
    }
    nothing_found(
        "a sentence for a person or an agent is a function in crates/pointsman-core/src/words",
        &found,
    );
}

fn decides_remembers_or_runs(file: &SourceFile) -> bool {
    let rooms = ["crates/pointsman-core/src/", "crates/pointsman-store/src/", "crates/pointsman/src/daemon/"];
    rooms.iter().any(|room| file.path.starts_with(room))
        && !file.path.starts_with("crates/pointsman-core/src/words/")
}

/// Text that people would read: several words, and neither data, nor an attribute, nor meant for developers.
fn sentences(code: &[Token]) -> impl Iterator<Item = &Token> {
    let mut aside = vec![false; code.len()];
    for (at, token) in code.iter().enumerate() {
        let opens = |place: usize, what: &str| code.get(place).is_some_and(|token| token.is(what));
        let begin = if token.is("const") && code.get(at + 1).is_some_and(|name| name.text.ends_with(PHRASES))
        {
            list_after(code, at)
        } else if token.is("#") && (opens(at + 1, "[") || opens(at + 1, "!")) {
            Some(at + 1 + usize::from(opens(at + 1, "!")))
        } else if FOR_DEVELOPERS.contains(&token.text.as_str()) && opens(at + 1, "!") && opens(at + 2, "(") {
            Some(at + 2)
        } else if token.is("expect") && opens(at + 1, "(") {
            Some(at + 1)
        } else {
            None
        };
        if let Some(begin) = begin {
            let mut depth = 0;
            for (place, inner) in code.iter().enumerate().skip(begin) {
                aside[place] = true;
                depth += match inner.text.as_str() {
                    "(" | "[" | "{" if inner.kind == Kind::Mark => 1,
                    ")" | "]" | "}" if inner.kind == Kind::Mark => -1,
                    _ => 0,
                };
                if depth == 0 {
                    break;
                }
            }
        }
    }
    code.iter()
        .zip(aside)
        .filter(|(token, aside)| token.kind == Kind::Text && !aside && is_sentence(&token.text))
        .map(|(token, _)| token)
}

/// The bracket with which the value of a constant begins.
fn list_after(code: &[Token], constant: usize) -> Option<usize> {
    let value = constant + code[constant..].iter().position(|token| token.is("="))?;
    Some(value + code[value..].iter().position(|token| token.is("["))?)
}

fn is_sentence(text: &str) -> bool {
    static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| pattern(r"\{[^{}\s]*\}"));
    let words = |text: &str| -> Vec<String> {
        let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic));
        words.map(str::to_owned).collect()
    };
    let plain = ["\\n", "\\r", "\\t"].iter().fold(text.to_owned(), |text, escape| text.replace(escape, " "));
    let (all, own) = (words(&plain), words(&PLACEHOLDER.replace_all(&plain, "")));
    let is_data = is_sql(text) || is_regular_expression(text) || is_list(&all);
    all.len() >= SENTENCE && own.len() >= OWN_WORDS && !is_data
}

fn is_sql(text: &str) -> bool {
    let words =
        ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "PRAGMA ", "WHERE ", "ORDER BY "];
    words.iter().any(|word| text.contains(word)) || text.contains(" ON CONFLICT") || text.contains(" IN ('")
}

/// Groups with flags and classes of characters. Rust has no such escapes, so they come from raw strings.
fn is_regular_expression(text: &str) -> bool {
    ["(?:", "(?i", "(?s", "(?m", "(?P<", "\\b", "\\s", "\\S", "\\d", "\\W"]
        .iter()
        .any(|mark| text.contains(mark))
}

/// Names with commas between all of them, such as the columns of a query.
fn is_list(words: &[String]) -> bool {
    words.split_last().is_some_and(|(_, others)| others.iter().all(|word| word.ends_with(',')))
}

#[test]
fn types_and_public_functions_are_explained() {
    let mut found = Vec::new();
    for file in shipped_files().iter().filter(|file| !file.path.starts_with("crates/pointsman-bench/")) {
        for (line, why) in unexplained(&file.path, file.shipped_text()) {
            found.push(format!("{}:{line}: {why}", file.path));
        }
    }
    nothing_found("types and public functions begin with a sentence whose subject is a noun", &found);
}

#[test]
fn modules_are_explained() {
    let mut found = Vec::new();
    for file in shipped_files().iter().filter(|file| !file.path.starts_with("crates/pointsman-bench/")) {
        // The help text of a verb explains its file.
        let is_verb = file.path.contains("/cli/") && !file.shipped_text().starts_with("//!");
        if !is_verb && is_unexplained_module(file.shipped_text()) {
            found.push(file.path.clone());
        }
    }
    nothing_found("a module begins with a sentence whose subject is a noun", &found);
}

fn is_unexplained_module(text: &str) -> bool {
    let words = text.lines().next().and_then(|line| line.strip_prefix("//! "));
    words.is_none_or(|words| words.split_whitespace().count() < 3 || begins_like_a_question(words))
}

/// Public types and functions without a sentence, or with one that begins like a question.
///
/// The doc comments of a command's arguments are its help text, which has a form of its own, and `run` of each command is
/// explained once, in `cli/mod.rs`. A sentence for people explains itself, and the module around it says who reads it.
fn unexplained(path: &str, text: &str) -> Vec<(usize, String)> {
    let code = tokens(text);
    let (is_command, is_words) = (path.contains("/cli/"), path.contains("/words/"));
    let mut found = Vec::new();
    let (mut doc, mut is_help, mut depth) = (None::<&str>, false, 0);
    let mut last_doc = 0;
    let mut at = 0;
    while let Some(token) = code.get(at) {
        if token.kind == Kind::Doc {
            // After an empty line another comment begins: the module's may stand right before the first item's.
            doc = doc.filter(|_| token.line == last_doc + 1).or(Some(&token.text));
            last_doc = token.line;
            at += 1;
            continue;
        }
        // Attributes stand between an item and its sentence.
        if token.is("#") && code.get(at + 1).is_some_and(|next| next.is("[")) {
            let end = at + 1 + attribute(&code[at + 1..]);
            is_help |= code[at..end].iter().any(|token| HELP.iter().any(|derive| token.is(derive)));
            at = end;
            continue;
        }
        if let Some(item) = public_item(&code[at..]) {
            let explains_itself = is_command && (is_help || item == "run") || is_words && depth > 0;
            let why = match doc {
                _ if explains_itself => None,
                None => Some(format!("{item} has no sentence")),
                Some(words) if words.split_whitespace().count() < 3 => {
                    Some(format!("{item}: \"{words}\" says too little"))
                }
                Some(words) if begins_like_a_question(words) => {
                    Some(format!("{item}: \"{words}\" has no subject"))
                }
                Some(_) => None,
            };
            found.extend(why.map(|why| (token.line, why)));
        }
        (doc, is_help) = (None, false);
        depth += step(token);
        at += 1;
    }
    found
}

/// The number of tokens in the brackets that begin here.
fn attribute(code: &[Token]) -> usize {
    let mut depth = 0;
    let end = code.iter().position(|token| {
        depth += step(token);
        depth == 0
    });
    end.map_or(code.len(), |end| end + 1)
}

/// The name of the public type or function that begins here.
fn public_item(code: &[Token]) -> Option<&str> {
    let words: Vec<&str> = code.iter().take(7).map(|token| token.text.as_str()).collect();
    let rest = match words.as_slice() {
        ["pub", "(", "crate", ")", rest @ ..] | ["pub", rest @ ..] => rest,
        _ => return None,
    };
    match rest {
        // In a macro the sentence comes from whoever calls it.
        [_, "$", ..] => None,
        ["const", "fn", name, ..] | ["fn" | "struct" | "enum" | "trait", name, ..] => Some(name),
        _ => None,
    }
}

fn begins_like_a_question(words: &str) -> bool {
    let first = words.split_whitespace().next().unwrap_or_default();
    ["What", "Who", "Which", "That", "Whose", "Why", "When", "Where", "How"].contains(&first)
}

#[test]
fn sentences_and_unexplained_items_are_found() {
    let code = tokens(
        "#[error(\"this one is an attribute\")] fn a() { tracing::warn!(x, \"this one is a log\"); \
         b(\"and this one is for people\"); c(\"SELECT a FROM b WHERE c\"); d(\"too short\"); }",
    );
    let texts: Vec<&str> = sentences(&code).map(|token| token.text.as_str()).collect();
    assert_eq!(texts, ["and this one is for people"]);
    let data = tokens(
        "const NETWORK_PHRASES: &[&str] = &[\"the network was too slow\"]; const SQL: &str = \"a IN ('b', 'c', 'd')\"; \
         const A: &[&str] = &[\"but this one is for people\"]; f(r\"(?:it|that) failed for me\", r\"a \\d b c d e\"); \
         g(\"{select} AND kind = {kind}\", \"\\n{gutter} |\\n{line} | {source}\", \"a.one, a.two, a.three, a.four\"); \
         h(\"the name has the form [a-z0-9][a-z0-9._-]{0,63}\", \"{a} is, as ever, not {b}\", \"in {a} there is no {b}\");",
    );
    let texts: Vec<&str> = sentences(&data).map(|token| token.text.as_str()).collect();
    let people = ["but this one is for people", "the name has the form [a-z0-9][a-z0-9._-]{0,63}"];
    assert_eq!(texts, [&people[..], &["{a} is, as ever, not {b}", "in {a} there is no {b}"]].concat());
    assert!(is_unexplained_module("use a;\n") && is_unexplained_module("//! How it is done.\n"));
    assert!(
        is_unexplained_module("//! A module.\n") && !is_unexplained_module("//! The doors of a house.\n")
    );
    let text = "//! What a module is.\n\n/// The first item of a module.\npub struct First;\n";
    assert!(unexplained("a.rs", text).is_empty());
    let text = "/// What it is.\npub struct A;\n\n/// A door.\n#[derive(Debug)]\npub(crate) enum B {}\n\
                /// The door to the house.\npub const fn c() {}\npub fn d() {}\nfn e() {}\npub enum $name {}\n";
    let lines = |path: &str, text: &str| -> Vec<usize> {
        unexplained(path, text).into_iter().map(|(line, _)| line).collect()
    };
    assert_eq!(lines("a.rs", text), [2, 6, 9]);
    let command = "/// List agents\n#[derive(Debug, Args)]\n#[command(after_help = \"Examples:\\n  \\\n    [a] b\")]\n\
                   pub(crate) struct Arguments {}\nimpl Arguments {\n    pub(crate) fn run(self) {}\n}\npub fn c() {}\n";
    assert_eq!(lines("crates/pointsman/src/cli/agents.rs", command), [9]);
    assert_eq!(
        lines("crates/pointsman/src/agents.rs", command),
        [5, 7, 9],
        "help text exists in commands only"
    );
    let words =
        "/// Answers to orders.\npub mod refused {\n    pub fn is_over() -> &str {}\n}\npub fn d() {}\n";
    assert_eq!(lines("crates/pointsman-core/src/words/task.rs", words), [5]);
}
