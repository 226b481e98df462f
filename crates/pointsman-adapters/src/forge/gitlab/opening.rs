//! Opening a project: is it there, who are we, what may we do?

use super::wire::{Access, Branch, Project, Release, User};
use super::{DEVELOPER, Gitlab, Names};
use crate::forge::hosted::errors::told;
use crate::forge::{Error, Right};
use crate::http::{Client, Request};

const OPERATION: &str = "open the project";
/// The oldest that has everything we ask for: reviewers with a state that asks for changes came with 16.9.
const OLDEST: (u32, u32) = (16, 9);

impl Gitlab {
    /// Finds the server and looks at both accounts and what they may do; once.
    pub fn look(&self) -> Result<(), Error> {
        if self.names.get().is_some() {
            return Ok(());
        }
        let release: Release =
            self.dev.read(&Request::get("read the version", &["version"])).map_err(told)?;
        let _ = self.version.set(release.version);
        let names = self.find_out()?;
        // Whoever was faster found the same.
        let _ = self.names.set(names);
        Ok(())
    }

    /// The version that the server told, and what that version lacks.
    pub(super) fn release(&self) -> Option<(String, Vec<&'static str>)> {
        let version = self.version.get()?;
        let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u32>().ok());
        let lacks = match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) if (major, minor) < OLDEST => {
                vec![
                    "it is older than GitLab 16.9: requests for changes are not seen, only approvals and comments",
                ]
            }
            // A version we cannot read is taken to be new.
            _ => Vec::new(),
        };
        Some((version.clone(), lacks))
    }

    fn find_out(&self) -> Result<Names, Error> {
        let me = who(&self.dev)?;
        let reviewer = self.reviewer.as_ref().map(who).transpose()?;
        if reviewer.as_ref().is_some_and(|reviewer| reviewer.username == me.username) {
            return Err(refused(format!(
                "both tokens belong to `{}`: nobody reviews their own work, so give the reviewer an account of its own",
                me.username
            )));
        }
        if let Some(lacking) = self.lacking(&self.project(&self.dev)?, &me.username).into_iter().next() {
            return Err(refused(format!("{}: {lacking}", self.path)));
        }
        if let Some(client) = &self.reviewer {
            self.project(client)?;
        }
        Ok(Names { me, reviewer })
    }

    fn project(&self, client: &Client) -> Result<Project, Error> {
        client.read(&self.get(OPERATION, &[])).map_err(told)
    }

    fn lacking(&self, project: &Project, me: &str) -> Vec<String> {
        let is_off = |level: &str| level == "disabled";
        let rights = Access::highest(&project.permissions) < DEVELOPER;
        let all = [
            (project.archived, "it is archived: nothing can be changed there".to_owned()),
            (is_off(&project.issues_access_level), "its issues are switched off".to_owned()),
            (is_off(&project.merge_requests_access_level), "its merge requests are switched off".to_owned()),
            (rights, format!("`{me}` may not push to it: give the account the role Developer or Maintainer")),
        ];
        all.into_iter().filter(|(lacks, _)| *lacks).map(|(_, why)| why).collect()
    }

    /// What our accounts need, one by one, and whether they have it. Nothing is changed by asking.
    pub(super) fn rights_there(&self, branch: &str) -> Vec<Right> {
        let me = match who(&self.dev) {
            Ok(me) => me.username,
            Err(error) => return vec![Right::new("the token is accepted", Err(error))],
        };
        let mut rights = vec![Right::new("the token is accepted", Ok(()))];
        match self.project(&self.dev) {
            Err(error) => rights.push(Right::new("the project can be read", Err(error))),
            Ok(project) => {
                rights.push(Right::new("the project can be read", Ok(())));
                let lacking = self.lacking(&project, &me).into_iter();
                rights.extend(lacking.map(|why| Right::new("work can be done in it", Err(refused(why)))));
                let read = |path: &[&str]| {
                    let question = self.get(OPERATION, path).query("per_page", 1);
                    self.dev.send(&question).map(drop).map_err(told)
                };
                rights.push(Right::new("issues can be read", read(&["issues"])));
                rights.push(Right::new("labels can be read", read(&["labels"])));
                rights.push(Right::new("merge requests can be read", read(&["merge_requests"])));
                rights.push(Right::new("members can be read", read(&["members", "all"])));
                rights.push(Right::new("the main branch can be pushed to", self.may_push(branch, &me)));
            }
        }
        if let Some(client) = &self.reviewer {
            let apart = who(client).and_then(|reviewer| match reviewer.username == me {
                true => Err(refused(format!("both tokens belong to `{me}`"))),
                false => Ok(()),
            });
            rights.push(Right::new("the reviewer has an account of its own", apart));
            rights.push(Right::new("the reviewer can read the project", self.project(client).map(drop)));
        }
        rights
    }

    /// Whether the protection of a branch lets us push there. One that is not there yet can be pushed.
    fn may_push(&self, branch: &str, me: &str) -> Result<(), Error> {
        let question = self.get(OPERATION, &["repository", "branches", branch]);
        let found: Option<Branch> = self.dev.find(&question).map_err(told)?;
        match found {
            Some(Branch { can_push: Some(false), .. }) => Err(refused(format!(
                "`{branch}` is protected and `{me}` may not push to it: let Developers push, or add the account to \
                 those allowed to push and merge, in Settings → Repository → Protected branches"
            ))),
            Some(_) | None => Ok(()),
        }
    }
}

fn who(client: &Client) -> Result<User, Error> {
    let user: User = client.read(&Request::get("read the account", &["user"])).map_err(told)?;
    match user.username.is_empty() {
        false => Ok(user),
        true => Err(refused("the token belongs to no account with a name".to_owned())),
    }
}

fn refused(reason: String) -> Error {
    Error::Refused { operation: OPERATION, reason }
}
