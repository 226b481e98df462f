//! A server as we know it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pointsman_core::time::Timestamp;

use super::breaker::{Breaker, CallPermission};
use super::client::{Client, Scheme};
use super::counts::Counts;
use super::etags::Etags;
use super::limits::Limits;
use super::tls;
use super::wait::RetryWait;
use crate::secret::{Secret, Token};

/// A clock that differs by less than this is not corrected: headers have whole seconds, and answers take time.
const SAME_CLOCK: Duration = Duration::from_secs(5);
/// The most bytes of an answer's headers.
const HEADER_BYTES: usize = 64 << 10;
/// Connections that are kept open for the next call.
const IDLE_CONNECTIONS: usize = 4;

/// The allowance of requests that a server announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub limit: u64,
    pub remaining: u64,
    /// Until it is full again.
    pub resets_in: Duration,
}

/// One server, shared by all accounts we have there.
pub struct Host {
    pub(super) base: String,
    name: String,
    pub(super) agent: ureq::Agent,
    pub(super) limits: Limits,
    pub(super) patience: RetryWait,
    pub(crate) clock: fn() -> Timestamp,
    breaker: Mutex<Breaker>,
    etags: Mutex<Etags>,
    counts: Counts,
    ahead_ms: AtomicI64,
    rate: Mutex<Option<RateLimit>>,
    accounts: AtomicU64,
    wrote: Mutex<Option<Instant>>,
}

impl Host {
    /// A server by the address that all its paths begin with. `clock` tells our own time.
    pub fn new(base: &str, clock: fn() -> Timestamp, limits: Limits, patience: RetryWait) -> Arc<Self> {
        let base = base.trim_end_matches('/').to_owned();
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A redirect would take the token along; it is told instead.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(limits.call))
            .timeout_connect(Some(limits.connect))
            .max_response_header_size(HEADER_BYTES)
            .max_idle_connections_per_host(IDLE_CONNECTIONS)
            .user_agent(concat!("pointsman/", env!("CARGO_PKG_VERSION")));
        if base.starts_with("https:") {
            config = config.tls_config(tls::config());
        }
        let name =
            base.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(&base).to_owned();
        Arc::new(Self {
            base,
            name,
            agent: config.build().into(),
            limits,
            patience,
            clock,
            breaker: Mutex::default(),
            etags: Mutex::default(),
            counts: Counts::default(),
            ahead_ms: AtomicI64::new(0),
            rate: Mutex::default(),
            accounts: AtomicU64::new(0),
            wrote: Mutex::default(),
        })
    }

    /// The server with one account, or as anybody.
    pub fn client(self: &Arc<Self>, account: Option<(Scheme, Secret)>) -> Client {
        self.client_with(account.map(|(scheme, secret)| (scheme, Token::from(secret))))
    }

    /// The same, with a token that may change.
    pub fn client_with(self: &Arc<Self>, account: Option<(Scheme, Token)>) -> Client {
        Client::new(Arc::clone(self), self.accounts.fetch_add(1, Ordering::Relaxed), account)
    }

    /// The address that all its paths begin with.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Its name and port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The costs of all calls to this server so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The requests that the server still accepts; none if it does not say.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        *lock(&self.rate)
    }

    /// The lead of the server's clock over ours in milliseconds; zero if they agree.
    pub fn ahead_ms(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    /// A time of the server's clock by ours, so that the two can be compared.
    pub fn our_time(&self, theirs: Timestamp) -> Timestamp {
        Timestamp(theirs.0.saturating_sub(self.ahead_ms()))
    }

    /// Whether something was written there not longer ago than this.
    pub fn wrote_within(&self, span: Duration) -> bool {
        lock(&self.wrote).is_some_and(|at| at.elapsed() <= span)
    }

    pub(super) fn writes(&self) {
        *lock(&self.wrote) = Some(Instant::now());
    }

    pub(super) fn etags(&self) -> MutexGuard<'_, Etags> {
        lock(&self.etags)
    }

    pub(super) fn leave(&self) -> CallPermission {
        lock(&self.breaker).ask(Instant::now(), &self.limits)
    }

    pub(super) fn was_well(&self) {
        lock(&self.breaker).well();
    }

    pub(super) fn was_ill(&self) {
        lock(&self.breaker).ill(Instant::now(), &self.limits);
    }

    pub(super) fn hold(&self, for_: Duration) {
        lock(&self.breaker).hold(Instant::now() + for_);
    }

    pub(super) fn set_rate_limit(&self, rate: RateLimit) {
        *lock(&self.rate) = Some(rate);
    }

    /// Compares clocks. A server whose clock is wrong is said once, and its times are corrected.
    pub(super) fn heard_time(&self, theirs: Timestamp) {
        let ahead = theirs.0 - (self.clock)().0;
        let differs = ahead.unsigned_abs() > SAME_CLOCK.as_millis() as u64;
        let before = self.ahead_ms.swap(if differs { ahead } else { 0 }, Ordering::Relaxed);
        if differs && before == 0 {
            tracing::warn!(
                host = self.name,
                seconds_ahead = ahead / 1000,
                "the server's clock differs from ours"
            );
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
