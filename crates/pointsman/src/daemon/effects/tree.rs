//! The working tree of a task beside git: room for it, copied files, set-up, ports, and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_adapters::git::checkout::remove_checkout;
use pointsman_adapters::git::checkpoint;
use pointsman_adapters::git::gateway::Gateway;
use pointsman_adapters::git::layers::WarmTree;
use pointsman_adapters::git::tree::{Tree, TreeSpec, TreeStart, rebuild_from};
use pointsman_adapters::git::{BranchName, RefName};
use pointsman_adapters::process::End;
use pointsman_adapters::secret::known;
use pointsman_adapters::{copied_files, machine};
use pointsman_core::concern;
use pointsman_core::config::{Argv, TreeSettings, Worktree};
use pointsman_core::ids::{Sha, TaskKey};
use pointsman_core::part::question::{Kind, Owner};
use pointsman_core::task::{Event, Exit, Opening, Task};
use pointsman_core::tree::{CopyRules, INCLUDE_FILE, SetupProgress, SetupRecord, TreeStep, next_step};
use pointsman_core::words;
use pointsman_core::workflow;
use pointsman_store::{Outgoing, SessionRow};

use super::session::write;
use super::{Effect, EffectError, EffectPerformer};
use crate::daemon::actions;
use crate::daemon::clock;
use crate::daemon::concerns;
use crate::daemon::crash::crash_point;
use crate::daemon::engine::Input;
use crate::daemon::jobs::TreeProgram;
use crate::daemon::outcome::Performed;
use crate::daemon::served::{Served, SessionFiles};

/// The most of `.worktreeinclude` that is read.
const INCLUDE_CAP: usize = 1 << 16;
/// How many directories a question about the disk names.
const NAMED_DIRECTORIES: usize = 5;

/// Ports that were given out and may not be written down yet.
#[derive(Debug, Default)]
pub(crate) struct Ports(Mutex<BTreeMap<TaskKey, Vec<u16>>>);

impl EffectPerformer {
    /// Whether an effect may take minutes: it must not keep others waiting.
    pub(in crate::daemon) fn takes_long(&self, outgoing: &Outgoing) -> bool {
        let effect = &outgoing.effect;
        let runs = |command: fn(&TreeSettings) -> &Argv| {
            let served = self.project(outgoing.workflow.project());
            served.is_some_and(|served| !command(&served.config.tree).is_empty())
        };
        effect.takes_long()
            || matches!(effect, Effect::StartSession { .. }) && runs(|tree| &tree.setup)
            || matches!(effect, Effect::CleanUp) && runs(|tree| &tree.teardown)
    }

    /// The tree of a task as its next session finds it: made, or as it was left, and set up once.
    pub(super) fn make_tree(
        &self,
        served: &Arc<Served>,
        task: &Task,
        (generation, opening): (u32, Opening),
        session_files: &SessionFiles,
        base: &Sha,
    ) -> Result<(), EffectError> {
        let branch = served.branch(task)?;
        let (tree, record) = (&session_files.tree, session_files.setup_record());
        let known_step = next_step(read_record(&record), tree.exists());
        if known_step == TreeStep::MakeAnew {
            // Nobody has worked in it: all that is lost is half a set-up.
            TreeProgram::end_leftovers(served, tree);
            remove_checkout(tree)?;
        }
        let is_new = !tree.exists();
        if is_new {
            // First: a record never speaks of another tree.
            remove_file(&record)?;
            self.require_room(served)?;
        }
        let files = match known_step {
            TreeStep::Use => None,
            TreeStep::SetUp | TreeStep::MakeAnew => self.files_to_copy(served, task, base)?,
        };
        let gateway = Gateway::create(&served.mirror, &session_files.gateway, &branch)?;
        gateway.show_primary(&served.primary, base)?;
        let spec = TreeSpec {
            dir: tree.clone(),
            mirror: &served.mirror,
            gateway: &gateway,
            branch,
            primary: served.primary.clone(),
            base: actions::handed_on(served, task.key.issue, base)?.unwrap_or_else(|| base.clone()),
            user_name: task.key.identity(),
            user_email: format!("{}@pointsman.invalid", task.key.identity()),
            exclude: files.as_ref().map(|(_, files)| excluded(files)).unwrap_or_default(),
            linked: served.config.dev.worktree == Worktree::Linked,
            start: if opening == Opening::Anew { TreeStart::Base } else { TreeStart::Work },
            spare: if is_new { WarmTree::find(&served.paths.spare()) } else { None },
        };
        // A tree that is gone comes back as it was saved last.
        match checkpoint::newest(&served.captures, task.key.issue)? {
            Some(saved) if matches!(opening, Opening::Recovery | Opening::Continuation) && is_new => {
                tracing::warn!(task = %task.key, checkpoint = %saved.commit, "the tree is gone; rebuilt");
                rebuild_from(&spec, &served.captures, &saved.commit)?;
            }
            Some(_) | None => {
                Tree::create(&spec)?;
            }
        }
        if is_new {
            self.jobs.keep_spare(served);
        }
        if known_step == TreeStep::Use {
            return Ok(());
        }
        let begun = SetupRecord { progress: SetupProgress::Begun, untouched: is_new };
        write_record(&record, begun)?;
        if let Some((checkout, files)) = &files {
            let left_out = copied_files::copy(checkout, tree, files, |bytes| known().is_in(bytes))?;
            if !left_out.is_empty() {
                tracing::warn!(task = %task.key, files = left_out.join(", "), "not copied into the tree");
            }
        }
        crash_point("tree-copied");
        self.set_up(served, task, (generation, opening), session_files, base)?;
        crash_point("tree-set-up");
        write_record(&record, SetupRecord { progress: SetupProgress::Done, untouched: is_new })
    }

