//! Secrets in what leaves: those that the daemon knows, and what only looks like one.

use std::fs;
use std::path::Path;

use pointsman::daemon::crash::SECRET_NAMES;
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::Value;

use super::roles::{answering, wait_journal, work};
use super::shop;

/// A value that the daemon holds and that nothing else in these tests contains.
const TOKEN: &str = "Tk7-of-nobody-else-4711-zZ9";

/// Commits what `make` writes, and hands it in after it was told to go on.
const AGENT: &str = r#"
set -eu
await() {
    while IFS= read -r line; do
        case $line in *"] $1"*) return 0 ;; esac
    done
}
hand_in() {
    git add --all
    git commit --quiet --message "$1"
    git push --quiet --force origin HEAD
    echo PHASE:awaiting_ci > "$PHASE_FILE"
}
await "Task #"
"#;

fn agent(rest: &str) -> String {
    format!("{AGENT}{}", rest.replace("TOKEN", TOKEN))
}

/// A daemon that holds the value, with this agent.
fn holding(rest: &str) -> Setup {
    shop().agent(&agent(rest)).daemon_env("MATRIX_TOKEN", TOKEN)
}

fn secrets(daemon: &TestDaemon) -> Vec<Value> {
    let inbox = daemon.json(&["inbox"]);
    inbox.as_array().unwrap().iter().filter(|question| question["kind"] == "secret").cloned().collect()
}

fn wait_secret(daemon: &TestDaemon) -> Value {
    daemon.wait_for("a person to be asked", || secrets(daemon).pop())
}

fn settle(daemon: &TestDaemon, how: &str, asked: &Value) {
    daemon.json(&["inbox", how, &asked["id"].to_string()]);
}

