//! Waiting in tests: never a fixed sleep, always an end.

use std::time::{Duration, Instant};

/// Between two looks: short enough not to be felt, long enough not to be a load.
const LOOK: Duration = Duration::from_millis(5);

/// Looks until there is something to see, and answers it.
///
/// # Panics
///
/// When `limit` has passed; `what` says what was waited for.
#[track_caller]
pub fn eventually<T>(what: &str, limit: Duration, look: impl FnMut() -> Option<T>) -> T {
    within(limit, look).unwrap_or_else(|| panic!("waited {limit:?} in vain: {what}"))
}

/// The same for who must not panic: nothing when `limit` has passed.
pub fn within<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        match look() {
            Some(seen) => return Some(seen),
            None if Instant::now() >= deadline => return None,
            None => std::thread::park_timeout(LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::eventually;

    #[test]
    fn the_first_thing_seen_is_the_answer() {
        let mut looks = 0;
        let answer = eventually("the third look", Duration::from_secs(10), || {
            looks += 1;
            (looks == 3).then_some("there")
        });
        assert_eq!((answer, looks), ("there", 3));
    }

    #[test]
    #[should_panic(expected = "waited 20ms in vain: a miracle")]
    fn waiting_has_an_end() {
        eventually("a miracle", Duration::from_millis(20), || None::<()>);
    }
}
