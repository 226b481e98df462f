//! The same repository as a project on a GitLab, below `/api/v4`: the project by its whole path, issues and merge
//! requests numbered apart, notes of people and of the server itself, versions, approvals, states of reviewers, statuses
//! with the logs of jobs.
//!
//! It was built from GitLab's published description of its API and refuses what that says it refuses; the rules are
//! listed in docs/fakes.md.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::issues::{create, text};
use super::pulls::{exists, follow_branches, mark_merged};
use super::{FakeForgejo, Label, Pull, Pushed, REPO, Shared, State, Status};
use crate::http::{Reply, Request};
use crate::mutation::broken;

/// Access levels, as GitLab counts them.
const OWNER_LEVEL: u32 = 50;
const DEVELOPER_LEVEL: u32 = 30;
const GUEST_LEVEL: u32 = 10;
/// What begins the name of a status that is a job's, with a log.
const JOB: &str = "job:";

/// What only a GitLab keeps.
#[derive(Default)]
pub(super) struct World {
    notes: Vec<Note>,
    /// The heads of merge requests, oldest first, with the time since which each is the head.
    versions: BTreeMap<u64, Vec<(u64, String, i64)>>,
    approving: BTreeMap<u64, BTreeSet<String>>,
    asking: BTreeMap<u64, BTreeSet<String>>,
    clock_ms: i64,
}

struct Note {
    id: u64,
    /// The number of the issue or pull request, as the fake counts.
    on: u64,
    author: String,
    body: String,
    at_ms: i64,
    system: bool,
}

struct Asked<'a> {
    request: &'a Request,
    who: String,
    body: Value,
}

impl FakeForgejo {
    /// A person asks for changes, as the button in a GitLab does, which its REST API has not.
    pub fn ask_for_changes(&self, merge_request: u64, who: &str, body: &str) {
        follow(&self.shared, &mut self.state());
        let mut state = self.state();
        let number = pull_number(&state, merge_request).expect("there is one");
        note(&mut state, number, who, body, false);
        state.gitlab.approving.entry(number).or_default().remove(who);
        state.gitlab.asking.entry(number).or_default().insert(who.to_owned());
    }

    /// A person approves, as the button does.
    pub fn approve_merge_request(&self, merge_request: u64, who: &str) {
        follow(&self.shared, &mut self.state());
        let mut state = self.state();
        let number = pull_number(&state, merge_request).expect("there is one");
        state.gitlab.approving.entry(number).or_default().insert(who.to_owned());
        note(&mut state, number, who, "approved this merge request", true);
    }
}

pub(super) fn answer(shared: &Shared, request: &Request, rest: &[&str]) -> Reply {
    let mut state = shared.state();
    let found = state.who(request).or_else(|| broken("gitlab-token").then(|| super::DEV.to_owned()));
    let Some(who) = found else { return said(401, "401 Unauthorized") };
    follow(shared, &mut state);
    let asked = Asked { request, who, body: request.json() };
    match rest {
        ["version"] => Reply::json(200, &json!({ "version": state.rules.gitlab_version, "revision": "f00" })),
        ["user"] => Reply::json(200, &user(&state, &asked.who)),
        ["users"] => {
            let wanted = request.query("username").unwrap_or_default();
            let known = state.accounts.contains_key(&wanted).then(|| user(&state, &wanted));
            Reply::json(200, &known.into_iter().collect())
        }
        ["projects", project, rest @ ..] if *project == REPO => of_project(shared, &mut state, &asked, rest),
        _ => said(404, "404 Project Not Found"),
    }
}

fn said(status: u16, words: &str) -> Reply {
    Reply::json(status, &json!({ "message": words }))
}

fn not_found() -> Reply {
    said(404, "404 Not found")
}

fn level(state: &State, who: &str) -> u32 {
    match state.accounts.get(who) {
        Some(account) if account.admin => OWNER_LEVEL,
        Some(account) if account.write => DEVELOPER_LEVEL,
        Some(_) | None => GUEST_LEVEL,
    }
}

/// An account's number is its place among the accounts.
fn id_of(state: &State, who: &str) -> usize {
    state.accounts.keys().position(|name| name == who).map_or(0, |at| at + 1)
}

fn user(state: &State, who: &str) -> Value {
    json!({ "id": id_of(state, who), "username": who, "name": who, "state": "active" })
}

fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|time| format!("{time:.3}")).unwrap_or_default()
}

fn seconds(at: i64) -> String {
    time(at * 1000)
}

