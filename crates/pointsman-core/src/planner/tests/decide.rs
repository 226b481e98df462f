use serde_json::{Value, json};

use super::*;
use crate::action;
use crate::dependencies;
use crate::labels::WATCHED;
use crate::words;

/// A deed in one word and a number: which prediction, or which new issue.
fn short(plan: &Plan) -> Vec<String> {
    let name = |deed: &ForgeChange| match deed {
        ForgeChange::Promote { prediction, issue, .. } => format!("{} {prediction}", issue.label),
        ForgeChange::File { issue } => format!("file {}", issue.title),
        ForgeChange::Watch { prediction, .. } => format!("watch {prediction}"),
        ForgeChange::Dismiss { prediction, .. } => format!("dismiss {prediction}"),
    };
    plan.deeds.iter().map(name).collect()
}

/// "for each prediction: promote to action, promote to backlog, watch (relabel to prediction/backlog), or dismiss with
/// reasoning"
#[test]
fn each_prediction_gets_one_of_four_verdicts() {
    let plan = decide(
        &predictions(1..=5),
        &[
            verdict(1, "dismiss", 0),
            verdict(2, "watch", 0),
            verdict(3, "backlog", 4),
            verdict(4, "action", 6),
        ],
        &[],
    );
    assert_eq!(short(&plan), ["action 4", "backlog 3", "dismiss 1", "watch 2"]);
    assert_eq!((plan.refused.len(), plan.left.as_slice()), (0, [5].as_slice()), "what nobody judged is said");
    let verdicts: Vec<&str> = plan.deeds.iter().filter_map(ForgeChange::verdict).collect();
    assert_eq!(verdicts, ["action", "backlog", "dismiss", "watch"]);
}

/// "Promoted predictions compete with vision gaps for the per-cycle issue limit", "up to 5 total issues (including
/// promotions) prioritized by leverage"
#[test]
fn five_issues_are_filed_by_leverage_and_promotions_come_first_among_equals() {
    let plan = decide(
        &predictions(1..=4),
        &[
            verdict(1, "backlog", 3),
            verdict(2, "action", 7),
            verdict(3, "backlog", 9),
            verdict(4, "backlog", 1),
        ],
        &[gap(5, 7), gap(6, 10), gap(7, 3), gap(8, 2)],
    );
    let title = |n: u64| format!("file Build {}", topic(n));
    assert_eq!(short(&plan), [title(6), "backlog 3".into(), "action 2".into(), title(5), "backlog 1".into()]);
    assert_eq!(
        plan.refused,
        [
            format!("\"Build {}\" is not filed: at most 5 issues are filed in one run", topic(7)),
            format!("\"Build {}\" is not filed: at most 5 issues are filed in one run", topic(8)),
            "#4 stays a prediction: at most 5 issues are filed in one run".to_owned(),
        ]
    );
    assert_eq!((plan.next.as_slice(), plan.left.as_slice()), ([4].as_slice(), [].as_slice()));
    // Twenty promotions are five, and dismissing is no filing.
    let many: Vec<Value> =
        (1..=20).map(|n| verdict(n, if n > 15 { "dismiss" } else { "backlog" }, 5)).collect();
    let plan = decide(&predictions(1..=20), &many, &[]);
    assert_eq!((plan.deeds.len(), plan.refused.len(), plan.next.len()), (5 + 5, 10, 10));
    assert_eq!(short(&plan)[..5], ["backlog 1", "backlog 2", "backlog 3", "backlog 4", "backlog 5"]);
}

