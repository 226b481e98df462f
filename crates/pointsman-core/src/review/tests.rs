use serde_json::{Value, json};

use super::*;
use crate::config::Config;
use crate::forge::{Issue, IssueState, PullRequest, Review};
use crate::ids::Sha;
use crate::task::ReviewVerdict;
use crate::time::Timestamp;

fn sha(digit: char) -> Sha {
    Sha::new(&digit.to_string().repeat(40)).unwrap()
}

fn config() -> Config {
    let text =
        "name = \"shop\"\nci.command = [\"./ci.sh\"]\nreview.protected = [\"deploy/\", \"**/*.sql\"]\n";
    Config::parse(text, "p.toml").unwrap()
}

fn file(path: &str, kind: Kind, removed: &[&str], added: &[&str]) -> File {
    let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
    let hunk = Hunk { at: 7, removed: lines(removed), added: lines(added) };
    let hunks = if hunk.removed.is_empty() && hunk.added.is_empty() { Vec::new() } else { vec![hunk] };
    let mode = Mode { before: 0o100_644, after: 0o100_644 };
    File { path: path.to_owned(), kind, hunks, mode, is_opaque: false }
}

fn facts(files: Vec<File>) -> Facts {
    Facts::of(&config(), &Change { files }, "", &[])
}

#[test]
fn an_answer_is_exactly_as_it_must_be_or_unusable() {
    let good = json!({"verdict": "APPROVE", "verdict_reason": "fine"});
    assert_eq!(Answer::read(Some(&good)).unwrap().verdict, Verdict::Approve);
    let full = json!({
        "verdict": "REQUEST_CHANGES", "verdict_reason": "a bug", "review_markdown": "# Bug",
        "findings": [{"file": "src/a.rs", "line": 3, "text": "off by one"}, {"file": "b", "text": "odd"}],
        "followups": [{"title": "Old mess", "body": "…"}],
    });
    let answer = Answer::read(Some(&full)).unwrap();
    assert_eq!(
        (answer.findings[0].line, answer.findings[1].line, answer.followups.len()),
        (Some(3), None, 1)
    );
    let with = |key: &str, value: Value| {
        let mut answer = good.clone();
        answer[key] = value;
        answer
    };
    let finding = |file: &str, text: &str| with("findings", json!([{"file": file, "text": text}]));
    let wrong = [
        (None, "it wrote no result"),
        (Some(json!({})), "missing field"),
        (Some(json!({"verdict": "APPROVE"})), "verdict_reason"),
        (Some(with("verdict", json!("approve"))), "unknown variant"),
        (Some(with("verdict", json!(["APPROVE"]))), "not a review"),
        (Some(with("verdict_reason", json!("  "))), "verdict_reason is empty"),
        (Some(with("verdict_reason", json!("x".repeat(1001)))), "more than 1000"),
        (Some(with("review_markdown", json!("x".repeat(50_000)))), "review_markdown"),
        (Some(with("approve", json!(true))), "unknown field"),
        (Some(with("findings", json!(vec![json!({"file": "a", "text": "t"}); 101]))), "more than 100"),
        (Some(with("followups", json!(vec![json!({"title": "t"}); 51]))), "more than 50"),
        (Some(with("followups", json!([{"title": " "}]))), "the title of a follow-up"),
        (Some(with("followups", json!([{"title": "t", "body": "x".repeat(20_000)}]))), "follow-up has more"),
        (Some(with("findings", json!([{"file": "a", "line": -1, "text": "t"}]))), "not a review"),
        (Some(finding("/etc/passwd", "t")), "not a path"),
        (Some(finding("a/../../b", "t")), "not a path"),
        (Some(finding(".git/config", "t")), "not a path"),
        (Some(finding("a\nb", "t")), "not a path"),
        (Some(finding("a", "")), "a finding must have"),
    ];
    for (result, why) in wrong {
        let error = Answer::read(result.as_ref()).unwrap_err();
        assert!(error.contains(why) && error.len() < 400, "{result:?}: {error}");
    }
}

