//! Sessions of Claude Code: a settings file of their own, a configuration without dialogs, and no key typed into one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use pointsman_adapters::phase_file;
use pointsman_core::agent::Agent;
use pointsman_core::claude::launch::{self, Conversation, RewakeSupport};
use pointsman_core::claude::stream::ResultPromise;
use pointsman_core::config::Runtime;
use pointsman_core::relay::PLACEHOLDER_KEY;
use pointsman_core::task::Opening;
use pointsman_core::workflow::Workflow;
use serde_json::Value;

use super::delivery::hook_inbox;
use super::session::{first_line, write};
use super::{EffectError, EffectPerformer};
use crate::daemon::served::{Served, SessionFiles};
use crate::keeper::Keep;

/// Claude's own file is small; more than this is something else.
const CONFIG_BYTES: u64 = 64 << 20;
/// Claude's own file of settings and state.
const CONFIG: &str = ".claude.json";
/// The id of a conversation, in the files of a run.
const CONVERSATION: &str = "conversation";
/// What a conversation has cost, in the files of a run.
const SUMS: &str = "sums.json";

/// How a session is started.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) owner: &'a Workflow,
    pub(super) generation: u32,
    pub(super) opening: Opening,
    pub(super) session_files: &'a SessionFiles,
    pub(super) runtime: Runtime,
    /// Whether it runs inside a sandbox.
    pub(super) enclosed: bool,
}

/// What is run, and by which keeper if it has no terminal.
pub(super) struct AgentCommand {
    pub(super) argv: Vec<String>,
    pub(super) keep: Option<Keep>,
    /// The program's own directory of settings, for a session inside a sandbox.
    pub(super) settings: Option<PathBuf>,
}

