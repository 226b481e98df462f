//! One line per trouble, in `hook.log` beside the state and on standard error, which Claude Code keeps for debugging.

use std::io::Write;

use pointsman_core::text::clean_line;

use crate::cli::time;
use crate::paths::Paths;

/// A log that nobody reads must not fill the disk.
const LARGEST: u64 = 1 << 20;
const LINE_CHARS: usize = 1000;

/// The log of one call.
pub(super) struct Log {
    event: String,
}

impl Log {
    pub(super) fn of(event: &str) -> Self {
        Self { event: event.to_owned() }
    }

    /// Writes a line. A log that cannot be written stops nothing.
    #[allow(clippy::disallowed_methods, reason = "a process begins here: the environment is its input")]
    pub(super) fn line(&self, text: &str) {
        let (event, text) = (clean_line(&self.event, 40), clean_line(text, LINE_CHARS));
        let _ = writeln!(std::io::stderr().lock(), "pointsman hook {event}: {text}");
        let Ok(paths) = Paths::from_env(|name| std::env::var_os(name)) else { return };
        let path = paths.hook_log();
        if path.metadata().is_ok_and(|meta| meta.len() > LARGEST) {
            let _ = std::fs::rename(&path, path.with_extension("log.1"));
        }
        let opened = || {
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir)?;
            }
            std::fs::OpenOptions::new().append(true).create(true).open(&path)
        };
        if let Ok(mut file) = opened() {
            let _ = file.write_all(format!("{} {event}: {text}\n", time::rfc3339(time::now())).as_bytes());
        }
    }
}
