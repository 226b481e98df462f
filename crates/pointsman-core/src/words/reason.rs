//! Reasons for a task's state, in one line.

use std::time::Duration;

use super::span;
use crate::ids::Number;
use crate::sandbox::network::registries::Registry;
use crate::snapshot::Unreadable;
use crate::task::{Refusal, RefusalStatus};
use crate::text;

/// How much of an outside text fits into a reason.
const QUOTE_CHARS: usize = 300;

/// The agent asked for CI without having pushed anything.
pub const NOTHING_PUSHED: &str = "nothing was pushed to origin";
/// The pull request was closed by someone.
pub const PR_CLOSED: &str = "the pull request was closed without a merge";
/// `done` was claimed again and again.
pub const PREMATURE_DONE: &str = "the agent keeps writing PHASE:done, but its work is not on the main branch";
/// Somebody set the label.
pub const LABELLED_BLOCKED: &str = "the issue is labelled blocked";
/// Somebody closed the issue.
pub const CLOSED_BY_SOMEONE: &str = "somebody closed the issue";
pub const PAUSED: &str = "paused by a person";

/// A person works on it in their own checkout.
pub fn taken(by: &str) -> String {
    format!("{by} works on it")
}

pub const STOPPED: &str = "stopped by a person";
/// The branch never reached the forge.
pub const NEVER_SYNCED: &str = "the branch could not be pushed to the forge in time";
/// The queue did not answer.
pub const QUEUE_STUCK: &str = "the merge queue did not get to this branch in time";
/// The reviewer's changes were not made.
pub const CHANGES_STILL_WANTED: &str = "nothing has been pushed since the reviewer requested changes";

/// An event reached a workflow of another kind.
pub const OTHER_WORKFLOW: &str = "the event belongs to another kind of workflow";
/// An event reached the memory of a role that knows nothing of such things.
pub const OTHER_ROLE: &str = "the event belongs to another role";
/// A role looked while the answer to its last question is still awaited.
pub const ANSWER_AWAITED: &str = "the role still waits for an answer";
/// An answer that nobody asked for, or that is being carried out.
pub const ANSWER_KNOWN: &str = "the role does not wait for this answer";

/// The end of a deed that is not on its way.
pub fn deed_is_over(name: &str) -> String {
    format!("the deed {name} is not in progress")
}

/// A deed that was ordered before.
pub fn deed_is_ordered(name: &str) -> String {
    format!("the deed {name} was already ordered")
}

/// The agent asked a person, or gave up, and did not say why.
pub const NONE_GIVEN: &str = "the agent gave no reason";
/// The reasons for a checkpoint that nobody asked for.
pub const END_OF_TURN: &str = "end of a turn";
pub const BEFORE_COMPACTION: &str = "before a compaction";
pub const CONTEXT_FILLS_UP: &str = "the context is filling up";

/// The agent wrote `failed`.
pub fn agent_failed(reason: &str) -> String {
    format!("the agent failed: {}", text::clean_line(reason, QUOTE_CHARS))
}

/// The phase file cannot be used.
pub fn phase_rejected(why: &str) -> String {
    format!("phase file refused: {}", text::clean_line(why, QUOTE_CHARS))
}

/// The agent turned the task down.
pub fn refused(refusal: &Refusal) -> String {
    let what = match refusal.status {
        RefusalStatus::UnmetDependency => "an unmet dependency",
        RefusalStatus::TooLarge => "too large or too vague",
        RefusalStatus::AlreadyDone => "already done",
    };
    let reason = text::clean_line(&refusal.reason, QUOTE_CHARS);
    if reason.is_empty() { format!("refused: {what}") } else { format!("refused: {what}: {reason}") }
}

/// Limits are used up.
pub fn ci_exhausted(limit: u32, summary: &str) -> String {
    format!("CI still fails after {limit} fixes: {}", text::clean_line(summary, QUOTE_CHARS))
}

/// Limits are used up.
pub fn review_exhausted(limit: u32) -> String {
    format!("changes were requested more than {limit} times")
}

/// Limits are used up.
pub fn crash_loop(limit: u32) -> String {
    format!("the session died again after {limit} restarts")
}

