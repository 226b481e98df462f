//! SIGKILL of a serving queue, at random moments and at every named place of a landing: no branch is lost, none lands
//! twice, nothing hangs, main is always a tree that the gate has passed, and no finished test runs again.
//!
//! `POINTSMAN_KILLS` says how many random ones, `POINTSMAN_SEED` which.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::queue::{GateVerdict, Record};
use pointsman_store::{EntryScope, EntryStatus, QueueEntry, Store};

use super::Rig;
use crate::e2e::torture::{Chance, number};

/// About a minute's worth.
const KILLS: u64 = 100;
/// How many branches wait at any time, at least.
const WAITING: usize = 5;
/// Before a kill, at most: after `ready`, and after something was seen to happen.
const LONGEST_PAUSE_MS: u64 = 700;
const SHORT_PAUSE_MS: u64 = 60;
/// For something to happen; nothing does if all branches are over.
const EVENT_WAIT: Duration = Duration::from_secs(2);
/// How the merge queue is worked through changes with every restart.
const WAYS: [&[&str]; 4] = [
    &["--strategy", "sequential"],
    &["--strategy", "batch", "--batch-size", "3"],
    &["--strategy", "speculative", "--depth", "3"],
    &["--strategy", "sequential", "--style", "merge"],
];
/// The places of a landing.
const PLACES: [&str; 6] = [
    "landing-tested",
    "landing-branch-pushed",
    "landing-push-remembered",
    "landing-main-pushed",
    "landing-tidied",
    "queue-reported",
];
/// Writes down what it looks at and what it passes.
const GATE: &str = "tree=$(git rev-parse 'HEAD^{tree}'); echo $tree >> \"$HOME/gates\"; \
                    ! grep -rn BUG src && echo $tree >> \"$HOME/passed\"";

#[test]
fn e2e_queue_kill_at_random_moments() {
    let kills = number("POINTSMAN_KILLS").unwrap_or(KILLS);
    let seed = number("POINTSMAN_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("queue: {kills} kills, seed {seed}");
    let mut chance = Chance(seed);
    let mut yard = Yard::new(usize::try_from(kills).unwrap() * 3 + 20);
    for _ in 0..kills {
        let way = WAYS[usize::try_from(chance.below(WAYS.len() as u64)).unwrap()];
        yard.serve(way, &[]);
        yard.keep_busy();
        let pause = match chance.below(3) {
            0 => chance.below(LONGEST_PAUSE_MS),
            1 => yard.until_changed(&mut chance, |yard| yard.rig.gates().len().to_string()),
            _ => yard.until_changed(&mut chance, Yard::main),
        };
        std::thread::park_timeout(Duration::from_millis(pause));
        yard.rig.daemon.kill_daemon();
        yard.look();
    }
    yard.finish();
    println!("queue: {} branches, {} gates", yard.added, yard.rig.gates().len());
}

#[test]
fn e2e_queue_kill_at_every_place_of_a_landing() {
    let mut yard = Yard::new(PLACES.len() * WAYS.len() * 3 + 20);
    for place in PLACES {
        for way in WAYS {
            yard.serve(way, &[("POINTSMAN_CRASH_AT", place)]);
            yard.keep_busy();
            yard.rig.daemon.wait_for_death();
            yard.look();
        }
    }
    yard.finish();
}

/// The daemon is killed while its push is under way. The next one has put another branch first and built other candidates
/// when main moves: what lands then is recorded as landed, and nobody takes it for a push past the queue.
#[test]
fn e2e_queue_a_push_that_outlives_its_daemon_is_recorded_as_landed() {
    let rig = Rig::new(super::GATE, &["--strategy", "speculative", "--depth", "3"]);
    rig.serve_with(&[("POINTSMAN_CRASH_AT", "landing-push-remembered")]);
    rig.enter("one");
    rig.daemon.wait_for_death();
    let first = rig.entry("one")["candidate_sha"].as_str().unwrap().to_owned();
    rig.push("urgent", "src/urgent.txt", "urgent\n");
    assert_eq!(rig.mq(&["add", "urgent", "--priority", "10"]).code, Some(0));
    rig.hold();
    rig.serve();
    rig.daemon.wait_for("another candidate to be built", || {
        let entry = rig.entry("one");
        (entry["candidate_sha"] != first.as_str() && entry["status"] == "testing").then_some(())
    });
    // The server is done with the push only now. The test brings the commit in its place: a git that lives on here would
    // keep the next daemon waiting.
    let home = fs::read_dir(rig.daemon.state().join("serve")).unwrap().next().unwrap().unwrap().path();
    let mirror = home.join("projects/line/mirror.git");
    rig.git(&["fetch", "--quiet", mirror.to_str().unwrap(), "+refs/pointsman/landing/*:refs/arrived/*"]);
    rig.git(&["update-ref", "refs/heads/main", &first]);
    rig.let_go();
    rig.wait("one", "landed");
    rig.wait("urgent", "landed");
    assert_eq!(rig.entry("one")["candidate_sha"], first.as_str());
    assert_eq!(rig.main_log().len(), 3);
    let status = rig.json(&["status"]);
    assert_eq!((&status["paused"], &status["direct_merges_total"]), (&false.into(), &0.into()), "{status:#}");
}

/// What a branch is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Good,
    Red,
    /// Changes the same line as all others of this kind.
    Quarrelsome,
}