impl World {
    /// Milliseconds by the server's clock, later every time.
    fn now(&mut self, ahead: i64) -> i64 {
        let now = jiff::Timestamp::now().as_millisecond() + ahead * 1000;
        self.clock_ms = now.max(self.clock_ms + 1);
        self.clock_ms
    }
}

fn note(state: &mut State, on: u64, author: &str, body: &str, system: bool) -> u64 {
    let (id, ahead) = (state.number() + 5000, state.rules.ahead);
    let at_ms = state.gitlab.now(ahead);
    let (author, body) = (author.to_owned(), body.to_owned());
    state.gitlab.notes.push(Note { id, on, author, body, at_ms, system });
    state.touch(on);
    id
}

/// Heads follow their branches; every head is a version; what is part of the target is merged.
fn follow(shared: &Shared, state: &mut State) {
    follow_branches(shared, state);
    let open: Vec<(u64, String, String)> = state
        .pulls
        .iter()
        .filter(|(number, _)| state.issues[number].open)
        .map(|(number, pull)| (*number, pull.head_sha.clone(), format!("refs/heads/{}", pull.base)))
        .collect();
    for (number, head, base) in open {
        let known =
            state.gitlab.versions.get(&number).and_then(|all| all.last()).map(|(_, sha, _)| sha.clone());
        if known.as_ref() != Some(&head) {
            let (id, ahead) = (state.number(), state.rules.ahead);
            let at = state.gitlab.now(ahead);
            if broken("gitlab-approval-stays") {
                state.gitlab.approving.remove(&number);
            }
            state.gitlab.versions.entry(number).or_default().push((id, head.clone(), at));
        }
        let reached = shared.git(&["merge-base", "--is-ancestor", &head, &base]).is_some();
        if reached && !broken("gitlab-merged-by-push") {
            mark_merged(state, number, head);
        }
    }
}

/// The fake's number of a merge request.
fn pull_number(state: &State, iid: u64) -> Option<u64> {
    state.pulls.keys().copied().nth(usize::try_from(iid).ok()?.checked_sub(1)?)
}

fn pull_iid(state: &State, number: u64) -> u64 {
    if broken("gitlab-numbers-apart") {
        return number;
    }
    state.pulls.keys().position(|known| *known == number).map_or(0, |at| at as u64 + 1)
}

/// The numbers of issues that are no merge requests.
fn issues(state: &State) -> impl Iterator<Item = u64> + '_ {
    state.issues.keys().copied().filter(|number| !state.pulls.contains_key(number))
}

fn issue_number(state: &State, iid: u64) -> Option<u64> {
    issues(state).nth(usize::try_from(iid).ok()?.checked_sub(1)?)
}

fn issue_iid(state: &State, number: u64) -> u64 {
    issues(state).position(|known| known == number).map_or(0, |at| at as u64 + 1)
}

/// The most items of one page.
fn most() -> usize {
    if broken("gitlab-page-size") { 1000 } else { 100 }
}

/// One page, with a link to the next.
fn page(request: &Request, items: Vec<Value>) -> Reply {
    let number = |name: &str| request.query(name).and_then(|text| text.parse::<usize>().ok());
    let (size, page) =
        (number("per_page").unwrap_or(20).clamp(1, most()), number("page").unwrap_or(1).max(1));
    let total = items.len();
    let shown: Vec<Value> = items.into_iter().skip((page - 1) * size).take(size).collect();
    let reply = Reply::json(200, &Value::from(shown)).with("X-Total", total.to_string());
    if page * size >= total {
        return reply.with("X-Next-Page", "");
    }
    let others: Vec<&str> = request.raw_query.split('&').filter(|pair| !pair.starts_with("page=")).collect();
    let next = format!("https://gitlab.invalid{}?{}&page={}", request.raw_path, others.join("&"), page + 1);
    reply.with("X-Next-Page", (page + 1).to_string()).with("Link", format!("<{next}>; rel=\"next\""))
}

