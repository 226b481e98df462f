//! Notices to the people on duty.

use crate::health::tail;
use crate::ids::ProjectName;
use crate::ids::Sha;
use crate::part::question::Cause;
use crate::queue::EntryId;
use crate::snapshot::Unreadable;
use crate::task::{Ci, Notice, Task};
use crate::text;

/// The most lines of a log in a notice.
const LOG_LINES: usize = 15;
/// The most files that a notice names.
const FILES: usize = 5;
/// How much of an agent's response people read along.
const RESPONSE_BYTES: usize = 2500;

fn about(task: &Task) -> String {
    let pr = task.contribution.pr().map(|n| format!(", pull request #{n}")).unwrap_or_default();
    format!("issue #{} of {}{pr}: {}", task.key.issue, task.key.project, text::clean_line(&task.title, 120))
}

fn because(task: &Task) -> &str {
    task.reason.as_deref().unwrap_or("no reason was given")
}

/// The last lines of a log as people get them in a notice: short, and without what looks like a secret.
pub fn log_end(log: &str) -> String {
    tail("", log, true, LOG_LINES).lines.join("\n")
}

/// The end of a log below a notice; nothing if there is none.
fn with_log(log_end: &str) -> String {
    match log_end.is_empty() {
        true => String::new(),
        false => format!("\nThe end of the log:\n{log_end}"),
    }
}

/// The end of a whole log, below a text.
pub(super) fn log_block(log: &str) -> String {
    with_log(&log_end(log))
}

/// The log of the last run, where a question or a block is about it.
fn ci_log(task: &Task) -> String {
    let asks_about_ci =
        task.escalation.as_ref().is_none_or(|asked| matches!(asked.cause, Cause::Ci | Cause::Hosts));
    match (task.contribution.ci(), asks_about_ci) {
        (Ci::Failed { .. } | Ci::TimedOut, true) => with_log(task.contribution.log_end()),
        (Ci::None | Ci::Pending { .. } | Ci::Passed | Ci::Failed { .. } | Ci::TimedOut, _) => String::new(),
    }
}

/// A branch of a person is out of the merge queue.
pub struct TakenOut<'a> {
    pub project: &'a ProjectName,
    pub entry: EntryId,
    pub branch: &'a str,
    /// `red`, `conflict` or `stale`.
    pub status: &'a str,
    pub reason: Option<&'a str>,
    pub files: &'a [String],
    pub log: &'a str,
    pub log_path: Option<&'a str>,
}

/// A branch that no task is about is out of the merge queue.
pub fn taken_out(out: &TakenOut<'_>) -> Notice {
    let TakenOut { project, entry, branch, status, reason, files, log, log_path } = out;
    let branch = text::clean_line(branch, 120);
    let mut body = reason.map(|why| format!("Why: {}\n", text::clean_line(why, 600))).unwrap_or_default();
    let named: Vec<String> = files.iter().take(FILES).map(|file| text::clean_line(file, 120)).collect();
    if !named.is_empty() {
        body += &format!("Files: {}\n", named.join(", "));
    }
    body += &format!(
        "To see more, run `pointsman merge-queue show {entry}`.\nTo test it again, run `pointsman \
        merge-queue retest {entry}`."
    );
    if let Some(path) = log_path {
        body += &format!("\nLog: {}", text::clean_line(path, 300));
    }
    body += &with_log(&log_end(log));
    notice(format!("{branch} was removed from the merge queue of {project}: {status}"), body, false)
}

/// Commits that people pushed to main are taken as they are.
pub fn outside_push(project: &ProjectName, what: &str, by: Option<&str>) -> Notice {
    let by = by.map(|by| format!("\nPushed by: {}", text::clean_line(by, 100))).unwrap_or_default();
    let body = format!(
        "{}{by}\nThe merge queue continues from there and runs its gate on it.\nTo pause it instead, set \
            merge.outside_pushes = \"pause\".",
        text::clean_line(what, 1000)
    );
    notice(format!("Somebody pushed to main of {project}"), body, false)
}

fn notice(title: String, body: String, urgent: bool) -> Notice {
    Notice { title, body, urgent, repeat: 0 }
}

/// A person is asked.
pub fn escalated(task: &Task, repeat: u32) -> Notice {
    let again = if repeat > 0 { format!(" (asked {} times)", repeat + 1) } else { String::new() };
    let wants_review = task.escalation.as_ref().is_some_and(|asked| asked.cause == Cause::Review);
    let pr = task.contribution.pr().filter(|_| wants_review);
    let answer = match (super::question::is_yes_or_no(task.escalation.as_ref()), pr) {
        (true, _) => "To decide, run `pointsman inbox`.".to_owned(),
        (false, Some(pr)) => {
            format!(
                "To review it, run `pointsman forge pr review {pr} --approve`, or with --request-changes."
            )
        }
        (false, None) => format!(
            "To answer, run `pointsman task answer {} \"…\"`, or comment on the issue.",
            task.key.issue
        ),
    };
    Notice {
        title: format!("{} needs a person{again}", task.key),
        body: format!(
            "{}\nWhy: {}\n{answer}\nTo watch it, run `pointsman session attach {}`.{}",
            about(task),
            because(task),
            task.key.issue,
            ci_log(task)
        ),
        urgent: true,
        repeat,
    }
}

/// A snapshot cannot be read.
pub fn unreadable(unreadable: &Unreadable) -> Notice {
    let Unreadable { what, project, name, .. } = unreadable;
    notice(
        format!("{what} {name} of {project} has stopped"),
        format!(
            "{}\nNothing was changed, and everything else continues. A newer version may have written it: start \
                that version again, or restore a backup of the database. `pointsman doctor` lists what cannot be \
                read.",
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
            "{}\nWhy: {}\nTo try again, remove the label `blocked` or run `pointsman task start {}`.{}",
            about(task),
            because(task),
            task.key.issue,
            ci_log(task)
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
        format!("{} wrote an unusable phase", task.key),
        format!("{}\n{reason}\nThe session continues; the phase was ignored.", about(task)),
        true,
    )
}

/// CI was red and then green on the same commit.
pub fn flaky(task: &Task, sha: &Sha) -> Notice {
    notice(
        format!("{}: CI is flaky", task.key),
        format!(
            "{}\nCI failed on {} and passed when it ran again on the same commit. The second run counts, and the agent was not told.\n\
             pointsman ci logs {} shows what both runs printed.",
            about(task),
            sha.short(),
            task.key.issue
        ),
        false,
    )
}

/// Closed under us.
pub fn closed_by_someone(task: &Task) -> Notice {
    notice(
        format!("{} was closed while a session worked on it", task.key),
        format!("{}\nThe session has ended. `pointsman rescue list` shows its work.", about(task)),
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
        format!("{}: a budget is running low", task.key),
        format!(
            "{}\n{}\nNothing new starts; running work continues.",
            about(task),
            text::clean_line(what, 300)
        ),
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
            "{}\nThe agent's hooks have not reported since it started, so they do not work. It continues, \
                supervised only by its phase file and its terminal.\nTo find out why, run `pointsman doctor`.",
            about(task)
        ),
        false,
    )
}
