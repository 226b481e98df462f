//! The gardener: rules look through the issues that the forge told anyway; if something is new, a session is asked, and
//! what rules allow of its answer is done on the forge. Whoever dies in between does the same again, which is the same
//! as once.

use std::sync::{Arc, PoisonError};

use pointsman_adapters::forge;
use pointsman_adapters::process::free_memory_mb;
use pointsman_core::config::Config;
use pointsman_core::gardener::{Answer, Deed, Memory, Plan, Question, findings, plan, questions};
use pointsman_core::ids::ProjectName;
use pointsman_core::labels::{BACKLOG, BLOCKED, UNDERSPECIFIED};
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::run::{Run, RunId, Status};
use pointsman_core::time::Timestamp;
use pointsman_core::value::Outcome;
use pointsman_core::words;
use pointsman_store::{Change, Store};
use serde_json::json;

use super::watch::Watch;
use super::{Seen, Told, is_due, recall, send};
use crate::control::protocol::Reply;
use crate::daemon::crash::crash_point;
use crate::daemon::engine::Engine;
use crate::daemon::inbound::Inbox;
use crate::daemon::runs;
use crate::daemon::served::Served;
use crate::daemon::world::RealWorld;

/// Its formula.
pub(super) const FORMULA: &str = "run-gardener";
/// Its thread, and the name under which it is remembered.
const NAME: &str = "gardener";

