//! The journal of a day, as a person would tell it.

use clap::Args;
use pointsman_core::role::Role;
use pointsman_view::event::JournalEntry;

use super::context::Context;
use super::failure::{Code, Failure};
use super::style::STRONG;
use super::time;
use crate::journal::{read, span_of};

/// Show what each role found and did on a day
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman journal\n  \
    pointsman journal --day 2026-11-15 --role supervisor")]
pub(crate) struct Arguments {
    /// The day, in UTC; by default today
    #[arg(long, value_name = "YYYY-MM-DD")]
    day: Option<String>,
    /// Only this role
    #[arg(long, value_name = "ROLE", value_parser = super::role())]
    role: Option<Role>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let project = context.project()?;
        let day = self.day.unwrap_or_else(|| time::day(time::now()));
        let Some(span) = span_of(&day) else {
            return Err(Failure::new(Code::Usage, format!("{day:?} is not a date"))
                .hint("write a date as 2026-11-15; days are in UTC"));
        };
        let found = match context.store()? {
            Some(store) => read(&store, &project.config.name, span, self.role)?,
            None => Vec::new(),
        };
        let rows: Vec<JournalEntry> = found
            .into_iter()
            .map(|written| JournalEntry::new(written.at.into(), written.issue, written.entry))
            .collect();
        if context.out.is_json() { context.out.value(&rows) } else { print(context, &day, &rows) }
    }
}

fn print(context: &Context, day: &str, rows: &[JournalEntry]) -> Result<(), Failure> {
    if rows.is_empty() {
        context.out.say(format!("Nothing was recorded on {day}."));
        return Ok(());
    }
    for row in rows {
        let at: String = row.at.to_string().chars().skip(11).take(5).collect();
        let role = &row.role;
        for (place, line) in row.lines.iter().enumerate() {
            if place == 0 {
                context.out.line(format!("{at} {STRONG}{role:<10}{STRONG:#} {line}"))?;
            } else {
                context.out.line(format!("{:16} {line}", ""))?;
            }
        }
    }
    Ok(())
}
