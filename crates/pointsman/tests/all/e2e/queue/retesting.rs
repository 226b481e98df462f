//! Red that may be wrong: main is tested again after a while, and people try a branch without landing it.

use std::fs;

use serde_json::json;

use super::Rig;

/// The gate needs a service, and says so.
const NEEDS_SERVICE: &str = "git rev-parse 'HEAD^{tree}' >> \"$HOME/gates\"; \
                             [ -e \"$HOME/service\" ] || { echo the service is missing; exit 1; }";
const MINUTE_MS: i64 = 60_000;

/// Nobody says anything: ten minutes later the queue asks again by itself.
#[test]
fn e2e_queue_a_red_main_is_tested_again_after_ten_minutes() {
    let rig = Rig::staged(NEEDS_SERVICE, &[]);
    rig.serve();
    rig.enter("one");
    let is_red = || {
        let entry = rig.entry("one");
        entry["reason"].as_str().filter(|reason| reason.contains("main itself is red")).map(str::to_owned)
    };
    let said = rig.daemon.wait_for("main to be found red", is_red);
    let before = rig.gates().len();
    assert_eq!(before, 4, "the branch twice, and main twice");
    rig.daemon.stage(&json!({ "ahead_ms": 11 * MINUTE_MS }));
    rig.wait_gates(before + 1);
    // Still red, and the reason says when that was found out.
    rig.daemon.wait_for("the reason to have another time", || is_red().filter(|now| *now != said));
    fs::write(rig.daemon.path("home/service"), "").unwrap();
    rig.daemon.stage(&json!({ "ahead_ms": 22 * MINUTE_MS }));
    rig.wait("one", "landed");
}

#[test]
fn e2e_queue_a_branch_is_tried_on_todays_main_without_landing() {
    let rig = Rig::start(&[]);
    rig.enter("landed");
    rig.wait("landed", "landed");
    let main = rig.git(&["rev-parse", "main"]);
    let good = rig.push("good", "src/good.txt", "good\n");
    rig.push("bad", "src/bad.txt", "BUG\n");
    rig.push("quarrel", "src/landed.txt", "another price\n");
    rig.push("same", "src/landed.txt", "landed 2 crowns\n");

    let tried = rig.json(&["try", "good"]);
    assert_eq!((&tried["verdict"], &tried["head_sha"]), (&"green".into(), &good.into()), "{tried:#}");
    assert_eq!((&tried["base_sha"], &tried["log_path"]), (&main.clone().into(), &json!(null)), "{tried:#}");
    let red = rig.mq(&["--json", "try", "bad"]);
    assert_eq!(red.code, Some(1), "{red:#?}");
    let told: serde_json::Value = serde_json::from_str(red.stdout.trim()).unwrap();
    assert_eq!((&told["verdict"], &told["reason"]), (&"red".into(), &"exit code 1".into()), "{told:#}");
    assert!(told["log"].as_str().unwrap().contains("BUG"), "{told:#}");
    assert!(fs::read_to_string(told["log_path"].as_str().unwrap()).unwrap().contains("BUG"));
    let quarrel = rig.mq(&["try", "quarrel"]);
    assert_eq!(quarrel.code, Some(1));
    assert!(quarrel.stdout.contains("quarrel: conflict\nconflict in src/landed.txt"), "{quarrel:#?}");
    assert!(rig.mq(&["try", "same"]).stdout.contains("same changes nothing on main"));
    assert_eq!(rig.mq(&["try", "nowhere"]).code, Some(4));

    assert_eq!(rig.git(&["rev-parse", "main"]), main, "nothing landed");
    assert_eq!(rig.json(&["history"]).as_array().unwrap().len(), 1, "nothing is in the queue");
    assert_eq!(rig.branches(), ["bad", "good", "main", "quarrel", "same"]);
    let gates = rig.gates().len();
    rig.add("good");
    rig.wait("good", "landed");
    assert_eq!(rig.gates().len(), gates + 1, "what a person ran is no verdict of the queue");
    let trials = fs::read_dir(rig.daemon.state().join("serve")).unwrap().flatten().flat_map(|home| {
        fs::read_dir(home.path().join("projects/line/trials")).into_iter().flatten().flatten()
    });
    let left: Vec<_> = trials.filter(|entry| entry.path().is_dir()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Also without anybody who serves the queue, and from a checkout whose branch was never pushed.
#[test]
fn e2e_queue_a_branch_of_the_checkout_is_tried_without_being_pushed() {
    let daemon = super::shop().set("merge.gate", "[\"sh\", \"-c\", \"! grep -rn BUG src\"]").build();
    let checkout = daemon.checkout();
    daemon.git_in(&checkout, &["checkout", "--quiet", "-b", "mine"]);
    fs::write(checkout.join("src/mine.txt"), "BUG\n").unwrap();
    daemon.git_in(&checkout, &["add", "src"]);
    daemon.git_in(&checkout, &["commit", "--quiet", "--message=Mine"]);
    let red = daemon.run(&["merge-queue", "try", "mine"]);
    assert_eq!(red.code, Some(1), "{red:#?}");
    assert!(red.stdout.contains("mine: red: exit code 1") && red.stdout.contains("BUG"), "{red:#?}");
    let url = daemon.json(&["forge", "url"])["url"].as_str().unwrap().to_owned();
    let branches = daemon.git_in(url.as_ref(), &["for-each-ref", "--format=%(refname)", "refs/heads"]);
    assert_eq!(branches, "refs/heads/main");
}

/// A person's branch is red: the notice has the end of the log and where all of it is.
#[test]
fn e2e_queue_a_person_is_told_why_a_branch_is_out_and_that_main_is_red() {
    let gate = "[\"sh\", \"-c\", \"[ -e $HOME/service ] || { echo the service is missing; exit 1; }; ! grep -rn BUG src\"]";
    let daemon = super::shop().set("merge.gate", gate).start();
    fs::write(daemon.path("home/service"), "").unwrap();
    let checkout = daemon.checkout();
    let enter = |branch: &str, text: &str| {
        daemon.git_in(&checkout, &["checkout", "--quiet", "-B", branch, "main"]);
        fs::write(checkout.join(format!("src/{branch}.txt")), text).unwrap();
        daemon.git_in(&checkout, &["add", "src"]);
        daemon.git_in(&checkout, &["commit", "--quiet", "--message", branch]);
        daemon.json(&["merge-queue", "add", branch]);
    };
    let told = |title: &str| {
        daemon.wait_for(title, || daemon.notices().into_iter().find(|notice| notice["title"] == title))
    };
    enter("bad", "BUG 7\n");
    let body = told("bad was removed from the merge queue of shop: red")["body"].as_str().unwrap().to_owned();
    assert!(body.contains("Why: exit code 1") && body.contains("src/bad.txt:1:BUG 7"), "{body}");
    let log = body.lines().find_map(|line| line.strip_prefix("Log: ")).expect("the path of the log");
    assert!(fs::read_to_string(log).unwrap().contains("BUG 7"));
    fs::remove_file(daemon.path("home/service")).unwrap();
    daemon.json(&["merge-queue", "retest", "main"]);
    enter("other", "fine\n");
    let red = told("shop: the main branch fails its gate");
    assert!(red["body"].as_str().unwrap().contains("the service is missing"), "{red:#}");
    assert_eq!(red["urgent"], true);
}
