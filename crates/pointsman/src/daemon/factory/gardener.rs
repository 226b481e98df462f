//! The gardener: rules look through the issues that the forge told anyway; if something is new, a session is asked, and
//! what rules allow of its answer is done on the forge.

use std::sync::Arc;

use pointsman_adapters::forge;
use pointsman_adapters::process::free_memory_mb;
use pointsman_core::config::Config;
use pointsman_core::gardener::{Answer, ForgeChange, Memory, findings, plan, questions};
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::labels::{BACKLOG, BLOCKED, UNDERSPECIFIED};
use pointsman_core::log;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::role::Role;
use pointsman_core::run::{Run, RunId};
use pointsman_core::time::Timestamp;
use pointsman_core::value::Done;
use pointsman_core::words;
use pointsman_store::Store;
use serde_json::json;

use super::asking::{Closing, InspectingRole, Question, RoleInspection};
use super::watch::Watch;
use super::{ForgeIssues, RoleReport, ground, send};
use crate::daemon::crash::GARDENER_NAMES;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::served::Served;

/// The role that this file is about.
pub(super) const ROLE: Role = Role::Gardener;
/// Its thread, and the name under which it is remembered.
const NAME: &str = ROLE.as_str();

/// Reads what the gardener remembers of a project.
pub fn memory(store: &Store, project: &ProjectName) -> Result<Memory, pointsman_store::Error> {
    Ok(store.memory(project, NAME)?.unwrap_or_default())
}

/// Looks through the issues. Nobody is asked here.
pub fn look(seen: &ForgeIssues, memory: &Memory, config: &Config, now: Timestamp) -> RoleInspection {
    let mut memory = memory.clone();
    memory.see(&seen.issues, now);
    let found = findings(&seen.issues, &memory, config, now);
    let questions = questions(&found, &seen.issues, &memory);
    let question = (!questions.is_empty()).then(|| Question {
        found: words::daemon::factory::found_things(questions.len()),
        asked: json!(questions),
        briefing: words::gardener::briefing(&questions, &seen.issues),
    });
    RoleInspection::new(&memory, question)
}

impl Watch {
    /// Does what is due.
    pub(super) fn garden(&self, served: &Arc<Served>, now: Timestamp) -> anyhow::Result<()> {
        let config = &served.config;
        let Some(seen) = served.seen() else { return Ok(()) };
        let Some(mut memory) = self.to_look::<Memory>(served, now)? else { return Ok(()) };
        if !self.world.read(|store| store.replies(&config.name, &Topic::of_role(ROLE)))?.is_empty() {
            memory.reconsider();
        }
        let memory = Memory { ground: ground::survey(&self.world, served, &memory)?, ..memory };
        let looked = look(&seen, &memory, config, now);
        let asking = Box::new(RoleInspection { free_memory_mb: free_memory_mb(), ..looked });
        send(&self.inbox, RoleReport::Inspected { project: config.name.clone(), asking });
        Ok(())
    }
}

impl InspectingRole for Memory {
    const ROLE: Role = ROLE;
    const PLACES: [&'static str; 2] = GARDENER_NAMES;

    fn looked(lines: Vec<String>) -> log::Entry {
        log::Entry::GardenerLooked { lines }
    }

    fn settled(run: RunId, lines: Vec<String>) -> log::Entry {
        log::Entry::GardenerGroomed { run, lines }
    }

    fn looked_at(&self) -> Timestamp {
        self.looked_at
    }

    fn asked(&self) -> Option<RunId> {
        self.asked.as_ref().map(|(run, _)| *run)
    }

    fn decide(
        &mut self,
        _: &EffectPerformer,
        served: &Served,
        run: &Run,
        now: Timestamp,
    ) -> anyhow::Result<Result<(), String>> {
        let answer = match Answer::of_result(run.result.as_ref()) {
            Ok(answer) => answer,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let issues = served.forge.open_issues()?;
        let asked = self.asked.as_ref().map(|(_, asked)| asked.as_slice()).unwrap_or_default();
        self.plan = Some(plan(&answer, asked, &issues, self, &served.config, now));
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
        world: &EffectPerformer,
        served: &Served,
        run: &Run,
    ) -> anyhow::Result<Option<Done>> {
        let Some(deed) = self.plan.as_ref().and_then(|plan| plan.deeds.get(place)) else { return Ok(None) };
        let filed = carry_out(world, served, run, deed)?;
        Ok(Some(Done { line: words::gardener::done(deed), filed }))
    }

    fn close(&mut self, run: &Run, _: Timestamp) -> Closing {
        let filed: Vec<Number> = self.done.iter().filter_map(|done| done.filed).collect();
        let Some(plan) = self.settle() else { return Closing::default() };
        let of = || log::RoleIssue { role: ROLE, run: Some(run.id) };
        let mut events: Vec<_> =
            filed.into_iter().map(|issue| (issue, log::Entry::RoleFiled(of()))).collect();
        let closed = plan.deeds.iter().flat_map(ForgeChange::closes);
        events.extend(closed.map(|issue| (issue, log::Entry::RoleClosed(of()))));
        Closing {
            // To leave all as it is can be a good answer; to want only what is refused is none.
            useful: !plan.deeds.is_empty() || plan.refused.is_empty(),
            left: plan.refused.iter().map(|why| words::daemon::factory::refused(why)).collect(),
            events,
            ..Closing::default()
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
fn carry_out(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    deed: &ForgeChange,
) -> anyhow::Result<Option<Number>> {
    let forge = &served.forge;
    let label = |label: &str| vec![label.to_owned()];
    let comment = || match words::gardener::comment(deed) {
        Some((issue, text)) => forge.comment_once(issue, &format!("gardener-{}-{issue}", run.id), &text),
        None => Ok(()),
    };
    match deed {
        ForgeChange::CloseDuplicate { issue, .. } => {
            unless_gone(comment().and_then(|()| forge.close_issue(*issue)))?;
        }
        ForgeChange::SuggestCriteria { .. } => unless_gone(comment())?,
        ForgeChange::MarkUnderspecified { issue, .. } => {
            let marked = comment().and_then(|()| forge.set_labels(*issue, &label(UNDERSPECIFIED), &[]));
            unless_gone(marked.map(drop))?;
        }
        ForgeChange::Unblock { issue, .. } => {
            let unblocked = comment().and_then(|()| forge.set_labels(*issue, &[], &label(BLOCKED)));
            unless_gone(unblocked.map(drop))?;
        }
        ForgeChange::Ask { issue, question } => world.put_up(&Posting {
            key: format!("gardener/{}/{}/{issue}", run.project, run.id),
            project: run.project.clone(),
            topic: Topic::of_role(ROLE),
            link: Some(forge.issue_link(*issue)),
            question: None,
            notice: words::gardener::question(&run.project, *issue, question),
        })?,
        ForgeChange::Bundle { dust } => {
            let (title, body) = words::gardener::bundle(dust);
            let filed = forge.file_issue_once(&format!("bundle-{}", run.id), &title, &body, &[BACKLOG])?;
            for dust in dust {
                let told = forge.comment_once(
                    dust.issue,
                    &format!("bundled-{}", run.id),
                    &words::gardener::bundled(filed),
                );
                unless_gone(told.and_then(|()| forge.close_issue(dust.issue)))?;
            }
            return Ok(Some(filed));
        }
    }
    Ok(None)
}

/// About an issue that somebody has deleted since nothing is left to be done.
fn unless_gone(done: Result<(), forge::Error>) -> Result<(), forge::Error> {
    match done {
        Err(forge::Error::NotFound { .. }) => Ok(()),
        done => done,
    }
}
