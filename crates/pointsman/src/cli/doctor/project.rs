//! The project that is meant, if one is.

use std::path::{Path, PathBuf};

use pointsman_adapters::driver::Drivers;
use pointsman_adapters::git::Git;
use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::headless::Headless;
use pointsman_adapters::process::{Program, find_program, look_for_program};
use pointsman_adapters::tmux::Server;
use pointsman_core::ids::ProjectName;
use pointsman_core::task::Task;
use pointsman_core::words;
use pointsman_store::SessionScope;

use super::{Check, Grade, chain, hooks, notifiers, services, whole_way};
use crate::cli::context::Context;
use crate::daemon;
use crate::project::{self, Project};

pub(super) fn checks(context: &Context) -> Vec<Check> {
    let project = match find(context) {
        Ok(Some(project)) => project,
        Ok(None) => {
            return vec![Check::warn(
                "config",
                "there is no pointsman.toml here or above",
                "pointsman init, in a git repository",
            )];
        }
        Err(check) => return vec![check],
    };
    let mut checks = vec![Check::ok("config", format!("{} is valid", project.config_path.display()))];
    checks.push(supported(&project));
    checks.push(agent(&project));
    if project.config.agent_kind(Task::ROLE).capabilities().hooks {
        checks.push(hooks::check(context, &project));
    }
    checks.extend(login(&project));
    checks.push(phase_dir(&project));
    if project.config.forge.kind.is_embedded() {
        let forge = forge(context, &project);
        let is_there = forge.status == Grade::Ok;
        checks.push(forge);
        if is_there {
            checks.extend(whole_way::embedded(context, &project));
        }
    }
    checks.extend(services::checks(context, &project.config));
    checks.extend(notifiers::checks(context, &project));
    checks.push(leftovers(context, &project.config.name));
    checks.push(halted(context));
    checks
}

/// The login for the model's API, where the relay adds it.
fn login(project: &Project) -> Option<Check> {
    const ID: &str = "claude_login";
    let enclosure = Context::enclosure().ok()?;
    if !enclosure.needs_login(&project.config) {
        return None;
    }
    Some(match enclosure.login() {
        Ok(Some(login)) => Check::ok(ID, words::relay::login_found(login.name)),
        Ok(None) => Check::warn(ID, words::relay::NO_LOGIN_HERE, words::relay::HOW_TO_LOG_IN),
        Err(error) => Check::fail(ID, format!("{error:#}"), words::relay::HOW_TO_LOG_IN),
    })
}

/// Whether the project that is meant needs terminals; without a project, one may come.
pub(super) fn wants_terminals(context: &Context) -> bool {
    find(context).ok().flatten().is_none_or(|project| project.config.wants_terminals())
}

/// Looks without registering anything: a doctor changes nothing.
fn find(context: &Context) -> Result<Option<Project>, Check> {
    let rows = context.registered().unwrap_or_default();
    let row = match &context.wanted {
        Some(name) => rows.into_iter().find(|row| row.name == *name),
        None => match context.nearest_config().ok().flatten() {
            Some(here) => match context.row_of(&here).ok().flatten() {
                Some(row) => Some(row),
                None => return not_registered(&here),
            },
            None => match rows.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            },
        },
    };
    // What is wrong with the file is told with its line.
    match row.as_ref().map(|row| Project::load(&row.config_path)).transpose() {
        Ok(None) => Ok(None),
        Ok(Some(_)) => match row.as_ref().map(|row| context.load(row)).transpose() {
            Ok(project) => Ok(project),
            Err(failure) => Err(Check::fail("config", failure.message(), words::trust::register_hint("."))),
        },
        Err(project::Error::Invalid(error)) => Err(Check::fail(
            "config",
            error.to_string(),
            error.advice().unwrap_or("correct that line").to_owned(),
        )),
        Err(error @ project::Error::Unreadable { .. }) => {
            Err(Check::fail("config", chain(error), "make the file readable, or correct POINTSMAN_CONFIG"))
        }
    }
}

/// A file that nobody registered is read and judged, and nothing that it names is run, asked or looked up.
fn not_registered(file: &Path) -> Result<Option<Project>, Check> {
    let shown = file.display().to_string();
    if let Err(error) = Project::load(file) {
        return Err(Check::fail("config", chain(error), "correct the file, or POINTSMAN_CONFIG"));
    }
    let dir = file.parent().unwrap_or(Path::new(".")).display().to_string();
    Err(Check::warn("config", words::trust::not_registered(&shown), words::trust::register_hint(&dir)))
}

fn supported(project: &Project) -> Check {
    const ID: &str = "supported";
    let lacking = match Context::enclosure() {
        Ok(enclosure) => enclosure.people().lacks(&project.config),
        Err(error) => Some(format!("{error:#}")),
    };
    if let Some(why) = lacking {
        return Check::fail(ID, why, "edit [people] of the machine's file");
    }
    match project.config.unsupported().as_slice() {
        [] => Check::ok(ID, "this version supports everything that the configuration asks for"),
        missing => Check::fail(ID, missing.join("; "), format!("edit {}", project.config_path.display())),
    }
}

