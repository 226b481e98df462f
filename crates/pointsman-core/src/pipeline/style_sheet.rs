//! The style sheet for models: `* { llm_model: sonnet } .code { llm_model: opus } #review { reasoning_effort: high }`.

use super::model::{Effort, Model};
use crate::words::pipeline::Sentence;

/// How many rules a sheet may have.
const MAX_RULES: usize = 256;

/// Rules in the order of the sheet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyleSheet {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    selector: Selector,
    model: Model,
}

/// Which nodes a rule is for, from the weakest to the strongest.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Selector {
    All,
    Class(String),
    Id(String),
}

/// A mistake in a sheet, with the byte at which it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub at: usize,
    pub message: String,
}

impl StyleSheet {
    /// Reads a sheet.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut rules = Vec::new();
        let mut at = 0;
        loop {
            at += text[at..].len() - text[at..].trim_start().len();
            if at == text.len() {
                return Ok(Self { rules });
            }
            if rules.len() == MAX_RULES {
                return Err(Error {
                    at,
                    message: Sentence::TooManyStyleRules(MAX_RULES.to_string()).to_string(),
                });
            }
            let Some(open) = text[at..].find('{') else {
                return Err(Error { at, message: Sentence::StyleRuleForm.to_string() });
            };
            let selector = selector(text[at..at + open].trim()).map_err(|message| Error { at, message })?;
            let inside = at + open + 1;
            let Some(length) = text[inside..].find('}') else {
                return Err(Error { at: inside - 1, message: Sentence::BraceNeverClosed.to_string() });
            };
            let model = declarations(&text[inside..inside + length], inside)?;
            rules.push(Rule { selector, model });
            at = inside + length + 1;
        }
    }

    /// The model of a node: what it says itself wins, then the strongest rule, then the later one.
    pub fn model(&self, id: &str, classes: &[String], own: Model) -> Model {
        let mut found = Model::default();
        for strength in 0..3 {
            let rules = self.rules.iter().filter(|rule| match &rule.selector {
                Selector::All => strength == 0,
                Selector::Class(class) => strength == 1 && classes.contains(class),
                Selector::Id(wanted) => strength == 2 && wanted == id,
            });
            found = rules.fold(found, |below, rule| over(below, rule.model.clone()));
        }
        over(found, own)
    }

    /// Ids that rules name, so that a check can tell those that no node has.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(|rule| match &rule.selector {
            Selector::Id(id) => Some(id.as_str()),
            Selector::All | Selector::Class(_) => None,
        })
    }
}

fn over(below: Model, above: Model) -> Model {
    Model {
        name: above.name.or(below.name),
        provider: above.provider.or(below.provider),
        effort: above.effort.or(below.effort),
    }
}

fn selector(text: &str) -> Result<Selector, String> {
    let name = |rest: &str| -> Option<String> {
        let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        (!rest.is_empty() && rest.chars().all(fits)).then(|| rest.to_owned())
    };
    let found = match (text, text.strip_prefix('.'), text.strip_prefix('#')) {
        ("*", _, _) => Some(Selector::All),
        (_, Some(class), _) => name(class).map(Selector::Class),
        (_, _, Some(id)) => name(id).map(Selector::Id),
        (_, None, None) => None,
    };
    found.ok_or_else(|| Sentence::NoSelector(text.to_owned()).to_string())
}

fn declarations(text: &str, base: usize) -> Result<Model, Error> {
    let mut model = Model::default();
    let mut at = base;
    for part in text.split(';') {
        let start = at + (part.len() - part.trim_start().len());
        at += part.len() + 1;
        if part.trim().is_empty() {
            continue;
        }
        declare(&mut model, part.trim()).map_err(|message| Error { at: start, message })?;
    }
    Ok(model)
}

fn declare(model: &mut Model, text: &str) -> Result<(), String> {
    let Some((name, value)) = text.split_once(':') else {
        return Err(Sentence::NoStyleDeclaration(text.to_owned()).to_string());
    };
    let value = value.trim().trim_matches(['"', '\'']);
    if value.is_empty() {
        return Err(Sentence::StyleWithoutValue(name.trim().to_owned()).to_string());
    }
    match name.trim() {
        "llm_model" => model.name = Some(value.to_owned()),
        "llm_provider" => model.provider = Some(value.to_owned()),
        "reasoning_effort" => model.effort = Some(effort(value)?),
        other => {
            return Err(Sentence::UnknownStyleProperty(other.to_owned()).to_string());
        }
    }
    Ok(())
}

/// The effort of this name.
pub(super) fn effort(text: &str) -> Result<Effort, String> {
    let found = Effort::ALL.into_iter().find(|effort| effort.as_str() == text);
    found.ok_or_else(|| Sentence::NoEffort(text.to_owned()).to_string())
}
