//! Failures of a command: an exit code, what is wrong, what to do next.

use std::fmt::Display;

use pointsman_adapters::{git, tmux};
use pointsman_core::config;
use pointsman_core::text::clean_block;
use pointsman_store as store;
use pointsman_view::failure as view;

use crate::control::protocol::FailureKind;
use crate::daemon::NotAPerson;
use crate::project;

/// Errors may quote outside text; more than this helps nobody.
const SHOWN_BYTES: usize = 4096;

/// The exit codes that scripts rely on. 0 is done, 2 wrong usage (also clap's), 130 interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Nobody reads our output any more: nothing went wrong.
    Done = 0,
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// The state does not allow it.
    Refused = 3,
    /// There is no such thing.
    NotFound = 4,
    /// The daemon is needed and not running.
    NoDaemon = 5,
    Configuration = 6,
    /// An outside service does not answer.
    Unavailable = 7,
    /// A signal ended it.
    Interrupted = 130,
}

/// A failure of a command: its exit code, its message and hints about what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    /// None: the exit code says it all.
    message: Option<String>,
    hints: Vec<String>,
}

impl Failure {
    /// A failure with this code and message.
    pub(crate) fn new(code: Code, message: impl Display) -> Self {
        Self { code, message: Some(message.to_string()), hints: Vec::new() }
    }

    /// A failure of the operation itself (exit code 1).
    pub(crate) fn failed(message: impl Display) -> Self {
        Self::new(Code::Failed, message)
    }

    /// A refusal, because the present state does not allow the order (exit code 3).
    pub(crate) fn refused(message: impl Display) -> Self {
        Self::new(Code::Refused, message)
    }

    /// A name or number that does not exist (exit code 4).
    pub(crate) fn not_found(message: impl Display) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// Only the exit code.
    pub(crate) fn silent(code: Code) -> Self {
        Self { code, message: None, hints: Vec::new() }
    }

    /// Adds what to do next.
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// The exit code that scripts see.
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// The kind of failure that the daemon would have answered with.
    pub(crate) fn kind(&self) -> FailureKind {
        match self.code {
            Code::Refused => FailureKind::Refused,
            Code::NotFound => FailureKind::NotFound,
            Code::NoDaemon => FailureKind::NoDaemon,
            Code::Configuration => FailureKind::Configuration,
            Code::Unavailable => FailureKind::Unavailable,
            Code::Done | Code::Failed | Code::Usage | Code::Interrupted => FailureKind::Failed,
        }
    }

    /// The message for people.
    pub(crate) fn message(&self) -> &str {
        self.message.as_deref().unwrap_or("it failed without a message")
    }

    /// Tells it on standard error; data goes to standard output, always.
    pub(crate) fn report(&self, json: bool) {
        let Some(message) = &self.message else { return };
        let message = clean_block(message, SHOWN_BYTES);
        if json {
            let hint = (!self.hints.is_empty()).then(|| self.hints.join("\n"));
            let told = view::Failure { error: message, hint };
            anstream::eprintln!("{}", serde_json::to_string(&told).unwrap_or_default());
            return;
        }
        let (red, cyan) = (super::style::ERROR, super::style::HINT);
        anstream::eprintln!("{red}error:{red:#} {}", message.trim_end());
        for hint in &self.hints {
            anstream::eprintln!("{cyan}hint:{cyan:#} {}", clean_block(hint, SHOWN_BYTES));
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        if let Some(held) = error.downcast_ref::<store::lock::Error>() {
            return held.into();
        }
        if let Some(refused) = error.downcast_ref::<NotAPerson>() {
            return Self::refused(refused.to_string());
        }
        if error.chain().any(|cause| matches!(cause.downcast_ref(), Some(tmux::Error::NoTmux))) {
            return Self::failed(format!("{error:#}"))
                .hint("install tmux 3.2 or newer (on Debian: apt install tmux)");
        }
        if let Some(invalid) = error.downcast_ref::<config::Error>() {
            return invalid.clone().into();
        }
        match error.downcast::<store::Error>() {
            Ok(error) => error.into(),
            Err(error) => Self::failed(format!("{error:#}")),
        }
    }
}

impl From<&store::lock::Error> for Failure {
    fn from(error: &store::lock::Error) -> Self {
        match error {
            store::lock::Error::Held { pid_hint, .. } => {
                let pid = pid_hint.map_or_else(String::new, |pid| format!(" (process {pid})"));
                Self::refused(format!("another pointsman holds this state directory{pid}"))
                    .hint("pointsman status")
            }
            store::lock::Error::File { source, .. } => Self::failed(format!("{error}: {source}")),
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        let code = match &error {
            store::Error::NotFound { .. } => Code::NotFound,
            store::Error::Exists(_) => Code::Refused,
            _ => Code::Failed,
        };
        let full = matches!(error, store::Error::Full { .. });
        let corrupt = matches!(error, store::Error::Corrupt { .. } | store::Error::Data { .. });
        let outdated = matches!(error, store::Error::TooOld { .. });
        let failure = Self::new(code, format!("{:#}", anyhow::Error::new(error)));
        match (full, corrupt, outdated) {
            (true, _, _) => {
                failure.hint("free some space on the disk; nothing was written and nothing is lost")
            }
            (_, true, _) => failure.hint("pointsman doctor"),
            (_, _, true) => failure.hint("pointsman up"),
            (false, false, false) => failure,
        }
    }
}

impl From<git::Error> for Failure {
    fn from(error: git::Error) -> Self {
        anyhow::Error::new(error).into()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::silent(Code::Done),
            _ => Self::failed(error),
        }
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        Self::new(Code::Configuration, error)
    }
}

impl From<project::Error> for Failure {
    fn from(error: project::Error) -> Self {
        match error {
            project::Error::Invalid(error) => error.into(),
            project::Error::Unreadable { .. } => {
                Self::new(Code::Configuration, format!("{:#}", anyhow::Error::new(error)))
            }
        }
    }
}

impl From<FailureKind> for Code {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Failed => Self::Failed,
            FailureKind::Refused => Self::Refused,
            FailureKind::NotFound => Self::NotFound,
            FailureKind::NoDaemon => Self::NoDaemon,
            FailureKind::Configuration => Self::Configuration,
            FailureKind::Unavailable => Self::Unavailable,
        }
    }
}
