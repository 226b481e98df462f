use std::path::PathBuf;

use clap::{Args, Subcommand};
use pointsman_core::words;
use pointsman_store::backup::{self, Backup};
use pointsman_view::backup as view;

use super::context::Context;
use super::failure::{Code, Failure};
use super::table::Table;
use super::time;
use crate::backups::{self, Found};

/// Copy all databases into one file while work continues
///
/// The daemon makes such a backup every day and keeps the last seven (`[backup]` in the machine's file). The file is
/// an SQLite archive: `sqlite3 FILE -A` lists and extracts it. It does not contain git repositories.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
        pointsman backup                       into the directory of backups\n  \
        pointsman backup /mnt/usb/monday.backup\n  \
        pointsman backup list"
)]
pub(crate) struct Arguments {
    /// The file to write; an existing file is never overwritten
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the files in the backup directory, newest first
    #[command(after_help = "Example:\n  pointsman backup list")]
    List,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("making a backup")?;
        match self.command {
            Some(Command::List) => list(context),
            None => make(context, self.file),
        }
    }
}

fn make(context: &Context, file: Option<PathBuf>) -> Result<(), Failure> {
    if backups::sources(&context.paths)?.is_empty() {
        return Err(Failure::new(Code::NotFound, words::backup::NOTHING).hint("pointsman init"));
    }
    let (path, made) =
        backups::make(&context.paths, file.as_deref(), time::now()).map_err(|error| {
            match (error.downcast_ref::<pointsman_store::Error>(), &file) {
                (Some(inner), Some(file)) if backup::is_taken(inner) => {
                    Failure::refused(words::backup::taken(file))
                        .hint("choose a new name; an existing file is never overwritten")
                }
                _ => Failure::from(error),
            }
        })?;
    let bytes = std::fs::metadata(&path).map_or(0, |meta| meta.len());
    if context.out.is_json() {
        let found = Found { path, is_daily: false, bytes, content: Ok(made) };
        return context.out.value(&view_of(&found));
    }
    context.out.line(words::backup::made(&path, made.databases.len(), &size(bytes)))
}

fn list(context: &Context) -> Result<(), Failure> {
    let found = backups::list(&context.paths)?;
    if context.out.is_json() {
        return context.out.value(&found.iter().map(view_of).collect::<Vec<_>>());
    }
    let mut table = Table::new(["WHEN", "SIZE", "DATABASES", "FILE"]);
    for one in &found {
        let (when, databases) = match &one.content {
            Ok(Backup { made_at, databases }) => (time::local(*made_at), databases.len().to_string()),
            Err(_) => ("unreadable".to_owned(), "-".to_owned()),
        };
        table.row([
            when.into(),
            size(one.bytes).into(),
            databases.into(),
            one.path.display().to_string().into(),
        ]);
    }
    context.out.table(&table, "There are no backups yet. The daemon makes one a day.")
}

fn view_of(found: &Found) -> view::Backup {
    let (made_at, databases, problem) = match &found.content {
        Ok(Backup { made_at, databases }) => (Some((*made_at).into()), databases.clone(), None),
        Err(error) => (None, Vec::new(), Some(error.to_string())),
    };
    view::Backup {
        path: found.path.clone(),
        made_at,
        bytes: found.bytes,
        daily: found.is_daily,
        databases: databases
            .into_iter()
            .map(|copied| view::Database { name: copied.name, bytes: copied.bytes })
            .collect(),
        problem,
    }
}

fn size(bytes: u64) -> String {
    const MEGABYTE: u64 = 1 << 20;
    match bytes {
        0..MEGABYTE => format!("{} kB", bytes.div_ceil(1024)),
        MEGABYTE.. => format!("{} MB", bytes / MEGABYTE),
    }
}
