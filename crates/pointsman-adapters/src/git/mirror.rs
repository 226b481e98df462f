//! The daemon's own bare repository of a project. Only the daemon writes it, and every question about commits is
//! asked here and nowhere else. It is never pruned: trees and gateways borrow its objects.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::ids::Sha;

use super::bare::{FETCH_QUIETLY, FROM_SHALLOW, ObjectFormat, init_bare_with, is_bare};
use super::private_clone::borrow_objects;
use super::push::Expect;
use super::{BranchName, Call, Error, Git, RefName, files, refs};
use crate::process::End;
use crate::retry::Retry;

/// The references that an earlier release kept in the mirror.
const CAPTURED: [&str; 3] = ["refs/pointsman/rescue", "refs/pointsman/checkpoints", "refs/pointsman/looks"];
/// The most of what linked trees leave out.
const EXCLUDE_CAP: u64 = 1 << 20;
/// How often branches are fetched before all of them are.
const FETCHES: usize = 3;

/// A project's mirror.
#[derive(Clone, Debug)]
pub struct Mirror {
    pub(super) git: Git,
    dir: PathBuf,
    remote: String,
    owner: RemoteOwner,
    /// The repository whose objects it borrows, if it keeps captures beside one.
    lender: Option<PathBuf>,
    /// Two fetches at once would both want to move a reference from where they saw it, and one of them fails.
    fetching: Arc<Mutex<()>>,
}

/// The owner of the remote, which decides whose configuration and hooks apply to a push to a repository on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemoteOwner {
    /// The embedded forge: our configuration, and no hooks.
    Us,
    /// Anybody else: their hooks run and their configuration counts, as in any push.
    Others,
}

/// The result of a change to one reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefUpdate {
    Done,
    /// The reference was somewhere else than expected, and was left there.
    Stale {
        actual: Option<Sha>,
    },
}

impl Mirror {
    /// Opens the mirror at `dir`, or makes one, for the remote at `remote_url` (an address or an absolute path).
    pub fn open_or_create(git: &Git, dir: &Path, remote_url: &str) -> Result<Self, Error> {
        Self::open(git, dir, remote_url, || Ok(ObjectFormat::Sha1))
    }

    /// Like [`Self::open_or_create`]; a new mirror gets ids of the same kind as the remote's, which is asked.
    pub fn open_or_create_like_remote(git: &Git, dir: &Path, remote_url: &str) -> Result<Self, Error> {
        Self::open(git, dir, remote_url, || {
            let listed = git
                .call("ls-remote")
                .args(["--quiet", "--", remote_url])
                .account(git.account.as_ref())
                .remote(Retry::Later)
                .text()?;
            let first = listed.split(char::is_whitespace).next().and_then(Sha::new);
            Ok(first.map_or(ObjectFormat::Sha1, |sha| ObjectFormat::of(&sha)))
        })
    }

    fn open(
        git: &Git,
        dir: &Path,
        remote_url: &str,
        format: impl FnOnce() -> Result<ObjectFormat, Error>,
    ) -> Result<Self, Error> {
        let bad =
            remote_url.is_empty() || remote_url.starts_with('-') || remote_url.contains(char::is_control);
        if bad {
            return Err(Error::BadRemote { url: super::error::redact(remote_url) });
        }
        let dir = files::absolute(dir)?;
        if let Some(parent) = dir.parent() {
            files::create_dir_all(parent)?;
        }
        // A mirror has no branches of its own; HEAD only has to be something.
        let unused = BranchName::new("pointsman-mirror").expect("a constant that follows the rules");
        if !is_bare(&dir) {
            init_bare_with(git, &dir, &unused, format()?)?;
        }
        let remote = remote_url.to_owned();
        let (git, owner) = (git.clone(), RemoteOwner::Others);
        Ok(Self { git, dir, remote, owner, lender: None, fetching: Arc::default() })
    }

