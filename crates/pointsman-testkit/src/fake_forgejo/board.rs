//! A Projects board in GitHub's GraphQL, as far as its documents are known here: they are told apart by their names. It
//! refuses what the real one refuses: a token without the scope, ids of things that are not there, an option of another
//! field, a value that is none of the field's kind.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{FakeForgejo, REPO, Shared, State};
use crate::http::{Reply, Request};

/// The project's number.
pub const BOARD: u64 = 3;
const PROJECT: &str = "PVT_shop";
const STATUS: &str = "PVTSSF_status";
const AGENT: &str = "PVTF_agent";

/// The board's columns and rows.
pub(super) struct Board {
    columns: Vec<(String, String)>,
    items: BTreeMap<u64, Item>,
    scope: bool,
}

#[derive(Clone, Default)]
struct Item {
    status: Option<String>,
    agent: Option<String>,
}

impl Default for Board {
    fn default() -> Self {
        let mut board = Self { columns: Vec::new(), items: BTreeMap::new(), scope: true };
        board.rename(&["Backlog", "Ready", "In Progress", "In Review", "Done"]);
        board
    }
}

impl Board {
    fn rename(&mut self, columns: &[&str]) {
        let id = |name: &str| {
            format!("{:08x}", name.bytes().fold(7_u32, |sum, b| sum.wrapping_mul(31) + u32::from(b)))
        };
        self.columns = columns.iter().map(|name| (id(name), (*name).to_owned())).collect();
    }

    fn name(&self, id: &str) -> Option<&str> {
        self.columns.iter().find(|(known, _)| known == id).map(|(_, name)| name.as_str())
    }
}

impl FakeForgejo {
    /// Where an issue stands on the board, and who works on it; nothing if it is not there.
    pub fn on_board(&self, issue: u64) -> Option<(String, String)> {
        let state = self.state();
        let item = state.board.items.get(&issue)?;
        let status = item.status.as_deref().and_then(|id| state.board.name(id)).unwrap_or_default();
        Some((status.to_owned(), item.agent.clone().unwrap_or_default()))
    }

    /// Gives the board other columns; what stood in one that is gone stands nowhere.
    pub fn board_columns(&self, columns: &[&str]) {
        self.state().board.rename(columns);
    }

    /// Gives the tokens the scope for boards, or takes it away.
    pub fn board_scope(&self, given: bool) {
        self.state().board.scope = given;
    }
}

pub(super) fn answer(shared: &Shared, request: &Request) -> Reply {
    let mut state = shared.state();
    let Some(who) = state.who(request) else {
        return Reply::json(401, &json!({ "message": "Bad credentials" }));
    };
    let body = request.json();
    let (document, given) = (body["query"].as_str().unwrap_or_default(), &body["variables"]);
    let name = document.split_whitespace().nth(1).unwrap_or_default();
    let name = name.split('(').next().unwrap_or_default();
    if !state.board.scope {
        let words = "Your token has not been granted the required scopes to execute this query. The 'projectV2' field requires one of the following scopes: ['read:project']";
        return said("INSUFFICIENT_SCOPES", words);
    }
    match name {
        "Project" => project(&state, given),
        "Item" => item(&state, given),
        "Items" => items(&state, given),
        "Add" | "SetStatus" | "SetAgent" | "ClearAgent" if !state.writes(&who) => {
            said("FORBIDDEN", "you may not change this project")
        }
        "Add" | "SetStatus" | "SetAgent" | "ClearAgent" => change(&mut state, name, given),
        _ => said("", &format!("this server does not know the document {name}")),
    }
}

fn said(kind: &str, words: &str) -> Reply {
    let error = match kind {
        "" => json!({ "message": words }),
        kind => json!({ "type": kind, "message": words, "path": [] }),
    };
    Reply::json(200, &json!({ "data": null, "errors": [error] }))
}

fn no_node(id: &str) -> Reply {
    said("NOT_FOUND", &format!("Could not resolve to a node with the global id of '{id}'"))
}

fn data(value: &Value) -> Reply {
    Reply::json(200, &json!({ "data": value }))
}

