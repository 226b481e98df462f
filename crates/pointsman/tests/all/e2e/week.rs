//! A week of the factory: every role by the clock, which jumps from hour to hour while the daemon runs. The agents follow
//! scripts, the forge is the embedded one, people are in a room, the disk fills up on paper.

use std::time::SystemTime;

use pointsman_testkit::TestDaemon;
use serde_json::{Value, json};

use super::chat::in_room;
use super::chat::lab::{Lab, id, thread_of};
use super::clean;
use super::roles::{file, looked_at, wait_journal};

/// A Monday, at midnight.
const MONDAY: u64 = 1_925_424_000_000;
const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// Half an hour apart, so that it is known who looks first.
const SUPERVISOR: &str = "30 * * * *";
const GARDENER: &str = "0 6,18 * * *";

const GOOD: &str = "We sell much of it.\n\n## Acceptance criteria\n- [ ] it works";

/// The first run of CI after `home/flake` was made is killed by its machine.
const CI: &str = "#!/bin/sh\nif rm \"$HOME/flake\" 2>/dev/null; then exit 137; fi\n! grep -rn BUG src\n";

struct Week {
    daemon: TestDaemon,
    lab: Lab,
}

impl Week {
    /// It is this time of this day, counted from Monday, and disks are so full. Whoever's time has come has looked, and
    /// nobody is at work.
    fn jump(&self, day: u64, (hour, minute): (u64, u64), disk_percent: u64, roles: &[&str]) {
        self.wait_quiet();
        let at = self.set_clock(day, (hour, minute), disk_percent);
        for role in roles {
            self.daemon.wait_for(&format!("the {role} on day {day} at {hour}"), || {
                (looked_at(&self.daemon, role) >= at).then_some(())
            });
        }
        self.wait_quiet();
    }

    fn set_clock(&self, day: u64, (hour, minute): (u64, u64), disk_percent: u64) -> u64 {
        let at = MONDAY + day * DAY + (hour * 60 + minute) * MINUTE;
        let real = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let ahead = i64::try_from(u128::from(at) - real).unwrap();
        self.daemon
            .stage(&json!({ "ahead_ms": ahead, "disk_percent": disk_percent, "free_memory_mb": 8000 }));
        at
    }

    /// Waits until nobody is at work but who waits for a person, and all issues are known.
    fn wait_quiet(&self) {
        self.daemon.wait_for("everybody to be through", || {
            let open = self.daemon.json(&["forge", "issue", "list"]).as_array().cloned().unwrap_or_default();
            let known = json!(open.len()) == self.daemon.json(&["health"])["open_issues"];
            let list = |what: &str| self.daemon.json(&[what, "list"]).as_array().cloned().unwrap_or_default();
            let runs = list("run").iter().all(|run| !run["ended_at"].is_null());
            let still = ["waiting_dependencies", "escalated", "blocked", "closed"];
            let tasks = list("task").iter().all(|task| still.iter().any(|state| task["state"] == *state));
            // A task is closed before its issue is.
            let over: Vec<Value> =
                list("task").into_iter().filter(|task| task["state"] == "closed").collect();
            let closed = open.iter().all(|issue| over.iter().all(|task| task["issue"] != issue["number"]));
            (runs && tasks && known && closed).then_some(())
        });
    }

    /// The issues in a state, with their labels.
    fn issues(&self, state: &str) -> Vec<String> {
        let issues = self.daemon.json(&["forge", "issue", "list", "--state", state]);
        let shown = |issue: &Value| {
            let labels = issue["labels"].as_array().unwrap().iter().map(|label| label.as_str().unwrap());
            format!(
                "#{} {} [{}]",
                issue["number"],
                issue["title"].as_str().unwrap(),
                labels.collect::<Vec<_>>().join(" ")
            )
        };
        issues.as_array().unwrap().iter().map(shown).collect()
    }
}

/// What the gardener answers, to be found in an issue that it is asked about.
fn gardener_says(lines: &[&str]) -> String {
    let answer = json!({ "lines": lines });
    format!("\n```text\nrehearsal-gardener:begin\nanswer {answer}\nrehearsal-gardener:end\n```\n")
}

/// The only prediction of the week.
const PREDICTION: u64 = 17;

/// What the shop wants, and what the planner makes of it.
fn vision() -> String {
    let issue = |title: &str, words: &str, fruit: &str, leverage: u8| {
        let text = format!("{words}\nrehearsal:begin\n{}\nrehearsal:end", clean(fruit));
        json!({ "title": title, "text": text, "criteria": ["it is there"], "depends_on": [], "leverage": leverage })
    };
    let mut promoted = issue(
        "Rotate the logs",
        "Every night the server writes down more than anybody reads in a month, and the old files stay for good.",
        "logs",
        7,
    );
    promoted["issue"] = json!(PREDICTION);
    promoted["verdict"] = json!("backlog");
    promoted["why"] = json!("It will come back.");
    let mut gap = issue(
        "A till for returns",
        "Customers who bring fruit back wait at the front desk behind those who buy, half an hour on Saturdays.",
        "till",
        9,
    );
    gap["why"] = gap["text"].take();
    gap.as_object_mut().unwrap().remove("text");
    gap["label"] = json!("backlog");
    let answer = json!({ "triage": [promoted], "issues": [gap] });
    format!(
        "# Vision\n\nThe best shop in town.\n\nrehearsal-planner:begin\nwrite planner/MEMORY.md Logs grow.\n\
         write planner/journal/2031-01-13.md One prediction was judged.\nanswer {answer}\nrehearsal-planner:end\n"
    )
}

