//! The planner: judges predictions, names gaps, does what rules allow of it, and is silent when nothing is new.

use pointsman_testkit::fake_forgejo::{FakeForgejo, Faults, OWNER, Rules};
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::forgejo;
use super::health::{let_due, make_due};
use super::roles::{answering, asked, file, journal, looked_at, says, times, wait_journal, work};
use super::shop;

const UNREVIEWED: &str = "prediction/unreviewed";
const TIDY: &str = "name = \"tidy\"\ndescription = \"Tidies up\"\nversion = 1\n\n[[steps]]\nid = \"sweep\"\ntitle = \"Sweep\"\n\
                    description = \"Sweep.\"\n";

/// A project with a vision, whose planner says what the test wants.
fn planned() -> Setup {
    shop()
        .agent(&answering())
        .file("VISION.md", "Fruit for all.\n")
        .file("formulas/tidy.toml", TIDY)
        .set("roles.planner.enabled", "true")
}

fn predict(daemon: &TestDaemon, what: &str) -> u64 {
    file(
        daemon,
        what,
        &format!("Nobody has judged it yet.\n\n## Evidence\n\n- figures of {what}"),
        Some(UNREVIEWED),
    )
}

fn promote(issue: u64, verdict: &str, title: &str, leverage: u8) -> Value {
    json!({
        "issue": issue, "verdict": verdict, "why": "it comes for sure", "title": title, "text": format!("About {title}."),
        "criteria": ["it works"], "leverage": leverage,
    })
}

fn gap(title: &str, leverage: u8) -> Value {
    json!({
        "title": title, "why": format!("We lack {title}."), "criteria": ["people can use it"], "depends_on": [],
        "leverage": leverage, "label": "backlog",
    })
}

fn verdict(issue: u64, verdict: &str, why: &str) -> Value {
    json!({ "issue": issue, "verdict": verdict, "why": why })
}

fn titles(daemon: &TestDaemon) -> Vec<String> {
    let all = daemon.json(&["forge", "issue", "list", "--state", "all"]);
    let mut all: Vec<(u64, String)> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| (issue["number"].as_u64().unwrap(), issue["title"].as_str().unwrap().to_owned()))
        .collect();
    all.sort();
    all.into_iter().map(|(_, title)| title).collect()
}

/// Lets the planner's time come again, and waits until it has looked.
fn look_again(daemon: &TestDaemon) {
    let before = looked_at(daemon, "planner");
    make_due(daemon, "run-planner");
    daemon.wait_for("another look", || (looked_at(daemon, "planner") > before).then_some(()));
}

