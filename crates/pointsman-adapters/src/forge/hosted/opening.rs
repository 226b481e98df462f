//! Opening a repository: is it there, who are we, what may we do?

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use pointsman_core::time::Timestamp;

use super::trouble::told;
use super::wire::{User, WireRepository};
use super::{Hosted, Manner, Names};
use crate::forge::Error;
use crate::git::Account;
use crate::http::{Client, Host, Limits, Method, Patience};
use crate::secret::Secret;

const OPERATION: &str = "open the repository";
/// Both servers look at the token alone.
const ANYBODY: &str = "x-access-token";

/// What it takes to open a repository.
pub struct Opening<'a> {
    /// Address of the server, as people type it.
    pub url: &'a str,
    /// `owner/name`.
    pub repo: &'a str,
    /// Token of the account that develops.
    pub token: Secret,
    /// Token of the account that reviews, if there is one.
    pub review_token: Option<Secret>,
    /// Our clock.
    pub clock: fn() -> Timestamp,
    /// Limits of every call.
    pub limits: Limits,
    /// Ends waiting when everything ends.
    pub patience: Patience,
}

impl Opening<'_> {
    /// The address of the server, without what people type behind it.
    pub(in crate::forge) fn address(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// The repository behind the API at `api`, not yet looked at: nothing is asked of the server.
    pub(in crate::forge) fn prepare(self, api: &str, manner: &'static Manner) -> Result<Hosted, Error> {
        let Some((owner, name)) = self.repo.split_once('/') else {
            return Err(refused(format!("`{}` is not written owner/name", self.repo)));
        };
        if self.review_token.as_ref() == Some(&self.token) {
            return Err(refused("the reviewer has the same token: nobody reviews their own work".to_owned()));
        }
        let url = self.address().to_owned();
        let account = Account::new(&url, ANYBODY, &self.token);
        let (owner, name) = (owner.to_owned(), name.to_owned());
        let host = Host::new(api, self.clock, self.limits, self.patience);
        let client = |token: Secret| host.client(Some((manner.scheme, token)));
        Ok(Hosted {
            manner,
            url,
            owner,
            name,
            dev: client(self.token),
            reviewer: self.review_token.map(client),
            account,
            names: OnceLock::new(),
            remarks: Mutex::new(HashMap::new()),
        })
    }
}

impl Hosted {
    /// Looks at both accounts and what they may do; once.
    pub(in crate::forge) fn look(&self) -> Result<(), Error> {
        if self.names.get().is_none() {
            // Whoever was faster found the same.
            let _ = self.names.set(self.find_out()?);
        }
        Ok(())
    }

    /// Whether that was done.
    pub(in crate::forge) fn was_looked_at(&self) -> bool {
        self.names.get().is_some()
    }

    fn find_out(&self) -> Result<Names, Error> {
        let me = self.who(&self.dev)?;
        let reviewer = self.reviewer.as_ref().map(|client| self.who(client)).transpose()?;
        if reviewer.as_ref() == Some(&me) {
            return Err(refused(format!(
                "both tokens belong to `{me}`: nobody reviews their own work, so give the reviewer an account of its own"
            )));
        }
        let there: WireRepository = self.dev.read(&self.get(OPERATION, &[])).map_err(told)?;
        if let Some(lacking) = lacking(&there, &me) {
            return Err(refused(format!("{}/{}: {lacking}", self.owner, self.name)));
        }
        if let (Some(client), Some(name)) = (&self.reviewer, &reviewer) {
            let there: WireRepository = client.read(&self.get(OPERATION, &[])).map_err(told)?;
            if !there.permissions.pull {
                let here = format!("{}/{}", self.owner, self.name);
                return Err(refused(format!("the reviewer `{name}` may not read {here}")));
            }
        }
        Ok(Names { me, reviewer })
    }

    fn who(&self, client: &Client) -> Result<String, Error> {
        let user: User =
            client.read(&self.anywhere("read the account", Method::Get, &["user"])).map_err(told)?;
        match user.login.is_empty() {
            false => Ok(user.login),
            true => Err(refused("the token belongs to no account with a name".to_owned())),
        }
    }
}

fn refused(reason: String) -> Error {
    Error::Refused { operation: OPERATION, reason }
}

/// What stands in the way of working in a repository.
fn lacking(there: &WireRepository, me: &str) -> Option<String> {
    match there {
        r if r.archived => Some("it is archived: nothing can be changed there".to_owned()),
        r if !r.permissions.push => Some(format!("`{me}` may not push to it: give the account write access")),
        r if r.has_issues == Some(false) => Some("its issues are switched off".to_owned()),
        r if r.has_pull_requests == Some(false) => Some("its pull requests are switched off".to_owned()),
        _ => None,
    }
}
