//! The start of a session of Claude Code, so that no dialog stands in its way and its hooks reach us.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::shell_word;
use crate::config::Runtime;

/// Every event that a session of the daemon tells, and how long Claude waits for it, in seconds.
const EVENTS: [(&str, u32); 13] = [
    ("SessionStart", 10),
    ("UserPromptSubmit", 10),
    ("PreToolUse", 10),
    ("PostToolUse", 10),
    ("PostToolUseFailure", 10),
    ("PermissionRequest", 10),
    ("Notification", 10),
    ("Stop", 10),
    ("StopFailure", 10),
    ("SubagentStop", 10),
    ("PreCompact", 10),
    ("PostCompact", 10),
    ("SessionEnd", 10),
];

/// What a session without a terminal tells by hooks: only what its output does not tell, so that nothing is told twice.
const STREAM_EVENTS: [&str; 3] = ["SessionStart", "PreToolUse", "PreCompact"];

/// The events at which a hook begins to wait beside the session, so that there is always one.
const WAKING: [&str; 3] = ["SessionStart", "UserPromptSubmit", "Stop"];

/// How long it waits, in seconds: longer than any session lives.
const WAKE_SECONDS: u32 = 7 * 24 * 3600;

/// How much of an API key Claude remembers as approved.
const KEY_TAIL: usize = 20;

/// The beginning of a conversation: a new one, or an earlier one that goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conversation {
    /// A new one, by this id.
    New(String),
    /// One that a crash has interrupted.
    Resumed(String),
}

/// The command with what a session of ours needs. What the command says itself stays as it is. The prompt is the last
/// word: given this way it cannot be typed into the wrong place.
pub fn command(command: &[String], settings: &str, conversation: &Conversation, prompt: &str) -> Vec<String> {
    let mut words = with_settings(command, settings);
    words.extend(taken_up(command, conversation));
    words.push(prompt.to_owned());
    words
}

/// The command of a session without a terminal, as all its turns have it: prompts come on standard input, and
/// everything that happens is a line of JSON. Each turn adds [`taken_up`].
pub fn stream(command: &[String], settings: Option<&str>) -> Vec<String> {
    let mut words = settings.map_or_else(|| command.to_vec(), |settings| with_settings(command, settings));
    if !says(command, "-p") && !says(command, "--print") {
        words.push("-p".to_owned());
    }
    if !says(command, "--output-format") {
        words.extend(["--output-format".to_owned(), "stream-json".to_owned()]);
    }
    // Without it Claude refuses to print a stream.
    if !says(command, "--verbose") {
        words.push("--verbose".to_owned());
    }
    words
}

/// The flags for the conversation, unless the command names one itself.
pub fn taken_up(command: &[String], conversation: &Conversation) -> Vec<String> {
    if ["--session-id", "--resume", "-r", "--continue", "-c"].into_iter().any(|flag| says(command, flag)) {
        return Vec::new();
    }
    let (flag, id) = match conversation {
        Conversation::New(id) => ("--session-id", id),
        Conversation::Resumed(id) => ("--resume", id),
    };
    vec![flag.to_owned(), id.clone()]
}

fn says(command: &[String], flag: &str) -> bool {
    command.iter().any(|word| word == flag || word.starts_with(&format!("{flag}=")))
}

fn with_settings(command: &[String], settings: &str) -> Vec<String> {
    let mut words = command.to_vec();
    if !says(command, "--settings") {
        words.extend(["--settings".to_owned(), settings.to_owned()]);
    }
    words
}

/// Whether the command lets the agent act without asking.
pub fn skips_permissions(command: &[String]) -> bool {
    command.iter().any(|word| word == "--dangerously-skip-permissions")
}

/// Whether a release wakes its model with what an asynchronous hook says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewakeSupport {
    Able,
    /// It might wait for such a hook instead.
    Unknown,
}

