//! Messages to agents: a file in the inbox, a line on the terminal, an acknowledgement.

use std::fs;

use pointsman_adapters::tmux::{self, PaneInfo, Sent};
use pointsman_core::ids::TaskKey;
use pointsman_core::task::{Headline, Task};
use pointsman_core::words;
use pointsman_store::{EffectId, MessageRow};

use super::session::{epoch, write};
use super::{Outcome, RealWorld, Trouble};
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
}

impl RealWorld {
    pub(super) fn deliver(
        &self,
        served: &Served,
        task: &Task,
        message: &Message,
        subject: &str,
        details: &str,
    ) -> Result<Outcome, Trouble> {
        let inbox = served.desk(&task.key).inbox(message.generation);
        let name = message.headline.text().to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let path = inbox.join(format!("{:04}-{name}.md", message.id.0));
        fs::create_dir_all(&inbox)?;
        write(&path, details.as_bytes())?;
        let line =
            words::message::line(message.id.0, message.headline.text(), subject, &path.to_string_lossy());
        let pane = self.pane(&task.key)?;
        if let Some(pane) = &pane {
            self.stands_at_dialog(served, task, pane)?;
        }
        let sent = self.type_line(&task.key, message.generation, &format!("m-{}-1", message.id), &line)?;
        if let (Sent::Sent | Sent::Duplicate, Some(pane)) = (sent, &pane) {
            self.make_sure_it_is_sent(served, task, pane, message.id.0)?;
        }
        Ok(match sent {
            Sent::Sent | Sent::Duplicate => Outcome::note(Note::MessageSent { path }),
            // The session is gone: its successor finds this in its prompt.
            Sent::StaleEpoch | Sent::Dead => Outcome::note(Note::MessageSuperseded),
        })
    }

    /// Types a message again. Whether it was needed shows in an acknowledgement.
    pub(in crate::daemon) fn deliver_again(&self, again: &Redelivery) -> Result<Sent, Trouble> {
        let row = &again.row;
        if let (Some(served), Some(pane)) = (self.project(&row.task.project), self.pane(&row.task)?)
            && let Some((what, _)) = self.dialog(&served, &pane)?
        {
            return Err(Trouble::later(format!("the agent waits at a dialog: {what}")));
        }
        let path = row.path.as_ref().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let line = words::message::line(row.id.0, row.headline.text(), " (again).", &path);
        self.type_line(&row.task, row.generation, &format!("m-{}-{}", row.id, row.tries + 1), &line)
    }

    fn type_line(
        &self,
        key: &TaskKey,
        generation: u32,
        operation: &str,
        line: &str,
    ) -> Result<Sent, Trouble> {
        let Some(pane) = self.pane(key)? else { return Ok(Sent::Dead) };
        Ok(self.tmux.send_message(&pane.pane_id, &epoch(&key.session(generation)), operation, line)?)
    }

    fn pane(&self, key: &TaskKey) -> Result<Option<PaneInfo>, Trouble> {
        match self.tmux.find(&key.identity()) {
            Ok(pane) => Ok(pane),
            Err(tmux::Error::NotRunning { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
