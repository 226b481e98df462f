use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::chat::{Command, Reply};
use crate::config::Config;
use crate::ids::{Number, ProjectName, Sha, TaskKey};
use crate::part::question::{self, Cause, Question};
use crate::task::{Contribution, State, Task};
use crate::time::Timestamp;
use crate::words::health as words;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn ago(seconds: u64) -> Timestamp {
    Timestamp(NOW.0 - i64::try_from(seconds).unwrap() * 1000)
}

fn config() -> Config {
    Config::parse("name = \"shop\"", "pointsman.toml").unwrap()
}

fn task(issue: Number, state: State, seconds: u64) -> Task {
    let key = TaskKey { project: ProjectName::try_from("shop".to_owned()).unwrap(), issue };
    let mut task = Task::new(key, "Apples".into(), "pointsman/issue-1".into(), ago(seconds));
    task.state = state;
    let head = Sha::new(&"a".repeat(40)).unwrap();
    task.contribution = Contribution::at("pointsman/issue-1".into(), head, Some(issue + 100));
    task
}

fn escalated(issue: Number, cause: Cause) -> Task {
    let mut task = task(issue, State::Escalated, 60);
    let policy = question::Policy { remind: Duration::from_secs(60), timeout: Duration::from_secs(3600) };
    task.escalation =
        Some(Question::ask(question::Kind::Question, cause, task.source(), "?", &policy, ago(60)));
    task
}

/// A machine and a project in the best of health.
fn well() -> Facts {
    Facts {
        machine: Machine {
            free_memory_mb: Some(4000),
            used_swap_mb: Some(0),
            disks: vec![disk(40)],
            load_centi: Some(50),
            load15_centi: Some(50),
            cores: Some(2),
            containers: Some(0),
            unhealthy_containers: Some(Vec::new()),
        },
        daemon: true,
        issues: Some(Vec::new()),
        log_errors: Some(Vec::new()),
        ..Facts::default()
    }
}

fn disk(used_percent: u64) -> Disk {
    Disk { path: "/state".into(), used_percent, free_mb: 900 }
}

fn repeated(count: u64) -> LogError {
    LogError { text: "not written yet".into(), count }
}

fn issue(number: Number, days: u64, dependencies: &[Number]) -> OpenIssue {
    OpenIssue { number, created_at: ago(days * 86_400), dependencies: dependencies.to_vec() }
}

fn found(facts: &Facts) -> Vec<String> {
    let assessment = assess(facts, &config(), &BTreeSet::new(), NOW);
    let line = |finding: &Finding| format!("{} {}", finding.priority(), words::finding(finding, NOW));
    assessment.findings.iter().map(line).collect()
}

fn with(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = well();
    change(&mut facts);
    facts
}