fn of_project(shared: &Shared, state: &mut State, asked: &Asked<'_>, rest: &[&str]) -> Reply {
    let request = asked.request;
    let open_to_all = matches!(rest, ["issues"] | ["issues", _, "notes"]);
    let writes = level(state, &asked.who) >= DEVELOPER_LEVEL || broken("gitlab-rights");
    if request.method != "GET" && !open_to_all && !writes {
        return said(403, "403 Forbidden");
    }
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let access = json!({ "access_level": level(state, &asked.who), "notification_level": 3 });
            Reply::json(
                200,
                &json!({
                    "id": 1, "path_with_namespace": REPO, "default_branch": "main", "archived": false,
                    "issues_access_level": "enabled", "merge_requests_access_level": "enabled",
                    "permissions": { "project_access": access, "group_access": null },
                }),
            )
        }
        ("GET", ["members", "all"]) => {
            let wanted = request.query("query").unwrap_or_default();
            let people = state.accounts.keys().filter(|name| name.contains(&wanted));
            let shown = people.map(|name| {
                let mut shown = user(state, name);
                shown["access_level"] = json!(level(state, name));
                shown
            });
            page(request, shown.collect())
        }
        (_, ["labels", ..]) => labels(state, asked, rest),
        (_, ["issues", ..]) => of_issues(state, asked, rest),
        (_, ["merge_requests", ..]) => of_merge_requests(shared, state, asked, rest),
        ("GET", ["events"]) => {
            let told = |push: &Pushed| {
                json!({
                    "action_name": "pushed to", "author_username": push.login,
                    "push_data": {
                        "ref": push.branch, "ref_type": "branch", "commit_from": push.before, "commit_to": push.after,
                    },
                })
            };
            page(request, state.pushes.iter().rev().map(told).collect())
        }
        ("GET", ["repository", "branches", name]) => match shared.branch(name) {
            Some(sha) => {
                let protected = *name == "main" && state.rules.protected_main;
                let can_push = broken("gitlab-protected-branch")
                    || !protected
                    || level(state, &asked.who) >= OWNER_LEVEL;
                Reply::json(
                    200,
                    &json!({
                        "name": name, "commit": { "id": sha }, "protected": protected, "can_push": can_push,
                    }),
                )
            }
            None => said(404, "404 Branch Not Found"),
        },
        ("GET", ["repository", "merge_base"]) => {
            let refs: Vec<String> = request
                .raw_query
                .split('&')
                .filter_map(|pair| pair.split_once('=').filter(|(name, _)| name.starts_with("refs")))
                .map(|(_, value)| value.to_owned())
                .collect();
            let [one, other] = refs.as_slice() else { return said(400, "refs is missing") };
            match shared.git(&["merge-base", one, other]) {
                Some(base) => Reply::json(200, &json!({ "id": base })),
                None => not_found(),
            }
        }
        (_, ["repository", "commits", sha, ..] | ["statuses", sha]) if !exists(shared, sha) => {
            said(404, "404 Commit Not Found")
        }
        ("GET", ["repository", "commits", sha, "merge_requests"]) => {
            let of = |pull: &Pull| pull.head_sha == *sha || pull.merged_as.as_deref() == Some(sha);
            let shown = state.pulls.iter().filter(|(_, pull)| of(pull));
            page(request, shown.map(|(n, _)| merge_request(state, *n)).collect())
        }
        ("GET", ["repository", "commits", sha, "statuses"]) => {
            let newest = newest(state, sha);
            page(request, newest.into_iter().map(status).collect())
        }
        ("POST", ["statuses", sha]) => write_status(state, asked, sha),
        ("GET", ["jobs", id, "trace"]) => {
            let found = state.statuses.iter().find(|s| s.id.to_string() == *id && s.context.starts_with(JOB));
            match found {
                Some(job) => Reply::empty(200)
                    .with("Content-Type", "text/plain")
                    .body(format!("$ make\nthe log of {}\n", job.context.trim_start_matches(JOB))),
                None => said(404, "404 Job Not Found"),
            }
        }
        _ => not_found(),
    }
}

fn labels(state: &mut State, asked: &Asked<'_>, rest: &[&str]) -> Reply {
    match (asked.request.method.as_str(), rest) {
        ("GET", ["labels"]) => {
            let shown = state.labels.iter().map(|l| json!({ "id": l.id, "name": l.name, "color": l.color }));
            page(asked.request, shown.collect())
        }
        ("GET", ["labels", name]) => match state.labels.iter().find(|label| label.name == *name) {
            Some(label) => {
                Reply::json(200, &json!({ "id": label.id, "name": label.name, "color": label.color }))
            }
            None => said(404, "404 Label Not Found"),
        },
        ("POST", ["labels"]) => {
            let (name, color) = (text(&asked.body, "name"), text(&asked.body, "color"));
            if name.is_empty() || !color.starts_with('#') {
                return Reply::json(400, &json!({ "message": { "color": ["must be a valid color code"] } }));
            }
            if state.labels.iter().any(|label| label.name == name) && !broken("gitlab-label-twice") {
                return said(409, "Label already exists");
            }
            let id = state.number() + 1000;
            let label = Label { id, name, color: color.trim_start_matches('#').to_owned() };
            state.labels.push(label);
            Reply::json(201, &json!({ "id": id }))
        }
        _ => not_found(),
    }
}

