//! One daemon per state directory, several projects per daemon.

use super::{clean, shop};

#[test]
fn e2e_a_second_daemon_is_refused_and_the_first_goes_on() {
    let daemon = shop().start();
    let second = daemon.run(&["up"]);
    assert_eq!(second.code, Some(3), "{second:?}");
    assert!(second.stderr.contains("already running"), "{second:?}");
    // Without the socket it has only the lock to go by.
    let second = {
        let mut command = daemon.command(&["up"]);
        command.env("POINTSMAN_RUNTIME_DIR", daemon.path("elsewhere"));
        command.output().unwrap()
    };
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(3), "{said}");
    assert!(
        said.contains(&format!("another pointsman holds this state directory (process {})", daemon.pid())),
        "{said}"
    );
    let issue = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_closed(issue);
}

#[test]
fn e2e_two_projects_have_their_own_numbers_and_limits() {
    let daemon = shop().set("limits.ci_fixes", "0").start();
    daemon.add_project(&shop().named("farm").set("limits.ci_fixes", "1").set("dev.concurrency", "2"));
    let script =
        "write src/a.txt BUG\ncommit Bug\npush\nphase awaiting_ci\nexpect CI failed\nphase failed enough";
    let first = daemon.file_issue("In the shop", script);
    let body = format!("rehearsal:begin\n{script}\nrehearsal:end\n");
    for title in ["On the farm", "On the farm again"] {
        daemon.json(&[
            "--project",
            "farm",
            "forge",
            "issue",
            "create",
            "--title",
            title,
            "--label",
            "backlog",
            "--body",
            &body,
        ]);
    }
    let task = daemon.wait_state(first, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("CI still fails after 0 fixes"), "{task}");
    let farm = daemon.wait_for("the farm's tasks to be blocked", || {
        let tasks = daemon.json(&["--project", "farm", "task", "list"]);
        let tasks = tasks.as_array().cloned().unwrap_or_default();
        (tasks.len() == 2 && tasks.iter().all(|t| t["state"] == "blocked")).then_some(tasks)
    });
    for (task, issue) in farm.iter().zip([1, 2]) {
        assert_eq!((&task["issue"], &task["project"]), (&issue.into(), &"farm".into()));
        assert!(task["reason"].as_str().unwrap().contains("the agent failed: enough"), "{task}");
    }
    assert_eq!(daemon.json(&["task", "list"]).as_array().map(Vec::len), Some(1));
}
