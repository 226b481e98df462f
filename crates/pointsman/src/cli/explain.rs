//! `task explain`: the facts come from the core, the history from the log.

use pointsman_core::ids::Number;
use pointsman_core::log::TaskMove;
use pointsman_core::task::{Exit, State, Task};
use pointsman_core::text::{clean_block, clean_line};
use pointsman_core::time::Timestamp;
use pointsman_core::words::explain::{PendingEffect, TaskSurroundings, UnacknowledgedMessage, facts};
use pointsman_core::words::task::waiting_for;
use pointsman_store::{EventFilter, EventRow, MessageStatus, Store};
use pointsman_view::task::{Explained, HistoryEntry, LastWords};
use serde::Deserialize;

use super::context::Context;
use super::failure::Failure;
use super::{events, style, time};

/// The newest entries of a task's history.
const HISTORY: u32 = 200;
/// Of these, in the form for people.
const SHOWN_HISTORY: usize = 20;

/// Most of a session's last words that is shown.
const WORDS_BYTES: usize = 8 << 10;
/// A session has started, and has ended.
const STARTED: &str = "session_started";
const ENDED: &str = "session_ended";

/// The data of the event that a session has ended.
#[derive(Deserialize)]
struct SessionEnd {
    exit: Exit,
    tail: String,
}

pub(crate) fn run(context: &Context, issue: Number) -> Result<(), Failure> {
    let project = context.project()?;
    let (task, store) = context.task(&project, issue)?;
    let now = time::now();
    let facts = facts(&task, &project.config, &surroundings(&store, &task, now)?);
    let history = store.events(&EventFilter {
        project: Some(task.key.project.clone()),
        issue: Some(issue),
        limit: HISTORY,
        latest: true,
        ..EventFilter::default()
    })?;
    if context.out.is_json() {
        return context.out.value(&Explained {
            issue,
            waiting_for: waiting_for(&task),
            deadline: task.ends_at().map(Into::into),
            title: task.title,
            state: task.state,
            facts,
            last_words: last_words(&history),
            history: history.into_iter().map(entry).collect(),
        });
    }
    let (strong, quiet, colour) = (style::STRONG, style::QUIET, style::of(task.state));
    let out = context.out;
    out.line(format!("{strong}#{issue} {}{strong:#}", clean_line(&task.title, 120)))?;
    out.line(format!("{colour}{}{colour:#}", task.state))?;
    for fact in facts.iter().skip(1) {
        out.line(format!("  - {fact}"))?;
    }
    if let Some(waiting) = waiting_for(&task) {
        let until = task.ends_at().map(|at| format!(", until {}", time::local(at))).unwrap_or_default();
        out.line(format!("\n{strong}waits for{strong:#} {waiting}{until}"))?;
    }
    if let Some(words) = last_words(&history) {
        let session = words.session.unwrap_or_default();
        let ended = time::relative(words.at.0, now);
        out.line(format!(
            "\n{strong}last words{strong:#} of {session}, which ended {ended}: {}",
            words.exit
        ))?;
        for line in clean_block(&words.text, WORDS_BYTES).trim_end().lines() {
            out.line(format!("  {line}"))?;
        }
        out.line(format!("  {quiet}complete log: pointsman session logs {issue}{quiet:#}"))?;
    }
    if history.len() >= usize::try_from(HISTORY).unwrap_or(usize::MAX) {
        out.line(format!(
            "\n{strong}history{strong:#}  {quiet}older events: pointsman events --issue {issue}{quiet:#}"
        ))?;
    } else {
        out.line(format!("\n{strong}history{strong:#}"))?;
    }
    for event in history.iter().skip(history.len().saturating_sub(SHOWN_HISTORY)) {
        let change = match TaskMove::read(&event.kind, &event.data) {
            Some(TaskMove { from: Some(from), to }) if from != to => format!("{from} → {to}"),
            Some(_) | None => String::new(),
        };
        let told = events::summary(event, &["from", "to"]);
        let at = time::local(event.at);
        out.listed(&format!("  {quiet}{at}{quiet:#}  {change:<34} {} {told}", event.kind))?;
    }
    Ok(())
}

/// The end of the last session, if it did not end as it should. Nothing if another one has started since.
fn last_words(history: &[EventRow]) -> Option<LastWords> {
    let of_session = |event: &&EventRow| matches!(event.kind.as_str(), ENDED | STARTED);
    let ended = history.iter().rev().find(of_session).filter(|event| event.kind == ENDED)?;
    let SessionEnd { exit, tail } = SessionEnd::deserialize(&ended.data).ok()?;
    let meant = matches!(exit, Exit::Done | Exit::Stopped | Exit::Handoff);
    (!meant && !tail.trim().is_empty()).then(|| LastWords {
        session: ended.session.clone(),
        exit: exit.name().to_owned(),
        at: ended.at.into(),
        text: tail,
    })
}

fn surroundings(store: &Store, task: &Task, now: Timestamp) -> Result<TaskSurroundings, Failure> {
    let id = task.key.clone().into();
    let effects = store.pending_effects(&id)?.into_iter().map(|pending| PendingEffect {
        effect: pending.effect,
        attempts: pending.attempts,
        error: pending.error,
        not_before: pending.not_before,
    });
    let unheard = store.messages(&id)?.into_iter().filter_map(|message| {
        let waits = match message.status {
            MessageStatus::Queued | MessageStatus::Sent | MessageStatus::Unacknowledged => true,
            MessageStatus::Acknowledged | MessageStatus::Superseded => false,
        };
        // Nobody is left to read those of an earlier session.
        (waits && message.generation == task.session.generation && task.state != State::Closed).then_some(
            UnacknowledgedMessage { id: message.id.0, headline: message.headline, tries: message.tries },
        )
    });
    Ok(TaskSurroundings {
        now,
        effects: effects.collect(),
        unheard: unheard.collect(),
        spent: store.spent_on_task(&task.key, now)?,
        spent_today: store.spent_on_day(Some(&task.key.project), &time::day(now), now)?,
    })
}

/// An entry of the history: an event, and the states that it moved the task between.
fn entry(event: EventRow) -> HistoryEntry {
    let moved = TaskMove::read(&event.kind, &event.data);
    let name = |state: State| state.to_string();
    HistoryEntry {
        seq: event.seq,
        at: event.at.into(),
        from: moved.and_then(|moved| moved.from).map(name),
        to: moved.map(|moved| name(moved.to)),
        kind: event.kind,
        session: event.session,
        data: event.data,
    }
}
