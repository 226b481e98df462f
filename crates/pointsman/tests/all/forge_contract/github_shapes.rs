//! What we ask of GitHub, and what our fake answers in its place, against GitHub's own descriptions, which
//! `scripts/github-shapes` has reduced to what we use.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use pointsman_adapters::secret::Secret;
use pointsman_adapters::webhook::{NewsTopic, WebhookListener, WebhookNews, WebhookReceiver};
use pointsman_testkit::fake_forgejo::Exchange;
use serde::Deserialize;
use serde_json::Value;

use super::behaviours::ALL;
use super::{github, graphql};

/// A value as the description has it.
#[derive(Deserialize)]
struct Shape {
    types: Vec<String>,
    #[serde(default)]
    properties: BTreeMap<String, Shape>,
    items: Option<Box<Shape>>,
}

#[derive(Deserialize)]
struct Operation {
    query: Vec<String>,
    body: Option<Shape>,
    answers: BTreeMap<String, Option<Shape>>,
}

impl Shape {
    /// Where a value is not as described; properties that the description does not have are left alone.
    fn mismatches(&self, value: &Value, at: &str, found: &mut Vec<String>) {
        let fits = |kind: &String| match kind.as_str() {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            other => panic!("the description knows a type {other}"),
        };
        if !self.types.is_empty() && !self.types.iter().any(fits) {
            found.push(format!("{at} is {value}, not {:?}", self.types));
            return;
        }
        for (name, inner) in value.as_object().into_iter().flatten() {
            if let Some(shape) = self.properties.get(name) {
                shape.mismatches(inner, &format!("{at}.{name}"), found);
            }
        }
        if let (Some(shape), Some(values)) = (&self.items, value.as_array()) {
            values.iter().for_each(|inner| shape.mismatches(inner, &format!("{at}[]"), found));
        }
    }
}

/// The described operation that a request is: the one with the most words of its path.
fn operation<'a>(
    all: &'a BTreeMap<String, Operation>,
    exchange: &Exchange,
) -> Option<(&'a String, &'a Operation)> {
    let path: Vec<&str> = exchange.path.iter().map(String::as_str).collect();
    let words = |name: &str| -> Option<usize> {
        let (method, template) = name.split_once(' ')?;
        let template: Vec<&str> = template.split('/').skip(1).collect();
        let same = |(given, known): (&&str, &&str)| known.starts_with('{') || given == known;
        let is =
            method == exchange.method && template.len() == path.len() && path.iter().zip(&template).all(same);
        is.then(|| template.iter().filter(|word| !word.starts_with('{')).count())
    };
    let fits = all.iter().filter_map(|(name, known)| Some((words(name)?, name, known)));
    fits.max_by_key(|(words, ..)| *words).map(|(_, name, known)| (name, known))
}

fn check(all: &BTreeMap<String, Operation>, exchange: &Exchange, found: &mut Vec<String>) {
    let Some((name, known)) = operation(all, exchange) else {
        found.push(format!("{} {:?} is not described", exchange.method, exchange.path));
        return;
    };
    // `limit` is meant for the other kind of server.
    let odd = exchange.query.iter().filter(|key| *key != "limit" && !known.query.contains(key));
    found.extend(odd.map(|key| format!("{name} has no parameter {key}")));
    match (&known.body, &exchange.body) {
        (_, Value::Null) => {}
        (None, _) => found.push(format!("{name} takes no body")),
        (Some(shape), body) => {
            let names = body.as_object().into_iter().flatten().map(|(key, _)| key);
            let odd = names.filter(|key| !shape.properties.contains_key(*key));
            found.extend(odd.map(|key| format!("{name} knows no {key}")));
            shape.mismatches(body, name, found);
        }
    }
    if !(200..300).contains(&exchange.status) {
        return;
    }
    match known.answers.get(&exchange.status.to_string()) {
        Some(Some(shape)) => shape.mismatches(&exchange.answer, name, found),
        Some(None) => {}
        None => found.push(format!("{name} never answers {}", exchange.status)),
    }
}

/// Compares exchanges with the description.
#[track_caller]
pub(super) fn check_all(recorded: &[Exchange]) {
    let mut found = Vec::new();
    recorded.iter().for_each(|exchange| check(&described(), exchange, &mut found));
    assert_eq!(found, [""; 0]);
}

fn described() -> BTreeMap<String, Operation> {
    serde_json::from_str(include_str!("../../data/github/rest.json")).unwrap()
}

