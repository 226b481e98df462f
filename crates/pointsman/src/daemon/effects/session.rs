//! Starting and ending sessions.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pointsman_adapters::driver::{AgentInput, FoundSession, NewSession, SessionHome};
use pointsman_adapters::git::gateway::Gateway;
use pointsman_adapters::git::tree::Tree;
use pointsman_adapters::process::Program;
use pointsman_adapters::secret::known;
use pointsman_adapters::{phase_file, process};
use pointsman_core::config::Worktree;
use pointsman_core::ids::Sha;
use pointsman_core::part::session;
use pointsman_core::sandbox::{Place, SessionPaths};
use pointsman_core::session::budget::Spent;
use pointsman_core::task::{Exit, Opening, Task};
use pointsman_core::workflow::{Event, Workflow, WorkflowId};
use pointsman_core::{artifact, text, words};
use pointsman_store::SessionRow;

use super::claude::{AgentCommand, Start};
use super::tree::TreeOwner;
use super::{EffectError, EffectPerformer, Outcome};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::launch::Launch;
use crate::daemon::outcome::Performed;
use crate::daemon::served::{Served, SessionFiles};
use crate::enclosure::note_packages;
use crate::paths::Paths;

/// The most of a program that is read to see whether it is there.
const PROGRAM_CAP: usize = 1 << 16;
/// Where a session inside a sandbox finds its socket.
const RUNTIME_INSIDE: &str = "/run/pointsman";
/// For the kernel to end what a session left behind.
const LEFT_BEHIND_LIMIT: Duration = Duration::from_secs(10);
/// Variables of the daemon that every agent gets.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "SHELL"];

/// A session's name as its driver keeps it: what tells runs of the same identity apart.
pub(in crate::daemon) fn epoch(session: &str) -> String {
    session.replace('.', "_")
}

impl EffectPerformer {
    pub(super) fn start_session(
        &self,
        served: &Arc<Served>,
        owner: &Workflow,
        generation: u32,
        opening: Opening,
    ) -> Result<Outcome, EffectError> {
        let id = owner.id();
        let (name, session) = (id.identity(), id.session(generation));
        let predecessor = id.session(generation.saturating_sub(1));
        let session_files = served.files_of(&id);
        match self.drivers.find(&name)? {
            Some(running) if running.epoch == epoch(&session) => {
                // We had started it and did not live to write it down.
                self.take_over(&session_files, generation, &session)?;
                self.greet(served, owner, generation, &running)?;
                return Ok(self.started(served, owner, generation, &running));
            }
            // An earlier generation; its work is in the tree, its end is recorded.
            Some(running) => self.put_away(served, &id, &predecessor, &running)?,
            // It went with the whole server. What it handed over is captured all the same: a commit may fail.
            None if opening == Opening::Continuation => {
                self.keep_work(served, &predecessor, &session_files.tree)?
            }
            None => {}
        }
        // A sandbox can outlive the process in front of it, and so can whatever detached outside of one.
        self.end_processes(&session_files, generation.saturating_sub(1));
        // What an earlier session printed is kept under its own name.
        Self::keep_transcript(served, &predecessor, &session_files);
        self.prepare(served, owner, generation, opening, &session_files)?;
        self.announce(served, &id, &session)?;
        let (prepared, in_tmux) = match owner {
            Workflow::Task(_) => ("session-prepared", "session-in-tmux"),
            Workflow::Run(_)
            | Workflow::Vault(_)
            | Workflow::Concern(_)
            | Workflow::Role(_)
            | Workflow::Notifier(_) => ("run-session-prepared", "run-session-in-tmux"),
        };
        crash_point(prepared);
        if self.jobs.is_halted() {
            return Err(EffectError::later(words::daemon::process::is_stopping()));
        }
        let new = NewSession {
            name: name.clone(),
            epoch: epoch(&session),
            program: self.program.clone(),
            spec: session_files.launch_spec(generation),
            transcript: session_files.transcript.clone(),
        };
        self.drivers.start(served.config.runtime(owner.role()), &new)?;
        crash_point(in_tmux);
        let Some(running) = self.drivers.find(&name)? else {
            return Err(EffectError::later(words::daemon::session::gone_at_once()));
        };
        self.greet(served, owner, generation, &running)?;
        Ok(self.started(served, owner, generation, &running))
    }

