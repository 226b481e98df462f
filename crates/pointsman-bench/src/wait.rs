//! Waiting with an end, and with an ear for Ctrl-C: whatever was started is only stopped by those who return.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::ensure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Between two looks: the finest that a measured time may depend on.
const LOOK: Duration = Duration::from_millis(1);
/// Nobody who pressed Ctrl-C waits longer than this for an answer.
const EAR: Duration = Duration::from_millis(100);

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on signals do not end the process; [`check`] tells of them.
pub(crate) fn hear_signals() -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))?;
    }
    Ok(())
}

/// Fails if somebody wants us to stop.
pub(crate) fn check() -> anyhow::Result<()> {
    ensure!(!INTERRUPTED.load(Ordering::Relaxed), "interrupted");
    Ok(())
}

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
        check()?;
        ensure!(Instant::now() < deadline, "waited {limit:?} in vain for {what}");
        std::thread::park_timeout(LOOK);
    }
}

/// Lets time pass.
pub(crate) fn pause(span: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + span;
    loop {
        check()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::park_timeout(left.min(EAR));
    }
}

/// How long to wait at once for something with this deadline.
pub(crate) fn at_once(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).min(EAR)
}
