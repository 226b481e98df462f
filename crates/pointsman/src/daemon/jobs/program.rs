//! A project's own program (CI, gate, reviewer) on a clean checkout of one commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Context as _;
use pointsman_adapters::git::checkout::{checkout_exact, give_origin, remove_checkout};
use pointsman_adapters::process::{End, Run, census};
use pointsman_adapters::secret::known;
use pointsman_core::config::Config;
use pointsman_core::ids::Sha;
use pointsman_core::sandbox::TOOL_VARIABLES;
use pointsman_core::task::CiVerdict;
use pointsman_core::{text, verdict, words};

use super::Jobs;
use super::warm::Layered;
use crate::daemon::crash::crash_point;
use crate::daemon::served::Served;
use crate::enclosure::{Checkout, Enclosure, note_packages};
use crate::paths::{CHECKOUT_VARIABLE, ProjectPaths};

/// How much of a log's end is told.
const TOLD_BYTES: usize = 32 * 1024;
/// For the kernel to end what a program left behind.
const LEFT_BEHIND_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks whether anybody waits for a program.
const WANTED_LOOK: Duration = Duration::from_secs(1);
/// What programs get of the daemon's environment.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "SHELL", "USER"];

/// A program to run.
pub(super) struct Program<'a> {
    /// Unique among what runs at the same time; also the name of its log.
    pub(super) name: String,
    pub(super) command: &'a [String],
    pub(super) sha: &'a Sha,
    pub(super) env: Vec<(&'static str, String)>,
    /// The directory for its answer, if it gives one.
    pub(super) answer: Option<&'a Path>,
    /// It is ended after this long.
    pub(super) limit: Duration,
}

/// How it ended, with its log.
pub(super) struct Ran {
    pub(super) end: End,
    pub(super) log: String,
    pub(super) log_path: PathBuf,
    unlisted: Unlisted,
    /// The checkout, removed when this goes: nobody has to wait for that.
    _checkout: Spent,
    /// The same of its layers.
    _layered: Option<Layered>,
}

/// Destinations that a program asked for and that nobody listed.
#[derive(Default)]
struct Unlisted {
    destinations: Vec<String>,
    /// The names of the programs that asked.
    programs: Vec<String>,
}

/// A checkout that nobody uses any more, out of the way under another name.
struct Spent(PathBuf);

impl Spent {
    fn new(dir: &Path) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let gone = dir.with_extension(format!("gone-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        Self(if fs::rename(dir, &gone).is_ok() { gone } else { dir.to_owned() })
    }
}

impl Drop for Spent {
    fn drop(&mut self) {
        if let Err(error) = remove_checkout(&self.0) {
            tracing::warn!(dir = %self.0.display(), %error, "left a checkout");
        }
    }
}

impl Program<'_> {
    /// Runs it; an error is about us or the machine, never about the code.
    pub(super) fn run(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) -> anyhow::Result<Ran> {
        let dir = served.paths.checkouts().join(&self.name);
        let log_path = served.paths.logs().join(format!("{}.log", self.name));
        let (mut unlisted, mut layered) = (Unlisted::default(), None);
        let ended = self.run_in(jobs, served, &dir, &log_path, &mut unlisted, &mut layered);
        let checkout = Spent::new(&dir);
        let mut bytes = fs::read(&log_path).unwrap_or_default();
        // Shown to people and handed to agents.
        if let Some(masked) = known().mask_bytes(&bytes) {
            fs::write(&log_path, &masked)?;
            bytes = masked;
        }
        Ok(Ran { end: ended?, log: tail(&bytes), log_path, unlisted, _checkout: checkout, _layered: layered })
    }

    fn run_in(
        &self,
        jobs: &Arc<Jobs>,
        served: &Arc<Served>,
        dir: &Path,
        log_path: &Path,
        unlisted: &mut Unlisted,
        layered: &mut Option<Layered>,
    ) -> anyhow::Result<End> {
        // One that was made ahead is as good.
        if fs::rename(ahead_of(served, self.sha), dir).is_err() {
            *layered = jobs.layered(served, self.sha, dir);
            if layered.is_none() {
                check_out(served, self.sha, dir)?;
            }
        }
        let layers = layered.as_ref().map(|layered| &layered.checkout);
        let (command, answer) = (self.command, self.answer);
        let checkout = Checkout { dir, command, answer, learning: false, layers };
        if let Some(main) = served.mirror.remote_head(&served.primary)? {
            note_packages(&served.mirror, &main, &served.paths)?;
        }
        let mut run = run_in_checkout(&served.enclosure, &served.config, &served.paths, self.sha, &checkout)?;
        for (name, value) in &self.env {
            run = run.env(*name, value);
        }
        let supervised = Supervised { name: &self.name, dir, log_path, limit: self.limit };
        let (end, asked_for) = supervised.run(jobs, served, run, &|| true)?;
        *unlisted = asked_for;
        Ok(end)
    }
}

