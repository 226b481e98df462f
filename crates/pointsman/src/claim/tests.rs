//! The life cycle on a real embedded forge.

use std::path::{Path, PathBuf};
use std::process::Command;

use pointsman_adapters::forge::Forge;
use pointsman_adapters::git::Git;
use pointsman_core::config::Config;
use pointsman_core::forge::{BoardStatus, CheckState};
use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::time::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

use super::{ClaimContext, carry_out};
use crate::control::protocol::{ClaimOrder, FailureKind, ForgeCommand, Reply};
use crate::embedded_forge::{EmbeddedForge, create, run_command};
use crate::paths::Paths;

struct World {
    dir: TempDir,
    git: Git,
    config: Config,
    forge: EmbeddedForge,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path().join("state"), dir.path().join("run"));
        let name = ProjectName::new("shop").unwrap();
        let mut config = Config { name, primary_branch: "main".to_owned(), ..Config::default() };
        config.pr.checklist = vec!["Docs updated".to_owned()];
        let checkout = dir.path().join("checkout");
        std::fs::create_dir(&checkout).unwrap();
        git(&checkout, &["init", "--quiet", "--initial-branch=main"]);
        git(&checkout, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
        let webhook_listener = Git::open(paths.state()).unwrap();
        create(&paths, &config, &checkout).unwrap();
        let forge = EmbeddedForge::open(&paths.project(&config.name), "main", &webhook_listener, || {
            Timestamp(1_700_000_000_000)
        })
        .unwrap();
        let world = Self { dir, git: webhook_listener, config, forge };
        for title in ["One", "Two"] {
            world.command(ForgeCommand::CreateIssue {
                title: title.to_owned(),
                body: String::new(),
                labels: vec!["backlog".to_owned()],
                author: "ann".to_owned(),
            });
        }
        world
    }

    fn checkout(&self) -> PathBuf {
        self.dir.path().join("checkout")
    }

    fn command(&self, command: ForgeCommand) -> Value {
        match run_command(&self.forge, &command) {
            Reply::Done { value } => value,
            Reply::Failed { message, .. } => panic!("{message}"),
        }
    }

    fn order(&self, order: &ClaimOrder) -> Result<Value, (FailureKind, String)> {
        let place = ClaimContext {
            forge: &self.forge,
            git: &self.git,
            config: &self.config,
            is_worked_on: &|_| false,
        };
        match carry_out(&place, order) {
            Reply::Done { value } => Ok(value),
            Reply::Failed { kind, message } => Err((kind, message)),
        }
    }

    /// A branch with a commit, in the checkout only.
    fn branch(&self, name: &str) -> Sha {
        git(&self.checkout(), &["switch", "--quiet", "-c", name, "main"]);
        git(&self.checkout(), &["commit", "--quiet", "--allow-empty", "-m", name]);
        Sha::new(&git(&self.checkout(), &["rev-parse", "HEAD"])).unwrap()
    }

    fn merge(&self, branch: &str) {
        git(&self.checkout(), &["push", "--quiet", &self.forge.remote(), &format!("{branch}:main")]);
    }
}

#[allow(clippy::disallowed_methods, reason = "a test's own git")]
fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn take(by: &str) -> ClaimOrder {
    ClaimOrder::Take { issue: 1, agent_id: format!("{by}-1"), by: by.to_owned() }
}

fn hand_in(world: &World, branch: &str) -> ClaimOrder {
    ClaimOrder::HandIn {
        issue: 1,
        branch: branch.to_owned(),
        summary: "Fix race\u{1b}[2J\ncondition".to_owned(),
        agent_id: "ann-1".to_owned(),
        checkout: world.checkout(),
    }
}

fn finish(pr: Option<u64>, branch: &str) -> ClaimOrder {
    ClaimOrder::Finish { issue: 1, pr, branch: branch.to_owned(), agent_id: "ann-1".to_owned() }
}