/// CI did not answer.
pub fn ci_timeout(limit: Duration) -> String {
    format!("CI did not finish within {}", span(limit))
}

/// Not the code's fault.
pub fn infra(reason: &str) -> String {
    format!("CI infrastructure failed again: {}", text::clean_line(reason, QUOTE_CHARS))
}

/// The tests were refused hosts, or a package registry was not there. All of them are named in full: a person decides about each.
pub fn unreached(hosts: &[String], programs: &[String]) -> String {
    let named = hosts.join(", ");
    let programs: Vec<String> = programs.iter().map(|one| text::clean_line(one, 40)).collect();
    let asked = if programs.is_empty() { String::new() } else { format!(" ({} asked)", programs.join(", ")) };
    if hosts.iter().all(|host| Registry::parse(host).is_some()) {
        return format!(
            "the tests failed and the package registry {named} could not be reached{asked}. Test again?"
        );
    }
    match hosts.len() {
        1 => format!(
            "the tests failed because the sandbox did not let them reach {named}{asked}. May CI and gates of this project reach that host?"
        ),
        count => format!(
            "the tests failed because the sandbox did not let them reach {count} hosts{asked}. May CI and gates of this project reach \
             {named}?"
        ),
    }
}

/// The project's own set-up failed, before any agent was there.
pub fn setup_failed(error: &str) -> String {
    let error = text::clean_line(error, QUOTE_CHARS);
    format!("the set-up of its working tree failed ({error}). Run it again?")
}

/// The agent shows its plan.
pub fn plan(plan: &str) -> String {
    let first = plan
        .lines()
        .map(|line| line.trim_start_matches(['#', '-', '*', ' ']))
        .find(|line| !line.trim().is_empty());
    format!(
        "the agent waits for a yes to its plan: {}",
        text::clean_line(first.unwrap_or_default(), QUOTE_CHARS)
    )
}

/// A person does not want it done like this.
pub fn plan_rejected(by: &str, reason: &str) -> String {
    let why = text::clean_line(reason, QUOTE_CHARS);
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("{} rejected the plan{why}", text::clean_line(by, QUOTE_CHARS))
}

/// Nobody looked at it.
pub fn no_review(limit: Duration) -> String {
    format!("nobody reviewed the pull request within {}", span(limit))
}

/// The reviewer wants to talk.
pub fn discuss(by: &str, body: &str) -> String {
    let by = text::clean_line(by, QUOTE_CHARS);
    format!("{by} wants to discuss the change: {}", text::clean_line(super::review::gist(body), QUOTE_CHARS))
}

/// The change touches paths that no agent may let through.
pub fn needs_person(protected: &[String]) -> String {
    format!("{}: a person has to approve its pull request", super::review::changes_protected(protected))
}

/// A branch that was not pushed.
pub fn withheld(what: &str) -> String {
    format!("the branch was not pushed: {}", text::clean_line(what, QUOTE_CHARS))
}

/// The escalation ran out.
pub fn nobody_answered(limit: Duration, question: &str) -> String {
    format!("nobody answered within {}: {}", span(limit), text::clean_line(question, QUOTE_CHARS))
}

/// Back at the prompt.
pub fn idle_prompt(looks: u32) -> String {
    format!(
        "idle_prompt: the agent was idle at its prompt in {looks} checks in a row and never wrote a phase"
    )
}

/// It does not even start.
pub fn not_started(error: &str) -> String {
    format!("the session could not be started: {}", text::clean_line(error, QUOTE_CHARS))
}

/// Dependencies in a circle.
pub fn cycle(cycle: &[Number]) -> String {
    let mut names: Vec<String> = cycle.iter().map(|n| format!("#{n}")).collect();
    if let Some(first) = names.first().cloned() {
        names.push(first);
    }
    format!("circular dependency: {}", names.join(" → "))
}

/// Somebody else claimed the issue first.
pub fn claim_lost(reason: &str) -> String {
    format!("not claimed: {}", text::clean_line(reason, QUOTE_CHARS))
}

/// The queue conflicts again and again.
pub fn conflicts(files: &[String]) -> String {
    format!("conflicts with the main branch again: {}", listed(files))
}

