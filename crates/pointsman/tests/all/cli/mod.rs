//! The command line in a frozen environment: a cleared environment, directories of its own, no daemon unless a test
//! starts one.

mod agents;
mod backup;
mod claim;
mod claude;
mod daemon;
mod doctor;
mod environment;
mod errors;
mod figures;
mod filters;
mod first_day;
mod forge;
mod formula;
mod help;
mod init;
mod kinds;
mod pipeline;
mod registry;
mod reports;
mod rescue;