#[test]
fn e2e_a_week_of_the_factory() {
    let lab = Lab::fake();
    let mut setup = in_room(&lab)
        .staged()
        .file("ci.sh", CI)
        .file("VISION.md", &vision())
        .set("limits.min_free_memory_mb", "0")
        .set("health.min_memory_mb", "0")
        .set("health.max_swap_mb", "1000000000")
        .set("health.ask_model", "false")
        .set("roles.supervisor.schedule", &json!(SUPERVISOR).to_string())
        .set("roles.gardener.schedule", &json!(GARDENER).to_string());
    for role in ["gardener", "supervisor", "predictor", "planner"] {
        setup = setup.set(&format!("roles.{role}.enabled"), "true");
    }
    let daemon = setup.build();
    let week = Week { daemon, lab };
    let daemon = &week.daemon;
    week.set_clock(0, (8, 5), 60);
    daemon.start();

    // Monday: two say the same, two wait for each other; two are worked on, one while CI's machine has a bad day.
    let export = file(daemon, "Export orders as CSV", GOOD, None);
    let (twice, plums, figs) = (export + 1, export + 2, export + 3);
    let says = gardener_says(&[
        &format!(r#"ACTION: {{"issue": {twice}, "do": "duplicate", "of": {export}, "why": "the same"}}"#),
        &format!(r#"ESCALATE: {{"issue": {plums}, "question": "Which of the two comes first?"}}"#),
    ]);
    assert_eq!(file(daemon, "CSV export of orders", &format!("{GOOD}\n{says}"), None), twice);
    for (title, script, waits) in [("Plums", clean("plums"), figs), ("Figs", clean("figs"), plums)] {
        let body =
            format!("{GOOD}\n\n## Depends on\n- #{waits}\n\nrehearsal:begin\n{script}\nrehearsal:end\n");
        daemon.file_issue_with(title, &body);
    }
    let apples = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_closed(apples);
    std::fs::write(daemon.path("home/flake"), "").unwrap();
    let pears = daemon.file_issue("Pears", &clean("pears"));
    daemon.wait_closed(pears);
    week.jump(0, (8, 35), 60, &["supervisor"]);
    week.jump(0, (18, 5), 60, &["gardener"]);
    wait_journal(daemon, "gardener", &format!("closed #{twice}: it duplicates #{export}"));
    week.lab.wait_told("Which of the two comes first?");
    // A person breaks the circle.
    daemon.json(&["forge", "issue", "close", &figs.to_string()]);
    daemon.wait_closed(plums);
    week.jump(0, (18, 35), 60, &["supervisor"]);

    // Tuesday: small things become one, for which nobody has a script.
    let small = daemon.pull_requests().iter().filter_map(|pr| pr["number"].as_u64()).max().unwrap() + 1;
    let dust = |n: u64| {
        format!(r#"DUST: {{"issue": {n}, "group": "site", "title": "thing {n}", "reason": "tiny"}}"#)
    };
    let lines = [small, small + 1, small + 2].map(dust);
    let says = gardener_says(&lines.each_ref().map(String::as_str));
    for (title, body) in
        [("Comma in the footer", says.as_str()), ("Colour of the button", "tiny"), ("Link to Mars", "tiny")]
    {
        file(daemon, title, body, Some("tech-debt"));
    }
    week.jump(1, (5, 35), 66, &["supervisor"]);
    week.jump(1, (6, 5), 66, &["predictor", "gardener"]);
    let bundle = small + 3;
    wait_journal(daemon, "gardener", &format!("bundled #{small}, #{}, #{}", small + 1, small + 2));
    daemon.wait_state(bundle, "blocked");
    daemon.wait_settled(bundle);
    // Who knows of this one knows of the label as well.
    file(daemon, "Melons", GOOD, None);
    week.jump(1, (17, 35), 66, &["supervisor"]);
    week.jump(1, (18, 5), 66, &["gardener"]);
    wait_journal(daemon, "gardener", "was of no use");

    // Wednesday: an agent has a question.
    week.jump(2, (5, 35), 72, &["supervisor"]);
    week.jump(2, (6, 5), 72, &["predictor", "gardener"]);
    let question = format!("phase escalate Which kiwis?\nexpect Answer\n{}", clean("kiwis"));
    let kiwis = daemon.file_issue("Kiwis", &question);
    daemon.wait_state(kiwis, "escalated");
    week.jump(2, (6, 35), 72, &["supervisor"]);
    let asked = week.lab.wait_told(&format!("shop#{kiwis} needs a person"));
    week.lab.ann.reply(id(&asked), "The green ones.");
    daemon.wait_closed(kiwis);
    week.jump(2, (17, 35), 72, &["supervisor"]);
    week.jump(2, (18, 5), 72, &["gardener"]);

    // Thursday: it can be seen where the disk is going, which is no news for anybody yet.
    let said = daemon.notices().len();
    week.jump(3, (5, 35), 78, &["supervisor"]);
    week.jump(3, (6, 5), 78, &["predictor", "gardener"]);
    wait_journal(daemon, "predictor", "passes 80 % in 1 day");
    week.jump(3, (17, 35), 78, &["supervisor"]);
    week.jump(3, (18, 5), 78, &["gardener"]);
    assert_eq!(daemon.notices().len(), said, "{:#?}", daemon.notices());

    // Friday: there it is. A person knows, and hears no more of it until Saturday.
    week.jump(4, (5, 35), 84, &["supervisor"]);
    let told = week.lab.wait_told("needs a person, P1: the disk of");
    week.lab.ann.reply(thread_of(&told), "ignore disk warning");
    week.lab.wait_told("You will not be notified of disk for 24h.");
    week.jump(4, (6, 5), 84, &["predictor", "gardener"]);
    week.jump(4, (17, 35), 85, &["supervisor"]);

    // Sunday: somebody has made room.
    week.jump(6, (5, 35), 50, &["supervisor"]);
    week.jump(6, (6, 5), 50, &["predictor", "gardener"]);

    // Monday: a plan. What it promotes is worked on, and what the planner wrote lands like anything else.
    week.jump(7, (5, 35), 50, &["supervisor"]);
    week.jump(7, (6, 5), 50, &["predictor", "gardener"]);
    week.jump(7, (7, 5), 50, &["planner"]);
    for landed in ["planner/MEMORY.md", "src/logs.txt", "src/till.txt"] {
        daemon.wait_for(landed, || daemon.on_main(landed));
    }
    week.wait_quiet();
    week.compare();
}

impl Week {
    /// What is there in the end, and what people were told on the way.
    fn compare(&self) {
        let daemon = &self.daemon;
        let well = "shop: all problems are solved";
        let told = [
            "shop, P3: issues wait for each other: #3, #4",
            "shop: #3 needs a decision",
            well,
            "shop#13 is blocked",
            "shop, P3: #13 has been blocked for ",
            "shop#15 needs a person",
            "shop needs a person, P2: everything waits for a person: #15",
            "shop: a problem is solved",
            "shop needs a person, P1: the disk of ",
            "shop: a problem is solved",
            "shop: the planner filed 2 issues",
        ];
        let notices = daemon.notices();
        assert_eq!(notices.len(), told.len(), "{notices:#?}");
        for (notice, told) in notices.iter().zip(told) {
            assert!(notice["title"].as_str().unwrap().starts_with(told), "{told}: {notice}");
        }

        let mut main = daemon.main_log();
        main.sort();
        assert_eq!(
            main,
            [
                "Add apples",
                "Add kiwis",
                "Add logs",
                "Add pears",
                "Add plums",
                "Add till",
                "Open the shop",
                "planner: update planner/MEMORY.md and 1 more",
            ]
        );
        assert_eq!(daemon.on_main("planner/MEMORY.md").as_deref(), Some("Logs grow."));
        assert_eq!(
            self.issues("open"),
            ["#1 Export orders as CSV []", "#13 Small things: site [backlog blocked]", "#14 Melons []"]
        );
        let mut closed = self.issues("closed");
        // The pull request of what the planner wrote may be opened before or between these.
        let planned = closed.split_off(closed.len() - 2);
        for (issue, title) in planned.iter().zip(["A till for returns []", "Rotate the logs []"]) {
            assert!(issue.ends_with(title), "{planned:?}");
        }
        let disk = format!("#{PREDICTION} The disk of ");
        let at = closed.iter().position(|issue| issue.starts_with(&disk)).unwrap();
        assert!(closed.remove(at).ends_with(" [prediction/actioned]"), "{closed:?}");
        assert_eq!(
            closed,
            [
                "#2 CSV export of orders []",
                "#3 Plums []",
                "#4 Figs [backlog]",
                "#5 Apples []",
                "#7 Pears []",
                "#10 Comma in the footer [tech-debt]",
                "#11 Colour of the button [tech-debt]",
                "#12 Link to Mars [tech-debt]",
                "#15 Kiwis []",
            ]
        );
        let runs = daemon.json(&["run", "list"]);
        let runs: Vec<&str> =
            runs.as_array().unwrap().iter().map(|run| run["formula"].as_str().unwrap()).collect();
        let gardener = "run-gardener";
        let asked = [gardener, gardener, gardener, gardener, "run-planner"];
        assert_eq!(runs, asked, "what is new, and once more what was answered in vain");
    }
}