/// The seed's alert priorities with the thresholds of the configuration.
#[test]
fn the_rules() {
    let session = |gone, seconds| SessionFact {
        session: "dev-shop-3.2".into(),
        issue: Some(3),
        last_seen: ago(seconds),
        gone,
    };
    let cases: Vec<(&str, Facts, &[&str])> = vec![
        ("well", well(), &[]),
        ("500 MB are enough", with(|f| f.machine.free_memory_mb = Some(500)), &[]),
        (
            "P0 memory crisis",
            with(|f| f.machine.free_memory_mb = Some(499)),
            &["P0 only 499 MB of memory are free"],
        ),
        ("3 GB of swap are allowed", with(|f| f.machine.used_swap_mb = Some(3072)), &[]),
        (
            "P0 swap above 3 GB",
            with(|f| f.machine.used_swap_mb = Some(3073)),
            &["P0 3073 MB are swapped out"],
        ),
        ("80 % are allowed", with(|f| f.machine.disks = vec![disk(80)]), &[]),
        (
            "P1 disk",
            with(|f| f.machine.disks = vec![disk(81)]),
            &["P1 the disk of /state is 81 % full, 900 MB are left"],
        ),
        ("CI has time", with(|f| f.tasks = vec![task(3, State::AwaitingCi, 1799)]), &[]),
        (
            "P2 stuck CI",
            with(|f| f.tasks = vec![task(3, State::AwaitingCi, 1801)]),
            &["P2 #3: CI has given no result for 30m"],
        ),
        (
            "P2 CI that a person was asked about",
            with(|f| f.tasks = vec![escalated(3, Cause::Ci), task(4, State::Working, 5)]),
            &["P2 #3: CI has given no result for 1m"],
        ),
        ("a dead process is brought back first", with(|f| f.sessions = vec![session(true, 299)]), &[]),
        ("silence is no death", with(|f| f.sessions = vec![session(false, 99_999)]), &[]),
        (
            "P2 dead agent",
            with(|f| f.sessions = vec![session(true, 301)]),
            &["P2 session dev-shop-3.2 is dead, last seen 5m 1s ago"],
        ),
        (
            "P2 stalled: nothing lands",
            with(|f| f.line_stopped = Some("a foreign commit".into())),
            &["P2 nothing lands: a foreign commit"],
        ),
        (
            "P2 stalled: everything waits for a person",
            with(|f| f.tasks = vec![escalated(3, Cause::Agent)]),
            &["P2 everything waits for a person: #3"],
        ),
        (
            "P2 stalled: the forge",
            with(|f| f.forge_silent_since = Some(ago(3601))),
            &["P2 the forge has not answered for 1h"],
        ),
        ("two cores may have a load of 16", with(|f| f.machine.load15_centi = Some(1600)), &[]),
        ("a minute is no load", with(|f| f.machine.load_centi = Some(9999)), &[]),
        (
            "P3 load",
            with(|f| f.machine.load15_centi = Some(1601)),
            &["P3 the load was 16.01 over 15 minutes, on 2 cores"],
        ),
        (
            "P3 containers",
            with(|f| f.machine.unhealthy_containers = Some(vec!["db\u{1b}[2J".into(), "web".into()])),
            &["P3 containers are unhealthy: db, web"],
        ),
        ("nine errors", with(|f| f.log_errors = Some(vec![repeated(9)])), &[]),
        (
            "P3 the daemon logged",
            with(|f| f.log_errors = Some(vec![repeated(10)])),
            &["P3 the daemon logged this 10 times within an hour: not written yet"],
        ),
        (
            "P3 degraded: no review",
            with(|f| f.tasks = vec![task(3, State::AwaitingReview, 10_801)]),
            &["P3 pull request #103 of #3 has made no progress for 3h"],
        ),
        (
            "P3 degraded: does not land",
            with(|f| f.tasks = vec![task(3, State::MergeQueue, 3601)]),
            &["P3 pull request #103 of #3 has made no progress for 1h"],
        ),
        (
            "P3 blocked",
            with(|f| f.tasks = vec![task(3, State::Blocked, 600)]),
            &["P3 #3 has been blocked for 10m"],
        ),
        (
            "P3 circular dependencies",
            with(|f| f.issues = Some(vec![issue(1, 1, &[2]), issue(2, 1, &[3]), issue(3, 1, &[1])])),
            &["P3 issues wait for each other: #1, #2, #3"],
        ),
        (
            "P3 stale dependencies, open for more than 30 days",
            with(|f| f.issues = Some(vec![issue(1, 31, &[]), issue(2, 30, &[]), issue(3, 1, &[1, 2])])),
            &["P3 #3 wait for #1, which has been open for 31 days"],
        ),
        (
            "P4 housekeeping",
            with(|f| f.leftovers = Leftovers { locks: vec!["x".into()], trees: vec![9], old_logs: 2 }),
            &[
                "P4 1 stale lock files of git are left",
                "P4 2 logs are older than health.keep",
                "P4 #9 is over, but its working tree still exists",
            ],
        ),
        ("no daemon and nothing to do", with(|f| f.daemon = false), &[]),
        (
            "P2 no daemon, and work",
            with(|f| {
                (f.daemon, f.tasks) = (false, vec![task(3, State::Working, 5), task(4, State::Closed, 5)])
            }),
            &["P2 no daemon is running, and a task is open"],
        ),
        (
            "P3 a notifier",
            with(|f| f.ill_notifiers = vec!["matrix".into()]),
            &["P3 the notifier matrix does not work"],
        ),
    ];
    for (what, facts, expected) in cases {
        assert_eq!(found(&facts), expected, "{what}");
    }
}

