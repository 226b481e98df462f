//! The machine's file, `$XDG_CONFIG_HOME/pointsman/config.toml`: what holds for all projects on this machine. A project cannot
//! set it.

use core::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::document::Document;
use crate::notifier::DigestTime;
use crate::people::People;
use crate::sandbox::network::is_private_entry;
use crate::words;

/// The machine's file, as far as it is read here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct MachineConfig {
    #[serde(default)]
    pub sandbox: MachineSandbox,
    #[serde(default)]
    pub digest: MachineDigest,
    #[serde(default)]
    pub backup: MachineBackup,
    #[serde(default)]
    pub web: MachineWeb,
    /// Everybody whose word counts, with their accounts.
    #[serde(default)]
    pub people: People,
}

/// `[digest]` of the machine's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineDigest {
    /// When people are told how things stand; empty for never.
    pub at: DigestTime,
}

/// `[backup]` of the machine's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineBackup {
    /// How many daily copies of the databases are kept; 0 makes none.
    pub keep: u32,
}

impl Default for MachineBackup {
    fn default() -> Self {
        Self { keep: 7 }
    }
}

/// `[web]` of the machine's file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineWeb {
    /// Where the dashboard and the API are; empty for nowhere.
    pub listen: String,
}

impl Default for MachineWeb {
    fn default() -> Self {
        Self { listen: "127.0.0.1:7180".to_owned() }
    }
}

impl MachineWeb {
    /// The address behind `listen`; none if it is empty. The error says what is wrong.
    pub fn address(listen: &str) -> Result<Option<SocketAddr>, String> {
        if listen.is_empty() {
            return Ok(None);
        }
        match listen.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => Ok(Some(address)),
            Ok(_) => Err(words::web::beyond_loopback(listen)),
            Err(_) => Err(words::web::no_address(listen)),
        }
    }
}

/// `[sandbox]` of the machine's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineSandbox {
    /// Further paths that every sandbox shows, read-only.
    pub read: Vec<PathBuf>,
    /// Further paths that every sandbox shows, writable.
    pub write: Vec<PathBuf>,
    /// `name:port` of hosts that may have an address that is not public.
    pub private_hosts: Vec<String>,
}

impl MachineConfig {
    /// Reads the text of the file `origin`; the error names the line.
    pub fn parse(text: &str, origin: &str) -> Result<Self, String> {
        let (document, _) = Document::parse(text, origin).map_err(|error| error.to_string())?;
        let config: Self =
            toml::from_str(text).map_err(|error| words::sandbox::machine_file(origin, &error.to_string()))?;
        let MachineSandbox { read, write, private_hosts } = &config.sandbox;
        let wrong =
            |key: &str, why: String| document.error_at(key, words::config::wrong_value(key, why)).to_string();
        for (key, paths) in [("sandbox.read", read), ("sandbox.write", write)] {
            if let Some(path) = paths.iter().find(|path| !path.is_absolute()) {
                return Err(wrong(key, words::sandbox::relative_path(path)));
            }
        }
        if let Some((key, why)) = config.people.mistake() {
            return Err(wrong(&key, why));
        }
        MachineWeb::address(&config.web.listen).map_err(|why| wrong("web.listen", why))?;
        match private_hosts.iter().find(|entry| !is_private_entry(entry)) {
            Some(entry) => Err(wrong("sandbox.private_hosts", words::sandbox::not_a_private_host(entry))),
            None => Ok(config),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MachineConfig, MachineWeb};

    #[test]
    fn the_table_of_the_sandbox_is_read_and_other_tables_are_left_alone() {
        let text =
            "[web]\nlisten = \"\"\n[sandbox]\nread = [\"/srv/tools\"]\nprivate_hosts = [\"git.lan:443\"]\n";
        let parse = |text| MachineConfig::parse(text, "config.toml");
        let config = parse(text).unwrap();
        assert_eq!(config.sandbox.read, [std::path::PathBuf::from("/srv/tools")]);
        assert_eq!(config.sandbox.private_hosts, ["git.lan:443"]);
        assert!(parse("[sandbox]\nhosts = []").unwrap_err().contains("config.toml"));
        assert!(parse("[sandbox]\nread = [\"tools\"]").unwrap_err().contains("tools"));
        assert_eq!(parse("").unwrap(), MachineConfig::default());
    }

    #[test]
    fn the_time_of_the_digest_is_read() {
        let parse = |text| MachineConfig::parse(text, "config.toml");
        assert_eq!(parse("").unwrap().digest.at.to_string(), "07:00");
        assert_eq!(parse("[digest]\nat = \"18:30\"").unwrap().digest.at.to_string(), "18:30");
        assert_eq!(parse("[digest]\nat = \"\"").unwrap().digest.at.to_string(), "");
        assert!(parse("[digest]\nat = \"noon\"").unwrap_err().contains("config.toml"));
    }

    #[test]
    fn a_week_of_backups_is_kept_unless_the_file_says_otherwise() {
        let parse = |text| MachineConfig::parse(text, "config.toml");
        assert_eq!(parse("").unwrap().backup.keep, 7);
        assert_eq!(parse("[backup]\nkeep = 0").unwrap().backup.keep, 0);
        assert!(parse("[backup]\nkeep = -1").unwrap_err().contains("config.toml"));
        assert!(parse("[backup]\nkept = 3").unwrap_err().contains("config.toml"));
    }

    #[test]
    fn the_web_listens_on_loopback_or_nowhere() {
        let parse = |text: &str| MachineConfig::parse(text, "config.toml");
        assert_eq!(parse("").unwrap().web.listen, "127.0.0.1:7180");
        for listen in ["", "127.0.0.1:0", "[::1]:7180"] {
            let text = format!("[web]\nlisten = {listen:?}\n");
            assert_eq!(parse(&text).unwrap().web.listen, listen);
            assert_eq!(MachineWeb::address(listen).unwrap().is_none(), listen.is_empty());
        }
        for listen in ["0.0.0.0:7180", "192.168.1.2:7180", "localhost:7180", "7180", "[::]:7180"] {
            let error = parse(&format!("# pages\n[web]\nlisten = {listen:?}\n")).unwrap_err();
            assert!(error.starts_with("config.toml:3:"), "{error}");
        }
        assert!(parse("[web]\nport = 7180\n").unwrap_err().contains("config.toml"));
    }

    #[test]
    fn a_private_host_needs_a_name_and_a_port() {
        for entry in ["git.lan", "git.lan:0", "*.lan:443", "https://git.lan:443", "git lan:443", ""] {
            let text = format!("# hosts\n[sandbox]\nprivate_hosts = [\"db.lan:5432\", {entry:?}]\n");
            let error = MachineConfig::parse(&text, "config.toml").unwrap_err();
            assert!(error.starts_with("config.toml:3:"), "{error}");
            assert!(error.contains("name and a port"), "{error}");
        }
        for entry in ["git.lan:443", "10.1.2.3:80", "[fd00::1]:8080", "localhost:3000"] {
            let text = format!("[sandbox]\nprivate_hosts = [{entry:?}]\n");
            assert!(MachineConfig::parse(&text, "config.toml").is_ok(), "{entry}");
        }
    }
}
