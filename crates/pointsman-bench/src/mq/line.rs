//! A line of branches, worked through by the queue and by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pointsman_core::ids::ProjectName;
use pointsman_core::queue::{Policy, Strategy};
use pointsman_store::{EntryScope, EntryStatus, QueueEntry, Store};

use crate::stage::{Stage, Workspace};
use crate::wait;

/// The repository that branches land in, beside the working tree.
const LINE: &str = "line";
/// Files that are there before: a small project.
pub(super) const FILES: usize = 200;
/// Between two looks at the merge queue: short beside a gate.
const LOOK: Duration = Duration::from_millis(20);
/// Far beyond any good value, in units of one gate run per branch.
const PATIENCE: u64 = 6;
/// What makes a tree red.
const BUG: &str = "BUG";

/// A line for the queue.
pub(super) struct QueueCase {
    pub(super) policy: Policy,
    pub(super) branches: usize,
    /// The place of the branch that is red.
    pub(super) red: Option<usize>,
    pub(super) gate_seconds: u64,
}

/// What it took.
pub(super) struct Timing {
    /// From the start to the last branch that is over.
    pub(super) seconds: f64,
    pub(super) landed: usize,
    /// How often the gate was started.
    pub(super) gates: usize,
}

/// The name of a branch by its place.
pub(super) fn branch(n: usize) -> String {
    format!("work-{n}")
}

/// A bare repository with a line of branches, and the stage's working tree as a clone of it; answers its path.
pub(super) fn bare_line(
    stage: &Stage,
    branches: usize,
    red: Option<usize>,
    files: usize,
) -> anyhow::Result<String> {
    for n in 0..files {
        let dir = stage.checkout().join(format!("group-{}/part-{}", n / 2_000, n / 20));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join(format!("file-{n}.txt")), format!("file {n}\n").repeat(40))?;
    }
    stage.git(&["add", "--all"])?;
    stage.git(&["commit", "--quiet", "--message=A small project"])?;
    for n in 0..branches {
        stage.git(&["switch", "--quiet", "--create", &branch(n), "main"])?;
        fs::write(stage.checkout().join(format!("work-{n}.txt")), format!("work {n}\n"))?;
        if red == Some(n) {
            fs::write(stage.checkout().join(BUG), "bug\n")?;
        }
        stage.git(&["add", "--all"])?;
        stage.git(&["commit", "--quiet", &format!("--message=Work {n}")])?;
    }
    let repo = stage.checkout().with_file_name(format!("{LINE}.git"));
    let repo = repo.to_str().context("the place is not UTF-8")?.to_owned();
    stage.git(&["switch", "--quiet", "main"])?;
    stage.git(&["clone", "--quiet", "--bare", ".", &repo])?;
    stage.git(&["remote", "add", "origin", &repo])?;
    stage.git(&["fetch", "--quiet", "origin"])?;
    Ok(repo)
}

/// The gate as a line for the shell; it leaves a mark for each run.
fn gate(seconds: u64, marks: &Path) -> String {
    format!("echo >> '{}'; sleep {seconds}; ! test -e {BUG}", marks.display())
}

fn marks(stage: &Stage) -> PathBuf {
    stage.checkout().with_file_name("gates")
}

/// Lets the queue work it through.
pub(super) fn queue(place: &Workspace, way: &QueueCase) -> anyhow::Result<Timing> {
    let mut stage = Stage::empty(place)?;
    let repo = bare_line(&stage, way.branches, way.red, FILES)?;
    let (strategy, most) = match way.policy.strategy {
        Strategy::Sequential => ("sequential", 1),
        Strategy::Batch { size } => ("batch", size),
        Strategy::Speculative { depth } => ("speculative", depth),
    };
    let (gate, most) = (gate(way.gate_seconds, &marks(&stage)), most.to_string());
    let how = ["--strategy", strategy, "--batch-size", &most, "--depth", &most, "--gate", &gate];
    // Outside, as the plain way: its gate leaves marks in the home.
    stage.start(&[&["merge-queue", "serve", "--repo", &repo, "--sandbox", "off"][..], &how].concat())?;
    stage.pointsman(&["merge-queue", "pause", "--repo", &repo])?;
    for n in 0..way.branches {
        stage.pointsman(&["merge-queue", "add", "--repo", &repo, &branch(n)])?;
    }
    let store = Store::open_read_only(&database(&stage)?)?;
    let project = ProjectName::new(LINE).context("a constant that follows the rule")?;
    eprintln!("{} branches, {strategy}", way.branches);
    let begun = Instant::now();
    stage.pointsman(&["merge-queue", "resume", "--repo", &repo])?;
    let patience = Duration::from_secs(way.gate_seconds * way.branches as u64 * PATIENCE);
    let over = loop {
        let entries = store.queue_entries(&project, EntryScope::All)?;
        if entries.len() == way.branches && !entries.iter().any(|entry| entry.status.is_unfinished()) {
            break entries;
        }
        ensure!(begun.elapsed() < patience, "the line does not end:\n{}", stage.log_tail());
        wait::pause(LOOK)?;
    };
    let seconds = begun.elapsed().as_secs_f64();
    check(&over, way.red)?;
    stage.stop_daemon()?;
    Ok(Timing { seconds, landed: way.branches - usize::from(way.red.is_some()), gates: runs(&stage)? })
}

