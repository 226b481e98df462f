//! The ways a task ends.

use super::Draft;
use crate::labels::{BACKLOG, BLOCKED, IN_PROGRESS, UNDERSPECIFIED};
use crate::part::session::Stage;
use crate::task::effect::{Effect, Exit};
use crate::task::phase::{Refusal, RefusalStatus};
use crate::task::state::State;
use crate::words;

impl Draft<'_> {
    /// Merged and told: the session ends, labels go, the issue is closed.
    pub(super) fn finish(&mut self) {
        self.end_session(Exit::Done);
        self.set_labels(&[], &[IN_PROGRESS, BACKLOG, BLOCKED]);
        self.order(Effect::CloseIssue);
        self.order(Effect::CleanUp);
        self.enter(State::Closed);
        self.task.block_seen = false;
    }

    /// Blocked with a diagnosis. The session ends first; nothing after that needs it alive.
    pub(super) fn fail(&mut self, reason: String, exit: Exit) {
        let had_session = self.task.session.stage != Stage::None;
        self.leave_queue();
        self.end_session(exit);
        self.block(reason);
        if had_session {
            self.task.diagnosis_due = true;
        } else {
            self.comment_diagnosis("");
        }
    }

    /// Blocked when the session is gone already and its last lines are at hand.
    pub(super) fn fail_without_session(&mut self, reason: String, tail: &str) {
        self.leave_queue();
        self.block(reason);
        self.comment_diagnosis(tail);
    }

    fn block(&mut self, reason: String) {
        self.set_labels(&[BLOCKED, BACKLOG], &[IN_PROGRESS]);
        self.order(Effect::CleanUp);
        self.enter(State::Blocked);
        self.task.session.restart_at = None;
        self.task.block_seen = false;
        self.task.reason = Some(reason);
        self.notify(words::notice::blocked(&self.task));
    }

    pub(super) fn comment_diagnosis(&mut self, tail: &str) {
        self.comment("blocked", words::comment::diagnosis(&self.task, tail));
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.leave_queue();
        self.end_session(Exit::Failed);
        match refusal.status {
            RefusalStatus::UnmetDependency => self.set_labels(&[BLOCKED, BACKLOG], &[IN_PROGRESS]),
            RefusalStatus::TooLarge => self.set_labels(&[UNDERSPECIFIED], &[IN_PROGRESS, BACKLOG]),
            // A claim: whether it is true, and the issue can be closed, is for a person to say.
            RefusalStatus::AlreadyDone => self.set_labels(&[], &[IN_PROGRESS, BACKLOG]),
        }
        self.order(Effect::CleanUp);
        self.enter(State::Refused);
        self.task.block_seen = false;
        self.task.reason = Some(words::reason::refused(&refusal));
        self.comment("refused", words::comment::refused(&refusal));
        self.notify(words::notice::refused(&self.task));
        self.task.refusal = Some(refusal);
    }
}
