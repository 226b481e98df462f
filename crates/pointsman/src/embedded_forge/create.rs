//! Making a project's embedded forge from the user's checkout.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use pointsman_adapters::git::bare::{Existing, import_branch};
use pointsman_adapters::git::{BranchName, Git};
use pointsman_core::config::Config;

use super::open_parts;
use crate::paths::Paths;

/// Makes the database and the bare repository of a project, imports its primary branch from the checkout, and answers
/// where the repository is.
///
/// May be repeated: a primary branch that is there is left where it is, whatever the checkout has. Nothing of the
/// checkout's configuration or hooks runs, and nothing is written to it.
pub fn create(paths: &Paths, config: &Config, checkout: &Path) -> anyhow::Result<PathBuf> {
    let branch = config.primary_branch.as_str();
    let primary =
        BranchName::new(branch).with_context(|| format!("`{branch}` cannot be the name of a branch"))?;
    // Git would read a file as a bundle.
    ensure!(checkout.is_dir(), "{} is not a directory", checkout.display());
    let git = Git::open(paths.state())?;
    let (repository, _shelf) = open_parts(&paths.project(&config.name), branch, &git)?;
    if repository.read_ref(&primary.full())?.is_none() {
        let imported = import_branch(&git, checkout, &primary, repository.dir(), Existing::FastForward)
            .with_context(|| format!("cannot read `{branch}` from {}", checkout.display()))?;
        if imported.is_none() {
            bail!(
                "{} has no branch `{branch}` with a commit: make a first commit there, or set primary_branch",
                checkout.display()
            );
        }
    }
    Ok(repository.dir().to_owned())
}
