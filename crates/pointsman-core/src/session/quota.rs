//! The rate limits of an agent's account, as its status line tells them: how much of each window is used, and when it
//! begins anew. All sessions of a project share them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text;
use crate::time::Timestamp;

/// Claude tells two; more than this is something else.
const WINDOWS: usize = 8;
/// However long a window is said to last, it is asked again after a week.
const LONGEST_SECONDS: i64 = 8 * 24 * 3600;

/// Of the name of a window.
const NAME_CHARS: usize = 40;

/// A rate limit of a service and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its name: `five_hour`, `seven_day`.
    pub name: String,
    pub used_permille: u16,
    pub resets_at: Timestamp,
}

/// Reads them off a status line; none if the plan has none, or nothing was asked yet.
pub fn read(status_line: &Value, now: Timestamp) -> Vec<Window> {
    let limits = status_line["rate_limits"].as_object();
    limits
        .into_iter()
        .flatten()
        .filter_map(|(name, limit)| {
            let used = limit["used_percentage"].as_f64().filter(|used| (0.0..=1000.0).contains(used))?;
            let seconds = limit["resets_at"].as_i64()?;
            Some(Window {
                name: name.clone(),
                used_permille: (used.min(100.0) * 10.0).round() as u16,
                resets_at: Timestamp(seconds.checked_mul(1000)?),
            })
        })
        .filter_map(|window| plausible(window, now))
        .take(WINDOWS)
        .collect()
}

/// Those of the windows that can be true, and no more than a service tells. A session reports them, and a limit that it made up
/// would hold up every other session of the project.
pub fn believed(windows: &[Window], now: Timestamp) -> Vec<Window> {
    windows.iter().cloned().filter_map(|window| plausible(window, now)).take(WINDOWS).collect()
}

fn plausible(window: Window, now: Timestamp) -> Option<Window> {
    let now_seconds = now.0.div_euclid(1000);
    let seconds = window.resets_at.0.div_euclid(1000);
    (now_seconds..=now_seconds + LONGEST_SECONDS).contains(&seconds).then(|| Window {
        name: text::clean_line(&window.name, NAME_CHARS),
        used_permille: window.used_permille.min(1000),
        ..window
    })
}

/// The window that is used up to this mark and lasts the longest. One that has begun anew says nothing.
pub fn used_up(windows: &[Window], percent: u32, now: Timestamp) -> Option<&Window> {
    let full = |w: &&Window| u32::from(w.used_permille) >= percent * 10 && w.resets_at > now;
    windows.iter().filter(full).max_by_key(|window| window.resets_at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Window, believed, read, used_up};
    use crate::time::Timestamp;

    const NOW: Timestamp = Timestamp(1_738_400_000_000);

    fn line(five_hour: f64, seven_day: f64) -> serde_json::Value {
        json!({ "rate_limits": {
            "five_hour": { "used_percentage": five_hour, "resets_at": 1_738_425_600 },
            "seven_day": { "used_percentage": seven_day, "resets_at": 1_738_857_600 },
        } })
    }

    #[test]
    fn windows_are_read_and_the_one_that_lasts_longest_counts() {
        let windows = read(&line(23.5, 41.2), NOW);
        assert_eq!(
            windows[0],
            Window { name: "five_hour".into(), used_permille: 235, resets_at: Timestamp(1_738_425_600_000) }
        );
        assert_eq!(used_up(&windows, 95, NOW), None);
        let full = |a, b| read(&line(a, b), NOW);
        assert_eq!(used_up(&full(95.0, 10.0), 95, NOW).unwrap().name, "five_hour");
        assert_eq!(used_up(&full(100.0, 99.9), 95, NOW).unwrap().name, "seven_day");
        let later = Timestamp(1_738_425_600_000);
        assert_eq!(used_up(&full(100.0, 10.0), 95, later), None, "it has begun anew");
    }

    #[test]
    fn what_is_odd_or_missing_says_nothing() {
        let odd = |limit| json!({ "rate_limits": { "x": limit } });
        for value in [
            json!(null),
            json!({ "rate_limits": null }),
            odd(json!({ "used_percentage": null, "resets_at": 1_738_425_600 })),
            odd(json!({ "used_percentage": -1, "resets_at": 1_738_425_600 })),
            odd(json!({ "used_percentage": 100 })),
            odd(json!({ "used_percentage": 100, "resets_at": 5 })),
            odd(json!({ "used_percentage": 100, "resets_at": 9_999_999_999_i64 })),
        ] {
            assert_eq!(read(&value, NOW), [], "{value}");
        }
    }

    #[test]
    fn a_limit_that_a_session_made_up_does_not_last_for_ever() {
        let now = Timestamp(1_738_400_000_000);
        let window = |name: &str, used_permille, resets_at| Window {
            name: name.to_owned(),
            used_permille,
            resets_at: Timestamp(resets_at),
        };
        let day = 24 * 3600 * 1000;
        let told = [
            window("five_hour", 1000, now.0 + 1000),
            window("far\u{202e}away", 65_535, now.0 + 7 * day),
            window("for_ever", 1000, i64::MAX),
            window("next_year", 1000, now.0 + 365 * day),
            window("over", 1000, now.0 - day),
        ];
        assert_eq!(believed(&told, now), [told[0].clone(), window("faraway", 1000, now.0 + 7 * day)]);
        assert_eq!(believed(&vec![told[0].clone(); 1000], now).len(), 8);
    }
}
