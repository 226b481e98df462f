//! The requests of commands to the daemon.

use std::path::PathBuf;

use pointsman_adapters::forge;
use pointsman_core::config::{MergeStyle, Trust};
use pointsman_core::forge::{BoardStatus, CheckState, StateFilter};
use pointsman_core::hook::Report;
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::part::question::QuestionId;
use pointsman_core::role::Role;
use pointsman_core::run::RunId;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::Gauge;
use pointsman_core::session::quota::Window;
use pointsman_core::session::work::WorkPhase;
use pointsman_core::task::{Order, ReviewVerdict};
use pointsman_core::text;
use pointsman_core::vault::{ActionId, Risk};
use serde::{Deserialize, Serialize};

/// The treatment of findings that have a safe remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fix {
    No,
    /// It is said what would be done.
    Dry,
    Do,
}

/// One request. Reading commands of people read the store themselves; most of these change something.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Who is there? Answers with [`pointsman_view::status::Daemon`].
    Status,
    Down,
    /// Capture and end everything that runs, and start nothing until work is resumed.
    Halt {
        by: String,
    },
    /// Let work go on after a halt.
    Resume,
    /// An order about a task.
    Order {
        project: ProjectName,
        issue: Number,
        order: Order,
    },
    /// A person's answer to an escalation.
    Answer {
        project: ProjectName,
        issue: Number,
        by: String,
        text: String,
    },
    /// An agent read a message.
    Acknowledge {
        message: i64,
        /// The session that says so, if known.
        session: Option<String>,
    },
    /// An agent says where it is in its work.
    Checkpoint {
        session: String,
        phase: Option<WorkPhase>,
        summary: Option<String>,
    },
    /// What a session's context and costs were measured to be.
    Measure {
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
        report: Report,
    },
    /// An operator's words to a session.
    Send {
        project: ProjectName,
        issue: Number,
        text: String,
    },
    /// Projects were added, removed or changed.
    ReloadProjects,
    AddProject {
        /// The `pointsman.toml`.
        config_path: String,
        /// The settings that the person was shown. If the file asks for something else by now, it is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Trust>,
        /// Hosts that CI and gates may reach besides, as the person was shown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<String>,
    },
    /// Forget a project; its state directory stays.
    RemoveProject {
        project: ProjectName,
    },
    /// Something for a merge queue.
    Queue {
        project: ProjectName,
        command: QueueCommand,
    },
    /// Something about a run of a formula.
    Run {
        project: ProjectName,
        command: RunCommand,
    },
    Vault {
        project: ProjectName,
        command: VaultCommand,
    },
    /// A person settles a question.
    Inbox {
        project: ProjectName,
        question: QuestionId,
        command: InboxCommand,
    },
    /// What asking a project's forge has cost since the daemon started.
    ForgeStats {
        project: ProjectName,
    },
    /// A text without the secrets that the daemon knows. It is answered as text.
    Mask {
        text: String,
    },
    /// How well a project and the machine are.
    Health {
        project: ProjectName,
        /// Whether safe remedies are carried out, or only told.
        fix: Fix,
    },
    /// A role that was paused because of noise goes on.
    ResumeRole {
        project: ProjectName,
        role: Role,
    },
    /// Have a role look now.
    LookNow {
        project: ProjectName,
        role: Role,
    },
    /// Tell people that this is a test.
    TryNotifiers {
        project: ProjectName,
        /// Tells this test from others.
        key: String,
    },
    /// Something for the embedded forge.
    Forge {
        project: ProjectName,
        command: ForgeCommand,
    },
    /// Something for a person's own session and its `.agent-claim.json`.
    Claim {
        project: ProjectName,
        order: ClaimOrder,
    },
    /// A person takes a task over, or gives it back.
    Handover {
        project: ProjectName,
        command: HandoverCommand,
    },
    /// Logins and tokens of the web.
    Web {
        command: WebCommand,
    },
    /// What a reading command prints, for a session whose sandbox hides the database. Answers with [`Printed`].
    Read {
        project: ProjectName,
        what: Reading,
        json: bool,
    },
}

