use std::path::{Path, PathBuf};

use clap::Args;
use pointsman_adapters::phase_file;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::session::quota::{self, Window};
use pointsman_core::text::clean_line;
use pointsman_core::workflow::WorkflowId;
use pointsman_view::session::Measured;
use pointsman_view::task::{CiStatus, StatusLine};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::claim_file::ClaimFile;
use super::failure::Failure;
use super::hook;
use super::time;
use crate::control::client;
use crate::control::protocol::{Reply, Request};
use crate::paths::Paths;

/// A line that is not older than this is shown again without asking: Claude asks several times a second.
const FRESH_MILLIS: i64 = 2_000;
/// What is kept of the last line.
const KEPT_BYTES: u64 = 4096;

/// Print the status line of a Claude Code session; Claude's settings call this
///
/// Claude's JSON is read from standard input. In a session of the daemon, this also reports context, cost and rate
/// limits.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  echo '{}' | pointsman statusline")]
pub(crate) struct Arguments {}

/// The line that was shown last, and what was reported with it.
#[derive(Serialize, Deserialize)]
struct Kept {
    at: i64,
    measured: (Option<u16>, u64),
    #[serde(default)]
    quota: Vec<Window>,
    line: String,
}

impl Arguments {
    #[allow(clippy::disallowed_methods, reason = "a process begins here: the environment is its input")]
    pub(crate) fn run(self) -> Result<(), Failure> {
        let payload = hook::read_value();
        let session = std::env::var("POINTSMAN_SESSION").ok().filter(|session| !session.is_empty());
        let line = match &session {
            Some(session) => {
                let paths = Paths::from_env(|name| std::env::var_os(name))?;
                of_session(&paths, session, &payload)
            }
            None => of_person(&payload),
        };
        // A status line that fails would only be missing.
        println!("{}", [line, measures(&payload)].concat().join(" · "));
        Ok(())
    }
}

/// What the daemon knows about the session's task, asked together with the report.
fn of_session(paths: &Paths, session: &str, payload: &Value) -> Vec<String> {
    let Some((id, generation)) = WorkflowId::parse_session(session) else {
        return vec![clean_line(session, 60)];
    };
    let run = paths.project(id.project()).sandbox(&id).join(format!("run-{generation}"));
    let kept_at = run.join("statusline.json");
    let (gauge, mut spent) = (gauge(payload), spent(payload));
    // The last answer of a turn is in the transcript only after its hooks were called.
    let transcript = payload["transcript_path"].as_str().unwrap_or_default();
    let counted = hook::usage::count(&run, session, transcript);
    if let Some(more) = counted {
        let told = spent.get_or_insert_default();
        (told.tokens, told.classes) = (more.tokens, more.classes);
    }
    let measured = (gauge.map(|g| g.used_permille), spent.map_or(0, |s| s.micro_usd));
    let now = time::now().0;
    let quota = quota::read(payload, time::now());
    let kept = phase_file::read_result_file(&kept_at, KEPT_BYTES).ok().flatten();
    let kept: Option<Kept> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let same = |kept: &Kept| counted.is_none() && kept.measured == measured && kept.quota == quota;
    if let Some(kept) = kept.filter(|kept| same(kept) && (0..FRESH_MILLIS).contains(&(now - kept.at))) {
        return vec![kept.line];
    }
    let request = Request::Measure { session: session.to_owned(), gauge, spent, quota: quota.clone() };
    let line = match client::ask(&paths.control_socket(), &request) {
        Ok(Reply::Done { value }) => {
            let task = serde_json::from_value::<Measured>(value).ok().and_then(|measured| measured.task);
            described(&id, task.as_ref())
        }
        Ok(Reply::Failed { message, .. }) => {
            format!("{} ({})", named(&id), clean_line(&message, 60))
        }
        Err(_) => format!("{} (no daemon)", named(&id)),
    };
    if let Ok(text) = serde_json::to_vec(&Kept { at: now, measured, quota, line: line.clone() }) {
        let _ = phase_file::write_state_file(&kept_at, &text);
    }
    vec![line]
}

fn named(id: &WorkflowId) -> String {
    match id {
        WorkflowId::Task(key) => format!("{} #{}", key.project, key.issue),
        WorkflowId::Run(key) => format!("{} {} {}", key.project, key.role, key.id),
        WorkflowId::Vault(_) | WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => {
            id.to_string()
        }
    }
}

