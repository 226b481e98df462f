//! Opening a repository: who are we, what may we do?

use std::sync::{Mutex, OnceLock};

use pointsman_core::time::Timestamp;

use super::wire::{Repository, User};
use super::{Github, Known, Standing, github_request, in_the_way, told};
use crate::forge::Error;
use crate::git::Account;
use crate::http::{Client, Host, Limits, Method, Patience, Scheme};
use crate::secret::Secret;

const OPERATION: &str = "open the repository";
/// Where everybody's GitHub is, and where its API is.
const PUBLIC: (&str, &str) = ("https://github.com", "https://api.github.com");

/// What it takes to open a repository.
pub struct Opening<'a> {
    /// Address of the server; github.com if it is not given.
    pub url: Option<&'a str>,
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
    pub fn prepare(self) -> Result<Github, Error> {
        let Some((owner, repo)) = self.repo.split_once('/') else {
            return Err(refused(format!("`{}` is not written owner/name", self.repo)));
        };
        if self.review_token.as_ref() == Some(&self.token) {
            return Err(refused("the reviewer has the same token: nobody reviews their own work".to_owned()));
        }
        let url = self.url.unwrap_or(PUBLIC.0).trim_end_matches('/').to_owned();
        let api = if url == PUBLIC.0 { PUBLIC.1.to_owned() } else { format!("{url}/api/v3") };
        let host = Host::new(&api, self.clock, self.limits, self.patience);
        Ok(Github {
            account: Account::new(&url, "x-access-token", &self.token),
            url,
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            dev: host.client(Some((Scheme::Bearer, self.token))),
            reviewer: self.review_token.map(|token| host.client(Some((Scheme::Bearer, token)))),
            standing: OnceLock::new(),
            known: Mutex::new(Known::default()),
        })
    }
}

impl Github {
    /// Looks at both accounts and what they may do; once.
    pub fn look(&self) -> Result<(), Error> {
        if self.standing.get().is_none() {
            let standing = self.find_out()?;
            // Whoever was faster found the same.
            let _ = self.standing.set(standing);
        }
        Ok(())
    }

    /// The same before an order.
    pub(super) fn ready(&self) -> Result<(), Error> {
        self.look().map_err(in_the_way)
    }

    fn find_out(&self) -> Result<Standing, Error> {
        let me = who(&self.dev)?;
        let reviewer = self.reviewer.as_ref().map(who).transpose()?;
        if reviewer.as_ref() == Some(&me) {
            return Err(refused(format!(
                "both tokens belong to `{me}`: nobody reviews their own work, so give the reviewer an account of its own"
            )));
        }
        let there: Repository = self.dev.read(&self.get(OPERATION, &[])).map_err(told)?;
        let lacking = match &there {
            r if r.archived => Some("it is archived: nothing can be changed there".to_owned()),
            r if !r.permissions.push => {
                Some(format!("`{me}` may not push to it: give the account write access"))
            }
            r if !r.has_issues => Some("its issues are switched off".to_owned()),
            _ => None,
        };
        match lacking {
            Some(lacking) => Err(refused(format!("{}/{}: {lacking}", self.owner, self.repo))),
            None => Ok(Standing { me, reviewer }),
        }
    }
}

fn refused(reason: String) -> Error {
    Error::Refused { operation: OPERATION, reason }
}

fn who(client: &Client) -> Result<String, Error> {
    let user: User =
        client.read(&github_request("read the account", Method::Get, &["user"])).map_err(told)?;
    match user.login.is_empty() {
        false => Ok(user.login),
        true => Err(refused("the token belongs to no account".to_owned())),
    }
}
