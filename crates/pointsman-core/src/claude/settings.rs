//! A person's `settings.json`: our hooks put in, and taken out again, with everything else as it was.

use serde_json::json;

use super::ordered::Ordered;
use super::shell_word;

/// How long the watch at the side of an idle session may last, in seconds: as long as a working day.
const WATCH_SECONDS: u32 = 8 * 3600;

/// The hooks of a person's own session: event, matcher, words after the program, further fields.
fn hooks() -> [(&'static str, &'static str, &'static str, serde_json::Value); 4] {
    [
        ("SessionStart", "startup", "hook session-start", json!({ "timeout": 30 })),
        ("Stop", "", "hook on-stop", json!({ "timeout": 30 })),
        // Stays beside the idle session, and wakes the model with news about its pull request.
        ("Stop", "", "hook watch", json!({ "timeout": WATCH_SECONDS, "asyncRewake": true })),
        ("Notification", "idle_prompt", "hook on-idle", json!({ "timeout": 30 })),
    ]
}

/// The reasons why settings were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("it is not JSON: {0}")]
    Malformed(String),
    /// A part of it has a shape that nobody expects.
    #[error("`{0}` is not what Claude Code expects there")]
    Shape(String),
}

/// The commands that an agent of a person calls in the claim life cycle: with these rules it need not ask each time. Giving
/// an issue back or closing it stays a question.
const PERMISSIONS: [&str; 6] = [
    "Bash(pointsman claim:*)",
    "Bash(pointsman handoff:*)",
    "Bash(pointsman status:*)",
    "Bash(pointsman agents:*)",
    "Bash(pointsman task show:*)",
    "Bash(pointsman merge-queue list:*)",
];

/// The settings with the permission rules for our commands, each once, after those that are there.
pub fn permit(text: &str) -> Result<String, Error> {
    let mut root = parse(text)?;
    let rules = root
        .entry("permissions", || Ordered::Object(Vec::new()))
        .and_then(|permissions| permissions.entry("allow", || Ordered::List(Vec::new())));
    let Some(Ordered::List(rules)) = rules else {
        return Err(Error::Shape("permissions.allow".to_owned()));
    };
    for rule in PERMISSIONS {
        if !rules.iter().any(|there| there.as_text() == Some(rule)) {
            rules.push(Ordered::Text(rule.to_owned()));
        }
    }
    Ok(render(&root, text))
}

/// The settings with our hooks, in place of any of ours that were there. An empty text is an empty object.
pub fn install(text: &str, program: &str) -> Result<String, Error> {
    let mut root = parse(text)?;
    take_out(&mut root)?;
    let program = shell_word(program);
    for (event, matcher, words, further) in hooks() {
        let mut hook = json!({ "type": "command", "command": format!("{program} {words}") });
        for (key, value) in further.as_object().into_iter().flatten() {
            hook[key] = value.clone();
        }
        let groups = list(&mut root, event)?;
        let fits = |group: &&mut Ordered| {
            group.get("matcher").and_then(Ordered::as_text).unwrap_or("") == matcher
                && group.get("hooks").is_some_and(|hooks| hooks.items().iter().all(is_ours))
        };
        match groups.iter_mut().find(fits) {
            // A group of our own; those of others are left to themselves.
            Some(group) => match group.entry("hooks", || Ordered::List(Vec::new())) {
                Some(Ordered::List(hooks)) => hooks.push(in_order(&hook)),
                _ => return Err(Error::Shape(format!("hooks.{event}"))),
            },
            None => groups.push(Ordered::Object(vec![
                ("matcher".to_owned(), Ordered::Text(matcher.to_owned())),
                ("hooks".to_owned(), Ordered::List(vec![in_order(&hook)])),
            ])),
        }
    }
    if root.get("statusLine").is_none() {
        let line = json!({ "type": "command", "command": format!("{program} statusline") });
        root.entry("statusLine", || in_order(&line));
    }
    Ok(render(&root, text))
}

/// The settings without anything of ours, and without what is empty because of that.
pub fn uninstall(text: &str) -> Result<String, Error> {
    let mut root = parse(text)?;
    take_out(&mut root)?;
    take_out_permissions(&mut root);
    Ok(render(&root, text))
}

