//! Labels. The server knows them by number, people by name; a name may even be there twice.

use std::sync::PoisonError;

use pointsman_core::labels;
use serde_json::json;

use super::Forgejo;
use crate::forge::Error;
use crate::forge::hosted::errors::told;
use crate::forge::hosted::wire::Label;
use crate::http::Method;

impl Forgejo {
    /// The number of a label: known, found in the repository or its organisation, or made.
    pub(super) fn label(&self, name: &str) -> Result<u64, Error> {
        let _alone = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = self.cache().labels.get(name) {
            return Ok(*id);
        }
        let mut found: Vec<Label> = self.hosted.list(&self.hosted.get("list labels", &["labels"]))?;
        if !found.iter().any(|label| label.name == name) {
            found.extend(self.shared_labels()?);
        }
        if !found.iter().any(|label| label.name == name) {
            found.push(self.make_label(name)?);
        }
        let mut known = self.cache();
        for label in found {
            known.labels.entry(label.name).or_insert(label.id);
        }
        Ok(known.labels[name])
    }

    /// The labels of the organisation, if the owner is one.
    fn shared_labels(&self) -> Result<Vec<Label>, Error> {
        let path = ["orgs", self.hosted.owner(), "labels"];
        let request = self.hosted.anywhere("list labels", Method::Get, &path);
        match self.hosted.dev.list(&request, super::MANNER.page) {
            // Its owner is a person.
            Err(error) if matches!(error.status(), Some(403 | 404)) => Ok(Vec::new()),
            listed => listed.map_err(told),
        }
    }

    fn make_label(&self, name: &str) -> Result<Label, Error> {
        let (colour, description) = labels::look(name);
        let body = json!({ "name": name, "color": colour, "description": description });
        let order = self.hosted.request("make a label", Method::Post, &["labels"]).body(&body);
        self.hosted.dev.read(&order).map_err(told)
    }
}
