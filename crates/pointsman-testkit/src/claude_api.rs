//! A scripted stand-in for the Messages API, so that the real Claude Code runs without a network and without a model.
//!
//! A test says what the model does when a prompt holds some words: one step per answer, and a step that uses a tool is
//! followed by the next one. Where the model is in its steps is read off the conversation itself, so that a resumed or
//! restarted session goes on where it was.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// A request with the whole conversation of a test.
const LARGEST: u64 = 64 << 20;
/// How a prompt begins that arrives while the agent works.
const MEANWHILE: &str = "The user sent a new message while you were working:";

/// What the model does next.
#[derive(Clone, Debug)]
pub enum Step {
    Bash(String),
    /// Says something; its turn ends.
    Text(String),
    /// The service answers with this status instead.
    Error(u16),
    /// The same, once; then the model goes on with the next step.
    ErrorOnce(u16),
    /// The account has to wait for so many seconds.
    Limited(u32),
}

/// What the model does when a prompt holds these words.
struct Rule {
    words: String,
    steps: Vec<Step>,
    errors_given: usize,
}

/// The server. It listens on the loopback interface until the process ends.
pub struct ClaudeApi {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    requests: Vec<Value>,
    usages: Vec<Value>,
    keys: Vec<String>,
}

impl ClaudeApi {
    /// Starts it.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback interface is there");
        let port = listener.local_addr().expect("it was just bound").port();
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { port, state }
    }

    /// Where it is: `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// When a prompt holds `words`, the model does this. The words that come last in it count.
    pub fn when(&self, words: &str, steps: &[Step]) {
        let rule = Rule { words: words.to_owned(), steps: steps.to_vec(), errors_given: 0 };
        lock(&self.state).rules.push(rule);
    }

    /// All requests to the model so far, without those on the side.
    pub fn requests(&self) -> Vec<Value> {
        lock(&self.state).requests.clone()
    }

    /// The usage of every answer that was given out, those on the side among them.
    pub fn usages(&self) -> Vec<Value> {
        lock(&self.state).usages.clone()
    }

    /// The credential of every call that has one.
    pub fn keys(&self) -> Vec<String> {
        lock(&self.state).keys.clone()
    }

    /// Whether a request to the model held this text anywhere.
    pub fn was_told(&self, text: &str) -> bool {
        let escaped = Value::from(text).to_string();
        let inner = escaped.trim_matches('"');
        lock(&self.state).requests.iter().any(|request| request.to_string().contains(inner))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the requests of one connection; a client that goes away ends it.
fn serve(stream: &TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    while let Some((method, path, body)) = request(&mut reader, state) {
        // A server takes a whole address as well.
        let path = path
            .strip_prefix("http://")
            .map_or(path.as_str(), |rest| &rest[rest.find('/').unwrap_or(rest.len())..]);
        let path = path.split('?').next().unwrap_or_default();
        let answered = match (method.as_str(), path) {
            ("POST", "/v1/messages") => answer(stream, &body, state),
            ("POST", "/v1/messages/count_tokens") => reply(stream, 200, &json!({ "input_tokens": 100 })),
            ("GET" | "HEAD", _) => reply(stream, 200, &json!({ "data": [], "has_more": false })),
            _ => {
                eprintln!("{method} {path} is not part of the scripted API");
                reply(stream, 404, &error("not_found_error"))
            }
        };
        if answered.is_err() {
            return;
        }
    }
}

fn request(reader: &mut BufReader<&TcpStream>, state: &Mutex<State>) -> Option<(String, String, Value)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim();
        if header.is_empty() {
            break;
        }
        match header.split_once(':') {
            Some((name, value))
                if name.eq_ignore_ascii_case("x-api-key") || name.eq_ignore_ascii_case("authorization") =>
            {
                lock(state).keys.push(value.trim().to_owned());
            }
            _ => {}
        }
        let header = header.to_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = Vec::new();
    reader.by_ref().take(length).take(LARGEST).read_to_end(&mut body).ok()?;
    Some((method, path, serde_json::from_slice(&body).unwrap_or_default()))
}