impl Request {
    /// Whether asking twice is the same as asking once, so that a request whose answer got lost can be asked again. Reports
    /// of hooks are left out, because a file keeps those that were not answered; orders of people, because a person looks.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Status
            | Self::Acknowledge { .. }
            | Self::Checkpoint { .. }
            | Self::Measure { .. }
            | Self::ForgeStats { .. }
            | Self::Mask { .. }
            | Self::Read { .. } => true,
            Self::Run { command, .. } => match command {
                RunCommand::StepDone { .. } => true,
                RunCommand::Start { .. } | RunCommand::Stop { .. } => false,
            },
            // The same action under the same id is the one that is there.
            Self::Vault { command, .. } => match command {
                VaultCommand::Submit { .. } => true,
                VaultCommand::Approve { .. } | VaultCommand::Reject { .. } | VaultCommand::Raise { .. } => {
                    false
                }
            },
            Self::Forge { command, .. } => command.only_reads(),
            Self::Web { command } => match command {
                WebCommand::ListTokens => true,
                WebCommand::Link { .. } | WebCommand::CreateToken { .. } | WebCommand::RevokeToken { .. } => {
                    false
                }
            },
            Self::Handover { command, .. } => match command {
                HandoverCommand::Take { .. } | HandoverCommand::Fetch { .. } => true,
                HandoverCommand::Give { .. } | HandoverCommand::Given { .. } => false,
            },
            Self::Down
            | Self::Halt { .. }
            | Self::Resume
            | Self::Order { .. }
            | Self::Answer { .. }
            | Self::Hook { .. }
            | Self::Send { .. }
            | Self::ReloadProjects
            | Self::AddProject { .. }
            | Self::RemoveProject { .. }
            | Self::Queue { .. }
            | Self::Inbox { .. }
            | Self::Health { .. }
            | Self::ResumeRole { .. }
            | Self::LookNow { .. }
            | Self::TryNotifiers { .. }
            | Self::Claim { .. } => false,
        }
    }
}

/// Orders about who may use the web.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "web", rename_all = "snake_case")]
pub enum WebCommand {
    /// `web open`: a link that logs a browser in.
    Link { by: String },
    /// `web token create`
    CreateToken { label: String, read: bool, order: bool, approve: bool, by: String },
    /// `web token list`
    ListTokens,
    /// `web token revoke`
    RevokeToken { id: u64 },
}

/// A reading command that works inside a sandbox as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "read", rename_all = "snake_case")]
pub enum Reading {
    /// `task show`
    Task { issue: Number },
    /// `task explain`
    Explanation { issue: Number },
    /// `ci logs`, of an issue or a pull request
    CiLog { number: Number, run: Option<u32> },
}

/// The output of a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Printed {
    pub code: u8,
    pub out: String,
    pub errors: String,
}

