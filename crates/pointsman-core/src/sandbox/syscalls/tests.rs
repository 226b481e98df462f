//! The filter, run by an interpreter.

use proptest::prelude::*;

use super::bpf::{ALLOW, ANSWER, ERROR, JUMP_IF_ABOVE, JUMP_IF_BITS, JUMP_IF_EQUAL, LOAD};
use super::{Arch, ENOSYS, EPERM, HIGHEST, Instruction, RULES, Test, assemble, bytes};

const I386: u32 = 0x4000_0003;
const ARM: u32 = 0x4000_0028;
const X32: u32 = 0x4000_0000;

/// The answer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Allowed,
    Error(u16),
}

/// What the kernel does with the program. It stops at anything that the kernel would not load.
fn run(program: &[Instruction], arch: u32, number: u32, arguments: [u64; 6]) -> Answer {
    let mut data = Vec::new();
    data.extend(number.to_le_bytes());
    data.extend(arch.to_le_bytes());
    data.extend(0x7fff_1234_u64.to_le_bytes());
    data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let Instruction { code, if_true, if_false, operand } = program[at];
        at += 1;
        let skip = |holds: bool| usize::from(if holds { if_true } else { if_false });
        match code {
            LOAD => {
                let from = operand as usize;
                accumulator = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
            }
            JUMP_IF_EQUAL => at += skip(accumulator == operand),
            JUMP_IF_ABOVE => at += skip(accumulator > operand),
            JUMP_IF_BITS => at += skip(accumulator & operand != 0),
            ANSWER if operand == ALLOW => return Answer::Allowed,
            ANSWER => {
                assert_eq!(operand & 0xffff_0000, ERROR, "nothing is killed, traced or logged");
                return Answer::Error((operand & 0xffff) as u16);
            }
            other => panic!("an operation that is not used: {other:#x}"),
        }
    }
}

fn ask(arch: Arch, number: u32, arguments: [u64; 6]) -> Answer {
    run(&assemble(arch), arch.audit(), number, arguments)
}