fn agent(project: &Project) -> Check {
    const ID: &str = "agent";
    let Some(program) = project.config.command(Task::ROLE).first() else {
        return Check::fail(ID, "no agent program is set", "set [agent] command in pointsman.toml");
    };
    match look_for_agent(program, project.checkout()) {
        Program::Found(path) => Check::ok(ID, format!("{program} is {}", path.display())),
        Program::Missing => {
            let detail = format!("the agent program {program} is not found");
            Check::fail(ID, detail, "install it, or set [agent] command in pointsman.toml")
        }
        Program::NotExecutable(path) => Check::fail(
            ID,
            format!("the agent program {} is not executable", path.display()),
            words::doctor::make_executable(program, &path),
        ),
        Program::NoInterpreter { path, interpreter } => {
            let detail = words::daemon::session::no_interpreter(&path, &interpreter);
            Check::fail(
                ID,
                detail,
                format!("install {interpreter}, or change the first line of {}", path.display()),
            )
        }
    }
}

/// Looks where the daemon would find the program; a relative path is one of the task's tree, which
/// the checkout stands for.
#[allow(clippy::disallowed_methods, reason = "looks where the daemon would find the program")]
pub(super) fn find_agent(name: &str, checkout: &Path) -> Option<PathBuf> {
    find_program(name, std::env::var_os("PATH").as_deref(), checkout)
}

/// The same, and what is wrong with it otherwise.
#[allow(clippy::disallowed_methods, reason = "looks where the daemon would find the program")]
pub(super) fn look_for_agent(name: &str, checkout: &Path) -> Program {
    look_for_program(name, std::env::var_os("PATH").as_deref(), checkout)
}

fn phase_dir(project: &Project) -> Check {
    const ID: &str = "phase_dir";
    let dir = &project.config.dev.phase_dir;
    match tempfile::Builder::new().prefix(".pointsman-doctor-").tempfile_in(dir) {
        Ok(_) => Check::ok(ID, format!("{} can be written", dir.display())),
        Err(error) => Check::fail(
            ID,
            format!("{} cannot be written: {error}", dir.display()),
            "create it, or set [dev] phase_dir",
        ),
    }
}

fn forge(context: &Context, project: &Project) -> Check {
    const ID: &str = "forge";
    let dir = context.paths.project(&project.config.name).forge_repository();
    if !dir.is_dir() {
        let detail = format!("{} has not been created yet", dir.display());
        return Check::warn(ID, detail, format!("pointsman project add {}", project.checkout().display()));
    }
    let branch = &project.config.primary_branch;
    match has_branch(&dir, branch) {
        Ok(true) => Check::ok(ID, format!("{} has {branch}", dir.display())),
        Ok(false) => {
            let detail = format!("{} has no branch {branch}", dir.display());
            Check::fail(ID, detail, format!("git push pointsman {branch}, in your checkout"))
        }
        Err(error) => Check::fail(ID, error, "restore the repository from a clone: git push --mirror"),
    }
}

fn has_branch(dir: &Path, branch: &str) -> Result<bool, String> {
    let look = || -> anyhow::Result<bool> {
        let scratch = tempfile::tempdir()?;
        let git = Git::open(scratch.path())?;
        match LocalCheckout::find(&git, dir)? {
            Found::Bare => Ok(dir.join("refs/heads").join(branch).is_file() || packed(dir, branch)),
            Found::Checkout(_) | Found::Nothing => {
                anyhow::bail!("{} is not a bare repository", dir.display())
            }
        }
    };
    look().map_err(chain)
}

fn packed(dir: &Path, branch: &str) -> bool {
    let refs = std::fs::read_to_string(dir.join("packed-refs")).unwrap_or_default();
    refs.lines().any(|line| line.split(' ').nth(1) == Some(&format!("refs/heads/{branch}")))
}

/// Whether all work is halted.
fn halted(context: &Context) -> Check {
    const ID: &str = "halted";
    match daemon::halt::in_force(&context.paths) {
        None => Check::ok(ID, "work is not halted"),
        Some(_) => Check::warn(ID, "all work is halted; nothing starts", "to continue: pointsman resume"),
    }
}

/// Sessions that run and that the store knows nothing of.
fn leftovers(context: &Context, project: &ProjectName) -> Check {
    const ID: &str = "leftovers";
    let look = || -> anyhow::Result<Vec<String>> {
        let drivers = Drivers {
            tmux: Server::new(context.paths.tmux_socket(), context.paths.tmux_config())?.into(),
            headless: Headless::new(context.paths.headless()),
        };
        let names = drivers.list()?.into_iter().map(|(name, _)| name);
        let live = match context.store() {
            Ok(Some(store)) => store.sessions(Some(project), SessionScope::Live)?,
            Ok(None) | Err(_) => Vec::new(),
        };
        let known: Vec<&String> = live.iter().map(|row| &row.identity).collect();
        let ours = format!("dev-{project}-");
        let number = |name: &str| name.strip_prefix(&ours).is_some_and(|rest| rest.parse::<u64>().is_ok());
        let mut found: Vec<String> = names.filter(|name| number(name) && !known.contains(&name)).collect();
        let sessions = context.paths.project(project).root().join("sessions");
        for (session, left) in daemon::left_behind(&sessions) {
            if !live.iter().any(|row| row.session == session) {
                found.push(format!("processes {left:?} are left of {session}, which has ended"));
            }
        }
        Ok(found)
    };
    match look() {
        Ok(found) if found.is_empty() => Check::ok(ID, "every running process belongs to a known session"),
        Ok(found) => Check::warn(
            ID,
            format!("unknown: {}", found.join(", ")),
            "a running daemon removes them: pointsman up",
        ),
        Err(error) => Check::warn(ID, chain(error), "pointsman doctor again, when tmux works"),
    }
}