/// The settings file of one session: hooks and status line are this program.
pub fn settings(program: &str, runtime: Runtime, waking: RewakeSupport) -> Value {
    let program = shell_word(program);
    let wanted = |event: &str| match runtime {
        Runtime::Tmux => true,
        Runtime::Headless => STREAM_EVENTS.contains(&event),
    };
    let hooks: Map<String, Value> = EVENTS
        .into_iter()
        .filter(|(event, _)| wanted(event))
        .map(|(event, timeout)| {
            let command = format!("{program} hook {event}");
            let mut hooks = vec![json!({ "type": "command", "command": command, "timeout": timeout })];
            if runtime == Runtime::Tmux && waking == RewakeSupport::Able && WAKING.contains(&event) {
                // A child of Claude itself, without a shell between: it ends with it.
                let wake = format!("{program} hook wake");
                let command = format!("exec {wake}");
                hooks.push(json!({
                    "type": "command", "command": command, "timeout": WAKE_SECONDS, "asyncRewake": true,
                }));
            }
            (event.to_owned(), json!([{ "matcher": "", "hooks": hooks }]))
        })
        .collect();
    let mut settings = json!({
        // Bypass mode was chosen in the configuration; the dialog about it has nobody to answer it.
        "skipDangerousModePermissionPrompt": true,
        "hooks": hooks,
    });
    if runtime == Runtime::Tmux {
        // Our own messages come through the session's message socket, if it has one; in bypass mode it holds them back
        // otherwise. Without a terminal they are prompts, and nobody else has anything to say.
        settings["crossSessionInbound"] = json!("accept");
        settings["statusLine"] = json!({ "type": "command", "command": format!("{program} statusline") });
    }
    settings
}

/// The content of Claude's own `.claude.json` with which no dialog comes up: onboarding done, these directories trusted,
/// bypass mode accepted, the API key approved. None if it says so already.
///
/// Older releases trust what is below a trusted directory; newer ones want the root of each repository by name.
pub fn without_dialogs(now: &Value, trusted: &[&str], api_key: Option<&str>) -> Option<Value> {
    let mut next = if now.is_object() { now.clone() } else { json!({}) };
    next["hasCompletedOnboarding"] = json!(true);
    next["bypassPermissionsModeAccepted"] = json!(true);
    if !next["projects"].is_object() {
        next["projects"] = json!({});
    }
    for dir in trusted {
        if !next["projects"][dir].is_object() {
            next["projects"][dir] = json!({});
        }
        next["projects"][dir]["hasTrustDialogAccepted"] = json!(true);
    }
    if let Some(key) = api_key.filter(|key| key.is_ascii() && !key.is_empty()) {
        let tail = json!(&key[key.len().saturating_sub(KEY_TAIL)..]);
        if !next["customApiKeyResponses"].is_object() {
            next["customApiKeyResponses"] = json!({ "approved": [], "rejected": [] });
        }
        if !next["customApiKeyResponses"]["approved"].is_array() {
            next["customApiKeyResponses"]["approved"] = json!([]);
        }
        let approved =
            next["customApiKeyResponses"]["approved"].as_array_mut().expect("it was just made one");
        if !approved.contains(&tail) {
            approved.push(tail);
        }
    }
    (next != *now).then_some(next)
}

