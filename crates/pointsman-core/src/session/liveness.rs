//! Alive, dead or unknown. A probe that fails says nothing, and Unknown never kills.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Timing;
use crate::time::Timestamp;

/// The observation of a single witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// The process (pid and start time) is there.
    There,
    /// It is not: the pid is free, a zombie, or another process.
    Gone,
    /// The probe failed: says nothing.
    Unseen,
}

/// Everything known about one session's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// When the session was started.
    pub started_at: Timestamp,
    /// When it was last known to live.
    pub last_seen: Timestamp,
    /// The kernel's word on the process.
    pub process: Probe,
    /// tmux's word on the pane, if it has one.
    pub terminal: Option<Probe>,
    /// How often in a row the process was found gone.
    pub times_gone: u32,
    /// How often in a row it gave no sign, or was found stale.
    pub times_stale: u32,
}

/// The verdict on a session's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    Alive,
    /// Not seen for longer than it should be, confirmed; not a death.
    Stale,
    /// Not to be known at the moment.
    Unknown,
    /// Its process is gone, twice.
    Dead,
}

/// The numbers the verdict depends on.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Nothing is a death this soon after the start.
    pub start_grace: Duration,
    /// Not seen for this long is stale.
    pub stale_after: Duration,
    pub stale_looks: u32,
    /// The time between two looks.
    pub look_pace: Duration,
}

impl Rules {
    /// The rules of a project.
    pub fn of(timing: &Timing) -> Self {
        Self {
            start_grace: timing.start_grace.duration(),
            stale_after: timing.stale_after.duration(),
            stale_looks: STALE_LOOKS,
            look_pace: timing.heartbeat.duration() / HEARTBEAT_LOOKS,
        }
    }
}

/// Looks in the time of a heartbeat: one may be late.
pub const HEARTBEAT_LOOKS: u32 = 2;
/// How often a session must be found stale.
pub const STALE_LOOKS: u32 = 3;
/// How often a process must be found gone.
pub const DEATHS_NEEDED: u32 = 2;

/// Weighs the evidence.
pub fn judge(evidence: &Evidence, rules: &Rules, now: Timestamp) -> Liveness {
    match evidence.process {
        Probe::There => {
            let unseen = now.since(evidence.last_seen) > rules.stale_after;
            // It is there at every look, and has done nothing between them.
            let silent = rules.look_pace.saturating_mul(evidence.times_stale) >= rules.stale_after;
            let quiet = (unseen || silent) && evidence.times_stale >= rules.stale_looks;
            if quiet { Liveness::Stale } else { Liveness::Alive }
        }
        Probe::Gone if evidence.times_gone >= DEATHS_NEEDED => Liveness::Dead,
        Probe::Gone => Liveness::Unknown,
        Probe::Unseen => {
            let in_grace = now.since(evidence.started_at) <= rules.start_grace;
            let quiet = now.since(evidence.last_seen) > rules.stale_after;
            if !in_grace && quiet && evidence.times_stale >= rules.stale_looks {
                Liveness::Stale
            } else {
                Liveness::Unknown
            }
        }
    }
}

/// The standing of a session: what is on record of its end, else what the evidence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionHealth {
    /// It has not ended, as far as is on record.
    Open(Liveness),
    /// It ended as it should.
    Ended,
    Crashed,
}

/// A session at a glance. Whoever shows the colour shows the mark too: not everybody sees colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    Green,
    Yellow,
    Red,
    Gray,
}

/// The colour of a session.
pub fn colour(standing: SessionHealth) -> Colour {
    match standing {
        SessionHealth::Open(Liveness::Alive) => Colour::Green,
        SessionHealth::Open(Liveness::Stale | Liveness::Unknown) => Colour::Yellow,
        // Dead, and nobody has written it down yet.
        SessionHealth::Open(Liveness::Dead) | SessionHealth::Crashed => Colour::Red,
        SessionHealth::Ended => Colour::Gray,
    }
}

impl SessionHealth {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open(Liveness::Alive) => "fresh",
            Self::Open(Liveness::Stale) => "stale",
            Self::Open(Liveness::Unknown) => "unknown",
            Self::Open(Liveness::Dead) | Self::Crashed => "crashed",
            Self::Ended => "ended",
        }
    }
}

impl Colour {
    /// The name scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
            Self::Gray => "gray",
        }
    }

    /// A shape of its own for each colour.
    pub fn mark(self) -> char {
        match self {
            Self::Green => '●',
            Self::Yellow => '◐',
            Self::Red => '✖',
            Self::Gray => '○',
        }
    }
}

/// Whether so many deaths at once speak against the witness instead: most of at least three
/// sessions.
pub fn is_mass_death(looked_dead: usize, sessions: usize) -> bool {
    looked_dead >= 3 && looked_dead * 2 > sessions
}

/// The breaker: whether a death is believed. When most sessions look dead at once, only a witness counts that sees what is
/// certainly alive: itself.
pub fn is_believed(looked_dead: usize, sessions: usize, sees_itself: impl FnOnce() -> bool) -> bool {
    !is_mass_death(looked_dead, sessions.max(looked_dead)) || sees_itself()
}

