//! The ways into a session of Claude Code, the best first: its own hooks, its message socket, its terminal.
//!
//! A hook that waits beside the session hands a message to the model whether it works or is idle, and touches neither the
//! screen nor a dialog. Where none waits, newer releases have a socket. Typing is what always works, and is what a
//! person's words take, because Claude tells its model that nothing else was said by a user.
//!
//! Each message has a name for each of its tries, and each way remembers the names it has taken, so that an effect that
//! is performed again after a crash gives nothing twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pointsman_adapters::claude::hook_messages::{HookMessageStatus, HookMessages};
use pointsman_adapters::claude::socket::Socket;
use pointsman_adapters::driver::{FoundSession, Sent};
use pointsman_adapters::phase_file;
use pointsman_adapters::process::Run;
use pointsman_adapters::tmux::{PaneId, Target};
use pointsman_core::claude::launch::RewakeSupport;
use pointsman_core::claude::status::{self, ClaudeStatus};
use pointsman_core::hook::Activity;
use pointsman_core::hook::transcript::{self, MessagesShown};
use pointsman_core::part::session;
use pointsman_core::session::screen::{self, Screen};
use pointsman_core::task::Headline;
use pointsman_core::words;
use pointsman_core::workflow::Workflow;

use super::session::epoch;
use super::{EffectError, EffectPerformer};
use crate::daemon::engine::Input;
use crate::daemon::served::Served;
use crate::daemon::sources::hooks::conversation_name;

/// A hook that waits takes a message within milliseconds; one that does not in this time is stuck.
const TAKING: Duration = Duration::from_secs(2);
/// Between two looks whether it did, or what a screen shows.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// Between a paste and a look at what became of it: Claude needs a moment before Enter.
const ENTER_PAUSE: Duration = Duration::from_millis(250);
/// How often a screen is looked at until Enter was taken; after that the acknowledgement decides.
const ENTERS: usize = 12;
/// How long a screen may be one that nobody knows: Claude starts, or draws itself anew.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);
/// What Claude writes about a session is small.
const STANDING_BYTES: u64 = 64 * 1024;
/// The end of a transcript that is searched for a message; what is older was acknowledged, or is lost in it.
const TRANSCRIPT_BYTES: u64 = 4 << 20;
/// `--version` answers at once, or not at all.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// A message on its way: for which session, under which name, which words.
pub(super) struct OutgoingMessage<'a> {
    pub(super) served: &'a Served,
    pub(super) owner: &'a Workflow,
    pub(super) session: String,
    pub(super) generation: u32,
    pub(super) running: &'a FoundSession,
    pub(super) pane: &'a PaneId,
    pub(super) headline: Headline,
    pub(super) id: i64,
    pub(super) operation: &'a str,
    pub(super) line: &'a str,
}

impl OutgoingMessage<'_> {
    fn epoch(&self) -> String {
        epoch(&self.session)
    }

    fn hook_inbox(&self) -> HookMessages {
        hook_inbox(&self.served.files_of(&self.owner.id()).run_dir(self.generation))
    }
}

/// The messages for the hooks of a session, among the files of its run.
pub(crate) fn hook_inbox(run: &Path) -> HookMessages {
    HookMessages::at(run.join("mail"))
}

impl EffectPerformer {
    /// Whether a program wakes its model: asked of the program itself, before its session starts.
    pub(super) fn waking(&self, program: &str, tree: &Path) -> RewakeSupport {
        let path = (self.environment)("PATH");
        let Some(found) = pointsman_adapters::process::find_program(program, path.as_deref(), tree) else {
            return RewakeSupport::Unknown;
        };
        // A program of the tree is the branch's own and runs only inside, and nothing of the tree speaks for another one.
        if found.starts_with(tree) {
            return RewakeSupport::Unknown;
        }
        let mut run = Run::new(found).untrusted().args(["--version"]).cwd("/").time_limit(VERSION_LIMIT);
        for name in ["PATH", "HOME"] {
            if let Some(value) = (self.environment)(name) {
                run = run.env(name, value);
            }
        }
        match run.finish() {
            Ok(told) if told.end.success() && status::wakes(&String::from_utf8_lossy(&told.stdout)) => {
                RewakeSupport::Able
            }
            Ok(_) => RewakeSupport::Unknown,
            Err(error) => {
                tracing::warn!(program, %error, "its version is not known; it is not woken through hooks");
                RewakeSupport::Unknown
            }
        }
    }

