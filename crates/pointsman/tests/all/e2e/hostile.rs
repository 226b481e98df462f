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
