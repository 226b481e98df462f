//! The usage of calls: read off the answers as they pass, and summed up by model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claude::usage::{classes, nano_usd};
use crate::role::Role;
use crate::session::budget::{Spent, TokenClasses};
use crate::text::clean_line;

/// A longer line of a stream holds no figures.
const LINE_BYTES: usize = 1 << 20;
/// The largest answer that is not a stream and is read for its figures.
const WHOLE_BYTES: usize = 16 << 20;
/// A token in bytes, roughly: for what the service did not live to count.
const TOKEN_BYTES: u64 = 4;
/// Names of models that are told apart.
const MODELS: usize = 50;
const MODEL_CHARS: usize = 100;
/// What stands in every event with figures. In the model's own words its quotes are escaped.
const USAGE: &[u8] = b"\"usage\"";
/// The name for everything beyond them, and for answers without one.
const OTHER_MODEL: &str = "unknown";

/// The usage of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallUsage {
    pub model: String,
    pub classes: TokenClasses,
    /// Thousandths of a millionth of a dollar; nothing for a model without a known price.
    pub nano_usd: u64,
    /// Whether the answer broke off before the service told the whole.
    pub is_estimate: bool,
}

/// Reads the usage off an answer, piece by piece, as it passes.
#[derive(Debug)]
pub struct AnswerReader {
    is_stream: bool,
    /// The present line of a stream, or the whole answer.
    kept: Vec<u8>,
    /// Whether the present line is too long to be kept.
    is_cut: bool,
    model: Option<String>,
    usage: Option<Value>,
    classes: TokenClasses,
    is_complete: bool,
    /// What the model has said, in bytes.
    said: u64,
    /// The request, in bytes.
    asked: u64,
}

impl AnswerReader {
    /// A reader of the answer to a request of so many bytes.
    pub fn new(is_stream: bool, asked: u64) -> Self {
        Self {
            is_stream,
            kept: Vec::new(),
            is_cut: false,
            model: None,
            usage: None,
            classes: TokenClasses::default(),
            is_complete: false,
            said: 0,
            asked,
        }
    }

    /// Takes in the next piece.
    pub fn read(&mut self, mut piece: &[u8]) {
        if !self.is_stream {
            self.is_cut |= self.kept.len() + piece.len() > WHOLE_BYTES;
            if !self.is_cut {
                self.kept.extend_from_slice(piece);
            }
            self.said = self.said.saturating_add(piece.len() as u64);
            return;
        }
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            self.keep(&piece[..end]);
            piece = &piece[end + 1..];
            self.line();
        }
        self.keep(piece);
    }

    fn keep(&mut self, piece: &[u8]) {
        self.is_cut |= self.kept.len() + piece.len() > LINE_BYTES;
        if !self.is_cut {
            self.kept.extend_from_slice(piece);
        }
    }

    fn line(&mut self) {
        let line = std::mem::take(&mut self.kept);
        if std::mem::take(&mut self.is_cut) {
            return;
        }
        let Some(data) = line.strip_prefix(b"data:") else { return };
        // Most lines are a few words of the answer: their figures are their length.
        if !data.windows(USAGE.len()).any(|part| part == USAGE) {
            self.said = self.said.saturating_add(said_in(data));
            return;
        }
        let Ok(event) = serde_json::from_slice::<Value>(data) else { return };
        match event["type"].as_str() {
            Some("message_start") => {
                self.model = event["message"]["model"].as_str().map(str::to_owned);
                self.take(&event["message"]["usage"]);
            }
            Some("message_delta") => {
                self.take(&event["usage"]);
                let is_over = event["delta"]["stop_reason"].is_string();
                self.is_complete = is_over && event["usage"]["output_tokens"].is_u64();
            }
            Some(_) | None => {}
        }
    }

    /// The figures of a call grow; the last ones are complete. Those that are left out later stay.
    fn take(&mut self, usage: &Value) {
        self.classes = self.classes.max(classes(usage));
        match (&mut self.usage, usage.as_object()) {
            (Some(Value::Object(known)), Some(fields)) => {
                let told = fields.iter().filter(|(_, value)| !value.is_null());
                known.extend(told.map(|(name, value)| (name.clone(), value.clone())));
            }
            (known, Some(_)) => *known = Some(usage.clone()),
            (_, None) => {}
        }
    }

    /// Whether the service has told all figures of a stream.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The usage of the call, after the last piece. What the service did not tell is estimated.
    pub fn finish(mut self) -> CallUsage {
        if !self.is_stream
            && !self.is_cut
            && let Ok(answer) = serde_json::from_slice::<Value>(&self.kept)
        {
            self.model = answer["model"].as_str().map(str::to_owned);
            self.take(&answer["usage"]);
            self.is_complete = answer["usage"]["output_tokens"].is_u64();
        }
        let mut usage = self.usage.take().unwrap_or_default();
        let mut classes = self.classes;
        if !self.is_complete {
            if classes.input + classes.cache_writes + classes.cache_reads == 0 {
                classes.input = self.asked / TOKEN_BYTES;
            }
            classes.output = classes.output.max(self.said / TOKEN_BYTES);
            if !usage.is_object() {
                usage = serde_json::json!({});
            }
            usage["input_tokens"] = classes.input.into();
        }
        usage["output_tokens"] = classes.output.into();
        let model = self.model.unwrap_or_default();
        let nano_usd = nano_usd(&model, &usage);
        CallUsage { model, classes, nano_usd, is_estimate: !self.is_complete }
    }
}

/// The bytes of the model's own words in an event: what stands around them is always about the same.
fn said_in(data: &[u8]) -> u64 {
    const AROUND: u64 = 90;
    (data.len() as u64).saturating_sub(AROUND)
}

/// The usage of one session: sums, so that whoever reads them twice counts them once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUsage {
    pub session: String,
    pub role: Role,
    #[serde(default)]
    pub models: BTreeMap<String, ModelUsage>,
    /// Calls that were not passed on because a budget was used up.
    #[serde(default)]
    pub refused: u64,
    /// The tokens of the last call: a guess at the next one.
    #[serde(default)]
    pub last: TokenClasses,
}

/// The usage of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelUsage {
    pub calls: u64,
    /// Those whose answer broke off, so that a part of their figures is a guess.
    pub estimated: u64,
    pub classes: TokenClasses,
    /// Thousandths of a millionth of a dollar.
    pub nano_usd: u64,
}

impl SessionUsage {
    /// Nothing was used yet.
    pub fn new(session: &str, role: Role) -> Self {
        let (session, models) = (session.to_owned(), BTreeMap::new());
        Self { session, role, models, refused: 0, last: TokenClasses::default() }
    }

    /// Adds a call.
    pub fn add(&mut self, call: &CallUsage) {
        let name = clean_line(&call.model, MODEL_CHARS);
        let is_known = self.models.contains_key(&name) || self.models.len() < MODELS;
        let name = if name.is_empty() || !is_known { OTHER_MODEL.to_owned() } else { name };
        let model = self.models.entry(name).or_default();
        model.calls += 1;
        model.estimated += u64::from(call.is_estimate);
        model.classes = model.classes.plus(call.classes);
        model.nano_usd = model.nano_usd.saturating_add(call.nano_usd);
        self.last = call.classes;
    }

    /// The sum over all models.
    pub fn spent(&self) -> Spent {
        let classes = self.models.values().fold(TokenClasses::default(), |sum, one| sum.plus(one.classes));
        let nano = self.models.values().fold(0_u64, |sum, one| sum.saturating_add(one.nano_usd));
        Spent { micro_usd: nano / 1000, ..Spent::of_classes(classes) }
    }
}