    /// Gives a message to a session of Claude Code, by the best way that is open.
    pub(super) fn hand_over(&self, message: &OutgoingMessage<'_>) -> Result<Sent, EffectError> {
        if message.running.dead {
            return Ok(Sent::Dead);
        }
        if message.running.epoch != message.epoch() {
            return Ok(Sent::StaleEpoch);
        }
        let standing = self.standing(message);
        if let Some((what, picture)) = self.dialog(message, standing.as_ref())? {
            return Ok(self.ask(message, &what, picture));
        }
        let (person, heard) =
            (message.headline.is_from_a_person(), self.is_heard(message.owner, message.generation)?);
        if !person && !heard && message.served.config.agent.require_hooks {
            // Not trusted to be supervised, or not started yet.
            return Ok(Sent::Refused);
        }
        if !person && heard {
            let hook_inbox = message.hook_inbox();
            hook_inbox.create()?;
            if let Some(sent) = post(&hook_inbox, message)? {
                return Ok(sent);
            }
            let socket = standing.and_then(|standing| standing.socket);
            if let Some(sent) = socket.and_then(|socket| send(&hook_inbox, message, Path::new(&socket))) {
                return Ok(sent);
            }
        }
        self.type_into(message)
    }

    /// Types a message into the prompt: looked at before the text, and again before Enter.
    ///
    /// Only between two turns, by what its hooks say, because a dialog may come up in the middle of one. Where they have
    /// said nothing, the screen decides.
    fn type_into(&self, message: &OutgoingMessage<'_>) -> Result<Sent, EffectError> {
        if !self.is_between_turns(message) {
            return Ok(Sent::Refused);
        }
        let typed = match self.find_prompt(message)? {
            Ok(typed) => typed,
            Err((what, picture)) => return Ok(self.ask(message, &what, picture)),
        };
        let mark = format!("[pointsman m-{}]", message.id);
        let (pane, epoch) = (message.pane, message.epoch());
        // An earlier try whose Enter was never taken still stands there.
        let sent = if typed.contains(&mark) {
            Sent::Sent
        } else {
            self.drivers.tmux.paste_message(pane, &epoch, message.operation, message.line)?
        };
        if !matches!(sent, Sent::Sent | Sent::Duplicate) {
            return Ok(sent);
        }
        let mut stood = false;
        for _ in 0..ENTERS {
            std::thread::park_timeout(ENTER_PAUSE);
            let picture = self.picture(message.pane)?;
            match screen::look(&picture) {
                Screen::Prompt(text) if screen::holds(&text, &mark) => {
                    if !self.is_between_turns(message) {
                        // It stays in the box, and goes when it is found there.
                        return Ok(Sent::Refused);
                    }
                    stood = true;
                    // Whatever of a dialog is not on the screen now must not be there when the key arrives.
                    let absent: Vec<&str> =
                        screen::KEYS.into_iter().filter(|key| !picture.contains(key)).collect();
                    self.drivers.tmux.press_enter_unless(pane, &epoch, &absent)?;
                }
                Screen::Prompt(_) if stood => break,
                Screen::Dialog(what) => return Ok(self.ask(message, &what, picture)),
                Screen::Prompt(_) | Screen::Unknown => {}
            }
        }
        Ok(sent)
    }

