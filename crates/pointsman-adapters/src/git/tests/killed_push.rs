//! SIGKILL in the middle of a push, again and again: main is old or new, and the next push succeeds.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pointsman_core::ids::Sha;
use rustix::process::{Pid, Signal, kill_process};

use super::differential::random::Random;
use super::{World, branch, to_main};
use crate::git::push::PushOutcome;
use crate::git::{Locks, clear_dead_locks};

/// As many as fit, and never more.
const KILLS: usize = 60;
const LONGEST: Duration = Duration::from_secs(10);
/// A killed process is gone at once, but not in no time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Commits in a row, in the mirror only.
fn row(world: &World, count: usize) -> Vec<Sha> {
    let mut stream = String::new();
    for n in 0..count {
        let time = 1_700_000_000 + n;
        stream +=
            &format!("commit refs/row/main\nmark :{}\ncommitter T <t@t> {time} +0000\ndata 1\nx\n", n + 1);
        if n == 0 {
            stream += &format!("from {}\n", world.base);
        }
        stream += &format!("M 100644 inline n\ndata {}\n{n}\n", n.to_string().len());
    }
    world.mirror.call("fast-import").args(["--quiet"]).stdin(stream).ok().unwrap();
    let listed = world
        .plain(world.mirror.dir(), &["rev-list", "--reverse", "refs/row/main", &format!("^{}", world.base)]);
    listed.lines().filter_map(Sha::new).collect()
}

/// Waits for this to be so; there is no event for the end of a process that is not our child.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Clears what the dead left, once they are dead.
fn clear(world: &World) -> Vec<PathBuf> {
    let mut cleared = Vec::new();
    wait_until("somebody holds a lock", || match clear_dead_locks(&world.path("forge.git")).unwrap() {
        Locks::None => true,
        Locks::Cleared(locks) => {
            cleared = locks;
            true
        }
        Locks::InUse { .. } => false,
    });
    cleared
}

#[test]
fn after_a_killed_push_main_is_old_or_new_and_the_next_push_succeeds() {
    let world = World::new();
    let commits = row(&world, 2 * KILLS + 1);
    let begun = Instant::now();
    let push = |to: &Sha, from: &Sha| world.mirror.push(&to_main(to, from));
    assert_eq!(push(&commits[0], &world.base).unwrap(), PushOutcome::Done);
    let usual = begun.elapsed();

    let mut random = Random::new(4);
    let mut main = commits[0].clone();
    let (mut killed, mut moved, mut locks) = (0, 0, Vec::new());
    for next in commits[1..].chunks_exact(2) {
        if begun.elapsed() > LONGEST {
            break;
        }
        let delay = usual.mul_f64(random.below(1000) as f64 / 1000.0);
        let everybody = random.percent(50);
        let (done, wait) = channel::<()>();
        let outcome = std::thread::scope(|scope| {
            let pushing = scope.spawn(|| {
                let outcome = push(&next[0], &main);
                drop(done);
                outcome
            });
            if wait.recv_timeout(delay) == Err(RecvTimeoutError::Timeout) {
                // Ours alone: they are found by the configuration file that lies in this test's directory.
                let alive = world.git.alive();
                let victims = if everybody { &alive[..] } else { &alive[..alive.len().min(1)] };
                for pid in victims {
                    let pid = Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            pushing.join().unwrap()
        });
        let there =
            world.mirror.remote_refs([&branch("main").full()].into_iter()).unwrap()[0].clone().unwrap();
        assert!(there == main || there == next[0], "main is at {there}");
        match outcome {
            Ok(PushOutcome::Done) => assert_eq!(there, next[0]),
            Ok(PushOutcome::Refused { .. }) | Err(_) => killed += 1,
            Ok(stale @ PushOutcome::Stale { .. }) => panic!("nobody else pushes: {stale:?}"),
        }
        moved += u32::from(there == next[0]);
        locks.extend(clear(&world));
        assert_eq!(push(&next[1], &there).unwrap(), PushOutcome::Done, "after a kill");
        main = next[1].clone();
    }
    println!("{killed} killed, {moved} had moved main, locks left: {locks:?}");
    assert!(killed > 0, "no push was hit");
    world.plain(&world.path("forge.git"), &["fsck", "--connectivity-only", "--no-dangling"]);
}
