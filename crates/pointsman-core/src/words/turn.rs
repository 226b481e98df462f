//! Turns of a session without a terminal, a line each, for people who read its transcript.

use crate::claude::stream::{Ended, TurnEvent};
use crate::text;

/// What was said in one line.
const LINE_CHARS: usize = 300;

/// A turn begins with this prompt.
pub fn begins(number: u32, prompt: &str) -> String {
    let mut lines = format!("--- turn {number}\n");
    for line in prompt.lines() {
        lines.push_str(&format!("> {}\n", text::clean_line(line, LINE_CHARS)));
    }
    lines
}

/// A line for an event of a turn; none if it is not worth one.
pub fn said(said: &TurnEvent) -> Option<String> {
    let line = match said {
        TurnEvent::Begun { .. } | TurnEvent::Did { succeeded: true, .. } => return None,
        TurnEvent::Spoke { text } => format!("{}\n", text.trim_end()),
        TurnEvent::Uses { tool, what } => format!("* {tool} {what}\n"),
        TurnEvent::Did { tool, succeeded: false, .. } => format!("* {tool} failed\n"),
        TurnEvent::Retries { error } => format!("* the service answers {error}; trying again\n"),
        TurnEvent::Malformed => "* a line that is not JSON\n".to_owned(),
    };
    Some(line)
}

/// A turn has ended.
pub fn ended(number: u32, ended: &Ended) -> String {
    match ended {
        Ended::Over(measured) => {
            let usd = measured.spent.micro_usd as f64 / 1_000_000.0;
            let context =
                measured.gauge.map(|g| format!(", context {:.0} %", g.percent())).unwrap_or_default();
            format!("--- turn {number} is over: {} tokens, ${usd:.4}{context}\n", measured.spent.tokens)
        }
        Ended::Failed { error, details, .. } => {
            format!("--- turn {number} was cut off ({error}): {}\n", text::clean_line(details, LINE_CHARS))
        }
        Ended::Died { why } => format!("--- turn {number} died: {}\n", text::clean_line(why, LINE_CHARS)),
    }
}

/// A line of its own: something the session says about itself.
pub fn note(what: &str) -> String {
    format!("--- {}\n", text::clean_line(what, LINE_CHARS))
}
