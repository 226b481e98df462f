//! What to do next with a train of candidates.

use super::{EntryId, Runs};

/// How the line is worked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// One after another.
    Sequential,
    /// So many are tested together; a red batch is bisected.
    Batch {
        /// At most so many.
        size: usize,
    },
    /// So many candidates are tested at once, each on top of those ahead of it.
    Speculative {
        /// At most so many.
        depth: usize,
    },
}

/// The rules of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How the line is worked through.
    pub strategy: Strategy,
    /// How many gates may run at the same time.
    pub runners: usize,
}

/// One candidate of the train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Car {
    /// The branch that it adds to the one before it.
    pub entry: EntryId,
    /// What is known of its tree.
    pub runs: Runs,
}

/// All that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Train {
    /// What is known of the main branch's own tree.
    pub main: Runs,
    /// The candidates in order: `cars[k]` holds the branches of `cars[0]..=cars[k]`.
    pub cars: Vec<Car>,
    /// Suspects that were taken out of the train, each with the candidate under suspicion.
    pub aside: Vec<Car>,
}

/// Something that can be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// The main branch as it is.
    Main,
    /// The candidate at this place of the train.
    Car(usize),
    /// The candidate of a suspect beside the train.
    Aside(EntryId),
}

/// Why a branch is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its tests fail on a base where they pass.
    Red,
    /// Its tests cannot be run.
    Infra,
}

/// What to do now. Done in this order; after a landing or a change of the train, plan again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Land this candidate, and with it all before it.
    pub land: Option<usize>,
    /// These are out.
    pub eject: Vec<(EntryId, Fault)>,
    /// These are tested once more beside the train, which goes on without them.
    pub set_aside: Vec<EntryId>,
    /// These were no culprits: they go back to their place in the line.
    pub bring_back: Vec<EntryId>,
    /// What should be under test, most urgent first and not more than there are runners. What runs and is not listed
    /// is of no use any more.
    pub test: Vec<Subject>,
    /// The main branch itself is red: nobody is ejected for it.
    pub main_is_red: bool,
}

impl Strategy {
    /// How many candidates are worth building.
    pub fn window(self) -> usize {
        match self {
            Self::Sequential => 1,
            Self::Batch { size } => size.max(1),
            Self::Speculative { depth } => depth.max(1),
        }
    }
}

/// Decides.
pub fn plan(policy: &Policy, train: &Train) -> Plan {
    let _ = policy;
    if let Some(car) = train.cars.first()
        && car.runs.standing() == super::Standing::Green
    {
        return Plan { land: Some(0), ..Plan::default() };
    }
    Plan { test: vec![Subject::Car(0)], ..Plan::default() }
}
