//! Commands for pipes.

use std::fs;
use std::os::unix::fs::symlink;

use super::environment::{Environment, finish};

#[test]
fn deps_prints_sorted_numbers_one_per_line() {
    let environment = Environment::empty();
    let body = "Needs work, depends on #12.\n\n## Dependencies\n- #7\n- #3\n\n## Related\n- #99\n";
    environment.run_with_input(&["deps"], body.as_bytes()).ok().prints("3\n7\n12\n");
    environment.run_with_input(&["deps"], b"nothing \xff here").ok().prints("");
    let answer = environment.run_with_input(&["deps", "--json"], body.as_bytes());
    assert_eq!(serde_json::from_str::<Vec<u64>>(&answer.ok().stdout).unwrap(), [3, 7, 12]);
}

#[test]
fn deps_takes_a_megabyte_with_control_characters() {
    let body =
        format!("{}\nblocked by #5\n{}", "\u{1b}[31m\u{0}\u{7}x".repeat(100_000), "y\r\n".repeat(10_000));
    Environment::empty().run_with_input(&["deps"], body.as_bytes()).ok().prints("5\n");
}

#[test]
fn ci_classify_tells_machinery_from_code() {
    let environment = Environment::empty();
    let classify = |step, exit, log: &str| {
        environment.run_with_input(&["ci", "classify", "--step", step, "--exit", exit], log.as_bytes())
    };
    assert!(classify("clone", "128", "").ok().stdout.starts_with("infra "));
    assert!(classify("test", "137", "").ok().stdout.starts_with("infra "));
    classify("test", "1", "assertion failed").ok().prints("code\n");
    environment.run(&["ci", "classify", "--step", "test", "--exit", "x"]).code(2);
}

#[test]
fn phase_read_prints_the_bare_phase() {
    let environment = Environment::empty();
    let file = environment.path("phase");
    let read = |text: &str| {
        fs::write(&file, text).unwrap();
        environment.run(&["phase", "read", file.to_str().unwrap()])
    };
    read("PHASE:awaiting_ci\n").ok().prints("awaiting_ci\n");
    read("  PHASE:done  ").ok().prints("done\n");
    read("PHASE:needs_human\nReason: help\n").ok().prints("escalate\n");
    read("PHASE:escalate\n").ok().prints("escalate\n");
    let empty = read("");
    assert_eq!((empty.code(4).stdout.as_str(), empty.stderr.as_str()), ("", ""));
    read("PHASE:dancing\n").code(1).prints("").says("dancing");
    environment.run(&["phase", "read", "missing"]).code(4).prints("");
    symlink(&file, environment.path("link")).unwrap();
    environment
        .run(&["phase", "read", environment.path("link").to_str().unwrap()])
        .code(1)
        .says("symbolic link");
}

#[test]
fn phase_writes_what_phase_file_names() {
    let environment = Environment::empty();
    let file = environment.path("phase");
    let write = |args: &[&str]| {
        let mut command = environment.command(args);
        command.env("PHASE_FILE", &file);
        finish(command, b"")
    };
    write(&["phase", "awaiting_ci"]).code(4).says("does not exist");
    fs::write(&file, "").unwrap();
    write(&["phase", "awaiting_ci"]).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), "PHASE:awaiting_ci\n");
    write(&["phase", "needs_human", "--reason", "--which\none?"]).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), "PHASE:escalate\nReason: --which one?\n");
    write(&["phase", "dancing"]).code(2);
    environment.run(&["phase", "done"]).code(3).says("PHASE_FILE");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let environment = Environment::empty();
    let mut command = environment.command(&["completions", "bash"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
