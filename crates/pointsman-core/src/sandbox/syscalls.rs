//! The filter of system calls: what no build, test or agent needs is refused before the kernel looks at it.
//!
//! The list names what is refused, not what is allowed, because builds run programs that nobody has seen. Calls that are newer
//! than this list do not exist inside. Nothing is killed: a program that asks is told so by an error, as on a kernel without
//! the call. Debuggers work: `ptrace` and `process_vm_writev` reach no further than the process namespace of the sandbox.
//! `bpf.rs` turns the list into a program for the kernel.

mod bpf;
#[cfg(test)]
mod tests;

pub use bpf::{Instruction, assemble, bytes};

/// The processors whose system calls have known numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// The processor of this name, as Rust calls it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The kernel's name for it, in `seccomp_data`. Programs for 32 bits have another one, with other numbers.
    fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }
}

/// The highest number that was looked at: `file_setattr` of Linux 6.17, on both processors. The calls for x32 are above it too.
const HIGHEST: u32 = 469;

/// Errors that a refused call answers, by their numbers on both processors.
const EPERM: u16 = 1;
const ENOSYS: u16 = 38;
const EPROTONOSUPPORT: u16 = 93;
const EAFNOSUPPORT: u16 = 97;

/// A condition about one argument. The kernel itself reads only the low half of each argument that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    HasBits { argument: u8, mask: u32 },
    IsOneOf { argument: u8, values: &'static [u32] },
    IsNoneOf { argument: u8, values: &'static [u32] },
}

/// The error of a call for which all tests hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clause {
    tests: &'static [Test],
    error: u16,
}

/// A call with its numbers, and when it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    x86_64: Option<u32>,
    aarch64: Option<u32>,
    clauses: &'static [Clause],
}

impl Rule {
    fn number(&self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }
}

const fn rule(x86_64: u32, aarch64: u32, clauses: &'static [Clause]) -> Rule {
    Rule { x86_64: Some(x86_64), aarch64: Some(aarch64), clauses }
}

const fn only_x86_64(number: u32, clauses: &'static [Clause]) -> Rule {
    Rule { x86_64: Some(number), aarch64: None, clauses }
}

const REFUSED: &[Clause] = &[Clause { tests: &[], error: EPERM }];
/// For calls that programs try and do without if the kernel does not have them.
const MISSING: &[Clause] = &[Clause { tests: &[], error: ENOSYS }];

/// `CLONE_NEW*` for cgroup, uts, ipc, user, pid, net and mounts. In a user namespace of its own a program has capabilities
/// again, and with them reaches the parts of the kernel that have had the most holes.
const NAMESPACES: u32 = 0x7e02_0000;
/// `unshare` knows the namespace of time as well; in `clone` the same bit is part of a signal's number.
const NAMESPACES_AND_TIME: u32 = NAMESPACES | 0x80;

/// unix, inet, inet6, netlink. Others lead out of a network namespace (vsock) or to code that is rarely looked at.
const FAMILIES: &[u32] = &[1, 2, 10, NETLINK];
const NETLINK: u32 = 16;
/// Of netlink: routes and interfaces, sockets, devices.
const NETLINK_PROTOCOLS: &[u32] = &[0, 4, 15];

/// `TIOCSTI` and `TIOCLINUX` put input into a terminal, `TIOCCONS` takes the console, `TIOCSETD` loads a line discipline.
const TERMINAL_ORDERS: &[u32] = &[0x5412, 0x541c, 0x541d, 0x5423];

