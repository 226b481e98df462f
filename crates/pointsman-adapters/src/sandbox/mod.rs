//! The sandbox as this machine can build it, with bubblewrap.
//!
//! [`Bubblewrap::probe`] finds out whether it works and, if not, the exact reason. [`Bubblewrap::command`] turns a plan of
//! the core into the words before a command. `facts.rs` looks at the machine, `reading.rs` has the smaller sandbox in which git reads what agents write, `walls.rs` has the filter of system calls and
//! Landlock. What is shown inside is decided in `pointsman_core::sandbox`.

mod facts;
mod layers;
mod reading;
mod walls;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman_core::sandbox::{Access, Limits, Network, Outside, Plan};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::process::{self, End, Run};

pub use facts::{credentials_below, look, places_of};
pub use layers::{LayeredCheckout, mount_layers};
pub use reading::Reading;
pub use walls::{landlock_version, open_filter, restrict};

/// A probe takes milliseconds; a machine under load gets the rest.
const PROBE_LIMIT: Duration = Duration::from_secs(20);
/// Of what bubblewrap says when it fails.
const WHY_CHARS: usize = 200;

/// What the C library says of a machine that is short of processes, memory or descriptors.
const OVERLOADED: [&str; 4] = [
    "Resource temporarily unavailable",
    "Cannot allocate memory",
    "Too many open files",
    "No space left on device",
];

/// The largest file that is copied into a sandbox instead of mounted.
const COPIED_BYTES: u64 = 256 << 10;
/// Stands for an empty file.
const NOTHING: &str = "/dev/null";
/// The option of bubblewrap for the filter of system calls.
const FILTER_OPTION: &str = "--seccomp";

/// The namespaces of every sandbox. Capabilities go as well: root could mount a read-only directory anew with them.
const ISOLATION: [&str; 7] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
];

/// The program that builds sandboxes, where it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bubblewrap {
    program: PathBuf,
    pub version: String,
    /// Whether the kernel takes the filter of system calls.
    pub filters: bool,
}

/// The process whose end ends a sandbox too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Its parent: the tmux server of a pane, the keeper of a turn.
    Parent,
    /// Nobody: whoever starts it ends its process group. The kernel takes the end of the thread that started a program for
    /// the end of its parent, and the daemon starts programs from threads that end.
    ProcessGroup,
}

impl Bubblewrap {
    /// Builds a sandbox as sessions get it, around a program that does nothing. `path` are the directories in which
    /// bubblewrap is looked for.
    pub fn probe(path: Option<&OsStr>) -> Result<Self, Outside> {
        let Some(program) = process::find_program("bwrap", path, Path::new("/")) else {
            return Err(Outside::Missing);
        };
        // With the mark that every session carries: a bubblewrap that needs its setuid bit fails with it.
        let probe = |words: &[OsString]| {
            let run = Run::new(&program).untrusted().args(words);
            // Without a PATH it would look nowhere.
            run.env("PATH", "/usr/bin:/bin").time_limit(PROBE_LIMIT).finish()
        };
        let works = |filter: Option<&File>| match probe(&with_file(probe_words(), FILTER_OPTION, 0, filter)) {
            Ok(done) if done.end.success() => Ok(()),
            Ok(done) => match done.end {
                End::Exited(_) => Err(reason(&String::from_utf8_lossy(&done.stderr))),
                // Somebody ended it: that says nothing about bubblewrap.
                End::Signalled(_) | End::TimedOut | End::Cancelled => {
                    Err(Outside::Unclear { why: done.end.to_string() })
                }
            },
            Err(error) => Err(Outside::Unclear { why: error.to_string() }),
        };
        let filter = open_filter().ok().flatten();
        let filters = match filter.as_ref().map(|filter| works(Some(filter))) {
            Some(Ok(())) => true,
            Some(Err(why)) if why.passes() => return Err(why),
            Some(Err(_)) | None => false,
        };
        if !filters {
            works(None)?;
        }
        let version =
            probe(&["--version".into()]).map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
        Ok(Self { program, version: version.unwrap_or_default(), filters })
    }

    /// The program at this path, which was found to work before.
    pub fn at(program: &Path) -> Self {
        Self { program: program.to_owned(), version: String::new(), filters: false }
    }

