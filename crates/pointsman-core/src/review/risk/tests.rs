use super::*;
use crate::config::{Config, ReviewMode};
use crate::review::patch::{File, Hunk, Mode};
use crate::review::{Answer, Facts, Finding, Verdict, outcome, parse};
use crate::task::ReviewVerdict;

/// The defaults, with these keys.
fn config(keys: &str) -> Config {
    let text = format!("name = \"shop\"\nreview.mode = \"risk\"\n{keys}");
    Config::parse(&text, "pointsman.toml").unwrap()
}

fn sha(digits: &str) -> Sha {
    Sha::new(&format!("{digits}{}", "0".repeat(40 - digits.len()))).unwrap()
}

fn file(path: &str, added: &[&str]) -> File {
    let added: Vec<String> = added.iter().map(|&line| line.to_owned()).collect();
    let hunks = vec![Hunk { at: 1, removed: Vec::new(), added }];
    let mode = Mode { before: 0o100_644, after: 0o100_644 };
    File { path: path.to_owned(), kind: Kind::Changed, hunks, mode, is_opaque: false }
}

const PROVEN: Option<Record> = Some(Record { landed: 3, reverted: 0 });

fn judged(config: &Config, files: Vec<File>, record: Option<Record>) -> Risk {
    let change = Change { files };
    let facts = RiskFacts { change: Some(&change), protected: &[], record };
    // Its draw is 99, the last of a hundred.
    Risk::of(&config.risk, &facts, &sha("00000063"))
}

/// A name, the files and the record of a change; its class, and words of a reason.
type Row = (&'static str, Vec<File>, Option<Record>, Class, &'static str);

#[test]
fn each_rule_raises_a_change_to_its_class_and_says_why() {
    let page = || file("docs/a.md", &["words"]);
    let long = |lines: usize| file("docs/a.md", &vec!["words"; lines]);
    let mode = |before, after, kind| File { mode: Mode { before, after }, kind, ..page() };
    let gone = File {
        kind: Kind::Deleted,
        hunks: vec![Hunk { at: 1, removed: vec!["#[test]".to_owned()], added: Vec::new() }],
        ..file("docs/a_test.md", &[])
    };
    let opaque = File { hunks: Vec::new(), is_opaque: true, ..page() };
    let record = |landed, reverted| Some(Record { landed, reverted });
    use Class::{Critical, High, Low, Medium};
    let rows: Vec<Row> = vec![
        ("prose alone", vec![page()], PROVEN, Low, ""),
        ("code", vec![page(), file("src/a.rs", &["x"])], PROVEN, Medium, "src/a.rs"),
        ("as many lines as allowed", vec![long(100)], PROVEN, Low, ""),
        ("one more", vec![long(101)], PROVEN, Medium, "101 lines, more than 100"),
        ("very many", vec![long(401)], PROVEN, High, "401 lines, more than 400"),
        ("a test goes", vec![gone], PROVEN, High, "docs/a_test.md is deleted"),
        ("a dependency", vec![file("web/package.json", &["x"])], PROVEN, High, "dependencies"),
        ("a copied dependency", vec![file("third_party/docs/a.md", &["x"])], PROVEN, High, "dependencies"),
        ("executable", vec![mode(0o100_644, 0o100_755, Kind::Changed)], PROVEN, Critical, "permissions"),
        ("a new link", vec![mode(0, 0o120_000, Kind::Added)], PROVEN, Critical, "permissions"),
        ("a submodule", vec![mode(0o160_000, 0o160_000, Kind::Changed)], PROVEN, Critical, "permissions"),
        ("a deleted program", vec![mode(0o100_755, 0, Kind::Deleted)], PROVEN, Low, ""),
        ("sudo", vec![file("docs/a.md", &["run sudo make"])], PROVEN, Critical, "permissions"),
        (
            "workflow rights",
            vec![file("docs/a.md", &["  permissions: write-all"])],
            PROVEN,
            Critical,
            "docs/a.md",
        ),
        ("work was reverted here", vec![page()], record(3, 1), High, "1 of 3 earlier changes"),
        ("no record here", vec![page()], record(0, 0), Medium, "0 of the 1 changes"),
        ("not text", vec![opaque], PROVEN, High, "not text"),
        ("no history", vec![page()], None, High, "history"),
    ];
    let config = config("");
    for (name, files, record, class, why) in rows {
        let risk = judged(&config, files, record);
        assert_eq!(risk.class, class, "{name}: {:?}", risk.reasons);
        assert!(risk.reasons.iter().any(|reason| reason.contains(why)) || why.is_empty(), "{name}: {risk:?}");
        assert_eq!(risk.reasons.is_empty(), class == Low, "{name}: {:?}", risk.reasons);
        assert!(!risk.sampled, "{name}");
    }
}

#[test]
fn what_cannot_be_read_goes_to_a_person_whatever_the_rules_say() {
    let facts = RiskFacts { change: None, protected: &[], record: None };
    for keys in ["", "risk.rules = [{ when = \"lines\", limit = 9, class = \"low\" }]"] {
        let config = config(keys);
        let risk = Risk::of(&config.risk, &facts, &sha("00000063"));
        assert!(risk.class >= Class::High, "{keys}");
        assert_eq!(Reviewers::new(&config.risk).of(Some(&risk)), Reviewer::Person);
    }
    let protected = ["ci.sh".to_owned()];
    let change = Change { files: vec![file("docs/a.md", &["x"])] };
    let facts = RiskFacts { change: Some(&change), protected: &protected, record: PROVEN };
    assert_eq!(Risk::of(&config("").risk, &facts, &sha("63")).class, Class::High);
    assert_eq!(Reviewers::new(&config("").risk).of(None), Reviewer::Person, "nobody judged it");
}