fn of_issues(state: &mut State, asked: &Asked<'_>, rest: &[&str]) -> Reply {
    let request = asked.request;
    match (request.method.as_str(), rest) {
        ("GET", ["issues"]) => {
            let wanted = request.query("state").unwrap_or("all".to_owned());
            let fits = |number: &u64| match wanted.as_str() {
                "opened" => state.issues[number].open,
                "closed" => !state.issues[number].open,
                _ => true,
            };
            let mut numbers: Vec<u64> = issues(state).filter(fits).collect();
            if request.query("sort").as_deref() != Some("asc") {
                numbers.reverse();
            }
            page(request, numbers.into_iter().map(|number| issue(state, number)).collect())
        }
        ("POST", ["issues"]) => {
            let title = text(&asked.body, "title");
            if title.is_empty() {
                return Reply::json(400, &json!({ "error": "title is missing, title is empty" }));
            }
            let number = create(state, &asked.who, &title, &text(&asked.body, "description"));
            // Guests may write issues, but not label them.
            if level(state, &asked.who) >= DEVELOPER_LEVEL {
                let ids = named_labels(state, &text(&asked.body, "labels"));
                state.issues.get_mut(&number).expect("just made").labels = ids;
            }
            Reply::json(201, &issue(state, number))
        }
        (method, ["issues", iid, rest @ ..]) => {
            let Some(number) = iid.parse().ok().and_then(|iid| issue_number(state, iid)) else {
                return not_found();
            };
            match (method, rest) {
                ("GET", []) => Reply::json(200, &issue(state, number)),
                ("PUT", []) => change_issue(state, asked, number),
                (_, ["notes", ..]) => notes(state, asked, number, rest),
                _ => not_found(),
            }
        }
        _ => not_found(),
    }
}

fn named_labels(state: &mut State, names: &str) -> Vec<u64> {
    let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
    names.into_iter().map(|name| state.label_id(name)).collect()
}

fn change_issue(state: &mut State, asked: &Asked<'_>, number: u64) -> Reply {
    let add = named_labels(state, &text(&asked.body, "add_labels"));
    let gone = text(&asked.body, "remove_labels");
    let gone: Vec<u64> =
        state.labels.iter().filter(|l| gone.split(',').any(|name| name == l.name)).map(|l| l.id).collect();
    // Whom it does not take, it leaves out without a word; a zero is nobody.
    let people = asked.body["assignee_ids"].as_array().map(|ids| {
        let wanted = |name: &&String| ids.iter().any(|id| id.as_u64() == Some(id_of(state, name) as u64));
        state.accounts.keys().filter(wanted).filter(|name| state.writes(name)).take(1).cloned().collect()
    });
    let issue_state = state.issues.get_mut(&number).expect("just found");
    issue_state.labels.extend(add);
    issue_state.labels.sort_unstable();
    issue_state.labels.dedup();
    issue_state.labels.retain(|id| !gone.contains(id));
    if let Some(people) = people {
        issue_state.assignees = people;
    }
    match asked.body["state_event"].as_str() {
        Some("close") => issue_state.open = false,
        Some("reopen") => issue_state.open = true,
        Some(_) | None => {}
    }
    state.touch(number);
    Reply::json(200, &issue(state, number))
}

fn issue(state: &State, number: u64) -> Value {
    let shown = &state.issues[&number];
    let name = |id: &u64| state.labels.iter().find(|label| label.id == *id).map(|label| label.name.clone());
    let notes = state.gitlab.notes.iter().filter(|note| note.on == number && !note.system).count();
    json!({
        "id": number + 9000, "iid": issue_iid(state, number), "project_id": 1, "title": shown.title,
        "description": shown.body, "state": if shown.open { "opened" } else { "closed" },
        "labels": shown.labels.iter().filter_map(name).collect::<Vec<_>>(),
        "assignees": shown.assignees.iter().map(|who| user(state, who)).collect::<Vec<_>>(),
        "author": user(state, &shown.author), "created_at": seconds(shown.created),
        "updated_at": seconds(shown.updated), "user_notes_count": notes,
    })
}

