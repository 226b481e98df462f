//! Sentences about the sandbox: what is shown and why, what is missing and how to get it.

use std::path::Path;

use crate::sandbox::network::Refusal;
use crate::sandbox::network::registries::Registry;
use crate::sandbox::{Outside, Purpose};
use crate::text::clean_line;

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
        Purpose::Ours => "contains Pointsman's own state",
        Purpose::Tree => "the working tree",
        Purpose::Gateway => "the gateway that takes pushes",
        Purpose::Messages => "messages to the agent",
        Purpose::RunFiles => "the files of this session",
        Purpose::PhaseDirectory => "the phase directory of this session",
        Purpose::Socket => "the control socket of this session",
        Purpose::Network => "the socket of the proxy, the only way to the network",
        Purpose::Operator => "listed in the machine's configuration file",
        Purpose::AgentSettings => "the agent's settings for this session",
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
        Outside::Containers => {
            "the role has containers = true, and a container daemon starts programs outside any sandbox"
                .to_owned()
        }
        Outside::Missing => "bubblewrap is not installed".to_owned(),
        Outside::AppArmor => "AppArmor does not let bubblewrap create user namespaces".to_owned(),
        Outside::NoNamespaces => "the kernel does not let this user create user namespaces".to_owned(),
        Outside::Broken { why } => format!("bubblewrap does not work here: {why}"),
        Outside::Unclear { why } => format!("bubblewrap could not be tried: {why}"),
    }
}

/// The way to get a sandbox.
pub fn fix(why: &Outside) -> &'static str {
    match why {
        Outside::Off => "remove `mode` from [sandbox] in pointsman.toml",
        Outside::Linked => "set dev.worktree to \"private\"",
        Outside::Containers => "remove `containers` from [roles.<role>.sandbox] in pointsman.toml",
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
            "make bubblewrap itself work first: bwrap --unshare-user --unshare-pid --ro-bind / / true"
        }
        Outside::Unclear { .. } => {
            "wait until the machine has free resources again; Pointsman retries by itself"
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
        "no sandbox: {}. Agents and CI run with all the rights of this user. To fix it, {}",
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
pub const MEMORY_ENFORCED: &str = "the kernel, for each process separately (RLIMIT_DATA)";

/// What enforces the limit on disk space.
pub const DISK_ENFORCED: &str = "the kernel, for each temporary file system; the working tree has no limit";

/// The network of whatever runs outside, for `sandbox show`.
pub const NETWORK_SHARED: &str = "the network of the machine: every host and every local port can be reached";

/// The network of a sandbox, for `sandbox show`.
pub fn network(hosts: &[String], registries: &[Registry], is_relayed: bool) -> String {
    let mut said = vec!["a network of its own".to_owned()];
    if is_relayed {
        said.push("the model's API through a relay that adds the key".to_owned());
    }
    if !registries.is_empty() {
        let named: Vec<String> = registries.iter().map(registry).collect();
        said.push(format!("package registries: {}", named.join(", ")));
    }
    if !hosts.is_empty() {
        said.push(format!("through a proxy: {}", hosts.join(", ")));
    }
    match said.len() {
        1 => "a network of its own that leads nowhere, because no host is allowed".to_owned(),
        _ => said.join("; "),
    }
}

/// The offer of `init` and `project add`.
pub const OFFER_TO_LEARN: &str =
    "Run the tests once now, with an open network, to see which hosts they need? [Y/n]";

/// What `containers = true` means, for whoever accepts the setting.
pub const CONTAINERS_RUN_OUTSIDE: &str =
    "sessions of this role run outside the sandbox, with all the rights of this user";

/// The filter of system calls, for `sandbox show`.
pub fn syscalls(is_on: bool) -> &'static str {
    match is_on {
        true => "calls that no build needs are refused (seccomp)",
        false => {
            "not filtered: the kernel does not support filters, or Pointsman has none for this processor yet"
        }
    }
}

/// The rights of Landlock, for `sandbox show`.
pub fn landlock(version: Option<u32>) -> String {
    match version {
        Some(version) => format!("on as a second wall (version {version} of the kernel's interface)"),
        None => "not used: the kernel does not have it, or an old version".to_owned(),
    }
}

/// A path of the machine's file that is not absolute.
pub fn relative_path(path: &Path) -> String {
    format!("{} is not absolute", path.display())
}