#[test]
fn an_issue_goes_from_claim_to_close() {
    let world = World::new();
    let taken = world.order(&take("ann")).unwrap();
    assert_eq!((&taken["title"], &taken["status"]), (&"One".into(), &"In Progress".into()));
    let issue = world.forge.issue(1).unwrap().unwrap();
    assert_eq!(
        (issue.assignee.as_deref(), issue.labels.as_slice()),
        (Some("ann"), &["in-progress".into()][..])
    );

    let sha = world.branch("claude/one-1");
    let handed = world.order(&hand_in(&world, "claude/one-1")).unwrap();
    assert_eq!((&handed["pr"], &handed["found"]), (&3.into(), &false.into()));
    let pr = world.forge.pull_request(3).unwrap().unwrap();
    assert_eq!((pr.title.as_str(), pr.head_sha), ("Fix race condition", Some(sha.clone())));
    assert!(pr.body.contains("- [ ] Docs updated") && !pr.body.contains("[x]"), "{}", pr.body);
    assert_eq!(world.forge.board_item(1).unwrap().status, BoardStatus::InReview);
    let again = world.order(&hand_in(&world, "claude/one-1")).unwrap();
    assert_eq!((&again["pr"], &again["found"]), (&3.into(), &true.into()), "idempotent");

    world.forge.show_check(&sha, "lint", CheckState::Success).unwrap();
    let look = ClaimOrder::Look { pr: Some(3), branch: "claude/one-1".to_owned() };
    let looked = world.order(&look).unwrap();
    assert_eq!((&looked["state"], &looked["checks"][0]["name"]), (&"open".into(), &"lint".into()));
    let (kind, why) = world.order(&finish(Some(3), "claude/one-1")).unwrap_err();
    assert_eq!(kind, FailureKind::Refused, "{why}");
    assert!(why.contains("not merged"), "{why}");

    world.merge("claude/one-1");
    let looked = world.order(&look).unwrap();
    assert_eq!((&looked["state"], &looked["next"]["number"]), (&"merged".into(), &2.into()));
    for _ in 0..2 {
        world.order(&finish(Some(3), "claude/one-1")).unwrap();
    }
    let issue = world.command(ForgeCommand::ShowIssue { number: 1 });
    assert_eq!(issue["state"], "closed");
    assert_eq!(issue["comments"].as_array().unwrap().len(), 1, "{issue}");
    assert!(issue["comments"][0]["body"].as_str().unwrap().starts_with("Completed in #3"));
    let item = world.forge.board_item(1).unwrap();
    assert_eq!((item.status, item.agent.as_str()), (BoardStatus::Done, ""));
}

#[test]
fn an_issue_is_taken_once() {
    let world = World::new();
    world.order(&take("ann")).unwrap();
    world.order(&take("ann")).unwrap();
    let (kind, why) = world.order(&take("bob")).unwrap_err();
    assert_eq!((kind, why.as_str()), (FailureKind::Refused, "issue #1 is assigned to ann"));
    let mine = ClaimOrder::Release { issue: 1, agent_id: "ann-1".to_owned() };
    let others = ClaimOrder::Release { issue: 1, agent_id: "bob-1".to_owned() };
    assert_eq!(world.order(&others).unwrap_err().0, FailureKind::Refused);
    world.order(&mine).unwrap();
    let issue = world.forge.issue(1).unwrap().unwrap();
    assert_eq!((issue.assignee, issue.labels), (None, vec!["backlog".to_owned()]));
    assert_eq!(world.forge.board_item(1).unwrap().status, BoardStatus::Ready);
    world.order(&take("bob")).unwrap();
}

#[test]
fn what_a_claim_says_is_checked() {
    let world = World::new();
    world.order(&take("ann")).unwrap();
    for branch in ["main", "", "../x", "-f", "claude/nowhere"] {
        assert_eq!(world.order(&hand_in(&world, branch)).unwrap_err().0, FailureKind::Refused, "{branch}");
    }
    assert_eq!(world.command(ForgeCommand::ListPulls { state: Default::default() }), serde_json::json!([]));
    world.branch("claude/one-1");
    world.order(&hand_in(&world, "claude/one-1")).unwrap();
    world.merge("claude/one-1");
    let (_, why) = world.order(&finish(Some(3), "claude/other")).unwrap_err();
    assert!(why.contains("comes from claude/one-1"), "{why}");
    assert_eq!(world.order(&finish(Some(2), "claude/one-1")).unwrap_err().0, FailureKind::NotFound);
    let stranger = ClaimOrder::Finish {
        issue: 1,
        pr: Some(3),
        branch: "claude/one-1".to_owned(),
        agent_id: "bob-9".to_owned(),
    };
    let (_, why) = world.order(&stranger).unwrap_err();
    assert!(why.contains("gives issue #1 to ann-1"), "{why}");
    let odd = ClaimOrder::Sync { issue: 1, status: "Doing".to_owned(), agent_id: "ann-1".to_owned() };
    let (_, why) = world.order(&odd).unwrap_err();
    assert!(why.contains("no status `Doing`"), "{why}");
    assert_eq!(world.command(ForgeCommand::ShowIssue { number: 1 })["state"], "open");
}

#[test]
fn a_rebased_branch_is_not_pushed_over() {
    let world = World::new();
    world.order(&take("ann")).unwrap();
    let before = world.branch("claude/one-1");
    world.order(&hand_in(&world, "claude/one-1")).unwrap();
    git(&world.checkout(), &["commit", "--quiet", "--amend", "--allow-empty", "-m", "another"]);
    let (_, why) = world.order(&hand_in(&world, "claude/one-1")).unwrap_err();
    assert!(why.contains("--force-with-lease"), "{why}");
    assert_eq!(world.forge.pull_request(3).unwrap().unwrap().head_sha, Some(before));
}
