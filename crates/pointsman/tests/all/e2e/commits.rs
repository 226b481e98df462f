//! SIGKILL of the daemon before and after the commits of every kind of change, without places that somebody chose.
//!
//! One mixed load on the embedded forge: tasks that land and one that fails, files that a role hands in, vault actions, a
//! run of a formula, a role's look, orders to the merge queue. The daemon dies on both sides of each kind's first commit;
//! `POINTSMAN_KILLS=n` has it die at the first n. In the end nothing is lost, doubled or stuck, and the log tells each
//! thing once. A kind that this load never writes must be listed, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pointsman_core::ids::ProjectName;
use pointsman_core::time::Timestamp;
use pointsman_core::value::Following;
use pointsman_core::{log, task};
use pointsman_store::{Change, EntryScope, EntryStatus, Store, Write};
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::health::full_disk;
use super::hooks::{as_session, hook, payload};
use super::vault::{action, guarded, runs, show};
use super::{adds, clean, shop};

/// Kinds that this load does not write, or not for certain, and why.
const ELSEWHERE: &[(&str, &[&str])] = &[
    (
        "people speak to sessions, in rooms and to notifiers: e2e::orders and e2e::chat, which has its own kills",
        &[
            "event:operator_spoke",
            "event:person_spoke",
            "row:reply",
            "row:reply_taken",
            "row:replies_given_back",
            "row:delivered",
            "row:effects_retried",
            "row:thread",
            "row:notice_repeated",
        ],
    ),
    (
        "reminders, questions of runs and a person's yes to a budget or a host, all of them events of workflows, which the simulation kills: e2e::questions, e2e::resilience::budget, e2e::network",
        &[
            "event:budget_granted",
            "event:hosts_allowed",
            "event:question_reminded",
            "event:run_asked",
            "event:run_answered",
            "event:run_time_passed",
        ],
    ),
    (
        "a project is registered by its own command, before there is anything to lose: cli::project",
        &["event:project_added", "row:project_added"],
    ),
    (
        "the set-up of trees, and their ports: e2e::trees, which kills it at any instant, and the simulation",
        &["event:ports_assigned", "event:setup_failed", "event:setup_retried"],
    ),
    (
        "a person who takes a task over and gives it back: e2e::handover, which has its own kills, and the simulation",
        &["event:taken", "event:given"],
    ),
    (
        "a person's yes or no to a plan: e2e::plan, which has a kill of its own, and the simulation, which kills around every event of a workflow",
        &["event:plan_decided"],
    ),
    (
        "a machine that slept: e2e::sleep, and the simulation, which kills around every event of a workflow",
        &["event:time_skipped"],
    ),
    (
        "runs that go wrong or are stopped: e2e::run, which has its own kills",
        &[
            "event:run_not_started",
            "event:run_gave_up",
            "event:run_session_died",
            "event:run_timed_out",
            "event:run_stopped",
            "event:run_effect_failed",
        ],
    ),
    ("a person's decision about a secret: e2e::secrets, which has its own kills", &["event:secret_decided"]),
    (
        "settings that change while the daemon runs: e2e::way_in; the file says the same to the next daemon",
        &["event:settings_changed", "event:settings_refused"],
    ),
    (
        "actions that are refused, raised, looked at or too old, and those that may have been fired: e2e::vault and e2e::vault_look, which have their own kills",
        &[
            "event:vault_refused",
            "event:vault_raised",
            "event:vault_looked",
            "event:vault_expired",
            "event:vault_lost",
            "event:vault_time_passed",
        ],
    ),
    (
        "what roles find by rules, and what becomes of it: e2e_kill_at_the_commits_of_what_roles_find",
        &BY_RULES,
    ),
    (
        "sessions and people that answer roles, and deeds on the forge: e2e::gardener, which has its own kills, the simulation, which plays every event of a role's memory, and e2e::health",
        &[
            "event:supervisor_judged",
            "event:supervisor_heard",
            "event:gardener_looked",
            "event:gardener_groomed",
            "event:planner_looked",
            "event:planner_planned",
            "event:role_closed",
            "event:prediction_triaged",
            "event:role_resumed",
            "event:remembered",
            "event:run_deed",
        ],
    ),
    ("reports of Claude Code's hooks: e2e_kill_at_the_commits_of_hook_reports", &BY_HOOKS),
    (
        "hooks that say nothing, answers that are kept and messages that wait: e2e::hooks, which restarts the daemon",
        &["event:response_given", "event:hooks_silent", "row:message_held"],
    ),
    (
        "agents and machines that misbehave: e2e::idle, recovery, phase_file, hostile, resilience, and the simulation",
        &[
            "event:claim_lost",
            "event:session_not_started",
            "event:idle_looked",
            "event:phase_rejected",
            "event:head_moved",
            "event:time_passed",
            "event:effect_gave_up",
            "event:message_unacknowledged",
            "event:landing_reverted",
            "event:project_removed",
            "event:unreadable",
            "row:project_removed",
            "row:message_unacknowledged",
            "row:effect_postponed",
            "row:effect_superseded",
        ],
    ),
    (
        "written when a look happens to fall into the right moment; the next look writes it again",
        &[
            "event:work_observed",
            "row:sessions_seen",
            "row:sessions_silent",
            "row:session_missed",
            "row:checkpoint_forgotten",
        ],
    ),
    (
        "branches that do not land: e2e::conflict and e2e::queue, which has its own kills",
        &["event:queue_reported"],
    ),
];