/// An entry of a list of hosts that is none.
pub fn not_a_host(entry: &str) -> String {
    format!(
        "{:?} is not a host. Write a name (registry.example.org), all names below one (*.example.org), either with a port \
         (git.example.org:8443), an address with a port, a package registry (npm+https://packages.example.org/), or one of the words \"agent\" and \
         \"packages\"",
        clean_line(entry, 80)
    )
}

/// An entry of `private_hosts` that is none.
pub fn not_a_private_host(entry: &str) -> String {
    format!("{:?} is not a name and a port, such as git.lan:443", clean_line(entry, 80))
}

/// The machine's file cannot be read.
pub fn machine_file(path: &str, why: &str) -> String {
    format!("{path}: {why}")
}

/// The reason of a refusal, as the end of a sentence.
pub fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::Malformed => "the request has no host and port",
        Refusal::AddressLiteral => "addresses are not allowed, only names",
        Refusal::NotListed => "the host is not listed in sandbox.hosts or sandbox.ci_hosts",
        Refusal::Port => "the host is allowed, but not on this port",
        Refusal::PrivateAddress => "the name leads to an address of this machine or of a private network",
        Refusal::Unresolvable => "the name has no address",
        Refusal::Unreachable => "nothing accepts connections there",
        Refusal::NotPassed => "the relay does not forward this request",
        Refusal::ReadOnly => "package registries are read-only here",
    }
}

/// The body of a refusal, for the agent or the log of a build. It says what to do.
pub fn refused(destination: &str, why: Refusal) -> String {
    let what = if destination.is_empty() { "this request" } else { destination };
    let advice = match why {
        Refusal::Malformed => "Ask for http://host/path, or CONNECT host:port.",
        Refusal::AddressLiteral => "Use the name of the host.",
        Refusal::NotListed | Refusal::Port => {
            "Do not try to get around this. Work without it if you can. If the task needs it, say so in PHASE:escalate and \
             name the host: a person can add it to [sandbox] in pointsman.toml."
        }
        Refusal::PrivateAddress => {
            "Do not try to get around this. If the task needs it, say so in PHASE:escalate: a person can add it to \
             private_hosts in the machine's configuration file."
        }
        Refusal::Unresolvable | Refusal::Unreachable => "Check the name, or try again later.",
        Refusal::NotPassed => "Work without it.",
        Refusal::ReadOnly => {
            "Nothing is published from here. If the task is about a release, say so in PHASE:escalate."
        }
    };
    format!("Pointsman did not connect to {what}: {}.\n{advice}\n", refusal(why))
}

/// One destination that a session asked for in vain, for `session explain` and the log of CI.
pub fn refused_line(destination: &str, count: u64, why: Refusal, program: Option<&str>) -> String {
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let asked =
        program.map(|program| format!(" (asked for by {})", clean_line(program, 40))).unwrap_or_default();
    format!("the sandbox refused {destination} {times}: {}{asked}", refusal(why))
}

/// The reason why a red run of CI is nobody's fault: programs asked for hosts that are not listed, or a package registry was not there.
pub fn unlisted(destinations: &[String], programs: &[String]) -> String {
    let shown = |names: &[&String]| {
        let shown: Vec<String> = names.iter().take(8).map(|to| clean_line(to, 80)).collect();
        shown.join(", ")
    };
    let (registries, hosts): (Vec<&String>, Vec<&String>) =
        destinations.iter().partition(|to| Registry::parse(to).is_some());
    let programs: Vec<&String> = programs.iter().collect();
    let who = if programs.is_empty() { "it".to_owned() } else { shown(&programs) };
    let mut said = Vec::new();
    if !hosts.is_empty() {
        said.push(format!("{who} asked for {}, which the sandbox does not allow", shown(&hosts)));
    }
    if !registries.is_empty() {
        said.push(format!("{who} could not reach the package registry {}", shown(&registries)));
    }
    said.join("; ")
}

/// The name under which a request to a package registry is counted that was not passed on.
pub fn registry_request(method: &str, path: &str) -> String {
    format!("a package registry: {}", clean_line(&format!("{method} {path}"), 80))
}

/// A package registry, for lists of what may be reached.
pub fn registry(registry: &Registry) -> String {
    format!("{} ({} packages, for reading only)", registry.url, registry.tool.as_str())
}
