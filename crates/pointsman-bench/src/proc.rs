//! What the kernel knows of a process: processor time and memory.

use std::time::Duration;

use anyhow::Context;

/// The unit of processor times in /proc, the same on every machine we run on, whatever the kernel's own tick is.
const USER_HZ: u64 = 100;

/// What a process has cost so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Processor time, its own and that of its ended children.
    pub(crate) cpu: Duration,
    /// Resident memory in bytes.
    pub(crate) resident: u64,
}

/// Reads it.
pub(crate) fn cost(pid: u32) -> anyhow::Result<Cost> {
    let cpu = cpu_time(&read(pid, "stat")?).with_context(|| format!("/proc/{pid}/stat is not understood"))?;
    let resident = field(&read(pid, "status")?, "VmRSS").context("a process without memory")? * 1024;
    Ok(Cost { cpu, resident })
}

/// Who started it.
pub(crate) fn parent(pid: u32) -> anyhow::Result<u32> {
    let number = field(&read(pid, "status")?, "PPid").context("a process without a parent")?;
    Ok(u32::try_from(number)?)
}

fn read(pid: u32, name: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(format!("/proc/{pid}/{name}"))
        .with_context(|| format!("process {pid} cannot be looked at"))
}

/// The machine's memory in bytes.
pub(crate) fn machine_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    field(&text, "MemTotal").unwrap_or(0) * 1024
}

fn cpu_time(stat: &str) -> Option<Duration> {
    // The name in parentheses may contain anything; utime, stime, cutime and cstime are the 12th to 15th after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: u64 = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(4)
        .map(|field| field.parse::<u64>().ok())
        .sum::<Option<u64>>()?;
    Some(Duration::from_millis(ticks * 1000 / USER_HZ))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{cost, cpu_time};

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 20 30 20 0 9 0 5";
        assert_eq!(cpu_time(stat), Some(Duration::from_millis(2500)));
        assert_eq!(cpu_time("7 (a) S 1"), Some(Duration::ZERO));
        assert_eq!(cpu_time(""), None);
    }

    #[test]
    fn this_process_costs_memory() {
        assert!(cost(std::process::id()).unwrap().resident > 1 << 20);
    }
}