    /// Listens to a session that an earlier daemon started. One that it started outside a sandbox has no phase directory of
    /// its own, whatever the configuration says by now.
    fn take_over(
        &self,
        session_files: &SessionFiles,
        generation: u32,
        session: &str,
    ) -> Result<(), EffectError> {
        let spec = fs::read(session_files.launch_spec(generation)).unwrap_or_default();
        let launch: Option<Launch> = serde_json::from_slice(&spec).ok();
        if launch.is_some_and(|launch| launch.sandbox.is_some()) {
            self.sockets.open(session)?;
        } else if session_files.is_enclosed(generation) {
            fs::remove_dir_all(session_files.phases(generation))?;
        }
        Ok(())
    }

    /// The first prompt is given to the program as well, once, as one line of ours that names the file.
    /// Some agents are started with it in a terminal.
    fn greet(
        &self,
        served: &Served,
        owner: &Workflow,
        generation: u32,
        running: &FoundSession,
    ) -> Result<(), EffectError> {
        let headless = running.placed == SessionHome::Headless;
        if !headless && served.config.agent_kind(owner.role()).capabilities().prompt_argument {
            return Ok(());
        }
        let id = owner.id();
        let line = first_line(owner, &served.files_of(&id), generation);
        // A run is followed by its steps and its result: without a terminal it is through after its turn.
        let last = match owner {
            Workflow::Task(_) => false,
            Workflow::Run(_)
            | Workflow::Vault(_)
            | Workflow::Concern(_)
            | Workflow::Role(_)
            | Workflow::Notifier(_) => headless,
        };
        let words = AgentInput { operation: "start", text: &line, last };
        self.drivers.say(&id.identity(), running, &epoch(&id.session(generation)), &words)?;
        Ok(())
    }

    fn started(&self, served: &Served, owner: &Workflow, generation: u32, running: &FoundSession) -> Outcome {
        let (now, id) = (clock::now(), owner.id());
        let row = SessionRow {
            session: id.session(generation),
            identity: id.identity(),
            project: id.project().clone(),
            issue: id.issue(),
            role: owner.role(),
            generation,
            host: process::host_name(),
            model: model(served, owner),
            bead_id: None,
            node_id: None,
            hook_path: self.hook_path(&id),
            tmux_session: running.pane().map(|_| id.identity()),
            pane: running.pane().map(ToString::to_string),
            pid: Some(running.pid),
            start_time: running.start_time,
            tree: Some(served.files_of(&id).tree),
            created_at: now,
            last_seen: now,
            times_stale: 0,
            ended_at: None,
            exit: None,
            acknowledges: false,
            predecessor: (generation > 1).then(|| id.session(generation - 1)),
            gauge: None,
            spent: Spent::default(),
        };
        Outcome::Done(Performed {
            events: vec![Event::of_session(&id, generation, session::Event::Started)],
            sessions: vec![row],
            ..Performed::default()
        })
    }

    /// Its files are there before it is.
    fn announce(&self, served: &Served, id: &WorkflowId, session: &str) -> Result<(), EffectError> {
        let hook_path = self.hook_path(id);
        if let Some(mut row) = self.read(|store| store.session(session))? {
            row.host = process::host_name();
            row.hook_path = hook_path;
            row.tree = Some(served.files_of(id).tree);
            self.read(|store| self.announced.announce(store, &row));
        }
        Ok(())
    }

    /// Where the work state is shown, below the user's checkout.
    fn hook_path(&self, id: &WorkflowId) -> Option<std::path::PathBuf> {
        let project = self.read(|store| store.project(id.project())).ok().flatten()?;
        Some(project.checkout.join(format!(".claude/state/hooks/{}.json", id.identity())))
    }

