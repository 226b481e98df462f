//! `{{name}}` in a formula's texts: filled in strictly, with a project's variables, and nothing else.
//!
//! No conditions, no loops, no expressions: a formula is prose, and what is computed is computed in code. What is
//! filled in is not looked at again.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::{Error, Formula, check};
use crate::config::Config;
use crate::words;

/// A project's variables, by name.
pub type Variables = BTreeMap<String, String>;

/// The variables of a project's formulas: those that Pointsman sets, and its own `[variables]`.
pub fn variables(config: &Config) -> Variables {
    let Config { name, primary_branch, forge, limits, timing, .. } = config;
    let repo = forge.repo.clone().unwrap_or_else(|| name.to_string());
    let given = [
        ("project", name.to_string()),
        ("primary_branch", primary_branch.clone()),
        ("forge", forge.kind.to_string()),
        ("repo", repo),
        ("planner_issues", limits.planner_issues.to_string()),
        ("predictor_issues", limits.predictor_issues.to_string()),
        ("min_free_memory_mb", limits.min_free_memory_mb.to_string()),
        ("stale_dependency", timing.stale_dependency.to_string()),
    ];
    let mut all: Variables = config.variables.clone();
    all.extend(given.map(|(name, value)| (name.to_owned(), value)));
    all
}

/// Whether a variable may be called this.
pub(crate) fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// What is wrong with a text, and the part of it that is.
pub(super) struct Mistake {
    message: String,
    part: String,
}

/// The variables of a text with their places, or what is no variable.
pub(super) fn holes(text: &str) -> Result<Vec<(Range<usize>, &str)>, Mistake> {
    let mut holes = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("{{").map(|at| from + at) {
        let line = text[start..].lines().next().unwrap_or_default();
        let Some(length) = line.find("}}") else {
            let message = words::formula::UNCLOSED_VARIABLE.to_owned();
            return Err(Mistake { message, part: line.to_owned() });
        };
        let (name, end) = (text[start + 2..start + length].trim(), start + length + 2);
        if !is_variable(name) {
            let message = words::formula::NOT_A_VARIABLE.to_owned();
            return Err(Mistake { message, part: text[start..end].to_owned() });
        }
        holes.push((start..end, name));
        from = end;
    }
    Ok(holes)
}

fn fill(text: &str, variables: &Variables) -> Result<String, Mistake> {
    let (mut filled, mut from) = (String::with_capacity(text.len()), 0);
    for (place, name) in holes(text)? {
        let Some(value) = variables.get(name) else {
            let message = words::formula::no_such_variable(name);
            return Err(Mistake { message, part: text[place].to_owned() });
        };
        filled.push_str(&text[from..place.start]);
        filled.push_str(value);
        from = place.end;
    }
    filled.push_str(&text[from..]);
    Ok(filled)
}

/// A mistake where it stands in the file: escapes may have moved it, then at the beginning of its value.
pub(super) fn located(text: &str, origin: &str, value: Range<usize>, mistake: &Mistake) -> Error {
    let inside = text.get(value.clone()).and_then(|value| value.find(&mistake.part));
    let span = inside.map_or(value.clone(), |at| value.start + at..value.start + at + mistake.part.len());
    Error::new(origin, text, span, mistake.message.clone())
}

/// The texts of a formula, with their places.
#[derive(Deserialize)]
struct Texts {
    description: Spanned<String>,
    steps: Vec<StepTexts>,
}

#[derive(Deserialize)]
struct StepTexts {
    id: String,
    title: Spanned<String>,
    description: Spanned<String>,
}

pub(super) fn render(text: &str, origin: &str, variables: &Variables) -> Result<Formula, Error> {
    let mut formula = check::parse(text, origin)?;
    let texts: Texts = toml::from_str(text).expect("it was read before");
    let filled = |value: &Spanned<String>| {
        fill(value.get_ref(), variables).map_err(|mistake| located(text, origin, value.span(), &mistake))
    };
    formula.description = filled(&texts.description)?;
    for written in &texts.steps {
        let (title, description) = (filled(&written.title)?, filled(&written.description)?);
        if let Some(step) = formula.steps.iter_mut().find(|step| step.id == written.id) {
            (step.title, step.description) = (title, description.trim().to_owned());
        }
    }
    Ok(formula)
}
