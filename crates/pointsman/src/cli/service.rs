//! The daemon as a service of the user's systemd.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use pointsman_adapters::login;
use pointsman_adapters::process::Run;
use pointsman_view::service::Service;

use super::context::Context;
use super::down;
use super::failure::{Code, Failure};

/// The name of the unit.
const UNIT: &str = "pointsman.service";
/// The longest that systemd may take: a daemon that stops finishes what it has begun.
const LIMIT: Duration = Duration::from_secs(90);
/// The variables by which systemctl finds the user's manager.
const INHERITED: [&str; 6] =
    ["PATH", "HOME", "USER", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS"];

/// Run the daemon as a systemd user service
///
/// The service runs as you, because your agents use your logins. It starts when you log in, or at boot if lingering is
/// on (sudo loginctl enable-linger).
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman service install\n  \
    pointsman service status\n  \
    pointsman service uninstall")]
pub(crate) enum Command {
    /// Write the unit, enable it and start it. A running daemon is stopped first; its sessions continue
    #[command(after_help = "Examples:\n  pointsman service install\n  pointsman service install --print")]
    Install {
        /// Only print the unit
        #[arg(long)]
        print: bool,
    },
    /// Stop the daemon, disable the unit and remove it; sessions continue
    #[command(after_help = "Example:\n  pointsman service uninstall")]
    Uninstall,
    /// Show whether the unit is installed, enabled and active
    #[command(after_help = "Example:\n  pointsman service status --json")]
    Status,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Install { print: true } => context.out.line(unit(context)?.trim_end()),
            Self::Install { print: false } => install(context),
            Self::Uninstall => uninstall(context),
            Self::Status => status(context),
        }
    }
}

fn install(context: &Context) -> Result<(), Failure> {
    context.people_only("installing a service")?;
    let (file, text) = (file()?, unit(context)?);
    // Before anything is written: without a manager there is nothing to install into.
    systemctl(&["show-environment"])?;
    let running = main_pid()?;
    if let Some(daemon) = context.running_daemon()?
        && running != Some(daemon.pid)
    {
        down::stop(context)?;
        context.out.say("The previous daemon has stopped. Its sessions continue.");
    }
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(&file, text)?;
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", UNIT])?;
    systemctl(&["restart", UNIT])?;
    context.out.say(format!("Wrote {}, enabled it and started it.", file.display()));
    if !lingers() {
        context.out.say(
            "note: the service stops when you log out. To keep it running, and to start it at boot: sudo loginctl enable-linger $USER",
        );
    }
    Ok(())
}

fn uninstall(context: &Context) -> Result<(), Failure> {
    context.people_only("removing a service")?;
    let file = file()?;
    if !file.exists() {
        return Err(Failure::not_found(format!("{} does not exist", file.display()))
            .hint("a unit from a package is removed together with the package"));
    }
    systemctl(&["disable", "--now", UNIT])?;
    std::fs::remove_file(&file)?;
    systemctl(&["daemon-reload"])?;
    context.out.say(format!("Stopped the daemon and removed {}. Sessions continue.", file.display()));
    Ok(())
}

fn status(context: &Context) -> Result<(), Failure> {
    let file = file()?;
    let is = |what: &str| systemctl(&[what, UNIT]).is_ok();
    let service = Service {
        unit: file.clone(),
        installed: file.exists(),
        enabled: is("is-enabled"),
        active: is("is-active"),
        lingers: lingers(),
    };
    if context.out.is_json() {
        return context.out.value(&service);
    }
    let yes = |is: bool| if is { "yes" } else { "no" };
    context.out.line(format!("unit       {}", file.display()))?;
    for (name, is) in [
        ("installed", service.installed),
        ("enabled", service.enabled),
        ("active", service.active),
        ("lingers", service.lingers),
    ] {
        context.out.line(format!("{name:<10} {}", yes(is)))?;
    }
    Ok(())
}

/// Restarts the service if the daemon with this process id is one; false if it is not.
pub(crate) fn restart_if_service(pid: u32) -> Result<bool, Failure> {
    // Where there is no systemd it cannot be one.
    if main_pid().ok().flatten() != Some(pid) {
        return Ok(false);
    }
    systemctl(&["restart", UNIT]).map(|_| true)
}

