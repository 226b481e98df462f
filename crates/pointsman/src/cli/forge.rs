use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pointsman_core::config::ForgeKind;
use pointsman_core::forge::{BoardStatus, CheckState, StateFilter};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::labels;
use pointsman_core::task::ReviewVerdict;
use pointsman_core::text::clean_line;
use pointsman_core::words;
use pointsman_view::forge::{self as view, BoardItem, Commented, Cost, Merging, PullRequest, Url};
use serde::de::DeserializeOwned;

use super::context::{Context, own_project};
use super::failure::Failure;
use super::table::Table;
use super::{evidence, forge_text, rounds};
use crate::control::protocol::{ForgeCommand, Request};

/// Work with issues and pull requests of the embedded forge, on this machine
///
/// This works with and without a running daemon.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman forge issue create --title \"Add a login page\" --body \"Depends on #3\" --label backlog\n  \
    pointsman forge pr review 7 --request-changes --body \"The test is missing\"\n  \
    pointsman forge pr review 7 --approve\n  \
    git fetch \"$(pointsman forge url)\" main")]
pub(crate) enum Command {
    /// Work with issues
    #[command(subcommand)]
    Issue(Issue),
    /// Work with pull requests
    #[command(subcommand)]
    Pr(Pr),
    /// Show or change the board: the status of each issue, and who works on it
    #[command(subcommand)]
    Board(Board),
    /// Read or set the checks of a commit
    #[command(subcommand)]
    Status(Status),
    /// Print the path of its bare repository, for use as a git remote
    #[command(after_help = "Example:\n  git fetch \"$(pointsman forge url)\" main")]
    Url,
    /// Show how many calls and bytes the forge's server has cost since the daemon started
    #[command(after_help = "Example:\n  pointsman forge stats")]
    Stats,
}

/// Show or change the board: the status of each issue, and who works on it
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  pointsman forge board list")]
pub(crate) enum Board {
    /// List open issues with their Status and Agent fields
    #[command(after_help = "Example:\n  \
        pointsman forge board list --json | jq '.[] | select(.status == \"In Review\")'")]
    List,
    /// Set the Status or the Agent field of an issue
    #[command(after_help = "Example:\n  pointsman forge board set 3 --status \"In Progress\" --agent alice")]
    Set {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
        /// Backlog, Ready, In Progress, In Review or Done
        #[arg(long, value_parser = board_status, required_unless_present = "agent")]
        status: Option<BoardStatus>,
        /// Who works on it; empty means nobody
        #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
        agent: Option<String>,
    },
}

/// Read or set the checks of a commit
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  pointsman forge status list \"$(git rev-parse HEAD)\"")]
pub(crate) enum Status {
    /// List the checks of a commit
    #[command(after_help = "Example:\n  pointsman forge status list \"$(git rev-parse HEAD)\"")]
    List {
        /// The full commit id
        #[arg(value_parser = sha)]
        sha: Sha,
    },
    /// Set a check of a commit, as CI does
    #[command(after_help = "Example:\n  \
        pointsman forge status set \"$(git rev-parse HEAD)\" --context lint --state success")]
    Set {
        /// The full commit id
        #[arg(value_parser = sha)]
        sha: Sha,
        /// The name of the check
        #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
        context: String,
        /// Its result
        #[arg(long, value_enum)]
        state: CheckWord,
    },
}

/// What a check says.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CheckWord {
    /// Green
    Success,
    /// Red
    Failure,
    /// Not finished
    Pending,
}

impl From<CheckWord> for CheckState {
    fn from(said: CheckWord) -> Self {
        match said {
            CheckWord::Success => Self::Success,
            CheckWord::Failure => Self::Failure,
            CheckWord::Pending => Self::Pending,
        }
    }
}

fn board_status(text: &str) -> Result<BoardStatus, String> {
    BoardStatus::parse(text).ok_or_else(|| {
        let names = BoardStatus::ALL.map(BoardStatus::name).join(", ");
        format!("the board has the columns {names}")
    })
}

fn sha(text: &str) -> Result<Sha, String> {
    Sha::new(text).ok_or_else(|| "write the full commit id, as git rev-parse prints it".to_owned())
}

/// Work with issues
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman forge issue create --title \"Add a login page\" --label backlog\n  \
    pointsman forge issue list")]
