//! `hook watch`: stays beside an idle session of a person while its pull request is open, and wakes the model with news.
//!
//! Claude Code runs it as a Stop hook with `asyncRewake`: in the background, and an exit code of 2 puts what is on
//! standard error before the model. Nothing else reaches an idle session. Each thing is told once: what was told stands
//! in the claim file.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use pointsman_adapters::process::lineage::caller;
use pointsman_core::claim::on_hook::waits_for_pull_request;
use pointsman_core::words::claim as words;
use pointsman_view::claim::{PullRequestStatus, PullState};
use serde_json::Value;

use super::person::{ask, backoff, read};
use super::{Call, output};
use crate::cli::claim_file::ClaimFile;
use crate::control::protocol::ClaimOrder;

/// A watch that nobody ended ends by itself; the next response of the agent begins another one.
const LONGEST: Duration = Duration::from_secs(8 * 3600);
/// The claim file is looked at this often: another watch may have taken over, or the work went on.
const LOOK: Duration = Duration::from_secs(2);
/// The field of the claim file that says what was told last. It is ours, beside those of the protocol.
const TOLD: &str = "last_told";
/// The field that says which watch is the present one.
const WATCH: &str = "watch_pid";

/// Watches until there is news; exit code 2 wakes the model.
#[allow(clippy::disallowed_methods, reason = "waits beside a session: there is nobody to be woken by")]
pub(super) fn run(call: &Call) -> ExitCode {
    // Claude runs it behind a shell that may outlive it: a watch beside nobody would tell its news to nobody.
    let claude = caller();
    let Some(file) = ClaimFile::find(&call.dir) else { return ExitCode::SUCCESS };
    let me = Value::from(std::process::id());
    let Some((file, claim)) = read(call, file) else { return ExitCode::SUCCESS };
    if !waits_for_pull_request(&claim) {
        return ExitCode::SUCCESS;
    }
    let mine = file.change(&claim, |claim| {
        claim.further.insert(WATCH.to_owned(), me.clone());
    });
    if mine.is_err() {
        return ExitCode::SUCCESS;
    }
    let is_heard = || claude.is_none_or(|claude| claude.is_alive());
    let (begun, pause) = (Instant::now(), backoff(call));
    let mut asked: Option<Instant> = None;
    while begun.elapsed() < LONGEST && is_heard() {
        let Some(claim) = file.read().ok().flatten() else { break };
        if !waits_for_pull_request(&claim) || claim.further.get(WATCH) != Some(&me) {
            break;
        }
        if asked.is_none_or(|at| at.elapsed() >= pause) {
            asked = Some(Instant::now());
            let order = ClaimOrder::Look { pr: claim.pr_number, branch: claim.branch.clone() };
            match ask::<PullRequestStatus>(file.dir(), order) {
                Ok(looked) => {
                    let news = news(&looked, claim.issue_number);
                    let told = claim.further.get(TOLD).and_then(Value::as_str);
                    if let Some(news) = news.filter(|news| told != Some(news)) {
                        if !is_heard() {
                            break;
                        }
                        let kept = file.change(&claim, |claim| {
                            claim.further.insert(TOLD.to_owned(), news.clone().into());
                        });
                        if kept.is_ok() {
                            output::wake(&news);
                            if !is_heard() {
                                // It may not have read that: whoever comes next is told.
                                take_back(&file, told.map(str::to_owned));
                            }
                            return ExitCode::from(2);
                        }
                    }
                }
                Err(why) => call.log.line(&why),
            }
        }
        std::thread::sleep(LOOK);
    }
    ExitCode::SUCCESS
}

/// What was told last is again what was told before it.
fn take_back(file: &ClaimFile, before: Option<String>) {
    let Some(claim) = file.read().ok().flatten() else { return };
    let _ = file.change(&claim, |claim| match before {
        Some(before) => drop(claim.further.insert(TOLD.to_owned(), before.into())),
        None => drop(claim.further.remove(TOLD)),
    });
}

/// What is worth waking the model for: an end, not a state on the way.
fn news(looked: &PullRequestStatus, issue: u64) -> Option<String> {
    use pointsman_core::forge::CheckState::Pending;
    match (looked.pr, looked.state) {
        (Some(pr), PullState::Merged) => Some(words::merged(pr, issue)),
        (Some(pr), PullState::Closed) => Some(words::closed_unmerged(pr)),
        (Some(pr), PullState::Open) => {
            let settled =
                !looked.checks.is_empty() && looked.checks.iter().all(|check| check.state != Pending);
            settled.then(|| words::checks(pr, &looked.checks))
        }
        (None, _) | (Some(_), PullState::None) => None,
    }
}
