//! The same repository in GitHub's dialect, below `/api/v3` as on an Enterprise server: labels by name, pull requests
//! that are issues too, statuses and check runs apart, conditional requests, a count of what is left.
//!
//! A pull request whose head reaches the base by a push is merged by that. Statuses whose context begins with `run:`
//! are shown as check runs.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::issues::{comment, create, text};
use super::pulls::{exists, follow_branches, mark_merged};
use super::{Issue, Label, Pull, Pushed, REPO, Review, Shared, State, Status, app, github_merge, json};
use crate::http::{Reply, Request};
use crate::mutation::broken;

/// Requests of an hour.
const HOURLY: usize = 5000;

/// What begins a check run's name.
const RUN: &str = "run:";

struct Asked<'a> {
    request: &'a Request,
    who: String,
    body: Value,
}

pub(super) fn answer(shared: &Shared, request: &Request, rest: &[&str]) -> Reply {
    if let Some(reply) = app::answer(shared, request, rest) {
        return reply;
    }
    let mut state = shared.state();
    let spoken = request.header("authorization").is_some_and(|text| text.starts_with("Bearer "));
    let found = state.who(request).filter(|_| spoken);
    let Some(who) = found.or_else(|| broken("github-token").then(|| super::DEV.to_owned())) else {
        return said(401, "Bad credentials");
    };
    if request.header("accept") != Some("application/vnd.github+json") {
        return said(415, "the adapter says which version it speaks");
    }
    let asked = Asked { request, who, body: request.json() };
    follow_branches(shared, &mut state);
    merge_what_was_pushed(shared, &mut state);
    let reply = match rest {
        ["user"] if asked.who == app::APP_BOT => said(403, "Resource not accessible by integration"),
        ["user"] => Reply::json(200, &json::user(&asked.who)),
        ["repos", owner, name, rest @ ..] if format!("{owner}/{name}") == REPO => {
            if request.method != "GET" && !state.writes(&asked.who) && !broken("github-rights") {
                return said(403, "Resource not accessible by personal access token");
            }
            of_repository(shared, &mut state, &asked, rest)
        }
        _ => not_found(),
    };
    let left = HOURLY.saturating_sub(state.requests.len());
    let reply =
        reply.with("X-RateLimit-Limit", HOURLY.to_string()).with("X-RateLimit-Remaining", left.to_string());
    conditional(request, reply)
}

fn conditional(request: &Request, reply: Reply) -> Reply {
    if request.method != "GET" || reply.status != 200 {
        return reply;
    }
    let mut hasher = DefaultHasher::new();
    reply.body.hash(&mut hasher);
    let etag = format!("W/\"{:x}\"", hasher.finish());
    match request.header("if-none-match") == Some(&etag) && !broken("github-unchanged") {
        true => Reply { status: 304, body: Vec::new(), ..reply },
        false => reply.with("ETag", etag),
    }
}

fn said(status: u16, words: &str) -> Reply {
    Reply::json(status, &json!({ "message": words, "documentation_url": "https://docs.invalid" }))
}

fn not_found() -> Reply {
    said(404, "Not Found")
}

/// One page, with a link to the next.
fn page(request: &Request, items: Vec<Value>) -> Reply {
    let number = |name: &str| request.query(name).and_then(|text| text.parse::<usize>().ok());
    let (size, page) = (number("per_page").unwrap_or(30).clamp(1, 100), number("page").unwrap_or(1).max(1));
    let total = items.len();
    let shown: Vec<Value> = items.into_iter().skip((page - 1) * size).take(size).collect();
    let reply = Reply::json(200, &Value::from(shown));
    if page * size >= total {
        return reply;
    }
    let others: Vec<&str> = request.raw_query.split('&').filter(|pair| !pair.starts_with("page=")).collect();
    let next = format!("https://api.github.invalid/repositories/1/x?{}&page={}", others.join("&"), page + 1);
    reply.with("Link", format!("<{next}>; rel=\"next\", <https://api.github.invalid/x?page=9>; rel=\"last\""))
}

