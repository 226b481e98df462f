//! Starting and ending sessions.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant};

use pointsman_adapters::git::checkpoint;
use pointsman_adapters::git::gateway::Gateway;
use pointsman_adapters::git::tree::{Tree, TreeSpec, rebuild_from};
use pointsman_adapters::tmux::{NewSession, PaneInfo, Target};
use pointsman_adapters::{phase_file, process, tmux};
use pointsman_core::claude::launch::is_claude;
use pointsman_core::config::Worktree;
use pointsman_core::session::budget::Spent;
use pointsman_core::task::{Event, Exit, Opening, Task};
use pointsman_core::words;
use pointsman_store::SessionRow;

use super::claude::Start;
use super::{Outcome, RealWorld, Trouble};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::launch::Launch;
use crate::daemon::outcome::Performed;
use crate::daemon::projections;
use crate::daemon::served::{Desk, Served};

/// The terminal an agent gets.
const COLUMNS: u16 = 200;
const ROWS: u16 = 50;
/// How often a session that was told to go is looked at until it is gone.
const GONE_LOOK: Duration = Duration::from_millis(20);
/// Variables of the daemon that every agent gets.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "SHELL"];

/// A session's name as tmux keeps it: what tells runs of the same tmux session apart.
pub(in crate::daemon) fn epoch(session: &str) -> String {
    session.replace('.', "_")
}

impl RealWorld {
    pub(super) fn start_session(
        &self,
        served: &Served,
        task: &Task,
        generation: u32,
        opening: Opening,
    ) -> Result<Outcome, Trouble> {
        let name = task.key.identity();
        let session = task.key.session(generation);
        let predecessor = task.key.session(generation.saturating_sub(1));
        let desk = served.desk(&task.key);
        self.tmux.ensure_running()?;
        match self.tmux.find(&name)? {
            Some(pane) if pane.epoch == epoch(&session) => {
                // We had started it and did not live to write it down.
                self.greet(served, task, generation, &pane)?;
                return Ok(self.started(served, task, generation, &pane));
            }
            // The pane of an earlier generation; its work is in the tree, its end is recorded.
            Some(pane) => self.put_away(served, task, &predecessor, &pane)?,
            // Its pane went with the whole server. What it handed over is captured all the same: a commit may fail.
            None if opening == Opening::Continuation => self.keep_work(served, &predecessor, &desk.tree)?,
            None => {}
        }
        // What an earlier session printed is kept under its own name.
        Self::keep_transcript(served, &predecessor, &desk);
        self.prepare(served, task, generation, opening, &desk)?;
        self.announce(served, task, &session)?;
        crash_point("session-prepared");
        self.tmux.start(&NewSession {
            name: name.clone(),
            argv: vec![
                self.program.to_string_lossy().into_owned(),
                "launch".to_owned(),
                desk.run_dir(generation).join("launch.json").to_string_lossy().into_owned(),
            ],
            width: COLUMNS,
            height: ROWS,
            transcript: Some(desk.transcript.clone()),
            epoch: epoch(&session),
        })?;
        crash_point("session-in-tmux");
        let Some(pane) = self.tmux.find(&name)? else {
            return Err(Trouble::later("the session was gone as soon as it was started"));
        };
        self.greet(served, task, generation, &pane)?;
        Ok(self.started(served, task, generation, &pane))
    }

    /// The first prompt is given to the program as well, once, as one line of ours that names the file.
    /// Claude Code is started with it.
    fn greet(&self, served: &Served, task: &Task, generation: u32, pane: &PaneInfo) -> Result<(), Trouble> {
        if is_claude(&self.agent_command(served)) {
            return Ok(());
        }
        let prompt = served.desk(&task.key).inbox(generation).join("0000-task.md");
        let line = words::message::first_line(task, &prompt.to_string_lossy());
        self.tmux.send_message(&pane.pane_id, &epoch(&task.key.session(generation)), "start", &line)?;
        Ok(())
    }

    fn started(&self, served: &Served, task: &Task, generation: u32, pane: &PaneInfo) -> Outcome {
        let now = clock::now();
        let row = SessionRow {
            session: task.key.session(generation),
            identity: task.key.identity(),
            project: task.key.project.clone(),
            issue: Some(task.key.issue),
            role: "dev".to_owned(),
            generation,
            host: process::host_name(),
            model: None,
            bead_id: None,
            node_id: None,
            hook_path: self.hook_path(task),
            tmux_session: Some(task.key.identity()),
            pane: Some(pane.pane_id.to_string()),
            pid: Some(pane.pid),
            start_time: pane.start_time,
            tree: Some(served.desk(&task.key).tree),
            created_at: now,
            last_seen: now,
            times_stale: 0,
            ended_at: None,
            exit: None,
            acknowledges: false,
            predecessor: (generation > 1).then(|| task.key.session(generation - 1)),
            gauge: None,
            spent: Spent::default(),
        };
        Outcome::Done(Performed {
            events: vec![Event::SessionStarted { generation }],
            sessions: vec![row],
            note: None,
        })
    }

