//! The end inside a sandbox: a port of its loopback interface that leads to the proxy's socket, for programs that know proxies only
//! by an address. It decides nothing.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pointsman_core::relay::ADDRESS;
use pointsman_core::sandbox::network::registries::{Registry, cargo_file, variables};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::ASKED_BY;
use crate::process::Run;

/// The port, if it is free: caches of tools know packages by the address that they came from. Every sandbox has its own loopback
/// interface.
const PORT: u16 = 7179;
/// For the forwarder to leave its parent.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Variables that tell programs of a proxy. Some read one case, some the other.
const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// This sandbox itself: servers that a test starts.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Starts a forwarder beside whatever this process becomes. Answers the variables that lead to it. `through` are addresses of
/// loopback that are reached through the proxy and not inside.
/// `services` are variables that name an address of the relay outside, with the path behind it. `registries` have base addresses;
/// `cargo_home` is where cargo looks for its settings.
pub fn start(
    program: &Path,
    socket: &Path,
    through: &[String],
    services: &BTreeMap<String, String>,
    registries: &[Registry],
    cargo_home: Option<PathBuf>,
) -> io::Result<Vec<(String, String)>> {
    let listener = TcpListener::bind((ADDRESS, PORT)).or_else(|_| TcpListener::bind((ADDRESS, 0)))?;
    let address = format!("http://{}", listener.local_addr()?);
    // It starts the one that stays and ends: what we become has no child that it does not know.
    let run = Run::new(program).arg("forward").arg(socket).inherit(&["PATH"]).time_limit(START_LIMIT);
    let end = run.finish_with_input(Stdio::from(OwnedFd::from(listener))).map_err(io::Error::other)?;
    if !end.success() {
        return Err(io::Error::other(format!("the forwarder did not start: {end}")));
    }
    let is_through = |own: &str| through.iter().any(|host| host.starts_with(&format!("{own}:")));
    let own = OWN.into_iter().filter(|own| !is_through(own));
    let exceptions: Vec<&str> = own.chain([ADDRESS]).collect();
    let set = VARIABLES.iter().map(|name| ((*name).to_owned(), address.clone()));
    let unset = EXCEPTIONS.iter().map(|name| ((*name).to_owned(), exceptions.join(",")));
    let named = services.iter().map(|(name, path)| (name.clone(), format!("{address}{path}")));
    if let (Some(home), Some(settings)) = (cargo_home, cargo_file(registries, &address)) {
        // Without them cargo asks the registry itself, is refused, and a person is asked.
        let _ = write_new(&home, &settings);
    }
    Ok(set.chain(unset).chain(named).chain(variables(registries, &address)).collect())
}

/// Writes the settings of cargo, unless there are some: an operator may show a home with settings of its own.
fn write_new(home: &Path, settings: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(home)?;
    match File::create_new(home.join("config.toml")) {
        Ok(mut file) => file.write_all(settings.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Forwards what comes in on the socket that is our standard input, until the process that we were started for has ended: a sandbox
/// ends with the last process in it.
pub fn serve(listener: &TcpListener, socket: &Path, of: Pid) -> io::Result<()> {
    let command = match pidfd_open(of, PidfdFlags::empty()) {
        Ok(command) => Some(command),
        Err(Errno::SRCH) => return Ok(()),
        // An older kernel: whoever started the sandbox ends it.
        Err(_) => None,
    };
    listener.set_nonblocking(true)?;
    loop {
        let mut wanted = vec![PollFd::new(listener, PollFlags::IN)];
        wanted.extend(command.iter().map(|command| PollFd::new(command, PollFlags::IN)));
        match poll(&mut wanted, None) {
            Ok(_) if wanted.get(1).is_some_and(|command| !command.revents().is_empty()) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            // A program that gave up meanwhile is no reason to leave the others alone.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(error),
        };
        // An answer comes as a head and a body. Without this the body waits until the program has acknowledged the head: 40 ms.
        stream.set_nodelay(true)?;
        let socket = socket.to_owned();
        std::thread::Builder::new().name("forwarder".to_owned()).spawn(move || {
            // Whoever asked sees that the connection is closed.
            if let Ok(mut proxy) = UnixStream::connect(&socket) {
                let told = asker(peer).map(|name| format!("{ASKED_BY}{name}\r\n"));
                if told.is_none_or(|told| proxy.write_all(told.as_bytes()).is_ok()) {
                    copy_both(&stream, &proxy);
                }
            }
        })?;
    }
}

/// The name of the program at the other end of a connection. Refusals are told with it.
fn asker(peer: SocketAddr) -> Option<String> {
    let SocketAddr::V4(peer) = peer else { return None };
    // As the kernel writes it: the bytes of the address from the last to the first, then the port.
    let own = format!("{:08X}:{:04X}", u32::from_le_bytes(peer.ip().octets()), peer.port());
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let inode = table.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? == own).then(|| words.nth(7))?
    })?;
    let link = format!("socket:[{inode}]");
    let holds = |process: &Path| {
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets.any(|target| target.as_os_str() == link.as_str())
    };
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let mut numbered = processes.filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<u32>().is_ok())
    });
    let found = numbered.find(|process| holds(process))?;
    // What it calls itself is for people, and on one line.
    let name = fs::read_to_string(found.join("comm")).ok()?;
    Some(name.trim().chars().filter(|c| !c.is_control()).collect())
}

fn copy_both(program: &TcpStream, proxy: &UnixStream) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut from, mut to) = (proxy, program);
            let _ = io::copy(&mut from, &mut to);
            let _ = program.shutdown(Shutdown::Both);
        });
        let (mut from, mut to) = (program, proxy);
        let _ = io::copy(&mut from, &mut to);
        let _ = proxy.shutdown(Shutdown::Write);
    });
}