#[test]
fn a_change_is_read_as_git_tells_it() {
    let raw = b":100644 100644 a b M\0src/a b.rs\0:000000 100644 0 c A\0new\0:100644 000000 d 0 D\0old\0:100644 120000 e f T\0link\0:100644 100755 g g M\0tool\0";
    let patch = b"diff --git a/src/a b.rs b/src/a b.rs\nindex a..b 100644\n--- a/src/a b.rs\t\n+++ b/src/a b.rs\t\n@@ -3,2 +3 @@ fn x() {\n-one\n---- two\n+three\n@@ -9,0 +9 @@\n+diff --git a/x b/x\n\
diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+first\n\\ No newline at end of file\n\
diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\
diff --git a/link b/link\ndeleted file mode 100644\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-text\n\
diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n\
diff --git a/tool b/tool\nold mode 100644\nnew mode 100755\n";
    let change = parse(raw, patch).unwrap();
    let told: Vec<(&str, Kind, usize)> =
        change.files.iter().map(|f| (f.path.as_str(), f.kind, f.hunks.len())).collect();
    let expected = [
        ("src/a b.rs", Kind::Changed, 2),
        ("new", Kind::Added, 1),
        ("old", Kind::Deleted, 1),
        ("link", Kind::Changed, 2),
        ("tool", Kind::Changed, 0),
    ];
    assert_eq!(told, expected);
    assert_eq!(
        change.files[0].hunks[0],
        Hunk { at: 3, removed: vec!["one".into(), "--- two".into()], added: vec!["three".into()] }
    );
    assert_eq!(change.files[0].hunks[1].added, ["diff --git a/x b/x"], "content is no header");
    assert_eq!(change.size(), (4, 4));
    assert_eq!(parse(b"", b""), Some(Change::default()));
    assert_eq!(parse(raw, b""), None, "they do not belong together");
    assert_eq!(parse(b"", patch), None);
    assert_eq!(parse(b":100644 100644 a b U\0x\0", b"diff --git a/x b/x\n"), None);
}

#[test]
fn paths_are_what_they_are() {
    let config = config();
    let protected_ones = [
        ".github/workflows/ci.yml",
        ".GitHub/CODEOWNERS",
        "docs/CODEOWNERS",
        ".woodpecker/test.yml",
        ".woodpecker.yml",
        ".claude/settings.json",
        "sub/.claude/agents/x.md",
        "CLAUDE.md",
        "crates/a/AGENTS.md",
        ".mcp.json",
        "pointsman.toml",
        "formulas/tidy.toml",
        "ci.sh",
        "deploy/prod.yml",
        "db/migrations/1.sql",
        "Jenkinsfile",
        "AGENT.md",
        "sub/.roo/rules.md",
        ".envrc",
        "app/.vscode/tasks.json",
        ".devcontainer/devcontainer.json",
        ".ripgreprc",
        "sub/.gitattributes",
        ".gitmodules",
        ".clinerules",
        ".worktreeinclude",
    ];
    for path in protected_ones {
        assert!(protected(&config, path), "{path}");
    }
    let mut with_setup = config.clone();
    with_setup.tree.setup = vec!["./scripts/prepare".to_owned()];
    assert!(protected(&with_setup, "scripts/prepare") && !protected(&config, "scripts/prepare"));
    for path in ["src/ci.sh.rs", "src/github.rs", "docs/a.md", "scripts/ci.sh", "deployment.md", "claude.rs"]
    {
        assert!(!protected(&config, path), "{path}");
    }
    for path in [
        ".claude/x",
        "a/.Claude/x",
        "AGENTS.md",
        ".claude",
        ".cursorrules",
        ".github/copilot-instructions.md",
    ] {
        assert!(is_steering(path), "{path}");
    }
    assert!(!is_steering("src/claude/mod.rs") && !is_steering("README.md"));
    for (path, code) in [
        ("a.rs", true),
        ("docs/a.md", false),
        ("LICENSE", false),
        ("Makefile", true),
        ("requirements.txt", true),
        ("x", true),
        ("a.PNG", false),
    ] {
        assert_eq!(is_code(path), code, "{path}");
    }
    for (path, test) in [
        ("tests/a.rs", true),
        ("src/a_test.go", true),
        ("a.test.ts", true),
        ("src/tests.rs", true),
        ("test_a.py", true),
        ("src/attest.rs", false),
        ("contest/a.rs", false),
    ] {
        assert_eq!(is_test(path), test, "{path}");
    }
}

