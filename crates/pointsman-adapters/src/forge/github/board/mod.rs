//! A Projects board (v2), by the GraphQL API: where an issue stands, and who works on it.
//!
//! The documents lie beside this file and are checked against GitHub's own schema in a test; `wire` is what comes back. The
//! ids of the project, its fields and options are kept, and found anew when the server does not know them any more. Every
//! order looks first, and changes only what is not so yet.

mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

use pointsman_core::forge::{BoardItem, BoardStatus};
use pointsman_core::ids::Number;
use pointsman_core::text::clean_line;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::wire::{
    AddAnswer, Answer, Field, ItemAnswer, Nodes, ProjectAnswer, SelectedOption, WireIssue, WireItem,
};
use crate::forge::hosted::errors::told;
use crate::forge::{BoardChange, Error};
use crate::http::{Client, Request};

const READ: &str = "read the board";
const CHANGE: &str = "change the board";
/// The fields that follow a task.
const STATUS: &str = "Status";
const AGENT: &str = "Agent";
/// Pages of items, at most: 5,000 of them.
const PAGES: usize = 50;
/// Of a server's words.
const WORDS: usize = 300;

/// One project of an organisation or a person, and the repository whose issues are looked for there.
pub(super) struct Board {
    client: Client,
    owner: String,
    number: u64,
    repository: (String, String),
    known: Mutex<Cache>,
}

/// Ids. All of it can be lost.
#[derive(Default)]
struct Cache {
    project: Option<Project>,
}

#[derive(Clone)]
struct Project {
    id: String,
    status: Field,
    agent: Option<Field>,
}

impl Board {
    /// The board, not yet looked at.
    pub(super) fn new(client: Client, owner: &str, number: u64, repository: (&str, &str)) -> Self {
        let repository = (repository.0.to_owned(), repository.1.to_owned());
        Self { client, owner: owner.to_owned(), number, repository, known: Mutex::default() }
    }

    /// The server's counts.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// All issues of the repository that are on the board, open or not.
    pub(super) fn all(&self) -> Result<Vec<(BoardItem, bool)>, Error> {
        #[derive(serde::Deserialize)]
        struct Page {
            node: Option<Items>,
        }
        #[derive(serde::Deserialize)]
        struct Items {
            items: Option<Nodes<WireItem>>,
        }
        let project = self.project()?;
        let here = format!("{}/{}", self.repository.0, self.repository.1);
        let (mut all, mut after) = (Vec::new(), None);
        for _ in 0..PAGES {
            let variables = json!({ "project": project.id, "after": after });
            let page: Page = self.ask(READ, include_str!("items.graphql"), &variables)?;
            let Some(items) = page.node.and_then(|node| node.items) else { return Err(self.gone()) };
            after =
                items.page_info.as_ref().filter(|page| page.has_next_page).and_then(|p| p.end_cursor.clone());
            for item in items.all().filter(|item| !item.is_archived) {
                let Some(content) = &item.content else { continue };
                let place = content.repository.as_ref().map(|place| place.name_with_owner.as_str());
                if place.is_some_and(|place| place.eq_ignore_ascii_case(&here)) {
                    let open = content.state == "OPEN";
                    let (number, title) = (content.number, content.title.clone());
                    all.push((shown(&item, number, title), open));
                }
            }
            if after.is_none() {
                return Ok(all);
            }
        }
        Err(Error::Refused { operation: READ, reason: format!("it has more than {PAGES} pages") })
    }

    /// One issue as the board shows it; with an empty id if it is not there.
    pub(super) fn item(&self, number: Number) -> Result<BoardItem, Error> {
        let project = self.project()?;
        let issue = self.issue(number)?;
        let title = issue.title.clone();
        Ok(match on(&project, issue) {
            Some(item) => shown(&item, number, title),
            None => BoardItem {
                item_id: String::new(),
                number,
                title,
                status: BoardStatus::Backlog,
                agent: String::new(),
            },
        })
    }

    /// Changes what is not so yet. An issue that is not on the board is put there.
    pub(super) fn change(&self, number: Number, change: &BoardChange<'_>) -> Result<(), Error> {
        let project = self.project()?;
        let issue = self.issue(number)?;
        let content = issue.id.clone();
        let there = on(&project, issue);
        let id = match &there {
            Some(item) => item.id.clone(),
            None => self.add(&project, &content)?,
        };
        let target = |field: &Field| json!({ "project": project.id, "item": id, "field": field.id });
        if let Some(status) = change.status {
            let option = choice(&project.status, status).ok_or_else(|| Error::Refused {
                operation: CHANGE,
                reason: format!("its field {STATUS} has no option `{status}`: add it"),
            })?;
            let now = there.as_ref().and_then(|item| item.status.as_ref()?.option_id.as_deref());
            if now != Some(option) {
                let mut variables = target(&project.status);
                variables["option"] = Value::from(option);
                self.order(include_str!("set_status.graphql"), &variables)?;
            }
        }
        let now = there.as_ref().map(agent_of).unwrap_or_default();
        match (change.agent, &project.agent) {
            (Some(agent), Some(field)) if agent.is_empty() && !now.is_empty() => {
                self.order(include_str!("clear_agent.graphql"), &target(field))
            }
            (Some(agent), Some(field)) if agent != now => {
                let mut variables = target(field);
                variables["text"] = Value::from(agent);
                self.order(include_str!("set_agent.graphql"), &variables)
            }
            _ => Ok(()),
        }
    }

