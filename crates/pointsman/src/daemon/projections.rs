//! `.claude/state/` in the user's checkout: identities and work states as files, for people and
//! scripts. The store is the truth; a file that somebody touched is written anew.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use pointsman_adapters::phase_file::Stamp;
use pointsman_adapters::projection;
use pointsman_core::ids::ProjectName;
use pointsman_store::{AgentRow, Store};
use serde_json::{Value, json};

use super::clock;

/// Changes that come close together are written together.
const PAUSE: Duration = Duration::from_millis(100);
/// Without any change the files are still looked at this often: somebody may have touched them.
const LOOK: Duration = Duration::from_secs(5);
/// Below the checkout.
const STATE: [&str; 2] = [".claude", "state"];

/// Wakes the writer.
#[derive(Clone)]
pub(crate) struct Projections {
    nudge: SyncSender<()>,
}

impl Projections {
    /// Starts the writer. It ends when the last handle is dropped.
    pub(crate) fn start(reader: Store) -> std::io::Result<Self> {
        let (nudge, nudged) = sync_channel::<()>(1);
        let mut writer = Writer { reader, written: BTreeMap::new() };
        std::thread::Builder::new().name("projections".to_owned()).spawn(move || {
            loop {
                match nudged.recv_timeout(LOOK) {
                    Ok(()) => std::thread::park_timeout(PAUSE),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                writer.write_all();
            }
        })?;
        Ok(Self { nudge })
    }

    /// Something changed.
    pub(crate) fn nudge(&self) {
        match self.nudge.try_send(()) {
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }
}

struct Writer {
    reader: Store,
    /// What was written where, and how the file looked then.
    written: BTreeMap<PathBuf, (Value, Stamp)>,
}

impl Writer {
    fn write_all(&mut self) {
        let (projects, agents) = match (self.reader.projects(), self.reader.agents(None, false)) {
            (Ok(projects), Ok(agents)) => (projects, agents),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(%error, "projections could not be read");
                return;
            }
        };
        let checkouts: BTreeMap<ProjectName, PathBuf> =
            projects.into_iter().map(|p| (p.name, p.checkout)).filter(|(_, c)| c.is_dir()).collect();
        for agent in agents {
            let Some(checkout) = checkouts.get(&agent.session.project) else { continue };
            let name = format!("{}.json", agent.session.identity);
            self.write(checkout, "identities", &name, identity(&agent));
            if let Ok(Some(work)) = self.reader.work_state(&agent.session.identity) {
                let mut value = serde_json::to_value(&work).unwrap_or_default();
                value["last_checkpoint_at"] = json!(clock::rfc3339(work.last_checkpoint_at));
                self.write(checkout, "hooks", &name, value);
            }
        }
    }

    fn write(&mut self, checkout: &std::path::Path, folder: &str, name: &str, value: Value) {
        let folders = [STATE[0], STATE[1], folder];
        let path = folders.iter().fold(checkout.to_owned(), |path, f| path.join(f)).join(name);
        if let Some((before, stamp)) = self.written.get(&path)
            && *before == value
            && projection::stamp(&path) == Some(*stamp)
        {
            return;
        }
        let mut text = serde_json::to_vec_pretty(&value).unwrap_or_default();
        text.push(b'\n');
        match projection::write(checkout, &folders, name, &text) {
            Ok(stamp) => {
                self.written.insert(path, (value, stamp));
            }
            Err(error) => tracing::warn!(path = %path.display(), %error, "a projection was not written"),
        }
    }
}

/// The identity file's schema.
fn identity(agent: &AgentRow) -> Value {
    let row = &agent.session;
    let name = row.identity.strip_prefix(&format!("{}-", row.role)).unwrap_or(&row.identity);
    json!({
        "role": row.role,
        "name": name,
        "session_id": row.session,
        "pid": row.pid,
        "tmux_session": row.tmux_session,
        "node_id": row.node_id,
        "bead_id": row.bead_id,
        "worktree_path": row.tree,
        "hook_path": row.hook_path,
        "created_at": clock::rfc3339(row.created_at),
        "last_seen": clock::rfc3339(row.last_seen),
        "status": row.status().name(),
        "predecessor_id": row.predecessor,
        "host": row.host,
        "generation": row.generation,
        "model": row.model,
    })
}