    fn is_between_turns(&self, message: &OutgoingMessage<'_>) -> bool {
        match self.stances.of(&message.session) {
            Some(Activity::AtPrompt) | None => true,
            // No hook reports that a person interrupted a turn; the program's own status does.
            Some(Activity::AtWork) => self.standing(message).is_some_and(|standing| standing.is_idle),
            Some(Activity::AtDialog { .. }) => false,
        }
    }

    /// What stands in the box to type into; else what is on the screen in its place, and a picture. A screen that stays
    /// unknown is a question for a person too.
    fn find_prompt(
        &self,
        message: &OutgoingMessage<'_>,
    ) -> Result<Result<String, (String, String)>, EffectError> {
        let deadline = Instant::now() + KNOWN_WITHIN;
        loop {
            let picture = self.picture(message.pane)?;
            match screen::look(&picture) {
                Screen::Prompt(typed) => return Ok(Ok(typed)),
                Screen::Dialog(what) => return Ok(Err((what, picture))),
                Screen::Unknown if Instant::now() >= deadline => {
                    return Ok(Err((words::reason::UNKNOWN_SCREEN.to_owned(), picture)));
                }
                Screen::Unknown => std::thread::park_timeout(LOOK_PAUSE),
            }
        }
    }

    /// The dialog that a session stands at. Nothing is given to it then: some ways would answer it, others close it.
    fn dialog(
        &self,
        message: &OutgoingMessage<'_>,
        standing: Option<&ClaudeStatus>,
    ) -> Result<Option<(String, String)>, EffectError> {
        let picture = self.picture(message.pane)?;
        let asks = match screen::look(&picture) {
            Screen::Dialog(what) => Some(what),
            Screen::Prompt(_) | Screen::Unknown => match self.stances.of(&message.session) {
                // It was announced, and may not be drawn yet.
                Some(Activity::AtDialog { what }) => Some(what),
                Some(Activity::AtWork | Activity::AtPrompt) | None => {
                    standing.and_then(|standing| standing.waits_for.clone())
                }
            },
        };
        Ok(asks.map(|what| (what, picture)))
    }

    /// A person is asked, once for each dialog; the message is held back.
    fn ask(&self, message: &OutgoingMessage<'_>, what: &str, picture: String) -> Sent {
        let (owner, generation) = (message.owner.id(), message.generation);
        tracing::info!(workflow = %owner, id = message.id, what, "held back: the agent waits at a dialog");
        let dedup = format!("dialog-{}-{what}", message.session);
        let seen = session::Event::DialogSeen { what: what.to_owned(), picture };
        let mut input = Input::of_session(owner, generation, seen);
        input.dedup = Some(dedup);
        self.jobs.inbox.tell(input);
        Sent::Refused
    }

    fn picture(&self, pane: &PaneId) -> Result<String, EffectError> {
        Ok(self.drivers.tmux.capture_screen(Target::Pane(pane))?.join("\n"))
    }

    /// Whether the session's hooks were heard: only then is there anybody to take a message, and to acknowledge it.
    fn is_heard(&self, owner: &Workflow, generation: u32) -> Result<bool, EffectError> {
        Ok(self.conversation(owner, generation)?.is_some())
    }

    fn conversation(&self, owner: &Workflow, generation: u32) -> Result<Option<String>, EffectError> {
        let id = owner.id();
        let name = conversation_name(&id.session(generation));
        Ok(self.read(|store| store.cursor(Some(id.project()), &name))?)
    }

    /// What the session says about itself.
    fn standing(&self, message: &OutgoingMessage<'_>) -> Option<ClaudeStatus> {
        let sessions = self.claude_home(message.served, message.owner, message.generation).join("sessions");
        let enclosed = message.served.files_of(&message.owner.id()).is_enclosed(message.generation);
        // Inside a sandbox it has a pid of its own, and no other session writes there.
        let pid = match enclosed {
            true => only_pid_in(&sessions)?,
            false => message.running.pid,
        };
        let bytes = phase_file::read_result_file(&sessions.join(format!("{pid}.json")), STANDING_BYTES);
        status::read(&String::from_utf8_lossy(&bytes.ok().flatten()?), pid)
    }

