//! An agent's reports of itself, over the control socket: how full its context is, what it has spent, where its work
//! stands.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::session::work::WorkPhase;

use crate::control::client;
use crate::control::protocol::{Reply, Request};

/// For a daemon that is being restarted to be there again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);
/// A cent, in the unit in which money is counted.
const MICRO_USD_PER_CENT: u64 = 10_000;

/// Speaks for one session. Every report can be made twice: it says what is so, not what has changed.
pub(super) struct Reporter {
    session: String,
    control: PathBuf,
    spent: Spent,
    patience: Duration,
}

impl Reporter {
    pub(super) fn new(session: String, control: PathBuf) -> Self {
        Self { session, control, spent: Spent::default(), patience: PATIENCE }
    }

    /// Does not wait for a daemon.
    #[cfg(test)]
    pub(super) fn impatient(self) -> Self {
        Self { patience: Duration::ZERO, ..self }
    }

    /// How full the context is.
    pub(super) fn context(&self, percent: u16) -> Result<(), String> {
        let gauge = Gauge { used_permille: percent.saturating_mul(10), source: Source::StatusLine };
        self.ask(&Request::Measure {
            session: self.session.clone(),
            gauge: Some(gauge),
            spent: None,
            quota: Vec::new(),
        })
    }

    /// A further expense; what is reported is the sum so far.
    pub(super) fn spend(&mut self, tokens: u64, cents: u64) -> Result<(), String> {
        let micro_usd = cents.saturating_mul(MICRO_USD_PER_CENT);
        self.spent = self.spent.plus(Spent { tokens, micro_usd, turns: 1, ..Spent::default() });
        self.ask(&Request::Measure {
            session: self.session.clone(),
            gauge: None,
            spent: Some(self.spent),
            quota: Vec::new(),
        })
    }

    /// Where the work stands.
    pub(super) fn checkpoint(&self, phase: WorkPhase, summary: &str) -> Result<(), String> {
        self.ask(&Request::Checkpoint {
            session: self.session.clone(),
            phase: Some(phase),
            summary: (!summary.is_empty()).then(|| summary.to_owned()),
        })
    }

    /// Asks until there is an answer: the daemon may be killed at any time, and comes back.
    fn ask(&self, request: &Request) -> Result<(), String> {
        let deadline = Instant::now() + self.patience;
        loop {
            match client::ask(&self.control, request) {
                Ok(Reply::Done { .. }) => return Ok(()),
                Ok(Reply::Failed { message, .. }) => return Err(message),
                Err(error) if Instant::now() >= deadline => return Err(error.to_string()),
                Err(client::Error::NotRunning | client::Error::Silent | client::Error::Broken(_)) => {
                    std::thread::park_timeout(PAUSE);
                }
            }
        }
    }
}
