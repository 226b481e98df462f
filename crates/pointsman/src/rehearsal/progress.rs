//! The progress of the script, kept beside git's own files so that a successor in the same tree finds it and no
//! commit holds it.

use std::path::PathBuf;
use std::{fs, io};

use super::script::Step;

/// The file's name below the git directory.
pub(super) const FILE: &str = "pointsman-rehearsal";

/// The number of the next step, on disk.
pub(super) struct Progress {
    file: PathBuf,
}

impl Progress {
    pub(super) fn at(file: PathBuf) -> Self {
        Self { file }
    }

    /// Where to go on in this script. One that was played to its end is played again (somebody
    /// started the task anew), unless it ended well and only the last word got lost.
    pub(super) fn next(&self, script: &[Step]) -> usize {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        match text.trim().parse().unwrap_or(0) {
            next if next < script.len() => next,
            _ => match script.last() {
                Some(Step::Phase { name, .. }) if name == "done" => script.len() - 1,
                _ => 0,
            },
        }
    }

    /// What an earlier turn heard and had no use for yet.
    pub(super) fn heard(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file.with_extension("heard")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Keeps that for the next turn.
    pub(super) fn remember_heard(&self, lines: impl Iterator<Item = String>) -> io::Result<()> {
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        fs::write(self.file.with_extension("heard"), text)
    }

    /// Remembers the next step. Written aside and renamed: a SIGKILL leaves the old or the new.
    pub(super) fn remember(&self, next: usize) -> io::Result<()> {
        let aside = self.file.with_extension("new");
        fs::write(&aside, format!("{next}\n"))?;
        fs::rename(aside, &self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Step};

    #[test]
    fn a_successor_goes_on_and_a_new_start_begins_again() {
        let dir = tempfile::tempdir().unwrap();
        let progress = Progress::at(dir.path().join("p"));
        let failed = Step::Phase { name: "failed".to_owned(), reason: None };
        let script = [Step::Push, Step::Crash, failed];
        assert_eq!(progress.next(&script), 0);
        progress.remember(2).unwrap();
        assert_eq!(progress.next(&script), 2);
        progress.remember(3).unwrap();
        assert_eq!(progress.next(&script), 0);

        let done = Step::Phase { name: "done".to_owned(), reason: None };
        assert_eq!(progress.next(&[Step::Push, Step::Push, done]), 2);
    }
}
