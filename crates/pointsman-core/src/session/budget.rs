//! Budgets of work, and the spending so far.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::{Budget, Span, Usd};
use crate::words;

/// Tokens by the four classes that services tell and bill apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenClasses {
    /// Read for the first time.
    pub input: u64,
    /// Read for the first time, and kept by the service for the next request.
    pub cache_writes: u64,
    /// Read again from what the service kept: most of all tokens, and the cheapest.
    pub cache_reads: u64,
    pub output: u64,
}

impl TokenClasses {
    /// The tokens of all classes.
    pub fn sum(self) -> u64 {
        self.fresh().saturating_add(self.cache_reads)
    }

    /// The tokens that were not read before: all but the cache reads.
    pub fn fresh(self) -> u64 {
        self.input.saturating_add(self.cache_writes).saturating_add(self.output)
    }

    /// The sum of two amounts, by class.
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// The amount beyond another one, by class.
    pub fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// The larger amount of each class.
    pub fn max(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            input: of(self.input, other.input),
            cache_writes: of(self.cache_writes, other.cache_writes),
            cache_reads: of(self.cache_reads, other.cache_reads),
            output: of(self.output, other.output),
        }
    }
}

/// An amount of money, tokens, turns, restarts and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Tokens of all classes, and those whose class nobody told.
    pub tokens: u64,
    pub classes: TokenClasses,
    /// Money, in millionths of a dollar.
    pub micro_usd: u64,
    pub turns: u64,
    /// Sessions that were started because one died. Counted by the store, not reported.
    pub restarts: u64,
    /// Wall time of sessions. Counted by the store, not reported.
    pub millis: u64,
    /// The part of it in sessions that have told neither tokens nor money. Counted by the store, not reported.
    pub unreported_millis: u64,
}

impl Spent {
    /// Tokens by class, and nothing else.
    pub fn of_classes(classes: TokenClasses) -> Self {
        Self { tokens: classes.sum(), classes, ..Self::default() }
    }

    /// The tokens that are not known to be cache reads. Those whose class nobody told count as fresh.
    pub fn fresh_tokens(self) -> u64 {
        self.tokens.max(self.classes.sum()).saturating_sub(self.classes.cache_reads)
    }

    /// The tokens. None if sessions ran and none of them told any: nobody knows.
    pub fn known_tokens(self) -> Option<u64> {
        (self.tokens > 0 || self.millis == 0).then_some(self.tokens)
    }

    /// The tokens by class. None if sessions ran and none of them told any.
    pub fn known_classes(self) -> Option<TokenClasses> {
        (self.classes.sum() > 0 || self.millis == 0).then_some(self.classes)
    }

    /// The money in millionths of a dollar. None if sessions ran and none of them told any.
    pub fn known_micro_usd(self) -> Option<u64> {
        (self.micro_usd > 0 || self.millis == 0).then_some(self.micro_usd)
    }

    /// The part of what was reported that is beyond an earlier report. What nobody reports is left out.
    pub fn reported_since(self, before: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(before.tokens),
            classes: self.classes.minus(before.classes),
            micro_usd: self.micro_usd.saturating_sub(before.micro_usd),
            turns: self.turns.saturating_sub(before.turns),
            ..Self::default()
        }
    }

    /// The sum of two amounts.
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            classes: self.classes.plus(other.classes),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
            turns: self.turns.saturating_add(other.turns),
            restarts: self.restarts.saturating_add(other.restarts),
            millis: self.millis.saturating_add(other.millis),
            unreported_millis: self.unreported_millis.saturating_add(other.unreported_millis),
        }
    }
}

/// The most that may be spent; nothing means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    pub tokens: Option<u64>,
    /// Tokens without cache reads.
    pub fresh_tokens: Option<u64>,
    /// Money, in millionths of a dollar.
    pub micro_usd: Option<u64>,
    pub turns: Option<u64>,
    /// Sessions that are started because one died.
    pub restarts: Option<u64>,
    pub millis: Option<u64>,
    /// Time of sessions that tell nothing.
    pub unreported_millis: Option<u64>,
}

impl Limit {
    /// The limit of a session.
    pub fn per_session(budget: &Budget) -> Self {
        Self { micro_usd: budget.usd_per_session.map(micro), ..Self::default() }
    }

