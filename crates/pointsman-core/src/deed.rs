//! Deeds: changes on the forge that a role's memory or a run orders, beside those of tasks.
//!
//! A deed has a name among those of its owner. The owner writes the name down with the decision, in the same commit in which the
//! deed enters the outbox, so a deed is ordered once. Whatever becomes of it is written under the same name: a deed that the
//! forge refuses for good has ended, and is not wanted again.
//!
//! The marker of a comment or of a new issue is how the forge's own records tell whether it was written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{Number, Sha};
use crate::task::Notice;
use crate::words;
use crate::workflow::Refused;

/// A change on the forge. Each can be done twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// Comment on an open issue, change its labels and close it: as much of that as is given, in this order.
    Tend(Tend),
    /// File an issue.
    File { marker: String, title: String, body: String, labels: Vec<String> },
    /// Tell people about an issue.
    Tell { issue: Number, notice: Notice },
    /// Comment on a pull request.
    Remark { pr: Number, marker: String, body: String },
    /// Post the review that a run has written, with the issues that it wants filed.
    PostReview { pr: Number, head: Sha },
    /// Ask the question of a run on the issue that it is about.
    AskOnIssue { issue: Number },
    /// Report what an action has done: its issue is closed, or becomes the dev agent's with the commits of the action.
    ReportAction { issue: Number },
}

impl Act {
    /// The issue that it closes.
    pub fn closes(&self) -> Option<Number> {
        match self {
            Self::Tend(tend) if tend.close => Some(tend.issue),
            Self::Tend(_)
            | Self::File { .. }
            | Self::Tell { .. }
            | Self::Remark { .. }
            | Self::PostReview { .. }
            | Self::AskOnIssue { .. }
            | Self::ReportAction { .. } => None,
        }
    }
}

/// Changes of one issue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tend {
    pub issue: Number,
    /// The name of its comment.
    pub marker: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub close: bool,
}

/// The end of a deed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "became", rename_all = "snake_case")]
pub enum Ending {
    /// It is done, and perhaps has filed an issue.
    Done {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filed: Option<Number>,
    },
    /// Its issue or pull request was deleted or closed meanwhile: nothing is left to be done.
    Gone,
    /// The forge refuses it for good.
    Refused { error: String },
}

/// Deeds that were ordered, by name, with the end of each; none while it is on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Deeds(BTreeMap<String, Option<Ending>>);

impl Deeds {
    /// Writes down that a deed is ordered; false if it was before.
    pub fn order(&mut self, name: &str) -> bool {
        let new = !self.0.contains_key(name);
        if new {
            self.0.insert(name.to_owned(), None);
        }
        new
    }

    /// Writes down what became of a deed. Only one that is on its way can end.
    pub fn end(&mut self, name: &str, ending: &Ending) -> Result<(), Refused> {
        match self.0.get_mut(name) {
            Some(end @ None) => {
                *end = Some(ending.clone());
                Ok(())
            }
            Some(Some(_)) | None => Err(Refused::Stale(words::reason::deed_is_over(name))),
        }
    }

    /// A deed that was ordered: its end, or none while it is on its way.
    pub fn get(&self, name: &str) -> Option<Option<&Ending>> {
        self.0.get(name).map(Option::as_ref)
    }

    /// Whether any is on its way.
    pub fn are_under_way(&self) -> bool {
        self.0.values().any(Option::is_none)
    }

    /// Whether none was ever ordered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets one, so that it can be ordered again.
    pub fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{Act, Deeds, Ending, Tend};

    #[test]
    fn a_deed_is_ordered_once_and_ends_once() {
        let mut deeds = Deeds::default();
        assert!(deeds.order("report") && !deeds.order("report"));
        assert!(deeds.are_under_way() && deeds.get("report") == Some(None) && deeds.get("other").is_none());
        let refused = Ending::Refused { error: "no".to_owned() };
        assert!(deeds.end("other", &Ending::Gone).is_err(), "nobody ordered it");
        assert!(deeds.end("report", &refused).is_ok());
        assert!(deeds.end("report", &Ending::Done { filed: None }).is_err(), "it is over");
        assert_eq!(deeds.get("report"), Some(Some(&refused)));
        assert!(!deeds.are_under_way() && !deeds.order("report"), "and is not wanted again");
    }

    #[test]
    fn a_deed_reads_back() {
        let tend = Tend { issue: 4, marker: "gardener-7-4".to_owned(), close: true, ..Tend::default() };
        let act = Act::Tend(tend);
        let stored = serde_json::to_string(&act).unwrap();
        assert_eq!(stored, r#"{"act":"tend","issue":4,"marker":"gardener-7-4","close":true}"#);
        assert_eq!(serde_json::from_str::<Act>(&stored).unwrap(), act);
    }
}
