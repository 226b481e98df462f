//! Our own directories, the database and the daemon.

use std::path::Path;
use std::time::Duration;

use pointsman_adapters::tmux::Server;
use pointsman_core::words;
use pointsman_store::{self as store, DaemonLock, Store, lock};

use super::{Check, chain};
use crate::backups;
use crate::cli::context::Context;
use crate::control::client;
use crate::control::protocol::Request;
use crate::daemon::clock;

/// Trees, mirrors and logs need room; with less than this a few tasks may fill the disk.
const FEW_BYTES: u64 = 1 << 30;

pub(super) fn checks(context: &Context) -> Vec<Check> {
    [
        directory(
            "state_dir",
            context.paths.state(),
            "set POINTSMAN_STATE_DIR to a directory that you can write",
        ),
        runtime(context),
        space(context.paths.state()),
        daemon(context),
        database(context),
        backups(context),
    ]
    .into_iter()
    .chain(snapshots(context))
    .chain(terminals(context))
    .collect()
}

/// The daemon's tmux server carries the mark by which its processes are known, if there is a server.
fn terminals(context: &Context) -> Option<Check> {
    const ID: &str = "tmux_mark";
    let server = Server::new(context.paths.tmux_socket(), context.paths.tmux_config()).ok()?;
    Some(match server.is_marked()? {
        true => Check::ok(ID, "the tmux server carries the mark no_new_privs"),
        false => Check::warn(ID, words::access::UNMARKED_TMUX, words::access::UNMARKED_TMUX_FIX),
    })
}

/// What is stored of tasks, runs, actions and roles can be read.
fn snapshots(context: &Context) -> Vec<Check> {
    const ID: &str = "unreadable";
    const FIX: &str = "start the version that wrote it, or restore a backup of the database";
    let Ok(store) = Store::open_for_command(&context.paths.database()) else { return Vec::new() };
    match store.unreadable() {
        Ok(found) if found.is_empty() => vec![Check::ok(ID, "every stored record can be read")],
        Ok(found) => found.iter().map(|one| Check::fail(ID, words::reason::unreadable(one), FIX)).collect(),
        Err(error) => vec![Check::fail(ID, chain(error), FIX)],
    }
}

/// A directory that is not there yet is fine if it can be made.
fn directory(id: &'static str, dir: &Path, fix: &str) -> Check {
    let nearest = nearest(dir);
    match tempfile::Builder::new().prefix(".pointsman-doctor-").tempfile_in(nearest) {
        Ok(_) if nearest == dir => Check::ok(id, format!("{} can be written", dir.display())),
        Ok(_) => Check::ok(id, format!("{} can be created", dir.display())),
        Err(error) => Check::fail(id, format!("{} cannot be written: {error}", nearest.display()), fix),
    }
}

fn runtime(context: &Context) -> Check {
    const ID: &str = "runtime_dir";
    const FIX: &str = "set POINTSMAN_RUNTIME_DIR to a short path of your own, such as /tmp/pm";
    let limit = pointsman_adapters::tmux::SOCKET_PATH_LIMIT;
    for socket in [context.paths.control_socket(), context.paths.tmux_socket()] {
        let length = socket.as_os_str().len();
        if length > limit {
            let detail =
                format!("{} has {length} bytes; a socket's path has at most {limit}", socket.display());
            return Check::fail(ID, detail, FIX);
        }
    }
    directory(ID, context.paths.runtime(), FIX)
}

fn space(dir: &Path) -> Check {
    const ID: &str = "disk";
    const FIX: &str = "free some space, or set POINTSMAN_STATE_DIR to a larger disk";
    match rustix::fs::statvfs(nearest(dir)) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let detail =
                format!("{:.1} GiB free on {}", free as f64 / (1u64 << 30) as f64, filesystem(nearest(dir)));
            if free < FEW_BYTES { Check::warn(ID, detail, FIX) } else { Check::ok(ID, detail) }
        }
        Err(error) => Check::warn(ID, format!("cannot inspect {}: {error}", dir.display()), FIX),
    }
}

/// The file system's name, from the longest mount point that holds the path.
fn filesystem(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let found = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind) = (fields.next()?, fields.next()?);
        path.starts_with(point).then_some((point.len(), kind))
    });
    found.max_by_key(|(length, _)| *length).map_or("an unknown file system", |(_, kind)| kind).to_owned()
}

fn daemon(context: &Context) -> Check {
    const ID: &str = "daemon";
    match client::look(&context.paths.control_socket(), &Request::Status) {
        Ok(_) => Check::ok(ID, "running"),
        Err(error @ client::Error::Silent) => {
            Check::fail(ID, error.to_string(), words::daemon::process::wake_silent())
        }
        Err(client::Error::Broken(error)) => Check::fail(
            ID,
            format!("it does not answer: {error}"),
            "read its log, then restart it with `pointsman down` and `pointsman up`",
        ),
        Err(client::Error::NotRunning) if !context.paths.lock().exists() => Check::ok(ID, "not running"),
        Err(client::Error::NotRunning) => match DaemonLock::acquire(&context.paths.lock()) {
            Ok(_) => Check::ok(ID, "not running"),
            Err(lock::Error::Held { pid_hint, .. }) => {
                let pid = pid_hint.map_or_else(String::new, |pid| format!(" by process {pid}"));
                let detail = format!(
                    "the lock is held{pid}, but no daemon answers: it is starting, stopping or \
                    hanging"
                );
                Check::warn(ID, detail, "wait a moment; if this persists, end that process")
            }
            Err(error @ lock::Error::File { .. }) => {
                Check::fail(ID, chain(error), format!("make {} yours", context.paths.lock().display()))
            }
        },
    }
}

fn database(context: &Context) -> Check {
    const ID: &str = "database";
    let path = context.paths.database();
    let look = || -> store::Result<String> {
        let store = Store::open_read_only(&path)?;
        let (projects, events) = (store.projects()?.len(), store.last_seq()?);
        Ok(format!("{} opens; projects: {projects}, events: {events}", path.display()))
    };
    match look() {
        Ok(detail) => Check::ok(ID, detail),
        Err(store::Error::Missing { .. }) => Check::ok(ID, "not created yet"),
        Err(error @ store::Error::TooOld { .. }) => Check::warn(ID, chain(error), "pointsman up"),
        Err(error @ store::Error::TooNew { .. }) => {
            Check::fail(ID, chain(error), "use the newer version of Pointsman that wrote it")
        }
        Err(error) => {
            Check::fail(ID, chain(error), "move the file away and restore a backup; nothing else is lost")
        }
    }
}

/// Whether there is a copy to go back to. A file that cannot be read is no copy.
fn backups(context: &Context) -> Check {
    const ID: &str = "backups";
    const OLD: Duration = Duration::from_secs(2 * 86_400);
    let listed = match backups::list(&context.paths) {
        Ok(listed) => listed,
        Err(error) => return Check::warn(ID, format!("{error:#}"), "pointsman backup FILE"),
    };
    let newest = listed.iter().find_map(|one| Some((one.content.as_ref().ok()?.made_at, &one.path)));
    let Some((made_at, path)) = newest else { return Check::ok(ID, words::backup::NONE) };
    let age = clock::now().since(made_at);
    let detail = words::backup::newest(age.as_secs() / 3600, path);
    if age < OLD { Check::ok(ID, detail) } else { Check::warn(ID, detail, "pointsman backup") }
}

fn nearest(dir: &Path) -> &Path {
    dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"))
}
