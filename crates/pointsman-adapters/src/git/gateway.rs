//! The repository a task's agent pushes to. It takes the task's own branch and nothing else, and tells the agent what
//! to do instead.
//!
//! The hook is a help, not the boundary: an agent that runs as our user can write the gateway's files. The boundary is
//! that the daemon fetches only that one branch from here, and alone holds the keys to the forge. So no git is run
//! *in* a gateway by us: it is made, read and given its references as files.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pointsman_core::ids::Sha;

use super::mirror::Mirror;
use super::private_clone::borrowed_from;
use super::{BranchName, Error, RefName, files, refs};

/// The file that names the one reference that is taken.
const ALLOWED: &str = "pointsman-ref";
/// It is one line of a name.
const ALLOWED_CAP: u64 = 1024;

/// Takes all updates of a push or none. Only shell built-ins and git; names are data in quotes, never evaluated.
const PRE_RECEIVE: &str = r#"#!/bin/sh
IFS= read -r allowed < "${GIT_DIR:-.}/pointsman-ref" || { echo 'pointsman: the gateway is damaged, tell a human' >&2; exit 1; }
status=0
while IFS=' ' read -r old new ref; do
	if [ "$ref" != "$allowed" ]; then
		printf 'pointsman: %s is not for this session: it may push only its own branch, %s.\n' "$ref" "${allowed#refs/heads/}" >&2
		printf 'pointsman: use "git push origin HEAD" on that branch. Pull requests, merges and tags are made for you.\n' >&2
		status=1
		continue
	fi
	case $new in
	*[!0]*) ;;
	*)
		printf 'pointsman: %s cannot be deleted: push what it should hold instead.\n' "${allowed#refs/heads/}" >&2
		status=1
		continue
		;;
	esac
	# Nobody would upload their content. Only git 2.41 and later can tell.
	large=$(git log --format= --name-only --diff-filter=AM "$new" --not --all -- 2>/dev/null |
		git --attr-source="$new" check-attr --stdin filter 2>/dev/null)
	case $large in *': filter: lfs'*)
		printf 'pointsman: the push adds or changes files that .gitattributes gives to Git LFS:\n' >&2
		printf '%s\n' "$large" | while IFS= read -r line; do
			case $line in *': filter: lfs') printf 'pointsman:   %s\n' "${line%: filter: lfs}" >&2 ;; esac
		done
		printf 'pointsman: their content cannot be uploaded from a session. Take them out of every commit of the branch. If the task needs them, write PHASE:escalate: a person has to add them.\n' >&2
		status=1
		;;
	esac
done
exit $status
"#;

/// A task's gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    dir: PathBuf,
    branch: BranchName,
}

impl Gateway {
    /// Makes the gateway for a branch, or puts right the one that is there; what was pushed stays.
    pub fn create(mirror: &Mirror, dir: &Path, branch: &BranchName) -> Result<Self, Error> {
        let dir = files::absolute(dir)?;
        let gateway = Self { dir: dir.clone(), branch: branch.clone() };
        if dir.symlink_metadata().is_err() {
            let building = files::with_suffix(&dir, ".tmp-gateway");
            if building.symlink_metadata().is_ok() {
                files::set_aside(&building)?;
            }
            gateway.write_files(mirror, &building)?;
            files::move_into_place(&building, &dir)?;
            return Ok(gateway);
        }
        let line = gateway.allowed_line();
        let there = files::read_untrusted(&dir.join(ALLOWED), ALLOWED_CAP)?;
        if there.is_some_and(|there| there != line.as_bytes()) {
            return Err(Error::NotOurs { path: dir, expected: "the gateway of this branch" });
        }
        gateway.write_files(mirror, &dir)?;
        Ok(gateway)
    }

    /// The directory of the gateway, which is the `origin` of the task's tree.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The gateway that was made in `dir` before; nothing is looked at yet.
    pub fn at(dir: &Path, branch: &BranchName) -> Self {
        Self { dir: dir.to_owned(), branch: branch.clone() }
    }

    /// The branch it takes.
    pub fn branch(&self) -> &BranchName {
        &self.branch
    }

    /// The commit that was pushed last, if any. Cheap: reads a file or two.
    pub fn head(&self) -> Result<Option<Sha>, Error> {
        refs::read_ref(&self.dir, &self.branch.full())
    }

    /// Takes what was pushed into the mirror, at `to`, and answers the commit. Objects are checked on the way.
    pub fn fetch_into(&self, mirror: &Mirror, to: &RefName) -> Result<Option<Sha>, Error> {
        mirror.fetch_path(&self.dir, &self.branch.full(), to)
    }

    /// Shows the agent where the primary branch is now: its next `git fetch` brings `origin/<primary>` there. The
    /// commit must be in the mirror.
    pub fn show_primary(&self, primary: &BranchName, at: &Sha) -> Result<(), Error> {
        let name = primary.full();
        files::write_beneath(&self.dir, Path::new(name.as_str()), format!("{at}\n").as_bytes(), 0o644)
    }

    /// Puts the branch that it takes to a commit of the mirror, whatever was pushed before.
    pub fn show_branch(&self, at: &Sha) -> Result<(), Error> {
        let name = self.branch.full();
        files::write_beneath(&self.dir, Path::new(name.as_str()), format!("{at}\n").as_bytes(), 0o644)
    }

    fn allowed_line(&self) -> String {
        format!("{}\n", self.branch.full())
    }

    /// The agent can change everything here while this writes, so nothing is written through a link.
    fn write_files(&self, mirror: &Mirror, at: &Path) -> Result<(), Error> {
        files::create_dir_all(at)?;
        for part in ["hooks", "info", "objects/pack", "objects/info", "refs/heads", "refs/tags"] {
            files::create_beneath(at, Path::new(part))?;
        }
        let write = |name: &str, bytes: &[u8], mode| files::write_beneath(at, Path::new(name), bytes, mode);
        write("objects/info/alternates", &borrowed_from(mirror), 0o644)?;
        mirror.lend_shallow(at)?;
        write(ALLOWED, self.allowed_line().as_bytes(), 0o644)?;
        write("hooks/pre-receive", PRE_RECEIVE.as_bytes(), 0o755)?;
        write("config", &self.config(), 0o644)?;
        // Last: with it the directory is a repository.
        write("HEAD", format!("ref: {}\n", self.branch.full()).as_bytes(), 0o644)
    }

    fn config(&self) -> Vec<u8> {
        let mut config = b"\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = always
\t# A repository's own setting wins over one in the home directory, which would switch our hook off.
\thooksPath = "
            .to_vec();
        config.extend(files::config_value(self.dir.join("hooks").as_os_str().as_bytes()));
        config.extend(
            b"
[receive]
\tdenyDeletes = true
\tfsckObjects = true
\tautogc = false
\t# An accident with a build directory is told to the agent, not found on a full disk.
\tmaxInputSize = 1g
[gc]
\tauto = 0
[maintenance]
\tauto = false
",
        );
        config
    }
}
