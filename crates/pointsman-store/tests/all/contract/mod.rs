//! What every backend must keep. Each story gets a fresh store.

pub(crate) mod agents;
pub(crate) mod commit;
pub(crate) mod ledger;
pub(crate) mod notices;
pub(crate) mod outbox;
pub(crate) mod queue_states;
pub(crate) mod rows;
pub(crate) mod runs;
pub(crate) mod vault;
