//! The supervisor's way: a look at the machine and the project, what people are told of it, what a model makes of it, and what
//! people say to it.

use super::{Event, Heard, Orders};
use crate::health::{Assessment, Memory, judgement, report};
use crate::log;
use crate::run::RunId;
use crate::value::Outcome;
use crate::words;
use crate::workflow::Refused;

/// Steps the supervisor's memory; answers what a result that is settled by it counts as.
pub(super) fn step(
    memory: &mut Memory,
    event: &Event,
    orders: &mut Orders<'_>,
) -> Result<Option<Outcome>, Refused> {
    match event {
        Event::Inspected { assessment, done, run } => {
            inspected(memory, assessment, done, *run, orders);
            Ok(None)
        }
        Event::Spoken { by, words, ignore, answer } => {
            memory.ignored.extend(*ignore);
            let lines = vec![format!("{by}: {}", crate::text::clean_line(words, 200)), answer.clone()];
            let (by, words) = (by.clone(), crate::text::clean_line(words, 500));
            let ignored = ignore.map(|(kind, _)| kind.name().to_owned());
            orders.log(log::Entry::SupervisorHeard { by, words, ignored, lines });
            Ok(None)
        }
        Event::Heard { run, heard } => heard_of(memory, *run, heard, orders),
        Event::Looked { .. }
        | Event::Hindered { .. }
        | Event::Measured { .. }
        | Event::ActionRefused { .. }
        | Event::DeedEnded { .. }
        | Event::Counted { .. }
        | Event::Resumed
        | Event::TimePassed
        | Event::EffectGaveUp { .. } => Err(Refused::NotNow(words::reason::OTHER_ROLE.to_owned())),
    }
}

/// Remembers what was found. People are told if something changed, and again after a while if it needs them.
fn inspected(
    memory: &mut Memory,
    assessment: &Assessment,
    done: &[String],
    run: Option<RunId>,
    orders: &mut Orders<'_>,
) {
    let report = report(memory, &assessment.findings, orders.config, orders.now);
    *memory = report.memory;
    if let Some(run) = run {
        memory.judged.extend(report.ask.iter().map(|finding| (finding.key(), orders.now)));
        memory.run = Some(run);
    }
    if report.changed || report.told.is_some() || !done.is_empty() {
        orders.log(log::Entry::SupervisorLooked {
            findings: assessment.findings.clone(),
            unknown: assessment.unknown.clone(),
            done: done.to_vec(),
            told: report.told.is_some(),
            lines: words::health::journal(assessment, memory, done, orders.now),
        });
    }
    if let Some(told) = &report.told {
        orders.notify(words::health::summary(orders.project(), told, orders.now));
    }
}

/// Passes on what a model makes of the findings, and nothing else of it.
fn heard_of(
    memory: &mut Memory,
    run: RunId,
    heard: &Heard,
    orders: &mut Orders<'_>,
) -> Result<Option<Outcome>, Refused> {
    if memory.run != Some(run) {
        return Err(Refused::Stale(words::reason::ANSWER_KNOWN.to_owned()));
    }
    memory.run = None;
    let (said, outcome) = match heard {
        Heard::Answer { result, .. } => match judgement(result.as_ref()) {
            Ok(summary) => (Some(summary), Some(Outcome::Used)),
            Err(_) => (None, Some(Outcome::Noise)),
        },
        Heard::Nothing { unheard, .. } => (None, (!unheard).then_some(Outcome::Noise)),
    };
    let said = said.filter(|said| !said.trim().is_empty());
    let lines = vec![words::daemon::factory::run_says(run, said.as_deref().unwrap_or("nothing"))];
    orders.log(log::Entry::SupervisorJudged { run, lines });
    if let Some(said) = said {
        orders.notify(words::health::judged(orders.project(), &said));
    }
    Ok(outcome)
}