fn merge_what_was_pushed(shared: &Shared, state: &mut State) {
    let open: Vec<(u64, String, String)> = state
        .pulls
        .iter()
        .filter(|(number, _)| state.issues[number].open)
        .map(|(number, pull)| (*number, pull.head_sha.clone(), format!("refs/heads/{}", pull.base)))
        .collect();
    for (number, head, base) in open {
        let reached = shared.git(&["merge-base", "--is-ancestor", &head, &base]).is_some();
        if reached && !broken("github-merged-by-push") {
            mark_merged(state, number, head);
        }
    }
}

fn of_repository(shared: &Shared, state: &mut State, asked: &Asked<'_>, rest: &[&str]) -> Reply {
    let request = asked.request;
    match (request.method.as_str(), rest) {
        ("GET", []) => Reply::json(200, &json::repository(state, &asked.who)),
        ("GET", ["collaborators", name, "permission"]) => match state.accounts.get(*name) {
            Some(account) if account.admin => Reply::json(200, &json!({ "permission": "admin" })),
            Some(account) if account.write => Reply::json(200, &json!({ "permission": "write" })),
            Some(_) => Reply::json(200, &json!({ "permission": "read" })),
            None => not_found(),
        },
        ("GET", ["labels"]) => page(request, state.labels.iter().map(|l| json::label(state, l.id)).collect()),
        ("GET", ["labels", name]) => match state.labels.iter().find(|label| label.name == *name) {
            Some(label) => Reply::json(200, &json!({ "name": label.name, "color": label.color })),
            None => not_found(),
        },
        ("POST", ["labels"]) => {
            let (name, color) = (text(&asked.body, "name"), text(&asked.body, "color"));
            if state.labels.iter().any(|label| label.name == name)
                || (color.starts_with('#') && !broken("github-label-colour"))
            {
                return said(422, "Validation Failed");
            }
            let id = state.number() + 1000;
            state.labels.push(Label { id, name, color });
            Reply::json(201, &json!({ "id": id }))
        }
        ("GET", ["issues"]) => {
            let shown = state.issues.iter().rev().filter(|(_, issue)| issue.open);
            page(request, shown.map(|(n, shown)| issue(state, *n, shown)).collect())
        }
        ("POST", ["issues"]) => {
            let title = text(&asked.body, "title");
            if title.is_empty() {
                return said(422, "Validation Failed");
            }
            let names = asked.body["labels"].as_array().cloned().unwrap_or_default();
            let ids = names.iter().filter_map(Value::as_str).map(|name| state.label_id(name)).collect();
            let number = create(state, &asked.who, &title, &text(&asked.body, "body"));
            state.issues.get_mut(&number).expect("just made").labels = ids;
            Reply::json(201, &issue(state, number, &state.issues[&number]))
        }
        (method, ["issues", number, rest @ ..]) => match number.parse() {
            Ok(number) if state.issues.contains_key(&number) => {
                of_issue(state, asked, (method, number, rest))
            }
            _ => not_found(),
        },
        ("GET", ["pulls"]) => {
            let wanted = |name: &str| request.query(name);
            let fits = |n: &u64, pull: &Pull| {
                let open = state.issues[n].open;
                let head = wanted("head").is_none_or(|head| head == format!("ann:{}", pull.head));
                let base = wanted("base").is_none_or(|base| base == pull.base);
                head && base
                    && (wanted("state").as_deref() == Some("all")
                        || (wanted("state").as_deref() != Some("closed")) == open)
            };
            let shown = state.pulls.iter().rev().filter(|(n, pull)| fits(n, pull));
            page(request, shown.map(|(n, shown)| pull(state, *n, shown)).collect())
        }
        ("POST", ["pulls"]) => open(shared, state, asked),
        (method, ["pulls", number, rest @ ..]) => match number.parse() {
            Ok(number) if state.pulls.contains_key(&number) => {
                of_pull(shared, state, asked, (method, number, rest))
            }
            _ => not_found(),
        },
        ("GET", ["branches", name]) => match shared.branch(name) {
            Some(sha) => Reply::json(200, &json!({ "name": name, "commit": { "sha": sha } })),
            None => said(404, "Branch not found"),
        },
        ("GET", ["activity"]) => {
            let wanted = request.query("ref").unwrap_or_default();
            let of = |push: &&Pushed| format!("refs/heads/{}", push.branch) == wanted;
            let told = |push: &Pushed| {
                json!({
                    "ref": wanted, "before": push.before, "after": push.after, "activity_type": "push",
                    "actor": json::user(&push.login),
                })
            };
            page(request, state.pushes.iter().rev().filter(of).map(told).collect())
        }
        ("GET", ["rules", "branches", branch]) => github_merge::rules(state, branch),
        ("GET", ["rulesets", id]) => github_merge::ruleset(state, &asked.who, id),
        ("GET", ["compare", range]) => {
            let Some((base, head)) = range.split_once("...") else { return not_found() };
            let contained = shared.git(&["merge-base", "--is-ancestor", head, base]).is_some();
            Reply::json(200, &json!({ "status": if contained { "behind" } else { "diverged" } }))
        }
        (_, ["commits" | "statuses", sha, ..])
            if !exists(shared, sha) && !broken("github-unknown-commit") =>
        {
            said(422, "No commit found for SHA")
        }
        ("GET", ["commits", sha, "pulls"]) => {
            let of = |pull: &Pull| pull.head_sha == *sha || pull.merged_as.as_deref() == Some(sha);
            let shown = state.pulls.iter().filter(|(_, pull)| of(pull));
            Reply::json(200, &shown.map(|(n, shown)| pull(state, *n, shown)).collect())
        }
        ("GET", ["commits", sha, "status"]) => {
            let newest = newest(state, sha, false);
            let shown: Vec<Value> =
                newest.iter().map(|s| json!({ "context": s.context, "state": s.state })).collect();
            Reply::json(200, &json!({ "state": "pending", "total_count": shown.len(), "statuses": shown }))
        }
        ("GET", ["commits", sha, "check-runs"]) => {
            let run = |s: &&Status| {
                let name = s.context.trim_start_matches(RUN);
                match s.state.as_str() {
                    "pending" => {
                        json!({ "id": s.id, "name": name, "status": "in_progress", "conclusion": null })
                    }
                    word => json!({
                        "id": s.id, "name": name, "status": "completed", "conclusion": word,
                        "output": { "title": null, "summary": null, "annotations_count": u64::from(word == "failure") },
                    }),
                }
            };
            let shown: Vec<Value> = newest(state, sha, true).iter().map(run).collect();
            Reply::json(200, &json!({ "total_count": shown.len(), "check_runs": shown }))
        }
        ("GET", ["check-runs", id, "annotations"]) => {
            let found = state.statuses.iter().find(|s| s.id.to_string() == *id && s.context.starts_with(RUN));
            let remark = |s: &Status| {
                json!({
                    "path": "src/list.txt", "start_line": 3, "end_line": 3, "annotation_level": "failure",
                    "message": format!("{} does not like this", s.context.trim_start_matches(RUN)),
                })
            };
            found.map_or_else(not_found, |s| page(request, vec![remark(s)]))
        }
        ("POST", ["statuses", sha]) => {
            let id = state.number();
            let (context, word) = (text(&asked.body, "context"), text(&asked.body, "state"));
            state.statuses.push(Status {
                id,
                sha: (*sha).to_owned(),
                context,
                state: word,
                creator: asked.who.clone(),
            });
            Reply::json(201, &json!({ "id": id }))
        }
        _ => not_found(),
    }
}