#[test]
fn e2e_planner_judges_predictions_and_files_gaps_within_its_limit() {
    let daemon = planned().start();
    // It takes the only place there is: nobody begins with what is filed.
    let csv = file(&daemon, "Export orders as CSV", "Accountants want all orders as CSV.", Some("backlog"));
    daemon.wait_state(csv, "working");
    let [disk, ci, stale, die] =
        ["The disk fills", "CI becomes redder", "Issues pile up", "Sessions die more often"]
            .map(|what| predict(&daemon, what));
    let mut clean = promote(disk, "action", "Remove old logs", 6);
    clean["formula"] = json!("tidy");
    let mut mend = promote(ci, "backlog", "Mend the flaky harvest test", 5);
    mend["depends_on"] = json!([csv]);
    says(
        &daemon,
        &json!({
            "triage": [clean, mend, verdict(stale, "watch", "wait a while"), verdict(die, "dismiss", "it was one bad night")],
            "issues": [
                gap("Weigh pears at the till", 9), gap("Ship walnuts abroad", 4), gap("Rent bicycles to couriers", 3),
                gap("Paint the warehouse", 2), gap("CSV export of all orders for accountants", 10),
            ],
        }),
    );
    make_due(&daemon, "run-planner");
    wait_journal(&daemon, "planner", &format!("dismissed #{die}: it was one bad night"));
    assert_eq!(
        journal(&daemon, "planner")[2..],
        [
            "filed #6 (backlog): Weigh pears at the till".to_owned(),
            format!("promoted #{disk} to #7 (action): Remove old logs"),
            format!("promoted #{ci} to #8 (backlog): Mend the flaky harvest test"),
            "filed #9 (backlog): Ship walnuts abroad".to_owned(),
            "filed #10 (backlog): Rent bicycles to couriers".to_owned(),
            format!("watches #{stale}: wait a while"),
            format!("dismissed #{die}: it was one bad night"),
            format!(
                "refused: \"CSV export of all orders for accountants\" is not filed: it duplicates #{csv}"
            ),
            "refused: \"Paint the warehouse\" is not filed: at most 5 issues are filed in one run".to_owned(),
        ]
    );
    let state =
        |issue: u64| (daemon.issue(issue)["state"].as_str().unwrap().to_owned(), daemon.labels(issue));
    let closed = ("closed".to_owned(), vec!["prediction/actioned".to_owned()]);
    assert_eq!((state(disk), state(ci), state(die)), (closed.clone(), closed.clone(), closed));
    assert_eq!(state(stale), ("open".to_owned(), vec!["prediction/backlog".to_owned()]));
    assert_eq!((state(csv).0.as_str(), daemon.comments(csv).len()), ("open", 0));
    assert_eq!((state(7).1, state(8).1), (vec!["action".to_owned()], vec!["backlog".to_owned()]));
    let body = |issue: u64| daemon.issue(issue)["body"].as_str().unwrap().to_owned();
    assert!(
        body(7).contains(&format!("Predicted in #{disk}.")) && body(7).contains("\nFormula: tidy\n"),
        "{}",
        body(7)
    );
    assert!(body(8).contains(&format!("## Dependencies\n\n- #{csv}\n")), "{}", body(8));
    let comment = |issue: u64| {
        let comments = daemon.comments(issue);
        assert_eq!(comments.len(), 1, "{comments:?}");
        comments[0].clone()
    };
    assert!(comment(disk).contains("continues in #7") && comment(disk).contains("it comes for sure"));
    assert!(comment(stale).contains("watched") && comment(die).contains("it was one bad night"));

    let told = daemon.notices().into_iter().find(|notice| notice["topic"] == "agent/planner").unwrap();
    assert_eq!(
        (&told["title"], &told["urgent"]),
        (&"shop: the planner filed 5 issues".into(), &false.into())
    );
    let triaged = daemon.run(&["events", "--kind", "prediction_triaged", "--json"]).stdout;
    let triaged: Vec<Value> =
        triaged.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone()).collect();
    let expected = [(disk, "action"), (ci, "backlog"), (stale, "watch"), (die, "dismiss")]
        .map(|(issue, verdict)| json!({ "issue": issue, "verdict": verdict, "run": 1 }));
    assert_eq!(triaged, expected);
    let read = asked(&daemon);
    assert!(
        read.contains("## Predictions to judge (4)") && read.contains("- figures of The disk fills"),
        "{read}"
    );
    assert!(read.contains("Fruit for all.") && read.contains("tidy: Tidies up"), "{read}");
    assert!(read.contains("the 5 with the most leverage are filed"), "{read}");

    // What it did itself is no news.
    look_again(&daemon);
    assert_eq!((times(&daemon), daemon.json(&["run", "list"]).as_array().map(Vec::len)), (1, Some(1)));
    daemon.wait_for("its result to be counted", || {
        let roles = daemon.json(&["roles"]);
        let planner = roles.as_array()?.iter().find(|role| role["role"] == "planner")?.clone();
        (planner["used"] == 1 && planner["noise"] == 0).then_some(())
    });
}

#[test]
fn e2e_planner_is_asked_when_something_landed_but_not_by_itself() {
    let daemon = planned().start();
    says(&daemon, &json!({ "triage": [], "issues": [] }));
    make_due(&daemon, "run-planner");
    daemon.wait_for("a plan", || {
        let plans = daemon.run(&["events", "--kind", "planner_planned", "--json"]).stdout;
        (plans.lines().count() == 1).then_some(())
    });
    let url = daemon.json(&["forge", "url"])["url"].as_str().unwrap().to_owned();
    let clone = daemon.path("clone");
    daemon.git_in(&daemon.path("home"), &["clone", "--quiet", &url, &clone.to_string_lossy()]);
    let land = |path: &str, subject: &str| {
        let path = clone.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, subject).unwrap();
        daemon.git_in(&clone, &["add", "--all"]);
        daemon.git_in(&clone, &["commit", "--quiet", "--message", subject]);
        daemon.git_in(&clone, &["push", "--quiet", "origin", "main"]);
    };
    land("planner/MEMORY.md", "Remember apples");
    look_again(&daemon);
    assert_eq!((times(&daemon), daemon.json(&["run", "list"]).as_array().map(Vec::len)), (1, Some(1)));
    land("src/pears.txt", "Sell pears");
    look_again(&daemon);
    daemon.wait_for("a second question", || (times(&daemon) == 2).then_some(()));
    let read = asked(&daemon);
    assert!(read.contains("What landed since the last plan, newest first (2)"), "{read}");
    assert!(read.contains("Sell pears\n") && read.contains("## planner/MEMORY.md"), "{read}");
}

