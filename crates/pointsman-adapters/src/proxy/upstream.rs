//! Connections of the relay to servers: with or without TLS, to addresses that were looked at, and used again while they last.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pointsman_core::relay::Upstream;
use pointsman_core::sandbox::network::{Policy, Refusal};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::message::Head;
use super::server::connect;

/// For a piece of an answer: a model thinks for minutes, and says in between that it is there.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(600);
/// For a server to take a piece of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);
/// A connection that was not used for so long is not trusted to be there.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// Idle connections to one server.
const MOST_IDLE: usize = 64;
const BUFFER: usize = 64 << 10;
/// Interim answers before the real one.
const INTERIM: usize = 10;

/// A connection, with what was read of it too early.
pub(super) type Connection = BufReader<ServerStream>;

/// The bytes of a connection.
pub(super) enum ServerStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl ServerStream {
    pub(super) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.sock,
        }
    }

    /// Whether the server has said nothing since the last answer, not even that it goes.
    fn is_quiet(&self) -> bool {
        let socket = self.socket();
        if socket.set_nonblocking(true).is_err() {
            return false;
        }
        let quiet = socket.peek(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        quiet && socket.set_nonblocking(false).is_ok()
    }
}

impl Read for ServerStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            // A server that goes without saying goodbye: whether that is an end, the framing tells.
            Self::Tls(tls) => match tls.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }
}

impl Write for ServerStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

/// Connections that wait for the next call.
#[derive(Default)]
pub(super) struct Connections(Mutex<BTreeMap<String, Vec<(Instant, Connection)>>>);

impl Connections {
    /// A connection that was used before, if one is still there.
    pub(super) fn reused(&self, url: &str) -> Option<Connection> {
        loop {
            let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (since, connection) = idle.get_mut(url)?.pop()?;
            drop(idle);
            if since.elapsed() < IDLE_LIMIT && connection.get_ref().is_quiet() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next call.
    pub(super) fn keep(&self, url: &str, connection: Connection) {
        if !connection.buffer().is_empty()
            || connection.get_ref().socket().set_read_timeout(Some(ANSWER_LIMIT)).is_err()
        {
            return;
        }
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_server = idle.entry(url.to_owned()).or_default();
        of_server.retain(|(since, _)| since.elapsed() < IDLE_LIMIT);
        if of_server.len() < MOST_IDLE {
            of_server.push((Instant::now(), connection));
        }
    }
}

/// A new connection. The address must be public, or be listed as a private host of the machine; only there a connection may be
/// without TLS, because it carries a credential.
fn open(upstream: &Upstream, private_hosts: &[String], limit: Duration) -> Result<Connection, Refusal> {
    let to = &upstream.destination;
    let is_private = private_hosts.contains(&to.to_string());
    if !upstream.tls && !is_private {
        return Err(Refusal::NotListed);
    }
    let policy =
        Policy { hosts: vec![to.to_string()], private_hosts: private_hosts.to_vec(), ..Policy::default() };
    let socket = connect(to, policy.by_name(to)?)?;
    let ready =
        socket.set_read_timeout(Some(limit)).and_then(|()| socket.set_write_timeout(Some(REQUEST_LIMIT)));
    ready.map_err(|_| Refusal::Unreachable)?;
    let stream = match upstream.tls {
        false => ServerStream::Plain(socket),
        true => {
            let name = ServerName::try_from(to.host.clone()).map_err(|_| Refusal::Malformed)?;
            let tls = ClientConnection::new(tls_config()?, name).map_err(|_| Refusal::Unreachable)?;
            ServerStream::Tls(Box::new(StreamOwned::new(tls, socket)))
        }
    };
    Ok(BufReader::with_capacity(BUFFER, stream))
}

/// This machine's certificates, read once.
fn tls_config() -> Result<Arc<ClientConfig>, Refusal> {
    static CONFIG: OnceLock<Option<Arc<ClientConfig>>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        Some(Arc::new(versions.ok()?.with_root_certificates(roots).with_no_client_auth()))
    });
    config.clone().ok_or(Refusal::Unreachable)
}

/// The reason why a server has not answered.
pub(super) enum Unasked {
    Refused(Refusal),
    /// What came back is no answer.
    Broken(io::Error),
}

/// Sends a request and reads the head of its answer. A connection that was used before may have ended meanwhile: if nothing came
/// back on it, a new one is tried. `key` is the name under which connections to this server are kept, `limit` the wait for an answer.
pub(super) fn ask(
    connections: &Connections,
    key: &str,
    upstream: &Upstream,
    private_hosts: &[String],
    message: &[u8],
    limit: Duration,
) -> Result<(Connection, Head), Unasked> {
    if let Some(mut connection) = connections.reused(key) {
        match exchange(&mut connection, message) {
            Ok(Some(answer)) => return Ok((connection, answer)),
            Ok(None) => {}
            Err(error) if is_closed(error.kind()) => {}
            Err(error) => return Err(Unasked::Broken(error)),
        }
    }
    let mut connection = open(upstream, private_hosts, limit).map_err(Unasked::Refused)?;
    match exchange(&mut connection, message) {
        Ok(Some(answer)) => Ok((connection, answer)),
        Ok(None) | Err(_) => Err(Unasked::Refused(Refusal::Unreachable)),
    }
}

fn exchange(connection: &mut Connection, message: &[u8]) -> io::Result<Option<Head>> {
    connection.get_mut().write_all(message)?;
    connection.get_mut().flush()?;
    for _ in 0..INTERIM {
        match Head::read(connection)? {
            Some(head) if (100..200).contains(&head.status()?) => {}
            read => return Ok(read),
        }
    }
    Err(io::Error::from(io::ErrorKind::InvalidData))
}

/// Whether the other side had ended the connection.
fn is_closed(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(kind, ConnectionReset | BrokenPipe | ConnectionAborted)
}

/// The name of a server as its requests tell it.
pub(super) fn host_header(upstream: &Upstream) -> String {
    let usual = if upstream.tls { 443 } else { 80 };
    match upstream.destination.port == usual {
        true => upstream.destination.host.clone(),
        false => upstream.destination.to_string(),
    }
}
