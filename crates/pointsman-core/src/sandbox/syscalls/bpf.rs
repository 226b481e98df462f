//! The list of refused calls as a program of classic BPF, which the kernel runs before each call.
//!
//! The kernel remembers for each number whether the program looks at arguments; calls that are always allowed cost nothing
//! (Linux 5.11 and later). So the program begins with numbers alone, and each rule ends with an answer.

use super::{Arch, Clause, ENOSYS, HIGHEST, RULES, Rule, Test};

/// Operations: load a word, compare with a constant, answer.
pub(super) const LOAD: u16 = 0x20;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const JUMP_IF_ABOVE: u16 = 0x25;
pub(super) const JUMP_IF_BITS: u16 = 0x45;
pub(super) const ANSWER: u16 = 0x06;

/// Where `seccomp_data` has the number, the processor and the low half of the first argument. Both processors store the low
/// half first.
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;

pub(super) const ALLOW: u32 = 0x7fff_0000;
pub(super) const ERROR: u32 = 0x0005_0000;

/// One instruction, with the fields of the kernel's `sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    /// Instructions to skip if the comparison holds, and if not.
    pub if_true: u8,
    pub if_false: u8,
    pub operand: u32,
}

/// The filter for a processor.
pub fn assemble(arch: Arch) -> Vec<Instruction> {
    let mut program =
        vec![load(ARCH_AT), jump(JUMP_IF_EQUAL, arch.audit(), 1, 0), error(ENOSYS), load(NUMBER_AT)];
    program.extend([jump(JUMP_IF_ABOVE, HIGHEST, 0, 1), error(ENOSYS)]);
    for rule in RULES {
        let Some(number) = rule.number(arch) else { continue };
        let body = body(rule);
        program.push(jump(JUMP_IF_EQUAL, number, 0, length(&body)));
        program.extend(body);
    }
    program.push(answer(ALLOW));
    program
}

/// A program as the kernel reads it: eight bytes for each instruction, the low byte of a number first, as on both processors.
pub fn bytes(program: &[Instruction]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for instruction in program {
        bytes.extend(instruction.code.to_le_bytes());
        bytes.extend([instruction.if_true, instruction.if_false]);
        bytes.extend(instruction.operand.to_le_bytes());
    }
    bytes
}

/// What follows after the number of a rule was found; ends with an answer whatever the arguments are.
fn body(rule: &Rule) -> Vec<Instruction> {
    let mut body: Vec<Instruction> = rule.clauses.iter().flat_map(clause).collect();
    if rule.clauses.iter().all(|clause| !clause.tests.is_empty()) {
        body.push(answer(ALLOW));
    }
    body
}

/// The tests of a clause and its error. A test that does not hold leads behind the clause.
fn clause(clause: &Clause) -> Vec<Instruction> {
    let mut program = vec![error(clause.error)];
    for test in clause.tests.iter().rev() {
        let behind = length(&program);
        let mut before = match test {
            Test::HasBits { argument, mask } => {
                vec![load_argument(*argument), jump(JUMP_IF_BITS, *mask, 0, behind)]
            }
            Test::IsOneOf { argument, values } => among(*argument, values, 0, behind),
            Test::IsNoneOf { argument, values } => among(*argument, values, behind, 0),
        };
        before.extend(program);
        program = before;
    }
    program
}

/// Compares an argument with values. `found` and `none` are the distances from behind the comparisons.
fn among(argument: u8, values: &[u32], found: u8, none: u8) -> Vec<Instruction> {
    let mut program = vec![load_argument(argument)];
    for (at, value) in values.iter().enumerate() {
        let left = u8::try_from(values.len() - 1 - at).unwrap_or(u8::MAX);
        let if_false = if left == 0 { none } else { 0 };
        program.push(jump(JUMP_IF_EQUAL, *value, left + found, if_false));
    }
    program
}

/// The length of a part that is jumped over. A test finds out if one grows beyond what a jump can hold.
fn length(part: &[Instruction]) -> u8 {
    u8::try_from(part.len()).unwrap_or(u8::MAX)
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, if_true: 0, if_false: 0, operand: offset }
}

fn load_argument(argument: u8) -> Instruction {
    load(ARGUMENTS_AT + u32::from(argument) * ARGUMENT_BYTES)
}

fn jump(code: u16, operand: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code, if_true, if_false, operand }
}

fn answer(operand: u32) -> Instruction {
    Instruction { code: ANSWER, if_true: 0, if_false: 0, operand }
}

fn error(number: u16) -> Instruction {
    answer(ERROR | u32::from(number))
}