pub(crate) enum Issue {
    /// Create an issue; the label `backlog` releases it for work
    #[command(after_help = "Examples:\n  \
        pointsman forge issue create --title \"Add a login page\" --body \"Depends on #3\" --label backlog\n  \
        pointsman forge issue create --title \"Add a login page\" --body-file login.md")]
    Create {
        /// The title
        #[arg(long, allow_hyphen_values = true)]
        title: String,
        #[command(flatten)]
        body: Body,
        /// A label; may be repeated
        #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
        label: Vec<String>,
    },
    /// List issues
    #[command(after_help = "Example:\n  pointsman forge issue list --state all")]
    List {
        /// Which ones to list
        #[arg(long, value_enum, default_value_t = StateArgument::Open)]
        state: StateArgument,
    },
    /// Show an issue with its comments
    #[command(after_help = "Example:\n  pointsman forge issue show 3")]
    Show {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
    },
    /// Comment on an issue or pull request
    #[command(
        after_help = "Example:\n  pointsman forge issue comment 3 --body \"The logo is in assets/logo.svg\""
    )]
    Comment {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
        #[command(flatten)]
        body: Body,
    },
    /// Add and remove labels
    #[command(after_help = "Examples:\n  \
        pointsman forge issue label 3 backlog\n  \
        pointsman forge issue label 3 --remove blocked")]
    Label {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
        /// Labels to add, like --add
        #[arg(value_name = "LABEL", required_unless_present_any = ["add", "remove"])]
        labels: Vec<String>,
        /// A label to add; may be repeated
        #[arg(long, value_name = "LABEL", alias = "label", allow_hyphen_values = true)]
        add: Vec<String>,
        /// A label to remove; may be repeated
        #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
        remove: Vec<String>,
    },
    /// Close an issue
    #[command(after_help = "Example:\n  pointsman forge issue close 3")]
    Close {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
    },
    /// Reopen a closed issue
    #[command(after_help = "Example:\n  pointsman forge issue reopen 3")]
    Reopen {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
    },
}

/// Work with pull requests
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman forge pr list\n  \
    pointsman forge pr diff 7 && pointsman forge pr review 7 --approve")]
pub(crate) enum Pr {
    /// List pull requests
    #[command(after_help = "Example:\n  pointsman forge pr list --state all")]
    List {
        /// Which ones to list
        #[arg(long, value_enum, default_value_t = StateArgument::Open)]
        state: StateArgument,
    },
    /// Open a pull request for a branch that has been pushed
    #[command(
        after_help = "Example:\n  pointsman forge pr create --head fix-login --title \"Fix the login\""
    )]
    Create {
        /// The branch with the work
        #[arg(long, value_name = "BRANCH")]
        head: String,
        /// The title
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        title: String,
        #[command(flatten)]
        body: Body,
    },
    /// Show a pull request with its reviews
    #[command(after_help = "Example:\n  pointsman forge pr show 7")]
    Show {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
    },
    /// Review the current head of a pull request; a later push voids the review
    #[command(after_help = "Examples:\n  \
        pointsman forge pr review 7 --approve\n  \
        pointsman forge pr review 7 --request-changes --body \"The test is missing\"")]
    Review {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
        #[command(flatten)]
        verdict: Verdict,
        #[command(flatten)]
        body: Body,
        /// The commit that you looked at; the review is refused if the branch has moved since
        #[arg(long, value_name = "SHA", value_parser = sha)]
        head: Option<Sha>,
    },
    /// Print what a pull request changes as a unified diff; once merged, what landed
    #[command(
        after_help = "Examples:\n  pointsman forge pr diff 7 --stat\n  pointsman forge pr diff 7 | less"
    )]
    Diff {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
        /// Show only the changed files, and how much changed in each
        #[arg(long, conflicts_with = "since_last_look")]
        stat: bool,
        /// Show only what changed since you last looked
        #[arg(long)]
        since_last_look: bool,
    },
    /// List the checks of a pull request's head, with how long they took
    #[command(after_help = "Example:\n  pointsman forge pr checks 7")]
    Checks {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
    },
    /// Close a pull request without merging it
    #[command(after_help = "Example:\n  pointsman forge pr close 7")]
    Close {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
    },
    /// Put a pull request into the merge queue
    #[command(after_help = "Example:\n  pointsman forge pr merge 7 && pointsman merge-queue status --watch")]
    Merge {
        /// The number
        #[arg(value_parser = super::number)]
        number: Number,
    },
}

/// A text, from the command line or from a file.
#[derive(Debug, Args)]
pub(crate) struct Body {
    /// The text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    body: Option<String>,
    /// Read the text from a file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    body_file: Option<PathBuf>,
}

