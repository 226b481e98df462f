//! Requests to the model, each counted once, as Claude Code writes them down: in the transcript of a conversation and in the
//! output of a turn.
//!
//! An answer is written down block by block, every time with the figures of its request so far; the last ones are complete.
//! What a request costs is estimated from the price of its model, so that a limit holds between two calls: Claude Code's own
//! figure comes later, at the end of a turn.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::budget::{Spent, TokenClasses};
use crate::text;

/// Requests whose figures may still grow: several helpers answer at a time.
const OPEN: usize = 64;
/// Longest name of a request that is kept.
const NAME_CHARS: usize = 100;
/// An answer of Claude Code itself, about an error: no request.
const SYNTHETIC: &str = "<synthetic>";

/// Requests of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// Those that nothing more is told of.
    complete: Amount,
    open: VecDeque<(String, Amount)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Amount {
    classes: TokenClasses,
    /// Thousandths of a millionth of a dollar.
    nano_usd: u64,
}

impl Amount {
    fn plus(self, other: Self) -> Self {
        Self {
            classes: self.classes.plus(other.classes),
            nano_usd: self.nano_usd.saturating_add(other.nano_usd),
        }
    }
}

impl Requests {
    /// Takes in a message of the model. Says whether anything was counted.
    pub fn take(&mut self, message: &Value) -> bool {
        let (usage, model) = (&message["usage"], message["model"].as_str().unwrap_or_default());
        if !usage.is_object() || model == SYNTHETIC {
            return false;
        }
        let classes = classes(usage);
        let amount = Amount { classes, nano_usd: nano_usd(model, usage) };
        let name = message["id"].as_str().filter(|id| !id.is_empty());
        let Some(name) = name.map(|name| text::clean_line(name, NAME_CHARS)) else {
            self.complete = self.complete.plus(amount);
            return true;
        };
        if let Some((_, known)) = self.open.iter_mut().find(|(open, _)| *open == name) {
            let before = *known;
            known.classes = known.classes.max(classes);
            known.nano_usd = known.nano_usd.max(amount.nano_usd);
            return *known != before;
        }
        if self.open.len() >= OPEN
            && let Some((_, oldest)) = self.open.pop_front()
        {
            self.complete = self.complete.plus(oldest);
        }
        self.open.push_back((name, amount));
        true
    }

    /// The sum of all of them. The money is an estimate, and nothing for models without a known price.
    pub fn spent(&self) -> Spent {
        let sum = self.open.iter().fold(self.complete, |sum, (_, open)| sum.plus(*open));
        Spent { micro_usd: sum.nano_usd / 1000, ..Spent::of_classes(sum.classes) }
    }
}

/// The tokens of one request by class, as the service tells them.
pub fn classes(usage: &Value) -> TokenClasses {
    let tokens = |name: &str| usage[name].as_u64().unwrap_or(0);
    TokenClasses {
        input: tokens("input_tokens"),
        cache_writes: tokens("cache_creation_input_tokens"),
        cache_reads: tokens("cache_read_input_tokens"),
        output: tokens("output_tokens"),
    }
}

/// The price of one request in thousandths of a millionth of a dollar; nothing for a model without a known price.
pub fn nano_usd(model: &str, usage: &Value) -> u64 {
    Price::of(model).map_or(0, |price| price.times(usage))
}

/// Dollars for a million tokens, which are millionths of a dollar for one.
#[derive(Clone, Copy)]
struct Price {
    input: u64,
    output: u64,
}

impl Price {
    /// By the beginning of the model's name. A model that is not here has no price: a guess would end work too early.
    const KNOWN: [(&str, Self); 9] = [
        ("claude-opus-5-5", Self { input: 4, output: 20 }),
        ("claude-opus-4-8", Self { input: 5, output: 25 }),
        ("claude-opus-4-7", Self { input: 5, output: 25 }),
        ("claude-opus-4-6", Self { input: 5, output: 25 }),
        ("claude-opus-4-5", Self { input: 5, output: 25 }),
        ("claude-opus-4-1", Self { input: 15, output: 75 }),
        ("claude-opus-4-2025", Self { input: 15, output: 75 }),
        ("claude-sonnet-4", Self { input: 3, output: 15 }),
        ("claude-haiku-4", Self { input: 1, output: 5 }),
    ];

