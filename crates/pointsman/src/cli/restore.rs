use std::path::PathBuf;

use clap::Args;
use pointsman_core::words;
use pointsman_store::backup;
use pointsman_store::lock::{DaemonLock, Error as LockError};
use pointsman_view::backup::{Restored, RestoredDatabase};

use super::context::Context;
use super::failure::Failure;
use super::time;
use crate::daemon::restored;

/// Put the databases of a backup back in their places
///
/// The daemon must be stopped. What is there now is kept beside it. The next `pointsman up` compares everything with git and the
/// forge before it does anything: what landed since then stays landed, and nothing is opened twice.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman restore ~/.local/state/pointsman/backups/daily-2026-07-01.backup\n  \
    pointsman restore /mnt/usb/monday.backup --only pointsman.db")]
pub(crate) struct Arguments {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only this database of it; may be repeated. `backup list --json` names them
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("restoring a backup")?;
        let found = backup::read(&self.file)?;
        let there: Vec<String> = found.databases.iter().map(|copied| copied.name.clone()).collect();
        if let Some(missing) = self.only.iter().find(|name| !there.contains(name)) {
            return Err(Failure::not_found(words::backup::not_in_it(missing, &there)));
        }
        context.paths.create()?;
        // No daemon and no command has a database open while it is replaced.
        let _lock = match DaemonLock::acquire(&context.paths.lock()) {
            Ok(lock) => lock,
            Err(LockError::Held { .. }) => {
                return Err(Failure::refused(words::backup::STOP_FIRST).hint("pointsman down"));
            }
            Err(error @ LockError::File { .. }) => return Err((&error).into()),
        };
        let now = time::now();
        restored::mark(&context.paths)?;
        let mut databases = Vec::new();
        for name in there.into_iter().filter(|name| self.only.is_empty() || self.only.contains(name)) {
            let place = context.paths.state().join(&name);
            if let Some(directory) = place.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let kept = backup::restore(&self.file, &name, &place, now)?;
            databases.push(RestoredDatabase { name, kept });
        }
        if context.out.is_json() {
            let path = std::path::absolute(&self.file)?;
            return context.out.value(&Restored { path, made_at: found.made_at.into(), databases });
        }
        for one in &databases {
            context.out.line(words::backup::restored(&one.name, one.kept.as_deref()))?;
        }
        context.out.say(words::backup::AND_NOW);
        Ok(())
    }
}