    /// Everything an agent finds when it starts.
    fn prepare(
        &self,
        served: &Arc<Served>,
        owner: &Workflow,
        generation: u32,
        opening: Opening,
        session_files: &SessionFiles,
    ) -> Result<(), EffectError> {
        for dir in [
            &session_files.root,
            &session_files.inbox(generation),
            &session_files.run_dir(generation),
            &session_files.artifacts(generation),
        ] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        // A run's session makes its own claims; the successor on a task goes on with the claim it finds.
        let claims = match owner {
            Workflow::Task(_) => opening,
            Workflow::Run(_)
            | Workflow::Vault(_)
            | Workflow::Concern(_)
            | Workflow::Role(_)
            | Workflow::Notifier(_) => Opening::Fresh,
        };
        let prepared = match owner {
            Workflow::Task(task) => self.prepare_task(served, task, generation, opening, session_files)?,
            Workflow::Run(run) => self.prepare_run(served, run, (generation, opening), session_files)?,
            Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => {
                let why = words::daemon::process::not_its_effect(&owner.id().identity(), "start_session");
                return Err(EffectError::never(why));
            }
        };
        let place = served.enclosure.place(&served.config.sandbox(owner.role()), served.config.dev.worktree);
        let enclosed = place == Place::Inside;
        lay_out_phases(session_files, generation, claims, enclosed)?;
        write(
            &session_files.inbox(generation).join("0000-task.md"),
            text::visible(&known().mask(&prepared.prompt)).as_bytes(),
        )?;
        let role = owner.role();
        let mut argv = served.config.command(role).clone();
        let path = (self.environment)("PATH");
        if let Some(program) = argv.first() {
            let found = process::look_for_program(program, path.as_deref(), &session_files.tree);
            match (owner, &prepared.main) {
                (Workflow::Task(task), Some(main)) => {
                    self.require_program(served, task, program, &found, main)?;
                }
                (
                    Workflow::Task(_)
                    | Workflow::Run(_)
                    | Workflow::Vault(_)
                    | Workflow::Concern(_)
                    | Workflow::Role(_)
                    | Workflow::Notifier(_),
                    _,
                ) => {
                    require_program_of_run(program, &found)?;
                }
            }
        }
        let flag = served.config.agent_kind(role).capabilities().model_flag;
        if let (Some(flag), Some(model)) = (flag, model(served, owner)) {
            argv.extend([flag.to_owned(), model]);
        }
        let mut env = self.agent_environment(served, owner, generation, session_files);
        env.extend(prepared.env);
        let model = match enclosed {
            true => self.relayed_model(served, owner, generation, &mut env)?,
            false => None,
        };
        let start = Start {
            owner,
            generation,
            opening,
            session_files,
            runtime: served.config.runtime(role),
            enclosed,
        };
        let AgentCommand { argv, keep, settings } = self.command_for(served, &start, argv, &mut env)?;
        let spec = session_files.launch_spec(generation);
        let sandbox = match place {
            Place::Outside(_) => None,
            Place::Nowhere(why) if why.passes() => {
                return Err(EffectError::later(words::sandbox::outside(&why)));
            }
            Place::Nowhere(why) => return Err(EffectError::never(words::sandbox::required(&why))),
            Place::Inside => {
                let name = owner.id().session(generation);
                let socket = self.sockets.open(&name)?;
                let policy = served.session_policy(role, &env, model.is_some());
                let access = model.as_ref().map(|model| &model.access);
                let network = served.enclosure.open_network(&Paths::proxy_name(&name), &policy, access);
                let network = network.map_err(|error| EffectError::later(format!("{error:#}")))?;
                let session = SessionPaths {
                    tree: session_files.tree.clone(),
                    gateway: session_files.gateway.is_dir().then(|| session_files.gateway.clone()),
                    messages: session_files.inbox(generation),
                    run: session_files.run_dir(generation),
                    phase_dir: served.config.dev.phase_dir.clone(),
                    phases: session_files.phases(generation),
                    socket: (socket, PathBuf::from(RUNTIME_INSIDE)),
                    objects: served.mirror.objects(),
                    spec: spec.clone(),
                    program: self.program.clone(),
                    settings,
                    network: Some(network),
                };
                let (sandbox, worktree) = (served.config.sandbox(role), served.config.dev.worktree);
                let services = model.map(|model| model.services).unwrap_or_default();
                served
                    .enclosure
                    .around_session(&sandbox, worktree, session, &argv, &policy, services)
                    .map_err(EffectError::never)?
            }
        };
        let launch = Launch {
            argv,
            keep,
            members: served.paths.members_of(
                &owner.id().session(generation),
                &session_files.inbox(generation),
                sandbox.is_some(),
            ),
            sandbox,
            parent: None,
            cwd: session_files.tree.clone(),
            commit_first: (opening == Opening::Continuation)
                .then(|| words::daemon::git::handed_over().to_owned()),
            env,
        };
        let text = serde_json::to_vec_pretty(&launch).map_err(EffectError::never)?;
        write(&spec, &text)
    }

