//! Pull requests, reviews and commit statuses.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::api::{Asked, not_found, page, unprocessable};
use super::issues::{create, text};
use super::{Pull, Review, Shared, State, Status, json};
use crate::http::Reply;
use crate::mutation::broken;

pub(super) fn answer(shared: &Shared, state: &mut State, asked: &Asked<'_>, rest: &[&str]) -> Reply {
    follow_branches(shared, state);
    match (asked.request.method.as_str(), rest) {
        ("GET", ["pulls"]) => {
            let wanted = asked.request.query("state").unwrap_or("open".to_owned());
            let fits = |n: &u64| wanted == "all" || (wanted == "open") == state.issues[n].open;
            let shown = state.pulls.iter().rev().filter(|(n, _)| fits(n));
            page(state, asked, shown.map(|(n, pull)| json::pull(state, *n, pull)).collect(), true)
        }
        ("POST", ["pulls"]) => open(shared, state, asked),
        (method, ["pulls", number, rest @ ..]) => match number.parse() {
            Ok(number) if state.pulls.contains_key(&number) => {
                of_pull(shared, state, asked, (method, number, rest))
            }
            _ => not_found(),
        },
        ("GET", ["commits"]) => {
            let from = asked.request.query("sha").unwrap_or("main".to_owned());
            let limit = asked.request.query("limit").unwrap_or("30".to_owned());
            let listed = shared.git(&["rev-list", "--max-count", &limit, &from, "--"]).unwrap_or_default();
            Reply::json(200, &listed.lines().map(|sha| json!({ "sha": sha })).collect())
        }
        ("GET", ["commits", sha, "pull"]) => {
            let merged = state.pulls.iter().find(|(_, pull)| pull.merged_as.as_deref() == Some(sha));
            merged.map_or_else(not_found, |(n, pull)| Reply::json(200, &json::pull(state, *n, pull)))
        }
        ("GET", ["commits", sha, "status"]) => combined(shared, state, asked, sha),
        ("POST", ["statuses", _]) if !state.rules.statuses => {
            Reply::json(403, &json::message("token does not have at least one of required scope(s)"))
        }
        ("POST", ["statuses", sha]) => {
            if !exists(shared, sha) {
                return not_found();
            }
            let (context, word) = (text(&asked.body, "context"), text(&asked.body, "state"));
            if !["pending", "success", "error", "failure", "warning"].contains(&word.as_str()) {
                return unprocessable("invalid status");
            }
            let id = state.number();
            let status =
                Status { id, sha: (*sha).to_owned(), context, state: word, creator: asked.who.clone() };
            let shown = json::status(&status);
            state.statuses.push(status);
            Reply::json(201, &shown)
        }
        _ => not_found(),
    }
}

pub(super) fn exists(shared: &Shared, sha: &str) -> bool {
    shared.git(&["cat-file", "-e", &format!("{sha}^{{commit}}")]).is_some()
}

/// A pull request's head is where its branch is, and stays where it was when that goes.
pub(super) fn follow_branches(shared: &Shared, state: &mut State) {
    let open: Vec<(&u64, &Pull)> =
        state.pulls.iter().filter(|(number, _)| state.issues[number].open).collect();
    if open.is_empty() {
        return;
    }
    let listed = shared.git(&["for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"]);
    let listed = listed.unwrap_or_default();
    let branches: BTreeMap<&str, &str> = listed.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let heads = open.into_iter().filter_map(|(number, pull)| {
        let sha = *branches.get(pull.head.as_str())?;
        (sha != pull.head_sha).then(|| (*number, sha.to_owned()))
    });
    let lag = state.rules.head_lag;
    for (number, sha) in heads.collect::<Vec<_>>() {
        let pull = state.pulls.get_mut(&number).expect("just found");
        let seen = match &pull.coming {
            Some((known, seen)) if *known == sha => *seen,
            _ => Instant::now(),
        };
        if seen.elapsed() < lag && !broken("forgejo-late-head") {
            pull.coming = Some((sha, seen));
            continue;
        }
        (pull.head_sha, pull.coming, pull.changed) = (sha, None, Instant::now());
        state.touch(number);
    }
}

