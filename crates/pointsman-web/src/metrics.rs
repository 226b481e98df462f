//! `/metrics`: figures for Prometheus, in its text format.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::extract::{Extension, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use pointsman_core::time::Timestamp;
use pointsman_view::status::Status;

use crate::api;
use crate::backend::Visitor;
use crate::server::App;

const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`
pub(crate) async fn serve(State(app): State<App>, Extension(by): Extension<Visitor>) -> Response {
    let asking = app.clone();
    let read = app.ask(move |backend| Ok((backend.status(&by)?, backend.last_event()?))).await;
    match read {
        Ok((status, newest)) => {
            let text = text(&status, newest, asking.backend.now());
            ([(CONTENT_TYPE, HeaderValue::from_static(KIND))], text).into_response()
        }
        Err(failure) => api::refused(&failure),
    }
}

/// Labels with their values, and the figure.
type Sample = (Vec<(&'static str, String)>, f64);

fn text(status: &Status, newest: i64, now: Timestamp) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: Vec<Sample>| {
        let _ = writeln!(text, "# HELP pointsman_{name} {help}\n# TYPE pointsman_{name} {kind}");
        for (labels, figure) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(text, "pointsman_{name}{labels} {figure}");
        }
    };
    let projects = &status.projects;
    let of = |project: &pointsman_view::status::Project| ("project", project.name.to_string());
    let each = |figure: &dyn Fn(&pointsman_view::status::Project) -> f64| -> Vec<Sample> {
        projects.iter().map(|project| (vec![of(project)], figure(project))).collect()
    };
    let version = status.daemon.as_ref().map(|daemon| daemon.version.clone()).unwrap_or_default();
    family("info", "gauge", "The version of the daemon.", vec![(vec![("version", version)], 1.0)]);
    let started = status.daemon.as_ref().map(|daemon| millis(daemon.started_at.0) / 1000.0);
    let started = started.map(|at| (Vec::new(), at)).into_iter().collect();
    family("start_time_seconds", "gauge", "When the daemon started, in seconds since 1970.", started);
    let problems = status.daemon.as_ref().map_or(0, |daemon| daemon.problems.len());
    family("problems", "gauge", "Problems that the daemon knows of.", vec![(Vec::new(), count(problems))]);
    let halted = f64::from(u8::from(status.halted.is_some()));
    family("halted", "gauge", "Whether all work is halted.", vec![(Vec::new(), halted)]);
    family("events_total", "counter", "Entries of the log.", vec![(Vec::new(), newest as f64)]);
    let tasks = projects.iter().flat_map(|project| {
        let states = project.tasks.iter();
        states.map(move |(state, tasks)| (vec![of(project), ("state", state.to_string())], count(*tasks)))
    });
    family("tasks", "gauge", "Tasks by their state.", tasks.collect());
    family("sessions", "gauge", "Sessions that run.", each(&|project| count(project.sessions)));
    let queued = each(&|project| count(project.merge_queue));
    family("merge_queue_entries", "gauge", "Branches in the merge queue.", queued);
    let paused = each(&|project| f64::from(u8::from(project.line_stopped.is_some())));
    family("merge_queue_paused", "gauge", "Whether the merge queue is paused.", paused);
    let mut questions: BTreeMap<(String, &str), (usize, f64)> = BTreeMap::new();
    for asked in &status.questions {
        let age = now.since(asked.asked_at.0).as_secs_f64();
        let (count, oldest) = questions.entry((asked.project.to_string(), asked.kind.as_str())).or_default();
        *count += 1;
        *oldest = oldest.max(age);
    }
    let labels =
        |(project, kind): &(String, &str)| vec![("project", project.clone()), ("kind", (*kind).to_owned())];
    let counted = questions.iter().map(|(key, (asked, _))| (labels(key), count(*asked))).collect();
    family("questions", "gauge", "Open questions to people, by kind.", counted);
    let oldest = questions.iter().map(|(key, (_, oldest))| (labels(key), *oldest)).collect();
    family("question_oldest_seconds", "gauge", "The age of the oldest open question of a kind.", oldest);
    let usd = each(&|project| project.spent_today.usd.unwrap_or(0.0));
    family("spent_today_usd", "gauge", "Money spent since midnight, UTC, as far as it was reported.", usd);
    let tokens = each(&|project| project.spent_today.tokens.unwrap_or(0) as f64);
    family(
        "spent_today_tokens",
        "gauge",
        "Tokens used since midnight, UTC, as far as they were reported.",
        tokens,
    );
    let turns = each(&|project| project.spent_today.turns as f64);
    family("turns_today", "gauge", "Turns of agents since midnight, UTC.", turns);
    let restarts = each(&|project| project.spent_today.restarts as f64);
    family("restarts_today", "gauge", "Sessions started again since midnight, UTC.", restarts);
    let limits = projects.iter().flat_map(|project| {
        let limits = project.rate_limits.iter();
        limits
            .map(move |limit| (vec![of(project), ("limit", limit.name.clone())], limit.used_percent / 100.0))
    });
    family(
        "rate_limit_used_ratio",
        "gauge",
        "The used part of a rate limit of the model's account.",
        limits.collect(),
    );
    text
}

fn count(number: usize) -> f64 {
    number as f64
}

fn millis(at: Timestamp) -> f64 {
    at.0 as f64
}

/// The value of a label. Names of limits come from outside.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        assert_eq!(escaped("a\"} 1\nb\\"), "a\\\"} 1\\nb\\\\");
    }
}
