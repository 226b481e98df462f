//! Messages to agents: a file in the inbox, a line on the terminal or the next turn's prompt, an acknowledgement.

use std::fs;

use pointsman_adapters::driver::{Placed, Seat, Sent, Words};
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
        let seat = self.drivers.find(&task.key.identity())?;
        if let Some(seat) = &seat {
            self.stands_at_dialog(served, task, seat)?;
        }
        let operation = format!("m-{}-1", message.id);
        let last = message.headline == Headline::SaveAndExit;
        let words = Words { operation: &operation, text: &line, last };
        let sent = self.say(&task.key, message.generation, seat.as_ref(), &words)?;
        if let (Sent::Sent | Sent::Duplicate, Some(seat)) = (sent, &seat) {
            self.make_sure_it_is_sent(served, task, seat, message.id.0)?;
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
        let seat = self.drivers.find(&row.task.identity())?;
        if seat.as_ref().is_some_and(|seat| seat.placed == Placed::Headless) {
            // It waits for the turn before it, and is taken in with the next one.
            return Ok(Sent::Duplicate);
        }
        if let (Some(served), Some(seat)) = (self.project(&row.task.project), &seat)
            && let Some((what, _)) = self.dialog(&served, seat)?
        {
            return Err(Trouble::later(format!("the agent waits at a dialog: {what}")));
        }
        let path = row.path.as_ref().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let line = words::message::line(row.id.0, row.headline.text(), " (again).", &path);
        let operation = format!("m-{}-{}", row.id, row.tries + 1);
        let words = Words { operation: &operation, text: &line, last: false };
        self.say(&row.task, row.generation, seat.as_ref(), &words)
    }

    fn say(
        &self,
        key: &TaskKey,
        generation: u32,
        seat: Option<&Seat>,
        words: &Words<'_>,
    ) -> Result<Sent, Trouble> {
        let Some(seat) = seat else { return Ok(Sent::Dead) };
        Ok(self.drivers.say(&key.identity(), seat, &epoch(&key.session(generation)), words)?)
    }
}
