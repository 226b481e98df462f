//! Sentences about the sandbox: what is shown and why, what is missing and how to get it.

use crate::sandbox::{Outside, Purpose};

/// The reason why a place is visible inside.
pub fn purpose(why: Purpose) -> &'static str {
    match why {
        Purpose::System => "the system",
        Purpose::Temporary => "temporary files",
        Purpose::Home => "the home, without its files",
        Purpose::Programs => "programs",
        Purpose::Agent => "the program to run",
        Purpose::ThisProgram => "pointsman, for the commands of an agent",
        Purpose::Credential => "holds a credential",
        Purpose::Tree => "the working tree",
        Purpose::Gateway => "the gateway that takes pushes",
        Purpose::Messages => "messages to the agent",
        Purpose::RunFiles => "the files of this session",
        Purpose::PhaseDirectory => "the phase directory of this session",
        Purpose::Socket => "the control socket of this session",
        Purpose::AgentSettings => "the agent's settings for this session",
        Purpose::AgentLogin => "the agent's login",
        Purpose::Objects => "the history of the repository",
        Purpose::Mirror => "the repository that origin names",
        Purpose::Start => "the description of what to start",
        Purpose::Checkout => "the checkout to test",
        Purpose::Result => "the file for the answer",
    }
}

/// The reason why something runs outside, as the end of a sentence.
pub fn outside(why: &Outside) -> String {
    match why {
        Outside::Off => "sandbox.mode is \"off\"".to_owned(),
        Outside::Linked => "dev.worktree is \"linked\", so the session writes to the mirror".to_owned(),
        Outside::Missing => "bubblewrap is not installed".to_owned(),
        Outside::AppArmor => "AppArmor does not let bubblewrap make user namespaces".to_owned(),
        Outside::NoNamespaces => "the kernel does not let this user make user namespaces".to_owned(),
        Outside::Broken { why } => format!("bubblewrap does not work here: {why}"),
    }
}

/// The way to get a sandbox.
pub fn fix(why: &Outside) -> &'static str {
    match why {
        Outside::Off => "remove `mode` from [sandbox] in pointsman.toml",
        Outside::Linked => "set dev.worktree to \"private\"",
        Outside::Missing => "install the package bubblewrap (on Debian and Ubuntu: apt install bubblewrap)",
        Outside::AppArmor => {
            "give bubblewrap alone the permission: write `abi <abi/4.0>, include <tunables/global> \
             profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }` to /etc/apparmor.d/bwrap, then run \
             `systemctl reload apparmor`"
        }
        Outside::NoNamespaces => {
            "allow user namespaces for this user or container (user.max_user_namespaces above 0; in a container, \
             a seccomp profile that permits unshare)"
        }
        Outside::Broken { .. } => {
            "bubblewrap itself must work first: bwrap --unshare-user --unshare-pid --ro-bind / / true"
        }
    }
}

/// The sandbox works.
pub fn works(version: &str) -> String {
    format!("sessions, CI and gates run inside a sandbox ({version})")
}

/// Refused because of `sandbox.mode = "require"`.
pub fn required(why: &Outside) -> String {
    format!("sandbox.mode is \"require\", and {}. To fix it, {}", outside(why), fix(why))
}

/// The warning when a daemon starts, or a project is set up, without a sandbox.
pub fn warning(why: &Outside) -> String {
    format!(
        "no sandbox: {}. Agents and CI run with all rights of this user. To fix it, {}",
        outside(why),
        fix(why)
    )
}

/// The number of live sessions outside, for `status`.
pub fn sessions_outside(names: &[String]) -> String {
    format!("outside the sandbox: {}", names.join(", "))
}

/// The enforcer of the limit on processes.
pub fn processes_enforced(is_root: bool) -> &'static str {
    match is_root {
        false => "the kernel, for all processes inside together (RLIMIT_NPROC)",
        true => "nothing: the kernel exempts root from this limit",
    }
}

/// What enforces the limit on memory.
pub const MEMORY_ENFORCED: &str = "the kernel, for each process by itself (RLIMIT_DATA)";

/// What enforces the limit on disk space.
pub const DISK_ENFORCED: &str = "the kernel, for each temporary file system; the working tree has no limit";

/// The network of a sandbox, for `sandbox show`.
pub const NETWORK: &str = "the network of the machine: every host and every local port can be reached";
