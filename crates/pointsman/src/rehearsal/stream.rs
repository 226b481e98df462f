//! The output of a play without a terminal: the same lines as on one, as a stream of JSON that a keeper reads.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::daemon::clock;

/// What the rehearsal agent says it is.
const MODEL: &str = "rehearsal";
/// Its window, and what one turn uses.
const WINDOW: u64 = 200_000;
const TOKENS: u64 = 1_000;
const USD: f64 = 0.001;

/// Turns lines that are written to it into lines of JSON.
pub(super) struct Stream<W> {
    out: W,
    line: Vec<u8>,
    tools: u32,
}

impl<W: Write> Stream<W> {
    /// Begins a turn.
    pub(super) fn begin(mut out: W, session: &str) -> io::Result<Self> {
        print(
            &mut out,
            &json!({ "type": "system", "subtype": "init", "session_id": session, "model": MODEL }),
        )?;
        Ok(Self { out, line: Vec::new(), tools: 0 })
    }

    /// A turn that ended as it should.
    pub(super) fn over(&mut self) -> io::Result<()> {
        let models = json!({ MODEL: { "inputTokens": TOKENS, "contextWindow": WINDOW } });
        print(
            &mut self.out,
            &json!({
                "type": "result", "subtype": "success", "is_error": false, "result": "",
                "usage": { "input_tokens": TOKENS }, "total_cost_usd": USD, "modelUsage": models,
            }),
        )
    }

    /// A turn that its service cut off, for so many seconds.
    pub(super) fn limited(&mut self, seconds: u32) -> io::Result<()> {
        let until = clock::now().0 / 1000 + i64::from(seconds);
        let info = json!({ "status": "rejected", "resetsAt": until });
        print(&mut self.out, &json!({ "type": "rate_limit_event", "rate_limit_info": info }))?;
        let said = "API Error: Request rejected (429)";
        print(
            &mut self.out,
            &json!({
                "type": "result", "subtype": "success", "is_error": true, "api_error_status": 429, "result": said,
            }),
        )
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        let Some((tool, input)) = tool(line) else {
            return self.assistant(&json!({ "type": "text", "text": line }));
        };
        self.tools += 1;
        let id = format!("tool-{}", self.tools);
        self.assistant(&json!({ "type": "tool_use", "id": id, "name": tool, "input": input }))?;
        let result = json!({ "type": "tool_result", "tool_use_id": id, "is_error": false });
        print(&mut self.out, &json!({ "type": "user", "message": { "content": [result] } }))
    }

    fn assistant(&mut self, block: &Value) -> io::Result<()> {
        let message = json!({ "content": [block], "usage": { "input_tokens": TOKENS } });
        print(&mut self.out, &json!({ "type": "assistant", "message": message, "parent_tool_use_id": null }))
    }
}

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                self.say(&String::from_utf8_lossy(&line))?;
            } else {
                self.line.push(*byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What a real agent would have used for this.
fn tool(line: &str) -> Option<(&'static str, Value)> {
    let (word, rest) = line.strip_prefix("• ")?.split_once(' ').unwrap_or((line.strip_prefix("• ")?, ""));
    match word {
        "write" | "append" => Some(("Write", json!({ "file_path": rest }))),
        "commit" | "push" => Some(("Bash", json!({ "command": format!("git {word}") }))),
        _ => None,
    }
}

fn print(out: &mut impl Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value}")?;
    out.flush()
}
