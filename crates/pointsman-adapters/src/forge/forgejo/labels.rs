//! Labels. The server knows them by number, people by name; a name may even be there twice.

use std::collections::BTreeSet;

use pointsman_core::ids::Number;
use pointsman_core::labels;
use serde_json::json;

use super::wire::Label;
use super::{Forgejo, PAGE, told};
use crate::forge::Error;
use crate::http::{Method, Request};

const OPERATION: &str = "set labels";

impl Forgejo {
    /// Adds and removes what is not so yet, and answers the names that are there afterwards, sorted.
    pub(super) fn change_labels(
        &self,
        number: Number,
        add: &[String],
        remove: &[String],
    ) -> Result<Vec<String>, Error> {
        let issue = number.to_string();
        let path = ["issues", &issue, "labels"];
        let mut there = self.labels_of(&path)?;
        let missing: Vec<&String> =
            add.iter().filter(|name| !there.iter().any(|l| l.name == **name)).collect();
        if !missing.is_empty() {
            let ids = missing.iter().map(|name| self.label(name)).collect::<Result<Vec<_>, _>>()?;
            // Adding twice is adding once.
            let order =
                self.request(OPERATION, Method::Post, &path).body(&json!({ "labels": ids })).repeatable();
            match self.dev.read(&order) {
                Ok(now) => there = now,
                Err(error) => {
                    // Somebody may have deleted one: look them up anew next time.
                    self.known().labels.clear();
                    return Err(told(error));
                }
            }
        }
        let unwanted: Vec<u64> = there.iter().filter(|l| remove.contains(&l.name)).map(|l| l.id).collect();
        for id in &unwanted {
            // By number: by name the server does nothing and says that all is well.
            let path = ["issues", &issue, "labels", &id.to_string()];
            match self.dev.send(&self.request(OPERATION, Method::Delete, &path)) {
                Err(error) if error.status() != Some(404) => return Err(told(error)),
                Ok(_) | Err(_) => {}
            }
        }
        if !unwanted.is_empty() {
            there = self.labels_of(&path)?;
        }
        let names: BTreeSet<String> = there.into_iter().map(|label| label.name).collect();
        Ok(names.into_iter().collect())
    }

    /// The labels of an issue, which the server gives all at once.
    fn labels_of(&self, path: &[&str]) -> Result<Vec<Label>, Error> {
        let listed: Option<Vec<Label>> = self.dev.read(&self.get(OPERATION, path)).map_err(told)?;
        Ok(listed.unwrap_or_default())
    }

    /// The number of a label: known, found in the repository or its organisation, or made.
    fn label(&self, name: &str) -> Result<u64, Error> {
        if let Some(id) = self.known().labels.get(name) {
            return Ok(*id);
        }
        let mut found: Vec<Label> =
            self.dev.list(&self.get("list labels", &["labels"]), PAGE).map_err(told)?;
        if !found.iter().any(|label| label.name == name) {
            let shared = Request::get("list labels", &["orgs", &self.owner, "labels"]);
            match self.dev.list::<Label>(&shared, PAGE) {
                Ok(labels) => found.extend(labels),
                // Its owner is a person.
                Err(error) if matches!(error.status(), Some(403 | 404)) => {}
                Err(error) => return Err(told(error)),
            }
        }
        if !found.iter().any(|label| label.name == name) {
            found.push(self.make_label(name)?);
        }
        let mut known = self.known();
        for label in found {
            known.labels.entry(label.name).or_insert(label.id);
        }
        Ok(known.labels[name])
    }

    fn make_label(&self, name: &str) -> Result<Label, Error> {
        let (colour, description) = labels::look(name);
        let body = json!({ "name": name, "color": colour, "description": description });
        let order = self.request("make a label", Method::Post, &["labels"]).body(&body);
        self.dev.read(&order).map_err(told)
    }
}
