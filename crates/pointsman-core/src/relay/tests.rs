//! What the relay passes on, counts and refuses.

use serde_json::{Value, json};

use super::anthropic::{Call, authorization, check_body, long_wait, passes_header, refusal};
use super::pool::{Ceiling, Pool, Pools, reservation};
use super::usage::{AnswerReader, SessionUsage};
use super::{CredentialName, Unpassed, Upstream};
use crate::role::Role;
use crate::session::budget::{Limit, Spent, TokenClasses};

#[test]
fn only_the_named_calls_are_passed_on() {
    for (method, target, call) in [
        ("POST", "/v1/messages", Ok(Call::Messages)),
        ("POST", "/v1/messages?beta=true", Ok(Call::Messages)),
        ("POST", "/v1/messages/count_tokens?beta=true", Ok(Call::CountTokens)),
        ("GET", "/v1/models?limit=1000", Ok(Call::Models)),
        ("GET", "/v1/models/claude-opus-4-8", Ok(Call::Models)),
        ("HEAD", "/", Ok(Call::Hello)),
        ("GET", "/v1/messages", Err(Unpassed::Path)),
        ("DELETE", "/v1/models/claude-opus-4-8", Err(Unpassed::Path)),
        ("POST", "/v1/files", Err(Unpassed::Path)),
        ("GET", "/v1/files", Err(Unpassed::Path)),
        ("POST", "/v1/messages/batches", Err(Unpassed::Path)),
        ("GET", "/v1/organizations/api_keys", Err(Unpassed::Path)),
        ("POST", "/v1/messages/../files", Err(Unpassed::Path)),
        ("POST", "//v1/messages", Err(Unpassed::Path)),
        ("POST", "/v1/messages%2f..%2ffiles", Err(Unpassed::Path)),
        ("GET", "/v1/models/../files", Err(Unpassed::Path)),
        ("POST", "/v1/messages?x=%0d%0a", Err(Unpassed::Path)),
        ("post", "/v1/messages", Err(Unpassed::Path)),
    ] {
        assert_eq!(Call::of(method, target), call, "{method} {target}");
    }
}

#[test]
fn no_header_that_can_be_a_credential_is_passed_on() {
    for name in ["Accept", "content-type", "anthropic-beta", "x-stainless-lang", "User-Agent"] {
        assert!(passes_header(name), "{name}");
    }
    for name in [
        "x-api-key",
        "Authorization",
        "cookie",
        "Proxy-Authorization",
        "proxy-connection",
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "x-forwarded-for",
        "x-goog-api-key",
        "accept-encoding",
        "expect",
        "forwarded",
        "upgrade",
        "te",
        "anthropic-admin-key",
    ] {
        assert!(!passes_header(name), "{name}");
    }
}

#[test]
fn a_credential_has_its_own_header() {
    let mut beta = Some("a-1, oauth-2025-04-20,b-2".to_owned());
    assert_eq!(authorization(CredentialName::ApiKey, "k", &mut beta), ("x-api-key", "k".to_owned()));
    assert_eq!(beta.as_deref(), Some("a-1, oauth-2025-04-20,b-2"));
    assert_eq!(authorization(CredentialName::Login, "t", &mut beta).1, "Bearer t");
    assert_eq!(beta.as_deref(), Some("a-1,b-2,oauth-2025-04-20"));
    let mut none = None;
    authorization(CredentialName::OauthToken, "t", &mut none);
    assert_eq!(none.as_deref(), Some("oauth-2025-04-20"));
    let mut gateway = None;
    assert_eq!(authorization(CredentialName::AuthToken, "t", &mut gateway).0, "authorization");
    assert_eq!(gateway, None);
}

