//! Mistakes in a formula's file, for whoever wrote it.

use crate::text::clean_line;

pub const FILE_TOO_LARGE: &str = "the file is larger than 256 KiB";
pub const NOT_A_NAME: &str = "the name of a formula has the form [a-z0-9][a-z0-9._-]{0,63}";
pub const NOT_A_STEP_ID: &str = "the id of a step has the form [a-z0-9][a-z0-9._-]{0,63}";
pub const NOT_A_TITLE: &str = "a title is one line of at most 200 characters";
pub const NOT_INSIDE: &str = "it must be a path inside the repository, without `..`";
pub const UNCLOSED_VARIABLE: &str = "`{{` without `}}` on the same line";
pub const NOT_A_VARIABLE: &str = "a variable is written {{name}}, with lower-case letters, digits and _";

/// A formula without steps, or with too many.
pub fn number_of_steps(most: usize) -> String {
    format!("a formula has between 1 and {most} [[steps]]")
}

/// More context than fits a prompt.
pub fn too_many_files(most: usize) -> String {
    format!("more than {most} files")
}

/// Two steps of one name.
pub fn repeated_step(id: &str) -> String {
    format!("there are two steps `{id}`")
}

/// A step that waits for one that the file does not have.
pub fn unknown_need(step: &str, missing: &str) -> String {
    format!("`{step}` needs the step `{}`, which does not exist", clean_line(missing, 80))
}

/// Steps of which none can be the first.
pub fn circle(steps: &[&str]) -> String {
    format!("steps depend on each other in a circle: {}", steps.join(" → "))
}

/// A file of the context that is not in the repository.
pub fn no_such_file(path: &str) -> String {
    format!("there is no file {}", clean_line(path, 200))
}

/// A key that every formula or step must have.
pub fn key_missing(key: &str) -> String {
    format!("the key `{key}` is missing")
}

/// A variable that neither Pointsman nor the configuration sets.
pub fn no_such_variable(name: &str) -> String {
    format!("there is no variable `{name}`")
}
