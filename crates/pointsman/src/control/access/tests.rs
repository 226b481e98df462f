//! Every caller and every request. The table of docs/security.md is what comes out of it.

use std::path::PathBuf;

use pointsman_core::config::MergeStyle;
use pointsman_core::forge::{CheckState, StateFilter};
use pointsman_core::hook::{HookEvent, Report};
use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::labels;
use pointsman_core::part::question::QuestionId;
use pointsman_core::role::Role;
use pointsman_core::run::RunId;
use pointsman_core::task::{Order, ReviewVerdict};
use pointsman_core::time::Timestamp;
use pointsman_core::vault::{ActionId, Risk};

use super::{Access, Condition, Needs, may, name_of, needs};
use crate::control::caller::{Caller, Channel, OwnSession, Scopes, Unknown};
use crate::control::protocol::{
    ClaimOrder, Fix, ForgeCommand, HandoverCommand, InboxCommand, QueueCommand, Reading, Request, RunCommand,
    VaultCommand, WebCommand,
};

const ME: &str = "dev-shop-3.2";
const OTHER: &str = "dev-shop-4.1";
/// What a request says about its sender, whoever it is.
const CLAIMED: &str = "mallory";

fn shop() -> ProjectName {
    ProjectName::new("shop").unwrap()
}

fn sha(digit: &str) -> Sha {
    Sha::new(&digit.repeat(40)).unwrap()
}

fn own() -> OwnSession {
    let (issue, pr, head) = (Some(3), Some(5), Some(sha("a")));
    OwnSession { session: ME.to_owned(), project: shop(), issue, pr, head, role: Role::Dev }
}

fn report(session: &str) -> Request {
    let told = HookEvent::Prompted { messages: Vec::new() };
    Request::Hook {
        report: Report { id: "1".to_owned(), session: session.to_owned(), at: Timestamp(0), told },
    }
}

fn forge(command: ForgeCommand) -> Request {
    Request::Forge { project: shop(), command }
}

fn read(what: Reading) -> Request {
    Request::Read { project: shop(), what, json: false }
}

fn vault(command: VaultCommand) -> Request {
    Request::Vault { project: shop(), command }
}

fn issue(labels: &[&str]) -> Request {
    let labels = labels.iter().map(|&l| l.to_owned()).collect();
    forge(ForgeCommand::CreateIssue { title: "t".into(), body: "b".into(), labels, author: CLAIMED.into() })
}

fn review(verdict: ReviewVerdict) -> Request {
    forge(ForgeCommand::Review { number: 5, verdict, body: "b".into(), author: CLAIMED.into(), head: None })
}

fn submit() -> Request {
    vault(VaultCommand::Submit { text: "{}".into(), from: Some(OTHER.to_owned()) })
}

