//! Random attempts to leave a sandbox, the same for the same seed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::simulation::chance::Chance;

/// Where the attempts are aimed.
pub(super) struct Targets {
    /// Files with a secret.
    pub(super) secrets: Vec<PathBuf>,
    /// Directories in which something can be planted or destroyed; each has a victim for every attempt.
    pub(super) dirs: Vec<PathBuf>,
    /// Sockets of the daemon and of its tmux server.
    pub(super) sockets: Vec<PathBuf>,
    /// A socket that counts its visitors, with a path and without one.
    pub(super) unix_canary: PathBuf,
    pub(super) abstract_canary: String,
    /// A port of the loopback interface that counts its visitors, by TCP and UDP.
    pub(super) port: u16,
    /// A process that writes down the signals that it gets.
    pub(super) process: u32,
    pub(super) daemon: u32,
}

/// One attempt, as a line for `attempts.pl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) verb: &'static str,
    words: Vec<String>,
    /// Whether it may be made outside: it touches nothing but what the test made, and needs no sandbox around it.
    pub(super) harmless: bool,
}

/// The name of the file that an attempt may destroy.
pub(super) fn victim(attempt: usize) -> String {
    format!("victim-{attempt}")
}

/// The lines of a list of attempts; those that are not harmless are left out for a run outside.
pub(super) fn lines(attempts: &[Attempt], outside: bool) -> String {
    let mut text = String::new();
    for (at, attempt) in attempts.iter().enumerate().filter(|(_, attempt)| attempt.harmless || !outside) {
        let _ = writeln!(text, "{at}\t{}\t{}", attempt.verb, attempt.words.join("\t"));
    }
    text
}

/// So many attempts. Each kind is tried in turn; everything else about an attempt is left to chance.
pub(super) fn attempts(seed: u64, number: usize, targets: &Targets) -> Vec<Attempt> {
    let mut chance = Chance::new(seed);
    (0..number).map(|at| KINDS[at % KINDS.len()](&mut Making { chance: &mut chance, targets, at })).collect()
}

/// The link to the root directory of a process.
const ROOT: &str = "root";

struct Making<'m> {
    chance: &'m mut Chance,
    targets: &'m Targets,
    at: usize,
}

