//! The read-only mirrors of package registries: which requests are passed on, to which address, and how the addresses in an
//! answer become addresses of the mirror, so that a tool never asks anybody else.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::registries::{Registry, Tool};
use super::{Destination, Refusal};

/// The first part of every path that leads to a registry.
pub const PACKAGES: &str = "/packages";
/// The longest path with its query: a request brings nothing but a name.
const TARGET_BYTES: usize = 2_000;
/// Behind this lie the downloads of a registry of cargo. No index has such a directory.
const DOWNLOADS: &str = "-/dl/";
/// Behind this lie the pages of an index of pip, and behind the other what they link to.
const PAGES: &str = "index/";
const LINKED: &str = "file/";
/// Stands for the colon before a port, which pip would escape in a path.
const PORT_MARK: &str = "~";
/// What pip adds to the address of a file.
const METADATA: &str = ".metadata";

/// The path of a mirror, with a slash at its end. `at` is its place in the list of the sandbox.
pub fn base_path(tool: Tool, at: usize) -> String {
    let pages = if tool == Tool::Pip { PAGES } else { "" };
    format!("{PACKAGES}/{}/{at}/{pages}", tool.as_str())
}

/// The address of something on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub tls: bool,
    pub destination: Destination,
    /// The path with its query.
    pub target: String,
}

impl Address {
    /// Reads a whole address. The part behind `#` is nothing to a server.
    pub fn parse(url: &str) -> Option<Self> {
        let (tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return None,
        };
        let rest = rest.split('#').next()?;
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let destination = Destination::parse(authority, Some(if tls { 443 } else { 80 })).ok()?;
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = format!("{slash}{target}");
        is_plain(&target).then_some(Self { tls, destination, target })
    }

    /// The address as text.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin(), self.target)
    }

    fn origin(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        let usual = if self.tls { 443 } else { 80 };
        match self.destination.port == usual && !self.destination.host.contains(':') {
            true => format!("{scheme}://{}", self.destination.host),
            false => format!("{scheme}://{}", self.destination),
        }
    }

    /// The address that a link or a redirection on this page leads to.
    pub fn join(&self, link: &str) -> Option<Self> {
        if link.starts_with("https://") || link.starts_with("http://") {
            return Self::parse(link);
        }
        if let Some(rest) = link.strip_prefix("//") {
            return Self::parse(&format!("{}://{rest}", if self.tls { "https" } else { "http" }));
        }
        let link = link.split('#').next()?;
        let (path, query) = link.split_at(link.find('?').unwrap_or(link.len()));
        if path.contains(':') && !path.starts_with(['/', '.']) {
            return None;
        }
        let own = self.target.split('?').next()?;
        let begin = if path.starts_with('/') { "" } else { &own[..own.rfind('/')?] };
        let mut parts: Vec<&str> = Vec::new();
        for part in begin.split('/').chain(path.split('/')).filter(|part| *part != ".") {
            match part {
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let joined: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
        let slash = if path.ends_with('/') && !joined.is_empty() { "/" } else { "" };
        Self::parse(&format!("{}/{}{slash}{query}", self.origin(), joined.join("/")))
    }
}

/// Whether a path with a query has nothing in it that two servers could read differently.
fn is_plain(target: &str) -> bool {
    let plain =
        |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    let lower = target.to_ascii_lowercase();
    target.chars().all(plain)
        && !lower.contains("%2e%2e")
        && !target.split(['/', '?']).any(|part| part == "..")
}

/// The thing that a request to a mirror wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// The answer of the registry itself.
    Fetch { at: usize, address: Address, turn: Turn },
    /// The file of a package, where the registry's settings say.
    CargoDownload { at: usize, name: String, version: String, checksum: String },
    /// Something that a page linked to. The seal says so.
    Linked { at: usize, address: Address, seal: String },
}

/// The change that an answer needs before it is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Nothing,
    /// Cargo's settings name where its packages are.
    CargoSettings,
    /// Pages of pip link to files.
    Page,
    /// The description of a package names its files.
    Packument,
}