/// Everything that commands and files of ours show, by what shows it.
fn shown(daemon: &TestDaemon, issue: u64) -> Vec<(String, String)> {
    let issue = issue.to_string();
    let commands: [&[&str]; 14] = [
        &["session", "logs", &issue],
        &["session", "logs", &issue, "--raw"],
        &["session", "logs", &issue, "--json"],
        &["ci", "logs", &issue],
        &["task", "show", &issue, "--json"],
        &["task", "explain", &issue, "--json"],
        &["events", "--json"],
        &["signals", "--json"],
        &["inbox", "--json"],
        &["forge", "pr", "list", "--state", "all", "--json"],
        &["forge", "issue", "show", &issue, "--json"],
        &["merge-queue", "history", "--json"],
        &["status", "--json"],
        &["journal", "--json"],
    ];
    let mut shown: Vec<(String, String)> =
        commands.iter().map(|command| (command.join(" "), daemon.run(command).stdout)).collect();
    shown.push(("the daemon's log".to_owned(), daemon.log()));
    shown.push(("notices".to_owned(), format!("{:?}", daemon.notices())));
    shown.push(("the forge".to_owned(), daemon.forge_git(&["log", "--all", "--patch", "--format=fuller"])));
    for file in ["pointsman.db", "pointsman.db-wal", "projects/shop/forge.db", "projects/shop/forge.db-wal"] {
        let bytes = fs::read(daemon.state().join(file)).unwrap_or_default();
        shown.push((file.to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    shown
}

#[track_caller]
fn assert_nowhere(daemon: &TestDaemon, issue: u64) {
    use pointsman_core::base64::encode;
    let encoded = encode(format!("user:{TOKEN}").as_bytes());
    for (what, text) in shown(daemon, issue) {
        for value in [TOKEN, "of-nobody-else", encoded.as_str()] {
            assert!(!text.contains(value), "{what} shows {value}: {text}");
        }
    }
}

#[test]
fn e2e_a_known_secret_is_not_pushed_and_shown_nowhere_and_its_agent_takes_it_out() {
    let daemon = holding(
        r#"
echo "I know TOKEN"
mkdir -p src; printf 'user:TOKEN' | base64 -w0 > src/a.txt
echo 'It needs TOKEN.' > "$POINTSMAN_SUMMARY_FILE"
hand_in 'Add a'
await 'CI failed'
await 'Answer'
git reset --quiet --hard HEAD~1
mkdir -p src; echo fine > src/a.txt
hand_in 'Add a'
await 'Merged'
echo PHASE:done > "$PHASE_FILE"
"#,
    )
    .start();
    let issue = daemon.file_issue_with("Add a", "Please.");
    let asked = wait_secret(&daemon);
    assert_eq!((&asked["issue"], &asked["holds_up"].is_null()), (&issue.into(), &false), "{asked}");
    let text = daemon.run(&["inbox", "show", &asked["id"].to_string()]).stdout;
    assert!(text.contains("src/a.txt contains a secret that Pointsman keeps"), "{text}");
    daemon.wait_until(issue, "the agent to be told", |task| task["state"] == "working");
    daemon.wait_shown(issue, "the branch contains a secret and was not pushed");
    assert_eq!(daemon.forge_git(&["branch", "--list", "pointsman/*"]), "", "nothing has left");
    assert!(daemon.pull_requests().is_empty());
    assert_nowhere(&daemon, issue);
    let live = daemon.run(&["session", "logs", &issue.to_string()]).stdout;
    assert!(live.contains("I know [secret]"), "{live}");

    daemon.json(&["session", "send", &issue.to_string(), "Go on."]);
    daemon.wait_closed(issue);
    daemon.wait_settled(issue);
    assert_eq!(daemon.main_log(), ["Add a", "Open the shop"]);
    assert_eq!(daemon.on_main("src/a.txt").unwrap(), "fine");
    assert_eq!(secrets(&daemon), [] as [Value; 0], "nobody asks any more");
    let body = daemon.pull_requests()[0]["body"].as_str().unwrap().to_owned();
    assert!(body.contains("It needs [secret]."), "{body}");
    assert_nowhere(&daemon, issue);
    let kept = daemon.run(&["session", "logs", &issue.to_string()]).stdout;
    assert!(kept.contains("I know [secret]"), "{kept}");
    // What the agent wrote into its own directory is not handed on.
    let own = daemon.session_files(issue);
    for kept in files_below(&daemon.state()).into_iter().filter(|file| !file.starts_with(&own)) {
        let text = fs::read(&kept).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(TOKEN), "{}", kept.display());
    }
}

/// All regular files below a directory.
fn files_below(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_below(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

#[test]
fn e2e_a_persons_yes_lets_a_known_value_leave_and_the_agent_hears_of_it() {
    let daemon = holding(
        r#"
mkdir -p src; echo TOKEN > src/a.txt
hand_in 'Add a'
await 'CI failed'
await 'Answer'
echo PHASE:awaiting_ci > "$PHASE_FILE"
await 'Merged'
echo PHASE:done > "$PHASE_FILE"
"#,
    )
    .start();
    let issue = daemon.file_issue_with("Add a", "Please.");
    let asked = wait_secret(&daemon);
    daemon.wait_shown(issue, "the branch contains a secret and was not pushed");
    assert_eq!(daemon.forge_git(&["branch", "--list", "pointsman/*"]), "");
    settle(&daemon, "approve", &asked);
    daemon.wait_closed(issue);
    assert_eq!(daemon.on_main("src/a.txt").unwrap(), TOKEN);
    assert_eq!(secrets(&daemon), [] as [Value; 0]);
}

#[test]
fn e2e_a_known_value_in_an_escalation_is_masked_and_a_later_commit_does_not_hide_one() {
    let daemon = holding(
        r#"
printf 'PHASE:escalate\nReason: is TOKEN the one?\n' > "$PHASE_FILE"
await 'Answer'
mkdir -p src; echo TOKEN > src/a.txt
git add --all; git commit --quiet --message 'Add a'
echo fine > src/a.txt
hand_in 'Take it out again'
await 'CI failed'
git reset --quiet --soft HEAD~2
git commit --quiet --message 'With TOKEN in the message'
hand_in_again() { git push --quiet --force origin HEAD; echo PHASE:awaiting_ci > "$PHASE_FILE"; }
hand_in_again
await 'CI failed'
await 'nothing more'
"#,
    )
    .start();
    let issue = daemon.file_issue_with("Add a", "Please.");
    daemon.wait_state(issue, "escalated");
    let inbox = daemon.json(&["inbox"]);
    assert_eq!(inbox[0]["subject"], "is [secret] the one?", "{inbox}");
    daemon.wait_for("people to be told", || {
        format!("{:?}", daemon.notices()).contains("is [secret] the one?").then_some(())
    });
    assert!(daemon.comments(issue).iter().any(|comment| comment.contains("[secret]")));
    assert_nowhere(&daemon, issue);
    daemon.answer(issue, "Yes.");
    let asked = wait_secret(&daemon);
    assert!(asked["subject"].as_str().unwrap().starts_with("src/a.txt contains"), "{asked}");
    daemon.wait_for("the same value in the message", || {
        let asked = secrets(&daemon).pop()?;
        asked["subject"].as_str().unwrap().starts_with("a commit contains").then_some(())
    });
    assert_eq!(daemon.forge_git(&["branch", "--list", "pointsman/*"]), "");
    assert_nowhere(&daemon, issue);
}

/// Looks like a key of a cloud, and is put together here so that nobody takes this file for one that holds keys.
fn key() -> String {
    format!("AKIA{}", "A2B3C4D5E6F7G2H3")
}

fn warnings(daemon: &TestDaemon, issue: u64) -> usize {
    let inbox = daemon.session_files(issue).join("inbox-1");
    let names = fs::read_dir(inbox).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().contains("write-a-phase")).count()
}

#[test]
fn e2e_what_looks_like_a_secret_is_told_once_and_waits_in_the_queue_until_a_person_accepts_it() {
    let daemon = shop().set("dev.concurrency", "2").start();
    let key = key();
    let script = format!(
        "write src/key.txt {key}\ncommit Add a key\npush\nphase awaiting_ci\nexpect Write a phase\nwrite src/more.txt \
         more\ncommit Add more\npush\nphase awaiting_ci\nexpect Merged\nphase done"
    );
    let issue = daemon.file_issue("Key", &script);
    let asked = wait_secret(&daemon);
    daemon.wait_state(issue, "merge_queue");
    assert_eq!(daemon.main_log(), ["Open the shop"]);
    let text = daemon.run(&["inbox", "show", &asked["id"].to_string()]).stdout;
    assert!(text.contains("line 1 of src/key.txt looks like an AWS access key"), "{text}");
    assert!(text.contains("sha256:") && !text.contains(&key), "{text}");
    let entry = daemon.json(&["merge-queue", "list"]);
    assert!(entry[0]["reason"].as_str().unwrap().contains("waits for a person"), "{entry}");
    // Others go on.
    let other = daemon.file_issue("Other", &super::clean("plums"));
    daemon.wait_closed(other);
    assert_eq!(daemon.main_log(), ["Add plums", "Open the shop"]);
    assert_eq!(warnings(&daemon, issue), 1);
    settle(&daemon, "approve", &asked);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add more", "Add a key", "Add plums", "Open the shop"]);
    assert_eq!(secrets(&daemon), [] as [Value; 0]);

    // Once accepted, it is not asked about again.
    let again = format!(
        "write src/again.txt {key}\ncommit Use the key\npush\nphase awaiting_ci\nexpect Merged\nphase done"
    );
    let again = daemon.file_issue("Again", &again);
    daemon.wait_closed(again);
    assert_eq!(warnings(&daemon, again), 0);
}

#[test]
fn e2e_a_path_and_a_hash_are_allowed_by_a_setting() {
    let fingerprint = pointsman_core::known_secrets::fingerprint(key().as_bytes());
    let allowed = format!("[\"tests/data/\", \"sha256:{fingerprint}\"]");
    let daemon = shop().set("review.secrets_allowed", &allowed).start();
    let other = format!("AKIA{}", "Z9Y8X7W6V5U4T3S2");
    let script = format!(
        "write src/key.txt {}\nwrite tests/data/key.txt {other}\ncommit Add keys\npush\nphase awaiting_ci\nexpect \
         Merged\nphase done",
        key()
    );
    let issue = daemon.file_issue("Keys", &script);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add keys", "Open the shop"]);
}

#[test]
fn e2e_a_persons_no_hands_the_branch_back_and_keeps_it_here_from_then_on() {
    let rest = r#"
mkdir -p src; echo KEY > src/key.txt
hand_in 'Add a key'
await 'CI failed'
echo PHASE:awaiting_ci > "$PHASE_FILE"
await 'CI failed'
git reset --quiet --hard HEAD~1
mkdir -p src; echo fine > src/key.txt
hand_in 'Add no key'
await 'Merged'
echo PHASE:done > "$PHASE_FILE"
"#;
    let daemon = shop().agent(&agent(&rest.replace("KEY", &key()))).start();
    let issue = daemon.file_issue_with("Add a key", "Please.");
    let asked = wait_secret(&daemon);
    daemon.wait_state(issue, "merge_queue");
    settle(&daemon, "reject", &asked);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add no key", "Open the shop"]);
    let inbox = daemon.session_files(issue).join("inbox-1");
    let told: Vec<String> = fs::read_dir(inbox)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap_or_default())
        .collect();
    assert!(told.iter().any(|text| text.contains("a person says that it contains a secret")), "{told:?}");
    assert!(told.iter().any(|text| text.contains("was not pushed")), "{told:?}");
    assert_eq!(secrets(&daemon), [] as [Value; 0]);
}

#[test]
fn e2e_a_hand_in_with_a_known_value_is_refused() {
    let daemon = shop()
        .agent(&answering())
        .set("merge.protected", "[]")
        .daemon_env("MATRIX_TOKEN", TOKEN)
        .file("AGENTS.md", "# Old\n")
        .start();
    work(&daemon, &format!("echo 'use {TOKEN}' > AGENTS.md\nmkdir -p docs; echo '# New' > docs/AGENTS.md\n"));
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "refused: AGENTS.md, which contains a secret that Pointsman keeps");
    wait_journal(&daemon, "gardener", "pull request #1 is on the main branch: docs/AGENTS.md");
    assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Old"));
    let asked = wait_secret(&daemon);
    assert!(asked["subject"].as_str().unwrap().contains("AGENTS.md contains a secret"), "{asked}");
    for command in [&["events", "--json"][..], &["journal", "--json"], &["inbox", "--json"]] {
        assert!(!daemon.run(command).stdout.contains(TOKEN), "{command:?}");
    }
    // A person knows better.
    settle(&daemon, "approve", &asked);
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "is on the main branch: AGENTS.md");
    assert_eq!(daemon.on_main("AGENTS.md"), Some(format!("use {TOKEN}")));
}

