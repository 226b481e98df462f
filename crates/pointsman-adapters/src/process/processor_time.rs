//! Processor time as a sign of life.
//!
//! Whatever an agent does, be it output, a hook, a changed file or a thought, costs processor time in one of its processes. A
//! process that is there and uses none gives no sign.

use std::collections::BTreeMap;
use std::fs;

use crate::watch::proc_stat::ProcStat;

/// The processor time of every process of this machine at one moment.
#[derive(Debug, Default)]
pub struct ProcessorTimes {
    used: BTreeMap<u32, u128>,
    children: BTreeMap<u32, Vec<u32>>,
}

impl ProcessorTimes {
    /// Reads all processes once, for all sessions together.
    pub fn now() -> Self {
        let mut found = Self::default();
        let Ok(entries) = fs::read_dir("/proc") else { return found };
        for pid in entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()) {
            let Ok(stat) = ProcStat::read(pid) else { continue };
            found.children.entry(stat.parent).or_default().push(pid);
            found.used.insert(pid, u128::from(stat.used_ticks) << 64 | u128::from(first_thread(pid)));
        }
        found
    }

    /// The processor time of a process and all its descendants, in no particular unit: another number than before means
    /// that one of them ran. None if the process is not there.
    pub fn of_tree(&self, pid: u32) -> Option<u128> {
        self.used.get(&pid)?;
        let (mut sum, mut open) = (0_u128, vec![pid]);
        // Every process has one parent, so none comes twice.
        while let Some(pid) = open.pop() {
            sum = sum.wrapping_add(self.used.get(&pid).copied().unwrap_or_default());
            open.extend(self.children.get(&pid).into_iter().flatten());
        }
        Some(sum)
    }
}

/// Nanoseconds that the first thread of a process ran. Ticks are a hundredth of a second, and an agent that types a line
/// now and then uses less. Zero where the kernel does not count.
fn first_thread(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|ran| ran.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_testkit::eventually;

    use super::ProcessorTimes;
    use crate::process::Run;

    #[test]
    fn a_tree_that_works_is_told_from_one_that_waits() {
        let dir = tempfile::tempdir().unwrap();
        let (log, go) = (dir.path().join("log"), dir.path().join("go"));
        // A child waits in a pipe that nobody writes to, until it is given something to do.
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        let script = format!("(read x < {0}; : > {1}; exec sleep 60) & wait", fifo.display(), go.display());
        let job = Run::new("sh").args(["-c", &script]).inherit(&["PATH"]).start_job(&log).unwrap();
        let used = || ProcessorTimes::now().of_tree(job.pid());
        let mut before = used();
        eventually("it to wait", Duration::from_secs(20), || {
            let again = used();
            (std::mem::replace(&mut before, again) == again).then_some(())
        });
        assert!(before.is_some());
        std::fs::write(&fifo, "go\n").unwrap();
        eventually("it to work", Duration::from_secs(20), || go.exists().then_some(()));
        assert_ne!(used(), before);
        drop(job);
        assert_eq!(ProcessorTimes::default().of_tree(1), None);
    }
}
