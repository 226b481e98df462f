//! A Forgejo for tests: stateful, with real git over HTTP, and as strict as the real one.
//!
//! It was built from exchanges recorded from a real server and from the API's description. It refuses what that refuses:
//! an approval of one's own work, a label by a number that is not there, a second pull request for the same branches, a
//! merge of a commit that is not on the base, writing without the right. It answers pages of at most
//! [`Rules::page`], and can fail, stall, cut its answers short or lose them after the deed ([`Faults`]).
//!
//! The same server also speaks GitHub's dialect (`github`) and GitLab's (`gitlab`), so that one world serves all adapters. What
//! is known about the real servers, and the test for each rule, is in docs/fakes.md.
//!
//! `api` routes and checks rights, `issues`, `pulls` and `git` answer, `json` has the shapes, `people` what tests do as
//! people.

mod api;
mod app;
mod board;
mod faults;
mod git;
mod github;
mod github_merge;
mod gitlab;
mod hooks;
mod issues;
mod json;
mod people;
mod pulls;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pointsman_core::base64;
use tempfile::TempDir;

use crate::TempRepo;
use crate::http::{Request, Server};
use crate::repository::command;

pub use app::{APP, APP_BOT, APP_KEY};
pub use board::BOARD;
pub use faults::Faults;
pub use people::{SeenIssue, SeenPull};

/// The owner, who may do everything.
pub const OWNER: &str = "ann";
/// The account that develops; may write.
pub const DEV: &str = "dev-bot";
/// The account that reviews; may write.
pub const REVIEWER: &str = "review-bot";
/// Somebody from outside; may read, open issues and comment.
pub const OUTSIDER: &str = "eve";
/// The repository.
pub const REPO: &str = "ann/shop";

/// What an account's second token ends with.
const SECOND: &str = "-again";

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What `/version` says.
    pub version: String,
    /// What it says as a GitLab.
    pub gitlab_version: String,
    /// The most items of one page.
    pub page: usize,
    /// Whether a merge by hand can be recorded.
    pub manual_merge: bool,
    /// Whether tokens may write the statuses of commits.
    pub statuses: bool,
    /// Whether nobody but the owner may push to `main`: git refuses it, and the API says so.
    pub protected_main: bool,
    /// Whether a rule of GitHub requires its own merge queue for `main`.
    pub merge_queue: bool,
    /// Whether it is under maintenance: everything can be read, and every push fails.
    pub read_only: bool,
    /// Whether the answer to an assignment still shows the issue as it was.
    pub late_assignee: bool,
    /// How many assignments it takes and forgets.
    pub lost_assignments: u32,
    /// How long after a push a pull request still shows its old head, as a real server does: the push returns before
    /// its queue has been worked through.
    pub head_lag: Duration,
    /// How long after it was opened or pushed to a pull request is still being checked: it cannot be merged until then.
    pub check_lag: Duration,
    /// How far its clock is ahead, in seconds.
    pub ahead: i64,
    pub faults: Faults,
}

impl Rules {
    /// A busy server: everything is true a moment later than it is answered.
    pub fn delayed() -> Self {
        Self {
            head_lag: Duration::from_millis(150),
            check_lag: Duration::from_millis(200),
            late_assignee: true,
            lost_assignments: 1,
            ..Self::default()
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            version: "7.0.5+gitea-1.21.11".to_owned(),
            gitlab_version: "17.5.1-ee".to_owned(),
            page: 50,
            manual_merge: true,
            statuses: true,
            protected_main: false,
            merge_queue: false,
            read_only: false,
            late_assignee: false,
            lost_assignments: 0,
            head_lag: Duration::ZERO,
            check_lag: Duration::ZERO,
            ahead: 0,
            faults: Faults::default(),
        }
    }
}

/// A running server with one repository, [`REPO`], that has one commit on `main`.
pub struct FakeForgejo {
    server: Server,
    shared: Arc<Shared>,
    dir: TempDir,
}

