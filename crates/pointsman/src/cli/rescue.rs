use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::rescue::{self, Kind, Rescue};
use pointsman_adapters::git::{BranchName, Git};
use pointsman_core::ids::Number;
use pointsman_core::text::{clean_block, clean_line};
use pointsman_core::time::Timestamp;
use pointsman_view::rescue as view;

use super::context::Context;
use super::failure::{Code, Failure};
use super::table::Table;
use super::{style, time};

/// What every reference that is listed here begins with; it need not be typed.
const PREFIX: &str = "refs/pointsman/";
/// The most of a patch that is shown.
const PATCH_CAP: usize = 16 << 20;

/// Find and restore captured work: from checkpoints, and from trees and sessions that were removed
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman rescue list --task 3\n  \
    pointsman rescue show checkpoints/3/7 --patch\n  \
    pointsman rescue restore checkpoints/3/7 --to ../issue-3     the files, into a new directory\n  \
    pointsman rescue restore rescue/dev-shop-3.1/1 --branch found   how to get it as a branch")]
pub(crate) enum Command {
    /// List captured work
    #[command(
        after_help = "Examples:\n  pointsman rescue list --task 3\n  pointsman rescue list --kind checkpoint"
    )]
    List {
        /// Only for this issue
        #[arg(long, value_name = "N", value_parser = super::number)]
        task: Option<Number>,
        /// Only this kind
        #[arg(long, value_enum)]
        kind: Option<Wanted>,
    },
    /// Show what a capture changes
    #[command(after_help = "Example:\n  pointsman rescue show checkpoints/3/7 --patch")]
    Show {
        /// The capture's reference, with or without refs/pointsman/
        #[arg(value_name = "REF")]
        name: String,
        /// Show every changed line
        #[arg(long)]
        patch: bool,
    },
    /// Restore a capture
    #[command(after_help = "Examples:\n  \
        pointsman rescue restore checkpoints/3/7 --to ../issue-3\n  \
        pointsman rescue restore checkpoints/3/7 --branch found")]
    Restore {
        /// The capture's reference, with or without refs/pointsman/
        #[arg(value_name = "REF")]
        name: String,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wanted {
    /// Captured before a tree or a session was removed
    Rescue,
    /// Saved while work continued
    Checkpoint,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Write all files into this directory, which must be new or empty
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Print the command that creates a branch with it in your own checkout
    #[arg(long, value_name = "NAME", value_parser = branch_name)]
    branch: Option<BranchName>,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let mirror = open(context)?;
        match self {
            Self::List { task, kind } => list(context, mirror.as_ref(), task, kind),
            Self::Show { name, patch } => {
                let (mirror, rescue) = find(mirror, &name)?;
                show(context, &mirror, &rescue, patch)
            }
            Self::Restore { name, target } => {
                let (mirror, rescue) = find(mirror, &name)?;
                match target {
                    Target { to: Some(dir), .. } => restore(context, &mirror, &rescue, &dir),
                    Target { branch: Some(branch), .. } => say_fetch(context, &mirror, &rescue, &branch),
                    Target { to: None, branch: None } => Err(Failure::new(Code::Usage, "--to or --branch")),
                }
            }
        }
    }
}

fn list(
    context: &Context,
    mirror: Option<&Mirror>,
    task: Option<Number>,
    kind: Option<Wanted>,
) -> Result<(), Failure> {
    let mut found = mirror.map(rescue::list).transpose().map_err(anyhow::Error::from)?.unwrap_or_default();
    found.retain(|rescue| {
        let wanted = match kind {
            Some(Wanted::Rescue) => rescue.kind == Kind::Rescue,
            Some(Wanted::Checkpoint) => rescue.kind == Kind::Checkpoint,
            None => true,
        };
        wanted && task.is_none_or(|task| rescue.task == Some(task))
    });
    if context.out.is_json() {
        return context.out.value(&found.iter().map(view_of).collect::<Vec<_>>());
    }
    let mut table = Table::new(["TASK", "SESSION", "WHEN", "FILES", "REF"]);
    for rescue in &found {
        table.row([
            rescue.task.map_or_else(|| "-".to_owned(), |task| format!("#{task}")).into(),
            session(rescue).into(),
            time::relative(at(rescue), time::now()).into(),
            rescue.files.len().to_string().into(),
            short(rescue).into(),
        ]);
    }
    context.out.table(&table, "Nothing has been captured.")
}

fn show(context: &Context, mirror: &Mirror, rescue: &Rescue, patch: bool) -> Result<(), Failure> {
    let read = || -> anyhow::Result<(String, Option<String>)> {
        let stat = rescue::stat(mirror, &rescue.commit)?;
        let patch = patch.then(|| rescue::patch(mirror, &rescue.commit, PATCH_CAP)).transpose()?;
        Ok((stat, patch))
    };
    let (stat, patch) = read()?;
    if context.out.is_json() {
        return context.out.value(&view::Rescue { stat: Some(stat), patch, ..view_of(rescue) });
    }
    let (quiet, out) = (style::QUIET, context.out);
    out.line(format!("{quiet}ref{quiet:#}      {}", rescue.refname))?;
    out.line(format!("{quiet}commit{quiet:#}   {}", rescue.commit))?;
    out.line(format!("{quiet}session{quiet:#}  {}", session(rescue)))?;
    let when = time::relative(at(rescue), time::now());
    out.line(format!("{quiet}when{quiet:#}     {when} ({})", time::local(at(rescue))))?;
    for text in [Some(stat), patch].into_iter().flatten().filter(|text| !text.is_empty()) {
        out.line(format!("\n{}", clean_block(text.trim_end_matches('\n'), PATCH_CAP)))?;
    }
    Ok(())
}

