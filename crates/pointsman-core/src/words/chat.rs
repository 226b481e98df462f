//! Texts for people in a chat room, beside the notices: invitations to answer, what came of an answer, reports.

use std::time::Duration;

use super::rough;
use crate::chat::Refusal;
use crate::ids::ProjectName;
use crate::notifier::Topic;
use crate::part::question::{Question, QuestionId};
use crate::run::Run;
use crate::task::{Notice, State, Task};
use crate::text::clean_line;
use crate::time::Timestamp;
use crate::vault::{self, ActionId, Entry};

/// Tasks of a report that are told one by one.
const LISTED: usize = 20;

/// An invitation to answer in the thread of a notice; none if nobody is asked.
pub fn invitation(topic: &Topic, question: Option<&str>, urgent: bool) -> Option<String> {
    match topic {
        Topic::Task(_) if urgent => Some("Reply in this thread, and the agent reads it.".to_owned()),
        Topic::Vault(_) => {
            question.map(|_| "Reply APPROVE or REJECT in this thread, alone in a message.".to_owned())
        }
        Topic::Question(_) | Topic::Agent(_) if urgent => {
            Some("Reply in this thread, and the agent reads it.".to_owned())
        }
        Topic::Task(_) | Topic::Question(_) | Topic::Agent(_) | Topic::Room => None,
    }
}

/// The state of a task, for the head of its thread; with whether that is its end.
pub fn standing_of_task(task: &Task) -> (String, bool) {
    let state = match task.state {
        State::Escalated => "needs a person".to_owned(),
        State::Blocked => "is blocked".to_owned(),
        State::Closed => "is closed".to_owned(),
        State::Backlog
        | State::WaitingDependencies
        | State::Working
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Refused
        | State::Paused
        | State::Merged => format!("is {}", task.state.name().replace('_', " ")),
    };
    (format!("{} {state}", task.key), task.state == State::Closed)
}

/// The state of an action, for the head of its thread; with whether that is its end.
pub fn standing_of_action(entry: &Entry) -> (String, bool) {
    let over = matches!(entry.status, vault::Status::Fired | vault::Status::Failed | vault::Status::Rejected);
    let state = match entry.status {
        vault::Status::Pending if entry.awaits_look => "is looked at",
        vault::Status::Pending => "waits for a person",
        vault::Status::Uncertain => "may have been fired, or not",
        vault::Status::Approved => "is approved",
        vault::Status::Firing => "is being fired",
        vault::Status::Fired => "was fired",
        vault::Status::Failed => "failed",
        vault::Status::Rejected => "was rejected",
    };
    (format!("{}: vault action {} {state}", entry.project, entry.id()), over)
}

/// The state of a question, for the head of its thread; with whether that is its end.
pub fn standing_of_question(asked: &Question) -> (String, bool) {
    let project = &asked.source.project;
    let end = match &asked.settled {
        Some(settled) => super::question::ending(settled),
        None => "waits for an answer".to_owned(),
    };
    (format!("{project}: {} {end}", super::question::number(asked.id)), !asked.is_open())
}

/// A line to somebody who said something.
pub fn said(title: impl Into<String>) -> Notice {
    Notice { title: title.into(), body: String::new(), urgent: false, repeat: 0 }
}

/// The agent has the answer it waited for.
pub fn answered(task: &Task) -> Notice {
    said(format!("{} has your answer and continues.", task.key))
}

/// The run has the answer it waited for.
pub fn run_answered(run: &Run) -> Notice {
    said(format!("{}: run {} of {} has your answer and continues.", run.project, run.id, run.formula.name))
}

/// Several questions are open here, and the words name none of them.
pub fn which_question(open: &[QuestionId]) -> Notice {
    let numbers: Vec<String> = open.iter().map(QuestionId::to_string).collect();
    said(format!(
        "Not accepted: questions {} are open here. Reply in the thread of one of them, or begin with its number: \
            question {}: …",
        numbers.join(", "),
        numbers.first().map_or("", String::as_str)
    ))
}

/// The agent hears it by the way.
pub fn passed_on(task: &Task, settled: Option<&str>) -> Notice {
    let told =
        format!("Sent to the agent of {}, which is {}.", task.key, task.state.name().replace('_', " "));
    said(with_end(told, settled))
}

/// Whoever speaks after a question was settled learns who was first.
fn with_end(told: String, settled: Option<&str>) -> String {
    match settled {
        Some(settled) => format!("{told} It did not answer its last question, because that {settled}."),
        None => told,
    }
}