/// Kinds that roles write without a session.
const BY_RULES: [&str; 5] = [
    "event:supervisor_looked",
    "event:predictor_filed",
    "event:role_filed",
    "event:result_over",
    "event:role_counted",
];

/// Kinds that reports of a session's hooks write.
const BY_HOOKS: [&str; 9] = [
    "event:context_measured",
    "event:symptom_seen",
    "event:context_compacted",
    "event:turn_ended",
    "event:turn_failed",
    "event:dialog_seen",
    "event:budget_reached",
    "row:context_measured",
    "row:spent",
];

const FORMULA: &str = r#"name = "tidy"
description = "Tidies"
version = 1

[[steps]]
id = "look"
title = "Look"
description = "Look."

[[steps]]
id = "sort"
title = "Sort"
description = "Sort."
needs = ["look"]
"#;

/// The session of a formula: does its steps however often the daemon is away, and the gardener changes its file. Code 3
/// means that the step counted although the answer got lost.
const AGENT: &str = r##"
read -r greeting
export POINTSMAN_CRASH_COMMITS=DEATHS
sed -n 's/^## [0-9]*\. \([a-z-]*\):.*/\1/p' "$POINTSMAN_INBOX/0000-task.md" | while read -r step; do
    while :; do
        PROGRAM step done "$step"
        case $? in 0|3) break ;; esac
        sleep 0.05
    done
done
case "$POINTSMAN_SESSION" in gardener-*) echo '# Fresh' > AGENTS.md ;; esac
echo '{"lines": []}' > "$POINTSMAN_RESULT_FILE"
echo PHASE:done > "$PHASE_FILE"
read -r end
"##;

fn load() -> Setup {
    let agent = r#"["bash", "-c", '. "$HOME/agent.sh"']"#;
    guarded()
        .reviewed()
        .file("formulas/tidy.toml", FORMULA)
        .file("AGENTS.md", "# Old\n")
        .set("roles.gardener.command", agent)
        .set("roles.action.command", agent)
        .set("roles.predictor.enabled", "true")
        .set("limits.min_free_memory_mb", "0")
        .set("dev.concurrency", "3")
        .set("timing.phase_rescan", "\"100ms\"")
        .set("timing.stop_grace", "\"200ms\"")
}

/// Each round files another issue that lands, until every kind has had its deaths.
const MOST_ROUNDS: u32 = 4;
/// So many deaths apart, people do something while no daemon runs.
const ALONE_EVERY: u32 = 4;

