//! Pipelines: plans as Graphviz files, read, checked, carried out and drawn.
//!
//! The way of a file: `lexer` and `parser` give a syntax tree ([`syntax`]), [`graph`] applies defaults and subgraphs as
//! Graphviz does, `read` turns it into the typed [`model`], `check` says what must hold in it. [`run`] interprets a
//! model step by step, [`edit`] writes progress back into a user's file, [`draw`] shows it.
//! Performing orders (issues, tools, questions) belongs to the daemon.

mod check;
pub mod condition;
pub mod diagnostic;
pub mod draw;
pub mod edit;
pub mod graph;
mod lexer;
pub mod model;
mod parser;
mod read;
pub mod route;
pub mod run;
pub mod style_sheet;
pub mod syntax;
#[cfg(test)]
mod tests;
pub mod topology;
mod vocabulary;

pub use diagnostic::{Diagnostic, Severity};
pub use model::Pipeline;
pub use parser::{MAX_BYTES, MAX_DEPTH};

use diagnostic::{Problem, located};
use graph::Graph;
use syntax::Span;

use crate::words::pipeline::Sentence;

/// The findings about a file, and its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The plan, unless something is wrong with it.
    pub pipeline: Option<Pipeline>,
}

impl Report {
    /// The number of findings that keep the plan from being run.
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|found| found.severity == Severity::Error).count()
    }

    /// The number of findings that do not.
    pub fn warnings(&self) -> usize {
        self.diagnostics.len() - self.errors()
    }
}

/// Reads and checks a file.
pub fn check(text: &str) -> Report {
    let (graph, mut problems) = match read_graph(text) {
        Ok(found) => found,
        Err(problem) => return Report { diagnostics: located(text, vec![problem]), pipeline: None },
    };
    let (pipeline, found) = read::read(text, &graph);
    problems.extend(found);
    problems.extend(check::check(&pipeline, &graph));
    let diagnostics = located(text, problems);
    let sound = diagnostics.iter().all(|found| found.severity != Severity::Error);
    Report { diagnostics, pipeline: sound.then_some(pipeline) }
}

/// The graph of a file that need not be a pipeline.
pub fn graph(text: &str) -> Result<Graph, Box<Diagnostic>> {
    read_graph(text).map(|(graph, _)| graph).map_err(|problem| Box::new(Diagnostic::new(text, problem)))
}

/// The text of a file. Graphviz guesses at other encodings; a plan that spends money is not guessed at.
pub fn text_of(bytes: &[u8]) -> Result<&str, Box<Diagnostic>> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let before = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
        let byte = bytes.get(at).copied().unwrap_or_default();
        let message = Sentence::NotUtf8(format!("{byte:02X}"));
        let problem = Problem::new(Span::new(at, at), "encoding", message).hint(Sentence::SaveFileAsUtf8);
        Box::new(Diagnostic::new(before, problem))
    })
}

fn read_graph(text: &str) -> Result<(Graph, Vec<Problem>), Problem> {
    let (document, warnings) = parser::parse(text)?;
    Ok((graph::build(&document)?, warnings))
}
