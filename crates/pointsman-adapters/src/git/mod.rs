//! Git: all calls of the program.
//!
//! [`Git`] builds every call of the git program with the same environment and flags; nothing else in the workspace
//! runs it. The modules:
//!
//! * [`mirror`]: the daemon's own bare repository of a project; [`inspect`] asks it questions, [`history`] reads main
//!   back, [`push`] writes from it
//! * [`gateway`]: the bare repository an agent pushes to, [`tree`]: the working tree it gets
//! * [`capture`]: saving what is in a working tree without touching it or running anything of it, [`checkpoint`]: the
//!   same again and again while work goes on
//! * [`selection`]: a few files of a working tree as one commit
//! * [`candidate`]: the commits that are tested and landed, built without a working tree; [`changes`]: the paths they
//!   change, so that none lands that nobody asked for
//! * [`new_objects`]: everything that a push of a branch would send
//! * [`checkout`]: a clean tree of one commit for CI, [`bare`]: the embedded forge's repository
//! * [`local_checkout`]: the repository a person works in, [`rescue`]: captures and checkpoints, listed and restored
//!
//! What an agent can write is never the repository we run git *in*: we fetch from it by path, and the git that serves it runs in a
//! sandbox of its own ([`Reading`]), as does the one that reads a working tree. What a branch, a commit
//! or a push means for a task is not decided here.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pointsman_core::ids::Sha;

use crate::process::{End, Finished, Run, census};
use crate::retry::Retry;
use crate::sandbox::Reading;

mod account;
pub mod bare;
mod beside;
pub mod candidate;
pub mod capture;
pub mod changes;
pub mod checkout;
pub mod checkpoint;
mod commit;
mod error;
mod files;
pub mod gateway;
pub mod history;
mod incoming;
pub mod inspect;
pub mod layers;
pub mod local_checkout;
mod locks;
mod merge_tree;
pub mod mirror;
mod names;
pub mod new_objects;
mod older_git;
mod private_clone;
pub mod push;
mod refs;
pub mod rescue;
pub mod selection;
mod snapshot;
pub mod tree;
mod tree_index;
pub mod union;
mod version;
mod warm_index;

pub use account::Account;
pub use error::Error;
pub use locks::{Locks, clear_dead_locks, clear_stale_locks, list_locks, move_dead_locks};
pub use names::{BranchName, RefName};
pub use union::{BadGlob, UnionGlobs};
pub use version::Version;

/// Name and address on the commits that are made by the daemon itself.
pub const IDENTITY: &str = "Pointsman <pointsman@localhost>";

/// How long git may work on what is on this machine.
const LOCAL_LIMIT: Duration = Duration::from_secs(120);
/// How long git may talk to a remote.
const REMOTE_LIMIT: Duration = Duration::from_secs(600);
/// The most output that is taken for parsing; more is an error, never a truncated answer.
const PARSED_OUTPUT_CAP: usize = 64 << 20;

/// Configuration for every git of ours and for every git that ours starts. It is a file because `-c` does not reach
/// the `upload-pack` that a fetch by path starts.
const GLOBAL_CONFIG: &str = "\
# Written by Pointsman at every start; changes are lost.
[safe]
\t# Trees and gateways may belong to a sandbox user. Fetching from them runs nothing of theirs.
\tdirectory = *
[core]
\thooksPath = /dev/null
\tfsmonitor = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
[protocol \"ext\"]
\tallow = never
[user]
\tname = Pointsman
\temail = pointsman@localhost
[commit]
\tgpgSign = false
[gc]
\t# Trees and gateways borrow objects that only they refer to: nothing may ever be pruned behind their back.
\tauto = 0
[maintenance]
\tauto = false
[advice]
\tdetachedHead = false
\taddEmbeddedRepo = false
";

/// `-c` settings of every call. The file above loses against a repository's own configuration, these win.
const FORCED: [(&str, &str); 6] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("protocol.ext.allow", "never"),
    ("commit.gpgSign", "false"),
    ("maintenance.auto", "false"),
];

