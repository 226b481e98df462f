//! Issues, comments and labels.

use serde_json::{Value, json};

use super::api::{Asked, no_such_page, not_found, page, unprocessable};
use super::{Comment, Issue, Label, State, json};
use crate::http::Reply;
use crate::mutation::broken;

pub(super) fn answer(state: &mut State, asked: &Asked<'_>, rest: &[&str]) -> Reply {
    let method = asked.request.method.as_str();
    match (method, rest) {
        ("GET", ["labels"]) => {
            let all = state.labels.iter().map(|label| json::label(state, label.id)).collect();
            page(state, asked, all, true)
        }
        ("POST", ["labels"]) => make_label(state, asked),
        ("GET", ["issues"]) => list(state, asked),
        ("POST", ["issues"]) => {
            let labels = asked.body["labels"].as_array().cloned().unwrap_or_default();
            let ids: Option<Vec<u64>> = labels.iter().map(Value::as_u64).collect();
            let Some(ids) = ids else { return unprocessable("json: cannot unmarshal string into int64") };
            let known = |id: &u64| state.labels.iter().any(|label| label.id == *id);
            if !ids.iter().all(known) || text(&asked.body, "title").is_empty() {
                return unprocessable("[Title]: Required");
            }
            let number = create(state, &asked.who, &text(&asked.body, "title"), &text(&asked.body, "body"));
            state.issues.get_mut(&number).expect("just made").labels = ids;
            Reply::json(201, &json::issue(state, number, &state.issues[&number]))
        }
        (_, ["issues", number, rest @ ..]) => match number.parse() {
            Ok(number) if state.issues.contains_key(&number) => of_issue(state, asked, method, number, rest),
            _ => not_found(),
        },
        _ => not_found(),
    }
}

fn of_issue(state: &mut State, asked: &Asked<'_>, method: &str, number: u64, rest: &[&str]) -> Reply {
    match (method, rest) {
        ("GET", []) => Reply::json(200, &json::issue(state, number, &state.issues[&number])),
        ("PATCH", []) => patch(state, asked, number),
        ("GET", ["comments"]) => {
            Reply::json(200, &state.issues[&number].comments.iter().map(json::comment).collect())
        }
        ("POST", ["comments"]) => match text(&asked.body, "body") {
            body if body.is_empty() => unprocessable("[Body]: Required"),
            body => {
                let id = comment(state, number, &asked.who, &body);
                let issue = &state.issues[&number];
                let written = issue.comments.iter().find(|comment| comment.id == id);
                Reply::json(201, &written.map_or(Value::Null, json::comment))
            }
        },
        ("GET", ["labels"]) => labels_of(state, number),
        ("POST", ["labels"]) => {
            let ids: Option<Vec<u64>> =
                asked.body["labels"].as_array().and_then(|ids| ids.iter().map(Value::as_u64).collect());
            let Some(ids) = ids else { return unprocessable("json: cannot unmarshal string into int64") };
            let unknown = ids.iter().find(|id| !state.labels.iter().any(|label| label.id == **id));
            if let Some(unknown) = unknown.filter(|_| !broken("forgejo-label-id")) {
                return unprocessable(&format!("label does not exist [label_id: {unknown}]"));
            }
            let labels = &mut state.issues.get_mut(&number).expect("just found").labels;
            labels.extend(ids);
            labels.sort_unstable();
            labels.dedup();
            state.touch(number);
            labels_of(state, number)
        }
        ("DELETE", ["labels", id]) => match id.parse::<u64>() {
            Ok(id) if state.labels.iter().any(|label| label.id == id) => {
                state.issues.get_mut(&number).expect("just found").labels.retain(|known| *known != id);
                state.touch(number);
                Reply::empty(204)
            }
            // By a name: nothing happens, and all is well.
            Err(_) => {
                let named = state.labels.iter().find(|label| label.name == *id).map(|label| label.id);
                if let Some(id) = named.filter(|_| broken("forgejo-label-by-name")) {
                    state.issues.get_mut(&number).expect("just found").labels.retain(|known| *known != id);
                }
                Reply::empty(204)
            }
            Ok(_) => unprocessable("label does not exist"),
        },
        ("GET", ["dependencies"]) if state.rules.version.starts_with("1.15") => no_such_page(),
        ("GET", ["dependencies"]) => {
            let wanted = state.issues[&number].dependencies.clone();
            let known = wanted.iter().filter_map(|n| Some((*n, state.issues.get(n)?)));
            let shown = known.map(|(n, issue)| json::issue(state, n, issue)).collect();
            page(state, asked, shown, false)
        }
        _ => not_found(),
    }
}

