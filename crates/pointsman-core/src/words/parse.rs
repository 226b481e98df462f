//! Texts that are not what they should be: names, numbers and times that a person or a program wrote.

use crate::text::clean_line;

pub const CRON_FIELDS: &str =
    "it must have five fields (minute hour day month weekday), such as \"0 6 * * *\"";
pub const NO_QUIET_HOURS: &str = "quiet hours must not begin and end at the same time";
pub const NOT_A_JSON_NUMBER: &str = "JSON has no such number";

/// A text that is no time of the day.
pub fn not_a_time(text: &str) -> String {
    format!("`{}` must be a time of the day, such as \"07:00\", or empty", clean_line(text, 40))
}

/// A project's name that could not be a directory's.
pub fn not_a_project_name(name: &str) -> String {
    format!("`{}` is not a project name ([a-z0-9][a-z0-9-]{{0,62}})", clean_line(name, 80))
}

/// A commit that is not written in full.
pub fn not_a_sha(text: &str) -> String {
    format!("`{}` is not a git object id", clean_line(text, 80))
}

/// Something that cannot ask a question.
pub fn not_an_owner(text: &str) -> String {
    format!("`{}` cannot be the owner of a question", clean_line(text, 80))
}

/// A topic that no notice has.
pub fn not_a_topic(text: &str) -> String {
    format!("`{}` is not a topic of notices", clean_line(text, 80))
}

/// A field of a cron expression out of its range, or of another form.
pub fn not_a_cron_field(text: &str, what: &str, least: u32, most: u32) -> String {
    let text = clean_line(text, 40);
    format!("`{text}` is not a {what}: use numbers from {least} to {most}, such as 5, 1-3, */10 or 1,15")
}

/// Hours of another form.
pub fn not_hours(text: &str) -> String {
    format!("`{}` must be hours of the day, such as \"22:00-07:00\"", clean_line(text, 40))
}