fn notes(state: &mut State, asked: &Asked<'_>, number: u64, rest: &[&str]) -> Reply {
    let shown = |note: &Note, state: &State| {
        json!({
            "id": note.id, "body": note.body, "author": user(state, &note.author), "created_at": time(note.at_ms),
            "system": note.system, "position": null,
        })
    };
    match (asked.request.method.as_str(), rest) {
        ("GET", ["notes"]) => {
            let mut found: Vec<&Note> = state.gitlab.notes.iter().filter(|note| note.on == number).collect();
            if asked.request.query("sort").as_deref() != Some("asc") {
                found.reverse();
            }
            page(asked.request, found.into_iter().map(|note| shown(note, state)).collect())
        }
        ("POST", ["notes"]) => {
            let body = text(&asked.body, "body");
            if body.is_empty() {
                return Reply::json(400, &json!({ "error": "body is missing, body is empty" }));
            }
            let id = note(state, number, &asked.who, &body, false);
            Reply::json(201, &json!({ "id": id, "body": body }))
        }
        ("PUT", ["notes", id]) => {
            let who = asked.who.clone();
            let Some(found) = state.gitlab.notes.iter_mut().find(|note| note.id.to_string() == *id) else {
                return said(404, "404 Note Not Found");
            };
            if (found.author != who || found.system) && !broken("gitlab-note-of-another") {
                return said(403, "403 Forbidden");
            }
            found.body = text(&asked.body, "body");
            Reply::json(200, &json!({ "id": found.id, "body": found.body }))
        }
        _ => not_found(),
    }
}

fn of_merge_requests(shared: &Shared, state: &mut State, asked: &Asked<'_>, rest: &[&str]) -> Reply {
    let request = asked.request;
    match (request.method.as_str(), rest) {
        ("GET", ["merge_requests"]) => {
            let wanted = |name: &str| request.query(name);
            let fits = |(number, pull): &(&u64, &Pull)| {
                let open = state.issues[number].open;
                wanted("source_branch").is_none_or(|branch| branch == pull.head)
                    && wanted("target_branch").is_none_or(|branch| branch == pull.base)
                    && match wanted("state").as_deref() {
                        Some("opened") => open,
                        Some("merged") => pull.merged_as.is_some(),
                        Some("closed") => !open && pull.merged_as.is_none(),
                        _ => true,
                    }
            };
            let found = state.pulls.iter().rev().filter(fits);
            page(request, found.map(|(number, _)| merge_request(state, *number)).collect())
        }
        ("POST", ["merge_requests"]) => open(shared, state, asked),
        (method, ["merge_requests", iid, rest @ ..]) => {
            let Some(number) = iid.parse().ok().and_then(|iid| pull_number(state, iid)) else {
                return not_found();
            };
            of_merge_request(state, asked, (method, number, rest))
        }
        _ => not_found(),
    }
}

fn open(shared: &Shared, state: &mut State, asked: &Asked<'_>) -> Reply {
    let (head, base) = (text(&asked.body, "source_branch"), text(&asked.body, "target_branch"));
    let (Some(head_sha), Some(_)) = (shared.branch(&head), shared.branch(&base)) else {
        return Reply::json(400, &json!({ "message": [format!("Source branch \"{head}\" does not exist")] }));
    };
    let twin = state.pulls.iter().find(|(n, p)| state.issues[n].open && p.head == head && p.base == base);
    if let Some((number, _)) = twin.filter(|_| !broken("gitlab-twin")) {
        let iid = pull_iid(state, *number);
        let words = format!("Another open merge request already exists for this source branch: !{iid}");
        return Reply::json(409, &json!({ "message": [words] }));
    }
    let number = create(state, &asked.who, &text(&asked.body, "title"), &text(&asked.body, "description"));
    state.pulls.insert(number, Pull::new(head, base, head_sha));
    follow(shared, state);
    Reply::json(201, &merge_request(state, number))
}

fn merge_request(state: &State, number: u64) -> Value {
    let (shared, pull) = (&state.issues[&number], &state.pulls[&number]);
    let word = match (shared.open, &pull.merged_as) {
        (_, Some(_)) => "merged",
        (true, None) => "opened",
        (false, None) => "closed",
    };
    json!({
        "id": number + 7000, "iid": pull_iid(state, number), "project_id": 1, "title": shared.title,
        "description": shared.body, "state": word, "source_branch": pull.head, "target_branch": pull.base,
        "sha": pull.head_sha, "merge_commit_sha": null, "squash_commit_sha": null,
        "author": user(state, &shared.author), "source_project_id": 1, "target_project_id": 1,
        "created_at": seconds(shared.created), "updated_at": seconds(shared.updated),
        "detailed_merge_status": "mergeable", "draft": false,
    })
}

