//! The input that Claude Code writes to a hook: one JSON value, from a program that may be torn down in the middle of
//! it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event with a tool's whole output is some megabytes at most.
const LARGEST: usize = 8 << 20;
/// Claude writes at once and closes; whoever does not is not waited for longer than this.
const PATIENCE: Duration = Duration::from_secs(3);
const CHUNK: usize = 64 * 1024;

/// What was read.
pub(super) enum Input {
    Text(Vec<u8>),
    /// More than there can rightly be; the rest was read and dropped, so that the writer is not broken.
    TooLarge,
    Endless,
}

/// Why there is no event in it.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidInput {
    #[error("the input is empty")]
    Empty,
    #[error("the input has more than {LARGEST} bytes; the event is dropped")]
    TooLarge,
    #[error("the input did not end within {} s; the event is dropped", PATIENCE.as_secs())]
    Endless,
    #[error("the input is not a JSON object; it is dropped")]
    NoObject,
    #[error("the input is not an event: {0}; it is dropped")]
    Malformed(serde_json::Error),
}

/// Reads standard input to its end, with limits on size and time.
pub(super) fn read() -> Input {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Input::Text(Vec::new());
    }
    let deadline = Instant::now() + PATIENCE;
    let (mut text, mut chunk, mut total) = (Vec::new(), vec![0; CHUNK], 0_usize);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(wait) = Timespec::try_from(left) else { return Input::Endless };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&wait)) {
            Ok(0) => return Input::Endless,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        }
        match rustix::io::read(&stdin, &mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                total = total.saturating_add(count);
                if total <= LARGEST {
                    text.extend_from_slice(&chunk[..count]);
                }
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => break,
        }
        // A fast writer never lets the poll run out.
        if left.is_zero() {
            return Input::Endless;
        }
    }
    if total > LARGEST { Input::TooLarge } else { Input::Text(text) }
}

impl Input {
    /// Whatever JSON is in it; null if there is none.
    pub(super) fn value(self) -> Value {
        match self {
            Self::Text(text) => serde_json::from_slice(&text).unwrap_or_default(),
            Self::TooLarge | Self::Endless => Value::Null,
        }
    }

    /// The event in it.
    pub(super) fn payload(self) -> Result<Payload, InvalidInput> {
        match self {
            Self::TooLarge => Err(InvalidInput::TooLarge),
            Self::Endless => Err(InvalidInput::Endless),
            Self::Text(text) if text.trim_ascii().is_empty() => Err(InvalidInput::Empty),
            // A list would be taken for the fields in their order.
            Self::Text(text) if !text.trim_ascii_start().starts_with(b"{") => Err(InvalidInput::NoObject),
            Self::Text(text) => serde_json::from_slice(&text).map_err(InvalidInput::Malformed),
        }
    }
}

/// The fields that decide anything. Others, such as a tool's whole output, pass unseen; these may be of any type, since
/// versions differ.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Payload {
    cwd: Value,
    transcript_path: Value,
    session_id: Value,
    stop_hook_active: Value,
    background_tasks: Value,
    notification_type: Value,
    message: Value,
    source: Value,
    model: Value,
    prompt: Value,
    tool_name: Value,
    tool_input: Value,
    error: Value,
    error_details: Value,
    last_assistant_message: Value,
    reason: Value,
}

impl Payload {
    /// Where the session is.
    pub(super) fn cwd(&self) -> Option<PathBuf> {
        self.cwd.as_str().filter(|cwd| !cwd.is_empty()).map(PathBuf::from)
    }

    /// Whether the agent goes on because of an earlier answer to this very stop.
    pub(super) fn goes_on(&self) -> bool {
        self.stop_hook_active == Value::Bool(true)
    }

    /// All of them as one value.
    pub(super) fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Whether a notification says that the session is idle.
    pub(super) fn is_idle(&self) -> bool {
        self.notification_type == "idle_prompt"
    }
}

#[cfg(test)]
mod tests {
    use super::{Input, InvalidInput, Payload};

    fn parse(text: &str) -> Result<Payload, InvalidInput> {
        Input::Text(text.as_bytes().to_vec()).payload()
    }

    #[test]
    fn odd_fields_pass() {
        let odd = parse(r#"{"cwd": 7, "stop_hook_active": "yes", "new": {"deep": [1]}}"#).unwrap();
        assert_eq!((odd.cwd(), odd.goes_on(), odd.is_idle()), (None, false, false));
        let full = r#"{"cwd": "/a", "stop_hook_active": true, "notification_type": "idle_prompt"}"#;
        let full = parse(full).unwrap();
        assert_eq!((full.cwd(), full.goes_on(), full.is_idle()), (Some("/a".into()), true, true));
    }

    #[test]
    fn nonsense_is_told_from_nothing() {
        assert!(matches!(parse(" \n"), Err(InvalidInput::Empty)));
        for text in ["{", "{}{}", "{\"a\": }"] {
            assert!(matches!(parse(text), Err(InvalidInput::Malformed(_))), "{text}");
        }
        for text in ["[]", "[1]", "\"x\"", "\u{0}", "null"] {
            assert!(matches!(parse(text), Err(InvalidInput::NoObject)), "{text}");
        }
    }
}