/// Finds out what a request wants. A refusal is told and counted.
pub fn want(method: &str, target: &str, registries: &[Registry]) -> Result<Want, Refusal> {
    if !matches!(method, "GET" | "HEAD") {
        return Err(Refusal::ReadOnly);
    }
    if target.len() > TARGET_BYTES || !is_plain(target) {
        return Err(Refusal::Malformed);
    }
    let (at, rest) = match target.strip_prefix(PACKAGES) {
        Some(rest) => {
            let mut parts = rest.splitn(4, '/').skip(1);
            let tool = parts.next().and_then(Tool::named).ok_or(Refusal::NotPassed)?;
            let at = parts.next().and_then(|at| at.parse::<usize>().ok()).ok_or(Refusal::NotPassed)?;
            let is_its = registries.get(at).is_some_and(|registry| registry.tool == tool);
            (at, parts.next().filter(|_| is_its).ok_or(Refusal::NotPassed)?)
        }
        // npm keeps the path of a file that it knows under another host.
        None => {
            let is_file =
                target.contains("/-/") && target.split('?').next().is_some_and(|path| path.ends_with(".tgz"));
            let at = registries.iter().position(|one| one.tool == Tool::Npm).filter(|_| is_file);
            (at.ok_or(Refusal::NotPassed)?, target.trim_start_matches('/'))
        }
    };
    let registry = &registries[at];
    let below = |rest: &str| {
        let base = registry.url.trim_end_matches('/');
        Address::parse(&format!("{base}/{rest}")).ok_or(Refusal::Malformed)
    };
    match registry.tool {
        Tool::Cargo => match rest.strip_prefix(DOWNLOADS) {
            Some(rest) => download(at, rest),
            None if rest == "config.json" => {
                Ok(Want::Fetch { at, address: below(rest)?, turn: Turn::CargoSettings })
            }
            None => Ok(Want::Fetch { at, address: below(rest)?, turn: Turn::Nothing }),
        },
        Tool::Npm => {
            let path = registry.upstream().map(|upstream| upstream.path).unwrap_or_default();
            let path = path.trim_start_matches('/');
            // The same with the registry's own path before it.
            let own =
                rest.strip_prefix(path).filter(|_| !path.is_empty()).and_then(|rest| rest.strip_prefix('/'));
            let rest = own.filter(|rest| !rest.starts_with("-/")).unwrap_or(rest);
            let turn =
                if rest.contains("/-/") || rest.starts_with("-/") { Turn::Nothing } else { Turn::Packument };
            Ok(Want::Fetch { at, address: below(rest)?, turn })
        }
        Tool::Pip => match (rest.strip_prefix(PAGES), rest.strip_prefix(LINKED)) {
            (Some(rest), _) => Ok(Want::Fetch { at, address: below(rest)?, turn: Turn::Page }),
            (None, Some(rest)) => linked(at, rest),
            (None, None) => Err(Refusal::NotPassed),
        },
        Tool::Go | Tool::Bundler => Ok(Want::Fetch { at, address: below(rest)?, turn: Turn::Nothing }),
    }
}

fn download(at: usize, rest: &str) -> Result<Want, Refusal> {
    let [name, version, checksum] = rest.split('/').collect::<Vec<_>>()[..] else {
        return Err(Refusal::NotPassed);
    };
    let plain = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
        !text.is_empty() && text.chars().all(plain)
    };
    if ![name, version, checksum].into_iter().all(plain) {
        return Err(Refusal::Malformed);
    }
    let [name, version, checksum] = [name, version, checksum].map(str::to_owned);
    Ok(Want::CargoDownload { at, name, version, checksum })
}

fn linked(at: usize, rest: &str) -> Result<Want, Refusal> {
    let mut parts = rest.splitn(4, '/');
    let mut next = || parts.next().ok_or(Refusal::NotPassed);
    let (seal, scheme, authority, path) = (next()?, next()?, next()?, next()?);
    let authority = authority.replace(PORT_MARK, ":");
    let address = Address::parse(&format!("{scheme}://{authority}/{path}")).ok_or(Refusal::Malformed)?;
    Ok(Want::Linked { at, address, seal: seal.to_owned() })
}

/// The text that the seal of a link is over. The description of a file is as good as the file.
pub fn sealed_text(registry: &Registry, address: &Address) -> String {
    let url = unescaped(&address.url());
    format!("{registry}\n{}", url.strip_suffix(METADATA).unwrap_or(&url))
}

/// The text without its percent signs: pip escapes more of an address than others do.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match escaped.filter(|_| *first == b'%').and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The path of the mirror to something that a page links to.
fn linked_path(at: usize, address: &Address, seal: &str) -> String {
    let origin = address.origin().replacen("://", "/", 1).replace(':', PORT_MARK);
    format!("{PACKAGES}/{}/{at}/{LINKED}{seal}/{origin}{}", Tool::Pip.as_str(), address.target)
}

/// The settings of a registry of cargo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CargoSettings {
    /// Where its packages are.
    pub dl: String,
}

impl CargoSettings {
    /// Reads the registry's own.
    pub fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// The same as the mirror tells them: packages come from here, and nothing can be published. `own` is the address that the
    /// program found the mirror at.
    pub fn told(own: &str, at: usize) -> String {
        let base = base_path(Tool::Cargo, at);
        let dl = format!("{own}{base}{DOWNLOADS}{{crate}}/{{version}}/{{sha256-checksum}}");
        serde_json::to_string(&Self { dl }).unwrap_or_default()
    }

    /// The address of a package.
    pub fn address(&self, name: &str, version: &str, checksum: &str) -> Option<Address> {
        let lower = name.to_ascii_lowercase();
        let values = [
            ("{crate}", name.to_owned()),
            ("{version}", version.to_owned()),
            ("{prefix}", prefix(name)),
            ("{lowerprefix}", prefix(&lower)),
            ("{sha256-checksum}", checksum.to_owned()),
        ];
        let filled = values.iter().fold(self.dl.clone(), |dl, (marker, value)| dl.replace(marker, value));
        let is_template = filled != self.dl;
        let url = if is_template { filled } else { format!("{}/{name}/{version}/download", self.dl) };
        Address::parse(&url)
    }
}

