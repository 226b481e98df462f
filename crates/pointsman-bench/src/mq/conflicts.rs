//! What it costs to know of every branch in the merge queue whether it conflicts with the main branch.

use std::time::Instant;

use pointsman_adapters::git::candidate::check_conflicts;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::{BranchName, Git};
use pointsman_core::ids::Sha;

use super::line::{bare_line, branch};
use crate::sample::Sample;
use crate::stage::{Stage, Workspace};

const TIMES: usize = 20;
/// Every so-maniest branch changes a line that main has changed too.
const EVERY: usize = 10;

/// Asks again and again; milliseconds.
pub(super) fn measure(place: &Workspace, branches: usize) -> anyhow::Result<Sample> {
    let stage = Stage::empty(place)?;
    let repo = bare_line(&stage, branches, None, super::line::FILES)?;
    // Main goes on, so that nothing is a mere fast-forward.
    stage.git(&["switch", "--quiet", "main"])?;
    for n in (0..branches).step_by(EVERY) {
        std::fs::write(stage.checkout().join(format!("work-{n}.txt")), "main was here first\n")?;
    }
    stage.git(&["add", "--all"])?;
    stage.git(&["commit", "--quiet", "--message=In the way"])?;
    stage.git(&["push", "--quiet", "origin", "main"])?;
    let git = Git::open(&stage.checkout().with_file_name("door"))?;
    let mirror = Mirror::open_or_create(&git, &stage.checkout().with_file_name("mirror.git"), &repo)?;
    mirror.fetch_remote()?;
    let head = |name: &str| -> anyhow::Result<Sha> {
        let name = BranchName::new(name).ok_or_else(|| anyhow::anyhow!("{name} is no branch name"))?;
        mirror.remote_head(&name)?.ok_or_else(|| anyhow::anyhow!("{name} was not fetched"))
    };
    let main = head("main")?;
    let heads = (0..branches).map(|n| head(&branch(n))).collect::<anyhow::Result<Vec<_>>>()?;
    let mut millis = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let begun = Instant::now();
        let told = check_conflicts(&mirror, &main, &heads)?;
        millis.push(begun.elapsed().as_secs_f64() * 1000.0);
        let conflicts = told.iter().filter(|files| files.is_some()).count();
        anyhow::ensure!(conflicts == branches.div_ceil(EVERY), "{conflicts} conflicts were found");
    }
    Ok(Sample::new(millis))
}
