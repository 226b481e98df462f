//! Claims of issues for a person's own session: take an issue, hand it in, look at its pull request, close it or give
//! it back.
//!
//! `.agent-claim.json` is a claim, so everything is checked against the forge before it is pushed, opened or closed.
//! The daemon carries the orders out, or a command does if no daemon runs. `cli/claim_file.rs` reads and writes the
//! file; `pointsman_core::claim::life` decides when the hooks ask for something.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pointsman_adapters::forge::{BoardChange, Error, Forge};
use pointsman_adapters::git::bare::{Existing, import_branch};
use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::git::{BranchName, Git};
use pointsman_core::config::Config;
use pointsman_core::dependencies;
use pointsman_core::forge::{BoardItem, BoardStatus, Issue, IssueState, PullRequest};
use pointsman_core::ids::Number;
use pointsman_core::labels::{BACKLOG, BLOCKED, IN_PROGRESS, has};
use pointsman_core::task::{State, Task};
use pointsman_core::text::clean_line;
use pointsman_core::words;
use pointsman_view::claim::{Board, Claimed, HandedIn, PullRequestStatus, PullState};
use serde::Serialize;

use crate::control::protocol::{ClaimOrder, FailureKind, Reply};

/// The project in which orders about claims are carried out.
pub(crate) struct ClaimContext<'a> {
    pub forge: &'a dyn Forge,
    pub git: &'a Git,
    /// What it says in `pointsman.toml`.
    pub config: &'a Config,
    /// Whether the daemon works on an issue. Under the token's account its claims look like a person's.
    pub is_worked_on: &'a dyn Fn(Number) -> bool,
}

/// Two who take the same issue take turns: one of them finds it taken. The daemon serves callers at the same time; a
/// command in its place holds its lock.
static TAKING: Mutex<()> = Mutex::new(());

/// Carries out one order. Every order may be repeated.
pub(crate) fn carry_out(place: &ClaimContext<'_>, order: &ClaimOrder) -> Reply {
    let done = match order {
        ClaimOrder::Take { issue, agent_id, by } => reply(place.take(*issue, agent_id, by)),
        ClaimOrder::HandIn { issue, branch, summary, agent_id, checkout } => {
            reply(place.hand_in(*issue, branch, summary, agent_id, checkout))
        }
        ClaimOrder::CheckPushed { branch, checkout } => reply(place.check_pushed(branch, checkout)),
        ClaimOrder::Sync { issue, status, agent_id } => reply(place.sync(*issue, status, agent_id)),
        ClaimOrder::Look { pr, branch } => reply(place.look(*pr, branch)),
        ClaimOrder::Finish { issue, pr, branch, agent_id } => {
            reply(place.finish(*issue, *pr, branch, agent_id))
        }
        ClaimOrder::Release { issue, agent_id } => reply(place.release(*issue, agent_id)),
        ClaimOrder::Board => reply(place.board()),
    };
    done.unwrap_or_else(|Failed { kind, message }| Reply::Failed { kind, message })
}

/// Whether the daemon is at work on this task.
pub(crate) fn is_worked_on(task: Option<&Task>) -> bool {
    task.is_some_and(|task| match task.state {
        State::Working
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Escalated
        | State::Merged => true,
        State::Backlog
        | State::WaitingDependencies
        | State::Blocked
        | State::Refused
        | State::Paused
        | State::Closed => false,
    })
}

struct Failed {
    kind: FailureKind,
    message: String,
}

fn refused(message: String) -> Failed {
    Failed { kind: FailureKind::Refused, message }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { kind: FailureKind::of_forge(&error), message: error.to_string() }
    }
}

impl From<pointsman_adapters::git::Error> for Failed {
    fn from(error: pointsman_adapters::git::Error) -> Self {
        Self { kind: FailureKind::Failed, message: error.to_string() }
    }
}

