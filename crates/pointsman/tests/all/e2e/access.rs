//! Who may ask what, with real processes: every kind of request as a raw line on the socket, from wherever an agent, a
//! branch or an action can get to. What each caller may do is a table in the program; here it is whether they are told apart.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman_testkit::{PATIENCE, Setup, TestDaemon, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{shop, vault};

/// Where the speaker finds its requests, and under which name it writes down the replies.
const DIR: &str = "POINTSMAN_SPEAKER";
const AS: &str = "POINTSMAN_SPEAKER_AS";
/// More than all that the daemon takes.
const FLOOD: usize = 300;
/// For a reply; a daemon that is busy takes less.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// Not a test: the program that agents and CI of these tests run to speak to the daemon. Without its variables it is
/// nothing.
#[test]
fn speaker() {
    let (Some(dir), Ok(name)) = (std::env::var_os(DIR).map(PathBuf::from), std::env::var(AS)) else { return };
    let socket = fs::read_to_string(dir.join("socket")).unwrap();
    if name == "flood" {
        return flood(&dir, Path::new(&socket));
    }
    let requests = fs::read_to_string(dir.join(format!("{name}.requests")));
    let requests = requests.or_else(|_| fs::read_to_string(dir.join("requests"))).unwrap();
    let replies: Vec<String> = requests.lines().map(|line| ask(Path::new(&socket), line)).collect();
    write_whole(&dir.join(format!("{name}.replies")), &replies.join("\n"));
}

fn ask(socket: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(REPLY_LIMIT)).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply).unwrap();
    reply.trim_end().to_owned()
}

/// Takes every place there is and says nothing, until a file says that it is enough.
fn flood(dir: &Path, socket: &Path) {
    let mut open: Vec<UnixStream> = (0..FLOOD).map(|_| UnixStream::connect(socket).unwrap()).collect();
    let mut replies = Vec::new();
    eventually("the test to have seen enough", PATIENCE, || {
        open.retain_mut(|stream| {
            stream.set_nonblocking(true).unwrap();
            let mut text = String::new();
            match stream.read_to_string(&mut text) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && text.is_empty() => true,
                _ => {
                    replies.push(text.trim_end().to_owned());
                    false
                }
            }
        });
        write_whole(&dir.join("flood.replies"), &replies.join("\n"));
        dir.join("enough").exists().then_some(())
    });
}

fn write_whole(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).unwrap();
    fs::rename(draft, path).unwrap();
}

