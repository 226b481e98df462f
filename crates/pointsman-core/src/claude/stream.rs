//! One turn without a terminal: what `claude -p --output-format stream-json` prints, reduced to what we act on.
//!
//! Every line is a JSON object. Unknown ones pass, malformed ones are counted; nothing in here grows with the output.
//! How the turn ended is decided from its `result` line and the process's end together: a process that said no result
//! has died, whatever its exit code.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::usage::{Requests, classes};
use crate::hook::ToolUse;
use crate::session::budget::{Spent, TokenClasses};
use crate::session::context::{Gauge, Source};
use crate::session::work::Action;
use crate::text;
use crate::time::Timestamp;
use crate::words;

/// How much of an outside text is kept.
const TEXT_CHARS: usize = 400;
/// How much of what the agent says is shown.
const SPOKEN_BYTES: usize = 8 * 1024;
/// Tools that have not answered yet; more at a time are forgotten.
const TOOLS: usize = 64;
/// A dollar, in the unit in which money is counted.
const MICRO: f64 = 1_000_000.0;
/// More than any conversation costs, in dollars.
const MOST_USD: f64 = 1_000_000.0;

/// Something that happened in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEvent {
    /// The conversation has begun, or was taken up again: the prompt is there.
    Begun {
        /// Claude's own name for it.
        conversation: Option<String>,
        model: Option<String>,
    },
    Spoke {
        text: String,
    },
    Uses {
        tool: String,
        /// On what, if that can be said in a line.
        what: String,
    },
    Did {
        tool: String,
        /// What that means for the work.
        work: ToolUse,
        succeeded: bool,
    },
    /// The service refuses for now, and Claude tries again by itself.
    Retries {
        /// Claude's name for the error.
        error: String,
    },
    /// A line that is no JSON.
    Malformed,
}

/// The lines that one turn has printed so far.
#[derive(Debug, Default)]
pub struct Turn {
    begun: bool,
    model: Option<String>,
    /// Tokens of the last request of the main conversation.
    context: Option<u64>,
    /// Those of the main conversation and of its helpers.
    requests: Requests,
    error: Option<String>,
    limited_until: Option<Timestamp>,
    tools: VecDeque<(String, String, Option<String>)>,
    result: Option<Value>,
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As it should; the next prompt can come.
    Over(Measured),
    /// Its service cut it off; the conversation is still there.
    Failed {
        /// Claude's name for the error.
        error: String,
        /// What it says about it.
        details: String,
        /// When it is over, if the service said so.
        until: Option<Timestamp>,
        /// What it cost all the same.
        measured: Measured,
    },
    /// The process went without a result.
    Died {
        /// What is known about it.
        why: String,
    },
}

/// The cost that a turn reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// How full the context is.
    pub gauge: Option<Gauge>,
    /// What this turn alone has spent.
    pub spent: Spent,
    /// The sums that Claude gave, for the turn after this one.
    pub sums: Sums,
}

/// Sums over a conversation, as Claude told them last. Some versions begin anew with every process, others go on where
/// the last process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Tokens of all models.
    pub tokens: u64,
    /// The same by class; nothing in sums that an older version kept.
    #[serde(default)]
    pub classes: TokenClasses,
    pub micro_usd: u64,
}

impl Sums {
    /// What a turn cost that was told as `self`, after `before`, and whose main conversation used `own` itself. The sums have
    /// what helpers used as well.
    fn of_turn(self, before: Self, own: TokenClasses) -> Spent {
        let goes_on = before.tokens > 0 && self.tokens >= before.tokens.saturating_add(own.sum());
        let before = if goes_on { before } else { Self::default() };
        let all = self.classes.minus(before.classes);
        let known = before.classes.sum() == before.tokens && all.sum() >= own.sum();
        let micro_usd = self.micro_usd.saturating_sub(before.micro_usd);
        Spent { micro_usd, ..Spent::of_classes(if known { all } else { own }) }
    }
}

