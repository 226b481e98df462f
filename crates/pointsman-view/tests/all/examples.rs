//! An example of every view, under the command that prints it. Nested objects are filled in, and a field that may be
//! absent is absent in one example and there in another, so that the comparison with the documentation sees all of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use pointsman_core::claim::Claim;
use pointsman_core::config::{Config, NotifierKind};
use pointsman_core::forge::{BoardStatus, CheckState, IssueState};
use pointsman_core::formula::Formula;
use pointsman_core::health::{Disk, Machine, Priority, Tail};
use pointsman_core::ids::{ProjectName, Sha, TaskKey};
use pointsman_core::notifier::Topic;
use pointsman_core::part::question::{Kind, Owner, QuestionId};
use pointsman_core::queue::EntryId;
use pointsman_core::role::Role;
use pointsman_core::run::{Run, RunId};
use pointsman_core::session::budget::{Spent, TokenClasses};
use pointsman_core::session::context::Source;
use pointsman_core::session::liveness::Colour;
use pointsman_core::session::work::{WorkPhase, WorkState};
use pointsman_core::task::{self, Phase, ReviewVerdict, State};
use pointsman_core::time::Timestamp;
use pointsman_core::vault::{ActionId, Risk, Route, Status};
use pointsman_core::verdict::Class;
use pointsman_view::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[path = "evidence_example.rs"]
mod evidence_example;
#[path = "merge_queue_example.rs"]
mod merge_queue_example;
#[path = "report_example.rs"]
mod report_example;

/// What each command prints, one value per shape.
pub(crate) fn examples() -> BTreeMap<&'static str, Vec<Value>> {
    let mut all = BTreeMap::new();
    setting_up(&mut all);
    daemon(&mut all);
    tasks(&mut all);
    sessions(&mut all);
    forge(&mut all);
    merge_queue_example::merge_queue(&mut all);
    formulas(&mut all);
    plans(&mut all);
    people(&mut all);
    pipelines(&mut all);
    all
}

/// The views as JSON; each is read back as it was.
fn shown<V: Serialize + DeserializeOwned + PartialEq + Debug>(
    views: impl IntoIterator<Item = V>,
) -> Vec<Value> {
    let shown = |view: V| {
        let value = serde_json::to_value(&view).expect("a view is plain data");
        let read: V = serde_json::from_value(value.clone()).expect("a view is read back");
        assert_eq!(read, view, "{value}");
        value
    };
    views.into_iter().map(shown).collect()
}

fn shop() -> ProjectName {
    ProjectName::new("shop").expect("a name")
}

fn sha() -> Sha {
    Sha::new(&"a".repeat(40)).expect("a commit")
}