    /// Where a session of Claude Code keeps its things: its own directory, the shared one, or one that the configuration
    /// hands over.
    pub(super) fn claude_home(&self, served: &Served, owner: &Workflow, generation: u32) -> PathBuf {
        const NAME: &str = "CLAUDE_CONFIG_DIR";
        let settings = served.files_of(&owner.id()).agent_settings(generation);
        if settings.is_dir() {
            return settings;
        }
        let passed = served.config.agent.pass_env.iter().any(|name| name == NAME);
        let own = passed.then(|| (self.environment)(NAME)).flatten();
        own.map_or_else(|| self.paths.claude_config(), PathBuf::from)
    }

    /// The messages that the session's own record shows: a second witness beside its hooks.
    pub(super) fn shown(&self, served: &Served, owner: &Workflow, generation: u32) -> MessagesShown {
        let id = self.conversation(owner, generation).ok().flatten();
        let plain = |id: &String| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let Some(id) = id.filter(plain) else { return MessagesShown::default() };
        let kept = std::fs::read_dir(self.claude_home(served, owner, generation).join("projects"));
        let named = |dir: std::fs::DirEntry| dir.path().join(format!("{id}.jsonl"));
        let found = kept.into_iter().flatten().flatten().map(named).find(|path| path.is_file());
        let text = found.and_then(|path| phase_file::read_end(&path, TRANSCRIPT_BYTES).ok());
        transcript::messages_shown(&String::from_utf8_lossy(&text.unwrap_or_default()))
    }
}

/// The pid that the one session of this directory has, as it sees itself.
fn only_pid_in(sessions: &Path) -> Option<u32> {
    let names =
        std::fs::read_dir(sessions).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut pids = names.filter_map(|name| name.strip_suffix(".json")?.parse().ok());
    let pid = pids.next()?;
    pids.next().is_none().then_some(pid)
}

/// Offers a message to the hook that waits beside the session; none if no hook takes it.
fn post(hook_inbox: &HookMessages, message: &OutgoingMessage<'_>) -> Result<Option<Sent>, EffectError> {
    match hook_inbox.message_status(message.operation) {
        Some(HookMessageStatus::Taken | HookMessageStatus::Given) => return Ok(Some(Sent::Duplicate)),
        Some(HookMessageStatus::Withdrawn) => return Ok(None),
        Some(HookMessageStatus::Offered) => {}
        None if !hook_inbox.has_waiter() => return Ok(None),
        None => {}
    }
    hook_inbox.offer(message.operation, message.line)?;
    let deadline = Instant::now() + TAKING;
    while hook_inbox.message_status(message.operation) == Some(HookMessageStatus::Offered)
        && Instant::now() < deadline
    {
        std::thread::park_timeout(LOOK_PAUSE);
    }
    Ok((!hook_inbox.withdraw(message.operation)?).then_some(Sent::Sent))
}

/// Sends a message to the session's own socket; none if nobody listens there. What may have arrived counts as sent: the
/// acknowledgement decides.
fn send(hook_inbox: &HookMessages, message: &OutgoingMessage<'_>, path: &Path) -> Option<Sent> {
    let socket = match Socket::connect(path, message.running.pid) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::debug!(session = message.operation, %error, "no message socket");
            return None;
        }
    };
    match hook_inbox.give(message.operation) {
        Ok(true) => {}
        Ok(false) => return Some(Sent::Duplicate),
        Err(error) => {
            tracing::warn!(%error, "a message socket is not used: nothing could be written down before");
            return None;
        }
    }
    if let Err(error) = socket.send(message.line) {
        tracing::warn!(%error, "a message socket ended early");
    }
    Some(Sent::Sent)
}
