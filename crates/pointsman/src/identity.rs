//! Rows of sessions as views: the same fields in the files below `.claude/state/` and on the command line.

use pointsman_core::session::budget::Spent;
use pointsman_store::{SessionRow, SessionStatus};
use pointsman_view::agent::{Identity, IdentityRole};
use pointsman_view::session::{Session, Status};
use pointsman_view::task::usd;

use crate::daemon::phases_of;

/// The identity of a session.
pub(crate) fn of(row: &SessionRow) -> Identity {
    Identity {
        role: IdentityRole::Agent(row.role),
        name: row.name().to_owned(),
        session_id: row.session.clone(),
        pid: row.pid,
        tmux_session: row.tmux_session.clone(),
        node_id: row.node_id.clone(),
        bead_id: row.bead_id.clone(),
        worktree_path: row.tree.clone(),
        hook_path: row.hook_path.clone(),
        created_at: row.created_at.into(),
        last_seen: row.last_seen.into(),
        status: status(row),
        predecessor_id: row.predecessor.clone(),
        host: row.host.clone(),
        generation: row.generation,
        model: row.model.clone(),
    }
}

/// A session as `session list` shows it.
pub(crate) fn session(row: &SessionRow) -> Session {
    let spent = spent(row);
    Session {
        session: row.session.clone(),
        role: row.role,
        task: row.issue,
        tmux_session: row.tmux_session.clone(),
        pid: row.pid,
        exit: row.exit,
        project: row.project.clone(),
        identity: row.identity.clone(),
        generation: row.generation,
        tree: row.tree.clone(),
        created_at: row.created_at.into(),
        last_seen: row.last_seen.into(),
        ended_at: row.ended_at.map(Into::into),
        acknowledges: row.acknowledges,
        predecessor: row.predecessor.clone(),
        cost_usd: usd(spent),
        tokens: spent.known_tokens(),
        token_classes: spent.known_classes(),
        turns: spent.turns,
        sandboxed: sandboxed(row),
    }
}

/// Whether a session runs, or ran, inside a sandbox, as its files show; none if they are gone.
pub(crate) fn sandboxed(row: &SessionRow) -> Option<bool> {
    let root = row.tree.as_deref()?.parent().filter(|root| root.is_dir())?;
    Some(phases_of(root, row.generation).is_dir())
}

/// The spending that a session has told. It ran: what it did not tell is unknown.
pub(crate) fn spent(row: &SessionRow) -> Spent {
    Spent { millis: 1, ..row.spent }
}

/// The status of a session in the seed's words.
pub(crate) fn status(row: &SessionRow) -> Status {
    match row.status() {
        SessionStatus::Starting => Status::Starting,
        SessionStatus::Active => Status::Active,
        SessionStatus::Terminated => Status::Terminated,
        SessionStatus::Crashed => Status::Crashed,
    }
}