impl Body {
    fn read(self) -> Result<String, Failure> {
        match (self.body, self.body_file) {
            (Some(text), _) => Ok(text),
            (None, Some(path)) if path.as_os_str() == "-" => super::deps::read_stdin(),
            (None, Some(path)) => {
                let bytes = std::fs::read(&path).map_err(|error| {
                    Failure::not_found(format!("cannot read {}: {error}", path.display()))
                })?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            (None, None) => Ok(String::new()),
        }
    }
}

/// What a review says.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Verdict {
    /// Approve the change
    #[arg(long)]
    approve: bool,
    /// Request changes; the agent receives the text
    #[arg(long)]
    request_changes: bool,
    /// Leave the decision to a person
    #[arg(long)]
    discuss: bool,
}

impl Verdict {
    fn get(&self) -> ReviewVerdict {
        match (self.approve, self.request_changes) {
            (true, _) => ReviewVerdict::Approve,
            (false, true) => ReviewVerdict::RequestChanges,
            (false, false) => ReviewVerdict::Discuss,
        }
    }
}

/// Which issues or pull requests.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StateArgument {
    /// Open
    Open,
    /// Closed
    Closed,
    /// All
    All,
}

impl From<StateArgument> for StateFilter {
    fn from(which: StateArgument) -> Self {
        match which {
            StateArgument::Open => Self::Open,
            StateArgument::Closed => Self::Closed,
            StateArgument::All => Self::All,
        }
    }
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Issue(command) => command.run(context),
            Self::Pr(command) => command.run(context),
            Self::Board(command) => command.run(context),
            Self::Status(command) => command.run(context),
            Self::Url => url(context),
            Self::Stats => stats(context),
        }
    }
}

impl Board {
    fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => {
                forge_text::board(context, &ask::<Vec<BoardItem>>(context, ForgeCommand::ListBoard)?)
            }
            Self::Set { number, status, agent } => {
                context.people_only("changing the board")?;
                let item: BoardItem = ask(context, ForgeCommand::SetBoard { number, status, agent })?;
                forge_text::changed(context, "issue", "is moved on the board", number, &item)
            }
        }
    }
}

impl Status {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let command = match self {
            Self::List { sha } => ForgeCommand::ListChecks { sha },
            Self::Set { sha, context: name, state } => {
                context.people_only("setting a check")?;
                ForgeCommand::SetCheck { sha, name, state: state.into() }
            }
        };
        forge_text::checks(context, &ask(context, command)?)
    }
}

/// Whether a label means something to us.
fn is_known(label: &str) -> bool {
    labels::ALL.iter().any(|(known, ..)| *known == label)
}

impl Issue {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let author = context.author();
        match self {
            Self::Create { title, body, label } => {
                let command = ForgeCommand::CreateIssue { title, body: body.read()?, labels: label, author };
                let issue: view::Issue = ask(context, command)?;
                for label in issue.labels.iter().filter(|label| !is_known(label)) {
                    context.out.say(format!(
                        "note: Pointsman ignores the label `{}`. It acts on: {}",
                        clean_line(label, 40),
                        labels::ALL.map(|(name, ..)| name).join(", ")
                    ));
                }
                forge_text::changed(context, "issue", "has been created", issue.number, &issue)
            }
            Self::List { state } => {
                let issues: Vec<view::Issue> =
                    ask(context, ForgeCommand::ListIssues { state: state.into() })?;
                forge_text::issues(context, &issues)
            }
            Self::Show { number } => {
                forge_text::issue(context, &ask(context, ForgeCommand::ShowIssue { number })?)
            }
            Self::Comment { number, body } => {
                let body = body.read()?;
                if body.trim().is_empty() {
                    return Err(
                        Failure::refused("the comment is empty").hint("--body TEXT, or --body-file FILE")
                    );
                }
                let changed: Commented = ask(context, ForgeCommand::Comment { number, body, author })?;
                forge_text::changed(context, "comment on", "has been posted", number, &changed)
            }
            Self::Label { number, labels, mut add, remove } => {
                context.people_only("labelling an issue")?;
                add.extend(labels);
                let changed: view::Issue = ask(context, ForgeCommand::Label { number, add, remove })?;
                forge_text::changed(context, "issue", "is labelled", number, &changed)
            }
            Self::Close { number } => {
                context.people_only("closing an issue")?;
                let changed: view::Issue = ask(context, ForgeCommand::SetIssueOpen { number, open: false })?;
                forge_text::changed(context, "issue", "is closed", number, &changed)
            }
            Self::Reopen { number } => {
                context.people_only("reopening an issue")?;
                let changed: view::Issue = ask(context, ForgeCommand::SetIssueOpen { number, open: true })?;
                forge_text::changed(context, "issue", "is open", number, &changed)
            }
        }
    }
}

