//! Questions at the terminal.

use std::io::{BufRead, IsTerminal, Read};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::context::Context;
use super::failure::Failure;

/// No secret is longer.
const SECRET_BYTES: u64 = 64 << 10;

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

/// A secret: from the terminal, which does not show it, or from standard input.
pub(crate) fn secret(context: &Context, question: &str) -> Result<String, Failure> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        let mut text = String::new();
        input.lock().take(SECRET_BYTES).read_to_string(&mut text)?;
        return Ok(text);
    }
    context.out.say(question);
    let shown = tcgetattr(&input).map_err(std::io::Error::from)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Flush, &hidden).map_err(std::io::Error::from)?;
    let mut text = String::new();
    let read = input.lock().take(SECRET_BYTES).read_line(&mut text);
    // First of all the terminal is as it was.
    tcsetattr(&input, OptionalActions::Flush, &shown).map_err(std::io::Error::from)?;
    read?;
    Ok(text)
}

/// Whether an answer to `[Y/n]` is yes.
pub(crate) fn is_yes(answer: &str) -> bool {
    matches!(answer, "" | "y" | "yes")
}
