//! The blow of one story: the daemon is killed in the middle of it and started again. All the other stories
//! go on meanwhile; none of them may notice.

use std::time::{Duration, Instant};

use pointsman_core::task::State;

use super::interrupt::Interrupt;
use super::people::Filed;
use super::stage::Stage;
use super::stories::DAEMON_KILLED;
use super::watch::Seen;

/// Whether it was struck, and what must be the same afterwards.
#[derive(Debug, Default)]
pub(super) struct Blow {
    struck: Option<Option<u32>>,
    /// Since when no daemon runs.
    down: Option<Instant>,
}

impl Blow {
    /// Kills the daemon, once, when the story is in its middle: its agent waits for an answer, and nobody has given it yet.
    /// Answers whether it did.
    pub(super) fn strike(&mut self, stage: &mut Stage, filed: &Filed, seen: &Seen) -> anyhow::Result<bool> {
        let middle = filed.story == DAEMON_KILLED && seen.state() == Some(State::Escalated);
        if self.struck.is_some() || !middle {
            return Ok(false);
        }
        self.struck = Some(pid(seen));
        stage.kill_daemon()?;
        self.down = Some(Instant::now());
        Ok(true)
    }

    /// Whether people wait with their word: while no daemon runs, and about this story until it was struck.
    pub(super) fn holds_up(&self, filed: &Filed) -> bool {
        self.is_down() || (filed.story == DAEMON_KILLED && self.struck.is_none())
    }

    /// Whether no daemon runs because of the blow.
    pub(super) fn is_down(&self) -> bool {
        self.down.is_some()
    }

    /// Starts another daemon once there was none for so long. Answers whether it did.
    pub(super) fn recover(
        &mut self,
        stage: &mut Stage,
        interrupt: &Interrupt,
        after: Duration,
    ) -> anyhow::Result<bool> {
        if self.down.is_none_or(|since| since.elapsed() < after) {
            return Ok(false);
        }
        self.down = None;
        stage.start_daemon(interrupt)?;
        Ok(true)
    }

    /// What is otherwise than it should be, in the end.
    pub(super) fn trouble(&self, filed: &Filed, seen: &Seen) -> Option<String> {
        match self.struck {
            _ if filed.story != DAEMON_KILLED => None,
            None => Some("the daemon was never killed".to_owned()),
            Some(before) if before.is_none() || before != pid(seen) => {
                Some(format!("the session was {before:?} before the daemon died and is {:?}", pid(seen)))
            }
            Some(_) => None,
        }
    }
}

/// The process of the newest session.
fn pid(seen: &Seen) -> Option<u32> {
    seen.sessions.last()?.pid
}

#[cfg(test)]
mod tests {
    use super::Blow;
    use crate::demo::people::{Filed, Part};
    use crate::demo::stories::{DAEMON_KILLED, STORIES};
    use crate::demo::watch::{Seen, SeenSession};

    #[test]
    fn another_process_after_the_blow_is_trouble_and_so_is_no_blow() {
        let story = STORIES.iter().find(|s| s.name == DAEMON_KILLED).unwrap();
        let filed = Filed {
            part: Part { project: "shop", issue: 3 },
            story: story.name,
            act: &story.acts[0],
            after: None,
            order: story.order,
        };
        let sessions = vec![SeenSession { pid: Some(7), exit: None }];
        let seen = Seen { sessions, ..Seen::default() };
        assert!(Blow::default().trouble(&filed, &seen).is_some());
        assert!(Blow { struck: Some(Some(8)), down: None }.trouble(&filed, &seen).is_some());
        assert_eq!(Blow { struck: Some(Some(7)), down: None }.trouble(&filed, &seen), None);
        let other = Filed { story: "clean", ..filed };
        assert_eq!(Blow::default().trouble(&other, &seen), None);
    }
}
