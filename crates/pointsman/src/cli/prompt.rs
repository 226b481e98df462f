//! Questions at the terminal.

use std::io::{BufRead, IsTerminal};

use super::context::Context;
use super::failure::Failure;

/// The answer of a person at the terminal, in lower case; none if nobody is there.
pub(crate) fn asked(context: &Context, question: &str) -> Result<Option<String>, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(None);
    }
    context.out.say(question);
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(Some(answer.trim().to_ascii_lowercase()))
}

/// Whether an answer to `[Y/n]` is yes.
pub(crate) fn is_yes(answer: &str) -> bool {
    matches!(answer, "" | "y" | "yes")
}
