//! Whether a program sits waiting for someone to type, seen from outside.
//!
//! A program that reports nothing about itself can still be looked at: the foreground process of its terminal either
//! sleeps in a call that waits for that terminal, or it does not. One look is a hint, not a proof: an event loop
//! waits for its terminal also while it waits for the network. Repeated looks and silence make it evidence, and that
//! is the caller's to judge.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use super::proc_stat::ProcStat;
use super::syscall::{self, Waiting};

/// The activity of the program in a terminal, as the kernel shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalLook {
    /// The program in the terminal's foreground waits for input from it.
    AwaitingInput,
    /// It runs, or waits for something else.
    Busy,
    /// There is not enough to see: no such process, no terminal, no permission.
    Unknown,
}

/// Threads, children and descriptors that are looked at, at most; what is beyond makes the answer `Unknown`.
const LOOK_LIMIT: usize = 256;
/// How many generations of waiting parents are followed down to the program that is really in front.
const DEPTH_LIMIT: usize = 10;

/// Looks at the process that leads a terminal's session, such as a tmux pane's, and at what is in its foreground.
pub fn look(pid: u32) -> TerminalLook {
    let Ok(pane) = ProcStat::read(pid) else { return TerminalLook::Unknown };
    if pane.terminal == 0 || pane.foreground <= 0 {
        return TerminalLook::Unknown;
    }
    // With job control the foreground is another group: its leader is the program a person would be typing to.
    let leader = if pane.group == pane.foreground { pid } else { pane.foreground.unsigned_abs() };
    let place = Foreground { terminal: pane.terminal, group: pane.foreground };
    look_at_process(leader, &place, DEPTH_LIMIT)
}

/// The terminal and the group in its foreground.
struct Foreground {
    terminal: i32,
    group: i32,
}

fn look_at_process(pid: u32, place: &Foreground, depth: usize) -> TerminalLook {
    match ProcStat::read(pid) {
        Ok(stat) if stat.terminal == place.terminal && stat.group == place.group && depth > 0 => {}
        _ => return TerminalLook::Unknown,
    }
    if let Some(inner) = sandbox_init(pid) {
        return look_at_process(inner, place, depth - 1);
    }
    let Some(threads) = numbers_in(&format!("/proc/{pid}/task")) else { return TerminalLook::Unknown };
    let looks: Vec<ThreadActivity> =
        threads.iter().map(|&thread| look_at_thread(pid, thread, place)).collect();
    let seen = |facts: ThreadActivity| looks.contains(&facts);
    // The order is the point: a thread at work outweighs one that listens, and doubt outweighs "elsewhere".
    if seen(ThreadActivity::Running) {
        TerminalLook::Busy
    } else if seen(ThreadActivity::Terminal) {
        TerminalLook::AwaitingInput
    } else if seen(ThreadActivity::Unclear) {
        TerminalLook::Unknown
    } else if seen(ThreadActivity::Child) {
        look_at_children(pid, &threads, place, depth - 1)
    } else {
        TerminalLook::Busy
    }
}

/// The first process of the sandbox that this process only stands in front of: its one child, in a pid namespace of its own.
pub(crate) fn sandbox_init(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let child: u32 = children.trim().parse().ok()?;
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    (namespace(child)? != namespace(pid)?).then_some(child)
}

/// A parent that waits stands behind its children in the same foreground group: a script's `read` may be theirs.
fn look_at_children(pid: u32, threads: &[u32], place: &Foreground, depth: usize) -> TerminalLook {
    let mut looks = Vec::new();
    for thread in threads {
        let Ok(children) = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) else {
            return TerminalLook::Unknown;
        };
        for child in children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).take(LOOK_LIMIT)
        {
            // A child in another group is in the background and says nothing about the foreground.
            if ProcStat::read(child).is_ok_and(|stat| stat.group == place.group) {
                looks.push(look_at_process(child, place, depth));
            }
        }
    }
    [TerminalLook::AwaitingInput, TerminalLook::Unknown]
        .into_iter()
        .find(|look| looks.contains(look))
        .unwrap_or(TerminalLook::Busy)
}

/// What one thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadActivity {
    Running,
    Terminal,
    Child,
    Elsewhere,
    Unclear,
}

fn look_at_thread(pid: u32, thread: u32, place: &Foreground) -> ThreadActivity {
    let task = format!("/proc/{pid}/task/{thread}");
    let state = std::fs::read_to_string(format!("{task}/stat"))
        .ok()
        .and_then(|text| text.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()));
    match state {
        Some('R' | 'D') => return ThreadActivity::Running,
        Some('S') => {}
        // Stopped, traced, ended, or idle in a way only kernel threads are.
        _ => return ThreadActivity::Unclear,
    }
    let waiting =
        std::fs::read_to_string(format!("{task}/syscall")).ok().and_then(|line| syscall::parse(&line));
    match waiting {
        Some(waiting) => judge_call(pid, waiting, place),
        None => {
            judge_channel(pid, &std::fs::read_to_string(format!("{task}/wchan")).unwrap_or_default(), place)
        }
    }
}