#[test]
fn e2e_kill_at_the_commits_of_every_kind() {
    let times = std::env::var("POINTSMAN_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_u32);
    let daemon = load().build();
    let file = daemon.path("home/deaths");
    let told = format!("{times}:{}", file.display());
    let agent = AGENT.replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman")).replace("DEATHS", &told);
    fs::write(daemon.path("home/agent.sh"), agent).unwrap();
    let mut play = Play::file(&daemon, &told);
    let told = [("POINTSMAN_CRASH_COMMITS", told.as_str())];
    daemon.start_with(&told);
    let (mut killed, mut waits_for) = (0_u32, None);
    for round in 1..=MOST_ROUNDS {
        while !daemon.wait_for("the play or a daemon to end", || {
            if daemon.has_ended() {
                return Some(false);
            }
            play.go_on();
            let left = play.left();
            if left.is_some() && left != waits_for {
                println!("{killed} dead, left: {}", left.as_deref().unwrap_or_default());
                waits_for.clone_from(&left);
            }
            left.is_none().then_some(true)
        }) {
            killed += 1;
            daemon.kill_daemon();
            if killed % ALONE_EVERY == 0 {
                play.go_on();
            }
            daemon.start_with(&told);
        }
        if round == MOST_ROUNDS || Deaths::read(&file).missing().is_empty() {
            break;
        }
        // While nobody can die of it: a command whose daemon dies does not know whether the issue was filed.
        daemon.kill_daemon();
        play.file_landing(&format!("fruit{round}"));
        daemon.start_with(&told);
    }
    let deaths = Deaths::read(&file);
    deaths.print(killed);
    // Nobody kills this one: what is left to be done is done now.
    daemon.kill_daemon();
    daemon.start();
    daemon.wait_for("everything to be over", || play.is_over().then_some(()));
    play.check();
    deaths.check();
}

/// A full disk is told once. A prediction is filed once, and its dismissal by a person counts once.
#[test]
fn e2e_kill_at_the_commits_of_what_roles_find() {
    let daemon = full_disk()
        .staged()
        .set("roles.predictor.enabled", "true")
        .set("roles.supervisor.enabled", "true")
        .set("timing.stale_issue", "\"1ms\"")
        .build();
    for fruit in ["Apples", "Pears", "Plums", "Figs", "Dates"] {
        daemon.json(&["forge", "issue", "create", "--title", fruit, "--body", "We want them"]);
    }
    let file = daemon.path("home/deaths");
    let told = format!("1:{}", file.display());
    let told = [("POINTSMAN_CRASH_COMMITS", told.as_str())];
    daemon.start_with(&told);
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        daemon.wait_for(what, || {
            if daemon.has_ended() {
                daemon.kill_daemon();
                daemon.start_with(&told);
            }
            holds().then_some(())
        });
    };
    let logged = |kind: &str| daemon.run(&["events", "--kind", kind, "--json"]).stdout.lines().count();
    let disk_notices = || {
        let notices = daemon.notices();
        let title =
            |notice: &&Value| notice["title"].as_str().is_some_and(|title| title.contains("the disk of"));
        notices.iter().filter(title).count()
    };
    for role in ["predictor", "supervisor"] {
        until("a role to be asked to look", &|| daemon.run(&["roles", "look", role]).code == Some(0));
    }
    until("a prediction", &|| logged("predictor_filed") > 0);
    until("people to be told of the disk", &|| logged("supervisor_looked") > 0 && disk_notices() > 0);
    until("the prediction to be closed", &|| daemon.run(&["forge", "issue", "close", "6"]).code == Some(0));
    until("the dismissal to be seen", &|| {
        let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
        let results: Option<Following> = store.memory(&ProjectName::new("shop").unwrap(), "results").unwrap();
        results.is_some_and(|results| results.gone.contains_key(&6))
    });
    assert_eq!((logged("supervisor_looked"), disk_notices()), (1, 1));
    daemon.stage(&json!({ "ahead_ms": 2 * 3_600_000 }));
    until("the dismissal to be counted", &|| logged("result_over") > 0 && logged("role_counted") > 0);
    until("the deaths that are left", &|| Deaths::read(&file).left(&BY_RULES).is_empty());
    daemon.kill_daemon();
    daemon.start();
    assert_eq!(daemon.json(&["forge", "issue", "list", "--state", "all"]).as_array().unwrap().len(), 6);
    for kind in ["predictor_filed", "role_filed", "result_over", "role_counted"] {
        assert_eq!(logged(kind), 1, "{kind}");
    }
}

