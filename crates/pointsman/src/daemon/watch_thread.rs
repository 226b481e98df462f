//! A thread that looks, again and again, what is to be done, and at once when it is nudged.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Without a nudge it looks this often: files come unannounced, processes end, time passes.
const LOOK: Duration = Duration::from_secs(2);

/// Wakes the thread.
#[derive(Default)]
pub(crate) struct WatchThread {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Default)]
struct Wanted {
    look: bool,
    stop: bool,
}

impl WatchThread {
    /// Look now: something moved.
    pub(crate) fn nudge(&self) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).look = true;
        self.changed.notify_all();
    }

    /// End the thread after its present look.
    pub(crate) fn stop(&self) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
        self.changed.notify_all();
    }

    /// Starts the thread.
    pub(crate) fn start(
        self: &Arc<Self>,
        name: &str,
        mut look: impl FnMut() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let lookout = Arc::clone(self);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            loop {
                look();
                let wanted = lookout.wanted.lock().unwrap_or_else(PoisonError::into_inner);
                let (mut wanted, _) = lookout
                    .changed
                    .wait_timeout_while(wanted, LOOK, |wanted| !wanted.look && !wanted.stop)
                    .unwrap_or_else(PoisonError::into_inner);
                if wanted.stop {
                    return;
                }
                wanted.look = false;
            }
        })
    }
}
