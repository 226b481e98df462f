//! The network of a sandbox: the destinations that may be reached through its proxy, and the reason for every refusal.
//!
//! A list of names decides twice. [`Policy::by_name`] looks at the name and the port that a program asks for. [`Permit::allows`]
//! looks at the address that the name resolved to, and the proxy connects to that very address. [`registries`] finds the
//! package registries of a project, and [`mirror`] decides what may be asked of them.

pub mod mirror;
pub mod registries;

#[cfg(test)]
mod tests;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use serde::{Deserialize, Serialize};

use registries::Registry;

/// The preset for the API of the session's own agent.
pub const AGENT_PRESET: &str = "agent";
/// The preset for the package registries that the project names.
pub const PACKAGES_PRESET: &str = "packages";
/// Ports that need not be listed.
const WEB_PORTS: [u16; 2] = [80, 443];
/// The longest name of a host, and the longest part of one.
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;
/// Stands for a port that an entry does not name; no entry can.
const NO_PORT: u16 = 0;

/// The destinations that one sandbox may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// `name`, `*.name` or either with a port; an address only with a port.
    pub hosts: Vec<String>,
    /// `name:port` that may resolve to an address that is not public.
    pub private_hosts: Vec<String>,
    /// Whether names that are not listed are reached as well, and counted: somebody finds out what to list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learning: bool,
    /// Package registries, of which nothing but reading is asked. Requests name them by their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registries: Vec<Registry>,
}

/// The name and port that a program asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Destination {
    /// In lower case, without a dot at its end.
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The reason why a destination is not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// It is not a name and a port.
    Malformed,
    /// An address instead of a name.
    AddressLiteral,
    NotListed,
    /// The name is listed, this port is not.
    Port,
    /// The name resolves to an address of this machine or of a private network.
    PrivateAddress,
    /// The name has no address.
    Unresolvable,
    /// Nobody takes a connection at its addresses.
    Unreachable,
    /// The relay does not pass this request on.
    NotPassed,
    /// Package registries are for reading.
    ReadOnly,
}

/// The permission to reach a name, before its address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    private: bool,
    /// It is not listed, and allowed this once.
    pub learned: bool,
}

impl Destination {
    /// Reads `host:port` or `[address]:port`; without a port it is `usual`.
    pub fn parse(text: &str, usual: Option<u16>) -> Result<Self, Refusal> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or(Refusal::Malformed)?;
                (host, rest.strip_prefix(':').map(str::to_owned))
            }
            None => match text.rsplit_once(':') {
                Some((host, port)) if !host.contains(':') => (host, Some(port.to_owned())),
                _ => (text, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0),
            None => usual,
        };
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
        if host.is_empty() || host.len() > NAME_BYTES || !host.chars().all(plain) {
            return Err(Refusal::Malformed);
        }
        Ok(Self { host, port: port.ok_or(Refusal::Malformed)? })
    }

    /// Whether no part of the name is empty or too long.
    fn has_labels(&self) -> bool {
        self.host.contains(':') || self.host.split('.').all(|label| (1..=LABEL_BYTES).contains(&label.len()))
    }

    /// Whether it is an address, in any of the ways in which programs write one: `127.1`, `0x7f000001` and `2130706433` are
    /// addresses as well.
    fn is_address(&self) -> bool {
        let number = |label: &str| {
            let digits = label.strip_prefix("0x").unwrap_or(label);
            let hex = digits.len() < label.len();
            digits.chars().all(|c| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() })
        };
        self.host.contains(':') || self.host.split('.').next_back().is_some_and(number)
    }
}

impl Policy {
    /// The place of the registry that has this destination, without TLS: a tool that is told its address by a file of the project
    /// asks for it as for any other host.
    pub fn plain_registry(&self, destination: &Destination) -> Option<usize> {
        self.registries.iter().position(|registry| {
            registry.upstream().is_some_and(|server| !server.tls && server.destination == *destination)
        })
    }

    /// The destinations on the loopback interface of the machine, which are not inside.
    pub fn on_loopback(&self) -> Vec<String> {
        let registries = self.registries.iter().filter_map(Registry::upstream);
        let named = self.hosts.iter().cloned().chain(registries.map(|server| server.destination.to_string()));
        named.filter(|host| host.starts_with("127.") || host.starts_with("localhost:")).collect()
    }

    /// Whether a destination may be looked up.
    pub fn by_name(&self, destination: &Destination) -> Result<Permit, Refusal> {
        let private = self.private_hosts.iter().any(|entry| is_exactly(entry, destination));
        if destination.is_address() {
            // An operator may list an address of this machine, with its port. Nobody else names addresses.
            let listed = self.hosts.iter().any(|entry| is_exactly(entry, destination));
            let permit = Permit { private, learned: false };
            return if private && listed { Ok(permit) } else { Err(Refusal::AddressLiteral) };
        }
        let mut refusal = Refusal::NotListed;
        for entry in &self.hosts {
            match covers(entry, destination) {
                Ok(()) => return Ok(Permit { private, learned: false }),
                Err(Refusal::Port) => refusal = Refusal::Port,
                Err(_) => {}
            }
        }
        match self.learning && (private || WEB_PORTS.contains(&destination.port)) {
            true => Ok(Permit { private, learned: true }),
            false => Err(refusal),
        }
    }
}

