//! The network of a sandbox: nothing is reached directly, and through the proxy only what is listed.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointsman_testkit::TestDaemon;

use super::{sandbox_works, shop};

/// A server on the loopback interface of the machine that counts who comes, by TCP and by UDP.
struct Canary {
    port: u16,
    visits: Arc<AtomicUsize>,
    datagrams: Arc<AtomicUsize>,
}

impl Canary {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let visits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&visits);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                // Whole: what is not read when the connection is closed resets it, and the answer may be lost.
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    match stream.read(&mut byte) {
                        Ok(1..) => head.extend(byte),
                        _ => break,
                    }
                }
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached");
            }
        });
        let datagrams = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&datagrams);
        let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        std::thread::spawn(move || {
            while socket.recv(&mut [0; 16]).is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { port, visits, datagrams }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

/// Everything that a branch's CI, or an agent, tries. `reached` is printed for what it should not.
const PROBES: &str = r#"
. ./targets
try() { name=$1; shift; timeout 10 "$@" > out 2>&1; if grep -q reached out; then echo "reached $name"; else echo "kept from $name"; cat out; fi; }
ask() { exec 3<> "/dev/tcp/$1/$2" && printf '%s\r\n\r\n' "$3" >&3 && cat <&3; }
export -f ask
proxy=${HTTP_PROXY#http://}
to="${proxy%:*} ${proxy#*:}"
try direct bash -c "ask 127.0.0.1 $closed 'GET / HTTP/1.0'"
try direct-to-the-listed bash -c "ask 127.0.0.1 $open 'GET / HTTP/1.0'"
try name-of-this-machine bash -c "ask localhost $closed 'GET / HTTP/1.0'"
try abstract-socket python3 -c "
import socket
s = socket.socket(socket.AF_UNIX); s.connect(b'\0$abstract'); print(s.recv(100))"
try udp bash -c "exec 3<> /dev/udp/127.0.0.1/$closed && echo x >&3"
try unlisted bash -c "ask $to 'CONNECT unlisted.example.org:443 HTTP/1.1'"
try address bash -c "ask $to 'CONNECT 127.0.0.1:$closed HTTP/1.1'"
try address-in-one-number bash -c "ask $to 'CONNECT 2130706433:$closed HTTP/1.1'"
try private-name bash -c "ask $to 'GET http://localhost:$closed/ HTTP/1.1'"
try host-header bash -c "ask $to 'GET http://127.0.0.1:$closed/ HTTP/1.1
Host: 127.0.0.1:$open'"
answer=$(timeout 10 bash -c "ask $to 'GET http://127.0.0.1:$open/ HTTP/1.1'")
case $answer in *reached*) echo "can reach what is listed" ;; *) echo "cannot reach what is listed: $answer" ;; esac
answer=$(timeout 10 bash -c "ask $to 'CONNECT unlisted.example.org:443 HTTP/1.1'")
case $answer in *"Do not try to get around this"*) echo "is told what to do" ;; *) echo "is not told: $answer" ;; esac
test "$https_proxy" = "$HTTP_PROXY" && test "$ALL_PROXY" = "$all_proxy" && echo "has all variables"
rm -f out
"#;

/// What the probes are about.
struct World {
    daemon: TestDaemon,
    open: Canary,
    closed: Canary,
    _abstract: UnixListener,
}

fn world(mode: &str, agent: Option<&str>, ci: &str) -> World {
    let (open, closed) = (Canary::start(), Canary::start());
    let name = format!("pointsman-canary-{}", closed.port);
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        for mut stream in accepting.incoming().flatten() {
            let _ = stream.write_all(b"reached");
        }
    });
    let listed = format!("[\"127.0.0.1:{}\", \"localhost:{}\"]", open.port, closed.port);
    let mut setup = shop()
        .file("ci.sh", ci)
        .set("sandbox.mode", &format!("{mode:?}"))
        .set("sandbox.hosts", &listed)
        .set("sandbox.ci_hosts", &listed);
    if let Some(agent) = agent {
        setup = setup.agent(agent);
    }
    let machine = format!("[sandbox]\nprivate_hosts = [\"127.0.0.1:{}\"]\n", open.port);
    let daemon = setup.machine(&machine).start();
    let targets = format!("open={}\nclosed={}\nabstract={name}\n", open.port, closed.port);
    fs::write(daemon.checkout().join("targets"), targets).unwrap();
    let git = |words: &[&str]| daemon.git_in(&daemon.checkout(), words);
    git(&["add", "targets"]);
    git(&["commit", "--quiet", "--message=Aim"]);
    daemon.json(&["sync"]);
    World { daemon, open, closed, _abstract: listener }
}

