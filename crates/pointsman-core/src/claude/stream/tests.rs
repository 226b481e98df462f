use super::{Ended, Measured, ResultPromise, Sums, Turn, TurnEvent};
use crate::hook::ToolUse;
use crate::session::context::{Gauge, Source};
use crate::time::Timestamp;

/// What two versions of the real program printed, against a scripted API.
const OLDER: [(&str, &str); 7] = [
    ("first", include_str!("samples/2.1.197/first.jsonl")),
    ("second", include_str!("samples/2.1.197/second.jsonl")),
    ("rate_limit", include_str!("samples/2.1.197/rate_limit.jsonl")),
    ("overloaded", include_str!("samples/2.1.197/overloaded.jsonl")),
    ("login", include_str!("samples/2.1.197/login.jsonl")),
    ("unknown_conversation", include_str!("samples/2.1.197/unknown_conversation.jsonl")),
    ("max_turns", include_str!("samples/2.1.197/max_turns.jsonl")),
];
const NEWER: [(&str, &str); 7] = [
    ("first", include_str!("samples/2.1.325/first.jsonl")),
    ("second", include_str!("samples/2.1.325/second.jsonl")),
    ("rate_limit", include_str!("samples/2.1.325/rate_limit.jsonl")),
    ("overloaded", include_str!("samples/2.1.325/overloaded.jsonl")),
    ("login", include_str!("samples/2.1.325/login.jsonl")),
    ("unknown_conversation", include_str!("samples/2.1.325/unknown_conversation.jsonl")),
    ("max_turns", include_str!("samples/2.1.325/max_turns.jsonl")),
];
const VERSIONS: [[(&str, &str); 7]; 2] = [OLDER, NEWER];

