//! The servers that the project lives on: do they answer, who are we there, what may we do?

use pointsman_adapters::ci::woodpecker::Woodpecker;
use pointsman_adapters::forge::{Error, ServerForge};
use pointsman_adapters::http::Host;
use pointsman_core::config::Config;

use super::{Check, chain};
use crate::cli::context::Context;

const FORGE: &str = "forge_server";
const CI: &str = "ci_server";

pub(super) fn checks(context: &Context, config: &Config) -> Vec<Check> {
    let forge = match context.find_server(config) {
        Ok(forge) => forge.map(|forge| server(&*forge, &config.primary_branch)),
        Err(error) => Some(no_token(FORGE, error)),
    };
    let ci = match context.find_ci(config) {
        Ok(ci) => ci.map(|ci| woodpecker(&ci)),
        Err(error) => Some(no_token(CI, error)),
    };
    forge.into_iter().chain(ci).collect()
}

fn server(forge: &dyn ServerForge, branch: &str) -> Check {
    if let Err(error) = forge.look() {
        return in_the_way(&error);
    }
    // A missing right would only be noticed when something is to land.
    if let Some(error) = forge.rights(branch).into_iter().find_map(|right| right.checked.err()) {
        return in_the_way(&error);
    }
    let (version, lacks) = match forge.version() {
        Some((version, lacks)) => (format!("version {version}, "), lacks),
        None => (String::new(), Vec::new()),
    };
    let detail = format!("{version}{}", account_and_limits(forge, forge.host()));
    match lacks.as_slice() {
        [] => clock(FORGE, detail, forge.host()),
        lacks => Check::warn(FORGE, format!("{detail}; {}", lacks.join("; ")), "bring the server up to date"),
    }
}

fn woodpecker(ci: &Woodpecker) -> Check {
    match ci.pipelines() {
        Ok(pipelines) => {
            let detail = format!("{}; {} recent pipelines", round_trip(ci.host()), pipelines.len());
            clock(CI, detail, ci.host())
        }
        Err(error) => Check::fail(CI, chain(error), "check woodpecker.url, woodpecker.repo_id and its token"),
    }
}

fn no_token(id: &'static str, error: anyhow::Error) -> Check {
    Check::fail(id, chain(error), "provide the token as configured; see docs/forges.md")
}

fn in_the_way(error: &Error) -> Check {
    Check::fail(FORGE, error.to_string(), "see docs/forges.md for the accounts and their permissions")
}

/// Who we are there, how quickly it answers, and how often it may still be asked.
fn account_and_limits(forge: &dyn ServerForge, host: &Host) -> String {
    let left = host
        .rate_limit()
        .map_or(String::new(), |rate| format!("; {} of {} requests are left", rate.remaining, rate.limit));
    format!("logged in as `{}`; {}{left}", forge.me(), round_trip(host))
}

fn round_trip(host: &Host) -> String {
    let total = host.counts().total();
    let average = total.waited.as_millis() / u128::from(total.calls.max(1));
    format!("{} answers in {average} ms", host.name())
}

fn clock(id: &'static str, detail: String, host: &Host) -> Check {
    match host.ahead_ms() / 1000 {
        0 => Check::ok(id, detail),
        ahead => Check::warn(
            id,
            format!("{detail}; its clock differs from ours by {ahead} s, which is taken into account"),
            "synchronise the clocks of both machines with NTP",
        ),
    }
}
