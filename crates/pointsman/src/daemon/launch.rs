//! The first program of every pane and of every turn without one: puts the agent's environment in place, then becomes the agent.
//!
//! tmux sees one fixed command with one path of ours. Everything that comes from a configuration
//! (program, arguments, variables) is in the file, so nothing of it meets a shell, a tmux format or
//! a process listing of tmux.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use pointsman_adapters::git::clear_stale_locks;
use pointsman_adapters::process::reaper::{self, Reaped};
use pointsman_adapters::process::{self, Members, Run, signals};
use pointsman_adapters::sandbox::{self, Bubblewrap, Lifetime};
use pointsman_core::sandbox::{Plan, Purpose};
use pointsman_core::words;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::enclosure::forwarded;
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
    /// The sandbox that begins before anything reads the tree, if there is one.
    #[serde(default)]
    pub sandbox: Option<LaunchSandbox>,
    /// Is told to go when this process does: the turn of a keeper that is killed must not go on without one.
    #[serde(default)]
    pub parent: Option<u32>,
    /// The means to find all of its processes. An earlier release had none.
    #[serde(default)]
    pub members: Members,
}

/// The sandbox of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LaunchSandbox {
    /// The program that builds it.
    pub bubblewrap: PathBuf,
    /// Whether the filter of system calls holds inside. An earlier release had none.
    #[serde(default)]
    pub filters: bool,
    /// This program, as it is called inside.
    pub program: PathBuf,
    pub plan: Plan,
    /// Variables that differ inside.
    pub env: BTreeMap<String, String>,
}

/// The side of the sandbox on which a launcher runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Outside,
    Inside,
}

/// Becomes the program that `spec` describes; only returns if that is impossible, or if the program has ended that this process
/// stayed for. Outside, a session with a sandbox becomes the sandbox, in which the same is done again.
pub fn launch(spec: &Path, side: Side) -> anyhow::Result<u8> {
    // First of all: git, which is about to run in the agent's tree, runs what that tree's settings name.
    process::lineage::mark_this_thread()?;
    let text = std::fs::read(spec).with_context(|| words::daemon::project::cannot_read(spec))?;
    let mut launch: Launch = serde_json::from_slice(&text)?;
    let is_grouped = side == Side::Outside && launch.members.join();
    match (side, launch.sandbox.take()) {
        (Side::Outside, Some(sandbox)) => {
            // A sandbox does not hear what asks a program to end.
            go_with(launch.parent.or_else(tmux_server), Signal::KILL)?;
            signals::shield_this_thread()?;
            let error = enclose(&sandbox, spec, &launch);
            anyhow::bail!(words::daemon::session::cannot_start(&sandbox.bubblewrap.to_string_lossy(), error))
        }
        (Side::Inside, Some(sandbox)) => {
            signals::unshield_this_thread()?;
            sandbox::apply(&sandbox.plan.limits)?;
            sandbox::restrict(&sandbox.plan.rights()).with_context(words::daemon::process::no_rights)?;
            clear_locks(&launch.cwd, &sandbox.plan);
            launch.env.extend(sandbox.env);
            let own = |name: &str| launch.env.get(name).map(OsString::from);
            let more = forwarded(&sandbox.plan.network, &sandbox.program, own)?;
            launch.env.extend(more);
        }
        // Its terminal is gone with the server, whatever it does about the hang-up.
        (Side::Outside, None) if launch.parent.is_none() => go_with(tmux_server(), Signal::KILL)?,
        (Side::Outside, None) => go_with(launch.parent, Signal::TERM)?,
        (Side::Inside, None) => {}
    }
    let (program, args) = launch.argv.split_first().context(words::daemon::session::no_program())?;
    if let Some(message) = &launch.commit_first {
        commit(&launch, message);
    }
    // Nothing else holds its processes together.
    if side == Side::Outside && !is_grouped && launch.members != Members::default() {
        let env: Vec<(OsString, OsString)> = environment(&launch).collect();
        let reaped = Reaped { program, args, cwd: &launch.cwd, env: &env };
        return reaper::run(&reaped)
            .map_err(|error| anyhow::anyhow!(words::daemon::session::cannot_start(program, error)));
    }
    let error = exec(program, args, &launch);
    anyhow::bail!(words::daemon::session::cannot_start(program, error))
}

