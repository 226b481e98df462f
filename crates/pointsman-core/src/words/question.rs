//! Questions, to the people who settle them.

use std::path::PathBuf;

use crate::config::{NotifierKind, Size};
use crate::ids::{Number, Sha};
use crate::known_secrets::shown_fingerprint;
use crate::part::contribution::ReviewMode;
use crate::part::question::{Act, Cause, Kind, Question, QuestionId, Settled, Settlement};
use crate::task::{Notice, Order, PlanStage, State, Task};
use crate::text::{clean_block, clean_line};
use crate::time::Timestamp;

/// Longest piece of outside text in a line.
const TEXT_CHARS: usize = 200;
/// The most of a log in a question.
const SETUP_LOG_BYTES: usize = 4000;
/// Longest text of a question in a notice.
const NOTICE_BYTES: usize = 2000;

/// Time alone changes nothing about it yet.
pub const NOTHING_IS_DUE: &str = "neither a reminder nor the time-out of the question is due";

/// Nobody has asked anything.
pub const NOTHING_ASKED: &str = "there is no question to settle";
/// A question that another one took the place of.
pub const ASKED_IN_OTHER_WORDS: &str = "a newer question replaces this one";

/// The heading of a kind.
pub fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Review => "a pull request waits for a review",
        Kind::Question => "an agent waits for an answer",
        Kind::Approval => "a dangerous action waits for approval",
        Kind::Blocked => "a task is blocked",
        Kind::Refused => "an agent refused a task",
        Kind::Conflict => "a branch cannot be merged",
        Kind::QueuePaused => "a merge queue is paused",
        Kind::MainRed => "the main branch fails its gate",
        Kind::Alarm => "this machine has a problem",
        Kind::Secret => "a branch may contain a secret",
        Kind::Trust => "a configuration change waits for your approval",
        Kind::HostAccess => "tests need access to a host",
        Kind::Budget => "a budget is used up",
        Kind::Orphan => "nobody is working on an issue labelled in-progress",
        Kind::ServiceDown => "a service does not answer",
        Kind::NotifierDown => "a notifier does not work",
        Kind::HandIn => "a role proposes changes to files",
        Kind::Plan => "a plan waits for approval",
        Kind::Gate => "a pipeline waits for a person",
        Kind::Choice => "one of several results must be chosen",
        Kind::Upgrade => "an upgrade is available",
        Kind::Starved => "a task never gets its turn",
        Kind::Disk => "a disk is too full for another working tree",
        Kind::Setup => "a working tree cannot be set up",
        Kind::Filing => "a role wants to file more issues than it may",
        Kind::Unreadable => "a record cannot be read",
        Kind::HostLost => "a host is gone",
    }
}

/// The number of a question, as people read it.
pub fn number(id: Option<QuestionId>) -> String {
    id.map_or_else(|| "this question".to_owned(), |id| format!("question {id}"))
}

/// There is room for trees again.
pub const ROOM_AGAIN: &str = "the disk has room again";

/// There is no room for another tree.
pub fn no_room(free: u64, wanted: Size) -> String {
    format!(
        "the disk has {} MB left, but a new working tree needs at least {wanted} free (tree.free_disk)",
        free >> 20
    )
}

/// The question about a full disk, with what takes the room.
pub fn disk(error: &str, dir: &str, largest: &[(PathBuf, u64)]) -> String {
    let line = |(path, bytes): &(PathBuf, u64)| {
        format!("{:>8} MB  {}", bytes >> 20, clean_line(&path.to_string_lossy(), TEXT_CHARS))
    };
    let lines: Vec<String> = largest.iter().map(line).collect();
    format!(
        "{error}\nTasks wait, and continue by themselves when the disk of {dir} has room. Pointsman's largest directories are:\n{}",
        lines.join("\n")
    )
}

/// A question about a set-up, with the end of its log.
pub fn setup_failed(subject: &str, failures: u32, log: &str) -> String {
    let again = if failures > 1 { format!("\nIt failed {failures} times.") } else { String::new() };
    let log = clean_block(log, SETUP_LOG_BYTES);
    let end = if log.trim().is_empty() {
        "It printed nothing.".to_owned()
    } else {
        format!("The end of its log:\n{log}")
    };
    format!("{subject}{again}\nNo agent was started, and no attempt was used.\n\n{end}")
}

