//! The first program of every pane and of every turn without one: puts the agent's environment in place, then becomes the agent.
//!
//! tmux sees one fixed command with one path of ours. Everything that comes from a configuration
//! (program, arguments, variables) is in the file, so nothing of it meets a shell, a tmux format or
//! a process listing of tmux.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use pointsman_adapters::process::{self, Run};
use pointsman_core::words;
use serde::{Deserialize, Serialize};

use crate::keeper::Keep;

/// The program that this process becomes, and its surroundings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    /// Commits what the predecessor left uncommitted, with this message. It is done here, inside the
    /// session, because the daemon never runs git in a tree that an agent can write.
    #[serde(default)]
    pub commit_first: Option<String>,
    /// How its keeper runs it, if it has no terminal.
    #[serde(default)]
    pub keep: Option<Keep>,
    /// Is told to go when this process does: the turn of a keeper that is killed must not go on without one.
    #[serde(default)]
    pub parent: Option<u32>,
}

/// Becomes the program that `spec` describes; only returns if that is impossible.
pub fn launch(spec: &Path) -> anyhow::Result<Infallible> {
    // First of all: git, which is about to run in the agent's tree, runs what that tree's settings name.
    process::lineage::mark_this_thread()?;
    let text = std::fs::read(spec).with_context(|| words::daemon::project::cannot_read(spec))?;
    let launch: Launch = serde_json::from_slice(&text)?;
    let (program, args) = launch.argv.split_first().context(words::daemon::session::no_program())?;
    if let Some(message) = &launch.commit_first {
        commit(&launch, message);
    }
    if let Some(parent) = launch.parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
        // It may have gone before the kernel knew that we go with it.
        let here = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
        anyhow::ensure!(here == Some(parent), words::daemon::session::parent_is_gone());
    }
    let error = exec(program, args, &launch);
    anyhow::bail!(words::daemon::session::cannot_start(program, error))
}

/// A failure is shown on the terminal and stops nothing: the files are there, committed or not, and
/// a capture of them is in the mirror.
pub(crate) fn commit(launch: &Launch, message: &str) {
    for words in [vec!["add", "--all"], vec!["commit", "--quiet", "--no-verify", "-m", message]] {
        let mut git = Run::new("git").args(words).cwd(&launch.cwd);
        for (name, value) in &launch.env {
            git = git.env(name, value);
        }
        match git.finish() {
            Ok(finished) if finished.end.success() => {}
            Ok(finished) => eprintln!("{}", words::daemon::session::nothing_committed(finished.end)),
            Err(error) => eprintln!("{}", words::daemon::session::nothing_committed(error)),
        }
    }
}

/// Not a child: this process itself goes on as the agent, so `process.rs` has no part in it.
#[allow(clippy::disallowed_methods, reason = "exec replaces this process; nothing is spawned")]
fn exec(program: &str, args: &[String], launch: &Launch) -> std::io::Error {
    let mut command = std::process::Command::new(program);
    command.args(args).current_dir(&launch.cwd).env_clear().envs(&launch.env);
    if let Some(term) = std::env::var_os("TERM") {
        command.env("TERM", term);
    }
    command.exec()
}
