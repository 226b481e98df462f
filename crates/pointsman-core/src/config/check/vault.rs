//! Rules for `[vault]`.

use std::path::{Component, Path};

use super::{Check, is_variable};
use crate::config::{Config, Error, VaultType};
use crate::vault::Address;
use crate::words;

impl Check<'_> {
    pub(super) fn vault(&self) -> Result<(), Error> {
        let Config { vault, agent, .. } = self.config;
        let one_line = |name: &String| !name.is_empty() && crate::text::clean_line(name, 200) == *name;
        if !vault.people.iter().all(one_line) {
            return self.fail("vault.people", words::config::NOT_ALL_PEOPLE);
        }
        if vault.hosts.iter().any(|host| Address::parse(&format!("https://{host}")).is_err()) {
            return self.fail("vault.hosts", words::config::NOT_ALL_HOSTS);
        }
        for (name, kind) in &vault.types {
            let table = format!("vault.types.{name}");
            if !crate::vault::is_name(name) {
                return self.fail(&table, words::config::NOT_A_VAULT_TYPE);
            }
            match (&kind.command, &kind.url) {
                (Some(_), None) => self.program(&table, kind)?,
                (None, Some(url)) => self.call(&table, kind, url)?,
                (None, None) | (Some(_), Some(_)) => {
                    return self.fail(&table, words::config::COMMAND_OR_URL);
                }
            }
            if let Some(secret) =
                kind.hidden().find(|secret| agent.pass_env.iter().any(|name| name == secret))
            {
                return self.fail("agent.pass_env", words::config::vault_secret_passed_on(secret));
            }
        }
        Ok(())
    }

    fn program(&self, table: &str, kind: &VaultType) -> Result<(), Error> {
        let key = format!("{table}.command");
        self.command(&key, kind.command.as_ref())?;
        // A name or a relative path could be found in a tree that an agent writes.
        let plain = |program: &String| is_plain(Path::new(program));
        if !kind.command.iter().flatten().next().is_some_and(plain) {
            return self.fail(&key, words::config::PROGRAM_NOT_A_PLAIN_PATH);
        }
        if !kind.secrets.iter().all(|secret| is_variable(secret)) {
            return self.fail(&format!("{table}.secrets"), words::config::NOT_ALL_VARIABLES);
        }
        let good = kind.secret_files().filter(|(name, file)| is_variable(name) && is_plain(file)).count();
        if good != kind.secret_files.len() {
            // The value is not repeated: people put the secret itself here.
            return self.fail(&format!("{table}.secret_files"), words::config::NOT_ALL_SECRET_FILES);
        }
        if kind.token_env.is_some() || kind.token_file.is_some() {
            return self.fail(table, words::config::TOKEN_FOR_PROGRAM);
        }
        Ok(())
    }

    fn call(&self, table: &str, kind: &VaultType, url: &str) -> Result<(), Error> {
        let key = format!("{table}.url");
        match Address::parse(url) {
            Err(why) => return self.fail(&key, why),
            Ok(address) if !address.is_listed(&self.config.vault.hosts) => {
                return self.fail(&key, words::config::host_not_listed(address));
            }
            Ok(_) => {}
        }
        if kind.token_env.as_ref().is_some_and(|name| !is_variable(name)) {
            return self.fail(&format!("{table}.token_env"), words::config::NOT_A_VARIABLE);
        }
        if kind.token_file.as_ref().is_some_and(|file| !is_plain(file)) {
            return self.fail(&format!("{table}.token_file"), words::config::NOT_A_PLAIN_PATH);
        }
        if !kind.secrets.is_empty() || !kind.secret_files.is_empty() {
            return self.fail(table, words::config::SECRETS_FOR_CALL);
        }
        if kind.allow_sudo {
            return self.fail(&format!("{table}.allow_sudo"), words::vault::CALL_HAS_NO_PROGRAM);
        }
        Ok(())
    }
}

fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| matches!(part, Component::ParentDir))
}
