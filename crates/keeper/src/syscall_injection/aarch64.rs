//! System calls on ARM64. The system itself goes back to a call that is to be restarted,
//! before the registers can be read.

use super::Waiting;
use std::ffi::c_long;

/// `svc #0`: four bytes long, like every instruction.
const CALL: u64 = 0xd400_0001;
const CALL_LENGTH: u64 = 4;

const NUMBER: usize = 8;

pub(super) fn waiting(registers: &libc::user_regs_struct) -> Option<Waiting> {
    let number = c_long::try_from(registers.regs[NUMBER]).ok()?;
    Some(Waiting { number, first: registers.regs[0] })
}

pub(super) fn syscall_sites(registers: &libc::user_regs_struct) -> Vec<u64> {
    vec![registers.pc, registers.pc.wrapping_sub(CALL_LENGTH)]
}

pub(super) fn is_call(word: u64) -> bool {
    word & 0xffff_ffff == CALL
}

pub(super) fn prepare(
    registers: &mut libc::user_regs_struct,
    site: u64,
    number: c_long,
    arguments: &[u64],
) {
    registers.regs[..arguments.len()].copy_from_slice(arguments);
    registers.regs[NUMBER] = number.cast_unsigned();
    registers.pc = site;
}

pub(super) fn result(registers: &libc::user_regs_struct) -> u64 {
    registers.regs[0]
}

pub(super) fn stack(registers: &libc::user_regs_struct) -> u64 {
    registers.sp
}

pub(super) fn resume(_: &mut libc::user_regs_struct) {}
