//! Starting and ending the sessions of a run.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::Context;
use pointsman_adapters::driver::{AgentInput, FoundSession, NewSession, SessionHome};
use pointsman_adapters::git::checkout::remove_checkout;
use pointsman_adapters::process::Program;
use pointsman_adapters::{phase_file, process};
use pointsman_core::claude::launch::Conversation;
use pointsman_core::claude::stream::Talks;
use pointsman_core::config::Runtime;
use pointsman_core::run::{Event, Run, Status};
use pointsman_core::session::budget::Spent;
use pointsman_core::task::Exit;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::SessionRow;

use super::watch::Tell;
use super::{containers, files};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::effects::{EffectError, EffectPerformer, epoch, new_id, write};
use crate::daemon::hand_in;
use crate::daemon::launch::Launch;
use crate::daemon::served::Served;
use crate::keeper::Keep;

/// The files of one run's sessions.
pub(super) struct RunSessionFiles {
    /// All that its sessions may touch of ours.
    root: PathBuf,
    /// A clean checkout of the main branch, the same for all its sessions.
    pub(super) tree: PathBuf,
    /// The phase file of the protocol.
    pub(super) phase_file: PathBuf,
    transcript: PathBuf,
}

impl RunSessionFiles {
    pub(super) fn new(served: &Served, run: &Run) -> Self {
        let root = served.paths.root().join("sessions").join(run.identity());
        let (role, project, id) = (run.formula.role(), &run.project, run.id);
        let dir = &served.config.dev.phase_dir;
        Self {
            tree: root.join("tree"),
            root,
            phase_file: dir.join(format!("{role}-session-{project}-{id}.phase")),
            transcript: dir.join(format!("{role}-{project}-{id}.log")),
        }
    }

    pub(super) fn inbox(&self, generation: u32) -> PathBuf {
        self.root.join(format!("inbox-{generation}"))
    }

    /// When the session last wrote to its terminal.
    pub(super) fn last_active(&self) -> Option<Timestamp> {
        fs::metadata(&self.transcript).ok().map(|file| clock::written(&file))
    }

    fn run_dir(&self, generation: u32) -> PathBuf {
        self.root.join(format!("run-{generation}"))
    }

    /// Where the agent leaves its result.
    pub(super) fn result(&self, generation: u32) -> PathBuf {
        self.run_dir(generation).join("result.json")
    }
}

/// Starts the run's session, or finds that it is there already.
pub(super) fn start(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    tell: &Tell<'_>,
) -> anyhow::Result<()> {
    let (name, session) = (run.identity(), run.session(run.generation));
    let session_files = RunSessionFiles::new(served, run);
    if let Some(running) = world.drivers.find(&name)? {
        if running.epoch == epoch(&session) {
            // We had started it and did not live to write it down.
            greet(world, served, run, &session_files, &running)?;
            started(world, run, &session_files, &running, tell);
            return Ok(());
        }
        world
            .take_down(served, &name, &session, &session_files.tree, &running)
            .map_err(EffectError::into_error)?;
    }
    keep_transcript(served, &run.session(run.generation.saturating_sub(1)), &session_files);
    containers::end(world, run, run.generation.saturating_sub(1));
    if let Err(why) = prepare(world, served, run, &session_files)? {
        tell(Event::NotStarted { why }, Vec::new());
        return Ok(());
    }
    // It may speak as soon as it is there: it is known before.
    let registered =
        tell(Event::SessionPrepared { generation: run.generation }, vec![row(run, &session_files, None)]);
    anyhow::ensure!(registered, words::daemon::run::over());
    crash_point("run-session-prepared");
    let new = NewSession {
        name: name.clone(),
        epoch: epoch(&session),
        program: world.program.clone(),
        spec: session_files.run_dir(run.generation).join("launch.json"),
        transcript: session_files.transcript.clone(),
    };
    world.drivers.start(served.config.runtime(run.formula.role()), &new)?;
    crash_point("run-session-in-tmux");
    let running = world.drivers.find(&name)?.context(words::daemon::session::gone_at_once())?;
    greet(world, served, run, &session_files, &running)?;
    started(world, run, &session_files, &running, tell);
    Ok(())
}

