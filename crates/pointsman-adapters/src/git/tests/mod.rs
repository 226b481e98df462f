//! Real git in temporary directories: a forge (bare), a mirror of it, and people and agents who use plain git.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pointsman_core::ids::Sha;
use pointsman_core::words::commit::Heading;
use tempfile::TempDir;

use super::bare::init_bare;
use super::candidate::{Candidate, Order, Style};
use super::gateway::Gateway;
use super::mirror::Mirror;
use super::push::{Change, Expect, PushRef};
use super::tree::{Tree, TreeSpec, TreeStart};
use super::{BranchName, Error, Git, RefName, UnionGlobs, Version};
use crate::process::{Finished, Run};
use crate::sandbox::{Bubblewrap, Reading};

mod candidate;
mod capture;
mod changes;
mod checkout;
mod checkpoint;
mod differential;
mod durability;
mod gateway;
mod history;
mod hostile;
mod killed_push;
mod layers;
mod links;
mod local_checkout;
mod mirror;
mod new_objects;
mod older_git;
mod rescue;
mod selection;
mod tree;
mod union;
mod warm;

/// A candidate of a branch of this name that entered the merge queue at the beginning of time.
fn build(mirror: &Mirror, style: Style, onto: &Sha, head: &Sha, name: &str) -> Result<Candidate, Error> {
    build_with(mirror, &UnionGlobs::none(), style, onto, head, name)
}

fn build_with(
    mirror: &Mirror,
    union: &UnionGlobs,
    style: Style,
    onto: &Sha,
    head: &Sha,
    name: &str,
) -> Result<Candidate, Error> {
    let heading = &Heading::Branch(name.to_owned());
    super::candidate::build(mirror, union, &Order { style, onto, head, heading, queued_at_secs: 0 })
}

/// The sandbox in which git reads what agents write, where one can be built.
fn reading() -> Option<Reading> {
    static READING: OnceLock<Option<Reading>> = OnceLock::new();
    #[allow(clippy::disallowed_methods, reason = "where the programs of this machine are")]
    let path = std::env::var_os("PATH");
    let find = || Some(Reading::new(&Bubblewrap::probe(path.as_deref()).ok()?, path.as_deref(), &[]));
    READING.get_or_init(find).clone()
}