struct Shared {
    state: Mutex<State>,
    repository: PathBuf,
    root: PathBuf,
}

struct State {
    rules: Rules,
    accounts: BTreeMap<String, Account>,
    issues: BTreeMap<u64, Issue>,
    pulls: BTreeMap<u64, Pull>,
    labels: Vec<Label>,
    statuses: Vec<Status>,
    requests: Vec<(String, String)>,
    pushes: Vec<Pushed>,
    traffic: Traffic,
    recorded: Option<Vec<Exchange>>,
    apps: app::Apps,
    board: board::Board,
    gitlab: gitlab::World,
    merges: github_merge::Merges,
    hook: Option<hooks::Hook>,
    hooked: u64,
    next: u64,
    tick: i64,
}

/// A move of a branch, and who made it.
#[derive(Clone, Debug)]
struct Pushed {
    login: String,
    branch: String,
    before: String,
    after: String,
}

/// What its API was asked and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub calls: u64,
    /// Bytes of their bodies.
    pub sent: u64,
    /// Bytes of the bodies of its answers.
    pub received: u64,
}

/// A request of GitHub's API and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub method: String,
    /// The path, piece by piece, without what all paths begin with.
    pub path: Vec<String>,
    /// The names of the parameters.
    pub query: Vec<String>,
    /// The body; null if there was none.
    pub body: serde_json::Value,
    /// The status of the answer.
    pub status: u16,
    /// Its body; null if there was none.
    pub answer: serde_json::Value,
}

struct Account {
    token: String,
    write: bool,
    admin: bool,
}

#[derive(Default)]
struct Issue {
    title: String,
    body: String,
    open: bool,
    author: String,
    assignees: Vec<String>,
    labels: Vec<u64>,
    comments: Vec<Comment>,
    dependencies: Vec<u64>,
    created: i64,
    updated: i64,
}

struct Comment {
    id: u64,
    author: String,
    body: String,
    at: i64,
}

/// What a pull request has beside the issue of the same number.
struct Pull {
    head: String,
    base: String,
    head_sha: String,
    merged_as: Option<String>,
    reviews: Vec<Review>,
    /// When it was opened or its head moved last.
    changed: Instant,
    /// Another head that its branch has, and since when that was seen.
    coming: Option<(String, Instant)>,
}

impl Pull {
    fn new(head: String, base: String, head_sha: String) -> Self {
        let (merged_as, coming, changed) = (None, None, Instant::now());
        Self { head, base, head_sha, merged_as, reviews: Vec::new(), changed, coming }
    }
}

struct Review {
    id: u64,
    author: String,
    event: String,
    body: String,
    sha: String,
    at: i64,
    dismissed: bool,
    /// It was written so soon after a push that the server compared it with the head before.
    early: bool,
    remarks: Vec<(String, u64, String)>,
}

struct Label {
    id: u64,
    name: String,
    color: String,
}

struct Status {
    id: u64,
    sha: String,
    context: String,
    state: String,
    creator: String,
}

