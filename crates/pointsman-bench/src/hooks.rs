//! What a hook costs: alone, beside the smallest program there is and beside a script that does the same reads, and with
//! a daemon that supervises many sessions.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::report::{Report, Target};
use crate::sample::Sample;
use crate::stage::{Stage, Workspace};

/// So many calls of each, in turn, so that what else the machine does meets all of them.
const ROUNDS: usize = 300;
/// Enough for a 99th percentile.
const CALLS: usize = 500;
/// `hook stop` in the unchanged coding phase costs at most so many times `/bin/true`.
const TIMES_TRUE: f64 = 2.5;
/// A script with the same reads takes at least so many times as long.
const TIMES_SCRIPT: f64 = 10.0;
/// Milliseconds for a tool's end to be told to a busy daemon.
const TOLD_LIMIT: f64 = 10.0;

/// What the hook does in its common case, as people write it in a shell.
const SCRIPT: &str = r#"
input=$(cat)
claim=$CLAUDE_PROJECT_DIR/.agent-claim.json
[ -f "$claim" ] || exit 0
cwd=$(printf '%s' "$input" | jq -r .cwd)
phase=$(jq -r .phase "$claim")
status=$(jq -r .status "$claim")
synced=$(jq -r .last_synced_status "$claim")
case $phase in ready_for_pr | done) exit 1 ;; esac
[ "$status" = "$synced" ]
"#;

/// Measures the common case: a person's session, nothing changed, no daemon, no call.
pub(crate) fn measure(place: &Workspace) -> anyhow::Result<Report> {
    let dir = tempfile::tempdir_in(&place.scratch)?;
    std::fs::create_dir(dir.path().join(".git"))?;
    let claim = json!({
        "schema_version": 1, "item_id": "item-42", "issue_number": 42, "branch": "claude/fix-thing-42",
        "agent_id": "ann-1738000000", "phase": "coding", "summary": "", "status": "In Progress", "pr_number": null,
        "last_check_poll": null, "last_synced_status": "In Progress",
    });
    std::fs::write(dir.path().join(".agent-claim.json"), claim.to_string())?;
    let event = json!({ "hook_event_name": "Stop", "cwd": dir.path(), "stop_hook_active": false });
    let input = dir.path().join("event.json");
    std::fs::write(&input, event.to_string())?;
    let script = dir.path().join("on-stop.sh");
    std::fs::write(&script, SCRIPT)?;

    let ours = place.program.to_string_lossy().into_owned();
    let script = script.to_string_lossy().into_owned();
    let mut ways: Vec<(&str, Vec<String>)> =
        vec![(TRUE, words(&["/bin/true"])), (HOOK, words(&[&ours, "hook", "stop"]))];
    if runs("jq") {
        ways.push((JQ, words(&["bash", &script])));
    }
    if runs("node") {
        ways.push((NODE, words(&["node", "-e", "0"])));
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(ROUNDS); ways.len()];
    for _ in 0..ROUNDS {
        for ((name, argv), times) in ways.iter().zip(&mut times) {
            let (millis, well) = time(argv, &input, &[("CLAUDE_PROJECT_DIR", dir.path())])?;
            ensure!(well, "{name} failed");
            times.push(millis);
        }
    }
    let samples: Vec<(&str, Sample)> =
        ways.iter().zip(times).map(|((name, _), times)| (*name, Sample::new(times))).collect();
    Ok(report(&samples))
}

const TRUE: &str = "/bin/true";
const HOOK: &str = "hook stop, unchanged";
const JQ: &str = "bash and jq";
const NODE: &str = "node -e 0";

