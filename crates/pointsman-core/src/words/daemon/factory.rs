//! Lines in the journals of the roles that work by rules, and reasons that keep them from asking.

use std::path::Path;

use crate::ids::ProjectName;
use crate::role::Role;
use crate::run::RunId;
use crate::task::Notice;
use crate::text::clean_line;

/// A run that ended without a reason of its own.
pub fn came_to_nothing() -> &'static str {
    "the run came to nothing"
}

/// In the journal: an answer that was never given. The question is asked again.
pub fn not_heard(run: RunId, why: &str) -> String {
    format!("run {run} could not be used: {why}")
}

/// In the journal: an answer that the role cannot use.
pub fn of_no_use(run: RunId, why: &str) -> String {
    format!("run {run} was of no use: {why}")
}

/// In the journal: the role has a question that nobody will answer.
pub fn asked_nobody(found: &str, why: &str) -> String {
    format!("{found}, and asked nobody: {why}")
}

/// In the journal: the role has a question that has to wait.
pub fn asks_later(found: &str, why: &str) -> String {
    format!("{found}, and asks later: {why}")
}

/// A role that was paused because nobody wanted its results.
pub fn all_noise(role: Role) -> String {
    format!("all its results were noise. To let it work again, run `pointsman roles resume {role}`")
}

/// A machine that has no memory left for another session.
pub fn too_little_memory(least_mb: u64) -> String {
    format!("less than {least_mb} MB of memory are free")
}

/// The answer to `roles look` for a role that does not look, or is not enabled.
pub fn does_not_look(role: Role) -> String {
    format!(
        "the {role} cannot look: only the gardener, the planner, the predictor and the supervisor can, and only if \
            they are enabled"
    )
}

/// A remedy: a lock that a killed git left.
pub fn remove_lock(lock: &Path) -> String {
    format!("remove {} if its git is dead", lock.display())
}

/// A remedy: the working tree of a task that is over.
pub fn save_and_remove(tree: &Path) -> String {
    format!("save {}, then remove it", tree.display())
}

/// In the journal: the number of things that the gardener would ask about.
pub fn found_things(count: usize) -> String {
    format!("found {count} things")
}

/// In the journal: a part of an answer that the rules do not allow.
pub fn refused(why: &str) -> String {
    format!("refused: {why}")
}

/// In the journal: a deed that the forge refuses for good.
pub fn deed_refused(deed: &str, error: &str) -> String {
    format!("not done, because the forge refused it ({}): {deed}", clean_line(error, 200))
}

/// In the journal: a deed about an issue that was deleted or closed meanwhile.
pub fn deed_gone(deed: &str) -> String {
    format!("not done, because the issue was deleted or closed: {deed}")
}

/// Tells people about a deed that the forge refuses for good.
pub fn forge_refused(project: &ProjectName, role: Role, deed: &str, error: &str) -> Notice {
    Notice {
        title: format!("{project}: the forge refused something that the {role} wanted to do"),
        body: format!(
            "{}\nThe forge said: {}\nThis will not be tried again. Check the permissions of Pointsman's account \
                there.",
            clean_line(deed, 200),
            clean_line(error, 500)
        ),
        urgent: false,
        repeat: 0,
    }
}

/// In the journal: the supervisor's agent has judged.
pub fn run_says(run: RunId, said: &str) -> String {
    format!("run {run} says: {}", clean_line(said, 200))
}

/// A plan that answers no question of ours.
pub fn nobody_was_asked() -> &'static str {
    "nobody was asked"
}