/// An order of the claim life cycle to the forge. Everything in it is a claim, and is checked where it is carried
/// out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum ClaimOrder {
    /// `claim`: the issue is taken.
    Take {
        issue: Number,
        /// The Agent field of the board.
        agent_id: String,
        by: String,
    },
    /// The branch is handed in as a pull request.
    HandIn {
        issue: Number,
        branch: String,
        summary: String,
        /// The Agent field of the board.
        agent_id: String,
        checkout: PathBuf,
    },
    /// Whether a branch is on the forge as the checkout has it.
    CheckPushed { branch: String, checkout: PathBuf },
    /// The board follows the claim.
    Sync {
        issue: Number,
        status: String,
        /// The Agent field of the board.
        agent_id: String,
    },
    /// How the pull request stands.
    Look {
        /// Its number, if it is known.
        pr: Option<Number>,
        branch: String,
    },
    /// The issue is closed, because its pull request is merged and a person said so.
    Finish {
        issue: Number,
        /// The pull request, if it is known.
        pr: Option<Number>,
        branch: String,
        /// The Agent field of the board.
        agent_id: String,
    },
    /// The issue is given back.
    Release {
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
    /// `merge-queue add`: brings a branch to the forge and into the merge queue.
    Add {
        branch: String,
        /// The checkout it is taken from; without one, or if it is not there, the forge's.
        checkout: Option<PathBuf>,
        /// More goes first.
        priority: i64,
        /// How it lands, if not in the project's way.
        style: Option<MergeStyle>,
        by: String,
    },
    /// The second half of `add`: the branch is at the forge, at this head.
    Enter {
        branch: String,
        head: Sha,
        /// Its pull request, if a person's entered by itself.
        #[serde(default)]
        pr: Option<Number>,
        /// More goes first.
        priority: i64,
        /// How it lands, if not in the project's way.
        style: Option<MergeStyle>,
        by: String,
    },
    /// `sync`: brings the main branch of a checkout to the embedded forge.
    Sync { checkout: PathBuf, by: String },
    /// The second half of `sync`: main is at the forge, moved by us from one commit to the other.
    Synced { from: Sha, upto: Sha, commits: u64, by: String },
    /// `merge-queue remove`
    Remove {
        /// An entry's number, or a branch.
        what: String,
        by: String,
    },
    /// `merge-queue retest`: what is known of these candidates, and of main if it is meant, is forgotten.
    Retest {
        /// `main`, an entry's number, or a branch.
        what: String,
        candidates: Vec<Sha>,
        by: String,
    },
    /// The second half of `retest`: the trees whose verdicts are forgotten.
    Forget { what: String, trees: Vec<Sha>, by: String },
    /// `merge-queue try`: builds the candidate of a branch on today's main and checks it out. Nothing is pushed or written
    /// down; the command runs the gate itself.
    Try {
        branch: String,
        /// The checkout it is taken from; without one, or if it is not there, the forge's.
        checkout: Option<PathBuf>,
        /// How it would land, if not in the project's way.
        style: Option<MergeStyle>,
    },
    /// `task undo`: opens a pull request that takes back what landed for an issue.
    Undo {
        issue: Number,
        title: String,
        /// The commit of main with all of it.
        landed: Sha,
        /// The commit of main before it; without one, the parent of `landed`.
        before: Option<Sha>,
        reason: String,
        by: String,
    },
    /// `merge-queue pause`
    Pause { reason: String },
    /// `merge-queue resume`
    Resume,
    /// `merge-queue process`: look at the merge queue now.
    Look,
}

/// Orders of a person who works on a task in their own checkout.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "handover", rename_all = "snake_case")]
pub enum HandoverCommand {
    /// `task take`: the session ends, and nobody goes on before the work is given back.
    Take { issue: Number, by: String },
    /// The second half of `task take`: the work is put where the command fetches it from. Again is fine.
    Fetch { issue: Number },
    /// `task give`: the agent goes on from the task's branch in this checkout.
    Give {
        issue: Number,
        checkout: PathBuf,
        /// Where the person saw the branch.
        head: Sha,
        by: String,
    },
    /// The second half of `give`: the commit is here.
    Given { issue: Number, head: Sha, by: String },
}

/// The ways to settle a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "inbox", rename_all = "snake_case")]
pub enum InboxCommand {
    Approve { by: String },
    Reject { reason: String, by: String },
    Answer { text: String, by: String },
    Dismiss { by: String },
}

/// Orders about runs of formulas.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "run", rename_all = "snake_case")]
pub enum RunCommand {
    /// `formula run`
    Start { formula: String, by: String },
    /// `step done`
    StepDone {
        /// The session that says so.
        session: String,
        step: String,
    },
    /// `run stop`
    Stop { id: RunId, by: String },
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
        id: ActionId,
        /// The hash of what the person saw.
        hash: String,
        /// The person knows that it may have been fired before.
        again: bool,
        by: String,
    },
    /// `vault reject`
    Reject { id: ActionId, reason: String, by: String },
    /// `vault raise`
    Raise {
        id: ActionId,
        /// At least so dangerous.
        risk: Risk,
        irreversible: bool,
        /// A person must be asked.
        requires_human: bool,
        reason: String,
        by: String,
    },
}

