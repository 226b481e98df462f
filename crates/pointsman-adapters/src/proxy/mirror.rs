//! The read-only mirrors of package registries: they are asked from outside, and a sandbox sees their answers at base addresses.
//!
//! The core decides what a request wants and what an answer becomes; here the registry is asked. A request brings a name and a few
//! headers about the answer, and nothing else: no body, no credential.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use pointsman_core::relay::{ADDRESS, MODEL, Upstream};
use pointsman_core::sandbox::network::mirror::{
    Address, CargoSettings, PACKAGES, PROBES, Turn, Want, packument, page, recognised, sealed_text,
    takes_own_addresses, want,
};
use pointsman_core::sandbox::network::registries::{Registry, Tool};
use pointsman_core::sandbox::network::{Destination, Policy, Refusal};
use pointsman_core::words;
use sha2::Sha256;

use super::message::{Framing, Head, read_body};
use super::model::{Next, own_path, pass_answer};
use super::upstream::{ANSWER_LIMIT, Connection, Connections, Unasked, ask, host_header};

/// The largest page, description or settings that are changed on their way.
const TURNED_BYTES: usize = 128 << 20;
/// From one address to the next, until there is an answer.
const REDIRECTS: usize = 5;
/// The settings of a registry of cargo are asked for again after this long.
const SETTINGS_LIMIT: Duration = Duration::from_secs(600);
/// For the answer to a probe.
const PROBE_LIMIT: Duration = Duration::from_secs(10);
/// The digits of a seal.
const SEAL_DIGITS: usize = 32;
/// A page of pip in the form that every index has.
const HTML: &str = "text/html";

/// The mirrors of all sandboxes.
pub(super) struct Mirrors {
    /// Seals the links of pages: nothing but what a registry links to is fetched from elsewhere.
    key: [u8; 32],
    settings: Mutex<BTreeMap<String, (Instant, CargoSettings)>>,
}

/// A request that was refused, with the name under which it is counted.
pub(super) struct Unmirrored {
    pub(super) asked: String,
    pub(super) why: Refusal,
}

/// The means of one request.
struct Asking<'a> {
    connections: &'a Connections,
    policy: &'a Policy,
    head: &'a Head,
    is_head: bool,
    /// For an answer.
    limit: Duration,
}

/// The answer of a registry, before its body.
struct Answer {
    connection: Connection,
    head: Head,
    status: u16,
    /// The name under which the connection is kept.
    key: String,
    /// Where it came from in the end.
    address: Address,
}

/// Whether a request is for a mirror, by its path.
pub(super) fn is_mirrored(path: &str) -> bool {
    path.starts_with(PACKAGES) || (path.contains("/-/") && !path.starts_with(MODEL))
}