fn reply(answer: Result<impl Serialize, Failed>) -> Result<Reply, Failed> {
    let value = serde_json::to_value(answer?)
        .map_err(|error| Failed { kind: FailureKind::Failed, message: error.to_string() })?;
    Ok(Reply::Done { value })
}

impl ClaimContext<'_> {
    fn take(&self, number: Number, agent_id: &str, by: &str) -> Result<Claimed, Failed> {
        let _turn = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let issue = self.open_issue(number)?;
        // A server knows accounts, not the logins of this machine; the one it can assign for sure is the token's own. Its name
        // is known from the first answer on. A person may be assigned there under a name of their own.
        let is_hosted = self.config.forge.kind.is_hosted();
        let account = if is_hosted { self.forge.me() } else { by };
        let is_theirs = |assignee: &str| assignee == account || assignee == by;
        if let Some(other) = issue.assignee.as_deref().filter(|other| !is_theirs(other)) {
            return Err(refused(format!("issue #{number} is assigned to {}", clean_line(other, 80))));
        }
        self.is_for(number, agent_id, Some(by))?;
        if is_hosted && (self.is_worked_on)(number) {
            return Err(refused(words::claim::worked_on(number)));
        }
        if has(&issue.labels, IN_PROGRESS) && issue.assignee.is_none() {
            return Err(refused(format!("somebody has issue #{number} in progress")));
        }
        // The assignee first: from then on no daemon takes it.
        if is_hosted {
            match issue.assignee.as_deref() {
                Some(assigned) if assigned == account => {}
                Some(_) => self.forge.assign_me_too(number)?,
                None => self.forge.assign_me(number)?,
            }
        } else {
            self.forge.assign(number, Some(by))?;
        }
        self.forge.set_labels(number, &[IN_PROGRESS.to_owned()], &[BACKLOG.to_owned()])?;
        self.tell_board(number, Some(BoardStatus::InProgress), agent_id)?;
        let item_id = self.board_item(number)?.map_or_else(String::new, |item| item.item_id);
        Ok(Claimed { item_id, title: issue.title, status: BoardStatus::InProgress })
    }

    fn hand_in(
        &self,
        number: Number,
        branch: &str,
        summary: &str,
        agent_id: &str,
        checkout: &Path,
    ) -> Result<HandedIn, Failed> {
        self.open_issue(number)?;
        self.is_ours(number, agent_id)?;
        let base = self.config.primary_branch.as_str();
        let name = BranchName::new(branch)
            .filter(|_| branch != base)
            .ok_or_else(|| refused(format!("`{}` cannot be handed in", clean_line(branch, 120))))?;
        self.bring(&name, checkout)?;
        let open = |pr: &PullRequest| pr.state == IssueState::Open;
        let found = self.forge.pull_request_from(branch, base)?.filter(open);
        let pr = match &found {
            Some(pr) => pr.number,
            None => {
                let body = words::claim::pull_request_body(number, self.config);
                self.forge.ensure_pull_request(branch, base, &clean_line(summary, 200), &body)?
            }
        };
        self.tell_board(number, Some(BoardStatus::InReview), agent_id)?;
        Ok(HandedIn { pr, link: self.forge.pull_request_link(pr), found: found.is_some() })
    }

    /// Brings the branch of a checkout to the forge, forward only. A branch that only the forge has is fine as well.
    fn bring(&self, branch: &BranchName, checkout: &Path) -> Result<(), Failed> {
        let remote = self.forge.remote();
        let remote = Path::new(&remote);
        if !checkout.is_absolute() || !checkout.is_dir() {
            return Ok(());
        }
        if !remote.is_absolute() {
            return self.is_pushed(branch, checkout);
        }
        match import_branch(self.git, checkout, branch, remote, Existing::FastForward) {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(format!(
                "the branch {branch} of the checkout cannot be brought to the forge ({error}): if it was rebased, push it \
                 yourself with `git push --force-with-lease {} {branch}`",
                remote.display()
            ))),
        }
    }

    /// A server has a branch only if somebody pushed it. Who knows another head than the server has forgot to.
    fn is_pushed(&self, branch: &BranchName, checkout: &Path) -> Result<(), Failed> {
        let Found::Checkout(checkout) = LocalCheckout::find(self.git, checkout)? else { return Ok(()) };
        let Some(here) = checkout.branch(branch)? else { return Ok(()) };
        match self.forge.branch_head(branch.as_str())? {
            Some(there) if there == here => Ok(()),
            // The server may be ahead: somebody else pushed, and the checkout has not seen it.
            Some(there) if checkout.is_ancestor(&here, &there).unwrap_or(false) => Ok(()),
            Some(_) | None => Err(refused(words::claim::push_first(branch.as_str()))),
        }
    }

    fn check_pushed(&self, branch: &str, checkout: &Path) -> Result<(), Failed> {
        let name = BranchName::new(branch)
            .ok_or_else(|| refused(format!("`{}` cannot be handed in", clean_line(branch, 120))))?;
        let is_here = Path::new(&self.forge.remote()).is_absolute();
        if is_here || !checkout.is_absolute() || !checkout.is_dir() {
            return Ok(());
        }
        self.is_pushed(&name, checkout)
    }

    fn sync(&self, number: Number, status: &str, agent_id: &str) -> Result<(), Failed> {
        let Some(wanted) = BoardStatus::parse(status) else {
            let known = BoardStatus::ALL.map(BoardStatus::name).join(", ");
            let status = clean_line(status, 60);
            return Err(refused(format!("the board has no status `{status}`, only {known}")));
        };
        self.is_ours(number, agent_id)?;
        self.tell_board(number, Some(wanted), agent_id)
    }

    fn look(&self, pr: Option<Number>, branch: &str) -> Result<PullRequestStatus, Failed> {
        let Some(pr) = self.pull_request(pr, branch)? else {
            return Ok(PullRequestStatus {
                pr: None,
                state: PullState::None,
                checks: Vec::new(),
                next: None,
            });
        };
        let state = match (pr.merged, pr.state) {
            (true, _) => PullState::Merged,
            (false, IssueState::Open) => PullState::Open,
            (false, IssueState::Closed) => PullState::Closed,
        };
        let checks = match (&pr.head_sha, state) {
            (Some(sha), PullState::Open) => self.forge.checks(sha)?,
            (Some(_) | None, _) => Vec::new(),
        };
        let next = if state == PullState::Merged { self.next()? } else { None };
        Ok(PullRequestStatus { pr: Some(pr.number), state, checks, next })
    }

    fn finish(&self, number: Number, pr: Option<Number>, branch: &str, agent_id: &str) -> Result<(), Failed> {
        self.is_ours(number, agent_id)?;
        let Some(pr) = self.pull_request(pr, branch)? else {
            return Err(refused(format!("there is no pull request of branch {}", clean_line(branch, 120))));
        };
        if !pr.merged {
            return Err(refused(format!("pull request #{} is not merged", pr.number)));
        }
        let marker = format!("completed-{}", pr.number);
        self.forge.comment_once(number, &marker, &words::claim::completed_in(pr.number))?;
        self.forge.close_issue(number)?;
        self.forge.set_labels(number, &[], &[IN_PROGRESS.to_owned()])?;
        self.tell_board(number, Some(BoardStatus::Done), "")
    }

    fn release(&self, number: Number, agent_id: &str) -> Result<(), Failed> {
        self.is_ours(number, agent_id)?;
        let open = self.forge.issue(number)?.is_some_and(|issue| issue.state == IssueState::Open);
        if !open {
            return Ok(());
        }
        self.forge.set_labels(number, &[BACKLOG.to_owned()], &[IN_PROGRESS.to_owned()])?;
        self.tell_board(number, Some(BoardStatus::Ready), "")?;
        // Last: until then nobody else takes it.
        Ok(self.forge.assign(number, None)?)
    }

    fn board(&self) -> Result<Board, Failed> {
        Ok(Board { items: self.forge.board()?, next: self.next()? })
    }

    /// The issue that should be taken next: one that is ready, else the oldest in the backlog.
    fn next(&self) -> Result<Option<BoardItem>, Failed> {
        let Ok(items) = self.forge.board() else { return Ok(None) };
        let open = self.forge.open_issues()?;
        let is_open = |number: &Number| open.iter().any(|issue| issue.number == *number);
        let free = |item: &&BoardItem| {
            let Some(issue) = open.iter().find(|issue| issue.number == item.number) else { return false };
            let wanted = match item.status {
                BoardStatus::Ready => true,
                BoardStatus::Backlog => has(&issue.labels, BACKLOG),
                BoardStatus::InProgress | BoardStatus::InReview | BoardStatus::Done => false,
            };
            let waits = dependencies::parse(&issue.body).iter().any(is_open);
            wanted
                && !waits
                && issue.assignee.is_none()
                && item.agent.is_empty()
                && !has(&issue.labels, BLOCKED)
        };
        let mut free: Vec<&BoardItem> = items.iter().filter(free).collect();
        free.sort_by_key(|item| (item.status != BoardStatus::Ready, item.number));
        Ok(free.first().map(|item| (*item).clone()))
    }

    fn open_issue(&self, number: Number) -> Result<Issue, Failed> {
        match self.forge.issue(number)? {
            Some(issue) if issue.state == IssueState::Open => Ok(issue),
            Some(_) => Err(refused(format!("issue #{number} is closed"))),
            None => Err(Error::NotFound { what: format!("issue #{number}") }.into()),
        }
    }

    /// The pull request that is meant, which must come from the branch that is claimed.
    fn pull_request(&self, pr: Option<Number>, branch: &str) -> Result<Option<PullRequest>, Failed> {
        let base = self.config.primary_branch.as_str();
        let Some(number) = pr else { return Ok(self.forge.pull_request_from(branch, base)?) };
        match self.forge.pull_request(number)? {
            Some(pr) if branch.is_empty() || pr.head == branch => Ok(Some(pr)),
            Some(pr) => Err(refused(format!(
                "pull request #{number} comes from {}, not from {}",
                clean_line(&pr.head, 120),
                clean_line(branch, 120)
            ))),
            None => Err(Error::NotFound { what: format!("pull request #{number}") }.into()),
        }
    }

    /// An issue that the board gives to somebody else is not touched.
    fn is_ours(&self, number: Number, agent_id: &str) -> Result<(), Failed> {
        self.is_for(number, agent_id, None)
    }

    /// The same; `by` is a person whose earlier claim, made elsewhere, is theirs as well.
    fn is_for(&self, number: Number, agent_id: &str, by: Option<&str>) -> Result<(), Failed> {
        let is_earlier = |agent: &str| {
            let of = by.and_then(|by| agent.strip_prefix(by)?.strip_prefix('-'));
            of.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        };
        match self.board_item(number)? {
            Some(item) if !item.agent.is_empty() && item.agent != agent_id && !is_earlier(&item.agent) => {
                Err(refused(format!("the board gives issue #{number} to {}", clean_line(&item.agent, 80))))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn board_item(&self, number: Number) -> Result<Option<BoardItem>, Failed> {
        match self.forge.board_item(number) {
            Ok(item) => Ok(Some(item)),
            // A forge without a board has nothing to say about it.
            Err(Error::Refused { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn tell_board(&self, number: Number, status: Option<BoardStatus>, agent: &str) -> Result<(), Failed> {
        match self.forge.set_board(number, &BoardChange { status, agent: Some(agent) }) {
            Ok(()) | Err(Error::Refused { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
