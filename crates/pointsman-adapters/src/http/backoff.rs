//! The wait before the next try.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use super::limits::Limits;

/// The pause after the `failed`-th try (from 1), or none if the server asks for a longer one than is waited for.
///
/// Half of it is chance, so that those who failed together do not come back together. What the server asks for is
/// never shortened.
pub(super) fn pause(limits: &Limits, failed: u32, asked: Option<Duration>) -> Option<Duration> {
    let doubled = limits.first_pause.saturating_mul(1 << failed.saturating_sub(1).min(16));
    let full = doubled.min(limits.longest_pause);
    let ours = full / 2 + (full / 2).mul_f64(chance());
    match asked {
        Some(asked) if asked > limits.longest_pause => None,
        Some(asked) => Some(ours.max(asked)),
        None => Some(ours),
    }
}

/// Between nothing and one. The standard library's hasher is seeded by the system; no more is needed for jitter.
fn chance() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{chance, pause};
    use crate::http::Limits;

    #[test]
    fn pauses_double_with_jitter_and_have_an_end() {
        let limits = Limits { first_pause: Duration::from_millis(100), ..Limits::default() };
        for (failed, least, most) in [(1, 50, 100), (2, 100, 200), (3, 200, 400), (30, 2500, 5000)] {
            for _ in 0..50 {
                let pause = pause(&limits, failed, None).unwrap().as_millis();
                assert!((least..=most).contains(&pause), "{failed}: {pause}");
            }
        }
        assert!((0..100).map(|_| chance()).all(|c| (0.0..1.0).contains(&c)));
    }

    #[test]
    fn what_the_server_asks_for_is_kept_or_left_to_the_caller() {
        let limits = Limits::default();
        let asked = Duration::from_secs(4);
        assert_eq!(pause(&limits, 1, Some(asked)), Some(asked));
        assert_eq!(pause(&limits, 1, Some(Duration::from_secs(60))), None);
    }
}