    /// Opens, or makes, the repository at `dir` that keeps captures and checkpoints. It borrows this mirror's objects, and
    /// nobody borrows its own: what one session left in its tree is shown to no other.
    ///
    /// An earlier release kept them in the mirror. Their references move; their objects are where they were.
    pub fn captures(&self, dir: &Path) -> Result<Self, Error> {
        let dir = files::absolute(dir)?;
        let unused = BranchName::new("pointsman-captures").expect("a constant that follows the rules");
        if !is_bare(&dir) {
            let format = self.call("rev-parse").arg("--show-object-format").text()?;
            let format = if format == "sha256" { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 };
            init_bare_with(&self.git, &dir, &unused, format)?;
        }
        borrow_objects(&dir, self)?;
        let captures = Self {
            dir,
            remote: self.dir.to_string_lossy().into_owned(),
            owner: RemoteOwner::Us,
            lender: Some(self.dir.clone()),
            fetching: Arc::default(),
            git: self.git.clone(),
        };
        for (name, commit) in self.list_below(&CAPTURED)? {
            match captures.update_ref(&name, &commit, &Expect::Absent)? {
                RefUpdate::Done | RefUpdate::Stale { .. } => self.delete_ref(&name, &commit)?,
            };
        }
        Ok(captures)
    }

    /// Fetches a commit of another repository of ours, and keeps it under `to`.
    pub fn take(&self, from: &Self, commit: &Sha, to: &RefName) -> Result<(), Error> {
        from.lend(self.call("fetch"), &format!("+{commit}:{to}"))
    }

    /// The same mirror, of a remote that is a repository of ours.
    pub fn of_our_own_remote(mut self) -> Self {
        self.owner = RemoteOwner::Us;
        self
    }

    /// The remote, if it is a repository on this machine, whoever owns it.
    pub(super) fn remote_path(&self) -> Option<&Path> {
        let path = Path::new(self.remote.strip_prefix("file://").unwrap_or(&self.remote));
        path.is_absolute().then_some(path)
    }

    pub(super) fn remote_owner(&self) -> RemoteOwner {
        self.owner
    }

    /// The access to git that it uses.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// The directory of the mirror.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The repository whose objects it borrows, if it keeps captures beside one.
    pub(super) fn lender(&self) -> Option<&Path> {
        self.lender.as_deref()
    }

    /// The remote it mirrors. Not for logs: it may hold credentials.
    pub fn remote_url(&self) -> &str {
        &self.remote
    }

    /// Carries out a fetch from this repository, of a commit with its history, into another one of ours.
    pub(super) fn lend(&self, fetch: Call, what: &str) -> Result<(), Error> {
        // The older protocol sends only what a reference points to.
        let fetch = fetch.config("protocol.version", "2").args(FETCH_QUIETLY).args([FROM_SHALLOW, "--"]);
        fetch.arg(&self.dir).arg(what).remote(Retry::Later).ok()
    }

    /// The directory of its objects, for those that borrow them.
    pub fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    /// The file that says where the history ends; only the mirror of a shallow clone has one.
    fn shallow(&self) -> PathBuf {
        self.lender.as_ref().unwrap_or(&self.dir).join("shallow")
    }

    /// Learns where the history of the lender ends by now, and what linked trees leave out.
    pub(super) fn follow_lender(&self) -> Result<(), Error> {
        let Some(lender) = &self.lender else { return Ok(()) };
        let (from, to) = (lender.join("info/exclude"), self.dir.join("info/exclude"));
        if let Some(lines) = files::read_untrusted(&from, EXCLUDE_CAP)? {
            files::write_atomic(&to, &lines, 0o644)?;
        }
        self.lend_shallow(&self.dir)
    }

    /// Tells a repository that borrows the objects where their history ends, if it does not reach the beginning.
    pub(super) fn lend_shallow(&self, git_dir: &Path) -> Result<(), Error> {
        let from = self.shallow();
        match std::fs::read(&from) {
            // Replaced, not written to: in a repository of an agent a link may be in its place.
            Ok(lines) => files::write_atomic(&git_dir.join("shallow"), &lines, 0o644),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(files::error("read", &from)(error)),
        }
    }

    /// A call of git on this repository. What it writes is on the disk when it is done, also if the mirror was made
    /// before its configuration said so.
    pub(super) fn call(&self, operation: &'static str) -> Call {
        let call = self.git.call(operation).git_dir(&self.dir);
        call.config("core.fsync", "all").config("core.fsyncMethod", "fsync")
    }