fn reached(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.trim().strip_prefix("reached ")).collect()
}

fn inside(text: &str, world: &World) {
    assert_eq!(reached(text), [""; 0], "{text}");
    for control in ["can reach what is listed", "is told what to do", "has all variables"] {
        assert!(text.contains(control), "{control}: {text}");
    }
    assert_eq!(world.closed.visits(), 0, "{text}");
    assert_eq!(world.closed.datagrams.load(Ordering::SeqCst), 0, "{text}");
    assert!(world.open.visits() > 0);
}

#[test]
fn e2e_sandbox_network_of_ci_leads_only_to_what_is_listed() {
    if !sandbox_works() {
        return;
    }
    let ci = format!("#!/bin/bash\n{PROBES}\n! grep -rn BUG src\n");
    let world = world("require", None, &ci);
    let issue = world.daemon.file_issue("Apples", &super::clean("apples"));
    world.daemon.wait_closed(issue);
    let log = world.daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    inside(&log, &world);
    assert!(log.contains("pointsman: the sandbox refused unlisted.example.org:443"), "{log}");
    let shown = world.daemon.json(&["sandbox", "show"]);
    assert!(shown["hosts"].as_array().unwrap().contains(&format!("127.0.0.1:{}", world.open.port).into()));
}

#[test]
fn e2e_sandbox_network_probes_reach_their_targets_outside() {
    let ci = format!("#!/bin/bash\n{PROBES}\ntrue\n");
    let world = world("off", None, &ci);
    let issue = world.daemon.file_issue("Apples", &super::clean("apples"));
    world.daemon.wait_closed(issue);
    let log = world.daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    let found = reached(&log);
    for name in ["direct", "direct-to-the-listed", "name-of-this-machine", "abstract-socket"] {
        assert!(found.contains(&name), "{name}: {log}");
    }
    assert!(world.closed.datagrams.load(Ordering::SeqCst) > 0, "{log}");
}

/// The agent probes, is told of refusals, and goes on after the proxy was killed.
const AGENT: &str = r#"
read -r greeting
{ PROBES } > probes.txt 2>&1
touch "$(dirname "$POINTSMAN_RESULT_FILE")/probed"
while [ ! -e "$(dirname "$POINTSMAN_RESULT_FILE")/go" ]; do sleep 0.05; done
for i in $(seq 100); do
    answer=$(timeout 10 bash -c "ask $to 'GET http://127.0.0.1:$open/ HTTP/1.1'")
    case $answer in *reached*) echo "can reach it again" >> probes.txt; break ;; esac
    sleep 0.2
done
git add -A && git commit -qm "Probe" && git push -q origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case $line in *Merged*) echo PHASE:done > "$PHASE_FILE" ;; esac; done
"#;

#[test]
fn e2e_sandbox_network_of_an_agent_leads_only_to_what_is_listed_and_survives_the_proxy() {
    if !sandbox_works() {
        return;
    }
    let world = world("require", Some(&AGENT.replace("PROBES", PROBES)), "#!/bin/sh\ntrue\n");
    let daemon = &world.daemon;
    let issue = daemon.file_issue_with("Probe", "Probe it.");
    let run = daemon.session_files(issue).join("run-1");
    daemon.wait_for("the agent to have probed", || run.join("probed").exists().then_some(()));
    let explained = daemon.run(&["session", "explain", &issue.to_string()]).stdout;
    assert!(explained.contains("the sandbox refused unlisted.example.org:443"), "{explained}");
    let proxies = || {
        let dir = daemon.control_socket().parent().unwrap().join("proxy");
        pointsman_adapters::process::census::with_words(&["proxy", &dir.to_string_lossy()])
    };
    let [proxy] = proxies()[..] else { panic!("one proxy: {:?}", proxies()) };
    daemon.restart();
    assert_eq!(proxies(), [proxy], "it outlives the daemon");
    pointsman_adapters::process::Process::of(proxy).unwrap().kill();
    daemon.wait_for("another proxy", || proxies().iter().any(|pid| *pid != proxy).then_some(()));
    fs::write(run.join("go"), "").unwrap();
    daemon.wait_closed(issue);
    let url = daemon.json(&["forge", "url"]);
    let repository = Path::new(url["url"].as_str().unwrap()).to_owned();
    let probes = daemon.git_in(&repository, &["show", "main:probes.txt"]);
    inside(&probes, &world);
    assert!(probes.contains("can reach it again"), "{probes}");
    let explained = daemon.run(&["session", "explain", &issue.to_string()]).stdout;
    assert!(
        explained.contains("ended") && explained.contains("refused unlisted.example.org:443"),
        "{explained}"
    );
}

