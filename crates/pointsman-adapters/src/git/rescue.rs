//! Which captures there are, for people who look for lost work.

use super::mirror::Mirror;
use super::{Error, RefName};

/// Where captures are kept.
const PREFIX: &str = "refs/pointsman/rescue";

/// One capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescue {
    /// Its reference in the mirror.
    pub refname: RefName,
    /// The session it is of.
    pub session: String,
    /// When it was made, in seconds since the epoch.
    pub at_secs: i64,
    /// The files that differ from what was committed before; all of them for a first commit.
    pub files: Vec<String>,
}

/// All captures, sorted by reference.
pub fn list(mirror: &Mirror) -> Result<Vec<Rescue>, Error> {
    let listed = mirror
        .call("for-each-ref")
        .args(["--format=%(refname) %(committerdate:unix)", "--", PREFIX])
        .text()?;
    listed
        .lines()
        .filter_map(|line| {
            let (name, at) = line.split_once(' ')?;
            let session = name.strip_prefix(PREFIX)?.trim_start_matches('/').rsplit_once('/')?.0.to_owned();
            Some((RefName::new(name)?, session, at.parse().ok()?))
        })
        .map(|(refname, session, at_secs)| {
            let changed =
                ["-r", "-z", "--root", "--no-commit-id", "--name-only", "--no-renames", refname.as_str()];
            let files = super::inspect::nul_list(&mirror.call("diff-tree").args(changed).bytes()?);
            Ok(Rescue { refname, session, at_secs, files })
        })
        .collect()
}
