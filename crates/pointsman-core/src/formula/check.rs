//! Reading a formula's file: its keys, and what must hold between its steps.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::{Error, Formula, Step, template};
use crate::config::is_model;
use crate::text::clean_line;
use crate::vault::is_name;
use crate::words;

/// Largest file that is read: a formula is a page or two.
const MAX_BYTES: usize = 256 * 1024;
/// More steps than an agent follows.
const MAX_STEPS: usize = 50;
/// More files than fit a prompt.
const MAX_FILES: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Spanned<String>,
    description: Spanned<String>,
    version: u32,
    model: Option<Spanned<String>>,
    #[serde(default)]
    context: Context,
    #[serde(default)]
    steps: Vec<Spanned<WrittenStep>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    #[serde(default)]
    files: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    id: Spanned<String>,
    title: Spanned<String>,
    description: Spanned<String>,
    #[serde(default)]
    needs: Vec<Spanned<String>>,
}

pub(super) fn parse(text: &str, origin: &str) -> Result<Formula, Error> {
    let fail = |span: std::ops::Range<usize>, message: String| Err(Error::new(origin, text, span, message));
    if text.len() > MAX_BYTES {
        return fail(0..0, words::formula::FILE_TOO_LARGE.to_owned());
    }
    let written: Written = toml::from_str(text).map_err(|error| explain(text, origin, &error))?;
    if !is_name(written.name.get_ref()) {
        return fail(written.name.span(), words::formula::NOT_A_NAME.to_owned());
    }
    if let Some(model) = written.model.as_ref().filter(|model| !is_model(model.get_ref())) {
        return fail(model.span(), words::config::NOT_A_MODEL.to_owned());
    }
    if written.steps.is_empty() || written.steps.len() > MAX_STEPS {
        return fail(0..0, words::formula::number_of_steps(MAX_STEPS));
    }
    if let Some(file) = written.context.files.get(MAX_FILES) {
        return fail(file.span(), words::formula::too_many_files(MAX_FILES));
    }
    for file in &written.context.files {
        if !is_inside(file.get_ref()) {
            return fail(file.span(), words::formula::NOT_INSIDE.to_owned());
        }
    }
    let mut places = BTreeMap::new();
    for (place, step) in written.steps.iter().map(Spanned::get_ref).enumerate() {
        let id = step.id.get_ref();
        if !is_name(id) {
            return fail(step.id.span(), words::formula::NOT_A_STEP_ID.to_owned());
        }
        if places.insert(id.as_str(), place).is_some() {
            return fail(step.id.span(), words::formula::repeated_step(id));
        }
        if clean_line(step.title.get_ref(), 200) != *step.title.get_ref() || step.title.get_ref().is_empty() {
            return fail(step.title.span(), words::formula::NOT_A_TITLE.to_owned());
        }
    }
    let mut needs = Vec::new();
    for step in written.steps.iter().map(Spanned::get_ref) {
        let mut before = Vec::new();
        for need in &step.needs {
            match places.get(need.get_ref().as_str()) {
                Some(place) => before.push(*place),
                None => {
                    let message = words::formula::unknown_need(step.id.get_ref(), need.get_ref());
                    return fail(need.span(), message);
                }
            }
        }
        needs.push(before);
    }
    let order = match order(&needs) {
        Ok(order) => order,
        Err(circle) => {
            let name = |place: &usize| written.steps[*place].get_ref().id.get_ref().as_str();
            let names: Vec<&str> = circle.iter().chain(circle.first()).map(name).collect();
            let first = &written.steps[circle[0]].get_ref().id;
            return fail(first.span(), words::formula::circle(&names));
        }
    };
    let texts = written.steps.iter().map(Spanned::get_ref).flat_map(|step| [&step.title, &step.description]);
    for value in texts.chain([&written.description]) {
        if let Err(mistake) = template::holes(value.get_ref()) {
            return Err(template::located(text, origin, value.span(), &mistake));
        }
    }
    let step = |place: &usize| {
        let step = written.steps[*place].get_ref();
        Step {
            id: step.id.get_ref().clone(),
            title: step.title.get_ref().clone(),
            description: step.description.get_ref().trim().to_owned(),
            needs: step.needs.iter().map(|need| need.get_ref().clone()).collect(),
        }
    };
    Ok(Formula {
        steps: order.iter().map(step).collect(),
        name: written.name.into_inner(),
        description: written.description.into_inner(),
        version: written.version,
        model: written.model.map(Spanned::into_inner),
        files: written.context.files.into_iter().map(Spanned::into_inner).collect(),
    })
}

/// Whether the files that a formula names are there; the first that is not is an error, with its line.
pub fn check_files(text: &str, origin: &str, is_there: impl Fn(&str) -> bool) -> Result<(), Error> {
    let written: Written = toml::from_str(text).map_err(|error| explain(text, origin, &error))?;
    match written.context.files.iter().find(|file| !is_there(file.get_ref())) {
        Some(file) => {
            let message = words::formula::no_such_file(file.get_ref());
            Err(Error::new(origin, text, file.span(), message))
        }
        None => Ok(()),
    }
}

/// Whether a path stays inside whatever it is joined to.
fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with(['/', '-', '~'])
        && !path.contains(|c: char| c.is_control() || c == '\\')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".." | ".git"))
}

/// The places of the steps in an order in which they can be done, the file's own where it can be; or a circle.
fn order(needs: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut order: Vec<usize> = Vec::with_capacity(needs.len());
    while order.len() < needs.len() {
        let ready =
            |place: &usize| !order.contains(place) && needs[*place].iter().all(|need| order.contains(need));
        match (0..needs.len()).find(ready) {
            Some(next) => order.push(next),
            None => return Err(circle(needs, &order)),
        }
    }
    Ok(order)
}

/// Follows unmet needs until a step comes again.
fn circle(needs: &[Vec<usize>], done: &[usize]) -> Vec<usize> {
    let unmet = |place: usize| needs[place].iter().copied().find(|need| !done.contains(need));
    let mut path: Vec<usize> = Vec::new();
    let mut at = (0..needs.len()).find(|place| !done.contains(place));
    while let Some(place) = at {
        if let Some(begin) = path.iter().position(|seen| *seen == place) {
            return path.split_off(begin);
        }
        path.push(place);
        at = unmet(place);
    }
    path
}

/// Serde's complaint in our words.
fn explain(text: &str, origin: &str, error: &toml::de::Error) -> Error {
    let span = error.span().unwrap_or(0..0);
    let message = error.message();
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let key = quoted.next().unwrap_or_default();
        let known: Vec<&str> = quoted.collect();
        return Error::new(origin, text, span, words::config::unknown_key(key))
            .hint(words::config::known_keys(&known));
    }
    if message.starts_with("missing field") {
        let key = quoted.next().unwrap_or_default();
        return Error::new(origin, text, span, words::formula::key_missing(key));
    }
    Error::new(origin, text, span, clean_line(message, 300))
}