/// One of every kind, about issue 1 and its session.
fn requests(daemon: &TestDaemon) -> Vec<Value> {
    let sha = "a".repeat(40);
    let forge = |command: Value| json!({ "request": "forge", "project": "shop", "command": command });
    let queue = |command: Value| json!({ "request": "queue", "project": "shop", "command": command });
    let run = |command: Value| json!({ "request": "run", "project": "shop", "command": command });
    let vault = |command: Value| json!({ "request": "vault", "project": "shop", "command": command });
    let inbox =
        |command: Value| json!({ "request": "inbox", "project": "shop", "question": 1, "command": command });
    let handover = |command: Value| json!({ "request": "handover", "project": "shop", "command": command });
    let claim = |order: Value| json!({ "request": "claim", "project": "shop", "order": order });
    let read = |what: Value| json!({ "request": "read", "project": "shop", "what": what, "json": true });
    let web = |command: Value| json!({ "request": "web", "command": command });
    let evil = daemon.path("home/evil/pointsman.toml");
    vec![
        json!({ "request": "status" }),
        json!({ "request": "down" }),
        json!({ "request": "halt", "by": "ann" }),
        json!({ "request": "resume" }),
        json!({ "request": "order", "project": "shop", "issue": 1, "order": "stop" }),
        json!({ "request": "answer", "project": "shop", "issue": 1, "by": "ann", "text": "Yes." }),
        json!({ "request": "acknowledge", "message": 0, "session": null }),
        json!({ "request": "checkpoint", "session": "dev-shop-1.1", "phase": null, "summary": "half" }),
        json!({ "request": "checkpoint", "session": "dev-shop-2.1", "phase": null, "summary": "half" }),
        json!({ "request": "measure", "session": "dev-shop-1.1", "gauge": null, "spent": null }),
        json!({ "request": "hook", "report": { "id": "h", "session": "dev-shop-1.1", "at": 0,
            "told": { "hook": "prompted", "messages": [] } } }),
        json!({ "request": "hook", "report": { "id": "h", "session": "dev-shop-2.1", "at": 0,
            "told": { "hook": "prompted", "messages": [] } } }),
        json!({ "request": "send", "project": "shop", "issue": 1, "text": "Go on." }),
        json!({ "request": "reload_projects" }),
        json!({ "request": "add_project", "config_path": evil }),
        json!({ "request": "remove_project", "project": "shop" }),
        queue(
            json!({ "queue": "add", "branch": "x", "checkout": null, "priority": 0, "style": null, "by": "ann" }),
        ),
        queue(
            json!({ "queue": "enter", "branch": "x", "head": sha, "priority": 0, "style": null, "by": "ann" }),
        ),
        queue(json!({ "queue": "sync", "checkout": "/", "by": "ann" })),
        queue(json!({ "queue": "synced", "from": sha, "upto": sha, "commits": 1, "by": "ann" })),
        queue(json!({ "queue": "try", "branch": "x", "checkout": null, "style": null })),
        queue(json!({ "queue": "retest", "what": "main", "candidates": [], "by": "ann" })),
        queue(json!({ "queue": "forget", "what": "main", "trees": [], "by": "ann" })),
        queue(
            json!({ "queue": "undo", "issue": 3, "title": "t", "landed": sha, "before": null, "reason": "r", "by": "ann" }),
        ),
        queue(json!({ "queue": "remove", "what": "1", "by": "ann" })),
        queue(json!({ "queue": "pause", "reason": "r" })),
        queue(json!({ "queue": "resume" })),
        queue(json!({ "queue": "look" })),
        run(json!({ "run": "start", "formula": "f", "by": "ann" })),
        run(json!({ "run": "step_done", "session": "dev-shop-1.1", "step": "s" })),
        run(json!({ "run": "stop", "id": 1, "by": "ann" })),
        vault(json!({ "vault": "submit", "text": "{}", "from": null })),
        vault(json!({ "vault": "approve", "id": "a1", "hash": "h", "again": false, "by": "ann" })),
        vault(json!({ "vault": "reject", "id": "a1", "reason": "r", "by": "ann" })),
        vault(
            json!({ "vault": "raise", "id": "a1", "risk": "high", "irreversible": true, "requires_human": true,
            "reason": "r", "by": "ann" }),
        ),
        inbox(json!({ "inbox": "approve", "by": "ann" })),
        inbox(json!({ "inbox": "reject", "reason": "r", "by": "ann" })),
        inbox(json!({ "inbox": "answer", "text": "Yes.", "by": "ann" })),
        inbox(json!({ "inbox": "dismiss", "by": "ann" })),
        handover(json!({ "handover": "take", "issue": 1, "by": "ann" })),
        handover(json!({ "handover": "fetch", "issue": 1 })),
        handover(json!({ "handover": "give", "issue": 1, "checkout": "/", "head": sha, "by": "ann" })),
        handover(json!({ "handover": "given", "issue": 1, "head": sha, "by": "ann" })),
        json!({ "request": "forge_stats", "project": "shop" }),
        json!({ "request": "mask", "text": "t" }),
        json!({ "request": "health", "project": "shop", "fix": "do" }),
        json!({ "request": "resume_role", "project": "shop", "role": "gardener" }),
        json!({ "request": "look_now", "project": "shop", "role": "gardener" }),
        json!({ "request": "try_notifiers", "project": "shop", "key": "k" }),
        read(json!({ "read": "task", "issue": 1 })),
        read(json!({ "read": "task", "issue": 2 })),
        read(json!({ "read": "explanation", "issue": 1 })),
        read(json!({ "read": "ci_log", "number": 1, "run": null })),
        forge(
            json!({ "forge": "create_issue", "title": "Found", "body": "b", "labels": [], "author": "ann" }),
        ),
        forge(
            json!({ "forge": "create_issue", "title": "Mine", "body": "b", "labels": ["backlog"], "author": "ann" }),
        ),
        forge(json!({ "forge": "create_pull", "head": "x", "title": "t", "body": "b", "author": "ann" })),
        forge(json!({ "forge": "list_issues", "state": "open" })),
        forge(json!({ "forge": "list_issues", "state": "all" })),
        forge(json!({ "forge": "show_issue", "number": 1 })),
        forge(json!({ "forge": "show_issue", "number": 2 })),
        forge(json!({ "forge": "show_issue", "number": 3 })),
        forge(json!({ "forge": "comment", "number": 1, "body": "b", "author": "ann" })),
        forge(json!({ "forge": "label", "number": 1, "add": ["x"], "remove": [] })),
        forge(json!({ "forge": "set_issue_open", "number": 1, "open": false })),
        forge(json!({ "forge": "list_pulls", "state": "all" })),
        forge(json!({ "forge": "show_pull", "number": 99 })),
        forge(json!({ "forge": "review", "number": 1, "verdict": "approve", "body": "b", "author": "ann" })),
        forge(json!({ "forge": "close_pull", "number": 1 })),
        forge(json!({ "forge": "merge_pull", "number": 1 })),
        forge(json!({ "forge": "list_board" })),
        forge(json!({ "forge": "set_board", "number": 1, "status": null, "agent": null })),
        forge(json!({ "forge": "list_checks", "sha": sha })),
        forge(json!({ "forge": "set_check", "sha": sha, "name": "ci", "state": "success" })),
        claim(json!({ "claim": "take", "issue": 1, "agent_id": "a", "by": "ann" })),
        claim(
            json!({ "claim": "hand_in", "issue": 1, "branch": "x", "summary": "s", "agent_id": "a", "checkout": "/" }),
        ),
        claim(json!({ "claim": "check_pushed", "branch": "x", "checkout": "/" })),
        claim(json!({ "claim": "sync", "issue": 1, "status": "s", "agent_id": "a" })),
        claim(json!({ "claim": "look", "pr": null, "branch": "x" })),
        claim(json!({ "claim": "finish", "issue": 1, "pr": null, "branch": "x", "agent_id": "a" })),
        claim(json!({ "claim": "release", "issue": 1, "agent_id": "a" })),
        claim(json!({ "claim": "board" })),
        web(json!({ "web": "link", "by": "ann" })),
        web(
            json!({ "web": "create_token", "label": "l", "read": true, "order": true, "approve": true, "by": "ann" }),
        ),
        web(json!({ "web": "list_tokens" })),
        web(json!({ "web": "revoke_token", "id": 1 })),
    ]
}

