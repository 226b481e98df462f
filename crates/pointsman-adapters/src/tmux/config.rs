//! The configuration file of the private server.

use std::io::Write;
use std::path::Path;

use super::Error;

/// Everything that differs from tmux's defaults, and why.
///
/// `-q` marks options that older releases do not know: an error in the file would greet the first person who attaches.
const CONFIG: &str = "\
# Written by pointsman at every start of the server; changes are lost.

# The server and its sessions outlive their clients, and a dead pane tells its exit status.
set-option -s exit-empty off
set-option -s exit-unattached off
set-option -g destroy-unattached off
set-option -g detach-on-destroy on
set-option -wg remain-on-exit on
set-option -wgq remain-on-exit-format ''

# Nothing flows from an attaching person's environment or clipboard to a session, or back.
set-option -g update-environment ''
set-option -s set-clipboard off
set-option -wgq allow-passthrough off
set-option -wg allow-rename off
set-option -wg automatic-rename off
set-option -g set-titles off

# Bounded memory: a few thousand lines per pane.
set-option -g history-limit 5000
set-option -s escape-time 0
set-option -s default-terminal screen-256color
set-option -g bell-action none

# A person who attaches can look, scroll and leave; no key kills, splits or renames.
unbind-key -aq -T prefix
bind-key -T prefix d detach-client
bind-key -T prefix [ copy-mode
bind-key -T prefix PPage copy-mode -u
bind-key -T prefix C-b send-prefix
bind-key -T prefix ? list-keys -T prefix
set-option -g prefix C-b
set-option -g status-interval 0
set-option -g status-left-length 80
set-option -g status-left '#{session_name}  (C-b d leaves, C-b [ scrolls) '
set-option -g status-right ''
set-option -wg window-status-format ''
set-option -wg window-status-current-format ''
";

/// Writes the file in one piece, so that a server started at the same moment never reads half of it.
pub(super) fn write(path: &Path) -> Result<(), Error> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut file =
        tempfile::NamedTempFile::new_in(dir).map_err(Error::io("create the tmux configuration"))?;
    file.write_all(CONFIG.as_bytes()).map_err(Error::io("write the tmux configuration"))?;
    file.persist(path)
        .map_err(|error| Error::Io { what: "replace the tmux configuration", source: error.error })?;
    Ok(())
}
