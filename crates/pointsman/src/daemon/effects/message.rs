//! Messages to agents: a file in the inbox, a line on the terminal or the next turn's prompt, an acknowledgement.

use std::fs;

use pointsman_adapters::driver::{AgentInput, Sent, SessionHome};
use pointsman_adapters::secret::known;
use pointsman_core::task::{Effect, Headline};
use pointsman_core::workflow::Workflow;
use pointsman_core::{text, words};
use pointsman_store::{EffectId, MessageRow};

use super::delivery::OutgoingMessage;
use super::session::{epoch, write};
use super::{EffectError, EffectPerformer, Outcome};
use crate::daemon::outcome::Note;
use crate::daemon::served::Served;

/// Which message.
pub(super) struct Message {
    pub(super) id: EffectId,
    pub(super) generation: u32,
    pub(super) headline: Headline,
}

/// A message that is sent once more because nobody acknowledged it.
pub(in crate::daemon) struct Redelivery {
    /// The message as it was sent.
    pub(in crate::daemon) row: MessageRow,
    /// The workflow it belongs to, as it is.
    pub(in crate::daemon) owner: Workflow,
}

/// The result of giving a message again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResendOutcome {
    /// It was given once more.
    Sent,
    /// It had arrived; only nobody had said so.
    Arrived,
    /// It waits in the session's own queue, or nothing can be given now.
    NotNow,
}

impl EffectPerformer {
    pub(super) fn deliver(
        &self,
        served: &Served,
        owner: &Workflow,
        message: &Message,
        subject: &str,
        details: &str,
    ) -> Result<Outcome, EffectError> {
        let inbox = served.files_of(&owner.id()).inbox(message.generation);
        let name = message.headline.text().to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let path = inbox.join(format!("{:04}-{name}.md", message.id.0));
        fs::create_dir_all(&inbox)?;
        write(&path, text::visible(&known().mask(details)).as_bytes())?;
        let line =
            words::message::line(message.id.0, message.headline.text(), subject, &path.to_string_lossy());
        let operation = format!("m-{}-1", message.id);
        let sent = self.give(served, owner, message, &operation, &line)?;
        Ok(match sent {
            Sent::Sent | Sent::Duplicate => Outcome::note(Note::MessageSent { path }),
            // Not pending: what tells a person about it must not wait behind it.
            Sent::Refused => Outcome::note(Note::MessageHeld { path }),
            // The session is gone: its successor finds this in its prompt.
            Sent::StaleEpoch | Sent::Dead => Outcome::note(Note::MessageSuperseded),
        })
    }

    /// Gives a message again, unless the session's own record shows that it has arrived.
    pub(in crate::daemon) fn deliver_again(&self, again: &Redelivery) -> Result<ResendOutcome, EffectError> {
        let Redelivery { row, owner } = again;
        let project = row.workflow.project();
        let Some(served) = self.project(project) else {
            return Err(EffectError::later(words::daemon::request::not_served(project)));
        };
        let running = self.drivers.find(&row.workflow.identity())?;
        if running.is_some_and(|running| running.placed == SessionHome::Headless) {
            // It waits for the turn before it, and is taken in with the next one.
            return Ok(ResendOutcome::NotNow);
        }
        if served.config.agent_kind(owner.role()).capabilities().record {
            let shown = self.shown(&served, owner, row.generation);
            if shown.read.contains(&row.id.0) {
                return Ok(ResendOutcome::Arrived);
            }
            if shown.queued.contains(&row.id.0) {
                return Ok(ResendOutcome::NotNow);
            }
        }
        let path = row.path.as_ref().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let subject = if row.tries > 0 { " (again).".to_owned() } else { self.subject(row.id)? };
        let line = words::message::line(row.id.0, row.headline.text(), &subject, &path);
        let message = Message { id: row.id, generation: row.generation, headline: row.headline };
        let operation = format!("m-{}-{}", row.id, row.tries + 1);
        match self.give(&served, owner, &message, &operation, &line)? {
            Sent::Sent | Sent::Duplicate => Ok(ResendOutcome::Sent),
            Sent::StaleEpoch | Sent::Dead | Sent::Refused => Ok(ResendOutcome::NotNow),
        }
    }

    /// What a message that was held back says after its first words.
    fn subject(&self, id: EffectId) -> Result<String, EffectError> {
        Ok(match self.read(|store| store.effect(id))? {
            Some(Effect::Deliver { subject, .. }) => subject,
            Some(_) | None => ".".to_owned(),
        })
    }

    /// By the way that the agent has: one that can be reached beside its terminal has several, another has its terminal, and
    /// what has none takes it as its next prompt.
    fn give(
        &self,
        served: &Served,
        owner: &Workflow,
        message: &Message,
        operation: &str,
        line: &str,
    ) -> Result<Sent, EffectError> {
        let id = owner.id();
        let identity = id.identity();
        let Message { id: number, generation, headline } = *message;
        let has_doors = served.config.agent_kind(owner.role()).capabilities().message_doors;
        let (session, words) = (
            id.session(generation),
            AgentInput { operation, text: line, last: headline == Headline::SaveAndExit },
        );
        // Most are where they were when they started: one question to tmux less. Whatever else is answered, the session is
        // looked for; the operation keeps words from being typed twice.
        let pane = self.read(|store| store.session(&session))?.and_then(|row| row.pane);
        if let Some(pane) = pane.filter(|_| !has_doors)
            && let Ok(sent @ (Sent::Sent | Sent::Duplicate)) =
                self.drivers.say_in(&pane, &epoch(&session), &words)
        {
            return Ok(sent);
        }
        let Some(running) = self.drivers.find(&identity)? else { return Ok(Sent::Dead) };
        if let (true, Some(pane)) = (has_doors, running.pane()) {
            let running = &running;
            let dispatch = OutgoingMessage {
                served,
                owner,
                session,
                generation,
                running,
                pane,
                headline,
                id: number.0,
                operation,
                line,
            };
            return self.hand_over(&dispatch);
        }
        Ok(self.drivers.say(&identity, &running, &epoch(&session), &words)?)
    }
}
