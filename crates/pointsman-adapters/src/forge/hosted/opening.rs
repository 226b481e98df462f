//! Opening a repository: is it there, who are we, what may we do?

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use pointsman_core::time::Timestamp;

use super::errors::told;
use super::wire::{Branch, User, WireRepository};
use super::{ApiTraits, Hosted, Names};
use crate::forge::Error;
use crate::git::Account;
use crate::http::{Client, Host, Limits, Method, RetryWait};
use crate::secret::{Secret, Token};

const OPERATION: &str = "open the repository";
/// Both servers look at the token alone.
const ANYBODY: &str = "x-access-token";

/// The settings for a repository that is opened with a token.
pub struct Opening<'a> {
    /// Address of the server, as people type it.
    pub url: &'a str,
    pub repo: &'a str,
    /// Token of the account that develops.
    pub token: Token,
    /// Token of the account that reviews, if there is one.
    pub review_token: Option<Secret>,
    pub clock: fn() -> Timestamp,
    pub limits: Limits,
    /// Ends waiting when everything ends.
    pub patience: RetryWait,
}

/// Something our accounts must be able to do.
#[derive(Debug)]
pub struct Right {
    pub what: &'static str,
    pub checked: Result<(), Error>,
}

impl Right {
    pub(in crate::forge) fn new(what: &'static str, checked: Result<(), Error>) -> Self {
        Self { what, checked }
    }
}

impl Opening<'_> {
    /// The address of the server, without what people type behind it.
    pub(in crate::forge) fn address(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// Nobody reviews their own work.
    pub(in crate::forge) fn refuse_one_token_for_both(&self) -> Result<(), Error> {
        match (&self.review_token, &self.token) {
            (Some(review), Token::Fixed(dev)) if review == dev => {
                Err(refused("the reviewer has the same token: nobody reviews their own work".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// The repository behind the API at `api`, not yet looked at: nothing is asked of the server.
    pub(in crate::forge) fn prepare(self, api: &str, manner: &'static ApiTraits) -> Result<Hosted, Error> {
        let Some((owner, name)) = self.repo.split_once('/') else {
            return Err(refused(format!("`{}` is not written owner/name", self.repo)));
        };
        self.refuse_one_token_for_both()?;
        let url = self.address().to_owned();
        let account = Account::new(&url, ANYBODY, self.token.clone());
        let (owner, name) = (owner.to_owned(), name.to_owned());
        let host = Host::new(api, self.clock, self.limits, self.patience);
        let client = |token: Token| host.client_with(Some((manner.scheme, token)));
        Ok(Hosted {
            manner,
            url,
            owner,
            name,
            dev: client(self.token),
            reviewer: self.review_token.map(|token| client(token.into())),
            account,
            accounts: OnceLock::new(),
            robot: None,
            remarks: Mutex::new(HashMap::new()),
            marks: Mutex::new(None),
        })
    }
}

impl Hosted {
    /// Looks at both accounts and what they may do; once.
    pub(in crate::forge) fn look(&self) -> Result<(), Error> {
        if self.accounts.get().is_none() {
            // Whoever was faster found the same.
            let _ = self.accounts.set(self.find_out()?);
        }
        Ok(())
    }

    /// Whether that was done.
    pub(in crate::forge) fn was_looked_at(&self) -> bool {
        self.accounts.get().is_some()
    }

    fn find_out(&self) -> Result<Names, Error> {
        let me = self.who_develops()?;
        let reviewer = self.reviewer.as_ref().map(|client| self.who(client)).transpose()?;
        if reviewer.as_ref() == Some(&me) {
            return Err(refused(format!(
                "both tokens belong to `{me}`: nobody reviews their own work, so give the reviewer an account of its own"
            )));
        }
        let there: WireRepository = self.dev.read(&self.get(OPERATION, &[])).map_err(told)?;
        if let Some(lacking) = self.lacking(&there, &me)?.into_iter().next() {
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

    /// What our accounts need, one by one, and whether they have it. Nothing is changed by asking.
    pub(in crate::forge) fn rights(&self, branch: &str) -> Vec<Right> {
        let mut rights = Vec::new();
        let me = match self.who_develops() {
            Ok(me) => me,
            Err(error) => return vec![Right::new("the token is accepted", Err(error))],
        };
        rights.push(Right::new("the token is accepted", Ok(())));
        let there = self.dev.read::<WireRepository>(&self.get(OPERATION, &[])).map_err(told);
        match there {
            Err(error) => rights.push(Right::new("the repository can be read", Err(error))),
            Ok(there) => {
                rights.push(Right::new("the repository can be read", Ok(())));
                match self.lacking(&there, &me) {
                    Ok(lacking) => rights.extend(
                        lacking
                            .into_iter()
                            .map(|why| Right::new("work can be done in it", Err(refused(why)))),
                    ),
                    Err(error) => rights.push(Right::new("work can be done in it", Err(error))),
                }
                let read = |path: &[&str]| {
                    let question = self.get(OPERATION, path).query("limit", 1).query("per_page", 1);
                    self.dev.send(&question).map(drop).map_err(told)
                };
                rights.push(Right::new("issues can be read", read(&["issues"])));
                rights.push(Right::new("labels can be read", read(&["labels"])));
                rights.push(Right::new("pull requests can be read", read(&["pulls"])));
                rights.push(Right::new("checks can be read", read(&["commits", branch, "status"])));
                rights.push(Right::new("the main branch can be pushed to", self.may_push(branch, &me)));
            }
        }
        if let Some(client) = &self.reviewer {
            let name = self.who(client);
            let apart = name.and_then(|name| match name == me {
                true => Err(refused(format!("both tokens belong to `{me}`"))),
                false => Ok(()),
            });
            rights.push(Right::new("the reviewer has an account of its own", apart));
            let reads = client.read::<WireRepository>(&self.get(OPERATION, &[])).map(drop).map_err(told);
            rights.push(Right::new("the reviewer can read the repository", reads));
        }
        rights
    }

    /// Whether the protection of a branch lets us push there, as far as the server says. One that is not there yet can be
    /// pushed.
    fn may_push(&self, branch: &str, me: &str) -> Result<(), Error> {
        let found: Option<Branch> =
            self.dev.find(&self.get(OPERATION, &["branches", branch])).map_err(told)?;
        match found {
            Some(Branch { protected: true, user_can_push: Some(false), .. }) => Err(refused(format!(
                "`{branch}` is protected and `{me}` may not push to it: add the account to those who may push, in the \
                 branch's protection"
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// The name of whoever develops.
    fn who_develops(&self) -> Result<String, Error> {
        match &self.robot {
            Some(robot) => robot.name(),
            None => self.who(&self.dev),
        }
    }

    /// What stands in the way of working in a repository. Of a robot the server tells the rights elsewhere.
    fn lacking(&self, there: &WireRepository, me: &str) -> Result<Vec<String>, Error> {
        let rights = match &self.robot {
            Some(robot) => robot.lacks()?,
            None if there.permissions.push => Vec::new(),
            None => vec![format!("`{me}` may not push to it: give the account write access")],
        };
        Ok(closed_doors(there).into_iter().chain(rights).collect())
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

/// What is switched off in a repository.
fn closed_doors(there: &WireRepository) -> Vec<String> {
    let all = [
        (there.archived, "it is archived: nothing can be changed there"),
        (there.has_issues == Some(false), "its issues are switched off"),
        (there.has_pull_requests == Some(false), "its pull requests are switched off"),
    ];
    all.into_iter().filter(|(lacks, _)| *lacks).map(|(_, why)| why.to_owned()).collect()
}