fn newest<'s>(state: &'s State, sha: &str, runs: bool) -> Vec<&'s Status> {
    let mut newest: Vec<&Status> = Vec::new();
    for status in state.statuses.iter().rev().filter(|s| s.sha == sha && s.context.starts_with(RUN) == runs) {
        if !newest.iter().any(|known| known.context == status.context) {
            newest.push(status);
        }
    }
    newest
}

fn of_issue(state: &mut State, asked: &Asked<'_>, (method, number, rest): (&str, u64, &[&str])) -> Reply {
    match (method, rest) {
        ("GET", []) => Reply::json(200, &issue(state, number, &state.issues[&number])),
        ("PATCH", []) => {
            if let Some(people) = asked.body["assignees"].as_array() {
                // Whom it does not take, it leaves out.
                let people = people
                    .iter()
                    .filter_map(Value::as_str)
                    .filter(|name| state.writes(name) || broken("github-assignee-left-out"));
                let people: Vec<String> = people.map(str::to_owned).collect();
                // Whom it does not take, it leaves out without a word; an App is one of them.
                let people = people.into_iter().filter(|name| name != app::APP_BOT).collect();
                state.issues.get_mut(&number).expect("just found").assignees = people;
            }
            if let Some(word) = asked.body["state"].as_str() {
                state.issues.get_mut(&number).expect("just found").open = word == "open";
            }
            state.touch(number);
            Reply::json(200, &issue(state, number, &state.issues[&number]))
        }
        ("GET", ["events"]) => page(asked.request, github_merge::events(state, number)),
        ("GET", ["comments"]) => {
            page(asked.request, state.issues[&number].comments.iter().map(json::comment).collect())
        }
        ("POST", ["comments"]) => {
            let id = comment(state, number, &asked.who, &text(&asked.body, "body"));
            Reply::json(201, &json!({ "id": id }))
        }
        ("GET", ["labels"]) => page(asked.request, labels(state, &state.issues[&number])),
        ("POST", ["labels"]) => {
            let names = asked.body["labels"].as_array().cloned().unwrap_or_default();
            let ids: Vec<u64> =
                names.iter().filter_map(Value::as_str).map(|name| state.label_id(name)).collect();
            let known = &mut state.issues.get_mut(&number).expect("just found").labels;
            known.extend(ids);
            known.sort_unstable();
            known.dedup();
            Reply::json(200, &Value::from(labels(state, &state.issues[&number])))
        }
        ("DELETE", ["labels", name]) => {
            let id = state.labels.iter().find(|label| label.name == *name).map(|label| label.id);
            let there = id.filter(|id| state.issues[&number].labels.contains(id));
            let Some(id) = there else { return said(404, "Label does not exist") };
            state.issues.get_mut(&number).expect("just found").labels.retain(|known| *known != id);
            Reply::json(200, &Value::from(labels(state, &state.issues[&number])))
        }
        _ => not_found(),
    }
}

