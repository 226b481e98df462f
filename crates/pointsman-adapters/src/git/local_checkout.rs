//! The repository a person works in: looked at before a project is made of it, and given a remote when it is.
//!
//! Only `init` writes to it by itself: one remote and one line of its private exclude file. `task take` switches it to the
//! branch of a task, because a person asked for that, and never over anything that is not committed.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use pointsman_core::ids::Sha;
use pointsman_core::test_command::CommittedFile;

use super::inspect::nul_list;
use super::{BranchName, Call, Error, Git, RefName, files};
use crate::process::End;
use crate::retry::Retry;

/// The most of a file that is read to guess what it is for.
const FILE_CAP: usize = 1 << 20;

/// A person's repository with a working tree.
#[derive(Clone, Debug)]
pub struct LocalCheckout {
    git: Git,
    root: PathBuf,
}

/// The result of a search for a checkout.
#[derive(Clone, Debug)]
pub enum Found {
    Checkout(LocalCheckout),
    /// A repository without a working tree.
    Bare,
    Nothing,
}

impl LocalCheckout {
    /// Finds the checkout that `dir` is in.
    pub fn find(git: &Git, dir: &Path) -> Result<Found, Error> {
        let dir = files::absolute(dir)?;
        let done = within(git.call("rev-parse"), &dir).args(["--is-bare-repository"]).finish()?;
        match (done.end, String::from_utf8_lossy(&done.stdout).trim()) {
            (End::Exited(0), "true") => return Ok(Found::Bare),
            (End::Exited(0), _) => {}
            (End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Cancelled, _) => {
                return Ok(Found::Nothing);
            }
        }
        // Inside `.git` there is a repository and no tree around us: not a place to set a project up in.
        let done = within(git.call("rev-parse"), &dir).args(["--show-toplevel"]).finish()?;
        if !done.end.success() {
            return Ok(Found::Nothing);
        }
        let root = PathBuf::from(String::from_utf8_lossy(&done.stdout).trim_end_matches('\n'));
        Ok(Found::Checkout(Self { git: git.clone(), root }))
    }

    /// The top of its working tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The commit that is checked out; none before the first commit.
    pub fn head(&self) -> Result<Option<Sha>, Error> {
        self.commit("HEAD")
    }

    /// The branch that is checked out, if one is.
    pub fn current_branch(&self) -> Result<Option<String>, Error> {
        let done = self.call("symbolic-ref").args(["--quiet", "--short", "HEAD"]).finish()?;
        Ok(done
            .end
            .success()
            .then(|| String::from_utf8_lossy(&done.stdout).trim_end_matches('\n').to_owned()))
    }

    /// The commit of a branch; none if there is no such branch.
    pub fn branch(&self, branch: &BranchName) -> Result<Option<Sha>, Error> {
        self.commit(branch.full().as_str())
    }

    /// The branch that the remote `origin` names as its first.
    pub fn origin_head(&self) -> Result<Option<String>, Error> {
        let done =
            self.call("symbolic-ref").args(["--quiet", "--short", "refs/remotes/origin/HEAD"]).finish()?;
        let text = String::from_utf8_lossy(&done.stdout).trim_end_matches('\n').to_owned();
        Ok(text.strip_prefix("origin/").filter(|_| done.end.success()).map(str::to_owned))
    }

    /// The number of files that differ from the commit that is checked out, untracked ones included.
    pub fn changed_files(&self) -> Result<usize, Error> {
        let listed = self.call("status").args(["--porcelain", "-z", "--no-renames"]).bytes()?;
        Ok(nul_list(&listed).len())
    }

    /// The files that differ from the commit that is checked out, untracked ones included, below the top of the tree.
    pub fn uncommitted(&self) -> Result<Vec<String>, Error> {
        let args = ["--porcelain", "-z", "--no-renames", "--untracked-files=all"];
        let listed = self.call("status").args(args).bytes()?;
        Ok(nul_list(&listed).into_iter().map(|line| line.get(3..).unwrap_or_default().to_owned()).collect())
    }

    /// The number of tracked files that differ from the commit that is checked out.
    pub fn changed_tracked_files(&self) -> Result<usize, Error> {
        let args = ["--porcelain", "-z", "--no-renames", "--untracked-files=no"];
        Ok(nul_list(&self.call("status").args(args).bytes()?).len())
    }

    /// Whether one commit is in the history of another. Both are here.
    pub fn is_ancestor(&self, one: &Sha, other: &Sha) -> Result<bool, Error> {
        self.call("merge-base").args(["--is-ancestor", one.as_str(), other.as_str()]).yes()
    }

    /// Brings a reference of a repository of ours here, under the same name.
    pub fn fetch(&self, from: &Path, name: &RefName) -> Result<(), Error> {
        let call = self.call("fetch").args(["--quiet", "--no-tags", "--no-write-fetch-head", "--"]);
        call.arg(from).arg(format!("+{name}:{name}")).remote(Retry::Later).ok()
    }

    /// The files that one commit has and another has not.
    pub fn added_files(&self, from: &Sha, to: &Sha) -> Result<Vec<String>, Error> {
        let args = ["-r", "-z", "--no-renames", "--name-only", "--diff-filter=A", from.as_str(), to.as_str()];
        Ok(nul_list(&self.call("diff-tree").args(args).bytes()?))
    }

