//! The hooks of a person's own session: from `.agent-claim.json` to the forge and back.
//!
//! What is to be done is decided in `pointsman_core::claim::life`; what a claim may do is checked where the forge is
//! (`crate::claim`). A session of the daemon never comes here: it has its task already.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pointsman_adapters::phase_file;
use pointsman_core::claim::on_hook::{
    OnStop, POLL_EVERY, missing, on_stop, poll_is_due, waits_for_pull_request,
};
use pointsman_core::claim::{Claim, Phase};
use pointsman_core::forge::BoardStatus;
use pointsman_core::time::Timestamp;
use pointsman_core::words::claim as words;
use pointsman_view::claim::{Board, HandedIn, PullRequestStatus, PullState};
use serde::de::DeserializeOwned;

use super::{Call, Event, output};
use crate::cli::claim_file::ClaimFile;
use crate::cli::context::Context;
use crate::cli::daemon_client::Route;
use crate::cli::failure::Failure;
use crate::cli::out::Out;
use crate::cli::time;
use crate::control::protocol::{ClaimOrder, Request};
use crate::paths::Paths;

/// The agent waits for the forge no longer than this.
const FORGE_LIMIT: Duration = Duration::from_secs(20);

/// Answers one event.
pub(super) fn answer(call: &Call) {
    match call.event {
        Event::Stop => stopped(call),
        Event::Idle => idle(call),
        Event::Notification if call.payload.is_idle() => idle(call),
        Event::SessionStart => started(call),
        Event::Notification | Event::Watch | Event::Other => {}
    }
}

fn stopped(call: &Call) {
    let Some((file, claim)) = claim(call) else { return };
    match on_stop(&claim) {
        OnStop::Nothing => {}
        OnStop::SyncBoard => sync(call, &file, &claim),
        OnStop::OpenPullRequest => hand_in(call, &file, &claim),
        OnStop::CloseIssue => close(call, &file, &claim),
    }
}

fn sync(call: &Call, file: &ClaimFile, claim: &Claim) {
    let order = ClaimOrder::Sync {
        issue: claim.issue_number,
        status: claim.status.clone(),
        agent_id: claim.agent_id.clone(),
    };
    match ask::<serde_json::Value>(file.dir(), order) {
        Ok(_) => {
            let status = claim.status.clone();
            changed(call, file.change(claim, |claim| claim.last_synced_status = Some(status)));
        }
        // The next stop tries again; the agent need not know.
        Err(why) => call.log.line(&why),
    }
}

fn hand_in(call: &Call, file: &ClaimFile, claim: &Claim) {
    if let Some(missing) = missing(claim) {
        return trouble(call, &words::hand_in_missing(missing));
    }
    let order = ClaimOrder::HandIn {
        issue: claim.issue_number,
        branch: claim.branch.clone(),
        summary: claim.summary.clone(),
        agent_id: claim.agent_id.clone(),
        checkout: file.dir().to_owned(),
    };
    match ask::<HandedIn>(file.dir(), order) {
        Ok(HandedIn { pr, link, found }) => {
            let review = BoardStatus::InReview.name().to_owned();
            changed(
                call,
                file.change(claim, |claim| {
                    claim.phase = Phase::PrCreated;
                    claim.pr_number = Some(pr);
                    claim.status.clone_from(&review);
                    claim.last_synced_status = Some(review);
                }),
            );
            output::context("Stop", &words::pull_request_opened(pr, &link, found));
        }
        Err(why) => {
            trouble(call, &words::not_done("No pull request was opened; the phase stays ready_for_pr", &why))
        }
    }
}

fn close(call: &Call, file: &ClaimFile, claim: &Claim) {
    let order = ClaimOrder::Finish {
        issue: claim.issue_number,
        pr: claim.pr_number,
        branch: claim.branch.clone(),
        agent_id: claim.agent_id.clone(),
    };
    match ask::<serde_json::Value>(file.dir(), order) {
        Ok(_) => {
            changed(call, file.remove());
            output::context("Stop", &words::closed(claim.issue_number));
        }
        Err(why) => {
            trouble(call, &words::not_done(&format!("Issue #{} was not closed", claim.issue_number), &why))
        }
    }
}