/// The request's name in the table of docs/security.md.
fn name(request: &Value) -> String {
    let kind = request["request"].as_str().unwrap();
    let inner = ["command", "order", "what"].iter().find_map(|part| request[part][kind].as_str());
    inner.map_or_else(|| kind.to_owned(), |inner| format!("{kind} {inner}"))
}

#[test]
fn every_request_of_the_table_is_sent_from_everywhere() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let page = fs::read_to_string(page).unwrap();
    let table = page.lines().skip_while(|line| !line.starts_with("| request |")).skip(2);
    let rows = table.take_while(|line| line.starts_with('|')).map(|line| line.split('|').nth(1).unwrap());
    let listed: BTreeSet<String> =
        rows.flat_map(|row| row.split(',')).map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
    let sent: BTreeSet<String> = requests(&shop().build()).iter().map(name).collect();
    assert!(listed.len() > 40, "{listed:?}");
    assert_eq!(sent, listed);
}

/// Which of these a session gets an answer to, by their place in [`requests`]; the answer may be that there is no such thing.
fn is_for_sessions(request: &Value) -> bool {
    let own = |session: &Value| session == "dev-shop-1.1";
    let (command, kind) = (&request["command"], request["request"].as_str().unwrap());
    match kind {
        "acknowledge" => true,
        "checkpoint" | "measure" => own(&request["session"]),
        "hook" => own(&request["report"]["session"]),
        "run" => command["run"] == "step_done",
        "read" => request["what"]["issue"] == 1 || request["what"]["number"] == 1,
        "vault" => command["vault"] == "submit" || command["vault"] == "raise",
        "forge" => match command["forge"].as_str().unwrap() {
            "create_issue" => command["labels"] == json!([]),
            "list_issues" => command["state"] == "open",
            // The second one is open, the third is closed.
            "show_issue" => command["number"] != 3,
            _ => false,
        },
        _ => false,
    }
}

