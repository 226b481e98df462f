//! The backup of the day, made by a thread that nobody waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::clock;
use crate::backups;
use crate::paths::Paths;

/// Between two tries, if one failed.
const PAUSE: Duration = Duration::from_secs(600);

/// Sees to it that there is a backup of each day.
#[derive(Default)]
pub(crate) struct BackingUp {
    running: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
    tried: Option<Instant>,
}

impl BackingUp {
    /// Begins the backup of the day if there is none. `keep` is how many are kept; with 0 none is made.
    pub(crate) fn look(&mut self, paths: &Paths, keep: u32) {
        let now = clock::now();
        let rests =
            self.failed.load(Ordering::Acquire) && self.tried.is_some_and(|tried| tried.elapsed() < PAUSE);
        if keep == 0 || self.running.load(Ordering::Acquire) || backups::has_daily(paths, now) || rests {
            return;
        }
        self.running.store(true, Ordering::Release);
        self.tried = Some(Instant::now());
        let paths = paths.clone();
        let (running, failed) = (Arc::clone(&self.running), Arc::clone(&self.failed));
        let spawned = std::thread::Builder::new().name("backup".to_owned()).spawn(move || {
            let made = backups::make_daily(&paths, keep, now);
            failed.store(made.is_err(), Ordering::Release);
            match made {
                Ok(true) => tracing::info!("the databases were backed up"),
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(error = format!("{error:#}"), "the databases were not backed up")
                }
            }
            running.store(false, Ordering::Release);
        });
        if let Err(error) = spawned {
            self.running.store(false, Ordering::Release);
            self.failed.store(true, Ordering::Release);
            tracing::error!(%error, "the databases were not backed up");
        }
    }
}
