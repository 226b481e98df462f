//! The settings in force of a registered project: its file, with the accepted value of everything that no person has
//! accepted yet. The core knows which settings those are; here they meet files and the store.

use std::collections::BTreeMap;
use std::path::Path;

use pointsman_core::config::trust::{Difference, MEMORY};
use pointsman_core::config::{self, Config, Trust};
use pointsman_core::ids::ProjectName;
use pointsman_store::{ProjectRow, Store};

use crate::formulas;

/// The settings of a project, and what waits for a person.
#[derive(Clone, Debug)]
pub(crate) struct InForce {
    pub(crate) config: Config,
    pub(crate) waiting: Vec<Difference>,
}

/// The settings that a person accepted; none for a project that an earlier version registered.
pub(crate) fn accepted(
    store: &Store,
    project: &ProjectName,
) -> Result<Option<Trust>, pointsman_store::Error> {
    store.memory(project, MEMORY)
}

/// The rights that a file and the formulas beside it ask for.
pub(crate) fn asked_for(config: &Config, checkout: &Path) -> Trust {
    Trust::of(config, &formulas::own(checkout))
}

/// The settings in force for a file that was read from the project's checkout.
pub(crate) fn in_force(
    accepted: Option<&Trust>,
    config: Config,
    checkout: &Path,
) -> Result<InForce, config::Error> {
    let Some(accepted) = accepted else { return Ok(InForce { config, waiting: Vec::new() }) };
    let waiting = accepted.differences(&asked_for(&config, checkout));
    Ok(InForce { config: accepted.in_force(&config)?, waiting })
}

/// The formulas that a project may use: its own as they were accepted, over those that are shipped.
pub(crate) fn own_formulas(
    store: &Store,
    row: &ProjectRow,
) -> Result<BTreeMap<String, String>, pointsman_store::Error> {
    Ok(match accepted(store, &row.name)? {
        Some(trust) => trust.formulas().clone(),
        None => formulas::own(&row.checkout),
    })
}