fn of_merge_request(
    state: &mut State,
    asked: &Asked<'_>,
    (method, number, rest): (&str, u64, &[&str]),
) -> Reply {
    match (method, rest) {
        ("GET", []) => Reply::json(200, &merge_request(state, number)),
        ("PUT", []) => {
            if asked.body["state_event"] == "close" {
                state.issues.get_mut(&number).expect("every pull request is one").open = false;
                state.touch(number);
            }
            Reply::json(200, &merge_request(state, number))
        }
        (_, ["notes", ..]) => notes(state, asked, number, rest),
        ("GET", ["versions"]) => {
            let known = state.gitlab.versions.get(&number).cloned().unwrap_or_default();
            let shown = known.iter().rev().map(|(id, sha, at)| {
                json!({ "id": id, "head_commit_sha": sha, "created_at": time(*at), "state": "collected" })
            });
            page(asked.request, shown.collect())
        }
        ("GET", ["approvals"]) => Reply::json(200, &approvals(state, number)),
        ("GET", ["reviewers"]) => {
            let asking = state.gitlab.asking.get(&number).cloned().unwrap_or_default();
            let shown =
                asking.iter().map(|who| json!({ "user": user(state, who), "state": "requested_changes" }));
            page(asked.request, shown.collect())
        }
        ("POST", ["approve"]) => approve(state, asked, number),
        ("POST", ["unapprove"]) => {
            if !state.gitlab.approving.entry(number).or_default().remove(&asked.who) {
                return not_found();
            }
            note(state, number, &asked.who.clone(), "unapproved this merge request", true);
            Reply::json(201, &approvals(state, number))
        }
        _ => not_found(),
    }
}

fn approvals(state: &State, number: u64) -> Value {
    let approving = state.gitlab.approving.get(&number).cloned().unwrap_or_default();
    let shown: Vec<Value> = approving.iter().map(|who| json!({ "user": user(state, who) })).collect();
    json!({ "approved": !shown.is_empty(), "approved_by": shown })
}

fn approve(state: &mut State, asked: &Asked<'_>, number: u64) -> Reply {
    let wanted = text(&asked.body, "sha");
    let head = state.pulls[&number].head_sha.clone();
    if !wanted.is_empty() && wanted != head && !broken("gitlab-approve-sha") {
        return said(409, &format!("SHA does not match HEAD of source branch: {head}"));
    }
    let own = state.issues[&number].author == asked.who && !broken("gitlab-own-approval");
    if own || state.gitlab.approving.entry(number).or_default().contains(&asked.who) {
        return said(401, "401 Unauthorized");
    }
    state.gitlab.approving.entry(number).or_default().insert(asked.who.clone());
    state.gitlab.asking.entry(number).or_default().remove(&asked.who);
    note(state, number, &asked.who.clone(), "approved this merge request", !broken("gitlab-system-note"));
    Reply::json(201, &approvals(state, number))
}

fn newest<'s>(state: &'s State, sha: &str) -> Vec<&'s Status> {
    let mut newest: Vec<&Status> = Vec::new();
    for status in state.statuses.iter().rev().filter(|status| status.sha == sha) {
        if !newest.iter().any(|known| known.context == status.context) {
            newest.push(status);
        }
    }
    newest
}

fn status(status: &Status) -> Value {
    // Other forges' word for what failed.
    let word = if status.state == "failure" { "failed" } else { status.state.as_str() };
    json!({
        "id": status.id, "sha": status.sha, "name": status.context.trim_start_matches(JOB), "status": word,
        "description": null, "target_url": "", "allow_failure": false,
    })
}

fn write_status(state: &mut State, asked: &Asked<'_>, sha: &str) -> Reply {
    let (context, word) = (text(&asked.body, "name"), text(&asked.body, "state"));
    if !["pending", "running", "success", "failed", "canceled", "skipped"].contains(&word.as_str()) {
        return Reply::json(400, &json!({ "error": "state does not have a valid value" }));
    }
    let same = newest(state, sha).iter().any(|known| known.context == context && known.state == word);
    if same && !broken("gitlab-same-status") {
        return said(400, &format!("Cannot transition status via :enqueue from :{word}"));
    }
    let id = state.number();
    let (sha, creator) = (sha.to_owned(), asked.who.clone());
    state.statuses.push(Status { id, sha, context, state: word, creator });
    Reply::json(201, &json!({ "id": id }))
}
