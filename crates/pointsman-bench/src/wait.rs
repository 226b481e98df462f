//! Waiting with an end.

use std::time::{Duration, Instant};

use anyhow::ensure;

/// Between two looks: the finest that a measured time may depend on.
const LOOK: Duration = Duration::from_millis(1);

/// Looks until there is something to see.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(seen) = look()? {
            return Ok(seen);
        }
        ensure!(Instant::now() < deadline, "waited {limit:?} in vain for {what}");
        std::thread::park_timeout(LOOK);
    }
}

/// Lets time pass.
pub(crate) fn pause(span: Duration) {
    let deadline = Instant::now() + span;
    while let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}
