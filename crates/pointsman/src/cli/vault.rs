//! Dangerous actions: submitted by anybody, decided by people.

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use pointsman_core::ids::ProjectName;
use pointsman_core::text::{clean_block, clean_line};
use pointsman_core::vault::{ActionId, Entry, MAX_BYTES, Risk, Status};
use pointsman_core::words;
use pointsman_store::VaultScope;
use pointsman_view::vault::Action;
use serde_json::Value;

use super::context::{Context, inside_session};
use super::failure::Failure;
use super::table::{Cell, Table};
use super::{style, time};
use crate::control::protocol::{Request, VaultCommand};
use crate::project::Project;

/// Most of a payload that is shown to people.
const SHOWN_BYTES: usize = 8 * 1024;

/// Work with dangerous actions that wait until a rule or a person approves them
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman vault list --open\n  \
    pointsman vault show deploy-7 && pointsman vault approve deploy-7")]
pub(crate) enum Command {
    /// Submit an action
    #[command(after_help = "Example:\n  pointsman vault submit deploy-7.json")]
    Submit(Submit),
    /// List actions, oldest first
    #[command(after_help = "Example:\n  pointsman vault list --open")]
    List {
        /// Only actions that still need something
        #[arg(long)]
        open: bool,
    },
    /// Show an action with its payload
    #[command(after_help = "Example:\n  pointsman vault show deploy-7")]
    Show {
        /// The action
        #[arg(value_parser = action_id)]
        id: ActionId,
    },
    /// Approve an action, once
    #[command(after_help = "Example:\n  pointsman vault approve deploy-7")]
    Approve(Approve),
    /// Reject an action, even one that was approved but has not run yet
    #[command(after_help = "Example:\n  pointsman vault reject deploy-7 --reason \"Not on a Friday\"")]
    Reject {
        /// The action
        #[arg(value_parser = action_id)]
        id: ActionId,
        /// The reason
        #[arg(long, default_value = "rejected by a person")]
        reason: String,
    },
    /// Raise the risk of an action; a risk is never lowered
    #[command(after_help = "Example:\n  \
        pointsman vault raise deploy-7 --risk high --reason \"It touches the customers' data\"")]
    Raise(Raise),
}

/// The action is JSON with exactly these fields: id, type, source, risk (low, medium, high), reversible, requires_human, payload.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// The file with the action; by default, or with -, standard input
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The action
    #[arg(value_parser = action_id)]
    id: ActionId,
    /// Approve only if the action still has this hash; by default its current one
    #[arg(long)]
    hash: Option<String>,
    /// Run it even though it may have run before
    #[arg(long)]
    again: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Raise {
    /// The action
    #[arg(value_parser = action_id)]
    id: ActionId,
    /// The new risk: low, medium or high
    #[arg(long, value_parser = risk, default_value = "low")]
    risk: Risk,
    /// It cannot be undone
    #[arg(long)]
    irreversible: bool,
    /// A person must approve it
    #[arg(long)]
    requires_human: bool,
    /// The reason
    #[arg(long)]
    reason: String,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Submit(arguments) => arguments.run(context),
            Self::List { open } => {
                let scope = if open { VaultScope::Open } else { VaultScope::All };
                let project = context.project()?;
                let entries = match context.store()? {
                    Some(store) => store.vault_entries(&project.config.name, scope)?,
                    None => Vec::new(),
                };
                list(context, &entries)
            }
            Self::Show { id } => show(context, &find(context, &context.project()?, &id)?),
            Self::Approve(arguments) => arguments.run(context),
            Self::Reject { id, reason } => {
                context.people_only("deciding about vault actions")?;
                let command = VaultCommand::Reject { id, reason, by: context.author() };
                let action = order(context, context.project_name()?, command)?;
                tell(context, &action, "Rejected. The action will not run.")
            }
            Self::Raise(Raise { id, risk, irreversible, requires_human, reason }) => {
                let by = context.author();
                let command = VaultCommand::Raise { id, risk, irreversible, requires_human, reason, by };
                let action = order(context, context.project_name()?, command)?;
                tell(context, &action, &format!("Raised. The action is now {}.", action.status.as_str()))
            }
        }
    }
}

