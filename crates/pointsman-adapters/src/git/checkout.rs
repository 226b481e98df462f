//! A clean working tree of exactly one commit, for CI. What runs in it is somebody else's code: afterwards it is only
//! ever removed, never used.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pointsman_core::ids::Sha;

use super::bare::ObjectFormat;
use super::inspect::nul_fields;
use super::mirror::{Mirror, RemoteOwner};
use super::{BranchName, Error, files};

const CONFIG: &str = "\tbare = false\n[gc]\n\tauto = 0\n[user]\n\tname = ci\n\temail = ci@localhost\n";
/// Where a push from a checkout leads.
const NO_PUSH: &str = "read-only:this-checkout-cannot-push";

/// Makes a private clone at `dir` with `sha` checked out (detached), sharing the mirror's objects. It has no remote (see
/// [`give_origin`]), no hooks and no branches. What was at `dir` before is removed: a checkout holds nothing that is not in git.
///
/// Gates wait for this, so it is one call of git: the few files of an empty repository are written here, and nothing
/// of it is synced, because nobody needs it after a power cut.
pub fn checkout_exact(mirror: &Mirror, sha: &Sha, dir: &Path) -> Result<(), Error> {
    let dir = files::absolute(dir)?;
    remove_checkout(&dir)?;
    write_repository(mirror, sha, &dir)?;
    let git_dir = dir.join(".git");
    let done = mirror.git.call("reset").git_dir(&git_dir).work_tree(&dir).args(["--quiet", "--hard"]).ok();
    // Git's own answer to a missing commit is about HEAD.
    done.or_else(|error| {
        remove_checkout(&dir)?;
        mirror.require_commit(sha).and(Err(error))
    })
}

/// Writes the few files of a repository with `sha` as its detached head and without an index.
pub(super) fn write_repository(mirror: &Mirror, sha: &Sha, dir: &Path) -> Result<(), Error> {
    let git_dir = dir.join(".git");
    for part in ["objects/info", "refs/heads", "info"] {
        files::create_dir_all(&git_dir.join(part))?;
    }
    let write = |name: &str, content: &[u8]| {
        let path = git_dir.join(name);
        fs::write(&path, content).map_err(files::error("write", &path))
    };
    write("config", format!("[core]\n{}{CONFIG}", format_of(sha)).as_bytes())?;
    write("HEAD", format!("{sha}\n").as_bytes())?;
    write("objects/info/alternates", &[mirror.objects().as_os_str().as_bytes(), b"\n"].concat())?;
    mirror.lend_shallow(&git_dir)
}

/// Names files of a new checkout that are no part of the work, as lines of its own exclude file. Nobody has worked in it yet.
pub fn exclude(dir: &Path, lines: &[String]) -> Result<(), Error> {
    if lines.is_empty() {
        return Ok(());
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    files::write_atomic(&dir.join(".git/info/exclude"), text.as_bytes(), 0o644)
}

/// Lets a checkout for CI name where it comes from: `origin` is the mirror's remote, without credentials and for reading
/// only, so that relative submodules and large files are found beside it; of the embedded forge it is the mirror.
/// `origin/<primary>` is there already, so that a diff against it asks nobody.
pub fn give_origin(mirror: &Mirror, dir: &Path, primary: &BranchName) -> Result<(), Error> {
    let git_dir = dir.join(".git");
    let (url, branches) = match mirror.remote_owner() {
        RemoteOwner::Us => (mirror.dir().display().to_string(), "refs/remotes/origin"),
        RemoteOwner::Others => (without_credentials(mirror.remote_url()), "refs/heads"),
    };
    let quoted = url.replace('\\', "\\\\").replace('"', "\\\"");
    let remote = format!(
        "[remote \"origin\"]\n\turl = \"{quoted}\"\n\tpushurl = {NO_PUSH}\n\tfetch = +{branches}/*:refs/remotes/origin/*\n"
    );
    let path = git_dir.join("config");
    let mut config = fs::read(&path).map_err(files::error("read", &path))?;
    config.extend(remote.into_bytes());
    fs::write(&path, config).map_err(files::error("write", &path))?;
    if let Some(head) = mirror.remote_head(primary)? {
        let path = git_dir.join("packed-refs");
        let refs = format!("# pack-refs with: peeled fully-peeled sorted \n{head} {}\n", primary.tracking());
        fs::write(&path, refs).map_err(files::error("write", &path))?;
    }
    Ok(())
}

/// The address without a name and a token in front of the server.
pub(super) fn without_credentials(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) if ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
            let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
            let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
            format!("{scheme}://{server}/{path}")
        }
        Some(_) | None => url.to_owned(),
    }
}

/// The lines of a repository's configuration that say what its ids are.
fn format_of(sha: &Sha) -> &'static str {
    match ObjectFormat::of(sha) {
        ObjectFormat::Sha1 => "\trepositoryformatversion = 0\n",
        ObjectFormat::Sha256 => {
            "\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n[core]\n"
        }
    }
}

/// Makes the files that `wanted` picks as they are in `base`: in a checkout that nobody has worked in yet. Those that `base`
/// has not are removed. HEAD stays where it is.
pub fn restore_from(
    mirror: &Mirror,
    dir: &Path,
    head: &Sha,
    base: &Sha,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let git_dir = dir.join(".git");
    let picked = |sha: &Sha| -> Result<Vec<u8>, Error> {
        let listed =
            mirror.call("ls-tree").args(["-r", "-z", "--name-only", "--full-tree", sha.as_str()]).bytes()?;
        let names = nul_fields(&listed).filter(|name| wanted(&String::from_utf8_lossy(name)));
        Ok(names.flat_map(|name| [name, b"\0"].concat()).collect())
    };
    let call = |operation| mirror.git.call(operation).git_dir(&git_dir).work_tree(dir);
    const FROM_STDIN: [&str; 2] = ["--pathspec-from-file=-", "--pathspec-file-nul"];
    let (gone, back) = (picked(head)?, picked(base)?);
    // Git itself does not write through links that a commit brings.
    if !gone.is_empty() {
        call("rm").args(["--quiet", "--force"]).args(FROM_STDIN).stdin(gone).ok()?;
    }
    if !back.is_empty() {
        call("checkout").args(["--quiet", base.as_str()]).args(FROM_STDIN).stdin(back).ok()?;
    }
    Ok(())
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
