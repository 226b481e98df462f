//! The working tree of a task or a run beside git: room for it, copied files, set-up, ports, and its end.

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
use pointsman_adapters::secret::known as known_secrets;
use pointsman_adapters::{copied_files, machine};
use pointsman_core::concern;
use pointsman_core::config::{Argv, TreeSettings, Worktree};
use pointsman_core::ids::Sha;
use pointsman_core::part::question::{Kind, Owner};
use pointsman_core::part::session::Session;
use pointsman_core::run::{Run, Subject};
use pointsman_core::task::{Exit, Opening, Task};
use pointsman_core::tree::{CopyRules, INCLUDE_FILE, SetupProgress, SetupRecord, TreeStep, next_step};
use pointsman_core::words;
use pointsman_core::workflow::{Event, WorkflowId};
use pointsman_store::{Outgoing, RunScope, SessionRow, Store};

use super::session::write;
use super::{Effect, EffectError, EffectPerformer, Outcome};
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
pub(crate) struct Ports(Mutex<BTreeMap<WorkflowId, Vec<u16>>>);

/// The task or the run whose sessions work in a tree.
pub(super) struct TreeOwner<'a> {
    id: WorkflowId,
    ports: &'a [u16],
    /// The variables that its set-up, sessions and tear-down have in common.
    pub(super) env: Vec<(String, String)>,
}

impl<'a> TreeOwner<'a> {
    pub(super) fn of_task(task: &'a Task) -> Self {
        let env = vec![
            ("ISSUE".to_owned(), task.key.issue.to_string()),
            ("POINTSMAN_BRANCH".to_owned(), task.contribution.branch.clone()),
        ];
        Self::new(task.key.clone().into(), &task.ports, env)
    }

    pub(super) fn of_run(run: &'a Run) -> Self {
        let mut env = vec![("POINTSMAN_RUN".to_owned(), run.id.to_string())];
        match &run.subject {
            Some(Subject::Action { issue }) => env.push(("ISSUE".to_owned(), issue.to_string())),
            Some(Subject::Review { .. } | Subject::Vault { .. }) | None => {}
        }
        Self::new(run.key().into(), &run.ports, env)
    }

    fn new(id: WorkflowId, ports: &'a [u16], mut env: Vec<(String, String)>) -> Self {
        let numbered = ports.iter().zip(1..);
        env.extend(numbered.map(|(port, number)| (format!("POINTSMAN_PORT_{number}"), port.to_string())));
        Self { id, ports, env }
    }
}