impl Submit {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let mut text = String::new();
        let limit = MAX_BYTES as u64 + 1;
        match self.file.filter(|file| file.as_os_str() != "-") {
            Some(file) => std::fs::File::open(&file)
                .and_then(|opened| opened.take(limit).read_to_string(&mut text))
                .map_err(|error| Failure::not_found(format!("{}: {error}", file.display())))?,
            None => std::io::stdin().lock().take(limit).read_to_string(&mut text)?,
        };
        let command = VaultCommand::Submit { text, from: inside_session() };
        let action = order(context, context.project_name()?, command)?;
        let words = match action.status {
            Status::Pending => "It waits for a person.".to_owned(),
            Status::Approved => "It is harmless enough to run without approval.".to_owned(),
            other @ (Status::Firing
            | Status::Fired
            | Status::Failed
            | Status::Rejected
            | Status::Uncertain) => format!("It is already {}.", other.as_str()),
        };
        tell(context, &action, &words)
    }
}

impl Approve {
    fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("deciding about vault actions")?;
        let project = context.project()?;
        let hash = match self.hash {
            Some(hash) => hash,
            None => find(context, &project, &self.id)?.hash,
        };
        let command = VaultCommand::Approve { id: self.id, hash, again: self.again, by: context.author() };
        let action = order(context, project.config.name, command)?;
        tell(context, &action, "Approved. The action runs once.")
    }
}

fn order(context: &Context, project: ProjectName, command: VaultCommand) -> Result<Action, Failure> {
    context.ask_and_say(&Request::Vault { project, command })
}

fn tell(context: &Context, action: &Action, words: &str) -> Result<(), Failure> {
    match context.out.is_json() {
        true => context.out.value(action),
        false => context.out.line(format!("{}: {words}", action.id)),
    }
}

fn find(context: &Context, project: &Project, id: &ActionId) -> Result<Entry, Failure> {
    let missing = || {
        Failure::not_found(format!("the vault of {} has no action {id}", project.config.name))
            .hint("pointsman vault list")
    };
    let store = context.store()?.ok_or_else(missing)?;
    store.vault_entry(&project.config.name, id)?.ok_or_else(missing)
}

fn list(context: &Context, entries: &[Entry]) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&entries.iter().map(Action::from).collect::<Vec<_>>());
    }
    let mut table = Table::new(["ID", "STATUS", "RISK", "TYPE", "SINCE", "SOURCE"]);
    let now = time::now();
    for entry in entries {
        let reason =
            entry.reason.as_deref().map(|why| format!("  {}", clean_line(why, 160))).unwrap_or_default();
        table.row([
            entry.id().as_str().into(),
            Cell::styled(entry.status.as_str(), colour(entry.status)),
            entry.estimate.risk.as_str().into(),
            entry.action.kind.as_str().into(),
            time::relative(entry.submitted_at, now).into(),
            format!("{}{reason}", clean_line(&entry.action.source, 80)).into(),
        ]);
    }
    context.out.table(&table, "The vault is empty.")
}

fn show(context: &Context, entry: &Entry) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&Action::from(entry));
    }
    let colour = colour(entry.status);
    let mut lines = vec![
        format!("{}  {colour}{}{colour:#}", entry.id(), entry.status.as_str()),
        format!("type      {}", entry.action.kind),
        format!("source    {}", clean_line(&entry.action.source, 200)),
        format!("danger    {}", words::vault::danger(entry.estimate)),
        format!("hash      {}", entry.hash),
        format!("submitted {}", time::local(entry.submitted_at)),
    ];
    let decided = entry.decided_by.as_deref().map(|by| format!("decided   by {}", clean_line(by, 100)));
    lines.extend(decided);
    lines.extend(entry.expires_at.map(|at| format!("expires   {}", time::relative(at, time::now()))));
    lines.extend(entry.reason.as_deref().map(|why| format!("reason    {}", clean_line(why, 500))));
    let payload = serde_json::to_string_pretty(&entry.action.payload).unwrap_or_default();
    lines.push(format!("payload\n{}", clean_block(&payload, SHOWN_BYTES)));
    context.out.line(lines.join("\n"))
}

fn colour(status: Status) -> anstyle::Style {
    match status {
        Status::Pending | Status::Approved | Status::Firing => style::BUSY,
        Status::Fired => style::GOOD,
        Status::Failed | Status::Uncertain => style::BAD,
        Status::Rejected => style::QUIET,
    }
}

fn action_id(text: &str) -> Result<ActionId, String> {
    ActionId::try_from(text.to_owned())
}

fn risk(text: &str) -> Result<Risk, String> {
    serde_json::from_value(Value::from(text)).map_err(|_| "low, medium or high".to_owned())
}
