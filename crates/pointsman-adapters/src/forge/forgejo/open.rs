//! Opening a repository: is it there, who are we, what may we do?

use std::sync::Mutex;

use pointsman_core::time::Timestamp;

use super::wire::{Repository, User};
use super::{Forgejo, Known, Version, told};
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
    /// Finds the server and looks at both accounts and what they may do.
    pub fn open(self) -> Result<Forgejo, Error> {
        let refused = |reason: String| Error::Refused { operation: OPERATION, reason };
        let Some((owner, repo)) = self.repo.split_once('/') else {
            return Err(refused(format!("`{}` is not written owner/name", self.repo)));
        };
        let url = self.url.trim_end_matches('/').to_owned();
        let host = Host::new(&format!("{url}/api/v1"), self.clock, self.limits, self.patience);
        let dev = host.client(Some((Scheme::Token, self.token.clone())));
        let version = version(&dev)?;
        for lack in version.lacks() {
            tracing::warn!(host = host.name(), %version, "{lack}");
        }
        let me = who(&dev)?;
        let reviewer = match self.review_token {
            Some(token) => {
                let client = host.client(Some((Scheme::Token, token)));
                let name = who(&client)?;
                if name == me {
                    return Err(refused(format!(
                        "both tokens belong to `{me}`: nobody reviews their own work, so give the reviewer an account of its own"
                    )));
                }
                Some((client, name))
            }
            None => None,
        };
        check_rights(&dev, owner, repo, &me).map_err(refused_or(refused))?;
        if let Some((client, name)) = &reviewer {
            let there: Repository = client.read(&repository(owner, repo)).map_err(told)?;
            if !there.permissions.pull {
                return Err(refused(format!("the reviewer `{name}` may not read {owner}/{repo}")));
            }
        }
        let account = Account::new(&url, &me, &self.token);
        let (owner, repo) = (owner.to_owned(), repo.to_owned());
        Ok(Forgejo {
            url,
            owner,
            repo,
            dev,
            me,
            reviewer,
            version,
            account,
            known: Mutex::new(Known::default()),
        })
    }
}

/// Why the rights do not suffice, or why they could not be read.
enum Lacking {
    Call(Error),
    Right(String),
}

fn refused_or(refused: impl Fn(String) -> Error) -> impl Fn(Lacking) -> Error {
    move |lacking| match lacking {
        Lacking::Call(error) => error,
        Lacking::Right(reason) => refused(reason),
    }
}

fn check_rights(dev: &Client, owner: &str, repo: &str, me: &str) -> Result<(), Lacking> {
    let there: Repository = dev.read(&repository(owner, repo)).map_err(|e| Lacking::Call(told(e)))?;
    let lacking = match &there {
        r if r.archived => "it is archived: nothing can be changed there".to_owned(),
        r if !r.permissions.push => format!("`{me}` may not push to it: give the account write access"),
        r if !r.has_issues => "its issues are switched off".to_owned(),
        r if !r.has_pull_requests => "its pull requests are switched off".to_owned(),
        _ => return Ok(()),
    };
    Err(Lacking::Right(lacking))
}

fn repository(owner: &str, repo: &str) -> Request {
    Request::get(OPERATION, &["repos", owner, repo])
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