#[test]
fn work_that_could_begin_and_does_not() {
    let mut ready = task(3, State::Backlog, 3601);
    ready.ready = true;
    let cases: [(&str, Facts, usize); 5] = [
        ("an hour", with(|f| f.tasks = vec![ready.clone()]), 1),
        ("it is taken", with(|f| f.tasks = vec![ready.clone(), task(4, State::Working, 9)]), 0),
        ("not ready", with(|f| f.tasks = vec![Task { ready: false, ..ready.clone() }]), 0),
        ("a budget", with(|f| (f.tasks, f.held_back) = (vec![ready.clone()], Some("money".into()))), 0),
        ("just now", with(|f| f.tasks = vec![Task { since: ago(10), ..ready.clone() }]), 0),
    ];
    for (what, facts, count) in cases {
        assert_eq!(found(&facts).len(), count, "{what}");
    }
}

#[test]
fn what_nobody_knows_is_neither_well_nor_ill() {
    let assessment = assess(&Facts::default(), &config(), &BTreeSet::new(), NOW);
    assert_eq!(assessment.findings, []);
    assert_eq!(
        assessment.unknown,
        ["memory", "swap", "disk", "load", "containers", "log", "issues", "forge"]
    );
}

#[test]
fn a_figure_that_hovers_does_not_come_and_go() {
    let keys = |facts: &Facts, before: &[&str]| -> Vec<String> {
        let before = before.iter().map(ToString::to_string).collect();
        assess(facts, &config(), &before, NOW).findings.iter().map(Finding::key).collect()
    };
    let disk_at = |percent| with(|f| f.machine.disks = vec![disk(percent)]);
    assert_eq!(keys(&disk_at(80), &[]), [""; 0]);
    assert_eq!(keys(&disk_at(79), &["disk:/state"]), ["disk:/state"]);
    assert_eq!(keys(&disk_at(78), &["disk:/state"]), [""; 0]);
    let memory_at = |free| with(|f| f.machine.free_memory_mb = Some(free));
    assert_eq!(keys(&memory_at(549), &["memory"]), ["memory"]);
    assert_eq!(keys(&memory_at(550), &["memory"]), [""; 0]);
    let swap_at = |used| with(|f| f.machine.used_swap_mb = Some(used));
    assert_eq!(keys(&swap_at(2800), &["swap"]), ["swap"]);
    assert_eq!(keys(&swap_at(2700), &["swap"]), [""; 0]);
    let load_at = |load| with(|f| f.machine.load15_centi = Some(load));
    assert_eq!(keys(&load_at(1500), &["load"]), ["load"]);
    assert_eq!(keys(&load_at(1440), &["load"]), [""; 0]);
}

#[test]
fn every_remedy_is_ordered_once_and_none_for_what_needs_a_person() {
    let findings = [
        Finding::LocksLeft { count: 2 },
        Finding::ForgeSilent { since: NOW },
        Finding::NothingBegins { issue: 3, since: NOW },
        Finding::TreeLeft { issue: 9 },
        Finding::LogsOld { count: 4 },
        Finding::MemoryLow { free_mb: 1 },
        Finding::AgentDead { session: "dev-shop-3.1".into(), issue: Some(3), since: NOW },
    ];
    let expected =
        [Remedy::ClearLocks, Remedy::PutAwayTree { issue: 9 }, Remedy::PruneLogs, Remedy::AskForge];
    assert_eq!(remedies(&findings), expected);
}

fn disk_full() -> Finding {
    Finding::DiskFull { path: "/state".into(), used_percent: 91, free_mb: 10 }
}

fn blocked(issue: Number) -> Finding {
    Finding::TaskBlocked { issue, since: ago(60) }
}

