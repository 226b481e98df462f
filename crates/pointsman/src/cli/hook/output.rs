//! The output that Claude Code understands from a hook. Only the shapes that were seen to be honoured.

use std::io::Write;

use serde_json::json;

/// Text that is put before the model. At a stop it makes the agent go on.
pub(super) fn context(event: &str, text: &str) {
    print(&json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } }));
}

/// Text that only the person sees.
pub(super) fn message(text: &str) {
    print(&json!({ "systemMessage": text }));
}

/// Puts a text before the model of an idle session, together with the exit code 2.
pub(super) fn wake(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A command is not run, and the agent is told why.
pub(super) fn deny(reason: &str) {
    print(&json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
    } }));
}

fn print(value: &serde_json::Value) {
    // Nobody may read it any more; that is no reason to fail.
    let _ = writeln!(std::io::stdout().lock(), "{value}");
}
