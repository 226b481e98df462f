//! Reports from Claude Code's hooks about our sessions, reduced to what we act on.
//!
//! Hooks are hints. A report may be missing, late or repeated, and an agent can call a hook itself. So the task and
//! the facts decide what follows. [`guard`] checks commands before they run. [`transcript`] reads the record that
//! Claude Code keeps of a conversation.

mod activity;
pub mod guard;
pub mod transcript;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::budget::Spent;
use crate::session::context::Gauge;
pub use activity::Activity;

use crate::session::trouble::Kind;
use crate::session::work::Action;
use crate::text;
use crate::time::Timestamp;

/// How much of an outside text is kept.
const TEXT_CHARS: usize = 400;
/// How much of an agent's response is passed on to those who read along.
pub const SAID_BYTES: usize = 2000;
/// The mark of our messages, at the beginning of a line.
const MESSAGE_MARK: &str = "[pointsman m-";
/// More messages than this are never in one prompt.
const MESSAGES: usize = 32;

/// One event of one session, on its way to the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Names this call of the hook, so that it counts once however often it is delivered.
    pub id: String,
    /// The session that says so: a claim.
    pub session: String,
    pub at: Timestamp,
    pub told: HookEvent,
}

/// An event of a session, as a hook reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "hook", rename_all = "snake_case")]
pub enum HookEvent {
    /// A conversation began, or was taken up again.
    Started {
        /// `startup`, `resume`, `clear`, `compact` or `fork`.
        source: String,
        /// Claude's own name for it.
        conversation: Option<String>,
        model: Option<String>,
    },
    /// A prompt was handed in, with these messages of ours in it.
    Prompted {
        messages: Vec<i64>,
    },
    /// A tool is about to be used, or was.
    Tool {
        /// What that means for the work.
        work: ToolUse,
        done: bool,
        /// How many tokens the context holds, by the transcript.
        #[serde(default)]
        used_tokens: Option<u64>,
    },
    /// The agent's response has ended.
    Stopped {
        /// Something still runs in the background.
        busy: bool,
        /// Messages of ours that its transcript shows as read: a prompt that waited while the agent worked is told by
        /// no hook in some versions.
        #[serde(default)]
        messages: Vec<i64>,
        /// How many tokens the context holds, by the transcript.
        #[serde(default)]
        used_tokens: Option<u64>,
        /// The end of what it said.
        #[serde(default)]
        said: Option<String>,
    },
    /// The agent's response was cut off by an error.
    Failed {
        error: String,
        /// What it says about it.
        details: String,
        /// When it is over, if the service said so.
        #[serde(default)]
        until: Option<Timestamp>,
    },
    /// What the session has used since its start. The end of a turn is told apart from it.
    Measured {
        /// How full the context is.
        gauge: Option<Gauge>,
        spent: Spent,
    },
    /// A dialog waits for a person.
    Asked {
        what: String,
    },
    /// The session is idle, says Claude.
    Idle,
    /// The conversation is about to be compacted.
    Compacting,
    Compacted,
    Ended {
        reason: String,
    },
    /// Nothing that we act on.
    Other {
        name: String,
    },
}

/// The meaning of a tool for the work. The same as [`Action`], in a form that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolUse {
    /// Files were read or searched.
    Read,
    /// A plan was written down.
    Planned,
    Edited,
    Testing,
    TestsPassed,
    TestsFailed,
    Finished,
    Other,
}

impl From<Action> for ToolUse {
    fn from(action: Action) -> Self {
        match action {
            Action::Read => Self::Read,
            Action::Planned => Self::Planned,
            Action::Edited => Self::Edited,
            Action::Tested(None) => Self::Testing,
            Action::Tested(Some(true)) => Self::TestsPassed,
            Action::Tested(Some(false)) => Self::TestsFailed,
            Action::Finished => Self::Finished,
            Action::Other => Self::Other,
        }
    }
}

impl From<ToolUse> for Action {
    fn from(work: ToolUse) -> Self {
        match work {
            ToolUse::Read => Self::Read,
            ToolUse::Planned => Self::Planned,
            ToolUse::Edited => Self::Edited,
            ToolUse::Testing => Self::Tested(None),
            ToolUse::TestsPassed => Self::Tested(Some(true)),
            ToolUse::TestsFailed => Self::Tested(Some(false)),
            ToolUse::Finished => Self::Finished,
            ToolUse::Other => Self::Other,
        }
    }
}

