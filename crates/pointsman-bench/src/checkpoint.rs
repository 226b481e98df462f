//! What a checkpoint of a large working tree costs.

use std::fs;
use std::path::Path;
use std::time::Instant;

use pointsman_adapters::git::checkpoint::{CheckpointName, CheckpointOutcome, Keeper};
use pointsman_adapters::git::gateway::Gateway;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::tree::{Tree, TreeSpec, TreeStart};
use pointsman_adapters::git::{BranchName, Git, bare};
use pointsman_adapters::process::Run;
use pointsman_core::ids::Sha;
use serde_json::json;

use crate::report::{Report, Target};
use crate::sample::Sample;
use crate::stage::Workspace;

const DIRECTORIES: usize = 100;
const FILES_EACH: usize = 100;
/// How many files an agent changes between two checkpoints.
const CHANGED: usize = 10;
const TIMES: usize = 30;
/// Issue 3, in milliseconds.
const UNCHANGED_LIMIT: f64 = 50.0;
const CHANGED_LIMIT: f64 = 150.0;

const UNCHANGED: &str = "unchanged";
const EDITED: &str = "10 files changed";
const COMMITTED: &str = "10 files changed and committed";
const COLD: &str = "first look, nothing known";

/// Takes checkpoints of a tree of 10,000 files.
pub(crate) fn measure(place: &Workspace) -> anyhow::Result<Report> {
    let root = tempfile::tempdir_in(&place.scratch)?;
    let samples = take_many(root.path())?;
    let rows = samples.iter().map(|(what, sample)| {
        let cells = [sample.percentile(0), sample.percentile(50), sample.percentile(90), sample.max()];
        std::iter::once((*what).to_owned()).chain(cells.map(|cell| format!("{cell:.1}"))).collect()
    });
    let results = samples.iter().map(|(what, sample)| {
        let mut value = sample.to_json();
        value["what"] = json!(what);
        value["files"] = json!(DIRECTORIES * FILES_EACH);
        value
    });
    let target = |what: &'static str, limit| {
        let sample = samples.iter().find(|(name, _)| *name == what);
        sample.map(|(_, sample)| Target {
            what: format!("checkpoint, {what}, the median:"),
            unit: "ms",
            limit,
            found: sample.percentile(50),
        })
    };
    Ok(Report {
        name: "checkpoint",
        title: format!(
            "Checkpoints of a tree of {} files, {TIMES} times, milliseconds.",
            DIRECTORIES * FILES_EACH
        ),
        header: vec!["WHAT", "BEST", "P50", "P90", "WORST"],
        rows: rows.collect(),
        targets: [target(UNCHANGED, UNCHANGED_LIMIT), target(EDITED, CHANGED_LIMIT)]
            .into_iter()
            .flatten()
            .collect(),
        results: results.collect(),
    })
}

fn take_many(root: &Path) -> anyhow::Result<Vec<(&'static str, Sample)>> {
    let git = Git::open(&root.join("state"))?;
    let mirror = mirror_of_many_files(root, &git)?;
    let (main, branch) = (name("main")?, name("task")?);
    let base = mirror.remote_head(&main)?.ok_or_else(|| anyhow::anyhow!("main was not fetched"))?;
    let gateway = Gateway::create(&mirror, &root.join("gateway.git"), &branch)?;
    let spec = TreeSpec {
        dir: root.join("tree"),
        mirror: &mirror,
        gateway: &gateway,
        branch,
        primary: main,
        base,
        user_name: "bench".to_owned(),
        user_email: "bench@localhost".to_owned(),
        exclude: Vec::new(),
        linked: false,
        start: TreeStart::Work,
        spare: None,
    };
    let tree = Tree::create(&spec)?.dir;
    let indexes = root.join("indexes");
    let keeper = Keeper::new(&mirror, &indexes);

    let (mut n, mut last): (u32, Option<Sha>) = (0, None);
    let mut take = || -> anyhow::Result<(f64, bool)> {
        n += 1;
        let begun = Instant::now();
        let taken = keeper.take(&tree, &CheckpointName { task: 1, n }, "checkpoint", last.as_ref())?;
        let millis = begun.elapsed().as_secs_f64() * 1000.0;
        match taken {
            CheckpointOutcome::Unchanged => Ok((millis, false)),
            CheckpointOutcome::Saved { tree, .. } => {
                last = Some(tree);
                Ok((millis, true))
            }
        }
    };
    let mut sample = |what, changes, before: &dyn Fn(usize) -> anyhow::Result<()>, times| {
        let mut millis = Vec::new();
        for time in 0..times {
            before(time)?;
            let (took, saved) = take()?;
            anyhow::ensure!(
                saved == changes,
                "{what}: a checkpoint was taken or not taken, against what is so"
            );
            millis.push(took);
        }
        Ok((what, Sample::new(millis)))
    };
    let forget = |time: usize| {
        if time > 0 {
            fs::remove_dir_all(&indexes)?;
            edit(&tree, &format!("cold {time}"))?;
        }
        Ok(())
    };
    let commit = |time: usize| {
        edit(&tree, &format!("committed {time}"))?;
        plain(&tree, &["commit", "-qam", "a change"])
    };
    Ok(vec![
        sample(COLD, true, &forget, 3)?,
        sample(UNCHANGED, false, &|_| Ok(()), TIMES)?,
        sample(EDITED, true, &|time| edit(&tree, &format!("edited {time}")), TIMES)?,
        sample(COMMITTED, true, &commit, TIMES)?,
    ])
}

fn mirror_of_many_files(root: &Path, git: &Git) -> anyhow::Result<Mirror> {
    let forge = root.join("forge.git");
    bare::init_bare(git, &forge, &name("main")?)?;
    plain(root, &["clone", "-q", "forge.git", "person"])?;
    let person = root.join("person");
    for directory in 0..DIRECTORIES {
        let dir = person.join(format!("area-{}/part-{directory}", directory / 10));
        fs::create_dir_all(&dir)?;
        for file in 0..FILES_EACH {
            fs::write(dir.join(format!("file-{file}.txt")), format!("file {directory} {file}\n").repeat(20))?;
        }
    }
    plain(&person, &["add", "-A"])?;
    plain(&person, &["commit", "-qm", "many files"])?;
    plain(&person, &["push", "-q", "origin", "HEAD:main"])?;
    let remote = forge.to_str().ok_or_else(|| anyhow::anyhow!("{} is not UTF-8", forge.display()))?;
    let mirror = Mirror::open_or_create(git, &root.join("mirror.git"), remote)?;
    mirror.fetch_remote()?;
    Ok(mirror)
}

/// Changes files in as many directories.
fn edit(tree: &Path, text: &str) -> anyhow::Result<()> {
    for n in 0..CHANGED {
        let file = tree.join(format!("area-{n}/part-{n}{n}/file-{n}.txt").replace("part-00", "part-0"));
        fs::write(file, format!("{text} {n}\n"))?;
    }
    Ok(())
}

/// Git as a person or an agent runs it.
fn plain(dir: &Path, args: &[&str]) -> anyhow::Result<()> {
    let mut run = Run::new("git").args(args.iter().copied()).cwd(dir).inherit(&["PATH"]).env("HOME", dir);
    for who in ["AUTHOR", "COMMITTER"] {
        run = run.env(format!("GIT_{who}_NAME"), "bench").env(format!("GIT_{who}_EMAIL"), "bench@localhost");
    }
    let done = run.finish()?;
    anyhow::ensure!(done.end.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

fn name(text: &str) -> anyhow::Result<BranchName> {
    BranchName::new(text).ok_or_else(|| anyhow::anyhow!("{text} is no branch name"))
}
