//! Reports of a turn to the daemon: the same reports as hooks make, in the same way.

use pointsman_core::claude::stream::{Ended, Measured, TurnEvent};
use pointsman_core::hook::{HookEvent, Report, SAID_BYTES, message_ids};
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::Gauge;
use pointsman_core::text::clean_block;

use super::Keep;
use crate::control::protocol::{Reply, Request};
use crate::daemon::{Launch, clock};
use crate::paths::Paths;
use crate::report::{ask, tell};

/// Speaks for one session.
pub(super) struct TurnReporter {
    session: String,
    paths: Paths,
    /// Whether anybody wants to hear of its turns. What it spends is always told.
    heard: bool,
    told: u64,
    /// In the turns that are over.
    spent: Spent,
    /// In the present one, as it was told last.
    in_turn: Spent,
    /// What the agent said last.
    spoke: Option<String>,
}

impl TurnReporter {
    pub(super) fn new(launch: &Launch, keep: &Keep) -> anyhow::Result<Self> {
        let paths = Paths::from_env(|name| launch.env.get(name).map(Into::into))?;
        let (session, heard, nothing) = (keep.session.clone(), keep.told, Spent::default());
        Ok(Self { session, paths, heard, told: 0, spent: nothing, in_turn: nothing, spoke: None })
    }

    /// While the turn runs. That a tool is about to be used is told by a hook, where there is one.
    pub(super) fn said(&mut self, prompt: &str, said: &TurnEvent) {
        match said {
            TurnEvent::Begun { conversation, model } => {
                let source = "headless".to_owned();
                self.tell(HookEvent::Started {
                    source,
                    conversation: conversation.clone(),
                    model: model.clone(),
                });
                self.prompted(prompt);
            }
            TurnEvent::Did { work, .. } => {
                self.tell(HookEvent::Tool { work: *work, done: true, used_tokens: None })
            }
            TurnEvent::Spoke { text } => self.spoke = Some(clean_block(text, SAID_BYTES)),
            TurnEvent::Uses { .. } | TurnEvent::Retries { .. } | TurnEvent::Malformed => {}
        }
    }

    /// What the turn has used so far: a limit holds between two requests, not only between two turns.
    pub(super) fn used(&mut self, in_turn: Spent) {
        if in_turn.tokens > self.in_turn.tokens {
            self.in_turn = in_turn;
            self.measured(None, self.spent.plus(in_turn));
        }
    }

    /// When it is over. One that died is told by the keeper's own end.
    pub(super) fn ended(&mut self, prompt: &str, ended: &Ended, begun: bool) {
        match ended {
            Ended::Over(measured) => {
                if !begun {
                    // A program that says nothing has read it all the same.
                    self.prompted(prompt);
                }
                self.turn_measured(measured);
                let said = self.spoke.take();
                self.tell(HookEvent::Stopped { busy: false, messages: Vec::new(), used_tokens: None, said });
            }
            Ended::Failed { error, details, until, measured } => {
                self.turn_measured(measured);
                let (error, details, until) = (error.clone(), details.clone(), *until);
                self.tell(HookEvent::Failed { error, details, until });
            }
            Ended::Died { .. } => {}
        }
    }

    fn prompted(&mut self, prompt: &str) {
        self.tell(HookEvent::Prompted { messages: message_ids(prompt) });
    }

    fn turn_measured(&mut self, measured: &Measured) {
        self.spent = self.spent.plus(measured.spent);
        self.in_turn = Spent::default();
        self.measured(measured.gauge, self.spent);
    }

    fn measured(&mut self, gauge: Option<Gauge>, spent: Spent) {
        if self.heard {
            return self.tell(HookEvent::Measured { gauge, spent });
        }
        let quota = Vec::new();
        let request = Request::Measure { session: self.session.clone(), gauge, spent: Some(spent), quota };
        // It is a sum: the next one makes up for one that nobody took.
        match ask(&self.paths, &request) {
            Ok(Reply::Done { .. }) => {}
            Ok(Reply::Failed { message, .. }) => eprintln!("pointsman keep: {message}"),
            Err(error) => eprintln!("pointsman keep: {error}"),
        }
    }

    fn tell(&mut self, told: HookEvent) {
        if !self.heard {
            return;
        }
        self.told += 1;
        let report = Report {
            // One keeper speaks for a session, and counts.
            id: format!("{}-keeper-{}", self.session, self.told),
            session: self.session.clone(),
            at: clock::now(),
            told,
        };
        tell(&self.paths, &report, &|trouble| eprintln!("pointsman keep: {trouble}"));
    }
}
