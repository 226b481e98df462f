//! Predictions as issues: what will happen, and from which figures.

use crate::predictor::Prediction;
use crate::text::clean_line;

/// Title and text of the issue.
pub fn issue(prediction: &Prediction) -> (String, String) {
    let weeks = |times: u64, was: u64| format!("{times} in the last seven days, {was} in the seven before");
    let (title, evidence, look) = match prediction {
        Prediction::DiskFills { path, percent, was, over_days, in_days, threshold } => {
            let path = clean_line(path, 100);
            (
                format!("The disk of {path} passes {threshold} % in {}", days(*in_days)),
                format!("{percent} % full now, {was} % {} ago", days(*over_days)),
                "pointsman health",
            )
        }
        Prediction::MemoryShrinks { free_mb, was, over_days, in_days, threshold } => (
            format!("Less than {threshold} MB of memory are free in {}", days(*in_days)),
            format!("{free_mb} MB are free now, {was} MB {} ago, and falling steadily", days(*over_days)),
            "pointsman health",
        ),
        Prediction::CiRedder { percent, was, runs } => (
            format!("CI fails more often: {percent} % of the runs"),
            format!(
                "{percent} % of {runs} runs were red in the last seven days, {was} % in the seven before"
            ),
            "pointsman events --kind checks_finished",
        ),
        Prediction::CiUnsteady { times, was } => (
            "The CI infrastructure fails again and again".to_owned(),
            weeks(*times, *was),
            "pointsman events --kind checks_finished",
        ),
        Prediction::SessionsDie { times, was } => (
            "Sessions die more often".to_owned(),
            weeks(*times, *was),
            "pointsman signals --kind AGENT_CRASHED",
        ),
        Prediction::TasksBlock { times, was } => (
            "Tasks become blocked more often".to_owned(),
            weeks(*times, *was),
            "pointsman task list --state blocked",
        ),
        Prediction::IssuesPileUp { stale, open } => (
            format!("Issues pile up: {stale} of {open} are not being touched"),
            format!("{stale} of {open} open issues have not changed for a long time"),
            "pointsman board",
        ),
    };
    let body = format!(
        "A prediction computed from measurements; nobody has judged it yet.\n\n## Evidence\n\n- {evidence}\n- to \
            see more: `{look}`\n"
    );
    (title, body)
}

fn days(days: u64) -> String {
    if days == 1 { "1 day".to_owned() } else { format!("{days} days") }
}