/// The unit for this program, this state directory and the programs that are found now.
fn unit(context: &Context) -> Result<String, Failure> {
    let program = std::env::current_exe()?;
    let state = context.paths.state().to_string_lossy().into_owned();
    let runtime = context.paths.runtime().to_string_lossy().into_owned();
    let search = Context::search_path().unwrap_or_default().to_string_lossy().into_owned();
    let environment: String =
        [("PATH", search), ("POINTSMAN_STATE_DIR", state), ("POINTSMAN_RUNTIME_DIR", runtime)]
            .iter()
            .map(|(name, value)| format!("Environment=\"{name}={}\"\n", escaped(value)))
            .collect();
    Ok(format!(
        "# Written by `pointsman service install`, which replaces it; `pointsman service uninstall` removes it.\n\
         [Unit]\n\
         Description=Pointsman, which keeps AI coding sessions on the rails\n\
         Documentation=man:pointsman(1)\n\n\
         [Service]\n\
         Type=exec\n\
         ExecStart=\"{}\" up\n\
         {environment}\
         Restart=on-failure\n\
         RestartSec=5\n\
         # Sessions outlive the daemon: a restart of the unit must not end them.\n\
         KillMode=process\n\
         # Limits for sessions are set in groups of our own below this unit.\n\
         Delegate=yes\n\n\
         [Install]\n\
         WantedBy=default.target\n",
        // In a command `$` begins a variable.
        escaped(&program.to_string_lossy()).replace('$', "$$")
    ))
}

/// A value between quotes in a unit, where `%` begins a specifier.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('\n', " ")
}

/// The unit's place among those of the user.
fn file() -> Result<PathBuf, Failure> {
    let home =
        Context::config_home().ok_or_else(|| Failure::failed("neither XDG_CONFIG_HOME nor HOME is set"))?;
    Ok(home.join("systemd/user").join(UNIT))
}

/// The process of the service, if it runs.
fn main_pid() -> Result<Option<u32>, Failure> {
    let shown = systemctl(&["show", UNIT, "--property=MainPID", "--value"])?;
    Ok(shown.trim().parse().ok().filter(|pid| *pid != 0))
}

/// Whether the user's manager goes on after the user has logged out.
fn lingers() -> bool {
    let name = login::name(rustix::process::getuid().as_raw());
    Path::new("/var/lib/systemd/linger").join(name).exists()
}

/// Asks the user's systemd, and answers what it prints.
fn systemctl(words: &[&str]) -> Result<String, Failure> {
    let unavailable = |why: String| {
        Failure::new(Code::Unavailable, format!("systemctl --user {}: {}", words.join(" "), why.trim()))
            .hint("this needs systemd with user services; without it, run `pointsman up --detach`")
    };
    let run =
        Run::new("systemctl").arg("--user").args(words.iter().copied()).inherit(&INHERITED).time_limit(LIMIT);
    let done = run.finish().map_err(|error| unavailable(error.to_string()))?;
    match done.end.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(unavailable(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}

/// A sentence if the running daemon is not this program: it was started before the program was replaced.
pub(crate) fn older_daemon(context: &Context) -> Option<String> {
    let daemon = context.running_daemon().ok().flatten()?;
    let ours = env!("CARGO_PKG_VERSION");
    let replaced = || {
        let program = std::fs::read_link(format!("/proc/{}/exe", daemon.pid)).ok()?;
        // The kernel says so of a program whose file is gone or was replaced.
        program.to_string_lossy().ends_with(" (deleted)").then_some(())
    };
    if daemon.version == ours && replaced().is_none() {
        return None;
    }
    let version = if daemon.version == ours {
        "an earlier build".to_owned()
    } else {
        format!("version {}", daemon.version)
    };
    Some(format!(
        "the daemon is {version} and this program is {ours}; to replace the daemon with this program, run \
            `pointsman up --replace`"
    ))
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_in_a_path_means_anything_to_systemd() {
        assert_eq!(escaped("/home/a b/%h/$(id)/\"x\"\\y\nz"), "/home/a b/%%h/$(id)/\\\"x\\\"\\\\y z");
    }
}
