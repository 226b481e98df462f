//! The rules of Pointsman: everything that decides, nothing that acts.
//!
//! No file, process, network, clock or randomness here: time comes in as a value, orders to the
//! world go out as values. Where next: [`task::step`] is the reaction matrix, [`schedule`] chooses
//! what starts, [`words`] holds every sentence said to people and agents.

pub mod action;
pub mod agent;
pub mod artifact;
pub mod base64;
pub mod board;
pub mod chat;
pub mod claim;
pub mod claude;
pub mod concern;
pub mod config;
pub mod decision;
pub mod deed;
pub mod dependencies;
pub mod filing;
pub mod forge;
pub mod formula;
pub mod gardener;
pub mod hand_in;
pub mod health;
pub mod hook;
pub mod ids;
pub mod json;
pub mod known_secrets;
pub mod labels;
pub mod log;
pub mod notifier;
pub mod origin;
pub mod page;
pub mod part;
pub mod people;
pub mod pipeline;
pub mod planner;
pub mod position;
pub mod predictor;
pub mod queue;
pub mod relay;
pub mod report;
pub mod review;
pub mod role;
pub mod role_memory;
pub mod run;
pub mod sandbox;
pub mod schedule;
pub mod session;
pub mod signal;
pub mod snapshot;
pub mod task;
pub mod test_command;
pub mod text;
pub mod time;
pub mod timetable;
pub mod tree;
pub mod value;
pub mod vault;
pub mod verdict;
pub mod words;
pub mod workflow;