impl Pr {
    fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List { state } => {
                let pulls: Vec<PullRequest> = ask(context, ForgeCommand::ListPulls { state: state.into() })?;
                forge_text::pulls(context, &pulls)
            }
            Self::Show { number } => {
                let pull: view::PullRequest = ask(context, ForgeCommand::ShowPull { number })?;
                // A session sees no database.
                let receipt = evidence::receipt(context, number).unwrap_or_default();
                let artifacts = evidence::artifacts(context, number).unwrap_or_default();
                let risk = evidence::risk(context, number).unwrap_or_default();
                let pull = view::PullRequest { artifacts, risk, ..pull };
                let pull = rounds::with_line_comments(context, pull);
                forge_text::shown_pull(context, pull, &receipt)
            }
            Self::Review { number, verdict, body, head } => {
                let verdict = verdict.get();
                if verdict == ReviewVerdict::Approve {
                    context.people_only("an approval")?;
                }
                let body = body.read()?;
                if verdict == ReviewVerdict::RequestChanges && body.trim().is_empty() {
                    return Err(Failure::refused("a request for changes needs a text that says which")
                        .hint("pass it with --body TEXT; the agent receives it"));
                }
                let review = ForgeCommand::Review { number, verdict, body, author: context.author(), head };
                let changed: PullRequest = ask(context, review)?;
                let config = context.project()?.config;
                if let Some(head) = &changed.head_sha {
                    rounds::remember(context, &config.name, number, head);
                }
                if !config.ci.kind.tests_commits() {
                    context.out.say(words::ci::off(&config));
                }
                forge_text::changed(context, "review of pull request", "has been posted", number, &changed)
            }
            Self::Diff { number, stat, since_last_look } => {
                evidence::diff(context, number, stat, since_last_look)
            }
            Self::Checks { number } => evidence::checks(context, number),
            Self::Close { number } => {
                context.people_only("closing a pull request")?;
                let changed: PullRequest = ask(context, ForgeCommand::ClosePull { number })?;
                forge_text::changed(context, "pull request", "is closed", number, &changed)
            }
            Self::Create { head, title, body } => {
                context.people_only("opening a pull request by hand")?;
                let (body, author) = (body.read()?, context.author());
                let pr: PullRequest = ask(context, ForgeCommand::CreatePull { head, title, body, author })?;
                forge_text::changed(context, "pull request", "is open", pr.number, &pr)
            }
            Self::Merge { number } => {
                context.people_only("merging")?;
                let changed: Merging = ask(context, ForgeCommand::MergePull { number })?;
                forge_text::changed(context, "pull request", "is in the merge queue", number, &changed)
            }
        }
    }
}

fn ask<V: DeserializeOwned>(context: &Context, command: ForgeCommand) -> Result<V, Failure> {
    if let Some(project) = own_project(&context.paths) {
        // The daemon knows which forge it is.
        return context.ask(&Request::Forge { project, command });
    }
    let project = context.project()?;
    require_local(project.config.forge.kind)?;
    context.ask(&Request::Forge { project: project.config.name, command })
}

fn url(context: &Context) -> Result<(), Failure> {
    let project = context.project()?;
    require_local(project.config.forge.kind)?;
    let path = context.paths.project(&project.config.name).forge_repository();
    if context.out.is_json() {
        return context.out.value(&Url { url: path });
    }
    context.out.line(path.display())
}

fn stats(context: &Context) -> Result<(), Failure> {
    let project = context.project()?;
    let costs: Vec<Cost> = context.ask_daemon(&Request::ForgeStats { project: project.config.name })?;
    if context.out.is_json() {
        return context.out.value(&costs);
    }
    let mut table = Table::new(["OPERATION", "CALLS", "UNCHANGED", "FAILED", "SENT", "RECEIVED", "EACH"]);
    for cost in &costs {
        table.row([
            cost.operation.as_str().into(),
            cost.calls.to_string().into(),
            cost.unchanged.to_string().into(),
            cost.failed.to_string().into(),
            cost.sent_bytes.to_string().into(),
            cost.received_bytes.to_string().into(),
            format!("{} ms", cost.waited_ms / cost.calls.max(1)).into(),
        ]);
    }
    context.out.table(&table, "the embedded forge has no server, so there are no calls to count")
}

fn require_local(kind: ForgeKind) -> Result<(), Failure> {
    match kind.is_embedded() {
        true => Ok(()),
        false => Err(Failure::refused(format!(
            "this project's forge is {kind}; these commands work only with the embedded forge"
        ))
        .hint("use the forge's own website or command-line tool")),
    }
}