/// A program at work in a checkout or a tree.
struct Supervised<'a> {
    name: &'a str,
    dir: &'a Path,
    log_path: &'a Path,
    limit: Duration,
}

impl Supervised<'_> {
    /// Runs it to its end, with everything it started. Answers the destinations that nobody listed as well. It is ended when
    /// `is_wanted` says no.
    fn run(
        &self,
        jobs: &Jobs,
        served: &Served,
        run: Run,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> anyhow::Result<(End, Unlisted)> {
        let job = run.start_job(self.log_path)?;
        crash_point("job-started");
        {
            let mut running = jobs.lock();
            running.killers.insert(self.name.to_owned(), job.killer());
            if jobs.is_stopping() || running.called_off.contains(self.name) {
                job.killer().kill();
            }
        }
        let killer = job.killer();
        let (over, still_runs) = channel::<()>();
        let ended = std::thread::scope(|scope| {
            scope.spawn(move || {
                while still_runs.recv_timeout(WANTED_LOOK) == Err(RecvTimeoutError::Timeout) {
                    if !is_wanted() {
                        return killer.kill();
                    }
                }
            });
            let ended = job.wait(self.limit);
            drop(over);
            ended
        });
        // Whatever left its group: nobody may write to the checkout of the next.
        let left = served.paths.members_in(self.dir).end(LEFT_BEHIND_LIMIT);
        if left > 0 {
            tracing::warn!(job = self.name, left, "processes of a job do not end");
        }
        let name = ProjectPaths::proxy_name_in(self.dir);
        tell_refused(self.log_path, &served.enclosure.refused(&name));
        let destinations = served.enclosure.unlisted(&name);
        let programs = served.enclosure.askers(&name, &destinations);
        let unlisted = Unlisted { destinations, programs };
        served.enclosure.close_network(&name);
        jobs.lock().killers.remove(self.name);
        jobs.freed.notify_all();
        Ok((ended?.end, unlisted))
    }
}

/// A program of the project in the working tree of a task: its set-up, its tear-down.
pub(in crate::daemon) struct TreeProgram<'a> {
    /// Unique among what runs at the same time.
    pub(in crate::daemon) name: String,
    pub(in crate::daemon) command: &'a [String],
    pub(in crate::daemon) tree: &'a Path,
    /// The commit of main that it is told of.
    pub(in crate::daemon) sha: &'a Sha,
    pub(in crate::daemon) log: PathBuf,
    pub(in crate::daemon) env: Vec<(String, String)>,
}

/// How a program in a tree ended.
pub(in crate::daemon) struct TreeRan {
    pub(in crate::daemon) end: End,
    /// The end of its log.
    pub(in crate::daemon) log: String,
    /// Destinations that it asked for and that nobody listed.
    pub(in crate::daemon) unlisted: Vec<String>,
}

impl TreeProgram<'_> {
    /// Runs it inside the sandbox with what CI may reach. It is ended when `is_wanted` says no.
    pub(in crate::daemon) fn run(
        &self,
        jobs: &Jobs,
        served: &Served,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> anyhow::Result<TreeRan> {
        // One that an earlier daemon left must not write beside it.
        Self::end_leftovers(served, self.tree);
        let checkout =
            Checkout { dir: self.tree, command: self.command, answer: None, learning: false, layers: None };
        let mut run = run_in_checkout(&served.enclosure, &served.config, &served.paths, self.sha, &checkout)?;
        run = run.env("PROJECT_NAME", served.config.name.as_str());
        for (name, value) in &self.env {
            run = run.env(name, value);
        }
        let limit = served.config.timing.setup_timeout.into();
        let supervised = Supervised { name: &self.name, dir: self.tree, log_path: &self.log, limit };
        let ran = supervised.run(jobs, served, run, is_wanted);
        let mut bytes = fs::read(&self.log).unwrap_or_default();
        // Shown to people.
        if let Some(masked) = known().mask_bytes(&bytes) {
            fs::write(&self.log, &masked)?;
            bytes = masked;
        }
        let (end, unlisted) = ran?;
        Ok(TreeRan { end, log: tail(&bytes), unlisted: unlisted.destinations })
    }

    /// Ends what a killed daemon left running in a tree.
    pub(in crate::daemon) fn end_leftovers(served: &Served, tree: &Path) {
        served.paths.members_in(tree).end(LEFT_BEHIND_LIMIT);
        served.enclosure.close_network(&ProjectPaths::proxy_name_in(tree));
        census::end_with_variable(CHECKOUT_VARIABLE, tree);
    }
}

