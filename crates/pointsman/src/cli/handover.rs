//! `task take` and `task give`: the work of a task in a person's checkout, and back.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::git::{self, BranchName, Git, RefName};
use pointsman_adapters::{phase_file, projection};
use pointsman_core::ids::Number;
use pointsman_core::task::Stage;
use pointsman_core::words;
use pointsman_view::task::{Handed, Ordered, Returned, Taken};

use super::context::Context;
use super::failure::Failure;
use super::{session, session_log};
use crate::control::protocol::{HandoverCommand, Request};
use crate::init;
use crate::project::Project;

/// Between two looks at a session that ends.
const LOOK: Duration = Duration::from_millis(50);
/// A session has this long to end, beside the time that the project gives it (`timing.stop_grace`).
const END_LIMIT: Duration = Duration::from_secs(60);
/// The most of a conversation that is brought along; of a terminal it is the end.
const CONVERSATION_BYTES: u64 = 64 << 20;
const TRANSCRIPT_BYTES: u64 = 4 << 20;
/// Where conversations are, in a checkout.
const FOLDERS: [&str; 3] = [".claude", "state", "taken"];
/// How many files that are in the way are named.
const NAMED_FILES: usize = 5;

fn failed(error: git::Error) -> Failure {
    Failure::failed(format!("{:#}", anyhow::Error::new(error)))
}

fn open(context: &Context, project: &Project) -> Result<LocalCheckout, Failure> {
    let git = Git::open(context.paths.state()).map_err(failed)?;
    match LocalCheckout::find(&git, project.checkout()).map_err(failed)? {
        Found::Checkout(checkout) => Ok(checkout),
        Found::Bare | Found::Nothing => {
            Err(Failure::refused(words::handover::no_checkout(project.checkout())))
        }
    }
}

pub(super) fn take(context: &Context, issue: Number) -> Result<(), Failure> {
    context.people_only("taking a task over")?;
    let project = context.project()?;
    let checkout = open(context, &project)?;
    // Before anything happens to the task.
    match checkout.changed_tracked_files().map_err(failed)? {
        0 => {}
        files => return Err(Failure::refused(words::handover::dirty_take(files))),
    }
    let name = project.config.name.clone();
    let ask = |command| Request::Handover { project: name.clone(), command };
    let _: Ordered = context.ask_daemon(&ask(HandoverCommand::Take { issue, by: context.author() }))?;
    wait_for_end(context, &project, issue)?;
    let handed: Handed = context.ask_daemon(&ask(HandoverCommand::Fetch { issue }))?;
    bring(&checkout, &handed, issue)?;
    let (conversation, resume) = conversation(context, &project, &checkout, &handed, issue)?;
    let taken = Taken {
        issue,
        uncommitted: handed.commit != handed.head,
        branch: handed.branch,
        head: handed.head,
        session: handed.session,
        conversation,
        resume,
    };
    if context.out.is_json() {
        return context.out.value(&taken);
    }
    context.out.say(words::handover::taken(issue, &taken.branch, taken.uncommitted));
    if let Some(path) = &taken.conversation {
        context.out.say(words::handover::conversation(path, taken.resume.as_deref()));
    }
    Ok(())
}

/// Waits until the agent cannot write any more.
#[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
fn wait_for_end(context: &Context, project: &Project, issue: Number) -> Result<(), Failure> {
    let deadline = Instant::now() + END_LIMIT + project.config.timing.stop_grace.duration();
    loop {
        let (task, _) = context.task(project, issue)?;
        if task.session.stage == Stage::None {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Failure::failed(words::handover::still_ends(issue)));
        }
        std::thread::sleep(LOOK);
    }
}

/// Puts the branch and the agent's uncommitted changes into the checkout, over nothing that is there.
fn bring(checkout: &LocalCheckout, handed: &Handed, issue: Number) -> Result<(), Failure> {
    let damaged = || Failure::failed(words::daemon::git::not_a_ref_name(&handed.reference));
    let reference = RefName::new(&handed.reference).ok_or_else(damaged)?;
    let branch = BranchName::new(&handed.branch).ok_or_else(damaged)?;
    checkout.fetch(&handed.repository, &reference).map_err(failed)?;
    if let Some(here) = checkout.branch(&branch).map_err(failed)? {
        // The person took it before and has worked since: that is what they want to see.
        if here != handed.head && checkout.is_ancestor(&handed.head, &here).map_err(failed)? {
            return checkout.switch(&branch, &here).map_err(failed);
        }
        if !checkout.is_ancestor(&here, &handed.head).map_err(failed)? {
            return Err(Failure::refused(words::handover::diverged(branch.as_str(), issue)));
        }
    }
    let mut in_the_way = checkout.added_files(&handed.head, &handed.commit).map_err(failed)?;
    in_the_way.retain(|file| checkout.root().join(file).symlink_metadata().is_ok());
    if !in_the_way.is_empty() {
        in_the_way.truncate(NAMED_FILES);
        return Err(Failure::refused(words::handover::in_the_way(&in_the_way, issue)));
    }
    checkout.switch(&branch, &handed.head).map_err(failed)?;
    match handed.commit == handed.head {
        true => Ok(()),
        false => checkout.put_files(&handed.commit).map_err(failed),
    }
}

