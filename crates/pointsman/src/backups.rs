//! Copies of all databases of an installation: one a day by the daemon, more by hand.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::backup::{self, Backup, Source};

use crate::daemon::clock;
use crate::paths::{Paths, ProjectPaths};

/// What the names of backups end with.
const EXTENSION: &str = "backup";
/// What the names of those begin with that the daemon makes, and removes.
const DAILY: &str = "daily-";
const BY_HAND: &str = "by-hand-";

/// A backup in the directory of backups.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// The daemon made it, and removes it when newer ones have taken its place.
    pub(crate) is_daily: bool,
    pub(crate) bytes: u64,
    /// What it holds, or why it cannot be read.
    pub(crate) content: Result<Backup, pointsman_store::Error>,
}

/// All databases that are there.
pub(crate) fn sources(paths: &Paths) -> anyhow::Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut add = |path: PathBuf| -> anyhow::Result<()> {
        if path.try_exists()? {
            let name = path.strip_prefix(paths.state()).unwrap_or(&path).to_string_lossy().into_owned();
            found.push(Source { name, path });
        }
        Ok(())
    };
    // The forges first. What the daemon knows of a forge must not be older than what the forge knows of it.
    let projects = match fs::read_dir(paths.state().join("projects")) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    for root in projects {
        add(ProjectPaths::at(root).forge_database())?;
    }
    add(paths.database())?;
    Ok(found)
}

/// Makes a backup: in this file, or in the directory of backups under a name of its own.
pub(crate) fn make(paths: &Paths, file: Option<&Path>, now: Timestamp) -> anyhow::Result<(PathBuf, Backup)> {
    let file = match file {
        Some(file) => std::path::absolute(file)?,
        None => directory(paths)?.join(format!("{BY_HAND}{}.{EXTENSION}", stamp(now))),
    };
    let made = backup::make(&file, &sources(paths)?, now)?;
    Ok((file, made))
}

/// Makes the backup of the day if there is none, and removes the oldest beyond those that are kept. Answers whether it
/// made one.
pub(crate) fn make_daily(paths: &Paths, keep: u32, now: Timestamp) -> anyhow::Result<bool> {
    let directory = directory(paths)?;
    let file = directory.join(daily_name(now));
    let made = match backup::make(&file, &sources(paths)?, now) {
        Ok(_) => true,
        Err(error) if backup::is_taken(&error) => false,
        Err(error) => return Err(error.into()),
    };
    // Their names sort by the day.
    let mut daily: Vec<PathBuf> = names(&directory)?.into_iter().filter(|path| is_daily(path)).collect();
    daily.sort();
    let surplus = daily.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
    for path in daily.drain(..surplus) {
        fs::remove_file(&path).with_context(|| words::backup::not_removed(&path))?;
    }
    Ok(made)
}

/// Whether the backup of the day is there.
pub(crate) fn has_daily(paths: &Paths, now: Timestamp) -> bool {
    paths.backups().join(daily_name(now)).exists()
}

/// All backups in the directory of backups, the newest first.
pub(crate) fn list(paths: &Paths) -> anyhow::Result<Vec<Found>> {
    let found = match names(&paths.backups()) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut found: Vec<Found> = found
        .into_iter()
        .map(|path| Found {
            is_daily: is_daily(&path),
            bytes: fs::metadata(&path).map_or(0, |meta| meta.len()),
            content: backup::read(&path),
            path,
        })
        .collect();
    let at = |found: &Found| found.content.as_ref().map_or(Timestamp(0), |backup| backup.made_at);
    found.sort_by_key(|one| std::cmp::Reverse((at(one), one.path.clone())));
    Ok(found)
}

fn directory(paths: &Paths) -> anyhow::Result<PathBuf> {
    let directory = paths.backups();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory)
}

fn names(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION)).collect())
}

fn is_daily(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DAILY))
}

fn daily_name(now: Timestamp) -> String {
    format!("{DAILY}{}.{EXTENSION}", clock::day(now))
}

/// A time as part of a file's name.
fn stamp(now: Timestamp) -> String {
    clock::rfc3339(now).replace(':', "-")
}