    /// Takes over all branches of the remote, and forgets those that are gone there.
    ///
    /// Branch by branch: all at once (`--atomic`) fails for ever where a branch `a` has given way to `a/b`.
    pub fn fetch_remote(&self) -> Result<(), Error> {
        let _alone = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        let fetch = || {
            self.call("fetch")
                .args(FETCH_QUIETLY)
                .args([FROM_SHALLOW, "--prune", "--"])
                .arg(&self.remote)
                .arg("+refs/heads/*:refs/remotes/origin/*")
                .account(self.git.account.as_ref())
                .remote(Retry::Later)
                .ok()
        };
        match fetch() {
            // A branch that was listed and is deleted before it is sent ends the whole fetch.
            Err(Error::Failed { end: End::Exited(_), .. }) if self.remote_path().is_some() => fetch(),
            done => done,
        }
    }

    /// Takes over these branches of the remote and no others, and forgets those of them that are gone there. Branches
    /// may come and go meanwhile, so it is tried again.
    pub fn fetch_branches(&self, branches: &[&BranchName]) -> Result<(), Error> {
        for _ in 0..FETCHES {
            let names: Vec<RefName> = branches.iter().map(|branch| branch.full()).collect();
            let there = self.remote_refs(names.iter())?;
            let mut call =
                self.call("fetch").args(FETCH_QUIETLY).args([FROM_SHALLOW, "--"]).arg(&self.remote);
            let mut asks = false;
            for ((branch, name), at) in branches.iter().zip(&names).zip(&there) {
                if at.is_some() {
                    asks = true;
                    call = call.arg(format!("+{name}:{}", branch.tracking()));
                }
            }
            let _alone = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
            if asks && call.account(self.git.account.as_ref()).remote(Retry::Later).ok().is_err() {
                continue;
            }
            for (branch, at) in branches.iter().zip(&there) {
                if at.is_none()
                    && let Some(known) = self.read_ref(&branch.tracking())?
                {
                    self.delete_ref(&branch.tracking(), &known)?;
                }
            }
            return Ok(());
        }
        // A branch `a` that has given way to `a/b` needs the others pruned first.
        self.fetch_remote()
    }

    /// Whether the remote lets us push to a branch that was fetched: its server is asked, and nothing is written. Rules
    /// and hooks that look at what is pushed are not asked.
    pub fn may_push(&self, branch: &BranchName) -> Result<(), Error> {
        if let Some(path) = self.remote_path() {
            let inner = path.join(".git");
            let refs = if inner.is_dir() { inner } else { path.to_owned() }.join("refs/heads");
            let access = rustix::fs::Access::WRITE_OK;
            rustix::fs::access(&refs, access).map_err(|e| files::error("write to", &refs)(e.into()))?;
        }
        let Some(head) = self.remote_head(branch)? else { return Ok(()) };
        self.call("push")
            .args(["--dry-run", "--porcelain", "--no-verify", "--recurse-submodules=no"])
            .args(self.receiver())
            .arg("--")
            .arg(&self.remote)
            .arg(format!("{head}:{}", branch.full()))
            .account(self.git.account.as_ref())
            .remote(Retry::Later)
            .ok()
    }

    /// The commit of a branch on the remote, as of the last fetch.
    pub fn remote_head(&self, branch: &BranchName) -> Result<Option<Sha>, Error> {
        self.read_ref(&branch.tracking())
    }

    /// Fetches one reference of a repository that an agent can write, and answers the commit; nothing if it has no such
    /// reference. Nothing of that repository is run: git serves it with our configuration inside a sandbox that shows nothing
    /// else, and new objects are checked.
    pub fn fetch_path(&self, path: &Path, source: &RefName, to: &RefName) -> Result<Option<Sha>, Error> {
        self.fetch_from(path, source, to, "true", Some(self.server_of(path)?))
    }

    /// Like [`Self::fetch_path`], for a person's own repository: its links and borrowed objects lead where they like.
    pub fn fetch_checkout(&self, path: &Path, source: &RefName, to: &RefName) -> Result<Option<Sha>, Error> {
        self.fetch_from(path, source, to, "true", None)
    }

    /// Like [`Self::fetch_path`], for work that must be saved even if its objects are odd.
    pub(super) fn fetch_unchecked(
        &self,
        path: &Path,
        source: &RefName,
        to: &RefName,
    ) -> Result<Option<Sha>, Error> {
        self.fetch_from(path, source, to, "false", Some(self.server_of(path)?))
    }

    /// The program that serves a repository that an agent can write, as an option of git. Git hands it to a shell.
    fn server_of(&self, path: &Path) -> Result<OsString, Error> {
        let path = files::absolute(path)?;
        let lent = self.lender.as_ref().unwrap_or(&self.dir);
        let words = self.git.reading("upload-pack", &[&path, lent], &[], &path)?;
        let mut option = OsString::from("--upload-pack=");
        for word in words.iter().map(OsString::as_os_str).chain([OsStr::new("git")]) {
            option.push(OsStr::from_bytes(&shell_word(word.as_bytes())));
            option.push(" ");
        }
        option.push("upload-pack");
        Ok(option)
    }