    /// The limit of a task.
    pub fn per_task(budget: &Budget) -> Self {
        Self {
            tokens: budget.tokens_per_task,
            fresh_tokens: budget.fresh_tokens_per_task,
            micro_usd: budget.usd_per_task.map(micro),
            turns: budget.turns_per_task,
            millis: budget.time_per_task.map(millis),
            ..Self::default()
        }
    }

    /// The limit of an issue: of everything that was ever done about it, by every role. What tells nothing is limited by
    /// its time.
    pub fn per_issue(budget: &Budget) -> Self {
        Self {
            micro_usd: budget.usd_per_issue.map(micro),
            unreported_millis: budget.unreported_time_per_issue.map(millis),
            ..Self::default()
        }
    }

    /// The limit of a day.
    pub fn per_day(budget: &Budget) -> Self {
        Self {
            tokens: budget.tokens_per_day,
            fresh_tokens: budget.fresh_tokens_per_day,
            micro_usd: budget.usd_per_day.map(micro),
            turns: budget.turns_per_day,
            restarts: budget.restarts_per_day,
            millis: budget.time_per_day.map(millis),
            unreported_millis: None,
        }
    }

    /// The same limit several times over.
    #[must_use]
    pub fn times(self, n: u64) -> Self {
        let times = |limit: Option<u64>| limit.map(|limit| limit.saturating_mul(n));
        Self {
            tokens: times(self.tokens),
            fresh_tokens: times(self.fresh_tokens),
            micro_usd: times(self.micro_usd),
            turns: times(self.turns),
            restarts: times(self.restarts),
            millis: times(self.millis),
            unreported_millis: times(self.unreported_millis),
        }
    }

    /// Whether anything is limited.
    pub fn is_any(self) -> bool {
        self != Self::default()
    }

    /// Whether it is used up without anybody reporting anything: by time, or by sessions that die.
    pub fn passes_by_itself(self) -> bool {
        self.restarts.is_some() || self.millis.is_some() || self.unreported_millis.is_some()
    }
}

fn micro(usd: Usd) -> u64 {
    usd.cents.saturating_mul(10_000)
}

fn millis(span: Span) -> u64 {
    u64::try_from(span.duration().as_millis()).unwrap_or(u64::MAX)
}