/// The account in the configuration that all sessions share: a session inside a sandbox takes over nothing else.
pub fn account(shared: &Value) -> Value {
    const KEYS: [&str; 4] = ["oauthAccount", "userID", "firstStartTime", "theme"];
    let mut account = json!({});
    for key in KEYS.into_iter().filter(|key| !shared[*key].is_null()) {
        account[key] = shared[key].clone();
    }
    account
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Conversation, RewakeSupport, command, settings, stream, taken_up, without_dialogs};
    use crate::config::Runtime;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_command_keeps_what_it_says_itself() {
        let new = Conversation::New("u-1".into());
        assert_eq!(
            command(&words("claude --model opus"), "/s.json", &new, "go on"),
            ["claude", "--model", "opus", "--settings", "/s.json", "--session-id", "u-1", "go on"]
        );
        assert_eq!(
            command(&words("claude --settings=/mine --continue"), "/s.json", &new, "x"),
            ["claude", "--settings=/mine", "--continue", "x"]
        );
        let resumed = Conversation::Resumed("u-0".into());
        assert!(command(&words("claude"), "/s", &resumed, "x").ends_with(&words("--resume u-0 x")));
    }

    #[test]
    fn every_hook_is_this_program_and_waits_for_seconds() {
        let settings = settings("/a b/pointsman", Runtime::Tmux, RewakeSupport::Unknown);
        assert_eq!(settings["statusLine"]["command"], "'/a b/pointsman' statusline");
        for (event, groups) in settings["hooks"].as_object().unwrap() {
            assert_eq!(
                groups[0]["hooks"].as_array().unwrap().len(),
                1,
                "{event}: nothing that it may wait for"
            );
            let hook = &groups[0]["hooks"][0];
            assert_eq!(hook["command"], format!("'/a b/pointsman' hook {event}"));
            assert!(hook["timeout"].as_u64().unwrap() <= 60, "seconds, not milliseconds");
        }
    }

    #[test]
    fn a_session_without_a_terminal_prints_a_stream_and_tells_nothing_twice() {
        let plain = words("claude --dangerously-skip-permissions");
        assert_eq!(
            stream(&plain, Some("/s.json")).join(" "),
            "claude --dangerously-skip-permissions --settings /s.json -p --output-format stream-json --verbose"
        );
        let own = words("claude --print --output-format=stream-json --verbose --settings=/mine");
        assert_eq!(stream(&own, Some("/s.json")), own);
        assert_eq!(taken_up(&plain, &Conversation::New("u-1".into())), ["--session-id", "u-1"]);
        assert_eq!(taken_up(&plain, &Conversation::Resumed("u-1".into())), ["--resume", "u-1"]);
        assert!(taken_up(&words("claude --continue"), &Conversation::New("u-1".into())).is_empty());
        let settings = settings("pointsman", Runtime::Headless, RewakeSupport::Able);
        let hooks: Vec<&String> = settings["hooks"].as_object().unwrap().keys().collect();
        assert_eq!(hooks, ["PreCompact", "PreToolUse", "SessionStart"]);
        assert!(settings["statusLine"].is_null(), "there is nobody to read it");
        assert!(settings["crossSessionInbound"].is_null(), "messages are prompts");
    }

    #[test]
    fn a_hook_waits_beside_a_session_that_can_be_woken() {
        let settings = settings("/pointsman", Runtime::Tmux, RewakeSupport::Able);
        for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
            let waits = &settings["hooks"][event][0]["hooks"][1];
            assert_eq!(waits["command"], "exec /pointsman hook wake", "{event}");
            assert_eq!(waits["asyncRewake"], true, "in the background: {event}");
        }
        assert_eq!(settings["hooks"]["PostToolUse"][0]["hooks"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn what_claude_wrote_itself_stays() {
        let now = json!({ "numStartups": 7, "projects": { "/p": { "a": 1 } }, "customApiKeyResponses": { "rejected": ["x"] } });
        let next =
            without_dialogs(&now, &["/state", "/state/tree"], Some("sk-ant-1234567890123456789012")).unwrap();
        assert_eq!((&next["numStartups"], &next["projects"]["/p"]["a"]), (&json!(7), &json!(1)));
        for dir in ["/state", "/state/tree"] {
            assert_eq!(next["projects"][dir]["hasTrustDialogAccepted"], true, "{dir}");
        }
        assert_eq!(
            next["customApiKeyResponses"],
            json!({ "rejected": ["x"], "approved": ["34567890123456789012"] })
        );
        assert_eq!(
            without_dialogs(&next, &["/state"], Some("sk-ant-1234567890123456789012")),
            None,
            "once is enough"
        );
        assert!(without_dialogs(&json!("torn"), &["/state"], None).unwrap().is_object());
    }
}
