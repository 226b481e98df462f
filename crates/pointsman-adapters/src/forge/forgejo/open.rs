//! Opening a repository: is it there, who are we, what may we do?

use std::sync::{Mutex, OnceLock};

use pointsman_core::time::Timestamp;

use super::wire::{Repository, User};
use super::{Forgejo, Known, Standing, Version, told};
use crate::forge::Error;
use crate::git::Account;
use crate::http::{Client, Host, Limits, Patience, Request, Scheme};
use crate::secret::Secret;

const OPERATION: &str = "open the repository";

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
    /// The repository, not yet looked at: nothing is asked of the server.
    pub fn prepare(self) -> Result<Forgejo, Error> {
        let Some((owner, repo)) = self.repo.split_once('/') else {
            return Err(refused(format!("`{}` is not written owner/name", self.repo)));
        };
        if self.review_token.as_ref() == Some(&self.token) {
            return Err(refused("the reviewer has the same token: nobody reviews their own work".to_owned()));
        }
        let url = self.url.trim_end_matches('/').to_owned();
        let host = Host::new(&format!("{url}/api/v1"), self.clock, self.limits, self.patience);
        let dev = host.client(Some((Scheme::Token, self.token.clone())));
        Ok(Forgejo {
            // The server looks at the token alone.
            account: Account::new(&url, "x-access-token", &self.token),
            url,
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            dev,
            reviewer: self.review_token.map(|token| host.client(Some((Scheme::Token, token)))),
            standing: OnceLock::new(),
            known: Mutex::new(Known::default()),
        })
    }
}

impl Forgejo {
    /// Finds the server and looks at both accounts and what they may do; once.
    pub fn look(&self) -> Result<(), Error> {
        if self.standing.get().is_none() {
            let standing = self.find_out()?;
            for lack in standing.version.lacks() {
                tracing::warn!(host = self.host().name(), version = %standing.version, "{lack}");
            }
            // Whoever was faster found the same.
            let _ = self.standing.set(standing);
        }
        Ok(())
    }

    /// The same before an order. What stands in the way is for a person to change; nothing is given up for it.
    pub(super) fn ready(&self) -> Result<(), Error> {
        self.look().map_err(|error| match error {
            Error::Refused { .. } | Error::NotFound { .. } => {
                Error::Unavailable { reason: error.to_string() }
            }
            Error::Unavailable { .. } => error,
        })
    }

    fn find_out(&self) -> Result<Standing, Error> {
        let version = version(&self.dev)?;
        let me = who(&self.dev)?;
        let reviewer = self.reviewer.as_ref().map(who).transpose()?;
        if reviewer.as_ref() == Some(&me) {
            return Err(refused(format!(
                "both tokens belong to `{me}`: nobody reviews their own work, so give the reviewer an account of its own"
            )));
        }
        let there: Repository = self.dev.read(&self.get(OPERATION, &[])).map_err(told)?;
        if let Some(lacking) = lacking(&there, &me) {
            return Err(refused(format!("{}/{}: {lacking}", self.owner, self.repo)));
        }
        if let (Some(client), Some(name)) = (&self.reviewer, &reviewer) {
            let there: Repository = client.read(&self.get(OPERATION, &[])).map_err(told)?;
            if !there.permissions.pull {
                return Err(refused(format!(
                    "the reviewer `{name}` may not read {}/{}",
                    self.owner, self.repo
                )));
            }
        }
        Ok(Standing { me, reviewer, version })
    }
}

fn refused(reason: String) -> Error {
    Error::Refused { operation: OPERATION, reason }
}

/// What stands in the way of working in a repository.
fn lacking(there: &Repository, me: &str) -> Option<String> {
    match there {
        r if r.archived => Some("it is archived: nothing can be changed there".to_owned()),
        r if !r.permissions.push => Some(format!("`{me}` may not push to it: give the account write access")),
        r if !r.has_issues => Some("its issues are switched off".to_owned()),
        r if !r.has_pull_requests => Some("its pull requests are switched off".to_owned()),
        _ => None,
    }
}

fn version(client: &Client) -> Result<Version, Error> {
    #[derive(serde::Deserialize)]
    struct Told {
        version: String,
    }
    let told_: Told = client.read(&Request::get("read the version", &["version"])).map_err(told)?;
    Ok(Version::parse(&told_.version))
}

fn who(client: &Client) -> Result<String, Error> {
    let user: User = client.read(&Request::get("read the account", &["user"])).map_err(told)?;
    match user.login.is_empty() {
        false => Ok(user.login),
        true => Err(Error::Refused { operation: "read the account", reason: "it has no name".to_owned() }),
    }
}