fn sample(version: &[(&str, &'static str)], name: &str) -> &'static str {
    version.iter().find(|(known, _)| *known == name).unwrap().1
}

fn play(text: &str) -> (Turn, Vec<TurnEvent>) {
    let mut turn = Turn::default();
    let said = text.lines().flat_map(|line| turn.take(line)).collect();
    (turn, said)
}

fn over(ended: Ended) -> Measured {
    match ended {
        Ended::Over(measured) => measured,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_turn_tells_its_conversation_its_tools_and_its_words() {
    for version in &VERSIONS {
        let (turn, said) = play(sample(version, "first"));
        let TurnEvent::Begun { conversation: Some(conversation), model: Some(model) } = &said[0] else {
            panic!("{said:?}")
        };
        assert!(conversation.starts_with("11111111-") && model.starts_with("claude-"), "{said:?}");
        let rest = [
            TurnEvent::Uses { tool: "Bash".into(), what: "cargo test -q".into() },
            TurnEvent::Did { tool: "Bash".into(), work: ToolUse::TestsFailed, succeeded: false },
            TurnEvent::Uses { tool: "Write".into(), what: "/srv/lab/proj/a.txt".into() },
            TurnEvent::Did { tool: "Write".into(), work: ToolUse::Edited, succeeded: true },
            TurnEvent::Spoke { text: "done".into() },
        ];
        assert_eq!(said[1..], rest);
        let measured = over(turn.end(Some(0), Sums::default(), ResultPromise::Always));
        assert!(measured.spent.tokens > 5000 && measured.spent.turns == 1, "{measured:?}");
        assert_eq!(measured.spent.micro_usd, measured.sums.micro_usd, "the first turn costs all there is");
        let gauge = measured.gauge.unwrap();
        assert_eq!((gauge.source, gauge.used_permille < 20), (Source::Transcript, true), "{gauge:?}");
    }
}

#[test]
fn a_turn_costs_what_it_costs_itself_whatever_the_sums_mean() {
    for version in &VERSIONS {
        let first =
            over(play(sample(version, "first")).0.end(Some(0), Sums::default(), ResultPromise::Always));
        let second = over(play(sample(version, "second")).0.end(Some(0), first.sums, ResultPromise::Always));
        assert!((2_000..20_000).contains(&second.spent.micro_usd), "{second:?}");
        assert!(second.spent.micro_usd < first.spent.micro_usd, "{first:?} {second:?}");
        let Ended::Failed { measured, .. } =
            play(sample(version, "rate_limit")).0.end(Some(1), second.sums, ResultPromise::Always)
        else {
            panic!("a rate limit is an error");
        };
        assert_eq!((measured.spent.micro_usd, measured.spent.tokens), (0, 0));
    }
}

#[test]
fn a_turn_tells_its_requests_by_class_while_it_runs_and_never_more_than_at_its_end() {
    for version in &VERSIONS {
        let mut turn = Turn::default();
        let mut before = turn.spent_so_far();
        for line in sample(version, "first").lines() {
            turn.take(line);
            let now = turn.spent_so_far();
            assert!(now.tokens >= before.tokens && now.micro_usd >= before.micro_usd);
            before = now;
        }
        let whole = over(turn.end(Some(0), Sums::default(), ResultPromise::Always)).spent;
        assert_eq!(whole.tokens, whole.classes.sum());
        assert_eq!(
            (before.classes.input, before.classes.cache_reads),
            (whole.classes.input, whole.classes.cache_reads)
        );
        assert!(before.classes.output <= whole.classes.output && before.classes.output > 0);
        assert!(before.micro_usd <= whole.micro_usd && before.micro_usd > 0, "{before:?} {whole:?}");
    }
}

#[test]
fn sums_of_an_older_version_without_classes_are_not_charged_again() {
    for version in &VERSIONS {
        let first =
            over(play(sample(version, "first")).0.end(Some(0), Sums::default(), ResultPromise::Always));
        let older = Sums { classes: Default::default(), ..first.sums };
        let second = |before| {
            over(play(sample(version, "second")).0.end(Some(0), before, ResultPromise::Always)).spent
        };
        assert_eq!(second(older), second(first.sums));
    }
}

#[test]
fn errors_have_claudes_names_in_every_version() {
    for version in &VERSIONS {
        for (name, wanted) in
            [("rate_limit", "rate_limit"), ("overloaded", "server_error"), ("login", "authentication_failed")]
        {
            let (turn, said) = play(sample(version, name));
            assert!(said.iter().any(|s| matches!(s, TurnEvent::Retries { .. })), "{said:?}");
            match turn.end(Some(1), Sums::default(), ResultPromise::Always) {
                Ended::Failed { error, details, until: None, .. } => {
                    assert_eq!(error, wanted);
                    assert!(details.contains("API Error"), "{details}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_service_that_names_no_error_is_known_by_its_status() {
    let end = |status: &str, said: &str| {
        let line = format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"result":"{said}"}}"#
        );
        match play(&line).0.end(Some(1), Sums::default(), ResultPromise::Always) {
            Ended::Failed { error, .. } => error,
            other => panic!("{other:?}"),
        }
    };
    for (status, said, name) in [
        ("429", "", "rate_limit"),
        ("529", "", "server_error"),
        ("403", "", "authentication_failed"),
        ("400", "Your credit balance is too low", "billing_error"),
        ("400", "bad", "invalid_request"),
        ("404", "", "model_not_found"),
        ("null", "", "unknown"),
    ] {
        assert_eq!(end(status, said), name, "{status} {said}");
    }
}

#[test]
fn a_conversation_that_is_not_there_is_a_death_and_a_limit_of_turns_is_none() {
    for version in &VERSIONS {
        match play(sample(version, "unknown_conversation")).0.end(
            Some(1),
            Sums::default(),
            ResultPromise::Always,
        ) {
            Ended::Died { why } => assert!(why.contains("No conversation found"), "{why}"),
            other => panic!("{other:?}"),
        }
        let (turn, _) = play(sample(version, "max_turns"));
        over(turn.end(Some(1), Sums::default(), ResultPromise::Always));
    }
}

#[test]
fn a_program_that_says_no_result_has_died_unless_it_need_not() {
    let (turn, _) = play("");
    let died = |exit, talks| matches!(turn.end(exit, Sums::default(), talks), Ended::Died { .. });
    assert!(died(Some(0), ResultPromise::Always), "it once ended so, with nothing done");
    assert!(died(Some(1), ResultPromise::Always) && died(None, ResultPromise::Always));
    assert!(!died(Some(0), ResultPromise::Perhaps));
    assert!(died(Some(3), ResultPromise::Perhaps) && died(None, ResultPromise::Perhaps));
}

#[test]
fn a_limit_says_when_it_is_over() {
    let text = concat!(
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1}}"#,
        "\n",
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794800000}}"#,
        "\n",
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"later"}"#,
    );
    match play(text).0.end(Some(1), Sums::default(), ResultPromise::Always) {
        Ended::Failed { until, .. } => assert_eq!(until, Some(Timestamp(1_794_800_000_000))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_window_is_the_spoken_to_models_own() {
    let text = |models: &str| {
        format!(
            "{}\n{}\n{}",
            r#"{"type":"system","subtype":"init","model":"m-1"}"#,
            r#"{"type":"assistant","message":{"usage":{"input_tokens":1000,"cache_read_input_tokens":59000},"content":[]}}"#,
            format_args!(r#"{{"type":"result","modelUsage":{models}}}"#),
        )
    };
    let gauge =
        |models: &str| over(play(&text(models)).0.end(Some(0), Sums::default(), ResultPromise::Always)).gauge;
    let measured = |used_permille| Some(Gauge { used_permille, source: Source::Transcript });
    assert_eq!(gauge(r#"{"m-1":{"contextWindow":100000},"h":{"contextWindow":200000}}"#), measured(600));
    assert_eq!(gauge(r#"{"x":{"contextWindow":200000}}"#), measured(300), "by another name");
    assert_eq!(gauge(r#"{"m-1":{"contextWindow":10}}"#), measured(1000));
    assert_eq!(gauge("{}"), None);
    assert_eq!(gauge(r#"{"m-1":{"contextWindow":0}}"#), None);
}

#[test]
fn hostile_lines_pass() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let long = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{}"}}]}}}}"#,
        "x".repeat(1 << 20)
    );
    let (mut turn, mut malformed) = (Turn::default(), 0);
    for line in [
        "",
        "  ",
        "not json",
        "[1,2]",
        "7",
        "null",
        "{\"type\":7}",
        "{\"type\":\"tomorrow\"}",
        "{\"type\":\"assistant\"}",
        "{\"type\":\"assistant\",\"message\":{\"content\":[1,null,{\"type\":\"tool_use\"}],\"usage\":[]}}",
        "{\"type\":\"user\",\"message\":{\"content\":[{\"tool_use_id\":{}}]}}",
        "{\"type\":\"result\",\"is_error\":\"yes\",\"total_cost_usd\":-1,\"usage\":7,\"modelUsage\":[]}",
        "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":9223372036854775807}}",
        "{\"type\":\"system\",\"subtype\":\"init\",\"model\":[1]}",
        &deep,
        &long,
    ] {
        for said in turn.take(line) {
            match said {
                TurnEvent::Malformed => malformed += 1,
                TurnEvent::Spoke { text } => assert!(text.len() <= super::SPOKEN_BYTES),
                _ => {}
            }
        }
    }
    assert_eq!(malformed, 5, "not json, no object, and too deep");
    let measured = over(turn.end(Some(0), Sums::default(), ResultPromise::Always));
    assert_eq!((measured.spent.micro_usd, measured.gauge), (0, None));
}

#[test]
fn tools_that_never_answer_do_not_pile_up() {
    let mut turn = Turn::default();
    for n in 0..1000 {
        turn.take(&format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t{n}","name":"Bash"}}]}}}}"#
        ));
    }
    assert_eq!(turn.tools.len(), super::TOOLS);
}

#[test]
fn a_helpers_error_is_not_the_turns() {
    let text = concat!(
        r#"{"type":"assistant","parent_tool_use_id":"t1","error":"rate_limit","message":{"content":[{"type":"text","text":"x"}]}}"#,
        "\n",
        r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#,
    );
    let (turn, said) = play(text);
    assert_eq!(said, []);
    over(turn.end(Some(0), Sums::default(), ResultPromise::Always));
}