    /// The program itself.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The words that stand before a command to run it inside: bubblewrap itself, what it shows, where it begins.
    pub fn command(&self, plan: &Plan, cwd: &Path, lifetime: Lifetime) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.program.clone().into()];
        let mut say = |all: &[&OsStr]| words.extend(all.iter().map(|word| (*word).to_owned()));
        let w = OsStr::new;
        say(&ISOLATION.map(w));
        match plan.network {
            Network::Shared => {}
            Network::Proxy { .. } => say(&[w("--unshare-net")]),
        }
        if lifetime == Lifetime::Parent {
            say(&[w("--die-with-parent")]);
        }
        say(&[w("--proc"), w("/proc"), w("--dev"), w("/dev")]);
        for mount in &plan.mounts {
            let path = mount.path.as_os_str();
            let source = mount.source.as_ref().map_or(path, |source| source.as_os_str());
            match &mount.access {
                Access::Read => say(&[w("--ro-bind"), source, path]),
                Access::Write => say(&[w("--bind"), source, path]),
                Access::Link(target) => say(&[w("--symlink"), target.as_os_str(), path]),
                Access::Hidden => say(&[w("--ro-bind"), w(NOTHING), path]),
                // Made read-only below, after what is mounted in it.
                Access::Covered => say(&[w("--tmpfs"), path]),
                Access::Empty => {
                    if let Some(bytes) = plan.limits.disk {
                        say(&[w("--size"), w(&bytes.to_string())]);
                    }
                    say(&[w("--tmpfs"), path]);
                }
            }
        }
        for mount in plan.mounts.iter().filter(|mount| mount.access == Access::Covered) {
            say(&[w("--remount-ro"), mount.path.as_os_str()]);
        }
        // The directories on the way to what is mounted are nobody's: what is written there would be lost in silence.
        say(&[w("--remount-ro"), w("/"), w("--chdir"), cwd.as_os_str(), w("--")]);
        words
    }
}

/// The same words for a sandbox that writes its first process into `record`, before that one does anything.
pub fn recorded(words: Vec<OsString>, record: Option<&File>) -> Vec<OsString> {
    with_file(words, process::RECORD_OPTION, 1, record)
}

/// The same words for a sandbox in which the filter of system calls holds.
pub fn filtered(words: Vec<OsString>, filter: Option<&File>) -> Vec<OsString> {
    with_file(words, FILTER_OPTION, 1, filter)
}

/// The same words for a sandbox that has copies of the small files of `/etc` instead of a mount for each, which takes longer, and
/// empty files in place of hidden ones: a device that is mounted there can only be looked at. The files are inherited by the program
/// that this process becomes.
pub fn with_copies(words: Vec<OsString>) -> (Vec<OsString>, Vec<File>) {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (mut copied, mut files) = (Vec::with_capacity(words.len()), Vec::new());
    let mut at = 0;
    while at < words.len() {
        if let Some([option, from, to]) = words.get(at..at + 3)
            && at + 3 <= end
            && option == "--ro-bind"
            && let Some((option, file)) = copy_of(Path::new(from), Path::new(to))
        {
            copied.extend([option.into(), file.as_raw_fd().to_string().into(), to.clone()]);
            files.push(file);
            at += 3;
        } else {
            copied.push(words[at].clone());
            at += 1;
        }
    }
    (copied, files)
}

/// The option of bubblewrap that puts a copy in a place, and the file to copy.
fn copy_of(from: &Path, to: &Path) -> Option<(&'static str, File)> {
    let (option, is_copied) = match from == Path::new(NOTHING) {
        true => ("--ro-bind-data", true),
        false => ("--file", from == to && from.starts_with("/etc") && is_small_file(from)),
    };
    let file = is_copied.then(|| File::open(from).ok()).flatten()?;
    fcntl_setfd(&file, FdFlags::empty()).ok()?;
    Some((option, file))
}

fn is_small_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= COPIED_BYTES)
}

fn with_file(mut words: Vec<OsString>, option: &str, at: usize, file: Option<&File>) -> Vec<OsString> {
    if let Some(file) = file {
        words.splice(at..at, [option.into(), file.as_raw_fd().to_string().into()]);
    }
    words
}

/// A sandbox as sessions get it, around a program that does nothing.
fn probe_words() -> Vec<OsString> {
    let shown =
        ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/", "--unshare-net"];
    ISOLATION.into_iter().chain(shown).chain(["--", "true"]).map(OsString::from).collect()
}

/// The reason behind bubblewrap's own words, as far as the kernel's settings tell it.
fn reason(said: &str) -> Outside {
    let setting = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let is = |path: &str, value: &str| setting(path).as_deref() == Some(value);
    let namespaces = ["namespace", "uid map", "setting up"].iter().any(|word| said.contains(word));
    if namespaces && is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return Outside::AppArmor;
    }
    let refused = is("/proc/sys/kernel/unprivileged_userns_clone", "0")
        || is("/proc/sys/user/max_user_namespaces", "0")
        || said.contains("No permissions to creat") // its own spelling
        || said.contains("creating new namespace failed");
    if refused {
        return Outside::NoNamespaces;
    }
    let line = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    if OVERLOADED.iter().any(|words| said.contains(words)) {
        return Outside::Unclear { why: pointsman_core::text::clean_line(line, WHY_CHARS) };
    }
    Outside::Broken { why: pointsman_core::text::clean_line(line, WHY_CHARS) }
}