#[test]
fn a_strangers_issue_makes_the_service_fetch_and_run_nothing() {
    let message = |block: Value| json!({ "messages": [{ "role": "user", "content": [block] }] });
    let url = json!({ "type": "url", "url": "https://evil.example.org/?data" });
    let image = |source: &Value| json!({ "type": "image", "source": source });
    let nested = json!({ "type": "tool_result", "content": [image(&url)] });
    let document = json!({ "type": "document", "source": { "type": "content", "content": [image(&url)] } });
    let tool = |kind: &str| json!({ "tools": [{ "type": kind, "name": "x" }] });
    let refused = [
        message(image(&url)),
        message(nested),
        message(document),
        message(image(&json!({ "type": "file", "file_id": "file_1" }))),
        message(image(&json!({ "type": ["url"] }))),
        message(image(&json!({ "url": "https://evil.example.org/" }))),
        message(json!({ "type": "container_upload", "file_id": "file_1" })),
        json!({ "system": [image(&url)] }),
        tool("web_search_20250305"),
        tool("web_fetch_20250910"),
        tool("code_execution_20250825"),
        tool("computer_20250124"),
        tool("mcp_toolset"),
        tool("something_new"),
        json!({ "tools": [{ "type": 7 }] }),
        json!({ "mcp_servers": [{ "url": "https://evil.example.org/" }] }),
        json!({ "container": "c-1" }),
    ];
    for body in refused {
        let text = body.to_string();
        assert!(check_body(text.as_bytes(), true).is_err(), "{text}");
        assert_eq!(check_body(text.as_bytes(), false).map(drop), Ok(()), "people may: {text}");
    }
    let passed = [
        json!({ "tools": [{ "name": "Bash", "input_schema": {} }, { "type": "custom" }, { "type": "bash_20250124" }] }),
        message(image(&json!({ "type": "base64", "data": "aGk=" }))),
        message(json!({ "type": "tool_use", "input": { "source": { "type": "url" } } })),
        json!({ "mcp_servers": [], "container": null, "messages": [{ "role": "user", "content": "hi" }] }),
        json!({ "system": "a text about web_search_20250305" }),
    ];
    for body in passed {
        assert_eq!(check_body(body.to_string().as_bytes(), true).map(drop), Ok(()), "{body}");
    }
}

#[test]
fn a_request_that_two_readers_read_differently_is_passed_on_for_nobody() {
    for text in [
        r#"{"tools": [{"type": "web_search_20250305"}], "tools": []}"#,
        r#"{"messages": [{"content": [], "\u0063ontent": []}]}"#,
        "{} {}",
        "[]",
        "\"text\"",
        "",
    ] {
        for of_stranger in [true, false] {
            let found = check_body(text.as_bytes(), of_stranger);
            assert!(matches!(found, Err(Unpassed::Unreadable(_))), "{text}: {found:?}");
        }
    }
}

#[test]
fn addresses_of_gateways_are_read() {
    let read = |url| Upstream::parse(url).map(|up| (up.tls, up.destination.to_string(), up.path));
    assert_eq!(read("https://api.anthropic.com"), Ok((true, "api.anthropic.com:443".into(), String::new())));
    assert_eq!(read("http://127.0.0.1:8080/x/"), Ok((false, "127.0.0.1:8080".into(), "/x".into())));
    for url in
        ["api.anthropic.com", "ftp://x", "https://u:p@x/", "https://x/?a", "https://x/../y", "https://x y/"]
    {
        assert!(Upstream::parse(url).is_err(), "{url}");
    }
}

const STREAM: &str = "event: message_start\n\
    data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-opus-4-8\",\"usage\":{\"input_tokens\":10,\
    \"cache_creation_input_tokens\":200,\"cache_read_input_tokens\":3000,\"output_tokens\":1}}}\n\n\
    event: content_block_delta\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"the \\\"usage\\\" is 9\"}}\n\n\
    event: message_delta\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":40}}\n\n\
    event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

#[test]
fn the_usage_of_a_stream_is_read_however_it_is_cut() {
    for size in [1, 2, 7, 100, 10_000] {
        let mut reader = AnswerReader::new(true, 0);
        STREAM.as_bytes().chunks(size).for_each(|piece| reader.read(piece));
        let call = reader.finish();
        let classes = TokenClasses { input: 10, cache_writes: 200, cache_reads: 3000, output: 40 };
        assert_eq!(
            (call.classes, call.is_estimate, call.model.as_str()),
            (classes, false, "claude-opus-4-8")
        );
        // 10 · 5 + 200 · 6.25 + 3000 · 0.5 + 40 · 25 millionths of a dollar.
        assert_eq!(call.nano_usd, 3_800_000);
    }
}

#[test]
fn an_answer_that_breaks_off_is_estimated_and_says_so() {
    let cut = STREAM.find("event: message_delta").unwrap();
    let mut reader = AnswerReader::new(true, 0);
    reader.read(&STREAM.as_bytes()[..cut]);
    let long = format!("data: {{\"type\":\"content_block_delta\",\"x\":\"{}\"}}\n", "word".repeat(1000));
    reader.read(long.as_bytes());
    let call = reader.finish();
    assert!(call.is_estimate);
    assert_eq!(call.classes.cache_reads, 3000);
    assert!((900..1100).contains(&call.classes.output), "{}", call.classes.output);
    assert!(call.nano_usd > 900 * 25_000);
    let nothing = AnswerReader::new(true, 4000).finish();
    assert_eq!((nothing.classes.input, nothing.is_estimate), (1000, true));
}

