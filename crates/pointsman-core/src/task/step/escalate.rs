//! Asking a person, and the person's answer.

use super::{Draft, Refused};
use crate::part::question::{self, Cause, Kind, Question};
use crate::task::effect::Headline;
use crate::task::state::State;
use crate::words;

/// Kinds of effects that people are told of if they cannot be done, while the work goes on: nothing
/// waits for them. Asking a person orders some of them again, and would go round for ever.
const BESIDE_THE_WORK: [&str; 5] = ["comment", "set_labels", "record_ci_result", "clean_up", CLOSE_ISSUE];
const CLOSE_ISSUE: &str = "close_issue";
const END_SESSION: &str = "end_session";
const NOTIFY: &str = "notify";
const REQUEST_REVIEW: &str = "request_review";

impl Draft<'_> {
    pub(super) fn escalate(&mut self, cause: Cause, reason: String) {
        self.escalate_about(cause, reason, None);
    }

    /// Asks a person. `text` is the question in full, where it is more than its reason.
    pub(super) fn escalate_about(&mut self, cause: Cause, reason: String, text: Option<String>) {
        self.enter(State::Escalated);
        self.task.reason = Some(reason.clone());
        let policy = self.policy.question();
        let kind = match cause {
            Cause::Hosts => Kind::HostAccess,
            Cause::Setup => Kind::Setup,
            Cause::Plan => Kind::Plan,
            Cause::Conflict => Kind::Conflict,
            Cause::Agent | Cause::Ci | Cause::Review | Cause::Daemon => Kind::Question,
        };
        let mut question = Question::ask(kind, cause, self.task.source(), &reason, &policy, self.now);
        if let Some(text) = text {
            question.body = text;
        }
        self.task.deadline = question.expires_at;
        self.task.escalation = Some(question);
        self.notify(words::notice::escalated(&self.task, 0));
        let comment = self.comment("escalation", words::comment::escalated(&self.task));
        if let Some(question) = &mut self.task.escalation {
            question.comment = Some(comment);
        }
    }

    pub(super) fn notify_again(&mut self) {
        let Some(question) = &self.task.escalation else { return };
        let Ok(reminded) = question.step(&question::Event::TimePassed, &self.policy.question(), self.now)
        else {
            return;
        };
        let repeat = question.notices;
        self.task.deadline = reminded.expires_at;
        self.task.escalation = Some(reminded);
        self.notify(words::notice::escalated(&self.task, repeat));
    }

    pub(super) fn answered(&mut self, by: &str, text: &str) -> Result<(), Refused> {
        if self.task.state != State::Escalated {
            return Err(Refused::NotNow(words::task::refused::nobody_asked(self.task.state)));
        }
        if !self.plan_answered(by, text) {
            self.enter(State::Working);
            self.tell(Headline::Answer, words::message::answer(by, text));
        }
        Ok(())
    }

    pub(super) fn effect_gave_up(&mut self, effect: &str, error: &str) {
        if effect == END_SESSION {
            self.cannot_be_ended();
        }
        if effect == CLOSE_ISSUE && self.task.state == State::Closed {
            // Somebody has to see to the issue by hand: what is seen of it from now on counts.
            self.task.block_seen = true;
        }
        if effect == NOTIFY {
            // Nobody can be told that nobody can be told.
            return;
        }
        let reason = words::reason::gave_up(effect, error);
        let stuck = !BESIDE_THE_WORK.contains(&effect)
            && self.task.state.has_session()
            && !matches!(self.task.state, State::Merged | State::Escalated);
        if stuck {
            let cause = if effect == REQUEST_REVIEW { Cause::Review } else { Cause::Daemon };
            self.leave_queue();
            self.escalate(cause, reason);
        } else {
            self.notify(words::notice::gave_up(&self.task, &reason));
        }
    }

    /// Where there should be no session its end is ordered again, after a while.
    fn cannot_be_ended(&mut self) {
        self.task.session.could_not_be_ended();
        if !self.task.state.has_session() {
            self.task.deadline = Some(self.now.after(self.policy.session.restart_backoff_max));
        }
    }
}