/// Everything the agent finds when it starts; a reason if it can never start.
fn prepare(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    session_files: &RunSessionFiles,
) -> anyhow::Result<Result<(), String>> {
    let generation = run.generation;
    for dir in [&session_files.root, &session_files.inbox(generation), &session_files.run_dir(generation)] {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let material = files::lay_out(world, served, run, session_files)?;
    // What an earlier session claimed is not this one's claim.
    let fresh = phase_file::remove_own_file(&session_files.phase_file)
        .and_then(|()| phase_file::create_exclusive(&session_files.phase_file));
    if let Err(why) = fresh {
        return Ok(Err(words::daemon::session::phase_file_unusable(&session_files.phase_file, why)));
    }
    let places = words::run::RunFiles {
        phase_file: session_files.phase_file.to_string_lossy().into_owned(),
        result_file: session_files.result(generation).to_string_lossy().into_owned(),
    };
    let prompt = session_files.inbox(generation).join("0000-task.md");
    let save = |path: &PathBuf, bytes: &[u8]| write(path, bytes).map_err(EffectError::into_error);
    for (name, text) in &material.files {
        save(&session_files.inbox(generation).join(name), text.as_bytes())?;
    }
    save(&prompt, words::run::prompt(run, &places, &material.briefing).as_bytes())?;
    let mut argv = served.config.command(run.formula.role()).clone();
    let path = (world.environment)("PATH");
    if let Some(program) = argv.first() {
        match process::look_for_program(program, path.as_deref(), &session_files.tree) {
            Program::Found(_) => {}
            Program::Missing => return Ok(Err(words::daemon::session::program_not_found(program))),
            Program::NotExecutable(path) => {
                return Ok(Err(words::daemon::session::program_not_executable(&path)));
            }
            Program::NoInterpreter { path, interpreter } => {
                return Ok(Err(words::daemon::session::no_interpreter(&path, &interpreter)));
            }
        }
    }
    let mut env = world.common_environment(served);
    let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
    set("PHASE_FILE", places.phase_file);
    set("POINTSMAN_RESULT_FILE", places.result_file);
    set("POINTSMAN_SESSION", run.session(generation));
    set("POINTSMAN_RUN", run.id.to_string());
    set("POINTSMAN_INBOX", session_files.inbox(generation).to_string_lossy().into_owned());
    set("POINTSMAN_PRIMARY_BRANCH", served.primary.to_string());
    for (name, value) in material.env {
        set(name, value);
    }
    if let Some(model) = &run.model {
        set("POINTSMAN_MODEL", model.clone());
    }
    let agent = served.config.agent_kind(run.formula.role());
    let can = agent.capabilities();
    world.prepare_agent(agent, &session_files.tree, &mut env).map_err(EffectError::into_error)?;
    if let (Some(flag), Some(model)) = (can.model_flag, &run.model) {
        argv.extend([flag.to_owned(), model.clone()]);
    }
    let keep = match served.config.runtime(run.formula.role()) {
        Runtime::Tmux => {
            if can.prompt_argument {
                argv.push(words::run::first_line(run, &prompt.to_string_lossy()));
            }
            None
        }
        Runtime::Headless => {
            let mut conversation = None;
            if let Some(streaming) = agent.streaming(&argv, None) {
                argv = streaming;
                conversation = Some(Conversation::New(new_id().map_err(EffectError::into_error)?));
            }
            Some(Keep {
                session: run.session(generation),
                // A run is followed by its steps and its result.
                told: false,
                talks: if conversation.is_some() { Talks::Always } else { Talks::Perhaps },
                conversation,
                turn_limit: served.config.timing.turn_timeout.duration(),
                grace: served.config.timing.stop_grace.duration() / 2,
                sums: session_files.run_dir(generation).join("sums.json"),
                sums_before: None,
            })
        }
    };
    let launch =
        Launch { argv, cwd: session_files.tree.clone(), commit_first: None, env, keep, parent: None };
    save(&session_files.run_dir(generation).join("launch.json"), &serde_json::to_vec_pretty(&launch)?)?;
    Ok(Ok(()))
}

/// The prompt is given to the program as well, once, as one line of ours that names the file.
fn greet(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    session_files: &RunSessionFiles,
    running: &FoundSession,
) -> anyhow::Result<()> {
    let headless = running.placed == SessionHome::Headless;
    if headless || !served.config.agent_kind(run.formula.role()).capabilities().prompt_argument {
        let prompt = session_files.inbox(run.generation).join("0000-task.md");
        let line = words::run::first_line(run, &prompt.to_string_lossy());
        // Nobody will say anything more to it: without a terminal it is through after its turn.
        let words = AgentInput { operation: "start", text: &line, last: headless };
        world.drivers.say(&run.identity(), running, &epoch(&run.session(run.generation)), &words)?;
    }
    Ok(())
}

fn started(
    world: &EffectPerformer,
    run: &Run,
    session_files: &RunSessionFiles,
    running: &FoundSession,
    tell: &Tell<'_>,
) {
    let mut rows = vec![row(run, session_files, Some(running))];
    let before = rows[0].predecessor.as_deref().and_then(|session| ended(world, session, Exit::Crashed));
    rows.extend(before);
    tell(Event::SessionStarted { generation: run.generation }, rows);
}

/// What is known of the run's present session.
fn row(run: &Run, session_files: &RunSessionFiles, running: Option<&FoundSession>) -> SessionRow {
    let now = clock::now();
    SessionRow {
        session: run.session(run.generation),
        identity: run.identity(),
        project: run.project.clone(),
        issue: None,
        role: run.formula.role(),
        generation: run.generation,
        host: process::host_name(),
        model: run.model.clone(),
        bead_id: None,
        node_id: None,
        hook_path: None,
        tmux_session: running.and_then(FoundSession::pane).map(|_| run.identity()),
        pane: running.and_then(FoundSession::pane).map(ToString::to_string),
        pid: running.map(|running| running.pid),
        start_time: running.and_then(|running| running.start_time),
        tree: Some(session_files.tree.clone()),
        created_at: now,
        last_seen: now,
        times_stale: 0,
        ended_at: None,
        exit: None,
        acknowledges: false,
        predecessor: (run.generation > 1).then(|| run.session(run.generation - 1)),
        gauge: None,
        spent: Spent::default(),
    }
}

/// A session's row with its end, if it has none yet.
fn ended(world: &EffectPerformer, session: &str, exit: Exit) -> Option<SessionRow> {
    let row = world.read(|store| store.session(session)).ok().flatten();
    let row = row.filter(|row| row.ended_at.is_none())?;
    Some(SessionRow { ended_at: Some(clock::now()), exit: Some(exit), ..row })
}

/// Puts the session of a run that is over away. Its work is captured once nobody writes to it any more, whatever it was:
/// what could not be captured stays where it is, and all of this is tried again.
pub(super) fn end(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    tell: &Tell<'_>,
) -> anyhow::Result<()> {
    let (name, session) = (run.identity(), run.session(run.generation));
    let session_files = RunSessionFiles::new(served, run);
    if let Some(running) = world.drivers.find(&name)? {
        world.drivers.end(&name, &running, served.config.timing.stop_grace.duration())?;
    }
    containers::end(world, run, run.generation);
    world.keep_work(served, &session, &session_files.tree).map_err(EffectError::into_error)?;
    crash_point("run-session-put-away");
    keep_transcript(served, &session, &session_files);
    if let Err(refusal) = phase_file::remove_own_file(&session_files.phase_file) {
        tracing::warn!(file = %session_files.phase_file.display(), %refusal, "left a phase file");
    }
    files::take_commits(served, run, &session_files)?;
    hand_in::take(world, served, run, &session_files.tree)?;
    // What was in it is captured; what was not changed is in git.
    remove_checkout(&session_files.tree)?;
    let exit = match run.status {
        Status::Done => Exit::Done,
        Status::Stopped => Exit::Stopped,
        Status::Failed | Status::Starting | Status::Running => Exit::Failed,
    };
    tell(Event::SessionEnded, ended(world, &session, exit).into_iter().collect());
    Ok(())
}

fn keep_transcript(served: &Served, session: &str, session_files: &RunSessionFiles) {
    if let Err(refusal) =
        phase_file::move_own_file(&session_files.transcript, &served.paths.transcript(session))
    {
        tracing::warn!(file = %session_files.transcript.display(), %refusal, "left a transcript");
    }
}