#[test]
fn rules_have_the_last_word() {
    let mut issues = predictions(1..=3);
    issues[2].assignee = Some("ann".to_owned());
    issues.push(issue(4, "Export orders as CSV", &["backlog"]));
    issues.push(issue(5, "Watched pepper", &[WATCHED]));
    let like = with(gap(1, 5), "title", json!("CSV export of orders"));
    let like = with(like, "why", json!("What Export orders as CSV is about."));
    let action = with(gap(8, 5), "label", json!("action"));
    let refusals: [(Option<Value>, Option<Value>, &str); 11] = [
        (Some(verdict(4, "dismiss", 0)), None, "nobody asked about #4"),
        (Some(verdict(99, "dismiss", 0)), None, "nobody asked about #99"),
        (Some(verdict(3, "dismiss", 0)), None, "nobody asked about #3"),
        (Some(verdict(5, "dismiss", 0)), None, "nobody asked about #5"),
        (
            Some(with(verdict(1, "action", 5), "formula", json!("deploy"))),
            None,
            "#1 stays a prediction: there is no formula \"deploy\" for an action",
        ),
        (
            Some(with(verdict(1, "backlog", 5), "depends_on", json!([4, 77]))),
            None,
            "#1 stays a prediction: it depends on #77, which is not open",
        ),
        (None, Some(like), "\"CSV export of orders\" is not filed: it duplicates #4"),
        (
            None,
            Some(with(action.clone(), "formula", json!("run-planner"))),
            "\"Build copper 63352\" is not filed: there is no formula \"run-planner\" for an action",
        ),
        (
            None,
            Some(with(action.clone(), "formula", json!("../tidy"))),
            "\"Build copper 63352\" is not filed: there is no formula \"../tidy\" for an action",
        ),
        (
            None,
            Some(with(gap(8, 5), "depends_on", json!([0]))),
            "\"Build copper 63352\" is not filed: it depends on #0, which is not open",
        ),
        (None, Some(with(gap(8, 5), "title", json!("@#`\u{200b}"))), "\"\" is not filed: its text is empty"),
    ];
    for (triage, gaps, why) in refusals {
        let what = format!("{triage:?} {gaps:?}");
        let plan = decide(&issues, triage.as_slice(), gaps.as_slice());
        assert_eq!((short(&plan), plan.refused), (Vec::<String>::new(), vec![why.to_owned()]), "{what}");
        let left: &[Number] = if why.starts_with("#1 ") { &[2] } else { &[1, 2] };
        assert_eq!((plan.left.as_slice(), plan.next.len()), (left, 0), "{what}");
    }
    // Two that say the same: the first stands.
    let plan = decide(&issues, &[], &[gap(7, 5), gap(7, 4)]);
    assert_eq!((plan.deeds.len(), plan.refused.len()), (1, 1));
    assert!(plan.refused[0].contains("it duplicates \"Build saddle"), "{:?}", plan.refused);
    let mut same = verdict(1, "backlog", 4);
    same["title"] = gap(7, 5)["title"].clone();
    same["text"] = gap(7, 5)["why"].clone();
    let plan = decide(&issues, &[same], &[gap(7, 5)]);
    assert_eq!(plan.refused, ["#1 stays a prediction: it duplicates \"Build saddle 55433\""]);
    let plan = decide(&issues, &[verdict(1, "dismiss", 0), verdict(1, "backlog", 9)], &[]);
    assert_eq!(
        (short(&plan), plan.refused),
        (vec!["dismiss 1".to_owned()], vec!["#1 already has a verdict".to_owned()])
    );
    let plan = decide(&issues, &[], &[with(action, "formula", json!("tidy"))]);
    assert_eq!(plan.deeds.len(), 1, "{plan:?}");
}

#[test]
fn what_changed_while_the_model_thought_is_left_alone() {
    let issues = predictions(1..=4);
    let asked = question(&facts(&issues), &Memory::default(), NOW).unwrap();
    let mut now = issues[1..].to_vec();
    now[0].labels = vec!["prediction/actioned".to_owned()];
    now[1].assignee = Some("ann".to_owned());
    let verdicts = [1, 2, 3, 4].map(|n| verdict(n, "dismiss", 0));
    let plan = later(&asked, &now, &verdicts, &[]);
    assert_eq!(short(&plan), ["dismiss 4"]);
    assert_eq!(
        plan.refused,
        [
            "#1 is no longer open",
            "#2 is assigned to somebody, or is no longer a prediction",
            "#3 is assigned to somebody, or is no longer a prediction"
        ]
    );
}