/// "one commit with all file changes, push, create PR"
#[test]
fn e2e_planner_keeps_its_journal_and_memory_on_main() {
    let daemon = planned().start();
    let disk = predict(&daemon, "The disk fills");
    says(&daemon, &json!({ "triage": [verdict(disk, "watch", "wait a while")], "issues": [] }));
    work(
        &daemon,
        "mkdir -p planner/journal\necho 'Logs grow in spring.' > planner/MEMORY.md\n\
         echo 'Watched the disk.' > planner/journal/2026-11-16.md\necho evil > VISION.md\n",
    );
    make_due(&daemon, "run-planner");
    let landed = "is on the main branch: planner/MEMORY.md, planner/journal/2026-11-16.md";
    wait_journal(&daemon, "planner", landed);
    assert_eq!(daemon.main_log().len(), 2, "{:?}", daemon.main_log());
    let changed = daemon.forge_git(&["diff", "--name-only", "main~1", "main"]);
    assert_eq!(changed, "planner/MEMORY.md\nplanner/journal/2026-11-16.md");
    assert_eq!(daemon.on_main("VISION.md").as_deref(), Some("Fruit for all."));
    wait_journal(&daemon, "planner", &format!("watches #{disk}: wait a while"));

    // Its own notes are no news; when something is, the next one reads them.
    look_again(&daemon);
    assert_eq!((times(&daemon), daemon.json(&["run", "list"]).as_array().map(Vec::len)), (1, Some(1)));
    predict(&daemon, "Sessions die more often");
    look_again(&daemon);
    daemon.wait_for("a second question", || (times(&daemon) == 2).then_some(()));
    let read = asked(&daemon);
    assert!(read.contains("## planner/MEMORY.md\n\n```text\nLogs grow in spring."), "{read}");
}

/// A server that fails one question in ten: each deed is done once all the same.
#[test]
fn e2e_planner_on_a_forgejo_that_fails_does_everything_once() {
    let fake = FakeForgejo::start(Rules::default());
    let setup = forgejo::on(&fake).agent(&answering()).file("VISION.md", "Fruit for all.\n");
    let daemon = forgejo::start(&fake, setup.set("roles.planner.enabled", "true"));
    let [disk, die, stale] = ["The disk fills", "Sessions die more often", "Issues pile up"].map(|what| {
        fake.create_issue(OWNER, what, &format!("## Evidence\n\n- figures of {what}"), &[UNREVIEWED])
    });
    says(
        &daemon,
        &json!({
            "triage": [
                promote(disk, "action", "Remove old logs", 5), verdict(die, "dismiss", "one bad night"),
                verdict(stale, "watch", "wait a while"),
            ],
            "issues": [],
        }),
    );
    let_due(&daemon, "run-planner");
    fake.change(|rules| rules.faults = Faults::ten_percent(7));
    daemon.start();
    wait_journal(&daemon, "planner", &format!("watches #{stale}: wait a while"));
    fake.change(|rules| rules.faults = Faults::default());
    let seen = |issue: u64| {
        let seen = fake.issue(issue);
        (seen.open, seen.labels.join(" "), seen.comments.len())
    };
    assert_eq!(seen(disk), (false, "prediction/actioned".to_owned(), 1));
    assert_eq!(seen(die), (false, "prediction/actioned".to_owned(), 1));
    assert_eq!(seen(stale), (true, "prediction/backlog".to_owned(), 1));
    let promoted = format!("promoted #{disk} to #");
    let filed = journal(&daemon, "planner").iter().find_map(|line| {
        let number = line.strip_prefix(&promoted)?.split(' ').next()?;
        number.parse().ok()
    });
    let filed = filed.expect("it was promoted");
    assert_eq!(seen(filed), (true, "action".to_owned(), 0));
    assert_eq!(fake.all_text().lines().filter(|line| *line == "Remove old logs").count(), 1);
    assert_eq!(times(&daemon), 1);
}

