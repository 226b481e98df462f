//! The figures of a span of time, for people: bars in the terminal, or one HTML file.

use std::path::PathBuf;

use clap::Args;
use pointsman_core::config::Span;
use pointsman_core::ids::ProjectName;
use pointsman_core::report::{Counter, Figures, Logged, SessionFacts};
use pointsman_core::time::Timestamp;
use pointsman_core::words::report as words;
use pointsman_store::{EventFilter, SessionScope, Store};
use pointsman_view::report::Report;

use super::context::Context;
use super::failure::Failure;
use super::{report_page, style, time};

/// How many events are read at once.
const PAGE: u32 = 5_000;
/// The history of what landed is read from so long before the span.
const HISTORY_DAYS: i64 = 90;
const DAY: i64 = 86_400_000;
/// The longest bar.
const BAR: usize = 30;
/// More rows of one plot are not shown in a terminal.
const ROWS: usize = 12;

/// Report what was done in a period, how well, and at what cost
///
/// The report covers all projects unless --project names one. Everything is counted from the log; costs are those of
/// sessions that began in the period.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman report\n  \
    pointsman report --since 30d --html report.html\n  \
    pointsman report --json | jq .first_pass_rate")]
pub(crate) struct Arguments {
    /// How far to look back
    #[arg(long, value_name = "SPAN", default_value = "7d")]
    since: Span,
    /// Write a self-contained HTML file with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The figures of a span, and what is shown around them.
pub(super) struct Shown {
    pub(super) report: Report,
    pub(super) title: String,
    /// How many issues landed on each day, oldest first.
    pub(super) by_day: Vec<u64>,
}

/// A plot: a name, and a value for each row.
pub(super) struct Plot {
    pub(super) title: &'static str,
    pub(super) rows: Vec<Row>,
}

/// One bar.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) value: f64,
    /// The value in words.
    pub(super) told: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let until = time::now();
        let span = i64::try_from(self.since.0.as_millis()).unwrap_or(i64::MAX);
        let since = Timestamp(until.0.saturating_sub(span).max(0));
        // An unknown name is told.
        let project = match &context.wanted {
            Some(_) => Some(context.project()?.config.name),
            None => None,
        };
        let figures = match context.store()? {
            Some(store) => count(&store, project.as_ref(), since)?,
            None => Counter::new(since).finish(&[]),
        };
        let shown = Shown {
            report: Report::new(&figures),
            title: words::title(
                project.as_ref().map_or(words::ALL_PROJECTS, ProjectName::as_str),
                &time::day(since),
                &time::day(until),
            ),
            by_day: by_day(&figures, since, until),
        };
        if let Some(path) = &self.html {
            std::fs::write(path, report_page::html(&shown))
                .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
            context.out.say(words::written(&path.display().to_string()));
        }
        match (context.out.is_json(), &self.html) {
            (true, _) => context.out.value(&shown.report),
            (false, Some(_)) => Ok(()),
            (false, None) => print(context, &shown),
        }
    }
}

/// Reads the log once, and the register of sessions.
fn count(store: &Store, project: Option<&ProjectName>, since: Timestamp) -> Result<Figures, Failure> {
    let mut counter = Counter::new(since);
    let mut filter = EventFilter {
        since: store.seq_before(since.moved(-HISTORY_DAYS * DAY))?,
        project: project.cloned(),
        limit: PAGE,
        ..EventFilter::default()
    };
    loop {
        let page = store.events(&filter)?;
        let Some(last) = page.last() else { break };
        filter.since = last.seq;
        for event in &page {
            let (project, issue) = (event.project.as_ref(), event.issue);
            counter.take(Logged { at: event.at, project, issue, kind: &event.kind, data: &event.data });
        }
    }
    let sessions = store.sessions(project, SessionScope::All)?.into_iter().map(|row| SessionFacts {
        project: row.project,
        issue: row.issue,
        role: row.role,
        agent: row.model,
        created_at: row.created_at,
        exit: row.exit,
        spent: row.spent,
    });
    Ok(counter.finish(&sessions.collect::<Vec<_>>()))
}

fn by_day(figures: &Figures, since: Timestamp, until: Timestamp) -> Vec<u64> {
    let days = until.since(since).as_secs().div_ceil(86_400).max(1);
    // A plot of a century is not worth its memory.
    (0..days.min(3_660)).map(|day| figures.landed_by_day.get(&day).copied().unwrap_or_default()).collect()
}

