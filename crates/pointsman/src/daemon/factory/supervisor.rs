//! The supervisor in the loop: what was found is remembered with what people are told of it, and what people say is
//! taken once, with its answer.

use pointsman_core::chat::Reply;
use pointsman_core::config::NotifierKind;
use pointsman_core::health::{
    Assessment, HealthSummary, Machine, Memory, Report, Tail, Verdict, hear as decide, judgement, report,
};
use pointsman_core::ids::{Number, ProjectName, TaskKey};
use pointsman_core::log;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::role::Role;
use pointsman_core::run::{Run, Status};
use pointsman_core::task::{Event, Notice, Order, Refused, Stage};
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::value::Outcome;
use pointsman_core::words;
use pointsman_store::{Change, NewNotice, ReplyRow, Store, Write};

use crate::daemon::engine::{Engine, Input};
use crate::daemon::{notifier, runs};

/// The role that this file is about.
pub(super) const ROLE: Role = Role::Supervisor;
/// Its formula, for what needs judgement.
pub(super) const FORMULA: &str = ROLE.formula();
/// Its thread, and the name under which it is remembered.
const NAME: &str = ROLE.as_str();

/// The findings of one look, and what was done about them.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub assessment: Assessment,
    /// What was done about it, one line each.
    pub done: Vec<String>,
    pub machine: Machine,
    /// The ends of logs, for whoever has to judge.
    pub tails: Vec<Tail>,
}

/// Whom people talk to.
pub(super) fn topic() -> Topic {
    Topic::of_role(ROLE)
}

/// Reads what the supervisor remembers of a project.
pub fn memory(store: &Store, project: &ProjectName) -> Result<Memory, pointsman_store::Error> {
    Ok(store.memory(project, NAME)?.unwrap_or_default())
}

/// Writes a look down, with what people are told of it, in one transaction.
pub fn look(
    engine: &mut Engine,
    project: &ProjectName,
    looked: &Inspection,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let Some(config) = engine.config(project) else { return Ok(()) };
    let before = memory(engine.store(), project)?;
    let mut report = report(&before, &looked.assessment.findings, &config, now);
    let run = ask(engine, project, &mut report, looked, now)?;
    let changes = vec![looked_change(engine, project, &before, &report, looked, now)?];
    let begins: Vec<Input> = run.map(Input::begin).into_iter().collect();
    engine.take_with(&begins, changes, now).map(drop)
}

fn looked_change(
    engine: &Engine,
    project: &ProjectName,
    before: &Memory,
    report: &Report,
    looked: &Inspection,
    now: Timestamp,
) -> Result<Change, pointsman_store::Error> {
    let memory = pointsman_store::Memory::new(NAME, &report.memory)?;
    if !report.changed && report.told.is_none() && looked.done.is_empty() {
        return Ok(super::remembered(project, memory, now));
    }
    let logged = log::Entry::SupervisorLooked {
        findings: looked.assessment.findings.clone(),
        unknown: looked.assessment.unknown.clone(),
        done: looked.done.clone(),
        told: report.told.is_some(),
        lines: words::health::journal(&looked.assessment, &report.memory, &looked.done, now),
    };
    let mut change = Change::logged(now, project, &logged);
    change.memories.push(memory);
    if let Some(told) = &report.told {
        change.writes.extend(notifier::planned(engine, &posting(project, before, told, now), now)?);
    }
    Ok(change)
}