#[test]
fn the_heaviest_reason_comes_first_and_none_twice() {
    let config = config("");
    let risk = judged(&config, vec![file("Cargo.toml", &vec!["sudo"; 500])], Some(Record::default()));
    assert_eq!(risk.class, Class::Critical);
    assert!(risk.reasons[0].contains("permissions"), "{:?}", risk.reasons);
    let mut once = risk.reasons.clone();
    once.dedup();
    assert_eq!(once, risk.reasons);
}

#[test]
fn whoever_a_class_needs_is_configured() {
    let config =
        config("[risk]\nlow = \"agent\"\nmedium = \"person\"\nhigh = \"person\"\ncritical = \"two_people\"");
    let reviewers = Reviewers::new(&config.risk);
    let of =
        |class| reviewers.of(Some(&Risk { class, reasons: vec![], sampled: false, findings: Class::High }));
    let all = [Class::Low, Class::Medium, Class::High, Class::Critical].map(of);
    assert_eq!(all, [Reviewer::Agent, Reviewer::Person, Reviewer::Person, Reviewer::TwoPeople]);
}

#[test]
fn a_share_of_the_low_class_is_drawn_by_the_commit_and_no_other_class() {
    let config = config("");
    assert_eq!(config.risk.sample, 10);
    let reviewers = Reviewers::new(&config.risk);
    let of = |digits: &str, path: &str| {
        let change = Change { files: vec![file(path, &["x"])] };
        let facts = RiskFacts { change: Some(&change), protected: &[], record: PROVEN };
        Risk::of(&config.risk, &facts, &sha(digits))
    };
    for (digits, drawn) in [("00000000", true), ("00000009", true), ("0000000a", false), ("00000063", false)]
    {
        let risk = of(digits, "docs/a.md");
        assert_eq!((risk.class, risk.sampled), (Class::Low, drawn), "{digits}");
        let needs = if drawn { Reviewer::Person } else { Reviewer::Nobody };
        assert_eq!(reviewers.of(Some(&risk)), needs, "{digits}");
        assert_eq!(risk, of(digits, "docs/a.md"), "the same commit is always drawn or never");
        assert!(!of(digits, "src/a.rs").sampled, "{digits}: the review agent looks at it");
    }
    // As many as are asked for, of commits as they come.
    let many = (0..20_000_u32)
        .filter(|number| is_drawn(&sha(&format!("{:08x}", number.wrapping_mul(2_654_435_761))), 10));
    let count = many.count();
    assert!((1_800..2_200).contains(&count), "{count} of 20000");
    assert!((0..100).all(|number| !is_drawn(&sha(&format!("{number:08x}")), 0)));
    assert!((0..100).all(|number| is_drawn(&sha(&format!("{number:08x}")), 100)));
}

#[test]
fn the_record_counts_agents_and_what_was_taken_back() {
    let past = |digits: &str, by_agent, message: &str| Past {
        sha: sha(digits),
        by_agent,
        message: message.to_owned(),
    };
    let reverts = format!("Revert \"x\"\n\nThis reverts commit {}.\n", sha("b"));
    let commits = [
        past("d", false, &reverts),
        past("c", true, "more"),
        past("b", true, "x"),
        past("a", false, "person"),
    ];
    assert_eq!(Record::of(&commits), Record { landed: 2, reverted: 1 });
    assert_eq!(Record::of(&commits[1..]), Record { landed: 2, reverted: 0 });
    assert_eq!(Record::of(&[]), Record::default());
}

#[test]
fn findings_raise_the_class_and_are_remembered_with_it() {
    let config = config("");
    let risk = judged(&config, vec![file("src/a.rs", &["x"])], PROVEN);
    assert_eq!((risk.class, risk.findings), (Class::Medium, Class::High));
    let raised = risk.with_findings("the review agent found something: x".to_owned());
    assert_eq!((raised.class, raised.reasons.len()), (Class::High, risk.reasons.len() + 1));
    let answer = |findings: usize| Answer {
        verdict: Verdict::Approve,
        verdict_reason: "good".to_owned(),
        review_markdown: String::new(),
        findings: vec![Finding { file: "src/a.rs".to_owned(), line: None, text: "odd".to_owned() }; findings],
        followups: Vec::new(),
    };
    let of = |config: &Config, findings| outcome(&answer(findings), &Facts::default(), config).verdict;
    assert_eq!((of(&config, 0), of(&config, 1)), (ReviewVerdict::Approve, ReviewVerdict::Discuss));
    let mut agent = config.clone();
    agent.review.mode = ReviewMode::Agent;
    assert_eq!(of(&agent, 1), ReviewVerdict::Approve, "there the agent alone decides");
}

#[test]
fn modes_and_contents_without_lines_are_read_from_git() {
    let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    let raw = format!(
        ":100644 100755 1111111 1111111 M\0run.sh\0:000000 100644 0000000 {} A\0empty\0:100644 100644 1111111 2222222 M\0a.bin\0",
        &empty[..7]
    );
    let patch = "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n\
                 diff --git a/empty b/empty\nnew file mode 100644\n\
                 diff --git a/a.bin b/a.bin\nBinary files a/a.bin and b/a.bin differ\n";
    let change = parse(raw.as_bytes(), patch.as_bytes()).unwrap();
    let told: Vec<(bool, bool)> =
        change.files.iter().map(|file| (file.mode.is_special(file.kind), file.is_opaque)).collect();
    assert_eq!(told, [(true, false), (false, false), (false, true)]);
}