/// It does not apply to the main branch.
pub fn conflict(files: &[String]) -> String {
    format!("conflicts with the main branch: {}", listed(files))
}

/// A reviewer wants something else.
pub fn changes_requested(by: &str) -> String {
    format!("{} requested changes", text::clean_line(by, 100))
}

fn listed(files: &[String]) -> String {
    let files: Vec<String> = files.iter().take(10).map(|f| text::clean_line(f, 100)).collect();
    files.join(", ")
}

/// An effect can never be done.
pub fn gave_up(effect: &str, error: &str) -> String {
    format!("gave up on {effect}: {}", text::clean_line(error, QUOTE_CHARS))
}

/// The agent does not acknowledge its messages.
pub fn unacknowledged(message: i64, headline: &str) -> String {
    format!("the agent never acknowledged message m-{message} ({headline})")
}

/// Contexts fill up again and again.
pub fn handoffs(limit: u32) -> String {
    format!("the context filled up again after {limit} hand-overs")
}

/// Money or tokens are used up.
pub fn budget(what: &str) -> String {
    format!("the budget is used up: {}", text::clean_line(what, QUOTE_CHARS))
}

pub const WAITS_FOR_NO_BUDGET: &str = "it is not waiting for budget";

/// An order to start is not followed, because the budget is used up.
pub fn budget_of_order(what: &str) -> String {
    format!(
        "{}. To grant more, approve the question in `pointsman inbox` or raise the limit in pointsman.toml",
        budget(what)
    )
}

/// A rate limit that is nearly used up.
pub fn rate_limit(window: &crate::session::quota::Window) -> String {
    let name = window.name.replace('_', " ");
    format!("{} % of the {name} rate limit is used", window.used_permille / 10)
}

/// Something outside of this machine has to change first.
pub fn parked(trouble: &crate::session::trouble::OutsideTrouble) -> String {
    format!("parked: {}", trouble.kind.name().replace('_', " "))
}

/// A turn that was cut off by something that neither time nor waiting repairs.
pub fn turn_failed(error: &str, details: &str) -> String {
    let error = crate::text::clean_line(error, 60);
    format!("api_error: {error}: {}", crate::text::clean_line(details, 300))
}

/// A dialog that is a person's to answer.
pub fn dialog(what: &str) -> String {
    format!("the agent is waiting at a dialog: {}", crate::text::clean_line(what, 200))
}

/// What a screen asks that is neither a prompt nor a dialog that we know.
pub const UNKNOWN_SCREEN: &str = "a screen that shows no prompt";

/// Hooks that were never heard.
pub const HOOKS_SILENT: &str = "the session's hooks have never reported, so Pointsman cannot supervise it and sends it \
        nothing but answers; `pointsman doctor` says why";

/// The reason why an event of an earlier session changes nothing.
pub fn old_generation(generation: u32, present: u32) -> String {
    format!("generation {generation} is over; the current one is {present}")
}

/// The reason why a look at an idle terminal changes nothing.
pub const NOT_SET_UP: &str = "this session is no longer starting";
pub const NOT_WATCHED: &str = "idle checks apply only to a working session that has not written a phase yet";
/// The reason why an error after the last phase changes nothing.
pub const FINAL_PHASE_STANDS: &str =
    "the agent had already finished with its last phase, so a later error changes nothing";
/// The reason why a failed turn changes nothing.
pub const NOTHING_EXPECTED: &str = "Pointsman expects nothing from the agent right now";
/// The reason why a used-up budget changes nothing.
pub const NOTHING_SPENT: &str = "the session is not spending anything right now";
/// The reason why a session's trouble is not asked about.
pub const NOBODY_IS_ASKED: &str = "a person has already been asked, or the work is over";

/// A snapshot has a form that this program does not know.
pub fn unknown_version(found: u32, known: u32) -> String {
    format!("it has version {found}, but this program reads version {known}")
}

/// A snapshot cannot be read, in one line.
pub fn unreadable(unreadable: &Unreadable) -> String {
    let Unreadable { what, project, name, version, why } = unreadable;
    let why = text::clean_line(why, QUOTE_CHARS);
    format!("the stored state of {what} {name} of {project} (version {version}) cannot be read: {why}")
}
