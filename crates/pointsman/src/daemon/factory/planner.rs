//! The planner: what a plan is made from is collected by code; if something of it is new, a session is asked, and what
//! rules allow of its answer is done on the forge.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use pointsman_adapters::forge;
use pointsman_adapters::git::{self, mirror::Mirror};
use pointsman_adapters::process::free_memory_mb;
use pointsman_core::config::Config;
use pointsman_core::formula;
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::labels::{ACTIONED, UNREVIEWED, WATCHED};
use pointsman_core::log;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::planner::{
    Answer, DOCUMENTS, Document, ForgeChange, Memory, NewIssue, OWN, PlanInputs, plan, question,
};
use pointsman_core::role::Role;
use pointsman_core::run::{Run, RunId};
use pointsman_core::text::clean_block;
use pointsman_core::time::Timestamp;
use pointsman_core::value::Done;
use pointsman_core::words;
use pointsman_store::Store;
use serde_json::json;

use super::asking::{Closing, InspectingRole, Question, RoleInspection, due};
use super::watch::Watch;
use super::{ForgeIssues, RoleReport, send};
use crate::daemon::crash::{PLANNER_NAMES, crash_point};
use crate::daemon::effects::EffectPerformer;
use crate::daemon::served::Served;
use crate::formulas;
use crate::trust;

/// The role that this file is about.
pub(super) const ROLE: Role = Role::Planner;
/// Its thread, and the name under which it is remembered.
const NAME: &str = ROLE.as_str();
/// A larger file is not read.
const LARGEST: usize = 1 << 20;
/// How much of a file counts as read, in bytes: a plan depends on no more.
const READ: usize = 64 << 10;

/// Reads what the planner remembers of a project.
pub fn memory(store: &Store, project: &ProjectName) -> Result<Memory, pointsman_store::Error> {
    Ok(store.memory(project, NAME)?.unwrap_or_default())
}

/// Looks at what a plan would be made from. Nobody is asked here.
pub fn look(facts: &PlanInputs, memory: &Memory, config: &Config, now: Timestamp) -> RoleInspection {
    let mut memory = memory.clone();
    memory.see(&facts.issues, now);
    let question = question(facts, &memory, now).map(|question| Question {
        found: words::planner::found(question.predictions.len()),
        asked: json!(question),
        briefing: words::planner::briefing(facts, &question, config.limits.planner_issues, now),
    });
    RoleInspection::new(&memory, question)
}

impl Watch {
    /// Does what is due.
    pub(super) fn plan(&self, served: &Arc<Served>, now: Timestamp) -> anyhow::Result<()> {
        // A plan is made of issues.
        if !served.config.forge.kind.capabilities().issues {
            return Ok(());
        }
        let Some(seen) = served.seen() else { return Ok(()) };
        if self.to_look::<Memory>(served, now)?.is_none() {
            return Ok(());
        }
        let (world, inbox) = (Arc::clone(&self.world), self.inbox.clone());
        self.beside(format!("{ROLE} {}", served.config.name), served, now, move |served| {
            if let Some(asking) = look_at(&world, served, &seen, now)? {
                let project = served.config.name.clone();
                send(&inbox, RoleReport::Inspected { project, asking: Box::new(asking) });
            }
            Ok(())
        });
        Ok(())
    }
}

fn look_at(
    world: &EffectPerformer,
    served: &Served,
    seen: &ForgeIssues,
    now: Timestamp,
) -> anyhow::Result<Option<RoleInspection>> {
    let config = &served.config;
    // As it is now: another job may have looked since.
    let Some(memory) = world.read(|store| due::<Memory>(store, &config.name, now))? else {
        return Ok(None);
    };
    let facts =
        PlanInputs { issues: seen.issues.clone(), ..collect(world, served, memory.known.main.as_ref())? };
    let asking = look(&facts, &memory, config, now);
    Ok(Some(RoleInspection { free_memory_mb: free_memory_mb(), ..asking }))
}

