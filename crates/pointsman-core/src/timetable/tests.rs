use std::time::Duration;

use proptest::prelude::*;

use super::*;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// 2026-03-02, a Monday, 00:00 UTC.
const MONDAY: i64 = 20_514 * DAY;

fn next(text: &str, after: i64) -> i64 {
    Cron::parse(text).unwrap().next(Timestamp(after), &Utc).unwrap().0
}

#[test]
fn the_rhythm_of_the_roles() {
    let cases = [
        ("*/10 * * * *", MONDAY, 10 * MINUTE),
        ("*/20 * * * *", MONDAY + 21 * MINUTE, 40 * MINUTE),
        ("0 0,12 * * *", MONDAY, 12 * 60 * MINUTE),
        ("0 6 * * *", MONDAY + 6 * 60 * MINUTE, DAY + 6 * 60 * MINUTE),
        ("0 7 * * 1", MONDAY, 7 * 60 * MINUTE),
        ("0 7 * * mon", MONDAY + 8 * 60 * MINUTE, 7 * DAY + 7 * 60 * MINUTE),
        ("0 0 * * 7", MONDAY, 6 * DAY),
        ("0 0 1 apr *", MONDAY, 30 * DAY),
        ("30 1-5/2 * * *", MONDAY, 90 * MINUTE),
        // The 13th or a Friday: whichever comes first.
        ("0 0 13 * 5", MONDAY, 4 * DAY),
        ("5 4 29 2 *", MONDAY, (21_243 - 20_514) * DAY + 245 * MINUTE),
    ];
    for (text, after, later) in cases {
        assert_eq!(next(text, after) - MONDAY, later, "{text}");
    }
    assert_eq!(
        Cron::parse("0 0 31 2 *").unwrap().next(Timestamp(MONDAY), &Utc),
        None,
        "there is no such day"
    );
}

#[test]
fn what_is_no_expression_is_refused() {
    for text in [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "5-1 * * * *",
        "a * * * *",
        "1, * * * *",
        "+1 * * * *",
        "* * * foo *",
    ] {
        assert!(Cron::parse(text).is_err(), "{text}");
    }
}

/// Clocks go from 02:00 to 03:00 on the first day, and from 03:00 to 02:00 on the second.
struct Spring;

impl Zone for Spring {
    fn local(&self, at: Timestamp) -> i64 {
        let minute = at.0.div_euclid(MINUTE);
        let since = minute - MONDAY / MINUTE;
        minute + if (120..24 * 60 + 120).contains(&since) { 60 } else { 0 }
    }

    fn utc(&self, local: i64) -> Timestamp {
        let since = local - MONDAY / MINUTE;
        let ahead = if (120..24 * 60 + 180).contains(&since) { 60 } else { 0 };
        // 02:30 of the first day is never shown; the first time after is 03:00, which is 02:00 in UTC.
        Timestamp((local - ahead).max(if since >= 120 { MONDAY / MINUTE + 120 } else { i64::MIN }) * MINUTE)
    }
}

#[test]
fn a_time_that_clocks_jump_over_comes_once_and_one_they_show_twice_too() {
    let daily = Cron::parse("30 2 * * *").unwrap();
    let mut times = Vec::new();
    let mut at = Timestamp(MONDAY);
    while times.len() < 3 {
        at = daily.next(at, &Spring).unwrap();
        times.push((at.0 - MONDAY) / MINUTE);
    }
    assert_eq!(times, [120, 24 * 60 + 90, 2 * 24 * 60 + 150]);
}

fn rules() -> Rules {
    Rules { jitter: Duration::ZERO, catch_up: true, min_free_memory_mb: 2000, only_if_changed: false }
}

fn facts() -> Facts {
    Facts { running: false, free_memory_mb: Some(4000), inputs: "a".to_owned(), budget: None }
}