impl EffectPerformer {
    /// The command and the variables of a session. A program that we know nothing about is left as it is.
    pub(super) fn command_for(
        &self,
        served: &Served,
        start: &Start<'_>,
        argv: Vec<String>,
        env: &mut BTreeMap<String, String>,
    ) -> Result<AgentCommand, EffectError> {
        let Start { owner, generation, opening, session_files, runtime, enclosed } = *start;
        let run = session_files.run_dir(generation);
        let keep = |conversation: Option<Conversation>| {
            (runtime == Runtime::Headless).then(|| Keep {
                session: owner.id().session(generation),
                told: true,
                sums_before: match (&conversation, generation.checked_sub(1)) {
                    (Some(Conversation::Resumed(_)), Some(before)) => {
                        Some(session_files.run_dir(before).join(SUMS))
                    }
                    (_, _) => None,
                },
                talks: if conversation.is_some() { ResultPromise::Always } else { ResultPromise::Perhaps },
                conversation,
                turn_limit: served.config.timing.turn_timeout.duration(),
                // The keeper itself has to be gone within the whole.
                grace: served.config.timing.stop_grace.duration() / 2,
                sums: run.join(SUMS),
            })
        };
        match served.config.agent_kind(owner.role()) {
            Agent::Claude => {}
            Agent::Codex | Agent::Gemini | Agent::Opencode | Agent::Program => {
                return Ok(AgentCommand { argv, keep: keep(None), settings: None });
            }
        }
        let program = self.program.to_string_lossy();
        let settings = run.join("settings.json");
        let waking = match (runtime, argv.first()) {
            // A program of the tree would be run outside of the sandbox.
            (Runtime::Tmux, Some(claude)) if enclosed && claude.starts_with('.') => RewakeSupport::Unknown,
            (Runtime::Tmux, Some(claude)) => self.waking(claude, &session_files.tree),
            // Its messages are its prompts.
            (Runtime::Headless, _) | (_, None) => RewakeSupport::Unknown,
        };
        let text = launch::settings(&program, runtime, waking);
        let text = serde_json::to_vec_pretty(&text).map_err(EffectError::never)?;
        write(&settings, &text)?;
        let config_dir = match env.get("CLAUDE_CONFIG_DIR") {
            Some(own) => PathBuf::from(own),
            None => {
                let key = env.get("ANTHROPIC_API_KEY").map(String::as_str);
                let shared = self.claude_config(&session_files.tree, key)?;
                match enclosed {
                    true => self.own_claude_config(&shared, session_files, generation, key)?,
                    false => shared,
                }
            }
        };
        let own = (config_dir == session_files.agent_settings(generation)).then(|| config_dir.clone());
        let passed = own.is_none() && enclosed;
        let conversation = match self.interrupted(served, generation, opening, session_files, &config_dir) {
            Some(id) => Conversation::Resumed(id),
            None => Conversation::New(new_id()?),
        };
        let (Conversation::New(id) | Conversation::Resumed(id)) = &conversation;
        write(&run.join(CONVERSATION), id.as_bytes())?;
        hook_inbox(&run).create()?;
        let temporary = run.join("tmp");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&temporary)?;
        let mut set = |name: &str, value: String| {
            env.entry(name.to_owned()).or_insert(value);
        };
        set("CLAUDE_CONFIG_DIR", config_dir.to_string_lossy().into_owned());
        set("CLAUDE_CODE_TMPDIR", temporary.to_string_lossy().into_owned());
        // It would replace itself under many sessions at once.
        set("DISABLE_AUTOUPDATER", "1".to_owned());
        if launch::skips_permissions(&argv) && rustix::process::geteuid().is_root() {
            // Without it Claude refuses to start as root, whatever stands around it.
            set("IS_SANDBOX", "1".to_owned());
        }
        let prompt = first_line(owner, session_files, generation);
        let settings = settings.to_string_lossy();
        // One that the configuration hands over is shared by all sessions, as it says.
        let shown = own.or_else(|| passed.then(|| config_dir.clone()));
        Ok(match runtime {
            Runtime::Tmux => {
                let argv = launch::command(&argv, &settings, &conversation, &prompt);
                AgentCommand { argv, keep: None, settings: shown }
            }
            Runtime::Headless => {
                let argv = launch::stream(&argv, Some(&settings));
                AgentCommand { argv, keep: keep(Some(conversation)), settings: shown }
            }
        })
    }

    /// One configuration for all sessions, because they share a login that is refreshed. It is written only if it does
    /// not say yet what keeps the dialogs away: Claude writes it as well.
    fn claude_config(&self, tree: &Path, api_key: Option<&str>) -> Result<PathBuf, EffectError> {
        let dir = self.paths.claude_config();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let path = dir.join(CONFIG);
        let now = phase_file::read_result_file(&path, CONFIG_BYTES)
            .map_err(|why| EffectError::never(format!("{}: {why}", path.display())))?;
        let now: Value = now.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        // The name that Claude compares has no links in it.
        let (trees, tree) = (self.paths.state().join("projects").canonicalize()?, tree.canonicalize()?);
        let trusted = [&*trees.to_string_lossy(), &*tree.to_string_lossy()];
        if let Some(next) = launch::without_dialogs(&now, &trusted, api_key) {
            write(&path, &serde_json::to_vec_pretty(&next).map_err(EffectError::never)?)?;
        }
        Ok(dir)
    }

    /// A configuration for one session, made anew: what one session plants there does not meet another. Only the account
    /// comes from the shared one, and the transcript of a conversation that is taken up again.
    fn own_claude_config(
        &self,
        shared: &Path,
        session_files: &SessionFiles,
        generation: u32,
        api_key: Option<&str>,
    ) -> Result<PathBuf, EffectError> {
        let dir = session_files.agent_settings(generation);
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let template = phase_file::read_result_file(&shared.join(CONFIG), CONFIG_BYTES).ok().flatten();
        let template: Value =
            template.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        // A session whose calls get their credential outside needs no account.
        let account = match api_key {
            Some(PLACEHOLDER_KEY) => Value::Object(Default::default()),
            Some(_) | None => launch::account(&template),
        };
        let tree = session_files.tree.canonicalize()?;
        let next = launch::without_dialogs(&account, &[&*tree.to_string_lossy()], api_key).unwrap_or(account);
        write(&dir.join(CONFIG), &serde_json::to_vec_pretty(&next).map_err(EffectError::never)?)?;
        if let Some(before) = generation.checked_sub(1) {
            self.carry_transcript_over(session_files, before, &dir)?;
        }
        Ok(dir)
    }

    /// Copies the transcript of the predecessor's conversation, and nothing else of its configuration.
    fn carry_transcript_over(
        &self,
        session_files: &SessionFiles,
        before: u32,
        to: &Path,
    ) -> Result<(), EffectError> {
        let Some(id) = conversation_of(session_files, before) else { return Ok(()) };
        let transcript = format!("{id}.jsonl");
        let own = session_files.agent_settings(before);
        let from = if own.is_dir() { own } else { self.paths.claude_config() };
        // No link on the way: the predecessor could have pointed it anywhere, such as to a person's own conversations.
        let projects = from.join("projects");
        if !projects.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            return Ok(());
        }
        for entry in fs::read_dir(projects).into_iter().flatten().flatten() {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let file = entry.path().join(&transcript);
            if is_dir && phase_file::is_own_file(&file) {
                let dir = to.join("projects").join(entry.file_name());
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
                fs::copy(&file, dir.join(&transcript))?;
            }
        }
        Ok(())
    }

    /// The conversation that a crash has interrupted, if it is to be taken up and Claude still has it.
    fn interrupted(
        &self,
        served: &Served,
        generation: u32,
        opening: Opening,
        session_files: &SessionFiles,
        config_dir: &Path,
    ) -> Option<String> {
        if !matches!(opening, Opening::Recovery | Opening::Given) || !served.config.agent.resume {
            return None;
        }
        let id = conversation_of(session_files, generation.checked_sub(1)?)?;
        let transcript = format!("{id}.jsonl");
        let kept = fs::read_dir(config_dir.join("projects")).ok()?.flatten();
        kept.into_iter().any(|dir| dir.path().join(&transcript).is_file()).then_some(id)
    }
}

/// The conversation of one session, as its files name it.
pub(in crate::daemon) fn conversation_of(session_files: &SessionFiles, generation: u32) -> Option<String> {
    let file = session_files.run_dir(generation).join(CONVERSATION);
    let id = String::from_utf8(phase_file::read_result_file(&file, 100).ok().flatten()?).ok()?;
    let id = id.trim();
    let plain = |c: char| c.is_ascii_hexdigit() || c == '-';
    (!id.is_empty() && id.chars().all(plain)).then(|| id.to_owned())
}

/// An id as Claude wants it.
fn new_id() -> Result<String, EffectError> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}