/// Whether it was asked who asks, and the answer was no.
fn was_turned_away(reply: &Value) -> bool {
    let message = reply["message"].as_str().unwrap_or_default();
    reply["kind"] == "refused"
        && ["is refused: ", " may not ", " speaks for itself", " may read ", " may list "]
            .iter()
            .any(|words| message.contains(words))
}

struct Lab {
    daemon: TestDaemon,
    requests: Vec<Value>,
}

impl Lab {
    /// A world whose agent and CI are these scripts; `SPEAK name` has the speaker send everything.
    fn new(setup: Setup, agent: &str, ci: &str) -> Self {
        let exe = std::env::current_exe().unwrap();
        // What a process that cleared its environment still needs to find its lines.
        let speak = "speak() { env POINTSMAN_SPEAKER_AS=\"$1\" \"$HOME/speak\" >/dev/null 2>&1; }\n";
        let daemon = setup
            .agent(&format!("{speak}{agent}"))
            .file("ci.sh", &format!("#!/bin/bash\n{speak}{ci}"))
            .set("timing.idle_look", "\"10m\"")
            .build();
        let home = daemon.path("home");
        let speaker = format!(
            "#!/bin/bash\nexport POINTSMAN_SPEAKER={:?}\nexec {:?} --exact e2e::access::speaker --nocapture\n",
            home.join("lines"),
            exe
        );
        write_program(&home.join("speak"), &speaker);
        // Twice out of everything: from its parents, its session and its environment.
        write_program(
            &home.join("detach"),
            "#!/bin/bash\n(setsid env -i PATH=\"$PATH\" POINTSMAN_SPEAKER_AS=\"$1\" \"$HOME/speak\" >/dev/null 2>&1 &) &\n",
        );
        write_program(
            &home.join("deep"),
            "#!/bin/bash\nif [ \"$1\" -gt 0 ]; then \"$0\" $(($1 - 1)); else POINTSMAN_SPEAKER_AS=deep \"$HOME/speak\"; fi\n:\n",
        );
        fs::create_dir(home.join("lines")).unwrap();
        fs::write(home.join("lines/socket"), daemon.control_socket().to_str().unwrap()).unwrap();
        fs::create_dir(home.join("evil")).unwrap();
        fs::write(home.join("evil/pointsman.toml"), "name = \"evil\"\nprimary_branch = \"main\"\n").unwrap();
        let requests = requests(&daemon);
        let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
        fs::write(home.join("lines/requests"), lines.join("\n")).unwrap();
        daemon.start();
        Self { daemon, requests }
    }

    fn lines(&self, name: &str) -> PathBuf {
        self.daemon.path("home/lines").join(name)
    }

    fn go(&self, name: &str) {
        fs::write(self.lines(name), "").unwrap();
    }

    /// What was answered to a speaker of this name.
    fn replies(&self, name: &str) -> Vec<Value> {
        let file = self.lines(&format!("{name}.replies"));
        let text = self.daemon.wait_for(&format!("{name} to be answered"), || fs::read_to_string(&file).ok());
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{name}: {line}")))
            .collect()
    }

    fn has_only_a_sessions_rights(&self, name: &str) {
        let replies = self.replies(name);
        assert_eq!(replies.len(), self.requests.len());
        for (request, reply) in self.requests.iter().zip(&replies) {
            assert_eq!(was_turned_away(reply), !is_for_sessions(request), "{name}: {request}\n{reply}");
        }
    }

