//! Projections are never read back as truth: whatever somebody makes of them, they are written anew.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::{hook_file, identity_file, read, shop, wait_file};

#[test]
fn e2e_torn_and_hostile_files_are_refused_and_regenerated() {
    let daemon = shop().set("timing.heartbeat", "\"200ms\"").start();
    let issue = daemon.file_issue("Apples", "write src/apples.txt draft\nsay at work\nhang");
    daemon.wait_shown(issue, "at work");
    let (identity, hook) = (identity_file(&daemon, issue), hook_file(&daemon, issue));
    wait_file(&daemon, &identity, |v| v["status"] == "active");
    let whole = |path: &std::path::Path| {
        fs::symlink_metadata(path).is_ok_and(|m| m.is_file())
            && fs::read(path).is_ok_and(|b| serde_json::from_slice::<serde_json::Value>(&b).is_ok())
    };
    let secret = daemon.path("home/secret");
    fs::write(&secret, "keep").unwrap();
    let deep = "[".repeat(200_000);
    let huge = "x".repeat(8 << 20);
    for (what, text) in [("torn", "{\"role\": \"de"), ("empty", ""), ("deep", &deep), ("huge", &huge)] {
        for path in [&identity, &hook] {
            fs::write(path, text).unwrap();
            daemon.wait_for(&format!("{} whole again after {what}", path.display()), || {
                whole(path).then_some(())
            });
        }
    }
    for path in [&identity, &hook] {
        // In one step: whoever removes it first finds it there again.
        let link = path.with_extension("link");
        symlink(&secret, &link).unwrap();
        fs::rename(&link, path).unwrap();
        daemon.wait_for("a file instead of a link", || whole(path).then_some(()));
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "keep");
    // Given away: only root can, and then it is somebody else's file with our words in it.
    if rustix::process::geteuid().is_root() {
        for path in [&identity, &hook] {
            let given = path.with_extension("given");
            fs::write(&given, "{}").unwrap();
            std::os::unix::fs::chown(&given, Some(65534), None).unwrap();
            fs::rename(&given, path).unwrap();
            daemon.wait_for("a file of ours again", || {
                let ours = fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() == 0);
                (ours && whole(path) && read(path) != serde_json::json!({})).then_some(())
            });
        }
    }

    // A directory in its place is not removed: nobody knows what is in it.
    daemon.wait_for("a directory in its place", || {
        let _ = fs::remove_file(&identity);
        fs::create_dir(&identity).ok()
    });
    daemon.wait_for("a complaint", || daemon.log_lines("a projection was not written"));
    assert!(identity.is_dir());
    fs::remove_dir(&identity).unwrap();
    wait_file(&daemon, &identity, |v| v["session_id"] == "dev-shop-1.1");
    assert_eq!(read(&hook)["identity_name"], "dev-shop-1");
    assert!(!daemon.has_ended());
    assert_eq!(daemon.sessions(issue).len(), 1);
}

#[test]
fn e2e_nothing_is_written_through_a_linked_folder() {
    let daemon = shop().build();
    let outside = daemon.path("home/outside");
    fs::create_dir(&outside).unwrap();
    fs::create_dir_all(daemon.checkout().join(".claude")).unwrap();
    symlink(&outside, daemon.checkout().join(".claude/state")).unwrap();
    daemon.start();
    let issue = daemon.file_issue("Apples", &super::clean("apples"));
    daemon.wait_closed(issue);
    daemon.wait_for("a complaint", || daemon.log_lines("a projection was not written"));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}
