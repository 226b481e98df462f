//! Pipelines: files of plans, checked and drawn.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pointsman_core::pipeline::draw::{self, Progress};
use pointsman_core::pipeline::{self, Diagnostic, MAX_BYTES, Report, Severity};
use pointsman_view::pipeline::Checked;

use super::failure::{Code, Failure};
use super::out::Out;
use super::style;

/// Work with plans: Graphviz files of steps
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  pointsman pipeline check plan.dot\n  pointsman pipeline render plan.dot"
)]
pub(crate) enum Command {
    Check(Check),
    Render(Render),
}

const CHECK_EXAMPLES: &str =
    "Examples:\n  pointsman pipeline check plan.dot\n  pointsman pipeline check --json - < plan.dot";

/// Check a plan and report every mistake with its line and column
///
/// The file is a Graphviz digraph in the vocabulary of Attractor or of the Claude Code harness. An error is anything
/// that would keep the plan from running, or that it asks for and Pointsman does not support; a warning is something
/// you may not have meant. This needs no project. Exits with 1 if there is an error.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct Check {
    /// The file; `-` is standard input
    file: PathBuf,
}

/// Draw a plan in the terminal or as a picture
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pointsman pipeline render plan.dot --svg > plan.svg")]
pub(crate) struct Render {
    /// The file; `-` is standard input
    file: PathBuf,
    /// Draw an SVG picture instead of characters
    #[arg(long)]
    svg: bool,
}

impl Command {
    /// Carries the command out; it needs neither a project nor a daemon.
    pub(crate) fn run(self, out: Out) -> Result<(), Failure> {
        match self {
            Self::Check(Check { file }) => check(out, &file),
            Self::Render(Render { file, svg }) => render(out, &file, svg),
        }
    }
}

fn check(out: Out, file: &Path) -> Result<(), Failure> {
    let (origin, report) = looked_at(file)?;
    if out.is_json() {
        out.value(&Checked::new(origin.clone(), &report))?;
    } else {
        for found in &report.diagnostics {
            out.line(shown(found, &origin))?;
        }
        if let Some(pipeline) = &report.pipeline {
            let (nodes, edges) = (pipeline.nodes.len(), pipeline.edges.len());
            out.line(format!("{origin}: {nodes} nodes and {edges} edges{}", counted(report.warnings())))?;
        }
    }
    match report.errors() {
        0 => Ok(()),
        _ if out.is_json() => Err(Failure::silent(Code::Failed)),
        1 => Err(Failure::failed(format!("{origin} has an error"))),
        many => Err(Failure::failed(format!("{origin} has {many} errors"))),
    }
}

fn render(out: Out, file: &Path, svg: bool) -> Result<(), Failure> {
    let (origin, report) = looked_at(file)?;
    let Some(pipeline) = &report.pipeline else {
        let first = report.diagnostics.iter().find(|found| found.severity == Severity::Error);
        let first = first.map(|found| format!(": {found}")).unwrap_or_default();
        return Err(Failure::failed(format!("{origin} is not a plan that can be drawn{first}"))
            .hint(format!("pointsman pipeline check {origin}")));
    };
    let drawn =
        if svg { draw::svg(pipeline, &Progress::new()) } else { draw::terminal(pipeline, &Progress::new()) };
    let drawn = drawn.map_err(|error| Failure::failed(error).hint(format!("dot -Tsvg {origin}")))?;
    out.line(drawn.trim_end())
}

/// Reads and checks a file. One that is no text is a finding like any other.
fn looked_at(file: &Path) -> Result<(String, Report), Failure> {
    let (origin, bytes) = read(file)?;
    let report = match pipeline::text_of(&bytes) {
        Ok(text) => pipeline::check(text),
        Err(found) => Report { diagnostics: vec![*found], pipeline: None },
    };
    Ok((origin, report))
}

/// The file's name as it stands in messages, and its bytes, at most one more than a plan may have.
fn read(file: &Path) -> Result<(String, Vec<u8>), Failure> {
    let most = MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    if file.as_os_str() == "-" {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
        return Ok(("<stdin>".to_owned(), bytes));
    }
    let origin = file.display().to_string();
    if !file.is_file() {
        return Err(Failure::not_found(format!("there is no file {origin}")));
    }
    let read = File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|error| Failure::failed(format!("cannot read {origin}: {error}")))?;
    Ok((origin, bytes))
}

/// A finding with its line and a mark below for people, one line in a pipe.
fn shown(found: &Diagnostic, origin: &str) -> String {
    if !std::io::stdout().is_terminal() {
        let hint = found.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("{origin}:{found}{hint}");
    }
    let colour = match found.severity {
        Severity::Error => style::ERROR,
        Severity::Warning => style::WAITING,
    };
    let word = found.severity.as_str();
    found.pretty(origin).replacen(&format!(" {word}: "), &format!(" {colour}{word}:{colour:#} "), 1)
}

fn counted(warnings: usize) -> String {
    match warnings {
        0 => String::new(),
        1 => ", 1 warning".to_owned(),
        many => format!(", {many} warnings"),
    }
}