/// A report that was cut off by the daemon's death is taken in by the next daemon, once.
#[test]
fn e2e_kill_at_the_commits_of_hook_reports() {
    let daemon = shop()
        .set("timing.idle_look", "\"10m\"")
        .set("dev.concurrency", "2")
        .set("budget.usd_per_issue", "5")
        .build();
    let waits = |fruit: &str| daemon.file_issue(fruit, &format!("expect Answer\n{}", clean(fruit)));
    let (reports, asks) = (waits("apples"), waits("pears"));
    // Until both work, nobody dies of their beginning.
    daemon.start();
    for issue in [reports, asks] {
        daemon.wait_session(issue, 1);
        daemon.wait_state(issue, "working");
    }
    daemon.kill_daemon();
    let file = daemon.path("home/deaths");
    let told = format!("1:{}", file.display());
    let told = [("POINTSMAN_CRASH_COMMITS", told.as_str())];
    daemon.start_with(&told);
    let events = |issue: u64, kind: &str| {
        let shown = daemon.run(&["events", "--issue", &issue.to_string(), "--kind", kind, "--json"]).stdout;
        shown.lines().count()
    };
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        daemon.wait_for(what, || {
            if daemon.has_ended() {
                daemon.kill_daemon();
                daemon.start_with(&told);
            }
            holds().then_some(())
        });
    };
    let spend = |usd: f64| {
        let mut line = payload("statusLine");
        line["cost"]["total_cost_usd"] = usd.into();
        line["context_window"]["used_percentage"] = 75.into();
        as_session(&daemon, reports, &["statusline"], &line);
    };
    hook(&daemon, reports, "SessionStart", &payload("SessionStart.startup"));
    // Claude Code calls the status line again and again; one that is lost comes back with the next.
    until("what was spent", &|| {
        spend(2.0);
        let shown = daemon.run(&["agents", "--json"]).stdout;
        shown.contains("\"cost_usd\": 2.0") && shown.contains("\"context_percent\": 75.0")
    });
    for (event, recorded, kind) in [
        ("PreCompact", "PreCompact.auto", "symptom_seen"),
        ("PostCompact", "PostCompact.auto", "context_compacted"),
        ("Stop", "Stop", "turn_ended"),
        ("StopFailure", "StopFailure.rate_limit", "turn_failed"),
    ] {
        hook(&daemon, reports, event, &payload(recorded));
        until(kind, &|| events(reports, kind) > 0);
    }
    hook(&daemon, asks, "PermissionRequest", &payload("PermissionRequest.Bash"));
    until("a dialog", &|| events(asks, "dialog_seen") > 0);
    until("the budget", &|| {
        spend(6.0);
        events(reports, "budget_reached") > 0
    });
    until("the deaths that are left", &|| Deaths::read(&file).left(&BY_HOOKS).is_empty());
    daemon.kill_daemon();
    daemon.start();
    for kind in ["symptom_seen", "context_compacted", "turn_ended", "turn_failed", "budget_reached"] {
        assert_eq!(events(reports, kind), 1, "{kind}");
    }
    assert_eq!(events(asks, "dialog_seen"), 1);
}

/// How often a kind's commits were passed, and killed before and after.
struct Deaths(BTreeMap<String, [u32; 3]>);

impl Deaths {
    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap();
        let mut kinds: BTreeMap<String, [u32; 3]> = BTreeMap::new();
        for line in text.lines() {
            let [side, kind, passes, deaths, _] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let counts = kinds.entry(kind.to_owned()).or_default();
            let after = usize::from(side == "after");
            counts[0] = counts[0].max(passes.parse().unwrap());
            counts[1 + after] = deaths.parse().unwrap();
        }
        Self(kinds)
    }

    fn print(&self, killed: u32) {
        println!("{killed} daemons died; of each kind: commits, deaths before, deaths after");
        for (kind, [passes, before, after]) in &self.0 {
            println!("{kind:<32} {passes:>5} {before:>5} {after:>5}");
        }
    }

    /// Kinds that were not killed on both sides, and that nobody has a reason for.
    fn missing(&self) -> Vec<String> {
        let known: BTreeSet<&str> = ELSEWHERE.iter().flat_map(|(_, kinds)| *kinds).copied().collect();
        let mut kinds = all_kinds();
        kinds.retain(|kind| !self.is_killed(kind) && !known.contains(kind.as_str()));
        kinds.into_iter().collect()
    }

    /// Those of these kinds that were not killed on both sides.
    fn left<'k>(&self, kinds: &[&'k str]) -> Vec<&'k str> {
        kinds.iter().copied().filter(|kind| !self.is_killed(kind)).collect()
    }

    fn is_killed(&self, kind: &str) -> bool {
        self.0.get(kind).is_some_and(|[_, before, after]| *before > 0 && *after > 0)
    }

    /// Every kind there is was killed on both sides, or is known to be written elsewhere.
    fn check(&self) {
        let missing = self.missing();
        assert!(missing.is_empty(), "never killed on both sides, and no reason is given: {missing:?}");
        let all = all_kinds();
        let known = ELSEWHERE.iter().flat_map(|(_, kinds)| *kinds);
        let unknown: Vec<_> = known.filter(|kind| !all.contains(**kind)).collect();
        assert!(unknown.is_empty(), "no such kind: {unknown:?}");
    }
}

