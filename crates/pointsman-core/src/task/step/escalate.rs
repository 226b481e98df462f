//! Asking a person, and the person's answer.

use super::{Draft, Refused};
use crate::task::effect::{Effect, Headline};
use crate::task::state::{Escalation, EscalationCause, State};
use crate::words;

impl Draft<'_> {
    pub(super) fn escalate(&mut self, cause: EscalationCause, reason: String) {
        self.enter(State::Escalated);
        self.task.reason = Some(reason.clone());
        self.task.escalation = Some(Escalation {
            cause,
            reason,
            at: self.now,
            renotify_at: self.now.after(self.policy.escalation_renotify),
            notices: 1,
        });
        self.notify(words::notice::escalated(&self.task, 0));
        let marker = format!("escalation-{}-{}", self.task.generation, self.now.0);
        self.order(Effect::Comment { marker, body: words::comment::escalated(&self.task) });
    }

    pub(super) fn notify_again(&mut self) {
        let Some(escalation) = &mut self.task.escalation else { return };
        let repeat = escalation.notices;
        escalation.notices += 1;
        escalation.renotify_at = self.now.after(self.policy.escalation_renotify);
        self.notify(words::notice::escalated(&self.task, repeat));
    }

    pub(super) fn answered(&mut self, by: &str, text: &str) -> Result<(), Refused> {
        if self.task.state != State::Escalated {
            return Err(Refused::NotNow(format!(
                "nobody asked: the task is {}, only an escalated one takes an answer",
                self.task.state
            )));
        }
        self.enter(State::Working);
        let (subject, details) = words::message::answer(by, text);
        self.tell(Headline::Answer, subject, details);
        Ok(())
    }

    pub(super) fn effect_gave_up(&mut self, effect: &str, error: &str) {
        let reason = words::reason::gave_up(effect, error);
        if self.task.state.has_session() && self.task.state != State::Merged {
            self.leave_queue();
            self.escalate(EscalationCause::Daemon, reason);
        } else {
            self.notify(words::notice::gave_up(&self.task, &reason));
        }
    }

    pub(super) fn unacknowledged(&mut self, message: i64, headline: &str) -> Result<(), Refused> {
        if !self.task.state.has_session() || matches!(self.task.state, State::Merged | State::Escalated) {
            return Err(Refused::NotNow(format!("a {} task waits for no message", self.task.state)));
        }
        self.leave_queue();
        self.escalate(EscalationCause::Daemon, words::reason::unacknowledged(message, headline));
        Ok(())
    }
}
