//! Sessions of Claude Code whose hooks are not heard, and what may be the reason.

use std::path::{Path, PathBuf};

use pointsman_adapters::phase_file;
use pointsman_core::task::Task;
use pointsman_store::{SessionRow, SessionScope};
use serde_json::Value;

use super::Check;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::hook_status::HookStatus;
use crate::cli::time;
use crate::project::Project;

const ID: &str = "hooks";
/// Settings are small; more than this is something else.
const SETTINGS_BYTES: u64 = 1 << 20;
/// Where an administrator's settings are.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// Every live session was heard, or why it may not have been.
pub(super) fn check(context: &Context, project: &Project) -> Check {
    let silent = match silent(context, project) {
        Ok(silent) => silent,
        Err(failure) => {
            let fix = "pointsman doctor, when the store can be read";
            return Check::warn(ID, failure.message().to_owned(), fix);
        }
    };
    if silent.is_empty() {
        return Check::ok(ID, "the hooks of every Claude Code session have reported");
    }
    let names: Vec<&str> = silent.iter().map(|row| row.session.as_str()).collect();
    let detail = format!(
        "these sessions have not reported through their hooks since they started, so Pointsman cannot supervise them: {}",
        names.join(", ")
    );
    let mut why: Vec<String> = silent.iter().flat_map(|row| reasons(context, project, row)).collect();
    why.sort();
    why.dedup();
    if why.is_empty() {
        let fix = "run `pointsman session attach N` to see whether Claude Code started, or shows a dialog";
        return Check::fail(ID, format!("{detail}; its settings do not explain why"), fix);
    }
    let fix = "change that, then run `pointsman session stop N`; the next session will report";
    Check::fail(ID, format!("{detail}; {}", why.join("; ")), fix)
}

fn silent(context: &Context, project: &Project) -> Result<Vec<SessionRow>, Failure> {
    let Some(store) = context.store()? else { return Ok(Vec::new()) };
    let mut silent = store.sessions(Some(&project.config.name), SessionScope::Live)?;
    let mut failure = None;
    silent.retain(|row| match HookStatus::of(&store, project, row, time::now()) {
        Ok(hearing) => hearing == Some(HookStatus::Silent),
        Err(error) => {
            failure.get_or_insert(error);
            false
        }
    });
    failure.map_or(Ok(silent), Err)
}

/// What is found to stand in the way of a session's hooks.
fn reasons(context: &Context, project: &Project, row: &SessionRow) -> Vec<String> {
    let config = &project.config;
    let command = config.command(Task::ROLE);
    let mut why = Vec::new();
    if command.iter().any(|word| word == "--settings" || word.starts_with("--settings=")) {
        why.push("--settings in [agent] command replaces the settings of Pointsman".to_owned());
    }
    if command.iter().any(|word| word == "--bare") {
        why.push("--bare in [agent] command turns hooks off".to_owned());
    }
    let mut places = vec![PathBuf::from(MANAGED), context.paths.claude_config().join("settings.json")];
    if let Some(tree) = &row.tree {
        places.extend(["settings.json", "settings.local.json"].map(|name| tree.join(".claude").join(name)));
        let run = tree
            .parent()
            .map(|session_files| session_files.join(format!("run-{}/settings.json", row.generation)));
        why.extend(run.and_then(|settings| broken(&settings)));
    }
    for place in places {
        let Some(settings) = read(&place) else { continue };
        for key in ["disableAllHooks", "allowManagedHooksOnly"] {
            if settings[key] == true {
                why.push(format!("{} says {key}", place.display()));
            }
        }
    }
    why
}

/// What is wrong with the settings that a session was started with.
fn broken(settings: &Path) -> Option<String> {
    let Some(ours) = read(settings) else {
        return Some(format!("{} is missing or cannot be read", settings.display()));
    };
    let command = ours["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str()?.to_owned();
    let program = match command.strip_prefix('\'') {
        Some(rest) => rest.split_once('\'').map_or(rest, |(program, _)| program),
        None => command.split_once(' ').map_or(&*command, |(program, _)| program),
    };
    (!Path::new(program).is_file()).then(|| format!("the hooks call {program}, which no longer exists"))
}

fn read(path: &Path) -> Option<Value> {
    let bytes = match phase_file::read_result_file(path, SETTINGS_BYTES) {
        Ok(bytes) => bytes?,
        // An administrator's file is not ours, and is read all the same.
        Err(_) if path == Path::new(MANAGED) => std::fs::read(path).ok()?,
        Err(_) => return None,
    };
    serde_json::from_slice(&bytes).ok()
}