type Kind = fn(&mut Making<'_>) -> Attempt;

const KINDS: [Kind; 20] = [
    |making| making.read(),
    |making| making.destroy(),
    |making| making.address(),
    |making| making.call(),
    |making| making.signal(),
    |making| making.walk(),
    |making| making.plant(),
    |making| making.socket(),
    |making| making.mount(),
    |making| making.read(),
    |making| making.proxy(),
    |making| making.link(),
    |making| making.call(),
    |making| making.destroy(),
    |making| making.remount(),
    |making| making.address(),
    |making| making.signal(),
    |making| making.socket_family(),
    |making| making.list(),
    |making| making.call(),
];

fn attempt(verb: &'static str, words: &[&str], harmless: bool) -> Attempt {
    // A tab or a line break would make two words of one.
    assert!(!words.iter().any(|word| word.contains(['\t', '\n'])), "{words:?}");
    Attempt { verb, words: words.iter().map(|word| (*word).to_owned()).collect(), harmless }
}

impl Making<'_> {
    /// Another way to write the same path.
    fn spelled(&mut self, path: &Path) -> String {
        let path = path.to_str().expect("a test's own path is text").to_owned();
        let up = "../".repeat(self.chance.below(30) + 20);
        let Targets { process, daemon, .. } = self.targets;
        let below_root_of = |who: &str| format!("/proc/{who}/{ROOT}{path}");
        match self.chance.below(12) {
            0 => below_root_of("self"),
            1 => below_root_of("1"),
            2 => below_root_of(&daemon.to_string()),
            3 => below_root_of(&process.to_string()),
            4 => format!("/proc/{daemon}/cwd/{up}{}", &path[1..]),
            5 => format!("/proc/@pid@/cwd/{up}{}", &path[1..]),
            6 => format!("{up}{}", &path[1..]),
            7 => format!("/{path}"),
            8 => format!("/tmp/..{}", path.replace('/', "/./")),
            9 => format!("/usr/bin/../../dev/shm/{up}{}", &path[1..]),
            _ => path,
        }
    }

    fn secret(&mut self) -> PathBuf {
        self.chance.pick(&self.targets.secrets).clone()
    }

    fn dir(&mut self) -> PathBuf {
        self.chance.pick(&self.targets.dirs).clone()
    }

    fn read(&mut self) -> Attempt {
        let special = [
            format!("/proc/{}/environ", self.targets.process),
            format!("/proc/{}/environ", self.targets.daemon),
            format!("/proc/{}/cmdline", self.targets.process),
        ];
        if self.chance.one_in(6) {
            return attempt("read", &[&special[self.chance.below(special.len())]], true);
        }
        let secret = self.secret();
        attempt("read", &[&self.spelled(&secret)], true)
    }

    fn list(&mut self) -> Attempt {
        let dir = self.dir();
        attempt("list", &[&self.spelled(&dir)], true)
    }

    fn walk(&mut self) -> Attempt {
        let secret = self.secret();
        let from = *self.chance.pick(&["/", ".", "/proc/self/cwd", "/tmp", "/usr"]);
        let up = "../".repeat(self.chance.below(30) + 20);
        attempt("walk", &[from, &format!("{up}{}", &secret.to_string_lossy()[1..])], true)
    }

    fn link(&mut self) -> Attempt {
        let secret = self.secret();
        let path = self.spelled(&secret);
        let verb = *self.chance.pick(&["link", "symlink"]);
        attempt(verb, &[&path, &format!("linked-{}", self.at)], true)
    }

    /// Something that changes the victim of this attempt.
    fn destroy(&mut self) -> Attempt {
        let path = self.dir().join(victim(self.at));
        let path = self.spelled(&path);
        let verb = *self.chance.pick(&["write", "remove", "rename", "chmod", "truncate", "utime"]);
        match verb {
            "rename" => attempt(verb, &[&path, &format!("taken-{}", self.at)], true),
            _ => attempt(verb, &[&path], true),
        }
    }

    /// Something that adds to a directory.
    fn plant(&mut self) -> Attempt {
        let path = self.dir().join(format!("planted-{}", self.at));
        let verb = *self.chance.pick(&["create", "mkdir", "plant_link"]);
        attempt(verb, &[&self.spelled(&path)], true)
    }

    fn mount(&mut self) -> Attempt {
        let secret = self.secret();
        let (dir, name) = (secret.parent().unwrap_or(&secret), secret.file_name().unwrap_or_default());
        let dir = self.spelled(dir);
        let (to, name) = (format!("mounted-{}", self.at), name.to_string_lossy().into_owned());
        match self.chance.below(4) {
            0 => attempt("bind_mount", &["0", &dir, &to, &name], false),
            1 => attempt("move_mount", &[&dir, &to, &name], false),
            // In a mount namespace of its own nothing of it stays.
            _ => attempt("bind_mount", &["1", &dir, &to, &name], true),
        }
    }

    /// Never outside: there it would change the machine.
    fn remount(&mut self) -> Attempt {
        let dir = self.dir();
        match self.chance.below(4) {
            0 => attempt("remount", &["/usr", &format!("/usr/planted-{}", self.at)], false),
            1 => attempt("remount", &["/", &format!("/planted-{}", self.at)], false),
            2 => attempt("umount", &[&dir.to_string_lossy()], false),
            _ => attempt("pivot", &[], false),
        }
    }

    fn socket(&mut self) -> Attempt {
        let stream = "1";
        match self.chance.below(4) {
            0 => {
                let socket = self.chance.pick(&self.targets.sockets).clone();
                attempt("unix", &[&self.spelled(&socket), stream], true)
            }
            1 => attempt("unix", &[&format!("@{}", self.targets.abstract_canary), stream], true),
            _ => {
                let path = self.targets.unix_canary.clone();
                attempt("unix", &[&self.spelled(&path), stream], true)
            }
        }
    }

    fn address(&mut self) -> Attempt {
        let port = self.targets.port.to_string();
        let verb = *self.chance.pick(&["tcp", "tcp", "udp"]);
        let host = *self.chance.pick(&[
            "127.0.0.1",
            "127.0.0.1",
            "0.0.0.0",
            "::ffff:127.0.0.1",
            "127.1",
            "0177.0.0.1",
            "0x7f000001",
            "localhost",
        ]);
        attempt(verb, &[host, &port], true)
    }

    fn proxy(&mut self) -> Attempt {
        let port = self.targets.port;
        let host = *self.chance.pick(&[
            "127.0.0.1",
            "localhost",
            "LOCALHOST.",
            "2130706433",
            "0x7f.1",
            "[::ffff:127.0.0.1]",
            "[::1]",
            "user@127.0.0.1",
            "allowed.example.org@127.0.0.1",
            "169.254.169.254",
        ]);
        let ask = match self.chance.below(4) {
            0 => format!("GET http://{host}:{port}/"),
            1 => format!("GET http://allowed.example.org:{port}@{host}:{port}/"),
            2 => format!("CONNECT {host}:{port}/"),
            _ => format!("CONNECT {host}:{port}"),
        };
        attempt("proxy", &[&ask], false)
    }

    /// Sockets that the network namespace does not hold back.
    fn socket_family(&mut self) -> Attempt {
        let number = |chance: &mut Chance, from: usize| (from + chance.below(8)).to_string();
        match self.chance.below(3) {
            0 => {
                let machine = self.chance.pick(&["0", "1", "2"]).to_string();
                attempt("vsock", &[&machine, &self.targets.port.to_string()], false)
            }
            1 => attempt("raw", &["16", "3", &number(self.chance, 6)], false),
            _ => {
                // Bluetooth, crypto, tipc, packets, can and others.
                let family = *self.chance.pick(&["17", "21", "29", "30", "31", "38", "39", "44"]);
                attempt("raw", &[family, &number(self.chance, 1), "0"], false)
            }
        }
    }

    fn signal(&mut self) -> Attempt {
        let how = *self.chance.pick(&["plain", "plain", "thread", "queue", "descriptor", "group"]);
        // A daemon that gets one of these by mistake lives on.
        let quiet = ["18", "23", "28"];
        let (signal, pid) = match self.chance.below(4) {
            0 => (*self.chance.pick(&quiet), self.targets.daemon),
            _ => (*self.chance.pick(&["1", "2", "10", "12", "15", "18"]), self.targets.process),
        };
        attempt("kill", &[how, signal, &pid.to_string()], true)
    }

    /// A system call that no build needs, with arguments that would do something.
    fn call(&mut self) -> Attempt {
        let any = self.chance.below(1 << 16).to_string();
        let harmless: [&[&str]; 4] = [
            &["keyctl", "0", "-3", "0"],
            &["add_key", "user", "planted", "x", "1", "-3"],
            &["unshare", "268435456"],
            &["keyctl", "0", "-5", "1"],
        ];
        let inside: [&[&str]; 25] = [
            &["bpf", "0", &any, "64"],
            &["perf_event_open", &any, "0", "-1", "-1", "0"],
            &["userfaultfd", "0"],
            &["userfaultfd", "1"],
            &["io_uring_setup", "8", &any],
            &["io_uring_register", "0", "0", "0", "0"],
            &["kexec_load", "0", "0", "0", "0"],
            &["reboot", "1", "2", "3", "0"],
            &["init_module", &any, "10", ""],
            &["swapon", "/dev/null", "0"],
            &["settimeofday", "0", "0"],
            &["sethostname", "planted", "7"],
            &["acct", "0"],
            &["syslog", "3", &any, "0"],
            &["name_to_handle_at", "-100", "/", &any, &any, "0"],
            &["open_by_handle_at", "-100", &any, "0"],
            &["fanotify_init", "512", "0"],
            &["quotactl", "0", "/", "0", &any],
            &["fsopen", "tmpfs", "0"],
            &["fspick", "-100", "/", "0"],
            &["mount_setattr", "-100", "/", "0", &any, "32"],
            &["chroot", "/"],
            &["setns", "0", "0"],
            &["open_tree_attr", "-100", "/", "0", "0", "0"],
            &["ioctl", "0", "21522", "x"],
        ];
        match self.chance.below(3) {
            0 => attempt("call", harmless[self.chance.below(harmless.len())], true),
            _ => attempt("call", inside[self.chance.below(inside.len())], false),
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_attempts_and_another_one_others() {
    let targets = Targets {
        secrets: vec!["/home/ann/secret".into()],
        dirs: vec!["/home/ann".into()],
        sockets: vec!["/run/a.sock".into()],
        unix_canary: "/home/ann/canary.sock".into(),
        abstract_canary: "canary".to_owned(),
        port: 4000,
        process: 7,
        daemon: 8,
    };
    let made = attempts(1, 200, &targets);
    assert_eq!(made, attempts(1, 200, &targets));
    assert_ne!(made, attempts(2, 200, &targets));
    assert_eq!(made.len(), 200);
    let harmless = made.iter().filter(|attempt| attempt.harmless).count();
    assert!(harmless > 100, "most are made outside as well: {harmless}");
}
