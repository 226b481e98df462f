use std::fs::{File, OpenOptions};
use std::io::IsTerminal;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use pointsman_adapters::secret::known;
use pointsman_core::sandbox::Place;
use pointsman_core::{text, words};
use pointsman_store::ProjectRow;

use super::context::Context;
use super::failure::{Code, Failure};
use super::{down, service, web};
use crate::control::client;
use crate::control::protocol::Request;
use crate::daemon;
use crate::project::Project;

/// With many tasks and a slow disk a start takes a while; this is far beyond it.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks whether it has started.
const LOOK: Duration = Duration::from_millis(20);
/// Of the log, when it did not start.
const LOG_LINES: usize = 20;

/// Start the daemon in the foreground; it prints `ready` when it is
///
/// One daemon serves all registered projects. Ctrl-C or SIGTERM stops the daemon and leaves sessions running; the next
/// daemon takes them over.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman up\n  pointsman up --detach && pointsman status && pointsman down\n  pointsman up --replace"
)]
pub(crate) struct Arguments {
    /// Move to the background once ready
    #[arg(long)]
    detach: bool,
    /// Replace a running daemon: it stops, and this program starts in its place, in the background
    ///
    /// Sessions continue. If the daemon is a service, the service is restarted.
    #[arg(long, conflicts_with = "detach")]
    replace: bool,
    /// Be the daemon in the background
    #[arg(long, hide = true, conflicts_with_all = ["detach", "replace"])]
    background: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("starting the daemon")?;
        if self.background {
            // Away from the terminal, whose end must not be ours.
            rustix::process::setsid().map_err(std::io::Error::from)?;
            return serve(context);
        }
        if self.replace {
            return replace(context);
        }
        if client::ask(&context.paths.control_socket(), &Request::Status).is_ok() {
            return match self.detach {
                true => {
                    context.out.say("The daemon is already running.");
                    if let Some(notice) = service::older_daemon(context) {
                        context.out.say(format!("note: {notice}"));
                    }
                    Ok(())
                }
                false => Err(Failure::refused("the daemon is already running").hint("pointsman status")),
            };
        }
        context.paths.create()?;
        // A project that is found here is served from the start; what is wrong with it is told here, not in a log.
        // The state of an earlier version cannot be read before the daemon has converted it; its projects are registered there.
        if !context.is_outdated() {
            context.project_if_any()?;
        }
        if self.detach { detach(context) } else { serve(context) }
    }
}

/// Starts this program in the place of the daemon that runs; without one it only starts.
fn replace(context: &Context) -> Result<(), Failure> {
    if let Some(daemon) = context.running_daemon()? {
        if service::restart_if_service(daemon.pid)? {
            context.out.say("The service was restarted with this program.");
            return Ok(());
        }
        down::stop(context)?;
        context.out.say(format!("The daemon with process id {} has stopped.", daemon.pid));
    }
    context.paths.create()?;
    detach(context)
}

fn serve(context: &Context) -> Result<(), Failure> {
    log_to_stderr(context.verbose, "info");
    Ok(daemon::run(&context.paths, daemon::Options::default())?)
}

/// Sends the daemon's log to standard error.
pub(crate) fn log_to_stderr(verbose: u8, least: &str) {
    let level = match verbose {
        0 => least,
        1 => "debug",
        _ => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("POINTSMAN_LOG").unwrap_or_else(|_| {
        tracing_subscriber::EnvFilter::new(format!("warn,pointsman={level},pointsman_adapters={level}"))
    });
    let ansi = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    // A second subscriber in one process is refused; the first one does.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| MaskedStderr)
        .with_ansi(ansi)
        .with_target(false)
        .try_init();
}

/// The standard error without secrets that this process knows. The log writes each of its lines at once.
struct MaskedStderr;

impl std::io::Write for MaskedStderr {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        match known().mask_bytes(line) {
            Some(masked) => std::io::stderr().write_all(&masked)?,
            None => std::io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[allow(clippy::disallowed_methods, reason = "the daemon outlives this command, so it is not a run")]
fn detach(context: &Context) -> Result<(), Failure> {
    let log = open_log(context)?;
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.args(["--no-color", "up", "--background"]).args(vec!["-v"; usize::from(context.verbose)]);
    // A directory the daemon stands in could not be unmounted; relative paths of ours mean nothing to it.
    command.current_dir("/");
    command.env("POINTSMAN_STATE_DIR", context.paths.state());
    command.env("POINTSMAN_RUNTIME_DIR", context.paths.runtime());
    command.env_remove("POINTSMAN_CONFIG");
    let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
    let pid = child.id();
    wait_until_ready(context, child)?;
    context.out.say(format!(
        "The daemon runs as process {pid}; its log is {}.",
        context.paths.daemon_log().display()
    ));
    say_nobody_is_told(context)?;
    if std::io::stderr().is_terminal()
        && let Ok(link) = web::link(context)
    {
        context.out.say(words::web::link(&link.url));
    }
    say_unconfirmed(context)
}

/// Notices that go to the log alone reach nobody who does not look.
fn say_nobody_is_told(context: &Context) -> Result<(), Failure> {
    let config = |row: &ProjectRow| Project::load(&row.config_path).map(|project| project.config);
    let unheard = |row: &ProjectRow| config(row).is_ok_and(|config| !config.tells_anybody());
    if context.registered()?.iter().any(unheard) {
        context.out.say(format!("note: {}", words::page::NOBODY_IS_TOLD));
    }
    Ok(())
}

/// In the foreground the daemon's own log says this.
fn say_unconfirmed(context: &Context) -> Result<(), Failure> {
    let Some(store) = context.store()? else { return Ok(()) };
    let enclosure = Context::enclosure()?;
    for row in store.projects()? {
        if let Ok(project) = Project::load(&row.config_path) {
            let config = &project.config;
            let outside = match enclosure.place(&config.sandbox, config.dev.worktree) {
                Place::Outside(why) => Some(words::sandbox::warning(&why)),
                Place::Inside | Place::Nowhere(_) => None,
            };
            for warning in outside.into_iter().chain(enclosure.login_warning(config)) {
                context.out.say(format!("{}: {warning}", row.name));
            }
        }
        for kept in daemon::unconfirmed(&store, &row.name)? {
            context.out.say(words::decision::to_confirm(&row.name, &kept));
        }
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
fn wait_until_ready(context: &Context, mut child: Child) -> Result<(), Failure> {
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        if client::ask(&context.paths.control_socket(), &Request::Status).is_ok() {
            return Ok(());
        }
        if let Some(status) = child.try_wait()? {
            let log = std::fs::read(context.paths.daemon_log()).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).into_owned();
            let code = match status.code() {
                Some(3) => Code::Refused,
                Some(6) => Code::Configuration,
                Some(7) => Code::Unavailable,
                _ => Code::Failed,
            };
            let tail = text::tail_lines(&log, LOG_LINES);
            return Err(Failure::new(code, format!("the daemon did not start ({status}):\n{tail}"))
                .hint("pointsman doctor"));
        }
        if Instant::now() >= deadline {
            return Err(Failure::failed("the daemon has started but is not ready yet")
                .hint(format!("its log is {}", context.paths.daemon_log().display())));
        }
        std::thread::sleep(LOOK);
    }
}

/// A fresh log for each daemon, the one before kept beside it.
fn open_log(context: &Context) -> Result<File, Failure> {
    let path = context.paths.daemon_log();
    let _ = std::fs::rename(&path, path.with_extension("log.1"));
    Ok(OpenOptions::new().append(true).create(true).mode(0o600).open(path)?)
}