#[test]
fn size_is_held_against_what_the_issue_names() {
    let change = Change {
        files: vec![
            file("src/price.rs", Kind::Changed, &["a"], &["b", "c"]),
            file("src/tax/vat.rs", Kind::Added, &[], &["x"]),
            file("tests/price.rs", Kind::Added, &[], &["x"]),
        ],
    };
    let of = |asked: &str| Facts::of(&config(), &change, asked, &[]).scope;
    let named = of("Fix `price.rs`, see src/shop/ and the README.md. It is 3/4 done.");
    assert_eq!(named.outside, ["src/tax/vat.rs"], "{named:?}");
    assert!(named.named.contains(&"price.rs".to_owned()) && named.named.contains(&"README.md".to_owned()));
    assert_eq!((named.files, named.added, named.removed, named.has_code), (3, 4, 1, true));
    assert!(of("Fix src/").outside.is_empty() && of("Make it better.").outside.is_empty());
    let many: Vec<&str> = vec!["x"; 601];
    assert!(facts(vec![file("a.rs", Kind::Added, &[], &many)]).scope.is_large() && !named.is_large());
}

#[test]
fn tests_that_go_or_sleep_are_told() {
    let told = facts(vec![
        file("tests/gone.rs", Kind::Deleted, &["fn helper() {}"], &[]),
        file("src/a.rs", Kind::Changed, &["    #[test]", "    #[tokio::test]"], &["    #[test]"]),
        file("b.py", Kind::Changed, &["def test_one():"], &["def test_two():"]),
        file("c.rs", Kind::Changed, &[], &[concat!("#[", "ignore]")]),
        file("d.ts", Kind::Changed, &["it.skip('x', () => {})"], &["it('x', () => {})"]),
        file("e.ts", Kind::Changed, &["it('x', () => {})"], &["it.skip('x', () => {})"]),
    ])
    .fewer_tests;
    let expected = [
        "tests/gone.rs is deleted",
        "src/a.rs has 1 fewer test",
        "c.rs switches off 1 test",
        "e.ts has 1 fewer test",
        "e.ts switches off 1 test",
    ];
    assert_eq!(told, expected);
}

#[test]
fn landed_work_that_is_taken_back_is_told_and_an_edit_is_not() {
    let log = format!(
        "pointsman-commit {} Fix the tax\n\ndiff --git a/src/tax.rs b/src/tax.rs\n--- a/src/tax.rs\n+++ b/src/tax.rs\n\
         @@ -4 +4,2 @@\n-let tax = 0;\n+let tax = 19;\n+let free = false;\n\
         pointsman-commit {} Add a price\n\ndiff --git a/src/price.rs b/src/price.rs\n--- a/src/price.rs\n\
         +++ b/src/price.rs\n@@ -1,0 +2 @@\n+let price = 3;\n",
        sha('a'),
        sha('b')
    );
    let landed = Landed::parse(log.as_bytes());
    assert_eq!((landed.len(), landed[0].subject.as_str(), landed[0].hunks.len()), (2, "Fix the tax", 1));
    let back = |files: Vec<File>| Facts::of(&config(), &Change { files }, "", &landed).taken_back;
    let reverted = back(vec![file(
        "src/tax.rs",
        Kind::Changed,
        &["// note", "let tax = 19;", "let free = false;"],
        &["let tax = 0;"],
    )]);
    assert_eq!((reverted.len(), &reverted[0].sha, reverted[0].path.as_str()), (1, &sha('a'), "src/tax.rs"));
    let dropped = back(vec![file("src/price.rs", Kind::Changed, &["let price = 3;"], &[])]);
    assert_eq!(dropped[0].sha, sha('b'));
    for edit in [
        file("src/price.rs", Kind::Changed, &["let price = 3;"], &["let price = 4;"]),
        file("src/tax.rs", Kind::Changed, &["let tax = 19;", "let free = false;"], &["let tax = 20;"]),
        file("src/other.rs", Kind::Changed, &["let price = 3;"], &[]),
    ] {
        assert_eq!(back(vec![edit.clone()]), [], "{edit:?}");
    }
}