/// There is nobody to hear it.
pub fn nobody_there(task: &Task, settled: Option<&str>) -> Notice {
    let nobody = format!(
        "Nobody will read this: {} is {} and has no session. Wait until it asks, or start it with `pointsman task \
            start {}`.",
        task.key,
        task.state.name().replace('_', " "),
        task.key.issue
    );
    said(with_end(nobody, settled))
}

/// An order was carried out.
pub fn obeyed(task: &Task, order: &str) -> Notice {
    said(format!("{order}: {}.", task.key))
}

/// A question is settled by these words.
pub fn settled(id: QuestionId) -> Notice {
    said(format!("Question {id} is settled."))
}

/// It is kept for an agent.
pub fn kept(agent: &str) -> Notice {
    said(format!("Kept for the {}, which reads it when it asks or runs next.", clean_line(agent, 64)))
}

/// A decision was recorded.
pub fn decided(id: &ActionId, approved: bool) -> Notice {
    said(match approved {
        true => format!("Approved. {id} runs once."),
        false => format!("Rejected. {id} will not run."),
    })
}

/// A decision that was not taken.
pub fn not_taken(why: &str) -> Notice {
    said(format!("Not accepted: {}.", clean_line(why, 400)))
}

/// The action is not what it was when it was asked about.
pub fn changed(entry: &Entry) -> Notice {
    Notice {
        title: format!("Not accepted: vault action {} has changed since the question was asked.", entry.id()),
        body: format!(
            "It is {} now, {}.\nTo see it, run `pointsman vault show {}`.\nIf you still mean it, say it again.",
            entry.status.as_str(),
            super::vault::danger(entry.estimate),
            entry.id()
        ),
        urgent: false,
        repeat: 0,
    }
}

/// A yes that was said too long ago.
pub fn stale(entry: &Entry, limit: Duration) -> Notice {
    Notice {
        title: format!("Not accepted: you wrote that more than {} ago.", super::span(limit)),
        body: format!(
            "If you still mean it, say it again.\nTo see the action, run `pointsman vault show {}`.",
            entry.id()
        ),
        urgent: false,
        repeat: 0,
    }
}

/// Words that came to nothing.
pub fn refused(refusal: &Refusal) -> Notice {
    said(match refusal {
        Refusal::Edited => {
            "Not accepted: that message was edited before it was read. Please write a new one."
        }
        Refusal::NotPlain => {
            "Not accepted: a quoted, formatted or hidden word does not count. Write it again, alone in a message in \
                this thread."
        }
        Refusal::YesOrNo => {
            "Not accepted: write APPROVE or REJECT alone in a message in this thread; a reason may follow REJECT."
        }
        Refusal::AnotherAction => {
            "Not accepted: that is the name or hash of an action that this thread is not about."
        }
        Refusal::Unknown => {
            "There is no such command; !help lists the commands. The agent did not receive this."
        }
        Refusal::NotHere => "Write that in the thread of the task you mean.",
    })
}

/// The words that can be said in a room.
pub fn help() -> Notice {
    Notice {
        title: "What you can say here".to_owned(),
        body: "In a task's thread: anything, its agent reads it; !pause, !resume, !kill (or: kill that agent).\nIn \
            the thread of a vault action: APPROVE, or REJECT with a reason.\nIn a role's thread: anything; ignore \
            disk warning.\nAnywhere: what's stuck?, !status, !help."
            .to_owned(),
        urgent: false,
        repeat: 0,
    }
}

/// The tasks and actions that do not go on without a person.
pub fn stuck<'t>(
    project: &ProjectName,
    tasks: impl Iterator<Item = &'t Task>,
    actions: &[Entry],
    now: Timestamp,
) -> Notice {
    let waiting: Vec<&Task> = tasks
        .filter(|task| match task.state {
            State::Escalated | State::Blocked | State::Refused | State::Paused => true,
            State::Working => task.session.parked_until.is_some(),
            State::Backlog
            | State::WaitingDependencies
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Merged
            | State::Closed => false,
        })
        .collect();
    let asked: Vec<&Entry> = actions.iter().filter(|entry| entry.question().is_some()).collect();
    let total = waiting.len() + asked.len();
    let of_tasks = waiting.iter().map(|task| {
        format!(
            "#{} {} for {}: {}",
            task.key.issue,
            task.state.name().replace('_', " "),
            rough(now.since(task.since)),
            clean_line(task.reason.as_deref().unwrap_or(&task.title), 160)
        )
    });
    let of_actions = asked
        .iter()
        .map(|entry| format!("vault action {} for {}", entry.id(), rough(now.since(entry.submitted_at))));
    let mut lines: Vec<String> = of_tasks.chain(of_actions).take(LISTED).collect();
    if total > LISTED {
        lines.push(format!("and {} more: pointsman status", total - LISTED));
    }
    Notice {
        title: match total {
            0 => format!("Nothing of {project} is stuck."),
            1 => format!("One thing of {project} is stuck."),
            n => format!("{n} things of {project} are stuck."),
        },
        body: lines.join("\n"),
        urgent: false,
        repeat: 0,
    }
}

