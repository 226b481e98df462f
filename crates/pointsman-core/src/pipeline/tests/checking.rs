//! Checking: every rule with its place, good files without errors, mutations with one.

use super::super::model::{Effort, GateKind, Handler, Vocabulary, accelerator, normalized};
use super::super::{Severity, check};
use super::{ATTRACTOR, HARNESS, pipeline};

/// A small plan in each vocabulary, without a finding.
const A: &str = "digraph {\n  s [shape=Mdiamond]\n  e [shape=Msquare]\n  work [label=\"Work\", prompt=\"Do it\"]\n  ask [shape=hexagon]\n  s -> work -> ask -> e\n}\n";
const H: &str = "digraph {\n  s [shape=Mdiamond handler=start]\n  e [shape=Msquare handler=exit]\n  work [label=Work handler=codergen bead_id=T1]\n  gate [shape=hexagon handler=\"wait.human\" gate=technical]\n  dia [shape=diamond handler=conditional]\n  s -> work -> gate -> dia\n  dia -> e [condition=pass]\n  dia -> work [condition=fail]\n}\n";

#[test]
fn good_plans_have_no_findings() {
    for text in [A, H] {
        assert_eq!(check(text).diagnostics, [], "{text}");
    }
    for text in [ATTRACTOR, HARNESS] {
        let report = check(text);
        assert_eq!(report.errors(), 0, "{:#?}", report.diagnostics);
    }
}

