//! All sentences for people and agents, as pure functions, with one file per audience or subject. Outside text
//! appears only in the details, quoted, and never in a subject line.

pub mod access;
pub mod action;
pub mod answer;
pub mod artifact;
pub mod backup;
pub mod chat;
pub mod ci;
pub mod claim;
pub mod comment;
pub mod commit;
pub mod config;
pub mod daemon;
pub mod decision;
pub mod digest;
pub mod doctor;
pub mod explain;
pub mod formula;
pub mod gardener;
pub mod guard;
pub mod hand_in;
pub mod handover;
pub mod health;
pub mod journal;
pub mod labels;
pub mod message;
pub mod notice;
pub mod page;
pub mod parse;
pub mod people;
pub mod pipeline;
pub mod planner;
pub mod predictor;
pub mod prompt;
pub mod question;
pub mod queue;
pub mod reason;
pub mod receipt;
pub mod relay;
pub mod report;
pub mod review;
pub mod risk;
pub mod run;
pub mod sandbox;
pub mod schedule;
pub mod screen;
pub mod session;
pub mod store;
pub mod task;
pub mod template;
pub mod trust;
pub mod turn;
pub mod undo;
pub mod vault;
pub mod web;

use std::time::Duration;

/// A duration as people write it: `30s`, `3h`, `1h 30m`.
pub fn span(duration: Duration) -> String {
    let millis = duration.as_millis();
    if !millis.is_multiple_of(1000) {
        return if millis < 10_000 { format!("{millis}ms") } else { format!("{}s", millis / 1000) };
    }
    let seconds = duration.as_secs();
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let text: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if text.is_empty() { "0s".to_owned() } else { text.join(" ") }
}

/// A duration without what is too small to matter beside the rest: `59s`, `1h 2m`, `25h`.
pub fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let unit = match seconds {
        0..600 => 1,
        600..36_000 => 60,
        _ => 3600,
    };
    span(Duration::from_secs(seconds / unit * unit))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn a_span_reads_as_people_write_it() {
        let cases = [(0, "0s"), (250, "250ms"), (30_000, "30s"), (10_800_000, "3h"), (5_400_000, "1h 30m")];
        for (millis, text) in cases {
            assert_eq!(super::span(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn people_get_round_numbers() {
        let cases =
            [(250, "0s"), (59_900, "59s"), (599_000, "9m 59s"), (3_725_000, "1h 2m"), (90_061_000, "25h")];
        for (millis, text) in cases {
            assert_eq!(super::rough(Duration::from_millis(millis)), text);
        }
    }
}
