//! The daemon's second connection to the store, for everything that reads beside the loop.

use std::sync::{Mutex, PoisonError};

use pointsman_store::Store;

/// The store for reading, shared by threads.
///
/// Its lock is not handed out. The loop reads here too: a thread that kept the lock while it waited for the loop would
/// wait forever, and a guard in the head of an `if let`, a `for` or a `match` lives as long as the body.
pub(crate) struct Reader(Mutex<Store>);

impl Reader {
    /// Shares a connection that nobody else uses.
    pub(crate) fn new(store: Store) -> Self {
        Self(Mutex::new(store))
    }

    /// Asks the store. The question must not wait for anything else.
    pub(crate) fn read<T>(&self, question: impl FnOnce(&Store) -> T) -> T {
        question(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
