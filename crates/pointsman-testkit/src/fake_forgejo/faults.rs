//! What goes wrong on the way, by chance with a seed.

use std::time::Duration;

use crate::http::{Fault, Reply};

/// In how many of a hundred requests what goes wrong.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Answered 500, 502 or 503 before anything was done.
    pub errors: u64,
    /// Done, and the answer lost.
    pub lost: u64,
    /// Done, and the answer cut short.
    pub cut: u64,
    /// A web page instead of the answer, before anything was done.
    pub pages: u64,
    /// Every answer takes up to so many milliseconds.
    pub slow: u64,
    /// The state of the dice; any number will do to begin with.
    pub dice: u64,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    Error(u16),
    Page,
    Lost,
    Cut,
}

impl Faults {
    /// A server of which one request in ten goes wrong, in every way there is.
    pub fn ten_percent(seed: u64) -> Self {
        Self { errors: 4, lost: 2, cut: 2, pages: 2, slow: 0, dice: seed }
    }

    fn roll(&mut self) -> u64 {
        // A linear congruential generator: the same seed, the same day.
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.dice >> 33
    }

    /// How long this answer takes.
    pub(super) fn pause(&mut self) -> Duration {
        if self.slow == 0 {
            return Duration::ZERO;
        }
        Duration::from_millis(self.roll() % (self.slow + 1))
    }

    pub(super) fn fate(&mut self) -> Fate {
        let roll = self.roll() % 100;
        let steps = [
            (self.errors, Fate::Error([500, 502, 503][(self.roll() % 3) as usize])),
            (self.lost, Fate::Lost),
            (self.cut, Fate::Cut),
            (self.pages, Fate::Page),
        ];
        let mut upto = 0;
        for (share, fate) in steps {
            upto += share;
            if roll < upto {
                return fate;
            }
        }
        Fate::Fine
    }
}

impl Fate {
    /// The answer in place of the deed, if there is one.
    pub(super) fn before(self) -> Option<Reply> {
        match self {
            Self::Fine | Self::Lost | Self::Cut => None,
            Self::Error(status) => Some(Reply::empty(status).body("upstream trouble")),
            Self::Page => Some(Reply::html(200, "<!doctype html><title>Sign in</title><form></form>")),
        }
    }

    /// What becomes of the answer after the deed.
    pub(super) fn after(self, reply: Reply) -> Reply {
        match self {
            Self::Lost => reply.faulty(Fault::Drop),
            Self::Cut => {
                let half = reply.body.len() / 2;
                reply.faulty(Fault::CutAfter(half))
            }
            Self::Fine | Self::Error(_) | Self::Page => reply,
        }
    }
}
