//! The phase file lies where anybody can write: only a plain file of ours is believed.

use std::fs;

use super::{LAND, adds, shop};

/// An agent that puts something else in the place of its phase file, and then goes on as it should.
fn agent(trick: &str) -> String {
    format!(
        r#"
read -r prompt
{trick}
while read -r line; do
    case $line in
    *"] Answer"*) rm -rf "$PHASE_FILE"; printf 'PHASE:failed\nReason: over\n' > "$PHASE_FILE" ;;
    esac
done
"#
    )
}

/// Runs an agent with this trick until the task shows the refusal.
fn refused(trick: &str, why: &str) {
    let daemon = shop().agent(&agent(trick)).start();
    fs::write(daemon.path("home/target"), "PHASE:done\n").unwrap();
    let issue = daemon.file_issue_with("Trick", "Please.");
    let task = daemon.wait_until(issue, "the refusal is shown", |task| !task["reason"].is_null());
    let reason = task["reason"].as_str().unwrap();
    assert!(reason.starts_with("phase file refused: ") && reason.contains(why), "{reason}");
    assert_eq!((&task["state"], &task["phase"]), (&"working".into(), &serde_json::Value::Null));
    assert_eq!(fs::read_to_string(daemon.path("home/target")).unwrap(), "PHASE:done\n");
    daemon.wait_for("people to be told", || {
        daemon.notices().iter().any(|n| n["body"].as_str().is_some_and(|b| b.contains(why))).then_some(())
    });
    daemon.wait_for("the log to tell it", || daemon.log_lines("wrote an unusable phase"));
    // The session goes on; a good phase counts.
    daemon.json(&["session", "send", &issue.to_string(), "Go on."]);
    let task = daemon.wait_state(issue, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("the agent failed: over"), "{task}");
    let refusals = daemon.notices().into_iter().filter(|n| n["title"].as_str().unwrap().contains("unusable"));
    assert_eq!(refusals.count(), 1, "told once, not at every look");
}

#[test]
fn e2e_a_symbolic_link_is_not_followed() {
    refused(r#"rm "$PHASE_FILE"; ln -s "$HOME/target" "$PHASE_FILE""#, "it is a symbolic link");
}

#[test]
fn e2e_a_second_name_of_another_file_is_not_read() {
    refused(r#"rm "$PHASE_FILE"; ln "$HOME/target" "$PHASE_FILE""#, "it has 2 links");
}

#[test]
fn e2e_a_fifo_does_not_make_the_daemon_wait() {
    refused(r#"rm "$PHASE_FILE"; mkfifo "$PHASE_FILE""#, "not a regular file");
}

#[test]
fn e2e_a_directory_is_no_phase_file() {
    refused(r#"rm "$PHASE_FILE"; mkdir "$PHASE_FILE""#, "not a regular file");
}

#[test]
fn e2e_an_oversized_file_is_no_phase_file() {
    refused(r#"{ echo PHASE:done; head -c 100000 /dev/zero | tr '\0' x; } > "$PHASE_FILE""#, "more than");
}

#[test]
fn e2e_an_unknown_sentinel_is_shown_and_not_acted_on() {
    refused(r#"echo 'PHASE:perhaps' > "$PHASE_FILE""#, "`PHASE:perhaps` is not a phase");
}

/// Everything an agent's phase file was ever refused for.
fn rejections(daemon: &pointsman_testkit::TestDaemon, issue: u64) -> usize {
    daemon.events(issue).iter().filter(|e| e["kind"] == "phase_rejected").count()
}

#[test]
fn e2e_half_a_write_is_not_acted_on() {
    // Once the writer keeps the file open for many looks, once it closes it in between.
    for halves in [
        "exec 3> F; printf 'PHASE:' >&3; sleep 1; printf WHOLE >&3; exec 3>&-",
        "printf 'PHASE:' > F; sleep 1; printf WHOLE >> F",
    ] {
        let write = halves.replace("WHOLE", r"'escalate\nReason: whole\n'").replace('F', "\"$PHASE_FILE\"");
        let daemon = shop().agent(&format!("read -r prompt\n{write}\nsleep 1000\n")).start();
        let issue = daemon.file_issue_with("Torn", "Please.");
        let task = daemon.wait_state(issue, "escalated");
        assert_eq!(task["reason"], "whole", "{task}");
        assert_eq!(rejections(&daemon, issue), 0);
    }
}

#[test]
fn e2e_both_spellings_of_the_question_and_the_command_work() {
    let daemon = shop()
        .set("dev.concurrency", "3")
        .agent(&format!(
            r#"
read -r prompt
case $ISSUE in
1) printf 'PHASE:escalate\nReason: new\n' > "$PHASE_FILE" ;;
2) printf '  PHASE:needs_human  \r\nReason: old\n' > "$PHASE_FILE" ;;
3) {} phase escalate --reason 'by command' || echo failed ;;
esac
sleep 1000
"#,
            env!("CARGO_BIN_EXE_pointsman")
        ))
        .start();
    for reason in ["new", "old", "by command"] {
        let issue = daemon.file_issue_with(reason, "Please.");
        let task = daemon.wait_state(issue, "escalated");
        assert_eq!((&task["reason"], &task["phase"]), (&reason.into(), &"escalate".into()));
    }
}

#[test]
fn e2e_what_stands_in_the_place_of_a_phase_file_is_told_and_not_used() {
    let daemon = shop().build();
    let target = daemon.path("home/target");
    fs::write(&target, "precious\n").unwrap();
    std::os::unix::fs::symlink(&target, daemon.phase_file(1)).unwrap();
    daemon.start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    let task = daemon.wait_state(issue, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("it is a symbolic link"), "{task}");
    daemon.wait_settled(issue);
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious\n");
    // The link was one of ours and is gone with the other files: nothing stands in the way any more.
    assert_eq!(daemon.phase_files(), [""; 0]);
    daemon.json(&["task", "start", &issue.to_string()]);
    daemon.wait_closed(issue);
}
