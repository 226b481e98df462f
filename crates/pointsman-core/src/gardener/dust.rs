//! Findings too small for an issue of their own: three of a group make one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::Number;
use crate::time::Timestamp;

/// So many of a group are bundled.
pub const BUNDLE: usize = 3;

/// Something too small.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dust {
    pub issue: Number,
    /// With what it belongs together.
    pub group: String,
    /// What is to be done.
    pub title: String,
    pub reason: String,
    pub at: Timestamp,
}

/// The groups that are full, each with all that is in it, oldest first. The rest waits.
pub fn bundles(dust: &[Dust]) -> Vec<Vec<Dust>> {
    let mut groups: BTreeMap<&str, Vec<Dust>> = BTreeMap::new();
    for dust in dust {
        groups.entry(&dust.group).or_default().push(dust.clone());
    }
    let full = groups.into_values().filter(|group| group.len() >= BUNDLE);
    full.map(|mut group| {
        group.sort_by_key(|dust| (dust.at, dust.issue));
        group
    })
    .collect()
}
