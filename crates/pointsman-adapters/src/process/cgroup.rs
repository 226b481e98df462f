//! Control groups of the second version, where this user may make some.
//!
//! A process cannot leave its group without permission to write to another one, whatever it does about its parents, its session
//! and its name, and the kernel ends or freezes a whole group at one word. Groups are made below the one that this
//! process is in: systemd gives a user's services theirs (`Delegate=yes`), and root has all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What all directories of ours begin with.
const PREFIX: &str = "pointsman-";
/// A group can be swept away between its making and the first process in it.
const TRIES: usize = 3;

/// The group below which we can make others; none if the machine does not let us. Found out once.
static BASE: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Makes no groups in this process. It has to come before anybody asks for one.
pub fn switch_off() {
    let _ = BASE.set(None);
}

/// The group below which we can make others; none if the machine does not let us.
pub fn delegated() -> Option<&'static Path> {
    BASE.get_or_init(|| {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let base = base(&mounts, &own)?;
        let probe = base.join(format!("{PREFIX}probe-{}", std::process::id()));
        fs::create_dir(&probe).ok()?;
        let works = probe.join("cgroup.kill").exists() && probe.join("cgroup.freeze").exists();
        let _ = fs::remove_dir(&probe);
        works.then_some(base)
    })
    .as_deref()
}

/// The directory of our own group.
fn base(mounts: &str, own: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let (place, system) = line.split_once(" - ")?;
        let is_ours = system.split(' ').next() == Some("cgroup2");
        is_ours.then(|| place.split(' ').nth(4)).flatten()
    })?;
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    // A group outside of our namespace begins with `/..`: its directory is not ours.
    let group = group.strip_prefix('/').filter(|group| !group.starts_with(".."))?;
    Some(Path::new(mount).join(group))
}

/// The directory of one group of ours; `owner` names the daemon's state, `name` the session or job.
pub fn path(owner: &str, name: &str) -> Option<PathBuf> {
    Some(delegated()?.join(format!("{PREFIX}{owner}")).join(name))
}

/// Moves this process into a group, which is made if it is not there.
pub fn join(group: &Path) -> io::Result<()> {
    let mut result = Ok(());
    for _ in 0..TRIES {
        fs::create_dir_all(group)?;
        // 0 is whoever writes.
        result = fs::write(group.join("cgroup.procs"), "0");
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Kills every process of a group.
pub fn kill(group: &Path) -> io::Result<()> {
    absent_is_fine(fs::write(group.join("cgroup.kill"), "1"))
}

/// Stops every process of a group, new ones too.
pub fn freeze(group: &Path) -> io::Result<()> {
    absent_is_fine(fs::write(group.join("cgroup.freeze"), "1"))
}

/// Lets every process of a group go on.
pub fn thaw(group: &Path) -> io::Result<()> {
    absent_is_fine(fs::write(group.join("cgroup.freeze"), "0"))
}

/// Whether any process is in a group.
pub fn is_populated(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.events")).is_ok_and(|events| events.contains("populated 1"))
}

/// The processes of a group.
pub fn processes(group: &Path) -> Vec<u32> {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    listed.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Removes a group without processes; the kernel refuses for any other.
pub fn remove(group: &Path) {
    let _ = fs::remove_dir(group);
}

/// Removes all groups of ours in which nothing runs, also those of daemons that are gone.
pub fn sweep() {
    let Some(base) = delegated() else { return };
    let dirs = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_ours =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    for owner in dirs(base).filter(is_ours) {
        dirs(&owner).filter(|path| path.is_dir()).for_each(|group| remove(&group));
        remove(&owner);
    }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::base;

    #[test]
    fn our_own_group_is_found_where_the_second_version_is_mounted() {
        let mounts = "25 1 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      26 1 0:23 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw\n";
        let own = "4:cpu:/\n0::/user.slice/app.service\n";
        let expected = PathBuf::from("/sys/fs/cgroup/unified/user.slice/app.service");
        assert_eq!(base(mounts, own), Some(expected));
        assert_eq!(base(mounts, "0::/\n"), Some("/sys/fs/cgroup/unified/".into()));
        assert_eq!(base(mounts, "0::/../outside\n"), None);
        assert_eq!(base("25 1 0:22 / / rw - ext4 /dev/vda rw\n", own), None);
    }
}
