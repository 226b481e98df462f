//! AC-2.5: a daemon that is killed while it writes leaves the old file or the new one.

use std::time::Duration;

use super::{hook_file, identity_file, read, shop, wait_file};

/// How many daemons die.
const KILLS: u32 = 12;

/// Changes its mind all the time.
const RESTLESS: &str = r#"
read -r prompt
while :; do echo 'editing src/a.txt'; sleep 0.03; echo '$ cargo test'; sleep 0.03; done
"#;

#[test]
fn e2e_r2_6_ac_2_5_a_work_state_on_disk_is_always_whole() {
    let daemon = shop()
        .agent(RESTLESS)
        .set("timing.phase_rescan", "\"20ms\"")
        .set("timing.heartbeat", "\"50ms\"")
        .start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    let (identity, hook) = (identity_file(&daemon, issue), hook_file(&daemon, issue));
    wait_file(&daemon, &hook, |v| v["work_phase"] == "testing" || v["work_phase"] == "implementation");
    let pid = daemon.session_pid(issue);
    for kill in 0..KILLS {
        // Another moment each time: somewhere in the few milliseconds that a write takes.
        let before = read(&hook);
        wait_file(&daemon, &hook, |v| *v != before);
        std::thread::park_timeout(Duration::from_millis(u64::from(kill) * 7));
        daemon.kill_daemon();
        for path in [&identity, &hook] {
            assert!(read(path).is_object(), "kill {kill}: {}", path.display());
        }
        daemon.start();
    }
    let last = read(&hook);
    wait_file(&daemon, &hook, |v| *v != last);
    assert_eq!(daemon.session_pid(issue), pid, "nothing was started again");
    daemon.restart();
    let names: Vec<_> = std::fs::read_dir(hook.parent().unwrap()).unwrap().flatten().collect();
    let drafts = names.iter().filter(|e| e.file_name().to_string_lossy().starts_with(".draft-")).count();
    assert!(drafts <= 1, "at most the one that is being written: {names:?}");
}