impl FakeForgejo {
    /// Starts one.
    pub fn start(rules: Rules) -> Self {
        let dir = tempfile::tempdir().expect("tests need a temporary directory");
        let root = dir.path().join("repositories");
        let repository = root.join(format!("{REPO}.git"));
        std::fs::create_dir_all(&repository).expect("a test's own directory can be written");
        let seed = TempRepo::new();
        let bare = |arguments: &[&str]| {
            let done = command(&repository, arguments).status().expect("git is installed");
            assert!(done.success(), "git {arguments:?}");
        };
        bare(&["init", "--quiet", "--bare", "--initial-branch=main"]);
        seed.git(&["push", "--quiet", &repository.to_string_lossy(), "main:main"]);
        git::protect(&repository);
        let account = |write, admin| {
            move |name: &str| {
                (name.to_owned(), Account { token: format!("token-of-{name}-5f3a"), write, admin })
            }
        };
        let accounts = [
            account(true, true)(OWNER),
            account(true, false)(DEV),
            account(true, false)(REVIEWER),
            account(false, false)(OUTSIDER),
        ];
        let state = State {
            rules,
            accounts: accounts.into(),
            issues: BTreeMap::new(),
            pulls: BTreeMap::new(),
            labels: Vec::new(),
            statuses: Vec::new(),
            requests: Vec::new(),
            pushes: Vec::new(),
            traffic: Traffic::default(),
            recorded: None,
            apps: app::Apps::default(),
            board: board::Board::default(),
            gitlab: gitlab::World::default(),
            merges: github_merge::Merges::default(),
            hook: None,
            hooked: 0,
            next: 0,
            tick: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), repository, root });
        let answering = Arc::clone(&shared);
        let server = Server::start(move |request| api::answer(&answering, request));
        Self { server, shared, dir }
    }

    /// Its address.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The token of an account.
    pub fn token(&self, account: &str) -> String {
        self.state().accounts[account].token.clone()
    }

    /// Another token of the same account.
    pub fn second_token(&self, account: &str) -> String {
        format!("{}{SECOND}", self.token(account))
    }

    /// The bare repository, for looking.
    pub fn repository(&self) -> &Path {
        &self.shared.repository
    }

    /// A directory that lives as long as the server.
    pub fn scratch(&self) -> &Path {
        self.dir.path()
    }

    /// Changes how it behaves from now on.
    pub fn change(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.state().rules);
    }

    /// What was asked so far: verb and path of each request.
    pub fn requests(&self) -> Vec<(String, String)> {
        self.state().requests.clone()
    }

    /// Keeps what is asked and answered in GitHub's dialect from now on.
    pub fn record(&self) {
        self.state().recorded = Some(Vec::new());
    }

    /// What was kept.
    pub fn recorded(&self) -> Vec<Exchange> {
        self.state().recorded.clone().unwrap_or_default()
    }

    /// What its API has cost so far; git is not counted.
    pub fn traffic(&self) -> Traffic {
        self.state().traffic
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What git says in the repository, or nothing if it fails.
    fn git(&self, arguments: &[&str]) -> Option<String> {
        let done = command(&self.repository, arguments).output().expect("git is installed");
        done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
    }

    fn branch(&self, name: &str) -> Option<String> {
        self.git(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{name}")])
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Seconds by the server's clock; a little later every time.
    fn now(&mut self) -> i64 {
        self.tick += 1;
        jiff::Timestamp::now().as_second() + self.rules.ahead
    }

    fn touch(&mut self, number: u64) {
        let now = self.now();
        if let Some(issue) = self.issues.get_mut(&number) {
            issue.updated = now;
        }
    }

    /// Whose token a request shows.
    fn who(&self, request: &Request) -> Option<String> {
        let shown = request.header("authorization")?;
        let basic = shown.strip_prefix("Basic ").map(base64::decode);
        let basic = basic.map(|text| String::from_utf8_lossy(&text).into_owned());
        let token = match &basic {
            Some(text) => text.split_once(':')?.1,
            None => shown.strip_prefix("token ").or_else(|| shown.strip_prefix("Bearer "))?,
        };
        let token = token.strip_suffix(SECOND).unwrap_or(token);
        self.accounts.iter().find(|(_, account)| account.token == token).map(|(name, _)| name.clone())
    }

    fn writes(&self, name: &str) -> bool {
        self.accounts.get(name).is_some_and(|account| account.write)
    }

    fn label_id(&mut self, name: &str) -> u64 {
        if let Some(label) = self.labels.iter().find(|label| label.name == name) {
            return label.id;
        }
        let id = self.number() + 1000;
        self.labels.push(Label { id, name: name.to_owned(), color: "00aabb".to_owned() });
        id
    }
}