fn described(id: &WorkflowId, task: Option<&StatusLine>) -> String {
    let mut parts = vec![named(id)];
    if let Some(task) = task {
        parts.push(task.state.to_string());
        parts.extend(task.phase.map(|phase| format!("phase {phase}")));
        parts.extend((task.ci != CiStatus::None).then(|| format!("CI {}", task.ci.name())));
        parts.extend(task.pr.map(|pr| format!("PR #{pr}")));
        parts.extend(task.queue_position.map(|position| format!("queue {position}")));
    }
    parts.join(" · ")
}

/// A person's session shows its claim, from the file alone.
fn of_person(payload: &Value) -> Vec<String> {
    let dir = ["project_dir", "current_dir"].into_iter().find_map(|name| payload["workspace"][name].as_str());
    let Some(dir) = dir.or_else(|| payload["cwd"].as_str()).map(PathBuf::from) else { return Vec::new() };
    let name = |dir: &Path| dir.file_name().map(|name| clean_line(&name.to_string_lossy(), 40));
    let mut parts: Vec<String> = name(&dir).into_iter().collect();
    if let Some(Ok(Some(claim))) = ClaimFile::find(&dir).map(|file| file.read()) {
        parts.push(format!("#{} {}", claim.issue_number, clean_line(claim.phase.name(), 40)));
        parts.extend(claim.pr_number.map(|pr| format!("PR #{pr}")));
        parts.push(clean_line(&claim.branch, 60));
    }
    parts
}

fn measures(payload: &Value) -> Vec<String> {
    let context = gauge(payload).map(|gauge| format!("ctx {:.0}%", gauge.percent()));
    let cost = payload["cost"]["total_cost_usd"].as_f64().filter(|usd| *usd > 0.0);
    let limit = |window: Window| {
        let name = match window.name.as_str() {
            "five_hour" => "5h",
            "seven_day" => "7d",
            other => other,
        };
        format!("{name} {}%", window.used_permille / 10)
    };
    let limits = quota::read(payload, time::now()).into_iter().map(limit);
    context.into_iter().chain(cost.map(|usd| format!("${usd:.2}"))).chain(limits).collect()
}

fn gauge(payload: &Value) -> Option<Gauge> {
    let used = payload["context_window"]["used_percentage"].as_f64()?;
    let used_permille = (0.0..=100.0).contains(&used).then_some((used * 10.0).round() as u16)?;
    Some(Gauge { used_permille, source: Source::StatusLine })
}

fn spent(payload: &Value) -> Option<Spent> {
    let usd = payload["cost"]["total_cost_usd"].as_f64().filter(|usd| (0.0..1_000_000.0).contains(usd))?;
    // Its tokens are those of the last request; the transcript has them all.
    Some(Spent { micro_usd: (usd * 1_000_000.0).round() as u64, ..Spent::default() })
}

#[cfg(test)]
mod tests {
    use pointsman_core::task::{Phase, State};
    use pointsman_core::workflow::WorkflowId;
    use pointsman_view::task::{CiStatus, StatusLine};
    use serde_json::json;

    use super::{described, gauge, measures, spent};

    #[test]
    fn nothing_is_measured_before_the_first_reply() {
        let fresh = json!({ "context_window": { "used_percentage": null }, "cost": { "total_cost_usd": 0 } });
        assert_eq!((gauge(&fresh), measures(&fresh)), (None, vec![]));
        assert_eq!((gauge(&json!(null)), spent(&json!([])).is_none()), (None, true));
        let odd = json!({ "context_window": { "used_percentage": 1e9 }, "cost": { "total_cost_usd": -1 } });
        assert_eq!((gauge(&odd), spent(&odd).is_none()), (None, true));
    }

    #[test]
    fn a_line_tells_task_phase_ci_and_queue() {
        let (id, _) = WorkflowId::parse_session("dev-shop-3.1").unwrap();
        let task = StatusLine {
            state: State::MergeQueue,
            phase: Some(Phase::AwaitingReview),
            ci: CiStatus::Passed,
            pr: Some(7),
            queue_position: Some(2),
        };
        assert_eq!(
            described(&id, Some(&task)),
            "shop #3 · merge_queue · phase awaiting_review · CI passed · PR #7 · queue 2"
        );
        let full = json!({ "context_window": { "used_percentage": 43 }, "cost": { "total_cost_usd": 1.27 } });
        assert_eq!(measures(&full), ["ctx 43%", "$1.27"]);
    }
}
