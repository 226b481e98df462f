use clap::{ArgGroup, Args, value_parser};
use pointsman_core::session::budget::{Spent, TokenClasses};
use pointsman_core::session::context::{Gauge, Source};
use pointsman_view::session::Measured;

use super::context::Context;
use super::failure::Failure;
use crate::control::protocol::Request;

/// More than any session counts up to; a larger number is a mistake.
const MOST: u64 = 1_000_000_000_000_000;
/// More than any session costs, in dollars.
const MOST_USD: f64 = 1_000_000.0;

/// Report how full the context is and what was spent, for agents that can measure it
///
/// Report totals since the session started: a number that is reported twice counts once.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("measure").required(true).multiple(true), after_help = "Examples:\n  \
    pointsman gauge --context 0.93\n  \
    pointsman gauge --context 0.4 --tokens 81000 --usd 1.27 --turns 12\n  \
    pointsman gauge --input-tokens 900 --cache-writes 4000 --cache-reads 75000 --output-tokens 1100")]
pub(crate) struct Arguments {
    /// The used part of the context window, from 0 to 1
    #[arg(long, value_name = "FRACTION", value_parser = permille, group = "measure")]
    context: Option<u16>,
    /// Tokens of all classes since the session started; tokens of unknown class count as input
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=MOST), group = "measure")]
    tokens: Option<u64>,
    /// Input tokens, read for the first time
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=MOST), group = "measure")]
    input_tokens: Option<u64>,
    /// Input tokens, read for the first time and written to a cache
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=MOST), group = "measure")]
    cache_writes: Option<u64>,
    /// Input tokens, read from a cache
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=MOST), group = "measure")]
    cache_reads: Option<u64>,
    /// Output tokens
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=MOST), group = "measure")]
    output_tokens: Option<u64>,
    /// US dollars since the session started
    #[arg(long, value_name = "USD", value_parser = micro_usd, group = "measure")]
    usd: Option<u64>,
    /// Turns since the session started
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=MOST), group = "measure")]
    turns: Option<u64>,
    /// The session to report for; an agent's own is in POINTSMAN_SESSION
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let (gauge, spent) = (self.gauge(), self.spent());
        let session = context.reporting_session(self.session)?;
        let request = Request::Measure { session, gauge, spent, quota: Vec::new() };
        let answer: Measured = context.ask(&request)?;
        if context.out.is_json() { context.out.value(&answer) } else { Ok(()) }
    }

    fn gauge(&self) -> Option<Gauge> {
        self.context.map(|used_permille| Gauge { used_permille, source: Source::StatusLine })
    }

    /// What is not reported is zero here, which takes nothing away from what was reported before.
    fn spent(&self) -> Option<Spent> {
        let classes = [self.input_tokens, self.cache_writes, self.cache_reads, self.output_tokens];
        let counts = [self.tokens, self.usd, self.turns].into_iter().chain(classes);
        let reported = counts.into_iter().any(|count| count.is_some());
        let [input, cache_writes, cache_reads, output] = classes.map(Option::unwrap_or_default);
        let classes = TokenClasses { input, cache_writes, cache_reads, output };
        reported.then(|| Spent {
            tokens: self.tokens.unwrap_or(0).max(classes.sum()),
            classes,
            micro_usd: self.usd.unwrap_or(0),
            turns: self.turns.unwrap_or(0),
            ..Spent::default()
        })
    }
}

fn permille(text: &str) -> Result<u16, String> {
    match text.parse::<f64>() {
        Ok(used) if (0.0..=1.0).contains(&used) => Ok((used * 1000.0).round() as u16),
        Ok(_) | Err(_) => Err("expected a number from 0 to 1, such as 0.93".to_owned()),
    }
}

fn micro_usd(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(usd) if (0.0..=MOST_USD).contains(&usd) => Ok((usd * 1_000_000.0).round() as u64),
        Ok(_) | Err(_) => Err("expected US dollars, such as 1.27".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{micro_usd, permille};

    #[test]
    fn fractions_and_dollars_are_exact_and_nonsense_is_refused() {
        assert_eq!((permille("0"), permille("0.93"), permille("1")), (Ok(0), Ok(930), Ok(1000)));
        assert_eq!((micro_usd("1.27"), micro_usd("0.000001")), (Ok(1_270_000), Ok(1)));
        for text in ["", "93", "93%", "-0.1", "1.01", "nan", "inf"] {
            assert!(permille(text).is_err(), "{text}");
        }
        for text in ["", "-1", "nan", "inf", "$1", "1000001"] {
            assert!(micro_usd(text).is_err(), "{text}");
        }
    }
}