impl Shown {
    /// The figures without a plot.
    pub(super) fn figures(&self) -> Vec<(&'static str, String)> {
        let report = &self.report;
        let attempts = report.attempts_per_landed;
        let attempts =
            attempts.map_or_else(|| words::UNKNOWN.to_owned(), |attempts| format!("{attempts:.1}"));
        vec![
            (words::LANDED, report.issues_landed.to_string()),
            (words::FIRST_PASS, words::percent(report.first_pass_rate)),
            (words::ATTEMPTS, attempts),
            (words::LEAD_TIME, words::lead_time(report.lead_time.p50, report.lead_time.p90)),
            (words::COST, words::usd(report.cost.total)),
            (words::WASTED, words::usd(report.cost.wasted)),
            (words::PERSON, words::seconds(report.person_minutes * 60.0)),
            (words::ACCEPTED, words::percent(report.acceptance_rate)),
            (words::REVERTS, report.reverts.to_string()),
            (words::CI, words::ci(report.ci.runs, report.ci.red, report.ci.flaky)),
            (
                words::REVIEWS,
                words::reviews(
                    report.reviews.asked,
                    report.reviews.found,
                    report.reviews.overruled,
                    report.reviews.reverted,
                ),
            ),
        ]
    }

    /// The plots that have something to show.
    pub(super) fn plots(&self) -> Vec<Plot> {
        let report = &self.report;
        let stages = report.lead_time.by_stage.iter().map(|(state, spread)| Row {
            name: state.name().to_owned(),
            value: spread.p50,
            told: words::seconds(spread.p50),
        });
        let money = |name: String, usd: Option<f64>| {
            usd.map(|value| Row { name, value, told: words::usd(Some(value)) })
        };
        let by_issue = report
            .cost
            .per_issue
            .iter()
            .filter_map(|cost| money(format!("{}#{}", cost.project, cost.issue), cost.usd));
        let by_role = report.by_role.iter().filter_map(|share| money(share.role.to_string(), share.work.usd));
        let by_agent = report.by_agent.iter().filter_map(|share| {
            money(share.agent.clone().unwrap_or_else(|| words::UNNAMED.to_owned()), share.work.usd)
        });
        let dearest = |mut rows: Vec<Row>| {
            rows.sort_by(|a, b| b.value.total_cmp(&a.value));
            rows
        };
        #[allow(clippy::cast_precision_loss, reason = "counts of issues are small")]
        let by_class = report.by_class.iter().map(|share| Row {
            name: share.class.to_string(),
            value: share.landed.max(share.reverted) as f64,
            told: words::class(share.landed, share.reverted),
        });
        let plots = [
            Plot { title: words::BY_CLASS, rows: by_class.collect() },
            Plot { title: words::STAGES, rows: stages.collect() },
            Plot { title: words::COST_BY_ISSUE, rows: dearest(by_issue.collect()) },
            Plot { title: words::COST_BY_ROLE, rows: dearest(by_role.collect()) },
            Plot { title: words::COST_BY_AGENT, rows: dearest(by_agent.collect()) },
        ];
        plots.into_iter().filter(|plot| plot.rows.iter().any(|row| row.value > 0.0)).collect()
    }
}

fn print(context: &Context, shown: &Shown) -> Result<(), Failure> {
    let (strong, busy, quiet) = (style::STRONG, style::BUSY, style::QUIET);
    let out = context.out;
    out.line(format!("{strong}{}{strong:#}", shown.title))?;
    let figures = shown.figures();
    let widest = figures.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, told) in figures {
        out.line(format!("  {name:<widest$}  {told}"))?;
    }
    if shown.by_day.iter().any(|count| *count > 0) {
        out.line(format!("\n{strong}{}{strong:#}", words::LANDED_BY_DAY))?;
        out.line(format!("  {busy}{}{busy:#}", sparks(&shown.by_day)))?;
    }
    for plot in shown.plots() {
        out.line(format!("\n{strong}{}{strong:#}", plot.title))?;
        let most = plot.rows.iter().map(|row| row.value).fold(0.0, f64::max);
        let rows = &plot.rows[..plot.rows.len().min(ROWS)];
        let widest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
        for Row { name, value, told } in rows {
            out.line(format!(
                "  {name:<widest$}  {busy}{}{busy:#} {quiet}{told}{quiet:#}",
                bar(*value, most)
            ))?;
        }
    }
    Ok(())
}

/// A bar in eighths of a column.
fn bar(value: f64, most: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if most <= 0.0 {
        return String::new();
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a short bar"
    )]
    let eighths = (value / most * (BAR * 8) as f64).round().clamp(0.0, (BAR * 8) as f64) as usize;
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

/// A column for each day.
fn sparks(counts: &[u64]) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let step = |count: &u64| {
        let at = usize::try_from(count.saturating_mul(7).div_ceil(most)).unwrap_or(7);
        STEPS[at.min(7)]
    };
    counts.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::{bar, sparks};

    #[test]
    fn bars_are_as_long_as_their_values() {
        assert_eq!(bar(1.0, 1.0).chars().count(), super::BAR);
        assert_eq!(bar(0.0, 1.0), "");
        assert_eq!(bar(0.5, 1.0), "█".repeat(super::BAR / 2));
        assert_eq!(bar(1.0, 0.0), "");
    }

    #[test]
    fn every_day_has_a_column() {
        assert_eq!(sparks(&[0, 1, 2, 4]), "▁▃▅█");
        assert_eq!(sparks(&[0]), "▁");
    }
}