impl Mirrors {
    pub(super) fn new() -> io::Result<Self> {
        let mut key = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self { key, settings: Mutex::default() })
    }

    /// Answers one request. `plain` is the registry that was asked for by its own address, with the address.
    pub(super) fn serve(
        &self,
        connections: &Connections,
        policy: &Policy,
        head: &Head,
        plain: Option<(usize, Address)>,
        mut to: impl Write,
    ) -> io::Result<(Next, Option<Unmirrored>)> {
        let (method, target) = head.request_line();
        let asking = Asking { connections, policy, head, is_head: method == "HEAD", limit: ANSWER_LIMIT };
        let path = own_path(target).unwrap_or(target);
        let wanted = match plain {
            None => want(method, path, &policy.registries),
            Some(_) if !matches!(method, "GET" | "HEAD") => Err(Refusal::ReadOnly),
            Some((at, address)) => Ok(Want::Fetch { at, address, turn: Turn::Nothing }),
        };
        let has_body = head.request_framing().is_ok_and(|framing| framing != Framing::Length(0));
        let wanted = wanted.and_then(|wanted| if has_body { Err(Refusal::ReadOnly) } else { Ok(wanted) });
        let done = wanted.map_err(Unasked::Refused).and_then(|wanted| self.answer(&asking, wanted, &mut to));
        match done {
            Ok(next) => Ok((if head.keeps_alive() { next } else { Next::Close }, None)),
            Err(Unasked::Broken(error)) => Err(error),
            Err(Unasked::Refused(why)) => {
                let asked = asked(method, path, why, &policy.registries);
                let body = words::sandbox::refused(&asked, why);
                write!(
                    to,
                    "HTTP/1.1 {}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
                     connection: close\r\n\r\n{}",
                    status(why),
                    body.len(),
                    if asking.is_head { "" } else { &body }
                )?;
                Ok((Next::Close, Some(Unmirrored { asked, why })))
            }
        }
    }

    fn answer(&self, asking: &Asking<'_>, wanted: Want, to: &mut impl Write) -> Result<Next, Unasked> {
        let registries = &asking.policy.registries;
        let (at, address, turn) = match wanted {
            Want::Fetch { at, address, turn } => (at, address, turn),
            Want::Linked { at, address, seal } => {
                if self.seal(&sealed_text(&registries[at], &address)) != seal {
                    return Err(Unasked::Refused(Refusal::NotPassed));
                }
                (at, address, Turn::Nothing)
            }
            Want::CargoDownload { at, name, version, checksum } => {
                let settings = self.settings(asking, &registries[at])?;
                let address = settings.address(&name, &version, &checksum);
                (at, address.ok_or(Unasked::Refused(Refusal::Malformed))?, Turn::Nothing)
            }
        };
        let agent = asking.head.get("user-agent").unwrap_or_default();
        let turn = match turn {
            Turn::Packument if !takes_own_addresses(agent) => Turn::Nothing,
            _ if asking.is_head => Turn::Nothing,
            turn => turn,
        };
        let mut answer = fetch(asking, address, turn)?;
        if turn == Turn::Nothing || answer.status != 200 {
            return pass(asking, answer, to);
        }
        let body = read_whole(&mut answer)?;
        let own = own_address(asking.head);
        let unreadable = || Unasked::Broken(io::Error::from(io::ErrorKind::InvalidData));
        let turned = match turn {
            Turn::CargoSettings => {
                let settings = CargoSettings::read(&body).ok_or_else(unreadable)?;
                self.note_settings(&registries[at], settings);
                CargoSettings::told(&own, at).into_bytes()
            }
            Turn::Page => {
                let html = String::from_utf8_lossy(&body);
                page(&html, &answer.address, &registries[at], at, |text| self.seal(text)).into_bytes()
            }
            Turn::Packument => packument(&body, &registries[at], &own, at).ok_or_else(unreadable)?,
            Turn::Nothing => body,
        };
        let kind = answer.head.get("content-type").unwrap_or("application/octet-stream").to_owned();
        keep(asking, answer);
        let length = turned.len();
        let told = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
        to.write_all(told.as_bytes()).and_then(|()| to.write_all(&turned)).map_err(Unasked::Broken)?;
        Ok(Next::Another)
    }

    /// Where a registry of cargo keeps its packages.
    fn settings(&self, asking: &Asking<'_>, registry: &Registry) -> Result<CargoSettings, Unasked> {
        let known = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = known.get(&registry.url).filter(|(since, _)| since.elapsed() < SETTINGS_LIMIT);
        if let Some((_, settings)) = fresh {
            return Ok(settings.clone());
        }
        drop(known);
        let url = format!("{}/config.json", registry.url.trim_end_matches('/'));
        let address = Address::parse(&url).ok_or(Unasked::Refused(Refusal::Malformed))?;
        let mut answer = fetch(asking, address, Turn::CargoSettings)?;
        let body = read_whole(&mut answer)?;
        let unreadable = || Unasked::Broken(io::Error::from(io::ErrorKind::InvalidData));
        let settings = CargoSettings::read(&body).ok_or_else(unreadable)?;
        keep(asking, answer);
        self.note_settings(registry, settings.clone());
        Ok(settings)
    }

    fn note_settings(&self, registry: &Registry, settings: CargoSettings) {
        let mut known = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(registry.url.clone(), (Instant::now(), settings));
    }

    fn seal(&self, text: &str) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        mac.update(text.as_bytes());
        let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        digits[..SEAL_DIGITS].to_owned()
    }
}

