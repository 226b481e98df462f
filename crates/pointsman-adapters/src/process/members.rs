//! All processes of one session, turn or job, however they detached.
//!
//! Three things find them. A control group has them all, where we may make one. A sandbox writes down its first process, with
//! which everything inside ends. Outside of both, the first program stays and adopts what is orphaned ([`super::reaper`]),
//! and a variable names those that it missed because it was killed itself.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::identity::Process;
use super::{census, cgroup};
use crate::watch::proc_stat::ProcStat;

/// Between two looks whether somebody has ended.
const LOOK: Duration = Duration::from_millis(5);
/// The option of bubblewrap for the record.
pub const RECORD_OPTION: &str = "--info-fd";
/// Rounds of stopping: each finds what was started while the last one was under way.
const ROUNDS: usize = 50;

/// The means to find all processes of one session, turn or job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// The file in which its sandboxes write down their first processes.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// A path among the words of its sandboxes. One that was killed before it wrote anything down is known by that: it waits for
    /// ever, and has not run anything yet that could change its words.
    #[serde(default)]
    pub shown: Option<PathBuf>,
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
    /// A variable that all of them are started with, and its value.
    #[serde(default)]
    pub variable: Option<(String, String)>,
}

/// One entry of a record, as bubblewrap writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    child_pid: u32,
    /// Older releases do not tell it.
    #[serde(default)]
    pid_namespace: Option<u64>,
}

impl Members {
    /// Moves this process into the control group. False if there is none, or if the kernel refuses.
    pub fn join(&self) -> bool {
        self.cgroup.as_deref().is_some_and(|group| cgroup::join(group).is_ok())
    }

    /// The record, for a sandbox that this process is about to become: the descriptor is inherited.
    pub fn open_record(&self) -> io::Result<Option<File>> {
        let Some(path) = &self.record else { return Ok(None) };
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
        fcntl_setfd(&file, FdFlags::empty())?;
        Ok(Some(file))
    }

    /// Every process that is alive.
    pub fn alive(&self) -> Vec<Process> {
        let mut all = Vec::new();
        for init in self.inits() {
            all.extend(descendants(init.pid));
            all.push(init);
        }
        if let Some(shown) = &self.shown {
            all.extend(
                census::with_words(&[RECORD_OPTION, &shown.to_string_lossy()])
                    .into_iter()
                    .filter_map(Process::of),
            );
        }
        let group = self.cgroup.as_deref().map(cgroup::processes).unwrap_or_default();
        all.extend(group.into_iter().filter_map(Process::of));
        if let Some((name, value)) = &self.variable {
            all.extend(census::with_variable(name, Path::new(value)).into_iter().filter_map(Process::of));
        }
        all.retain(|process| process.is_alive());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Kills them all and waits until they are gone, or until `limit` has passed. Answers how many are left, which the kernel
    /// does not let go.
    pub fn end(&self, limit: Duration) -> usize {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(group) = &self.cgroup
                && let Err(error) = cgroup::kill(group)
            {
                tracing::warn!(group = %group.display(), %error, "a control group cannot be ended");
            }
            let alive = self.alive();
            alive.iter().for_each(|process| process.kill());
            let populated = self.cgroup.as_deref().is_some_and(cgroup::is_populated);
            if alive.is_empty() && !populated {
                break;
            }
            if Instant::now() >= deadline {
                return alive.len().max(1);
            }
            std::thread::park_timeout(LOOK);
        }
        if let Some(group) = &self.cgroup {
            cgroup::remove(group);
        }
        if let Some(record) = &self.record {
            let _ = fs::remove_file(record);
        }
        0
    }

