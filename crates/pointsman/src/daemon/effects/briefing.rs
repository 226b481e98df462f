//! The briefing of a starting session: the issue, and what an earlier session left.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use pointsman_adapters::forge;
use pointsman_adapters::git::RefName;
use pointsman_adapters::phase_file;
use pointsman_core::forge::Comment;
use pointsman_core::formula::{self, Formula};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::session::work::Observation;
use pointsman_core::task::{Effect, Headline, Opening, Review, Task};
use pointsman_core::words;
use pointsman_core::words::prompt::{Briefing, KnownWork, Recovery};
use pointsman_store::{MessageRow, MessageStatus, Store};

use super::{EffectError, EffectPerformer};
use crate::daemon::clock;
use crate::daemon::inbound::ThreadReport;
use crate::daemon::served::{Served, SessionFiles};
use crate::{formulas, trust};

/// How many unread messages a prompt tells; the newest count.
const UNREAD_TOLD: usize = 5;
/// How many commits on the files that an issue names are told.
const LANDED_TOLD: usize = 10;
/// How many comments of an issue are looked at; the newest count.
const COMMENTS_READ: usize = 100;
/// How much of a CI result or a message is read back.
const READ_BACK_BYTES: u64 = 256 * 1024;

impl EffectPerformer {
    pub(super) fn briefing(
        &self,
        served: &Served,
        task: &Task,
        generation: u32,
        opening: Opening,
        session_files: &SessionFiles,
        base: &Sha,
    ) -> Result<Briefing, EffectError> {
        let body = served.forge.issue(task.key.issue)?.map(|issue| issue.body).unwrap_or_default();
        let comments = directing_comments(served, task.key.issue)?;
        let named = words::prompt::paths_named(
            &comments.iter().fold(body.clone(), |text, comment| text + "\n" + &comment.body),
        );
        let landed = served.mirror.log_of_paths(base, &named, LANDED_TOLD)?;
        let recovery = match opening {
            Opening::Fresh | Opening::Anew => None,
            Opening::Recovery | Opening::Continuation => {
                let handed_over = opening == Opening::Continuation;
                Some(Recovery {
                    handed_over,
                    ..self.recovery(served, task, generation, session_files, base)?
                })
            }
            Opening::Given => {
                let mut recovery = self.recovery(served, task, generation, session_files, base)?;
                if let Some(given) = &task.given {
                    // The tree is as the person left it, and what the agent did last says nothing about it.
                    recovery.log = served.mirror.log_oneline(base, &given.head)?;
                    recovery.diff_stat = served.mirror.diff_stat(base, &given.head)?;
                    recovery.given_by = Some(given.by.clone());
                    (recovery.work, recovery.known) = (None, None);
                }
                Some(recovery)
            }
        };
        Ok(Briefing {
            body,
            comments,
            formula: Some(self.accepted_formula(served, Task::ROLE.formula()).map_err(formula_error)?),
            landed,
            phase_file: session_files.phase_file.to_string_lossy().into_owned(),
            primary_branch: served.primary.to_string(),
            has_ci: served.config.ci.kind.tests_commits(),
            summary_file: session_files.summary(generation).to_string_lossy().into_owned(),
            plan_file: served
                .config
                .dev
                .plan
                .then(|| session_files.plan(generation).to_string_lossy().into_owned()),
            recovery,
        })
    }

    /// The formula of this name as the project's operator has accepted it, or the one that is shipped.
    pub(in crate::daemon) fn accepted_formula(&self, served: &Served, name: &str) -> anyhow::Result<Formula> {
        let row = self.read(|store| store.project(&served.config.name))?;
        let row = row.context(words::daemon::project::not_served_any_more())?;
        let own = self.read(|store| trust::own_formulas(store, &row))?;
        let found = formulas::find_accepted(&own, &row.checkout, name)?;
        Ok(found.render(&row.checkout, &formula::variables(&served.config))?)
    }