fn labels(state: &State, issue: &Issue) -> Vec<Value> {
    issue.labels.iter().map(|id| json::label(state, *id)).collect()
}

fn issue(state: &State, number: u64, issue: &Issue) -> Value {
    let mut shown = json::issue(state, number, issue);
    shown["assignees"] = issue.assignees.iter().map(|login| json::user(login)).collect();
    match state.pulls.contains_key(&number) && !broken("github-pulls-are-issues") {
        true => shown["pull_request"] = json!({ "url": "" }),
        // An issue has no such field at all.
        false => drop(shown.as_object_mut().expect("an object").remove("pull_request")),
    }
    shown
}

fn pull(state: &State, number: u64, pull: &Pull) -> Value {
    let mut shown = json::pull(state, number, pull);
    shown["merged_at"] = json!(pull.merged_as.as_ref().map(|_| json::time(state.issues[&number].updated)));
    // Of an open one it is a rehearsal of the merge.
    shown["merge_commit_sha"] = json!(pull.merged_as.clone().unwrap_or("f".repeat(40)));
    shown["labels"] = Value::from(labels(state, &state.issues[&number]));
    github_merge::show(state, number, &mut shown);
    shown
}

fn open(shared: &Shared, state: &mut State, asked: &Asked<'_>) -> Reply {
    let (head, base) = (text(&asked.body, "head"), text(&asked.body, "base"));
    let (Some(head_sha), Some(_)) = (shared.branch(&head), shared.branch(&base)) else {
        return said(422, "Validation Failed");
    };
    let contained = shared.git(&["merge-base", "--is-ancestor", &head_sha, &format!("refs/heads/{base}")]);
    let twin = state.pulls.iter().any(|(n, p)| state.issues[n].open && p.head == head && p.base == base);
    if (twin && !broken("github-pull-twice")) || contained.is_some() {
        return said(422, "Validation Failed");
    }
    let number = create(state, &asked.who, &text(&asked.body, "title"), &text(&asked.body, "body"));
    let made = Pull::new(head, base, head_sha);
    state.pulls.insert(number, made);
    Reply::json(201, &pull(state, number, &state.pulls[&number]))
}

