//! Random attempts to leave a sandbox: paths, sockets, signals, mounts, addresses and system calls, made by an agent and by the CI of a
//! branch. Canaries outside judge them, and the same attempts reach them where there is no sandbox.
//!
//! `POINTSMAN_ATTACK_SEED` sets the seed, `POINTSMAN_ATTACKS` the number. A failure prints both.

mod canaries;
mod generator;

use std::fs;

use pointsman_testkit::{Setup, TestDaemon};

use self::canaries::Canaries;
use self::generator::{Attempt, attempts, lines};
use super::{has_perl, sandbox_works, shop};

const ATTEMPTS: usize = 200;
const SEED: u64 = 20_261_117;
const PROGRAM: &str = include_str!("../../../data/attacks/attempts.pl");

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().map_or(usual, |text| text.parse().expect("a number"))
}

/// A world with canaries, and its attempts.
struct World {
    daemon: TestDaemon,
    canaries: Canaries,
    made: Vec<Attempt>,
    seed: u64,
}

impl World {
    /// Starts a daemon, places canaries and commits the attempts.
    fn start(setup: Setup, mode: &str) -> Self {
        let seed = setting("POINTSMAN_ATTACK_SEED", SEED);
        let number = usize::try_from(setting("POINTSMAN_ATTACKS", ATTEMPTS as u64)).unwrap();
        let daemon = setup.set("sandbox.mode", &format!("{mode:?}")).file("attempts.pl", PROGRAM).start();
        let canaries = Canaries::place(&daemon, number);
        let made = attempts(seed, number, &canaries.targets);
        fs::write(daemon.checkout().join("attempts"), lines(&made, mode == "off")).unwrap();
        let git = |words: &[&str]| daemon.git_in(&daemon.checkout(), words);
        git(&["add", "attempts"]);
        git(&["commit", "--quiet", "--message=Aim"]);
        daemon.json(&["sync"]);
        Self { daemon, canaries, made, seed }
    }

    /// The attempts that a report tells, by verb, and whether each took.
    fn told<'r>(&self, report: &'r str) -> Vec<(&'r str, &'r str)> {
        let told = report.lines().filter_map(|line| line.trim().strip_prefix("attempt ")?.split_once(": "));
        told.filter_map(|(attempt, said)| Some((attempt.split_once(' ')?.1, said))).collect()
    }

    /// Nothing was reached, and everything was tried.
    fn nothing_reached(&mut self, report: &str) {
        let number = self.made.len();
        let seed = self.seed;
        assert!(report.contains(&format!("attempts made: {number}")), "seed {seed}: {report}");
        assert_eq!(self.told(report).len(), number, "seed {seed}: {report}");
        assert_eq!(self.canaries.reached(report), [""; 0], "seed {seed}: {report}");
        // What an attempt changes inside is its own, and a call that no build needs is refused.
        let took = |(verb, said): &(&str, &str)| {
            let own = ["create", "mkdir", "plant_link", "kill", "udp", "list"];
            !own.contains(verb)
                && (said.starts_with("took") || said.contains("connected") || said.contains("reached"))
        };
        let taken: Vec<_> = self.told(report).into_iter().filter(took).collect();
        assert_eq!(taken, [], "seed {seed}: {report}");
    }
}

const CI: &str = "#!/bin/bash\nperl attempts.pl attempts\ntrue\n";

const AGENT: &str = r#"
read -r greeting
perl attempts.pl attempts > report.txt 2>&1
rm -rf linked-* mounted-* taken-* l[0-9]*
git add report.txt && git commit -qm Report && git push -q origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case $line in *Merged*) echo PHASE:done > "$PHASE_FILE" ;; esac; done
"#;

/// Attempts of a branch's CI, with their report.
fn made_by_ci(mode: &str) -> (World, String) {
    let world = World::start(shop().file("ci.sh", CI), mode);
    let issue = world.daemon.file_issue("Apples", &super::clean("apples"));
    world.daemon.wait_closed(issue);
    let log = world.daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    (world, log)
}

/// Attempts of an agent, with their report.
fn made_by_agent(mode: &str) -> (World, String) {
    let world = World::start(shop().agent(AGENT), mode);
    let issue = world.daemon.file_issue_with("Try", "Try it all.");
    world.daemon.wait_closed(issue);
    let report = world.daemon.on_main("report.txt").unwrap();
    (world, report)
}

#[test]
fn e2e_sandbox_random_attempts_of_ci_reach_nothing() {
    if sandbox_works() && has_perl() {
        let (mut world, report) = made_by_ci("require");
        world.nothing_reached(&report);
    }
}

#[test]
fn e2e_sandbox_random_attempts_of_an_agent_reach_nothing() {
    if sandbox_works() && has_perl() {
        let (mut world, report) = made_by_agent("require");
        world.nothing_reached(&report);
    }
}

/// Without a sandbox the same attempts reach every canary: this is what `mode = "off"` means.
fn all_reached((mut world, report): (World, String)) {
    let reached = world.canaries.reached(&report);
    for name in ["tcp", "udp", "unix", "victims", "planted", "signals"] {
        assert!(reached.iter().any(|found| found == name), "{name}: {reached:?}: {report}");
    }
    let secrets = reached.iter().filter(|found| found.starts_with("the secret")).count();
    assert_eq!(secrets, world.canaries.secrets.len(), "{reached:?}: {report}");
    let told = world.told(&report);
    for verb in ["read", "walk", "symlink", "unix", "tcp", "call"] {
        let good =
            |said: &str| ["took", "found", "connected", "sent"].iter().any(|word| said.starts_with(word));
        assert!(told.iter().any(|(found, said)| *found == verb && good(said)), "{verb}: {report}");
    }
}

#[test]
fn e2e_sandbox_random_attempts_of_ci_reach_all_canaries_outside() {
    if has_perl() {
        all_reached(made_by_ci("off"));
    }
}

#[test]
fn e2e_sandbox_random_attempts_of_an_agent_reach_all_canaries_outside() {
    if has_perl() {
        all_reached(made_by_agent("off"));
    }
}
