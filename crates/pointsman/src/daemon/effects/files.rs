//! The protocol's state files, and what is left of a task when it is over.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pointsman_adapters::git::capture;
use pointsman_adapters::phase_file;
use pointsman_adapters::secret::known;
use pointsman_core::task::{State, Task};
use pointsman_core::words;

use super::{EffectError, EffectPerformer, Outcome};
use crate::daemon::served::{Served, SessionFiles};

impl EffectPerformer {
    pub(super) fn record_ci_result(served: &Served, task: &Task, text: &str) -> Result<Outcome, EffectError> {
        let session_files = served.session_files(&task.key);
        phase_file::write_state_file(&session_files.ci_result, text.as_bytes())?;
        let seen = session_files.as_seen_by(task.session.generation, &session_files.ci_result);
        if seen != session_files.ci_result {
            phase_file::write_state_file(&seen, text.as_bytes())?;
        }
        Ok(Outcome::done())
    }

    pub(super) fn clean_up(&self, served: &Arc<Served>, task: &Task) -> Result<Outcome, EffectError> {
        let session_files = served.session_files(&task.key);
        Self::keep_transcript(served, &task.key.session(task.session.generation), &session_files);
        let seen = session_files.as_seen_by(task.session.generation, &session_files.phase_file);
        for file in [
            &seen,
            &session_files.phase_file,
            &session_files.ci_result,
            &session_files.renotify,
            &session_files.idle_marker,
        ] {
            match phase_file::remove_own_file(file) {
                Ok(()) => {}
                // Not ours, so not ours to remove.
                Err(refusal) => tracing::warn!(file = %file.display(), %refusal, "left a state file"),
            }
        }
        // What is blocked or refused may go on in its tree.
        if task.state == State::Closed {
            let freed = self.remove_tree(served, task, &session_files)?;
            return Ok(freed.map_or_else(Outcome::done, Outcome::learned));
        }
        Ok(Outcome::done())
    }

    /// Captures the working tree into a rescue ref, if it holds anything that is not
    /// safe already. Nothing is destroyed before this.
    pub(in crate::daemon) fn keep_work(
        &self,
        served: &Served,
        session: &str,
        tree: &Path,
    ) -> Result<(), EffectError> {
        if !tree.exists() {
            return Ok(());
        }
        let Some(refname) = capture::next_rescue_ref(&served.captures, session)? else {
            return Err(EffectError::never(words::daemon::git::no_rescue_ref(session)));
        };
        let message = words::daemon::git::rescue(session);
        if let Some(kept) = capture::capture(&served.captures, tree, &refname, &message)? {
            tracing::info!(session, rescue = refname.as_str(), commit = %kept.commit, "work captured");
            if let Some(why) = kept.incomplete {
                tracing::warn!(session, why, "the capture may be incomplete");
            }
        }
        Ok(())
    }

    /// The transcript moves to the state directory, where `session logs` finds it.
    pub(super) fn keep_transcript(served: &Served, session: &str, session_files: &SessionFiles) {
        let kept = served.paths.transcript(session);
        if let Err(refusal) = phase_file::move_own_file(&session_files.transcript, &kept) {
            tracing::warn!(file = %session_files.transcript.display(), %refusal, "left a transcript");
            return;
        }
        // From here on it is shown to people.
        let masked = fs::read(&kept).ok().and_then(|bytes| known().mask_bytes(&bytes));
        if let Some(masked) = masked
            && let Err(error) = fs::write(&kept, masked)
        {
            tracing::error!(file = %kept.display(), %error, "a transcript holds a secret");
        }
    }
}
