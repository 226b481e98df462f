//! The proxy itself: one listener for each sandbox, two threads for each connection.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pointsman_core::relay::{CredentialName, Unpassed};
use pointsman_core::sandbox::network::mirror::Address;
use pointsman_core::sandbox::network::{Destination, Permit, Policy, Refusal};
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};

use super::accounts::Accounts;
use super::message::Head;
use super::mirror::{Mirrors, is_mirrored};
use super::model::{CallOrigin, Next, Relay, own_path};
use super::request::{Kind, ProxyRequest, closing, parse, read_head};
use super::upstream::Connections;
use super::{ASKED_BY, CONTROL, LOCK, REFUSED, Refused, RefusedCount, SOCKET, SandboxDir};
use crate::phase_file;
use crate::secret::Secret;
use crate::unix_socket::bind_in;

/// For a program to say what it wants.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// For a server to take a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// Connections at a time, over all sandboxes and of one.
const MOST: usize = 1024;
const MOST_OF_ONE: usize = 256;
/// Between two looks whether anybody needs the proxy.
const LOOK: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// Without any sandbox the proxy goes; the daemon starts it again.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// A piece of what is copied.
const COPY_BYTES: usize = 64 << 10;
/// The name under which requests without a destination are counted.
const MALFORMED: &str = "a request";
/// The longest order of the daemon: it may hold a credential.
const ORDER_BYTES: u64 = 16 << 10;
/// The rest of a request that was answered before its end.
const LINGER_BYTES: usize = 64 << 20;
const LINGER_LIMIT: Duration = Duration::from_secs(5);
/// For the next call on a connection to the relay.
const NEXT_CALL_LIMIT: Duration = Duration::from_secs(60);
/// Of the name of a program that asks.
const PROGRAM_CHARS: usize = 40;
/// Different destinations that are counted for one sandbox.
const COUNTED: usize = 200;