fn idle(call: &Call) {
    let Some(file) = ClaimFile::find(&call.dir) else { return branch_merged(call) };
    let Some((file, claim)) = read(call, file) else { return };
    if !waits_for_pull_request(&claim) {
        return;
    }
    let last = claim.last_check_poll.as_deref().and_then(readable);
    let now = time::now();
    if !poll_is_due(last, now, backoff(call)) {
        return;
    }
    // Before the look: a forge that does not answer is not asked more often.
    let looks = file.change(&claim, |claim| claim.last_check_poll = Some(time::rfc3339(now)));
    let claim = match looks {
        Ok(claim) => claim,
        Err(problem) => return call.log.line(&problem.to_string()),
    };
    let order = ClaimOrder::Look { pr: claim.pr_number, branch: claim.branch.clone() };
    let looked = match ask::<PullRequestStatus>(file.dir(), order) {
        Ok(looked) => looked,
        Err(why) => return call.log.line(&why),
    };
    match (looked.pr, looked.state) {
        (None, _) | (_, PullState::None) => call.log.line("the pull request of the claim does not exist"),
        (Some(pr), PullState::Merged) => tell_idle(&words::merged(pr, claim.issue_number)),
        (Some(pr), PullState::Closed) => tell_idle(&words::closed_unmerged(pr)),
        (Some(pr), PullState::Open) => {
            changed(call, file.change(&claim, |claim| claim.phase = Phase::ChecksRunning));
            tell_idle(&words::checks(pr, &looked.checks));
        }
    }
}

/// Without a claim: the branch that is checked out may be merged by now.
fn branch_merged(call: &Call) {
    if !is_registered(&call.dir) {
        return;
    }
    let Some(branch) = checked_out(&call.dir) else { return };
    if !look_is_due(call, &branch) {
        return;
    }
    match ask::<PullRequestStatus>(&call.dir, ClaimOrder::Look { pr: None, branch: branch.clone() }) {
        Ok(PullRequestStatus { pr: Some(pr), state: PullState::Merged, next, .. }) => {
            tell_idle(&words::branch_merged(pr, &branch, next.as_ref()));
        }
        Ok(_) => {}
        Err(why) => call.log.line(&why),
    }
}

/// Whether the forge may be asked about a branch without a claim, and if so, the time of this look is kept.
fn look_is_due(call: &Call, branch: &str) -> bool {
    let Ok(context) = here() else { return true };
    let mut hasher = DefaultHasher::new();
    (&call.dir, branch).hash(&mut hasher);
    let dir = context.paths.state().join("idle-looks");
    let file = dir.join(format!("{:016x}", hasher.finish()));
    let last = std::fs::read_to_string(&file).ok().and_then(|text| readable(text.trim()));
    let now = time::now();
    if !poll_is_due(last, now, backoff(call)) {
        return false;
    }
    let kept = std::fs::create_dir_all(&dir)
        .and_then(|()| phase_file::write_state_file(&file, time::rfc3339(now).as_bytes()));
    if let Err(error) = kept {
        call.log.line(&format!("{}: {error}", file.display()));
    }
    true
}

/// The time between two looks of idle sessions at the forge, as the project wants it.
pub(super) fn backoff(call: &Call) -> Duration {
    let wanted = || -> Option<Duration> {
        let config = crate::project::find(&call.dir)?;
        let context = here().ok()?;
        let row = context.row_of(&config).ok()??;
        Some(context.load(&row).ok()?.config.timing.check_backoff.duration())
    };
    wanted().unwrap_or(POLL_EVERY)
}