/// Looks which of these hosts, that a run was refused or reached for once, are package registries. Answers the list with the registries
/// in place of the hosts. A registry that had a mirror already stays a host: its tool does not ask the mirror.
pub fn recognise(hosts: &[String], policy: &Policy) -> Vec<String> {
    let connections = Connections::default();
    let head = Head { first: "GET / HTTP/1.1".to_owned(), headers: Vec::new() };
    let asking =
        Asking { connections: &connections, policy, head: &head, is_head: false, limit: PROBE_LIMIT };
    let is_mirrored = |to: &Destination| {
        let mut servers = policy.registries.iter().filter_map(Registry::upstream);
        servers.any(|server| server.destination == *to)
    };
    let (mut found, mut covered) = (Vec::new(), Vec::new());
    for to in hosts.iter().filter_map(|host| Destination::parse(host, None).ok()) {
        if is_mirrored(&to) || covered.contains(&to) {
            continue;
        }
        // Without TLS only what the machine lists is asked; whoever answers there has no TLS on the same port.
        let plain =
            policy.private_hosts.contains(&to.to_string()).then(|| probe(&asking, &format!("http://{to}/")));
        let probed = match plain.flatten() {
            Some(probed) => Some(probed),
            None => Address::parse(&format!("https://{to}/")).and_then(|base| probe(&asking, &base.url())),
        };
        if let Some(Some((registry, files))) = probed {
            found.push(registry.to_string());
            covered.extend(files);
            covered.push(to.clone());
        }
    }
    let rest = hosts.iter().filter(|host| {
        Destination::parse(host, None).is_ok_and(|to| is_mirrored(&to) || !covered.contains(&to))
    });
    found.extend(rest.cloned());
    found
}

/// A registry, and the destinations of its files.
type Recognised = (Registry, Vec<Destination>);

/// Asks a server what it is. None if it does not answer, and an empty answer if it is no registry.
fn probe(asking: &Asking<'_>, base: &str) -> Option<Option<Recognised>> {
    for (tool, path) in PROBES {
        let turn = if tool == Tool::Pip { Turn::Page } else { Turn::CargoSettings };
        let mut answer = fetch(asking, Address::parse(&format!("{base}{path}"))?, turn).ok()?;
        if answer.status != 200 {
            continue;
        }
        let Ok(body) = read_whole(&mut answer) else { continue };
        let kind = answer.head.get("content-type").unwrap_or_default();
        if let Some(found) = recognised(tool, base, kind, &body) {
            return Some(Some(found));
        }
    }
    Some(None)
}

/// Asks for an address, and for those that it redirects to.
fn fetch(asking: &Asking<'_>, mut address: Address, turn: Turn) -> Result<Answer, Unasked> {
    for _ in 0..=REDIRECTS {
        let destination = address.destination.clone();
        let upstream = Upstream { tls: address.tls, destination, path: String::new() };
        let key = format!("{} {}", upstream.tls, upstream.destination);
        let request = request(asking, &upstream, &address, turn);
        let private = &asking.policy.private_hosts;
        let (connection, head) =
            ask(asking.connections, &key, &upstream, private, request.as_bytes(), asking.limit)?;
        let status = head.status().map_err(Unasked::Broken)?;
        let mut answer = Answer { connection, head, status, key, address };
        let next = match status {
            301 | 302 | 303 | 307 | 308 => answer.head.get("location").and_then(|to| answer.address.join(to)),
            _ => None,
        };
        let Some(next) = next else { return Ok(answer) };
        if !asking.is_head && read_whole(&mut answer).is_ok() {
            keep(asking, answer);
        }
        address = next;
    }
    Err(Unasked::Refused(Refusal::Unreachable))
}

