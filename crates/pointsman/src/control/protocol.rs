//! What commands ask of the daemon.

use std::path::PathBuf;

use pointsman_adapters::forge;
use pointsman_core::config::MergeStyle;
use pointsman_core::forge::{BoardStatus, CheckState, StateFilter};
use pointsman_core::hook::Report;
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::run::RunId;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::Gauge;
use pointsman_core::session::quota::Window;
use pointsman_core::session::work::WorkPhase;
use pointsman_core::task::{Order, ReviewVerdict};
use pointsman_core::vault::{ActionId, Risk};
use serde::{Deserialize, Serialize};

/// What is done about findings that have a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fix {
    /// Nothing.
    No,
    /// It is said what would be done.
    Dry,
    /// It is done.
    Do,
}

/// One request. Reading commands read the store themselves; these change something.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Who is there? Answers with [`Status`].
    Status,
    /// Stop; sessions stay.
    Down,
    /// An order about a task.
    Order {
        /// The project.
        project: ProjectName,
        /// The issue.
        issue: Number,
        /// What to do.
        order: Order,
    },
    /// A person's answer to an escalation.
    Answer {
        /// The project.
        project: ProjectName,
        /// The issue.
        issue: Number,
        /// Who.
        by: String,
        /// The answer.
        text: String,
    },
    /// An agent read a message.
    Acknowledge {
        /// The message.
        message: i64,
        /// The session that says so, if known.
        session: Option<String>,
    },
    /// An agent says where it is in its work.
    Checkpoint {
        /// Its session.
        session: String,
        /// The phase.
        phase: Option<WorkPhase>,
        /// What it works on.
        summary: Option<String>,
    },
    /// What a session's context and costs were measured to be.
    Measure {
        /// Its session.
        session: String,
        /// How full its context is.
        gauge: Option<Gauge>,
        /// What it has spent since its start.
        spent: Option<Spent>,
        /// The rate limits of its account.
        #[serde(default)]
        quota: Vec<Window>,
    },
    /// A session's hook tells something.
    Hook {
        /// What.
        report: Report,
    },
    /// An operator's words to a session.
    Send {
        /// The project.
        project: ProjectName,
        /// The issue.
        issue: Number,
        /// The words.
        text: String,
    },
    /// Projects were added, removed or changed.
    ReloadProjects,
    /// Register this configuration file.
    AddProject {
        /// The `pointsman.toml`.
        config_path: String,
    },
    /// Forget a project; its state directory stays.
    RemoveProject {
        /// Which.
        project: ProjectName,
    },
    /// Something for a merge queue.
    Queue {
        /// The project.
        project: ProjectName,
        /// What.
        command: QueueCommand,
    },
    /// Something about a run of a formula.
    Run {
        /// The project.
        project: ProjectName,
        /// What.
        command: RunCommand,
    },
    /// Something for a vault.
    Vault {
        /// The project.
        project: ProjectName,
        /// What.
        command: VaultCommand,
    },
    /// What asking a project's forge has cost since the daemon started.
    ForgeStats {
        /// The project.
        project: ProjectName,
    },
    /// How well a project and the machine are.
    Health {
        /// The project.
        project: ProjectName,
        /// Whether safe remedies are carried out, or only told.
        fix: Fix,
    },
    /// A role that was paused because of noise goes on.
    ResumeRole {
        /// The project.
        project: ProjectName,
        /// Which.
        role: String,
    },
    /// Have a role look now.
    LookNow {
        /// Of which project.
        project: ProjectName,
        /// Which.
        role: String,
    },
    /// Tell people that this is a test.
    TryNotifiers {
        /// The project.
        project: ProjectName,
        /// Tells this test from others.
        key: String,
    },
    /// Something for the embedded forge.
    Forge {
        /// The project.
        project: ProjectName,
        /// What.
        command: ForgeCommand,
    },
    /// Something for a person's own session and its `.agent-claim.json`.
    Claim {
        /// The project.
        project: ProjectName,
        /// What.
        order: ClaimOrder,
    },
}

