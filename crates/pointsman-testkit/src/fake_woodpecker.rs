//! A Woodpecker 3.x for tests: pipelines by commit, workflows and steps, logs, restarts; errors are plain text, as the
//! real one's are. Built from its API description.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pointsman_core::base64;
use serde_json::{Value, json};

use crate::http::{Reply, Request, Server};
use crate::mutation::broken;

/// The token it takes.
pub const TOKEN: &str = "woodpecker-token-77ab";
/// The repository's number.
pub const REPO_ID: u64 = 7;
/// The repository's name.
pub const REPO: &str = "ann/shop";

/// A running server.
pub struct FakeWoodpecker {
    server: Server,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    version: String,
    pipelines: Vec<Pipeline>,
    /// How often logs are still asked for in vain.
    late_looks: Option<u32>,
    /// Whether the token is taken no more.
    revoked: bool,
}

struct Pipeline {
    number: u64,
    parent: u64,
    event: String,
    commit: String,
    status: String,
    steps: Vec<(String, i32, String)>,
}

impl FakeWoodpecker {
    /// Starts one that calls itself this version.
    pub fn start(version: &str) -> Self {
        let state = Arc::new(Mutex::new(State { version: version.to_owned(), ..State::default() }));
        let answering = Arc::clone(&state);
        let server = Server::start(move |request| {
            answer(&mut answering.lock().unwrap_or_else(PoisonError::into_inner), request)
        });
        Self { server, state }
    }

    /// Its address.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// A pipeline that runs; answers its number.
    pub fn run(&self, event: &str, commit: &str) -> u64 {
        self.state().add(0, event, commit)
    }

    /// Ends a pipeline: its status, and its steps with exit code and log.
    pub fn end(&self, number: u64, status: &str, steps: &[(&str, i32, &str)]) {
        let mut state = self.state();
        let pipeline = state.pipelines.iter_mut().find(|p| p.number == number).expect("there is one");
        pipeline.status = status.to_owned();
        pipeline.steps =
            steps.iter().map(|(name, exit, log)| ((*name).to_owned(), *exit, (*log).to_owned())).collect();
    }

    /// From now on a log is there only when it is asked for the third time, as on a real server, which stores it a
    /// moment after the status.
    pub fn logs_come_late(&self) {
        self.state().late_looks = Some(2);
    }

    /// From now on the token is refused.
    pub fn revoke_token(&self) {
        self.state().revoked = true;
    }

    /// All pipelines: number, parent, commit, status.
    pub fn pipelines(&self) -> Vec<(u64, u64, String, String)> {
        let state = self.state();
        let one = |p: &Pipeline| (p.number, p.parent, p.commit.clone(), p.status.clone());
        state.pipelines.iter().map(one).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, parent: u64, event: &str, commit: &str) -> u64 {
        let number = self.pipelines.len() as u64 + 1;
        let (event, commit) = (event.to_owned(), commit.to_owned());
        self.pipelines.push(Pipeline {
            number,
            parent,
            event,
            commit,
            status: "running".to_owned(),
            steps: Vec::new(),
        });
        number
    }

    fn find(&self, number: &str) -> Option<&Pipeline> {
        self.pipelines.iter().find(|pipeline| pipeline.number.to_string() == number)
    }
}

fn plain(status: u16, text: &str) -> Reply {
    Reply::empty(status).with("Content-Type", "text/plain; charset=utf-8").body(text)
}

fn answer(state: &mut State, request: &Request) -> Reply {
    let segments = request.segments();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    // Before 1.0 there was no such address.
    let is_old = state.version.starts_with("0.") && !broken("woodpecker-old-version");
    if segments == ["version"] && !is_old {
        return Reply::json(
            200,
            &json!({ "source": "https://woodpecker.invalid", "version": state.version }),
        );
    }
    let Some(rest) = segments.strip_prefix(&["api"]) else {
        return Reply::html(200, "<!doctype html><title>Woodpecker</title>");
    };
    let known = request.header("authorization") == Some(&format!("Bearer {TOKEN}"));
    if state.revoked || !(known || broken("woodpecker-token")) {
        return plain(401, "User not authorized");
    }
    let id = REPO_ID.to_string();
    match (request.method.as_str(), rest) {
        ("GET", ["repos", "lookup", owner, name]) if format!("{owner}/{name}") == REPO => {
            Reply::json(200, &json!({ "id": REPO_ID, "full_name": REPO, "active": true }))
        }
        ("GET", ["repos", repo, "pipelines"]) if *repo == id => {
            let number =
                |name: &str, else_: usize| request.query(name).and_then(|t| t.parse().ok()).unwrap_or(else_);
            let size = number("perPage", 25).min(50);
            let newest = state.pipelines.iter().rev().skip((number("page", 1) - 1) * size).take(size);
            // A list has no workflows.
            Reply::json(
                200,
                &newest
                    .map(|pipeline| shown(pipeline, broken("woodpecker-list-without-workflows")))
                    .collect(),
            )
        }
        ("GET", ["repos", repo, "pipelines", number]) if *repo == id => state
            .find(number)
            .map_or_else(|| plain(404, ""), |pipeline| Reply::json(200, &shown(pipeline, true))),
        ("POST", ["repos", repo, "pipelines", number]) if *repo == id => {
            let Some((parent, event, commit)) =
                state.find(number).map(|p| (p.number, p.event.clone(), p.commit.clone()))
            else {
                return plain(404, "");
            };
            let parent = if broken("woodpecker-restart") { 0 } else { parent };
            let made = state.add(parent, &event, &commit);
            state
                .find(&made.to_string())
                .map_or_else(|| plain(500, ""), |p| Reply::json(200, &shown(p, true)))
        }
        ("GET", ["repos", repo, "logs", _, _])
            if *repo == id && state.late_looks.is_some_and(|n| n > 0) && !broken("woodpecker-late-log") =>
        {
            state.late_looks = state.late_looks.map(|n| n - 1);
            Reply::json(200, &Value::Null)
        }
        ("GET", ["repos", repo, "logs", number, step]) if *repo == id => {
            let step = step.parse::<usize>().unwrap_or(0) % 100;
            let found = state.find(number).and_then(|pipeline| pipeline.steps.get(step));
            let line = |(n, text): (usize, &str)| json!({ "line": n, "data": base64::encode(text.as_bytes()), "type": 0 });
            found.map_or_else(
                || plain(404, ""),
                |(_, _, log)| Reply::json(200, &log.lines().enumerate().map(line).collect()),
            )
        }
        _ => plain(404, "404 page not found"),
    }
}

fn shown(pipeline: &Pipeline, whole: bool) -> Value {
    let step = |(n, (name, exit, _)): (usize, &(String, i32, String))| {
        let state = if *exit == 0 { "success" } else { pipeline.status.as_str() };
        json!({ "id": pipeline.number * 100 + n as u64, "pid": n + 1, "name": name, "state": state, "exit_code": exit })
    };
    let steps: Vec<Value> = pipeline.steps.iter().enumerate().map(step).collect();
    let workflows = json!([{ "name": "ci", "state": pipeline.status, "children": steps }]);
    json!({
        "id": pipeline.number, "number": pipeline.number, "parent": pipeline.parent, "event": pipeline.event,
        "status": pipeline.status, "commit": pipeline.commit, "branch": "main", "message": "Change things\n",
        "created": 1_700_000_000 + pipeline.number, "finished": 0, "errors": null,
        "workflows": if whole { workflows } else { Value::Null },
    })
}