#[test]
fn what_is_asked_and_what_the_fake_answers_is_as_github_describes_it() {
    let all = described();
    let (mut found, mut seen) = (Vec::new(), 0);
    for (_, behaviour) in ALL {
        let (fake, stage) = github::stage();
        fake.record();
        behaviour(&stage);
        let recorded = fake.recorded();
        seen += recorded.len();
        recorded.iter().for_each(|exchange| check(&all, exchange, &mut found));
    }
    assert!(seen > 100, "only {seen} exchanges");
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn what_is_not_as_described_is_found() {
    let all: BTreeMap<String, Operation> =
        serde_json::from_str(include_str!("../../data/github/rest.json")).unwrap();
    let path = |text: &str| text.split('/').map(str::to_owned).collect();
    let exchange = |method: &str, at: &str, body: Value, status: u16, answer: Value| Exchange {
        method: method.to_owned(),
        path: path(at),
        query: vec!["page".to_owned()],
        body,
        status,
        answer,
    };
    let wrong = [
        exchange("GET", "repos/a/b/nothing", Value::Null, 200, Value::Null),
        exchange("GET", "repos/a/b/issues/1", Value::Null, 200, serde_json::json!({ "number": "one" })),
        exchange("POST", "repos/a/b/pulls", serde_json::json!({ "heads": "x" }), 201, Value::Null),
        exchange("POST", "repos/a/b/labels", serde_json::json!({ "name": 7 }), 201, serde_json::json!({})),
        exchange("GET", "repos/a/b/labels", Value::Null, 201, serde_json::json!([])),
    ];
    for exchange in wrong {
        let mut found = Vec::new();
        check(&all, &exchange, &mut found);
        assert!(!found.is_empty(), "{exchange:?}");
    }
}

#[test]
fn the_documents_about_boards_are_valid() {
    let schema: graphql::Schema =
        serde_json::from_str(include_str!("../../data/github/graphql.json")).unwrap();
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../pointsman-adapters/src/forge/github/board");
    let mut checked = 0;
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|kind| kind == "graphql") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(graphql::check(&schema, &text), Ok(()), "{}", path.display());
            checked += 1;
        }
    }
    assert_eq!(checked, 7);
    for wrong in [
        "query A { nothing { id } }",
        "query A($n: Int!) { repository(owner: \"a\", name: \"b\") { issue(number: $n) { id color } } }",
        "query A($n: String!) { repository(owner: \"a\", name: \"b\") { issue(number: $n) { id } } }",
        "query A { repository(owner: \"a\") { id } }",
        "query A { repository(owner: \"a\", name: \"b\", size: 3) { id } }",
        "query A { repository(owner: \"a\", name: $missing) { id } }",
        "query A { repository(owner: \"a\", name: \"b\") { issue(number: 1) } }",
        "mutation A { addProjectV2ItemById(input: { projectId: \"a\" }) { item { id } } }",
        "query A { node(id: \"a\") { ... on Nothing { id } } }",
    ] {
        assert!(graphql::check(&schema, wrong).is_err(), "{wrong}");
    }
}

#[derive(Default)]
struct Rung(Mutex<Vec<WebhookNews>>);

impl WebhookReceiver for Rung {
    fn secret(&self, _project: &str) -> Option<Secret> {
        Secret::new("hush")
    }

    fn ring(&self, _project: &str, ring: WebhookNews) {
        self.0.lock().unwrap().push(ring);
    }
}

#[test]
fn github_s_own_examples_of_webhooks_are_understood() {
    let examples: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("../../data/github/webhooks.json")).unwrap();
    let rung = Arc::new(Rung::default());
    let webhook_listener =
        WebhookListener::open(SocketAddr::from(([127, 0, 0, 1], 0)), Arc::clone(&rung) as _).unwrap();
    assert_eq!(examples.len(), 7);
    for (event, example) in examples {
        let body = example.to_string();
        let mut stream = TcpStream::connect(webhook_listener.address()).unwrap();
        let head = format!(
            "POST /webhook/shop HTTP/1.1\r\nAuthorization: Bearer hush\r\nX-GitHub-Event: {event}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream.read_to_string(&mut String::new()).unwrap();
        let about = match event.as_str() {
            "push" => NewsTopic::Push,
            "check_run" => NewsTopic::Checks,
            "status" if example["state"] == "pending" => NewsTopic::Begun,
            "status" => NewsTopic::Checks,
            _ => NewsTopic::Talk,
        };
        let by = example["sender"]["login"].as_str().map(str::to_owned);
        assert!(by.is_some());
        assert_eq!(rung.0.lock().unwrap().pop(), Some(WebhookNews { about, by }), "{event}");
    }
}