impl Turn {
    /// Takes one line in.
    pub fn take(&mut self, line: &str) -> Vec<TurnEvent> {
        if line.trim().is_empty() {
            return Vec::new();
        }
        let Ok(Value::Object(entry)) = serde_json::from_str(line) else { return vec![TurnEvent::Malformed] };
        let entry = Value::Object(entry);
        match (entry["type"].as_str(), entry["subtype"].as_str()) {
            (Some("system"), Some("init")) => self.begin(&entry),
            (Some("system"), Some("api_retry")) => vec![TurnEvent::Retries { error: word(&entry["error"]) }],
            (Some("assistant"), _) => self.assistant(&entry),
            (Some("user"), _) => self.answered(&entry),
            (Some("rate_limit_event"), _) => {
                let limit = &entry["rate_limit_info"];
                if limit["status"] == "rejected" {
                    let until = limit["resetsAt"].as_i64().and_then(|seconds| seconds.checked_mul(1000));
                    self.limited_until = until.map(Timestamp);
                }
                Vec::new()
            }
            (Some("result"), _) => {
                self.result = Some(entry);
                Vec::new()
            }
            (Some(_) | None, _) => Vec::new(),
        }
    }

    /// Whether the prompt has reached the agent.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether the last word was said. The process may still need a moment.
    pub fn has_result(&self) -> bool {
        self.result.is_some()
    }

    /// The amount that its requests have used so far. Output is told in full at the end only; the money is an estimate.
    pub fn spent_so_far(&self) -> Spent {
        self.requests.spent()
    }

    /// Judges the end of the turn. `exit` is the process's exit code, if it went by itself; `before` what was told before.
    /// A program that is not Claude Code need not say a result: its exit code speaks for it.
    pub fn end(&self, exit: Option<i32>, before: Sums, talks: ResultPromise) -> Ended {
        let Some(result) = &self.result else {
            return match (talks, exit) {
                (ResultPromise::Perhaps, Some(0)) => Ended::Over(Measured::default()),
                (ResultPromise::Always | ResultPromise::Perhaps, Some(code)) => {
                    Ended::Died { why: words::session::ended_early(code) }
                }
                (ResultPromise::Always | ResultPromise::Perhaps, None) => {
                    Ended::Died { why: words::session::KILLED.to_owned() }
                }
            };
        };
        let measured = self.measured(result, before);
        if result["is_error"] != true {
            return Ended::Over(measured);
        }
        let said = result["result"].as_str().or_else(|| result["errors"][0].as_str());
        let details = said.map(|said| text::clean_line(said, TEXT_CHARS)).unwrap_or_default();
        let status = result["api_error_status"].as_u64();
        match result["subtype"].as_str() {
            Some("error_max_turns") => Ended::Over(measured),
            Some("error_during_execution") if status.is_none() && self.error.is_none() => Ended::Died {
                why: if details.is_empty() { words::session::UNNAMED_ERROR.to_owned() } else { details },
            },
            Some(_) | None => {
                let error = match &self.error {
                    Some(error) if error != "unknown" => error.clone(),
                    Some(_) | None => named(status, &details).to_owned(),
                };
                Ended::Failed { error, details, until: self.limited_until, measured }
            }
        }
    }

    fn begin(&mut self, entry: &Value) -> Vec<TurnEvent> {
        self.begun = true;
        self.model = field(&entry["model"]);
        vec![TurnEvent::Begun { conversation: field(&entry["session_id"]), model: self.model.clone() }]
    }