/// The question about work that was handed in without a plan.
pub const NO_PLAN: &str = "The agent wrote no plan and handed in its work. A yes lets it hand that in.";
/// The most of a plan in a question.
const PLAN_BYTES: usize = 12 << 10;

/// An agent's plan, and what an answer to it means.
pub fn plan(task: &Task, plan: &str) -> String {
    let last = match task.plan {
        PlanStage::SentBack => "Words are passed on, and the agent begins to work.",
        PlanStage::Due | PlanStage::Reminded | PlanStage::Accepted => {
            "Words send the plan back to the agent, once."
        }
    };
    format!(
        "The plan for #{} {}:\n\n{}\n\nA yes lets the agent work. A no blocks the task. {last}",
        task.key.issue,
        clean_line(&task.title, TEXT_CHARS),
        clean_block(plan, PLAN_BYTES).trim_end()
    )
}

/// The answer to an agent whose tests may not reach the hosts that they asked for.
pub fn hosts_denied(reason: &str) -> String {
    let why = if reason.is_empty() { String::new() } else { format!(" {}", reason.trim_end()) };
    format!("The tests may not reach these hosts. Work without them, or ask a person.{why}")
}

/// It can be settled, but not where somebody tried.
pub fn settled_elsewhere(question: &Question) -> String {
    format!("{} cannot be settled here; run `{}`", number(question.id), settle(question).join("` or `"))
}

/// Whether words alone do not settle what a task asks.
pub(super) fn is_yes_or_no(asked: Option<&Question>) -> bool {
    asked.is_some_and(|asked| asked.kind.takes(Act::Approve))
}

/// The commands that settle it.
pub fn settle(question: &Question) -> Vec<String> {
    let Some(id) = question.id else { return Vec::new() };
    let command = |act: &Act| match act {
        Act::Approve => format!("pointsman inbox approve {id}"),
        Act::Reject => format!("pointsman inbox reject {id}"),
        Act::Answer => format!("pointsman inbox answer {id} \"…\""),
        Act::Dismiss => format!("pointsman inbox dismiss {id}"),
    };
    let mut commands: Vec<String> = question.kind.traits().acts.iter().map(command).collect();
    if let (Kind::Question, Cause::Review, Some(pr)) = (question.kind, question.cause, question.source.pr) {
        // Words go to the agent; what is missing is a review.
        commands.insert(0, format!("pointsman forge pr review {pr} --approve"));
        commands.insert(1, format!("pointsman forge pr review {pr} --request-changes --body \"…\""));
    }
    if question.kind == Kind::QueuePaused {
        // `merge-queue serve` has no inbox.
        commands.push("pointsman merge-queue resume".to_owned());
    }
    commands
}

/// People are told of a question of their project.
pub fn notice(question: &Question) -> Notice {
    let repeat = question.notices.saturating_sub(1);
    let again = if repeat > 0 { format!(" (asked {} times)", question.notices) } else { String::new() };
    Notice {
        title: format!("{}: {}{again}", question.source.project, heading(question.kind)),
        body: format!(
            "{}\nTo settle it, run: {}",
            clean_block(question.text(), NOTICE_BYTES),
            settle(question).join(", or: ")
        ),
        urgent: true,
        repeat,
    }
}

pub const QUEUE_GOES_ON: &str = "the merge queue works again";
pub const MAIN_IS_GREEN: &str = "main passes its gate";

/// The merge queue has paused itself.
pub fn queue_paused(reason: &str, since: Timestamp) -> String {
    format!(
        "{}\nThe merge queue has been paused since {}. `pointsman merge-queue status` shows the details.",
        clean_line(reason, 1000),
        super::queue::clock_time(since)
    )
}

/// A task is stuck.
pub fn blocked(task: &Task) -> String {
    format!(
        "#{} is blocked: {}\nTo try again, run `pointsman task start {}`.",
        task.key.issue,
        why(task),
        task.key.issue
    )
}

/// An agent turned a task down.
pub fn turned_down(task: &Task) -> String {
    let issue = task.key.issue;
    format!(
        "The agent refused #{issue}: {}\nChange the issue, then run `pointsman task start {issue}`.",
        why(task)
    )
}