    /// Stops them all, so that nothing of them runs until they are ended.
    pub fn freeze(&self) {
        if let Some(group) = self.cgroup.as_deref().filter(|group| group.is_dir()) {
            match cgroup::freeze(group) {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(group = %group.display(), %error, "a control group cannot be frozen")
                }
            }
        }
        for _ in 0..ROUNDS {
            let running = self.alive().into_iter().filter(|process| !process.is_stopped());
            if running.map(|process| process.signal(Signal::STOP)).count() == 0 {
                break;
            }
        }
    }

    /// Lets them go on after [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        if let Some(group) = &self.cgroup
            && let Err(error) = cgroup::thaw(group)
        {
            tracing::warn!(group = %group.display(), %error, "a control group stays frozen");
        }
        self.alive().into_iter().filter(|process| process.is_stopped()).for_each(Process::go_on);
    }

    /// The first processes of its sandboxes that are alive.
    fn inits(&self) -> Vec<Process> {
        let Some(record) = &self.record else { return Vec::new() };
        let text = fs::read(record).unwrap_or_default();
        let entries = serde_json::Deserializer::from_slice(&text).into_iter::<Entry>();
        entries.map_while(Result::ok).filter_map(Entry::init).collect()
    }
}

impl Entry {
    /// The process, if it still is the first of that namespace.
    fn init(self) -> Option<Process> {
        let process = Process::of(self.child_pid)?;
        let namespace = fs::metadata(format!("/proc/{}/ns/pid", self.child_pid)).ok()?.ino();
        let is_same = match self.pid_namespace {
            Some(recorded) => recorded == namespace,
            None => fs::metadata("/proc/self/ns/pid").ok()?.ino() != namespace,
        };
        (is_same && process.is_alive()).then_some(process)
    }
}

/// All processes below this one. Whoever adopts orphans, as the first process of a sandbox does, has them all.
pub fn descendants(pid: u32) -> Vec<Process> {
    let all: Vec<(Process, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| {
            let stat = ProcStat::read(pid).ok()?;
            Some((Process { pid, start_time: stat.start_time }, stat.parent))
        })
        .collect();
    let mut found = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for (process, _) in all.iter().filter(|(_, of)| *of == parent) {
            found.push(*process);
            parents.push(process.pid);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_testkit::eventually;

    use super::{Entry, Members, descendants};
    use crate::process::{Run, is_stopped};

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn a_record_of_several_sandboxes_is_read_to_its_end() {
        let text = "{\n \"child-pid\": 12,\n \"pid-namespace\": 4026532180\n}\n{\"child-pid\": 13}\n{\"chi";
        let entries = serde_json::Deserializer::from_slice(text.as_bytes()).into_iter::<Entry>();
        let entries: Vec<Entry> = entries.map_while(Result::ok).collect();
        assert_eq!(entries[0], Entry { child_pid: 12, pid_namespace: Some(4_026_532_180) });
        assert_eq!(entries[1], Entry { child_pid: 13, pid_namespace: None });
        assert_eq!(entries.len(), 2);
    }

    #[test]
    fn a_process_that_is_no_sandbox_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("record");
        std::fs::write(&record, format!("{{\"child-pid\": {}}}", std::process::id())).unwrap();
        let members = Members { record: Some(record.clone()), ..Members::default() };
        assert_eq!(members.alive(), []);
        std::fs::write(&record, format!("{{\"child-pid\": {}, \"pid-namespace\": 1}}", std::process::id()))
            .unwrap();
        assert_eq!(members.alive(), []);
        assert_eq!(members.end(LIMIT), 0);
    }

    #[test]
    fn those_with_a_variable_are_stopped_and_ended() {
        let dir = tempfile::tempdir().unwrap();
        let value = dir.path().to_string_lossy().into_owned();
        let run = Run::new("sh").args(["-c", "setsid sleep 60 & wait"]).inherit(&["PATH"]);
        let job = run.env("POINTSMAN_MEMBER", &value).start_job(&dir.path().join("log")).unwrap();
        let members =
            Members { variable: Some(("POINTSMAN_MEMBER".to_owned(), value)), ..Members::default() };
        eventually("both are there", LIMIT, || (members.alive().len() == 2).then_some(()));
        assert_eq!(descendants(job.pid()).len(), 1);
        members.freeze();
        for process in members.alive() {
            eventually("it is stopped", LIMIT, || is_stopped(process.pid, process.start_time).then_some(()));
        }
        assert_eq!(members.end(LIMIT), 0);
        assert_eq!(members.alive(), []);
    }
}
