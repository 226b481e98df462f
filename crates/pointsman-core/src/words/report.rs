//! To people: the names of the figures that `report` shows.

use std::time::Duration;

pub const LANDED: &str = "Issues landed";
pub const LANDED_BY_DAY: &str = "Issues landed, by day";
pub const FIRST_PASS: &str = "First pass";
pub const ATTEMPTS: &str = "Attempts per landed issue";
pub const LEAD_TIME: &str = "Lead time";
pub const STAGES: &str = "Where the time goes (median)";
pub const COST: &str = "Cost";
pub const COST_BY_ISSUE: &str = "Cost by issue";
pub const COST_BY_ROLE: &str = "Cost by role";
pub const COST_BY_AGENT: &str = "Cost by model";
pub const WASTED: &str = "Spent on what did not land";
pub const PERSON: &str = "Time of people (estimate)";
pub const ACCEPTED: &str = "Reviews by people that approved";
pub const REVERTS: &str = "Reverts";
pub const CI: &str = "CI";
pub const REVIEWS: &str = "Reviews";
pub const BY_CLASS: &str = "Landed by class of risk";
pub const UNNAMED: &str = "default model";
pub const UNKNOWN: &str = "unknown";

/// The heading of the page.
pub fn title(whose: &str, since: &str, until: &str) -> String {
    format!("{whose} from {since} to {until}")
}

/// All projects together.
pub const ALL_PROJECTS: &str = "all projects";

/// The runs of CI.
pub fn ci(runs: u64, red: u64, flaky: u64) -> String {
    format!("{runs} runs, {red} red, {flaky} flaky commits")
}

/// The reviews of people, and what became of those of the review agent.
pub fn reviews(asked: u64, found: u64, overruled: u64, reverted: u64) -> String {
    format!(
        "{asked} requested; the review agent objected {found} times, was overruled {overruled} times, and approved \
            {reverted} changes that were reverted"
    )
}

/// The landings of a class of risk.
pub fn class(landed: u64, reverted: u64) -> String {
    format!("{landed} landed, {reverted} reverted")
}

/// A rate as a percentage.
pub fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| UNKNOWN.to_owned(), |rate| format!("{:.0} %", rate * 100.0))
}

/// The middle and the slow end of a time.
pub fn lead_time(p50: Option<f64>, p90: Option<f64>) -> String {
    match (p50, p90) {
        (Some(p50), Some(p90)) => {
            format!("half within {}, nine of ten within {}", seconds(p50), seconds(p90))
        }
        _ => UNKNOWN.to_owned(),
    }
}

/// A time in seconds, roughly.
pub fn seconds(seconds: f64) -> String {
    super::rough(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// An amount of money.
pub fn usd(usd: Option<f64>) -> String {
    usd.map_or_else(|| UNKNOWN.to_owned(), |usd| format!("{usd:.2} USD"))
}

/// A file was written.
pub fn written(path: &str) -> String {
    format!("The report is in {path}.")
}
