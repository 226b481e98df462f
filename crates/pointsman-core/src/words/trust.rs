//! Texts about settings that need a person's trust.

use crate::config::trust::{Difference, Power};
use crate::ids::ProjectName;
use crate::text::clean_line;

/// The longest value that is shown.
const VALUE: usize = 200;
/// The most settings that one text shows.
const SHOWN: usize = 60;

/// The settings that a file asks for, by what they can do. For whoever registers it.
pub fn asks_for(settings: &[Difference]) -> Vec<String> {
    let mut lines = Vec::new();
    for power in [Power::Runs, Power::Reaches, Power::Loosens, Power::Spends] {
        let of: Vec<&Difference> = settings.iter().filter(|setting| setting.power == power).collect();
        if of.is_empty() {
            continue;
        }
        lines.push(heading(power).to_owned());
        lines.extend(of.iter().take(SHOWN).map(|setting| match &setting.after {
            Some(value) => format!("  {} = {}", clean_line(&setting.key, VALUE), shown(&setting.key, value)),
            None => format!("  {} is not set", clean_line(&setting.key, VALUE)),
        }));
        lines.extend(more(of.len()));
    }
    lines
}

fn heading(power: Power) -> &'static str {
    match power {
        Power::Runs => "It runs:",
        Power::Reaches => "It reaches, or hands on:",
        Power::Loosens => "It decides what needs a person or a sandbox:",
        Power::Spends => "It may spend:",
    }
}

fn more(count: usize) -> Option<String> {
    count.checked_sub(SHOWN).filter(|more| *more > 0).map(|more| format!("  and {more} more"))
}

/// The settings that nobody has accepted, before and after.
pub fn differences(settings: &[Difference]) -> Vec<String> {
    let side = |key: &str, value: Option<&String>| {
        value.map_or_else(|| "not set".to_owned(), |value| shown(key, value))
    };
    let line = |setting: &Difference| {
        let (before, after) = (setting.before.as_ref(), setting.after.as_ref());
        let key = clean_line(&setting.key, VALUE);
        if is_formula(&setting.key) {
            let what = match (before, after) {
                (None, _) => "is new",
                (_, None) => "is gone",
                (Some(_), Some(_)) => "has changed",
            };
            return format!("  {key} {what}");
        }
        format!("  {key}: {} → {}", side(&setting.key, before), side(&setting.key, after))
    };
    settings.iter().take(SHOWN).map(line).chain(more(settings.len())).collect()
}

fn is_formula(key: &str) -> bool {
    key.starts_with("formulas/")
}

/// The text of a formula is a page: its first line is enough here.
fn shown(key: &str, value: &str) -> String {
    let lines = value.lines().count();
    match is_formula(key) {
        true => format!("{lines} lines"),
        false if key.ends_with(".sandbox.containers") && value == "true" => {
            format!("true ({})", super::sandbox::CONTAINERS_RUN_OUTSIDE)
        }
        false => clean_line(value, VALUE),
    }
}

/// The question to a person.
pub fn question(project: &ProjectName, settings: &[Difference]) -> String {
    format!(
        "the settings of {project} have changed, and these changes wait for your approval:\n{}\nUntil then, the \
            accepted values are in force.",
        differences(settings).join("\n")
    )
}

/// The line of every command that is run in such a checkout.
pub fn waits(count: usize) -> String {
    let settings = if count == 1 {
        "1 changed setting waits".to_owned()
    } else {
        format!("{count} changed settings wait")
    };
    format!("{settings} for your approval: `pointsman project add .` shows and accepts them")
}

/// The reason why a question about settings is over.
pub const ACCEPTED: &str = "nothing is waiting any more";

/// A file that is not what was shown.
pub const CHANGED_MEANWHILE: &str = "the file or its formulas changed while they were shown; try again";

/// The answer to whoever uses a file that nobody registered.
pub fn not_registered(file: &str) -> String {
    format!("{} is not registered, so nothing of it is used", clean_line(file, VALUE))
}

/// The way out of that.
pub fn register_hint(dir: &str) -> String {
    format!(
        "to see what it would run and register it, run `pointsman project add {}`",
        clean_line(dir, VALUE)
    )
}

/// Accepted values that do not fit the rest of the file.
pub fn does_not_fit(error: &str) -> String {
    format!("the settings that wait for your approval do not fit the accepted ones: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, power: Power, before: Option<&str>, after: Option<&str>) -> Difference {
        Difference {
            key: key.to_owned(),
            power,
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        }
    }

    #[test]
    fn settings_are_shown_by_what_they_can_do() {
        let settings = [
            setting("ci.command", Power::Runs, None, Some("[\"./ci.sh\"]")),
            setting("formulas/tidy.toml", Power::Runs, None, Some("a\nb\n")),
            setting("roles.action.sandbox.containers", Power::Loosens, None, Some("true")),
            setting("sandbox.mode", Power::Loosens, Some("\"auto\""), Some("\"off\"")),
        ];
        let outside =
            "true (sessions of this role run outside the sandbox, with all the rights of this user)";
        assert_eq!(
            asks_for(&settings),
            [
                "It runs:",
                "  ci.command = [\"./ci.sh\"]",
                "  formulas/tidy.toml = 2 lines",
                "It decides what needs a person or a sandbox:",
                &format!("  roles.action.sandbox.containers = {outside}"),
                "  sandbox.mode = \"off\"",
            ]
        );
        assert_eq!(
            differences(&settings),
            [
                "  ci.command: not set → [\"./ci.sh\"]",
                "  formulas/tidy.toml is new",
                &format!("  roles.action.sandbox.containers: not set → {outside}"),
                "  sandbox.mode: \"auto\" → \"off\"",
            ]
        );
    }
}