fn at() -> Time {
    Time(Timestamp(1_700_000_000_250))
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn setting_up(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    let made = project::Made {
        name: shop(),
        primary_branch: text("main"),
        ci: Some(vec![text("./ci.sh")]),
        config_path: PathBuf::from("pointsman.toml"),
        url: None,
        notes: vec![text("a note")],
    };
    all.insert("init", shown([made]));
    let check = doctor::Check::warn("git", "it is old", "install a newer one");
    all.insert("doctor", shown([doctor::Doctor { ok: true, checks: vec![check.clone()] }]));
    let agent = doctor::AgentCheck { agent: "claude".to_owned(), ok: true, checks: vec![check] };
    all.insert("agent check", shown([agent]));
    let key = project::Key { key: text("name"), value: json!("shop"), origin: None };
    let with_origin = project::Key { origin: Some(text("default")), ..key.clone() };
    all.insert("config show", shown([key, with_origin]));
    let seen = sandbox::Sandbox {
        role: Role::Dev,
        place: sandbox::Place::Outside,
        why: Some(text("sandbox.mode is \"off\"")),
        fix: Some(text("remove it")),
        mounts: vec![sandbox::Mount { path: "/usr".into(), access: text("read"), why: text("the system") }],
        network: text("all of it"),
        hosts: vec![text("api.example.org")],
        registries: vec![text("npm+https://packages.example.org/")],
        ci_hosts: vec![text("mirror.example.org")],
        ci_registries: vec![text("npm+https://packages.example.org/")],
        private_hosts: vec![text("git.example.org:8443")],
        syscall_filter: true,
        landlock: Some(7),
        limits: sandbox::limits(&pointsman_core::sandbox::Limits::default(), false),
    };
    all.insert("sandbox show", shown([seen]));
    let learned = sandbox::Learned {
        ci: pointsman_view::evidence::CheckStatus::Failed,
        hosts: vec![text("registry.example.org:443")],
        allowed: true,
        log_path: Some("/state/run.log".into()),
    };
    all.insert("sandbox learn", shown([learned]));
    let registered = project::Project {
        name: shop(),
        config_path: PathBuf::from("shop/pointsman.toml"),
        checkout: PathBuf::from("shop"),
        added_at: at(),
        problem: None,
    };
    all.insert("project list", shown([registered]));
    all.insert("project add", shown([project::Named { name: shop() }]));
    let dir = PathBuf::from(".claude");
    let login = project::ClaudeLogin { kept: true, variable: Some(text("ANTHROPIC_API_KEY")) };
    all.insert("claude login", shown([login]));
    all.insert("claude install", shown([project::Installed { dir, notes: vec![text("a note")] }]));
}

fn daemon(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    let project = status::Project {
        name: shop(),
        config_path: PathBuf::from("shop/pointsman.toml"),
        checkout: PathBuf::from("shop"),
        tasks: BTreeMap::from([(State::Working, 1)]),
        sessions: 1,
        merge_queue: 0,
        line_stopped: None,
        spent_today: Spent::default().into(),
        rate_limits: vec![status::RateLimit { name: text("five_hour"), used_percent: 12.5, resets_at: at() }],
        warnings: vec![text("CI is off")],
    };
    let unit = PathBuf::from("pointsman.service");
    let service = service::Service { unit, installed: true, enabled: true, active: true, lingers: false };
    all.insert("service status", shown([service]));
    let daemon = status::Daemon {
        pid: 7,
        version: text("0.1.0"),
        started_at: at(),
        projects: vec![shop()],
        problems: vec![text("a problem")],
    };
    let ill = notice::BrokenNotifier {
        project: shop(),
        part: text("matrix"),
        error: text("no answer"),
        since: at(),
        failed: 3,
        next: at(),
        waiting: 1,
    };
    let halted = status::Halted { by: text("ada"), at: at(), sessions: vec![text("dev-shop-3.1")] };
    let pending = status::Pending {
        project: shop(),
        issue: 3,
        title: text("Apples"),
        state: State::Backlog,
        since: at(),
        waiting_for: Some(text("a place")),
    };
    let status = status::Status {
        daemon: Some(daemon),
        daemon_silent: false,
        state_dir: PathBuf::from("state"),
        projects: vec![project],
        needs_a_person: vec![task()],
        vault: vec![action()],
        questions: vec![question()],
        notifiers: vec![ill],
        unconfirmed: vec![status::Unconfirmed {
            project: shop(),
            decision: status::DecisionKind::Answer,
            issue: Some(3),
            pr: None,
            action: None,
            by: text("ada"),
            at: at(),
            confirm: text("pointsman --project shop task answer 3 'blue'"),
        }],
        halted: Some(halted.clone()),
        landed: vec![status::Landed {
            project: shop(),
            issue: Some(3),
            pr: Some(4),
            title: text("Apples"),
            at: at(),
        }],
        landed_since: Some(at()),
        running: vec![pending.clone()],
        waiting: vec![pending],
    };
    all.insert("status", shown([status]));
    all.insert("halt", shown([halted]));
    all.insert("resume", shown([status::Resumed { was_halted: true }]));
    let undone = pointsman_view::task::Undone {
        issue: 3,
        pr: 9,
        branch: text("pointsman/undo/issue-3"),
        reverts: sha(),
        link: text("pull request 9"),
    };
    all.insert("task undo", shown([undone]));
    let taken = pointsman_view::task::Taken {
        issue: 3,
        branch: text("pointsman/issue-3"),
        head: sha(),
        uncommitted: true,
        session: text("dev-shop-3.1"),
        conversation: Some("/shop/.claude/state/taken/dev-shop-3.1.log".into()),
        resume: Some(text("claude --resume 1")),
    };
    all.insert("task take", shown([taken]));
    let returned = pointsman_view::task::Returned {
        issue: 3,
        state: State::Working,
        branch: text("pointsman/issue-3"),
        head: sha(),
    };
    all.insert("task give", shown([returned]));
    all.insert("report", shown([report_example::figures()]));
    let health = health::Health {
        at: at(),
        worst: Some(Priority::P1),
        findings: vec![health::Finding {
            priority: Priority::P1,
            kind: text("disk"),
            key: text("disk"),
            text: text("it is full"),
            task: None,
            remedy: None,
            advice: Some(text("make room")),
            ignored_until: None,
        }],
        unknown: vec![text("load")],
        daemon: true,
        machine: Machine {
            disks: vec![Disk { path: text("state"), used_percent: 93, free_mb: 400 }],
            unhealthy_containers: Some(vec![text("db")]),
            ..Machine::default()
        },
        machine_text: text("memory: unknown"),
        tasks: BTreeMap::from([(State::Blocked, 2)]),
        sessions: 1,
        agents: vec![health::Agent {
            session: text("dev-shop-3.1"),
            task: Some(3),
            phase: Some(Phase::AwaitingCi),
            gone: false,
            last_seen: at(),
        }],
        open_issues: None,
        held_back: None,
        logs: vec![Tail { of: text("daemon"), lines: vec![text("a line")] }],
        done: vec![text("removed a lock")],
    };
    all.insert("health", shown([health]));
    let entry =
        event::JournalEntry { at: at(), role: Role::Dev, issue: Some(3), lines: vec![text("landed")] };
    all.insert("journal", shown([entry]));
    all.insert("roles", roles());
    let event = event::Event {
        seq: 1,
        project_seq: 1,
        cursor: text("c1:shop@1"),
        at: at(),
        kind: text("ordered"),
        project: Some(shop()),
        issue: Some(3),
        session: None,
        data: json!({ "order": "start" }),
    };
    all.insert("events", shown([event]));
}

fn roles() -> Vec<Value> {
    let work = role::Work {
        runs: 2,
        failed: 1,
        tokens: Some(9),
        token_classes: Some(TokenClasses::default()),
        usd: Some(0.5),
        turns: 3,
        used: 1,
        noise: 0,
        paused_at: None,
    };
    let new = role::Role {
        role: Role::Dev,
        enabled: true,
        schedule: None,
        work: None,
        outcomes: role::Outcomes::default(),
    };
    let outcomes = role::Outcomes {
        merged: Some(1),
        reverted: Some(0),
        dismissed: Some(0),
        false_alarms: Some(0),
        blocked: Some(0),
        refused: Some(0),
        filed: Some(0),
        landed: Some(0),
        closed: Some(0),
        promoted: Some(0),
        watched: Some(0),
    };
    shown([new.clone(), role::Role { work: Some(work), outcomes, ..new }])
}

fn task() -> pointsman_view::task::Task {
    let key = TaskKey { project: shop(), issue: 3 };
    let mut task = task::Task::new(key, text("A title"), text("pointsman/issue-3"), Timestamp(0));
    task.contribution = task::Contribution::at(text("pointsman/issue-3"), sha(), None);
    pointsman_view::task::Task::new(&task, Spent::default())
}

fn tasks(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    use pointsman_view::task::{Explained, HistoryEntry, Ordered};
    all.insert("task list", shown([task()]));
    let happened = HistoryEntry {
        seq: 1,
        at: at(),
        kind: text("ordered"),
        session: None,
        from: Some(text("backlog")),
        to: Some(text("working")),
        data: json!({ "order": "start" }),
    };
    let explained = Explained {
        issue: 3,
        title: text("A title"),
        state: State::Working,
        facts: vec![text("it is claimed")],
        waiting_for: None,
        deadline: Some(at()),
        last_words: Some(pointsman_view::task::LastWords {
            session: Some(text("dev-shop-3.1")),
            exit: text("crashed"),
            at: at(),
            text: text("out of memory"),
        }),
        history: vec![happened],
    };
    all.insert("task explain", shown([explained]));
    let ordered = Ordered { issue: 3, state: State::Paused };
    for command in ["task start", "task restart", "task pause", "task stop", "task answer", "session stop N"]
    {
        all.insert(command, shown([ordered.clone()]));
    }
    let card = board::Card {
        number: 3,
        title: text("A title"),
        labels: vec![text("backlog")],
        state: Some(State::Backlog),
        phase: None,
        cost_usd: None,
    };
    all.insert("board", shown([board::Column { column: text("backlog"), issues: vec![card] }]));
    let label = board::Label { name: text("backlog"), colour: text("#fff"), meaning: text("ready") };
    all.insert("board --labels", shown([label]));
}

fn sessions(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    let identity = agent::Identity {
        role: agent::IdentityRole::Agent(Role::Dev),
        name: text("shop-3"),
        session_id: text("dev-shop-3.1"),
        pid: Some(7),
        tmux_session: None,
        node_id: None,
        bead_id: None,
        worktree_path: Some(PathBuf::from("tree")),
        hook_path: None,
        created_at: at(),
        last_seen: at(),
        status: session::Status::Active,
        predecessor_id: None,
        host: text("here"),
        generation: 1,
        model: None,
    };
    let agent = agent::Agent {
        identity,
        liveness: Colour::Green,
        project: Some(shop()),
        task: Some(3),
        state: Some(State::Working),
        phase: None,
        work_phase: Some(WorkPhase::Testing),
        exit: None,
        ended_at: None,
        context_percent: Some(43.5),
        context_source: Some(Source::Transcript),
        cost_usd: Some(1.25),
        tokens: Some(9),
        token_classes: Some(TokenClasses::default()),
        turns: 2,
        restarts: 0,
        wall_seconds: 60,
    };
    all.insert("agents", shown([agent]));
    let work = WorkState::begin(text("dev-shop-3"), "A title", Timestamp(0));
    let explained = session::Explained {
        session: text("dev-shop-3.1"),
        liveness: Colour::Green,
        verdict: text("fresh"),
        status: session::Status::Active,
        hooks: Some(session::Hooks::Heard),
        evidence: vec![text("its process is there")],
        work_state: Some((&work).into()),
    };
    all.insert("session explain", shown([explained]));
    let listed = session::Session {
        session: text("dev-shop-3.1"),
        role: Role::Dev,
        task: Some(3),
        tmux_session: Some(text("dev-shop-3")),
        pid: Some(7),
        exit: Some(task::Exit::Done),
        project: shop(),
        identity: text("dev-shop-3"),
        generation: 1,
        tree: None,
        created_at: at(),
        last_seen: at(),
        ended_at: Some(at()),
        acknowledges: true,
        predecessor: None,
        cost_usd: Some(1.25),
        tokens: Some(9),
        token_classes: Some(TokenClasses::default()),
        turns: 2,
        sandboxed: Some(true),
    };
    all.insert("session list", shown([listed]));
    let log = session::Log { session: text("dev-shop-3.1"), path: PathBuf::from("a.log"), text: text("$") };
    all.insert("session logs", shown([log]));
    all.insert("session send", shown([session::Sent { issue: 3, sent: true }]));
    all.insert("session stop --all", shown([session::Paused { paused: vec![3], stopped_runs: vec![4] }]));
    all.insert("ack", shown([session::Acknowledged { message: 12, acknowledged: true }]));
    all.insert("checkpoint", shown([session::Saved { session: text("dev-shop-3.1"), saved: true }]));
    let line = pointsman_view::task::StatusLine {
        state: State::MergeQueue,
        phase: Some(Phase::AwaitingReview),
        ci: pointsman_view::task::CiStatus::Passed,
        pr: Some(7),
        queue_position: Some(2),
    };
    let measured = session::Measured { session: text("dev-shop-3.1"), measured: true, task: Some(line) };
    all.insert("gauge", shown([measured]));
}

fn forge(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    use pointsman_view::forge::*;
    let comment = Comment { author: text("ann"), body: text("Yes"), at: at() };
    let issue = Issue {
        number: 3,
        title: text("A title"),
        body: text("Text"),
        state: IssueState::Open,
        labels: vec![text("backlog")],
        comments: vec![comment.clone()],
        assignee: None,
        author: text("ann"),
        created_at: at(),
    };
    let review = Review {
        author: text("bob"),
        verdict: ReviewVerdict::Approve,
        body: text("Good"),
        sha: sha(),
        at: at(),
        dismissed: false,
        lines: vec![pointsman_view::forge::LineComment {
            file: text("src/a.txt"),
            line: 12,
            text: text("Why?"),
            handled: pointsman_core::review::comments::Handled::Changed,
        }],
    };
    let pr = PullRequest {
        number: 7,
        title: text("A title"),
        body: text("Text"),
        head: text("pointsman/issue-3"),
        base: text("main"),
        head_sha: Some(sha()),
        state: IssueState::Open,
        merged: false,
        merge_sha: None,
        reviews: vec![review],
        comments: vec![comment],
        author: text("dev"),
        artifacts: artifacts(),
        receipt: vec![evidence_example::receipt()],
        risk: Some(evidence_example::risk()),
    };
    all.insert("forge issue show", shown([issue.clone()]));
    let comments = [Commented::Issue(issue), Commented::PullRequest(pr.clone())];
    all.insert("forge issue comment", shown(comments));
    all.insert("forge pr show", shown([pr.clone()]));
    let diff = evidence::Diff {
        number: 7,
        base: text("main"),
        base_sha: sha(),
        head_sha: sha(),
        diff: Some(text("+1")),
        stat: None,
        since_sha: None,
    };
    let since = evidence::Diff { since_sha: Some(sha()), ..diff.clone() };
    all.insert("forge pr diff N --since-last-look", shown([since]));
    let stat = evidence::Diff { diff: None, stat: Some(text("a.txt | 1 +")), ..diff.clone() };
    all.insert("forge pr diff N", shown([diff]));
    all.insert("forge pr diff N --stat", shown([stat]));
    let check = evidence::Check {
        name: text("ci"),
        sha: sha(),
        status: evidence::CheckStatus::Passed,
        seconds: Some(1.5),
        log: Some(text("green")),
    };
    all.insert("forge pr checks", shown([check]));
    let queued = Queued { number: 7, state: State::MergeQueue };
    all.insert("forge pr merge", shown([Merging::Approved(Box::new(pr)), Merging::Queued(queued)]));
    let item = BoardItem {
        item_id: text("3"),
        number: 3,
        title: text("A title"),
        status: BoardStatus::InReview,
        agent: text("dev"),
    };
    all.insert("forge board list", shown([item]));
    let check = Check { name: text("ci"), state: CheckState::Success };
    all.insert("forge status list", shown([Checks { sha: sha(), checks: vec![check] }]));
    all.insert("forge url", shown([Url { url: PathBuf::from("forge.git") }]));
    let cost = Cost {
        operation: text("list issues"),
        calls: 1,
        unchanged: 0,
        failed: 0,
        sent_bytes: 0,
        received_bytes: 9,
        waited_ms: 4,
    };
    all.insert("forge stats", shown([cost]));
}

fn plans(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    const FILE: &str = "digraph shop { goal=sell; label=Shop; s [shape=Mdiamond] e [shape=Msquare] \
        a [issue=7, llm_model=opus, prompt=x, label=a] s -> a a -> e [label=ok] a -> a [condition=fail] }";
    let report = pointsman_core::pipeline::check(FILE);
    assert_eq!((report.errors(), report.warnings()), (0, 1), "{:?}", report.diagnostics);
    all.insert("pipeline check", shown([pipeline::Checked::new(text("shop.dot"), &report)]));
}

fn formulas(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    const FILE: &str = "name = \"tidy\"\ndescription = \"Tidies\"\nversion = 1\n\n[[steps]]\nid = \"look\"\ntitle = \"Look\"\n\
                        description = \"Look around\"\n";
    let formula = Formula::parse(FILE, "tidy.toml").expect("a formula");
    let view = formula::Formula::new(text("tidy"), &formula, None, text("shipped"));
    let broken = formula::Broken { name: text("torn"), error: text("line 1") };
    let listed = [formula::Listed::Usable(view), formula::Listed::Broken(broken)];
    all.insert("formula list", shown(listed));
    all.insert("formula check", shown([formula::Checked { ok: true, name: text("tidy"), steps: 1 }]));
    let core = Run::new(RunId(7), formula, &Config::default(), "ann", Timestamp(0));
    let run = run::Run::from(&core);
    let dry = run::Run::dry(&core, text("Look around"));
    all.insert("run show", shown([run.clone()]));
    all.insert("formula run", shown([run, dry]));
    let scheduled = run::Scheduled {
        formula: text("tidy"),
        last: Some(at()),
        next: Some(at()),
        outcome: Some(run::Status::Done),
        run: Some(RunId(7)),
        skipped_because: None,
    };
    all.insert("schedule", shown([scheduled]));
}

fn question() -> inbox::Question {
    let settled = inbox::Settled {
        how: inbox::SettlementKind::Answered,
        by: Some(text("ann")),
        at: at(),
        text: Some(text("The red ones.")),
    };
    inbox::Question {
        id: Some(QuestionId(7)),
        project: shop(),
        kind: Kind::Question,
        owner: Owner::Task(3),
        subject: text("Which apples?"),
        body: text("Which apples, and how many?"),
        issue: Some(3),
        pr: Some(9),
        session: Some(text("dev-shop-3.1")),
        outside: vec![text("dev-shop-3.1")],
        refused: vec![text("the sandbox refused example.org:443 once: nobody listed it")],
        artifacts: artifacts(),
        receipt: vec![evidence_example::receipt()],
        risk: Some(evidence_example::risk()),
        asked_at: at(),
        asked: 2,
        remind_at: Some(at()),
        expires_at: Some(at()),
        holds_up: 1,
        lines: Some(12),
        settle: vec![text("pointsman inbox answer 7 \"…\"")],
        settled: Some(settled),
    }
}

fn action() -> vault::Action {
    vault::Action {
        id: ActionId::new("ring-1").expect("an id"),
        project: shop(),
        kind: text("ring"),
        source: text("ann"),
        risk: Risk::High,
        reversible: false,
        requires_human: true,
        route: Route::Ask,
        status: Status::Pending,
        awaits_look: false,
        reason: None,
        hash: text("abc"),
        submitted_at: at(),
        expires_at: Some(at()),
        decided_by: None,
        decided_at: None,
        firings: 0,
        payload: json!({ "times": 3 }),
        submitted: vault::Submitted { risk: Risk::Low, reversible: false, requires_human: false },
    }
}

fn people(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    let tested = notice::Tested { notifier: NotifierKind::Desktop, status: text("sent"), error: None };
    all.insert("notify test", shown([tested]));
    let delivery = notice::Delivery {
        notifier: NotifierKind::Matrix,
        status: text("pending"),
        not_before: at(),
        settled_at: None,
        error: None,
    };
    let notice = notice::Notice {
        key: text("7.0"),
        at: at(),
        project: shop(),
        topic: Topic::Task(3),
        issue: Some(3),
        title: text("A question"),
        body: text("Which?"),
        urgent: true,
        times: 1,
        told: vec![delivery],
    };
    all.insert("notify list", shown([notice]));
    let token = web::Token {
        id: 3,
        label: text("the wall screen"),
        by: text("ann"),
        scopes: vec![text("read")],
        created_at: at(),
        token: None,
    };
    all.insert(
        "web open",
        shown([web::Link { url: text("http://pointsman.localhost:7180/login"), expires_at: at() }]),
    );
    all.insert("web token create", shown([web::Token { token: Some(text("secret")), ..token.clone() }]));
    all.insert("web token list", shown([token.clone()]));
    all.insert("web token revoke", shown([token]));
    all.insert("vault list", shown([action()]));
    all.insert("inbox", shown([question()]));
    let claim = Claim::new(3, text("3"), text("fix"), text("ann-1"), "In Progress");
    all.insert("claim", vec![serde_json::to_value(claim).expect("a claim is plain data")]);
    all.insert("claim done", shown([claim::Finished { issue: 3, closed: true }]));
    all.insert("release", shown([claim::Released { issue: 3, released: true }]));
    let read = phase::Read { phase: Phase::Escalate, reason: Some(text("Which?")) };
    all.insert("phase read", shown([read]));
    let played = demo::Task {
        issue: 1,
        project: text("shop"),
        title: text("A title"),
        story: text("clean"),
        outcome: text("merged"),
        sessions: 1,
        ci_runs: 1,
        pr: Some(9),
        states: vec![State::Backlog, State::Closed],
        differences: vec![text("none")],
    };
    let demo = demo::Demo { ok: true, seconds: 12.5, tasks: vec![played], troubles: vec![text("none")] };
    all.insert("demo", shown([demo]));
}

fn pipelines(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    let step =
        ci::Step { id: 1, pid: 1, name: text("test"), state: text("failure"), exit_code: 1, error: text("") };
    let workflow =
        ci::Workflow { name: text("main"), state: text("failure"), error: text(""), children: vec![step] };
    let pipeline = ci::Pipeline {
        number: 4,
        parent: 0,
        status: text("failure"),
        event: text("push"),
        sha: text("abc"),
        branch: text("main"),
        message: text("Fix"),
        workflows: None,
    };
    all.insert("ci status", shown([ci::Pipeline { workflows: Some(vec![workflow]), ..pipeline.clone() }]));
    all.insert("ci list", shown([pipeline]));
    let log = ci::StepLog { step: text("test"), status: text("failure"), exit: 1, log: text("red") };
    all.insert("ci logs [N]", shown([log]));
    let log = evidence::CiLog {
        run: Some(2),
        sha: Some(sha()),
        status: Some(evidence::CheckStatus::TimedOut),
        started_at: Some(at()),
        seconds: Some(1.5),
        log: text("green"),
    };
    all.insert("ci logs ISSUE_OR_PR", shown([log]));
    let failed = |class: Class| ci::FailedStep {
        pipeline: Some(4),
        step: text("test"),
        exit: Some(1),
        class,
        log: text("red"),
    };
    let infra = Class::Infra { reason: text("no space") };
    all.insert("ci failures", shown([failed(Class::Code), failed(infra.clone())]));
    all.insert("ci classify", shown([Class::Code, infra]));
}

fn artifacts() -> pointsman_view::evidence::Artifacts {
    pointsman_view::evidence::Artifacts {
        files: vec![pointsman_view::evidence::Artifact {
            from: pointsman_core::artifact::Origin::Ci,
            name: "coverage/index.html".to_owned(),
            bytes: 12_000,
            sha: Some(sha()),
            at: at(),
            path: "/state/projects/shop/artifacts/issue-3/ci-1/coverage/index.html".into(),
        }],
        left_out: vec!["key was left out: it is not a plain file".to_owned()],
    }
}