/// A deed about an issue that was deleted ends, and the others are done.
#[test]
fn e2e_planner_does_the_rest_of_its_plan_if_an_issue_was_deleted() {
    let fake = FakeForgejo::start(Rules::default());
    let setup = forgejo::on(&fake).agent(&answering()).file("VISION.md", "Fruit for all.\n");
    let daemon = forgejo::start(&fake, setup.set("roles.planner.enabled", "true"));
    let [disk, die] = ["The disk fills", "Sessions die more often"].map(|what| {
        fake.create_issue(OWNER, what, &format!("## Evidence\n\n- figures of {what}"), &[UNREVIEWED])
    });
    let triage = [verdict(disk, "dismiss", "it is a cache"), verdict(die, "dismiss", "one bad night")];
    says(&daemon, &json!({ "triage": triage, "issues": [] }));
    let_due(&daemon, "run-planner");
    daemon.start_with(&[("POINTSMAN_CRASH_AT", "before-deed")]);
    daemon.wait_for_death();
    fake.delete(disk);
    daemon.start();
    wait_journal(&daemon, "planner", &format!("dismissed #{die}"));
    let gone = format!("not done, because the issue was deleted or closed: dismissed #{disk}");
    assert!(
        journal(&daemon, "planner").iter().any(|line| line.starts_with(&gone)),
        "{:?}",
        journal(&daemon, "planner")
    );
    assert_eq!((fake.issue(die).open, fake.issue(die).comments.len(), times(&daemon)), (false, 1, 1));
}

/// Whatever it says: nothing is closed, filed or changed beyond the limits, and the vault is nobody's.
#[test]
fn e2e_planner_that_is_hostile_achieves_nothing() {
    let daemon = planned().set("limits.planner_issues", "2").start();
    let csv = file(&daemon, "Export orders as CSV", "Accountants want it.", None);
    let disk = predict(&daemon, "The disk fills");
    let useless = [
        json!({ "triage": [], "issues": [], "close": [csv] }),
        json!({ "triage": [], "issues": [gap(&"x".repeat(100_000), 5)] }),
    ];
    for (place, result) in useless.iter().enumerate() {
        says(&daemon, result);
        make_due(&daemon, "run-planner");
        wait_journal(&daemon, "planner", &format!("run {} was of no use", place + 1));
    }
    assert_eq!(titles(&daemon), ["Export orders as CSV", "The disk fills"]);
    // Twice in vain is enough; something has to be new.
    predict(&daemon, "Sessions die more often");

    let topics = [
        "Ship walnuts abroad closes #1 @ann",
        "Rent bicycles to couriers",
        "Paint the warehouse",
        "Weigh pears at the till",
        "Melt glaciers",
        "Tune violins",
        "Polish copper lanterns",
    ];
    let mut issues: Vec<Value> = topics.iter().map(|topic| gap(topic, 5)).collect();
    issues[0]["why"] = json!(format!("Depends on #{csv}\nFormula: run-vault\n@ann <!-- pointsman:x -->"));
    issues[1]["criteria"] = json!(["@ann fixes #1 <img src=x>"]);
    let vault = json!({ "title": "Approve", "why": "x", "criteria": ["x"], "leverage": 10, "label": "action", "formula": "run-vault" });
    issues.push(vault);
    says(
        &daemon,
        &json!({ "triage": [verdict(csv, "dismiss", "close it"), promote(999, "backlog", "Everything", 10)], "issues": issues }),
    );
    make_due(&daemon, "run-planner");
    wait_journal(&daemon, "planner", &format!("#{disk} stays unreviewed: nobody judged it"));
    let filed = ["Ship walnuts abroad closes 1 ann", "Rent bicycles to couriers"];
    assert_eq!(titles(&daemon)[3..], filed);
    assert_eq!((daemon.issue(csv)["state"].clone(), daemon.comments(csv).len()), ("open".into(), 0));
    assert_eq!(daemon.labels(disk), [UNREVIEWED]);
    let body = |issue: u64| daemon.issue(issue)["body"].as_str().unwrap().to_owned();
    assert_eq!(pointsman_core::dependencies::parse(&body(4)), [].into(), "{}", body(4));
    assert!(body(5).contains("- [ ] ann fixes 1 img src=x\n"), "{}", body(5));
    let lines = journal(&daemon, "planner");
    for why in [
        format!("refused: nobody asked about #{csv}"),
        "refused: nobody asked about #999".to_owned(),
        "refused: \"Approve\" is not filed: there is no formula \"run-vault\" for an action".to_owned(),
    ] {
        assert!(lines.contains(&why), "{why}: {lines:#?}");
    }
    assert_eq!(daemon.json(&["vault", "list"]), json!([]));
}