#[test]
fn people_are_told_what_changed_and_nothing_twice() {
    let config = config();
    let look = |before: &Memory, findings: &[Finding], now| report(before, findings, &config, now);
    let quiet = look(&Memory::default(), &[], NOW);
    assert_eq!((quiet.told, quiet.changed, quiet.ask.len()), (None, false, 0));

    let first = look(&Memory::default(), &[disk_full()], NOW);
    let told = first.told.unwrap();
    assert_eq!((told.new.len(), told.urgent, told.repeat, first.changed), (1, true, 0, true));
    let fuller = Finding::DiskFull { path: "/state".into(), used_percent: 92, free_mb: 5 };
    let second = look(&first.memory, std::slice::from_ref(&fuller), NOW.after(Duration::from_secs(1200)));
    assert_eq!((second.told, second.changed), (None, false), "the same trouble with another figure");

    let third = look(&second.memory, &[disk_full(), blocked(3)], NOW.after(Duration::from_secs(2400)));
    let told = third.told.unwrap();
    assert_eq!((told.new, told.standing, told.urgent), (vec![blocked(3)], vec![disk_full()], false));

    let later = NOW.after(Duration::from_secs(2400 + 6 * 3600));
    let reminded = look(&third.memory, &[disk_full(), blocked(3)], later);
    let told = reminded.told.unwrap();
    assert_eq!((told.urgent, told.repeat, reminded.changed), (true, 1, false), "asked again after 6 h");

    let over = look(&reminded.memory, &[], later);
    let told = over.told.unwrap();
    assert_eq!((told.gone, told.urgent), (vec![disk_full(), blocked(3)], false));
    assert_eq!(look(&over.memory, &[], later).told, None);
    let only_degraded = look(&Memory::default(), &[blocked(3)], NOW);
    let much_later = NOW.after(Duration::from_secs(99 * 3600));
    assert_eq!(look(&only_degraded.memory, &[blocked(3)], much_later).told, None, "P3 is told once");
}

#[test]
fn what_people_want_ignored_is_ignored_for_a_while() {
    let config = config();
    let before =
        Memory { ignored: [(Kind::Disk, NOW.after(Duration::from_secs(60)))].into(), ..Memory::default() };
    let ignored = report(&before, &[disk_full()], &config, NOW);
    assert_eq!((ignored.told, ignored.changed), (None, true), "the journal has it all the same");
    let later = NOW.after(Duration::from_secs(61));
    let heard = report(&ignored.memory, &[disk_full()], &config, later);
    assert!(heard.told.is_some_and(|told| told.urgent));
    assert!(heard.memory.ignored.is_empty());

    // Told, and then no longer wanted: that is not the same as well again.
    let mut told = heard.memory;
    told.ignored.insert(Kind::Disk, later.after(Duration::from_secs(60)));
    let quiet = report(&told, &[disk_full()], &config, later);
    assert_eq!(quiet.told, None);
    let over = report(&quiet.memory, &[], &config, later);
    assert_eq!(over.told.map(|told| told.gone), Some(vec![disk_full()]));
    let again = report(&quiet.memory, &[disk_full()], &config, later.after(Duration::from_secs(6 * 3600)));
    assert_eq!(
        again.told.map(|told| (told.urgent, told.repeat)),
        Some((true, 1)),
        "it stands, and is heard again"
    );
}

#[test]
fn a_model_is_asked_once_about_what_no_recipe_covers() {
    let config = config();
    let findings = [disk_full(), blocked(3), Finding::LocksLeft { count: 1 }];
    let first = report(&Memory::default(), &findings, &config, NOW);
    assert_eq!(first.ask, [blocked(3)], "neither the machine nor what a recipe covers");
    let mut memory = first.memory;
    memory.judged.insert(blocked(3).key(), NOW);
    let second = report(&memory, &findings, &config, NOW);
    assert_eq!(second.ask, []);
    let gone = report(&second.memory, &[], &config, NOW);
    let soon = report(&gone.memory, &findings, &config, NOW.after(Duration::from_secs(3600)));
    assert_eq!(soon.ask, [], "it comes and goes, and each question costs");
    let day = NOW.after(Duration::from_secs(24 * 3600));
    assert_eq!(report(&gone.memory, &findings, &config, day).ask, [blocked(3)], "it came back");
}

#[test]
fn what_comes_and_goes_is_told_once_a_day_unless_it_is_urgent() {
    let config = config();
    let told = |found: [Finding; 1]| {
        let mut memory = Memory::default();
        let looks = (0..8).map(|look| {
            let findings = if look % 2 == 0 { found.to_vec() } else { Vec::new() };
            let report = report(&memory, &findings, &config, NOW.after(Duration::from_secs(look * 1200)));
            memory = report.memory;
            report.told.is_some()
        });
        looks.collect::<Vec<bool>>()
    };
    assert_eq!(told([blocked(3)]), [true, true, false, false, false, false, false, false]);
    assert_eq!(told([disk_full()]), [true; 8]);
    let first = report(&Memory::default(), &[blocked(3)], &config, NOW);
    let gone = report(&first.memory, &[], &config, NOW);
    let day = NOW.after(Duration::from_secs(24 * 3600));
    assert!(report(&gone.memory, &[blocked(3)], &config, day).told.is_some());
}