    /// The working tree of a task on its branch, and the prompt.
    fn prepare_task(
        &self,
        served: &Arc<Served>,
        task: &Task,
        generation: u32,
        opening: Opening,
        session_files: &SessionFiles,
    ) -> Result<Prepared, EffectError> {
        if opening == Opening::Anew {
            self.put_work_aside(served, task, generation, session_files)?;
        }
        if opening == Opening::Given {
            self.put_given_work(served, task, generation, session_files)?;
        }
        served.mirror.fetch_remote()?;
        let Some(base) = served.mirror.remote_head(&served.primary)? else {
            return Err(EffectError::never(words::daemon::git::no_branch(&served.primary)));
        };
        note_packages(&served.mirror, &base, &served.paths)
            .map_err(|error| EffectError::later(format!("{error:#}")))?;
        self.make_tree(served, task, (generation, opening), session_files, &base)?;
        let briefing = self.briefing(served, task, generation, opening, session_files, &base)?;
        let summary = session_files.summary(generation).to_string_lossy().into_owned();
        let mut env = TreeOwner::of_task(task).env;
        env.push(("POINTSMAN_SUMMARY_FILE".to_owned(), summary));
        if served.config.dev.plan {
            let plan = session_files.plan(generation).to_string_lossy().into_owned();
            env.push(("POINTSMAN_PLAN_FILE".to_owned(), plan));
        }
        Ok(Prepared { prompt: words::prompt::task(task, &briefing), main: Some(base), env })
    }

    /// Says exactly what is wrong with a program, and what helps.
    fn require_program(
        &self,
        served: &Served,
        task: &Task,
        program: &str,
        found: &Program,
        main: &Sha,
    ) -> Result<(), EffectError> {
        use words::daemon::session::{ProgramTrouble, program_trouble};
        let in_tree = program.contains('/') && !program.starts_with('/');
        let path = program.trim_start_matches("./");
        // A file that is too large to be read is there as well.
        let is_on = |commit: &Sha| !matches!(served.mirror.read_file_at(commit, path, PROGRAM_CAP), Ok(None));
        let trouble = match found {
            Program::Found(_) => return Ok(()),
            Program::NotExecutable(_) if in_tree => ProgramTrouble::NotExecutableInTree,
            Program::NotExecutable(path) => ProgramTrouble::NotExecutable(path),
            Program::NoInterpreter { path, interpreter } => ProgramTrouble::NoInterpreter(path, interpreter),
            Program::Missing if in_tree && is_on(main) => ProgramTrouble::TreeIsOlder,
            Program::Missing if in_tree => {
                let project = self.read(|store| store.project(&task.key.project))?;
                match project.filter(|project| project.checkout.join(path).exists()) {
                    Some(_) => ProgramTrouble::OnlyInCheckout,
                    None => ProgramTrouble::Missing,
                }
            }
            Program::Missing => ProgramTrouble::Missing,
        };
        let main = served.primary.as_str();
        Err(EffectError::never(program_trouble(program, &trouble, main, task.key.issue)))
    }

    /// Captures the work so far and moves it out of the way, so that the next tree begins from the main branch. A second
    /// time there is nothing to move.
    fn put_work_aside(
        &self,
        served: &Served,
        task: &Task,
        generation: u32,
        session_files: &SessionFiles,
    ) -> Result<(), EffectError> {
        if served.config.dev.worktree == Worktree::Linked {
            return Err(EffectError::never(words::daemon::session::linked_is_kept()));
        }
        let predecessor = task.key.session(generation.saturating_sub(1));
        self.keep_work(served, &predecessor, &session_files.tree)?;
        for dir in [&session_files.tree, &session_files.gateway] {
            if dir.exists() {
                Tree::set_aside(dir)?;
            }
        }
        Ok(())
    }

    /// Makes room for a tree that begins at the commit of a person: what the agent left is captured and moved away, and its
    /// gateway has their commit. A second time it is the same.
    fn put_given_work(
        &self,
        served: &Served,
        task: &Task,
        generation: u32,
        session_files: &SessionFiles,
    ) -> Result<(), EffectError> {
        let Some(given) = &task.given else { return Ok(()) };
        let predecessor = task.key.session(generation.saturating_sub(1));
        self.keep_work(served, &predecessor, &session_files.tree)?;
        if session_files.tree.exists() {
            Tree::set_aside(&session_files.tree)?;
        }
        crash_point("given-work-aside");
        if !served.mirror.commit_exists(&given.head)? {
            return Err(EffectError::never(words::daemon::git::no_commit(&given.head)));
        }
        let branch = served.branch(task)?;
        Ok(Gateway::create(&served.mirror, &session_files.gateway, &branch)?.show_branch(&given.head)?)
    }

