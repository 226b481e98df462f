use std::fs;
use std::io::{PipeReader, PipeWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pointsman_adapters::process::Run;
use tempfile::TempDir;

use super::super::report::Reporter;
use super::{Ending, Player, Surroundings, Terminal};

/// A tree with a remote, an inbox and a terminal, as a session has them.
struct Stage {
    dir: TempDir,
    typed: Option<PipeWriter>,
    terminal: Option<PipeReader>,
}

impl Stage {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stage = Self { dir, typed: None, terminal: None };
        for name in ["tree", "inbox"] {
            fs::create_dir(stage.path(name)).unwrap();
        }
        let program = stage.path("pointsman");
        fs::write(&program, "#!/bin/sh\necho \"$*\" >> \"${0%/*}/acknowledged\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        stage.git(&["init", "--quiet", "--bare", "../origin.git"]);
        stage.git(&["init", "--quiet", "--initial-branch=work"]);
        for (name, value) in
            [("user.name", "Rehearsal"), ("user.email", "r@example.org"), ("commit.gpgsign", "false")]
        {
            stage.git(&["config", name, value]);
        }
        stage.git(&["commit", "--quiet", "--allow-empty", "--message=begin"]);
        stage.git(&["remote", "add", "origin", "../origin.git"]);
        stage.prompt("", script);
        stage.sit_down()
    }

    /// A new terminal with the prompt typed into it.
    fn sit_down(mut self) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        (self.terminal, self.typed) = (Some(reader), Some(writer));
        self.tell(0, "Task", "0000-task.md");
        self
    }

    fn prompt(&self, recovery: &str, script: &str) {
        let text =
            format!("# Issue #1\n\n{recovery}\n```text\nrehearsal:begin\n{script}\nrehearsal:end\n```\n");
        fs::write(self.path("inbox/0000-task.md"), text).unwrap();
    }

    fn tell(&mut self, id: i64, text: &str, details: &str) {
        let path = self.path("inbox").join(details);
        let line = format!("[pointsman m-{id}] {text}. Details: {}\n", path.display());
        self.typed.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// Plays until the script or the terminal ends; answers the ending and what was printed.
    fn play(&mut self) -> (Ending, String) {
        self.typed = None;
        let surroundings = Surroundings {
            tree: self.path("tree"),
            phase_file: self.path("phase"),
            summary_file: self.path("summary"),
            plan_file: None,
            runs_formula: false,
            inbox: self.path("inbox"),
            pointsman: self.path("pointsman"),
            reporter: Reporter::new("dev-shop-1.1".to_owned(), self.path("control.sock")).impatient(),
            session: "dev-shop-1.1".to_owned(),
            pause: std::time::Duration::ZERO,
            turn: None,
        };
        let mut log = Vec::new();
        let terminal = Terminal::new(self.terminal.take().unwrap());
        let ending = Player::new(surroundings, terminal, &mut log).play().unwrap();
        (ending, String::from_utf8(log).unwrap())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.path("tree"), args)
    }
}

