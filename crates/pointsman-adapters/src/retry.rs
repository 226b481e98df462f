//! What a failed operation allows next. Every adapter error answers `retry()` with it, so that the effect runner
//! needs to know nothing about git, tmux or a forge to do the right thing.

/// What may be done about a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Nothing happened; the same call may succeed later.
    Later,
    /// The same call fails again until somebody changes something.
    Never,
    /// It may or may not have happened: look at the world before trying again.
    LookFirst,
}
