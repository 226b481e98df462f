//! The walls beside the mounts: the filter of system calls, which bubblewrap loads, and the rights of Landlock, which the first
//! program inside takes on itself.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, BitFlags, LandlockStatus, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use pointsman_core::sandbox::syscalls::{Arch, assemble, bytes};
use pointsman_core::sandbox::{Beneath, Right};
use rustix::fs::{MemfdFlags, memfd_create};

/// The rights that are known here. A kernel that has fewer enforces those; the first one, which cannot rename between directories,
/// none.
const KNOWN: ABI = ABI::V6;

/// The filter of this processor as an open file that programs inherit. None for a processor without one.
pub fn open_filter() -> io::Result<Option<File>> {
    let Some(arch) = Arch::named(std::env::consts::ARCH) else { return Ok(None) };
    // Without close-on-exec: bubblewrap reads it.
    let mut file = File::from(memfd_create("pointsman-syscalls", MemfdFlags::empty())?);
    file.write_all(&bytes(&assemble(arch)))?;
    file.rewind()?;
    Ok(Some(file))
}

/// Restricts this thread and everything that it starts to these rights, as far as the kernel knows Landlock. Answers whether it
/// does. A path that is not there gives no right.
pub fn restrict(rights: &[Beneath]) -> io::Result<bool> {
    let status = try_restrict(rights).map_err(io::Error::other)?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => true,
        RulesetStatus::NotEnforced => false,
    })
}

/// The version of the kernel's Landlock, none if it enforces nothing.
pub fn landlock_version() -> Option<u32> {
    // The library tells it to those alone that are restricted.
    let thread = std::thread::Builder::new().name("landlock".to_owned());
    let root = [Beneath { path: PathBuf::from("/"), right: Right::Write }];
    let status = thread.spawn(move || try_restrict(&root)).ok()?.join().ok()?.ok()?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _)
        | (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => None,
        (
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
            LandlockStatus::Available { effective_abi, kernel_abi },
        ) => kernel_abi
            .and_then(|version| u32::try_from(version).ok())
            .or_else(|| effective_abi.to_string().parse().ok()),
    }
}

fn try_restrict(rights: &[Beneath]) -> Result<RestrictionStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        // Sockets without a path, and processes, that are not of this sandbox.
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    for beneath in rights {
        ruleset = ruleset.add_rules(path_beneath_rules([&beneath.path], access(beneath.right)))?;
    }
    ruleset.restrict_self()
}

fn access(right: Right) -> BitFlags<AccessFs> {
    match right {
        Right::List => AccessFs::ReadDir.into(),
        Right::Read => AccessFs::from_read(KNOWN),
        Right::Change => AccessFs::from_read(KNOWN) | AccessFs::WriteFile | AccessFs::Truncate,
        Right::Write => AccessFs::from_all(KNOWN),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use pointsman_core::sandbox::{Beneath, Right};

    use super::{landlock_version, open_filter, restrict};

    #[test]
    fn the_filter_is_whole_instructions_from_its_beginning() {
        let Some(mut file) = open_filter().unwrap() else { return };
        let mut text = Vec::new();
        file.read_to_end(&mut text).unwrap();
        assert!(text.len() > 100 && text.len() % 8 == 0, "{}", text.len());
    }

    #[test]
    fn a_restricted_thread_does_only_what_it_has_a_right_to() {
        let Some(version) = landlock_version() else {
            pointsman_testkit::not_run("landlock", "the kernel does not have it");
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        for name in ["own/a", "shown", "other"] {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), "text").unwrap();
        }
        symlink(root.join("other"), root.join("own/link")).unwrap();
        let inside = root.clone();
        let restricted = std::thread::spawn(move || {
            let root = inside;
            let right = |path: &Path, right| Beneath { path: path.to_owned(), right };
            let rights = [
                right(&root, Right::List),
                right(&root.join("own"), Right::Write),
                right(&root.join("shown"), Right::Read),
                right(&root.join("missing"), Right::Write),
            ];
            assert!(restrict(&rights).unwrap());
            // Its own things, also from one directory to another.
            fs::rename(root.join("own/a/file"), root.join("own/moved")).unwrap();
            fs::write(root.join("own/moved"), "more").unwrap();
            fs::create_dir(root.join("own/b")).unwrap();
            assert_eq!(fs::read_to_string(root.join("shown/file")).unwrap(), "text");
            // Nothing else.
            let refused = |tried: std::io::Result<()>| tried.unwrap_err().kind();
            let denied = std::io::ErrorKind::PermissionDenied;
            assert_eq!(refused(fs::write(root.join("shown/file"), "x")), denied);
            assert_eq!(refused(fs::remove_file(root.join("shown/file"))), denied);
            assert_eq!(refused(fs::read(root.join("other/file")).map(drop)), denied);
            assert_eq!(refused(fs::read(root.join("own/link/file")).map(drop)), denied);
            assert_eq!(refused(fs::write(root.join("other/new"), "x")), denied);
            assert!(fs::hard_link(root.join("other/file"), root.join("own/hard")).is_err());
            assert!(fs::read_dir(root.join("other")).is_ok(), "names are no secret");
            if version >= 6 {
                let own = rustix::process::getppid().unwrap();
                let signal = rustix::process::test_kill_process(own);
                assert_eq!(signal, Err(rustix::io::Errno::PERM), "no process of others");
            }
        });
        restricted.join().unwrap();
        // This thread is as free as before.
        assert_eq!(fs::read_to_string(root.join("other/file")).unwrap(), "text");
    }
}