#[cfg(test)]
mod tests {
    use super::{
        Colour, Evidence, Liveness, Probe, Rules, SessionHealth, colour, is_believed, is_mass_death, judge,
    };
    use crate::time::Timestamp;
    use std::time::Duration;

    const RULES: Rules = Rules {
        start_grace: Duration::from_secs(10),
        stale_after: Duration::from_secs(300),
        stale_looks: 3,
        look_pace: Duration::from_secs(30),
    };
    const NOW: Timestamp = Timestamp(10_000_000);

    fn seen(process: Probe) -> Evidence {
        Evidence {
            started_at: Timestamp(0),
            last_seen: NOW,
            process,
            terminal: Some(Probe::There),
            times_gone: 0,
            times_stale: 0,
        }
    }

    #[test]
    fn a_process_that_is_gone_must_be_found_gone_twice() {
        for (times, verdict) in [(0, Liveness::Unknown), (1, Liveness::Unknown), (2, Liveness::Dead)] {
            assert_eq!(judge(&Evidence { times_gone: times, ..seen(Probe::Gone) }, &RULES, NOW), verdict);
        }
    }

    #[test]
    fn a_failed_probe_never_kills_however_long_it_fails() {
        for times in [0, 3, 1_000_000] {
            let evidence = Evidence {
                last_seen: Timestamp(0),
                times_gone: times,
                times_stale: times,
                ..seen(Probe::Unseen)
            };
            assert_ne!(judge(&evidence, &RULES, NOW), Liveness::Dead);
        }
    }

    #[test]
    fn r1_5_ac_1_3_stale_after_five_minutes_and_three_looks_and_still_not_dead() {
        let quiet = Evidence { last_seen: Timestamp(NOW.0 - 301_000), ..seen(Probe::There) };
        assert_eq!(judge(&quiet, &RULES, NOW), Liveness::Alive);
        assert_eq!(judge(&Evidence { times_stale: 3, ..quiet }, &RULES, NOW), Liveness::Stale);
    }

    #[test]
    fn a_process_that_does_nothing_for_five_minutes_is_stale_however_often_it_is_seen() {
        for (looks, verdict) in [(0, Liveness::Alive), (9, Liveness::Alive), (10, Liveness::Stale)] {
            assert_eq!(judge(&Evidence { times_stale: looks, ..seen(Probe::There) }, &RULES, NOW), verdict);
        }
    }

    #[test]
    fn the_start_is_a_time_of_grace() {
        let young = Evidence {
            started_at: Timestamp(NOW.0 - 5_000),
            last_seen: Timestamp(0),
            times_stale: 9,
            ..seen(Probe::Unseen)
        };
        assert_eq!(judge(&young, &RULES, NOW), Liveness::Unknown);
        let said = crate::words::session::evidence(&young, &RULES, NOW);
        assert!(said.iter().any(|line| line.contains("too early to call it dead")), "{said:?}");
    }

    #[test]
    fn most_of_three_or_more_at_once_is_suspicious() {
        assert!(!is_mass_death(2, 2));
        assert!(!is_mass_death(3, 6));
        assert!(is_mass_death(3, 5));
        assert!(is_mass_death(200, 200));
    }

    #[test]
    fn a_blind_witness_of_a_mass_death_is_not_believed() {
        for (looked_dead, sessions, sees_itself, believed) in [
            (1, 1, false, true),
            (2, 2, false, true),
            (3, 6, false, true),
            (3, 5, false, false),
            (3, 5, true, true),
            // More deaths than anybody knew of are no smaller share.
            (4, 0, false, false),
            (200, 200, false, false),
            (200, 200, true, true),
        ] {
            assert_eq!(
                is_believed(looked_dead, sessions, || sees_itself),
                believed,
                "{looked_dead} of {sessions}, sees itself: {sees_itself}"
            );
        }
    }

    #[test]
    fn r1_6_every_standing_has_a_colour_a_shape_and_a_word() {
        for (standing, name, mark, word) in [
            (SessionHealth::Open(Liveness::Alive), "green", '●', "fresh"),
            (SessionHealth::Open(Liveness::Stale), "yellow", '◐', "stale"),
            (SessionHealth::Open(Liveness::Unknown), "yellow", '◐', "unknown"),
            (SessionHealth::Open(Liveness::Dead), "red", '✖', "crashed"),
            (SessionHealth::Crashed, "red", '✖', "crashed"),
            (SessionHealth::Ended, "gray", '○', "ended"),
        ] {
            let colour: Colour = colour(standing);
            assert_eq!((colour.name(), colour.mark(), standing.word()), (name, mark, word));
        }
    }

    #[test]
    fn the_rules_are_the_projects_and_a_session_is_stale_after_three_looks() {
        let config =
            crate::config::Config::parse("name = \"a\"\n[timing]\nstale_after = \"7m\"", "t").unwrap();
        let rules = Rules::of(&config.timing);
        assert_eq!((rules.stale_after, rules.stale_looks), (Duration::from_secs(420), 3));
    }
}