impl Ran {
    /// What it means as a verdict; none if it was cancelled because the daemon stops.
    pub(super) fn verdict(&self, step: &str) -> Option<CiVerdict> {
        let verdict = verdict_of(self.end, step, self.log.clone())?;
        Some(match verdict {
            // Nobody who writes commits can mend that: a person lists the host, or does not.
            CiVerdict::Failed { log, .. } if !self.unlisted.destinations.is_empty() => {
                let Unlisted { destinations, programs } = &self.unlisted;
                CiVerdict::Unreached { hosts: destinations.clone(), programs: programs.clone(), log }
            }
            verdict => verdict,
        })
    }
}

/// A run of a project's program in a checkout, with the environment that such programs get, inside a sandbox where there
/// is one.
pub(crate) fn run_in_checkout(
    enclosure: &Enclosure,
    config: &Config,
    paths: &ProjectPaths,
    sha: &Sha,
    checkout: &Checkout<'_>,
) -> anyhow::Result<Run> {
    let dir = checkout.dir;
    let (program, args) = checkout.command.split_first().context(words::daemon::queue::empty_command())?;
    // `./ci.sh` is a file of the checkout, `cargo` one of the PATH.
    let program = if program.contains('/') { dir.join(program).into_os_string() } else { program.into() };
    let run = Run::new(program).untrusted().args(args).cwd(dir).inherit(&INHERITED).env("CI", "true");
    let passed: Vec<&str> = config.ci.pass_env.iter().map(String::as_str).collect();
    let run = run.inherit(&passed).env("POINTSMAN_SHA", sha.as_str()).env(CHECKOUT_VARIABLE, dir);
    Ok(match enclosure.around_checkout(config, paths, checkout)? {
        Some(wrapper) => run.inherit(&TOOL_VARIABLES).inside(wrapper),
        None => run,
    })
}

/// Adds to a log what the network refused: a build seldom says it itself.
fn tell_refused(log: &Path, refused: &[String]) {
    use std::io::Write;
    if let (false, Ok(mut file)) = (refused.is_empty(), fs::OpenOptions::new().append(true).open(log)) {
        for line in refused {
            // The log is for people and agents alone.
            let _ = writeln!(file, "pointsman: {line}");
        }
    }
}

/// The verdict of a program that ended so; none if it was called off.
pub(crate) fn verdict_of(end: End, step: &str, log: String) -> Option<CiVerdict> {
    let (code, signal) = match end {
        End::Cancelled => return None,
        End::TimedOut => return Some(CiVerdict::TimedOut { log }),
        End::Exited(0) => return Some(CiVerdict::Passed),
        End::Exited(code) => (Some(code), None),
        End::Signalled(signal) => (None, Some(signal)),
    };
    Some(match verdict::classify(step, code, signal, &log) {
        verdict::Class::Infra { reason } => CiVerdict::Infra { reason, log },
        verdict::Class::Code => CiVerdict::Failed { summary: end.to_string(), log },
    })
}

/// Ends what a killed daemon left running and removes its checkouts.
pub(in crate::daemon) fn clear_leftovers(served: &Served) {
    let Ok(entries) = fs::read_dir(served.paths.checkouts()) else { return };
    for path in entries.filter_map(|e| Some(e.ok()?.path())) {
        served.paths.members_in(&path).end(LEFT_BEHIND_LIMIT);
        served.enclosure.close_network(&ProjectPaths::proxy_name_in(&path));
        let ended = census::end_with_variable(CHECKOUT_VARIABLE, &path);
        if ended > 0 {
            tracing::info!(dir = %path.display(), ended, "ended a job of an earlier daemon");
        }
        if let Err(error) = remove_checkout(&path) {
            tracing::warn!(dir = %path.display(), %error, "left a checkout");
        }
    }
}

/// Makes a checkout that the next program on this commit takes.
pub(super) fn check_out_ahead(served: &Served, sha: &Sha) -> anyhow::Result<()> {
    let place = ahead_of(served, sha);
    // Layers cost next to nothing when they are needed.
    if place.exists() || served.enclosure.has_layers(&served.config) {
        return Ok(());
    }
    let half = place.with_extension("half");
    check_out(served, sha, &half)?;
    Ok(fs::rename(half, place)?)
}

/// Makes a clean checkout of a commit whose `origin` is for reading only.
pub(in crate::daemon) fn check_out(served: &Served, sha: &Sha, dir: &Path) -> anyhow::Result<()> {
    checkout_exact(&served.mirror, sha, dir)?;
    Ok(give_origin(&served.mirror, dir, &served.primary)?)
}

/// Removes a checkout that no program has taken.
pub(super) fn forget_checkout(served: &Served, sha: &Sha) {
    let _ = remove_checkout(&ahead_of(served, sha));
}

fn ahead_of(served: &Served, sha: &Sha) -> PathBuf {
    served.paths.checkouts().join(format!("ahead-{sha}"))
}

/// The end of a log, as it is told.
pub(crate) fn tail(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(TOLD_BYTES);
    text::clean_block(&String::from_utf8_lossy(&bytes[start..]), TOLD_BYTES * 2)
}
