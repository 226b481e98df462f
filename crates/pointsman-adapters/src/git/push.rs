//! Writing to the remote: every push says what it expects to find, and what happened is decided by looking.

use pointsman_core::ids::Sha;

use super::mirror::{Mirror, RemoteOwner};
use super::{ENVIRONMENT, Error, RefName};
use crate::process::End;
use crate::retry::Retry;

/// The commit at which a reference must be found, so that a change to it overwrites nobody's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It must be at this commit.
    At(Sha),
    /// It must not exist.
    Absent,
}

impl Expect {
    /// As git takes it; an empty value means "must not exist".
    pub(super) fn old_value(&self) -> &str {
        match self {
            Self::At(sha) => sha.as_str(),
            Self::Absent => "",
        }
    }

    /// Whether it is as expected.
    pub fn holds(&self, actual: Option<&Sha>) -> bool {
        match self {
            Self::At(sha) => actual == Some(sha),
            Self::Absent => actual.is_none(),
        }
    }
}

/// The order for one reference of the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It shall point to this commit of the mirror.
    To(Sha),
    Delete,
}

impl Change {
    fn done(&self, actual: Option<&Sha>) -> bool {
        match self {
            Self::To(sha) => actual == Some(sha),
            Self::Delete => actual.is_none(),
        }
    }
}

/// One reference of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushRef {
    pub refname: RefName,
    pub change: Change,
    /// What it must be now.
    pub expect: Expect,
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// Every reference is as it should be (also if it had been before).
    Done,
    /// This reference was not where it was expected; nothing of a push of several was done.
    Stale { refname: RefName, actual: Option<Sha> },
    /// The remote said no although everything was as expected: a rule or a hook of its own.
    Refused { message: String },
}

/// The receiving end of a push to somebody else's repository on this machine. Git starts it as a child, so it would
/// inherit our environment, in which hooks are switched off: the owner's protections and deployments would be bypassed
/// without a word. It gets none of our settings; a repository of another user is then refused by git, as in any push.
fn receive_pack_of_others() -> String {
    let ours = ENVIRONMENT.iter().map(|(name, _)| *name).chain(["GIT_CONFIG_GLOBAL"]);
    // Messages stay in one language.
    let unset: String = ours.filter(|name| *name != "LC_ALL").map(|name| format!(" -u {name}")).collect();
    format!("env{unset} git receive-pack")
}

/// Whether git was told over HTTP that the server is under maintenance, overloaded or broken.
fn is_unavailable(stderr: &str) -> bool {
    let code = stderr.split_once("returned error: ").map(|(_, code)| code);
    code.is_some_and(|code| code.starts_with('5') || code.starts_with("429"))
}

impl Mirror {
    /// The argument that names the receiving end of a push, where it is not git's own.
    pub(super) fn receiver(&self) -> Option<String> {
        match (self.remote_path(), self.remote_owner()) {
            (Some(_), RemoteOwner::Others) => Some(format!("--receive-pack={}", receive_pack_of_others())),
            (Some(_), RemoteOwner::Us) | (None, _) => None,
        }
    }

    /// Pushes commits of the mirror to the remote, each reference only if it is where it is expected, several of them
    /// all or none. A push that has happened before is done, not stale.
    ///
    /// A history that is not a fast-forward is pushed as well; that main only moves forward is the caller's to see to.
    pub fn push(&self, refs: &[PushRef]) -> Result<PushOutcome, Error> {
        if refs.is_empty() {
            return Ok(PushOutcome::Done);
        }
        let mut call = self.call("push").args(["--porcelain", "--no-verify", "--recurse-submodules=no"]);
        if refs.len() > 1 {
            call = call.arg("--atomic");
        }
        call = call.args(self.receiver());
        // Always with the expected value: the bare form trusts whatever was last fetched.
        call = call
            .args(refs.iter().map(|r| format!("--force-with-lease={}:{}", r.refname, r.expect.old_value())));
        call = call.arg("--").arg(self.remote_url());
        call = call.args(refs.iter().map(|r| match &r.change {
            Change::To(sha) => format!("{sha}:{}", r.refname),
            Change::Delete => format!(":{}", r.refname),
        }));
        let done = call.account(self.git.account.as_ref()).remote(Retry::LookFirst).finish()?;
        if done.end == End::Exited(0) {
            return Ok(PushOutcome::Done);
        }
        let stderr = super::error::excerpt(&done.stderr);
        match self.look_after(refs, &stderr)? {
            // It can be read and takes no push for now: nobody has decided anything about this one.
            PushOutcome::Refused { .. } if is_unavailable(&stderr) => {
                let (inputs, end) =
                    (refs.iter().map(|r| r.refname.to_string()).collect::<Vec<_>>().join(" "), done.end);
                Err(Error::Failed { operation: "push", inputs, end, stderr, retry: Retry::Later })
            }
            outcome => Ok(outcome),
        }
    }

    /// Git's reasons are words for people; where the references are now is a fact.
    fn look_after(&self, refs: &[PushRef], message: &str) -> Result<PushOutcome, Error> {
        let actual = self.remote_refs(refs.iter().map(|r| &r.refname))?;
        let mut all_done = true;
        let mut stale = None;
        for (r, actual) in refs.iter().zip(&actual) {
            let done = r.change.done(actual.as_ref());
            all_done &= done;
            if !done && !r.expect.holds(actual.as_ref()) && stale.is_none() {
                stale = Some(PushOutcome::Stale { refname: r.refname.clone(), actual: actual.clone() });
            }
        }
        Ok(match (all_done, stale) {
            (true, _) => PushOutcome::Done,
            (false, Some(stale)) => stale,
            (false, None) => PushOutcome::Refused { message: message.to_owned() },
        })
    }

    /// The commits of these references on the remote right now, in the same order.
    pub fn remote_refs<'a>(
        &self,
        names: impl Iterator<Item = &'a RefName> + Clone,
    ) -> Result<Vec<Option<Sha>>, Error> {
        let listed = self
            .call("ls-remote")
            .args(["--quiet", "--"])
            .arg(self.remote_url())
            .args(names.clone().map(RefName::as_str))
            .account(self.git.account.as_ref())
            .remote(Retry::Later)
            .text()?;
        Ok(names
            .map(|name| {
                listed.lines().find_map(|line| {
                    let (sha, listed) = line.split_once('\t')?;
                    if listed == name.as_str() { Sha::new(sha) } else { None }
                })
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::is_unavailable;

    #[test]
    fn maintenance_is_not_a_refusal() {
        let said = |code: &str| {
            format!("fatal: unable to access 'http://h/': The requested URL returned error: {code}")
        };
        for (code, unavailable) in
            [("503", true), ("500", true), ("429", true), ("403", false), ("404", false)]
        {
            assert_eq!(is_unavailable(&said(code)), unavailable, "{code}");
        }
        assert!(!is_unavailable("remote: main is protected; error: failed to push some refs"));
    }
}