    /// Only what is listed: nothing of the daemon's own environment leaks, no credential least of all.
    fn agent_environment(
        &self,
        served: &Served,
        owner: &Workflow,
        generation: u32,
        session_files: &SessionFiles,
    ) -> BTreeMap<String, String> {
        let mut env = self.common_environment(served);
        let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
        set("PHASE_FILE", session_files.phase_file.to_string_lossy().into_owned());
        set("POINTSMAN_SESSION", owner.id().session(generation));
        set("POINTSMAN_PRIMARY_BRANCH", served.primary.to_string());
        set("POINTSMAN_INBOX", session_files.inbox(generation).to_string_lossy().into_owned());
        set(artifact::VARIABLE, session_files.artifacts(generation).to_string_lossy().into_owned());
        set("POINTSMAN_RESULT_FILE", session_files.result(generation).to_string_lossy().into_owned());
        env
    }

    /// What every session gets.
    fn common_environment(&self, served: &Served) -> BTreeMap<String, String> {
        let passed = served.config.agent.pass_env.iter().map(String::as_str);
        let mut env: BTreeMap<String, String> = INHERITED
            .into_iter()
            .chain(passed)
            .filter_map(|name| Some((name.to_owned(), (self.environment)(name)?.into_string().ok()?)))
            .collect();
        env.entry("LANG".to_owned()).or_insert_with(|| "C.UTF-8".to_owned());
        env.insert("PROJECT_NAME".to_owned(), served.config.name.to_string());
        // For `pointsman ack`, `phase` and `step` from inside the session.
        for (name, dir) in
            [("POINTSMAN_STATE_DIR", self.paths.state()), ("POINTSMAN_RUNTIME_DIR", self.paths.runtime())]
        {
            env.insert(name.to_owned(), dir.to_string_lossy().into_owned());
        }
        env
    }

    pub(super) fn end_session(
        &self,
        served: &Served,
        owner: &Workflow,
        generation: u32,
        exit: Exit,
    ) -> Result<Outcome, EffectError> {
        let id = owner.id();
        let (session, name) = (id.session(generation), id.identity());
        let tail = match self.drivers.find(&name)? {
            Some(running) if running.epoch == epoch(&session) => {
                let tail = self.tail(served, &name, &running);
                self.put_away(served, &id, &session, &running)?;
                tail
            }
            // Gone already.
            Some(_) | None => String::new(),
        };
        self.end_processes(&served.files_of(&id), generation);
        self.exits.forget(&session);
        self.sockets.close(&session);
        if let Workflow::Task(task) = owner {
            served.keep_artifacts(task, generation);
        }
        let mut sessions = Vec::new();
        if let Some(row) = self.read(|store| store.session(&session))? {
            sessions.push(SessionRow { ended_at: Some(clock::now()), exit: Some(exit), ..row });
        }
        Ok(Outcome::Done(Performed {
            events: vec![Event::of_session(&id, generation, session::Event::Ended { exit, tail })],
            sessions,
            ..Performed::default()
        }))
    }

    /// Ends whatever is left of one session, however it detached.
    pub(in crate::daemon) fn end_processes(&self, session_files: &SessionFiles, generation: u32) {
        let spec = session_files.launch_spec(generation);
        let launch: Option<Launch> = fs::read(&spec).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let Some(launch) = launch else { return };
        let left = launch.members.end(LEFT_BEHIND_LIMIT);
        if left > 0 {
            tracing::warn!(spec = %spec.display(), left, "processes of a session do not end");
        }
    }

    /// The last lines of a session, for a diagnosis.
    pub(in crate::daemon) fn tail(&self, served: &Served, identity: &str, running: &FoundSession) -> String {
        let lines = usize::try_from(served.config.limits.pane_lines).unwrap_or(50);
        match self.drivers.tail(identity, running, lines) {
            Ok(lines) => lines.join("\n"),
            Err(error) => {
                tracing::debug!(identity, %error, "no last lines");
                String::new()
            }
        }
    }