/// A project with one commit on main.
struct World {
    root: TempDir,
    git: Git,
    mirror: Mirror,
    /// Where working trees are captured.
    captures: Mirror,
    /// A person's clone of the forge.
    person: PathBuf,
    base: Sha,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path();
        let git = Git::open(&path.join("state")).unwrap().with_reading(|| Ok(reading()));
        init_bare(&git, &path.join("forge.git"), &branch("main")).unwrap();
        let person = path.join("person");
        let remote = path.join("forge.git").to_str().unwrap().to_owned();
        let mirror = Mirror::open_or_create(&git, &path.join("mirror.git"), &remote).unwrap();
        let mut world = Self {
            captures: mirror.captures(&path.join("captures.git")).unwrap(),
            mirror,
            git,
            person: person.clone(),
            base: Sha::new(&"0".repeat(40)).unwrap(),
            root,
        };
        world.plain(world.root.path(), &["clone", "-q", "forge.git", "person"]);
        fs::write(person.join("a.txt"), lines(1..=20)).unwrap();
        fs::write(person.join(".gitignore"), "ignored\n").unwrap();
        world.base = world.commit(&person, "first");
        world.plain(&person, &["push", "-q", "origin", "HEAD:main"]);
        world.mirror.fetch_remote().unwrap();
        world
    }

    /// The mirror as it is used with a git that cannot be told how to merge.
    fn older_mirror(&self) -> Mirror {
        let mut mirror = self.mirror.clone();
        mirror.git.version = Arc::new(OnceLock::from(Version::parse("git version 2.39.5")));
        mirror
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Git as anybody would run it, with the configuration of whatever repository it is in.
    fn try_plain(&self, dir: &Path, args: &[&str]) -> Finished {
        Run::new("git")
            .args(args)
            .cwd(dir)
            .inherit(&["PATH"])
            .env("HOME", self.root.path())
            .env("GIT_AUTHOR_NAME", "Ann Author")
            .env("GIT_AUTHOR_EMAIL", "ann@example.org")
            .env("GIT_COMMITTER_NAME", "Carl Committer")
            .env("GIT_COMMITTER_EMAIL", "carl@example.org")
            .finish()
            .unwrap()
    }

    fn plain(&self, dir: &Path, args: &[&str]) -> String {
        let done = self.try_plain(dir, args);
        assert!(done.end.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    /// Commits everything in a clone and answers the commit.
    fn commit(&self, dir: &Path, message: &str) -> Sha {
        self.plain(dir, &["add", "-A"]);
        self.plain(dir, &["commit", "-q", "--allow-empty", "-m", message]);
        self.head(dir)
    }

    fn head(&self, dir: &Path) -> Sha {
        Sha::new(&self.plain(dir, &["rev-parse", "HEAD"])).unwrap()
    }

    /// A commit on a branch of the forge, fetched into the mirror.
    fn commit_on(&self, name: &str, start: &Sha, files: &[(&str, &str)]) -> Sha {
        self.plain(&self.person, &["checkout", "-q", "-B", name, start.as_str()]);
        for (file, text) in files {
            fs::create_dir_all(self.person.join(file).parent().unwrap()).unwrap();
            fs::write(self.person.join(file), text).unwrap();
        }
        self.commit_on_current(name)
    }

    /// Commits what the person has there, on a branch of the forge, and fetches it into the mirror.
    fn commit_on_current(&self, name: &str) -> Sha {
        let sha = self.commit(&self.person, &format!("change on {name}"));
        self.publish(name);
        sha
    }

    /// Pushes the person's branch and fetches it into the mirror.
    fn publish(&self, name: &str) {
        self.plain(&self.person, &["push", "-q", "--force", "origin", &format!("HEAD:refs/heads/{name}")]);
        self.mirror.fetch_remote().unwrap();
    }

    fn gateway(&self, name: &str) -> Gateway {
        Gateway::create(&self.mirror, &self.path("gateway.git"), &branch(name)).unwrap()
    }

    fn spec<'a>(&'a self, gateway: &'a Gateway) -> TreeSpec<'a> {
        TreeSpec {
            dir: self.path("tree"),
            mirror: &self.mirror,
            gateway,
            branch: gateway.branch().clone(),
            primary: branch("main"),
            base: self.base.clone(),
            user_name: "dev \"quoted\" \\ bot".to_owned(),
            user_email: "dev@localhost".to_owned(),
            exclude: vec![".agent-claim.json".to_owned()],
            linked: false,
            start: TreeStart::Work,
            spare: None,
        }
    }

    fn tree(&self) -> PathBuf {
        Tree::create(&self.spec(&self.gateway("task"))).unwrap().dir
    }

    /// A program that leaves a mark when it is run.
    fn trap(&self) -> Trap {
        let (script, mark) = (self.path("trap"), self.path("sprung"));
        fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Trap { script: script.to_str().unwrap().to_owned(), mark }
    }
}

struct Trap {
    script: String,
    mark: PathBuf,
}

impl Trap {
    /// Sets every way we know in which a repository makes git run a program.
    fn arm(&self, world: &World, repository: &Path) {
        for key in [
            "core.fsmonitor",
            "core.sshCommand",
            "core.pager",
            "core.editor",
            "diff.external",
            "diff.trap.textconv",
            "diff.trap.command",
            "filter.trap.clean",
            "filter.trap.smudge",
            "filter.trap.process",
            "merge.trap.driver",
            "uploadpack.packObjectsHook",
            "credential.helper",
            "gpg.program",
        ] {
            world.plain(repository, &["config", key, &self.script]);
        }
        let git_dir = PathBuf::from(world.plain(repository, &["rev-parse", "--absolute-git-dir"]));
        let hooks = git_dir.join("hooks");
        fs::create_dir_all(&hooks).unwrap();
        for hook in [
            "post-checkout",
            "post-index-change",
            "reference-transaction",
            "pre-push",
            "post-commit",
            "update",
        ] {
            fs::copy(&self.script, hooks.join(hook)).unwrap();
        }
        world.plain(repository, &["config", "core.hooksPath", hooks.to_str().unwrap()]);
        let _ = fs::remove_file(&self.mark);
    }

    fn sprung(&self) -> Option<String> {
        fs::read_to_string(&self.mark).ok()
    }
}

/// A push that moves main from one commit to another.
fn to_main(sha: &Sha, from: &Sha) -> [PushRef; 1] {
    let (change, expect) = (Change::To(sha.clone()), Expect::At(from.clone()));
    [PushRef { refname: branch("main").full(), change, expect }]
}

fn branch(name: &str) -> BranchName {
    BranchName::new(name).unwrap()
}

fn reference(name: &str) -> RefName {
    RefName::new(name).unwrap()
}

fn lines(numbers: std::ops::RangeInclusive<u32>) -> String {
    numbers.map(|n| format!("line {n}\n")).collect()
}
