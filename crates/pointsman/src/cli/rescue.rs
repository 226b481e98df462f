use clap::Subcommand;
use pointsman_adapters::git::Git;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::rescue::{self, Rescue};
use pointsman_core::ids::TaskKey;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::table::Table;
use super::time;

/// Work that was captured before a tree or a session went
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what was captured
    #[command(after_help = "To look at one:\n  \
        git --git-dir=STATE_DIR/projects/NAME/mirror.git show --stat REF")]
    List,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::List = self;
        let paths = context.paths.project(&context.project()?.config.name);
        let found = if paths.mirror().is_dir() { read(context, &paths)? } else { Vec::new() };
        if context.out.is_json() {
            let values: Vec<_> = found
                .iter()
                .map(|rescue| {
                    json!({
                        "ref": rescue.refname.as_str(),
                        "task": task(rescue),
                        "session": rescue.session,
                        "at": time::rfc3339(at(rescue)),
                        "files": rescue.files,
                    })
                })
                .collect();
            return context.out.value(&values);
        }
        let mut table = Table::new(["SESSION", "WHEN", "FILES", "REF"]);
        for rescue in &found {
            table.row([
                clean_line(&rescue.session, 80).into(),
                time::relative(at(rescue), time::now()).into(),
                rescue.files.len().to_string().into(),
                rescue.refname.as_str().into(),
            ]);
        }
        context.out.table(&table, "Nothing was captured.")
    }
}

fn read(context: &Context, paths: &crate::paths::ProjectPaths) -> Result<Vec<Rescue>, Failure> {
    let list = || -> anyhow::Result<Vec<Rescue>> {
        let git = Git::open(context.paths.state())?;
        // Only its own references are read; the remote is not asked.
        let remote = paths.forge_repository();
        let remote = remote.to_str().ok_or_else(|| anyhow::anyhow!("{} is not UTF-8", remote.display()))?;
        Ok(rescue::list(&Mirror::open_or_create(&git, &paths.mirror(), remote)?)?)
    };
    Ok(list()?)
}

fn task(rescue: &Rescue) -> Option<u64> {
    TaskKey::parse_session(&rescue.session).map(|(key, _)| key.issue)
}

fn at(rescue: &Rescue) -> Timestamp {
    Timestamp(rescue.at_secs.saturating_mul(1000))
}
