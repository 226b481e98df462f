//! Comments on the issue.

use crate::config::Config;
use crate::ids::Sha;
use crate::part::question::{Kind, Question};
use crate::task::{Refusal, RefusalStatus, Task};
use crate::text;

/// The mark of an issue that a session filed while it worked on another one.
pub fn filed_for(author: &str, issue: u64) -> String {
    format!("<!-- filed by {author}, which works on #{issue} -->")
}

/// The mark of an issue that a session filed.
pub fn filed_by(author: &str) -> String {
    format!("<!-- filed by {author} -->")
}

/// An HTML comment, for people who would not see it.
pub fn hidden(comment: &str) -> String {
    format!("[HTML comment, hidden on a forge: {comment}]")
}

/// How many lines of a pane a diagnosis shows.
pub const DIAGNOSIS_LINES: usize = 50;

/// The beginning of the marker of the gardener's comments, in which it suggests acceptance criteria.
pub const GARDENER_MARK: &str = "<!-- pointsman:gardener-";

/// Finds a comment of ours again: hidden in the rendered text.
pub fn marker(key: &str) -> String {
    format!("<!-- pointsman:{key} -->")
}

/// We work on it, where an issue cannot be assigned to us.
pub fn claimed() -> &'static str {
    "Pointsman is working on this issue."
}

/// The reason why a task is blocked, with the last lines of its pane.
pub fn diagnosis(task: &Task, tail: &str) -> String {
    let reason = task.reason.as_deref().unwrap_or("no reason was recorded");
    let mut body = format!("**Blocked:** {reason}\n\n");
    body.push_str(&format!("- session: {}\n", task.key.session(task.session.generation)));
    body.push_str(&format!("- last phase: {}\n", task.phase.map_or("none", |p| p.name())));
    if let Some(pr) = task.contribution.pr() {
        body.push_str(&format!("- pull request: #{pr}\n"));
    }
    let used = task.contribution.attempts;
    body.push_str(&format!(
        "- CI failed {} times, changes were requested {} times, the session was restarted {} times\n",
        used.ci_fixes, used.review_rounds, task.session.restarts
    ));
    body.push_str("\nThe work so far is kept. To try again, remove the label `blocked`.\n");
    let tail = text::tail_lines(tail, DIAGNOSIS_LINES);
    if !tail.trim().is_empty() {
        body.push_str(&format!("\nThe last lines of the terminal:\n\n{}\n", text::quote_block(tail)));
    }
    body
}

/// The content of a terminal as a block.
pub fn picture(pane: &str) -> String {
    let tail = text::tail_lines(pane, DIAGNOSIS_LINES);
    format!("The terminal shows:\n\n{}\n", text::quote_block(tail))
}

/// A question to a person.
pub fn escalated(task: &Task) -> String {
    let reason = text::call_nobody(task.reason.as_deref().unwrap_or("no reason was given"));
    let issue = task.key.issue;
    if let Some(asked) = task.escalation.as_ref().filter(|asked| asked.kind == Kind::Plan) {
        return format!(
            "**A person is needed:** {}\n\nThe session waits. Answer with a comment here (`yes`, or what to change), or \
             with `pointsman inbox`.\n",
            text::call_nobody(asked.text())
        );
    }
    match super::question::is_yes_or_no(task.escalation.as_ref()) {
        true => format!(
            "**A person is needed:** {reason}\n\nThe session waits. Approve or reject with `pointsman inbox`. A \
                comment here decides nothing; the agent receives it as an answer.\n"
        ),
        false => format!(
            "**A person is needed:** {reason}\n\nThe session waits. Answer with a comment here, or with \
             `pointsman task answer {issue} \"…\"`.\n"
        ),
    }
}

/// A run about an issue asks a person.
pub fn run_asks(question: &Question) -> String {
    format!(
        "**A person is needed:** {}\n\nThe session waits. Answer with a comment here, or with `{}`.\n",
        text::call_nobody(question.text()),
        super::question::settle(question).join("` or `")
    )
}

/// The agent turned the task down.
pub fn refused(refusal: &Refusal) -> String {
    let head = match refusal.status {
        RefusalStatus::UnmetDependency => "**Refused:** something else must be done first.",
        RefusalStatus::TooLarge => {
            "**Refused:** too large or too vague for one task. Split it or add detail, then replace the label \
                `underspecified` with `backlog`."
        }
        RefusalStatus::AlreadyDone => {
            "**Refused:** the agent says that this is already done. If it is, close the issue; otherwise, label it \
                `backlog` again."
        }
    };
    let mut body = format!("{head}\n");
    if !refusal.blocked_by.is_empty() {
        let list: Vec<String> = refusal.blocked_by.iter().map(|n| format!("#{n}")).collect();
        body.push_str(&format!("\nBlocked by: {}\n", list.join(", ")));
    }
    if !refusal.reason.trim().is_empty() {
        body.push_str(&format!("\n{}\n", text::quote_block(&refusal.reason)));
    }
    body
}

/// On a pull request whose forge cannot show a merge that was pushed.
pub fn landed(sha: &Sha) -> String {
    format!(
        "**Landed** as {sha}. This repository does not allow recording a manual merge, so the pull request is \
            closed.\n"
    )
}

/// The text of a pull request: a warning if nothing tests it, what the agent says, and boxes for people to tick.
pub fn pull_request(task: &Task, summary: Option<&str>, config: &Config) -> String {
    let mut body = format!("For issue #{}.\n", task.key.issue);
    body.push_str(&untested(config));
    if let Some(summary) = summary {
        body.push_str(&format!("\n{}\n", text::call_nobody(&text::clean_block(summary, 60_000))));
    }
    body.push_str(&self::checklist(&config.pr.checklist));
    body
}

/// The warning that nothing tests a pull request; empty where CI does.
pub(super) fn untested(config: &Config) -> String {
    match config.ci.kind.tests_commits() {
        true => String::new(),
        false => format!("\n**{}**\n", super::ci::off(config)),
    }
}

/// Boxes for people to tick; none is ticked for them.
pub(super) fn checklist(lines: &[String]) -> String {
    let boxes: String = lines.iter().map(|line| format!("- [ ] {}\n", text::clean_line(line, 500))).collect();
    if boxes.is_empty() { boxes } else { format!("\n{boxes}") }
}