/// The state of a project in a few lines.
pub fn status<'t>(project: &ProjectName, tasks: impl Iterator<Item = &'t Task>) -> Notice {
    let mut counts = std::collections::BTreeMap::new();
    for task in tasks {
        *counts.entry(task.state).or_insert(0_u32) += 1;
    }
    let lines: Vec<String> =
        counts.iter().map(|(state, n)| format!("{n} {}", state.name().replace('_', " "))).collect();
    said(format!("{project}: {}.", if lines.is_empty() { "no tasks".to_owned() } else { lines.join(", ") }))
}

/// Messages that were written while nobody listened, and are too many to be read.
pub fn missed(project: &ProjectName) -> Notice {
    Notice {
        title: format!("{project}: some messages in the room were not read"),
        body: "More was written there than Pointsman reads at once. If you answered something and nothing happened, \
            write it again."
            .to_owned(),
        urgent: true,
        repeat: 0,
    }
}

/// A notice that says that notices arrive.
pub fn trial(project: &ProjectName) -> Notice {
    Notice {
        title: format!("{project}: this is a test"),
        body: "You need not do anything. Notices will arrive here.".to_owned(),
        urgent: true,
        repeat: 0,
    }
}

/// A notice for a desktop: a summary and a body of our own words, because they become arguments.
pub fn desktop(project: &ProjectName, topic: &Topic, urgent: bool) -> (String, String) {
    let need = if urgent { "needs a person" } else { "has news" };
    match topic {
        Topic::Task(issue) => {
            (format!("{project} #{issue} {need}"), format!("pointsman task explain {issue}"))
        }
        Topic::Vault(id) => {
            (format!("{project}: vault action {id} {need}"), format!("pointsman vault show {id}"))
        }
        Topic::Question(id) => {
            (format!("{project}: question {id} {need}"), format!("pointsman inbox show {id}"))
        }
        Topic::Agent(name) => (format!("{project}: the {name} {need}"), "pointsman run list".to_owned()),
        Topic::Room => (format!("{project} {need}"), "pointsman status".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TaskKey;

    fn task(issue: u64, state: State) -> Task {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue };
        let mut task = Task::new(key, "Sell \u{1b}[31mapples".into(), "b".into(), Timestamp(0));
        task.state = state;
        task
    }

    #[test]
    fn what_is_stuck_is_told_with_how_long_and_why() {
        let project = ProjectName::new("shop").unwrap();
        let mut asked = task(3, State::Escalated);
        asked.reason = Some("Which apples?".into());
        let tasks = [asked, task(4, State::Working), task(5, State::Blocked)];
        let notice = stuck(&project, tasks.iter(), &[], Timestamp(7_200_000));
        assert_eq!(notice.title, "2 things of shop are stuck.");
        assert_eq!(notice.body, "#3 escalated for 2h: Which apples?\n#5 blocked for 2h: Sell apples");
        let many: Vec<Task> = (1..=30).map(|n| task(n, State::Blocked)).collect();
        let notice = stuck(&project, many.iter(), &[], Timestamp(0));
        assert!(notice.body.ends_with("\nand 10 more: pointsman status"), "{}", notice.body);
        assert_eq!(stuck(&project, [].iter(), &[], Timestamp(0)).title, "Nothing of shop is stuck.");
        assert_eq!(status(&project, tasks.iter()).title, "shop: 1 working, 1 escalated, 1 blocked.");
    }

    #[test]
    fn a_desktop_shows_no_outside_text() {
        let project = ProjectName::new("shop").unwrap();
        let shown = desktop(&project, &Topic::Task(3), true);
        assert_eq!(shown, ("shop #3 needs a person".to_owned(), "pointsman task explain 3".to_owned()));
    }
}