/// A call by its name, its numbers (x86_64, aarch64), its first three arguments and the answer.
type Row = (&'static str, Option<u32>, Option<u32>, [u64; 3], Answer);

#[rustfmt::skip]
fn table() -> Vec<Row> {
    use Answer::{Allowed, Error};
    let both = |name, x86_64, aarch64, arguments, answer| (name, Some(x86_64), Some(aarch64), arguments, answer);
    let x86 = |name, number, arguments, answer| (name, Some(number), None, arguments, answer);
    let none = [0; 3];
    let user = 0x1000_0000;
    vec![
        // What builds do all day.
        both("read", 0, 63, none, Allowed),
        both("openat", 257, 56, none, Allowed),
        both("execve", 59, 221, none, Allowed),
        both("futex", 202, 98, none, Allowed),
        both("statx", 332, 291, none, Allowed),
        both("epoll_pwait2", 441, 441, none, Allowed),
        both("memfd_create", 319, 279, none, Allowed),
        both("inotify_init1", 294, 26, none, Allowed),
        both("faccessat2", 439, 439, none, Allowed),
        both("landlock_restrict_self", 446, 446, none, Allowed),
        both("seccomp", 317, 277, none, Allowed),
        x86("fork", 57, none, Allowed),
        x86("vfork", 58, none, Allowed),
        // Debuggers, inside their own process namespace.
        both("ptrace", 101, 117, [16, 2, 0], Allowed),
        both("process_vm_readv", 310, 270, none, Allowed),
        both("process_vm_writev", 311, 271, none, Allowed),
        both("personality", 135, 92, [0x0004_0000, 0, 0], Allowed),
        both("kcmp", 312, 272, none, Allowed),
        // Namespaces.
        both("clone of a thread", 56, 220, [0x003d_0f00, 0, 0], Allowed),
        both("clone of a process", 56, 220, [0x0120_0011, 0, 0], Allowed),
        both("clone with a user namespace", 56, 220, [user | 17, 0, 0], Error(EPERM)),
        both("clone with a network namespace", 56, 220, [0x4000_0011, 0, 0], Error(EPERM)),
        both("clone3", 435, 435, none, Error(ENOSYS)),
        both("unshare of files", 272, 97, [0x400, 0, 0], Allowed),
        both("unshare of the user namespace", 272, 97, [user, 0, 0], Error(EPERM)),
        both("unshare of mounts", 272, 97, [0x0002_0000, 0, 0], Error(EPERM)),
        both("unshare of time", 272, 97, [0x80, 0, 0], Error(EPERM)),
        both("unshare with high bits", 272, 97, [0xffff_ffff_0000_0000 | user, 0, 0], Error(EPERM)),
        both("setns", 308, 268, none, Error(EPERM)),
        // Sockets.
        both("a unix socket", 41, 198, [1, 1, 0], Allowed),
        both("an inet socket", 41, 198, [2, 1, 6], Allowed),
        both("an inet6 socket", 41, 198, [10, 2, 17], Allowed),
        both("netlink for interfaces", 41, 198, [16, 3, 0], Allowed),
        both("netlink for the firewall", 41, 198, [16, 3, 12], Error(93)),
        both("netlink for the audit", 41, 198, [16, 3, 9], Error(93)),
        both("vsock", 41, 198, [40, 1, 0], Error(97)),
        both("the crypto sockets", 41, 198, [38, 5, 0], Error(97)),
        both("packets", 41, 198, [17, 3, 0], Error(97)),
        both("a family whose high half differs", 41, 198, [0x1_0000_0028, 1, 0], Error(97)),
        both("no family", 41, 198, none, Error(97)),
        both("a pair of unix sockets", 53, 199, [1, 1, 0], Allowed),
        both("a pair of tipc sockets", 53, 199, [30, 1, 0], Error(97)),
        // Terminals.
        both("TCGETS", 16, 29, [0, 0x5401, 0], Allowed),
        both("TIOCGWINSZ", 16, 29, [0, 0x5413, 0], Allowed),
        both("TIOCSTI", 16, 29, [0, 0x5412, 0], Error(EPERM)),
        both("TIOCSTI with high bits", 16, 29, [0, 0x7_0000_5412, 0], Error(EPERM)),
        both("TIOCLINUX", 16, 29, [0, 0x541c, 0], Error(EPERM)),
        both("TIOCSETD", 16, 29, [0, 0x5423, 0], Error(EPERM)),
        both("0x5412 as a file", 16, 29, [0x5412, 0x5401, 0x5412], Allowed),
        // The rest.
        both("add_key", 248, 217, none, Error(EPERM)),
        both("request_key", 249, 218, none, Error(EPERM)),
        both("keyctl", 250, 219, none, Error(EPERM)),
        both("bpf", 321, 280, none, Error(EPERM)),
        both("perf_event_open", 298, 241, none, Error(EPERM)),
        both("syslog", 103, 116, none, Error(EPERM)),
        both("userfaultfd", 323, 282, none, Error(ENOSYS)),
        both("io_uring_setup", 425, 425, none, Error(ENOSYS)),
        both("io_uring_enter", 426, 426, none, Error(ENOSYS)),
        both("io_uring_register", 427, 427, none, Error(ENOSYS)),
        both("mount", 165, 40, none, Error(EPERM)),
        both("umount2", 166, 39, none, Error(EPERM)),
        both("pivot_root", 155, 41, none, Error(EPERM)),
        both("chroot", 161, 51, none, Error(EPERM)),
        both("open_tree", 428, 428, none, Error(EPERM)),
        both("move_mount", 429, 429, none, Error(EPERM)),
        both("fsopen", 430, 430, none, Error(EPERM)),
        both("fsconfig", 431, 431, none, Error(EPERM)),
        both("fsmount", 432, 432, none, Error(EPERM)),
        both("fspick", 433, 433, none, Error(EPERM)),
        both("mount_setattr", 442, 442, none, Error(EPERM)),
        both("open_tree_attr", 467, 467, none, Error(EPERM)),
        both("name_to_handle_at", 303, 264, none, Error(EPERM)),
        both("open_by_handle_at", 304, 265, none, Error(EPERM)),
        both("fanotify_init", 300, 262, none, Error(EPERM)),
        both("kexec_load", 246, 104, none, Error(EPERM)),
        both("kexec_file_load", 320, 294, none, Error(EPERM)),
        both("reboot", 169, 142, none, Error(EPERM)),
        both("init_module", 175, 105, none, Error(EPERM)),
        both("finit_module", 313, 273, none, Error(EPERM)),
        both("delete_module", 176, 106, none, Error(EPERM)),
        both("swapon", 167, 224, none, Error(EPERM)),
        both("swapoff", 168, 225, none, Error(EPERM)),
        both("settimeofday", 164, 170, none, Error(EPERM)),
        both("clock_settime", 227, 112, none, Error(EPERM)),
        both("clock_gettime", 228, 113, none, Allowed),
        both("sethostname", 170, 161, none, Error(EPERM)),
        both("setdomainname", 171, 162, none, Error(EPERM)),
        both("acct", 163, 89, none, Error(EPERM)),
        both("quotactl", 179, 60, none, Error(EPERM)),
        both("quotactl_fd", 443, 443, none, Error(EPERM)),
        both("vhangup", 153, 58, none, Error(EPERM)),
        both("lookup_dcookie", 212, 18, none, Error(EPERM)),
        both("lsm_set_self_attr", 460, 460, none, Error(EPERM)),
        x86("iopl", 172, none, Error(EPERM)),
        x86("ioperm", 173, none, Error(EPERM)),
        x86("modify_ldt", 154, none, Error(EPERM)),
        x86("uselib", 134, none, Error(EPERM)),
        // Newer than the list.
        both("the last that is known", HIGHEST, HIGHEST, none, Allowed),
        both("the next", HIGHEST + 1, HIGHEST + 1, none, Error(ENOSYS)),
        both("nonsense", u32::MAX, u32::MAX, none, Error(ENOSYS)),
        x86("read of x32", X32, none, Error(ENOSYS)),
        x86("mount of x32", X32 | 165, none, Error(ENOSYS)),
    ]
}

#[test]
fn every_call_of_the_table_gets_its_answer() {
    for (name, x86_64, aarch64, [a, b, c], answer) in table() {
        for (arch, number) in [(Arch::X86_64, x86_64), (Arch::Aarch64, aarch64)] {
            if let Some(number) = number {
                assert_eq!(ask(arch, number, [a, b, c, 0, 0, 0]), answer, "{name} on {arch:?}");
            }
        }
    }
}

#[test]
fn every_rule_is_in_the_table() {
    for rule in RULES {
        let tabled = table().iter().any(|(_, x86_64, aarch64, _, answer)| {
            *answer != Answer::Allowed
                && rule.x86_64.is_none_or(|number| *x86_64 == Some(number))
                && rule.aarch64.is_none_or(|number| *aarch64 == Some(number))
        });
        assert!(tabled, "{rule:?}");
    }
}

#[test]
fn programs_for_other_processors_find_no_call() {
    for number in [0, 1, 11, 39, 165, 250] {
        assert_eq!(run(&assemble(Arch::X86_64), I386, number, [0; 6]), Answer::Error(ENOSYS));
        assert_eq!(run(&assemble(Arch::Aarch64), ARM, number, [0; 6]), Answer::Error(ENOSYS));
        let wrong = Arch::X86_64.audit();
        assert_eq!(run(&assemble(Arch::Aarch64), wrong, number, [0; 6]), Answer::Error(ENOSYS));
    }
}

#[test]
fn the_kernel_can_load_it() {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let program = assemble(arch);
        // BPF_MAXINSNS, and jumps that end inside of the program.
        assert!(program.len() <= 4096);
        for (at, instruction) in program.iter().enumerate() {
            let furthest = at + 1 + usize::from(instruction.if_true.max(instruction.if_false));
            assert!(furthest < program.len() || instruction.code == ANSWER, "{at}: {instruction:?}");
            assert!(instruction.if_true < u8::MAX && instruction.if_false < u8::MAX, "{at}: too far");
        }
        assert_eq!(program.last().map(|last| last.code), Some(ANSWER));
        assert_eq!(bytes(&program).len(), program.len() * 8);
    }
    let jump = Instruction { code: JUMP_IF_EQUAL, if_true: 1, if_false: 2, operand: 0xc000_003e };
    assert_eq!(bytes(&[jump]), [0x15, 0, 1, 2, 0x3e, 0, 0, 0xc0]);
}