/// Serves the sandboxes whose directories are below `dir`, until nobody needs it. Returns at once if another one does already.
/// `now` is the clock.
pub fn serve(dir: &Path, now: fn() -> Timestamp) -> io::Result<()> {
    let lock = File::create(dir.join(LOCK))?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let relay = Relay {
        accounts: Accounts::new(dir, now),
        connections: Connections::default(),
        held: AtomicU64::new(0),
        now,
    };
    let server = Arc::new(Server {
        dir: dir.to_owned(),
        open: Mutex::default(),
        connections: AtomicUsize::new(0),
        is_unwanted: AtomicBool::new(false),
        relay: Arc::new(relay),
        mirrors: Arc::new(Mirrors::new()?),
    });
    for entry in fs::read_dir(dir)?.flatten().filter(|entry| entry.path().is_dir()) {
        if let Some(name) = entry.file_name().to_str()
            && let Err(error) = server.open(name)
        {
            eprintln!("pointsman proxy: {name}: {error}");
        }
    }
    let control = bind_in(dir, CONTROL)?;
    let mut needed_at = Instant::now();
    while dir.is_dir() {
        if poll(&mut [PollFd::new(&control, PollFlags::IN)], Some(&LOOK))? > 0 {
            let (stream, _) = control.accept()?;
            if let Err(error) = server.answer(&stream) {
                eprintln!("pointsman proxy: {error}");
            }
        }
        if server.is_needed() {
            needed_at = Instant::now();
        } else if needed_at.elapsed() > IDLE_LIMIT || server.is_unwanted.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(())
}

struct Server {
    dir: PathBuf,
    open: Mutex<BTreeMap<String, Arc<Listener>>>,
    connections: AtomicUsize,
    /// The daemon goes, and no sandbox needed us then.
    is_unwanted: AtomicBool,
    relay: Arc<Relay>,
    mirrors: Arc<Mirrors>,
}

/// The listener of one sandbox.
struct Listener {
    name: String,
    dir: SandboxDir,
    relay: Arc<Relay>,
    mirrors: Arc<Mirrors>,
    socket: UnixListener,
    connections: AtomicUsize,
    /// The bytes of its requests to the model's API that are held at the moment.
    held: AtomicU64,
    refused: Mutex<Refused>,
}

impl Server {
    /// One order of the daemon: `open NAME`, `close NAME`, `learn CREDENTIAL VALUE`, `forget CREDENTIAL` or `end`.
    fn answer(self: &Arc<Self>, stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(HEAD_LIMIT))?;
        let mut line = String::new();
        BufReader::new(stream.take(ORDER_BYTES)).read_line(&mut line)?;
        // Somebody only looks whether we are there.
        if line.is_empty() {
            return Ok(());
        }
        let line = line.trim_end();
        // Whatever comes after the last order wants us again.
        self.is_unwanted.store(line == "end", Ordering::SeqCst);
        let done = match line.split_once(' ') {
            None if line == "end" => Ok(()),
            Some(("open", name)) => self.open(name),
            Some(("close", name)) => {
                self.close(name);
                Ok(())
            }
            Some(("learn", rest)) => self.learn(rest.split_once(' ')),
            Some(("forget", name)) => self.learn(Some((name, ""))),
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        };
        let mut stream = stream;
        match done {
            Ok(()) => stream.write_all(b"ok\n"),
            Err(error) => stream.write_all(format!("{error}\n").as_bytes()),
        }
    }

    fn learn(&self, told: Option<(&str, &str)>) -> io::Result<()> {
        let malformed = || io::Error::from(io::ErrorKind::InvalidInput);
        let (name, value) = told.ok_or_else(malformed)?;
        let name = CredentialName::named(name).ok_or_else(malformed)?;
        self.relay.accounts.learn(name, Secret::new(value));
        Ok(())
    }

    fn open(self: &Arc<Self>, name: &str) -> io::Result<()> {
        let malformed = || io::Error::from(io::ErrorKind::InvalidInput);
        let dir = SandboxDir::below(&self.dir, name).ok_or_else(malformed)?;
        dir.policy()?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.contains_key(name) {
            return Ok(());
        }
        let socket = bind_in(&dir.shown(), SOCKET)?;
        let refused = Mutex::new(dir.refused());
        let (own, relay, mirrors) = (name.to_owned(), Arc::clone(&self.relay), Arc::clone(&self.mirrors));
        let connections = AtomicUsize::new(0);
        let listener = Arc::new(Listener {
            name: own,
            dir,
            relay,
            mirrors,
            socket,
            connections,
            held: AtomicU64::new(0),
            refused,
        });
        open.insert(name.to_owned(), Arc::clone(&listener));
        let server = Arc::clone(self);
        std::thread::Builder::new().name("sandbox".to_owned()).spawn(move || server.listen(&listener))?;
        Ok(())
    }

    fn close(&self, name: &str) {
        let closed = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        if let Some(listener) = closed {
            // Wakes its thread.
            let _ = shutdown(&listener.socket, Shutdown::Both);
        }
        self.relay.accounts.close(name);
    }

    fn is_needed(&self) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|name, listener| {
            let there = listener.dir.shown().is_dir();
            if !there {
                self.relay.accounts.close(name);
                let _ = shutdown(&listener.socket, Shutdown::Both);
            }
            there
        });
        !open.is_empty() || self.connections.load(Ordering::SeqCst) > 0
    }

    fn listen(self: &Arc<Self>, listener: &Arc<Listener>) {
        while let Ok((stream, _)) = listener.socket.accept() {
            let (server, of) = (Arc::clone(self), Arc::clone(listener));
            let all = self.connections.fetch_add(1, Ordering::SeqCst);
            let own = listener.connections.fetch_add(1, Ordering::SeqCst);
            let served = std::thread::Builder::new().name("connection".to_owned()).spawn(move || {
                if all < MOST && own < MOST_OF_ONE {
                    // A connection that breaks is its program's to notice.
                    let _ = of.serve(&stream);
                }
                server.connections.fetch_sub(1, Ordering::SeqCst);
                of.connections.fetch_sub(1, Ordering::SeqCst);
            });
            if served.is_err() {
                self.connections.fetch_sub(1, Ordering::SeqCst);
                listener.connections.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl Listener {
    fn serve(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(HEAD_LIMIT))?;
        let Some((head, rest)) = read_head(&mut &*stream)? else { return Ok(()) };
        let (program, head) = asked_by(head);
        let program = program.as_deref();
        let first = Head::parse(&head);
        if let Some(first) = first.clone().filter(is_own) {
            return self.relay(stream, first, rest, program);
        }
        stream.set_read_timeout(None)?;
        let request = match parse(&head) {
            Ok(request) => request,
            Err(refusal) => return self.refuse(stream, None, refusal, program),
        };
        if let Some(policy) = self.mirrors_plainly(&request)
            && let Some(head) = first
        {
            return self.mirror_plainly(stream, &policy, &request.destination, &head, program);
        }
        let server = match self.connect(&request.destination, program) {
            Ok(server) => server,
            Err(refusal) => return self.refuse(stream, Some(&request.destination), refusal, program),
        };
        let plain = match request.kind {
            Kind::Tunnel => {
                (&*stream).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
                false
            }
            Kind::Plain(head) => {
                (&server).write_all(&head)?;
                true
            }
        };
        (&server).write_all(&rest)?;
        copy_both(stream, &server, plain)
    }

    /// Answers calls of the relay's own, as long as the program makes any.
    fn relay(
        &self,
        stream: &UnixStream,
        first: Head,
        rest: Vec<u8>,
        program: Option<&str>,
    ) -> io::Result<()> {
        let mut from = BufReader::with_capacity(COPY_BYTES, io::Cursor::new(rest).chain(stream));
        let mut head = first;
        loop {
            // Read each time: the daemon may have changed them.
            let (access, policy) = (self.dir.model_access(), self.dir.policy()?);
            stream.set_read_timeout(Some(NEXT_CALL_LIMIT))?;
            let path = own_path(head.request_line().1);
            if path.is_some_and(is_mirrored) {
                let connections = &self.relay.connections;
                let (next, refused) = self.mirrors.serve(connections, &policy, &head, None, stream)?;
                if let Some(refused) = refused {
                    self.count(&refused.asked, refused.why, program);
                }
                if next == Next::Close {
                    return linger(stream);
                }
                match Head::read(&mut from)? {
                    Some(another) if is_own(&another) => head = another,
                    Some(_) | None => return Ok(()),
                }
                continue;
            }
            let Some(access) = access else {
                return self.refuse(stream, None, Refusal::NotPassed, program);
            };
            let origin = CallOrigin {
                sandbox: &self.name,
                access: &access,
                private_hosts: &policy.private_hosts,
                held: &self.held,
            };
            let (next, unpassed) = self.relay.serve(&origin, &head, &mut from, stream)?;
            if let Some(why) = unpassed {
                self.count_unpassed(&head, &why, program);
            }
            if next == Next::Close {
                return linger(stream);
            }
            match Head::read(&mut from)? {
                Some(another) if is_own(&another) => head = another,
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// The policy, if a request without TLS is for a registry and for no listed host.
    fn mirrors_plainly(&self, request: &ProxyRequest) -> Option<Policy> {
        let is_plain = matches!(request.kind, Kind::Plain(_));
        let policy = self.dir.policy().ok().filter(|_| is_plain)?;
        let is_listed = policy.by_name(&request.destination).is_ok_and(|permit| !permit.learned);
        (!is_listed && policy.plain_registry(&request.destination).is_some()).then_some(policy)
    }

    /// Answers a request for a registry that a tool asks by its own address, for reading as well.
    fn mirror_plainly(
        &self,
        stream: &UnixStream,
        policy: &Policy,
        destination: &Destination,
        head: &Head,
        program: Option<&str>,
    ) -> io::Result<()> {
        let at = policy.plain_registry(destination);
        let Some(asked) = at.zip(Address::parse(head.request_line().1)) else {
            return self.refuse(stream, Some(destination), Refusal::Malformed, program);
        };
        let mut head = head.clone();
        // The next request on this connection may be for another host.
        head.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("connection"));
        head.headers.push(("Connection".to_owned(), "close".to_owned()));
        let connections = &self.relay.connections;
        let (_, refused) = self.mirrors.serve(connections, policy, &head, Some(asked), stream)?;
        if let Some(refused) = refused {
            self.count(&refused.asked, refused.why, program);
        }
        linger(stream)
    }

    fn count_unpassed(&self, head: &Head, why: &Unpassed, program: Option<&str>) {
        if let Some(what) = words::relay::counted(why, &head.first) {
            self.count(&what, Refusal::NotPassed, program);
        }
    }

    /// Connects to a destination that the policy allows.
    fn connect(&self, destination: &Destination, program: Option<&str>) -> Result<TcpStream, Refusal> {
        // Read each time: people may allow a host while a session runs.
        let policy = self.dir.policy().map_err(|_| Refusal::NotListed)?;
        let permit = policy.by_name(destination)?;
        if permit.learned {
            self.count(&destination.to_string(), Refusal::NotListed, program);
        }
        connect(destination, permit)
    }

    fn refuse(
        &self,
        mut stream: &UnixStream,
        destination: Option<&Destination>,
        refusal: Refusal,
        program: Option<&str>,
    ) -> io::Result<()> {
        let asked = destination.map(ToString::to_string).unwrap_or_default();
        self.count(destination.map_or(MALFORMED, |_| &asked), refusal, program);
        let body = words::sandbox::refused(&asked, refusal);
        let status = match refusal {
            Refusal::Unresolvable | Refusal::Unreachable => "502 Bad Gateway",
            Refusal::Malformed => "400 Bad Request",
            Refusal::NotPassed => "404 Not Found",
            Refusal::ReadOnly => "405 Method Not Allowed",
            Refusal::AddressLiteral | Refusal::NotListed | Refusal::Port | Refusal::PrivateAddress => {
                "403 Forbidden"
            }
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        )
    }

    fn count(&self, asked: &str, why: Refusal, program: Option<&str>) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.0.len() < COUNTED || refused.0.contains_key(asked) {
            let entry =
                refused.0.entry(asked.to_owned()).or_insert(RefusedCount { count: 0, why, program: None });
            entry.count += 1;
            entry.program = entry.program.take().or_else(|| program.map(str::to_owned));
            let text = serde_json::to_vec(&*refused).unwrap_or_default();
            // Only people miss it.
            let _ = phase_file::write_state_file(&self.dir.0.join(REFUSED), &text);
        }
    }
}

/// Takes the forwarder's word for who asks off the beginning of a connection.
fn asked_by(head: Vec<u8>) -> (Option<String>, Vec<u8>) {
    let Some(rest) = head.strip_prefix(ASKED_BY.as_bytes()) else { return (None, head) };
    let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return (None, head) };
    let name = clean_line(&String::from_utf8_lossy(&rest[..end]), PROGRAM_CHARS);
    (Some(name).filter(|name| !name.is_empty()), rest[end + 2..].to_vec())
}

/// Reads the rest of a request that was answered before its end: a program that still writes would see a broken connection instead
/// of the answer.
fn linger(mut stream: &UnixStream) -> io::Result<()> {
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.set_read_timeout(Some(LINGER_LIMIT))?;
    let (mut piece, mut left, begun) = ([0; 4096], LINGER_BYTES, Instant::now());
    while left > 0 && begun.elapsed() < LINGER_LIMIT {
        match stream.read(&mut piece)? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}

/// Whether a request is for the relay itself.
fn is_own(head: &Head) -> bool {
    let mut words = head.first.split(' ');
    words.next() != Some("CONNECT") && words.next().is_some_and(|target| own_path(target).is_some())
}

/// Resolves once, and connects to an address that was looked at.
pub(super) fn connect(destination: &Destination, permit: Permit) -> Result<TcpStream, Refusal> {
    let found = (destination.host.as_str(), destination.port).to_socket_addrs();
    let addresses: Vec<SocketAddr> = found.map_err(|_| Refusal::Unresolvable)?.collect();
    let mut refusal = Refusal::Unresolvable;
    for address in addresses {
        match permit.allows(address.ip()) {
            Ok(()) => match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                // Requests and answers are passed on in the pieces in which they come; none of them waits for the next.
                Ok(stream) => {
                    return stream.set_nodelay(true).map(|()| stream).map_err(|_| Refusal::Unreachable);
                }
                Err(_) => refusal = Refusal::Unreachable,
            },
            // One private address among others is a trick: nothing of the name is reached.
            Err(private) => return Err(private),
        }
    }
    Err(refusal)
}

/// Copies until both sides have said all. The answer to a `plain` request says that its connection is used up, also where the server
/// does not: the next request may be for another host, and is written for a proxy.
fn copy_both(program: &UnixStream, server: &TcpStream, plain: bool) -> io::Result<()> {
    std::thread::scope(|scope| {
        let answers = std::thread::Builder::new().name("answers".to_owned()).spawn_scoped(scope, || {
            let (mut from, mut to) = (server, program);
            let begun = match plain {
                true => read_head(&mut from).and_then(|answer| match answer {
                    Some((head, rest)) => to.write_all(&closing(&head)).and_then(|()| to.write_all(&rest)),
                    None => Ok(()),
                }),
                false => Ok(()),
            };
            let copied = begun.and_then(|()| io::copy(&mut from, &mut to));
            let _ = program.shutdown(std::net::Shutdown::Both);
            copied
        })?;
        let (mut from, mut to) = (program, server);
        let copied = io::copy(&mut from, &mut to);
        let _ = server.shutdown(std::net::Shutdown::Write);
        let _ = answers.join();
        copied.map(drop)
    })
}
