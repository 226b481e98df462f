//! The server beside which a session's tree finds submodules with relative addresses and large files.
//!
//! `origin` of a tree is its gateway, a directory with nothing beside it. So its settings name the server that the project's own
//! repository is on, without an account.

use pointsman_core::ids::Sha;

use super::Error;
use super::checkout::without_credentials;
use super::inspect::nul_fields;
use super::mirror::{Mirror, RemoteOwner};

const MODULES: &str = ".gitmodules";
/// The most submodules whose addresses are written down.
const MODULES_LIMIT: usize = 1000;

/// A line of a tree's configuration: section, key, value.
pub(super) type Setting = (String, &'static str, Vec<u8>);

/// The settings of a tree that begins at `base`. None unless the repository is on a server that speaks HTTP: others are not
/// reached from inside a sandbox.
pub(super) fn settings(mirror: &Mirror, base: &Sha) -> Result<Vec<Setting>, Error> {
    let url = without_credentials(mirror.remote_url());
    let is_http = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    if mirror.remote_owner() == RemoteOwner::Us || !is_http {
        return Ok(Vec::new());
    }
    let repository = url.trim_end_matches('/');
    let suffix = if repository.ends_with(".git") { "" } else { ".git" };
    let large = format!("{repository}{suffix}/info/lfs");
    let mut found = vec![
        (format!("lfs.{large}"), "locksverify", b"false".to_vec()),
        ("lfs".to_owned(), "url", large.into_bytes()),
    ];
    if mirror.present(base, &[MODULES])?.is_empty() {
        return Ok(found);
    }
    let blob = format!("{base}:{MODULES}");
    let listed = mirror
        .call("config")
        .args(["--blob", &blob, "-z", "--get-regexp", r"^submodule\..*\.url$"])
        // A file that git cannot read names nothing.
        .finish()?;
    for entry in nul_fields(&listed.stdout).take(MODULES_LIMIT) {
        let entry = String::from_utf8_lossy(entry);
        let Some((key, address)) = entry.split_once('\n') else { continue };
        let Some(section) = key.strip_suffix(".url").filter(|section| is_plain(section)) else { continue };
        if let Some(address) = resolve(repository, address) {
            found.push((section.to_owned(), "url", address.into_bytes()));
        }
    }
    Ok(found)
}

/// Whether a section can be written without quoting.
fn is_plain(section: &str) -> bool {
    section.chars().all(|c| c.is_ascii_alphanumeric() || "._/-+@ ".contains(c))
}

/// A relative address, as git resolves it against that of the repository. None for one that is whole already, or that leads
/// out of the server.
fn resolve(repository: &str, address: &str) -> Option<String> {
    let (scheme, place) = repository.split_once("://")?;
    let (mut place, mut rest) = (place, address);
    if !rest.starts_with("./") && !rest.starts_with("../") {
        return None;
    }
    loop {
        if let Some(after) = rest.strip_prefix("./") {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("../") {
            place = place.rsplit_once('/')?.0;
            rest = after;
        } else {
            return Some(format!("{scheme}://{place}/{}", rest.trim_end_matches('/')));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_plain, resolve};

    #[test]
    fn relative_addresses_lead_to_the_same_server() {
        let from = "https://forge.example.org/ann/shop.git";
        for (address, expected) in [
            ("../lib.git", Some("https://forge.example.org/ann/lib.git")),
            ("../../bob/lib", Some("https://forge.example.org/bob/lib")),
            ("./wiki.git/", Some("https://forge.example.org/ann/shop.git/wiki.git")),
            ("../../../etc/x", None),
            ("https://other.example.org/lib.git", None),
            ("/srv/lib.git", None),
            ("ext::sh -c x", None),
        ] {
            assert_eq!(resolve(from, address).as_deref(), expected, "{address}");
        }
        assert!(is_plain("submodule.vendor/lib") && !is_plain("submodule.a\"]\n[core"));
    }
}