/// Every kind of change: what serde lists is what the enums have.
fn all_kinds() -> BTreeSet<String> {
    let entries = listed::<log::Entry>(json!({ "kind": "?", "data": null }));
    let events = listed::<task::Event>(json!({ "event": "?" }));
    let parts = Change::quiet(Timestamp(0), Vec::new()).parts().map(|(name, _)| name);
    let rows = parts.iter().chain(Write::NAMES).map(|name| format!("row:{name}"));
    entries.into_iter().chain(events).map(|kind| format!("event:{kind}")).chain(rows).collect()
}

/// The kinds that an enum would have taken.
fn listed<T: serde::de::DeserializeOwned>(unknown: Value) -> Vec<String> {
    let error = match serde_json::from_value::<T>(unknown) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let (_, expected) = error.split_once("expected one of").expect("a list of kinds");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The load, and the people who look after it.
struct Play<'d> {
    daemon: &'d TestDaemon,
    /// Its commands die as the daemon does if they act in its place.
    deaths: String,
    lands: Vec<(u64, String)>,
    fails: u64,
    paused: bool,
    looked: bool,
}

const ACTIONS: [(&str, &str); 4] = [("l1", "low"), ("m1", "medium"), ("h1", "high"), ("h2", "high")];

impl<'d> Play<'d> {
    fn file(daemon: &'d TestDaemon, deaths: &str) -> Self {
        let deaths = deaths.to_owned();
        let mut play = Self { daemon, deaths, lands: Vec::new(), fails: 0, paused: false, looked: false };
        // Whatever comes first registers the project.
        daemon.wait_for("the project", || play.ok(&["vault", "list"]).then_some(()));
        play.let_time_pass();
        for fruit in ["apples", "pears"] {
            play.file_landing(fruit);
        }
        let script =
            "phase escalate which?\nexpect Answer\nphase done\nexpect PR not merged yet\nphase failed no use";
        play.fails = daemon.file_issue("plums", script);
        play
    }

    /// The predictor looks once a day, and its last look was more than a day ago.
    fn let_time_pass(&self) {
        let ago = pointsman::daemon::clock::now().0 - 25 * 3_600_000;
        let snapshot = json!({ "seen": ago, "used": ago, "inputs": null, "skipped_because": null });
        let mut store = Store::open(&self.daemon.state().join("pointsman.db")).unwrap();
        let mut change = Change::new(Timestamp(ago), "remembered");
        change.project = ProjectName::new("shop");
        let name = "timetable.run-predictor".to_owned();
        change.memories.push(pointsman_store::Memory { name, version: 1, snapshot });
        store.commit(&[change]).unwrap();
    }

    fn file_landing(&mut self, fruit: &str) {
        let script =
            "expect CI passed\nwrite notes.txt ripe\nphase awaiting_review\nexpect Merged\nphase done";
        let issue = self.daemon.file_issue(fruit, &format!("{}\n{script}", adds(fruit)));
        self.lands.push((issue, fruit.to_owned()));
    }

    fn list(&self, command: &[&str]) -> Vec<Value> {
        let answer = self.daemon.run(&[command, &["--json"]].concat());
        serde_json::from_str::<Vec<Value>>(&answer.stdout).unwrap_or_default()
    }

    fn ok(&self, command: &[&str]) -> bool {
        let mut command = self.daemon.command(command);
        command.env("POINTSMAN_CRASH_COMMITS", &self.deaths).output().unwrap().status.success()
    }