impl Permit {
    /// Whether the name may be reached at this address.
    pub fn allows(self, address: IpAddr) -> Result<(), Refusal> {
        let address = plain(address);
        let allowed = is_public(address) || (self.private && !is_metadata(address));
        if allowed { Ok(()) } else { Err(Refusal::PrivateAddress) }
    }
}

/// Whether an entry of `sandbox.hosts` or `sandbox.ci_hosts` can be a destination or is a preset.
pub fn is_entry(entry: &str) -> bool {
    if entry.contains("://") {
        return Registry::parse(entry).is_some();
    }
    let (pattern, wild) = match entry.strip_prefix("*.") {
        Some(pattern) => (pattern, true),
        None => (entry, false),
    };
    match (Destination::parse(pattern, Some(NO_PORT)), wild) {
        (Ok(listed), false) => listed.has_labels() && !(listed.is_address() && listed.port == NO_PORT),
        (Ok(listed), true) => listed.has_labels() && !listed.is_address(),
        (Err(_), _) => false,
    }
}

/// Whether an entry of `private_hosts` is a name or an address with a port.
pub fn is_private_entry(entry: &str) -> bool {
    Destination::parse(entry, None).is_ok_and(|listed| listed.has_labels())
}

/// Whether an entry of a list is this name with this port.
fn is_exactly(entry: &str, destination: &Destination) -> bool {
    Destination::parse(entry, None).is_ok_and(|listed| listed == *destination)
}

fn covers(entry: &str, destination: &Destination) -> Result<(), Refusal> {
    let (pattern, wild) = match entry.strip_prefix("*.") {
        Some(pattern) => (pattern, true),
        None => (entry, false),
    };
    let port = pattern.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let listed = Destination::parse(pattern, Some(NO_PORT))?;
    let below =
        || destination.host.strip_suffix(listed.host.as_str()).is_some_and(|rest| rest.ends_with('.'));
    let named = if wild { below() } else { destination.host == listed.host };
    let open = match port {
        Some(port) => port == destination.port,
        None => WEB_PORTS.contains(&destination.port),
    };
    match (named, open) {
        (true, true) => Ok(()),
        (true, false) => Err(Refusal::Port),
        (false, _) => Err(Refusal::NotListed),
    }
}

/// The IPv4 address inside an IPv6 one, where it stands for it.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let [a, b, c, .., y, z] = six.segments();
    let last = Ipv4Addr::from((u32::from(y) << 16) | u32::from(z));
    match (six.to_ipv4_mapped(), (a, b)) {
        (Some(four), _) => IpAddr::V4(four),
        // Addresses that a gateway translates.
        (None, (0x64, 0xff9b)) => IpAddr::V4(last),
        (None, (0x2002, _)) => IpAddr::V4(Ipv4Addr::from((u32::from(b) << 16) | u32::from(c))),
        // The old form of a mapped one.
        (None, (0, 0)) if c == 0 && !six.is_loopback() && !six.is_unspecified() => IpAddr::V4(last),
        (None, _) => address,
    }
}

/// Whether an address is one of the internet, not of this machine, a local network or a range with a purpose of its own.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            let [a, b, c, _] = four.octets();
            let reserved = matches!(
                (a, b, c),
                (0, ..) | (240.., ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18..=19, _)
            );
            !(reserved
                || four.is_loopback()
                || four.is_private()
                || four.is_link_local()
                || four.is_multicast()
                || four.is_documentation())
        }
        IpAddr::V6(six) => is_public_v6(six),
    }
}

fn is_public_v6(six: Ipv6Addr) -> bool {
    // 2000::/3 is what is given out; of that, 2001:db8::/32 is for documentation and 2001::/23 for protocols.
    let [a, b, ..] = six.segments();
    (0x2000..=0x3fff).contains(&a) && (a, b) != (0x2001, 0xdb8) && !(a == 0x2001 && b < 0x200)
}

/// Whether a cloud answers questions about this machine and its credentials there.
fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local() || four.octets() == [100, 100, 100, 200],
        IpAddr::V6(six) => {
            six.segments()[0] & 0xffc0 == 0xfe80 || six.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        }
    }
}

/// The names and the registries behind the words of a configuration. `agent` are the hosts of the session's own agent, `packages`
/// the registries of the project.
pub fn expand(words: &[String], agent: &[String], packages: &[Registry]) -> (Vec<String>, Vec<Registry>) {
    let (mut hosts, mut found) = (Vec::new(), Vec::new());
    for word in words {
        match (word.as_str(), Registry::parse(word)) {
            (AGENT_PRESET, _) => hosts.extend(agent.iter().cloned()),
            (PACKAGES_PRESET, _) => registries::add(&mut found, packages.iter().cloned()),
            (_, Some(registry)) => registries::add(&mut found, [registry]),
            (_, None) => hosts.push(word.clone()),
        }
    }
    hosts.sort();
    hosts.dedup();
    (hosts, found)
}

/// The host and port of an address such as `https://mirror.example.org/simple/`, as an entry of a list.
pub fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let destination = Destination::parse(authority, Some(usual)).ok()?;
    // An address is listed with its port, whatever that is.
    let bare = WEB_PORTS.contains(&destination.port) && !destination.is_address();
    Some(if bare { destination.host } else { destination.to_string() })
}
