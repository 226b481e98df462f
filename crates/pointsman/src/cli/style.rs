//! Colours. Whatever a colour says, a word says too; `anstream` removes them where nobody would see them.

use anstyle::{AnsiColor, Style};
use pointsman_core::session::liveness::Colour;
use pointsman_core::task::State;

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BUSY: Style = AnsiColor::Cyan.on_default();
pub(crate) const WAITING: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const ASKING: Style = AnsiColor::Magenta.on_default().bold();
pub(crate) const QUIET: Style = Style::new().dimmed();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const PLAIN: Style = Style::new();

/// The colour of a state.
pub(crate) fn of(state: State) -> Style {
    match state {
        State::Working | State::MergeQueue => BUSY,
        State::AwaitingCi | State::AwaitingReview => WAITING,
        State::Escalated => ASKING,
        State::Blocked | State::Refused => BAD,
        State::Merged | State::Closed => GOOD,
        State::Backlog | State::WaitingDependencies | State::Paused => QUIET,
    }
}

/// The colour of a session at a glance.
pub(crate) fn of_session(colour: Colour) -> Style {
    match colour {
        Colour::Green => GOOD,
        Colour::Yellow => WAITING,
        Colour::Red => BAD,
        Colour::Gray => QUIET,
    }
}