/// A week of looks, one each minute but for the hours in which nobody looks: the minutes of each run, and why others were not.
fn week(
    text: &str,
    rules: &Rules,
    facts: impl Fn(i64) -> Facts,
    away: std::ops::Range<i64>,
) -> (Vec<i64>, Vec<String>) {
    let cron = Cron::parse(text).unwrap();
    let mut remembered: Option<ScheduleMemory> = None;
    let (mut runs, mut skips) = (Vec::new(), Vec::new());
    for minute in (0..7 * 24 * 60).filter(|minute| !away.contains(&(minute / 60))) {
        let now = Timestamp(MONDAY + minute * MINUTE);
        let (decision, after) = decide(("f", &cron), &Utc, remembered.as_ref(), rules, &facts(minute), now);
        remembered = after.or(remembered);
        match decision {
            Decision::Wait => {}
            Decision::Run => runs.push(minute),
            Decision::Skip { why } => skips.push(why),
        }
    }
    (runs, skips)
}

#[test]
fn a_week_passes_as_it_is_written() {
    assert_eq!(week("0 6 * * *", &rules(), |_| facts(), 0..0).0.len(), 7);
    assert_eq!(
        week("*/20 * * * *", &rules(), |_| facts(), 0..0).0.len(),
        7 * 72 - 1,
        "not the one before we began"
    );
    assert_eq!(week("0 7 * * 1", &rules(), |_| facts(), 0..0).0, [7 * 60]);
}

#[test]
fn missed_times_are_made_up_for_once() {
    let (runs, skips) = week("*/10 * * * *", &rules(), |_| facts(), 24..72);
    assert_eq!(runs.len(), 143 + 4 * 144);
    assert!(skips.is_empty());
    let strict = Rules { catch_up: false, ..rules() };
    let (runs, skips) = week("0 6 * * *", &strict, |_| facts(), 24..50);
    assert_eq!((runs.len(), skips.len()), (6, 1), "{skips:?}");
    assert_eq!(skips[0], "it was missed while no daemon was running");
    let (runs, _) = week("0 6 * * *", &rules(), |_| facts(), 24..50);
    assert_eq!((runs.len(), runs[1]), (7, 50 * 60), "as soon as somebody looks");
}

#[test]
fn what_stands_in_the_way_is_said() {
    let cases = [
        (Facts { running: true, ..facts() }, "the previous run is still in progress"),
        (Facts { free_memory_mb: Some(512), ..facts() }, "only 512 MB of memory are free, less than 2000 MB"),
        (Facts { budget: Some("5 USD a day".to_owned()), ..facts() }, "a budget is used up: 5 USD a day"),
    ];
    for (standing, why) in cases {
        let (runs, skips) = week("0 6 * * *", &rules(), |_| standing.clone(), 0..0);
        assert_eq!((runs.len(), skips.len(), skips[0].as_str()), (0, 7, why));
    }
    let unknown = Facts { free_memory_mb: None, ..facts() };
    assert_eq!(
        week("0 6 * * *", &rules(), |_| unknown.clone(), 0..0).0.len(),
        7,
        "who does not know does not forbid"
    );
    let changed = Rules { only_if_changed: true, ..rules() };
    let from_friday = |minute: i64| Facts { inputs: (minute > 4 * 24 * 60).to_string(), ..facts() };
    let (runs, skips) = week("0 6 * * *", &changed, from_friday, 0..0);
    assert_eq!((runs.len(), skips.len()), (2, 5), "the first, and when something changed");
    assert_eq!(skips[0], "nothing has changed since the last run");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9*/,a-z -]{0,30}") {
        if let Ok(cron) = Cron::parse(&text) {
            let first = cron.next(Timestamp(MONDAY), &Utc);
            prop_assert!(first.is_none_or(|at| at.0 > MONDAY && at.0 % MINUTE == 0));
        }
    }
}

#[test]
fn jitter_puts_off_by_less_than_its_span() {
    for minutes in [1, 7, 59] {
        let late = Rules { jitter: Duration::from_secs(minutes * 60), ..rules() };
        let (runs, skips) = week("0 6 * * *", &late, |_| facts(), 0..0);
        assert!(skips.is_empty() && runs.len() == 7);
        for (day, minute) in runs.iter().enumerate() {
            let off = minute - i64::try_from(day).unwrap() * 24 * 60 - 360;
            assert!(off >= 0 && off <= i64::try_from(minutes).unwrap(), "{off}");
        }
    }
}