/// What the claim life cycle asks of the forge. Everything in it is a claim, and is checked where it is carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum ClaimOrder {
    /// `claim`: the issue is taken.
    Take {
        /// Which.
        issue: Number,
        /// The Agent field of the board.
        agent_id: String,
        /// The assignee.
        by: String,
    },
    /// The branch is handed in as a pull request.
    HandIn {
        /// For which issue.
        issue: Number,
        /// The branch.
        branch: String,
        /// The title.
        summary: String,
        /// The Agent field of the board.
        agent_id: String,
        /// Where the branch is.
        checkout: PathBuf,
    },
    /// The board follows the claim.
    Sync {
        /// Which issue.
        issue: Number,
        /// Its Status.
        status: String,
        /// The Agent field of the board.
        agent_id: String,
    },
    /// How the pull request stands.
    Look {
        /// Its number, if it is known.
        pr: Option<Number>,
        /// Its branch.
        branch: String,
    },
    /// The issue is closed, because its pull request is merged and a person said so.
    Finish {
        /// Which issue.
        issue: Number,
        /// The pull request, if it is known.
        pr: Option<Number>,
        /// Its branch.
        branch: String,
        /// The Agent field of the board.
        agent_id: String,
    },
    /// The issue is given back.
    Release {
        /// Which issue.
        issue: Number,
        /// The Agent field of the board.
        agent_id: String,
    },
    /// What is on the board.
    Board,
}

/// Orders to a merge queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "queue", rename_all = "snake_case")]
pub enum QueueCommand {
    /// `merge-queue add`: brings a branch to the forge and into the line.
    Add {
        /// Which.
        branch: String,
        /// The checkout it is taken from; without one, or if it is not there, the forge's.
        checkout: Option<PathBuf>,
        /// More goes first.
        priority: i64,
        /// How it lands, if not in the project's way.
        style: Option<MergeStyle>,
        /// Who asks.
        by: String,
    },
    /// The second half of `add`: the branch is at the forge, at this head.
    Enter {
        /// Which.
        branch: String,
        /// Its head.
        head: Sha,
        /// More goes first.
        priority: i64,
        /// How it lands, if not in the project's way.
        style: Option<MergeStyle>,
        /// Who asks.
        by: String,
    },
    /// `merge-queue remove`
    Remove {
        /// An entry's number, or a branch.
        what: String,
        /// Who asks.
        by: String,
    },
    /// `merge-queue pause`
    Pause {
        /// Why.
        reason: String,
    },
    /// `merge-queue resume`
    Resume,
    /// `merge-queue process`: look at the line now.
    Look,
}

/// Orders about runs of formulas.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "run", rename_all = "snake_case")]
pub enum RunCommand {
    /// `formula run`
    Start {
        /// The formula's name.
        formula: String,
        /// Who wants it.
        by: String,
    },
    /// `step done`
    StepDone {
        /// The session that says so.
        session: String,
        /// The step.
        step: String,
    },
    /// `run stop`
    Stop {
        /// Which.
        id: RunId,
        /// Who.
        by: String,
    },
}

/// Orders to a vault.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "vault", rename_all = "snake_case")]
pub enum VaultCommand {
    /// `vault submit`
    Submit {
        /// The action as JSON; outside text.
        text: String,
        /// The session that submits it, if one does: then that is its source.
        from: Option<String>,
    },
    /// `vault approve`
    Approve {
        /// Which.
        id: ActionId,
        /// The hash of what the person saw.
        hash: String,
        /// The person knows that it may have been fired before.
        again: bool,
        /// Who.
        by: String,
    },
    /// `vault reject`
    Reject {
        /// Which.
        id: ActionId,
        /// Why.
        reason: String,
        /// Who.
        by: String,
    },
    /// `vault raise`
    Raise {
        /// Which.
        id: ActionId,
        /// At least so dangerous.
        risk: Risk,
        /// It cannot be undone.
        irreversible: bool,
        /// A person must be asked.
        requires_human: bool,
        /// Why.
        reason: String,
        /// Who says so.
        by: String,
    },
}

