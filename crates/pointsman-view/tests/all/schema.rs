//! The tables of `docs/commands.md` against the views: every documented field is printed, every printed field is
//! documented.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::examples::examples;
use crate::fields::{Field, differences, parse, untried};

/// Rows whose column *JSON* names no fields, because others decide what is in it.
const OTHERS: [&str; 2] = ["deps < body", "hook EVENT [JSON]"];

/// A row of a table that has a column *JSON*.
#[derive(Debug)]
struct Row {
    /// The row's first command.
    command: String,
    json: String,
}

/// The shapes that a command may print: the usual one, and those it falls back to.
type Shapes = Vec<Vec<Field>>;

fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    let text = std::fs::read_to_string(path).expect("docs/commands.md is there");
    let mut rows = Vec::new();
    let mut column = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            column = None;
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if let Some(at) = cells.iter().position(|cell| *cell == "JSON") {
            column = Some(at);
        } else if let (Some(at), false) = (column, line.starts_with("|---")) {
            let json = cells.get(at).unwrap_or(&"").trim_matches('|').trim().to_owned();
            let command = spans(cells[0]).first().copied().unwrap_or_default().to_owned();
            rows.push(Row { command, json });
        }
    }
    assert!(rows.len() > 60, "docs/commands.md has only {} rows with JSON", rows.len());
    rows
}

/// The texts between backticks.
fn spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Whether a row is about this command: `task list [--state S]` is about `task list`.
fn is_about(row: &Row, command: &str) -> bool {
    row.command.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Reads a cell: `[array|lines] [of|as] …`, then perhaps `and …`, `or as …`, `only …`, and prose.
fn shapes(rows: &[Row], json: &str) -> Result<Shapes, String> {
    let start =
        json.trim_start_matches("array").trim_start_matches("lines").trim_start_matches(',').trim_start();
    let start = start.trim_start_matches("of ").trim_start_matches("the file: ");
    let mut usual = match start.strip_prefix("as `") {
        Some(_) => referred(rows, start)?,
        None => match start.strip_prefix('`') {
            Some(_) => parse(spans(start)[0])?,
            None => return Err(format!("no fields in {json:?}")),
        },
    };
    if let Some((_, more)) = json.split_once("and `").filter(|_| start.starts_with("as `")) {
        usual.extend(parse(more.split('`').next().unwrap_or_default())?);
    }
    let mut shapes = vec![usual];
    for (_, other) in json.match_indices("only `").map(|(at, word)| (at, &json[at + word.len()..])) {
        shapes.push(parse(other.split('`').next().unwrap_or_default())?);
    }
    if let Some((_, other)) = json.split_once("or as `") {
        shapes.push(referred(rows, &format!("as `{other}"))?);
    }
    Ok(shapes)
}

fn referred(rows: &[Row], text: &str) -> Result<Vec<Field>, String> {
    let other = spans(text)[0];
    let row = rows.iter().find(|row| is_about(row, other)).ok_or(format!("there is no row for `{other}`"))?;
    Ok(shapes(rows, &row.json)?.remove(0))
}

fn problems(rows: &[Row], examples: &BTreeMap<&'static str, Vec<Value>>) -> Vec<String> {
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| !row.json.is_empty() && !OTHERS.contains(&row.command.as_str())) {
        let shapes = match shapes(rows, &row.json) {
            Ok(shapes) => shapes,
            Err(why) => {
                found.push(format!("{}: {why}", row.command));
                continue;
            }
        };
        // `board --labels` is about `board`, too: the longest name is meant.
        let of_row = examples.iter().filter(|(command, _)| is_about(row, command));
        let Some((_, values)) = of_row.max_by_key(|(command, _)| command.len()) else {
            if !row.json.contains("as `") || shapes.len() > 1 || row.json.contains("and `") {
                found.push(format!("{}: there is no example of what it prints", row.command));
            }
            continue;
        };
        let fits = |shape: &Vec<Field>, value: &Value| differences(shape, value, &row.command).is_empty();
        for value in values.iter().filter(|value| !shapes.iter().any(|shape| fits(shape, value))) {
            found.extend(differences(&shapes[0], value, &row.command));
        }
        for shape in &shapes {
            let of_shape: Vec<&Value> = values.iter().filter(|value| fits(shape, value)).collect();
            match of_shape.is_empty() {
                true => found.push(format!("{}: no example of {shape:?}", row.command)),
                false => found.extend(untried(shape, &of_shape, &row.command)),
            }
        }
    }
    for command in examples.keys().filter(|command| !rows.iter().any(|row| is_about(row, command))) {
        found.push(format!("{command}: docs/commands.md has no row for it"));
    }
    found
}

#[test]
fn documented_fields_are_the_printed_ones() {
    let found = problems(&rows(), &examples());
    assert!(found.is_empty(), "docs/commands.md and the views differ:\n{}", found.join("\n"));
}

#[test]
fn a_difference_would_be_found() {
    let mut rows = rows();
    let row = rows.iter_mut().find(|row| is_about(row, "task list")).expect("tasks are documented");
    row.json = row.json.replace("head_sha, ", "head_hash, ");
    let found = problems(&rows, &examples());
    let expected = ["head_sha is printed and not documented", "head_hash is documented and not printed"];
    for words in expected {
        assert!(found.iter().any(|line| line.contains(words)), "{words}: {found:?}");
    }
}
