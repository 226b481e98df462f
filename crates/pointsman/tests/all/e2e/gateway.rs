//! What an agent's `origin` takes: its own branch, and nothing else.

use super::shop;

const AGENT: &str = r#"
read -r prompt
mkdir -p src; echo plums > src/plums.txt; git add --all; git commit --quiet --message 'Add plums'
try() { "$@" >> "$HOME/said" 2>&1; echo "$? $*" >> "$HOME/tried"; }
try git push origin HEAD:main
try git push origin +HEAD:main
try git push --no-verify origin HEAD:refs/heads/main
try git push --force origin HEAD:refs/heads/other
git tag v1
try git push origin v1
try git push origin HEAD
try git push origin --delete "$POINTSMAN_BRANCH"
try git commit --no-verify --quiet --amend --message 'Add plums, at last'
try git push --force --no-verify origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case $line in *"] Merged"*) echo PHASE:done > "$PHASE_FILE" ;; esac; done
"#;

#[test]
fn e2e_an_agent_pushes_its_own_branch_and_nothing_else() {
    let daemon = shop().agent(AGENT).start();
    let issue = daemon.file_issue_with("Plums", "Please.");
    daemon.wait_closed(issue);
    let read = |name: &str| std::fs::read_to_string(daemon.path("home").join(name)).unwrap();
    let tried = read("tried");
    let codes: Vec<bool> = tried.lines().map(|line| line.starts_with("0 ")).collect();
    let taken = [false, false, false, false, false, true, false, true, true];
    assert_eq!(codes, taken, "{tried}\n{}", read("said"));
    assert!(read("said").contains("it may push only its own branch, pointsman/issue-1"), "{}", read("said"));
    assert_eq!(daemon.main_log(), ["Add plums, at last", "Open the shop"]);
    let refs = daemon.forge_git(&["for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags"]);
    assert_eq!(refs, "refs/heads/main");
}

#[test]
fn e2e_an_agent_steers_nothing_and_approves_nothing() {
    let program = env!("CARGO_BIN_EXE_pointsman");
    let agent = format!(
        "{}\n",
        r#"
read -r prompt
echo x > x; git add --all; git commit --quiet --message 'Add x'; git push --quiet origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
read -r passed
try() { "$@" >> "$HOME/said" 2>&1; echo "$? $*" >> "$HOME/tried"; }
try PROGRAM forge pr review 2 --approve
try env -u POINTSMAN_SESSION PROGRAM forge pr review 2 --approve
try env -u POINTSMAN_SESSION PROGRAM forge pr merge 2
try PROGRAM forge issue close 1
try PROGRAM forge issue label 1 --add mine
try PROGRAM task stop 1
touch "$HOME/over"
sleep 1000
"#
        .replace("PROGRAM", program)
    );
    let daemon = shop().reviewed().agent(&agent).start();
    let issue = daemon.file_issue_with("X", "Please.");
    daemon.wait_for("all tries", || daemon.path("home/over").exists().then_some(()));
    let tried = std::fs::read_to_string(daemon.path("home/tried")).unwrap();
    let said = std::fs::read_to_string(daemon.path("home/said")).unwrap();
    assert_eq!(tried.lines().count(), 6);
    assert!(tried.lines().all(|line| line.starts_with("3 ")), "{tried}\n{said}");
    let task = daemon.task(issue);
    assert_eq!((&task["state"], &task["review"]), (&"awaiting_review".into(), &"none".into()));
    assert_eq!(daemon.labels(issue), ["in-progress"]);
}
