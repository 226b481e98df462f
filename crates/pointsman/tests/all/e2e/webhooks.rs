//! Webhooks: a ring makes the daemon ask, and nothing else does for a long time here.

use std::io::{Read, Write};
use std::net::TcpStream;

use pointsman_testkit::fake_forgejo::{FakeForgejo, OWNER, Rules};
use pointsman_testkit::{Setup, TestDaemon};

use super::adds;
use super::forgejo::{file, main_log, on, start};

const SECRET: &str = "tell-nobody-8f2";

/// Rings like a server would, and answers the status.
fn ring(address: &str, path: &str, secret: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("POST {path} HTTP/1.1\r\nAuthorization: Bearer {secret}\r\nContent-Length: 2\r\n\r\n{{}}");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// A project with a CI elsewhere, whose servers are hardly asked: without being rung for, nothing would be seen while a
/// test runs.
fn listening(fake: &FakeForgejo) -> Setup {
    on(fake)
        .unset("ci.command")
        .set("ci.kind", "\"forge\"")
        .set("timing.forge_poll", "\"10m\"")
        .set("ci.poll", "\"10m\"")
        .set("webhooks.listen", "\"127.0.0.1:0\"")
        .daemon_env("POINTSMAN_WEBHOOK_SECRET", SECRET)
}

fn address(daemon: &TestDaemon) -> String {
    let lines = daemon.wait_for("somebody to listen", || daemon.log_lines("listening for webhooks"));
    lines[0].split("address=").nth(1).unwrap().trim().to_owned()
}

#[test]
fn e2e_a_webhook_makes_the_daemon_ask_and_a_wrong_one_does_not() {
    let fake = FakeForgejo::start(Rules::default());
    let daemon = start(&fake, listening(&fake));
    let address = address(&daemon);

    assert_eq!(ring(&address, "/webhook/shop", "wrong"), "401");
    assert_eq!(ring(&address, "/webhook/other", SECRET), "404");
    daemon.wait_for("both to be sent away", || {
        daemon.log_lines("a webhook was not taken").filter(|lines| lines.len() == 2)
    });
    assert_eq!(daemon.log_lines("a webhook was heard"), None, "nobody is woken by them");

    // The question of the beginning is over before there is something to find.
    daemon.wait_for("the first question", || {
        let stats = daemon.json(&["forge", "stats"]);
        stats.as_array()?.iter().find(|row| row["operation"] == "list issues")?.get("calls").cloned()
    });
    let issue = file(&fake, "Add apples", &format!("{}\nexpect Merged\nphase done", adds("apples")));
    assert_eq!(ring(&address, "/webhook/shop", SECRET), "202");
    daemon.wait_for("the ring to be heard", || daemon.log_lines("a webhook was heard"));
    daemon.wait_for("the task to be closed", || {
        // CI says yes to the branch and to each candidate of the queue, and the server rings for that.
        for sha in daemon.git_in(fake.repository(), &["for-each-ref", "--format=%(objectname)"]).lines() {
            if fake.statuses(sha).is_empty() {
                fake.set_status(sha, "ci/build", "success");
            }
        }
        ring(&address, "/webhook/shop", SECRET);
        (daemon.task(issue)["state"] == "closed").then_some(())
    });
    assert_eq!(main_log(&fake, &daemon), ["Add apples", "Open the shop"]);
    assert!(!daemon.log().contains(SECRET));
}

/// Everything that the server tells by itself is enough; and what it tells of our own deeds is not in the way.
#[test]
fn e2e_a_server_that_rings_is_enough_from_claim_to_close() {
    let fake = FakeForgejo::start(Rules::default());
    let daemon = start(&fake, listening(&fake).reviewed());
    fake.hook(&address(&daemon), "/webhook/shop", SECRET);
    let script = format!(
        "{}\nexpect CI passed\nphase awaiting_review\nexpect Approved\nexpect Merged\nphase done",
        adds("apples")
    );
    let issue = file(&fake, "Add apples", &script);
    let mut tested = vec![fake.branch("main").unwrap()];
    let mut run_ci = || {
        for sha in fake.heads().into_iter().filter(|sha| !tested.contains(sha)).collect::<Vec<_>>() {
            fake.set_status(&sha, "ci/build", "pending");
            fake.set_status(&sha, "ci/build", "success");
            tested.push(sha);
        }
    };
    let pr = daemon.wait_for("the pull request to await its review", || {
        run_ci();
        let task = daemon.task(issue);
        (task["state"] == "awaiting_review").then(|| task["pr"].as_u64()).flatten()
    });
    fake.review(pr, OWNER, "APPROVED", "fine", &[]);
    daemon.wait_for("the task to be closed", || {
        run_ci();
        (daemon.task(issue)["state"] == "closed").then_some(())
    });
    assert_eq!(main_log(&fake, &daemon), ["Add apples", "Open the shop"]);
    let rings = daemon.log_lines("a webhook was heard").unwrap_or_default();
    assert!(rings.len() > 5, "our own deeds ring as well: {rings:?}");
}