/// All but the issues, from the main branch as it is now; `planned` is where it stood when the last plan was made.
fn collect(world: &EffectPerformer, served: &Served, planned: Option<&Sha>) -> anyhow::Result<PlanInputs> {
    let mirror = &served.mirror;
    mirror.fetch_remote()?;
    let main = mirror.remote_head(&served.primary)?;
    let mut facts = PlanInputs { formulas: formulas(world, &served.config)?, ..PlanInputs::default() };
    if let Some(main) = &main {
        for path in DOCUMENTS {
            facts.documents.extend(document(mirror, main, path)?);
        }
        facts.landed = landed(mirror, planned, main)?;
    }
    Ok(PlanInputs { main, ..facts })
}

fn document(mirror: &Mirror, main: &Sha, path: &'static str) -> anyhow::Result<Option<Document>> {
    let text = match mirror.read_file_at(main, path, LARGEST) {
        Ok(None) => return Ok(None),
        Ok(Some(bytes)) => clean_block(&String::from_utf8_lossy(&bytes), READ),
        // It does not become smaller by itself, and the session has it in its checkout.
        Err(git::Error::Unexpected { .. }) => words::planner::unread(path),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(Document { path, text }))
}

/// What landed since. What the planner itself landed is no news to it.
fn landed(mirror: &Mirror, planned: Option<&Sha>, main: &Sha) -> anyhow::Result<Vec<String>> {
    let Some(planned) = planned else { return Ok(Vec::new()) };
    // A main branch that was rewritten tells nothing.
    if !mirror.commit_exists(planned)? || !mirror.is_ancestor(planned, main)? {
        return Ok(Vec::new());
    }
    let changed = mirror.changed_paths(planned, main)?;
    match changed.iter().all(|path| path.starts_with(OWN)) {
        true => Ok(Vec::new()),
        false => Ok(mirror.log_oneline(planned, main)?.lines().map(str::to_owned).collect()),
    }
}

/// The formulas that the project can use, each with what it is for.
fn formulas(world: &EffectPerformer, config: &Config) -> anyhow::Result<Vec<(String, String)>> {
    let row = world
        .read(|store| store.project(&config.name))?
        .context(words::daemon::project::not_served_any_more())?;
    let checkout: &Path = &row.checkout;
    let variables = formula::variables(config);
    let usable = |(name, found): (String, Result<formulas::Found, formulas::Error>)| {
        let formula = found.ok()?.render(checkout, &variables).ok()?;
        Some((name, formula.description))
    };
    let own = world.read(|store| trust::own_formulas(store, &row))?;
    Ok(formulas::all_accepted(&own, checkout).into_iter().filter_map(usable).collect())
}

