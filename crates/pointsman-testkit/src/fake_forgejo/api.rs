//! Who asks for what, and may they?

use serde_json::{Value, json};

use super::{Exchange, Pushed, REPO, Shared, State, board, git, github, gitlab, hooks, issues, json, pulls};
use crate::http::{Reply, Request};
use crate::mutation::broken;

/// A request that was let in.
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    pub(super) who: String,
    pub(super) body: Value,
}

pub(super) fn answer(shared: &Shared, request: &Request) -> Reply {
    let (fate, pause) = {
        let mut state = shared.state();
        state.requests.push((request.method.clone(), request.path.clone()));
        (state.rules.faults.fate(), state.rules.faults.pause())
    };
    // On a thread of this connection alone.
    if !pause.is_zero() {
        std::thread::park_timeout(pause);
    }
    let act = || {
        let reply = dated(shared, route(shared, request));
        hooks::tell_of(shared, request, &reply);
        reply
    };
    if !request.path.starts_with("/api/") {
        // Git's own conversation is not made to fail: what it does then is git's.
        return act();
    }
    let reply = fate.before().unwrap_or_else(|| fate.after(act()));
    let mut state = shared.state();
    state.traffic.calls += 1;
    state.traffic.sent += request.body.len() as u64;
    state.traffic.received += reply.body.len() as u64;
    record(&mut state, request, &reply);
    reply
}

fn record(state: &mut State, request: &Request, reply: &Reply) {
    let (Some(recorded), Some(["api", "v3"])) = (
        &mut state.recorded,
        request.segments().first_chunk::<2>().map(|two| [two[0].as_str(), two[1].as_str()]),
    ) else {
        return;
    };
    let names = request.raw_query.split('&').filter_map(|pair| pair.split_once('='));
    recorded.push(Exchange {
        method: request.method.clone(),
        path: request.segments().split_off(2),
        query: names.map(|(name, _)| name.to_owned()).collect(),
        body: request.json(),
        status: reply.status,
        answer: serde_json::from_slice(&reply.body).unwrap_or_default(),
    });
}

fn dated(shared: &Shared, reply: Reply) -> Reply {
    let seconds = jiff::Timestamp::now().as_second() + shared.state().rules.ahead;
    let now = jiff::Timestamp::from_second(seconds).expect("a time of this century");
    reply.with("Date", now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

fn route(shared: &Shared, request: &Request) -> Reply {
    let segments = request.segments();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    if segments == ["api", "graphql"] {
        return board::answer(shared, request);
    }
    if let Some(rest) = segments.strip_prefix(&["api", "v3"]) {
        return github::answer(shared, request, rest);
    }
    if let Some(rest) = segments.strip_prefix(&["api", "v4"]) {
        return gitlab::answer(shared, request, rest);
    }
    let Some(rest) = segments.strip_prefix(&["api", "v1"]) else { return git::answer(shared, request) };
    let mut state = shared.state();
    if rest == ["version"] {
        return Reply::json(200, &json!({ "version": state.rules.version }));
    }
    let spoken = request.header("authorization").is_some_and(|text| text.starts_with("token "));
    let found = state.who(request).filter(|_| spoken);
    let Some(who) = found.or_else(|| broken("forgejo-token").then(|| super::DEV.to_owned())) else {
        return Reply::json(401, &json::message("invalid username, password or token"));
    };
    let asked = Asked { request, who, body: request.json() };
    match rest {
        ["user"] => Reply::json(200, &json::user(&asked.who)),
        ["orgs", ..] => not_found(),
        ["repos", owner, name, rest @ ..] if format!("{owner}/{name}") == REPO => {
            of_repository(shared, &mut state, &asked, rest)
        }
        _ => not_found(),
    }
}

fn of_repository(shared: &Shared, state: &mut State, asked: &Asked<'_>, rest: &[&str]) -> Reply {
    // Anybody may open issues and comment; everything else that writes needs the right.
    let open_to_all = matches!(rest, ["issues"] | ["issues", _, "comments"]);
    let writes = state.writes(&asked.who) || broken("forgejo-rights");
    if asked.request.method != "GET" && !open_to_all && !writes {
        return Reply::json(403, &json::message("user should have a permission to write to a repo"));
    }
    match rest {
        [] => Reply::json(200, &json::repository(state, &asked.who)),
        ["assignees"] => {
            let people = state.accounts.iter().filter(|(_, account)| account.write);
            Reply::json(200, &people.map(|(name, _)| json::user(name)).collect())
        }
        ["labels", ..] | ["issues", ..] => {
            if rest == ["issues"] {
                // A push changes the pull request of its branch.
                pulls::follow_branches(shared, state);
            }
            issues::answer(state, asked, rest)
        }
        ["branches", name] => match shared.branch(name) {
            Some(sha) => {
                let protected = *name == "main" && state.rules.protected_main;
                Reply::json(
                    200,
                    &json!({ "name": name, "commit": { "id": sha }, "protected": protected, "user_can_push": !protected }),
                )
            }
            None => not_found(),
        },
        ["activities", "feeds"] => {
            let told = |push: &Pushed| {
                let content = json!({ "Commits": [], "HeadCommit": { "Sha1": push.after }, "Len": 1 });
                json!({
                    "op_type": "commit_repo", "ref_name": format!("refs/heads/{}", push.branch),
                    "content": content.to_string(), "act_user": json::user(&push.login),
                })
            };
            let newest = state.pushes.iter().rev().map(told).collect();
            page(state, asked, newest, false)
        }
        ["pulls", ..] | ["commits", ..] | ["statuses", ..] => pulls::answer(shared, state, asked, rest),
        _ => not_found(),
    }
}

pub(super) fn not_found() -> Reply {
    Reply::json(404, &json!({ "documentation_url": "", "errors": null, "message": "Not Found" }))
}

/// What a server says about a path it never heard of.
pub(super) fn no_such_page() -> Reply {
    Reply::empty(404).with("Content-Type", "text/plain; charset=utf-8").body("404 page not found\n")
}

pub(super) fn unprocessable(text: &str) -> Reply {
    Reply::json(422, &json::message(text))
}

/// One page of a list, with the headers that name the others.
pub(super) fn page(state: &State, asked: &Asked<'_>, items: Vec<Value>, linked: bool) -> Reply {
    let number = |name: &str| asked.request.query(name).and_then(|text| text.parse::<usize>().ok());
    let most = if broken("forgejo-page-size") { 1000 } else { state.rules.page };
    let size = number("limit").unwrap_or(30).clamp(1, most);
    let (page, total) = (number("page").unwrap_or(1).max(1), items.len());
    let shown: Vec<Value> = items.into_iter().skip((page - 1) * size).take(size).collect();
    let reply = Reply::json(200, &Value::from(shown)).with("X-Total-Count", total.to_string());
    if !linked || page * size >= total {
        return reply;
    }
    let others: Vec<&str> =
        asked.request.raw_query.split('&').filter(|pair| !pair.starts_with("page=")).collect();
    let query = format!("{}&page={}", others.join("&"), page + 1);
    reply.with("Link", format!("<http://forge.internal{}?{query}>; rel=\"next\"", asked.request.path))
}