#[test]
fn the_usage_of_a_whole_answer_is_read_at_its_end() {
    let text = json!({ "model": "m", "usage": { "input_tokens": 5, "output_tokens": 2 } }).to_string();
    let mut reader = AnswerReader::new(false, 0);
    text.as_bytes().chunks(9).for_each(|piece| reader.read(piece));
    let call = reader.finish();
    assert_eq!((call.classes.input, call.classes.output, call.is_estimate), (5, 2, false));
}

fn used(tokens: u64) -> SessionUsage {
    let mut usage = SessionUsage::new("dev-shop-1.1", Role::Dev);
    let text = json!({ "model": "m", "usage": { "input_tokens": tokens, "output_tokens": 0 } }).to_string();
    let mut reader = AnswerReader::new(false, 0);
    reader.read(text.as_bytes());
    usage.add(&reader.finish());
    usage
}

#[test]
fn sums_are_kept_by_model() {
    let mut usage = used(100);
    let mut reader = AnswerReader::new(true, 0);
    reader.read(STREAM.as_bytes());
    usage.add(&reader.finish());
    assert_eq!(usage.models["m"].classes.input, 100);
    assert_eq!(usage.models["claude-opus-4-8"].calls, 1);
    assert_eq!((usage.spent().tokens, usage.spent().micro_usd), (3350, 3800));
    let text = serde_json::to_string(&usage).unwrap();
    assert_eq!(serde_json::from_str::<SessionUsage>(&text).unwrap(), usage);
}

#[test]
fn a_budget_holds_over_sessions_and_calls_under_way() {
    let limit = Limit { tokens: Some(1000), ..Limit::default() };
    let spent = |tokens| Spent { tokens, ..Spent::default() };
    // The daemon has counted 600, of which the sessions of the relay have used 250.
    let ceiling = Ceiling::of(limit, spent(600), spent(250)).unwrap();
    assert_eq!(ceiling.tokens, Some(650));
    assert_eq!(Ceiling::of(Limit { turns: Some(3), ..Limit::default() }, spent(1), spent(1)), None);
    let pool = Pool { what: "day".into(), ceiling, sessions: vec!["a".into(), "over".into()] };
    let pools = Pools([("day".to_owned(), pool)].into());
    let admit = |a, b, over| {
        let usage = move |name: &str| match name {
            "a" => spent(a),
            "b" => spent(b),
            _ => spent(over),
        };
        pools
            .admit(&["day".to_owned(), "unknown".to_owned()], usage, |_| vec!["b".to_owned(), "a".to_owned()])
            .err()
    };
    assert_eq!(admit(250, 0, 0), None);
    assert_eq!(admit(300, 349, 0), None);
    assert_eq!(admit(300, 350, 0), Some("day"));
    assert_eq!(admit(300, 250, 100), Some("day"), "a session that is over still counts");
    let first = reservation(&SessionUsage::new("s", Role::Dev), 400_000, "claude-sonnet-4-5");
    assert_eq!(
        (first.tokens, first.micro_usd),
        (100_000, 300_000),
        "a budget in dollars holds for the first calls too"
    );
    assert_eq!(reservation(&used(70), 4_000_000, "claude-sonnet-4-5").tokens, 70);
}

#[test]
fn only_a_long_wait_of_the_credential_counts() {
    let now = 1_000_000;
    let wait = |status, name: &'static str, value: &'static str| {
        long_wait(status, |asked| (asked == name).then_some(value), now)
    };
    assert_eq!(wait(429, "retry-after", "600"), Some(600));
    assert_eq!(wait(429, "anthropic-ratelimit-unified-reset", "1003600"), Some(3600));
    assert_eq!(wait(429, "retry-after", "99999999"), Some(86_400));
    for (status, name, value) in [
        (529, "retry-after", "600"),
        (429, "retry-after", "3"),
        (429, "retry-after", "soon"),
        (429, "anthropic-ratelimit-unified-reset", "5"),
        (429, "x", "600"),
    ] {
        assert_eq!(wait(status, name, value), None, "{status} {name} {value}");
    }
}

#[test]
fn a_refusal_has_the_shape_of_an_error_of_the_api() {
    let (status, wait, body) = refusal(&Unpassed::Budget("task: 5.00 of 5.00 USD".into()));
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, body["error"]["type"].as_str()), (429, Some("rate_limit_error")));
    assert!(wait.unwrap() >= 90, "the agent does not try again by itself");
    assert!(body["error"]["message"].as_str().unwrap().contains("5.00 of 5.00 USD"));
    assert_eq!(refusal(&Unpassed::Path).0, 404);
}