impl InspectingRole for Memory {
    const ROLE: Role = ROLE;
    const PLACES: [&'static str; 2] = [PLANNER_NAMES[0], PLANNER_NAMES[1]];

    fn looked(lines: Vec<String>) -> log::Entry {
        log::Entry::PlannerLooked { lines }
    }

    fn settled(run: RunId, lines: Vec<String>) -> log::Entry {
        log::Entry::PlannerPlanned { run, lines }
    }

    fn looked_at(&self) -> Timestamp {
        self.looked_at
    }

    fn asked(&self) -> Option<RunId> {
        self.asked.as_ref().map(|(run, _)| *run)
    }

    fn decide(
        &mut self,
        world: &EffectPerformer,
        served: &Served,
        run: &Run,
        _: Timestamp,
    ) -> anyhow::Result<Result<(), String>> {
        let answer = match Answer::of_result(run.result.as_ref()) {
            Ok(answer) => answer,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let issues = served.forge.open_issues()?;
        let names: Vec<String> = formulas(world, &served.config)?.into_iter().map(|(name, _)| name).collect();
        let question = self
            .asked
            .as_ref()
            .map(|(_, question)| question)
            .context(words::daemon::factory::nobody_was_asked())?;
        self.plan = Some(plan(&answer, question, &issues, &names, &served.config));
        Ok(Ok(()))
    }

    fn planned(&self) -> Option<usize> {
        self.plan.as_ref().map(|plan| plan.deeds.len())
    }

    fn done(&mut self) -> &mut Vec<Done> {
        &mut self.done
    }

    fn carry_out(
        &self,
        place: usize,
        _: &EffectPerformer,
        served: &Served,
        run: &Run,
    ) -> anyhow::Result<Option<Done>> {
        let Some(deed) = self.plan.as_ref().and_then(|plan| plan.deeds.get(place)) else { return Ok(None) };
        let filed = carry_out(served, run.id, deed)?;
        Ok(Some(Done { line: words::planner::done(deed, filed), filed }))
    }

    fn close(&mut self, run: &Run, _: Timestamp) -> Closing {
        let filed_by = || log::Entry::RoleFiled(log::RoleIssue { role: ROLE, run: Some(run.id) });
        let events = self.done.iter().filter_map(|done| Some((done.filed?, filed_by())));
        let events: Vec<_> = events.collect();
        let filed = self.done.iter().filter(|done| done.filed.is_some());
        let filed: Vec<String> = filed.map(|done| done.line.clone()).collect();
        let Some(plan) = self.settle() else { return Closing::default() };
        let triaged = plan.deeds.iter().filter_map(|deed| {
            let (prediction, verdict) = (deed.prediction()?, deed.verdict()?);
            let (verdict, run) = (verdict.to_owned(), run.id);
            Some((prediction, log::Entry::PredictionTriaged { issue: prediction, verdict, run }))
        });
        let refused = plan.refused.iter().map(|why| words::daemon::factory::refused(why));
        let left: Vec<String> =
            refused.chain(plan.left.iter().map(|left| words::planner::left(*left))).collect();
        Closing {
            events: triaged.chain(events).collect(),
            // To file nothing can be a good answer; to judge nothing of what was asked is none.
            useful: !plan.deeds.is_empty() || left.is_empty(),
            left,
            posting: (!filed.is_empty()).then(|| Posting {
                key: format!("planner/{}/{}", run.project, run.id),
                project: run.project.clone(),
                topic: Topic::of_role(ROLE),
                link: None,
                question: None,
                notice: words::planner::summary(&run.project, filed.len(), &filed),
            }),
        }
    }

    fn put_back(&mut self) {
        self.asked = None;
    }

    fn give_up(&mut self) {
        self.heard_nothing_useful();
    }
}

/// Each can be done twice. Answers the issue that it filed.
fn carry_out(served: &Served, run: RunId, deed: &ForgeChange) -> anyhow::Result<Option<Number>> {
    match deed {
        ForgeChange::Promote { prediction, why, issue } => {
            let filed = file(served, &format!("prediction-issue-{prediction}"), issue, Some(*prediction))?;
            decided(served, run, *prediction, &words::planner::promoted(filed, why))?;
            Ok(Some(filed))
        }
        ForgeChange::File { issue } => file(served, &format!("plan-{}", issue.key()), issue, None).map(Some),
        ForgeChange::Watch { prediction, why } => {
            let text = words::planner::watched(why);
            label(served, run, *prediction, &text, WATCHED, &[UNREVIEWED])?;
            Ok(None)
        }
        ForgeChange::Dismiss { prediction, why } => {
            decided(served, run, *prediction, &words::planner::dismissed(why))?;
            Ok(None)
        }
    }
}

fn file(served: &Served, key: &str, issue: &NewIssue, prediction: Option<Number>) -> anyhow::Result<Number> {
    let (title, body) = words::planner::issue(issue, prediction);
    let filed = served.forge.file_issue_once(key, &title, &body, &[&issue.label])?;
    crash_point(PLANNER_NAMES[2]);
    Ok(filed)
}

/// Closes a prediction.
fn decided(served: &Served, run: RunId, prediction: Number, text: &str) -> anyhow::Result<()> {
    if label(served, run, prediction, text, ACTIONED, &[UNREVIEWED, WATCHED])? {
        served.forge.close_issue(prediction)?;
    }
    Ok(())
}

/// Comments on a prediction and labels it anew; false if it is gone.
fn label(
    served: &Served,
    run: RunId,
    prediction: Number,
    text: &str,
    label: &str,
    instead: &[&str],
) -> anyhow::Result<bool> {
    let instead: Vec<String> = instead.iter().map(|&label| label.to_owned()).collect();
    let labelled = served
        .forge
        .comment_once(prediction, &format!("triage-{run}"), text)
        .and_then(|()| served.forge.set_labels(prediction, &[label.to_owned()], &instead));
    match labelled {
        Ok(_) => Ok(true),
        Err(forge::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