/// Asks the canary by name, through the proxy, and is green if it answers.
fn needs_host(port: u16) -> String {
    format!(
        "#!/bin/bash\nproxy=${{HTTP_PROXY#http://}}\nexec 3<> \"/dev/tcp/${{proxy%:*}}/${{proxy#*:}}\"\n\
         printf 'GET http://localhost:{port}/ HTTP/1.1\\r\\n\\r\\n' >&3\ngrep -q reached <&3\n"
    )
}

#[test]
fn e2e_sandbox_network_a_person_allows_the_host_that_ci_asked_for_and_the_same_commits_are_tested_again() {
    if !sandbox_works() {
        return;
    }
    let canary = Canary::start();
    let host = format!("localhost:{}", canary.port);
    let setup = shop().file("ci.sh", &needs_host(canary.port)).set("dev.concurrency", "2");
    let daemon = setup.machine(&format!("[sandbox]\nprivate_hosts = [{host:?}]\n")).start();
    let issues =
        ["Apples", "Pears"].map(|title| daemon.file_issue(title, &super::clean(&title.to_lowercase())));
    let waiting = issues.map(|issue| daemon.wait_state(issue, "escalated"));
    for task in &waiting {
        assert!(task["reason"].as_str().unwrap().contains(&host), "{task}");
        assert!(task["reason"].as_str().unwrap().contains("(ci.sh asked)"), "{task}");
        assert_eq!(task["attempts"]["ci_fixes"], 0, "{task}");
    }
    assert_eq!(canary.visits(), 0);
    // Words would go to the agent and allow nothing: people are told what helps.
    let told = daemon.wait_for("people to be told", || {
        let notices = daemon.notices();
        let body =
            notices.iter().find_map(|notice| notice["body"].as_str().filter(|body| body.contains(&host)))?;
        Some(body.to_owned())
    });
    assert!(told.contains("pointsman inbox") && !told.contains("task answer"), "{told}");
    let comment = daemon.wait_for("a comment that says so, too", || {
        daemon.comments(issues[0]).into_iter().find(|comment| comment.contains(&host))
    });
    assert!(comment.contains("pointsman inbox") && !comment.contains("task answer"), "{comment}");
    let asked: Vec<_> = daemon.json(&["inbox"]).as_array().unwrap().clone();
    assert_eq!(asked.iter().filter(|one| one["kind"] == "host_access").count(), 2, "{asked:?}");
    let id = asked.iter().find(|one| one["issue"] == issues[0]).unwrap()["id"].to_string();
    daemon.json(&["inbox", "approve", &id]);
    for (issue, task) in issues.iter().zip(&waiting) {
        daemon.wait_closed(*issue);
        assert_eq!(daemon.task(*issue)["attempts"], task["attempts"]);
    }
    assert!(canary.visits() > 0);
    let shown = daemon.json(&["sandbox", "show"]);
    assert!(shown["ci_hosts"].as_array().unwrap().contains(&host.into()), "{shown}");
    // It is kept.
    daemon.restart();
    let later = daemon.file_issue("Plums", &super::clean("plums"));
    daemon.wait_closed(later);
}

