//! Decisions that were made while no daemon ran, to the people who are to confirm them.

use crate::decision::{Decision, MOST, Unconfirmed};
use crate::ids::{Number, ProjectName};
use crate::text::clean_line;
use crate::vault::ActionId;

/// Longest piece of outside text in a line.
const TEXT_CHARS: usize = 200;

/// A decision was kept, to whoever made it.
pub fn kept(project: &ProjectName, decision: &Decision) -> String {
    format!(
        "{} has no effect yet: the daemon is not running, so nobody can tell who decides. It is kept as unconfirmed. To confirm it, run `pointsman up`, then `{}`",
        noun(decision),
        command(project, decision)
    )
}

/// A task does not take the decision, and would not with a daemon either.
pub fn task_refused(issue: Number, why: &str) -> String {
    format!("task {issue}: {why}")
}

/// A vault action does not take the decision, and would not with a daemon either.
pub fn vault_refused(id: &ActionId, why: &str) -> String {
    format!("vault action {id}: {why}")
}

/// There is no room for another one.
pub fn too_many(project: &ProjectName) -> String {
    format!(
        "project {project} already has {MOST} unconfirmed decisions; run `pointsman up` and confirm those that \
            `pointsman status` shows"
    )
}

/// A kept decision, in one line.
pub fn shown(project: &ProjectName, unconfirmed: &Unconfirmed) -> String {
    let by = clean_line(&unconfirmed.by, 100);
    format!("{} by {by} in {project} was made while no daemon was running", noun(&unconfirmed.decision))
}

/// The same with what to do, at a start. The command comes last: whatever is behind it would be pasted with it.
pub fn to_confirm(project: &ProjectName, unconfirmed: &Unconfirmed) -> String {
    let (shown, command) = (shown(project, unconfirmed), command(project, &unconfirmed.decision));
    format!("Unconfirmed: {shown}. To confirm it: {command}")
}

/// The command that confirms a decision, ready for a shell.
pub fn command(project: &ProjectName, decision: &Decision) -> String {
    let order = match decision {
        Decision::Approval { pr, body, .. } if body.trim().is_empty() => {
            format!("forge pr review {pr} --approve")
        }
        Decision::Approval { pr, body, .. } => {
            format!("forge pr review {pr} --approve --body {}", shell_word(body))
        }
        Decision::Answer { issue, text } => format!("task answer {issue} {}", shell_word(text)),
        Decision::Comment { issue, body } => {
            format!("forge issue comment {issue} --body {}", shell_word(body))
        }
        Decision::VaultApproval { id, hash, again } => {
            let again = if *again { " --again" } else { "" };
            format!("vault approve {id} --hash {}{again}", shell_word(hash))
        }
        Decision::VaultRejection { id, reason } => {
            format!("vault reject {id} --reason {}", shell_word(reason))
        }
    };
    format!("pointsman --project {project} {order}")
}

fn noun(decision: &Decision) -> String {
    match decision {
        Decision::Approval { pr, .. } => format!("the approval of pull request #{pr}"),
        Decision::Answer { issue, text } | Decision::Comment { issue, body: text } => {
            format!("the answer \"{}\" to #{issue}", clean_line(text, TEXT_CHARS))
        }
        Decision::VaultApproval { id, .. } => format!("the approval of vault action {id}"),
        Decision::VaultRejection { id, .. } => format!("the rejection of vault action {id}"),
    }
}

/// One word for a shell. Control characters are written as escapes, so that a terminal that shows the command obeys none
/// of them and pasting it runs nothing early.
fn shell_word(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' => word.push_str(r"\'"),
            '\\' => word.push_str(r"\\"),
            '\n' => word.push_str(r"\n"),
            '\t' => word.push_str(r"\t"),
            c if c.is_control() => word.push_str(&format!(r"\u{:04x}", u32::from(c))),
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use super::command;
    use crate::decision::Decision;
    use crate::ids::{ProjectName, Sha};
    use crate::vault::ActionId;

    #[test]
    fn the_command_is_the_one_that_was_run_and_runs_nothing_else() {
        let shop = ProjectName::new("shop").unwrap();
        let id = || ActionId::try_from("deploy-1".to_owned()).unwrap();
        let head = Sha::new(&"a".repeat(40)).unwrap();
        let cases = [
            (
                Decision::Approval { pr: 7, head: head.clone(), body: String::new() },
                "pointsman --project shop forge pr review 7 --approve",
            ),
            (
                Decision::Approval { pr: 7, head, body: "fine".to_owned() },
                "pointsman --project shop forge pr review 7 --approve --body 'fine'",
            ),
            (
                Decision::Answer { issue: 3, text: "don't; $(rm x)".to_owned() },
                r"pointsman --project shop task answer 3 'don'\''t; $(rm x)'",
            ),
            (
                Decision::Comment { issue: 3, body: "it's\n\u{1b}[2J".to_owned() },
                r"pointsman --project shop forge issue comment 3 --body $'it\'s\n\u001b[2J'",
            ),
            (
                Decision::VaultApproval { id: id(), hash: "h".to_owned(), again: true },
                "pointsman --project shop vault approve deploy-1 --hash 'h' --again",
            ),
            (
                Decision::VaultRejection { id: id(), reason: "no".to_owned() },
                "pointsman --project shop vault reject deploy-1 --reason 'no'",
            ),
        ];
        for (decision, expected) in cases {
            assert_eq!(command(&shop, &decision), expected);
        }
    }
}