fn request(asking: &Asking<'_>, upstream: &Upstream, address: &Address, turn: Turn) -> String {
    let method = if asking.is_head { "HEAD" } else { "GET" };
    let mut request = format!(
        "{method} {} HTTP/1.1\r\nhost: {}\r\naccept-encoding: identity\r\n",
        address.target,
        host_header(upstream)
    );
    for (name, value) in &asking.head.headers {
        let passes = match name.to_ascii_lowercase().as_str() {
            "user-agent" => true,
            // What is changed on its way is not the same as what the program has kept.
            "if-none-match" | "if-modified-since" | "range" => turn == Turn::Nothing,
            "accept" => turn != Turn::Page,
            _ => false,
        };
        if passes {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    if turn == Turn::Page {
        request.push_str(&format!("accept: {HTML}\r\n"));
    }
    request + "\r\n"
}

/// Passes an answer on as it is.
fn pass(asking: &Asking<'_>, mut answer: Answer, to: &mut impl Write) -> Result<Next, Unasked> {
    let passed = match asking.is_head {
        true => {
            let mut told = format!("HTTP/1.1 {} \r\n", answer.status);
            for name in ["content-type", "content-length", "etag", "last-modified"] {
                if let Some(value) = answer.head.get(name) {
                    told.push_str(&format!("{name}: {value}\r\n"));
                }
            }
            told.push_str("\r\n");
            to.write_all(told.as_bytes()).map(|()| Next::Another).map_err(Unasked::Broken)?
        }
        false => {
            let (connection, head) = (&mut answer.connection, &answer.head);
            pass_answer(connection, head, answer.status, to, None, 0).map_err(Unasked::Broken)?
        }
    };
    if passed == Next::Another {
        keep(asking, answer);
    }
    Ok(passed)
}

fn keep(asking: &Asking<'_>, answer: Answer) {
    if answer.head.keeps_alive() {
        asking.connections.keep(&answer.key, answer.connection);
    }
}

fn read_whole(answer: &mut Answer) -> Result<Vec<u8>, Unasked> {
    let mut body = Vec::new();
    let framing = answer.head.answer_framing(answer.status, false).map_err(Unasked::Broken)?;
    let read = read_body(&mut answer.connection, framing, |piece| {
        if body.len() + piece.len() > TURNED_BYTES {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        body.extend_from_slice(piece);
        Ok(())
    });
    read.map(|()| body).map_err(Unasked::Broken)
}

/// The address at which the program found the mirror.
fn own_address(head: &Head) -> String {
    let named = head.get("host").filter(|host| {
        let port = host.strip_prefix(ADDRESS).and_then(|rest| rest.strip_prefix(':'));
        port.is_some_and(|port| port.parse::<u16>().is_ok())
    });
    format!("http://{}", named.unwrap_or(ADDRESS))
}

/// What a refused request is counted as: an upload by its method and path, a registry that cannot be reached by its name.
fn asked(method: &str, path: &str, why: Refusal, registries: &[Registry]) -> String {
    let mut parts = path.strip_prefix(PACKAGES).unwrap_or_default().splitn(4, '/').skip(1);
    let tool = parts.next().and_then(Tool::named);
    let at = parts.next().and_then(|at| at.parse::<usize>().ok());
    let registry = at.and_then(|at| registries.get(at)).filter(|registry| Some(registry.tool) == tool);
    let registry = registry.or_else(|| registries.iter().find(|one| one.tool == Tool::Npm));
    match why {
        Refusal::Unreachable | Refusal::Unresolvable | Refusal::PrivateAddress | Refusal::NotListed => {
            registry.map_or_else(|| path.to_owned(), ToString::to_string)
        }
        Refusal::Malformed
        | Refusal::AddressLiteral
        | Refusal::Port
        | Refusal::NotPassed
        | Refusal::ReadOnly => words::sandbox::registry_request(method, path),
    }
}

fn status(why: Refusal) -> &'static str {
    match why {
        Refusal::Unreachable | Refusal::Unresolvable => "502 Bad Gateway",
        Refusal::Malformed => "400 Bad Request",
        Refusal::NotPassed => "404 Not Found",
        // Not 401: a tool would ask for a login.
        Refusal::ReadOnly => "405 Method Not Allowed",
        Refusal::AddressLiteral | Refusal::NotListed | Refusal::Port | Refusal::PrivateAddress => {
            "403 Forbidden"
        }
    }
}
