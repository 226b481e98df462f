//! What the sandbox costs: the start of a session and of a CI run inside, beside the same outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use pointsman_core::forge::StateFilter;
use pointsman_core::labels::BACKLOG;
use pointsman_store::ForgeDatabase;

use crate::report::{Report, Target};
use crate::sample::Sample;
use crate::stage::{Stage, Workspace};
use crate::wait;

/// Sessions, and CI runs, on each side.
const TIMES: u64 = 25;
/// So many milliseconds more than outside, in the median.
const LIMIT: f64 = 30.0;
/// For one issue from its label to its merge: far beyond any good value, so that a bad one is still measured.
const ISSUE_LIMIT: Duration = Duration::from_secs(60);

/// The agent takes the time first of all, works, and takes it again when it claims that its work can be tested.
const AGENT: &str = r#"up=$EPOCHREALTIME
LC_ALL=C
read -r greeting
echo "$ISSUE" > "work-$ISSUE.txt"
git add "work-$ISSUE.txt" && git commit --quiet --message "Work on $ISSUE" && git push --quiet origin HEAD
echo "$up $EPOCHREALTIME" > "$(dirname "$POINTSMAN_RESULT_FILE")/times"
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do
    case $line in *Merged*) echo PHASE:done > "$PHASE_FILE" ;; esac
done
"#;

/// The CI tells when it began, and nothing else.
const CI: &str = "#!/usr/bin/env bash\nLC_ALL=C\necho \"began $EPOCHREALTIME\"\n";

/// Measures both sides, one issue after another in turn.
pub(crate) fn measure(place: &Workspace) -> anyhow::Result<Report> {
    let mut outside = Side::build(place, "off")?;
    let mut inside = Side::build(place, "require")?;
    // The first of each warms up what is made once: the tmux server, the proxy, the page cache.
    for time in 0..=TIMES {
        for side in [&mut outside, &mut inside] {
            side.issue(time > 0).with_context(|| side.stage.log_tail())?;
        }
    }
    let kinds = ["label to agent", "claim to CI"];
    let (outside, inside) = (outside.samples(), inside.samples());
    let mut rows = Vec::new();
    let mut targets = Vec::new();
    let mut results = Vec::new();
    for (at, kind) in kinds.into_iter().enumerate() {
        let (out, within) = (&outside[at], &inside[at]);
        let more = within.percentile(50) - out.percentile(50);
        let cells =
            [out.percentile(50), within.percentile(50), more, out.percentile(99), within.percentile(99)];
        rows.push(std::iter::once(kind.to_owned()).chain(cells.map(|cell| format!("{cell:.1}"))).collect());
        targets.push(Target { what: format!("{kind}, more inside:"), unit: "ms", limit: LIMIT, found: more });
        for (side, sample) in [("outside", out), ("inside", within)] {
            let mut value = sample.to_json();
            value["what"] = kind.into();
            value["side"] = side.into();
            results.push(value);
        }
    }
    Ok(Report {
        name: "sandbox",
        title: format!(
            "Sandbox: from the label on an issue to the agent's first instruction, and from the agent's claim to the first \
             instruction of CI;\n{TIMES} issues on each side in turn, all time spans at their defaults. Milliseconds."
        ),
        header: vec!["WHAT", "OUTSIDE", "INSIDE", "MORE", "OUTSIDE P99", "INSIDE P99"],
        rows,
        targets,
        results,
    })
}

/// An installation with or without a sandbox.
struct Side {
    stage: Stage,
    starts: Vec<f64>,
    checks: Vec<f64>,
}

impl Side {
    fn build(place: &Workspace, mode: &str) -> anyhow::Result<Self> {
        let mut stage = Stage::empty(place)?;
        fs::write(stage.agent(), AGENT)?;
        let ci = stage.checkout().join("ci.sh");
        fs::write(&ci, CI)?;
        stage.git(&["add", "--chmod=+x", "ci.sh"])?;
        stage.git(&["commit", "--quiet", "--message=Test it"])?;
        stage.pointsman(&["init", "--yes"])?;
        let agent = stage.agent();
        stage.configure(&format!(
            "name = \"{}\"\n[agent]\ncommand = [\"bash\", {:?}]\n[ci]\ncommand = [\"./ci.sh\"]\n[merge]\ngate = [\"true\"]\n\
             [review]\nmode = \"none\"\n[dev]\nphase_dir = {:?}\n[sandbox]\nmode = {mode:?}\n",
            stage.project(),
            agent.to_str().context("the place is not UTF-8")?,
            stage.phases().to_str().context("the place is not UTF-8")?,
        ))?;
        stage.start_daemon()?;
        Ok(Self { stage, starts: Vec::new(), checks: Vec::new() })
    }

    /// One issue, from its label to its merge.
    fn issue(&mut self, counts: bool) -> anyhow::Result<()> {
        let paths = self.stage.paths().project(&self.stage.project());
        let forge_db = ForgeDatabase::open(&paths.forge_database())?;
        let labelled = now()?;
        let words = ["--title", "Work", "--body", "Please.", "--label", BACKLOG];
        self.stage.pointsman(&[&["forge", "issue", "create"][..], &words].concat())?;
        let issue = forge_db.issues(StateFilter::Open)?.first().context("the issue is there")?.number;
        let files = paths.root().join("sessions").join(format!("dev-{}-{issue}", self.stage.project()));
        wait::until("the issue to be closed", ISSUE_LIMIT, || {
            Ok(forge_db.issues(StateFilter::Open)?.is_empty().then_some(()))
        })?;
        let times = files.join("run-1/times");
        let text = fs::read_to_string(&times).with_context(|| times.display().to_string())?;
        let (up, claimed) = text.trim().split_once(' ').context("two times")?;
        let (up, claimed): (f64, f64) = (up.parse()?, claimed.parse()?);
        let began = ci_runs(&paths.logs())?.into_iter().fold(0.0, f64::max);
        if counts {
            self.starts.push((up - labelled) * 1000.0);
            self.checks.push((began - claimed) * 1000.0);
        }
        Ok(())
    }

    fn samples(self) -> [Sample; 2] {
        [Sample::new(self.starts), Sample::new(self.checks)]
    }
}

/// When the runs of CI began, from their logs.
fn ci_runs(logs: &Path) -> anyhow::Result<Vec<f64>> {
    let mut began = Vec::new();
    let files: Vec<PathBuf> = fs::read_dir(logs)?.flatten().map(|entry| entry.path()).collect();
    for text in files.iter().filter_map(|file| fs::read_to_string(file).ok()) {
        began.extend(text.lines().filter_map(|line| line.strip_prefix("began ")?.trim().parse::<f64>().ok()));
    }
    Ok(began)
}

/// Seconds, as the shell's `EPOCHREALTIME` has them.
#[allow(
    clippy::disallowed_methods,
    reason = "compared with the clock of a shell, which is that of the machine"
)]
fn now() -> anyhow::Result<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64())
}
