//! Whether a session of an agent with hooks was heard through its hooks, as `session explain`, `agents` and `doctor` tell it.

use pointsman_core::task::Task;
use pointsman_core::time::Timestamp;
use pointsman_store::{SessionRow, Store};
use pointsman_view::session::Hooks;

use super::failure::Failure;
use crate::daemon::conversation_name;
use crate::project::Project;

/// The state of a session's hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookStatus {
    Heard,
    /// Not yet, and it is early.
    Waiting,
    /// They should have been by now: the session is not trusted to be supervised.
    Silent,
}

impl HookStatus {
    /// Of this session; none if it is no live session of an agent with hooks that works on a task.
    pub(crate) fn of(
        store: &Store,
        project: &Project,
        row: &SessionRow,
        now: Timestamp,
    ) -> Result<Option<Self>, Failure> {
        let config = &project.config;
        let reports = config.agent_kind(Task::ROLE).capabilities().hooks;
        if row.ended_at.is_some() || row.issue.is_none() || !reports {
            return Ok(None);
        }
        let heard = store.cursor(Some(&row.project), &conversation_name(&row.session))?.is_some();
        let early = row.created_at.after(config.timing.hook_silence.duration()) > now;
        Ok(Some(match (heard, early) {
            (true, _) => Self::Heard,
            (false, true) => Self::Waiting,
            (false, false) => Self::Silent,
        }))
    }

    /// The state as scripts see it.
    pub(crate) fn view(self) -> Hooks {
        match self {
            Self::Heard => Hooks::Heard,
            Self::Waiting => Hooks::Waiting,
            Self::Silent => Hooks::Silent,
        }
    }

    /// The state as people read it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Heard => "its hooks report",
            Self::Waiting => "its hooks have not reported yet",
            Self::Silent => "its hooks have never reported, so Pointsman cannot supervise it",
        }
    }
}
