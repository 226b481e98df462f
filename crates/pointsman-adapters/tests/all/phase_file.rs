//! Phase files and their neighbours in a directory that others can write to.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use pointsman_adapters::phase_file::{
    Opened, PHASE_FILE_LIMIT, Reading, Refusal, create_exclusive, read, read_result_file, remove_own_file,
    reuse_or_create, sweep_drafts, write_phase, write_state_file,
};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

fn directory() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("dev-session-shop-4.phase");
    (dir, path)
}

fn text(path: &Path) -> (String, Option<String>) {
    match read(path) {
        Reading::Text { first_line, reason, .. } => (first_line, reason),
        other => panic!("expected text, got {other:?}"),
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_new_file_is_private_and_empty() {
    let (_dir, path) = directory();
    assert_eq!(read(&path), Reading::Missing);
    create_exclusive(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(read(&path), Reading::Empty);
    assert_eq!(create_exclusive(&path), Err(Refusal::Exists));
    assert_eq!(reuse_or_create(&path), Ok(Opened::Reused));
}

#[test]
fn only_the_first_line_counts_and_white_space_is_stripped() {
    let (_dir, path) = directory();
    fs::write(&path, " PHASE: awaiting_ci\t\r\nPHASE:done\n").unwrap();
    assert_eq!(text(&path), ("PHASE:awaiting_ci".to_owned(), None));
    fs::write(&path, "PHASE:failed\nReason:  disk \u{1b}[1mfull \nmore\n").unwrap();
    assert_eq!(text(&path), ("PHASE:failed".to_owned(), Some("disk  [1mfull".to_owned())));
    fs::write(&path, "\nPHASE:done\n").unwrap();
    assert_eq!(read(&path), Reading::Empty);
    fs::write(&path, b"PHASE:\xff\n").unwrap();
    assert_eq!(text(&path).0, "PHASE:\u{fffd}");
}

#[test]
fn a_stamp_tells_two_writes_apart() {
    let (_dir, path) = directory();
    let stamp = || match read(&path) {
        Reading::Text { stamp, .. } => stamp,
        other => panic!("expected text, got {other:?}"),
    };
    fs::write(&path, "PHASE:done\n").unwrap();
    let first = stamp();
    assert_eq!(stamp(), first);
    fs::write(&path, "PHASE:failed\n").unwrap();
    assert_ne!(stamp(), first);
}

#[test]
fn a_phase_is_written_like_echo_does() {
    let (_dir, path) = directory();
    assert_eq!(write_phase(&path, "PHASE:done", None), Err(Refusal::Missing));
    create_exclusive(&path).unwrap();
    write_phase(&path, "PHASE:failed", Some("two\nlines")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "PHASE:failed\nReason: two lines\n");
    write_phase(&path, "PHASE:done", None).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "PHASE:done\n");
}

#[test]
fn a_symbolic_link_is_never_followed() {
    let (dir, path) = directory();
    let target = dir.path().join("precious");
    fs::write(&target, "PHASE:done\n").unwrap();
    symlink(&target, &path).unwrap();
    assert_eq!(read(&path), Reading::Refused(Refusal::SymbolicLink));
    assert_eq!(reuse_or_create(&path), Err(Refusal::SymbolicLink));
    assert_eq!(write_phase(&path, "PHASE:failed", None), Err(Refusal::SymbolicLink));
    assert_eq!(read_result_file(&path, 100), Err(Refusal::SymbolicLink));
    write_state_file(&path, b"marker").unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "PHASE:done\n");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}

#[test]
fn a_dangling_link_creates_nothing() {
    let (dir, path) = directory();
    let target = dir.path().join("nowhere");
    symlink(&target, &path).unwrap();
    assert_eq!(create_exclusive(&path), Err(Refusal::Exists));
    assert_eq!(reuse_or_create(&path), Err(Refusal::SymbolicLink));
    assert!(!target.exists());
}

#[test]
fn a_fifo_neither_blocks_nor_is_read() {
    let (_dir, path) = directory();
    fifo(&path);
    assert_eq!(read(&path), Reading::Refused(Refusal::NotRegular("a FIFO")));
    assert!(matches!(reuse_or_create(&path), Err(Refusal::NotRegular(_))));
    assert!(matches!(write_phase(&path, "PHASE:done", None), Err(Refusal::NotRegular(_))));
    assert!(matches!(remove_own_file(&path), Err(Refusal::NotRegular(_))));
    assert!(path.exists());
}

#[test]
fn a_directory_and_a_second_name_are_refused() {
    let (dir, path) = directory();
    fs::create_dir(&path).unwrap();
    assert_eq!(read(&path), Reading::Refused(Refusal::NotRegular("a directory")));
    assert!(matches!(write_phase(&path, "PHASE:done", None), Err(Refusal::NotRegular(_))));
    fs::remove_dir(&path).unwrap();

    let other = dir.path().join("other");
    fs::write(&other, "PHASE:done\n").unwrap();
    fs::hard_link(&other, &path).unwrap();
    assert_eq!(read(&path), Reading::Refused(Refusal::SeveralLinks(2)));
    assert_eq!(write_phase(&path, "PHASE:failed", None), Err(Refusal::SeveralLinks(2)));
    assert_eq!(fs::read_to_string(&other).unwrap(), "PHASE:done\n");
}

#[test]
fn a_foreign_owner_is_refused() {
    // /etc/passwd belongs to root. As root the roles are turned round: give a file away.
    let (_dir, path) = directory();
    let path = if rustix::process::geteuid().is_root() {
        fs::write(&path, "PHASE:done\n").unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        path
    } else {
        PathBuf::from("/etc/passwd")
    };
    assert!(matches!(read(&path), Reading::Refused(Refusal::ForeignOwner(_))));
    assert!(matches!(reuse_or_create(&path), Err(Refusal::ForeignOwner(_))));
    assert!(matches!(remove_own_file(&path), Err(Refusal::ForeignOwner(_))));
    assert!(path.exists());
}

#[test]
fn an_oversized_file_is_refused() {
    let (_dir, path) = directory();
    let limit = usize::try_from(PHASE_FILE_LIMIT).unwrap();
    fs::write(&path, "x".repeat(limit)).unwrap();
    assert_eq!(text(&path).0.len(), limit);
    fs::write(&path, "x".repeat(limit + 1)).unwrap();
    let size = PHASE_FILE_LIMIT + 1;
    assert_eq!(read(&path), Reading::Refused(Refusal::TooLarge { size, limit: PHASE_FILE_LIMIT }));
    create_exclusive(&path.with_extension("2")).unwrap();
    let long = "x".repeat(limit);
    assert!(matches!(
        write_phase(&path.with_extension("2"), "PHASE:failed", Some(&long)),
        Err(Refusal::TooLarge { .. })
    ));
}

#[test]
fn results_are_read_with_a_limit_of_their_own() {
    let (_dir, path) = directory();
    assert_eq!(read_result_file(&path, 10), Ok(None));
    fs::write(&path, "{}").unwrap();
    assert_eq!(read_result_file(&path, 2), Ok(Some(b"{}".to_vec())));
    assert_eq!(read_result_file(&path, 1), Err(Refusal::TooLarge { size: 2, limit: 1 }));
}

#[test]
fn state_files_are_private_and_removed_without_following() {
    let (dir, path) = directory();
    write_state_file(&path, b"one").unwrap();
    write_state_file(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays");

    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    remove_own_file(&link).unwrap();
    assert!(path.exists() && !link.exists());
    remove_own_file(&path).unwrap();
    remove_own_file(&path).unwrap();
    assert!(!path.exists());
}

#[test]
fn drafts_of_dead_writers_are_swept_and_nothing_else() {
    let (dir, path) = directory();
    let at = |name: &str| dir.path().join(name);
    fs::write(&path, "PHASE:done\n").unwrap();
    let (dead, living, linked) =
        (at(".pointsman-draft-aB3dE6"), at(".pointsman-draft-living"), at(".pointsman-draft-linked"));
    fs::write(&dead, "half").unwrap();
    fs::write(&living, "half").unwrap();
    let writer = fs::File::open(&living).unwrap();
    flock(&writer, FlockOperation::LockExclusive).unwrap();
    symlink(&path, &linked).unwrap();
    fs::create_dir(at(".pointsman-draft-folder")).unwrap();
    fifo(&at(".pointsman-draft-fifo00"));
    fs::hard_link(&path, at(".pointsman-draft-second")).unwrap();
    for name in
        [".pointsman-draft-", ".pointsman-draft-12345", ".pointsman-draft-a b c.", ".pointsman-backup"]
    {
        fs::write(at(name), "somebody's").unwrap();
    }
    let before = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(sweep_drafts(dir.path()).unwrap(), 1);
    assert!(!dead.exists() && living.exists() && fs::symlink_metadata(&linked).is_ok());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), before - 1);
    drop(writer);
    assert_eq!(sweep_drafts(dir.path()).unwrap(), 1, "its writer is gone");
    assert!(!living.exists());
}

#[test]
fn a_foreign_draft_stays() {
    if !rustix::process::geteuid().is_root() {
        return pointsman_testkit::not_run("root", "only root can give a file away");
    }
    let (dir, _) = directory();
    let foreign = dir.path().join(".pointsman-draft-aB3dE6");
    fs::write(&foreign, "half").unwrap();
    std::os::unix::fs::chown(&foreign, Some(65534), None).unwrap();
    assert_eq!(sweep_drafts(dir.path()).unwrap(), 0);
    assert!(foreign.exists());
}

#[test]
fn writers_and_sweepers_do_not_disturb_each_other() {
    const WRITES: usize = 2_000;
    let (dir, path) = directory();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                sweep_drafts(dir.path()).unwrap();
            }
        });
        let written = (0..WRITES).try_for_each(|n| write_state_file(&path, n.to_string().as_bytes()));
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        written.unwrap();
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), (WRITES - 1).to_string());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