fn kind(n: usize) -> Kind {
    match n % 12 {
        3 => Kind::Red,
        7 => Kind::Quarrelsome,
        _ => Kind::Good,
    }
}

fn name(n: usize) -> String {
    format!("w{n}")
}

struct Yard {
    rig: Rig,
    /// How many branches there are, and how many of them are in the merge queue or were.
    branches: usize,
    added: usize,
    options: usize,
    /// Trees with a verdict, by how often the gate had looked at anything when that was known.
    decided: BTreeMap<String, usize>,
}

impl Yard {
    fn new(branches: usize) -> Self {
        let rig = Rig::new(GATE, &["--poll", "200ms"]);
        let options = rig.serve.len();
        let yard = Self { rig, branches, added: 0, options, decided: BTreeMap::new() };
        yard.import();
        let first = yard.rig.git(&["rev-parse", "main^{tree}"]);
        fs::write(yard.rig.daemon.path("home/passed"), format!("{first}\n")).unwrap();
        yard
    }

    /// All branches at once.
    fn import(&self) {
        let mut stream = String::new();
        for n in 0..self.branches {
            let (name, text) = (name(n), format!("branch {n}\n"));
            let (file, text) = match kind(n) {
                Kind::Good => (format!("src/{name}.txt"), text),
                Kind::Red => (format!("src/{name}.txt"), "BUG\n".to_owned()),
                Kind::Quarrelsome => ("src/lemons.txt".to_owned(), text),
            };
            write!(
                stream,
                "commit refs/heads/{name}\ncommitter Ann <ann@example.invalid> {} +0000\ndata {}\n{name}\n\
                 from refs/heads/main^0\nM 100644 inline {file}\ndata {}\n{text}\n",
                1_600_000_000 + n,
                name.len() + 1,
                text.len()
            )
            .unwrap();
        }
        let mut import = Command::new("git");
        import.arg("-C").arg(&self.rig.repo).args(["fast-import", "--quiet"]).stdin(Stdio::piped());
        let mut import = import.spawn().unwrap();
        import.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
        assert!(import.wait().unwrap().success());
    }

    fn serve(&mut self, way: &[&str], env: &[(&str, &str)]) {
        self.rig.serve.truncate(self.options);
        self.rig.serve.extend(way.iter().map(|word| (*word).to_owned()));
        self.rig.serve_with(env);
    }

