//! The way of a task, in a copy of the project: a tree, a session inside the sandbox, a message there and an answer back, CI,
//! and a landing. Nothing of the project changes.

use std::time::{Duration, Instant};

use pointsman_adapters::process::Program;
use pointsman_core::config::Worktree;
use pointsman_core::sandbox::Place;
use pointsman_core::task::{Headline, Stage, State, Task};
use pointsman_core::words::doctor as words;
use pointsman_store::{ForgeDatabase, MessageStatus};

use super::project::look_for_agent;
use super::{Check, chain};
use crate::cli::context::Context;
use crate::cli::failure::{Code, Failure};
use crate::demo::Interrupted;
use crate::project::Project;
use crate::whole_way::{Copy, Seen, Worker, pause};

/// For everything besides CI: trees, sessions and messages.
const LIMIT: Duration = Duration::from_secs(120);

const SESSION: &str = "session";
const MESSAGE: &str = "message";
const CI: &str = "ci";
const LANDING: &str = "landing";

/// Every step of the way; the first one that fails ends it.
pub(super) fn checks(context: &Context, project: &Project) -> Result<Vec<Check>, Failure> {
    context.out.say(words::TRYING);
    let built = Copy::build(&context.paths, project, Worker::Script);
    let mut copy = match built {
        Ok(copy) => copy,
        Err(error) => return Ok(vec![Check::fail("tree", chain(error), words::COPY_FIX)]),
    };
    if let Some(check) = agent_on_main(&copy, project) {
        return Ok(vec![check]);
    }
    let filed = copy.start().and_then(|()| copy.file_issue(words::ISSUE, words::SCRIPT));
    let walked = filed.and_then(|issue| walk(context, project, &copy, issue));
    drop(copy);
    match walked {
        Ok(checks) => Ok(checks),
        Err(error) if error.is::<Interrupted>() => Err(Failure::silent(Code::Interrupted)),
        Err(error) => Ok(vec![Check::fail(SESSION, chain(error), words::COPY_FIX)]),
    }
}

/// The agent program is where a session looks for it: on main, and executable there.
fn agent_on_main(copy: &Copy, project: &Project) -> Option<Check> {
    let program = project.config.command(Task::ROLE).first()?;
    let in_tree = program.contains('/') && !program.starts_with('/');
    let main = project.config.primary_branch.as_str();
    let detail = match look_for_agent(program, copy.tree()) {
        Program::NotExecutable(_) if in_tree => words::not_executable_on_main(program, main),
        Program::Missing if in_tree => words::only_in_checkout(program, main),
        Program::Found(_) | Program::Missing | Program::NotExecutable(_) | Program::NoInterpreter { .. } => {
            return None;
        }
    };
    Some(Check::fail("agent_on_main", detail, words::commit_it(program)))
}

/// Follows the task of the copy to its end.
fn walk(context: &Context, project: &Project, copy: &Copy, issue: u64) -> anyhow::Result<Vec<Check>> {
    let began = Instant::now();
    let limit = LIMIT + Duration::from(project.config.timing.ci_timeout);
    let inside = is_inside(project);
    let mut checks: Vec<Check> = Vec::new();
    let mut sent = None;
    loop {
        let seen = copy.look(issue)?;
        let has = |checks: &[Check], id: &str| checks.iter().any(|check| check.id == id);
        let state = seen.task.as_ref().map_or(State::Backlog, |task| task.state);
        if !has(&checks, SESSION) && has_pushed(state) {
            checks.push(Check::ok(SESSION, words::session_works(began.elapsed().as_secs_f64(), inside)));
            if project.config.ci.kind.runs_here() {
                context.out.say(words::RUNNING_CI);
            }
        }
        let told = seen.messages.iter().find(|message| is_of_ci(message.headline));
        if let Some(message) = told {
            let sent = *sent.get_or_insert_with(Instant::now);
            if !has(&checks, CI) {
                checks.push(ci(project, copy, issue, message.headline));
            }
            if !has(&checks, MESSAGE) && message.status == MessageStatus::Acknowledged {
                checks.push(Check::ok(MESSAGE, words::message_works(sent.elapsed().as_secs_f64())));
            }
        }
        let green = told.is_some_and(|message| message.headline == Headline::CiPassed);
        // A red branch does not land, and that is as it should be.
        if has(&checks, MESSAGE) && !green {
            return Ok(checks);
        }
        if state == State::Closed {
            checks.push(Check::ok(LANDING, words::LANDED));
            return Ok(checks);
        }
        let over = copy.daemon_is_gone() || began.elapsed() > limit;
        if over || has_stopped(&seen) {
            let next = [SESSION, CI, MESSAGE].into_iter().find(|id| !has(&checks, id)).unwrap_or(LANDING);
            let reason = seen.task.as_ref().and_then(|task| task.reason.clone());
            checks.push(Check::fail(next, words::stuck(state.name(), reason.as_deref()), words::STUCK_FIX));
            return Ok(checks);
        }
        pause();
    }
}

