//! The machine's own figures, as the system tells them. What it does not tell is nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pointsman_core::health::{Disk, Machine};

use crate::process::megabytes;

/// Directories of control groups that are looked at, at most: a machine has thousands of units, not of containers.
const GROUPS: usize = 20_000;
/// How deep they lie: a user's containers are below the user's own slice.
const DEEPEST: usize = 8;

/// The most files whose sizes are added up.
const COUNTED_FILES: usize = 500_000;

/// The name of the time since this machine was switched on.
pub fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Looks at the machine; `directories` are those whose disks matter.
pub fn look(directories: &[&Path]) -> Machine {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut disks: Vec<(u64, Disk)> = directories.iter().filter_map(|dir| disk(dir)).collect();
    disks.sort_by_key(|(device, _)| *device);
    disks.dedup_by_key(|(device, _)| *device);
    Machine {
        free_memory_mb: megabytes(&memory, "MemAvailable:"),
        used_swap_mb: used_swap(&memory),
        disks: disks.into_iter().map(|(_, disk)| disk).collect(),
        load_centi: load_of(&load, 0),
        load15_centi: load_of(&load, 2),
        cores: std::thread::available_parallelism().ok().and_then(|cores| u64::try_from(cores.get()).ok()),
        containers: containers(Path::new("/sys/fs/cgroup")),
        // Asking takes a program.
        unhealthy_containers: None,
    }
}

fn used_swap(meminfo: &str) -> Option<u64> {
    megabytes(meminfo, "SwapTotal:")?.checked_sub(megabytes(meminfo, "SwapFree:")?)
}

/// Over one, five or fifteen minutes, by its place.
fn load_of(loadavg: &str, place: usize) -> Option<u64> {
    let (whole, part) = loadavg.split_whitespace().nth(place)?.split_once('.')?;
    let (whole, part): (u64, u64) = (whole.parse().ok()?, format!("{part:0<2}").get(..2)?.parse().ok()?);
    whole.checked_mul(100)?.checked_add(part)
}

/// The room that is left for us on the disk of a directory.
pub fn free_bytes(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The largest directories two levels below `root`, with their size on the disk.
pub fn largest(root: &Path, count: usize) -> Vec<(PathBuf, u64)> {
    let below = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()).collect()
    };
    let mut looked_at = 0;
    let mut sizes: Vec<(PathBuf, u64)> = below(root)
        .iter()
        .flat_map(|dir| below(dir))
        .map(|dir| {
            let size = size_of(&dir, &mut looked_at);
            (dir, size)
        })
        .collect();
    sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    sizes.truncate(count);
    sizes
}

/// The room that a directory takes. Beyond the limit the rest is not counted: a question must not take minutes.
fn size_of(dir: &Path, looked_at: &mut usize) -> u64 {
    let (mut total, mut dirs) = (0, vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok) {
            *looked_at += 1;
            if *looked_at > COUNTED_FILES {
                return total;
            }
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => dirs.push(entry.path()),
                Ok(meta) => total += meta.blocks() * 512,
                Err(_) => {}
            }
        }
    }
    total
}

/// How full the disk of a directory is for us, with what tells it from other disks.
fn disk(directory: &Path) -> Option<(u64, Disk)> {
    let found = rustix::fs::statvfs(directory).ok()?;
    // What is kept back for the system's own user is not ours: as `df` counts.
    let used = found.f_blocks.saturating_sub(found.f_bfree);
    let ours = used.saturating_add(found.f_bavail);
    let used_percent = used.saturating_mul(100).div_ceil(ours.max(1));
    let free_mb = found.f_bavail.saturating_mul(found.f_frsize) >> 20;
    let path = directory.to_string_lossy().into_owned();
    Some((fs::metadata(directory).ok()?.dev(), Disk { path, used_percent, free_mb }))
}

/// Containers that run, by their control groups: no program and no rights are needed for that.
fn containers(root: &Path) -> Option<u64> {
    let mut count = 0;
    let mut seen = 0;
    let mut open = vec![(root.to_owned(), 0)];
    fs::read_dir(root).ok()?;
    while let Some((dir, depth)) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            seen += 1;
            if seen > GROUPS {
                return Some(count);
            }
            let name = entry.file_name();
            if is_container(&name.to_string_lossy(), &dir) {
                count += 1;
            } else if depth < DEEPEST {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    Some(count)
}

/// `docker-<id>.scope`, `libpod-<id>.scope` and such, or `<id>` below `docker`.
fn is_container(name: &str, parent: &Path) -> bool {
    let is_id = |id: &str| id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit());
    let scope = name.strip_suffix(".scope").and_then(|scope| scope.rsplit_once('-'));
    let below = parent.file_name().is_some_and(|name| name == "docker" || name == "libpod_parent");
    (below && is_id(name)) || scope.is_some_and(|(by, id)| is_id(id) && !by.is_empty())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{containers, load_of, look, used_swap};

    #[test]
    fn figures_are_read_as_the_system_writes_them() {
        let text = "MemTotal: 16000000 kB\nSwapTotal: 4194304 kB\nSwapFree: 1048576 kB\n";
        assert_eq!(used_swap(text), Some(3072));
        assert_eq!(used_swap("MemTotal: 1 kB\n"), None);
        for (text, load) in [
            ("0.07 0.10 0.09 1/345 678\n", Some(7)),
            ("12.50 1 1 1/1 1", Some(1250)),
            ("3.5 1", Some(350)),
            ("", None),
            ("nonsense", None),
        ] {
            assert_eq!(load_of(text, 0), load, "{text}");
        }
        assert_eq!(load_of("0.07 0.10 4.09 1/345 678\n", 2), Some(409));
    }

    #[test]
    fn this_machine_tells_its_figures() {
        let directory = tempfile::tempdir().unwrap();
        let machine = look(&[directory.path(), directory.path(), Path::new("/nowhere/at/all")]);
        assert!(machine.free_memory_mb.is_some_and(|free| free > 0), "{machine:?}");
        assert!(machine.used_swap_mb.is_some() && machine.load_centi.is_some(), "{machine:?}");
        assert_eq!(machine.disks.len(), 1, "one disk, told once");
        assert!(machine.disks[0].used_percent <= 100 && machine.disks[0].free_mb > 0, "{machine:?}");
    }

    #[test]
    fn containers_are_counted_by_their_groups() {
        let root = tempfile::tempdir().unwrap();
        let id = "a1".repeat(32);
        assert_eq!(containers(root.path()), Some(0));
        for group in [
            format!("system.slice/docker-{id}.scope/inner"),
            format!("docker/{id}"),
            format!("user.slice/user-1000.slice/user.slice/libpod-{id}.scope"),
            "system.slice/cron.service".to_owned(),
            "system.slice/docker-short.scope".to_owned(),
            format!("elsewhere/{id}"),
        ] {
            std::fs::create_dir_all(root.path().join(group)).unwrap();
        }
        assert_eq!(containers(root.path()), Some(3));
        assert_eq!(containers(&root.path().join("missing")), None);
    }
}