/// The processes of all sessions whose directories are in this one, by session.
pub(crate) fn left_behind(sessions: &Path) -> Vec<(String, Vec<u32>)> {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let mut found = Vec::new();
    for spec in entries(sessions).flat_map(|dir| entries(&dir).collect::<Vec<_>>()) {
        let name = spec.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let generation = name.strip_prefix("launch-").and_then(|rest| rest.strip_suffix(".json"));
        let identity = spec.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let Some(generation) = generation.filter(|text| text.parse::<u32>().is_ok()) else { continue };
        let text = std::fs::read(&spec).unwrap_or_default();
        let Ok(launch) = serde_json::from_slice::<Launch>(&text) else { continue };
        let left: Vec<u32> = launch.members.alive().iter().map(|process| process.pid).collect();
        if !left.is_empty() {
            found.push((format!("{identity}.{generation}"), left));
        }
    }
    found
}

/// Has the kernel send us this signal when that parent ends. The parent may have gone before the kernel knew of it.
fn go_with(parent: Option<u32>, signal: Signal) -> anyhow::Result<()> {
    let Some(parent) = parent else { return Ok(()) };
    rustix::process::set_parent_process_death_signal(Some(signal))?;
    let here = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    anyhow::ensure!(here == Some(parent), words::daemon::session::parent_is_gone());
    Ok(())
}

/// The tmux server that started us in a pane, which it tells us itself. bubblewrap asks the kernel to end it with its parent
/// only when everything is mounted, and does not look whether that parent is still there.
#[allow(clippy::disallowed_methods, reason = "an agent's process begins here")]
fn tmux_server() -> Option<u32> {
    std::env::var("TMUX").ok()?.rsplit(',').nth(1)?.parse().ok()
}

/// Becomes the sandbox, with this program as the first inside. Nothing of the environment is needed there but the kind of
/// terminal: the rest is in the file.
#[allow(clippy::disallowed_methods, reason = "exec replaces this process; nothing is spawned")]
fn enclose(sandbox: &LaunchSandbox, spec: &Path, launch: &Launch) -> std::io::Error {
    let filter = if sandbox.filters { sandbox::open_filter() } else { Ok(None) };
    let (record, filter) = match (launch.members.open_record(), filter) {
        (Ok(record), Ok(filter)) => (record, filter),
        (Err(error), _) | (_, Err(error)) => return error,
    };
    let bubblewrap = Bubblewrap::at(&sandbox.bubblewrap);
    let words = bubblewrap.command(&sandbox.plan, &launch.cwd, Lifetime::Parent);
    let words = sandbox::filtered(sandbox::recorded(words, record.as_ref()), filter.as_ref());
    let (words, _files) = sandbox::with_copies(words);
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]).arg(&sandbox.program).args(["launch", "--inside"]).arg(spec).env_clear();
    if let Some(term) = std::env::var_os("TERM") {
        command.env("TERM", term);
    }
    command.exec()
}

/// Removes the locks that the predecessor's git left when it was killed. All of its processes are gone, or this sandbox would not
/// have begun. It is done inside, where a link that an agent left leads to nothing but its own.
fn clear_locks(tree: &Path, plan: &Plan) {
    let gateways = plan.mounts.iter().filter(|mount| mount.why == Purpose::Gateway);
    let repositories = std::iter::once(tree.join(".git")).chain(gateways.map(|mount| mount.path.clone()));
    for repository in repositories.filter(|repository| repository.is_dir()) {
        if let Err(error) = clear_stale_locks(&repository) {
            eprintln!("{error}");
        }
    }
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
    command.args(args).current_dir(&launch.cwd).env_clear().envs(environment(launch));
    command.exec()
}

/// The variables of the agent, with the kind of terminal that it is started on.
#[allow(clippy::disallowed_methods, reason = "an agent's process begins here")]
fn environment(launch: &Launch) -> impl Iterator<Item = (OsString, OsString)> {
    let own = launch.env.iter().map(|(name, value)| (name.into(), value.into()));
    own.chain(std::env::var_os("TERM").map(|term| ("TERM".into(), term)))
}
