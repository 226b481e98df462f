//! Tests of pipelines: reading, editing, checking, running, drawing.

mod checking;
mod drawing;
mod editing;
mod reading;
mod reference;
mod running;

use super::model::Pipeline;

/// A plan that uses all of Attractor's words, and one that uses all of the harness's.
const ATTRACTOR: &str = include_str!("good/attractor.dot");
const HARNESS: &str = include_str!("good/harness.dot");

/// The plan of a file without errors.
fn pipeline(text: &str) -> Pipeline {
    let report = super::check(text);
    report.pipeline.unwrap_or_else(|| panic!("{text}\n{:#?}", report.diagnostics))
}
