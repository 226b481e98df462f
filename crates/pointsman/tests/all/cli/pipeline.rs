//! Plans: checked and drawn.

use std::fs;

use super::environment::Environment;

const PLAN: &str = "digraph Shop {\n  start [shape=Mdiamond]\n  exit [shape=Msquare]\n  work [label=\"Write it\", prompt=\"Write it\"]\n  ok [shape=hexagon, label=\"Good?\"]\n  start -> work -> ok -> exit\n}\n";

#[test]
fn pipeline_check_says_what_is_wrong_with_its_line() {
    let environment = Environment::empty();
    let file = environment.path("plan.dot");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        environment.run(&["pipeline", "check", file.to_str().unwrap()])
    };
    assert!(check(PLAN).ok().stdout.ends_with("plan.dot: 4 nodes and 3 edges\n"));
    let wrong = check(&PLAN.replace("prompt", "promt"));
    wrong.code(1).says("has an error");
    assert!(
        wrong.stdout.contains("plan.dot:4:27: error: a node has no `promt` (did you mean `prompt`?)"),
        "{}",
        wrong.stdout
    );
    assert!(check(&PLAN.replace("->", "--")).code(1).stdout.contains("plan.dot:6:9: error: `--`"));
    let warned = check(&PLAN.replace("prompt", "owner"));
    assert!(warned.ok().stdout.contains("warning: Pointsman does not know `owner`"), "{}", warned.stdout);
    assert!(warned.stdout.ends_with("4 nodes and 3 edges, 1 warning\n"));
    fs::write(&file, b"digraph { a [label=\"\xff\"] }").unwrap();
    let latin = environment.run(&["pipeline", "check", file.to_str().unwrap()]);
    assert!(
        latin.code(1).stdout.contains("plan.dot:1:21: error: the byte 0xFF is not UTF-8"),
        "{}",
        latin.stdout
    );
    environment.run(&["pipeline", "check", "missing.dot"]).code(4).says("there is no file missing.dot");
}

#[test]
fn pipeline_check_reads_a_pipe_and_prints_json() {
    let environment = Environment::empty();
    let check =
        |text: &str| environment.run_with_input(&["--json", "pipeline", "check", "-"], text.as_bytes());
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let good = value(&check(PLAN).ok().stdout);
    assert_eq!(
        (&good["ok"], &good["name"], &good["vocabulary"]),
        (&true.into(), &"Shop".into(), &"attractor".into())
    );
    assert_eq!((&good["nodes"][2]["handler"], &good["nodes"][2]["line"]), (&"codergen".into(), &4.into()));
    let bad = check(&PLAN.replace("Mdiamond", "diamond"));
    let bad = value(&bad.code(1).stdout);
    assert_eq!((&bad["ok"], &bad["file"]), (&false.into(), &"<stdin>".into()));
    let first = &bad["diagnostics"][0];
    assert_eq!(
        (&first["rule"], &first["severity"], &first["line"]),
        (&"start".into(), &"error".into(), &1.into())
    );
    let large = format!("digraph {{ /* {} */ }}", "x".repeat(1 << 20));
    assert!(check(&large).code(1).stdout.contains("at most"));
}

#[test]
fn pipeline_render_draws_a_file() {
    let environment = Environment::empty();
    let drawn = environment.run_with_input(&["pipeline", "render", "-"], PLAN.as_bytes());
    assert!(drawn.ok().stdout.contains("│ Write it │") && drawn.stdout.contains('▼'), "{}", drawn.stdout);
    let picture = environment.run_with_input(&["pipeline", "render", "--svg", "-"], PLAN.as_bytes());
    assert!(picture.ok().stdout.starts_with("<svg ") && picture.stdout.ends_with("</svg>\n"));
    environment
        .run_with_input(&["pipeline", "render", "-"], b"graph {}")
        .code(1)
        .says("pointsman pipeline check");
}