    fn assistant(&mut self, entry: &Value) -> Vec<TurnEvent> {
        let own = entry["parent_tool_use_id"].is_null();
        self.requests.take(&entry["message"]);
        if own {
            // A helper's error is the helper's; the turn goes on.
            self.error = field(&entry["error"]);
            let used = classes(&entry["message"]["usage"]).sum();
            self.context = (used > 0).then_some(used).or(self.context);
        }
        let mut said = Vec::new();
        for block in entry["message"]["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") if own => {
                    let text = text::clean_block(block["text"].as_str().unwrap_or_default(), SPOKEN_BYTES);
                    said.push(TurnEvent::Spoke { text });
                }
                Some("tool_use") => {
                    let (tool, input) = (word(&block["name"]), &block["input"]);
                    let what = ["command", "file_path", "path", "pattern", "description"];
                    let what = what.into_iter().find_map(|name| field(&input[name])).unwrap_or_default();
                    if self.tools.len() == TOOLS {
                        self.tools.pop_front();
                    }
                    let command = input["command"].as_str().map(|c| c.chars().take(TEXT_CHARS).collect());
                    self.tools.push_back((word(&block["id"]), tool.clone(), command));
                    said.push(TurnEvent::Uses { tool, what });
                }
                Some(_) | None => {}
            }
        }
        said
    }

    fn answered(&mut self, entry: &Value) -> Vec<TurnEvent> {
        let mut said = Vec::new();
        for block in entry["message"]["content"].as_array().into_iter().flatten() {
            let id = word(&block["tool_use_id"]);
            let Some(at) = self.tools.iter().position(|(known, ..)| *known == id) else { continue };
            let Some((_, tool, command)) = self.tools.remove(at) else { continue };
            let succeeded = block["is_error"] != true;
            let work = Action::of_tool(&tool, command.as_deref(), Some(succeeded)).into();
            said.push(TurnEvent::Did { tool, work, succeeded });
        }
        said
    }

    fn measured(&self, result: &Value, before: Sums) -> Measured {
        let usd = result["total_cost_usd"].as_f64().filter(|usd| (0.0..MOST_USD).contains(usd));
        let all = models(result).map(|(_, told)| model_classes(told));
        let all = all.fold(TokenClasses::default(), TokenClasses::plus);
        let micro_usd = (usd.unwrap_or(0.0) * MICRO).round() as u64;
        let sums = Sums { tokens: all.sum(), classes: all, micro_usd };
        let spent = Spent { turns: 1, ..sums.of_turn(before, classes(&result["usage"])) };
        Measured { gauge: self.gauge(result), spent, sums }
    }

    /// The window is what Claude says it is for the model that was spoken to; never a number of ours.
    fn gauge(&self, result: &Value) -> Option<Gauge> {
        let window = |told: &Value| told["contextWindow"].as_u64().filter(|window| *window > 0);
        let main = models(result).find(|(name, _)| Some(*name) == self.model.as_deref());
        let window = match main.and_then(|(_, told)| window(told)) {
            Some(window) => window,
            None => models(result).filter_map(|(_, told)| window(told)).max()?,
        };
        let used = self.context?.saturating_mul(1000) / window;
        Some(Gauge { used_permille: u16::try_from(used.min(1000)).ok()?, source: Source::Transcript })
    }
}

/// Whether a program is bound to end its turns with a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultPromise {
    /// Claude Code: without a result it has died.
    Always,
    Perhaps,
}

/// What each model was used for.
fn models(result: &Value) -> impl Iterator<Item = (&str, &Value)> {
    result["modelUsage"].as_object().into_iter().flatten().map(|(name, told)| (name.as_str(), told))
}

fn model_classes(told: &Value) -> TokenClasses {
    let tokens = |name: &str| told[name].as_u64().unwrap_or(0);
    TokenClasses {
        input: tokens("inputTokens"),
        cache_writes: tokens("cacheCreationInputTokens"),
        cache_reads: tokens("cacheReadInputTokens"),
        output: tokens("outputTokens"),
    }
}

/// Claude's name for what a service answered.
fn named(status: Option<u64>, details: &str) -> &'static str {
    match status {
        Some(429) => "rate_limit",
        Some(401 | 403) => "authentication_failed",
        Some(402) => "billing_error",
        Some(400) if details.to_lowercase().contains("credit balance") => "billing_error",
        Some(404) => "model_not_found",
        Some(400 | 413) => "invalid_request",
        Some(500..=599) => "server_error",
        Some(_) | None => "unknown",
    }
}

fn field(value: &Value) -> Option<String> {
    value.as_str().map(|said| text::clean_line(said, TEXT_CHARS))
}

fn word(value: &Value) -> String {
    field(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
