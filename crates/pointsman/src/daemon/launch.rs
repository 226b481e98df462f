//! The first program of every pane: puts the agent's environment in place, then becomes the agent.
//!
//! tmux sees one fixed command with one path of ours. Everything that comes from a configuration
//! (program, arguments, variables) is in the file, so nothing of it meets a shell, a tmux format or
//! a process listing of tmux.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// What to become.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
}

/// Becomes the program that `spec` describes; only returns if that is impossible.
pub fn launch(spec: &Path) -> anyhow::Result<Infallible> {
    let text = std::fs::read(spec).with_context(|| format!("cannot read {}", spec.display()))?;
    let launch: Launch = serde_json::from_slice(&text)?;
    let (program, args) = launch.argv.split_first().context("an agent needs a program")?;
    let error = exec(program, args, &launch);
    anyhow::bail!("cannot start {program}: {error}")
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
