//! The ways into a session of Claude Code, with a program of that name that shows a prompt and calls the hooks as the real
//! one does. The real one is tested in `real_claude`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use pointsman_adapters::claude::hook_messages::HookMessages;
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::json;

use super::hooks::hook;
use super::shop;

/// A prompt in a box, hooks at the right moments, and a key that answers a dialog. What reaches the model is in `heard`.
/// Files in HOME say how it behaves: `deaf` has no hook that waits, `lose` drops what a hook says once, `mute` calls no
/// UserPromptSubmit, `silent` calls no hook at all, `dialog` shows a dialog, `trap` shows one as soon as something is pasted.
const CLAUDE: &str = r#"#!/bin/bash
if [ "$1" = --version ]; then echo "2.1.325 (Claude Code)"; exit; fi
record="$CLAUDE_CONFIG_DIR/projects/here"; mkdir -p "$record"
pointsman=$HOME/pointsman
rule=────────────────────────────────────────
hear() {
    printf '%s\n' "$1" >> "$HOME/heard"
    json=${1//$'\n'/\\n}
    printf '{"type":"user","message":{"content":"%s"}}\n' "$json" >> "$record/c-1.jsonl"
    [ -e "$HOME/mute" ] || printf '{"prompt":"%s"}' "$json" | "$pointsman" hook UserPromptSubmit
    echo '{}' | "$pointsman" hook Stop
}
wake() {
    while [ ! -e "$HOME/deaf" ]; do
        text=$(echo '{}' | "$pointsman" hook wake 2>&1 >/dev/null)
        [ $? = 2 ] || continue
        if [ -e "$HOME/lose" ]; then rm "$HOME/lose"; else hear "$text"; fi
    done
}
draw() {
    printf '\033[2J\033[H'
    if [ -e "$HOME/dialog" ]; then printf 'Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n'
    else printf '%s\n❯ %s\n%s\n' "$rule" "$buffer" "$rule"; fi
}
if [ ! -e "$HOME/silent" ]; then
    echo '{"source":"startup","session_id":"c-1"}' | "$pointsman" hook SessionStart
    echo '{}' | "$pointsman" hook Stop
    wake &
fi
stty -icanon -echo
shown=
draw
while :; do
    key=
    IFS= read -rsn1 -d '' -t 0.05 key; code=$?
    # Which of the two it is depends on when it comes: read changes the terminal's mode.
    if [ "$key" = $'\r' ] || [ "$key" = $'\n' ]; then
        text=$buffer; buffer=; draw
        if [ -e "$HOME/dialog" ]; then buffer=$text; touch "$HOME/approved"; else hear "$text"; fi
    # A key that comes at the very end of the time counts as well.
    elif [ -n "$key" ]; then
        [ -e "$HOME/trap" ] && mv "$HOME/trap" "$HOME/dialog"
        buffer+=$key; dirty=1
    elif [ $code -le 128 ]; then exit
    elif [ -n "$dirty" ] || [ "$shown" != "$([ -e "$HOME/dialog" ] && echo dialog)" ]; then
        dirty=; shown=$([ -e "$HOME/dialog" ] && echo dialog); draw
    fi
done
"#;

/// A session that waits for messages.
struct Session {
    daemon: TestDaemon,
    issue: u64,
}

fn session(setup: Setup, behaves: &[&str]) -> Session {
    let daemon = setup
        .outside("the test steers the agent by files in the home")
        .set("roles.dev.command", "[\"claude\"]")
        .set("timing.ack_timeout", "\"2s\"")
        .set("timing.idle_look", "\"10m\"")
        .build();
    let home = daemon.path("home");
    fs::create_dir_all(home.join("bin")).unwrap();
    fs::write(home.join("bin/claude"), CLAUDE).unwrap();
    fs::set_permissions(home.join("bin/claude"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pointsman"), home.join("pointsman")).unwrap();
    for name in behaves {
        fs::write(home.join(name), "").unwrap();
    }
    let path = format!("{}:{}", home.join("bin").display(), std::env::var("PATH").unwrap());
    daemon.start_with(&[("PATH", &path)]);
    let issue = daemon.file_issue_with("Apples", "please");
    daemon.wait_session(issue, 1);
    daemon.wait_state(issue, "working");
    let session = Session { daemon, issue };
    if behaves.contains(&"silent") {
        return session;
    }
    session.daemon.wait_for("the hooks to be heard", || {
        (session.daemon.session(issue)["acknowledges"] == true).then_some(())
    });
    session.waits_for_turns(1);
    if !behaves.contains(&"deaf") {
        let hook_inbox = HookMessages::at(session.daemon.session_files(issue).join("run-1/mail"));
        session.daemon.wait_for("a hook to wait", || hook_inbox.has_waiter().then_some(()));
    }
    session
}

impl Session {
    fn home(&self, name: &str) -> std::path::PathBuf {
        self.daemon.path("home").join(name)
    }

    fn heard(&self) -> String {
        fs::read_to_string(self.home("heard")).unwrap_or_default()
    }

    /// Claims too much, and is told so.
    fn says_done(&self) {
        fs::write(self.daemon.phase_file(self.issue), "PHASE:done\n").unwrap();
    }

    fn waits_to_hear(&self, words: &str) {
        self.daemon.wait_for(words, || self.heard().contains(words).then_some(()));
    }

    fn waits_for_acknowledgements(&self, count: usize) {
        let wanted = format!("has acknowledged {count}");
        self.daemon.wait_for(&wanted, || {
            let evidence = self.daemon.json(&["session", "explain", "1"])["evidence"].to_string();
            evidence.contains(&wanted).then_some(())
        });
    }

    /// Waits for the end of so many turns.
    fn waits_for_turns(&self, count: usize) {
        self.daemon.wait_for("a turn to end", || {
            let ended = self.daemon.events(self.issue).iter().filter(|e| e["kind"] == "turn_ended").count();
            (ended >= count).then_some(())
        });
    }

    fn letters(&self, ending: &str) -> usize {
        let letters = fs::read_dir(self.daemon.session_files(self.issue).join("run-1/mail")).unwrap();
        letters.filter(|l| l.as_ref().unwrap().file_name().to_string_lossy().ends_with(ending)).count()
    }
}

fn with_path(session: &Session) -> String {
    format!("{}:{}", session.home("bin").display(), std::env::var("PATH").unwrap())
}

#[test]
fn e2e_doors_a_hook_that_waits_takes_the_message_and_nothing_is_typed() {
    let session = session(shop(), &[]);
    session.says_done();
    session.waits_to_hear("] PR not merged yet");
    session.waits_for_acknowledgements(1);
    assert_eq!(session.letters(".taken"), 1);
    assert!(session.heard().starts_with("a message from Pointsman"), "{}", session.heard());
    session.waits_for_turns(2);
    // What a person says is typed: Claude would tell its model that no user said it.
    session.daemon.run(&["session", "send", "1", "Go on."]);
    session.waits_to_hear("] Answer from the operator");
    session.waits_for_acknowledgements(2);
    assert_eq!(session.letters(".taken"), 1);
}

#[test]
fn e2e_doors_after_an_interrupt_the_prompt_takes_what_a_person_says() {
    let session = session(shop(), &["deaf"]);
    let (daemon, issue) = (&session.daemon, session.issue);
    hook(daemon, issue, "UserPromptSubmit", &json!({ "prompt": "work" }));
    let pid = daemon.session_pid(issue);
    let status = |status: &str| {
        let sessions = daemon.session_files(issue).join("agent-1/sessions");
        fs::create_dir_all(&sessions).unwrap();
        let status = json!({ "pid": pid, "status": status }).to_string();
        fs::write(sessions.join(format!("{pid}.json")), status).unwrap();
    };
    status("busy");
    daemon.run(&["session", "send", "1", "Go on."]);
    daemon.wait_for("it to be held back in the middle of a turn", || {
        let evidence = daemon.json(&["session", "explain", "1"])["evidence"].to_string();
        evidence.contains("is held back").then_some(())
    });
    assert_eq!(session.heard(), "");
    // Esc: no hook says so, the prompt is there, and so is the status file.
    status("idle");
    session.waits_to_hear("] Answer from the operator");
    session.waits_for_acknowledgements(1);
}

#[test]
fn e2e_doors_where_no_hook_waits_the_message_is_typed() {
    let session = session(shop(), &["deaf"]);
    session.says_done();
    session.waits_to_hear("] PR not merged yet");
    session.waits_for_acknowledgements(1);
    assert!(session.heard().starts_with("[pointsman m-"), "{}", session.heard());
}

#[test]
fn e2e_doors_a_message_that_its_hook_took_to_its_grave_is_given_again() {
    let session = session(shop(), &["lose"]);
    session.says_done();
    session.waits_to_hear("] PR not merged yet (again)");
    session.waits_for_acknowledgements(1);
    assert_eq!((session.letters("-1.taken"), session.letters("-2.taken")), (1, 1));
}

#[test]
fn e2e_doors_a_message_that_the_record_shows_is_not_given_again() {
    let session = session(shop(), &["mute"]);
    session.says_done();
    session.waits_to_hear("] PR not merged yet");
    session.waits_for_acknowledgements(1);
    assert_eq!(session.heard().matches("] PR not merged yet").count(), 1, "{}", session.heard());
}

#[test]
fn e2e_doors_a_daemon_that_dies_on_the_way_tells_it_once() {
    for place in ["before-deliver", "after-deliver"] {
        for behaves in [&[][..], &["deaf"][..]] {
            let session = session(shop(), behaves);
            session.daemon.stop_daemon();
            let path = with_path(&session);
            session.daemon.start_with(&[("POINTSMAN_CRASH_AT", place), ("PATH", &path)]);
            session.says_done();
            session.daemon.wait_for_death();
            session.daemon.start_with(&[("PATH", &path)]);
            session.waits_for_acknowledgements(1);
            let heard = session.heard();
            assert_eq!(heard.matches("[pointsman m-").count(), 1, "{place} {behaves:?}: {heard}");
        }
    }
}

#[test]
fn e2e_doors_a_message_waits_until_the_dialog_is_gone_also_when_it_is_given_again() {
    let session = session(shop(), &["lose"]);
    session.says_done();
    session.daemon.wait_for("the first try", || (session.letters("-1.taken") == 1).then_some(()));
    fs::write(session.home("dialog"), "").unwrap();
    session.daemon.wait_state(session.issue, "escalated");
    assert_eq!(session.heard(), "");
    fs::remove_file(session.home("dialog")).unwrap();
    session.waits_to_hear("] PR not merged yet (again)");
    assert!(!session.home("approved").exists());
}

#[test]
fn e2e_doors_a_dialog_that_comes_up_behind_a_paste_is_not_answered() {
    let session = session(shop(), &["deaf", "trap"]);
    session.says_done();
    session.daemon.wait_state(session.issue, "escalated");
    let reason = session.daemon.task(session.issue)["reason"].to_string();
    assert!(reason.contains("Do you want to proceed?"), "{reason}");
    assert!(!session.home("approved").exists());
    assert_eq!(session.heard(), "");
    // Somebody answers it, and the message that was pasted is sent.
    fs::remove_file(session.home("dialog")).unwrap();
    session.waits_to_hear("] PR not merged yet");
    assert!(!session.home("approved").exists());
}

#[test]
fn e2e_doors_a_screen_that_nobody_knows_is_shown_to_a_person() {
    let session = session(shop(), &["deaf"]);
    let pane = format!("=dev-shop-{}:", session.issue);
    // The program hangs in the middle of something.
    let pid = session.daemon.session_pid(session.issue);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(),
        rustix::process::Signal::STOP,
    )
    .unwrap();
    session.daemon.tmux(&["send-keys", "-R", "-t", &pane]);
    session.says_done();
    let task = session.daemon.wait_state(session.issue, "escalated");
    assert!(task["reason"].as_str().unwrap().contains("shows no prompt"), "{task}");
}

#[test]
fn e2e_doors_nothing_is_typed_into_a_dialog_that_is_announced_but_not_drawn_yet() {
    let session = session(shop(), &[]);
    let (daemon, issue) = (&session.daemon, session.issue);
    hook(daemon, issue, "UserPromptSubmit", &json!({ "prompt": "work" }));
    hook(daemon, issue, "PreToolUse", &json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } }));
    hook(daemon, issue, "PermissionRequest", &json!({ "tool_name": "Bash" }));
    daemon.wait_state(issue, "escalated");
    daemon.answer(issue, "No, do not.");
    let held = daemon.wait_for("the answer to be held back", || daemon.log_lines("held back")).len();
    // A daemon that was not there when it was announced knows of it too.
    daemon.kill_daemon();
    daemon.start();
    daemon.wait_for("the next daemon to hold it back", || {
        daemon.log_lines("held back").filter(|lines| lines.len() > held)
    });
    let shown = || daemon.tmux(&["capture-pane", "-p", "-t", &format!("=dev-shop-{issue}:")]);
    assert!(!shown().contains("[pointsman m-"), "{}", shown());
    // Only now it is on the screen; then a person says no, and the turn ends.
    fs::write(session.home("dialog"), "").unwrap();
    daemon.wait_for("the dialog", || shown().contains("Do you want to proceed?").then_some(()));
    fs::remove_file(session.home("dialog")).unwrap();
    hook(daemon, issue, "PostToolUseFailure", &json!({ "tool_name": "Bash" }));
    assert_eq!(session.heard(), "", "a turn is under way");
    hook(daemon, issue, "Stop", &json!({}));
    session.waits_to_hear("] Answer to your question");
    assert!(!session.home("approved").exists());
}

