//! Reading a reference without starting git: the loose file, then `packed-refs`.

use std::path::Path;

use pointsman_core::ids::Sha;

use super::files::read_untrusted;
use super::{Error, RefName};

/// A loose reference is an object id and a line break.
const LOOSE_CAP: u64 = 4096;
/// `packed-refs` with some hundred thousand references.
const PACKED_CAP: u64 = 32 << 20;

/// Where a reference of the repository points. Git removes a loose file only after `packed-refs` has the value, so
/// this order never misses one.
pub(super) fn read_ref(git_dir: &Path, refname: &RefName) -> Result<Option<Sha>, Error> {
    let loose = git_dir.join(refname.as_str());
    let is_dir = loose.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if !is_dir && let Some(bytes) = read_untrusted(&loose, LOOSE_CAP)? {
        let text = String::from_utf8_lossy(&bytes);
        let sha = Sha::new(text.trim_end());
        return sha.map(Some).ok_or(Error::NotOurs { path: loose, expected: "a reference to a commit" });
    }
    let Some(bytes) = read_untrusted(&git_dir.join("packed-refs"), PACKED_CAP)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().find_map(|line| {
        let (sha, name) = line.split_once(' ')?;
        if name == refname.as_str() { Sha::new(sha) } else { None }
    }))
}
