//! The line of `/proc/PID/stat`: the parent and the start time of a process.

use std::fs::File;
use std::io::{self, Read};

/// The fields of `/proc/<pid>/stat` that say what a process is and which terminal it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcStat {
    /// `R`, `S`, `D`, `T`, `Z` …
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) group: i32,
    /// The controlling terminal's device number; 0 for none.
    pub(crate) terminal: i32,
    /// The group in that terminal's foreground; -1 for none.
    pub(crate) foreground: i32,
    /// Processor time of the process and of its children that ended, in clock ticks.
    pub(crate) used_ticks: u64,
    /// When the process started, in clock ticks since boot.
    pub(crate) start_time: u64,
}

impl ProcStat {
    /// Reads the kernel's line about a process.
    pub(crate) fn read(pid: u32) -> io::Result<ProcStat> {
        let mut buffer = [0; MOST_BYTES];
        // The kernel hands out all of it at the first read, and nobody has to ask for the length before.
        let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut buffer)?;
        // Only the program's name may be anything but ASCII, and nobody looks at that.
        parse(&String::from_utf8_lossy(&buffer[..length]))
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// 52 numbers of at most 20 digits, and a name of 64 bytes.
const MOST_BYTES: usize = 2048;

/// Fields are counted from behind the program's name, which may hold blanks and brackets of its own. The first field
/// there is number 3 in proc(5).
fn parse(text: &str) -> Option<ProcStat> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = (3..).zip(rest.split_ascii_whitespace());
    let mut field = |wanted: u32| fields.find(|(number, _)| *number == wanted).map(|(_, text)| text);
    // In their order: what was passed by does not come again.
    Some(ProcStat {
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        terminal: field(7)?.parse().ok()?,
        foreground: field(8)?.parse().ok()?,
        used_ticks: (14..=17).map(|number| field(number)?.parse::<u64>().ok()).sum::<Option<u64>>()?,
        start_time: field(22)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let text = "9 (a) S (b) S 1 9 8 34817 7 4194304 1 0 0 0 1 20 300 4000 20 0 1 0 92297 1 1\n";
        let expected = ProcStat {
            state: 'S',
            parent: 1,
            group: 9,
            terminal: 34817,
            foreground: 7,
            used_ticks: 4321,
            start_time: 92297,
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("9 (a) S 1"), None);
    }
}