    /// People do what is to be done now. What fails because the daemon just died is done the next time.
    fn go_on(&mut self) {
        for task in self.list(&["task", "list"]) {
            let waits = task["phase"] == "awaiting_review" && task["review"] == "none";
            match task["state"].as_str().unwrap_or_default() {
                "escalated" => {
                    self.ok(&["task", "answer", &task["issue"].to_string(), "This one."]);
                }
                "awaiting_review" if waits => {
                    self.ok(&["forge", "pr", "review", &task["pr"].to_string(), "--approve"]);
                }
                _ => {}
            }
        }
        for pr in self.list(&["forge", "pr", "list"]) {
            let handed_in = !pr["head"].as_str().unwrap_or_default().starts_with("pointsman/issue-");
            if handed_in && pr["reviews"] == json!([]) {
                self.ok(&["forge", "pr", "review", &pr["number"].to_string(), "--approve"]);
            }
        }
        let begun = self.list(&["run", "list"]);
        for formula in ["tidy", "run-gardener"] {
            if !begun.iter().any(|run| run["formula"] == formula) {
                self.ok(&["formula", "run", formula]);
            }
        }
        self.decide_about_actions();
        if !self.paused {
            self.paused = self.ok(&["merge-queue", "pause", "--reason", "lunch"]);
        } else if self.is_paused() {
            self.ok(&["merge-queue", "resume"]);
        }
        if !self.looked {
            self.looked = self.ok(&["roles", "look", "predictor"]);
        }
    }

    fn decide_about_actions(&self) {
        let known = self.list(&["vault", "list"]);
        for (id, kind) in ACTIONS {
            let entry = known.iter().find(|entry| entry["id"] == id);
            match entry.and_then(|entry| entry["status"].as_str()) {
                None => {
                    let file = self.daemon.path("home/action.json");
                    fs::write(&file, action(id, kind).to_string()).unwrap();
                    self.ok(&["vault", "submit", &file.to_string_lossy()]);
                }
                Some("pending") if id == "h2" => {
                    self.ok(&["vault", "reject", id]);
                }
                Some("pending") => {
                    self.ok(&["vault", "approve", id]);
                }
                // The handler may have run or not. A person looks, and has it fired again.
                Some("uncertain") => {
                    self.ok(&["vault", "approve", id, "--again"]);
                }
                Some(_) => {}
            }
        }
    }

    fn is_over(&self) -> bool {
        self.left().is_none()
    }

    /// Something that is not over yet.
    fn left(&self) -> Option<String> {
        let tasks = self.list(&["task", "list"]);
        let is = |issue: u64, state: &str| {
            tasks.iter().any(|task| task["issue"] == issue && task["state"] == state)
                && self.daemon.is_settled(issue)
        };
        if let Some((issue, _)) = self.lands.iter().find(|(issue, _)| !is(*issue, "closed")) {
            return Some(format!("issue {issue}"));
        }
        if !is(self.fails, "blocked") {
            return Some(format!("issue {}", self.fails));
        }
        let actions = self.list(&["vault", "list"]);
        let open = |entry: &&Value| entry["status"] != "fired" && entry["status"] != "rejected";
        if actions.len() < ACTIONS.len() || actions.iter().any(|entry| open(&entry)) {
            return Some(format!("vault actions: {:?}", actions.iter().find(open)));
        }
        let runs = self.list(&["run", "list"]);
        if runs.len() < 2 || runs.iter().any(|run| run["open"] != false) {
            return Some(format!("runs: {:?}", runs.iter().find(|run| run["open"] != false)));
        }
        for kind in ["hand_in_over", "schedule_looked"] {
            if self.logged(kind).is_empty() {
                return Some(format!("{kind}, {:?}", self.list(&["forge", "pr", "list"])));
            }
        }
        let orders = self.paused && self.looked && !self.is_paused();
        (!orders).then(|| "orders".to_owned())
    }

    fn is_paused(&self) -> bool {
        self.daemon.json(&["merge-queue", "status"])["paused"] == true
    }

