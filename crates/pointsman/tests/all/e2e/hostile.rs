//! Text from outside is text.

use super::{clean, shop};

#[test]
fn e2e_titles_and_bodies_are_shown_and_never_run() {
    let daemon = shop().set("dev.concurrency", "4").start();
    let titles = ["#(touch x)", "$(touch x) `touch x`", "--upload-pack=touch x", "a\u{1b}[31mred\u{7}\tb"];
    let issues: Vec<u64> = titles
        .iter()
        .enumerate()
        .map(|(n, title)| {
            let body = format!(
                "#(touch x) $(touch x)\n\u{1b}[201~touch x\r\n\u{202e}\n```text\nrehearsal:begin\n{}\nrehearsal:end\n```\n",
                clean(&format!("fruit{n}"))
            );
            daemon.file_issue_with(title, &body)
        })
        .collect();
    for &issue in &issues {
        daemon.wait_closed(issue);
        let prompt = daemon.prompt(issue, 1);
        let dirty: Vec<char> =
            prompt.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')).collect();
        assert!(dirty.is_empty() && !prompt.contains('\u{202e}'), "{dirty:?} in {prompt:?}");
        assert!(prompt.contains("#(touch x) $(touch x)"), "{prompt}");
    }
    let shown = daemon.run(&["task", "list"]).stdout;
    assert!(shown.contains("#(touch x)") && shown.contains("--upload-pack=touch x"), "{shown}");
    let shown = shown
        + &daemon.run(&["forge", "issue", "show", "4"]).stdout
        + &daemon.run(&["task", "show", "4"]).stdout;
    assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
    let mut places = vec![daemon.checkout(), daemon.path("home"), daemon.state(), daemon.path("")];
    places.extend(issues.iter().map(|&issue| daemon.session_files(issue)));
    for place in places {
        assert!(!place.join("x").exists(), "something ran in {}", place.display());
    }
    assert_eq!(daemon.main_log().len(), 5);
}

#[test]
fn e2e_an_issue_of_a_megabyte_is_cut_cleaned_and_worked_on() {
    let daemon = shop().start();
    let noise: String = "0123456789\u{0}\u{1b}[2J\u{9b}é".chars().cycle().take(1 << 20).collect();
    let body = format!("```text\nrehearsal:begin\n{}\nrehearsal:end\n```\n{noise}", clean("apples"));
    let created = daemon.path("home/body");
    std::fs::write(&created, &body).unwrap();
    let answer = daemon.run(&[
        "forge",
        "issue",
        "create",
        "--title",
        "Long",
        "--label",
        "backlog",
        "--body-file",
        &created.to_string_lossy(),
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    daemon.wait_closed(1);
    let prompt = daemon.prompt(1, 1);
    assert!(prompt.len() < 300_000, "{} bytes", prompt.len());
    assert!(!prompt.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
}

/// Every call of git outside a session, by a program of that name in front of the real one: its arguments, one call a line.
fn recorded_git(dir: &std::path::Path) -> (String, std::path::PathBuf) {
    let (bin, calls) = (dir.join("bin"), dir.join("calls"));
    std::fs::create_dir(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|one| one.join("git")).find(|git| git.is_file()).unwrap();
    let script = format!(
        "#!/bin/sh\nif [ -z \"$POINTSMAN_SESSION\" ]; then echo \"$GIT_DIR $*\" >> {}; fi\nexec {} \"$@\"\n",
        calls.display(),
        real.display()
    );
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (format!("{}:{path}", bin.display()), calls)
}

#[test]
fn e2e_the_daemon_runs_no_git_in_what_an_agent_can_write() {
    let recorder = tempfile::tempdir().unwrap();
    let (path, calls) = recorded_git(recorder.path());
    let daemon = shop().daemon_env("PATH", &path).start();
    // Captures, checkpoints, a recovery and a landing: everything that the daemon does with a tree and a gateway.
    let dies = format!("write notes.txt mine\ncrash\n{}", clean("apples"));
    let issue = daemon.file_issue("Add apples", &dies);
    daemon.wait_closed(issue);
    assert_eq!(daemon.session(issue)["session"], "dev-shop-1.2", "it died once");

    let recorded = std::fs::read_to_string(calls).unwrap();
    let sessions = daemon.state().join("projects/shop/sessions");
    let used: Vec<(&str, &str)> = recorded
        .lines()
        .filter_map(|call| {
            let words = call.split(' ');
            words.into_iter().find_map(|word| word.strip_prefix("--git-dir=")).map(|dir| (dir, call))
        })
        .collect();
    // A tree is filled before an agent can see it, under a name of its own.
    let used: Vec<_> = used.into_iter().filter(|(dir, _)| !dir.contains("/tree.tmp-tree/")).collect();
    let (theirs, ours) =
        used.into_iter().partition::<Vec<_>, _>(|(dir, _)| std::path::Path::new(dir).starts_with(&sessions));
    assert!(ours.len() > 20, "only {} calls were recorded", ours.len());
    assert!(theirs.is_empty(), "{theirs:#?}");
    // Without a repository of its own, git would look for one where it stands.
    let lost: Vec<&str> = recorded
        .lines()
        .filter(|call| !call.contains("--git-dir="))
        .filter(|call| {
            ![
                "version",
                "upload-pack",
                "receive-pack",
                "ls-remote",
                "init",
                "clone",
                "rev-parse",
                "pack-objects",
            ]
            .iter()
            .any(|known| call.contains(known))
        })
        .collect();
    assert!(lost.is_empty(), "{lost:#?}");
}