/// One of each, as the session [`ME`] would send it about itself. A request that is missing here fails [`all_are_there`].
fn every_request() -> Vec<Request> {
    let (me, by, project) = (ME.to_owned(), CLAIMED.to_owned(), shop());
    let id = || ActionId::new("a1").unwrap();
    let (branch, style) = ("topic".to_owned(), None::<MergeStyle>);
    let queue = |command| Request::Queue { project: shop(), command };
    let run = |command| Request::Run { project: shop(), command };
    let handover = |command| Request::Handover { project: shop(), command };
    let claim = |order| Request::Claim { project: shop(), order };
    let inbox = |command| Request::Inbox { project: shop(), question: QuestionId(7), command };
    let web = |command| Request::Web { command };
    let agent_id = "ann-1".to_owned();
    vec![
        Request::Status,
        Request::Down,
        Request::Halt { by: by.clone() },
        Request::Resume,
        Request::Order { project: project.clone(), issue: 3, order: Order::Pause },
        Request::Answer { project: project.clone(), issue: 3, by: by.clone(), text: "yes".into() },
        Request::Acknowledge { message: 7, session: Some(me.clone()) },
        Request::Checkpoint { session: me.clone(), phase: None, summary: None },
        Request::Measure { session: me.clone(), gauge: None, spent: None, quota: Vec::new() },
        report(ME),
        Request::Send { project: project.clone(), issue: 3, text: "t".into() },
        Request::ReloadProjects,
        Request::AddProject { config_path: "/p/pointsman.toml".into(), shown: None, hosts: Vec::new() },
        Request::RemoveProject { project: project.clone() },
        queue(QueueCommand::Add {
            branch: branch.clone(),
            checkout: None,
            priority: 0,
            style,
            by: by.clone(),
        }),
        queue(QueueCommand::Enter {
            branch: branch.clone(),
            head: sha("a"),
            pr: None,
            priority: 0,
            style,
            by: by.clone(),
        }),
        queue(QueueCommand::Sync { checkout: "/tmp".into(), by: by.clone() }),
        queue(QueueCommand::Synced { from: sha("a"), upto: sha("b"), commits: 1, by: by.clone() }),
        queue(QueueCommand::Retest { what: "main".into(), candidates: vec![], by: by.clone() }),
        queue(QueueCommand::Forget { what: "main".into(), trees: vec![], by: by.clone() }),
        queue(QueueCommand::Remove { what: "1".into(), by: by.clone() }),
        queue(QueueCommand::Try { branch: branch.clone(), checkout: None, style }),
        queue(QueueCommand::Undo {
            issue: 3,
            title: "t".into(),
            landed: sha("a"),
            before: None,
            reason: "r".into(),
            by: by.clone(),
        }),
        queue(QueueCommand::Pause { reason: "r".into() }),
        queue(QueueCommand::Resume),
        queue(QueueCommand::Look),
        run(RunCommand::Start { formula: "f".into(), by: by.clone() }),
        run(RunCommand::StepDone { session: me, step: "s".into() }),
        run(RunCommand::Stop { id: RunId(1), by: by.clone() }),
        submit(),
        vault(VaultCommand::Approve { id: id(), hash: "h".into(), again: false, by: by.clone() }),
        vault(VaultCommand::Reject { id: id(), reason: "r".into(), by: by.clone() }),
        vault(VaultCommand::Raise {
            id: id(),
            risk: Risk::High,
            irreversible: true,
            requires_human: true,
            reason: "r".into(),
            by: by.clone(),
        }),
        inbox(InboxCommand::Approve { by: by.clone() }),
        inbox(InboxCommand::Reject { reason: "r".into(), by: by.clone() }),
        inbox(InboxCommand::Answer { text: "t".into(), by: by.clone() }),
        inbox(InboxCommand::Dismiss { by: by.clone() }),
        Request::ForgeStats { project: project.clone() },
        Request::Mask { text: "t".into() },
        Request::Health { project: project.clone(), fix: Fix::Do },
        Request::ResumeRole { project: project.clone(), role: Role::Gardener },
        Request::LookNow { project: project.clone(), role: Role::Gardener },
        Request::TryNotifiers { project, key: "k".into() },
        read(Reading::Task { issue: 3 }),
        read(Reading::Explanation { issue: 3 }),
        read(Reading::CiLog { number: 3, run: Some(1) }),
        issue(&[]),
        forge(ForgeCommand::CreatePull {
            head: branch.clone(),
            title: "t".into(),
            body: "b".into(),
            author: by.clone(),
        }),
        forge(ForgeCommand::ListIssues { state: StateFilter::Open }),
        forge(ForgeCommand::ShowIssue { number: 3 }),
        forge(ForgeCommand::Comment { number: 3, body: "b".into(), author: by.clone() }),
        forge(ForgeCommand::Label { number: 3, add: vec!["x".into()], remove: Vec::new() }),
        forge(ForgeCommand::SetIssueOpen { number: 3, open: false }),
        forge(ForgeCommand::ListPulls { state: StateFilter::Open }),
        forge(ForgeCommand::ShowPull { number: 5 }),
        review(ReviewVerdict::Approve),
        forge(ForgeCommand::ClosePull { number: 5 }),
        forge(ForgeCommand::MergePull { number: 5 }),
        forge(ForgeCommand::ListBoard),
        forge(ForgeCommand::SetBoard { number: 3, status: None, agent: None }),
        forge(ForgeCommand::ListChecks { sha: sha("a") }),
        forge(ForgeCommand::SetCheck { sha: sha("a"), name: "ci".into(), state: CheckState::Success }),
        claim(ClaimOrder::Take { issue: 3, agent_id: agent_id.clone(), by: by.clone() }),
        claim(ClaimOrder::HandIn {
            issue: 3,
            branch: branch.clone(),
            summary: "s".into(),
            agent_id: agent_id.clone(),
            checkout: PathBuf::from("/p"),
        }),
        claim(ClaimOrder::CheckPushed { branch: branch.clone(), checkout: "/".into() }),
        claim(ClaimOrder::Sync { issue: 3, status: "s".into(), agent_id: agent_id.clone() }),
        claim(ClaimOrder::Look { pr: None, branch: branch.clone() }),
        claim(ClaimOrder::Finish { issue: 3, pr: None, branch, agent_id: agent_id.clone() }),
        claim(ClaimOrder::Release { issue: 3, agent_id }),
        claim(ClaimOrder::Board),
        handover(HandoverCommand::Take { issue: 3, by: by.clone() }),
        handover(HandoverCommand::Fetch { issue: 3 }),
        handover(HandoverCommand::Give { issue: 3, checkout: "/tmp".into(), head: sha("a"), by: by.clone() }),
        handover(HandoverCommand::Given { issue: 3, head: sha("a"), by: by.clone() }),
        web(WebCommand::Link { by: by.clone() }),
        web(WebCommand::CreateToken { label: "l".into(), read: true, order: false, approve: false, by }),
        web(WebCommand::ListTokens),
        web(WebCommand::RevokeToken { id: 1 }),
    ]
}