#[allow(clippy::disallowed_methods, reason = "a process begins here: the environment is its input")]
fn here() -> anyhow::Result<Context> {
    let paths = Paths::from_env(|name| std::env::var_os(name))?;
    Ok(Context { out: Out::new(false), paths, wanted: None, verbose: 0, route: Route::default() })
}

fn started(call: &Call) {
    if !is_registered(&call.dir) {
        return;
    }
    let claim = claim(call);
    let Ok(board) = ask::<Board>(&call.dir, ClaimOrder::Board).map_err(|why| call.log.line(&why)) else {
        return;
    };
    let line = claim.map(|(_, c)| words::claim_line(c.issue_number, c.phase.name(), &c.branch, c.pr_number));
    output::context("SessionStart", &words::board(&board.items, line.as_deref()));
}

/// Hooks of a person are called in all their projects; most are none of ours. Of a `pointsman.toml` that nobody registered
/// not even the name is read.
fn is_registered(dir: &Path) -> bool {
    let Some(config) = crate::project::find(dir) else { return false };
    let Ok(context) = here() else { return false };
    context.row_of(&config).is_ok_and(|row| row.is_some())
}

/// Something that the agent can put right: it is told once. If it went on because of that and the trouble is still
/// there, only the person is told, or the two would never end.
fn trouble(call: &Call, text: &str) {
    call.log.line(text);
    if call.payload.goes_on() { output::message(text) } else { output::context("Stop", text) }
}

fn tell_idle(text: &str) {
    output::context("Notification", text);
}

fn claim(call: &Call) -> Option<(ClaimFile, Claim)> {
    read(call, ClaimFile::find(&call.dir)?)
}

pub(super) fn read(call: &Call, file: ClaimFile) -> Option<(ClaimFile, Claim)> {
    match file.read() {
        Ok(claim) => claim.map(|claim| (file, claim)),
        Err(problem) => {
            let text = problem.to_string();
            call.log.line(&text);
            output::message(&text);
            None
        }
    }
}

fn changed<T, E: std::fmt::Display>(call: &Call, result: Result<T, E>) {
    if let Err(problem) = result {
        call.log.line(&problem.to_string());
    }
}

fn readable(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}

/// The branch that is checked out, read without git: this happens often and rarely matters.
fn checked_out(dir: &Path) -> Option<String> {
    let git = dir.ancestors().map(|dir| dir.join(".git")).find(|git| git.symlink_metadata().is_ok())?;
    let git = if git.is_dir() {
        git
    } else {
        let link = std::fs::read_to_string(&git).ok()?;
        git.parent()?.join(link.trim().strip_prefix("gitdir: ")?)
    };
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}

/// Asks whoever has the forge, with a limit on how long the agent waits.
pub(super) fn ask<T: DeserializeOwned + Send + 'static>(dir: &Path, order: ClaimOrder) -> Result<T, String> {
    let (send, answer) = sync_channel(1);
    let dir = dir.to_owned();
    let asking = std::thread::Builder::new().name("forge".to_owned()).spawn(move || {
        let _ = send.send(ask_forge(&dir, order));
    });
    asking.map_err(|error| error.to_string())?;
    match answer.recv_timeout(FORGE_LIMIT) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => {
            Err(format!("the forge did not answer within {} s", FORGE_LIMIT.as_secs()))
        }
        Err(RecvTimeoutError::Disconnected) => Err("the forge could not be reached".to_owned()),
    }
}

#[allow(clippy::disallowed_methods, reason = "sets the directory of a process that ends with its answer")]
fn ask_forge<T: DeserializeOwned>(dir: &Path, order: ClaimOrder) -> Result<T, String> {
    let run = || -> Result<T, Failure> {
        std::env::set_current_dir(dir)?;
        let context = here()?;
        // The only project there is may be another one.
        if context.nearest_config()?.is_none() {
            return Err(Failure::not_found("there is no pointsman.toml here or above"));
        }
        let project = context.project()?.config.name;
        context.ask(&Request::Claim { project, order })
    };
    run().map_err(|failure| failure.message().to_owned())
}