    fn recovery(
        &self,
        served: &Served,
        task: &Task,
        generation: u32,
        session_files: &SessionFiles,
        base: &Sha,
    ) -> Result<Recovery, EffectError> {
        let predecessor = task.key.session(generation.saturating_sub(1));
        let WorkSoFar { log, diff_stat, files, known } =
            self.work_so_far(served, task, session_files, base)?;
        let text = |path: &Path| {
            phase_file::read_result_file(path, READ_BACK_BYTES)
                .ok()
                .flatten()
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let reviews = match task.contribution.review() {
            Review::ChangesRequested { by, body, .. } => vec![format!("{by} requested changes:\n\n{body}")],
            Review::Approved { .. } | Review::None => Vec::new(),
        };
        let messages = self.read(|store| unread(store, task, generation))?;
        let mut work = self.read(|store| store.work_state(&task.key.identity()))?;
        // A program that changed files without a word is further than anybody saw.
        if let (Some(files), Some(work)) = (files, &mut work) {
            let observation = Observation::Files(files);
            if work.observe(&observation, clock::now()) {
                let workflow = task.key.clone().into();
                let observations = vec![observation];
                self.jobs.inbox.report(ThreadReport::Observed { workflow, observations, read_to: None });
            }
        }
        Ok(Recovery {
            predecessor,
            handed_over: false,
            given_by: None,
            work,
            known,
            log,
            diff_stat,
            last_ci: text(&session_files.ci_result),
            reviews,
            messages,
        })
    }

    /// Commits and changes of the tree against the main branch, seen from a capture of it: git never
    /// runs inside a tree that an agent can write.
    fn work_so_far(
        &self,
        served: &Served,
        task: &Task,
        session_files: &SessionFiles,
        base: &Sha,
    ) -> Result<WorkSoFar, EffectError> {
        use pointsman_adapters::git::capture;
        let name = format!("refs/pointsman/looks/{}", task.key.issue);
        let Some(refname) = RefName::new(&name) else {
            return Err(EffectError::never(words::daemon::git::not_a_ref_name(&name)));
        };
        // It sees what the mirror has as well.
        let captures = &served.captures;
        if let Some(old) = captures.read_ref(&refname)? {
            captures.delete_ref(&refname, &old)?;
        }
        let message = words::daemon::git::work_so_far();
        let seen = match capture::capture(captures, &session_files.tree, &refname, message) {
            Ok(Some(capture)) => Some(capture.commit),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(task = %task.key, %error, "the tree cannot be looked at");
                None
            }
        };
        let is_seen = seen.is_some();
        let Some(head) = seen.or_else(|| task.contribution.head().cloned()) else {
            // Nothing differs from what the mirror has, and nothing was ever handed in.
            return Ok(WorkSoFar { known: Some(KnownWork::default()), ..WorkSoFar::default() });
        };
        let log = captures.log_oneline(base, &head)?;
        // The look itself is a commit on top, if there was anything that is not committed.
        let uncommitted = is_seen && log.lines().next().is_some_and(|line| line.ends_with(message));
        let files = captures.changed_paths(base, &head)?;
        let known = KnownWork {
            commits: log.lines().count() - usize::from(uncommitted),
            files: files.len(),
            uncommitted,
            pushed: task.contribution.head().is_some(),
        };
        let diff_stat = captures.diff_stat(base, &head)?;
        Ok(WorkSoFar { log, diff_stat, files: Some(files), known: Some(known) })
    }
}

/// The work of earlier sessions, seen from a capture of their tree.
#[derive(Default)]
struct WorkSoFar {
    log: String,
    diff_stat: String,
    /// Those that differ from main; none if the tree was not looked at.
    files: Option<Vec<String>>,
    known: Option<KnownWork>,
}