fn project(state: &State, given: &Value) -> Reply {
    let owner = REPO.split('/').next();
    if given["owner"].as_str() != owner || given["number"].as_u64() != Some(BOARD) {
        return data(&json!({ "repositoryOwner": { "projectV2": null } }));
    }
    let options: Vec<Value> =
        state.board.columns.iter().map(|(id, name)| json!({ "id": id, "name": name })).collect();
    let fields = json!([
        { "id": "PVTF_title", "name": "Title", "dataType": "TITLE" },
        { "id": STATUS, "name": "Status", "dataType": "SINGLE_SELECT", "options": options },
        {},
        { "id": AGENT, "name": "Agent", "dataType": "TEXT" },
    ]);
    data(
        &json!({ "repositoryOwner": { "projectV2": { "id": PROJECT, "closed": false, "fields": { "nodes": fields } } } }),
    )
}

fn row(state: &State, number: u64, item: &Item) -> Value {
    let status =
        item.status.as_ref().and_then(|id| Some(json!({ "optionId": id, "name": state.board.name(id)? })));
    let agent = item.agent.as_ref().map(|text| json!({ "text": text }));
    json!({ "id": format!("PVTI_{number}"), "project": { "id": PROJECT }, "status": status, "agent": agent })
}

fn word(open: bool) -> &'static str {
    if open { "OPEN" } else { "CLOSED" }
}

fn item(state: &State, given: &Value) -> Reply {
    let number = given["number"].as_u64().unwrap_or_default();
    let Some(issue) = state.issues.get(&number) else {
        return said("NOT_FOUND", &format!("Could not resolve to an Issue with the number of {number}."));
    };
    let there: Vec<Value> =
        state.board.items.get(&number).map(|item| row(state, number, item)).into_iter().collect();
    data(&json!({ "repository": { "issue": {
        "id": format!("I_{number}"), "number": number, "title": issue.title, "state": word(issue.open),
        "projectItems": { "nodes": there },
    } } }))
}

/// Two to a page, so that there are pages.
fn items(state: &State, given: &Value) -> Reply {
    if given["project"] != PROJECT {
        return no_node(given["project"].as_str().unwrap_or_default());
    }
    let from: usize = given["after"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    let shown = state.board.items.iter().skip(from).take(2).map(|(number, item)| {
        let mut shown = row(state, *number, item);
        let issue = &state.issues[number];
        shown["isArchived"] = Value::from(false);
        shown["content"] = json!({
            "number": number, "title": issue.title, "state": word(issue.open), "repository": { "nameWithOwner": REPO },
        });
        shown
    });
    let shown: Vec<Value> = shown.collect();
    let next = from + shown.len();
    let page = json!({ "hasNextPage": next < state.board.items.len(), "endCursor": next.to_string() });
    data(&json!({ "node": { "items": { "pageInfo": page, "nodes": shown } } }))
}

fn change(state: &mut State, name: &str, given: &Value) -> Reply {
    let text = |key: &str| given[key].as_str().unwrap_or_default().to_owned();
    let number = |id: &str, prefix: &str| id.strip_prefix(prefix).and_then(|n| n.parse::<u64>().ok());
    if text("project") != PROJECT {
        return no_node(&text("project"));
    }
    if name == "Add" {
        let content = text("content");
        let Some(number) = number(&content, "I_").filter(|n| state.issues.contains_key(n)) else {
            return no_node(&content);
        };
        state.board.items.entry(number).or_default();
        let id = format!("PVTI_{number}");
        return data(&json!({ "addProjectV2ItemById": { "item": { "id": id } } }));
    }
    let id = text("item");
    let Some(number) = number(&id, "PVTI_").filter(|n| state.board.items.contains_key(n)) else {
        return no_node(&id);
    };
    let (option, written) = (text("option"), text("text"));
    let known = state.board.name(&option).is_some();
    let item = state.board.items.get_mut(&number).expect("just found");
    match (name, text("field").as_str()) {
        ("SetStatus", STATUS) if known => item.status = Some(option),
        ("SetStatus", STATUS) => {
            return said("VALIDATION", "The single select option Id does not belong to the field");
        }
        ("SetAgent", AGENT) => item.agent = Some(written),
        ("ClearAgent", AGENT) => item.agent = None,
        ("SetStatus" | "SetAgent", STATUS | AGENT) => {
            return said("VALIDATION", "Did not receive a value of the type of the field to update");
        }
        (_, field) => return no_node(field),
    }
    let key =
        if name == "ClearAgent" { "clearProjectV2ItemFieldValue" } else { "updateProjectV2ItemFieldValue" };
    data(&json!({ key: { "projectV2Item": { "id": id } } }))
}