/// Orders to the embedded forge.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "forge", rename_all = "snake_case")]
pub enum ForgeCommand {
    /// `forge issue create`
    CreateIssue { title: String, body: String, labels: Vec<String>, author: String },
    /// `forge pr create`
    CreatePull {
        /// The branch with the work.
        head: String,
        title: String,
        body: String,
        author: String,
    },
    /// `forge issue list`
    ListIssues { state: StateFilter },
    /// `forge issue show`
    ShowIssue { number: Number },
    /// `forge issue comment`
    Comment { number: Number, body: String, author: String },
    /// `forge issue label`
    Label { number: Number, add: Vec<String>, remove: Vec<String> },
    /// `forge issue close` / `reopen`
    SetIssueOpen { number: Number, open: bool },
    /// `forge pr list`
    ListPulls { state: StateFilter },
    /// `forge pr show`
    ShowPull { number: Number },
    /// `forge pr review`
    Review {
        number: Number,
        verdict: ReviewVerdict,
        body: String,
        author: String,
        /// The commit that was looked at. Without one, the review is about whatever is the head when it is written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Sha>,
    },
    /// `forge pr close`
    ClosePull { number: Number },
    /// `forge pr merge`: puts it into the merge queue.
    MergePull { number: Number },
    /// `forge board list`
    ListBoard,
    /// `forge board set`
    SetBoard { number: Number, status: Option<BoardStatus>, agent: Option<String> },
    /// `forge status list`
    ListChecks { sha: Sha },
    /// `forge status set`
    SetCheck { sha: Sha, name: String, state: CheckState },
}

impl ForgeCommand {
    /// Whether it changes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        match self {
            Self::ListIssues { .. }
            | Self::ShowIssue { .. }
            | Self::ListPulls { .. }
            | Self::ShowPull { .. }
            | Self::ListBoard
            | Self::ListChecks { .. } => true,
            Self::CreateIssue { .. }
            | Self::CreatePull { .. }
            | Self::Comment { .. }
            | Self::Label { .. }
            | Self::SetIssueOpen { .. }
            | Self::Review { .. }
            | Self::ClosePull { .. }
            | Self::MergePull { .. }
            | Self::SetBoard { .. }
            | Self::SetCheck { .. } => false,
        }
    }
}

/// The daemon's answer to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// Done. The value is a view of `pointsman-view`: what the command prints with `--json`. It stays a plain value here
    /// because which view it is follows from the request.
    Done { value: serde_json::Value },
    Failed {
        /// Which kind: decides the exit code.
        kind: FailureKind,
        /// Why, and what to do.
        message: String,
    },
}

/// A value in which every text is without control and invisible characters.
fn visible(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(words) => Value::String(text::visible(&words)),
        Value::Array(items) => Value::Array(items.into_iter().map(visible).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (key, visible(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

impl Reply {
    /// The same without characters that an agent reads and a person does not see.
    pub(crate) fn visible(self) -> Self {
        match self {
            Self::Done { value } => Self::Done { value: visible(value) },
            Self::Failed { kind, message } => Self::Failed { kind, message },
        }
    }

    /// The answer to a request that was carried out.
    pub(crate) fn done(view: impl Serialize) -> Self {
        match serde_json::to_value(view) {
            Ok(value) => Self::Done { value },
            // A path that is not UTF-8, say: what was asked for is done, but JSON cannot tell it.
            Err(error) => Self::Failed {
                kind: FailureKind::Failed,
                message: format!("it is done, but the answer cannot be written as JSON: {error}"),
            },
        }
    }
}

/// Kinds of failure, as the exit codes have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    Failed,
    /// The state does not allow it (3).
    Refused,
    /// There is no such thing (4).
    NotFound,
    /// The configuration is wrong (6).
    Configuration,
    /// It has no effect while no daemon runs (5).
    NoDaemon,
    /// An outside service does not answer (7).
    Unavailable,
}

impl FailureKind {
    /// The kind of failure that a forge's error amounts to.
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