/// Whether sessions of tasks run inside the sandbox.
pub(in crate::cli) fn is_inside(project: &Project) -> bool {
    let settings = project.config.sandbox(Task::ROLE);
    Context::enclosure().is_ok_and(|enclosure| enclosure.place(&settings, Worktree::Private) == Place::Inside)
}

fn ci(project: &Project, copy: &Copy, issue: u64, headline: Headline) -> Check {
    let config = &project.config;
    let command =
        config.ci.command.as_deref().filter(|_| config.ci.kind.runs_here()).map(|words| words.join(" "));
    match command {
        None if config.gate_is_checks() => Check::ok(CI, words::CI_ELSEWHERE),
        None => Check::warn(CI, words::NO_CI, words::NO_CI_FIX),
        Some(command) if headline == Headline::CiPassed => Check::ok(CI, words::ci_is_green(&command)),
        Some(command) => {
            let line = copy.last_line(&["ci", "logs", &issue.to_string()]).unwrap_or_default();
            Check::warn(CI, words::ci_is_red(&command, &line), words::CI_IS_RED_FIX)
        }
    }
}

fn is_of_ci(headline: Headline) -> bool {
    matches!(headline, Headline::CiPassed | Headline::CiFailed | Headline::CiTimeout)
}

/// Whether the branch of the task is on the forge.
pub(in crate::cli) fn has_pushed(state: State) -> bool {
    match state {
        State::AwaitingCi | State::AwaitingReview | State::MergeQueue | State::Merged | State::Closed => true,
        State::Backlog
        | State::WaitingDependencies
        | State::Working
        | State::Escalated
        | State::Blocked
        | State::Refused
        | State::Paused => false,
    }
}

/// Whether the task waits for a person, and none will come.
pub(in crate::cli) fn has_stopped(seen: &Seen) -> bool {
    let Some(task) = &seen.task else { return false };
    match task.state {
        State::Escalated => true,
        State::Blocked | State::Refused | State::Paused => task.session.stage == Stage::None,
        State::Backlog
        | State::WaitingDependencies
        | State::Working
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Merged
        | State::Closed => false,
    }
}

/// The embedded forge takes what lands, and its database can be read. A server is asked for its rights elsewhere.
pub(super) fn embedded(context: &Context, project: &Project) -> Vec<Check> {
    let paths = context.paths.project(&project.config.name);
    let repository = paths.forge_repository();
    let push =
        match tempfile::Builder::new().prefix(".pointsman-doctor-").tempfile_in(repository.join("objects")) {
            Ok(_) => Check::ok("main_push", words::main_can_be_pushed(&repository)),
            Err(error) => Check::fail(
                "main_push",
                words::main_cannot_be_pushed(&repository, &error.to_string()),
                format!("make {} yours: chown -R, chmod -R u+w", repository.display()),
            ),
        };
    let database = paths.forge_database();
    let opened = match ForgeDatabase::open_read_only(&database) {
        Ok(_) => Check::ok("forge_database", format!("{} opens", database.display())),
        Err(error) => Check::fail(
            "forge_database",
            chain(error),
            "move the file away and restore a backup; it contains the issues and pull requests",
        ),
    };
    vec![push, opened]
}

/// A failure to even begin.
pub(in crate::cli) fn no_project() -> Failure {
    Failure::not_found("there is no project here to try an agent in")
        .hint("pointsman init, in a git repository")
}
