//! What an agent's own hooks tell: turns that failed, dialogs that wait, hooks that do not work.

use super::{Draft, Refused};
use crate::hook;
use crate::session::trouble::OutsideTrouble;
use crate::task::phase::Phase;
use crate::task::state::{EscalationCause, State};
use crate::time::Timestamp;
use crate::words;

impl Draft<'_> {
    /// A turn that its service cut off. It never counts against a phase that ends the work, nor while nothing is
    /// expected of the agent.
    pub(super) fn turn_failed(
        &mut self,
        generation: u32,
        error: &str,
        details: &str,
        until: Option<Timestamp>,
    ) -> Result<(), Refused> {
        self.is_current(generation)?;
        if matches!(self.task.phase, Some(Phase::Done | Phase::Failed)) {
            return Err(Refused::NotNow("a final phase is not taken back by an error".to_owned()));
        }
        if self.task.state != State::Working {
            return Err(Refused::NotNow(format!("a {} task expects nothing of its agent", self.task.state)));
        }
        match hook::trouble(error, details) {
            Some(kind) => self.park(&OutsideTrouble::told(kind, until, self.now)),
            None => self.escalate(EscalationCause::Daemon, words::reason::turn_failed(error, details)),
        }
        Ok(())
    }

    /// Nobody presses a key for a person: a person is asked, and sees what the terminal shows.
    pub(super) fn dialog_seen(&mut self, generation: u32, what: &str, picture: &str) -> Result<(), Refused> {
        self.is_current(generation)?;
        if !self.task.state.has_session() || matches!(self.task.state, State::Merged | State::Escalated) {
            return Err(Refused::NotNow(format!("a {} task asks nobody now", self.task.state)));
        }
        self.leave_queue();
        self.escalate(EscalationCause::Daemon, words::reason::dialog(what));
        if !picture.trim().is_empty() {
            self.comment("dialog", words::comment::picture(picture));
        }
        Ok(())
    }

    /// The session goes on, but nobody may rely on being told anything by it.
    pub(super) fn hooks_silent(&mut self, generation: u32) -> Result<(), Refused> {
        self.is_current(generation)?;
        self.notify(words::notice::hooks_silent(&self.task));
        Ok(())
    }
}
