//! The account git shows to a server.
//!
//! It is a setting in the environment of those calls that talk to the remote: not an argument, which everybody on the
//! machine can read, not a line of a configuration file, which stays, and not part of the address, which is logged.

use std::fmt;

use pointsman_core::base64;

use super::Call;
use crate::secret::Token;

/// A name and a token for one server.
#[derive(Clone)]
pub struct Account {
    key: String,
    user: String,
    token: Token,
}

impl Account {
    /// The token for everything below `server`, an address of the web; no other server sees it.
    pub fn new(server: &str, user: &str, token: Token) -> Self {
        let key = format!("http.{}/.extraHeader", server.trim_end_matches('/'));
        Self { key, user: user.to_owned(), token }
    }

    /// What the server is shown now; none if there is no token, which the server then says.
    fn header(&self) -> Option<String> {
        let token = self.token.now().inspect_err(|why| tracing::warn!(why, "git has no token")).ok()?;
        let coded = base64::encode(format!("{}:{}", self.user, token.expose()).as_bytes());
        Some(format!("Authorization: Basic {coded}"))
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Account(…)")
    }
}

impl Call {
    /// Shows the account to the server, if there is one.
    pub(super) fn account(self, account: Option<&Account>) -> Self {
        let Some((key, header)) = account.and_then(|account| Some((&account.key, account.header()?))) else {
            return self;
        };
        // A redirect would take the header along.
        let settings = [(key.as_str(), header.as_str()), ("http.followRedirects", "false")];
        let call = self.env("GIT_CONFIG_COUNT", settings.len().to_string());
        settings.into_iter().enumerate().fold(call, |call, (n, (key, value))| {
            call.env(&format!("GIT_CONFIG_KEY_{n}"), key).env(&format!("GIT_CONFIG_VALUE_{n}"), value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Account;
    use crate::secret::Secret;

    #[test]
    fn an_account_is_for_one_server_and_shows_nothing() {
        let account = Account::new("https://forge.example/", "bot", Secret::new("hush").unwrap().into());
        assert_eq!(account.key, "http.https://forge.example/.extraHeader");
        assert_eq!(account.header().unwrap(), "Authorization: Basic Ym90Omh1c2g=");
        assert_eq!(format!("{account:?}"), "Account(…)");
    }
}