/// Whether a program has to set its limits itself, from inside: only there the kernel counts the processes of this sandbox.
pub fn has_limits(limits: &Limits) -> bool {
    let counts = limits.processes.is_some() && !rustix::process::geteuid().is_root();
    counts || limits.memory.is_some()
}

/// Limits this process and everything that it starts. A limit can only be lowered.
pub fn apply(limits: &Limits) -> rustix::io::Result<()> {
    let lower = |resource: Resource, to: Option<u64>| {
        let Some(to) = to else { return Ok(()) };
        let now = getrlimit(resource);
        let to = now.maximum.map_or(to, |most| most.min(to));
        setrlimit(resource, Rlimit { current: Some(to), maximum: Some(to) })
    };
    lower(Resource::Nproc, limits.processes.map(u64::from))?;
    lower(Resource::Data, limits.memory)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use pointsman_core::sandbox::{Access, Limits, Mount, Network, Outside, Plan, Purpose};

    use super::{Bubblewrap, Lifetime, reason, with_copies};

    #[test]
    fn a_plan_becomes_words_in_its_order() {
        let mount =
            |path: &str, access| Mount { path: path.into(), access, why: Purpose::System, source: None };
        let plan = Plan {
            mounts: vec![
                mount("/bin", Access::Link("usr/bin".into())),
                mount("/home/ann", Access::Empty),
                Mount { source: Some("/s/phases-1".into()), ..mount("/tmp", Access::Write) },
                mount("/usr", Access::Read),
                mount("/usr/ours", Access::Covered),
                mount("/usr/ours/tree", Access::Write),
            ],
            limits: Limits { disk: Some(1024), ..Limits::default() },
            network: Network::Proxy {
                socket: "/run/pointsman-proxy/proxy.sock".into(),
                through: Vec::new(),
                services: Default::default(),
                registries: Default::default(),
            },
        };
        let bubblewrap = Bubblewrap::at(Path::new("/usr/bin/bwrap"));
        let words = bubblewrap.command(&plan, Path::new("/tree"), Lifetime::Parent);
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        let mounts = words[words.iter().position(|w| *w == "/dev").unwrap() + 1..].join(" ");
        assert!(words.contains(&"--die-with-parent") && words.contains(&"ALL"), "{words:?}");
        assert!(words.contains(&"--unshare-net"), "{words:?}");
        assert_eq!(
            mounts,
            "--symlink usr/bin /bin --size 1024 --tmpfs /home/ann --bind /s/phases-1 /tmp --ro-bind /usr /usr \
             --tmpfs /usr/ours --bind /usr/ours/tree /usr/ours/tree --remount-ro /usr/ours --remount-ro / --chdir /tree --"
        );
    }

    #[test]
    fn small_files_of_etc_and_empty_ones_are_copied_and_nothing_else() {
        let words = [
            "bwrap",
            "--ro-bind",
            "/etc/passwd",
            "/etc/passwd",
            "--ro-bind",
            "/etc/ssl",
            "/etc/ssl",
            "--ro-bind",
            "/dev/null",
            "/etc/passwd",
            "--bind",
            "/etc/group",
            "/etc/group",
            "--ro-bind",
            "/etc/none",
            "/etc/none",
            "--",
            "--ro-bind",
            "/etc/passwd",
            "/etc/passwd",
        ];
        let (copied, files) = with_copies(words.iter().map(Into::into).collect());
        let [file, empty] = &files[..] else { panic!("{copied:?}") };
        let copied: Vec<&str> = copied.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(copied[..4], ["bwrap", "--file", &file.as_raw_fd().to_string(), "/etc/passwd"]);
        assert_eq!(copied[4..7], words[4..7]);
        assert_eq!(copied[7..10], ["--ro-bind-data", &empty.as_raw_fd().to_string(), "/etc/passwd"]);
        assert_eq!(copied[10..], words[10..]);
    }

    #[test]
    fn what_bubblewrap_says_is_kept_where_the_kernel_tells_nothing() {
        let why = reason("bwrap: Can't find source path /nowhere: No such file or directory\n");
        assert_eq!(
            why,
            Outside::Broken {
                why: "bwrap: Can't find source path /nowhere: No such file or directory".to_owned()
            }
        );
        let why = reason("bwrap: Can't fork for child: Resource temporarily unavailable\n");
        assert!(why.passes(), "{why:?}");
    }
}
