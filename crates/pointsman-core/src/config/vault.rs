//! The keys of `[vault]`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::sections::{Argv, table};
use crate::vault::Risk;

table! {
    Vault {
        /// Whether what is harmless enough is fired without a person.
        auto_approve: bool,
        /// Who may approve; empty: whoever has the operator's shell.
        people: Vec<String>,
        /// People who must approve an action of high risk.
        high_risk_approvals: u32,
        /// Servers that may be called, as `host` or `host:port`.
        hosts: Vec<String>,
        /// What can be done, by the name of its type.
        #[serde(default)]
        types: BTreeMap<String, VaultType>,
    }
}

table! {
    /// `[vault.types.<type>]`: an operator's program, or an address that is called, and what it is taken for. Without a
    /// word it is dangerous.
    VaultType {
        /// The program; it gets the action as JSON on its standard input.
        command: Option<Argv>,
        /// The address that is called in place of a program; it gets the payload as JSON.
        url: Option<String>,
        /// At least so dangerous, whatever a submitter says.
        #[serde(default = "high")]
        risk: Risk,
        /// Whether it can be undone at all.
        #[serde(default)]
        reversible: bool,
        /// Whether a person is asked in any case.
        #[serde(default)]
        requires_human: bool,
        /// Variables of the daemon's environment that this program gets, and nobody else.
        #[serde(default)]
        secrets: Vec<String>,
        /// The same from files, as `NAME=/path`.
        #[serde(default)]
        secret_files: Vec<String>,
        /// Whether the program may use `sudo` and other setuid programs. It then runs without the mark by which a
        /// program of ours is known after it has detached.
        #[serde(default)]
        allow_sudo: bool,
        /// Variable that holds a token to be shown at the address.
        token_env: Option<String>,
        token_file: Option<PathBuf>,
    }
}

impl VaultType {
    /// The names of the program's secrets that lie in files, with these files.
    pub fn secret_files(&self) -> impl Iterator<Item = (&str, &Path)> {
        let pair = |entry: &String| entry.find('=');
        self.secret_files.iter().filter_map(move |entry| {
            let at = pair(entry)?;
            Some((&entry[..at], Path::new(&entry[at + 1..])))
        })
    }

    /// The variables that hold what only its handler may know.
    pub fn hidden(&self) -> impl Iterator<Item = &str> {
        let files = self.secret_files().map(|(name, _)| name);
        self.secrets.iter().chain(&self.token_env).map(String::as_str).chain(files)
    }
}

fn high() -> Risk {
    Risk::High
}