/// The directories in which an index keeps a name.
fn prefix(name: &str) -> String {
    match name.len() {
        0 => String::new(),
        1 | 2 => name.len().to_string(),
        3 => format!("3/{}", &name[..1]),
        _ => format!("{}/{}", &name[..2], &name[2..4]),
    }
}

/// A page of pip with links to the mirror. `seal` makes the seal of a text.
pub fn page(
    html: &str,
    page: &Address,
    registry: &Registry,
    at: usize,
    seal: impl Fn(&str) -> String,
) -> String {
    const LINK: &str = "href=";
    let mut told = String::with_capacity(html.len() * 2);
    let mut rest = html;
    while let Some(begin) = rest.find(LINK) {
        let (before, from) = rest.split_at(begin + LINK.len());
        told.push_str(before);
        rest = from;
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
        let Some(length) = rest[1..].find(quote) else { break };
        let link = rest[1..=length].replace("&amp;", "&");
        rest = &rest[length + 2..];
        let (address, fragment) = match link.split_once('#') {
            Some((address, fragment)) => (address, format!("#{fragment}")),
            None => (link.as_str(), String::new()),
        };
        let path = page.join(address).map(|to| {
            let seal = seal(&sealed_text(registry, &to));
            linked_path(at, &to, &seal)
        });
        // One that leads nowhere stays what it was: there is no way to it.
        let link = path.map_or(link.clone(), |path| format!("{path}{fragment}"));
        told.push('"');
        told.push_str(&link.replace('&', "&amp;").replace('"', "&quot;"));
        told.push('"');
    }
    told.push_str(rest);
    told
}

/// Whether a program writes the addresses of files into its lock file if they are not those of its registry, and asks for them as
/// they are. npm knows better.
pub fn takes_own_addresses(user_agent: &str) -> bool {
    let yarn = user_agent.strip_prefix("yarn/").and_then(|version| version.chars().next());
    user_agent.starts_with("pnpm/") || yarn.is_some_and(|first| first.is_ascii_digit() && first >= '2')
}

/// The description of a package of npm with files at the mirror.
pub fn packument(text: &[u8], registry: &Registry, own: &str, at: usize) -> Option<Vec<u8>> {
    let mut description: Value = serde_json::from_slice(text).ok()?;
    let base = format!("{}/", registry.url.trim_end_matches('/'));
    let mirrored = format!("{own}{}", base_path(Tool::Npm, at));
    for version in description.get_mut("versions")?.as_object_mut()?.values_mut() {
        let Some(tarball) = version.get_mut("dist").and_then(|dist| dist.get_mut("tarball")) else {
            continue;
        };
        let path = tarball.as_str().and_then(|url| url.strip_prefix(base.as_str())).map(str::to_owned);
        if let Some(path) = path {
            *tarball = format!("{mirrored}{path}").into();
        }
    }
    serde_json::to_vec(&description).ok()
}

/// Requests by which a server shows that it is a registry of this tool, below its address.
pub const PROBES: [(Tool, &str); 4] = [
    (Tool::Cargo, "config.json"),
    (Tool::Pip, "simple/pip/"),
    (Tool::Npm, "-/ping"),
    (Tool::Go, "golang.org/x/text/@v/list"),
];

/// The registry behind the answer to one of these requests, with the destinations of its files, which nobody has to ask any more.
/// `base` is the address of the server, with a slash at its end.
pub fn recognised(tool: Tool, base: &str, kind: &str, body: &[u8]) -> Option<(Registry, Vec<Destination>)> {
    let (mut path, mut files) = ("", Vec::new());
    let is_one = match tool {
        Tool::Cargo => {
            let settings = CargoSettings::read(body)?;
            files.extend(settings.address("name", "1.0.0", "0").map(|file| file.destination));
            !files.is_empty()
        }
        Tool::Pip => {
            path = "simple/";
            let (html, page) =
                (String::from_utf8_lossy(body), Address::parse(&format!("{base}simple/pip/"))?);
            let links =
                html.split("href=").skip(1).filter_map(|rest| rest.get(1..)?.split(['"', '\'']).next());
            let to = links.filter(|link| link.contains(".whl") || link.contains(".tar.gz"));
            files.extend(to.filter_map(|link| page.join(link)).map(|file| file.destination));
            files.sort();
            files.dedup();
            kind.starts_with("text/html") && !files.is_empty()
        }
        Tool::Npm => {
            let pong = serde_json::from_slice::<Value>(body).ok();
            pong.is_some_and(|pong| pong.as_object().is_some_and(|pong| !pong.contains_key("error")))
        }
        Tool::Go => {
            let text = String::from_utf8_lossy(body);
            let is_version =
                |line: &str| line.starts_with('v') && line[1..].starts_with(|c: char| c.is_ascii_digit());
            !text.trim().is_empty() && text.trim().lines().all(is_version)
        }
        Tool::Bundler => false,
    };
    let registry = Registry::parse(&format!("{}+{base}{path}", tool.as_str()))?;
    is_one.then_some((registry, files))
}
