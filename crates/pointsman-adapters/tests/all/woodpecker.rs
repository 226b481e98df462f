//! Woodpecker, against a fake of it.

use pointsman_adapters::ci::woodpecker::{Status, Woodpecker};
use pointsman_adapters::http::Limits;
use pointsman_adapters::secret::Secret;
use pointsman_core::ids::Sha;
use pointsman_core::task::CiVerdict;
use pointsman_core::time::Timestamp;
use pointsman_testkit::fake_woodpecker::{FakeWoodpecker, REPO, REPO_ID, TOKEN};

fn open(fake: &FakeWoodpecker, id: Option<u64>, token: &str) -> Woodpecker {
    let token = Secret::new(token).unwrap();
    Woodpecker::new(&fake.url(), id, Some(REPO), token, || Timestamp(0), Limits::default()).unwrap()
}

fn sha(digit: &str) -> Sha {
    Sha::new(&digit.repeat(40)).unwrap()
}

#[test]
fn a_commit_is_judged_by_the_newest_run_of_each_event() {
    let fake = FakeWoodpecker::start("3.17.0");
    let ci = open(&fake, None, TOKEN);
    let (one, other) = (sha("a"), sha("b"));
    assert_eq!(ci.verdict(&one).unwrap(), None, "nothing has run");
    let push = fake.run("push", one.as_str());
    let request = fake.run("pull_request", one.as_str());
    fake.end(fake.run("push", other.as_str()), "failure", &[("test", 1, "not this commit")]);
    fake.end(push, "success", &[("test", 0, "")]);
    assert_eq!(ci.verdict(&one).unwrap(), None, "one still runs");
    fake.end(request, "failure", &[("clone", 0, ""), ("test", 1, "line one\nassertion failed")]);
    match ci.verdict(&one).unwrap() {
        Some(CiVerdict::Failed { summary, log }) => {
            assert_eq!(summary, "failed: ci/test");
            assert_eq!(log, "== ci/test, exit 1\nline one\nassertion failed\n");
        }
        other => panic!("{other:?}"),
    }
    let again = ci.restart(request).unwrap();
    assert_eq!(ci.verdict(&one).unwrap(), None, "the newest run counts");
    fake.end(again, "success", &[("test", 0, "")]);
    assert_eq!(ci.verdict(&one).unwrap(), Some(CiVerdict::Passed));
    assert_eq!(fake.pipelines()[3], (again, request, one.to_string(), "success".to_owned()));
}

#[test]
fn a_log_that_is_not_stored_yet_is_missed() {
    let fake = FakeWoodpecker::start("3.17.0");
    let ci = open(&fake, None, TOKEN);
    let one = sha("a");
    fake.logs_come_late();
    fake.end(fake.run("push", one.as_str()), "failure", &[("test", 1, "assertion failed")]);
    for _ in 0..2 {
        let look = ci.look(&one).unwrap();
        assert!(look.lacks_log && matches!(look.verdict, Some(CiVerdict::Failed { .. })), "{look:?}");
    }
    let look = ci.look(&one).unwrap();
    let told =
        matches!(&look.verdict, Some(CiVerdict::Failed { log, .. }) if log.contains("assertion failed"));
    assert!(!look.lacks_log && told, "{look:?}");
}

#[test]
fn the_machinerys_fault_is_told_from_the_codes() {
    let fake = FakeWoodpecker::start("next-1234abcd");
    let ci = open(&fake, Some(REPO_ID), TOKEN);
    let runs = [
        ("failure", ("clone", 128, "fatal: unable to access"), true),
        ("killed", ("test", 1, ""), true),
        ("failure", ("test", 137, ""), true),
        ("failure", ("test", 2, "syntax error"), false),
        ("error", ("lint", 1, "bad"), false),
    ];
    for (n, (status, step, infra)) in runs.into_iter().enumerate() {
        let commit = sha(&n.to_string());
        fake.end(fake.run("push", commit.as_str()), status, &[step]);
        let verdict = ci.verdict(&commit).unwrap();
        assert_eq!(matches!(verdict, Some(CiVerdict::Infra { .. })), infra, "{status} {step:?}: {verdict:?}");
        let red = fake.pipelines().len() as u64;
        assert_eq!(ci.restart_red(&commit).unwrap(), [red + 1]);
        assert_eq!(ci.verdict(&commit).unwrap(), None, "it runs again");
    }
}

#[test]
fn a_pipeline_has_its_steps_and_its_logs() {
    let fake = FakeWoodpecker::start("3.0.0");
    let ci = open(&fake, None, TOKEN);
    for n in 0..60 {
        fake.run("push", sha(if n == 2 { "c" } else { "d" }).as_str());
    }
    fake.end(3, "failure", &[("clone", 0, "ok"), ("test", 1, "one\n  two ü\n")]);
    let newest = ci.pipelines().unwrap();
    assert_eq!((newest.len(), newest[0].number), (50, 60));
    assert_eq!(ci.pipelines_of(&sha("c")).unwrap()[0].number, 3, "also on the second page");
    let pipeline = ci.pipeline(3).unwrap().unwrap();
    let steps = &pipeline.workflows[0].children;
    assert_eq!((steps[1].name.as_str(), steps[1].state, steps[1].exit_code), ("test", Status::Failure, 1));
    assert_eq!(ci.log(3, steps[1].id).unwrap(), "one\n  two ü");
    assert!(ci.pipeline(99).unwrap().is_none());
}

#[test]
fn what_is_in_the_way_is_said() {
    let fake = FakeWoodpecker::start("0.15.11");
    let error = open(&fake, None, TOKEN).pipelines().unwrap_err().to_string();
    assert!(
        error.contains("the web page “Woodpecker”") && error.contains("a login page is in between"),
        "{error}"
    );
    let fake = FakeWoodpecker::start("3.17.0");
    let error = open(&fake, None, "wrong").pipelines().unwrap_err().to_string();
    assert!(error.contains("401 (User not authorized)") && !error.contains("wrong"), "{error}");
}
