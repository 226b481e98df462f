use clap::Args;
use pointsman_view::session::Acknowledged;

use super::context::{Context, inside_session};
use super::failure::Failure;
use crate::control::protocol::Request;

/// Acknowledge a message from Pointsman, for agents without hooks
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pointsman ack m-12")]
pub(crate) struct Arguments {
    /// The message's id, as shown at its beginning
    #[arg(value_name = "m-ID", value_parser = message_id)]
    message: i64,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let request = Request::Acknowledge { message: self.message, session: inside_session() };
        let answer: Acknowledged = context.ask(&request)?;
        if context.out.is_json() { context.out.value(&answer) } else { Ok(()) }
    }
}

fn message_id(text: &str) -> Result<i64, String> {
    text.strip_prefix("m-")
        .unwrap_or(text)
        .parse()
        .ok()
        .filter(|id| *id >= 0)
        .ok_or_else(|| "write it as shown at the beginning of the message: m-12".to_owned())
}