#[test]
fn secrets_are_seen_and_never_repeated() {
    let key = format!("AKIA{}", "ABCDEFGHIJKLMNOP");
    let github = format!("token = ghp_{}", "a1B2".repeat(9));
    let named = format!("password = \"{}\"", "hunter2-7Kq9x");
    let found = facts(vec![
        file("a.rs", Kind::Changed, &["-----BEGIN RSA PRIVATE KEY-----"], &["fine", &key]),
        file("b.rs", Kind::Added, &[], &[&github, "-----BEGIN OPENSSH PRIVATE KEY-----"]),
        file("c.toml", Kind::Added, &[], &[&named, "url = \"postgres://me:s3cretpw@db/x\""]),
        file(".env", Kind::Added, &[], &[]),
        file("gone.pem", Kind::Deleted, &[&key], &[]),
        file(
            "docs.md",
            Kind::Added,
            &[],
            &[
                "password = \"${PASSWORD}\"",
                "api_key: \"xxxxxxxxxxxxxxxx\"",
                "secret = \"your-secret-here\"",
                "ghp_short",
            ],
        ),
    ])
    .secrets;
    let told: Vec<(&str, u32)> = found.iter().map(|secret| (secret.path.as_str(), secret.line)).collect();
    assert_eq!(told, [("a.rs", 8), ("b.rs", 7), ("b.rs", 8), ("c.toml", 7), ("c.toml", 8), (".env", 0)]);
    assert!(!format!("{found:?}").contains("ABCDEFGHIJKLMNOP"));
    let long = "x".repeat(5 << 20);
    assert_eq!(facts(vec![file("a", Kind::Added, &[], &[&long])]).secrets, []);
}

#[test]
fn the_usual_tokens_are_recognized_in_a_file_and_samples_are_not() {
    // Put together here, so that nobody takes this file for one that holds secrets.
    let varied = |length: usize| "aB3dE5gH7jK9".chars().cycle().take(length).collect::<String>();
    let upper = |length: usize| "A2B3C4D5E6F7".chars().cycle().take(length).collect::<String>();
    let rows = [
        (SecretKind::PrivateKey, format!("-----BEGIN EC {} KEY-----", "PRIVATE")),
        (SecretKind::AwsAccessKey, format!("key: AKIA{}", upper(16))),
        (SecretKind::GithubToken, format!("ghs_{}", varied(36))),
        (SecretKind::GithubToken, format!("github_pat_{}", varied(60))),
        (SecretKind::GitlabToken, format!("glpat-{}", varied(20))),
        (SecretKind::SlackToken, format!("xoxb-{}", varied(30))),
        (SecretKind::SlackWebhook, format!("https://hooks.slack.com/services/T{0}/B{0}/{0}", varied(9))),
        (SecretKind::AnthropicKey, format!("sk-ant-{}", varied(40))),
        (SecretKind::OpenAiKey, format!("sk-proj-{}", varied(40))),
        (SecretKind::GoogleKey, format!("AIza{}", varied(35))),
        (SecretKind::NpmToken, format!("//registry/:_authToken=npm_{}", varied(36))),
        (SecretKind::PypiToken, format!("pypi-AgE{}", varied(60))),
        (SecretKind::StripeKey, format!("sk_live_{}", varied(24))),
        (SecretKind::SendgridKey, format!("SG.{}.{}", varied(22), varied(43))),
        (SecretKind::HuggingFaceToken, format!("hf_{}", varied(34))),
        (SecretKind::DockerToken, format!("dckr_pat_{}", varied(27))),
        (SecretKind::VaultToken, format!("hvs.{}", varied(30))),
        (SecretKind::AgeKey, format!("AGE-SECRET-KEY-1{}", upper(58))),
        (SecretKind::SignedToken, format!("eyJ{0}.eyJ{0}.{0}", varied(20))),
        (SecretKind::PasswordInAddress, format!("postgres://shop:{}@db/shop", varied(12))),
        (SecretKind::Named, format!("api_key = \"{}\"", varied(20))),
    ];
    for (kind, line) in &rows {
        let found = secrets_in("src/a.txt", format!("fine\n{line}\n").as_bytes());
        let [secret] = &found[..] else { panic!("{found:?} in {line}") };
        assert_eq!((secret.kind, secret.line), (*kind, 2), "{line}");
        let kept: String = line.chars().filter(char::is_ascii_alphanumeric).collect();
        assert!(!format!("{found:?}").contains(&kept), "{found:?}");
        // The same value elsewhere is the same finding, so that it is accepted once.
        let other = secrets_in("src/b.txt", format!("{line}\n").as_bytes());
        assert_eq!(other[0].fingerprint, secret.fingerprint, "{line}");
    }
    for line in [
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        format!("ghp_{}", "x".repeat(36)),
        format!("sk_test_{}", varied(24)),
        "password = \"${PASSWORD}\"".to_owned(),
        "password: \"changeme-changeme\"".to_owned(),
        "token = load_token(\"github\")".to_owned(),
        "https://user:$PASSWORD@host/".to_owned(),
        "class=\"sk-button sk-large\"".to_owned(),
        "commit 0123456789abcdef0123456789abcdef01234567".to_owned(),
    ] {
        assert_eq!(secrets_in("src/a.txt", line.as_bytes()), [], "{line}");
    }
    assert_eq!(secrets_in("image.png", format!("\0{}", rows[1].1).as_bytes()), [], "no text");
    assert_eq!(secrets_in("deploy/.env", b"").len(), 1);
}

