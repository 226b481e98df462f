//! Reasons why the daemon does not start, and why a part of it gets no answer.

/// An effect whose code broke down.
pub fn panicked() -> &'static str {
    "a bug: it panicked"
}

/// The daemon's own program, which is needed to start sessions.
pub fn own_program_unknown() -> &'static str {
    "this program cannot find itself"
}

/// A daemon that is there and says nothing, to somebody who only reads.
pub fn silent() -> &'static str {
    "The daemon does not answer. This is what its database says."
}

/// The way to find out about such a daemon.
pub fn wake_silent() -> &'static str {
    "its process is stopped or hangs: look at its log, wake it (`kill -CONT PID`), or end it and run `pointsman up`"
}

/// A tmux that does not come up.
pub fn no_tmux() -> &'static str {
    "the tmux server cannot be started"
}

/// A loop that does not answer in time. Whoever asked tries again.
pub fn busy_or_stopping() -> &'static str {
    "the daemon is busy or stopping"
}

/// A loop that ended before it answered.
pub fn is_stopping() -> &'static str {
    "the daemon is stopping"
}

/// The proxy of the sandboxes does not start.
pub fn no_proxy() -> &'static str {
    "the network proxy of the sandbox cannot be used"
}

/// Layers that cannot be mounted.
pub fn no_layers() -> &'static str {
    "cannot mount the layers of the checkout"
}

/// The forwarder inside a sandbox does not start.
pub fn no_forwarder() -> &'static str {
    "the connection from the sandbox to the network proxy cannot be opened"
}

/// The rights of Landlock cannot be taken on, on a kernel that has it.
pub fn no_rights() -> &'static str {
    "the second wall of the sandbox (Landlock) cannot be built"
}

/// All work is halted, for `status` and the log. An empty name is nobody known.
pub fn halted(by: &str) -> String {
    let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
    format!("all work was halted{by}; nothing starts until `pointsman resume`")
}

/// An order that another kind of workflow gives.
pub fn not_its_effect(identity: &str, effect: &str) -> String {
    format!("{identity} cannot order {effect}")
}