    /// Its files are there before it is.
    fn announce(&self, served: &Served, task: &Task, session: &str) -> Result<(), Trouble> {
        let hook_path = self.hook_path(task);
        let reader = self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(mut row) = reader.session(session)? {
            row.host = process::host_name();
            row.hook_path = hook_path;
            row.tree = Some(served.desk(&task.key).tree);
            projections::announce(&reader, &row);
        }
        Ok(())
    }

    /// Where the work state is shown, below the user's checkout.
    fn hook_path(&self, task: &Task) -> Option<std::path::PathBuf> {
        let reader = self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let project = reader.project(&task.key.project).ok().flatten()?;
        Some(project.checkout.join(format!(".claude/state/hooks/{}.json", task.key.identity())))
    }

    /// Everything an agent finds when it starts.
    fn prepare(
        &self,
        served: &Served,
        task: &Task,
        generation: u32,
        opening: Opening,
        desk: &Desk,
    ) -> Result<(), Trouble> {
        let branch = served.branch(task)?;
        for dir in [&desk.root, &desk.inbox(generation), &desk.run_dir(generation)] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        served.mirror.fetch_remote()?;
        let Some(base) = served.mirror.remote_head(&served.primary)? else {
            return Err(Trouble::never(format!("the forge has no branch {}", served.primary)));
        };
        let gateway = Gateway::create(&served.mirror, &desk.gateway, &branch)?;
        gateway.show_primary(&served.primary, &base)?;
        let spec = TreeSpec {
            dir: desk.tree.clone(),
            mirror: &served.mirror,
            gateway: &gateway,
            branch,
            primary: served.primary.clone(),
            base: base.clone(),
            user_name: task.key.identity(),
            user_email: format!("{}@pointsman.invalid", task.key.identity()),
            exclude: Vec::new(),
            linked: served.config.dev.worktree == Worktree::Linked,
        };
        // A tree that is gone comes back as it was saved last.
        match checkpoint::newest(&served.mirror, task.key.issue)? {
            Some(saved) if opening != Opening::Fresh && !desk.tree.exists() => {
                tracing::warn!(task = %task.key, checkpoint = %saved.commit, "the tree is gone; rebuilt");
                rebuild_from(&spec, &saved.commit)?;
            }
            Some(_) | None => {
                Tree::create(&spec)?;
            }
        }
        make_phase_file(&desk.phase_file, opening)
            .map_err(|why| Trouble::never(format!("{} cannot be used: {why}", desk.phase_file.display())))?;
        let briefing = self.briefing(served, task, generation, opening, desk, &base)?;
        let prompt = words::prompt::task(task, &briefing);
        write(&desk.inbox(generation).join("0000-task.md"), prompt.as_bytes())?;
        let argv = self.agent_command(served);
        let path = (self.environment)("PATH");
        if let Some(program) = argv.first()
            && process::find_program(program, path.as_deref(), &desk.tree).is_none()
        {
            let advice = "install it, or set [agent] command in pointsman.toml";
            return Err(Trouble::never(format!("the agent program {program} is not found: {advice}")));
        }
        let mut env = self.agent_environment(served, task, generation, desk);
        let argv = self.dress_claude(served, task, &Start { generation, opening, desk }, argv, &mut env)?;
        let launch = Launch {
            argv,
            cwd: desk.tree.clone(),
            commit_first: (opening == Opening::Continuation)
                .then(|| "Work in progress, handed over to the next session".to_owned()),
            env,
        };
        let spec = serde_json::to_vec_pretty(&launch).map_err(Trouble::never)?;
        write(&desk.run_dir(generation).join("launch.json"), &spec)
    }

    pub(in crate::daemon) fn agent_command(&self, served: &Served) -> Vec<String> {
        let own = served.config.roles.dev.command.as_ref();
        own.unwrap_or(&served.config.agent.command).clone()
    }