#[test]
fn e2e_what_ci_prints_is_masked() {
    let ci = format!("#!/bin/sh\necho 'CI knows {TOKEN}'\nexit 1\n");
    let daemon = shop()
        .file("ci.sh", &ci)
        .set("ci.command", "[\"sh\", \"ci.sh\"]")
        .daemon_env("MATRIX_TOKEN", TOKEN)
        .start();
    let script =
        "write src/a.txt a\ncommit Add a\npush\nphase awaiting_ci\nexpect CI failed\nexpect nothing more";
    let issue = daemon.file_issue("Add a", script);
    let finished = || daemon.run(&["events", "--kind", "checks_finished", "--json"]).stdout;
    daemon.wait_for("CI to end", || (!finished().is_empty()).then_some(()));
    let log = daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    assert!(log.contains("CI knows [secret]"), "{log}");
    for (what, text) in shown(&daemon, issue).iter().filter(|(what, _)| what != "the forge") {
        assert!(!text.contains(TOKEN), "{what}: {text}");
    }
}

#[test]
fn e2e_a_daemon_killed_after_it_asked_asks_once_and_pushes_nothing() {
    let key = key();
    let known =
        "mkdir -p src; echo TOKEN > src/a.txt\nhand_in 'Add a'\nawait 'CI failed'\nawait 'nothing more'\n";
    let looks = format!("mkdir -p src; echo {key} > src/a.txt\nhand_in 'Add a'\nawait 'nothing more'\n");
    for (place, rest) in SECRET_NAMES.iter().zip([known, looks.as_str()]) {
        let daemon = holding(rest).build();
        daemon.start_with(&[("POINTSMAN_CRASH_AT", place)]);
        let issue = daemon.file_issue_with("Add a", "Please.");
        daemon.wait_for_death();
        daemon.start();
        let asked = wait_secret(&daemon);
        match *place {
            "secret-asked" => {
                daemon.wait_shown(issue, "the branch contains a secret and was not pushed");
                assert_eq!(daemon.forge_git(&["branch", "--list", "pointsman/*"]), "");
                assert_nowhere(&daemon, issue);
            }
            _ => drop(daemon.wait_state(issue, "merge_queue")),
        }
        assert_eq!(secrets(&daemon), [asked], "{place}");
        assert_eq!(daemon.main_log(), ["Open the shop"], "{place}");
    }
}