/// The conversation as a file of the checkout that git does not see. A conversation of Claude Code goes where the person's own
/// Claude Code finds it as well.
fn conversation(
    context: &Context,
    project: &Project,
    checkout: &LocalCheckout,
    handed: &Handed,
    issue: Number,
) -> Result<(Option<PathBuf>, Option<String>), Failure> {
    checkout.exclude(init::PROJECTIONS).map_err(failed)?;
    let keep = |name: &str, text: &str| -> Result<PathBuf, Failure> {
        projection::write(checkout.root(), &FOLDERS, name, text.as_bytes())?;
        Ok(FOLDERS.iter().fold(checkout.root().to_owned(), |dir, folder| dir.join(folder)).join(name))
    };
    if let Some((id, file)) = &handed.conversation
        && let Ok(Some(bytes)) = phase_file::read_result_file(file, CONVERSATION_BYTES)
    {
        let text = context.masked(&project.config, &String::from_utf8_lossy(&bytes));
        let kept = keep(&format!("{}.jsonl", handed.session), &text)?;
        let found = match Context::claude_home().filter(|home| home.is_dir()) {
            Some(home) => {
                let (dir, name) = (claude_name(checkout.root()), format!("{id}.jsonl"));
                if !home.join("projects").join(&dir).join(&name).exists() {
                    projection::write(&home, &["projects", &dir], &name, text.as_bytes())?;
                }
                Some(format!("claude --resume {id}"))
            }
            None => None,
        };
        return Ok((Some(kept), found));
    }
    let row = session::newest_of(context, &project.config.name, issue)?;
    // A session that never printed anything has none.
    let Ok((_, mut file)) = session_log::open(context, project, &row) else { return Ok((None, None)) };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TRANSCRIPT_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TRANSCRIPT_BYTES).read_to_end(&mut bytes)?;
    let text = context.masked(&project.config, &String::from_utf8_lossy(&bytes));
    Ok((Some(keep(&format!("{}.log", handed.session), &text)?), None))
}

/// The name by which Claude Code keeps the conversations of a directory.
fn claude_name(dir: &Path) -> String {
    dir.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

pub(super) fn give(context: &Context, issue: Number) -> Result<(), Failure> {
    context.people_only("giving a task back")?;
    let project = context.project()?;
    let (task, _) = context.task(&project, issue)?;
    if task.taken_by.is_none() {
        return Err(Failure::refused(words::task::refused::not_taken(issue)));
    }
    let checkout = open(context, &project)?;
    let branch = &task.contribution.branch;
    let current = checkout.current_branch().map_err(failed)?;
    if current.as_ref() != Some(branch) {
        return Err(Failure::refused(words::handover::other_branch(branch, current.as_deref())));
    }
    let mut uncommitted = checkout.uncommitted().map_err(failed)?;
    // Ours, and often not committed.
    uncommitted.retain(|file| checkout.root().join(file) != project.config_path);
    match uncommitted.len() {
        0 => {}
        files => return Err(Failure::refused(words::handover::dirty_give(files))),
    }
    let Some(head) = checkout.head().map_err(failed)? else {
        return Err(Failure::refused(words::handover::no_work(issue)));
    };
    let command = HandoverCommand::Give {
        issue,
        checkout: checkout.root().to_owned(),
        head: head.clone(),
        by: context.author(),
    };
    let ordered: Ordered =
        context.ask_daemon(&Request::Handover { project: project.config.name.clone(), command })?;
    if context.out.is_json() {
        let (branch, state) = (branch.clone(), ordered.state);
        return context.out.value(&Returned { issue, state, branch, head });
    }
    context.out.say(words::handover::given(issue, &head));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::claude_name;

    #[test]
    fn a_directory_has_the_name_that_claude_gives_it() {
        assert_eq!(claude_name(Path::new("/home/ann/my.shop_2")), "-home-ann-my-shop-2");
    }
}