    /// Switches to a branch that begins here, or goes forward to here. Git refuses to overwrite what is not committed.
    pub fn switch(&self, branch: &BranchName, at: &Sha) -> Result<(), Error> {
        let there = self.branch(branch)?;
        if there.is_none() {
            let call = self.call("switch").args(["--quiet", "--no-track", "--create", branch.as_str()]);
            return call.arg(at.as_str()).ok();
        }
        if self.current_branch()?.as_deref() != Some(branch.as_str()) {
            self.call("switch").args(["--quiet", branch.as_str()]).ok()?;
        }
        if there.as_ref() == Some(at) {
            return Ok(());
        }
        self.call("merge").args(["--quiet", "--ff-only", at.as_str()]).ok()
    }

    /// Gives all files the content that they have in a commit. What differs from the commit that is checked out is not
    /// committed then.
    pub fn put_files(&self, commit: &Sha) -> Result<(), Error> {
        let source = format!("--source={commit}");
        self.call("restore").args(["--quiet", "--worktree", &source, "--", "."]).ok()
    }

    /// The address of a remote; none if there is no such remote.
    pub fn remote(&self, name: &str) -> Result<Option<String>, Error> {
        let done = self.call("config").args(["--get", &format!("remote.{name}.url")]).finish()?;
        Ok(done
            .end
            .success()
            .then(|| String::from_utf8_lossy(&done.stdout).trim_end_matches('\n').to_owned()))
    }

    /// Removes a remote that was added.
    pub fn remove_remote(&self, name: &str) -> Result<(), Error> {
        self.call("remote").args(["remove", "--", name]).ok()
    }

    /// Adds a remote.
    pub fn add_remote(&self, name: &str, url: &Path) -> Result<(), Error> {
        self.call("remote").args(["add", "--", name]).arg(url).ok()
    }

    /// The files of a branch's tree. Links and submodules are left out.
    pub fn files(&self, branch: &BranchName) -> Result<Vec<CommittedFile>, Error> {
        let listed = self.call("ls-tree").args(["-r", "-z", branch.full().as_str()]).bytes()?;
        let entry = |line: String| {
            let (meta, path) = line.split_once('\t')?;
            let file = CommittedFile { path: path.to_owned(), executable: meta.starts_with("100755") };
            meta.starts_with("100").then_some(file)
        };
        Ok(nul_list(&listed).into_iter().filter_map(entry).collect())
    }

    /// Whether a branch's tree has submodules.
    pub fn has_submodules(&self, branch: &BranchName) -> Result<bool, Error> {
        Ok(self.commit_or_blob(&format!("{}:.gitmodules", branch.full()))?.is_some())
    }

    /// The head of a branch in a bare repository of ours; none if it has no such branch.
    pub fn head_of(git: &Git, bare: &Path, branch: &BranchName) -> Result<Option<Sha>, Error> {
        if !bare.is_dir() {
            return Ok(None);
        }
        let bare = Self { git: git.clone(), root: bare.to_owned() };
        bare.branch(branch)
    }

    /// The number of commits of a branch here that are not in the history of `other`; none if that commit is not known
    /// here, or there is no such branch.
    pub fn ahead_of(&self, branch: &BranchName, other: &Sha) -> Result<Option<usize>, Error> {
        let range = format!("{other}..{}", branch.full());
        let done = self.call("rev-list").args(["--count", "--end-of-options", &range]).finish()?;
        Ok(String::from_utf8_lossy(&done.stdout).trim().parse().ok().filter(|_| done.end.success()))
    }

    /// The head of a branch of `origin` when it was last fetched.
    pub fn origin_branch(&self, branch: &BranchName) -> Result<Option<Sha>, Error> {
        self.commit(branch.tracking().as_str())
    }

    /// The text of a file of a branch's tree.
    pub fn file(&self, branch: &BranchName, name: &str) -> Result<String, Error> {
        self.call("cat-file").args(["blob", &format!("{}:{name}", branch.full())]).capped_text(FILE_CAP)
    }

    /// Has git overlook a path in this checkout, without a change that anyone could commit. Again is fine.
    pub fn exclude(&self, pattern: &str) -> Result<(), Error> {
        let path = self.call("rev-parse").args(["--git-path", "info/exclude"]).text()?;
        let path = self.root.join(path);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(files::error("read", &path)(source)),
        };
        if text.lines().any(|line| line.trim() == pattern) {
            return Ok(());
        }
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(files::error("make", dir))?;
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{gap}{pattern}\n").as_bytes()))
            .map_err(files::error("write", &path))
    }

    fn commit(&self, revision: &str) -> Result<Option<Sha>, Error> {
        self.commit_or_blob(&format!("{revision}^{{commit}}"))
    }

    fn commit_or_blob(&self, revision: &str) -> Result<Option<Sha>, Error> {
        let done =
            self.call("rev-parse").args(["--verify", "--quiet", "--end-of-options", revision]).finish()?;
        Ok(Sha::new(String::from_utf8_lossy(&done.stdout).trim_end()).filter(|_| done.end.success()))
    }

    fn call(&self, operation: &'static str) -> Call {
        within(self.git.call(operation), &self.root)
    }
}

/// In a person's repository git may look around for it, as it does for the person.
fn within(mut call: Call, dir: &Path) -> Call {
    call.run = call.run.cwd(dir);
    call
}
