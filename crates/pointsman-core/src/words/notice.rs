//! Notices to the people on duty.

use crate::snapshot::Unreadable;
use crate::task::{Notice, Task};
use crate::text;

/// How much of an agent's response people read along.
const RESPONSE_BYTES: usize = 2500;

fn about(task: &Task) -> String {
    let pr = task.pr.map(|n| format!(", pull request #{n}")).unwrap_or_default();
    format!("issue #{} of {}{pr}: {}", task.key.issue, task.key.project, text::clean_line(&task.title, 120))
}

fn because(task: &Task) -> &str {
    task.reason.as_deref().unwrap_or("no reason was given")
}

fn notice(title: String, body: String, urgent: bool) -> Notice {
    Notice { title, body, urgent, repeat: 0 }
}

/// A person is asked.
pub fn escalated(task: &Task, repeat: u32) -> Notice {
    let again = if repeat > 0 { format!(" (asked {} times)", repeat + 1) } else { String::new() };
    Notice {
        title: format!("{} needs a person{again}", task.key),
        body: format!(
            "{}\nWhy: {}\nAnswer: pointsman task answer {} \"…\", or comment on the issue\nLook: pointsman \
             session attach {}",
            about(task),
            because(task),
            task.key.issue,
            task.key.issue
        ),
        urgent: true,
        repeat,
    }
}

/// A snapshot cannot be read.
pub fn unreadable(unreadable: &Unreadable) -> Notice {
    let Unreadable { what, project, name, .. } = unreadable;
    notice(
        format!("{what} {name} of {project} stands still"),
        format!(
            "{}\nNothing was changed, and everything else goes on. A newer program may have written it: start that \
             one again, or go back to a copy of the database. `pointsman doctor` lists what cannot be read.",
            super::reason::unreadable(unreadable)
        ),
        true,
    )
}

/// A task is blocked.
pub fn blocked(task: &Task) -> Notice {
    notice(
        format!("{} is blocked", task.key),
        format!(
            "{}\nWhy: {}\nAgain: remove the label blocked, or: pointsman task start {}",
            about(task),
            because(task),
            task.key.issue
        ),
        true,
    )
}

/// An agent refused a task.
pub fn refused(task: &Task) -> Notice {
    notice(format!("{} was refused", task.key), format!("{}\nWhy: {}", about(task), because(task)), false)
}

/// The phase file cannot be used.
pub fn phase_rejected(task: &Task, reason: &str) -> Notice {
    notice(
        format!("{} signals something unusable", task.key),
        format!("{}\n{reason}\nThe session goes on; nothing was done with it.", about(task)),
        true,
    )
}

/// Closed under us.
pub fn closed_by_someone(task: &Task) -> Notice {
    notice(
        format!("{} was closed while a session worked on it", task.key),
        format!("{}\nThe session was ended; its work is in pointsman rescue list.", about(task)),
        false,
    )
}

/// Something cannot be done.
pub fn gave_up(task: &Task, reason: &str) -> Notice {
    notice(format!("{}: {reason}", task.key), about(task), true)
}

/// Money or tokens run low.
pub fn budget(task: &Task, what: &str) -> Notice {
    notice(
        format!("{}: a budget runs low", task.key),
        format!("{}\n{}\nNothing new starts; what runs goes on.", about(task), text::clean_line(what, 300)),
        true,
    )
}

/// An agent's words at the end of a turn.
pub fn response(task: &Task, said: &str) -> Notice {
    notice(format!("{} says", task.key), text::clean_block(said, RESPONSE_BYTES), false)
}

/// An agent whose hooks do not work.
pub fn hooks_silent(task: &Task) -> Notice {
    notice(
        format!("{} is not supervised by its hooks", task.key),
        format!(
            "{}\nThe agent has not reported since its start: its hooks do not work. It goes on, followed by its phase \
             file and its terminal alone.\nLook: pointsman doctor",
            about(task)
        ),
        false,
    )
}
