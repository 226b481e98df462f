//! The memory that the machine has to give.

/// Memory that programs could still have, in megabytes; none if the system does not say.
pub fn free_memory_mb() -> Option<u64> {
    megabytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// One figure of `/proc/meminfo`, by the name its line begins with.
pub(crate) fn megabytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_available_is_read() {
        let text = "MemTotal:  16000000 kB\nMemFree:  100 kB\nMemAvailable:    2048000 kB\n";
        assert_eq!(super::megabytes(text, "MemAvailable:"), Some(2000));
        assert_eq!(super::megabytes("nothing", "MemAvailable:"), None);
        assert!(super::free_memory_mb().is_some_and(|free| free > 0));
    }
}
