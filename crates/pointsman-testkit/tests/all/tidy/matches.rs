//! Matches over what happens, is remembered or is ordered name every case, so that the compiler shows where a new one
//! must be thought of.

use pointsman_testkit::source::shipped_files;
use pointsman_testkit::source::tokens::{Kind, Token, tokens};

use super::nothing_found;

/// The types whose values nobody may overlook.
const CLOSED: [&str; 5] = ["Phase", "State", "Event", "Effect", "Request"];

#[test]
fn no_arm_catches_all_phases_states_events_effects_or_requests() {
    let mut found = Vec::new();
    for file in shipped_files() {
        for line in catch_alls(&tokens(file.shipped_text())) {
            found.push(format!("{}:{line}", file.path));
        }
    }
    nothing_found("a match over these types names every case", &found);
}

/// The lines of arms that catch everything in matches over a closed type.
fn catch_alls(code: &[Token]) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate() {
        if token.is("match")
            && let Some(open) = body(code, at)
        {
            let arms = arms(&code[open + 1..]);
            if arms.iter().any(|arm| names_closed_type(arm)) {
                found.extend(arms.iter().filter(|arm| catches_all(arm)).map(|arm| arm[0].line));
            }
        }
    }
    found
}

/// The brace that opens the body of the match at this place: the first one outside parentheses.
fn body(code: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0;
    for (place, token) in code.iter().enumerate().skip(at + 1) {
        match token.text.as_str() {
            "(" | "[" if token.kind == Kind::Mark => depth += 1,
            ")" | "]" if token.kind == Kind::Mark => depth -= 1,
            "{" if token.kind == Kind::Mark && depth == 0 => return Some(place),
            ";" if token.kind == Kind::Mark && depth == 0 => return None,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

/// The patterns of a match, given the code after its opening brace.
fn arms(code: &[Token]) -> Vec<&[Token]> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() && !code[at].is("}") {
        let Some(arrow) = end_of_pattern(&code[at..]) else { break };
        found.push(&code[at..at + arrow]);
        at += arrow + 2;
        at += end_of_arm(&code[at..]);
    }
    found
}

/// How many tokens come before the `=>`.
fn end_of_pattern(code: &[Token]) -> Option<usize> {
    let mut depth = 0;
    for (place, pair) in code.windows(2).enumerate() {
        depth += step(&pair[0]);
        if depth == 0 && pair[0].is("=") && pair[1].is(">") {
            return Some(place);
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

/// How many tokens an arm's body has, with the comma behind it.
fn end_of_arm(code: &[Token]) -> usize {
    let (mut depth, block) = (0, code.first().is_some_and(|token| token.is("{")));
    for (place, token) in code.iter().enumerate() {
        if depth == 0 && token.is("}") {
            return place;
        }
        depth += step(token);
        let next_is_comma = code.get(place + 1).is_some_and(|next| next.is(","));
        if depth == 0 && block && token.is("}") {
            return place + 1 + usize::from(next_is_comma);
        }
        if depth == 0 && token.is(",") {
            return place + 1;
        }
    }
    code.len()
}

/// The change of depth at a bracket of any kind.
pub(super) fn step(token: &Token) -> i32 {
    match token.text.as_str() {
        "(" | "[" | "{" if token.kind == Kind::Mark => 1,
        ")" | "]" | "}" if token.kind == Kind::Mark => -1,
        _ => 0,
    }
}

/// Whether a pattern, up to its guard, names a variant of a closed type at its top: `Event::X`, not `Some(Event::X)`.
fn names_closed_type(pattern: &[Token]) -> bool {
    let pattern = without_guard(pattern);
    let mut depth = 0;
    for (place, token) in pattern.iter().enumerate() {
        let is_path = pattern.get(place + 1).is_some_and(|t| t.is(":"))
            && pattern.get(place + 2).is_some_and(|t| t.is(":"))
            && pattern.get(place + 3).is_some_and(|t| t.text.starts_with(|c: char| c.is_uppercase()));
        if depth == 0 && is_path && CLOSED.contains(&token.text.as_str()) {
            return true;
        }
        depth += step(token);
    }
    false
}

/// `_` or a plain name, whether or not a guard follows: a guard does not name what it lets through.
fn catches_all(pattern: &[Token]) -> bool {
    match without_guard(pattern) {
        [one] => one.kind == Kind::Word && (one.is("_") || one.text.starts_with(|c: char| c.is_lowercase())),
        _ => false,
    }
}

fn without_guard(pattern: &[Token]) -> &[Token] {
    let guard = pattern.iter().position(|token| token.is("if")).unwrap_or(pattern.len());
    &pattern[..guard]
}

#[test]
fn catch_all_arms_are_found_where_they_are() {
    let lines = |code: &str| catch_alls(&tokens(code));
    let bad = "match event {\n Event::A { x } if x > 1 => { f(|| match y { _ => 1 }) }\n Event::B(_) => 2,\n _ => 3,\n}";
    assert_eq!(lines(bad), [4]);
    assert_eq!(lines("match task.state {\n State::A => g(a, b),\n other => h(other),\n}"), [3]);
    assert!(lines("match event { Event::A { .. } => 1, Event::B(_) | Event::C => 2 }").is_empty());
    assert!(lines("match number { 1 => State::A, _ => State::B }").is_empty(), "the value is what counts");
    assert!(lines("match found { Some(State::A) => 1, _ => 2 }").is_empty(), "an option is open anyway");
    assert_eq!(lines("match self {\n Self::X => 1,\n _ => match e { Event::A => 1,\n _ => 2 } }"), [4]);
}