fn is_allowed(caller: &Caller, request: &Request) -> bool {
    match may(caller, request) {
        Access::Allowed(_) | Access::AllowedIf(..) => true,
        Access::Refused(why) => {
            assert!(why.len() > 20, "a sentence: {why}");
            false
        }
    }
}

fn allowed(caller: &Caller) -> Vec<String> {
    every_request().iter().filter(|request| is_allowed(caller, request)).map(name_of).collect()
}

fn person() -> Caller {
    Caller::Person { name: "ann".to_owned() }
}

fn session() -> Caller {
    Caller::Session(own())
}

fn token(scopes: Scopes, channel: Channel) -> Caller {
    Caller::Token { name: "ann".to_owned(), scopes, channel }
}

const EVERYTHING: Scopes = Scopes { read: true, order: true, approve: true };

fn unknowns() -> [Unknown; 7] {
    use Unknown::{AnotherUser, InATerminal, Marked, NotTold, OfTheDaemon, StrangeSession, Unseen};
    [Unseen, AnotherUser, OfTheDaemon, InATerminal, Marked, NotTold, StrangeSession]
}

#[test]
fn all_are_there() {
    let source = include_str!("../protocol.rs");
    let mut names: Vec<String> = Vec::new();
    for kind in [
        "Request",
        "ClaimOrder",
        "QueueCommand",
        "RunCommand",
        "VaultCommand",
        "InboxCommand",
        "ForgeCommand",
        "Reading",
        "HandoverCommand",
        "WebCommand",
    ] {
        let body = source.split(&format!("pub enum {kind} {{\n")).nth(1).unwrap();
        let body = body.split("\n}\n").next().unwrap();
        let variants = body.lines().filter_map(|line| line.strip_prefix("    ")).filter_map(|line| {
            let name = line.split([' ', ',', '{']).next()?;
            name.starts_with(|c: char| c.is_ascii_uppercase()).then(|| name.to_owned())
        });
        names.extend(variants.map(|name| format!("{kind}::{name}")));
    }
    let requests = every_request();
    // Nine requests are there by the commands in them.
    let nested = ["Forge", "Queue", "Run", "Vault", "Inbox", "Claim", "Read", "Handover", "Web"];
    let wanted =
        names.iter().filter(|n| !nested.iter().any(|outer| **n == format!("Request::{outer}"))).count();
    let mut known: Vec<String> = requests.iter().map(name_of).collect();
    known.sort();
    known.dedup();
    assert_eq!(known.len(), wanted, "{known:?}\n{names:?}");
    assert_eq!(names.iter().filter(|n| n.starts_with("Request::")).count(), 29);
}

#[test]
fn people_may_ask_everything_under_the_name_of_their_login() {
    for request in every_request() {
        let Access::Allowed(request) = may(&person(), &request) else { panic!("{}", name_of(&request)) };
        let text = serde_json::to_string(&request).unwrap();
        assert!(!text.contains(CLAIMED), "{text}");
        assert!(!text.contains("\"from\":\"dev"), "{text}");
    }
    let answer =
        every_request().into_iter().find(|request| matches!(request, Request::Answer { .. })).unwrap();
    let Access::Allowed(answer) = may(&person(), &answer) else { panic!() };
    assert!(matches!(*answer, Request::Answer { by, .. } if by == "ann"));
}

