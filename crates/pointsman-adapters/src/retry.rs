//! The options after a failed operation. Every adapter error answers `retry()` with it, so that the effect runner
//! needs to know nothing about git, tmux or a forge to do the right thing.

/// The advice of an error to its caller. It is part of every error, because only the adapter knows whether the
/// operation may have happened all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Nothing happened; the same call may succeed later.
    Later,
    /// The same call fails again until somebody changes something.
    Never,
    /// It may or may not have happened: look at the world before trying again.
    LookFirst,
}
