//! The digest of a project: once a day, people are told what needs them, what landed, what runs, what waits and what it cost.
//!
//! Its notice is named after the day, so it is posted once, also across restarts.

use std::time::Duration;

use pointsman_core::ids::Number;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::part::question::Question;
use pointsman_core::session::budget::{self, Limit};
use pointsman_core::task::Task;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::timetable::Utc;
use pointsman_core::words;
use pointsman_core::words::digest::Parts;
use pointsman_store::Store;

use super::effects::EffectPerformer;
use super::inbound::Inbox;
use super::notifier::{NotifierReport, send};
use super::served::Served;
use super::timetable::SystemZone;
use super::{clock, halt};
use crate::page::{self, Page};

/// What landed in so long is told.
const SPAN: Duration = Duration::from_secs(86_400);
/// Longest line.
const LINE_CHARS: usize = 160;

/// Posts the digest of a project if it is due and was not posted.
pub(super) fn look(world: &EffectPerformer, inbox: &Inbox, served: &Served) {
    if !served.config.tells_anybody() {
        return;
    }
    let halted = halt::in_force(&world.paths).is_some();
    match world.read(|store| due(store, served, halted, clock::now())) {
        Ok(Some(posting)) => send(inbox, NotifierReport::Posted(posting)),
        Ok(None) => {}
        Err(error) => tracing::error!(%error, "the digest could not be made"),
    }
}

fn due(
    store: &Store,
    served: &Served,
    halted: bool,
    now: Timestamp,
) -> Result<Option<Posting>, pointsman_store::Error> {
    let (config, project) = (&served.config, &served.config.name);
    let Some(row) = store.project(project)? else { return Ok(None) };
    let at = served.enclosure.digest();
    let due = match SystemZone::find(config.quiet_zone()) {
        Some(zone) => at.due(&zone, now, row.added_at),
        None => at.due(&Utc, now, row.added_at),
    };
    let Some((day, _)) = due else { return Ok(None) };
    let key = format!("digest:{project}:{day}");
    if store.has_notice(&key)? {
        return Ok(None);
    }
    let parts = parts(store, served, halted, now)?;
    Ok(words::digest::notice(project, &parts).map(|notice| Posting {
        key,
        project: project.clone(),
        topic: Topic::Room,
        link: None,
        question: None,
        notice,
    }))
}

fn parts(
    store: &Store,
    served: &Served,
    halted: bool,
    now: Timestamp,
) -> Result<Parts, pointsman_store::Error> {
    let (config, project) = (&*served.config, &served.config.name);
    let mut questions: Vec<Question> = store.open_questions()?;
    questions.retain(|asked| asked.source.project == *project);
    let span = i64::try_from(SPAN.as_millis()).unwrap_or(i64::MAX);
    let since = now.moved(-span);
    let page = Page::read(store, project, Some(config), &questions, halted, since, now)?;
    let ranked = page::rank(questions, &store.open_tasks()?, |_| Some(config), |_| None);
    let line = |text: String| clean_line(&text, LINE_CHARS);
    let named = |issue: Option<Number>, title: &str| match issue {
        Some(issue) => format!("#{issue} {title}"),
        None => title.to_owned(),
    };
    let task = |task: &Task| named(Some(task.key.issue), &task.title);
    let yesterday = store.spent_on_day(Some(project), &clock::day(since), now)?;
    Ok(Parts {
        needs_you: ranked
            .iter()
            .map(|ranked| line(format!("{}: {}", ranked.asked.kind, ranked.asked.subject)))
            .collect(),
        landed: page.landed.iter().map(|landing| line(named(landing.issue, &landing.title))).collect(),
        running: page.running.iter().map(|running| line(task(running))).collect(),
        waiting: page
            .waiting
            .iter()
            .map(|(waiting, wait)| {
                line(format!("{}: {}", task(waiting), words::page::wait(waiting.key.issue, wait)))
            })
            .collect(),
        cost: budget::describe(yesterday, Limit::default()),
    })
}