#[test]
fn e2e_doors_a_session_whose_hooks_are_never_heard_is_not_trusted() {
    let setup = shop()
        .set("timing.hook_silence", "\"5s\"")
        .file(".claude/settings.json", "{\"disableAllHooks\": true}");
    let session = session(setup, &["silent"]);
    let daemon = &session.daemon;
    let task = daemon.wait_state(session.issue, "escalated");
    assert!(task["reason"].as_str().unwrap().contains("Pointsman cannot supervise it"), "{task}");
    daemon.wait_for("the picture", || {
        daemon.comments(session.issue).iter().any(|c| c.contains("The terminal shows:")).then_some(())
    });
    assert_eq!(daemon.json(&["session", "explain", "1"])["hooks"], "silent");
    let doctor = daemon.run(&["doctor", "--json"]).stdout;
    assert!(doctor.contains("disableAllHooks"), "it says why: {doctor}");
    // A person's answer is typed; what the daemon would say by itself is held back.
    daemon.answer(session.issue, "Go on without.");
    session.waits_to_hear("] Answer");
    session.says_done();
    daemon.wait_for("the message to be held back", || {
        let evidence = daemon.json(&["session", "explain", "1"])["evidence"].to_string();
        evidence.contains("PR not merged yet) is held back").then_some(())
    });
    assert!(!session.heard().contains("PR not merged yet"), "{}", session.heard());
}