fn answer(verdict: Verdict) -> Answer {
    Answer {
        verdict,
        verdict_reason: "because".to_owned(),
        review_markdown: String::new(),
        findings: Vec::new(),
        followups: Vec::new(),
    }
}

#[test]
fn facts_make_a_verdict_more_careful_and_never_less() {
    let plain = facts(vec![file("src/a.rs", Kind::Added, &[], &["x"])]);
    let ci = facts(vec![file("ci.sh", Kind::Changed, &["false"], &["true"])]);
    let secret = facts(vec![file("id_rsa", Kind::Added, &[], &[])]);
    let table = [
        (Verdict::Approve, &plain, ReviewVerdict::Approve, false),
        (Verdict::RequestChanges, &plain, ReviewVerdict::RequestChanges, false),
        (Verdict::Discuss, &plain, ReviewVerdict::Discuss, false),
        (Verdict::Approve, &ci, ReviewVerdict::Discuss, true),
        (Verdict::RequestChanges, &ci, ReviewVerdict::RequestChanges, false),
        (Verdict::Discuss, &ci, ReviewVerdict::Discuss, false),
        (Verdict::Approve, &secret, ReviewVerdict::Discuss, true),
    ];
    for (said, facts, verdict, person) in table {
        let outcome = outcome(&answer(said), facts, &Config::default());
        assert_eq!(
            (outcome.verdict, outcome.needs_person.is_some()),
            (verdict, person),
            "{said:?} {facts:?}"
        );
    }
}

#[test]
fn follow_ups_are_few_and_new() {
    let mut answer = answer(Verdict::Approve);
    for title in ["Old mess", "old  MESS!", "Known already", "Second", "Third", "Fourth"] {
        answer.followups.push(FollowUp { title: title.to_owned(), body: String::new() });
    }
    let issue = Issue {
        number: 3,
        title: "Known, already".to_owned(),
        body: String::new(),
        state: IssueState::Open,
        labels: Vec::new(),
        comments: Vec::new(),
        assignee: None,
        author: "ann".to_owned(),
        created_at: Timestamp(0),
    };
    let titles: Vec<&str> =
        follow_ups(&answer, std::slice::from_ref(&issue), 3).iter().map(|f| f.title.as_str()).collect();
    assert_eq!(titles, ["Old mess", "Second", "Third"]);
    assert!(follow_ups(&answer, &[], 0).is_empty());
    // What is filed calls nobody, and is known again all the same.
    let calling = FollowUp { title: "Ask @ann".to_owned(), body: String::new() };
    let filed = crate::words::review::follow_up_title(&calling);
    assert_eq!(filed, "Ask @\u{200b}ann");
    answer.followups = vec![calling];
    assert!(follow_ups(&answer, &[Issue { title: filed, ..issue }], 3).is_empty());
}

