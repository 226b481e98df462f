//! The daemon, as the pages and the API ask it.

use std::io;

use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::part::question::QuestionId;
use pointsman_core::review::comments::Feedback;
use pointsman_core::task;
use pointsman_core::time::Timestamp;
use pointsman_view::event::Event;
use pointsman_view::evidence::{CiLog, Diff};
use pointsman_view::forge::{Issue, PullRequest};
use pointsman_view::inbox::Question;
use pointsman_view::status::Status;
use pointsman_view::task::Task;
use serde_json::Value;

/// Everything that the server asks its daemon. The calls may wait, so they are made on threads that may.
pub trait Backend: Send + Sync + 'static {
    /// The present time.
    fn now(&self) -> Timestamp;

    /// The page that a person reads first: `status`.
    fn status(&self, by: &Visitor) -> Answer<Status>;

    /// Open questions in the order of the inbox: `inbox`.
    fn inbox(&self, by: &Visitor) -> Answer<Vec<Question>>;

    /// One question with what is known about it: `inbox show`.
    fn question(&self, by: &Visitor, id: QuestionId) -> Answer<Question>;

    /// A question with the evidence for a decision. `since` asks for the changes since the last look only.
    fn desk(&self, by: &Visitor, id: QuestionId, since: bool) -> Answer<Desk>;

    /// Carries an order out, under the same rules as one of a command. The answer is the view that the command prints.
    fn carry_out(&self, by: &Visitor, order: &Order) -> Answer<Value>;

    /// Entries of the log after this one, oldest first.
    fn events(&self, by: &Visitor, after: i64, limit: u32) -> Answer<Vec<Event>>;

    /// The number of the newest entry of the log.
    fn last_event(&self) -> Answer<i64>;

    /// The hashes of secrets that were kept last; none if there are none.
    fn load_keys(&self) -> io::Result<Option<Vec<u8>>>;

    /// Keeps the hashes of secrets.
    fn keep_keys(&self, text: &[u8]) -> io::Result<()>;
}

/// The answer of the daemon, or its reason for giving none.
pub type Answer<T> = Result<T, Failure>;

/// A reason why the daemon did not do or tell something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
}

/// The kinds of failures that a caller can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The request makes no sense.
    Malformed,
    /// The present state, or the access rule, does not allow it.
    Refused,
    NotFound,
    /// An outside service does not answer.
    Unavailable,
    Failed,
}

/// Somebody who is logged in, or a program with a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// The person's name; orders are recorded under it.
    pub name: String,
    pub scopes: Scopes,
    pub way: Way,
}

/// The way by which a visitor came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A browser with a cookie.
    Page,
    /// A program with a token.
    Api,
}

/// The rights of a visitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Scopes {
    pub read: bool,
    pub order: bool,
    pub approve: bool,
}

impl Scopes {
    /// The rights of a person who logged in.
    pub const ALL: Self = Self { read: true, order: true, approve: true };
}

/// An order of a visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Approve {
        question: QuestionId,
    },
    /// A no, with comments on lines where there is a change.
    Reject {
        question: QuestionId,
        feedback: Feedback,
    },
    Answer {
        question: QuestionId,
        text: String,
    },
    Dismiss {
        question: QuestionId,
    },
    /// An order about a task.
    Task {
        project: ProjectName,
        issue: Number,
        order: task::Order,
    },
    /// A new issue, on the embedded forge.
    FileIssue {
        project: ProjectName,
        title: String,
        body: String,
        labels: Vec<String>,
    },
}

/// A question with the evidence for a decision. A part that cannot be read says why.
#[derive(Clone, Debug)]
pub struct Desk {
    pub question: Question,
    pub task: Option<Task>,
    /// The cost of its sessions so far, in words.
    pub cost: Option<String>,
    pub issue: Option<Issue>,
    /// With its reviews, and what became of comments on lines.
    pub pull: Option<PullRequest>,
    pub diff: Option<Result<Diff, String>>,
    /// Whether a person looked at an earlier version.
    pub looked_before: bool,
    pub ci: Option<Result<CiLog, String>>,
    /// The end of the newest session's transcript.
    pub last_words: Option<Result<String, String>>,
}