    /// Runs the project's own set-up, inside the sandbox.
    fn set_up(
        &self,
        served: &Arc<Served>,
        task: &Task,
        (generation, opening): (u32, Opening),
        session_files: &SessionFiles,
        base: &Sha,
    ) -> Result<(), EffectError> {
        let command = &served.config.tree.setup;
        if command.is_empty() {
            return Ok(());
        }
        let session = task.key.session(generation);
        let program = TreeProgram {
            name: format!("{session}-setup"),
            command,
            tree: &session_files.tree,
            sha: base,
            log: served.paths.setup_log(&task.key),
            env: environment_of(task),
        };
        tracing::info!(task = %task.key, "its tree is set up");
        let is_wanted = || {
            let now = self.read(|store| store.task(&task.key)).ok().flatten();
            now.is_none_or(|now| now.session.generation == generation && now.session.is_listening())
        };
        let ran = program.run(&self.jobs, served, &is_wanted);
        let (error, log) = match ran {
            Ok(ran) if ran.end.success() => return Ok(()),
            // The daemon stops, or the session is not wanted any more.
            Ok(ran) if ran.end == End::Cancelled => {
                return Err(EffectError::later(words::daemon::process::is_stopping()));
            }
            Ok(ran) => (words::daemon::session::setup_ended(ran.end, &ran.unlisted), ran.log),
            Err(error) => (format!("{error:#}"), String::new()),
        };
        let failed = Event::SetupFailed { generation, opening, error, log };
        // Its time is not the time of a session.
        let now = clock::now();
        let row = self.read(|store| store.session(&session))?;
        let ended =
            |row| SessionRow { created_at: now, ended_at: Some(now), exit: Some(Exit::Failed), ..row };
        let sessions = row.map(ended).into_iter().collect();
        Err(EffectError::learned(Performed {
            events: vec![workflow::Event::Task(failed)],
            sessions,
            note: None,
        }))
    }

    /// The files of the operator's checkout that the rules name, and where it is. None if there are no rules.
    fn files_to_copy(
        &self,
        served: &Served,
        task: &Task,
        base: &Sha,
    ) -> Result<Option<(PathBuf, Vec<String>)>, EffectError> {
        let include = served.mirror.read_file_at(base, INCLUDE_FILE, INCLUDE_CAP).unwrap_or_default();
        let include = include.map(|text| String::from_utf8_lossy(&text).into_owned());
        let rules = CopyRules::new(&served.config.tree.copy, include.as_deref());
        if rules.is_empty() {
            return Ok(None);
        }
        let Some(project) = self.read(|store| store.project(&task.key.project))? else { return Ok(None) };
        // A checkout that is gone has nothing to copy.
        if !project.checkout.is_dir() {
            return Ok(None);
        }
        let files = copied_files::wanted(&project.checkout, &rules)?;
        Ok(Some((project.checkout, files)))
    }

    /// No tree is made while the disk is nearly full: a person is asked once, and it goes on by itself when there is room.
    fn require_room(&self, served: &Served) -> Result<(), EffectError> {
        let wanted = served.config.tree.free_disk;
        let Some(free) = machine::free_bytes(served.paths.root()) else { return Ok(()) };
        let key = concerns::key(&served.config.name, Kind::Disk);
        let owner = Owner::Concern(key.about.clone());
        let asked = self.read(|store| store.last_question(&key.project, &owner))?;
        let is_asked = asked.is_some_and(|asked| asked.is_open());
        if free >= wanted.bytes {
            if is_asked {
                let why = words::question::ROOM_AGAIN.to_owned();
                self.jobs.inbox.tell(Input::of_concern(key, concern::Event::Lifted { why }));
            }
            return Ok(());
        }
        let error = words::question::no_room(free, wanted);
        if !is_asked {
            let largest = machine::largest(&self.paths.state().join("projects"), NAMED_DIRECTORIES);
            let text = words::question::disk(&error, &served.paths.root().to_string_lossy(), &largest);
            self.jobs.inbox.tell(Input::of_concern(key, concern::Event::raised(Kind::Disk, text)));
        }
        Err(EffectError::later(error))
    }

