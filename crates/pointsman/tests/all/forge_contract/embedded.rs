//! The embedded forge, in process.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use pointsman::control::protocol::{ForgeCommand, Reply};
use pointsman::embedded_forge::{EmbeddedForge, create, run_command};
use pointsman::paths::Paths;
use pointsman_adapters::forge::Forge;
use pointsman_adapters::git::Git;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_core::config::Config;
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::time::Timestamp;
use pointsman_testkit::TempRepo;

use super::behaviours::contract;
use super::stage::{People, Stage};

/// Every look at it is a millisecond later.
fn clock() -> Timestamp {
    static TICKS: AtomicI64 = AtomicI64::new(1_700_000_000_000);
    Timestamp(TICKS.fetch_add(1, Ordering::Relaxed))
}

struct Ann(Arc<EmbeddedForge>);

fn stage() -> Stage {
    let (dir, seed) = (tempfile::tempdir().unwrap(), TempRepo::new());
    let paths = Paths::new(dir.path().join("state"), dir.path().join("run"));
    let config = Config { name: ProjectName::new("shop").unwrap(), ..Config::default() };
    create(&paths, &config, seed.path()).unwrap();
    let git = Git::open(paths.state()).unwrap();
    let open = || Arc::new(EmbeddedForge::open(&paths.project(&config.name), "main", &git, clock).unwrap());
    let forge = open();
    let mirror = Mirror::open_or_create(&git, &dir.path().join("mirror.git"), &forge.remote()).unwrap();
    let people = Box::new(Ann(Arc::clone(&forge)));
    let ours = EmbeddedForge::open(&paths.project(&config.name), "main", &git, clock).unwrap();
    Stage::new(Box::new(ours), people, mirror, Box::new(dir))
}

impl Ann {
    fn run(&self, command: &ForgeCommand) -> serde_json::Value {
        match run_command(&self.0, command) {
            Reply::Done { value } => value,
            Reply::Failed { message, .. } => panic!("{command:?}: {message}"),
        }
    }
}

impl People for Ann {
    fn name(&self) -> String {
        "ann".to_owned()
    }

    fn open_issue(&self, title: &str, body: &str, labels: &[&str]) -> Number {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        let (title, body, author) = (title.to_owned(), body.to_owned(), self.name());
        self.run(&ForgeCommand::CreateIssue { title, body, labels, author })["number"].as_u64().unwrap()
    }

    fn comment(&self, number: Number, body: &str) {
        self.run(&ForgeCommand::Comment { number, body: body.to_owned(), author: self.name() });
    }

    fn close_issue(&self, number: Number) {
        self.run(&ForgeCommand::SetIssueOpen { number, open: false });
    }

    fn close_pull(&self, number: Number) {
        self.run(&ForgeCommand::ClosePull { number });
    }

    fn review(&self, number: Number, verdict: ReviewVerdict, body: &str) {
        let (body, author) = (body.to_owned(), self.name());
        self.run(&ForgeCommand::Review { number, verdict, body, author, head: None });
    }
}

contract!(stage());
