//! The machine's file, `$XDG_CONFIG_HOME/pointsman/config.toml`: what holds for all projects on this machine. A project cannot
//! set it.

use std::path::PathBuf;

use serde::Deserialize;

/// The machine's file, as far as it is read here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct MachineConfig {
    #[serde(default)]
    pub sandbox: MachineSandbox,
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
    /// Reads the text of the file; the error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let paths = config.sandbox.read.iter().chain(&config.sandbox.write);
        match paths.into_iter().find(|path| !path.is_absolute()) {
            Some(path) => Err(crate::words::sandbox::relative_path(path)),
            None => Ok(config),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MachineConfig;

    #[test]
    fn the_table_of_the_sandbox_is_read_and_other_tables_are_left_alone() {
        let text =
            "[web]\nlisten = \"\"\n[sandbox]\nread = [\"/srv/tools\"]\nprivate_hosts = [\"git.lan:443\"]\n";
        let config = MachineConfig::parse(text).unwrap();
        assert_eq!(config.sandbox.read, [std::path::PathBuf::from("/srv/tools")]);
        assert_eq!(config.sandbox.private_hosts, ["git.lan:443"]);
        assert!(MachineConfig::parse("[sandbox]\nhosts = []").is_err());
        assert!(MachineConfig::parse("[sandbox]\nread = [\"tools\"]").unwrap_err().contains("tools"));
        assert_eq!(MachineConfig::parse("").unwrap(), MachineConfig::default());
    }
}