    fn add(&self, project: &Project, content: &str) -> Result<String, Error> {
        let variables = json!({ "project": project.id, "content": content });
        let added: AddAnswer = self.ask(CHANGE, include_str!("add.graphql"), &variables)?;
        let item = added.add_project_v2_item_by_id.and_then(|added| added.item).ok_or_else(|| self.gone())?;
        Ok(item.id)
    }

    fn issue(&self, number: Number) -> Result<WireIssue, Error> {
        let (owner, name) = &self.repository;
        let variables = json!({ "owner": owner, "name": name, "number": number });
        let found: ItemAnswer = self.ask(READ, include_str!("item.graphql"), &variables)?;
        let issue = found.repository.and_then(|repository| repository.issue);
        issue.ok_or_else(|| Error::NotFound { what: format!("issue #{number}") })
    }

    /// The project with its fields: known, or found.
    fn project(&self) -> Result<Project, Error> {
        if let Some(project) = &self.cache().project {
            return Ok(project.clone());
        }
        let refused = |reason: String| Error::Refused { operation: READ, reason };
        let variables = json!({ "owner": self.owner, "number": self.number });
        let found: ProjectAnswer = self.ask(READ, include_str!("project.graphql"), &variables)?;
        let project = found.repository_owner.and_then(|owner| owner.project).ok_or_else(|| {
            refused(format!("{} has no project {}, or our account may not see it", self.owner, self.number))
        })?;
        if project.closed {
            return Err(refused(format!("project {} of {} is closed", self.number, self.owner)));
        }
        let fields: Vec<Field> = project.fields.all().collect();
        let named =
            |name: &str, kind: &str| fields.iter().find(|f| f.name == name && f.data_type == kind).cloned();
        let status = named(STATUS, "SINGLE_SELECT")
            .ok_or_else(|| refused(format!("it has no field {STATUS} of the kind single select")))?;
        let agent = named(AGENT, "TEXT");
        if agent.is_none() {
            tracing::warn!(
                owner = self.owner,
                project = self.number,
                "the board has no text field Agent: add one to see who works on what"
            );
        }
        let project = Project { id: project.id, status, agent };
        self.cache().project = Some(project.clone());
        Ok(project)
    }

    fn order(&self, document: &str, variables: &Value) -> Result<(), Error> {
        self.ask::<serde::de::IgnoredAny>(CHANGE, document, variables).map(drop)
    }

    /// Asks, and sorts what goes wrong. Every document may be sent twice: setting a value is setting it, and adding an
    /// item that is there answers that one.
    fn ask<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        document: &str,
        variables: &Value,
    ) -> Result<T, Error> {
        let body = json!({ "query": document, "variables": variables });
        let request = Request::post(operation, &["graphql"]).body(&body).repeatable();
        let answer: Answer<T> = self.client.read(&request).map_err(told)?;
        let Some(said) = answer.errors.first() else {
            return answer
                .data
                .ok_or_else(|| Error::Unavailable { reason: "the board answered nothing".to_owned() });
        };
        let words = clean_line(&said.message, WORDS);
        Err(match said.kind.as_str() {
            "INSUFFICIENT_SCOPES" | "FORBIDDEN" => {
                let hint = "the token needs the scope `project` (or Projects: read and write)";
                Error::Refused { operation, reason: format!("{words}; {hint}") }
            }
            "NOT_FOUND" => {
                // An id that is known may not be true any more.
                let knew = std::mem::take(&mut *self.cache()).project.is_some();
                match knew && operation == CHANGE {
                    true => Error::Unavailable { reason: words },
                    false => Error::Refused { operation, reason: words },
                }
            }
            "RATE_LIMITED" | "SERVICE_UNAVAILABLE" | "INTERNAL" => Error::Unavailable { reason: words },
            _ => {
                // Perhaps a field or an option that is gone: they are looked up anew next time.
                *self.cache() = Cache::default();
                Error::Refused { operation, reason: words }
            }
        })
    }

    fn gone(&self) -> Error {
        *self.cache() = Cache::default();
        Error::Unavailable { reason: "the board is not where it was".to_owned() }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The option of a status, or of the one that is next to it.
fn choice(field: &Field, status: BoardStatus) -> Option<&str> {
    let named =
        |wanted: BoardStatus| field.options.iter().find(|o| BoardStatus::of_column(&o.name) == Some(wanted));
    std::iter::once(status).chain(status.beside()).find_map(named).map(|option| option.id.as_str())
}

/// The item of an issue on this project.
fn on(project: &Project, issue: WireIssue) -> Option<WireItem> {
    issue.project_items.all().find(|item| item.project.as_ref().is_some_and(|on| on.id == project.id))
}

fn agent_of(item: &WireItem) -> &str {
    item.agent.as_ref().and_then(|agent| agent.text.as_deref()).unwrap_or_default()
}

fn shown(item: &WireItem, number: Number, title: String) -> BoardItem {
    let column = |chosen: &SelectedOption| BoardStatus::of_column(chosen.name.as_deref()?);
    // A column of people's own is nobody's turn.
    let status = item.status.as_ref().and_then(column).unwrap_or(BoardStatus::Backlog);
    BoardItem { item_id: item.id.clone(), number, title, status, agent: agent_of(item).to_owned() }
}
