//! A host that keeps failing is left alone for a while: it may have enough to do, and so have we.

use std::time::{Duration, Instant};

use super::limits::Limits;

/// Whether a host is asked.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    rests: u32,
    until: Option<Instant>,
    /// Somebody is finding out whether it is back; the others wait for what they find.
    probing: bool,
}

/// May a call be made?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPermission {
    Go,
    Rest(Duration),
}

impl Breaker {
    /// Asks for leave. After a rest one call is let through to see; the rest of them when it went well.
    pub(super) fn ask(&mut self, now: Instant, limits: &Limits) -> CallPermission {
        match self.until {
            None => CallPermission::Go,
            Some(until) if until > now => CallPermission::Rest(until - now),
            Some(_) if self.probing => CallPermission::Rest(limits.rest),
            Some(_) => {
                self.probing = true;
                CallPermission::Go
            }
        }
    }

    /// The host answered, whatever it said.
    pub(super) fn well(&mut self) {
        *self = Self::default();
    }

    /// The host did not answer, or said that it cannot.
    pub(super) fn ill(&mut self, now: Instant, limits: &Limits) {
        self.failures += 1;
        self.probing = false;
        if self.failures >= limits.failures || self.rests > 0 {
            let rest = limits.rest.saturating_mul(1 << self.rests.min(16)).min(limits.longest_rest);
            self.until = Some(now + rest);
            self.rests += 1;
        }
    }

    /// The host asked to be left alone for this long.
    pub(super) fn hold(&mut self, until: Instant) {
        self.probing = false;
        self.until = Some(self.until.map_or(until, |known| known.max(until)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Breaker, CallPermission};
    use crate::http::Limits;

    #[test]
    fn a_failing_host_rests_longer_and_longer_and_one_call_finds_out() {
        let limits = Limits::default();
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        for _ in 0..limits.failures {
            assert_eq!(breaker.ask(now, &limits), CallPermission::Go);
            breaker.ill(now, &limits);
        }
        assert_eq!(breaker.ask(now, &limits), CallPermission::Rest(limits.rest));
        now += limits.rest;
        assert_eq!(breaker.ask(now, &limits), CallPermission::Go);
        assert!(matches!(breaker.ask(now, &limits), CallPermission::Rest(_)), "only one finds out");
        breaker.ill(now, &limits);
        assert_eq!(breaker.ask(now, &limits), CallPermission::Rest(limits.rest * 2));
        now += limits.rest * 2;
        assert_eq!(breaker.ask(now, &limits), CallPermission::Go);
        breaker.well();
        assert_eq!(breaker.ask(now, &limits), CallPermission::Go);
        assert_eq!(breaker.ask(now, &limits), CallPermission::Go);
    }

    #[test]
    fn a_wish_to_be_left_alone_is_kept() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        breaker.hold(now + Duration::from_secs(60));
        breaker.hold(now + Duration::from_secs(5));
        assert_eq!(breaker.ask(now, &Limits::default()), CallPermission::Rest(Duration::from_secs(60)));
    }
}