fn combined(shared: &Shared, state: &State, asked: &Asked<'_>, sha: &str) -> Reply {
    if !exists(shared, sha) {
        return not_found();
    }
    let mut newest: Vec<&Status> = Vec::new();
    for status in state.statuses.iter().rev().filter(|status| status.sha == sha) {
        if !newest.iter().any(|known| known.context == status.context) {
            newest.push(status);
        }
    }
    if newest.is_empty() && !broken("forgejo-no-statuses") {
        return Reply::json(200, &json!({ "state": "", "sha": "", "total_count": 0, "statuses": null }));
    }
    let number = |name: &str| asked.request.query(name).and_then(|text| text.parse::<usize>().ok());
    let size = number("limit").unwrap_or(30).clamp(1, state.rules.page);
    let shown = newest.iter().skip((number("page").unwrap_or(1).max(1) - 1) * size).take(size);
    let shown: Vec<Value> = shown.map(|status| json::status(status)).collect();
    Reply::json(
        200,
        &json!({ "state": "pending", "sha": sha, "total_count": newest.len(), "statuses": shown }),
    )
}

fn open(shared: &Shared, state: &mut State, asked: &Asked<'_>) -> Reply {
    let (head, base) = (text(&asked.body, "head"), text(&asked.body, "base"));
    let (Some(head_sha), Some(_)) = (shared.branch(&head), shared.branch(&base)) else { return not_found() };
    let twin =
        state.pulls.iter().find(|(n, pull)| state.issues[n].open && pull.head == head && pull.base == base);
    if let Some((number, _)) = twin.filter(|_| !broken("forgejo-pull-twice")) {
        let words = format!(
            "pull request already exists for these targets [id: {number}, issue_id: {number}, head_branch: {head}, base_branch: {base}]"
        );
        return Reply::json(409, &json::message(&words));
    }
    let number = create(state, &asked.who, &text(&asked.body, "title"), &text(&asked.body, "body"));
    state.pulls.insert(number, Pull::new(head, base, head_sha));
    Reply::json(201, &json::pull(state, number, &state.pulls[&number]))
}

fn of_pull(
    shared: &Shared,
    state: &mut State,
    asked: &Asked<'_>,
    (method, number, rest): (&str, u64, &[&str]),
) -> Reply {
    let pull = &state.pulls[&number];
    match (method, rest) {
        ("GET", []) => Reply::json(200, &json::pull(state, number, pull)),
        ("PATCH", []) => {
            if asked.body["state"] == "closed" {
                state.issues.get_mut(&number).expect("every pull request is one").open = false;
                state.touch(number);
            }
            Reply::json(201, &json::pull(state, number, &state.pulls[&number]))
        }
        ("GET", ["commits"]) => {
            let range = format!("{}..{}", pull.base, pull.head_sha);
            let listed = shared.git(&["rev-list", &range, "--"]).unwrap_or_default();
            let shown = listed.lines().map(|sha| json!({ "sha": sha })).collect();
            page(state, asked, shown, false)
        }
        ("GET", ["reviews"]) => {
            let shown = pull.reviews.iter().map(|review| json::review(state, pull, review)).collect();
            page(state, asked, shown, false)
        }
        ("POST", ["reviews"]) => review(shared, state, asked, number),
        ("GET", ["reviews", id, "comments"]) => {
            let found = pull.reviews.iter().find(|review| review.id.to_string() == *id);
            let remark = |(path, line, body): &(String, u64, String)| json!({ "path": path, "position": line, "original_position": 0, "body": body });
            found.map_or_else(not_found, |r| Reply::json(200, &r.remarks.iter().map(remark).collect()))
        }
        ("POST", ["reviews", id, "dismissals"]) => {
            let is_admin = state.accounts.get(&asked.who).is_some_and(|account| account.admin);
            if !is_admin && !broken("forgejo-dismiss-needs-admin") {
                return Reply::json(403, &json::message("Must be repo admin"));
            }
            let pull = state.pulls.get_mut(&number).expect("just found");
            let Some(review) = pull.reviews.iter_mut().find(|review| review.id.to_string() == *id) else {
                return not_found();
            };
            if review.event != "APPROVED" && review.event != "REQUEST_CHANGES" {
                return Reply::json(
                    403,
                    &json::message(
                        "not need to dismiss this review because it's type is not Approve or change request",
                    ),
                );
            }
            review.dismissed = true;
            Reply::json(200, &json!({ "id": review.id }))
        }
        ("POST", ["merge"]) => merge(shared, state, asked, number),
        _ => not_found(),
    }
}

