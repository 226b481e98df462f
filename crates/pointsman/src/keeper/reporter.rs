//! Reports of a turn to the daemon: the same reports as hooks make, in the same way.

use pointsman_core::claude::stream::{Ended, Measured, TurnEvent};
use pointsman_core::hook::{HookEvent, Report, SAID_BYTES, message_ids};
use pointsman_core::session::budget::Spent;
use pointsman_core::text::clean_block;

use super::Keep;
use crate::daemon::{Launch, clock};
use crate::paths::Paths;
use crate::report::tell;

/// Speaks for one session.
pub(super) struct TurnReporter {
    session: String,
    /// None if nobody wants to hear it.
    paths: Option<Paths>,
    told: u64,
    spent: Spent,
    /// What the agent said last.
    spoke: Option<String>,
}

impl TurnReporter {
    pub(super) fn new(launch: &Launch, keep: &Keep) -> anyhow::Result<Self> {
        let paths = Paths::from_env(|name| launch.env.get(name).map(Into::into))?;
        let paths = keep.told.then_some(paths);
        Ok(Self { session: keep.session.clone(), paths, told: 0, spent: Spent::default(), spoke: None })
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

    /// When it is over. One that died is told by the keeper's own end.
    pub(super) fn ended(&mut self, prompt: &str, ended: &Ended, begun: bool) {
        match ended {
            Ended::Over(measured) => {
                if !begun {
                    // A program that says nothing has read it all the same.
                    self.prompted(prompt);
                }
                self.measured(measured);
                let said = self.spoke.take();
                self.tell(HookEvent::Stopped { busy: false, messages: Vec::new(), used_tokens: None, said });
            }
            Ended::Failed { error, details, until, measured } => {
                self.measured(measured);
                let (error, details, until) = (error.clone(), details.clone(), *until);
                self.tell(HookEvent::Failed { error, details, until });
            }
            Ended::Died { .. } => {}
        }
    }

    fn prompted(&mut self, prompt: &str) {
        self.tell(HookEvent::Prompted { messages: message_ids(prompt) });
    }

    fn measured(&mut self, measured: &Measured) {
        self.spent = self.spent.plus(measured.spent);
        self.tell(HookEvent::Measured { gauge: measured.gauge, spent: self.spent });
    }

    fn tell(&mut self, told: HookEvent) {
        let Some(paths) = &self.paths else { return };
        self.told += 1;
        let report = Report {
            // One keeper speaks for a session, and counts.
            id: format!("{}-keeper-{}", self.session, self.told),
            session: self.session.clone(),
            at: clock::now(),
            told,
        };
        tell(paths, &report, &|trouble| eprintln!("pointsman keep: {trouble}"));
    }
}
