//! Effects that only a run orders, and what the session of a run finds.

use pointsman_adapters::git::checkout::exclude;
use pointsman_adapters::phase_file::{self, read_result_file};
use pointsman_adapters::secret::known;
use pointsman_core::run::{Event, RESULT_BYTES, Run, Subject, check_result, read_result};
use pointsman_core::task::Opening;
use pointsman_core::text::visible;
use pointsman_core::words;
use pointsman_core::workflow;

use super::session::{Prepared, write};
use super::tree::TreeOwner;
use super::{EffectError, EffectPerformer, Outcome, hand_in};
use crate::daemon::crash::crash_point;
use crate::daemon::inbound::ThreadReport;
use crate::daemon::outcome::Performed;
use crate::daemon::runs::{containers, files};
use crate::daemon::served::{Served, SessionFiles};

impl EffectPerformer {
    /// The working tree of a run, the files about its subject, and the prompt.
    pub(super) fn prepare_run(
        &self,
        served: &Served,
        run: &Run,
        (generation, opening): (u32, Opening),
        session_files: &SessionFiles,
    ) -> Result<Prepared, EffectError> {
        containers::end(self, run, generation.saturating_sub(1));
        if !session_files.tree.exists() {
            served.mirror.fetch_remote()?;
        }
        // A server that does not answer, a branch that is not there yet: tried again until the run's time is up.
        let Some(main) = served.mirror.remote_head(&served.primary)? else {
            return Err(EffectError::later(words::daemon::git::no_branch(&served.primary)));
        };
        let owner = TreeOwner::of_run(run);
        let material =
            self.prepare_tree(served, &owner, (generation, opening), session_files, &main, |plan| {
                let material =
                    files::lay_out(self, served, run, generation, session_files).map_err(not_yet)?;
                if plan.is_new {
                    exclude(&session_files.tree, &plan.exclude)?;
                }
                Ok(material)
            })?;
        let places = words::run::RunFiles {
            phase_file: session_files.phase_file.to_string_lossy().into_owned(),
            result_file: session_files.result(generation).to_string_lossy().into_owned(),
        };
        for (name, text) in &material.files {
            write(&session_files.inbox(generation).join(name), visible(&known().mask(text)).as_bytes())?;
        }
        let mut env = owner.env;
        env.extend(run.model.clone().map(|model| ("POINTSMAN_MODEL".to_owned(), model)));
        env.extend(material.env.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let prompt = words::run::prompt(run, &places, &material.briefing);
        Ok(Prepared { prompt, main: None, env })
    }

    /// Reads what the session left as its result: that decides how the run ends.
    pub(super) fn read_result(
        &self,
        served: &Served,
        run: &Run,
        generation: u32,
    ) -> Result<Outcome, EffectError> {
        let path = served.files_of(&run.key().into()).result(generation);
        let read = read_result_file(&path, RESULT_BYTES as u64).map_err(|why| why.to_string());
        let checked = read.and_then(|bytes| {
            let result = read_result(bytes.as_deref())?;
            // Steps that are missing are the better reason.
            match run.next_step() {
                None => check_result(run, result.as_ref()).map(|()| result),
                Some(_) => Ok(result),
            }
        });
        let event = match checked {
            Ok(result) => Event::Finished { generation, result },
            Err(why) => Event::GaveUp { generation, why, unusable: true },
        };
        crash_point("run-result-read");
        Ok(Outcome::learned(workflow::Event::Run(event)))
    }

    /// Puts away what the sessions of a run left. Its work is captured once nobody writes to it any more: what could not
    /// be captured stays where it is, and all of this is tried again.
    pub(super) fn clean_up_run(&self, served: &Served, run: &Run) -> Result<Outcome, EffectError> {
        let id = run.key().into();
        let session = run.session_name();
        let session_files = served.files_of(&id);
        if let Some(running) = self.drivers.find(&run.identity())? {
            let grace = served.config.timing.stop_grace.duration();
            self.drivers.end(&run.identity(), &running, grace)?;
            self.sockets.close(&session);
        }
        containers::end(self, run, run.session.generation);
        self.keep_work(served, &session, &session_files.tree)?;
        crash_point("run-session-put-away");
        Self::keep_transcript(served, &session, &session_files);
        let seen = session_files.as_seen_by(run.session.generation, &session_files.phase_file);
        for file in [&seen, &session_files.phase_file, &session_files.idle_marker] {
            if let Err(refusal) = phase_file::remove_own_file(file) {
                // Not ours, so not ours to remove.
                tracing::warn!(file = %file.display(), %refusal, "left a state file");
            }
        }
        files::take_commits(served, run, &session_files).map_err(not_yet)?;
        if run.is_to_be_looked_through() && session_files.tree.exists() {
            return hand_in::take(self, served, run, &session_files.tree).map_err(not_yet);
        }
        hand_in::tidy(self, served, run).map_err(not_yet)?;
        // What was in it is captured; what was not changed is in git.
        let freed = self.remove_tree_of_run(served, run, &session_files)?;
        if matches!(run.subject, Some(Subject::Review { .. } | Subject::Action { .. })) {
            // What came of it belongs on the forge.
            self.jobs.inbox.report(ThreadReport::AskForge { project: run.project.clone() });
        }
        let events = freed.into_iter().chain([workflow::Event::Run(Event::CleanedUp)]).collect();
        Ok(Outcome::Done(Performed { events, ..Performed::default() }))
    }
}

fn not_yet(error: anyhow::Error) -> EffectError {
    EffectError::later(format!("{error:#}"))
}
