//! `notify-send`: the desktop of whoever runs the daemon.

use std::time::Duration;

use super::Error;
use crate::process::{End, Run};

/// How long it may take: it hands its words to the desktop and goes.
const LIMIT: Duration = Duration::from_secs(10);
/// How it finds the desktop.
const INHERITED: [&str; 8] = [
    "PATH",
    "HOME",
    "LANG",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

pub const PROGRAM: &str = "notify-send";

/// Shows a notice. Both texts become arguments: they must be our own words, never text from outside.
pub fn show(summary: &str, body: &str, urgent: bool) -> Result<(), Error> {
    let urgency = if urgent { "--urgency=critical" } else { "--urgency=normal" };
    let run = Run::new(PROGRAM)
        .args(["--app-name=pointsman", urgency, "--", summary, body])
        .inherit(&INHERITED)
        .time_limit(LIMIT);
    let failed = |how: String| Error::Desktop { how };
    let done = run.finish().map_err(|error| failed(error.to_string()))?;
    match done.end {
        End::Exited(0) => Ok(()),
        end => {
            let said = String::from_utf8_lossy(&done.stderr);
            let line = pointsman_core::text::clean_line(said.lines().next().unwrap_or_default(), 200);
            Err(failed(if line.is_empty() { end.to_string() } else { format!("{end}: {line}") }))
        }
    }
}