fn answer(stream: &TcpStream, body: &Value, state: &Mutex<State>) -> std::io::Result<()> {
    let prompt = Prompt::of(body);
    if prompt.text.contains("create a detailed summary") {
        let summary = "<analysis>none</analysis>\n<summary>\nThe work goes on.\n</summary>";
        return say(stream, body, &[json!({ "type": "text", "text": summary })], state);
    }
    if body["tools"].as_array().is_none_or(Vec::is_empty) {
        return say(stream, body, &[json!({ "type": "text", "text": "{\"title\": \"A test\"}" })], state);
    }
    let step = {
        let mut state = lock(state);
        state.requests.push(body.clone());
        next_step(&mut state.rules, &prompt)
    };
    match step {
        Step::Error(status) | Step::ErrorOnce(status) => {
            let kind = match status {
                401 => "authentication_error",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                _ => "api_error",
            };
            reply(stream, status, &error(kind))
        }
        Step::Limited(seconds) => {
            let body = error("rate_limit_error").to_string();
            let length = body.len();
            let head = format!(
                "HTTP/1.1 429 X\r\ncontent-type: application/json\r\nretry-after: {seconds}\r\ncontent-length: {length}\r\n\r\n"
            );
            let mut stream = stream;
            stream.write_all(head.as_bytes())?;
            stream.write_all(body.as_bytes())
        }
        Step::Text(text) => say(stream, body, &[json!({ "type": "text", "text": text })], state),
        Step::Bash(command) => {
            let id =
                format!("toolu_{:022}", prompt.results + body["messages"].as_array().map_or(0, Vec::len));
            let input = json!({ "command": command, "description": "a scripted step" });
            say(
                stream,
                body,
                &[json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input })],
                state,
            )
        }
    }
}

fn next_step(rules: &mut [Rule], prompt: &Prompt) -> Step {
    let done = || Step::Text("Nothing to do.".to_owned());
    // Prompts that waited together arrive as one: the last of them counts.
    let newest = rules
        .iter_mut()
        .filter_map(|rule| Some((prompt.text.rfind(&rule.words)?, rule)))
        .max_by_key(|(at, _)| *at);
    let Some((_, rule)) = newest else { return done() };
    // Errors leave no trace in the conversation: they are counted here.
    let given = rule.errors_given;
    let once = rule.steps.iter().filter(|step| matches!(step, Step::ErrorOnce(_))).count();
    let at = prompt.results + given.min(once);
    match rule.steps.get(at).or(rule.steps.last().filter(|step| matches!(step, Step::Error(_)))) {
        Some(step @ Step::ErrorOnce(_)) => {
            rule.errors_given += 1;
            step.clone()
        }
        Some(step) => step.clone(),
        None => done(),
    }
}

/// The last thing the person said, and how many tools have answered since.
struct Prompt {
    text: String,
    results: usize,
}

impl Prompt {
    fn of(body: &Value) -> Self {
        let mut results = 0;
        for message in body["messages"].as_array().into_iter().flatten().rev() {
            let blocks: Vec<&Value> = message["content"].as_array().into_iter().flatten().collect();
            let mut texts =
                blocks.iter().filter_map(|block| block["text"].as_str()).chain(message["content"].as_str());
            if message["role"] == "system" {
                let meanwhile = texts
                    .filter_map(|text| match text.split_once(MEANWHILE) {
                        Some((_, said)) => Some(said),
                        None => told_by_a_hook(text).then_some(text),
                    })
                    .next_back();
                if let Some(said) = meanwhile {
                    return Self { text: said.to_owned(), results };
                }
                continue;
            }
            if message["role"] != "user" {
                continue;
            }
            let tools = blocks.iter().any(|block| block["type"] == "tool_result");
            let said = texts.rfind(|text| !text.trim_start().starts_with('<') || told_by_a_hook(text));
            match said {
                Some(text) if !tools || text.contains("[pointsman m-") => {
                    return Self { text: text.to_owned(), results };
                }
                _ => results += usize::from(tools),
            }
        }
        Self { text: String::new(), results }
    }
}