#[test]
fn e2e_sandbox_network_an_agent_whose_host_is_denied_hears_it_and_the_host_stays_closed() {
    if !sandbox_works() {
        return;
    }
    let canary = Canary::start();
    let host = format!("localhost:{}", canary.port);
    let setup = shop().file("ci.sh", &format!("{}[ -e src/vendored.txt ]\n", needs_host(canary.port)));
    let daemon = setup.machine(&format!("[sandbox]\nprivate_hosts = [{host:?}]\n")).start();
    let script = "write src/apples.txt ripe\ncommit Add apples\npush\nphase awaiting_ci\nexpect Answer\n\
                  write src/vendored.txt it\ncommit Vendor it\npush\nphase awaiting_ci\nexpect Merged\nphase done";
    let issue = daemon.file_issue("Apples", script);
    daemon.wait_state(issue, "escalated");
    let asked = daemon.json(&["inbox"]);
    let id = asked[0]["id"].to_string();
    daemon.json(&["inbox", "reject", &id, "--body", "Vendor it."]);
    daemon.wait_closed(issue);
    assert_eq!(canary.visits(), 0);
}

#[test]
fn e2e_sandbox_network_a_run_that_learns_shows_the_hosts_and_a_yes_keeps_them() {
    if !sandbox_works() {
        return;
    }
    let canary = Canary::start();
    let host = format!("localhost:{}", canary.port);
    let ci = format!("{} || exit 1\n[ -z \"$POINTSMAN_SESSION\" ]\n", needs_host(canary.port).trim_end());
    let setup = shop().file("ci.sh", &ci);
    let daemon = setup.machine(&format!("[sandbox]\nprivate_hosts = [{host:?}]\n")).start();
    let learned = daemon.json(&["sandbox", "learn"]);
    assert_eq!(learned["hosts"], serde_json::json!([host]), "{learned}");
    assert_eq!((&learned["ci"], &learned["allowed"]), (&"passed".into(), &false.into()), "{learned}");
    // CI came, and whoever looks whether the host is a package registry.
    assert!(canary.visits() > 1);
    assert!(daemon.json(&["sandbox", "show"])["ci_hosts"].as_array().unwrap().is_empty(), "nobody said yes");
    let learned = daemon.json(&["sandbox", "learn", "--yes"]);
    assert_eq!(learned["allowed"], true, "{learned}");
    assert_eq!(daemon.json(&["sandbox", "show"])["ci_hosts"], serde_json::json!([host]));
    // Nothing is left to ask, and nothing is left behind.
    let issue = daemon.file_issue("Apples", &super::clean("apples"));
    daemon.wait_closed(issue);
    assert_eq!(daemon.json(&["sandbox", "learn"])["hosts"], serde_json::json!([]));
    let left = fs::read_dir(daemon.state().join("projects/shop/trials")).unwrap().count();
    assert_eq!(left, 0);
}

/// Asks for a host that nobody listed, twice, and then a person.
const ASKS: &str = r#"
read -r greeting
proxy=${HTTP_PROXY#http://}
for i in 1 2; do
    exec 3<> "/dev/tcp/${proxy%:*}/${proxy#*:}"
    printf 'CONNECT unlisted.example.org:443 HTTP/1.1\r\n\r\n' >&3
    cat <&3 > /dev/null
done
printf 'PHASE:escalate\nReason: May I use another library?\n' > "$PHASE_FILE"
while read -r line; do :; done
"#;

#[test]
fn e2e_sandbox_network_the_question_of_a_session_shows_the_hosts_that_it_was_refused() {
    if !sandbox_works() {
        return;
    }
    let daemon = shop().agent(ASKS).set("sandbox.mode", "\"require\"").start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    daemon.wait_state(issue, "escalated");
    let asked = daemon.wait_for("the question", || daemon.json(&["inbox"]).as_array().cloned());
    let [question] = &asked[..] else { panic!("nobody is asked about hosts: {asked:#?}") };
    assert_eq!(question["kind"], "question", "{question:#}");
    let refused = question["refused"][0].as_str().unwrap();
    assert!(refused.contains("refused unlisted.example.org:443 2 times"), "{question:#}");
    let shown = daemon.run(&["inbox", "show", &question["id"].to_string()]).stdout;
    assert!(shown.contains(refused), "{shown}");
}