fn list(state: &State, asked: &Asked<'_>) -> Reply {
    let wanted = asked.request.query("state").unwrap_or("open".to_owned());
    let labels = asked.request.query("labels").unwrap_or_default();
    let labels: Vec<&str> = labels.split(',').filter(|name| !name.is_empty()).collect();
    let only_issues = asked.request.query("type").as_deref() == Some("issues");
    let shown = state.issues.iter().rev().filter(|(number, issue)| {
        let fits = wanted == "all" || (wanted == "open") == issue.open;
        let labelled = labels.iter().all(|name| {
            let is = |id: &u64| state.labels.iter().any(|label| label.id == *id && label.name == *name);
            issue.labels.iter().any(is)
        });
        fits && labelled && !(only_issues && state.pulls.contains_key(number))
    });
    page(state, asked, shown.map(|(number, issue)| json::issue(state, *number, issue)).collect(), true)
}

fn patch(state: &mut State, asked: &Asked<'_>, number: u64) -> Reply {
    if let Some(people) = asked.body["assignees"].as_array() {
        let people: Vec<String> = people.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let stranger = people.iter().find(|name| !state.writes(name));
        if let Some(stranger) = stranger.filter(|_| !broken("forgejo-assignee")) {
            return unprocessable(&format!("Assignee does not exist: [name: {stranger}]"));
        }
        if state.rules.lost_assignments > 0 {
            state.rules.lost_assignments -= 1;
        } else {
            state.issues.get_mut(&number).expect("just found").assignees = people;
        }
    }
    match asked.body["state"].as_str() {
        Some("closed") => {
            let waits = state.issues[&number].dependencies.clone();
            let is_held_up = waits.iter().any(|n| state.issues.get(n).is_some_and(|issue| issue.open));
            if is_held_up && !broken("forgejo-close-with-dependencies") {
                return Reply::json(
                    412,
                    &json::message("cannot close this issue because it still has open dependencies"),
                );
            }
            state.issues.get_mut(&number).expect("just found").open = false;
        }
        Some("open") => state.issues.get_mut(&number).expect("just found").open = true,
        Some(_) | None => {}
    }
    state.touch(number);
    let mut shown = json::issue(state, number, &state.issues[&number]);
    if state.rules.late_assignee && asked.body["assignees"].is_array() {
        shown["assignee"] = Value::Null;
        shown["assignees"] = Value::Null;
    }
    Reply::json(201, &shown)
}

fn make_label(state: &mut State, asked: &Asked<'_>) -> Reply {
    let (name, color) = (text(&asked.body, "name"), text(&asked.body, "color"));
    if name.is_empty() || color.len() != 7 || !color.starts_with('#') {
        return unprocessable("bad color code");
    }
    let id = state.number() + 1000;
    let color = color.trim_start_matches('#').to_owned();
    // A second one of the same name is made without a word.
    state.labels.push(Label { id, name, color });
    Reply::json(201, &json::label(state, id))
}

fn labels_of(state: &State, number: u64) -> Reply {
    Reply::json(
        200,
        &json!(state.issues[&number].labels.iter().map(|id| json::label(state, *id)).collect::<Vec<_>>()),
    )
}

pub(super) fn create(state: &mut State, author: &str, title: &str, body: &str) -> u64 {
    let (number, now) = (state.number(), state.now());
    let (title, body, author) = (title.to_owned(), body.to_owned(), author.to_owned());
    let issue = Issue { title, body, author, open: true, created: now, updated: now, ..Issue::default() };
    state.issues.insert(number, issue);
    number
}

pub(super) fn comment(state: &mut State, number: u64, author: &str, body: &str) -> u64 {
    let (id, at) = (state.number() + 5000, state.now());
    let comment = Comment { id, author: author.to_owned(), body: body.to_owned(), at };
    state.issues.get_mut(&number).expect("there is such an issue").comments.push(comment);
    state.touch(number);
    id
}

pub(super) fn text(body: &Value, key: &str) -> String {
    body[key].as_str().unwrap_or_default().to_owned()
}