/// Whether a message that nobody read is for whoever comes next. A full context is not: it went with
/// the session that had it.
fn concerns_successors(headline: Headline) -> bool {
    match headline {
        Headline::CheckpointNow | Headline::SaveAndExit => false,
        Headline::CiPassed
        | Headline::CiFailed
        | Headline::CiTimeout
        | Headline::ChangesRequested
        | Headline::Approved
        | Headline::NoReview
        | Headline::NotMerged
        | Headline::WritePhase
        | Headline::MergeConflict
        | Headline::Merged
        | Headline::Answer => true,
    }
}

/// Messages that earlier sessions may not have read: those to the last session that was sent any,
/// and whatever could not be sent to anybody since. Their text is in the order itself: a message
/// that nobody was there for has no file.
fn unread(reader: &Store, task: &Task, generation: u32) -> Result<Vec<String>, EffectError> {
    let before: Vec<MessageRow> = reader
        .messages(&task.key.clone().into())?
        .into_iter()
        .filter(|m| m.generation < generation)
        .collect();
    let heard = |m: &&MessageRow| m.sent_at.is_some() || m.status == MessageStatus::Acknowledged;
    let last_heard = before.iter().filter(heard).map(|m| m.generation).max().unwrap_or(0);
    let mut messages = Vec::new();
    for message in before {
        let read = message.status == MessageStatus::Acknowledged;
        if message.generation < last_heard || read || !concerns_successors(message.headline) {
            continue;
        }
        if let Some(Effect::Deliver { headline, details, .. }) = reader.effect(message.id)? {
            messages.push(format!("{}\n\n{details}", headline.text()));
        }
    }
    let old = messages.len().saturating_sub(UNREAD_TOLD);
    Ok(messages.split_off(old))
}

/// A formula with a mistake stays wrong until somebody corrects it; a store that does not answer does not.
fn formula_error(error: anyhow::Error) -> EffectError {
    match error.downcast_ref::<pointsman_store::Error>() {
        Some(_) => EffectError::later(format!("{error:#}")),
        None => EffectError::never(format!("{error:#}")),
    }
}

/// The comments on an issue that direct an agent: those of people who could change the code themselves, and the gardener's
/// acceptance criteria. What else Pointsman says there is for people.
fn directing_comments(served: &Served, issue: Number) -> Result<Vec<Comment>, forge::Error> {
    let mut comments = served.forge.comments_after(issue, 0)?;
    comments.drain(..comments.len().saturating_sub(COMMENTS_READ));
    let me = served.forge.me();
    let mut may_direct = BTreeMap::new();
    let mut kept = Vec::new();
    for comment in comments {
        let directs = if comment.author == me {
            comment.body.contains(words::comment::GARDENER_MARK)
        } else {
            match may_direct.get(&comment.author) {
                Some(known) => *known,
                None => {
                    let told = served.may_direct(&comment.author)?;
                    may_direct.insert(comment.author.clone(), told);
                    told
                }
            }
        };
        if directs {
            kept.push(comment);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::{ProjectName, TaskKey};
    use pointsman_core::task::{Effect, Headline, Opening, Task};
    use pointsman_core::time::Timestamp;
    use pointsman_store::{Change, Store};

    use super::unread;

    fn order(store: &mut Store, task: &Task, effect: Effect) {
        let mut change = Change::new(Timestamp(1), "test");
        change.task = Some(task.clone());
        change.effects = vec![effect];
        store.commit(&[change]).unwrap();
    }

    #[test]
    fn an_answer_that_nobody_was_there_for_is_told_to_the_successor_and_to_its_successor() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("pointsman.db")).unwrap();
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 1 };
        let task = Task::new(key, "t".into(), "b".into(), Timestamp(0));
        let details = "Dried ones.".to_owned();
        let headline = Headline::Answer;
        order(
            &mut store,
            &task,
            Effect::Deliver { generation: 1, headline, subject: String::new(), details },
        );
        for generation in [2, 3] {
            order(&mut store, &task, Effect::StartSession { generation, opening: Opening::Recovery });
            let told = unread(&store, &task, generation).ok().unwrap();
            assert_eq!(told, ["Answer\n\nDried ones."], "generation {generation}");
        }
    }
}
