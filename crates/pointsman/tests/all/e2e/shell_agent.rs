//! An agent is any program: here a shell script that knows nothing but the contract.

use std::fs;

use super::shop;

/// Writes down what it finds, then goes the whole way by what the terminal tells it.
const AGENT: &str = r#"
set -eu
env > "$HOME/env"
pwd > "$HOME/cwd"
git branch --show-current > "$HOME/branch"
cp "$POINTSMAN_INBOX/0000-task.md" "$HOME/prompt"
await() {
    while IFS= read -r line; do
        printf '%s\n' "$line" >> "$HOME/heard"
        case $line in *"] $1"*) return 0 ;; esac
    done
}
await "Task #"
mkdir -p src; echo 'plums 2 crowns' > src/plums.txt
git add --all; git commit --quiet --message 'Add plums'
git push --quiet origin HEAD
echo 'Plums for everybody.' > "$POINTSMAN_SUMMARY_FILE"
echo PHASE:awaiting_ci > "$PHASE_FILE"
await 'CI passed'
echo PHASE:awaiting_review > "$PHASE_FILE"
await 'Merged'
echo PHASE:done > "$PHASE_FILE"
await 'nothing more'
"#;

#[test]
fn e2e_a_plain_program_goes_the_whole_way_with_what_the_contract_promises() {
    let daemon = shop()
        .reviewed()
        .agent(AGENT)
        .set("agent.pass_env", r#"["TESTS_LIKE_THIS"]"#)
        .daemon_env("TESTS_LIKE_THIS", "yes")
        .daemon_env("CODEBERG_TOKEN", "secret-1")
        .daemon_env("GITHUB_TOKEN", "secret-2")
        .daemon_env("ANYTHING_ELSE", "secret-3")
        .start();
    let issue = daemon.file_issue_with("Add plums", "They are ripe.");
    daemon.wait_state(issue, "awaiting_review");
    daemon.approve(issue);
    daemon.wait_closed(issue);

    let home = |name: &str| fs::read_to_string(daemon.path("home").join(name)).unwrap();
    let env = home("env");
    let session_files = daemon.session_files(issue);
    let path = |name: &str| session_files.join(name).to_string_lossy().into_owned();
    let promised = [
        ("PHASE_FILE", daemon.phase_file(issue).to_string_lossy().into_owned()),
        ("PROJECT_NAME", "shop".to_owned()),
        ("ISSUE", issue.to_string()),
        ("POINTSMAN_SESSION", "dev-shop-1.1".to_owned()),
        ("POINTSMAN_BRANCH", "pointsman/issue-1".to_owned()),
        ("POINTSMAN_INBOX", path("inbox-1")),
        ("POINTSMAN_SUMMARY_FILE", path("run-1/summary")),
        ("POINTSMAN_RESULT_FILE", path("run-1/result.json")),
        ("HOME", daemon.path("home").to_string_lossy().into_owned()),
        ("TESTS_LIKE_THIS", "yes".to_owned()),
    ];
    for (name, value) in promised {
        assert!(env.lines().any(|line| line == format!("{name}={value}")), "{name} is not {value}:\n{env}");
    }
    for name in ["PATH", "LANG", "TERM", "SHELL"] {
        assert!(env.lines().any(|l| l.starts_with(&format!("{name}="))), "{name} is missing:\n{env}");
    }
    assert!(!env.contains("secret-"), "{env}");
    assert!(!env.lines().any(|line| line.starts_with("TMUX")), "{env}");

    assert_eq!(home("cwd").trim(), daemon.tree(issue).to_string_lossy());
    assert_eq!(home("branch").trim(), "pointsman/issue-1");
    let prompt = home("prompt");
    assert!(prompt.contains("Title: Add plums") && prompt.contains("They are ripe."), "{prompt}");
    let author = daemon.forge_git(&["log", "-1", "--format=%an <%ae>", "main"]);
    assert_eq!(author, "dev-shop-1 <dev-shop-1@pointsman.invalid>");
    assert!(daemon.pull_requests()[0]["body"].as_str().unwrap().contains("Plums for everybody."));

    let heard = home("heard");
    let messages: Vec<&str> = heard.lines().filter(|line| !line.is_empty()).collect();
    let headlines = ["Task #1", "CI passed", "Approved", "Merged"];
    assert_eq!(messages.len(), headlines.len(), "each once, nothing else: {heard}");
    for (message, headline) in messages.iter().zip(headlines) {
        let (id, rest) = message.strip_prefix("[pointsman m-").and_then(|m| m.split_once("] ")).unwrap();
        assert!(id.parse::<u64>().is_ok() && rest.starts_with(headline), "{message}");
        let (_, file) = rest.split_once(" Details: ").unwrap();
        assert!(file.starts_with(&path("inbox-1")) && fs::metadata(file).is_ok(), "{message}");
    }
}

#[test]
fn e2e_an_agent_program_that_is_missing_is_said_at_once() {
    let daemon = shop().set("roles.dev.command", "[\"no-such-agent\"]").start();
    let issue = daemon.file_issue_with("Apples", "please");
    let task = daemon.wait_state(issue, "blocked");
    let reason = task["reason"].as_str().unwrap();
    assert!(reason.contains("no-such-agent is not found: install it"), "{reason}");
    assert_eq!(task["attempts"]["restarts"], 0);
}
