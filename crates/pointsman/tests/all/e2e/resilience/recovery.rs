//! What died comes back, even if its tree went with it.

use pointsman_core::ids::ProjectName;
use pointsman_store::Store;

use super::shop;

#[test]
fn e2e_a_tree_that_is_gone_is_rebuilt_from_the_last_checkpoint() {
    let daemon = shop().start();
    let script = "write src/apples.txt apples\ncommit Add apples\nwrite src/pears.txt half a pear\n\
                  checkpoint implementation the pears\nsay at work\nhang";
    let issue = daemon.file_issue("Apples", script);
    daemon.wait_shown(issue, "at work");
    let saved = daemon.wait_for("a checkpoint", || {
        let list = daemon.json(&["rescue", "list", "--kind", "checkpoint"]);
        list.as_array()?.iter().find(|c| c["session"] == "dev-shop-1.1").cloned()
    });
    assert_eq!(saved["task"], issue, "{saved}");
    daemon.kill_daemon();
    daemon.kill_session(issue);
    std::fs::remove_dir_all(daemon.tree(issue)).unwrap();
    daemon.start();
    daemon.wait_session(issue, 2);
    let file = |name: &str| std::fs::read_to_string(daemon.tree(issue).join(name)).unwrap_or_default();
    assert_eq!(file("src/pears.txt"), "half a pear\n");
    assert_eq!(file("src/apples.txt"), "apples\n");
    // The successor may be at work on top of it already.
    let log = daemon.git_in(&daemon.tree(issue), &["log", "--reverse", "--format=%s"]);
    assert!(log.starts_with("Open the shop\nAdd apples"), "what was committed is a commit: {log}");
}

#[test]
fn e2e_after_a_crash_a_new_session_is_prompted() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", "say at work\nhang");
    daemon.wait_shown(issue, "at work");
    daemon.kill_session(issue);
    daemon.wait_session(issue, 2);
    daemon.wait_shown(issue, "an earlier session did");
}

#[test]
fn e2e_a_checkpoint_that_a_dead_daemon_did_not_write_down_is_in_nobodys_way() {
    let daemon = shop().start();
    let script = "write src/apples.txt one\ncheckpoint implementation apples\nexpect Answer\nwrite src/apples.txt two\n\
                  checkpoint implementation apples again\nsay saved\nhang";
    let issue = daemon.file_issue("Apples", script);
    let checkpoints = || {
        let list = daemon.json(&["rescue", "list", "--kind", "checkpoint"]);
        list.as_array().cloned().unwrap_or_default()
    };
    daemon.wait_for("a checkpoint", || (checkpoints().len() == 1).then_some(()));
    daemon.stop_daemon();
    // As if it had died between the capture and its row.
    let newest = checkpoints()[0]["ref"].as_str().unwrap().to_owned();
    let next = newest.replace("/1/1", "/1/2");
    let captures = daemon.state().join("projects/shop/captures.git");
    daemon.git_in(&captures, &["update-ref", &next, &newest]);
    daemon.start();
    daemon.json(&["session", "send", &issue.to_string(), "Go on."]);
    daemon.wait_shown(issue, "saved");
    let last = daemon.wait_for("a third checkpoint", || {
        checkpoints().into_iter().find(|c| c["ref"].as_str().is_some_and(|r| r.ends_with("/1/3")))
    });
    let shown =
        daemon.git_in(&captures, &["show", &format!("{}:src/apples.txt", last["ref"].as_str().unwrap())]);
    assert_eq!(shown, "two");
}

#[test]
fn e2e_a_checkpoint_whose_daemon_died_before_it_was_written_down_is_adopted() {
    let daemon = shop().build();
    daemon.start_with(&[("POINTSMAN_CRASH_AT", "checkpoint-saved")]);
    let issue =
        daemon.file_issue("Apples", "write src/apples.txt draft\ncheckpoint testing half\nsay at work\nhang");
    daemon.wait_for_death();
    let rows = || {
        let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
        store.all_checkpoints(&ProjectName::new("shop").unwrap()).unwrap()
    };
    let refs = || daemon.json(&["rescue", "list", "--kind", "checkpoint"]).as_array().cloned().unwrap();
    assert_eq!((rows().len(), refs().len()), (0, 1), "only the mirror knows");
    daemon.start();
    daemon.wait_shown(issue, "at work");
    let (rows, refs) = (rows(), refs());
    assert_eq!(rows[0].reference, refs[0]["ref"].as_str().unwrap(), "{rows:?} {refs:?}");
    assert_eq!((rows[0].task.issue, rows[0].n, rows[0].files), (issue, 1, 1));
    assert!(rows[0].at.0 > 0, "{rows:?}");
}
