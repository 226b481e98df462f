//! The web from a terminal: login links, and tokens of programs.

use std::io::IsTerminal;

use clap::{Args, Subcommand, ValueEnum};
use pointsman_core::text::clean_line;
use pointsman_core::words;
use pointsman_view::web as view;

use super::context::Context;
use super::failure::{Code, Failure};
use super::table::Table;
use super::time;
use crate::control::protocol::{Request, WebCommand};

/// Open the dashboard in a browser, and give tokens to programs
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  pointsman web open")]
pub(crate) enum Command {
    /// Print a link that logs a browser in to the dashboard, once
    #[command(
        after_help = "Examples:\n  pointsman web open\n  xdg-open \"$(pointsman web open --json | jq -r .url)\""
    )]
    Open(Open),
    /// Tokens with which programs use the API
    #[command(subcommand)]
    Token(Token),
}

#[derive(Debug, Args)]
pub(crate) struct Open {}

/// Tokens with which programs use the API
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  pointsman web token list")]
pub(crate) enum Token {
    /// Make a token; it is printed once
    #[command(after_help = "Example:\n  pointsman web token create \"the wall screen\" --scope read")]
    Create {
        /// A name, so that you know it again
        label: String,
        /// What it may do; may be repeated
        #[arg(long = "scope", value_enum, required = true)]
        scopes: Vec<Scope>,
    },
    /// List the tokens, without their secrets
    #[command(after_help = "Example:\n  pointsman web token list")]
    List,
    /// Make a token worthless
    #[command(after_help = "Example:\n  pointsman web token revoke 3")]
    Revoke {
        /// Its number
        #[arg(value_parser = super::number)]
        token: u64,
    },
}

/// A right of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// See everything that `status`, `inbox` and `events` show
    Read,
    /// Answer, dismiss, start, pause, file issues
    Order,
    /// Approve
    Approve,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("using the web")?;
        match self {
            Self::Open(Open {}) => {
                let link = link(context)?;
                if context.out.is_json() || !std::io::stdout().is_terminal() {
                    return match context.out.is_json() {
                        true => context.out.value(&link),
                        false => context.out.line(&link.url),
                    };
                }
                context.out.line(words::web::link(&link.url))
            }
            Self::Token(command) => command.run(context),
        }
    }
}

impl Token {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Create { label, scopes } => {
                let has = |scope| scopes.contains(&scope);
                let (by, label) = (context.author(), clean_line(&label, 100));
                let (read, order, approve) = (has(Scope::Read), has(Scope::Order), has(Scope::Approve));
                let command = WebCommand::CreateToken { label, read, order, approve, by };
                let made: view::Token = ask(context, command)?;
                if context.out.is_json() {
                    return context.out.value(&made);
                }
                context.out.line(made.token.unwrap_or_default())?;
                context.out.say(words::web::token_made(made.id));
                Ok(())
            }
            Self::List => {
                let tokens: Vec<view::Token> = ask(context, WebCommand::ListTokens)?;
                if context.out.is_json() {
                    return context.out.value(&tokens);
                }
                let mut table = Table::new(["NO", "LABEL", "FOR", "SCOPES", "MADE"]);
                let now = time::now();
                for token in &tokens {
                    table.row([
                        token.id.to_string().into(),
                        clean_line(&token.label, 100).into(),
                        clean_line(&token.by, 100).into(),
                        token.scopes.join(", ").into(),
                        time::relative(token.created_at.0, now).into(),
                    ]);
                }
                context.out.table(&table, "There are no tokens.")
            }
            Self::Revoke { token } => {
                let revoked: view::Token = ask(context, WebCommand::RevokeToken { id: token })?;
                if context.out.is_json() {
                    return context.out.value(&revoked);
                }
                context.out.say(format!("Token {token} does not count any more."));
                Ok(())
            }
        }
    }
}

/// A new login link.
pub(super) fn link(context: &Context) -> Result<view::Link, Failure> {
    ask(context, WebCommand::Link { by: context.author() })
}

fn ask<V: serde::de::DeserializeOwned>(context: &Context, command: WebCommand) -> Result<V, Failure> {
    let hinted = |failure: Failure| match failure.code() {
        Code::NoDaemon => failure.hint("the daemon serves the web"),
        _ => failure,
    };
    context.ask_daemon(&Request::Web { command }).map_err(hinted)
}
