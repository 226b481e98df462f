//! Checks of the system: programs, and ways to be told what happens.

use std::sync::mpsc::channel;
use std::time::Duration;

use pointsman_adapters::git::Git;
use pointsman_adapters::process;
use pointsman_adapters::tmux::{self, Server};
use pointsman_adapters::watch::exits::ExitWatch;
use pointsman_adapters::watch::files::{FileEvent, FileWatch};
use pointsman_core::words;

use super::super::context::Context;
use super::{Check, Grade, chain};
use crate::init;

/// An event that does not come within this will not come.
const EVENT_LIMIT: Duration = Duration::from_secs(5);

pub(super) fn checks(terminals: bool) -> Vec<Check> {
    let tmux = [tmux_version(), tmux_server()].map(|check| if terminals { check } else { unneeded(check) });
    [git()].into_iter().chain(tmux).chain([inotify(), pidfd(), sandbox()]).collect()
}

/// A project without terminals works without tmux.
fn unneeded(check: Check) -> Check {
    match check.status {
        Grade::Fail => Check { status: Grade::Warn, ..check },
        Grade::Ok | Grade::Warn => check,
    }
}

fn git() -> Check {
    const ID: &str = "git";
    let version = || -> Result<String, String> {
        let scratch = tempfile::tempdir().map_err(chain)?;
        let git = Git::open(scratch.path()).map_err(chain)?;
        init::check_git(&git).map_err(|obstacle| obstacle.to_string())
    };
    match version() {
        Ok(version) => Check::ok(ID, format!("git {version}")),
        Err(error) => {
            Check::fail(ID, error, "install git 2.39 or newer (on Debian 12 or newer: apt install git)")
        }
    }
}

fn tmux_version() -> Check {
    const ID: &str = "tmux";
    const FIX: &str = "install tmux 3.2 or newer (on Debian: apt install tmux)";
    match tmux::version() {
        Ok(version) if version.is_supported() => Check::ok(ID, format!("tmux {}", version.text)),
        Ok(version) => Check::fail(ID, format!("tmux {} is too old", version.text), FIX),
        Err(error) => Check::fail(ID, chain(error), FIX),
    }
}

/// Starts a server as the daemon does, on a socket of its own, and ends it.
fn tmux_server() -> Check {
    const ID: &str = "tmux_server";
    let start = || -> anyhow::Result<()> {
        let scratch = tempfile::tempdir()?;
        let server = Server::new(scratch.path().join("tmux.sock"), scratch.path().join("tmux.conf"))?;
        let started = server.ensure_running();
        let ended = server.shut_down();
        started?;
        Ok(ended?)
    };
    match start() {
        Ok(()) => Check::ok(ID, "a private tmux server starts"),
        Err(error) => {
            Check::fail(ID, chain(error), "make tmux itself work first: tmux -L test new-session -d")
        }
    }
}

fn inotify() -> Check {
    const ID: &str = "inotify";
    let watch = || -> anyhow::Result<bool> {
        let scratch = tempfile::tempdir()?;
        let path = scratch.path().join("phase");
        let (told, events) = channel();
        let watch = FileWatch::start(move |event| {
            let _ = told.send(event);
        })?;
        watch.watch_dir(scratch.path())?;
        watch.register(&path);
        std::fs::write(&path, "PHASE:done\n")?;
        Ok(matches!(events.recv_timeout(EVENT_LIMIT), Ok(FileEvent::Changed(changed)) if changed == path))
    };
    const FIX: &str = "raise fs.inotify.max_user_instances and max_user_watches (sysctl); until then phases are noticed late";
    match watch() {
        Ok(true) => Check::ok(ID, "written files are noticed at once"),
        Ok(false) => Check::warn(ID, "a written file was not noticed", FIX),
        Err(error) => Check::warn(ID, chain(error), FIX),
    }
}

/// Builds a sandbox as the daemon does, around a program that does nothing.
fn sandbox() -> Check {
    const ID: &str = "sandbox";
    match Context::enclosure() {
        Ok(enclosure) => match enclosure.bubblewrap() {
            Ok(bubblewrap) => Check::ok(ID, words::sandbox::works(&bubblewrap.version)),
            Err(why) => Check::warn(ID, words::sandbox::outside(&why), words::sandbox::fix(&why)),
        },
        Err(error) => Check::warn(ID, chain(error), "/proc must be mounted"),
    }
}

fn pidfd() -> Check {
    const ID: &str = "pidfd";
    let watch = || -> anyhow::Result<()> {
        let watch = ExitWatch::start(|_| {})?;
        let me = std::process::id();
        let started =
            process::start_time(me).ok_or_else(|| anyhow::anyhow!("/proc does not show this process"))?;
        Ok(watch.watch("doctor", me, started)?)
    };
    match watch() {
        Ok(()) => Check::ok(ID, "ended processes are noticed at once"),
        Err(error) => Check::fail(ID, chain(error), "this needs Linux 5.3 or newer, with /proc"),
    }
}
