//! Many tasks through a server that fails, loses, cuts and delays its answers: in the end everything is as it is on a good
//! day. `POINTSMAN_SOAK` says how many tasks.

use std::collections::BTreeMap;

use pointsman_testkit::TestDaemon;
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, Faults, Rules};

use super::adds;
use super::forgejo::{file, main_log, on, start};

/// Tasks if nobody says how many: as many as fit the suite.
const TASKS: u64 = 15;
/// At most so many milliseconds pass before an answer.
const SLOW: u64 = 20;

/// Everything that is to be the same: the commits of main, and of each issue whether it is open, its labels, its
/// assignees, its comments, and how many of its pull requests are open and merged.
#[derive(Debug, PartialEq, Eq)]
struct End {
    main: Vec<String>,
    issues: Vec<(bool, Vec<String>, Vec<String>, usize)>,
    pulls: BTreeMap<(bool, bool), usize>,
    branches: usize,
    labels: Vec<String>,
}

fn tasks() -> u64 {
    std::env::var("POINTSMAN_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(TASKS)
}

fn end(fake: &FakeForgejo, daemon: &TestDaemon, issues: &[u64]) -> End {
    let mut main = main_log(fake, daemon);
    main.sort();
    let mut pulls = BTreeMap::new();
    for pr in fake.pulls() {
        let seen = fake.pull(pr);
        *pulls.entry((seen.open, seen.merged_as.is_some())).or_default() += 1;
    }
    let seen = issues.iter().map(|issue| fake.issue(*issue));
    let mut labels = fake.labels();
    labels.sort();
    End {
        main,
        issues: seen.map(|issue| (issue.open, issue.labels, issue.assignees, issue.comments.len())).collect(),
        pulls,
        branches: fake.heads().len(),
        labels,
    }
}

#[test]
fn e2e_soak_many_tasks_end_the_same_through_trouble_and_delays() {
    let count = tasks();
    let fake = FakeForgejo::start(Rules::default());
    let setup = on(&fake).set("dev.concurrency", "4").set("merge.strategy", "\"batch\"");
    let daemon = start(&fake, setup);
    fake.change(|rules| rules.faults = Faults { slow: SLOW, ..Faults::ten_percent(count) });
    let title = |task: u64| format!("Add kind {task:03}");
    let work = |task: u64| format!("{}\nexpect Merged\nphase done", adds(&format!("kind-{task:03}")));
    let issues: Vec<u64> = (1..=count).map(|task| file(&fake, &title(task), &work(task))).collect();
    // However long it takes for all of them: one after another is closed.
    for over in 1..=issues.len() {
        daemon.wait_for(&format!("{over} tasks to be closed"), || {
            (issues.iter().filter(|issue| !fake.issue(**issue).open).count() >= over).then_some(())
        });
    }
    let mut main: Vec<String> = (1..=count).map(|task| format!("Add kind-{task:03}")).collect();
    main.push("Open the shop".to_owned());
    let wanted = End {
        main,
        issues: issues.iter().map(|_| (false, Vec::new(), vec![DEV.to_owned()], 0)).collect(),
        pulls: BTreeMap::from([((false, true), issues.len())]),
        branches: 1,
        labels: vec!["backlog".to_owned(), "in-progress".to_owned()],
    };
    // What the forge could not be told at once, and branches that could not be deleted at once, come later.
    fake.change(|rules| rules.faults = Faults::default());
    issues.iter().for_each(|issue| daemon.wait_closed(*issue));
    daemon.wait_for("everything to be as on a good day", || {
        let end = end(&fake, &daemon, &issues);
        (end == wanted).then_some(())
    });
}