fn judge_call(pid: u32, waiting: Waiting, place: &Foreground) -> ThreadActivity {
    let terminal_if =
        |is_terminal: bool| if is_terminal { ThreadActivity::Terminal } else { ThreadActivity::Elsewhere };
    match waiting {
        Waiting::Read { fd } => terminal_if(is_terminal(pid, fd, place)),
        Waiting::Epoll { fd } => epoll_targets(pid, fd)
            .map_or(ThreadActivity::Unclear, |fds| terminal_if(any_terminal(pid, fds, place))),
        Waiting::Poll { address, count } => polled(pid, address, count)
            .map_or(ThreadActivity::Unclear, |fds| terminal_if(any_terminal(pid, fds, place))),
        Waiting::Select { address: 0, .. } => ThreadActivity::Elsewhere,
        Waiting::Select { count, address } => selected(pid, address, count)
            .map_or(ThreadActivity::Unclear, |fds| terminal_if(any_terminal(pid, fds, place))),
        Waiting::Child => ThreadActivity::Child,
        Waiting::Elsewhere => ThreadActivity::Elsewhere,
        Waiting::Unclear => ThreadActivity::Unclear,
    }
}

/// The kernel function a thread sleeps in: less telling, but readable where system calls are not (Yama).
fn judge_channel(pid: u32, channel: &str, place: &Foreground) -> ThreadActivity {
    match channel.split('.').next().unwrap_or_default() {
        "n_tty_read" => ThreadActivity::Terminal,
        // Terminals wait here, and so do sockets and inotify: without any of those it is the terminal.
        "wait_woken" if is_terminal(pid, 0, place) && holds_only_files(pid) => ThreadActivity::Terminal,
        "ep_poll" | "do_epoll_wait" => {
            let Some(fds) = numbers_in(&format!("/proc/{pid}/fd")) else { return ThreadActivity::Unclear };
            let listens = |fd: &u32| {
                epoll_targets(pid, u64::from(*fd)).is_some_and(|targets| any_terminal(pid, targets, place))
            };
            if fds.iter().any(listens) { ThreadActivity::Terminal } else { ThreadActivity::Elsewhere }
        }
        "do_wait" | "kernel_wait4" | "kernel_waitid" => ThreadActivity::Child,
        "hrtimer_nanosleep"
        | "do_nanosleep"
        | "futex_wait_queue"
        | "futex_wait_queue_me"
        | "futex_do_wait"
        | "pipe_read"
        | "anon_pipe_read"
        | "sigsuspend" => ThreadActivity::Elsewhere,
        _ => ThreadActivity::Unclear,
    }
}

fn any_terminal(pid: u32, fds: Vec<u64>, place: &Foreground) -> bool {
    fds.into_iter().any(|fd| is_terminal(pid, fd, place))
}

/// Whether a descriptor is the place's terminal, by device number or as `/dev/tty`.
fn is_terminal(pid: u32, fd: u64, place: &Foreground) -> bool {
    let Ok(file) = std::fs::metadata(format!("/proc/{pid}/fd/{fd}")) else { return false };
    let device = file.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // How proc(5) packs a terminal's device number.
    let packed = (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
    device != 0 && (packed == place.terminal.cast_unsigned() || (major, minor) == (5, 0))
}

/// The descriptors that an epoll descriptor watches; `None` if it is none or cannot be seen.
fn epoll_targets(pid: u32, fd: u64) -> Option<Vec<u64>> {
    let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let target = |line: &str| line.strip_prefix("tfd:")?.split_ascii_whitespace().next()?.parse().ok();
    Some(info.lines().filter_map(target).collect())
}

/// The descriptors in an array of `struct pollfd { int fd; short events; short revents; }` that wait for input.
fn polled(pid: u32, address: u64, count: u64) -> Option<Vec<u64>> {
    const INPUT: u16 = 0x1;
    let bytes = read_memory(pid, address, count.checked_mul(8)?)?;
    let entries = bytes.chunks_exact(8).filter_map(|entry| {
        let fd = i32::from_ne_bytes(entry[..4].try_into().ok()?);
        let events = u16::from_ne_bytes(entry[4..6].try_into().ok()?);
        (events & INPUT != 0).then_some(u64::try_from(fd).ok()?)
    });
    Some(entries.collect())
}

/// The descriptors in an `fd_set` of `count` bits, an array of longs.
fn selected(pid: u32, address: u64, count: u64) -> Option<Vec<u64>> {
    let bytes = read_memory(pid, address, count.div_ceil(64) * 8)?;
    let words = bytes.chunks_exact(8).filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
    let bits = words.enumerate().flat_map(|(nth, word)| {
        let first = nth as u64 * 64;
        (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| first + bit)
    });
    Some(bits.filter(|fd| *fd < count).collect())
}

fn read_memory(pid: u32, address: u64, length: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok().filter(|length| *length <= 8 * LOOK_LIMIT)?;
    let mut bytes = vec![0; length];
    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

/// Whether every open descriptor has a path, which sockets, pipes and anonymous inodes have not.
fn holds_only_files(pid: u32) -> bool {
    let Some(fds) = numbers_in(&format!("/proc/{pid}/fd")) else { return false };
    let target =
        |fd: &u32| std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap_or_else(|_| PathBuf::new());
    fds.iter().all(|fd| target(fd).is_absolute())
}

/// The numbers that name a directory's entries; `None` if it cannot be read or has too many.
fn numbers_in(directory: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(directory).ok()? {
        numbers.push(entry.ok()?.file_name().to_str()?.parse().ok()?);
        if numbers.len() > LOOK_LIMIT {
            return None;
        }
    }
    Some(numbers)
}