/// Orders to the embedded forge.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "forge", rename_all = "snake_case")]
pub enum ForgeCommand {
    /// `forge issue create`
    CreateIssue {
        /// Title.
        title: String,
        /// Text.
        body: String,
        /// Labels.
        labels: Vec<String>,
        /// Who writes.
        author: String,
    },
    /// `forge pr create`
    CreatePull {
        /// The branch with the work.
        head: String,
        /// Title.
        title: String,
        /// Text.
        body: String,
        /// Who opens it.
        author: String,
    },
    /// `forge issue list`
    ListIssues {
        /// Which.
        state: StateFilter,
    },
    /// `forge issue show`
    ShowIssue {
        /// Which.
        number: Number,
    },
    /// `forge issue comment`
    Comment {
        /// Which.
        number: Number,
        /// Text.
        body: String,
        /// Who writes.
        author: String,
    },
    /// `forge issue label`
    Label {
        /// Which.
        number: Number,
        /// To set.
        add: Vec<String>,
        /// To remove.
        remove: Vec<String>,
    },
    /// `forge issue close` / `reopen`
    SetIssueOpen {
        /// Which.
        number: Number,
        /// Open or closed.
        open: bool,
    },
    /// `forge pr list`
    ListPulls {
        /// Which.
        state: StateFilter,
    },
    /// `forge pr show`
    ShowPull {
        /// Which.
        number: Number,
    },
    /// `forge pr review`
    Review {
        /// Which.
        number: Number,
        /// Verdict.
        verdict: ReviewVerdict,
        /// Text.
        body: String,
        /// Who reviews.
        author: String,
    },
    /// `forge pr close`
    ClosePull {
        /// Which.
        number: Number,
    },
    /// `forge pr merge`: puts it into the merge queue.
    MergePull {
        /// Which.
        number: Number,
    },
    /// `forge board list`
    ListBoard,
    /// `forge board set`
    SetBoard {
        /// Which issue.
        number: Number,
        /// Its Status.
        status: Option<BoardStatus>,
        /// Its Agent.
        agent: Option<String>,
    },
    /// `forge status list`
    ListChecks {
        /// Of which commit.
        sha: Sha,
    },
    /// `forge status set`
    SetCheck {
        /// Of which commit.
        sha: Sha,
        /// Which check.
        name: String,
        /// What it says.
        state: CheckState,
    },
}

/// The answer to [`Request::Status`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The daemon's process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Since when (RFC 3339).
    pub started_at: String,
    /// The projects it serves.
    pub projects: Vec<ProjectName>,
    /// Problems it knows of (a project that cannot be served, a disk that is full).
    pub problems: Vec<String>,
}

/// What the daemon answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// Done; the value is what the command prints with `--json`.
    Done {
        /// The value.
        value: serde_json::Value,
    },
    /// Not done.
    Failed {
        /// Which kind: decides the exit code.
        kind: FailureKind,
        /// Why, and what to do.
        message: String,
    },
}

/// Kinds of failure, as the exit codes have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Something went wrong (1).
    Failed,
    /// The state does not allow it (3).
    Refused,
    /// There is no such thing (4).
    NotFound,
    /// The configuration is wrong (6).
    Configuration,
    /// An outside service does not answer (7).
    Unavailable,
}

impl FailureKind {
    /// What a forge's error means.
    pub(crate) fn of_forge(error: &forge::Error) -> Self {
        match error {
            forge::Error::NotFound { .. } => Self::NotFound,
            forge::Error::Refused { .. } => Self::Refused,
            forge::Error::Unavailable { .. } => Self::Unavailable,
            // The enum may grow; a kind that is unknown here is a plain failure.
            _ => Self::Failed,
        }
    }
}
