//! The status that a session of Claude Code writes about itself into `sessions/<pid>.json`, and what its release can
//! do.
//!
//! Nobody has promised that file: one that is missing or different says nothing.

use serde_json::Value;

use crate::text;

/// The oldest release that was seen to wake its model with what an asynchronous hook says. An older one might wait for
/// such a hook instead, and stand still.
const WAKES_SINCE: (u32, u32, u32) = (2, 1, 197);

/// The state of a running Claude Code, as it writes it to a file of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaudeStatus {
    /// What it waits for a person to say: it stands at a dialog.
    pub waits_for: Option<String>,
    /// It is between two turns, also after a person interrupted one, which no hook reports.
    pub is_idle: bool,
    /// Where it takes messages from outside, if its release does.
    pub socket: Option<String>,
}

/// Reads the file of a process; none if it is about another one.
pub fn read(text: &str, pid: u32) -> Option<ClaudeStatus> {
    let value: Value = serde_json::from_str(text).ok()?;
    (value["pid"].as_u64() == Some(u64::from(pid))).then_some(())?;
    let waits = value["status"].as_str() == Some("waiting");
    let what = value["waitingFor"].as_str().unwrap_or("an answer");
    let socket = value["messagingSocketPath"].as_str().filter(|path| path.starts_with('/'));
    Some(ClaudeStatus {
        waits_for: waits.then(|| text::clean_line(what, 200)),
        is_idle: value["status"].as_str() == Some("idle"),
        socket: socket.map(str::to_owned),
    })
}

/// Whether the release that `--version` prints wakes its model with what an asynchronous hook says.
pub fn wakes(version: &str) -> bool {
    let number = version.split_whitespace().next().unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>());
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => (major, minor, patch) >= WAKES_SINCE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{ClaudeStatus, read, wakes};

    #[test]
    fn a_session_tells_what_it_waits_for_and_where_it_listens() {
        let text = r#"{"pid":7,"status":"idle","messagingSocketPath":"/t/cc-socks/7.sock"}"#;
        let idle = ClaudeStatus { waits_for: None, is_idle: true, socket: Some("/t/cc-socks/7.sock".into()) };
        assert_eq!(read(text, 7), Some(idle));
        assert!(!read(r#"{"pid":7,"status":"busy"}"#, 7).unwrap().is_idle);
        let text = r#"{"pid":7,"status":"waiting","waitingFor":"permission\nprompt"}"#;
        assert_eq!(read(text, 7).unwrap().waits_for.as_deref(), Some("permission prompt"));
        assert_eq!(
            read(r#"{"pid":7,"status":"waiting"}"#, 7).unwrap().waits_for.as_deref(),
            Some("an answer")
        );
    }

    #[test]
    fn what_is_unknown_says_nothing() {
        for text in ["", "torn {", "[]", r#"{"pid":8,"status":"waiting"}"#, r#"{"status":"waiting"}"#] {
            assert_eq!(read(text, 7), None, "{text}");
        }
        let odd = r#"{"pid":7,"status":["x"],"messagingSocketPath":"relative"}"#;
        assert_eq!(read(odd, 7), Some(ClaudeStatus::default()));
    }

    #[test]
    fn releases_are_compared_by_number() {
        for (version, able) in [
            ("2.1.197 (Claude Code)", true),
            ("2.1.325 (Claude Code)\n", true),
            ("3.0.0", true),
            ("2.1.196", false),
            ("2.0.999", false),
            ("2.1", false),
            ("", false),
            ("nightly", false),
        ] {
            assert_eq!(wakes(version), able, "{version}");
        }
    }
}