#[test]
fn a_session_may_ask_about_itself() {
    let expected = [
        "acknowledge",
        "checkpoint",
        "measure",
        "hook",
        "run step_done",
        "vault submit",
        "vault raise",
        "read task",
        "read explanation",
        "read ci_log",
        "forge create_issue",
        "forge list_issues",
        "forge show_issue",
        "forge show_pull",
        "forge list_checks",
    ];
    assert_eq!(allowed(&session()), expected);
}

#[test]
fn a_session_is_the_author_of_what_it_says() {
    for request in every_request() {
        let (Access::Allowed(request) | Access::AllowedIf(request, _)) = may(&session(), &request) else {
            continue;
        };
        let text = serde_json::to_string(&request).unwrap();
        assert!(!text.contains(CLAIMED) && !text.contains(OTHER), "{text}");
    }
    let Access::Allowed(request) = may(&session(), &submit()) else { panic!() };
    assert!(
        matches!(&*request, Request::Vault { command: VaultCommand::Submit { from: Some(from), .. }, .. } if from == "dev-shop-3"),
        "{request:?}"
    );
}

#[test]
fn a_session_speaks_for_no_other_session_project_issue_or_pull_request() {
    let elsewhere = ProjectName::new("bank").unwrap();
    let step = |project: ProjectName, session: &str| Request::Run {
        project,
        command: RunCommand::StepDone { session: session.to_owned(), step: "s".into() },
    };
    let raise = VaultCommand::Raise {
        id: ActionId::new("a1").unwrap(),
        risk: Risk::High,
        irreversible: false,
        requires_human: false,
        reason: String::new(),
        by: ME.to_owned(),
    };
    let refused = [
        Request::Checkpoint { session: OTHER.to_owned(), phase: None, summary: None },
        // An earlier or later one of the same issue is another one as well.
        Request::Measure { session: "dev-shop-3.1".to_owned(), gauge: None, spent: None, quota: Vec::new() },
        report(OTHER),
        step(shop(), OTHER),
        step(elsewhere.clone(), ME),
        Request::Vault { project: elsewhere.clone(), command: raise },
        Request::Vault {
            project: elsewhere.clone(),
            command: VaultCommand::Submit { text: "{}".into(), from: None },
        },
        Request::Forge { project: elsewhere.clone(), command: ForgeCommand::ShowIssue { number: 3 } },
        Request::Forge { project: elsewhere, command: ForgeCommand::ListIssues { state: StateFilter::Open } },
        forge(ForgeCommand::ShowPull { number: 6 }),
        forge(ForgeCommand::ListChecks { sha: sha("b") }),
        forge(ForgeCommand::ListIssues { state: StateFilter::All }),
        forge(ForgeCommand::ListIssues { state: StateFilter::Closed }),
        read(Reading::Task { issue: 4 }),
        read(Reading::Explanation { issue: 4 }),
        read(Reading::CiLog { number: 4, run: None }),
    ];
    for request in refused {
        assert!(!is_allowed(&session(), &request), "{request:?}");
        assert!(is_allowed(&person(), &request), "{request:?}");
    }
}

#[test]
fn some_of_it_depends_on_what_only_the_store_and_the_forge_know() {
    let condition = |request: &Request| match may(&session(), request) {
        Access::AllowedIf(_, condition) => Some(condition),
        Access::Allowed(_) => None,
        Access::Refused(why) => panic!("{why}"),
    };
    let acknowledge = |message| Request::Acknowledge { message, session: Some(OTHER.to_owned()) };
    assert_eq!(condition(&acknowledge(7)), Some(Condition::MessageIsOwn(7)));
    assert_eq!(condition(&acknowledge(0)), None, "the prompt");
    assert_eq!(condition(&forge(ForgeCommand::ShowIssue { number: 3 })), None);
    assert_eq!(condition(&forge(ForgeCommand::ShowIssue { number: 4 })), Some(Condition::IssueIsOpen(4)));
    assert_eq!(condition(&issue(&["bug"])), Some(Condition::MayFile));
}

