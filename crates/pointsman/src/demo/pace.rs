//! The pace of the play: how long an agent takes for a step, and a person to react.

use std::time::Duration;

/// Between two steps of an agent, at speed 1.
const STEP: Duration = Duration::from_millis(700);
/// Until a person reacts, at speed 1.
const REACTION: Duration = Duration::from_millis(2000);
/// The slowest speed. Below it, the time-outs of the demo's projects would come first.
const SLOWEST: f64 = 0.5;
const FASTEST: f64 = 100.0;

/// The speed of the play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Nobody watches, so nobody waits.
    AtOnce,
    /// At a speed that people can follow; 2 is twice as fast as 1.
    Speed(f64),
}

impl Pace {
    /// A speed that a person asks for.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(speed) if (SLOWEST..=FASTEST).contains(&speed) => Ok(Self::Speed(speed)),
            _ => Err(format!("a speed is a number from {SLOWEST} to {FASTEST}; 2 is twice as fast as 1")),
        }
    }

    fn of(self, at_speed_one: Duration) -> Duration {
        match self {
            Self::AtOnce => Duration::ZERO,
            Self::Speed(speed) => at_speed_one.div_f64(speed.clamp(SLOWEST, FASTEST)),
        }
    }

    /// The pause of an agent between two steps.
    pub(super) fn step(self) -> Duration {
        self.of(STEP)
    }

    /// The time in which something waits for a person.
    pub(super) fn reaction(self) -> Duration {
        self.of(REACTION)
    }

    /// A limit of the whole play that leaves room for the pauses.
    pub(super) fn extend(self, limit: Duration) -> Duration {
        limit + self.of(limit)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Pace;

    #[test]
    fn twice_the_speed_is_half_the_pause() {
        assert_eq!(Pace::AtOnce.step(), Duration::ZERO);
        assert_eq!(Pace::parse("2").unwrap().reaction() * 2, Pace::Speed(1.0).reaction());
        for text in ["0", "-1", "NaN", "inf", "0.1", "1000", "fast", ""] {
            assert!(Pace::parse(text).is_err(), "{text}");
        }
    }
}