fn take_out_permissions(root: &mut Ordered) {
    if root.get("permissions").and_then(|permissions| permissions.get("allow")).is_none() {
        return;
    }
    let Some(permissions) = root.entry("permissions", || Ordered::Null) else { return };
    let emptied = match permissions.entry("allow", || Ordered::Null) {
        Some(Ordered::List(rules)) => {
            let before = rules.len();
            rules.retain(|rule| !rule.as_text().is_some_and(|rule| PERMISSIONS.contains(&rule)));
            rules.is_empty() && before > 0
        }
        Some(_) | None => false,
    };
    // What is empty because of that was made by us, or is nobody's loss.
    if emptied {
        permissions.remove("allow");
        if permissions.is_empty() {
            root.remove("permissions");
        }
    }
}

fn take_out(root: &mut Ordered) -> Result<(), Error> {
    if root.get("statusLine").is_some_and(is_ours) {
        root.remove("statusLine");
    }
    if root.get("hooks").is_none() {
        return Ok(());
    }
    let Some(Ordered::Object(events)) = root.entry("hooks", || Ordered::Null) else {
        return Err(Error::Shape("hooks".to_owned()));
    };
    let mut touched = false;
    events.retain_mut(|(_, groups)| {
        let Ordered::List(groups) = groups else { return true };
        let before = groups.len();
        groups.retain_mut(|group| {
            let Some(Ordered::List(hooks)) = group.entry("hooks", || Ordered::Null) else { return true };
            let count = hooks.len();
            hooks.retain(|hook| !is_ours(hook));
            touched |= hooks.len() < count;
            !(hooks.is_empty() && count > 0)
        });
        !(groups.is_empty() && before > 0)
    });
    if touched && events.is_empty() {
        root.remove("hooks");
    }
    Ok(())
}

/// Whether a hook or status line is this program: by the words it is called with, wherever it lies.
fn is_ours(hook: &Ordered) -> bool {
    let Some(command) = hook.get("command").and_then(Ordered::as_text) else { return false };
    let (program, words) = match command.strip_prefix('\'') {
        Some(rest) => rest.split_once("' ").unwrap_or((rest, "")),
        None => command.split_once(' ').unwrap_or((command, "")),
    };
    let named = program.rsplit('/').next() == Some("pointsman");
    named && (words == "statusline" || words.starts_with("hook "))
}

fn list<'a>(root: &'a mut Ordered, event: &str) -> Result<&'a mut Vec<Ordered>, Error> {
    let hooks = root.entry("hooks", || Ordered::Object(Vec::new()));
    match hooks.and_then(|hooks| hooks.entry(event, || Ordered::List(Vec::new()))) {
        Some(Ordered::List(groups)) => Ok(groups),
        Some(_) | None => Err(Error::Shape(format!("hooks.{event}"))),
    }
}

/// A hook's fields in the order in which people write them.
fn in_order(hook: &serde_json::Value) -> Ordered {
    let order = ["type", "command", "timeout", "asyncRewake"];
    let field = |key: &str| Some((key.to_owned(), Ordered::from(hook.get(key)?.clone())));
    Ordered::Object(order.into_iter().filter_map(field).collect())
}

fn parse(text: &str) -> Result<Ordered, Error> {
    if text.trim().is_empty() {
        return Ok(Ordered::Object(Vec::new()));
    }
    match serde_json::from_str(text) {
        Ok(root @ Ordered::Object(_)) => Ok(root),
        Ok(_) => Err(Error::Shape("the whole file".to_owned())),
        Err(error) => Err(Error::Malformed(error.to_string())),
    }
}