/// A pull request waits for a person.
pub fn review(task: &Task, mode: ReviewMode, pr: Number, head: &Sha, needed: usize) -> String {
    let so_far = match task.contribution.approvals() {
        [] if needed > 1 => format!("\n{needed} people have to approve it."),
        [] => String::new(),
        approvals => format!("\n{}.", super::people::approved_so_far(approvals, needed)),
    };
    let risk = match (mode, task.contribution.risk()) {
        (ReviewMode::Risk(reviewers), Some(risk)) => {
            format!("\n{}", super::risk::judged(risk, reviewers.of(Some(risk))).join("\n"))
        }
        _ => String::new(),
    };
    format!(
        "#{} {}: pull request {pr} at {} waits for your review.\nLook at it with `pointsman forge pr diff {pr}` and \
         `pointsman forge pr checks {pr}`.{so_far}{risk}",
        task.key.issue,
        clean_line(&task.title, TEXT_CHARS),
        head.short()
    )
}

fn why(task: &Task) -> String {
    clean_line(task.reason.as_deref().unwrap_or("no reason given"), TEXT_CHARS)
}

pub const NOT_WAITED_FOR: &str = "nobody is waiting for it any more";

/// A review is given where the pull request is.
pub fn review_on_the_forge(pr: Number) -> String {
    format!("review pull request {pr} on the forge; the task continues as soon as the review is posted")
}

/// The pull request has another head than the one that the question names.
pub fn another_head(pr: Number) -> String {
    format!(
        "pull request {pr} has changed since the question was asked; `pointsman inbox` shows the new question"
    )
}

/// A budget is used up. The text names the limit and not what was spent, so that it stays the same.
pub fn budget(whose: &str, limit: &str, until: Option<Timestamp>) -> String {
    let otherwise = match until {
        Some(at) => format!("Otherwise work continues at {}.", super::queue::clock_time(at)),
        None => "Otherwise the work stops here; nothing is lost.".to_owned(),
    };
    format!("The budget {whose} is used up ({limit}).\nApprove to grant the same amount again. {otherwise}")
}

pub const BUDGET_IS_NOT_USED_UP: &str = "the budget is no longer used up";

pub const NOTIFIER_WORKS: &str = "the notifier works again";

/// A notifier has failed for a while.
pub fn notifier_down(notifier: NotifierKind, since: Timestamp) -> String {
    format!(
        "The notifier {notifier} has not worked since {}.\n`pointsman notify test` tries it, and `pointsman status` shows its last error.",
        super::queue::clock_time(since)
    )
}

pub const NO_ORPHAN: &str = "somebody works on it, or it is not in progress any more";

/// An issue carries our claim, and nobody works on it.
pub fn orphan(issue: Number, title: &str) -> String {
    format!(
        "#{issue} {} is labelled in-progress and assigned to Pointsman, but nobody works on it.\nTo have it done, replace the \
         label `in-progress` by `backlog`. To leave it, remove the label.",
        clean_line(title, TEXT_CHARS)
    )
}

pub const FORGE_ANSWERS: &str = "the forge answers again";

/// The forge has been silent for long.
pub fn forge_is_silent(since: Timestamp) -> String {
    format!(
        "The forge has not answered since {}.\nWork goes on as far as it can, but nothing is opened, reviewed or landed. \
         `pointsman doctor` tries every service.",
        super::queue::clock_time(since)
    )
}

pub const READABLE_AGAIN: &str = "it can be read again";

pub const WORK_BEGINS: &str = "tasks can start again";

/// Ready work cannot begin, because every place is held by work that waits for people.
pub fn starved(holders: &[Number]) -> String {
    let holders: Vec<String> = holders.iter().map(|issue| format!("#{issue}")).collect();
    format!(
        "No ready issue has started for an hour: work that waits for a person takes every slot ({}).\nSettle that work, or \
          raise `dev.concurrency`.",
        holders.join(", ")
    )
}

/// Nothing lands because main fails its own gate.
pub fn main_is_red(reason: &str, log: &str, log_path: Option<&str>) -> String {
    let path = log_path.map(|path| format!("\nLog: {}", clean_line(path, 300))).unwrap_or_default();
    format!("{}{path}{}", clean_line(reason, 600), super::notice::log_block(log))
}

