//! The end inside a sandbox: a port of its loopback interface that leads to the proxy's socket, for programs that know proxies only
//! by an address. It decides nothing.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pointsman_core::relay::ADDRESS;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::process::Run;

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
/// `services` are variables that name an address of the relay outside, with the path behind it.
pub fn start(
    program: &Path,
    socket: &Path,
    through: &[String],
    services: &BTreeMap<String, String>,
) -> io::Result<Vec<(String, String)>> {
    let listener = TcpListener::bind((ADDRESS, 0))?;
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
    Ok(set.chain(unset).chain(named).collect())
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
        let (stream, _) = match listener.accept() {
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
            if let Ok(proxy) = UnixStream::connect(&socket) {
                copy_both(&stream, &proxy);
            }
        })?;
    }
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