    /// The ports of a task's sessions: those it has, or new ones that nobody has.
    pub(super) fn ports_for(&self, served: &Served, task: &Task) -> Result<Option<Event>, EffectError> {
        let settings = &served.config.tree;
        if task.ports.len() == usize::from(settings.ports) {
            return Ok(None);
        }
        let mut given = self.ports.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = self.read(|store| store.tasks(None))?;
        let others = open.iter().filter(|other| other.key != task.key).flat_map(|other| &other.ports);
        let unwritten = given.iter().filter(|(key, _)| **key != task.key).flat_map(|(_, ports)| ports);
        let taken: BTreeSet<u16> = others.chain(unwritten).copied().collect();
        // Somebody else on this machine may listen there.
        let is_taken = |port: u16| taken.contains(&port) || TcpListener::bind(("127.0.0.1", port)).is_err();
        let Some(ports) = settings.port_range.choose(settings.ports, is_taken) else {
            return Err(EffectError::later(words::daemon::session::no_free_ports(settings.port_range)));
        };
        given.insert(task.key.clone(), ports.clone());
        Ok(Some(Event::PortsAssigned { ports }))
    }

    /// Removes the working tree of a task that is over, after its tear-down and after a capture. Answers the event that
    /// frees its ports, if it has any.
    pub(super) fn remove_tree(
        &self,
        served: &Arc<Served>,
        task: &Task,
        session_files: &SessionFiles,
    ) -> Result<Option<Event>, EffectError> {
        let (session, tree) = (task.key.session(task.session.generation), &session_files.tree);
        if tree.exists() {
            self.tear_down(served, task, tree);
            self.keep_work(served, &session, tree)?;
            remove_checkout(tree)?;
        }
        for aside in Tree::set_aside_from(tree)? {
            self.keep_work(served, &session, &aside)?;
            remove_checkout(&aside)?;
        }
        remove_gateway(served, task, &session_files.gateway)?;
        remove_file(&session_files.setup_record())?;
        self.ports.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&task.key);
        Ok((!task.ports.is_empty()).then(|| Event::PortsAssigned { ports: Vec::new() }))
    }

    /// The project's own tear-down. What it cannot do stays undone: nothing waits for it, and the log tells.
    fn tear_down(&self, served: &Arc<Served>, task: &Task, tree: &Path) {
        let command = &served.config.tree.teardown;
        let Ok(Some(main)) = served.mirror.remote_head(&served.primary) else { return };
        if command.is_empty() {
            return;
        }
        let program = TreeProgram {
            name: format!("{}-teardown", task.key.identity()),
            command,
            tree,
            sha: &main,
            log: served.paths.teardown_log(&task.key),
            env: environment_of(task),
        };
        match program.run(&self.jobs, served, &|| true) {
            Ok(ran) if ran.end.success() => {}
            Ok(ran) => tracing::warn!(task = %task.key, end = %ran.end, "its tear-down failed"),
            Err(error) => {
                tracing::warn!(task = %task.key, error = %format!("{error:#}"), "its tear-down failed")
            }
        }
    }
}

/// The variables that a task's set-up, sessions and tear-down have in common.
pub(super) fn environment_of(task: &Task) -> Vec<(String, String)> {
    let mut env = vec![
        ("ISSUE".to_owned(), task.key.issue.to_string()),
        ("POINTSMAN_BRANCH".to_owned(), task.contribution.branch.clone()),
    ];
    let ports = task.ports.iter().zip(1..);
    env.extend(ports.map(|(port, number)| (format!("POINTSMAN_PORT_{number}"), port.to_string())));
    env
}

/// The gateway goes once the mirror has what was pushed to it.
fn remove_gateway(served: &Served, task: &Task, dir: &Path) -> Result<(), EffectError> {
    if !dir.exists() {
        return Ok(());
    }
    let branch: BranchName = served.branch(task)?;
    let gateway = Gateway::at(dir, &branch);
    let kept = RefName::new(&format!("refs/pointsman/gateway/{branch}"));
    if let (Some(kept), Some(_)) = (kept, gateway.head()?) {
        gateway.fetch_into(&served.mirror, &kept)?;
    }
    Ok(remove_checkout(dir)?)
}

/// Lines for git's own list of what is no part of the work. Nothing in a name is a pattern there.
fn excluded(files: &[String]) -> Vec<String> {
    let quoted = |path: &String| {
        let special = |c: char| matches!(c, '\\' | '*' | '?' | '[' | ' ' | '!' | '#');
        let escape = |c: char| if special(c) { format!("\\{c}") } else { c.to_string() };
        format!("/{}", path.chars().map(escape).collect::<String>())
    };
    files.iter().filter(|path| !path.contains(char::is_control)).map(quoted).collect()
}

fn read_record(path: &Path) -> Option<SetupRecord> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn write_record(path: &Path, record: SetupRecord) -> Result<(), EffectError> {
    write(path, &serde_json::to_vec(&record).map_err(EffectError::never)?)
}

fn remove_file(path: &Path) -> Result<(), EffectError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}