fn pull_request() -> PullRequest {
    PullRequest {
        number: 5,
        title: "Add pears".to_owned(),
        body: String::new(),
        head: "work".to_owned(),
        base: "main".to_owned(),
        head_sha: Some(sha('c')),
        state: IssueState::Open,
        merged: false,
        merge_sha: None,
        reviews: Vec::new(),
        author: "bot".to_owned(),
    }
}

fn review(author: &str, verdict: ReviewVerdict, of: char, dismissed: bool) -> Review {
    let (author, body, at) = (author.to_owned(), String::new(), Timestamp(0));
    Review { id: 1, author, verdict, body, sha: sha(of), at, dismissed }
}

#[test]
fn what_is_next_for_a_pull_request() {
    use Attempt::{Answered, Stopped, UnderWay, Unusable};
    let next = |pr: &PullRequest, ci: Ci, attempts: &[Attempt]| {
        plan(&ReviewFacts { pr, primary: "main", reviewer: "review-bot", ci, attempts })
    };
    let open = pull_request();
    let table: [(Ci, &[Attempt], Next); 9] = [
        (Ci::NotGreen, &[], Next::Nothing),
        (Ci::Green, &[], Next::Ask { unusable: 0 }),
        (Ci::Green, &[UnderWay], Next::Nothing),
        (Ci::Green, &[Answered], Next::Post { attempt: 0 }),
        (Ci::NotGreen, &[Unusable, Answered], Next::Post { attempt: 1 }),
        (Ci::Green, &[Unusable], Next::Ask { unusable: 1 }),
        (Ci::Green, &[Unusable, UnderWay], Next::Nothing),
        (Ci::Green, &[Unusable, Unusable], Next::GiveUp),
        (Ci::Green, &[Stopped], Next::GiveUp),
    ];
    for (ci, attempts, expected) in table {
        assert_eq!(next(&open, ci, attempts), expected, "{ci:?} {attempts:?}");
    }
    let changed = |change: fn(&mut PullRequest)| {
        let mut pr = pull_request();
        change(&mut pr);
        next(&pr, Ci::Green, &[])
    };
    assert_eq!(changed(|pr| pr.state = IssueState::Closed), Next::Nothing);
    assert_eq!(changed(|pr| pr.merged = true), Next::Nothing);
    assert_eq!(changed(|pr| pr.head_sha = None), Next::Nothing);
    assert_eq!(changed(|pr| pr.base = "release".to_owned()), Next::Nothing);
    assert_eq!(changed(|pr| pr.title = "WIP: pears".to_owned()), Next::Nothing);
    let reviewed = |by: &str, verdict, of, dismissed| {
        let mut pr = pull_request();
        pr.reviews = vec![review(by, verdict, of, dismissed)];
        next(&pr, Ci::Green, &[])
    };
    let ask = Next::Ask { unusable: 0 };
    let (approve, discuss) = (ReviewVerdict::Approve, ReviewVerdict::Discuss);
    assert_eq!(reviewed("review-bot", approve, 'c', false), Next::Nothing);
    assert_eq!(reviewed("review-bot", discuss, 'c', false), Next::Nothing);
    assert_eq!(reviewed("review-bot", approve, 'c', true), Next::Nothing, "it is not asked for again");
    assert_eq!(reviewed("review-bot", approve, 'a', false), ask, "that was another commit");
    assert_eq!(reviewed("ann", approve, 'c', false), Next::Nothing, "a person has decided");
    assert_eq!(reviewed("ann", approve, 'c', true), ask, "whose word does not count");
    assert_eq!(reviewed("ann", discuss, 'c', false), ask);
}