/// The limits themselves: `5.00 USD, 100 turns`.
pub fn describe_limit(limit: Limit) -> String {
    let parts = [
        limit.micro_usd.map(|most| format!("{} USD", dollars(most))),
        limit.tokens.map(|most| format!("{most} tokens")),
        limit.fresh_tokens.map(|most| format!("{most} fresh tokens")),
        limit.turns.map(|most| format!("{most} turns")),
        limit.restarts.map(|most| format!("{most} restarts")),
        limit.millis.map(|most| format!("{} of wall time", clock_time(most))),
        limit
            .unreported_millis
            .map(|most| format!("{} {}", clock_time(most), words::daemon::budget::OF_SILENT_SESSIONS)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// More of a budget, as people granted it: how often, by the name of the budget. A grant is as large as the limit itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grants(pub BTreeMap<String, u64>);

impl Grants {
    /// The name under which they are remembered.
    pub const MEMORY: &str = "budget.grants";
    /// Grants of so many budgets are remembered. Those of past days come first in the order of names, and go first.
    const MOST: usize = 1000;

    /// A limit with everything that was granted beyond it.
    #[must_use]
    pub fn raise(&self, name: &str, limit: Limit) -> Limit {
        limit.times(self.0.get(name).copied().unwrap_or(0).saturating_add(1))
    }

    /// Grants a budget once more.
    pub fn grant(&mut self, name: &str) {
        let count = self.0.entry(name.to_owned()).or_default();
        *count = count.saturating_add(1);
        while self.0.len() > Self::MOST {
            self.0.pop_first();
        }
    }
}

/// The amount that was spent, and its limit where there is one: `0.42 of 2.50 USD, 900 tokens`.
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
        // The same tokens, counted once more: only where it decides something.
        (
            limit.fresh_tokens.map_or(0, |_| spent.fresh_tokens()),
            part(plain(spent.fresh_tokens()), limit.fresh_tokens.map(plain), "fresh tokens"),
        ),
        (spent.turns, part(plain(spent.turns), limit.turns.map(plain), "turns")),
        (spent.restarts, part(plain(spent.restarts), limit.restarts.map(plain), "restarts")),
        // Less than a second is the rounding of a clock.
        (spent.millis / SECOND, part(clock_time(spent.millis), limit.millis.map(clock_time), "of wall time")),
        (
            limit.unreported_millis.map_or(0, |_| spent.unreported_millis / SECOND),
            part(
                clock_time(spent.unreported_millis),
                limit.unreported_millis.map(clock_time),
                words::daemon::budget::OF_SILENT_SESSIONS,
            ),
        ),
    ]
    .into_iter()
    .filter_map(|(used, text)| (used > 0).then_some(text))
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;

/// Whole minutes, or seconds if there is no minute yet.
fn clock_time(millis: u64) -> String {
    let unit = if millis >= MINUTE { MINUTE } else { SECOND };
    Span::from_millis(millis / unit * unit).to_string()
}

/// Millionths of a dollar in dollars, to the cent; what is less than a cent is not nothing.
pub fn dollars(micro_usd: u64) -> String {
    match micro_usd {
        1..10_000 => "<0.01".to_owned(),
        _ => format!("{}.{:02}", micro_usd / 1_000_000, micro_usd / 10_000 % 100),
    }
}

/// The degree to which a limit is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Within,
    /// Over the soft mark: a warning, and no new work.
    Soft,
    /// Used up: the session ends at its next turn boundary, nothing new starts.
    Hard,
}

/// The soft mark, in percent of the limit.
const SOFT_PERCENT: u64 = 80;

/// The degree to which `limit` is used up: the worst of its parts.
pub fn level(spent: Spent, limit: Limit) -> Level {
    let parts = [
        (spent.tokens, limit.tokens),
        (spent.fresh_tokens(), limit.fresh_tokens),
        (spent.micro_usd, limit.micro_usd),
        (spent.turns, limit.turns),
        // The last restart that is allowed has a session that may work: one more is too many.
        (spent.restarts, limit.restarts.map(|most| most.saturating_add(1))),
        (spent.millis, limit.millis),
        (spent.unreported_millis, limit.unreported_millis),
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
    use super::{Grants, Level, Limit, Spent, TokenClasses, describe, describe_limit, dollars, level};
    use crate::config::Config;

    #[test]
    fn the_worst_part_counts_and_no_limit_is_no_limit() {
        let spent =
            Spent { tokens: 900, micro_usd: 10, turns: 1, restarts: 1, millis: 5, ..Spent::default() };
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
    fn a_grant_is_as_large_as_the_limit_itself() {
        let limit = Limit { micro_usd: Some(5_000_000), turns: Some(10), ..Limit::default() };
        let mut grants = Grants::default();
        assert_eq!(grants.raise("issue-3", limit), limit);
        grants.grant("issue-3");
        assert_eq!(describe_limit(grants.raise("issue-3", limit)), "10.00 USD, 20 turns");
        assert_eq!(grants.raise("issue-4", limit), limit, "each budget is granted by itself");
        let spent = Spent { micro_usd: 6_000_000, ..Spent::default() };
        assert_eq!(level(spent, limit), Level::Hard);
        assert_eq!(level(spent, grants.raise("issue-3", limit)), Level::Within);
    }

    #[test]
    fn every_measure_has_a_soft_and_a_hard_mark() {
        let hour = 3_600_000;
        type Spend = fn(u64) -> Spent;
        let cases: [(&str, Spend, [u64; 3]); 9] = [
            (
                "usd_per_task = 1.0",
                |n| Spent { micro_usd: n, ..Spent::default() },
                [799_999, 800_000, 1_000_000],
            ),
            ("tokens_per_task = 100", |n| Spent { tokens: n, ..Spent::default() }, [79, 80, 100]),
            ("fresh_tokens_per_task = 100", |n| Spent { tokens: n, ..Spent::default() }, [79, 80, 100]),
            ("fresh_tokens_per_day = 100", |n| Spent { tokens: n, ..Spent::default() }, [79, 80, 100]),
            ("turns_per_task = 10", |n| Spent { turns: n, ..Spent::default() }, [7, 8, 10]),
            (
                "time_per_task = \"1h\"",
                |n| Spent { millis: n, ..Spent::default() },
                [2_879_999, 2_880_000, hour],
            ),
            ("turns_per_day = 10", |n| Spent { turns: n, ..Spent::default() }, [7, 8, 10]),
            (
                "time_per_day = \"1h\"",
                |n| Spent { millis: n, ..Spent::default() },
                [2_879_999, 2_880_000, hour],
            ),
            ("restarts_per_day = 4", |n| Spent { restarts: n, ..Spent::default() }, [3, 4, 5]),
        ];
        for (line, spend, marks) in cases {
            let config = Config::parse(&format!("name = \"p\"\n[budget]\n{line}"), "test").unwrap();
            let of_day = line.contains("per_day");
            let limit = if of_day { Limit::per_day } else { Limit::per_task }(&config.budget);
            let found = marks.map(|n| level(spend(n), limit));
            assert_eq!(found, [Level::Within, Level::Soft, Level::Hard], "{line}");
            let other = if of_day { Limit::per_task } else { Limit::per_day }(&config.budget);
            assert!(!other.is_any() && limit.is_any(), "{line}");
        }
        let none = Limit { restarts: Some(0), ..Limit::default() };
        assert_eq!(level(Spent::default(), none), Level::Within, "nobody died yet");
    }

    #[test]
    fn cache_reads_count_in_tokens_and_money_and_never_as_fresh() {
        let classes = TokenClasses { input: 10, cache_writes: 20, cache_reads: 970, output: 5 };
        let spent = Spent::of_classes(classes);
        assert_eq!((spent.tokens, classes.fresh(), spent.fresh_tokens()), (1005, 35, 35));
        // Nobody said what these are: they may all be fresh.
        assert_eq!(Spent { tokens: 1105, ..spent }.fresh_tokens(), 135);
        assert_eq!(Spent { tokens: 700, ..Spent::default() }.fresh_tokens(), 700);
        let limit = |text: &str| {
            let config = Config::parse(&format!("name = \"p\"\n[budget]\n{text}"), "test").unwrap();
            Limit::per_task(&config.budget)
        };
        assert_eq!(level(spent, limit("fresh_tokens_per_task = 36")), Level::Soft);
        assert_eq!(level(spent, limit("fresh_tokens_per_task = 35")), Level::Hard);
        assert_eq!(level(spent, limit("tokens_per_task = 1005")), Level::Hard, "as released");
        let told = describe(spent, limit("fresh_tokens_per_task = 40")).unwrap();
        assert_eq!(told, "1005 tokens, 35 of 40 fresh tokens");
    }

    #[test]
    fn what_nobody_told_is_unknown_and_not_nothing() {
        let silent = Spent { millis: 9_000, unreported_millis: 9_000, ..Spent::default() };
        assert_eq!((silent.known_tokens(), silent.known_micro_usd()), (None, None));
        assert_eq!((Spent::default().known_tokens(), Spent::default().known_micro_usd()), (Some(0), Some(0)));
        let tokens_only = Spent { tokens: 7, millis: 9_000, ..Spent::default() };
        assert_eq!((tokens_only.known_tokens(), tokens_only.known_micro_usd()), (Some(7), None));
        assert_eq!(tokens_only.known_classes(), None);
    }

    #[test]
    fn an_issue_has_a_limit_by_default_and_one_for_those_that_tell_nothing() {
        let config = Config::parse("name = \"p\"", "test").unwrap();
        let limit = Limit::per_issue(&config.budget);
        let spent = |micro_usd, unreported_millis| Spent { micro_usd, unreported_millis, ..Spent::default() };
        assert_eq!(level(spent(24_999_999, 0), limit), Level::Soft);
        assert_eq!(level(spent(25_000_000, 0), limit), Level::Hard);
        assert_eq!(level(spent(0, 48 * 3_600_000), limit), Level::Hard);
        let told = describe(spent(0, 48 * 3_600_000), limit).unwrap();
        assert_eq!(told, "48h of 48h of sessions that tell nothing");
    }

    #[test]
    fn only_what_was_spent_is_told_beside_its_limit() {
        let limit = Limit { micro_usd: Some(2_500_000), turns: Some(9), ..Limit::default() };
        assert_eq!(describe(Spent::default(), limit), None);
        let spent = Spent { tokens: 900, micro_usd: 429_999, ..Spent::default() };
        assert_eq!(describe(spent, limit).unwrap(), "0.42 of 2.50 USD, 900 tokens");
        assert_eq!((dollars(0), dollars(9_999)), ("0.00".to_owned(), "<0.01".to_owned()));
        let limit = Limit { millis: Some(7_200_000), restarts: Some(3), ..Limit::default() };
        let spent = Spent { turns: 4, restarts: 1, millis: 4_259_000, ..Spent::default() };
        assert_eq!(describe(spent, limit).unwrap(), "4 turns, 1 of 3 restarts, 1h10m of 2h of wall time");
        assert_eq!(describe(Spent { millis: 999, ..Spent::default() }, limit), None);
    }
}