#[test]
fn an_answer_of_any_other_form_is_none() {
    let long = |n: usize| json!("x".repeat(n));
    assert_eq!(read(&[], &[]), Ok(Answer::default()));
    let triage = [
        json!({"issue": 1, "verdict": "close", "why": "x"}),
        json!({"issue": 1, "verdict": "dismiss"}),
        json!({"issue": 1, "verdict": "dismiss", "why": ""}),
        json!({"issue": "1", "verdict": "dismiss", "why": "x"}),
        json!({"issue": -1, "verdict": "dismiss", "why": "x"}),
        json!({"issue": 1, "verdict": "dismiss", "why": "x", "close": [2]}),
        json!({"issue": 1, "verdict": "watch", "why": "x", "title": "also file this"}),
        json!({"issue": 1, "verdict": "watch", "why": "x", "formula": "tidy"}),
        json!({"issue": 1, "verdict": "backlog", "why": "x"}),
        with(verdict(1, "backlog", 5), "formula", json!("tidy")),
        with(verdict(1, "backlog", 5), "label", json!("vision")),
        with(verdict(1, "dismiss", 5), "why", long(2001)),
        with(verdict(1, "action", 5), "text", long(4001)),
    ];
    for bad in triage {
        assert!(read(std::slice::from_ref(&bad), &[]).is_err(), "{bad}");
        assert!(read(&[verdict(2, "dismiss", 0), bad.clone()], &[]).is_err(), "one spoils all: {bad}");
    }
    for (key, value) in [
        ("label", json!("in-progress")),
        ("label", json!("prediction/actioned")),
        ("label", json!("backlog,vision")),
        ("leverage", json!(0)),
        ("leverage", json!(11)),
        ("leverage", json!("high")),
        ("criteria", json!([])),
        ("criteria", json!([""])),
        ("criteria", json!(vec!["x"; 13])),
        ("criteria", json!([long(301)])),
        ("depends_on", json!((1..=11).collect::<Vec<_>>())),
        ("depends_on", json!(["#1"])),
        ("title", long(121)),
        ("title", json!(" ")),
        ("why", long(4001)),
        ("formula", json!("tidy")),
        ("closes", json!([1])),
        ("assignee", json!("ann")),
    ] {
        let bad = with(gap(1, 5), key, value);
        assert!(read(&[], std::slice::from_ref(&bad)).is_err(), "{bad}");
    }
    assert!(read(&[], &(0..21).map(|n| gap(n, 5)).collect::<Vec<_>>()).is_err());
    assert!(read(&(0..101).map(|n| verdict(n, "watch", 0)).collect::<Vec<_>>(), &[]).is_err());
    for bad in [
        None,
        Some(json!({})),
        Some(json!([])),
        Some(json!({"triage": []})),
        Some(json!({"triage": [], "issues": [], "vault": {"approve": "deploy-1"}})),
        Some(json!({"triage": {}, "issues": []})),
    ] {
        assert!(Answer::of_result(bad.as_ref()).is_err(), "{bad:?}");
    }
}

#[test]
fn words_of_a_model_call_nobody_close_nothing_and_name_no_formula() {
    let hostile = json!({
        "title": "Closes #1 @everybody\n## Dependencies", "leverage": 5, "label": "action", "depends_on": [3],
        "why": "Depends on #9\n\nFormula: run-planner\nformulas/deploy.toml\n```\n@ann blocked by #8 <!-- pointsman:x -->",
        "criteria": ["fixes GH-7 @ann\n## Blocked by\n- #6", "~~~"],
    });
    let issues = [issue(3, "Violins", &["backlog"])];
    let plan = decide(&issues, &[], std::slice::from_ref(&hostile));
    let [ForgeChange::File { issue: filed }] = plan.deeds.as_slice() else { panic!("{plan:?}") };
    let (title, body) = words::planner::issue(filed, None);
    assert_eq!(title, "Closes 1 everybody Dependencies");
    assert_eq!(dependencies::parse(&body), [3].into(), "{body}");
    assert_eq!(action::formula(&body), action::FORMULA, "{body}");
    assert!(body.contains("- [ ] fixes GH 7 ann Blocked by - 6\n"), "{body}");
    let (_, body) =
        words::planner::issue(&NewIssue { formula: Some("tidy".to_owned()), ..filed.clone() }, Some(12));
    assert_eq!(action::formula(&body), "tidy");
    assert!(body.starts_with("Predicted in #12.\n"), "{body}");
    for comment in [words::planner::promoted(7, "@ann ```"), words::planner::dismissed("@ann\n~~~")] {
        assert!(comment.contains("```text\n") && dependencies::parse(&comment).is_empty(), "{comment}");
    }
}