#[test]
fn a_session_files_no_issue_that_somebody_would_start_on() {
    for (label, ..) in labels::ALL {
        assert!(!is_allowed(&session(), &issue(&["bug", label])), "{label}");
        assert!(is_allowed(&person(), &issue(&[label])));
    }
    assert!(!is_allowed(&session(), &issue(&[" Backlog "])), "some forges take it for the same");
    assert!(is_allowed(&session(), &issue(&["bug"])));
}

#[test]
fn the_look_of_the_vaults_agent_submits_nothing() {
    let look =
        Caller::Session(OwnSession { role: Role::Vault, session: "vault-shop-9.1".to_owned(), ..own() });
    assert!(!is_allowed(&look, &submit()));
    assert!(allowed(&look).contains(&"vault raise".to_owned()));
}

#[test]
fn keepers_and_launchers_report_about_their_session() {
    for caller in [Caller::Keeper { session: ME.to_owned() }, Caller::Launcher { session: ME.to_owned() }] {
        assert_eq!(allowed(&caller), ["measure", "hook"]);
        assert!(!is_allowed(&caller, &report(OTHER)));
    }
}

#[test]
fn nobody_else_may_ask_anything() {
    assert_eq!(
        allowed(&Caller::Runner { host: "box".to_owned() }),
        [""; 0],
        "no request has a result of an effect yet"
    );
    for unknown in unknowns() {
        assert_eq!(allowed(&Caller::Other(unknown)), [""; 0], "{unknown:?}");
    }
}

#[test]
fn a_token_is_good_for_its_scopes() {
    assert_eq!(allowed(&token(Scopes::default(), Channel::Web)), [""; 0]);
    for request in every_request() {
        let name = name_of(&request);
        let with = |read, order, approve, channel| {
            is_allowed(&token(Scopes { read, order, approve }, channel), &request)
        };
        let ways = [Channel::Web, Channel::Api, Channel::Mcp].map(|channel| {
            [
                with(true, false, false, channel),
                with(false, true, false, channel),
                with(false, false, true, channel),
            ]
        });
        let expected = match needs(&request) {
            Needs::Read => [[true, false, false]; 3],
            Needs::Order => [[false, true, false]; 3],
            Needs::Approve => [[false, false, true]; 3],
            Needs::Decide => [[false, false, true], [false, false, true], [false; 3]],
            Needs::Presence => [[false; 3]; 3],
        };
        assert_eq!(ways, expected, "{name}");
    }
    let all = allowed(&token(EVERYTHING, Channel::Api));
    for never in ["down", "add_project", "hook", "checkpoint", "run step_done"] {
        assert!(!all.contains(&never.to_owned()), "{never}");
    }
    assert_eq!(needs(&review(ReviewVerdict::RequestChanges)), Needs::Order);
    assert_eq!(needs(&Request::Health { project: shop(), fix: Fix::No }), Needs::Read);
    let Access::Allowed(said) = may(&token(EVERYTHING, Channel::Web), &issue(&[])) else { panic!() };
    assert!(serde_json::to_string(&said).unwrap().contains("\"author\":\"ann\""));
}

/// A row for all requests with the same rules.
fn table() -> String {
    let cells = |request: &Request| {
        let yes = |caller: &Caller| if is_allowed(caller, request) { "its own" } else { "no" };
        let token = match needs(request) {
            Needs::Read => "`read`",
            Needs::Order => "`order`",
            Needs::Approve => "`approve`",
            Needs::Decide => "`approve`, not by MCP",
            Needs::Presence => "no",
        };
        assert!(is_allowed(&person(), request));
        let keeper = yes(&Caller::Keeper { session: ME.to_owned() });
        format!("yes | {} | {keeper} | {token} | no", yes(&session()))
    };
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for request in every_request() {
        let (cells, name) = (cells(&request), format!("`{}`", name_of(&request)));
        match rows.iter_mut().find(|(known, _)| *known == cells) {
            Some((_, names)) => names.push(name),
            None => rows.push((cells, vec![name])),
        }
    }
    let mut text = "| request | people | a session | its keeper, its launcher | a token | others |\n|---|---|---|---|---|---|\n".to_owned();
    for (cells, names) in rows {
        text.push_str(&format!("| {} | {cells} |\n", names.join(", ")));
    }
    text
}

#[test]
fn the_table_of_the_documentation_is_this_one() {
    let table = table();
    let page = include_str!("../../../../../docs/security.md");
    assert!(page.contains(&table), "docs/security.md is to have:\n{table}");
}
