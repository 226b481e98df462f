//! Reasons why the result of an agent's session cannot be used. They are written to the journal and given back to the agent;
//! "it" is the session, or the part of the result that is named before.

use std::fmt::Display;

use crate::text::clean_line;

pub const NO_RESULT: &str = "it wrote no result";
pub const NO_REPORT: &str = "it wrote no report";

// The gardener's lines and the planner's verdicts.
pub const UNKNOWN_LINE: &str = "it begins with neither ACTION: nor DUST: nor ESCALATE";
pub const UNKNOWN_ACTION: &str = "there is no such action";
pub const UNKNOWN_VERDICT: &str = "there is no such verdict";
pub const FORMULA_WITHOUT_ACTION: &str = "only an action has a formula";

// Reviews.
pub const NO_VERDICT_REASON: &str = "verdict_reason is empty";

/// A key that is in an object more than once.
pub fn key_twice(key: &str) -> String {
    format!("the key `{key}` appears twice")
}

/// A result of another form than was asked for: `what` is what it should have been.
pub fn not_a(what: &str, why: impl Display) -> String {
    format!("its result is not a {what}: {}", clean_line(&why.to_string(), 200))
}

/// A part of a result, counted from one, and what is wrong with it.
pub fn at(what: &str, place: usize, why: impl Display) -> String {
    format!("{what} {place}: {why}")
}

/// More parts than anybody reads.
pub fn more_than(most: usize, what: &str) -> String {
    format!("it has more than {most} {what}")
}

/// More verdicts or new issues than anybody reads.
pub fn plan_too_long(verdicts: usize, issues: usize) -> String {
    format!("it has more than {verdicts} verdicts or {issues} issues")
}

/// A line that is too long to be read.
pub fn line_too_long(place: usize, most: usize) -> String {
    format!("line {place} has more than {most} characters")
}

/// A field that is too long.
pub fn field_too_long(field: &str, most: usize, unit: &str) -> String {
    format!("{field} has more than {most} {unit}")
}

/// A text that is empty or too long; `what` is named with its article.
pub fn length(what: &str, most: usize, unit: &str) -> String {
    format!("{what} must have 1 to {most} {unit}")
}

/// A follow-up without a title, or with a long one.
pub fn follow_up_title(most: usize) -> String {
    length("the title of a follow-up", most, "characters")
}

/// An action or a verdict with a field missing, or with one that it cannot have.
pub fn wrong_fields(what: &str) -> String {
    format!("`{what}` lacks a field that it needs, or has one that it does not use")
}

/// A new issue that belongs on neither list.
pub fn unknown_label(known: [&str; 2]) -> String {
    let [one, other] = known;
    format!("its label is neither {one} nor {other}")
}

/// A new issue that waits for too much.
pub fn too_many_dependencies(most: usize) -> String {
    format!("it depends on more than {most} issues")
}

/// A number outside the scale.
pub fn leverage(most: u8) -> String {
    format!("its leverage must be from 1 to {most}")
}

/// A finding about something that cannot be a file of the repository.
pub fn not_a_path(path: &str) -> String {
    format!("`{}` is not a path in the repository", clean_line(path, 80))
}