/// What is measured must be right as well.
fn check(over: &[QueueEntry], red: Option<usize>) -> anyhow::Result<()> {
    for (n, entry) in over.iter().enumerate() {
        let expected = if red == Some(n) { EntryStatus::Red } else { EntryStatus::Landed };
        let reason = entry.reason.as_deref().unwrap_or_default();
        ensure!(entry.status == expected, "{} is {:?}: {reason}", entry.branch, entry.status);
    }
    Ok(())
}

/// The one queue that is served has the one database below the state directory.
fn database(stage: &Stage) -> anyhow::Result<PathBuf> {
    let served = stage.paths().state().join("serve");
    let home = fs::read_dir(served)?.next().context("no queue is served")??;
    Ok(home.path().join("pointsman.db"))
}

fn runs(stage: &Stage) -> anyhow::Result<usize> {
    Ok(fs::read_to_string(marks(stage))?.lines().count())
}

/// The way of a careful person: each branch is brought up to date, tested and pushed before the next one begins.
pub(super) fn plain(
    place: &Workspace,
    branches: usize,
    red: Option<usize>,
    gate_seconds: u64,
) -> anyhow::Result<Timing> {
    let stage = Stage::empty(place)?;
    bare_line(&stage, branches, red, FILES)?;
    let gate = gate(gate_seconds, &marks(&stage));
    eprintln!("{branches} branches, the plain way");
    let begun = Instant::now();
    let mut landed = 0;
    for n in 0..branches {
        wait::check()?;
        let branch = branch(n);
        stage.git(&["fetch", "--quiet", "origin"])?;
        stage.git(&["switch", "--quiet", &branch])?;
        stage.git(&["rebase", "--quiet", "origin/main"])?;
        if stage.shell(&gate)? {
            stage.git(&["push", "--quiet", "origin", "HEAD:main", &format!(":{branch}")])?;
            landed += 1;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(landed == branches - usize::from(red.is_some()), "only {landed} branches landed");
    Ok(Timing { seconds, landed, gates: runs(&stage)? })
}

/// Seconds beside the gate per landing in a project of so many files, one branch after another in the sandbox. The first landing is
/// not counted: it makes the warm tree, as a person has a working tree before.
pub(super) fn queue_beside_gate(
    place: &Workspace,
    files: usize,
    branches: usize,
    gate_seconds: u64,
) -> anyhow::Result<f64> {
    let mut stage = Stage::empty(place)?;
    let repo = bare_line(&stage, branches, None, files)?;
    let gate = format!("sleep {gate_seconds}; ! test -e {BUG}");
    stage.start(&["merge-queue", "serve", "--repo", &repo, "--strategy", "sequential", "--gate", &gate])?;
    stage.pointsman(&["merge-queue", "pause", "--repo", &repo])?;
    for n in 0..branches {
        stage.pointsman(&["merge-queue", "add", "--repo", &repo, &branch(n)])?;
    }
    let store = Store::open_read_only(&database(&stage)?)?;
    let project = ProjectName::new(LINE).context("a constant that follows the rule")?;
    eprintln!("{branches} branches, {files} files");
    let begun = Instant::now();
    stage.pointsman(&["merge-queue", "resume", "--repo", &repo])?;
    let patience = Duration::from_secs(60 + gate_seconds * branches as u64 * PATIENCE);
    let over = loop {
        let entries = store.queue_entries(&project, EntryScope::All)?;
        if entries.len() == branches && !entries.iter().any(|entry| entry.status.is_unfinished()) {
            break entries;
        }
        ensure!(begun.elapsed() < patience, "the line does not end:\n{}", stage.log_tail());
        wait::pause(LOOK)?;
    };
    check(&over, None)?;
    let mut landed: Vec<i64> = over.iter().filter_map(|entry| Some(entry.landed_at?.0)).collect();
    landed.sort_unstable();
    stage.stop_daemon()?;
    let (first, last) = (landed.first().context("nothing landed")?, landed.last().context("nothing landed")?);
    Ok(beside((last - first) as f64 / 1000.0, branches - 1, gate_seconds))
}

/// The same for the plain way: its working tree is there before.
pub(super) fn plain_beside_gate(
    place: &Workspace,
    files: usize,
    branches: usize,
    gate_seconds: u64,
) -> anyhow::Result<f64> {
    let stage = Stage::empty(place)?;
    bare_line(&stage, branches, None, files)?;
    eprintln!("{branches} branches, {files} files, the plain way");
    let mut begun = Instant::now();
    for n in 0..branches {
        wait::check()?;
        if n == 1 {
            begun = Instant::now();
        }
        let branch = branch(n);
        stage.git(&["fetch", "--quiet", "origin"])?;
        stage.git(&["switch", "--quiet", &branch])?;
        stage.git(&["rebase", "--quiet", "origin/main"])?;
        ensure!(stage.shell(&format!("sleep {gate_seconds}; ! test -e {BUG}"))?, "the gate is red");
        stage.git(&["push", "--quiet", "origin", "HEAD:main", &format!(":{branch}")])?;
    }
    Ok(beside(begun.elapsed().as_secs_f64(), branches - 1, gate_seconds))
}

fn beside(seconds: f64, landings: usize, gate_seconds: u64) -> f64 {
    (seconds - landings as f64 * gate_seconds as f64) / landings as f64
}
