//! The planner, by hand-written examples, by what it costs, and by random queues.

mod cost;
mod examples;
mod random_chains;
mod random_queues;