#[test]
fn every_rule_has_its_place() {
    use Severity::{Error, Warning};
    let mut missing = Vec::new();
    for (base, from, to, severity, rule, line, column) in [
        (A, "s [shape=Mdiamond]", "s [shape=box]", Error, "start", 1, 9),
        (A, "e [shape=Msquare]", "e [shape=box]", Error, "exit", 1, 9),
        (A, "ask [shape=hexagon]", "ask [shape=Mdiamond]", Error, "start", 5, 3),
        (A, "ask [shape=hexagon]", "ask [shape=Msquare]", Error, "exit", 5, 3),
        (A, "ask -> e", "ask -> e -> work", Error, "exit", 6, 23),
        (A, "ask -> e", "ask -> e; ask -> s", Error, "start", 6, 26),
        (A, "ask -> e", "ask -> e; lost -> e; lost", Error, "unreachable", 6, 37),
        (A, "ask -> e", "ask -> e; ask -> lost; lost", Error, "dead_end", 6, 39),
        (A, "ask -> e", "ask -> e; lost", Error, "orphan", 6, 26),
        (A, "s -> work ->", "s -> wokr -> work ->", Error, "unknown_node", 6, 8),
        (A, "s -> work ->", "s -> extra -> work ->", Warning, "unknown_node", 6, 8),
        (H, "s -> work ->", "s -> extra -> work ->", Error, "unknown_node", 7, 8),
        (A, "prompt=\"Do it\"", "retry_target=wrok", Error, "retry_target", 4, 36),
        (A, "prompt=\"Do it\"", "retry_target=e", Error, "retry_target", 4, 36),
        (A, "prompt=\"Do it\"", "promt=\"Do it\"", Error, "unknown_attribute", 4, 23),
        (A, "prompt=\"Do it\"", "owner=\"ann\"", Warning, "unknown_attribute", 4, 23),
        (A, "prompt=\"Do it\"", "timeout=soon", Error, "value", 4, 31),
        (A, "prompt=\"Do it\"", "max_retries=many", Error, "value", 4, 35),
        (A, "prompt=\"Do it\"", "max_retries=1000", Error, "value", 4, 35),
        (A, "prompt=\"Do it\"", "goal_gate=perhaps", Error, "value", 4, 33),
        (A, "prompt=\"Do it\"", "goal_gate=true", Warning, "goal_gate", 4, 3),
        (A, "prompt=\"Do it\"", "fidelity=compact", Error, "not_carried_out", 4, 32),
        (A, "prompt=\"Do it\"", "reasoning_effort=huge", Error, "value", 4, 40),
        (A, "prompt=\"Do it\"", "status=finished", Error, "status", 4, 30),
        (A, "prompt=\"Do it\"", "issue=none", Error, "value", 4, 29),
        (A, "prompt=\"Do it\"", "shape=cylinder", Error, "shape", 4, 29),
        (A, "prompt=\"Do it\"", "type=magic", Error, "unknown_handler", 4, 28),
        (A, "prompt=\"Do it\"", "type=tool", Error, "command", 4, 3),
        (A, "prompt=\"Do it\"", "shape=house", Error, "child", 4, 3),
        (A, "prompt=\"Do it\"", "shape=house, \"stack.child_dotfile\"=\"../x\"", Error, "child", 4, 58),
        (A, "prompt=\"Do it\"", "shape=component, join_policy=quorum", Error, "not_carried_out", 4, 52),
        (A, "prompt=\"Do it\"", "shape=component, error_policy=ignore", Error, "not_carried_out", 4, 53),
        (A, "label=\"Work\", prompt=\"Do it\"", "class=x", Warning, "prompt", 4, 3),
        (A, "digraph {", "digraph { model_stylesheet=\"* { color: red }\"", Error, "stylesheet", 1, 33),
        (
            A,
            "digraph {",
            "digraph { model_stylesheet=\"#nobody { llm_model: x }\"",
            Warning,
            "stylesheet",
            1,
            28,
        ),
        (A, "digraph {", "digraph { default_max_retry=-1", Error, "value", 1, 29),
        (A, "ask -> e", "ask -> e [condition=\"outcome=good\"]", Error, "condition", 6, 37),
        (A, "ask -> e", "ask -> e [condition=\"outcome=success && \"]", Error, "condition", 6, 56),
        (A, "ask -> e", "ask -> e [condition=\"tests=green\"]", Error, "condition", 6, 37),
        (A, "ask -> e", "ask -> e [condition=\"outcome=fail\"]", Error, "dead_end", 5, 3),
        (A, "ask -> e", "ask -> e [weight=heavy]", Error, "value", 6, 33),
        (A, "ask -> e", "ask -> e [loop_restart=true]", Error, "not_carried_out", 6, 26),
        (A, "ask -> e", "ask -> e [label=Yes]; ask -> work [label=yes]", Error, "choice", 6, 57),
        (A, "ask -> e", "ask -> e [label=Yes]; ask -> work [label=Yep]", Warning, "choice", 6, 57),
        (A, "work -> ask -> e", "work -> ask -> e; work -> e", Warning, "ambiguous", 4, 3),
        (A, "work -> ask -> e", "work -> ask -> e; work -> work", Error, "cycle", 6, 26),
        (A, "work -> ask -> e", "work -> e; s -> ask -> e", Warning, "no_gate", 4, 3),
        (H, "handler=codergen", "handler=conditional shape=box", Error, "shape", 4, 46),
        (H, "gate [shape=hexagon", "gate [shape=diamond", Error, "shape", 5, 15),
        (H, "gate=technical", "gate=visual", Error, "gate", 5, 49),
        (H, "bead_id=T1", "", Warning, "bead_id", 4, 3),
        (H, "dia -> e [condition=pass]", "dia -> e", Error, "diamond", 8, 3),
        (H, "dia -> e [condition=pass]", "dia -> e [condition=partial]", Error, "diamond", 6, 3),
        (H, "dia -> work [condition=fail]", "dia -> e [condition=partial]", Error, "diamond", 6, 3),
        (
            H,
            "-> gate -> dia\n  dia -> e [condition=pass]",
            "-> gate -> e; s -> dia -> e [condition=pass]",
            Warning,
            "gate",
            5,
            3,
        ),
        (H, "s -> work -> gate -> dia", "s -> work -> gate -> dia; gate -> work", Error, "cycle", 7, 29),
    ] {
        assert!(base.contains(from), "{from}");
        let report = check(&base.replacen(from, to, 1));
        let found = report
            .diagnostics
            .iter()
            .find(|d| (d.severity, d.rule.as_str(), d.line, d.column) == (severity, rule, line, column));
        if found.is_none() {
            let there: Vec<String> =
                report.diagnostics.iter().map(|d| format!("{} at {d}", d.rule)).collect();
            missing.push(format!("{to}: {rule} at {line}:{column} not in {there:#?}"));
        }
        assert_eq!(report.pipeline.is_none(), report.errors() > 0, "{to}");
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_mutation_of_a_good_plan_is_an_error_with_a_line() {
    let mutations: [(&str, &str, &str); 52] = [
        (ATTRACTOR, "digraph", "graph"),
        (ATTRACTOR, "digraph Checkout {", "digraph Checkout"),
        (ATTRACTOR, "start -> plan -> fan", "start -- plan"),
        (ATTRACTOR, "start -> plan -> fan", "start -> plan -> ;"),
        (ATTRACTOR, "start -> plan -> fan", "plan -> fan"),
        (ATTRACTOR, "start -> plan -> fan", "start -> pln -> fan"),
        (ATTRACTOR, "shape=Mdiamond", "shape=diamond"),
        (ATTRACTOR, "shape=Msquare", "shape=square"),
        (ATTRACTOR, "shape=Msquare", "shape=Mdiamond"),
        (ATTRACTOR, "label=\"Start\"", "label=\"Start"),
        (ATTRACTOR, "default_max_retry=1", "default_max_retry=lots"),
        (ATTRACTOR, "retry_target=plan,", "retry_target=plans,"),
        (ATTRACTOR, "* { llm_model: sonnet }", "* { llm_model sonnet }"),
        (ATTRACTOR, ".code { llm_model: opus;", ".code llm_model: opus;"),
        (ATTRACTOR, "timeout=\"900s\"", "timeout=\"900x\""),
        (ATTRACTOR, "max_retries=2", "max_retry=2"),
        (ATTRACTOR, "shape=component", "shape=components"),
        (ATTRACTOR, "max_parallel=2", "max_parallel=0"),
        (ATTRACTOR, "allow_partial=true", "allow_partial=maybe"),
        (ATTRACTOR, "tool_command=\"make test\"", "tool_command=\"\""),
        (ATTRACTOR, "goal_gate=true", "goal_gates=true"),
        (ATTRACTOR, "\"stack.child_dotfile\"=\"docs.dot\"", "\"stack.child_dotfile\"=\"/etc/passwd\""),
        (ATTRACTOR, "\"human.default_choice\"=fix", "\"human.default_choice\"=nobody"),
        (ATTRACTOR, "outcome=success && context", "outcome=success || context"),
        (ATTRACTOR, "context.flaky!=true", "flaky!=true"),
        (ATTRACTOR, "weight=2", "weight=two"),
        (ATTRACTOR, "join -> tests -> green", "join -> tests"),
        (ATTRACTOR, "fix -> tests", "fix -> fix2"),
        (ATTRACTOR, "[F] Fix", "[A] approve"),
        (ATTRACTOR, "    ask -> done [label=\"[A] Approve\"]\n", ""),
        (HARNESS, "digraph \"PRD", "digraph PRD"),
        (HARNESS, "handler=\"start\"", "handler=\"begin\""),
        (HARNESS, "status=\"validated\"", "status=\"valid\""),
        (HARNESS, "command=\"make \\\"all\\\"\"", "command=\"make \"all\"\""),
        (HARNESS, "command=\"make", "comand=\"make"),
        (HARNESS, "timeout=60", "timeout=-60"),
        (HARNESS, "shape=parallelogram label=\"Both\"", "shape=hexagon label=\"Both\""),
        (HARNESS, "gate=\"technical\"", "gate=\"tech\""),
        (HARNESS, "handler=\"conditional\"", "handler=\"tool\""),
        (HARNESS, "bead_id=\"TASK-10\"", "bead_id=\"TASK-10"),
        (HARNESS, "condition=\"pass\"", "condition=\"passed\""),
        (HARNESS, "[label=\"fail\\nretry\" condition=\"fail\" color=red style=dashed]", ""),
        (HARNESS, "api_ok -> join [label=\"pass\" condition=\"pass\" color=green];", ""),
        (HARNESS, "e2e_ok -> finalize [condition=pass];", ""),
        (HARNESS, "e2e_ok -> split [condition=fail];", "e2e_ok -> split [condition=partial];"),
        (HARNESS, "handler=\"exit\"", "handler=\"codergen\""),
        (HARNESS, "split -> impl_ui;", ""),
        (
            HARNESS,
            "impl_api -> tech_api -> biz_api -> api_ok;",
            "impl_api -> tech_api -> biz_api -> impl_api;",
        ),
        (HARNESS, "start -> setup -> split;", "start -> setup -> split -> start;"),
        (HARNESS, "        shape=box\n", "        shape=box]\n"),
        (HARNESS, "graph [", "graph "),
        (HARNESS, "gate=\"manual\"", "gate=\"manual\" manager.actions=steer"),
    ];
    let mut unnoticed = Vec::new();
    for (base, from, to) in mutations {
        assert!(base.contains(from), "{from}");
        let report = check(&base.replacen(from, to, 1));
        let error = report.diagnostics.iter().find(|found| found.severity == Severity::Error);
        let Some(error) = error else {
            unnoticed.push(format!("{from} → {to}"));
            continue;
        };
        assert!(error.line >= 1 && error.column >= 1 && report.pipeline.is_none(), "{error}");
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    // Cut anywhere, a plan is an error, and nothing panics.
    for text in [ATTRACTOR, HARNESS] {
        for (end, _) in text.char_indices().filter(|(end, _)| *end < text.trim_end().len()) {
            assert!(check(&text[..end]).errors() > 0, "cut at {end}");
        }
    }
}

#[test]
fn findings_are_shown_below_their_line() {
    let report = check(&A.replace("prompt=\"Do it\"", "promt=\"Do it\""));
    assert_eq!(
        report.diagnostics[0].pretty("plan.dot"),
        "plan.dot:4:23: error: a node has no `promt`\n  |\n4 |   work [label=\"Work\", promt=\"Do it\"]\n  |                       ^^^^^\n  = did you mean `prompt`?"
    );
    let hidden = check("digraph { a [\u{1b}[31m=1] }");
    assert!(!hidden.diagnostics[0].pretty("x\u{7}.dot").contains('\u{1b}'));
}

#[test]
fn attractors_words_are_read() {
    let plan = pipeline(ATTRACTOR);
    assert_eq!(
        (plan.vocabulary, plan.goal.as_deref(), plan.start.as_str()),
        (Vocabulary::Attractor, Some("Sell books"), "start")
    );
    let work = |id: &str| match &plan.node(id).expect(id).handler {
        Handler::Codergen(work) => work.as_ref().clone(),
        other => panic!("{id} is {other:?}"),
    };
    assert_eq!(work("plan").prompt, "Plan how to Sell books");
    assert_eq!(work("plan").model.name.as_deref(), Some("sonnet"));
    assert_eq!(
        (work("api").model.name.as_deref(), work("api").model.effort),
        (Some("opus"), Some(Effort::High)),
        "by its subgraph"
    );
    assert_eq!(
        (work("pages").model.name.as_deref(), work("pages").model.effort),
        (Some("gpt"), Some(Effort::High)),
        "its own word wins"
    );
    assert_eq!(work("fix").model.name.as_deref(), Some("opus"), "by its class");
    assert_eq!(
        (work("review").model.name.as_deref(), work("review").model.provider.as_deref()),
        (Some("haiku"), Some("anthropic"))
    );
    let retries = |id: &str| plan.node(id).expect(id).max_retries;
    assert_eq!((retries("plan"), retries("api")), (2, 1));
    assert_eq!(plan.node("plan").expect("plan").timeout_secs, Some(900));
    assert_eq!(plan.node("ask").expect("ask").timeout_secs, Some(86_400));
    assert!(matches!(plan.node("fan").expect("fan").handler, Handler::Parallel { max_active: Some(2), .. }));
    assert_eq!(plan.choices("ask").len(), 2);
    assert_eq!(plan.edges.iter().find(|e| e.label.as_deref() == Some("Yes")).map(|e| e.weight), Some(2));
}

#[test]
fn the_harness_words_are_read() {
    let plan = pipeline(HARNESS);
    assert_eq!(
        (plan.vocabulary, plan.label.as_deref()),
        (Vocabulary::Harness, Some("Initiative: shop\n(two streams)"))
    );
    let Handler::Codergen(work) = &plan.node("impl_api").expect("there").handler else { panic!("no task") };
    assert_eq!((work.prompt.as_str(), work.files.len(), work.issue), ("Implement\nthe API", 2, None));
    assert_eq!(plan.node("impl_api").and_then(|n| n.bead_id.as_deref()), Some("TASK-10"));
    let Handler::Codergen(ui) = &plan.node("impl_ui").expect("there").handler else { panic!("no task") };
    assert_eq!(ui.issue, Some(12), "a number is an issue of the forge");
    assert_eq!(plan.node("setup").expect("there").handler, Handler::Tool { command: "make \"all\"".into() });
    assert!(matches!(plan.node("e2e").expect("there").handler, Handler::Gate { kind: GateKind::E2e, .. }));
    assert!(matches!(
        plan.node("look_ui").expect("there").handler,
        Handler::Gate { kind: GateKind::Manual, .. }
    ));
}

#[test]
fn labels_have_keys_and_are_compared_without_them() {
    for (label, key, plain) in [
        ("[A] Approve", Some('A'), "approve"),
        ("y) Yes", Some('Y'), "yes"),
        ("F - Fix it", Some('F'), "fix it"),
        ("Approve", Some('A'), "approve"),
        (" [long] x ", None, "[long] x"),
        ("", None, ""),
        ("→", None, "→"),
    ] {
        assert_eq!((accelerator(label), normalized(label).as_str()), (key, plain), "{label:?}");
    }
}
