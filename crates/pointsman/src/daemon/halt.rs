//! `halt` and `resume`: everything that can spend stops at once, is captured and ended, and nothing starts until a person says so.
//!
//! A file in the state directory says that work is halted, so that it holds across restarts and can be written while no daemon
//! runs. The command writes it and stops all processes by itself, which takes no time and no daemon. The daemon then
//! captures the work, ends the sessions and serves no project until the file is gone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pointsman_adapters::driver::Drivers;
use pointsman_adapters::headless::Headless;
use pointsman_adapters::phase_file;
use pointsman_adapters::process::{Members, Process};
use pointsman_core::ids::ProjectName;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::SessionScope;
use pointsman_view::status::Halted;

use super::effects::EffectPerformer;
use super::launch::Launch;
use super::served::Served;
use crate::paths::{Paths, ProjectPaths};

/// For the kernel to end what was stopped.
const END_LIMIT: Duration = Duration::from_secs(10);
/// A session that was being started while others were ended is found by the next look.
const LOOKS: usize = 3;

/// The halt in force, if there is one. A file that cannot be read halts as well.
pub(crate) fn in_force(paths: &Paths) -> Option<Halted> {
    let text = match fs::read(paths.halted()) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(_) => Vec::new(),
    };
    let unknown = || Halted { by: String::new(), at: super::clock::now().into(), sessions: Vec::new() };
    Some(serde_json::from_slice(&text).unwrap_or_else(|_| unknown()))
}

/// Writes down that work is halted.
pub(crate) fn begin(paths: &Paths, halted: &Halted) -> anyhow::Result<()> {
    Ok(phase_file::write_state_file(&paths.halted(), &serde_json::to_vec(halted)?)?)
}

/// Lets work go on: what was stopped and not ended yet runs again.
pub(crate) fn lift(paths: &Paths) -> std::io::Result<()> {
    match fs::remove_file(paths.halted()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    everything(paths).iter().for_each(Members::thaw);
    keepers(paths).into_iter().for_each(Process::go_on);
    Ok(())
}

/// Stops every process of every session and of every CI run, gate and review program.
pub(crate) fn freeze(paths: &Paths) {
    // First those that could start something.
    keepers(paths).into_iter().for_each(Process::stop);
    everything(paths).iter().for_each(Members::freeze);
}

/// The processes of everything that runs, over all projects.
fn everything(paths: &Paths) -> Vec<Members> {
    let projects = entries(&paths.state().join("projects"));
    projects.iter().flat_map(|root| members_below(&ProjectPaths::at(root.clone()))).collect()
}

fn members_below(project: &ProjectPaths) -> Vec<Members> {
    let mut all = Vec::new();
    for file in entries(&project.root().join("sessions")).iter().flat_map(|dir| entries(dir)) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("launch-")
            && name.ends_with(".json")
            && let Ok(launch) = serde_json::from_slice::<Launch>(&fs::read(&file).unwrap_or_default())
        {
            all.push(launch.members);
        }
    }
    let checkouts = entries(&project.checkouts());
    all.extend(checkouts.iter().map(|checkout| project.members_in(checkout)));
    all.dedup();
    all
}

fn keepers(paths: &Paths) -> Vec<Process> {
    let headless = Headless::new(paths.headless());
    let found = pointsman_adapters::driver::Driver::list(&headless).unwrap_or_default();
    let alive = found.into_iter().filter(|(_, running)| !running.dead);
    alive
        .filter_map(|(_, running)| Some(Process { pid: running.pid, start_time: running.start_time? }))
        .collect()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

impl EffectPerformer {
    /// Captures and ends all sessions of these projects, whose processes do nothing any more. Answers their names.
    pub(crate) fn end_halted(&self, projects: &BTreeMap<ProjectName, Arc<Served>>) -> Vec<String> {
        let mut ended = Vec::new();
        for _ in 0..LOOKS {
            let live = self.read(|store| store.sessions(None, SessionScope::Live)).unwrap_or_default();
            for row in live {
                if ended.contains(&row.session) {
                    continue;
                }
                let Some((id, generation)) = WorkflowId::parse_session(&row.session) else { continue };
                let Some(served) = projects.get(id.project()) else { continue };
                self.end_one(served, &id, &row.session, generation);
                ended.push(row.session.clone());
            }
        }
        ended
    }

    fn end_one(&self, served: &Served, id: &WorkflowId, session: &str, generation: u32) {
        self.exits.forget(session);
        let session_files = served.files_of(id);
        if let Err(trouble) = self.keep_work(served, session, &session_files.tree) {
            let error = trouble.into_error();
            tracing::warn!(session, %error, "the work could not be captured; the tree stays");
        }
        let running = Drivers::find(&self.drivers, &id.identity()).ok().flatten();
        let process = running
            .as_ref()
            .and_then(|running| Some(Process { pid: running.pid, start_time: running.start_time? }));
        self.end_processes(&session_files, generation);
        if let Some(process) = process {
            process.kill();
        }
        if let Some(running) = running
            && let Err(error) = self.drivers.end(&id.identity(), &running, Duration::ZERO)
        {
            tracing::warn!(session, %error, "a session could not be ended");
        }
        self.sockets.close(session);
    }
}

/// Ends what is left of CI runs, gates and review programs.
pub(crate) fn end_jobs(projects: &BTreeMap<ProjectName, Arc<Served>>) {
    for served in projects.values() {
        for checkout in entries(&served.paths.checkouts()) {
            served.paths.members_in(&checkout).end(END_LIMIT);
        }
    }
}
