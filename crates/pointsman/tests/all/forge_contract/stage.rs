//! A forge, a repository to push from, and people.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pointsman_adapters::forge::Forge;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::git::{BranchName, RefName};
use pointsman_core::forge::PullRequest;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_testkit::{TempRepo, eventually};

/// For what a server does a moment later.
const LIMIT: Duration = Duration::from_secs(20);

/// What people do, each forge in its own way. They may write, and are not us.
pub(super) trait People {
    fn name(&self) -> String;
    fn open_issue(&self, title: &str, body: &str, labels: &[&str]) -> Number;
    fn comment(&self, number: Number, body: &str);
    fn close_issue(&self, number: Number);
    fn close_pull(&self, number: Number);
    fn review(&self, pr: Number, verdict: ReviewVerdict, body: &str);
}

pub(super) struct Stage {
    pub(super) forge: Box<dyn Forge>,
    pub(super) people: Box<dyn People>,
    mirror: Mirror,
    checkout: TempRepo,
    /// Whether an issue and a pull request may have the same number.
    pub(super) numbers_apart: bool,
    /// Whether the forge is sure to know who pushed. Older servers do not.
    pub(super) tells_pushers: bool,
    _world: Box<dyn std::any::Any>,
}

impl Stage {
    pub(super) fn new(
        forge: Box<dyn Forge>,
        people: Box<dyn People>,
        mirror: Mirror,
        world: Box<dyn std::any::Any>,
    ) -> Self {
        mirror.fetch_remote().unwrap();
        let checkout = TempRepo::empty();
        checkout.git(&[
            "fetch",
            "--quiet",
            &mirror.dir().to_string_lossy(),
            "refs/remotes/origin/main:refs/heads/start",
        ]);
        let (numbers_apart, tells_pushers) = (false, false);
        Self { forge, people, mirror, checkout, numbers_apart, tells_pushers, _world: world }
    }

    /// The same on a forge that knows who pushed.
    pub(super) fn telling_pushers(self) -> Self {
        Self { tells_pushers: true, ..self }
    }

    /// The same on a forge that numbers issues and pull requests apart.
    pub(super) fn numbered_apart(self) -> Self {
        Self { numbers_apart: true, ..self }
    }

    /// A name that nobody has used, also not in an earlier run against the same server.
    pub(super) fn name(&self, what: &str) -> String {
        static NAMES: AtomicU32 = AtomicU32::new(0);
        format!("{what}/{}-{}", std::process::id(), NAMES.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn main(&self) -> Sha {
        self.forge.branch_head("main").unwrap().unwrap()
    }

    /// A new commit on top of another, known to the mirror.
    pub(super) fn commit(&self, on: &Sha) -> Sha {
        let file = self.name("file");
        self.mirror.fetch_remote().unwrap();
        self.checkout.git(&[
            "fetch",
            "--quiet",
            &self.mirror.dir().to_string_lossy(),
            "+refs/*:refs/mirror/*",
        ]);
        self.checkout.git(&["checkout", "--quiet", "--detach", on.as_str()]);
        let sha = Sha::new(&self.checkout.commit(&file, "content\n")).unwrap();
        self.checkout.git(&["branch", "--force", "made", "HEAD"]);
        let source = RefName::new("refs/heads/made").unwrap();
        let to = RefName::new(&format!("refs/pointsman/{file}")).unwrap();
        self.mirror.fetch_path(self.checkout.path(), &source, &to).unwrap();
        sha
    }

    pub(super) fn push(&self, branch: &str, sha: &Sha) {
        self.change(branch, Change::To(sha.clone()));
    }

    pub(super) fn delete_branch(&self, branch: &str) {
        self.change(branch, Change::Delete);
    }

    fn change(&self, branch: &str, change: Change) {
        let refname = BranchName::new(branch).unwrap().full();
        let there = self.mirror.remote_refs(std::iter::once(&refname)).unwrap().pop().unwrap();
        let expect = there.map_or(Expect::Absent, Expect::At);
        assert_eq!(self.mirror.push(&[PushRef { refname, change, expect }]).unwrap(), PushOutcome::Done);
    }

    /// A branch with one commit on top of main, and its pull request.
    pub(super) fn pull_request(&self) -> (Number, String, Sha) {
        let branch = self.name("work");
        let head = self.commit(&self.main());
        self.push(&branch, &head);
        let number = self.again(|| self.forge.ensure_pull_request(&branch, "main", "Title", "Body"));
        self.wait_for_head(number, &head);
        (number, branch, head)
    }

    pub(super) fn read(&self, number: Number) -> PullRequest {
        self.again(|| self.forge.pull_request(number)).unwrap()
    }

    /// Pushes to the branch of a pull request and waits until the server shows that head, which may be a moment later.
    pub(super) fn push_to(&self, number: Number, branch: &str, sha: &Sha) {
        self.push(branch, sha);
        self.wait_for_head(number, sha);
    }

    fn wait_for_head(&self, number: Number, sha: &Sha) {
        eventually("the pull request to show the head that was pushed", LIMIT, || {
            (self.read(number).head_sha.as_ref() == Some(sha)).then_some(())
        });
    }

    /// As the outbox does: an order that did not get through is given again.
    pub(super) fn again<T>(&self, order: impl Fn() -> Result<T, pointsman_adapters::forge::Error>) -> T {
        use pointsman_adapters::retry::Retry;
        eventually("the order to get through", LIMIT, || match order() {
            Ok(done) => Some(done),
            Err(error) => {
                assert!(error.retry() == Retry::Later, "{error}");
                None
            }
        })
    }
}
