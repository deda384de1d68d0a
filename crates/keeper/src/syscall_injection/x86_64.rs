//! System calls on x86-64.

use super::Waiting;
use std::ffi::c_long;

/// `syscall`: two bytes long.
const CALL: u64 = 0x050f;
const CALL_LENGTH: u64 = 2;

/// Results of a call that was interrupted and is to be restarted: the program never sees
/// any of them.
const AGAIN: [i64; 3] = [-512, -513, -514];

pub(super) fn waiting(registers: &libc::user_regs_struct) -> Option<Waiting> {
    let number = registers.orig_rax.cast_signed();
    (number >= 0).then_some(Waiting { number, first: registers.rdi })
}

pub(super) fn syscall_sites(registers: &libc::user_regs_struct) -> Vec<u64> {
    vec![registers.rip.wrapping_sub(CALL_LENGTH)]
}

pub(super) fn is_call(word: u64) -> bool {
    word & 0xffff == CALL
}

pub(super) fn prepare(
    registers: &mut libc::user_regs_struct,
    site: u64,
    number: c_long,
    arguments: &[u64],
) {
    let mut given = [0; 6];
    given[..arguments.len()].copy_from_slice(arguments);
    [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] =
        given;
    registers.rip = site;
    registers.rax = number.cast_unsigned();
    // Marks that it is in no call, so that none is restarted.
    registers.orig_rax = u64::MAX;
}

pub(super) fn result(registers: &libc::user_regs_struct) -> u64 {
    registers.rax
}

pub(super) fn stack(registers: &libc::user_regs_struct) -> u64 {
    registers.rsp
}

/// Restores the call that it was stopped in.
pub(super) fn resume(registers: &mut libc::user_regs_struct) {
    let was_in_call = registers.orig_rax.cast_signed() >= 0;
    if was_in_call && AGAIN.contains(&registers.rax.cast_signed()) {
        registers.rip = registers.rip.wrapping_sub(CALL_LENGTH);
        registers.rax = registers.orig_rax;
        registers.orig_rax = u64::MAX;
    }
}