/// The seed's words: "ignore disk warning", "kill that agent", "what's stuck?".
#[test]
fn answers_of_people() {
    let config = config();
    let dead = |issue: Number| Finding::AgentDead {
        session: format!("dev-shop-{issue}.1"),
        issue: Some(issue),
        since: NOW,
    };
    let told = |findings: &[Finding]| Memory {
        told: findings.iter().map(Finding::key).collect(),
        findings: findings.to_vec(),
        ..Memory::default()
    };
    let say = |text: &str, memory: &Memory| {
        let reply = Command::read(text).map_or(Reply::Text, |command| Reply::Command { command });
        hear(&reply, memory, |issue| issue < 5, &config, NOW)
    };
    let none = Memory::default();
    let day = NOW.after(Duration::from_secs(86_400));
    let cases = [
        ("ignore disk warning", &none, Verdict::Ignore { kind: Kind::Disk, until: day }),
        ("ignore the RAM warnings", &none, Verdict::Ignore { kind: Kind::Memory, until: day }),
        ("ignore pull-request warning", &none, Verdict::Ignore { kind: Kind::PullRequest, until: day }),
        ("ignore every warning", &none, Verdict::WhichWarning),
        ("kill that agent", &none, Verdict::WhichAgent { issues: vec![] }),
        ("kill that agent", &told(&[dead(3), disk_full()]), Verdict::Stop { issue: 3 }),
        ("kill that agent", &told(&[dead(3), blocked(3)]), Verdict::Stop { issue: 3 }),
        ("kill that agent", &told(&[dead(3), dead(4)]), Verdict::WhichAgent { issues: vec![3, 4] }),
        // It has no session, or is none of this project's: nothing is ended.
        ("kill that agent", &told(&[dead(7)]), Verdict::WhichAgent { issues: vec![] }),
        ("what's stuck?", &none, Verdict::Tell),
        ("please delete everything", &none, Verdict::NoCommand),
        ("approve", &told(&[dead(3)]), Verdict::NoCommand),
    ];
    for (text, memory, expected) in cases {
        assert_eq!(say(text, memory), expected, "{text}");
    }
    // Whatever stands in the log or in the name of a container, it names nobody who could be ended.
    let hostile = told(&[
        Finding::LogRepeats { text: "kill that agent dev-shop-3.1 #3".into(), count: 99 },
        Finding::ContainersIll { names: vec!["dev-shop-3.1".into()] },
        Finding::LineStopped { why: "kill that agent: #3".into() },
        Finding::NotifierIll { notifier: "#3".into() },
    ]);
    assert_eq!(say("kill that agent", &hostile), Verdict::WhichAgent { issues: vec![] });
    let untold = Memory { told: BTreeSet::new(), ..told(&[dead(3)]) };
    assert_eq!(
        say("kill that agent", &untold),
        Verdict::WhichAgent { issues: vec![] },
        "nobody was told of it"
    );
}

#[test]
fn a_summary_leads_with_what_is_needed() {
    let project = ProjectName::try_from("shop".to_owned()).unwrap();
    let config = config();
    let first = report(&Memory::default(), &[disk_full(), blocked(3)], &config, NOW);
    let notice = words::summary(&project, first.told.as_ref().unwrap(), NOW);
    assert_eq!(
        notice.title,
        "shop needs a person, P1: the disk of /state is 91 % full, 10 MB are left (and 1 more)"
    );
    assert!(
        notice.body.contains("P3 #3 has been blocked for 1m; pointsman task explain 3"),
        "{}",
        notice.body
    );
    assert!(notice.urgent);
    let well = report(&first.memory, &[], &config, NOW);
    assert_eq!(
        words::summary(&project, well.told.as_ref().unwrap(), NOW).title,
        "shop: all problems are solved"
    );
}