fn review(shared: &Shared, state: &mut State, asked: &Asked<'_>, number: u64) -> Reply {
    let event = text(&asked.body, "event");
    let own = state.issues[&number].author == asked.who && !broken("forgejo-own-approval");
    match event.as_str() {
        "APPROVED" if own => return unprocessable("approve your own pull is not allowed"),
        "REQUEST_CHANGES" if own => return unprocessable("reject your own pull is not allowed"),
        "REQUEST_CHANGES" | "COMMENT" if text(&asked.body, "body").is_empty() => {
            return unprocessable(&format!("review event {event} requires a body or a comment"));
        }
        "APPROVED" | "REQUEST_CHANGES" | "COMMENT" => {}
        _ => return unprocessable("unknown review event"),
    }
    let sha = match text(&asked.body, "commit_id") {
        sha if sha.is_empty() => state.pulls[&number].head_sha.clone(),
        sha if exists(shared, &sha) => sha,
        _ => return not_found(),
    };
    let (id, at) = (state.number(), state.now());
    let body = text(&asked.body, "body");
    let author = asked.who.clone();
    let moved = state.pulls[&number].changed.elapsed() < state.rules.check_lag;
    let early = moved && !broken("forgejo-stale-head");
    let written = Review { id, author, event, body, sha, at, dismissed: false, early, remarks: Vec::new() };
    state.pulls.get_mut(&number).expect("just found").reviews.push(written);
    state.touch(number);
    let pull = &state.pulls[&number];
    Reply::json(200, &json::review(state, pull, &pull.reviews[pull.reviews.len() - 1]))
}

fn merge(shared: &Shared, state: &mut State, asked: &Asked<'_>, number: u64) -> Reply {
    let pull = &state.pulls[&number];
    if pull.merged_as.is_some() || !state.issues[&number].open {
        return not_found();
    }
    if pull.changed.elapsed() < state.rules.check_lag && !broken("forgejo-late-check") {
        return Reply::json(405, &json::message("Please try again later"));
    }
    let wanted = text(&asked.body, "head_commit_id");
    if !wanted.is_empty() && wanted != pull.head_sha {
        return Reply::json(409, &json::message("head out of date"));
    }
    let allowed = state.rules.manual_merge || broken("forgejo-manual-merge-allowed");
    if text(&asked.body, "Do") != "manually-merged" || !allowed {
        return Reply::json(405, &json::message("not an allowed merge style for this repository"));
    }
    let sha = text(&asked.body, "MergeCommitID");
    let on_base = shared.git(&["merge-base", "--is-ancestor", &sha, &format!("refs/heads/{}", pull.base)]);
    if (sha.is_empty() || on_base.is_none()) && !broken("forgejo-merge-commit-on-base") {
        return Reply::json(409, &json::message("Wrong commit ID"));
    }
    mark_merged(state, number, sha);
    Reply::empty(200)
}

pub(super) fn mark_merged(state: &mut State, number: u64, sha: String) {
    state.pulls.get_mut(&number).expect("there is one").merged_as = Some(sha);
    state.issues.get_mut(&number).expect("every pull request is one").open = false;
    state.touch(number);
}