const RULES: &[Rule] = &[
    // Keys: the kernel keeps them by user, and other sessions have the same one.
    rule(248, 217, REFUSED), // add_key
    rule(249, 218, REFUSED), // request_key
    rule(250, 219, REFUSED), // keyctl
    // Programs inside the kernel, and looks into it.
    rule(321, 280, REFUSED), // bpf
    rule(298, 241, REFUSED), // perf_event_open
    rule(103, 116, REFUSED), // syslog
    rule(212, 18, REFUSED),  // lookup_dcookie
    // Large parts of the kernel that programs do without.
    rule(323, 282, MISSING), // userfaultfd
    rule(425, 425, MISSING), // io_uring_setup
    rule(426, 426, MISSING), // io_uring_enter
    rule(427, 427, MISSING), // io_uring_register
    // Namespaces. A pointer hides the flags of clone3; libc falls back to clone, which shows them.
    rule(435, 435, MISSING), // clone3
    rule(56, 220, &[Clause { tests: &[Test::HasBits { argument: 0, mask: NAMESPACES }], error: EPERM }]), // clone
    rule(
        272,
        97,
        &[Clause { tests: &[Test::HasBits { argument: 0, mask: NAMESPACES_AND_TIME }], error: EPERM }],
    ), // unshare
    rule(308, 268, REFUSED), // setns
    // Mounts.
    rule(165, 40, REFUSED),  // mount
    rule(166, 39, REFUSED),  // umount2
    rule(155, 41, REFUSED),  // pivot_root
    rule(161, 51, REFUSED),  // chroot
    rule(428, 428, REFUSED), // open_tree
    rule(429, 429, REFUSED), // move_mount
    rule(430, 430, REFUSED), // fsopen
    rule(431, 431, REFUSED), // fsconfig
    rule(432, 432, REFUSED), // fsmount
    rule(433, 433, REFUSED), // fspick
    rule(442, 442, REFUSED), // mount_setattr
    rule(467, 467, REFUSED), // open_tree_attr
    // Files by handles instead of paths, past every mount.
    rule(303, 264, REFUSED), // name_to_handle_at
    rule(304, 265, REFUSED), // open_by_handle_at
    rule(300, 262, REFUSED), // fanotify_init
    // The machine itself.
    rule(246, 104, REFUSED),   // kexec_load
    rule(320, 294, REFUSED),   // kexec_file_load
    rule(169, 142, REFUSED),   // reboot
    rule(175, 105, REFUSED),   // init_module
    rule(313, 273, REFUSED),   // finit_module
    rule(176, 106, REFUSED),   // delete_module
    rule(167, 224, REFUSED),   // swapon
    rule(168, 225, REFUSED),   // swapoff
    rule(164, 170, REFUSED),   // settimeofday
    rule(227, 112, REFUSED),   // clock_settime
    rule(170, 161, REFUSED),   // sethostname
    rule(171, 162, REFUSED),   // setdomainname
    rule(163, 89, REFUSED),    // acct
    rule(179, 60, REFUSED),    // quotactl
    rule(443, 443, REFUSED),   // quotactl_fd
    rule(153, 58, REFUSED),    // vhangup
    rule(460, 460, REFUSED),   // lsm_set_self_attr
    only_x86_64(172, REFUSED), // iopl
    only_x86_64(173, REFUSED), // ioperm
    only_x86_64(154, REFUSED), // modify_ldt
    only_x86_64(134, REFUSED), // uselib
    rule(
        41,
        198,
        &[
            Clause { tests: &[Test::IsNoneOf { argument: 0, values: FAMILIES }], error: EAFNOSUPPORT },
            Clause {
                tests: &[
                    Test::IsOneOf { argument: 0, values: &[NETLINK] },
                    Test::IsNoneOf { argument: 2, values: NETLINK_PROTOCOLS },
                ],
                error: EPROTONOSUPPORT,
            },
        ],
    ), // socket
    rule(
        53,
        199,
        &[Clause { tests: &[Test::IsNoneOf { argument: 0, values: FAMILIES }], error: EAFNOSUPPORT }],
    ), // socketpair
    rule(
        16,
        29,
        &[Clause { tests: &[Test::IsOneOf { argument: 1, values: TERMINAL_ORDERS }], error: EPERM }],
    ), // ioctl
];