    fn fetch_from(
        &self,
        path: &Path,
        source: &RefName,
        to: &RefName,
        check: &str,
        server: Option<OsString>,
    ) -> Result<Option<Sha>, Error> {
        let path = files::absolute(path)?;
        // A file would be read as a bundle.
        if !path.is_dir() {
            return Err(Error::NotOurs { path, expected: "a repository" });
        }
        let fetched = self
            .call("fetch")
            .config("fetch.fsckObjects", check)
            .args(FETCH_QUIETLY)
            .args(&server)
            .arg("--")
            .arg(&path)
            .arg(format!("+{source}:{to}"))
            .remote(Retry::Later)
            .ok();
        match fetched {
            Ok(()) => self.read_ref(to),
            // A reference that is not there looks like any other failure: ask.
            Err(error) => {
                let list = self.git.call("ls-remote").args(&server).arg("--").arg(&path);
                let listed = list.arg(source.as_str()).text()?;
                let there = listed.lines().any(|line| line.split('\t').nth(1) == Some(source.as_str()));
                if there { Err(error) } else { Ok(None) }
            }
        }
    }

    /// The commit that a reference of the mirror points to.
    pub fn read_ref(&self, refname: &RefName) -> Result<Option<Sha>, Error> {
        refs::read_ref(&self.dir, refname)
    }

    /// Moves a reference of the mirror, if it is where it is expected.
    pub fn update_ref(&self, refname: &RefName, new: &Sha, expect: &Expect) -> Result<RefUpdate, Error> {
        let done = self
            .call("update-ref")
            .args(["--no-deref", "--create-reflog"])
            .args([refname.as_str(), new.as_str(), expect.old_value()])
            .ok();
        let update = self.told_by_facts(refname, expect, done)?;
        if update == RefUpdate::Done {
            self.sync_name(refname)?;
        }
        Ok(update)
    }

    /// Deletes a reference of the mirror, if it is where it is expected.
    pub fn delete_ref(&self, refname: &RefName, at: &Sha) -> Result<RefUpdate, Error> {
        let done = self.call("update-ref").args(["--no-deref", "-d", refname.as_str(), at.as_str()]).ok();
        self.told_by_facts(refname, &Expect::At(at.clone()), done)
    }

    /// Git syncs a reference's content but not the directory that it renames it into.
    fn sync_name(&self, refname: &RefName) -> Result<(), Error> {
        let path = self.dir.join(refname.as_str());
        let dir = path.parent().unwrap_or(&self.dir);
        match std::fs::File::open(dir).and_then(|dir| dir.sync_all()) {
            // Somebody has deleted the reference again, and the directory with it.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            synced => synced.map_err(files::error("sync", dir)),
        }
    }

    /// A mismatch has no exit code of its own, so a failure is explained by where the reference is.
    fn told_by_facts(
        &self,
        refname: &RefName,
        expect: &Expect,
        done: Result<(), Error>,
    ) -> Result<RefUpdate, Error> {
        let Err(error) = done else { return Ok(RefUpdate::Done) };
        let actual = self.read_ref(refname)?;
        if expect.holds(actual.as_ref()) { Err(error) } else { Ok(RefUpdate::Stale { actual }) }
    }

    /// The references below a prefix such as `refs/pointsman/rescue`, with their commits, sorted by name.
    pub fn list_refs(&self, prefix: &RefName) -> Result<Vec<(RefName, Sha)>, Error> {
        self.list_below(&[prefix.as_str()])
    }

    fn list_below(&self, prefixes: &[&str]) -> Result<Vec<(RefName, Sha)>, Error> {
        let listed = self
            .call("for-each-ref")
            .args(["--format=%(objectname) %(refname)", "--"])
            .args(prefixes)
            .text()?;
        Ok(listed
            .lines()
            .filter_map(|line| {
                let (sha, name) = line.split_once(' ')?;
                Some((RefName::new(name)?, Sha::new(sha)?))
            })
            .collect())
    }
}

/// A word for the shell that git starts a server with.
fn shell_word(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => quoted.extend(br"'\''"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}
