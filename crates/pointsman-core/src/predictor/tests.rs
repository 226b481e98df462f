use std::collections::BTreeSet;

use super::*;
use crate::config::Config;
use crate::time::Timestamp;
use crate::words::predictor as words;

const DAY: i64 = 86_400_000;

fn config() -> Config {
    Config::parse("name = \"shop\"", "test").unwrap()
}

/// Disks as full as this on days in a row.
fn days(percents: &[u64]) -> Memory {
    let mut memory = Memory::default();
    for (day, percent) in percents.iter().enumerate() {
        let at = Timestamp(i64::try_from(day).unwrap() * DAY);
        let disks = [("/state".to_owned(), *percent)].into();
        memory.measure(Sample { at, disks, free_memory_mb: None }, at);
    }
    memory
}

fn titles(memory: &Memory, figures: &Figures) -> Vec<String> {
    predict(memory, figures, &config()).iter().map(|one| words::issue(one).0).collect()
}

#[test]
fn a_disk_that_fills_is_foretold() {
    let cases: [(&str, &[u64], &[&str]); 7] = [
        ("steady", &[50, 50, 50, 50], &[]),
        ("emptier", &[70, 60, 50], &[]),
        ("two days are no trend", &[50, 70], &[]),
        ("a point a day", &[60, 61, 62, 63], &[]),
        ("five points a day", &[55, 60, 65, 70], &["The disk of /state passes 80 % in 3 days"]),
        ("it is full: that is health, and told", &[70, 80, 90], &[]),
        ("up and down", &[60, 70, 60, 70, 60], &[]),
    ];
    for (what, percents, expected) in cases {
        assert_eq!(titles(&days(percents), &Figures::default()), expected, "{what}");
    }
}

#[test]
fn looks_on_one_day_are_no_trend() {
    let mut memory = Memory::default();
    for (minute, percent) in [(0, 50), (10, 60), (20, 70)] {
        let at = Timestamp(minute * 60_000);
        let disks = [("/state".to_owned(), percent)].into();
        memory.measure(Sample { at, disks, free_memory_mb: Some(9000 - 100 * percent) }, at);
    }
    assert_eq!(titles(&memory, &Figures::default()), [""; 0]);
}

#[test]
fn memory_that_falls_steadily_is_foretold() {
    let free = |megabytes: &[u64]| {
        let mut memory = Memory::default();
        for (day, free) in megabytes.iter().enumerate() {
            let at = Timestamp(i64::try_from(day).unwrap() * DAY);
            memory.measure(Sample { at, disks: Default::default(), free_memory_mb: Some(*free) }, at);
        }
        titles(&memory, &Figures::default())
    };
    let cases: [(&str, &[u64], &[&str]); 6] = [
        ("steady", &[4000, 4000, 4000], &[]),
        ("a leak", &[4000, 3500, 3000, 2500], &["Less than 500 MB of memory are free in 4 days"]),
        ("slow", &[4000, 3990, 3980, 3970], &[]),
        ("it comes and goes", &[4000, 1000, 3900, 900, 3800, 2000], &[]),
        ("more and more", &[1000, 2000, 3000], &[]),
        ("it is short: that is health, and told", &[1000, 700, 400], &[]),
    ];
    for (what, megabytes, expected) in cases {
        assert_eq!(free(megabytes), expected, "{what}");
    }
}

#[test]
fn weeks_are_compared() {
    let week = |week: Counts, before: Counts| Figures { week, before, ..Figures::default() };
    let checks = |checks, red| Counts { checks, red, ..Counts::default() };
    let none = Memory::default();
    let cases = [
        (week(checks(10, 1), checks(10, 1)), vec![]),
        (week(checks(9, 9), checks(10, 1)), vec![]),
        (week(checks(20, 6), checks(20, 5)), vec![]),
        (week(checks(20, 6), checks(20, 4)), vec!["CI fails more often: 30 % of the runs"]),
        (
            week(Counts { infra: 3, ..Counts::default() }, Counts { infra: 1, ..Counts::default() }),
            vec!["The CI infrastructure fails again and again"],
        ),
        (
            week(Counts { crashes: 4, ..Counts::default() }, Counts { crashes: 2, ..Counts::default() }),
            vec!["Sessions die more often"],
        ),
        (
            week(Counts { crashes: 4, ..Counts::default() }, Counts { crashes: 3, ..Counts::default() }),
            vec![],
        ),
        (
            week(Counts { blocked: 3, ..Counts::default() }, Counts::default()),
            vec!["Tasks become blocked more often"],
        ),
        (
            Figures { open: 20, stale: 5, ..Figures::default() },
            vec!["Issues pile up: 5 of 20 are not being touched"],
        ),
        (Figures { open: 21, stale: 5, ..Figures::default() }, vec![]),
    ];
    for (figures, expected) in cases {
        assert_eq!(titles(&none, &figures), expected, "{figures:?}");
    }
}

#[test]
fn five_a_day_and_nothing_twice() {
    let config = config();
    let now = Timestamp(100 * DAY);
    let many: Vec<Prediction> = (0..9)
        .map(|n| Prediction::DiskFills {
            path: format!("/d{n}"),
            percent: 70,
            was: 60,
            over_days: 3,
            in_days: 2,
            threshold: 80,
        })
        .collect();
    let mut memory = Memory::default();
    let open: BTreeSet<String> = [many[0].key()].into();
    let first = memory.news(many.clone(), &open, &config, now);
    assert_eq!(first, many[1..6], "open ones are left out, five are enough");
    memory.said.extend(first.iter().map(|one| (one.key(), now)));
    assert_eq!(memory.news(many.clone(), &open, &config, Timestamp(now.0 + DAY / 2)), [], "the same day");
    let next = Timestamp(now.0 + DAY);
    assert_eq!(memory.news(many.clone(), &open, &config, next), many[6..], "the next day, what was not said");
    // A month later it may be said again, if it was dismissed then and is true still.
    let later = Timestamp(now.0 + 31 * DAY);
    memory.measure(Sample { at: later, disks: Default::default(), free_memory_mb: None }, later);
    assert_eq!(memory.news(many.clone(), &BTreeSet::new(), &config, later).len(), 5);
}

#[test]
fn each_has_its_evidence_and_says_nothing_of_features() {
    let one = Prediction::SessionsDie { times: 4, was: 1 };
    let (title, body) = words::issue(&one);
    assert_eq!(title, "Sessions die more often");
    assert!(body.contains("4 in the last seven days, 1 in the seven before"), "{body}");
    assert!(body.contains("prediction"), "{body}");
}

#[test]
fn a_rate_names_the_runs_that_it_was_counted_over() {
    let (title, body) = words::issue(&Prediction::CiRedder { percent: 27, was: 10, runs: 36 });
    assert!(title.contains("27 %"), "{title}");
    assert!(body.contains("27 % of 36 runs") && !body.contains("of 100"), "{body}");
}
