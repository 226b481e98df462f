//! `.agent-claim.json` on disk: found, read with suspicion, replaced whole.

use std::path::{Path, PathBuf};

use pointsman_adapters::phase_file::{self, Refusal};
use pointsman_core::claim::{self, Claim, FILE_NAME, LARGEST};

use super::failure::{Code, Failure};

/// The file of one checkout.
#[derive(Clone, Debug)]
pub(crate) struct ClaimFile {
    path: PathBuf,
}

/// A reason why the claim file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// It is not a file to be read.
    #[error("{}: {refusal}", path.display())]
    Refused { path: PathBuf, refusal: Refusal },
    /// It is no claim of ours.
    #[error("{}: {error}", path.display())]
    Invalid { path: PathBuf, error: claim::Error },
    #[error("cannot write {}: {error}", path.display())]
    Unwritable { path: PathBuf, error: std::io::Error },
    /// It is gone, or another claim stands there now.
    #[error("somebody else has changed {} in the meantime", path.display())]
    Changed { path: PathBuf },
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let code = match &problem {
            Problem::Refused { .. } | Problem::Invalid { .. } | Problem::Changed { .. } => Code::Refused,
            Problem::Unwritable { .. } => Code::Failed,
        };
        Self::new(code, problem)
    }
}

impl ClaimFile {
    /// The file in this directory, whether it is there or not.
    pub(crate) fn in_dir(dir: &Path) -> Self {
        Self { path: dir.join(FILE_NAME) }
    }

    /// The nearest file, from `start` up to the root of its repository. A session may have been started, or may have
    /// gone, anywhere in the checkout.
    pub(crate) fn find(start: &Path) -> Option<Self> {
        for dir in start.ancestors() {
            let file = Self::in_dir(dir);
            if file.path.symlink_metadata().is_ok() {
                return Some(file);
            }
            if dir.join(".git").symlink_metadata().is_ok() {
                return None;
            }
        }
        None
    }

    /// The checkout that the file lies in.
    pub(crate) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The claim in the file; none if the file is missing, or is just being written.
    pub(crate) fn read(&self) -> Result<Option<Claim>, Problem> {
        let refused = |refusal| Problem::Refused { path: self.path.clone(), refusal };
        match phase_file::read_result_file(&self.path, LARGEST).map_err(refused)? {
            Some(bytes) if !bytes.trim_ascii().is_empty() => Claim::parse(&bytes)
                .map(Some)
                .map_err(|error| Problem::Invalid { path: self.path.clone(), error }),
            Some(_) | None => Ok(None),
        }
    }

    /// Replaces it in one step.
    pub(crate) fn write(&self, claim: &Claim) -> Result<(), Problem> {
        phase_file::write_state_file(&self.path, claim.render().as_bytes())
            .map_err(|error| Problem::Unwritable { path: self.path.clone(), error })
    }

    /// Changes fields of the claim that was acted on. The file is read again: what the agent has written since then
    /// stays, and if it has gone on to another phase, that is not taken back.
    pub(crate) fn change(&self, acted_on: &Claim, change: impl FnOnce(&mut Claim)) -> Result<Claim, Problem> {
        let same = |now: &Claim| now.issue_number == acted_on.issue_number && now.phase == acted_on.phase;
        let Some(mut claim) = self.read()?.filter(same) else {
            return Err(Problem::Changed { path: self.path.clone() });
        };
        let before = claim.clone();
        change(&mut claim);
        if claim != before {
            self.write(&claim)?;
        }
        Ok(claim)
    }

    /// Removes it; it is fine if it is gone.
    pub(crate) fn remove(&self) -> Result<(), Problem> {
        phase_file::remove_own_file(&self.path)
            .map_err(|refusal| Problem::Refused { path: self.path.clone(), refusal })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use pointsman_core::claim::{Claim, Phase};

    use super::{ClaimFile, Problem};

    fn claim() -> Claim {
        Claim::new(42, "item-42".into(), "claude/x-42".into(), "ann-1".into(), "In Progress")
    }

    #[test]
    fn it_is_found_from_below_and_not_beyond_the_repository() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("repo/src/deep");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::create_dir(dir.path().join("repo/.git")).unwrap();
        ClaimFile::in_dir(dir.path()).write(&claim()).unwrap();
        assert!(ClaimFile::find(&below).is_none(), "that one is another project's");
        ClaimFile::in_dir(&dir.path().join("repo")).write(&claim()).unwrap();
        assert_eq!(ClaimFile::find(&below).unwrap().read().unwrap(), Some(claim()));
    }

    #[test]
    fn links_giants_and_nonsense_are_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = ClaimFile::in_dir(dir.path());
        let target = dir.path().join("target");
        std::fs::write(&target, claim().render()).unwrap();
        symlink(&target, &file.path).unwrap();
        assert!(matches!(file.read(), Err(Problem::Refused { .. })));
        std::fs::remove_file(&file.path).unwrap();
        std::fs::write(&file.path, " ".repeat(100_000)).unwrap();
        assert!(matches!(file.read(), Err(Problem::Refused { .. })));
        std::fs::write(&file.path, "{\"schema_version\": 7}").unwrap();
        assert!(file.read().unwrap_err().to_string().contains("schema_version 7"));
        std::fs::write(&file.path, "\n").unwrap();
        assert_eq!(file.read().unwrap(), None, "just being written");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), claim().render());
    }

    #[test]
    fn what_the_agent_wrote_meanwhile_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = ClaimFile::in_dir(dir.path());
        let acted_on = claim();
        let mut meanwhile = claim();
        meanwhile.further.insert("note".into(), "mine".into());
        file.write(&meanwhile).unwrap();
        let changed = file.change(&acted_on, |claim| claim.pr_number = Some(7)).unwrap();
        assert_eq!((changed.pr_number, &changed.further["note"]), (Some(7), &"mine".into()));
        meanwhile.phase = Phase::Done;
        file.write(&meanwhile).unwrap();
        let late = file.change(&acted_on, |claim| claim.phase = Phase::PrCreated);
        assert!(matches!(late, Err(Problem::Changed { .. })));
        assert_eq!(file.read().unwrap().unwrap().phase, Phase::Done);
    }
}