    /// Captures the work, then takes the session down and makes sure that its process is gone.
    fn put_away(
        &self,
        served: &Served,
        id: &WorkflowId,
        session: &str,
        running: &FoundSession,
    ) -> Result<(), EffectError> {
        self.exits.forget(session);
        if let Err(trouble) = self.keep_work(served, session, &served.files_of(id).tree) {
            // The tree stays where it is, so nothing is lost by going on.
            tracing::warn!(session, error = trouble.error, "the work could not be captured before the end");
        }
        let grace = served.config.timing.stop_grace.duration();
        self.drivers.end(&id.identity(), running, grace)?;
        self.sockets.close(session);
        Ok(())
    }
}

/// What a workflow lays out for one session, beside what every session gets.
pub(super) struct Prepared {
    pub(super) prompt: String,
    /// The commit of the main branch that a task's tree was made from.
    pub(super) main: Option<Sha>,
    pub(super) env: Vec<(String, String)>,
}

/// Says exactly what is wrong with the program of a run.
fn require_program_of_run(program: &str, found: &Program) -> Result<(), EffectError> {
    use words::daemon::session::{no_interpreter, program_not_executable, program_not_found};
    Err(EffectError::never(match found {
        Program::Found(_) => return Ok(()),
        Program::Missing => program_not_found(program),
        Program::NotExecutable(path) => program_not_executable(path),
        Program::NoInterpreter { path, interpreter } => no_interpreter(path, interpreter),
    }))
}

/// The one line that is given to the program; the rest is in the file it names.
pub(super) fn first_line(owner: &Workflow, session_files: &SessionFiles, generation: u32) -> String {
    let prompt = session_files.inbox(generation).join("0000-task.md");
    match owner {
        Workflow::Task(task) => words::message::first_line(task, &prompt.to_string_lossy()),
        Workflow::Run(run) => words::run::first_line(run, &prompt.to_string_lossy()),
        Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => {
            owner.title().to_owned()
        }
    }
}

/// The model that the sessions of a workflow are asked to use.
fn model(served: &Served, owner: &Workflow) -> Option<String> {
    match owner {
        Workflow::Task(_) => served.config.roles.get(owner.role()).model.clone(),
        Workflow::Run(run) => run.model.clone(),
        Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => None,
    }
}

/// The phase file of a session. Inside a sandbox it lies in a directory of this generation, and the protocol's path
/// outside only shows it. A claim that a successor goes on with moves to where that one looks: moved and not copied, it is
/// not told a second time.
fn lay_out_phases(
    session_files: &SessionFiles,
    generation: u32,
    claims: Opening,
    enclosed: bool,
) -> Result<(), EffectError> {
    let unusable =
        |path: &Path, why| EffectError::never(words::daemon::session::phase_file_unusable(path, why));
    let earlier = session_files.as_seen_by(generation.saturating_sub(1), &session_files.phase_file);
    let phases = session_files.phases(generation);
    if enclosed {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&phases)?;
    } else if phases.exists() {
        fs::remove_dir_all(&phases)?;
    }
    let own = session_files.as_seen_by(generation, &session_files.phase_file);
    let goes_on = !begins_new_claims(claims);
    if goes_on && earlier != own && !own.exists() && phase_file::is_own_file(&earlier) {
        fs::rename(&earlier, &own).or_else(|_| {
            // Another file system.
            phase_file::move_own_file(&earlier, &own).map_err(|why| unusable(&earlier, why))
        })?;
    }
    make_phase_file(&own, claims).map_err(|why| unusable(&own, why))?;
    if enclosed {
        let shown = &session_files.phase_file;
        make_phase_file(shown, claims).map_err(|why| unusable(shown, why))?;
    }
    Ok(())
}

/// Whether a session begins with an empty phase file: nothing that was claimed before is true any more.
fn begins_new_claims(opening: Opening) -> bool {
    match opening {
        Opening::Fresh | Opening::Anew | Opening::Given => true,
        Opening::Recovery | Opening::Continuation => false,
    }
}

/// A new task gets a new phase file: one of ours that is there speaks of something that is over. A
/// recovery goes on with the one it finds. Whatever is not ours is refused.
fn make_phase_file(path: &Path, opening: Opening) -> Result<(), phase_file::Refusal> {
    if phase_file::reuse_or_create(path)? == phase_file::Opened::Reused && begins_new_claims(opening) {
        phase_file::remove_own_file(path)?;
        phase_file::create_exclusive(path)?;
    }
    Ok(())
}

/// Written as a whole or not at all, readable by us alone.
pub(in crate::daemon) fn write(path: &Path, bytes: &[u8]) -> Result<(), EffectError> {
    Ok(phase_file::write_state_file(path, bytes)?)
}
