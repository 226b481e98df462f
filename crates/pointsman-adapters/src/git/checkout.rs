//! A clean working tree of exactly one commit, for CI. What runs in it is somebody else's code: afterwards it is only
//! ever removed, never used.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pointsman_core::ids::Sha;

use super::mirror::Mirror;
use super::private_clone::{CheckedOut, Content, build};
use super::{Error, files};

/// Makes a private clone at `dir` with `sha` checked out (detached), sharing the mirror's objects. It has no remote, no
/// hooks and no branches. What was at `dir` before is removed: a checkout holds nothing that is not in git.
pub fn checkout_exact(mirror: &Mirror, sha: &Sha, dir: &Path) -> Result<(), Error> {
    mirror.require_commit(sha)?;
    let dir = files::absolute(dir)?;
    remove_checkout(&dir)?;
    let config = b"[gc]\n\tauto = 0\n[user]\n\tname = ci\n\temail = ci@localhost\n".to_vec();
    build(
        mirror,
        &dir,
        &Content { at: sha, checked_out: CheckedOut::Detached, refs: Vec::new(), config, exclude: &[] },
    )
}

/// Removes a checkout, also if its tests left directories without write permission. Symlinks are removed, not followed.
pub fn remove_checkout(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(dir).map_err(files::error("make writable", dir))?;
            fs::remove_dir_all(dir).map_err(files::error("remove", dir))
        }
        Err(e) => Err(files::error("remove", dir)(e)),
    }
}

fn make_writable(dir: &Path) -> io::Result<()> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}
