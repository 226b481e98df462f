//! Kinds are values: what differs between roles, agents, forges and CIs is written at home, and call sites ask what one can do.
//!
//! A comparison with a variant compiles on when a new one comes, and nobody is told. So the files that name one are listed,
//! and the list may only shrink. What is on it opens an adapter, or is the role's own room.

use pointsman_core::role::Role;
use pointsman_testkit::source::shipped_files;
use pointsman_testkit::source::tokens::{Kind, Token, tokens};

use super::{nothing_found, only_shrinks};

/// Each type with its home.
const HOMES: [(&str, &str); 4] = [
    ("Role", "crates/pointsman-core/src/role.rs"),
    ("Agent", "crates/pointsman-core/src/agent/"),
    ("ForgeKind", "crates/pointsman-core/src/config/kinds.rs"),
    ("CiKind", "crates/pointsman-core/src/config/kinds.rs"),
];

#[test]
fn few_files_name_a_kind() {
    let mut found = Vec::new();
    for file in shipped_files() {
        for (line, name) in named_variants(&tokens(file.shipped_text()), &file.path) {
            found.push((file.path.clone(), format!("line {line}: {name}")));
        }
    }
    only_shrinks("outside its home nobody names a kind: ask what it can do", "named_kinds", &found);
}

#[test]
fn the_words_of_roles_are_in_their_home() {
    // The other words mean labels, fields and columns as well.
    let words = [Role::Gardener, Role::Supervisor, Role::Planner, Role::Predictor].map(Role::as_str);
    let mut found = Vec::new();
    for file in shipped_files().iter().filter(|file| file.path != HOMES[0].1) {
        for token in tokens(file.shipped_text()) {
            if token.kind == Kind::Text && words.contains(&token.text.as_str()) {
                found.push(format!("{}:{}: {:?}", file.path, token.line, token.text));
            }
        }
    }
    nothing_found("a role is a value, not a word", &found);
}

/// The variants that code names, each with its line. Constants and functions of the types are not variants.
fn named_variants(tokens: &[Token], path: &str) -> Vec<(usize, String)> {
    let foreign = |token: &Token| {
        HOMES
            .iter()
            .any(|(name, home)| token.kind == Kind::Word && token.text == *name && !path.starts_with(home))
    };
    let named = tokens.windows(4).filter(|four| foreign(&four[0]) && four[1].is(":") && four[2].is(":"));
    let variants = named.filter(|four| {
        let next = &four[3];
        let is_variant = next.text.starts_with(char::is_uppercase) && next.text.contains(char::is_lowercase);
        // An import of all or several of them names them too.
        next.is("{") || next.is("*") || next.kind == Kind::Word && is_variant
    });
    variants.map(|four| (four[0].line, format!("{}::{}", four[0].text, four[3].text))).collect()
}

#[test]
fn a_variant_is_told_from_what_a_type_can_do() {
    let found = |code: &str, path: &str| -> Vec<String> {
        named_variants(&tokens(code), path).into_iter().map(|(_, name)| name).collect()
    };
    let code = "use a::Role::{Dev, Vault}; if role == Role::Dev || kind == config::ForgeKind::Git {} \
                // Role::Action\n Role::ALL; Role::of_formula(x); CiKind::OF_COMMAND; \"Role::Dev\"; Agent::*; MyRole::Dev;";
    assert_eq!(found(code, "a.rs"), ["Role::{", "Role::Dev", "ForgeKind::Git", "Agent::*"]);
    assert_eq!(found(code, HOMES[0].1), ["ForgeKind::Git", "Agent::*"]);
}