/// Environment of every call, beside the few variables that are handed on.
const ENVIRONMENT: [(&str, &str); 12] = [
    // Messages are shown to people and looked at by tests: one language.
    ("LC_ALL", "C"),
    // The machine's and the operator's configuration may name hooks, filters and helpers.
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // Nobody is there to answer.
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
    ("GIT_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    // Wins over every `protocol.*` setting: in particular no `ext::`, which runs a command.
    ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
    // A file name is a file name, never a pattern.
    ("GIT_LITERAL_PATHSPECS", "1"),
    // What a commit is does not depend on refs/replace.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // `refs` reads references as files.
    ("GIT_DEFAULT_REF_FORMAT", "files"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// Handed on from our own environment: to find git and ssh, and the operator's keys for a remote.
const INHERITED: [&str; 3] = ["PATH", "HOME", "SSH_AUTH_SOCK"];

/// The git program with our configuration. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Git {
    config: PathBuf,
    version: Arc<OnceLock<Version>>,
    account: Option<Account>,
    reader: Reader,
}

/// The sandbox in which git reads what agents write, found out when it is needed: none where no sandbox works, an error while
/// that is not clear.
type FindReading = dyn Fn() -> Result<Option<Reading>, String> + Send + Sync;

#[derive(Clone, Default)]
struct Reader(Option<Arc<FindReading>>);

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "inside" } else { "outside" })
    }
}

impl Git {
    /// Writes our git configuration into `dir`, which only the daemon may write, and returns the access to git.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let dir = files::absolute(dir)?;
        files::create_dir_all(&dir)?;
        let config = dir.join("gitconfig");
        files::write_atomic(&config, GLOBAL_CONFIG.as_bytes(), 0o600)?;
        Ok(Self { config, version: Arc::default(), account: None, reader: Reader::default() })
    }

    /// The same access, which reads repositories and trees of agents inside a sandbox.
    pub fn with_reading(
        mut self,
        find: impl Fn() -> Result<Option<Reading>, String> + Send + Sync + 'static,
    ) -> Self {
        self.reader = Reader(Some(Arc::new(find)));
        self
    }

    /// The words before a program that reads something an agent can write; none without a sandbox. The program sees our
    /// configuration and these paths, and may change what is in `write`.
    fn reading(
        &self,
        operation: &'static str,
        read: &[&Path],
        write: &[&Path],
        cwd: &Path,
    ) -> Result<Vec<OsString>, Error> {
        let Some(find) = &self.reader.0 else { return Ok(Vec::new()) };
        let unclear = |why: String| Error::Failed {
            operation,
            inputs: cwd.display().to_string(),
            end: End::Cancelled,
            stderr: why,
            retry: Retry::Later,
        };
        let Some(reading) = find().map_err(unclear)? else { return Ok(Vec::new()) };
        let mut read = read.to_vec();
        read.push(&self.config);
        Ok(reading.command(&read, write, cwd))
    }

    /// The same access, with an account for the remote.
    pub fn with_account(mut self, account: Account) -> Self {
        self.account = Some(account);
        self
    }

    /// Git processes of ours that are alive, of this daemon or of one that was killed.
    pub fn alive(&self) -> Vec<u32> {
        census::with_variable("GIT_CONFIG_GLOBAL", &self.config)
    }

    /// A call of one git command.
    fn call(&self, operation: &'static str) -> Call {
        let mut run = Run::new("git")
            .inherit(&INHERITED)
            .env("GIT_CONFIG_GLOBAL", self.config.as_os_str())
            .time_limit(LOCAL_LIMIT)
            .output_cap(PARSED_OUTPUT_CAP)
            .arg("--no-pager");
        for (name, value) in ENVIRONMENT {
            run = run.env(name, value);
        }
        let mut call = Call { run, operation, args: Vec::new(), retry: Retry::Never, started: false };
        for (key, value) in FORCED {
            call = call.config(key, value);
        }
        call
    }
}

/// One call of git, being put together.
struct Call {
    run: Run,
    operation: &'static str,
    args: Vec<OsString>,
    retry: Retry,
    /// The command's name has been given; what follows are its own arguments.
    started: bool,
}

impl Call {
    /// Forces a setting for this call.
    fn config(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        debug_assert!(!self.started, "settings come before arguments");
        let mut setting = OsString::from(key);
        setting.push("=");
        setting.push(value);
        self.run = self.run.arg("-c").arg(setting);
        self
    }

    /// Works on this repository and on no other that might be around.
    fn git_dir(mut self, dir: &Path) -> Self {
        let mut arg = OsString::from("--git-dir=");
        arg.push(dir);
        self.run = self.run.arg(arg);
        self
    }

    /// With the attributes of this tree instead of those of a working tree.
    fn attributes_of(mut self, revision: &str) -> Self {
        self.run = self.run.arg(format!("--attr-source={revision}"));
        self
    }

    /// With this working tree.
    fn work_tree(mut self, dir: &Path) -> Self {
        let mut arg = OsString::from("--work-tree=");
        arg.push(dir);
        self.run = self.run.arg(arg).cwd(dir);
        self
    }

    fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        if !self.started {
            self.run = self.run.arg(self.operation);
            self.started = true;
        }
        self.args.push(arg.as_ref().to_owned());
        self.run = self.run.arg(arg.as_ref());
        self
    }

    fn args<A: AsRef<OsStr>>(self, args: impl IntoIterator<Item = A>) -> Self {
        args.into_iter().fold(self, |call, arg| call.arg(arg))
    }

    fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.run = self.run.env(name, value);
        self
    }

    /// Puts a sandbox around the whole call. Comes last.
    fn behind(mut self, wrapper: Vec<OsString>) -> Self {
        self.run = self.run.behind(wrapper);
        self
    }

    fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.run = self.run.stdin(bytes);
        self
    }

    /// Talks to somebody else: takes longer, and a failure means `retry`.
    fn remote(mut self, retry: Retry) -> Self {
        self.run = self.run.time_limit(REMOTE_LIMIT);
        self.retry = retry;
        self
    }

    /// Runs it; any exit code will do, but it must have exited by itself and its output must be whole.
    fn finish(self) -> Result<Finished, Error> {
        self.finish_as(Output::Whole).map(|(done, _)| done)
    }

    /// Runs it and takes at most `cap` bytes of output, with a marker where something was left out.
    fn capped_text(mut self, cap: usize) -> Result<String, Error> {
        self.run = self.run.output_cap(cap);
        let (done, context) = self.finish_as(Output::Capped)?;
        context.success(done).map(|done| String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Runs it; it must succeed. Answers its output.
    fn bytes(self) -> Result<Vec<u8>, Error> {
        let (done, context) = self.finish_as(Output::Whole)?;
        context.success(done).map(|done| done.stdout)
    }

    /// Runs it; it must succeed. Answers its output as text without the last line break.
    fn text(self) -> Result<String, Error> {
        self.bytes().map(|bytes| String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// Runs it; it must succeed and print an object id.
    fn sha(self) -> Result<Sha, Error> {
        let (done, context) = self.finish_as(Output::Whole)?;
        let done = context.success(done)?;
        let text = String::from_utf8_lossy(&done.stdout);
        Sha::new(text.trim_end_matches('\n')).ok_or_else(|| context.unexpected("no object id"))
    }

    /// Runs it; it must succeed.
    fn ok(self) -> Result<(), Error> {
        self.bytes().map(drop)
    }

    /// Runs it as a question: exit code 0 is yes, 1 is no, anything else an error.
    fn yes(self) -> Result<bool, Error> {
        self.answer().map(|answer| answer.is_some())
    }

    /// Runs it as a question with an answer: exit code 0 gives its output without the last line break, 1 is none.
    fn answer(self) -> Result<Option<String>, Error> {
        let (done, context) = self.finish_as(Output::Whole)?;
        match done.end {
            End::Exited(0) => {
                Ok(Some(String::from_utf8_lossy(&done.stdout).trim_end_matches('\n').to_owned()))
            }
            End::Exited(1) => Ok(None),
            End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Cancelled => Err(context.failed(&done)),
        }
    }

    fn finish_as(mut self, output: Output) -> Result<(Finished, Context), Error> {
        if !self.started {
            self.run = self.run.arg(self.operation);
        }
        let context =
            Context { operation: self.operation, inputs: error::describe(&self.args), retry: self.retry };
        let done = self.run.finish().map_err(|source| Error::Run {
            operation: context.operation,
            inputs: context.inputs.clone(),
            source,
        })?;
        match done.end {
            End::Exited(_) => {}
            End::Signalled(_) | End::TimedOut | End::Cancelled => return Err(context.failed(&done)),
        }
        match output {
            Output::Whole if done.truncated => Err(context.unexpected("too much output")),
            Output::Whole | Output::Capped => Ok((done, context)),
        }
    }
}

#[derive(Clone, Copy)]
enum Output {
    Whole,
    Capped,
}

/// What an error tells about the call it comes from.
struct Context {
    operation: &'static str,
    inputs: String,
    retry: Retry,
}

impl Context {
    fn success(&self, done: Finished) -> Result<Finished, Error> {
        if done.end.success() { Ok(done) } else { Err(self.failed(&done)) }
    }

    fn failed(&self, done: &Finished) -> Error {
        let retry = match done.end {
            // It was stopped in the middle of whatever it did.
            End::Signalled(_) | End::TimedOut | End::Cancelled => Retry::LookFirst,
            End::Exited(_) => self.retry,
        };
        Error::Failed {
            operation: self.operation,
            inputs: self.inputs.clone(),
            end: done.end,
            stderr: error::excerpt(&done.stderr),
            retry,
        }
    }

    fn unexpected(&self, what: &'static str) -> Error {
        Error::Unexpected { operation: self.operation, inputs: self.inputs.clone(), what }
    }
}

#[cfg(test)]
mod tests;