    fn has_no_rights(&self, name: &str, because: &str) {
        let replies = self.replies(name);
        assert_eq!(replies.len(), self.requests.len());
        for (request, reply) in self.requests.iter().zip(&replies) {
            let message = reply["message"].as_str().unwrap_or_default();
            assert!(was_turned_away(reply) && message.contains(because), "{name}: {request}\n{reply}");
        }
    }

    fn nothing_came_of_it(&self) {
        let daemon = &self.daemon;
        assert!(!daemon.has_ended());
        let names: Vec<Value> =
            daemon.json(&["project", "list"]).as_array().unwrap().iter().map(|p| p["name"].clone()).collect();
        assert_eq!(names, ["shop"]);
        assert!(daemon.comments(1).iter().all(|comment| comment != "b"), "{:?}", daemon.comments(1));
        assert!(!daemon.labels(1).contains(&"x".to_owned()));
        assert_eq!(daemon.issue(1)["state"], "open");
    }
}

fn write_program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Speaks from everywhere it can get to.
const AGENT: &str = r#"
read -r prompt
until [ -e "$HOME/lines/go" ]; do sleep 0.02; done
speak session
"$HOME/deep" 120
"$HOME/detach" detached
# Our own tmux server starts whatever it is told to.
tmux -S "$(dirname "$(cat "$HOME/lines/socket")")/tmux.sock" new-session -d "HOME='$HOME' '$HOME/detach' window; sleep 1000"
until [ -e "$HOME/lines/window.replies" ]; do sleep 0.02; done
touch "$HOME/lines/first"
until [ -e "$HOME/lines/stopped" ]; do sleep 0.02; done
env -u POINTSMAN_SESSION POINTSMAN_SPEAKER_AS=stopped "$HOME/speak" >/dev/null 2>&1
speak again
echo x > x; git add --all; git commit --quiet --message 'Add x'; git push --quiet origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
read -r failed
echo PHASE:escalate > "$PHASE_FILE"
until [ -e "$HOME/lines/escalated" ]; do sleep 0.02; done
speak answer
read -r answer
sleep 1000
"#;

/// Speaks from inside and from outside of its group.
const CI: &str = r#"
speak ci
"$HOME/detach" ci-detached
until [ -e "$HOME/lines/ci-detached.replies" ]; do sleep 0.02; done
exit 1
"#;

/// A vault handler that speaks, and leaves a process behind that does too. It stays until that one is out of its group,
/// which is swept when it ends.
const HANDLER: &str = r#"["/bin/bash", "-c", "POINTSMAN_SPEAKER_AS=handler \"$HOME/speak\"; \"$HOME/detach\" handler-detached; until [ -e \"$HOME/lines/handler-detached.replies\" ]; do sleep 0.02; done"]"#;

#[test]
fn e2e_only_what_is_allowed_is_done_wherever_it_is_asked_from() {
    speaks_from_everywhere();
}

/// As in a container that lets no process gain privileges: the daemon and its people are marked like everybody else.
#[test]
fn e2e_only_what_is_allowed_is_done_where_everybody_is_marked() {
    let marked = std::thread::spawn(|| {
        pointsman_adapters::process::lineage::mark_this_thread().unwrap();
        speaks_from_everywhere();
    });
    marked.join().unwrap();
}

