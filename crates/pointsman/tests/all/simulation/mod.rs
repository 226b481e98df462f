//! The real core, the real store and the real effect runner in a pretended world, on one thread and
//! from one seed.
//!
//! A run has two acts. In the first, everything goes wrong that can: crashes between any two steps,
//! a full disk, a clock that jumps, a forge that does not answer, agents that die, hang or lie,
//! people who do as they please. In the second, everybody is honest, and every issue has to come to
//! its end. `reality` is the world, `daemon` the machine around the engine, `sources`, `hooks`, `landing`, `vault`,
//! `hand_ins`, `roles`, `notices` and `people` what reaches it or leaves it, `ledger` the promises, `played` the count of events and crashes: one that the usual seeds never
//! play fails.
//!
//! `POINTSMAN_SIMULATIONS` is how many seeds are run, `POINTSMAN_SEED` runs one again, and
//! `POINTSMAN_TRACE` says how many of the last steps a failure shows.

pub(crate) mod chance;
mod concerns;
mod daemon;
mod hand_ins;
mod hooks;
mod landing;
mod ledger;
mod notices;
mod people;
mod played;
mod reality;
mod roles;
mod sources;
mod story;
mod trace;
mod vault;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chance::Chance;
use daemon::Daemon;
use played::Played;
use pointsman_core::time::Timestamp;
use pointsman_store::Change;
use reality::{Pretended, Reality};
use story::Story;
use trace::Trace;

/// How many seeds are run if nobody says otherwise.
const SIMULATIONS: u64 = 80;
/// Runs at the same time.
const THREADS: usize = 2;
/// Steps of the first act.
const STEPS: usize = 600;
/// Rounds of the second act in which everything must have come to its end.
const ROUNDS: u32 = 600;
/// Seeds begin here, so that a printed one is recognised.
const FIRST_SEED: u64 = 1_000;

#[test]
fn whatever_goes_wrong_nothing_is_lost_or_doubled_and_everything_ends() {
    let number = |name: &str| std::env::var(name).ok().map(|v| v.parse::<u64>().expect(name));
    let seeds = match number("POINTSMAN_SEED") {
        Some(seed) => seed..seed + 1,
        None => FIRST_SEED..FIRST_SEED + number("POINTSMAN_SIMULATIONS").unwrap_or(SIMULATIONS),
    };
    let (next, played) = (AtomicU64::new(seeds.start), Played::default());
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut failures = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::SeqCst);
                if !seeds.contains(&seed) || !failures.is_empty() {
                    return failures;
                }
                failures.extend(run(seed, &played).err());
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("runs catch their panics")).collect()
    });
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    let (table, missing) = played.report();
    println!("{table}");
    let few = seeds.end - seeds.start < SIMULATIONS;
    assert!(few || missing.is_empty(), "never played: {missing:#?}\n{table}");
}

#[test]
fn a_seed_decides_everything() {
    let play = |trace: &Trace| play(FIRST_SEED, trace, &Played::default());
    let (one, other) = (Trace::default(), Trace::default());
    play(&one);
    play(&other);
    assert_eq!(one.text(), other.text());
}

fn run(seed: u64, played: &Played) -> Result<(), String> {
    let trace = Trace::default();
    catch_unwind(AssertUnwindSafe(|| play(seed, &trace, played))).map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let why = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
        format!(
            "seed {seed}: {why}\n\nThe last steps:\n{}\nAgain with:\n  \
             POINTSMAN_SEED={seed} cargo test -p pointsman --test all simulation\n",
            trace.text()
        )
    })
}

fn play(seed: u64, trace: &Trace, played: &Played) {
    let directory = directory();
    let mut chance = Chance::new(seed);
    let story = Story::tell(&mut chance);
    let reality = Reality::new(story, chance, trace.clone(), played.clone());
    let mut daemon = Daemon::start(Pretended::new(reality), directory.path().join("pointsman.db"));
    for _ in 0..STEPS {
        anything(&mut daemon);
    }
    trace.say("CALM");
    daemon.reality().calm = true;
    for round in 0..ROUNDS {
        if everything(&mut daemon, round) {
            return;
        }
    }
    let (tasks, runs) = (daemon.tasks(), daemon.runs());
    panic!("still not over after {ROUNDS} calm rounds: {tasks:#?} {runs:#?}");
}

/// One step of the first act.
fn anything(daemon: &mut Daemon) {
    let step = daemon.reality().chance.below(139);
    match step {
        100..103 => daemon.somebody_acts_on_the_vault(),
        103..106 => daemon.somebody_acts_on_runs(),
        106..109 => daemon.look_at_runs(),
        109..116 => runs_act(daemon),
        116..119 => daemon.hear_of_a_session(),
        119..122 => daemon.check_hand_ins(),
        122..124 => daemon.somebody_acts_on_hand_ins(),
        124..127 => daemon.something_concerns_people(),
        127..137 => daemon.something_happens_to_roles(),
        137..139 => daemon.drop_a_notice(),
        0..8 => daemon.tick(),
        8..14 => daemon.hand_out(),
        14..20 => daemon.perform_one(),
        20..28 => daemon.take_some(),
        28..54 => work(daemon),
        54..59 => daemon.poll_forge(),
        59..67 => daemon.look_at_phases(),
        67 => daemon.look_for_exits(),
        68 => daemon.measure_contexts(),
        69 => daemon.look_for_idle(),
        70..80 => agents_act(daemon),
        80..85 => daemon.run_checks(),
        85..90 => daemon.land(),
        90..94 => daemon.somebody_acts(),
        94..97 => pass_time(daemon),
        97 if daemon.reality().fault(1) => kill_somebody(daemon),
        98 if daemon.reality().fault(1) => daemon.fill_disk(),
        99 if daemon.reality().fault(1) => daemon.crash("between two steps"),
        _ => daemon.review_something(),
    }
}

