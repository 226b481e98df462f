use std::io;

/// The fields of `/proc/<pid>/stat` that say what a process is and which terminal it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcStat {
    /// `R`, `S`, `D`, `T`, `Z` …
    pub(crate) state: char,
    /// The parent's pid.
    pub(crate) parent: u32,
    /// The process group.
    pub(crate) group: i32,
    /// The controlling terminal's device number; 0 for none.
    pub(crate) terminal: i32,
    /// The group in that terminal's foreground; -1 for none.
    pub(crate) foreground: i32,
    /// When the process started, in clock ticks since boot.
    pub(crate) start_time: u64,
}

impl ProcStat {
    pub(crate) fn read(pid: u32) -> io::Result<ProcStat> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        parse(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// Fields are counted from behind the program's name, which may hold blanks and brackets of its own. The first field
/// there is number 3 in proc(5).
fn parse(text: &str) -> Option<ProcStat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some(ProcStat {
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        terminal: field(7)?.parse().ok()?,
        foreground: field(8)?.parse().ok()?,
        start_time: field(22)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let text = "9 (a) S (b) S 1 9 8 34817 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 92297 1 1\n";
        let expected =
            ProcStat { state: 'S', parent: 1, group: 9, terminal: 34817, foreground: 7, start_time: 92297 };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("9 (a) S 1"), None);
    }
}