fn speaks_from_everywhere() {
    let setup = shop().set("vault.types.speak.command", HANDLER).set("vault.types.speak.risk", "\"low\"");
    let lab = Lab::new(setup.set("vault.types.speak.reversible", "true"), AGENT, CI);
    let daemon = &lab.daemon;
    assert_eq!(daemon.file_issue_with("Speak", "Please."), 1);
    // One that is open, and one that is closed.
    daemon.json(&["forge", "issue", "create", "--title", "Open", "--body", "b"]);
    daemon.json(&["forge", "issue", "create", "--title", "Closed", "--body", "b"]);
    daemon.json(&["forge", "issue", "close", "3"]);
    daemon.wait_session(1, 1);
    daemon.session_pid(1);
    lab.go("go");
    lab.has_only_a_sessions_rights("session");
    lab.has_only_a_sessions_rights("deep");
    lab.has_no_rights("detached", "no_new_privs");
    lab.has_no_rights("window", "no_new_privs");
    lab.nothing_came_of_it();

    // A tmux server that does not answer makes nobody a person.
    daemon.wait_for("the first round", || lab.lines("first").exists().then_some(()));
    let tmux: u32 = daemon.tmux(&["display-message", "-p", "#{pid}"]).trim().parse().unwrap();
    signal(tmux, Signal::STOP);
    lab.go("stopped");
    lab.has_only_a_sessions_rights("stopped");
    // It has filed three by now.
    let again = lab.replies("again");
    signal(tmux, Signal::CONT);
    let filing = lab.requests.iter().position(|r| r["command"]["labels"] == json!([])).unwrap();
    assert!(
        again[filing]["message"].as_str().unwrap().contains("limits.session_issues"),
        "{}",
        again[filing]
    );
    let issues = daemon.json(&["forge", "issue", "list", "--state", "all"]);
    let authors = issues.as_array().unwrap().iter().filter(|i| i["title"] == "Found").count();
    assert_eq!(authors, 3);
    lab.nothing_came_of_it();

    // What CI and a handler run is the daemon's, and has no more to say when it is not.
    lab.has_no_rights("ci", "the daemon started");
    lab.has_no_rights("ci-detached", "no_new_privs");
    assert_eq!(vault::submit(daemon, &vault::action("s1", "speak")).code, Some(0));
    lab.has_no_rights("handler", "the daemon started");
    lab.has_no_rights("handler-detached", "no_new_privs");
    lab.nothing_came_of_it();

    // A session does not answer its own question; the same request from a person does.
    daemon.wait_state(1, "escalated");
    let answer = lab.requests.iter().find(|request| request["request"] == "answer").unwrap().to_string();
    fs::write(lab.lines("answer.requests"), &answer).unwrap();
    lab.go("escalated");
    assert!(was_turned_away(&lab.replies("answer")[0]));
    assert_eq!(daemon.task(1)["state"], "escalated");
    let reply: Value = serde_json::from_str(&ask(&daemon.control_socket(), &answer)).unwrap();
    assert_eq!(reply["reply"], "done", "{reply}");
    let answered = daemon
        .wait_for("the answer", || daemon.events(1).into_iter().find(|event| event["kind"] == "answered"));
    assert_eq!(answered["data"]["by"], crate::login(), "{answered}");
}