/// Whether Claude puts a message of ours before the model in words of its own.
fn told_by_a_hook(text: &str) -> bool {
    let number = |line: &str| line.strip_prefix("[pointsman m-")?.split_once(']')?.0.parse::<u64>().ok();
    text.lines().any(|line| number(line).is_some())
}

/// Claude takes answers of the same id for parts of one.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn error(kind: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": format!("scripted {kind}") } })
}

fn reply(mut stream: &TcpStream, status: u16, body: &Value) -> std::io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nrequest-id: req_test\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Says it as a stream, or whole, as the client wants it.
fn say(mut stream: &TcpStream, body: &Value, blocks: &[Value], state: &Mutex<State>) -> std::io::Result<()> {
    let uses_tool = blocks.iter().any(|block| block["type"] == "tool_use");
    let stop = if uses_tool { "tool_use" } else { "end_turn" };
    let tokens = body["messages"].to_string().len() / 4 + 1;
    let usage = json!({
        "input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10,
    });
    lock(state).usages.push(usage.clone());
    let message = json!({
        "id": format!("msg_{:022}", unique()), "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    if body["stream"] != true {
        let mut whole = message;
        whole["content"] = json!(blocks);
        whole["stop_reason"] = json!(stop);
        return reply(stream, 200, &whole);
    }
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_test\r\nconnection: close\r\n\r\n",
    )?;
    let mut event = |name: &str, mut data: Value| {
        data["type"] = json!(name);
        stream.write_all(format!("event: {name}\ndata: {data}\n\n").as_bytes())
    };
    event("message_start", json!({ "message": message }))?;
    for (index, block) in blocks.iter().enumerate() {
        let (empty, delta) = if block["type"] == "text" {
            (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": block["text"] }))
        } else {
            let start = json!({ "type": "tool_use", "id": block["id"], "name": block["name"], "input": {} });
            (start, json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() }))
        };
        event("content_block_start", json!({ "index": index, "content_block": empty }))?;
        event("content_block_delta", json!({ "index": index, "delta": delta }))?;
        event("content_block_stop", json!({ "index": index }))?;
    }
    event(
        "message_delta",
        json!({ "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": usage }),
    )?;
    event("message_stop", json!({}))?;
    // The end of a stream without a length is the end of the connection.
    stream.shutdown(std::net::Shutdown::Both)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Prompt, Rule, Step, next_step};

    fn rule(steps: &[Step]) -> Vec<Rule> {
        vec![Rule { words: "go".into(), steps: steps.to_vec(), errors_given: 0 }]
    }

    #[test]
    fn the_place_in_the_script_is_read_off_the_conversation() {
        let body = json!({ "messages": [
            { "role": "user", "content": "old" },
            { "role": "assistant", "content": [] },
            { "role": "user", "content": [{ "type": "text", "text": "go on" }] },
            { "role": "assistant", "content": [{ "type": "tool_use" }] },
            { "role": "user", "content": [
                { "type": "tool_result", "content": "x" }, { "type": "text", "text": "<system-reminder>y" },
            ] },
        ] });
        let prompt = Prompt::of(&body);
        assert_eq!((prompt.text.as_str(), prompt.results), ("go on", 1));
    }

    #[test]
    fn an_error_that_comes_once_is_followed_by_the_rest() {
        let mut rules = rule(&[Step::ErrorOnce(429), Step::Bash("a".into()), Step::Text("b".into())]);
        let prompt = |results| Prompt { text: "go".into(), results };
        assert!(matches!(next_step(&mut rules, &prompt(0)), Step::ErrorOnce(429)));
        assert!(matches!(next_step(&mut rules, &prompt(0)), Step::Bash(_)));
        assert!(matches!(next_step(&mut rules, &prompt(1)), Step::Text(_)));
    }
}
