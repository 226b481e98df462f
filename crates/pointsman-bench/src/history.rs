//! A long history, written through the store as a daemon writes it, only in larger batches.

use pointsman_core::config::Config;
use pointsman_core::ids::{ProjectName, Sha, TaskKey};
use pointsman_core::labels::{BACKLOG, BLOCKED};
use pointsman_core::part::contribution::{self, Contribution};
use pointsman_core::task::{Effect, Phase, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{Change, Committed, EffectId, ForgeDatabase, Store};
use serde_json::json;

use crate::wait;

/// Changes per transaction.
const BATCH: u64 = 50_000;
/// One part of all tasks is blocked, one part waits in the backlog, and the others are closed.
const PARTS: u64 = 10;
/// Every so many events one has an effect, which the next event of its task settles.
const EFFECTS: u64 = 10;
/// What an event's details look like.
const DETAILS: &str = "3 files changed, 120 insertions(+), 7 deletions(-); all 412 tests passed in 38 s";

/// How long the history is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) tasks: u64,
    pub(crate) events: u64,
}

/// Writes tasks and their events, in the order in which many tasks at once would have had them.
pub(crate) fn write(
    store: &mut Store,
    project: &ProjectName,
    length: Length,
    now: Timestamp,
) -> anyhow::Result<()> {
    let mut unsettled: Vec<EffectId> = Vec::new();
    let mut next = 0;
    while next < length.events {
        wait::check()?;
        let end = (next + BATCH).min(length.events);
        let mut settling = std::mem::take(&mut unsettled).into_iter();
        let change = |event: u64| {
            let issue = event % length.tasks + 1;
            let is_last = event + length.tasks >= length.events;
            let state = if is_last { length.state(issue) } else { State::AwaitingCi };
            let before_now = i64::try_from(length.events - event).unwrap_or(0);
            let mut change = Change::new(Timestamp(now.0 - before_now), "phase_claimed");
            change.data = json!({ "phase": "awaiting_ci", "details": DETAILS, "to": state });
            change.session = Some(format!("dev-{project}-{issue}.1"));
            change.settles = settling.next();
            (change.project, change.issue) = (Some(project.clone()), Some(issue));
            // Of a snapshot only the last one is left.
            change.task = is_last.then(|| task(project, issue, state, change.at));
            // What is settled piles up; what is not would be performed at the start.
            if event.is_multiple_of(EFFECTS) && end < length.events {
                change.effects = vec![Effect::RecordCiResult { text: DETAILS.to_owned() }];
            }
            change
        };
        let changes: Vec<Change> = (next..end).map(change).collect();
        for committed in store.commit(&changes)? {
            if let Committed::Done { effect_ids, .. } = committed {
                unsettled.extend(effect_ids);
            }
        }
        next = end;
    }
    anyhow::ensure!(unsettled.is_empty(), "the last batch is too small to settle what came before");
    Ok(())
}

/// The open issues as the forge has them, so that the daemon finds nothing to change. Nobody asks about closed ones.
pub(crate) fn write_issues(
    forge_db: &mut ForgeDatabase,
    length: Length,
    now: Timestamp,
) -> anyhow::Result<()> {
    for issue in (1..=length.tasks).take_while(|issue| length.state(*issue) != State::Closed) {
        // A task in the backlog without its label stays there.
        let is_blocked = length.state(issue) == State::Blocked;
        let labels = if is_blocked { vec![BACKLOG.to_owned(), BLOCKED.to_owned()] } else { Vec::new() };
        forge_db.create_issue(&title(issue), "", &labels, "bench", now)?;
    }
    Ok(())
}

impl Length {
    /// Where a task stands in the end. The open ones have the first numbers.
    fn state(self, issue: u64) -> State {
        match (issue - 1) * PARTS / self.tasks {
            0 => State::Blocked,
            1 => State::Backlog,
            _ => State::Closed,
        }
    }
}

fn merge(contribution: &mut Contribution, head: &Sha) {
    let config = Config::parse("name = \"bench\"", "bench").expect("a configuration");
    let policy = contribution::Policy::new(&config);
    let around = contribution::OwnerFacts { asked: None, policy: &policy, now: Timestamp(0) };
    contribution.happened(&contribution::Fact::FoundMerged { sha: head }, &around).expect("a merge counts");
}

fn task(project: &ProjectName, issue: u64, state: State, at: Timestamp) -> Task {
    let key = TaskKey { project: project.clone(), issue };
    let mut task = Task::new(key, title(issue), format!("pointsman/issue-{issue}"), at);
    task.phase = Some(Phase::AwaitingCi);
    let head = Sha::new(&format!("{issue:040x}")).expect("forty hexadecimal digits");
    task.contribution = Contribution::at(task.contribution.branch, head.clone(), None);
    task.session.generation = 1;
    task.state = state;
    match state {
        State::Blocked => {
            task.reason = Some("the agent failed: the tests need a network".to_owned());
            task.block_seen = true;
        }
        State::Closed => {
            merge(&mut task.contribution, &head);
            task.block_seen = true;
        }
        State::Backlog
        | State::WaitingDependencies
        | State::Working
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Escalated
        | State::Refused
        | State::Paused
        | State::Merged => {}
    }
    task
}

fn title(issue: u64) -> String {
    format!("Take care of number {issue} in the list of things to take care of")
}