fn report(samples: &[(&str, Sample)]) -> Report {
    let median =
        |name: &str| samples.iter().find(|(n, _)| *n == name).map(|(_, sample)| sample.percentile(50));
    let (smallest, ours) = (median(TRUE).unwrap_or(1.0), median(HOOK).unwrap_or(0.0));
    let rows = samples.iter().map(|(name, sample)| {
        vec![
            (*name).to_owned(),
            format!("{:.2}", sample.percentile(50)),
            format!("{:.2}", sample.percentile(99)),
            format!("{:.1}", sample.percentile(50) / smallest),
        ]
    });
    let mut targets = vec![Target {
        what: "hook stop beside /bin/true:".to_owned(),
        unit: "times",
        limit: TIMES_TRUE,
        found: ours / smallest,
    }];
    targets.extend(median(JQ).map(|script| Target {
        what: format!("hook stop as a share of bash and jq, which is {:.1} times as slow:", script / ours),
        unit: "",
        limit: 1.0 / TIMES_SCRIPT,
        found: ours / script,
    }));
    let results = samples.iter().map(|(name, sample)| named(name, sample));
    Report {
        name: "hooks",
        title: format!("Hooks: {ROUNDS} calls of each in turn, milliseconds from start to end."),
        header: vec!["WHAT", "P50", "P99", "TIMES /BIN/TRUE"],
        rows: rows.collect(),
        targets,
        results: results.collect(),
    }
}

/// Measures how long a session waits for a hook that tells the daemon about a tool.
pub(crate) fn tell(stage: &Stage, program: &Path, sessions: u64) -> anyhow::Result<Report> {
    let dir = tempfile::tempdir_in(stage.checkout())?;
    let input = dir.path().join("event.json");
    let event = json!({
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "cwd": stage.checkout(),
        "tool_input": { "command": "ls" }, "tool_response": { "stdout": "a\n".repeat(1000) },
    });
    std::fs::write(&input, event.to_string())?;
    let argv = words(&[&program.to_string_lossy(), "hook", "PostToolUse"]);
    let mut times = Vec::with_capacity(CALLS);
    for call in 0..CALLS as u64 {
        let session = PathBuf::from(format!("dev-{}-{}.1", stage.project(), call % sessions + 1));
        let variables = [
            ("POINTSMAN_SESSION", session.as_path()),
            ("POINTSMAN_STATE_DIR", stage.paths().state()),
            ("POINTSMAN_RUNTIME_DIR", stage.paths().runtime()),
        ];
        let (millis, well) = time(&argv, &input, &variables)?;
        ensure!(well, "the hook failed");
        times.push(millis);
    }
    let sample = Sample::new(times);
    Ok(Report {
        name: "hooks-told",
        title: format!(
            "Hooks of {sessions} sessions: {CALLS} times PostToolUse, told to the daemon, milliseconds."
        ),
        header: vec!["WHAT", "P50", "P99", "MAX"],
        rows: vec![vec![
            "PostToolUse".to_owned(),
            format!("{:.2}", sample.percentile(50)),
            format!("{:.2}", sample.percentile(99)),
            format!("{:.2}", sample.max()),
        ]],
        targets: vec![Target {
            what: format!("PostToolUse with {sessions} sessions, p99:"),
            unit: "ms",
            limit: TOLD_LIMIT,
            found: sample.percentile(99),
        }],
        results: vec![named("PostToolUse", &sample)],
    })
}

fn named(name: &str, sample: &Sample) -> Value {
    let mut value = sample.to_json();
    value["what"] = json!(name);
    value
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn runs(program: &str) -> bool {
    let argv = words(&[program, "--version"]);
    time(&argv, Path::new("/dev/null"), &[]).is_ok_and(|(_, well)| well)
}

/// Milliseconds from start to end, and whether it went well. Nothing is between us and the program: that would cost more
/// than what is measured.
#[allow(clippy::disallowed_methods, reason = "what is measured is the start of a program")]
fn time(argv: &[String], input: &Path, variables: &[(&str, &Path)]) -> anyhow::Result<(f64, bool)> {
    let (program, rest) = argv.split_first().context("a command has a program")?;
    let mut command = Command::new(program);
    command.args(rest).env_clear().envs(variables.iter().copied()).env("HOME", "/nonexistent");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(File::open(input)?).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    Ok((begun.elapsed().as_secs_f64() * 1000.0, status.success()))
}
