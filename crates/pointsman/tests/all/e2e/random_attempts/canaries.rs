//! Canaries: things outside of a sandbox that notice whether somebody reached them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointsman_testkit::TestDaemon;

use super::generator::{Targets, victim};

/// Writes down every signal that it gets. The word `canary` is how an attempt knows it.
const LISTENER: &str = r#"
    open(my $file, ">>", $ARGV[0]) or die; select($file); $| = 1;
    for my $name (qw(HUP INT USR1 USR2 TERM CONT URG WINCH)) { $SIG{$name} = sub { print "$name\n" } }
    print STDOUT "ready\n"; STDOUT->flush; sleep 1000 while 1; # canary
"#;

/// All canaries of a world, and where they are.
pub(super) struct Canaries {
    pub(super) targets: Targets,
    /// One for each secret.
    pub(super) secrets: Vec<String>,
    process: Child,
    signals: PathBuf,
    tcp: Arc<AtomicUsize>,
    udp: Arc<AtomicUsize>,
    unix: Arc<AtomicUsize>,
    before: BTreeMap<PathBuf, Seen>,
    _listeners: Vec<UnixListener>,
}

/// What a file is like from outside.
type Seen = (u32, u64, i64, Vec<u8>);

impl Drop for Canaries {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Canaries {
    /// Puts canaries around a running daemon, with a victim for each of so many attempts in every directory.
    pub(super) fn place(daemon: &TestDaemon, attempts: usize) -> Self {
        let dirs = [
            daemon.path("home/canaries"),
            daemon.session_files(99).join("tree"),
            daemon.state().join("canaries"),
            daemon.path("elsewhere"),
        ];
        let mut secrets = Vec::new();
        let mut files = Vec::new();
        for (at, dir) in dirs.iter().enumerate() {
            fs::create_dir_all(dir).unwrap();
            let secret = format!("nightingale-{at}-{}", std::process::id());
            fs::write(dir.join("secret"), &secret).unwrap();
            files.push(dir.join("secret"));
            secrets.push(secret);
            for attempt in 0..attempts {
                fs::write(dir.join(victim(attempt)), "whole").unwrap();
            }
        }
        let signals = daemon.path("signals");
        let process = listener(&signals, &secrets[0]);
        let (port, tcp, udp) = network();
        let unix = Arc::new(AtomicUsize::new(0));
        let path = daemon.path("home/canaries/s");
        let abstract_canary = format!("pointsman-canary-{port}");
        let address = SocketAddr::from_abstract_name(&abstract_canary).unwrap();
        let listeners = vec![UnixListener::bind(&path).unwrap(), UnixListener::bind_addr(&address).unwrap()];
        for listener in &listeners {
            answer_on(listener.try_clone().unwrap(), Arc::clone(&unix));
        }
        let runtime = daemon.control_socket();
        let targets = Targets {
            secrets: files,
            dirs: dirs.to_vec(),
            sockets: vec![runtime.clone(), runtime.with_file_name("tmux.sock")],
            unix_canary: path,
            abstract_canary,
            port,
            process: process.id(),
            daemon: daemon.pid(),
        };
        let before = look(&targets.dirs);
        Self { targets, secrets, process, signals, tcp, udp, unix, before, _listeners: listeners }
    }

    /// Everything that was reached, as canaries outside and the report tell it. Empty if nothing was.
    pub(super) fn reached(&mut self, report: &str) -> Vec<String> {
        let mut found = Vec::new();
        for (secret, path) in self.secrets.iter().zip(&self.targets.secrets) {
            if report.contains(secret.as_str()) {
                found.push(format!("the secret in {}", path.display()));
            }
        }
        for (name, count) in [("tcp", &self.tcp), ("udp", &self.udp), ("unix", &self.unix)] {
            if count.load(Ordering::SeqCst) > 0 {
                found.push(name.to_owned());
            }
        }
        let after = look(&self.targets.dirs);
        let changed = self.before.iter().any(|(path, seen)| after.get(path) != Some(seen));
        if changed {
            found.push("victims".to_owned());
        }
        if after.keys().any(|path| !self.before.contains_key(path)) {
            found.push("planted".to_owned());
        }
        if !fs::read_to_string(&self.signals).unwrap_or_default().is_empty() {
            found.push("signals".to_owned());
        }
        if self.process.try_wait().unwrap().is_some() {
            found.push("a killed process".to_owned());
        }
        found
    }
}

#[allow(clippy::disallowed_methods, reason = "a process of this test that attempts are aimed at")]
fn listener(signals: &Path, secret: &str) -> Child {
    let mut process = Command::new("perl")
        .args(["-MIO::Handle", "-e", LISTENER])
        .arg(signals)
        .env("SECRET", secret)
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    process
}

/// A port that answers and counts, by TCP and UDP.
fn network() -> (u16, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tcp, udp) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&tcp);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nreached");
        }
    });
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let counted = Arc::clone(&udp);
    std::thread::spawn(move || {
        while socket.recv(&mut [0; 16]).is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, tcp, udp)
}

fn answer_on(listener: UnixListener, counted: Arc<AtomicUsize>) {
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(b"reached");
            let _ = stream.read(&mut [0; 16]);
        }
    });
}

fn look(dirs: &[PathBuf]) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    for dir in dirs {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let meta = entry.path().symlink_metadata().unwrap();
            let text = if meta.is_file() { fs::read(entry.path()).unwrap_or_default() } else { Vec::new() };
            seen.insert(entry.path(), (meta.permissions().mode(), meta.len(), meta.mtime(), text));
        }
    }
    seen
}