/// The daemon's own loop goes round a few times, with a chance to die at every turn.
fn work(daemon: &mut Daemon) {
    let turns = 1 + daemon.reality().chance.below(5);
    for _ in 0..turns {
        daemon.hand_out();
        if daemon.may_crash("after effects were handed out", 100) {
            return;
        }
        daemon.perform_one();
        if daemon.may_crash("after an effect was performed", 100) {
            return;
        }
        daemon.take_some();
    }
}

/// One round of the second act: everybody does their part once. True when all is over.
fn everything(daemon: &mut Daemon, round: u32) -> bool {
    daemon.poll_forge();
    daemon.look_at_phases();
    daemon.look_for_exits();
    daemon.look_at_runs();
    daemon.run_checks();
    daemon.check_hand_ins();
    daemon.take_all();
    daemon.land();
    daemon.take_all();
    daemon.everybody_helps(round);
    daemon.everybody_decides();
    daemon.everybody_settles_hand_ins();
    daemon.everybody_is_relieved();
    daemon.everybody_answers_roles();
    daemon.everybody_grants();
    let busy = daemon.reality().busy_agents();
    for issue in busy {
        daemon.reality().agent_acts(issue);
    }
    let busy = daemon.reality().busy_runs();
    for key in busy {
        daemon.run_acts(&key);
    }
    daemon.tick();
    daemon.hand_out();
    while !daemon.memory.workers.is_empty() {
        daemon.perform_one();
    }
    daemon.take_all();
    let is_idle = |reality: &Reality| reality.busy_agents().is_empty() && reality.busy_runs().is_empty();
    let nobody_acts = is_idle(&daemon.reality());
    let idle = nobody_acts && !daemon.has_to_land();
    let next = daemon.next_time();
    let soon = daemon.reality().now.after(Duration::from_secs(1));
    // Only when nobody has anything to do does the clock go to the next deadline.
    daemon.reality().now = next.filter(|_| idle && round % 8 == 7).map_or(soon, |next| next.max(soon));
    let tasks = daemon.tasks();
    let over = tasks.is_empty() || tasks.iter().all(|task| daemon.reality().is_at_rest(task));
    let all_closed = daemon.reality().issues.values().all(|issue| !issue.open);
    let settled = daemon.next_time().is_none();
    let ended =
        over && all_closed && settled && daemon.are_runs_and_actions_over() && daemon.are_roles_over();
    if ended {
        daemon.check_roles();
        daemon.check_notices();
        daemon.look_at_the_end();
    }
    ended
}

fn agents_act(daemon: &mut Daemon) {
    let mut reality = daemon.reality();
    let busy = reality.busy_agents();
    if !busy.is_empty() {
        let issue = *reality.chance.pick(&busy);
        reality.agent_acts(issue);
    }
}

fn runs_act(daemon: &mut Daemon) {
    let busy = daemon.reality().busy_runs();
    if !busy.is_empty() {
        let key = daemon.reality().chance.pick(&busy).clone();
        daemon.run_acts(&key);
    }
}

/// A live session's process goes.
fn kill_somebody(daemon: &mut Daemon) {
    let mut reality = daemon.reality();
    let live = reality.live_agents();
    if !live.is_empty() {
        let issue = *reality.chance.pick(&live);
        reality.trace.say(format!("the session of #{issue} is killed"));
        reality.agent_dies(issue);
    }
}

/// Mostly forwards.
fn pass_time(daemon: &mut Daemon) {
    let next = daemon.next_time();
    let mut reality = daemon.reality();
    let span = reality.chance.weighted(&[
        (30, 300),
        (30, 3_000),
        (20, 60_000),
        (6, 3_600_000),
        (1, 90_000_000),
        (4, -60_000),
        (2, -7_200_000),
        (20, 0),
    ]);
    let now = match (span, next) {
        (0, Some(next)) => next.max(reality.now),
        (span, _) => Timestamp(reality.now.0 + span),
    };
    reality.trace.say(format!("time goes from {} to {}", reality.now.0, now.0));
    let by_ms = now.0 - reality.now.0;
    reality.now = now;
    let asleep = by_ms.abs() >= 60_000 && reality.chance.below(2) == 0;
    drop(reality);
    if asleep {
        daemon.write("sleep", |engine| engine.skip_time(by_ms, Change::quiet(now, Vec::new()), now));
    }
}

/// In memory if the machine has such a place: a run is thousands of small transactions.
fn directory() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory for the database")
}