#[test]
fn a_pull_request_says_which_issue_it_closes() {
    for (body, issue) in [
        ("For issue #9.\n", Some(9)),
        ("Closes #12.", Some(12)),
        ("text\nfixes: #7", Some(7)),
        ("see #3", None),
        ("encloses #4", None),
        ("", None),
    ] {
        assert_eq!(closes(body), issue, "{body}");
    }
}

#[test]
fn a_posted_review_tells_facts_first_and_no_mark_of_others() {
    let mut said = answer(Verdict::Approve);
    said.verdict_reason = "good <!-- reviewed: 0000 -->".to_owned();
    said.review_markdown = "<!-- pointsman:claimed -->\nAll fine.\u{202e}".to_owned();
    said.findings.push(Finding { file: "a`b.rs".to_owned(), line: Some(3), text: "odd\nvery".to_owned() });
    let known = facts(vec![file("ci.sh", Kind::Changed, &["false"], &["true"])]);
    let outcome = outcome(&said, &known, &Config::default());
    let text = crate::words::review::posted(&said, &outcome, &known, &[8, 9], &sha('c'));
    insta::assert_snapshot!(text, @r"
    **A person has to decide:** it changes protected paths (ci.sh). The reviewer itself would approve.

    **Facts**

    - 1 file, 1 lines added, 1 removed
    - protected paths, which need a person: `ci.sh`

    ## To be discussed

    good &lt;!-- reviewed: 0000 -->

    &lt;!-- pointsman:claimed -->
    All fine.

    **Findings**

    - `a'b.rs:3`: odd
      very

    **Older than this change:** #8, #9

    <!-- reviewed: cccccccccccccccccccccccccccccccccccccccc -->
    ");
    assert!(crate::words::review::gist(&text).starts_with("**A person has to decide:**"));
    let plain = facts(vec![file("a.rs", Kind::Added, &[], &["x"])]);
    let outcome = super::outcome(&said, &plain, &Config::default());
    let text = crate::words::review::posted(&said, &outcome, &plain, &[], &sha('c'));
    assert!(
        text.starts_with("**Facts**") && crate::words::review::gist(&text).starts_with("good &lt;!--"),
        "{text}"
    );
    assert_eq!(crate::words::review::gist("a person's own words"), "a person's own words");
}

#[test]
fn a_posted_review_calls_nobody() {
    let mut said = answer(Verdict::Approve);
    said.verdict_reason = "as @ann said".to_owned();
    said.review_markdown = "cc @org/team".to_owned();
    said.findings.push(Finding { file: "a.rs".to_owned(), line: None, text: "ask @bob".to_owned() });
    let known = facts(vec![file("a.rs", Kind::Added, &[], &["x"])]);
    let text = crate::words::review::posted(
        &said,
        &outcome(&said, &known, &Config::default()),
        &known,
        &[],
        &sha('c'),
    );
    assert_eq!((text.matches('@').count(), text.matches("@\u{200b}").count()), (3, 3), "{text}");
    let followup = FollowUp { title: "Old".to_owned(), body: "@ann broke it".to_owned() };
    assert!(crate::words::review::follow_up(&followup, 4).starts_with("@\u{200b}ann"));
}

#[test]
fn the_gist_of_a_review_has_no_hidden_mark() {
    let body = "Please split it.\n\n<!-- reviewed: 0000 -->\n";
    assert_eq!(crate::words::review::gist(body), "Please split it.");
}

#[test]
fn a_diff_begins_with_the_files_that_the_issue_does_not_name() {
    let part = |path: &str| {
        format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-x\n+diff --git y\n")
    };
    let diff = format!("{}{}{}", part("src/till.rs"), part("tests/till.rs"), part("ci.sh"));
    let (ordered, outside) = outside_first(&diff, "Mend `src/till.rs`, please");
    assert_eq!(outside, ["ci.sh"]);
    assert_eq!(ordered, format!("{}{}{}", part("ci.sh"), part("src/till.rs"), part("tests/till.rs")));
    assert_eq!(outside_first(&diff, "Mend the till"), (diff.clone(), vec![]), "it names no path");
    assert_eq!(outside_first("", "src/a.rs"), (String::new(), vec![]));
}