    fn of(model: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find_map(|(name, price)| model.starts_with(name).then_some(price))
    }

    /// A cache write costs a quarter more than the input, or twice as much if it is kept for an hour; a cache read a tenth.
    fn times(self, usage: &Value) -> u64 {
        let classes = classes(usage);
        let kept_long = usage["cache_creation"]["ephemeral_1h_input_tokens"].as_u64().unwrap_or(0);
        let kept_long = kept_long.min(classes.cache_writes);
        let parts = [
            (classes.input, self.input * 1000),
            (classes.cache_writes - kept_long, self.input * 1250),
            (kept_long, self.input * 2000),
            (classes.cache_reads, self.input * 100),
            (classes.output, self.output * 1000),
        ];
        parts.into_iter().fold(0, |sum, (tokens, nano)| sum.saturating_add(tokens.saturating_mul(nano)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{OPEN, Requests};
    use crate::session::budget::TokenClasses;

    fn message(id: &str, output: u64) -> Value {
        let usage = json!({
            "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 1000,
            "output_tokens": output,
        });
        json!({ "id": id, "model": "claude-opus-4-8", "usage": usage })
    }

    #[test]
    fn a_request_that_is_told_block_by_block_counts_once_with_its_last_figures() {
        let mut requests = Requests::default();
        assert!(requests.take(&message("a", 1)));
        assert!(!requests.take(&message("a", 1)), "nothing new");
        for told in [message("b", 2), message("a", 41), message("b", 2), message("a", 7)] {
            requests.take(&told);
        }
        let spent = requests.spent();
        let classes = TokenClasses { input: 20, cache_writes: 40, cache_reads: 2000, output: 43 };
        assert_eq!((spent.classes, spent.tokens), (classes, 2103));
        // 20 * 5 + 40 * 6.25 + 2000 * 0.5 + 43 * 25 millionths of a dollar.
        assert_eq!(spent.micro_usd, 100 + 250 + 1000 + 1075);
        let kept: Requests = serde_json::from_value(serde_json::to_value(&requests).unwrap()).unwrap();
        assert_eq!(kept, requests);
    }

    #[test]
    fn many_requests_take_no_more_room_than_a_few() {
        let mut requests = Requests::default();
        let many = 10 * OPEN as u64;
        for number in 0..many {
            requests.take(&message(&number.to_string(), 1));
        }
        assert_eq!((requests.open.len(), requests.spent().classes.output), (OPEN, many));
    }

    #[test]
    fn what_is_no_request_counts_nothing_and_odd_figures_break_nothing() {
        let mut requests = Requests::default();
        for odd in
            [json!(null), json!({ "usage": 7 }), json!({ "id": "e", "model": "<synthetic>", "usage": {} })]
        {
            assert!(!requests.take(&odd), "{odd}");
        }
        requests.take(&json!({ "usage": { "input_tokens": "9", "output_tokens": -1 } }));
        requests.take(&json!({ "id": "x", "usage": { "input_tokens": u64::MAX, "output_tokens": 9 } }));
        requests.take(&json!({ "model": "claude-opus-4-8", "usage": { "input_tokens": u64::MAX } }));
        assert_eq!(requests.spent().tokens, u64::MAX);
        let unknown = json!({ "id": "y", "model": "somebody-elses", "usage": { "input_tokens": 5 } });
        let mut requests = Requests::default();
        requests.take(&unknown);
        assert_eq!((requests.spent().tokens, requests.spent().micro_usd), (5, 0), "no price, no guess");
    }
}