#[test]
fn e2e_people_may_ask_everything() {
    let lab = Lab::new(shop(), "read -r prompt; sleep 1000", "exit 0");
    let daemon = &lab.daemon;
    daemon.file_issue_with("Wait", "Please.");
    daemon.json(&["forge", "issue", "create", "--title", "Open", "--body", "b"]);
    daemon.wait_session(1, 1);
    let last =
        |request: &Value| ["down", "halt", "remove_project"].contains(&request["request"].as_str().unwrap());
    let mut said = BTreeMap::new();
    for request in lab.requests.iter().filter(|request| !last(request)) {
        let reply: Value =
            serde_json::from_str(&ask(&daemon.control_socket(), &request.to_string())).unwrap();
        assert!(!was_turned_away(&reply), "{request}\n{reply}");
        *said.entry(reply["reply"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert!(said["done"] > 20, "{said:?}");
    let comments = daemon.issue(1)["comments"].as_array().cloned().unwrap_or_default();
    let said = comments.iter().find(|comment| comment["body"] == "b").expect("it was written");
    assert_eq!(said["author"], crate::login(), "whatever the request says");
    for request in ["halt\",\"by\":\"ann", "resume", "down"] {
        let reply = ask(&daemon.control_socket(), &format!("{{\"request\":\"{request}\"}}"));
        assert!(reply.contains("done"), "{reply}");
    }
    daemon.wait_for("the daemon to stop", || daemon.has_ended().then_some(()));
}

#[test]
fn e2e_a_session_without_a_terminal_has_the_same_rights() {
    let agent = r#"
cat > /dev/null
until [ -e "$HOME/lines/go" ]; do sleep 0.02; done
speak session
"$HOME/detach" detached
until [ -e "$HOME/lines/detached.replies" ]; do sleep 0.02; done
sleep 1000
"#;
    let lab = Lab::new(shop().set("agent.runtime", "\"headless\""), agent, "exit 0");
    let daemon = &lab.daemon;
    daemon.file_issue_with("Speak", "Please.");
    for title in ["Open", "Closed"] {
        daemon.json(&["forge", "issue", "create", "--title", title, "--body", "b"]);
    }
    daemon.json(&["forge", "issue", "close", "3"]);
    daemon.wait_session(1, 1);
    daemon.session_pid(1);
    lab.go("go");
    lab.has_only_a_sessions_rights("session");
    // Outside a sandbox the launcher adopts what detaches, so it is still known as the session.
    lab.has_only_a_sessions_rights("detached");
    lab.nothing_came_of_it();
}

#[test]
fn e2e_without_a_daemon_a_command_looks_at_itself_by_the_same_rules() {
    let agent = r#"
read -r prompt
until [ -e "$HOME/lines/go" ]; do sleep 0.02; done
try() { "$@" >> "$HOME/said" 2>&1; echo "$?" >> "$HOME/codes"; }
p() { env -u POINTSMAN_SESSION PROGRAM --project shop "$@"; }
try p task answer 1 Yes.
try p forge issue close 1
try p forge issue create --title Found --body b
try p up
try setsid --wait env -i PATH="$PATH" HOME="$HOME" STATE PROGRAM --project shop forge issue label 1 --add mine
(setsid env -i PATH="$PATH" HOME="$HOME" STATE bash -c '
    PROGRAM --project shop forge issue label 1 --add mine >> "$HOME/said" 2>&1; echo $? > "$HOME/orphan"' &) &
touch "$HOME/lines/over"
sleep 1000
"#;
    let program = env!("CARGO_BIN_EXE_pointsman");
    let state =
        "POINTSMAN_STATE_DIR=\"$POINTSMAN_STATE_DIR\" POINTSMAN_RUNTIME_DIR=\"$POINTSMAN_RUNTIME_DIR\"";
    let lab = Lab::new(shop(), &agent.replace("PROGRAM", program).replace("STATE", state), "exit 0");
    let daemon = &lab.daemon;
    daemon.file_issue_with("Speak", "Please.");
    daemon.wait_session(1, 1);
    daemon.session_pid(1);
    daemon.stop_daemon();
    lab.go("go");
    daemon.wait_for("all tries", || daemon.path("home/orphan").exists().then_some(()));
    let read = |name: &str| fs::read_to_string(daemon.path("home").join(name)).unwrap();
    assert_eq!(read("codes"), "3\n3\n0\n3\n3\n", "{}", read("said"));
    assert_eq!(read("orphan"), "3\n", "{}", read("said"));
    assert_eq!(
        (daemon.labels(1), &daemon.issue(1)["state"]),
        (vec!["in-progress".to_owned()], &"open".into())
    );
    // The same from a person.
    daemon.json(&["forge", "issue", "label", "1", "--add", "mine"]);
    daemon.start();
    assert_eq!(daemon.labels(1), ["in-progress", "mine"]);
}

#[test]
fn e2e_a_session_that_floods_the_socket_locks_nobody_out() {
    let agent = r#"
read -r prompt
until [ -e "$HOME/lines/go" ]; do sleep 0.02; done
speak flood
sleep 1000
"#;
    let lab = Lab::new(shop(), agent, "exit 0");
    let daemon = &lab.daemon;
    daemon.file_issue_with("Flood", "Please.");
    daemon.wait_session(1, 1);
    daemon.session_pid(1);
    lab.go("go");
    // All but the few that a session may have are turned away, with a sentence.
    let refused = daemon.wait_for("the flood", || {
        let text = fs::read_to_string(lab.lines("flood.replies")).ok()?;
        let refused =
            text.lines().filter(|line| line.contains("16 connections are open, the limit for session"));
        Some(refused.count()).filter(|count| *count > FLOOD / 2)
    });
    assert!(refused < FLOOD, "some were heard");
    for _ in 0..20 {
        assert!(daemon.json(&["status"])["daemon"]["pid"].is_u64());
    }
    lab.go("enough");
}

#[test]
fn e2e_a_request_that_is_too_long_is_told_so() {
    let agent = r#"
read -r prompt
until [ -e "$HOME/lines/go" ]; do sleep 0.02; done
speak long
sleep 1000
"#;
    let lab = Lab::new(shop(), agent, "exit 0");
    let daemon = &lab.daemon;
    daemon.file_issue_with("Speak", "Please.");
    daemon.wait_session(1, 1);
    daemon.session_pid(1);
    // More than one MiB, and more than a socket holds.
    let long = |bytes: usize| {
        let body = "x".repeat(bytes);
        let command = json!({ "forge": "comment", "number": 1, "body": body, "author": "ann" });
        json!({ "request": "forge", "project": "shop", "command": command }).to_string()
    };
    fs::write(lab.lines("long.requests"), [long(1_200_000), long(20_000_000)].join("\n")).unwrap();
    lab.go("go");
    for reply in lab.replies("long") {
        assert_eq!(reply["kind"], "refused", "{reply}");
        assert!(reply["message"].as_str().unwrap().contains("longer than 1 MiB"), "{reply}");
    }
    let person: Value = serde_json::from_str(&ask(&daemon.control_socket(), &long(1_200_000))).unwrap();
    assert_eq!(person["reply"], "done", "{person}");
}

#[test]
fn e2e_a_command_without_a_daemon_leaves_the_database_of_an_earlier_version_alone() {
    let daemon = shop().build();
    daemon.json(&["project", "add", "."]);
    let database = daemon.state().join("pointsman.db");
    // SQLite keeps the version here, as four bytes.
    let version = |bytes: &[u8]| u32::from_be_bytes(bytes[60..64].try_into().unwrap());
    let mut old = fs::read(&database).unwrap();
    assert!(version(&old) > 7);
    old[60..64].copy_from_slice(&7_u32.to_be_bytes());
    fs::write(&database, &old).unwrap();
    for command in [["ack", "m-1"].as_slice(), &["project", "remove", "shop"]] {
        let refused = daemon.run(command);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("pointsman up"), "{refused:?}");
    }
    assert_eq!(version(&fs::read(&database).unwrap()), 7);
}

#[test]
fn e2e_the_tmux_server_of_an_earlier_release_is_named_and_replaced() {
    if pointsman_adapters::process::lineage::is_marked(std::process::id()).unwrap() {
        return pointsman_testkit::not_run("privileges", "here every process carries the mark");
    }
    let daemon = shop().build();
    let old = ["-f", "/dev/null", "new-session", "-d", "-s", "_keeper", "sleep", "infinity"];
    daemon.tmux(&old);
    daemon.tmux(&["new-session", "-d", "-s", "old", "sleep", "infinity"]);
    daemon.tmux(&["set-option", "-p", "-t", "=old:", "@epoch", "dev-shop-9_1"]);
    daemon.start();
    let problems = || daemon.json(&["status"])["daemon"]["problems"].to_string();
    assert!(problems().contains("started by an earlier release"), "{}", problems());
    let grade = || {
        let report: Value = serde_json::from_str(&daemon.run(&["doctor", "--json"]).stdout).unwrap();
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == "tmux_mark").map(|check| check["status"].clone())
    };
    assert_eq!(grade(), Some("warn".into()));
    daemon.tmux(&["kill-session", "-t", "=old:"]);
    daemon.wait_for("it to be replaced", || (problems() == "[]").then_some(()));
    assert_eq!(grade(), Some("ok".into()));
}
