//! Texts about files that a role hands in: in its commit and its pull request, in the journal, and to people.

use crate::config::Config;
use crate::hand_in::{HandInFiles, Need, Outcome, Refusal, RefusalReason};
use crate::ids::{Number, ProjectName};
use crate::role::Role;
use crate::run::RunId;
use crate::task::Notice;
use crate::text::clean_line;

/// The most paths that are named one by one.
const NAMED: usize = 10;

/// The message of the one commit.
pub fn message(role: Role, run: RunId, files: &[String]) -> String {
    format!("{role}: {}\n\nHanded in by run {run}.\n", title(files))
}

/// Title and text of the pull request.
pub fn pull_request(role: Role, taken: &HandInFiles, config: &Config) -> (String, String) {
    let list: String = taken.files.iter().map(|file| format!("- `{}`\n", shown(file))).collect();
    let body = format!(
        "Run {} of the {role} changed these files:\n\n{list}\nRules selected them; nothing else that the session \
            changed is here. The pull request lands through the merge queue like any other. To decline it, close \
            it.\n{}",
        taken.run,
        super::comment::untested(config)
    );
    (format!("{role}: {}", title(&taken.files)), body)
}

/// The comment when something newer has taken its place.
pub fn replaced(taken: &HandInFiles) -> String {
    let list: String = taken.files.iter().map(|file| format!("- `{}`\n", shown(file))).collect();
    format!("This now contains what run {} changed:\n\n{list}", taken.run)
}

fn title(files: &[String]) -> String {
    match files {
        [one] => format!("update {}", shown(one)),
        [first, rest @ ..] => format!("update {} and {} more", shown(first), rest.len()),
        [] => "update nothing".to_owned(),
    }
}

/// In the journal: it was opened.
pub fn opened(pr: Number, files: &[String]) -> String {
    format!("opened pull request #{pr} with {}", listed(files))
}

/// In the journal: something newer is in its place.
pub fn brought_up(pr: Number, files: &[String]) -> String {
    format!("brought pull request #{pr} up to date with {}", listed(files))
}

/// In the journal: how it ended.
pub fn over(pr: Option<Number>, files: &[String], outcome: Outcome) -> String {
    let pr = pr.map(|pr| format!("pull request #{pr}")).unwrap_or_else(|| "what was handed in".to_owned());
    match outcome {
        Outcome::Merged => format!("{pr} is on the main branch: {}", listed(files)),
        Outcome::Dismissed => format!("{pr} was closed by somebody and will not be reopened"),
        Outcome::Dropped => format!("{pr} is no longer followed"),
    }
}

/// In the journal: what it needs.
pub fn waits(pr: Number, need: &Need) -> String {
    format!("pull request #{pr} {}", needs(need))
}

/// In the journal: what was changed and is not handed in. It is kept.
pub fn refused(run: RunId, refusals: &[Refusal]) -> Vec<String> {
    let mut lines: Vec<String> = refusals
        .iter()
        .take(NAMED)
        .map(|refusal| format!("refused: {}, which {}", shown(&refusal.path), why(refusal.why)))
        .collect();
    if refusals.len() > NAMED {
        lines.push(format!("refused: {} more", refusals.len() - NAMED));
    }
    if !lines.is_empty() {
        lines.push(format!("what run {run} changed is kept: pointsman rescue list"));
    }
    lines
}

/// In the journal: the very same was closed by a person before.
pub fn unwanted(run: RunId) -> String {
    format!("run {run} handed in something that somebody closed before, so it is not opened again")
}

/// In the journal: nobody knows what changed.
pub fn unreadable(run: RunId, why: &str) -> String {
    format!(
        "nothing of run {run} is handed in, because its files could not be read: {}",
        clean_line(why, 200)
    )
}

fn why(why: RefusalReason) -> &'static str {
    match why {
        RefusalReason::NotTheirs => "is not one of its files",
        RefusalReason::Deleted => "was deleted",
        RefusalReason::NotPlain => "is not a regular file, or became another kind of file",
        RefusalReason::InTheWay => "takes the place of something else",
        RefusalReason::TooLarge => "is too large",
        RefusalReason::NotText => "is not text",
        RefusalReason::HoldsSecret => "contains a secret that Pointsman keeps",
        RefusalReason::TooMany => "is one file too many",
    }
}

fn needs(need: &Need) -> String {
    match need {
        Need::Review { .. } => "needs the review of a person".to_owned(),
        Need::Checks { .. } => "is red; it waits for a person or the next run".to_owned(),
        Need::Silent { .. } => {
            "has no CI result in time; it waits for that, a person or the next run".to_owned()
        }
        Need::Line { why, .. } => {
            format!(
                "was removed from the merge queue ({}); it waits for a person or the next run",
                clean_line(why, 200)
            )
        }
        Need::Taken => "was changed by somebody else and is now theirs".to_owned(),
    }
}

/// A hand-in needs a person.
pub fn notice(project: &ProjectName, role: Role, pr: Number, need: &Need, link: &str) -> Notice {
    let urgent = matches!(need, Need::Review { .. });
    Notice {
        title: format!("{project}: pull request #{pr} of the {role} {}", lead(need)),
        body: format!("It {}.\nTo see it: {link}", needs(need)),
        urgent,
        repeat: 0,
    }
}

/// It could not be opened, and why.
pub fn not_opened(project: &ProjectName, role: Role, run: RunId, why: &str) -> Notice {
    Notice {
        title: format!("{project}: what the {role} handed in cannot be opened as a pull request"),
        body: format!(
            "{}\nIt is kept and will be tried again (`pointsman run show {run}`).",
            clean_line(why, 500)
        ),
        urgent: false,
        repeat: 0,
    }
}

/// Something newer cannot take its place, and why.
pub fn not_replaced(project: &ProjectName, role: Role, pr: Number, run: RunId, why: &str) -> Notice {
    Notice {
        title: format!("{project}: pull request #{pr} of the {role} cannot be brought up to date"),
        body: format!(
            "The forge refused the branch: {}\nIt is kept and will be tried again (`pointsman run show {run}`).",
            clean_line(why, 500)
        ),
        urgent: false,
        repeat: 0,
    }
}

fn lead(need: &Need) -> &'static str {
    match need {
        Need::Review { .. } => "needs your review",
        Need::Checks { .. } => "is red",
        Need::Silent { .. } => "has no CI result",
        Need::Line { .. } => "was removed from the merge queue",
        Need::Taken => "is yours now",
    }
}

fn listed(files: &[String]) -> String {
    let mut named: Vec<String> = files.iter().take(NAMED).map(|file| shown(file)).collect();
    if files.len() > NAMED {
        named.push(format!("{} more", files.len() - NAMED));
    }
    named.join(", ")
}

/// A path that was written by an agent: one line, without what Markdown would make something of.
fn shown(path: &str) -> String {
    let plain: String = path.chars().filter(|c| !"`@<>".contains(*c)).collect();
    clean_line(&plain, 200)
}