fn restore(context: &Context, mirror: &Mirror, rescue: &Rescue, dir: &Path) -> Result<(), Failure> {
    let dir = std::path::absolute(dir)?;
    let shown = dir.display();
    if inside(&dir, context.paths.state()) {
        return Err(Failure::refused(format!("{shown} is inside the state directory, where sessions work"))
            .hint("name a new directory of your own with --to"));
    }
    let free = match std::fs::read_dir(&dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !free {
        return Err(Failure::refused(format!("{shown} exists and is not an empty directory"))
            .hint("name a new directory with --to; existing files are never overwritten"));
    }
    rescue::restore(mirror, &rescue.commit, &dir).map_err(anyhow::Error::from)?;
    if context.out.is_json() {
        return context.out.value(&view::Rescue { to: Some(dir), ..view_of(rescue) });
    }
    context.out.say(format!("The files of {} are in {shown}.", short(rescue)));
    Ok(())
}

/// A person's checkout is written to by nobody but them: they get the command.
fn say_fetch(
    context: &Context,
    mirror: &Mirror,
    rescue: &Rescue,
    branch: &BranchName,
) -> Result<(), Failure> {
    let source = mirror.dir().to_str().ok_or_else(|| {
        Failure::failed(format!("{} is not UTF-8 text", mirror.dir().display()))
            .hint("to write the files instead, use --to DIR")
    })?;
    let refspec = format!("{}:{}", rescue.refname, branch.full());
    let command = ["git", "fetch", source, &refspec];
    if context.out.is_json() {
        let command = Some(command.map(str::to_owned).to_vec());
        return context.out.value(&view::Rescue { command, ..view_of(rescue) });
    }
    context.out.say("In your own checkout:");
    context.out.line(command.map(quoted).join(" "))
}

/// The repository of captures, if there is a mirror yet. The remote is not asked.
fn open(context: &Context) -> Result<Option<Mirror>, Failure> {
    let paths = context.paths.project(&context.project()?.config.name);
    if !paths.mirror().is_dir() {
        return Ok(None);
    }
    let open = || -> anyhow::Result<Mirror> {
        let git = Git::open(context.paths.state())?;
        let remote = paths.forge_repository();
        let remote = remote.to_str().ok_or_else(|| anyhow::anyhow!("{} is not UTF-8", remote.display()))?;
        Ok(Mirror::open_or_create(&git, &paths.mirror(), remote)?.captures(&paths.captures())?)
    };
    Ok(open().map(Some)?)
}

fn find(mirror: Option<Mirror>, name: &str) -> Result<(Mirror, Rescue), Failure> {
    let missing = || {
        Failure::not_found(format!("there is no capture called {}", clean_line(name, 200)))
            .hint("pointsman rescue list")
    };
    let mirror = mirror.ok_or_else(missing)?;
    let found = rescue::list(&mirror).map_err(anyhow::Error::from)?;
    let wanted = name.strip_prefix(PREFIX).unwrap_or(name);
    let rescue = found.into_iter().find(|rescue| short(rescue) == wanted).ok_or_else(missing)?;
    Ok((mirror, rescue))
}

fn view_of(rescue: &Rescue) -> view::Rescue {
    view::Rescue {
        refname: rescue.refname.as_str().to_owned(),
        kind: rescue.kind.name().to_owned(),
        task: rescue.task,
        session: rescue.session.clone(),
        at: at(rescue).into(),
        commit: rescue.commit.clone(),
        files: rescue.files.clone(),
        stat: None,
        patch: None,
        to: None,
        command: None,
    }
}

fn session(rescue: &Rescue) -> String {
    rescue.session.as_deref().map_or_else(|| "-".to_owned(), |session| clean_line(session, 80))
}

fn short(rescue: &Rescue) -> &str {
    let name = rescue.refname.as_str();
    name.strip_prefix(PREFIX).unwrap_or(name)
}

fn at(rescue: &Rescue) -> Timestamp {
    Timestamp(rescue.at_secs.saturating_mul(1000))
}

/// Whether a path that may not exist yet lies in a directory, whatever symlinks lead there.
fn inside(path: &Path, dir: &Path) -> bool {
    let Ok(dir) = dir.canonicalize() else { return false };
    let nearest = path.ancestors().find_map(|part| part.canonicalize().ok());
    nearest.is_some_and(|nearest| nearest.starts_with(&dir))
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:+=@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn branch_name(text: &str) -> Result<BranchName, String> {
    BranchName::new(text).ok_or_else(|| "not a valid branch name".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{inside, quoted};

    #[test]
    fn a_word_stays_one_word_in_a_shell() {
        assert_eq!(quoted("/state/a-b.git"), "/state/a-b.git");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $(id)"), r"'it'\''s $(id)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn what_is_inside_is_seen_through_symlinks() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        std::fs::create_dir_all(state.join("sessions")).unwrap();
        std::os::unix::fs::symlink(&state, dir.path().join("link")).unwrap();
        assert!(inside(&state.join("sessions/new/deep"), &state));
        assert!(inside(&dir.path().join("link/new"), &state));
        assert!(!inside(&dir.path().join("state-2/new"), &state));
        assert!(!inside(&dir.path().join("new"), &dir.path().join("no state")));
    }
}