    /// Only what is listed: nothing of the daemon's own environment leaks, no credential least of all.
    fn agent_environment(
        &self,
        served: &Served,
        task: &Task,
        generation: u32,
        desk: &Desk,
    ) -> BTreeMap<String, String> {
        let mut env = self.common_environment(served);
        let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
        set("PHASE_FILE", desk.phase_file.to_string_lossy().into_owned());
        set("ISSUE", task.key.issue.to_string());
        set("POINTSMAN_SESSION", task.key.session(generation));
        set("POINTSMAN_BRANCH", task.branch.clone());
        set("POINTSMAN_PRIMARY_BRANCH", served.primary.to_string());
        set("POINTSMAN_INBOX", desk.inbox(generation).to_string_lossy().into_owned());
        set("POINTSMAN_SUMMARY_FILE", desk.summary(generation).to_string_lossy().into_owned());
        set("POINTSMAN_RESULT_FILE", desk.result(generation).to_string_lossy().into_owned());
        env
    }

    /// What every session gets.
    pub(in crate::daemon) fn common_environment(&self, served: &Served) -> BTreeMap<String, String> {
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
        task: &Task,
        generation: u32,
        exit: Exit,
    ) -> Result<Outcome, Trouble> {
        let session = task.key.session(generation);
        let name = task.key.identity();
        let tail = match self.tmux.find(&name) {
            Ok(Some(pane)) if pane.epoch == epoch(&session) => {
                let tail = self.tail(served, &pane);
                self.put_away(served, task, &session, &pane)?;
                tail
            }
            // Gone already, or the whole server is.
            Ok(_) => String::new(),
            Err(tmux::Error::NotRunning { .. }) => String::new(),
            Err(error) => return Err(error.into()),
        };
        self.exits.forget(&session);
        let mut sessions = Vec::new();
        let reader = self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(row) = reader.session(&session)? {
            sessions.push(SessionRow { ended_at: Some(clock::now()), exit: Some(exit), ..row });
        }
        drop(reader);
        Ok(Outcome::Done(Performed {
            events: vec![Event::SessionEnded { generation, exit, tail }],
            sessions,
            note: None,
        }))
    }

    /// The last lines of a pane, for a diagnosis.
    pub(in crate::daemon) fn tail(&self, served: &Served, pane: &PaneInfo) -> String {
        let lines = usize::try_from(served.config.limits.pane_lines).unwrap_or(50);
        match self.tmux.capture_tail(Target::Pane(&pane.pane_id), lines) {
            Ok(lines) => lines.join("\n"),
            Err(error) => {
                tracing::debug!(pane = %pane.pane_id, %error, "no last lines");
                String::new()
            }
        }
    }

    /// Captures the work, then takes the session down and makes sure that its process is gone.
    fn put_away(&self, served: &Served, task: &Task, session: &str, pane: &PaneInfo) -> Result<(), Trouble> {
        self.exits.forget(session);
        self.take_down(served, &task.key.identity(), session, &served.desk(&task.key).tree, pane)
    }

    /// The same for any session of ours.
    pub(in crate::daemon) fn take_down(
        &self,
        served: &Served,
        identity: &str,
        session: &str,
        tree: &Path,
        pane: &PaneInfo,
    ) -> Result<(), Trouble> {
        if let Err(trouble) = self.keep_work(served, session, tree) {
            // The tree stays where it is, so nothing is lost by going on.
            tracing::warn!(session, error = trouble.error, "the work could not be captured before the end");
        }
        self.tmux.kill(identity)?;
        let Some(start_time) = pane.start_time else { return Ok(()) };
        let deadline = Instant::now() + served.config.timing.stop_grace.duration();
        while process::is_alive(pane.pid, start_time) {
            if Instant::now() >= deadline {
                // It ignores the hang-up.
                process::kill_leftover_group(pane.pid, start_time);
                break;
            }
            wait(GONE_LOOK);
        }
        Ok(())
    }
}

/// A new task gets a new phase file: one of ours that is there speaks of something that is over. A
/// recovery goes on with the one it finds. Whatever is not ours is refused.
fn make_phase_file(path: &Path, opening: Opening) -> Result<(), phase_file::Refusal> {
    if phase_file::reuse_or_create(path)? == phase_file::Opened::Reused && opening == Opening::Fresh {
        phase_file::remove_own_file(path)?;
        phase_file::create_exclusive(path)?;
    }
    Ok(())
}

/// tmux has no event for "the process of a killed pane is gone"; this is asked a few times.
fn wait(span: Duration) {
    std::thread::park_timeout(span);
}

/// Written as a whole or not at all, readable by us alone.
pub(in crate::daemon) fn write(path: &Path, bytes: &[u8]) -> Result<(), Trouble> {
    Ok(phase_file::write_state_file(path, bytes)?)
}
