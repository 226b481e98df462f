//! Comparison of the user's checkout with the forge that agents start from.

use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::git::{BranchName, Git};

use super::context::Context;
use crate::project::Project;

/// A warning if the main branch of the checkout has commits that are not on the forge. A server is not asked: for one,
/// `origin` counts as it was last fetched.
pub(crate) fn ahead(context: &Context, project: &Project) -> anyhow::Result<Option<String>> {
    let config = &project.config;
    let Some(branch) = BranchName::new(&config.primary_branch) else { return Ok(None) };
    let scratch = tempfile::tempdir()?;
    let git = Git::open(scratch.path())?;
    let Found::Checkout(checkout) = LocalCheckout::find(&git, project.checkout())? else { return Ok(None) };
    let embedded = config.forge.kind.is_embedded();
    let there = match embedded {
        true => {
            LocalCheckout::head_of(&git, &context.paths.project(&config.name).forge_repository(), &branch)?
        }
        false => checkout.origin_branch(&branch)?,
    };
    let Some(there) = there else { return Ok(None) };
    let commits = match checkout.ahead_of(&branch, &there)? {
        None | Some(0) => return Ok(None),
        Some(1) => "1 commit".to_owned(),
        Some(n) => format!("{n} commits"),
    };
    let fix = if embedded { "pointsman sync".to_owned() } else { format!("git push origin {branch}") };
    Ok(Some(format!(
        "{branch} in this checkout is {commits} ahead of the forge. Agents do not see them until you run `{fix}`."
    )))
}
