//! Files that a session and CI leave for the people who review.

use serde_json::Value;

use super::shop;

/// Leaves a report and a picture, and tries what an agent could try.
const AGENT: &str = r#"
set -eu
await() { while IFS= read -r line; do case $line in *"] $1"*) return 0 ;; esac; done; }
await "Task #"
mkdir -p src "$POINTSMAN_ARTIFACTS/shots"
echo 'plums 2 crowns' > src/plums.txt
git add --all; git commit --quiet --message 'Add plums'; git push --quiet origin HEAD
cd "$POINTSMAN_ARTIFACTS"
echo 'it works' > report.txt
echo png > shots/first.png
ln -s /etc/passwd users
ln -s / everything
mkfifo pipe
echo no > .hidden
i=0; while [ $i -lt 60 ]; do echo $i > "shots/z$i"; i=$((i + 1)); done
echo PHASE:awaiting_ci > "$PHASE_FILE"
await 'CI passed'
echo PHASE:awaiting_review > "$PHASE_FILE"
await 'Merged'
echo PHASE:done > "$PHASE_FILE"
await 'nothing more'
"#;

fn names(artifacts: &Value, from: &str) -> Vec<String> {
    let files = artifacts["files"].as_array().unwrap().iter().filter(|file| file["from"] == from);
    files.map(|file| file["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn e2e_artifacts_of_sessions_and_ci_are_kept_with_the_pull_request() {
    let ci = "#!/bin/sh\nmkdir \"$POINTSMAN_ARTIFACTS/coverage\" && echo 97 > \"$POINTSMAN_ARTIFACTS/coverage/index.html\"\n";
    let daemon = shop().reviewed().agent(AGENT).file("ci.sh", ci).start();
    let issue = daemon.file_issue_with("Add plums", "They are ripe.");
    let pr = daemon.wait_in_review(issue)["pr"].as_u64().unwrap();
    let question = daemon.wait_for("the question", || {
        daemon.json(&["inbox"]).as_array().unwrap().first().map(|asked| asked["id"].to_string())
    });
    let pull = daemon.json(&["forge", "pr", "show", &pr.to_string()]);
    let artifacts = &pull["artifacts"];
    assert_eq!(names(artifacts, "ci"), ["coverage/index.html"]);
    let of_session = names(artifacts, "session");
    assert_eq!(of_session.len(), 50, "{of_session:?}");
    assert_eq!(&of_session[..3], ["report.txt", "shots/first.png", "shots/z0"]);
    let left_out = artifacts["left_out"].to_string();
    for name in ["users", "everything", "pipe", ".hidden", "more than 50 files"] {
        assert!(left_out.contains(name), "{name}: {left_out}");
    }
    for file in artifacts["files"].as_array().unwrap() {
        assert_eq!(file["sha"], pull["head_sha"], "{file}");
        assert!(std::fs::read(file["path"].as_str().unwrap()).is_ok(), "{file}");
    }
    let asked = daemon.json(&["inbox", "show", &question]);
    assert_eq!(asked["artifacts"], *artifacts);
    for shown in
        [daemon.run(&["inbox", "show", &question]), daemon.run(&["forge", "pr", "show", &pr.to_string()])]
    {
        assert!(shown.stdout.contains("artifact ci coverage/index.html (3 B)"), "{shown:?}");
    }
    // They outlive the task, its tree and its session.
    daemon.approve(issue);
    daemon.wait_closed(issue);
    let kept = daemon.json(&["forge", "pr", "show", &pr.to_string()]);
    assert_eq!(names(&kept["artifacts"], "session").len(), 50);
    assert_eq!(daemon.main_log(), ["Add plums", "Open the shop"], "none of it is in the branch");
}