#[test]
fn e2e_a_decision_about_a_secret_counts_once_whoever_dies_of_it() {
    let script = format!(
        "write src/key.txt {}\ncommit Add a key\npush\nphase awaiting_ci\nexpect Merged\nphase done",
        key()
    );
    let daemon = shop().start();
    let issue = daemon.file_issue("Key", &script);
    let asked = wait_secret(&daemon);
    daemon.kill_daemon();
    let file = daemon.path("home/deaths");
    let told = format!("1:{}", file.display());
    let told = [("POINTSMAN_CRASH_COMMITS", told.as_str())];
    daemon.start_with(&told);
    let decided = || daemon.run(&["events", "--kind", "secret_decided", "--json"]).stdout.lines().count();
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        daemon.wait_for(what, || {
            if daemon.has_ended() {
                daemon.kill_daemon();
                daemon.start_with(&told);
            }
            holds().then_some(())
        });
    };
    until("the decision", &|| {
        if decided() == 0 {
            daemon.run(&["inbox", "approve", &asked["id"].to_string()]);
        }
        decided() > 0
    });
    until("the landing", &|| daemon.run(&["task", "show", &issue.to_string()]).stdout.contains("merged"));
    let deaths = fs::read_to_string(&file).unwrap();
    for side in ["before", "after"] {
        let killed = deaths.lines().find(|line| line.starts_with(&format!("{side} event:secret_decided ")));
        assert!(killed.is_some_and(|line| line.split(' ').nth(3) == Some("1")), "{deaths}");
    }
    daemon.kill_daemon();
    daemon.start();
    assert_eq!(decided(), 1);
    assert_eq!(daemon.main_log(), ["Add a key", "Open the shop"]);
}