fn git(dir: &Path, args: &[&str]) -> String {
    let done = Run::new("git").inherit(&["PATH", "HOME"]).args(args).cwd(dir).finish().unwrap();
    assert!(done.end.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[test]
fn an_agent_writes_commits_pushes_and_signals() {
    let mut stage = Stage::new(
        "write src/a.txt one\nappend src/a.txt two\ncommit Add a\npush\nsummary Adds a\nphase escalate why?",
    );
    assert_eq!(stage.play().0, Ending::Exit(0));
    assert_eq!(git(&stage.path("origin.git"), &["show", "work:src/a.txt"]), "one\ntwo");
    assert_eq!(stage.git(&["log", "-1", "--format=%s"]), "Add a");
    assert_eq!(stage.read("phase"), "PHASE:escalate\nReason: why?\n");
    assert_eq!(stage.read("summary"), "Adds a\n");
}

#[test]
fn a_message_that_comes_before_it_is_expected_is_not_lost() {
    let mut stage = Stage::new("expect CI passed\nexpect Approved\nphase done");
    stage.tell(2, "Approved at abc", "0002.md");
    stage.tell(1, "CI passed on abc", "0001.md");
    assert_eq!(stage.play().0, Ending::Exit(0));
    assert_eq!(stage.read("phase"), "PHASE:done\n");
    assert_eq!(stage.read("acknowledged"), "ack m-0\nack m-1\nack m-2\n");
}

#[test]
fn a_message_that_is_sent_again_is_read_once_and_acknowledged_again() {
    let mut stage = Stage::new("expect CI failed\nexpect CI failed\nphase done");
    stage.tell(1, "CI failed on abc", "0001.md");
    stage.tell(1, "CI failed (again)", "0001.md");
    stage.tell(0, "Task (again)", "0000-task.md");
    assert_eq!(stage.play().0, Ending::Exit(1));
    assert_eq!(stage.read("acknowledged"), "ack m-0\nack m-0\nack m-1\n");
}

#[test]
fn an_agent_that_is_done_still_reads_its_messages() {
    let mut stage = Stage::new("say done");
    stage.tell(4, "Merged as abc", "0004.md");
    stage.play();
    assert_eq!(stage.read("acknowledged"), "ack m-0\nack m-4\n");
}

#[test]
fn an_agent_whose_terminal_is_gone_waits_for_nothing() {
    let mut stage = Stage::new("expect CI passed\nphase done");
    assert_eq!(stage.play().0, Ending::Exit(1));
    assert_eq!(stage.read("phase"), "");
}

#[test]
fn a_successor_goes_on_after_the_crash_with_what_is_in_the_tree() {
    let script = "write a.txt one\ncrash\ncommit Add a\npush\nexit 3\nphase done";
    let mut stage = Stage::new(script);
    assert_eq!(stage.play().0, Ending::Crash);
    assert_eq!(stage.git(&["log", "--format=%s"]), "begin");

    let mut stage = stage.sit_down();
    assert_eq!(stage.play().0, Ending::Exit(3));
    assert_eq!(stage.git(&["log", "-1", "--format=%s"]), "Add a");
    assert_eq!(stage.git(&["status", "--porcelain"]), "");

    let mut stage = stage.sit_down();
    let (ending, log) = stage.play();
    assert_eq!(ending, Ending::Exit(0));
    assert!(log.contains("5 of 6 steps"), "{log}");
    assert_eq!(stage.read("phase"), "PHASE:done\n");
}

#[test]
fn a_successor_takes_what_its_prompt_tells_for_received() {
    let script = "expect CI passed\nexpect Approved\nphase done";
    let mut stage = Stage::new(script);
    let head = stage.git(&["rev-parse", "HEAD"]);
    let recovery = format!(
        "## Last CI result\n\n```text\nCI passed on {head}\n```\n\n\
         ## A message the earlier session may not have read\n\n```text\nApproved at {head}.\n```\n\n## The task\n"
    );
    stage.prompt(&recovery, script);
    assert_eq!(stage.play().0, Ending::Exit(0));
    assert_eq!(stage.read("phase"), "PHASE:done\n");
}

#[test]
fn steps_done_twice_leave_one_trace() {
    let mut stage = Stage::new("append a.txt x\ncommit Add a\nappend a.txt x\ncommit Add a\npush\npush");
    stage.play();
    assert_eq!(stage.read("tree/a.txt"), "x\n");
    assert_eq!(stage.git(&["log", "--format=%s"]), "Add a\nbegin");
}

#[test]
fn an_agent_that_cannot_go_on_says_why() {
    let mut stage = Stage::new("dance");
    stage.play();
    assert_eq!(stage.read("phase"), "PHASE:failed\nReason: line 1: `dance` is not a step\n");

    let mut stage = Stage::new("push");
    fs::remove_dir_all(stage.path("origin.git")).unwrap();
    stage.play();
    assert!(
        stage.read("phase").starts_with("PHASE:failed\nReason: step 1: git push: "),
        "{}",
        stage.read("phase")
    );
}

#[test]
fn a_refusal_is_in_the_summary_file_and_rubbish_is_written_as_it_is() {
    let mut stage = Stage::new("refuse too_large split it");
    stage.play();
    let refusal: pointsman_core::task::Refusal = serde_json::from_str(&stage.read("summary")).unwrap();
    assert_eq!(refusal.reason, "split it");
    assert_eq!(stage.read("phase"), "PHASE:failed\nReason: refused\n");

    let mut stage = Stage::new("raw-phase PHASE:perhaps\nhang");
    assert_eq!(stage.play().0, Ending::Hang);
    assert_eq!(stage.read("phase"), "PHASE:perhaps\n");
}

/// Answers one request with this reply, and hands the request on.
fn answer_once(socket: &Path, reply: &'static str) -> std::thread::JoinHandle<String> {
    let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(&stream), &mut request).unwrap();
        stream.write_all(format!("{reply}\n").as_bytes()).unwrap();
        request
    })
}

#[test]
fn an_agent_reports_its_context_and_goes_on_without_a_daemon() {
    let mut stage = Stage::new("context 93\nspend 100 5\nphase done");
    let daemon = answer_once(&stage.path("control.sock"), r#"{"reply":"done","value":null}"#);
    let (ending, log) = stage.play();
    assert_eq!(ending, Ending::Exit(0));
    let request = daemon.join().unwrap();
    assert!(request.contains("dev-shop-1.1") && request.contains(r#""used_permille":930"#), "{request}");
    assert!(log.contains("not reported: the daemon"), "{log}");
    assert_eq!(stage.read("phase"), "PHASE:done\n");
}

#[test]
fn an_agent_that_is_asked_to_hand_over_does_and_its_successor_goes_on() {
    let mut stage = Stage::new("write a.txt one\nexit-clean\nphase done");
    stage.tell(3, "Save your work and exit cleanly: your context is 93 % full", "0003.md");
    assert_eq!(stage.play().0, Ending::Exit(0));
    assert_eq!(stage.read("acknowledged"), "ack m-0\nack m-3\n");
    assert_eq!(stage.read("phase"), "");

    let mut stage = stage.sit_down();
    assert_eq!(stage.play().0, Ending::Exit(0));
    assert_eq!(stage.read("phase"), "PHASE:done\n");
}
