//! A session that asked for a person hears the answer to its question, once.

use pointsman_adapters::driver::{AgentInput, Sent};
use pointsman_core::chat::Reply;
use pointsman_core::notifier::Topic;
use pointsman_core::part::question::QuestionId;
use pointsman_core::run::Run;
use pointsman_core::words;

use super::session::RunSessionFiles;
use crate::daemon::effects::{EffectError, EffectPerformer, epoch, write};
use crate::daemon::inbound::Inbox;
use crate::daemon::notifier::{self, NotifierReport};

/// Types what was said since, one line each, and has it written down as taken. Whoever dies in between types the same
/// line again, which its terminal then knows.
pub(super) fn pass_on(
    world: &EffectPerformer,
    inbox: &Inbox,
    session_files: &RunSessionFiles,
    run: &Run,
    answered: QuestionId,
) -> anyhow::Result<()> {
    let topic = Topic::Question(answered);
    let waiting = world.read(|store| store.replies(&run.project, &topic))?;
    for row in waiting.into_iter().filter(|row| row.said.reply == Reply::Text) {
        let Some(running) = world.drivers.find(&run.identity())? else { return Ok(()) };
        let (subject, details) = words::message::answer(&row.said.by, &row.said.words);
        let path = session_files.inbox(run.generation).join(format!("reply-{}.md", row.id));
        write(&path, details.as_bytes()).map_err(EffectError::into_error)?;
        let line = words::run::answer(row.id, &subject, &path.to_string_lossy());
        let operation = format!("reply-{}", row.id);
        let epoch = epoch(&run.session(run.generation));
        let words = AgentInput { operation: &operation, text: &line, last: false };
        match world.drivers.say(&run.identity(), &running, &epoch, &words)? {
            Sent::Sent | Sent::Duplicate => notifier::send(inbox, NotifierReport::Taken { reply: row.id }),
            // Its successor asks again, if it still has to.
            Sent::StaleEpoch | Sent::Dead | Sent::Refused => return Ok(()),
        }
    }
    Ok(())
}