/// It cannot be settled in this way.
pub fn takes_no(question: &Question, act: Act) -> String {
    let what = match act {
        Act::Approve => "cannot be approved",
        Act::Reject => "cannot be rejected",
        Act::Answer => "takes no text as an answer",
        Act::Dismiss => "cannot be dismissed",
    };
    format!("{} {what}; to settle it, run `{}`", number(question.id), settle(question).join("` or `"))
}

/// Somebody else settled the question first.
pub fn already_settled(id: Option<QuestionId>, settled: &Settled, now: Timestamp) -> String {
    format!("{} {} {} ago", number(id), ending(settled), super::rough(now.since(settled.at)))
}

/// The end of a question, after its number.
pub fn ending(settled: &Settled) -> String {
    let by = settled.by.as_ref().map(|by| format!(" by {}", clean_line(by, TEXT_CHARS))).unwrap_or_default();
    match &settled.how {
        Settlement::Approved => format!("was approved{by}"),
        Settlement::Rejected { .. } => format!("was rejected{by}"),
        Settlement::Answered { .. } => format!("was answered{by}"),
        Settlement::Dismissed => format!("was dismissed{by}"),
        Settlement::Expired => "expired because nobody answered".to_owned(),
        Settlement::Withdrawn { why } => format!("was withdrawn: {}", clean_line(why, TEXT_CHARS)),
    }
}

/// A question that is open, and its owner does not wait for an answer.
pub fn nobody_waits(id: QuestionId) -> String {
    format!("nobody is waiting for an answer to question {id} any more")
}

/// The question's owner refuses the answer.
pub fn refused(id: QuestionId, why: &str) -> String {
    format!("question {id}: {why}")
}

/// The answer needs a running daemon.
pub fn needs_daemon(id: QuestionId) -> String {
    format!("question {id} can be answered only while the daemon runs: run `pointsman up`, then answer again")
}

/// A person's answer was accepted.
pub fn done(id: QuestionId) -> String {
    format!("Question {id} is settled.")
}

/// There is no such question.
pub fn unknown(id: QuestionId) -> String {
    format!("there is no question {id}; `pointsman inbox` lists those that are open")
}

pub const MERGED: &str = "the pull request was merged";
pub const PULL_REQUEST_CLOSED: &str = "the pull request was closed";
pub const CI_ANSWERED: &str = "CI has answered";
pub const AGENT_WENT_ON: &str = "the agent continued by itself";

/// A person gave the task another order.
pub fn ordered(order: Order) -> &'static str {
    match order {
        Order::Begin | Order::Start | Order::Resume | Order::Restart | Order::RestartFresh => {
            "the task was started again"
        }
        Order::Pause => "the task was paused",
        Order::Stop => "the task was stopped",
    }
}

/// A person took the work over.
pub fn taken(by: &str) -> String {
    format!("{} took the task over", clean_line(by, TEXT_CHARS))
}

/// A review came after all.
pub fn reviewed(by: &str) -> String {
    format!("{} reviewed the pull request", clean_line(by, TEXT_CHARS))
}

/// The task goes on without an answer.
pub fn task_moved_on(state: State) -> String {
    format!("the task is {state} now")
}

/// A secret that the daemon knows, in a branch or in files that a role hands in.
pub fn known_secret(place: &str, what: &str) -> String {
    format!(
        "{what} ({})\nThe branch was not pushed, and the agent knows. If this project may publish the value, approve. If not, \
          reject: nothing is pushed until the value is gone from every commit.",
        clean_line(place, 200)
    )
}

/// Something in a branch that only looks like a secret.
pub fn looks_like_secret(place: &str, what: &str, fingerprint: &str) -> String {
    format!(
        "{what} ({})\nThe branch does not land until you decide. If this is not a secret, approve, and you will not be asked about it \
          again. If it is one, reject: the agent is asked to remove it, and nothing that contains it is pushed any more. You can also \
          allow it in the configuration, by its path or as {} in review.secrets_allowed.",
        clean_line(place, 200),
        shown_fingerprint(fingerprint)
    )
}

/// A part of a branch that was not scanned.
pub fn not_looked_at(place: &str, what: &str) -> String {
    format!(
        "{what} ({})\nThe branch was not pushed. If you know the content and it may be published, approve; otherwise reject.",
        clean_line(place, 200)
    )
}

/// The end of a question about a secret that is gone.
pub const SECRET_GONE: &str = "it is no longer in the branch";