    /// Waits until something else is to be seen; answers how long to go on.
    fn until_changed(&self, chance: &mut Chance, look: impl Fn(&Self) -> String) -> u64 {
        let (before, deadline) = (look(self), Instant::now() + EVENT_WAIT);
        while look(self) == before && Instant::now() < deadline {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        chance.below(SHORT_PAUSE_MS)
    }

    /// Main as the repository's own file has it.
    fn main(&self) -> String {
        fs::read_to_string(format!("{}/refs/heads/main", self.rig.repo)).unwrap_or_default()
    }

    fn store(&self) -> Option<Store> {
        let home = fs::read_dir(self.rig.daemon.state().join("serve")).ok()?.next()?.ok()?;
        Store::open_read_only(&home.path().join("pointsman.db")).ok()
    }

    fn entries(&self) -> Vec<QueueEntry> {
        let project = ProjectName::new("line").unwrap();
        self.store().map(|s| s.queue_entries(&project, EntryScope::All).unwrap()).unwrap_or_default()
    }

    /// Puts branches into the merge queue. One that the queue did not live to take is brought again.
    fn keep_busy(&mut self) {
        let waiting = || self.entries().iter().filter(|entry| entry.status.is_unfinished()).count();
        let room = WAITING.saturating_sub(waiting()).min(self.branches - self.added);
        for n in self.added..self.added + room {
            let answer = self.rig.mq(&["add", &name(n)]);
            if !self.entries().iter().any(|entry| entry.branch == name(n)) {
                assert_ne!(answer.code, Some(0), "{answer:#?}");
                return;
            }
            self.added = n + 1;
        }
    }

    /// What must be true whenever nobody serves.
    fn look(&mut self) {
        let passed = fs::read_to_string(self.rig.daemon.path("home/passed")).unwrap();
        let main = self.rig.git(&["rev-parse", "main^{tree}"]);
        assert!(passed.lines().any(|tree| tree == main), "main is {main}, which the gate never passed");
        let Some(store) = self.store() else { return };
        let project = ProjectName::new("line").unwrap();
        let gate = serde_json::to_string(&["sh", "-c", GATE]).unwrap();
        let gates = self.rig.gates();
        for tree in gates.iter().collect::<BTreeSet<_>>() {
            let row = store.verdict(&project, &Sha::new(tree).unwrap(), &gate).unwrap();
            let record = row.and_then(|row| serde_json::from_value::<Record>(row.verdict).ok());
            if record
                .is_some_and(|record| matches!(record.runs.standing(), GateVerdict::Green | GateVerdict::Red))
            {
                self.decided.entry(tree.clone()).or_insert(gates.len());
            }
        }
    }

    /// Nobody is killed any more: everything ends as it should.
    fn finish(&mut self) {
        self.serve(WAYS[0], &[]);
        self.rig.daemon.wait_for("all branches to be over", || {
            self.entries().iter().all(|entry| !entry.status.is_unfinished()).then_some(())
        });
        self.look();
        let status = self.rig.json(&["status"]);
        assert_eq!(
            (&status["paused"], &status["direct_merges_total"]),
            (&false.into(), &0.into()),
            "{status:#}"
        );
        self.rig.daemon.stop_daemon();
        self.check_branches();
        self.check_gates();
    }

    fn check_branches(&self) {
        let log = self.rig.git(&["log", "--no-merges", "--format=%s", "main"]);
        let mut on_main: BTreeMap<&str, usize> = BTreeMap::new();
        for subject in log.lines() {
            *on_main.entry(subject).or_default() += 1;
        }
        let (entries, left) = (self.entries(), self.rig.branches());
        let mut quarrels = 0;
        for n in 0..self.added {
            let branch = name(n);
            let of_branch: Vec<_> = entries.iter().filter(|entry| entry.branch == branch).collect();
            assert_eq!(of_branch.len(), 1, "{branch}: {of_branch:#?}");
            let (status, times) = (of_branch[0].status, on_main.get(branch.as_str()).copied().unwrap_or(0));
            let landed = match kind(n) {
                Kind::Good => true,
                Kind::Red => false,
                Kind::Quarrelsome => status == EntryStatus::Landed,
            };
            quarrels += usize::from(landed && kind(n) == Kind::Quarrelsome);
            let expected = match kind(n) {
                _ if landed => EntryStatus::Landed,
                Kind::Good | Kind::Red => EntryStatus::Red,
                Kind::Quarrelsome => EntryStatus::Conflict,
            };
            assert_eq!(status, expected, "{branch}: {:?}", of_branch[0].reason);
            assert_eq!(times, usize::from(landed), "{branch} is {times} times on main");
            assert_eq!(left.contains(&branch), !landed, "{branch} is there or not");
        }
        assert!(quarrels <= 1, "{quarrels} branches changed the same line");
        assert!(!self.rig.git(&["show", "main:src/lemons.txt"]).contains("<<<<"));
        self.rig.git(&["fsck", "--strict", "--no-dangling"]);
    }

    /// A tree with a verdict is never tested again.
    fn check_gates(&self) {
        let gates = self.rig.gates();
        for (tree, known) in &self.decided {
            let again = gates.iter().skip(*known).filter(|other| *other == tree).count();
            assert_eq!(again, 0, "{tree} was tested again");
        }
    }
}