    fn logged(&self, kind: &str) -> Vec<Value> {
        let log = self.daemon.run(&["events", "--kind", kind, "--json"]).stdout;
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What users see in the end is what they would have seen without the kills.
    fn check(&self) {
        let daemon = self.daemon;
        let mut log = daemon.main_log();
        log.sort();
        let landed = self.lands.iter().map(|(_, fruit)| format!("Add {fruit}"));
        let mut expected: Vec<String> =
            landed.chain(["Open the shop".to_owned(), "gardener: update AGENTS.md".to_owned()]).collect();
        expected.sort();
        assert_eq!(log, expected);
        assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Fresh"));
        let requests = daemon.pull_requests();
        assert!(
            requests.len() == self.lands.len() + 1 && requests.iter().all(|pr| pr["merged"] == true),
            "{requests:?}"
        );
        for issue in self.lands.iter().map(|(issue, _)| *issue) {
            let states = daemon.states(issue);
            assert_eq!(states.iter().filter(|state| *state == "merged").count(), 1, "#{issue}: {states:?}");
            assert_eq!(states.last().map(String::as_str), Some("closed"), "#{issue}: {states:?}");
            assert_eq!(daemon.comments(issue), [""; 0]);
            assert!(!daemon.tree(issue).exists());
        }
        assert_eq!(daemon.labels(self.fails), ["backlog", "blocked"]);
        let comments = daemon.comments(self.fails);
        assert_eq!(comments.len(), 2, "a question and a diagnosis: {comments:?}");
        for issue in self.lands.iter().map(|(issue, _)| *issue).chain([self.fails]) {
            assert_eq!(daemon.sessions(issue).len(), 1, "nobody had to be brought back");
            let shown = daemon.transcript(issue);
            let mut sent: BTreeMap<&str, u32> = BTreeMap::new();
            for (id, rest) in shown.split("[pointsman m-").skip(1).filter_map(|rest| rest.split_once(']')) {
                let tries = sent.entry(id).or_default();
                *tries += 1;
                // A message that nobody acknowledges in time is sent again, three times at most, and says so.
                let again = rest.lines().next().is_some_and(|line| line.contains("(again)"));
                assert!(again == (*tries > 1) && *tries <= 3, "m-{id} came {tries} times:\n{shown}");
            }
        }
        self.check_queue();
        self.check_vault_and_runs();
        let notices = daemon.notices();
        let keys: BTreeSet<&str> = notices.iter().filter_map(|notice| notice["key"].as_str()).collect();
        assert_eq!(keys.len(), notices.len(), "somebody was told twice: {notices:?}");
        assert_eq!(daemon.tmux_sessions(), [""; 0]);
        assert_eq!(daemon.phase_files(), [""; 0]);
        assert_eq!(daemon.json(&["status"])["unconfirmed"], json!([]));
    }

    /// Whoever entered landed, and the log has each once.
    fn check_queue(&self) {
        let entered = self.lands.len() + 1;
        let store = Store::open_read_only(&self.daemon.state().join("pointsman.db")).unwrap();
        let entries = store.queue_entries(&ProjectName::new("shop").unwrap(), EntryScope::All).unwrap();
        let landed: Vec<_> = entries.iter().map(|entry| (&entry.branch, entry.status)).collect();
        assert!(
            landed.len() == entered && landed.iter().all(|(_, status)| *status == EntryStatus::Landed),
            "{landed:?}"
        );
        assert_eq!(self.logged("queue_entered").len(), entered);
        let moved = self.logged("queue_moved");
        let landed = moved.iter().filter(|event| event["data"]["status"] == "landed").count();
        assert_eq!(landed, entered, "{moved:?}");
        let over: Vec<_> =
            self.logged("hand_in_over").iter().map(|event| event["data"]["outcome"].clone()).collect();
        assert_eq!(over, ["merged"]);
    }

    fn check_vault_and_runs(&self) {
        let of =
            |kind: &str, id: &str| self.logged(kind).iter().filter(|event| event["data"]["id"] == id).count();
        for (id, _) in ACTIONS {
            assert_eq!(of("vault_submitted", id), 1, "{id}");
            let fired = usize::from(id != "h2");
            assert_eq!((of("vault_fired", id), of("vault_rejected", id)), (fired, 1 - fired), "{id}");
            // One that may have been fired is fired again by a person who knows that.
            let knows = |event: &&Value| event["data"]["id"] == id && event["data"]["event"]["again"] == true;
            let again = self.logged("vault_approved").iter().filter(knows).count();
            let ran = runs(self.daemon, id);
            assert!((fired..=fired + again).contains(&ran), "{id} ran {ran} times, {again} of them again");
            assert_eq!(show(self.daemon, id)["status"], if fired == 1 { "fired" } else { "rejected" });
        }
        let runs = self.list(&["run", "list"]);
        assert!(runs.iter().all(|run| run["status"] == "done" && run["generation"] == 1), "{runs:?}");
        for kind in ["run_begun", "run_finished"] {
            assert_eq!(self.logged(kind).len(), 2, "{kind}");
        }
    }
}
