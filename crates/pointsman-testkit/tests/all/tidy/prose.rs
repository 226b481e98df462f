//! Where sentences stand, and which items are explained by one.

use pointsman_testkit::source::tokens::{Kind, Token, tokens};
use pointsman_testkit::source::{SourceFile, shipped_files};

use super::only_shrinks;

/// Fewer words than this are a name or a fragment.
const SENTENCE: usize = 4;
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
            (file.path.clone(), format!("line {}: {shown}", token.line))
        }));
    }
    only_shrinks(
        "a sentence for a person or an agent is a function in crates/pointsman-core/src/words",
        "sentences_outside_words",
        &found,
    );
}

fn decides_remembers_or_runs(file: &SourceFile) -> bool {
    let rooms = ["crates/pointsman-core/src/", "crates/pointsman-store/src/", "crates/pointsman/src/daemon/"];
    rooms.iter().any(|room| file.path.starts_with(room))
        && !file.path.starts_with("crates/pointsman-core/src/words/")
}

/// Text that people would read: several words, and neither SQL, nor an attribute, nor meant for developers.
fn sentences(code: &[Token]) -> impl Iterator<Item = &Token> {
    let mut aside = vec![false; code.len()];
    for (at, token) in code.iter().enumerate() {
        let opens = |place: usize, what: &str| code.get(place).is_some_and(|token| token.is(what));
        let begin = if token.is("#") && (opens(at + 1, "[") || opens(at + 1, "!")) {
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
    let is_sentence = |token: &Token| {
        let words = token.text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic));
        words.count() >= SENTENCE && !is_sql(&token.text)
    };
    code.iter()
        .zip(aside)
        .filter(move |(token, aside)| token.kind == Kind::Text && !aside && is_sentence(token))
        .map(|(token, _)| token)
}

fn is_sql(text: &str) -> bool {
    ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "PRAGMA ", "WHERE ", " ON CONFLICT"]
        .iter()
        .any(|word| text.contains(word))
}

#[test]
fn types_and_public_functions_are_explained() {
    let mut found = Vec::new();
    for file in shipped_files().iter().filter(|file| !file.path.starts_with("crates/pointsman-bench/")) {
        for (line, why) in unexplained(file.shipped_text()) {
            found.push((file.path.clone(), format!("line {line}: {why}")));
        }
    }
    only_shrinks(
        "types and public functions begin with a sentence whose subject is a noun",
        "unexplained_items",
        &found,
    );
}

/// Public types and functions without a sentence, or with one that begins like a question.
fn unexplained(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut doc: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(words) = line.strip_prefix("///") {
            doc.get_or_insert_with(|| words.trim().to_owned());
            continue;
        }
        // Attributes stand between an item and its sentence; some of them span lines.
        if line.starts_with("#[") || line.starts_with(')') || line.starts_with("reason") {
            continue;
        }
        if let Some(item) = public_item(line) {
            let why = match doc.as_deref() {
                None => Some(format!("{item} has no sentence")),
                Some(words) if words.split_whitespace().count() < 3 => {
                    Some(format!("{item}: \"{words}\" says too little"))
                }
                Some(words) if begins_like_a_question(words) => {
                    Some(format!("{item}: \"{words}\" has no subject"))
                }
                Some(_) => None,
            };
            found.extend(why.map(|why| (number + 1, why)));
        }
        doc = None;
    }
    found
}

fn public_item(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub "))?;
    let rest = rest.strip_prefix("const ").filter(|rest| rest.starts_with("fn ")).unwrap_or(rest);
    let kinds = ["fn ", "struct ", "enum ", "trait "];
    let named = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    Some(named.split(['(', '<', '{', ';', ' ', ':']).next().unwrap_or(named))
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
    let text = "/// What it is.\npub struct A;\n\n/// A door.\n#[derive(Debug)]\npub(crate) enum B {}\n\
                /// The door to the house.\npub const fn c() {}\npub fn d() {}\nfn e() {}\n";
    let lines: Vec<usize> = unexplained(text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [2, 6, 9]);
}
