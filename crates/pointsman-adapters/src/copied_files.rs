//! Untracked files of a person's checkout that a working tree needs.
//!
//! Both sides are looked at without following links: a checkout may have a link to anywhere, and so may a commit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pointsman_core::tree::CopyRules;
use rustix::fs::OFlags;

/// The most files that are copied into one tree.
const FILES: usize = 20_000;
/// The largest file that is copied. Each is read as a whole, to look for secrets.
const FILE_BYTES: u64 = 64 << 20;
/// The most directories that are looked into.
const DIRECTORIES: usize = 200_000;

/// The files of a checkout that the rules want, as paths below it, in order. Links are left out.
pub fn wanted(checkout: &Path, rules: &CopyRules) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut directories = vec![String::new()];
    let mut looked_into = 0;
    while let Some(below) = directories.pop() {
        looked_into += 1;
        if looked_into > DIRECTORIES || found.len() >= FILES {
            break;
        }
        for entry in fs::read_dir(checkout.join(&below))? {
            let entry = entry?;
            // A name that is no text fits no rule.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if below.is_empty() { name } else { format!("{below}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() && rules.enters(&path) {
                directories.push(path);
            } else if kind.is_file() && rules.wants(&path) && found.len() < FILES {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Copies files into a tree in which nothing runs. One that the tree has already stays as it is, so tracked files do. Answers
/// those that were left out because they hold a secret, are too large, or lead through a link.
pub fn copy(
    checkout: &Path,
    tree: &Path,
    files: &[String],
    is_secret: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<String>> {
    let mut left_out = Vec::new();
    for path in files {
        let to = tree.join(path);
        if to.symlink_metadata().is_ok() {
            continue;
        }
        let Some((bytes, mode)) = read(&checkout.join(path))? else {
            left_out.push(path.clone());
            continue;
        };
        if is_secret(&bytes) || !make_directories(tree, path)? {
            left_out.push(path.clone());
            continue;
        }
        write(&to, &bytes, mode)?;
    }
    Ok(left_out)
}

/// A file with its permissions; none if it is gone, a link or too large.
fn read(path: &Path) -> io::Result<Option<(Vec<u8>, u32)>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else { return Ok(None) };
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > FILE_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(Some((bytes, meta.permissions().mode() & 0o777)))
}

/// Makes the directories above a file of a tree. False if something else is in their place.
fn make_directories(tree: &Path, path: &str) -> io::Result<bool> {
    let mut at = PathBuf::from(tree);
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in parts {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&at)?,
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(mode | 0o600).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn wanted_files_are_copied_and_nothing_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        let (checkout, tree, outside) =
            (dir.path().join("checkout"), dir.path().join("tree"), dir.path().join("outside"));
        for made in [&checkout, &tree, &outside] {
            fs::create_dir_all(made).unwrap();
        }
        let put = |path: &str, text: &str| {
            let path = checkout.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(".env", "A=1");
        put("app/.env", "A=2");
        put("app/.npmrc", "//registry/:_authToken=x");
        put("certs/dev.crt", "cert");
        put("certs/token", "it holds the-known-secret inside");
        put("linked/file", "through a link");
        put("tracked.txt", "of the checkout");
        put("run.sh", "#!/bin/sh");
        fs::set_permissions(checkout.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("/etc/passwd", checkout.join("certs/passwd")).unwrap();
        fs::write(tree.join("tracked.txt"), "of the commit").unwrap();
        symlink(&outside, tree.join("linked")).unwrap();

        let patterns = ["certs/**", "linked/*", "tracked.txt", "run.sh", "**/.npmrc"].map(str::to_owned);
        let rules = CopyRules::new(&patterns, Some(".env\n"));
        let files = wanted(&checkout, &rules).unwrap();
        assert_eq!(
            files,
            [".env", "app/.env", "certs/dev.crt", "certs/token", "linked/file", "run.sh", "tracked.txt"]
        );
        let secret = |bytes: &[u8]| bytes.windows(16).any(|window| window == b"the-known-secret");
        assert_eq!(copy(&checkout, &tree, &files, secret).unwrap(), ["certs/token", "linked/file"]);
        let text = |path: &str| fs::read_to_string(tree.join(path)).unwrap();
        assert_eq!((text(".env"), text("app/.env")), ("A=1".to_owned(), "A=2".to_owned()));
        assert_eq!((text("certs/dev.crt"), text("tracked.txt")), ("cert".into(), "of the commit".into()));
        assert_eq!(fs::metadata(tree.join("run.sh")).unwrap().permissions().mode() & 0o111, 0o111);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "a link of the commit led out of the tree");
        assert!(!tree.join("certs/passwd").exists() && !tree.join("app/.npmrc").exists());
        // A second time nothing changes.
        fs::write(tree.join(".env"), "changed").unwrap();
        copy(&checkout, &tree, &files, secret).unwrap();
        assert_eq!(text(".env"), "changed");
    }
}
