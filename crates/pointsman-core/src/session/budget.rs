//! What work may cost, and what it has cost so far.

use serde::{Deserialize, Serialize};

use crate::config::{Budget, Usd};

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Tokens.
    pub tokens: u64,
    /// Money, in millionths of a dollar.
    pub micro_usd: u64,
    /// Turns of the agent.
    pub turns: u64,
    /// Wall time of sessions.
    pub millis: u64,
}

impl Spent {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
            turns: self.turns.saturating_add(other.turns),
            millis: self.millis.saturating_add(other.millis),
        }
    }
}

/// What may be spent; nothing means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Money, in millionths of a dollar.
    pub micro_usd: Option<u64>,
    /// Turns of the agent.
    pub turns: Option<u64>,
    /// Wall time of sessions.
    pub millis: Option<u64>,
}

impl Limit {
    /// What a task may cost.
    pub fn per_task(budget: &Budget) -> Self {
        let micro_usd = budget.usd_per_task.map(micro);
        Self { tokens: budget.tokens_per_task, micro_usd, ..Self::default() }
    }

    /// What a day may cost.
    pub fn per_day(budget: &Budget) -> Self {
        let micro_usd = budget.usd_per_day.map(micro);
        Self { tokens: budget.tokens_per_day, micro_usd, ..Self::default() }
    }
}

fn micro(usd: Usd) -> u64 {
    usd.cents.saturating_mul(10_000)
}

/// What was spent, of what may be spent where that is limited: `0.42 of 2.50 USD, 900 tokens`.
/// Nothing if nothing was spent.
pub fn describe(spent: Spent, limit: Limit) -> Option<String> {
    let part = |used: String, limit: Option<String>, unit: &str| match limit {
        Some(limit) => format!("{used} of {limit} {unit}"),
        None => format!("{used} {unit}"),
    };
    let plain = |what: u64| what.to_string();
    let parts: Vec<String> = [
        (spent.micro_usd, part(dollars(spent.micro_usd), limit.micro_usd.map(dollars), "USD")),
        (spent.tokens, part(plain(spent.tokens), limit.tokens.map(plain), "tokens")),
        (spent.turns, part(plain(spent.turns), limit.turns.map(plain), "turns")),
    ]
    .into_iter()
    .filter_map(|(used, text)| (used > 0).then_some(text))
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Millionths of a dollar in dollars, to the cent; what is less than a cent is not nothing.
pub fn dollars(micro_usd: u64) -> String {
    match micro_usd {
        1..10_000 => "<0.01".to_owned(),
        _ => format!("{}.{:02}", micro_usd / 1_000_000, micro_usd / 10_000 % 100),
    }
}

/// How much of a limit is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Enough is left.
    Within,
    /// Over the soft mark: a warning, and no new work.
    Soft,
    /// Used up: the session ends at its next turn boundary, nothing new starts.
    Hard,
}

/// The soft mark, in percent of the limit.
const SOFT_PERCENT: u64 = 80;

/// How much of `limit` was spent: the worst of its parts.
pub fn level(spent: Spent, limit: Limit) -> Level {
    let parts = [
        (spent.tokens, limit.tokens),
        (spent.micro_usd, limit.micro_usd),
        (spent.turns, limit.turns),
        (spent.millis, limit.millis),
    ];
    parts.into_iter().filter_map(|(used, limit)| Some(part(used, limit?))).max().unwrap_or(Level::Within)
}

fn part(used: u64, limit: u64) -> Level {
    if used >= limit {
        Level::Hard
    } else if used.saturating_mul(100) >= limit.saturating_mul(SOFT_PERCENT) {
        Level::Soft
    } else {
        Level::Within
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, Limit, Spent, describe, dollars, level};

    #[test]
    fn the_worst_part_counts_and_no_limit_is_no_limit() {
        let spent = Spent { tokens: 900, micro_usd: 10, turns: 1, millis: 5 };
        assert_eq!(level(spent, Limit::default()), Level::Within);
        let limit = |tokens| Limit { tokens: Some(tokens), micro_usd: Some(1_000), ..Limit::default() };
        assert_eq!(level(spent, limit(10_000)), Level::Within);
        assert_eq!(level(spent, limit(1_000)), Level::Soft);
        assert_eq!(level(spent, limit(900)), Level::Hard);
        assert_eq!(
            level(spent, Limit { tokens: Some(0), ..Limit::default() }),
            Level::Hard,
            "zero means nothing"
        );
    }

    #[test]
    fn only_what_was_spent_is_told_beside_its_limit() {
        let limit = Limit { micro_usd: Some(2_500_000), turns: Some(9), ..Limit::default() };
        assert_eq!(describe(Spent::default(), limit), None);
        let spent = Spent { tokens: 900, micro_usd: 429_999, ..Spent::default() };
        assert_eq!(describe(spent, limit).unwrap(), "0.42 of 2.50 USD, 900 tokens");
        assert_eq!((dollars(0), dollars(9_999)), ("0.00".to_owned(), "<0.01".to_owned()));
    }
}