/// A tree that is about to be made, or that is there.
pub(super) struct TreePlan {
    pub(super) is_new: bool,
    /// Lines for git's own list of what is no part of the work.
    pub(super) exclude: Vec<String>,
}

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
        let tree = &session_files.tree;
        let owner = TreeOwner::of_task(task);
        self.prepare_tree(served, &owner, (generation, opening), session_files, base, |plan| {
            let gateway = Gateway::create(&served.mirror, &session_files.gateway, &branch)?;
            gateway.show_primary(&served.primary, base)?;
            let spec = TreeSpec {
                dir: tree.clone(),
                mirror: &served.mirror,
                gateway: &gateway,
                branch: branch.clone(),
                primary: served.primary.clone(),
                base: actions::handed_on(served, task.key.issue, base)?.unwrap_or_else(|| base.clone()),
                user_name: task.key.identity(),
                user_email: format!("{}@pointsman.invalid", task.key.identity()),
                exclude: plan.exclude.clone(),
                linked: served.config.dev.worktree == Worktree::Linked,
                start: if opening == Opening::Anew { TreeStart::Base } else { TreeStart::Work },
                spare: if plan.is_new { WarmTree::find(&served.paths.spare()) } else { None },
            };
            // A tree that is gone comes back as it was saved last.
            match checkpoint::newest(&served.captures, task.key.issue)? {
                Some(saved)
                    if matches!(opening, Opening::Recovery | Opening::Continuation) && plan.is_new =>
                {
                    tracing::warn!(task = %task.key, checkpoint = %saved.commit, "the tree is gone; rebuilt");
                    rebuild_from(&spec, &served.captures, &saved.commit)?;
                }
                Some(_) | None => {
                    Tree::create(&spec)?;
                }
            }
            if plan.is_new {
                self.jobs.keep_spare(served);
            }
            Ok(())
        })
    }

    /// Prepares a tree for a session: there is room for it, `make` makes it or leaves it as it is, and once in its life it gets
    /// the files that it needs and is set up. `base` is the commit of main whose rules count.
    pub(super) fn prepare_tree<T>(
        &self,
        served: &Served,
        owner: &TreeOwner<'_>,
        (generation, opening): (u32, Opening),
        session_files: &SessionFiles,
        base: &Sha,
        make: impl FnOnce(&TreePlan) -> Result<T, EffectError>,
    ) -> Result<T, EffectError> {
        let (tree, record) = (&session_files.tree, session_files.setup_record());
        let known = read_record(&record);
        // The first session of a run finds nobody's work: what is there was not finished.
        let is_half_made =
            known.is_none() && generation == 1 && matches!(owner.id, WorkflowId::Run(_)) && tree.exists();
        let step = if is_half_made { TreeStep::MakeAnew } else { next_step(known, tree.exists()) };
        if step == TreeStep::MakeAnew {
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
        let files = match step {
            TreeStep::Use => None,
            TreeStep::SetUp | TreeStep::MakeAnew => self.files_to_copy(served, base)?,
        };
        let exclude = files.as_ref().map(|(_, files)| excluded(files)).unwrap_or_default();
        let made = make(&TreePlan { is_new, exclude })?;
        if step == TreeStep::Use {
            return Ok(made);
        }
        let begun = SetupRecord { progress: SetupProgress::Begun, untouched: is_new };
        write_record(&record, begun)?;
        if let Some((checkout, files)) = &files {
            let left_out = copied_files::copy(checkout, tree, files, |bytes| known_secrets().is_in(bytes))?;
            if !left_out.is_empty() {
                tracing::warn!(owner = %owner.id, files = left_out.join(", "), "not copied into the tree");
            }
        }
        crash_point("tree-copied");
        self.set_up(served, owner, (generation, opening), tree, base)?;
        crash_point("tree-set-up");
        write_record(&record, SetupRecord { progress: SetupProgress::Done, untouched: is_new })?;
        Ok(made)
    }

    /// Runs the project's own set-up, inside the sandbox.
    fn set_up(
        &self,
        served: &Served,
        owner: &TreeOwner<'_>,
        (generation, opening): (u32, Opening),
        tree: &Path,
        base: &Sha,
    ) -> Result<(), EffectError> {
        let command = &served.config.tree.setup;
        if command.is_empty() {
            return Ok(());
        }
        let session = owner.id.session(generation);
        let program = TreeProgram {
            name: format!("{session}-setup"),
            command,
            tree,
            sha: base,
            log: served.paths.setup_log(&owner.id.identity()),
            env: owner.env.clone(),
        };
        tracing::info!(owner = %owner.id, "its tree is set up");
        let is_wanted = || {
            let now = self.read(|store| session_of(store, &owner.id));
            now.is_none_or(|now| now.generation == generation && now.is_listening())
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
        let failed = Event::setup_failed(&owner.id, (generation, opening), error, log);
        // Its time is not the time of a session.
        let now = clock::now();
        let row = self.read(|store| store.session(&session))?;
        let ended =
            |row| SessionRow { created_at: now, ended_at: Some(now), exit: Some(Exit::Failed), ..row };
        let sessions = row.map(ended).into_iter().collect();
        Err(EffectError::learned(Performed {
            events: failed.into_iter().collect(),
            sessions,
            ..Performed::default()
        }))
    }

    /// The files of the operator's checkout that the rules name, and where it is. None if there are no rules.
    fn files_to_copy(
        &self,
        served: &Served,
        base: &Sha,
    ) -> Result<Option<(PathBuf, Vec<String>)>, EffectError> {
        let include = served.mirror.read_file_at(base, INCLUDE_FILE, INCLUDE_CAP).unwrap_or_default();
        let include = include.map(|text| String::from_utf8_lossy(&text).into_owned());
        let rules = CopyRules::new(&served.config.tree.copy, include.as_deref());
        if rules.is_empty() {
            return Ok(None);
        }
        let Some(project) = self.read(|store| store.project(&served.config.name))? else { return Ok(None) };
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

    /// The ports of a workflow's sessions: those it has, or new ones that nobody has.
    pub(super) fn ports_for(
        &self,
        served: &Served,
        owner: &TreeOwner<'_>,
    ) -> Result<Option<Event>, EffectError> {
        let settings = &served.config.tree;
        if owner.ports.len() == usize::from(settings.ports) {
            return Ok(None);
        }
        let mut given = self.ports.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.read(written_ports)?;
        let written = written.iter().map(|(id, ports)| (id, ports));
        let others = written.chain(given.iter()).filter(|(id, _)| **id != owner.id);
        let taken: BTreeSet<u16> = others.flat_map(|(_, ports)| ports).copied().collect();
        // Somebody else on this machine may listen there.
        let is_taken = |port: u16| taken.contains(&port) || TcpListener::bind(("127.0.0.1", port)).is_err();
        let Some(ports) = settings.port_range.choose(settings.ports, is_taken) else {
            return Err(EffectError::later(words::daemon::session::no_free_ports(settings.port_range)));
        };
        given.insert(owner.id.clone(), ports.clone());
        Ok(Event::ports_assigned(&owner.id, ports))
    }

    /// Finds ports for the sessions of a run. One that is over needs none.
    pub(super) fn reserve_ports(&self, served: &Served, run: &Run) -> Result<Outcome, EffectError> {
        if run.status.is_over() {
            return Ok(Outcome::done());
        }
        let assigned = self.ports_for(served, &TreeOwner::of_run(run))?;
        Ok(assigned.map_or_else(Outcome::done, Outcome::learned))
    }

    /// Removes the working tree of a task that is over, after its tear-down and after a capture. Answers the event that
    /// frees its ports, if it has any.
    pub(super) fn remove_tree(
        &self,
        served: &Served,
        task: &Task,
        session_files: &SessionFiles,
    ) -> Result<Option<Event>, EffectError> {
        let (session, tree) = (task.key.session(task.session.generation), &session_files.tree);
        let owner = TreeOwner::of_task(task);
        if tree.exists() {
            self.tear_down(served, &owner, tree);
            self.keep_work(served, &session, tree)?;
            remove_checkout(tree)?;
        }
        for aside in Tree::set_aside_from(tree)? {
            self.keep_work(served, &session, &aside)?;
            remove_checkout(&aside)?;
        }
        remove_gateway(served, task, &session_files.gateway)?;
        self.forget_tree(&owner, session_files)
    }

    /// The same for a run, whose work is captured and looked through before.
    pub(super) fn remove_tree_of_run(
        &self,
        served: &Served,
        run: &Run,
        session_files: &SessionFiles,
    ) -> Result<Option<Event>, EffectError> {
        let owner = TreeOwner::of_run(run);
        if session_files.tree.exists() {
            self.tear_down(served, &owner, &session_files.tree);
            remove_checkout(&session_files.tree)?;
        }
        self.forget_tree(&owner, session_files)
    }

    fn forget_tree(
        &self,
        owner: &TreeOwner<'_>,
        session_files: &SessionFiles,
    ) -> Result<Option<Event>, EffectError> {
        remove_file(&session_files.setup_record())?;
        self.ports.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&owner.id);
        Ok(match owner.ports.is_empty() {
            true => None,
            false => Event::ports_assigned(&owner.id, Vec::new()),
        })
    }

    /// The project's own tear-down. What it cannot do stays undone: nothing waits for it, and the log tells.
    fn tear_down(&self, served: &Served, owner: &TreeOwner<'_>, tree: &Path) {
        let command = &served.config.tree.teardown;
        let Ok(Some(main)) = served.mirror.remote_head(&served.primary) else { return };
        if command.is_empty() {
            return;
        }
        let identity = owner.id.identity();
        let program = TreeProgram {
            name: format!("{identity}-teardown"),
            command,
            tree,
            sha: &main,
            log: served.paths.teardown_log(&identity),
            env: owner.env.clone(),
        };
        match program.run(&self.jobs, served, &|| true) {
            Ok(ran) if ran.end.success() => {}
            Ok(ran) => tracing::warn!(owner = identity, end = %ran.end, "its tear-down failed"),
            Err(error) => {
                tracing::warn!(owner = identity, error = %format!("{error:#}"), "its tear-down failed")
            }
        }
    }
}

/// The session of a workflow, as it is written down now.
fn session_of(store: &Store, id: &WorkflowId) -> Option<Session> {
    match id {
        WorkflowId::Task(key) => Some(store.task(key).ok()??.session),
        WorkflowId::Run(key) => Some(store.run(&key.project, key.id).ok()??.session),
        WorkflowId::Vault(_) | WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => None,
    }
}

/// All ports that are written down, of all projects.
fn written_ports(store: &Store) -> Result<Vec<(WorkflowId, Vec<u16>)>, pointsman_store::Error> {
    let tasks = store.tasks(None)?.into_iter();
    let mut all: Vec<_> = tasks.map(|task| (WorkflowId::from(task.key), task.ports)).collect();
    for project in store.projects()? {
        let runs = store.runs(&project.name, RunScope::Open)?;
        all.extend(runs.into_iter().map(|run| (run.key().into(), run.ports)));
    }
    Ok(all)
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