/// As the file was written: with its indentation, and its end of the last line.
fn render(root: &Ordered, before: &str) -> String {
    let indent = indentation(before).unwrap_or("  ");
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(root, &mut writer).expect("it was JSON before");
    let mut text = String::from_utf8(bytes).expect("JSON is UTF-8");
    if before.trim().is_empty() || before.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What the first key of the file is indented by.
fn indentation(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.trim_start().starts_with('"'))?;
    let spaces = &line[..line.len() - line.trim_start().len()];
    (!spaces.is_empty() && spaces.len() <= 8).then_some(spaces)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Error, install, permit, uninstall};

    const THEIRS: &str = r#"{
  "zeta": 1,
  "permissions": {
    "deny": [],
    "allow": [
      "Bash(gh:*)"
    ]
  },
  "hooks": {
    "Stop": [
      {
        "matcher": "",
        "hooks": [
          {
            "type": "command",
            "command": "say done",
            "odd": 1.5
          }
        ]
      }
    ],
    "PreToolUse": []
  },
  "alpha": null
}
"#;

    #[test]
    fn settings_go_round_without_losing_anything() {
        let with = install(THEIRS, "/usr/bin/pointsman").unwrap();
        let value: Value = serde_json::from_str(&with).unwrap();
        assert_eq!(value["hooks"]["Stop"][0]["hooks"][0]["command"], "say done", "theirs first, untouched");
        let ours = &value["hooks"]["Stop"][1]["hooks"];
        assert_eq!(
            ours[0],
            json!({ "type": "command", "command": "/usr/bin/pointsman hook on-stop", "timeout": 30 })
        );
        assert_eq!(ours[1]["asyncRewake"], true);
        assert_eq!(value["hooks"]["Notification"][0]["matcher"], "idle_prompt");
        assert_eq!(value["statusLine"]["command"], "/usr/bin/pointsman statusline");
        assert!(with.find("zeta") < with.find("permissions") && with.find("hooks") < with.find("alpha"));
        assert_eq!(install(&with, "/usr/bin/pointsman").unwrap(), with, "twice is once");
        let moved = install(&with, "/opt/pointsman").unwrap();
        assert!(!moved.contains("/usr/bin/pointsman"), "a newer place replaces the older one");
        assert_eq!(uninstall(&moved).unwrap(), THEIRS, "exactly our own entries go");
    }

    #[test]
    fn indentation_and_the_end_of_the_file_stay_as_they_are() {
        for theirs in [
            "{\n    \"a\": {\n        \"b\": 1\n    }\n}\n",
            "{\n\t\"a\": [\n\t\t1\n\t]\n}",
            "{\n  \"a\": 1\n}",
        ] {
            let with = install(theirs, "pointsman").unwrap();
            assert_eq!(with.ends_with('\n'), theirs.ends_with('\n'), "{with}");
            assert_eq!(uninstall(&with).unwrap(), theirs);
        }
    }

    #[test]
    fn permissions_for_our_commands_are_added_once_and_go_with_the_rest() {
        let with = permit(&install(THEIRS, "pointsman").unwrap()).unwrap();
        let value: Value = serde_json::from_str(&with).unwrap();
        let rules = value["permissions"]["allow"].as_array().unwrap();
        assert_eq!(rules[0], "Bash(gh:*)", "theirs first");
        assert!(rules.iter().any(|rule| rule == "Bash(pointsman handoff:*)"), "{rules:?}");
        assert!(!rules.iter().any(|rule| rule.as_str().unwrap().contains("release")), "{rules:?}");
        assert_eq!(permit(&with).unwrap(), with, "twice is once");
        assert_eq!(uninstall(&with).unwrap(), THEIRS);
        let with = permit("").unwrap();
        assert_eq!(uninstall(&with).unwrap(), "{}\n");
        assert!(matches!(permit(r#"{"permissions": {"allow": 1}}"#), Err(Error::Shape(_))));
        let odd = "{\n  \"permissions\": {\n    \"allow\": []\n  }\n}\n";
        assert_eq!(uninstall(odd).unwrap(), odd, "an empty list of theirs stays");
    }

    #[test]
    fn an_empty_file_becomes_empty_again() {
        let with = install("", "/a b/pointsman").unwrap();
        assert!(with.contains("'/a b/pointsman' hook on-stop"), "{with}");
        assert_eq!(uninstall(&with).unwrap(), "{}\n");
    }

    #[test]
    fn a_status_line_of_theirs_stays() {
        let theirs =
            "{\n  \"statusLine\": {\n    \"type\": \"command\",\n    \"command\": \"mine\"\n  }\n}\n";
        let with = install(theirs, "pointsman").unwrap();
        assert!(!with.contains("pointsman statusline"), "{with}");
        assert_eq!(uninstall(&with).unwrap(), theirs);
    }

    #[test]
    fn what_is_no_settings_file_is_left_alone() {
        assert!(matches!(install("{ // comment\n}", "p"), Err(Error::Malformed(_))));
        assert!(matches!(install("[]", "p"), Err(Error::Shape(_))));
        assert!(matches!(install(r#"{"hooks": []}"#, "p"), Err(Error::Shape(_))));
        assert!(matches!(install(r#"{"hooks": {"Stop": {}}}"#, "p"), Err(Error::Shape(_))));
    }
}