/// A look at the issues.
#[derive(Clone, Debug)]
pub struct Looked {
    /// What is to be remembered.
    pub memory: Memory,
    /// What is asked.
    pub questions: Vec<Question>,
    /// What a session would read.
    pub briefing: String,
    /// Memory that is free; none if nobody knows.
    pub free_memory_mb: Option<u64>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Groomed {
    /// Which.
    pub run: RunId,
    /// What is remembered of it; nothing if its answer was none.
    pub plan: Option<Plan>,
    /// What happened, one line each.
    pub lines: Vec<String>,
    /// Whether something came of it.
    pub outcome: Outcome,
}

/// What the gardener remembers of a project.
pub fn memory(store: &Store, project: &ProjectName) -> Result<Memory, pointsman_store::Error> {
    recall(store, project, NAME)
}

/// Looks through the issues. Nobody is asked here.
pub fn look(seen: &Seen, memory: &Memory, config: &Config, now: Timestamp) -> Looked {
    let mut memory = memory.clone();
    memory.see(&seen.issues, now);
    let found = findings(&seen.issues, &memory, config, now);
    let questions = questions(&found, &seen.issues, &memory);
    let briefing = words::gardener::briefing(&questions, &seen.issues);
    Looked { memory, questions, briefing, free_memory_mb: None }
}

impl Watch {
    /// Does what is due.
    pub(super) fn garden(&self, served: &Arc<Served>, now: Timestamp) -> anyhow::Result<()> {
        let config = &served.config;
        let Some(seen) = served.seen() else { return Ok(()) };
        let (memory, due, asked) = {
            let reader = self.world.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let memory = memory(&reader, &config.name)?;
            let due = is_due(&reader, &config.name, FORMULA, memory.looked_at)?;
            let run = match &memory.asked {
                Some((id, _)) => reader.run(&config.name, *id)?,
                None => None,
            };
            (memory, due, run)
        };
        match asked {
            Some(run) if run.status.is_over() => {
                let (world, inbox) = (Arc::clone(&self.world), self.inbox.clone());
                let name = format!("gardener {}", config.name);
                self.world.jobs.submit(name, served, move |_, served| {
                    if let Err(error) = apply(&world, &inbox, served, &run, &memory, now) {
                        // It is tried again at the next look.
                        tracing::warn!(run = %run.identity(), error = format!("{error:#}"), "not groomed yet");
                    }
                });
            }
            Some(_) => {}
            None if due => {
                let looked = Looked { free_memory_mb: free_memory_mb(), ..look(&seen, &memory, config, now) };
                send(&self.inbox, Told::Gardened { project: config.name.clone(), looked: Box::new(looked) });
            }
            None => {}
        }
        Ok(())
    }
}

/// Writes a look down, with the run that is asked, if anybody is.
pub fn write(
    engine: &mut Engine,
    project: &ProjectName,
    looked: &Looked,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let mut memory = looked.memory.clone();
    if looked.questions.is_empty() {
        return engine.store().set_cursor(Some(project), NAME, &json!(memory).to_string());
    }
    let drafted = match super::hindrance(engine, project, NAME, looked.free_memory_mb, now)? {
        Some(why) => Err(why),
        None => runs::draft(engine, project, &runs::Wish::new(FORMULA, "schedule"), now)?.map_err(|reply| {
            match reply {
                Reply::Failed { message, .. } => message,
                Reply::Done { .. } => String::new(),
            }
        }),
    };
    match drafted {
        Ok(run) => {
            let run = Run { briefing: Some(looked.briefing.clone()), ..run };
            memory.asked = Some((run.id, looked.questions.clone()));
            runs::write_begun(engine, &run, Some((NAME.to_owned(), json!(memory).to_string())), now)
        }
        Err(why) => {
            let mut change = Change::new(now, "gardener_looked");
            change.project = Some(project.clone());
            let found = format!("found {} things, and asked nobody: {why}", looked.questions.len());
            change.data = json!({ "lines": [found] });
            change.cursor = Some((NAME.to_owned(), json!(memory).to_string()));
            engine.store().commit(&[change]).map(drop)
        }
    }
}

/// Does what rules allow of a run's answer, and has it written down.
fn apply(
    world: &RealWorld,
    inbox: &Inbox,
    served: &Served,
    run: &Run,
    memory: &Memory,
    now: Timestamp,
) -> anyhow::Result<()> {
    let config = &served.config;
    let planned = match (&memory.plan, run.status) {
        (Some(plan), _) => Ok(plan.clone()),
        (None, Status::Done) => match Answer::of_result(run.result.as_ref()) {
            Ok(answer) => {
                let issues = served.forge.open_issues()?;
                let asked = memory.asked.as_ref().map(|(_, asked)| asked.as_slice()).unwrap_or_default();
                let plan = plan(&answer, asked, &issues, memory, config, now);
                // Written before anything of it is done: a closed issue would not be closed again.
                send(inbox, Told::Planned { project: config.name.clone(), run: run.id, plan: plan.clone() });
                crash_point("gardener-planned");
                Ok(plan)
            }
            Err(why) => Err(why.to_string()),
        },
        (None, Status::Failed | Status::Stopped | Status::Starting | Status::Running) => {
            Err(run.reason.clone().unwrap_or_else(|| "the run came to nothing".to_owned()))
        }
    };
    let groomed = match planned {
        Ok(plan) => {
            for deed in &plan.deeds {
                carry_out(world, served, run, deed)?;
                crash_point("gardener-deed-done");
            }
            let mut lines: Vec<String> = plan.deeds.iter().map(words::gardener::done).collect();
            lines.extend(plan.refused.iter().map(|why| format!("refused: {why}")));
            // To leave all as it is can be a good answer; to want only what is refused is none.
            let noise = plan.deeds.is_empty() && !plan.refused.is_empty();
            let outcome = if noise { Outcome::Noise } else { Outcome::Used };
            Groomed { run: run.id, plan: Some(plan), lines, outcome }
        }
        Err(why) => {
            let lines = vec![format!("run {} was of no use: {why}", run.id)];
            Groomed { run: run.id, plan: None, lines, outcome: Outcome::Noise }
        }
    };
    super::tell_pause(world, config, NAME, groomed.outcome, now)?;
    send(inbox, Told::Groomed { project: config.name.clone(), groomed: Box::new(groomed) });
    Ok(())
}

/// Each can be done twice.
fn carry_out(world: &RealWorld, served: &Served, run: &Run, deed: &Deed) -> anyhow::Result<()> {
    let forge = &served.forge;
    if let Some((issue, text)) = words::gardener::comment(deed) {
        forge.comment_once(issue, &format!("gardener-{}-{issue}", run.id), &text)?;
    }
    let label = |label: &str| vec![label.to_owned()];
    match deed {
        Deed::CloseDuplicate { issue, .. } => forge.close_issue(*issue)?,
        Deed::SuggestCriteria { .. } => {}
        Deed::MarkUnderspecified { issue, .. } => {
            forge.set_labels(*issue, &label(UNDERSPECIFIED), &[])?;
        }
        Deed::Unblock { issue, .. } => {
            forge.set_labels(*issue, &[], &label(BLOCKED))?;
        }
        Deed::Ask { issue, question } => world.put_up(&Posting {
            key: format!("gardener/{}/{}/{issue}", run.project, run.id),
            project: run.project.clone(),
            topic: Topic::Agent(NAME.to_owned()),
            link: Some(forge.issue_link(*issue)),
            question: None,
            notice: words::gardener::question(&run.project, *issue, question),
        })?,
        Deed::Bundle { dust } => {
            let (title, body) = words::gardener::bundle(dust);
            let filed = forge.file_issue_once(&format!("bundle-{}", run.id), &title, &body, &[BACKLOG])?;
            for dust in dust {
                let key = format!("bundled-{}", run.id);
                forge.comment_once(dust.issue, &key, &words::gardener::bundled(filed))?;
                match forge.close_issue(dust.issue) {
                    Ok(()) | Err(forge::Error::NotFound { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    Ok(())
}

/// Writes down what is going to be done of a run's answer.
pub(super) fn decide(
    engine: &mut Engine,
    project: &ProjectName,
    run: RunId,
    plan: &Plan,
) -> Result<(), pointsman_store::Error> {
    let mut memory = memory(engine.store(), project)?;
    if memory.asked.as_ref().is_some_and(|(asked, _)| *asked == run) && memory.plan.is_none() {
        memory.plan = Some(plan.clone());
        engine.store().set_cursor(Some(project), NAME, &json!(memory).to_string())?;
    }
    Ok(())
}

/// Writes down what came of a run.
pub fn settle(
    engine: &mut Engine,
    project: &ProjectName,
    groomed: &Groomed,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let mut memory = memory(engine.store(), project)?;
    // It was written before.
    if memory.asked.as_ref().is_none_or(|(run, _)| *run != groomed.run) {
        return Ok(());
    }
    memory.asked = None;
    memory.plan = None;
    if let Some(plan) = &groomed.plan {
        memory.decided.extend(plan.decided.iter().cloned());
        memory.dust.clone_from(&plan.dust);
    }
    let mut change = Change::new(now, "gardener_groomed");
    change.project = Some(project.clone());
    change.data = json!({ "run": groomed.run, "lines": groomed.lines });
    change.cursor = Some((NAME.to_owned(), json!(memory).to_string()));
    engine.store().commit(&[change])?;
    super::count(engine, project, NAME, groomed.outcome, now)
}
