//! What must hold in `[vault]`.

use std::path::{Component, Path};

use super::{Check, is_variable};
use crate::config::{Config, Error, VaultType};
use crate::vault::Address;
use crate::words;

const NO_VARIABLE: &str = "each entry must be the name of an environment variable, not the secret itself";

impl Check<'_> {
    pub(super) fn vault(&self) -> Result<(), Error> {
        let Config { vault, agent, .. } = self.config;
        let one_line = |name: &String| !name.is_empty() && crate::text::clean_line(name, 200) == *name;
        if !vault.people.iter().all(one_line) {
            return self.fail("vault.people", "each entry must be the name of a person");
        }
        if vault.hosts.iter().any(|host| Address::parse(&format!("https://{host}")).is_err()) {
            return self.fail("vault.hosts", "each entry must be a host, such as example.org or [::1]:8080");
        }
        for (name, kind) in &vault.types {
            let table = format!("vault.types.{name}");
            if !crate::vault::is_name(name) {
                return self.fail(&table, "a type is called [a-z0-9][a-z0-9._-]{0,63}");
            }
            match (&kind.command, &kind.url) {
                (Some(_), None) => self.program(&table, kind)?,
                (None, Some(url)) => self.call(&table, kind, url)?,
                (None, None) | (Some(_), Some(_)) => {
                    return self.fail(&table, "it needs either the key `command` or the key `url`");
                }
            }
            if let Some(secret) =
                kind.hidden().find(|secret| agent.pass_env.iter().any(|name| name == secret))
            {
                return self.fail(
                    "agent.pass_env",
                    format!("`{secret}` is a secret of the vault; agents never get one"),
                );
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
            return self.fail(&key, "the program must be an absolute path without `..`");
        }
        if !kind.secrets.iter().all(|secret| is_variable(secret)) {
            return self.fail(&format!("{table}.secrets"), NO_VARIABLE);
        }
        let good = kind.secret_files().filter(|(name, file)| is_variable(name) && is_plain(file)).count();
        if good != kind.secret_files.len() {
            // The value is not repeated: people put the secret itself here.
            return self.fail(
                &format!("{table}.secret_files"),
                "each entry must be written NAME=/path, with an absolute path without `..`",
            );
        }
        if kind.token_env.is_some() || kind.token_file.is_some() {
            return self.fail(table, "token_env and token_file go with `url`; a program has `secrets`");
        }
        Ok(())
    }

    fn call(&self, table: &str, kind: &VaultType, url: &str) -> Result<(), Error> {
        let key = format!("{table}.url");
        match Address::parse(url) {
            Err(why) => return self.fail(&key, why),
            Ok(address) if !address.is_listed(&self.config.vault.hosts) => {
                return self.fail(&key, format!("its host {address} is not listed in vault.hosts"));
            }
            Ok(_) => {}
        }
        if kind.token_env.as_ref().is_some_and(|name| !is_variable(name)) {
            let why = "it must be the name of an environment variable, not the secret itself";
            return self.fail(&format!("{table}.token_env"), why);
        }
        if kind.token_file.as_ref().is_some_and(|file| !is_plain(file)) {
            return self.fail(&format!("{table}.token_file"), "it must be an absolute path without `..`");
        }
        if !kind.secrets.is_empty() || !kind.secret_files.is_empty() {
            return self.fail(table, "secrets and secret_files go with `command`; a call has `token_env`");
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