impl HookEvent {
    /// Reads an event by its name, in any case and spelling. Unknown events and fields pass.
    pub fn read(event: &str, payload: &Value) -> Self {
        let field = |name: &str| payload[name].as_str().map(|text| text::clean_line(text, TEXT_CHARS));
        let said = |name: &str| field(name).unwrap_or_default();
        match plain_name(event).as_str() {
            "sessionstart" => Self::Started {
                source: said("source"),
                conversation: field("session_id"),
                model: field("model"),
            },
            "userpromptsubmit" => {
                Self::Prompted { messages: message_ids(payload["prompt"].as_str().unwrap_or_default()) }
            }
            "pretooluse" => tool(payload, None, false),
            "posttooluse" => tool(payload, Some(true), true),
            "posttoolusefailure" => tool(payload, Some(false), true),
            "stop" | "onstop" => Self::Stopped {
                busy: payload["background_tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()),
                messages: Vec::new(),
                used_tokens: None,
                said: words(&payload["last_assistant_message"]),
            },
            "notify" => notified(payload),
            "stopfailure" => {
                let details = field("error_details").or_else(|| field("last_assistant_message"));
                Self::Failed { error: said("error"), details: details.unwrap_or_default(), until: None }
            }
            "permissionrequest" => Self::Asked { what: format!("permission for {}", said("tool_name")) },
            "notification" => match said("notification_type").as_str() {
                "permission_prompt" | "elicitation_dialog" => Self::Asked { what: said("message") },
                "idle_prompt" => Self::Idle,
                _ => Self::Other { name: "notification".to_owned() },
            },
            "precompact" => Self::Compacting,
            "postcompact" => Self::Compacted,
            "sessionend" => Self::Ended { reason: said("reason") },
            name => Self::Other { name: text::clean_line(name, TEXT_CHARS) },
        }
    }

    /// Whether the daemon has to have it on disk before the agent goes on. The rest is worth less than the wait.
    pub fn matters(&self) -> bool {
        match self {
            Self::Tool { .. } | Self::Idle | Self::Other { .. } => false,
            Self::Started { .. }
            | Self::Prompted { .. }
            | Self::Stopped { .. }
            | Self::Failed { .. }
            | Self::Measured { .. }
            | Self::Asked { .. }
            | Self::Compacting
            | Self::Compacted
            | Self::Ended { .. } => true,
        }
    }
}

/// What other coding agents tell when they notify: that a turn is over, or that somebody is needed. The words are those of
/// Codex (`type`, the prompts of the turn and its last words), opencode (`type`) and Gemini CLI (`hook_event_name`).
fn notified(payload: &Value) -> HookEvent {
    let kind = ["type", "event", "hook_event_name"].iter().find_map(|name| payload[name].as_str());
    match plain_name(kind.unwrap_or_default()).as_str() {
        "agentturncomplete" | "session.idle" | "afteragent" | "idle" => {
            let prompts = payload["input-messages"].as_array().into_iter().flatten();
            let messages = prompts.filter_map(Value::as_str).flat_map(message_ids).take(MESSAGES).collect();
            let said = words(&payload["last-assistant-message"]);
            HookEvent::Stopped { busy: false, messages, used_tokens: None, said }
        }
        "approvalrequested" | "permission.asked" | "permission.updated" => {
            HookEvent::Asked { what: "permission".to_owned() }
        }
        _ => HookEvent::Other { name: "notify".to_owned() },
    }
}

/// A text of an agent, cleaned and cut; none if it says nothing.
fn words(text: &Value) -> Option<String> {
    let said = text::clean_block(text.as_str()?, SAID_BYTES);
    (!said.trim().is_empty()).then_some(said)
}

/// An event's name without case, dashes and underscores.
pub fn plain_name(event: &str) -> String {
    event.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect()
}

/// The messages of ours that a prompt holds: at the beginning of a line, where nobody else's text can be.
pub fn message_ids(prompt: &str) -> Vec<i64> {
    let id = |line: &str| line.trim_start().strip_prefix(MESSAGE_MARK)?.split_once(']')?.0.parse().ok();
    prompt.lines().filter_map(id).take(MESSAGES).collect()
}

fn tool(payload: &Value, succeeded: Option<bool>, done: bool) -> HookEvent {
    let name = payload["tool_name"].as_str().unwrap_or_default();
    let command = payload["tool_input"]["command"].as_str();
    HookEvent::Tool { work: Action::of_tool(name, command, succeeded).into(), done, used_tokens: None }
}

/// Sorts an error, if waiting or a person can end it. An error without a name is the service's if it
/// does not blame the request.
pub fn trouble(error: &str, details: &str) -> Option<Kind> {
    match error {
        "unknown" | "" if !details.contains("API Error: 4") => Some(Kind::ServerError),
        "overloaded" => Some(Kind::ServerError),
        error => Kind::named(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{HookEvent, ToolUse, trouble};
    use crate::session::trouble::Kind;

    #[test]
    fn messages_are_found_where_only_we_can_have_put_them() {
        let prompt =
            "[pointsman m-12] CI failed on abc. Details: /x\nhe said [pointsman m-13] ok\n [pointsman m-7] x";
        let told = HookEvent::read("UserPromptSubmit", &json!({ "prompt": prompt }));
        assert_eq!(told, HookEvent::Prompted { messages: vec![12, 7] });
        for prompt in ["", "[pointsman m-]", "[pointsman m-x] y", "pointsman m-1"] {
            let told = HookEvent::read("user_prompt_submit", &json!({ "prompt": prompt }));
            assert_eq!(told, HookEvent::Prompted { messages: vec![] }, "{prompt}");
        }
    }

    #[test]
    fn a_message_that_woke_the_model_is_found_in_its_prompt() {
        let woken = crate::words::message::waking(&["[pointsman m-12] CI passed. Details: /x".to_owned()]);
        // As recorded: Claude puts its own words before the first line.
        let prompt = format!(
            "<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n<system-reminder>\n\
             Stop hook blocking error from command \"Stop\": {woken}\n</system-reminder>"
        );
        let told = HookEvent::read("UserPromptSubmit", &json!({ "prompt": prompt }));
        assert_eq!(told, HookEvent::Prompted { messages: vec![12] });
    }

    #[test]
    fn other_agents_say_that_a_turn_is_over_or_that_somebody_is_needed() {
        let codex = json!({
            "type": "agent-turn-complete", "turn-id": "1",
            "input-messages": ["[pointsman m-4] CI passed. Details: /x", "more [pointsman m-5]"],
            "last-assistant-message": "Done.",
        });
        let over = |messages: Vec<i64>, said: Option<&str>| {
            let said = said.map(str::to_owned);
            HookEvent::Stopped { busy: false, messages, used_tokens: None, said }
        };
        assert_eq!(HookEvent::read("notify", &codex), over(vec![4], Some("Done.")));
        assert_eq!(HookEvent::read("notify", &json!({ "type": "session.idle" })), over(vec![], None));
        assert_eq!(
            HookEvent::read("notify", &json!({ "hook_event_name": "AfterAgent" })),
            over(vec![], None)
        );
        let asked = HookEvent::read("notify", &json!({ "type": "approval-requested" }));
        assert_eq!(asked, HookEvent::Asked { what: "permission".to_owned() });
        for other in [json!(null), json!({}), json!({ "type": 7 }), json!({ "type": "agent-turn-begun" })] {
            assert_eq!(HookEvent::read("notify", &other), HookEvent::Other { name: "notify".to_owned() });
        }
    }

    #[test]
    fn a_failing_command_is_told_by_another_event() {
        let bash = json!({ "tool_name": "Bash", "tool_input": { "command": "cargo test -q" } });
        for (event, work, done) in [
            ("PreToolUse", ToolUse::Testing, false),
            ("PostToolUse", ToolUse::TestsPassed, true),
            ("PostToolUseFailure", ToolUse::TestsFailed, true),
        ] {
            let used_tokens = None;
            assert_eq!(HookEvent::read(event, &bash), HookEvent::Tool { work, done, used_tokens }, "{event}");
        }
    }

    #[test]
    fn odd_payloads_and_unknown_events_pass() {
        assert_eq!(HookEvent::read("Tomorrow", &json!([1])), HookEvent::Other { name: "tomorrow".into() });
        for event in ["SessionStart", "Stop", "StopFailure", "Notification", "SessionEnd", "PreToolUse"] {
            for payload in [json!(null), json!(7), json!({ "source": 1, "error": [], "tool_input": "x" })] {
                let _ = HookEvent::read(event, &payload);
            }
        }
    }

    #[test]
    fn errors_are_sorted_by_who_can_end_them() {
        assert_eq!(trouble("rate_limit", ""), Some(Kind::RateLimit));
        assert_eq!(trouble("server_error", "API Error: 529"), Some(Kind::ServerError));
        assert_eq!(trouble("billing_error", "Credit balance is too low"), Some(Kind::BillingError));
        assert_eq!(trouble("unknown", "stream closed"), Some(Kind::ServerError));
        assert_eq!(trouble("unknown", "API Error: 400 invalid_request_error"), None);
        assert_eq!(trouble("invalid_request", ""), None);
        assert_eq!(trouble("model_not_found", ""), None);
    }
}
