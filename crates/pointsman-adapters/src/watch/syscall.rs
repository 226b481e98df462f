//! The system call that a sleeping thread waits in, as `/proc/<pid>/task/<tid>/syscall` tells it.

/// The system calls that matter for the question "does it wait for someone to type?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// In `read` or `readv` on this descriptor.
    Read { fd: u64 },
    /// In `poll` or `ppoll` on an array of descriptors in its memory.
    Poll { address: u64, count: u64 },
    /// In `select` or `pselect6`; the set of descriptors to read from is in its memory (0 for none).
    Select { count: u64, address: u64 },
    /// In one of the `epoll_wait` calls on this epoll descriptor.
    Epoll { fd: u64 },
    /// Waiting for a child process.
    Child,
    /// On the processor, or in a call that has nothing to do with a terminal.
    Elsewhere,
    /// Not in a system call, or in one through which anything can be awaited.
    Unclear,
}

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const READ: &[i64] = &[0, 19];
    pub(super) const POLL: &[i64] = &[7, 271];
    pub(super) const SELECT: &[i64] = &[23, 270];
    pub(super) const EPOLL: &[i64] = &[232, 281, 441];
    pub(super) const CHILD: &[i64] = &[61, 247];
}

/// The numbers of aarch64 and riscv64; other architectures that use this table have them too.
#[cfg(not(target_arch = "x86_64"))]
mod number {
    pub(super) const READ: &[i64] = &[63, 65];
    pub(super) const POLL: &[i64] = &[73];
    pub(super) const SELECT: &[i64] = &[72];
    pub(super) const EPOLL: &[i64] = &[22, 441];
    pub(super) const CHILD: &[i64] = &[260, 95];
}

/// `io_uring_enter`, the same everywhere.
const IO_URING: i64 = 426;

/// Reads the file's one line: a number and its arguments in hexadecimal, or `running`, or `-1` outside of a call.
pub(super) fn parse(line: &str) -> Option<Waiting> {
    let mut fields = line.split_ascii_whitespace();
    let first = fields.next()?;
    if first == "running" {
        return Some(Waiting::Elsewhere);
    }
    let called: i64 = first.parse().ok()?;
    if called < 0 || called == IO_URING {
        return Some(Waiting::Unclear);
    }
    let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
    let (one, two) = (argument()?, argument()?);
    // A descriptor is an int, whatever the upper half of the register holds.
    let fd = one & u64::from(u32::MAX);
    Some(match called {
        nr if number::READ.contains(&nr) => Waiting::Read { fd },
        nr if number::POLL.contains(&nr) => Waiting::Poll { address: one, count: two },
        nr if number::SELECT.contains(&nr) => Waiting::Select { count: fd, address: two },
        nr if number::EPOLL.contains(&nr) => Waiting::Epoll { fd },
        nr if number::CHILD.contains(&nr) => Waiting::Child,
        _ => Waiting::Elsewhere,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_are_told_apart() {
        assert_eq!(parse("0 0x0 0x7f00 0x20000 0x0 0x0 0x0 0x1 0x2"), Some(Waiting::Read { fd: 0 }));
        assert_eq!(
            parse("270 0x1 0x7ff0 0x0 0x0 0x0 0x7 0x1 0x2"),
            Some(Waiting::Select { count: 1, address: 0x7ff0 })
        );
        assert_eq!(parse("61 0xffffffff 0x7ffc 0x0 0x0 0x0 0x0 0x1 0x2"), Some(Waiting::Child));
        assert_eq!(parse("230 0x0 0x0 0x7ff 0x7ff 0x0 0x0 0x1 0x2"), Some(Waiting::Elsewhere));
    }

    #[test]
    fn what_is_no_call_is_not_taken_for_one() {
        assert_eq!(parse("running"), Some(Waiting::Elsewhere));
        assert_eq!(parse("-1 0x7ffc 0x7f0"), Some(Waiting::Unclear));
        assert_eq!(parse(""), None);
        assert_eq!(parse("0"), None);
    }
}
