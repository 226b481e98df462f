//! The GraphQL API's messages about a board, as far as we read them.

use pointsman_core::ids::Number;
use serde::Deserialize;

/// An answer: data, errors, or both.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub(super) struct Answer<T> {
    pub(super) data: Option<T>,
    #[serde(default)]
    pub(super) errors: Vec<GraphqlError>,
}

#[derive(Deserialize)]
pub(super) struct GraphqlError {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProjectAnswer {
    pub(super) repository_owner: Option<Owner>,
}

#[derive(Deserialize)]
pub(super) struct Owner {
    #[serde(rename = "projectV2")]
    pub(super) project: Option<WireProject>,
}

#[derive(Deserialize)]
pub(super) struct WireProject {
    pub(super) id: String,
    #[serde(default)]
    pub(super) closed: bool,
    pub(super) fields: Nodes<Field>,
}

/// A list, with holes where something is not for us to see.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "T: Deserialize<'de>")]
pub(super) struct Nodes<T> {
    pub(super) nodes: Option<Vec<Option<T>>>,
    pub(super) page_info: Option<PageInfo>,
}

impl<T> Nodes<T> {
    pub(super) fn all(self) -> impl Iterator<Item = T> {
        self.nodes.into_iter().flatten().flatten()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageInfo {
    pub(super) has_next_page: bool,
    pub(super) end_cursor: Option<String>,
}

/// A field; a kind that we do not ask for has neither id nor name.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Field {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) data_type: String,
    pub(super) options: Vec<Choice>,
}

#[derive(Clone, Deserialize)]
pub(super) struct Choice {
    pub(super) id: String,
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct ItemAnswer {
    pub(super) repository: Option<Repository>,
}

#[derive(Deserialize)]
pub(super) struct Repository {
    pub(super) issue: Option<WireIssue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireIssue {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) project_items: Nodes<WireItem>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireItem {
    pub(super) id: String,
    pub(super) project: Option<Named>,
    pub(super) status: Option<SelectedOption>,
    pub(super) agent: Option<Written>,
    #[serde(default)]
    pub(super) is_archived: bool,
    pub(super) content: Option<Content>,
}

#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SelectedOption {
    pub(super) option_id: Option<String>,
    pub(super) name: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Written {
    pub(super) text: Option<String>,
}

/// What an item is about; empty if it is no issue.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Content {
    pub(super) number: Number,
    pub(super) title: String,
    pub(super) state: String,
    pub(super) repository: Option<RepositoryName>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RepositoryName {
    pub(super) name_with_owner: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddAnswer {
    pub(super) add_project_v2_item_by_id: Option<Added>,
}

#[derive(Deserialize)]
pub(super) struct Added {
    pub(super) item: Option<Named>,
}