fn of_pull(
    shared: &Shared,
    state: &mut State,
    asked: &Asked<'_>,
    (method, number, rest): (&str, u64, &[&str]),
) -> Reply {
    match (method, rest) {
        ("GET", []) => Reply::json(200, &pull(state, number, &state.pulls[&number])),
        ("PATCH", []) => {
            if asked.body["state"] == "closed" {
                state.issues.get_mut(&number).expect("every pull request is one").open = false;
            }
            Reply::json(200, &pull(state, number, &state.pulls[&number]))
        }
        ("PUT", ["merge-async"]) => github_merge::order(state, number, &asked.body),
        ("GET", ["merge-async", uuid]) => github_merge::ordered(shared, state, number, uuid),
        ("GET", ["reviews"]) => {
            page(asked.request, state.pulls[&number].reviews.iter().map(review).collect())
        }
        ("GET", ["reviews", id, "comments"]) => {
            let found = state.pulls[&number].reviews.iter().find(|review| review.id.to_string() == *id);
            let remark = |(path, line, body): &(String, u64, String)| json!({ "path": path, "line": line, "body": body });
            found.map_or_else(not_found, |r| page(asked.request, r.remarks.iter().map(remark).collect()))
        }
        ("PUT", ["reviews", id, "dismissals"]) => {
            let pull = state.pulls.get_mut(&number).expect("just found");
            let Some(made) = pull.reviews.iter_mut().find(|review| review.id.to_string() == *id) else {
                return not_found();
            };
            if made.event == "COMMENT" || made.dismissed || text(&asked.body, "message").is_empty() {
                return said(422, "Can not dismiss a commented pull request review");
            }
            made.dismissed = true;
            Reply::json(200, &review(made))
        }
        ("POST", ["reviews"]) => {
            let event = text(&asked.body, "event");
            let sha = text(&asked.body, "commit_id");
            if state.issues[&number].author == asked.who && event != "COMMENT" {
                return said(422, "Can not approve your own pull request");
            }
            if !exists(shared, &sha) || (event != "APPROVE" && text(&asked.body, "body").is_empty()) {
                return said(422, "Unprocessable Entity");
            }
            let event = if event == "APPROVE" { "APPROVED".to_owned() } else { event };
            let (id, at) = (state.number(), state.now());
            let (author, body) = (asked.who.clone(), text(&asked.body, "body"));
            let (dismissed, early) = (false, false);
            let made = Review { id, author, event, body, sha, at, dismissed, early, remarks: Vec::new() };
            let shown = review(&made);
            state.pulls.get_mut(&number).expect("just found").reviews.push(made);
            state.touch(number);
            Reply::json(200, &shown)
        }
        _ => not_found(),
    }
}

fn review(review: &Review) -> Value {
    let state = match review.event.as_str() {
        _ if review.dismissed => "DISMISSED",
        "APPROVED" => "APPROVED",
        "REQUEST_CHANGES" => "CHANGES_REQUESTED",
        _ => "COMMENTED",
    };
    json!({
        "id": review.id, "user": json::user(&review.author), "state": state, "body": review.body,
        "commit_id": review.sha, "submitted_at": json::time(review.at),
    })
}
