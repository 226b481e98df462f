//! The planner, by hand-written examples, by what it costs, and by random queues.

mod cost;
mod examples;
mod random_queues;
mod random_trains;