/// A run that is asked about what no recipe covers, once for each thing, if nothing is in the way.
fn ask(
    engine: &mut Engine,
    project: &ProjectName,
    report: &mut Report,
    looked: &Inspection,
    now: Timestamp,
) -> Result<Option<Run>, pointsman_store::Error> {
    let free = looked.machine.free_memory_mb;
    if report.ask.is_empty() || super::hindrance(engine, project, ROLE, free, now)?.is_some() {
        return Ok(None);
    }
    let wish = runs::RunRequest::new(FORMULA, NAME);
    let run = match runs::draft(engine, project, &wish, now) {
        Ok(Ok(run)) => run,
        // A run that cannot be read keeps this one from being asked, and no look from being written down.
        Ok(Err(_)) | Err(pointsman_store::Error::Unreadable(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let figures = words::health::machine(&looked.machine);
    report.memory.judged.extend(report.ask.iter().map(|finding| (finding.key(), now)));
    report.memory.run = Some(run.id);
    Ok(Some(Run {
        briefing: Some(words::health::briefing(&report.ask, &figures, &looked.tails, now)),
        ..run
    }))
}

/// The run that was asked, if it is over.
pub(super) fn answered(store: &Store, project: &ProjectName) -> Result<Option<Run>, pointsman_store::Error> {
    let Some(id) = memory(store, project)?.run else { return Ok(None) };
    Ok(store.run(project, id)?.filter(|run| run.status.is_over()))
}

/// What people are told of what a run said; nothing if it said nothing.
pub(super) fn judged(run: &Run) -> (Option<Posting>, Option<Outcome>) {
    let summary = match run.status {
        Status::Done => judgement(run.result.as_ref()),
        Status::Failed | Status::Stopped | Status::Starting | Status::Running => Err(String::new()),
    };
    let posting = |summary: &String| Posting {
        key: format!("judged/{}/{}", run.project, run.id),
        project: run.project.clone(),
        topic: topic(),
        link: None,
        question: None,
        notice: words::health::judged(&run.project, summary),
    };
    match summary {
        Ok(summary) if summary.trim().is_empty() => (None, Some(Outcome::Used)),
        Ok(summary) => (Some(posting(&summary)), Some(Outcome::Used)),
        Err(_) => (None, (!run.is_unheard()).then_some(Outcome::Noise)),
    }
}

/// Writes down that a run was heard.
pub fn settle(
    engine: &mut Engine,
    project: &ProjectName,
    run: &Run,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let mut memory = memory(engine.store(), project)?;
    if memory.run != Some(run.id) {
        return Ok(());
    }
    memory.run = None;
    let (posting, outcome) = judged(run);
    let said = posting.as_ref().map_or("nothing", |posting| posting.notice.body.as_str());
    let lines = vec![words::daemon::factory::run_says(run.id, said)];
    let mut change = Change::logged(now, project, &log::Entry::SupervisorJudged { run: run.id, lines });
    change.memories.push(pointsman_store::Memory::new(NAME, &memory)?);
    let counted: Vec<Input> =
        outcome.map(|outcome| super::counted(project, ROLE, outcome)).into_iter().collect();
    engine.take_with(&counted, vec![change], now).map(drop)
}

/// What people are told of a look. Its key is the same until the look is written down.
pub(super) fn posting(
    project: &ProjectName,
    before: &Memory,
    told: &HealthSummary,
    now: Timestamp,
) -> Posting {
    Posting {
        key: format!("health:{project}:{}", before.looked_at.0),
        project: project.clone(),
        topic: topic(),
        link: None,
        question: None,
        notice: words::health::summary(project, told, now),
    }
}

/// Takes what people said to the supervisor: each once, with its answer.
pub fn hear(
    engine: &mut Engine,
    project: &ProjectName,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    // A session that asked reads prose itself.
    let asked = engine.store().last_run(project, FORMULA)?.is_some_and(|run| !run.status.is_over());
    for row in engine.store().replies(project, &topic())? {
        if row.said.reply == Reply::Text && asked {
            continue;
        }
        answer(engine, project, &row, now)?;
    }
    Ok(())
}

fn answer(
    engine: &mut Engine,
    project: &ProjectName,
    row: &ReplyRow,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let Some(config) = engine.config(project) else { return Ok(()) };
    let name = format!("supervisor:{project}:{}", row.id);
    let taken = Write::ReplyTaken(row.id);
    if engine.store().knows_input(&name)? {
        return engine.write(&[Change::quiet(now, vec![taken])]).map(drop);
    }
    let mut memory = memory(engine.store(), project)?;
    let key = |issue: Number| TaskKey { project: project.clone(), issue };
    let has_session = |issue| {
        engine.tasks().get(&key(issue)).is_some_and(|task| {
            task.state.has_session() && matches!(task.session.stage, Stage::Alive | Stage::Starting)
        })
    };
    let verdict = decide(&row.said.reply, &memory, has_session, &config, now);
    let mut notice = words::health::heard(&verdict, &memory, now);
    if let Verdict::Stop { issue } = verdict {
        let mut input = Input::new(key(issue), Event::Ordered { order: Order::Stop });
        input.dedup = Some(name.clone());
        input.notices = vec![reply(project, &name, notice.clone(), now)];
        input.writes.push(taken.clone());
        match engine.take(&[input], now)?.pop() {
            Some(Err(Refused::NotNow(why) | Refused::Stale(why))) => notice = words::chat::not_taken(&why),
            Some(Ok(())) | None => return Ok(()),
        }
    }
    let ignored = match verdict {
        Verdict::Ignore { kind, until } => {
            memory.ignored.insert(kind, until);
            Some(kind.name().to_owned())
        }
        Verdict::Stop { .. }
        | Verdict::WhichAgent { .. }
        | Verdict::WhichWarning
        | Verdict::Tell
        | Verdict::NoCommand => None,
    };
    let by = row.said.by.clone();
    let lines = vec![format!("{by}: {}", clean_line(&row.said.words, 200)), notice.title.clone()];
    let words = clean_line(&row.said.words, 500);
    let logged = log::Entry::SupervisorHeard { by, words, ignored, lines };
    let mut change = Change::logged(now, project, &logged);
    change.dedup = Some(name.clone());
    change.memories.push(pointsman_store::Memory::new(NAME, &memory)?);
    change.notices = vec![reply(project, &name, notice, now)];
    change.writes.push(taken);
    engine.write(&[change]).map(drop)
}

/// An answer in the supervisor's own thread.
fn reply(project: &ProjectName, name: &str, notice: Notice, now: Timestamp) -> NewNotice {
    let posting = Posting {
        key: format!("reply:{name}"),
        project: project.clone(),
        topic: topic(),
        link: None,
        question: None,
        notice,
    };
    NewNotice { posting, to: vec![(NotifierKind::Matrix, now)] }
}