#[test]
fn only_known_processors_have_a_filter() {
    assert_eq!(Arch::named("x86_64"), Some(Arch::X86_64));
    assert_eq!(Arch::named("aarch64"), Some(Arch::Aarch64));
    assert_eq!(Arch::named("riscv64"), None);
}

/// The answer by the list itself.
fn by_the_list(arch: Arch, number: u32, arguments: [u64; 6]) -> Answer {
    if number > HIGHEST {
        return Answer::Error(ENOSYS);
    }
    let low = |argument: &u8| (arguments[usize::from(*argument)] & 0xffff_ffff) as u32;
    let holds = |test: &Test| match test {
        Test::HasBits { argument, mask } => low(argument) & mask != 0,
        Test::IsOneOf { argument, values } => values.contains(&low(argument)),
        Test::IsNoneOf { argument, values } => !values.contains(&low(argument)),
    };
    let rule = RULES.iter().find(|rule| rule.number(arch) == Some(number));
    let clause = rule.and_then(|rule| rule.clauses.iter().find(|clause| clause.tests.iter().all(holds)));
    clause.map_or(Answer::Allowed, |clause| Answer::Error(clause.error))
}

proptest! {
    #[test]
    fn the_program_answers_as_the_list_does(
        number in prop_oneof![0..480_u32, any::<u32>()],
        // Small numbers and single bits, which rules are about.
        arguments in proptest::array::uniform6(prop_oneof![0..48_u64, (0..64_u32).prop_map(|bit| 1 << bit), 0x5400..0x5430_u64, any::<u64>()]),
        is_x86 in any::<bool>(),
    ) {
        let arch = if is_x86 { Arch::X86_64 } else { Arch::Aarch64 };
        prop_assert_eq!(ask(arch, number, arguments), by_the_list(arch, number, arguments));
    }
}
