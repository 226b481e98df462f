//! Objections to a command that an agent is about to run, for that agent.

pub const ENDS_OTHER_SESSIONS: &str =
    "other sessions live in a tmux server; end your own processes by their pid";
pub const OVERWRITES_DEVICE: &str = "it overwrites a device";
pub const FORMATS: &str = "it replaces what is there with a new file system";
pub const SHUTS_DOWN: &str = "it shuts this machine down";
pub const MOVES_OTHER_BRANCHES: &str = "it moves branches that are not yours; use `git push origin HEAD`";

/// A directory that nobody empties on purpose.
pub fn removes_everything(below: &str) -> String {
    format!("it removes everything below {below}")
}

/// A push to the branch that only the merge queue moves.
pub fn pushes_to_primary(primary: &str) -> String {
    format!("only the merge queue moves {primary}; push your own branch with `git push origin HEAD`")
}
