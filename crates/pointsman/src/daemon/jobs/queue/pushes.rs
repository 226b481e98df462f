//! Pushes to main that may outlive the daemon that began them. A killed daemon leaves its git and the server's at work, and
//! main may move when the next daemon has already built other candidates of the same entries. Every push is
//! therefore remembered in the mirror before it begins: what it brings to main has landed, whoever finds it.

use pointsman_adapters::git::RefName;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::push::Expect;
use pointsman_core::ids::Sha;
use pointsman_core::queue::EntryId;

use super::QueuedCandidate;

/// Below it: the entry's number, then the commit that its candidate stands on.
const PUSHES: &str = "refs/pointsman/landing";

/// A push that was begun.
pub(super) struct Begun {
    pub(super) entry: EntryId,
    pub(super) base: Sha,
    pub(super) candidate: Sha,
}

/// Remembers that these candidates are about to be pushed.
pub(super) fn remember(mirror: &Mirror, members: &[QueuedCandidate]) -> anyhow::Result<()> {
    for member in members {
        let name = format!("{PUSHES}/{}/{}", member.entry.id, member.base);
        let Some(name) = RefName::new(&name) else { continue };
        let expect = mirror.read_ref(&name)?.map_or(Expect::Absent, Expect::At);
        mirror.update_ref(&name, &member.built.commit, &expect)?;
    }
    Ok(())
}

/// The pushes that were begun and are not known to have ended.
pub(super) fn begun(mirror: &Mirror) -> anyhow::Result<Vec<Begun>> {
    let Some(prefix) = RefName::new(PUSHES) else { return Ok(Vec::new()) };
    let read = |(name, candidate): (RefName, Sha)| {
        let (entry, base) = name.as_str().strip_prefix(PUSHES)?.trim_start_matches('/').split_once('/')?;
        Some(Begun { entry: EntryId(entry.parse().ok()?), base: Sha::new(base)?, candidate })
    };
    Ok(mirror.list_refs(&prefix)?.into_iter().filter_map(read).collect())
}

/// Forgets the pushes of an entry that has landed.
pub(super) fn forget(mirror: &Mirror, entry: EntryId) -> anyhow::Result<()> {
    for push in begun(mirror)?.into_iter().filter(|push| push.entry == entry) {
        if let Some(name) = RefName::new(&format!("{PUSHES}/{entry}/{}", push.base)) {
            mirror.delete_ref(&name, &push.candidate)?;
        }
    }
    Ok(())
}
