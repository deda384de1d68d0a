//! The filter of system calls: `seccomp.toml` made into a program for the
//! kernel.

use serde::Deserialize;
use std::ffi::{c_int, c_long};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

const RULES: &str = include_str!("../../seccomp.toml");

/// The newest call that the list was made with. Newer ones do not exist in here.
const NEWEST: u32 = 470;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    refuse: Vec<Refused>,
    notify: Vec<NotifiedCalls>,
}

/// Calls that somebody outside is told of before they are made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotifiedCalls {
    calls: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for people"))]
    why: String,
}

/// Who is told of these calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notify {
    Nobody,
    Mover,
}

/// A sandbox in which some entries of the list do not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Exception {
    /// Its programs are root, and write only where nobody else can reach.
    #[serde(rename = "root_in_layers")]
    RootInLayers,
}

/// One entry of the list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    pub calls: Vec<String>,
    pub why: String,
    #[serde(default)]
    error: Error,
    #[serde(default, rename = "where")]
    conditions: Vec<Condition>,
    unless: Option<Exception>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum Error {
    #[default]
    #[serde(rename = "EPERM")]
    NotPermitted,
    #[serde(rename = "ENOSYS")]
    NoSuchCall,
    #[serde(rename = "EAFNOSUPPORT")]
    NoSuchFamily,
    #[serde(rename = "EPROTONOSUPPORT")]
    NoSuchProtocol,
    #[serde(rename = "ENOPROTOOPT")]
    NoSuchOption,
}

impl Error {
    fn number(self) -> c_int {
        match self {
            Self::NotPermitted => libc::EPERM,
            Self::NoSuchCall => libc::ENOSYS,
            Self::NoSuchFamily => libc::EAFNOSUPPORT,
            Self::NoSuchProtocol => libc::EPROTONOSUPPORT,
            Self::NoSuchOption => libc::ENOPROTOOPT,
        }
    }
}

/// Of an argument: one of the three is said.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition {
    argument: u32,
    #[serde(default)]
    any: u32,
    #[serde(default)]
    is: Vec<u32>,
    #[serde(default)]
    is_not: Vec<u32>,
}

/// The list, as people read it.
#[must_use]
pub fn refused() -> Vec<Refused> {
    rules().refuse
}

fn rules() -> Rules {
    // It is part of the program, and a test reads it.
    toml::from_str(RULES).unwrap_or(Rules { refuse: Vec::new(), notify: Vec::new() })
}

/// A program for the kernel.
#[derive(Debug)]
pub(crate) struct Filter {
    program: Vec<libc::sock_filter>,
    notify: Notify,
}

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const NOTIFY: u32 = 0x7fc0_0000;

/// Where things are in `struct seccomp_data`.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const ARGUMENTS: u32 = 16;

fn statement(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

fn refusal(error: c_int) -> libc::sock_filter {
    statement(RETURN, ERRNO | error.cast_unsigned())
}

impl Filter {
    pub(crate) fn compiled(notify: Notify, exception: Option<Exception>) -> Self {
        let rules = rules();
        let mut program = vec![
            statement(LOAD, MACHINE),
            jump(JUMP_EQUAL, ARCHITECTURE, 1, 0),
            refusal(libc::ENOSYS),
            statement(LOAD, NUMBER),
            jump(JUMP_GREATER, NEWEST, 0, 1),
            refusal(libc::ENOSYS),
        ];
        let holds = |refused: &&Refused| refused.unless.is_none() || refused.unless != exception;
        let mut refused: Vec<&Refused> = rules.refuse.iter().filter(holds).collect();
        // Calls that are judged by their arguments come first: the program is run for these
        // alone. What it says of all others, the system has found out when it took it.
        refused.sort_by_key(|refused| refused.conditions.is_empty());
        for refused in refused {
            for call in &refused.calls {
                if let Some(number) = number(call) {
                    refused.compile(number, &mut program);
                }
            }
        }
        if notify == Notify::Mover {
            let calls = rules.notify.iter().flat_map(|notified| &notified.calls);
            for number in calls.filter_map(|call| number(call)) {
                program.push(jump(JUMP_EQUAL, number, 0, 1));
                program.push(statement(RETURN, NOTIFY));
            }
        }
        program.push(statement(RETURN, ALLOW));
        Self { program, notify }
    }

    /// Only makes a system call. With somebody to tell, it gives the end that
    /// they are told at.
    pub(super) fn enforce(&self) -> io::Result<Option<OwnedFd>> {
        const SET_MODE_FILTER: c_int = 1;
        const NEW_LISTENER: c_long = 1 << 3;
        // Once somebody looks at a call, only death gets in between.
        const WAIT_KILLABLE_RECV: c_long = 1 << 5;
        let program = libc::sock_fprog {
            len: u16::try_from(self.program.len()).map_err(|_| io::ErrorKind::InvalidData)?,
            filter: self.program.as_ptr().cast_mut(),
        };
        let flags = match self.notify {
            Notify::Nobody => 0,
            Notify::Mover => NEW_LISTENER | WAIT_KILLABLE_RECV,
        };
        // SAFETY: the program outlives the call, which reads it.
        let result =
            unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const program) };
        match (c_int::try_from(result), self.notify) {
            (Ok(0), Notify::Nobody) => Ok(None),
            (Ok(listener @ 0..), Notify::Mover) => {
                // SAFETY: the call has just made it, and nobody else knows of it.
                Ok(Some(unsafe { OwnedFd::from_raw_fd(listener) }))
            }
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Refused {
    /// The call's number is loaded before, and is again after.
    fn compile(&self, number: u32, program: &mut Vec<libc::sock_filter>) {
        let mut body = Vec::new();
        for condition in &self.conditions {
            body.extend(condition.compile());
        }
        body.push(refusal(self.error.number()));
        // Where a condition does not hold: behind the refusal.
        let end = body.len();
        for (at, line) in body.iter_mut().enumerate() {
            let leave = u8::try_from(end - at - 1).unwrap_or(u8::MAX);
            if line.jf == ELSEWHERE {
                line.jf = leave;
            }
            if line.jt == ELSEWHERE {
                line.jt = leave;
            }
        }
        if !self.conditions.is_empty() {
            body.push(statement(LOAD, NUMBER));
        }
        let length = u8::try_from(body.len()).unwrap_or(u8::MAX);
        program.push(jump(JUMP_EQUAL, number, 0, length));
        program.extend(body);
    }
}

/// A jump to where the condition does not hold, until it is known where that is.
const ELSEWHERE: u8 = u8::MAX;

impl Condition {
    /// Goes on behind itself if it holds.
    fn compile(&self) -> Vec<libc::sock_filter> {
        let mut lines = vec![statement(LOAD, ARGUMENTS + 8 * self.argument)];
        if self.any != 0 {
            lines.push(jump(JUMP_SET, self.any, 0, ELSEWHERE));
        }
        let count = self.is.len();
        lines.extend(self.is.iter().enumerate().map(|(at, value)| {
            let rest = count - at - 1;
            let to_end = u8::try_from(rest).unwrap_or(u8::MAX);
            jump(JUMP_EQUAL, *value, to_end, if rest == 0 { ELSEWHERE } else { 0 })
        }));
        lines.extend(self.is_not.iter().map(|value| jump(JUMP_EQUAL, *value, ELSEWHERE, 0)));
        lines
    }
}

/// The number of a call; none where this machine has no such call.
fn number(name: &str) -> Option<u32> {
    let known = CALLS.iter().chain(OLD_CALLS).find(|(call, _)| *call == name);
    known.and_then(|(_, number)| u32::try_from(*number).ok())
}

const CALLS: &[(&str, c_long)] = &[
    ("mount", libc::SYS_mount),
    ("umount2", libc::SYS_umount2),
    ("pivot_root", libc::SYS_pivot_root),
    ("chroot", libc::SYS_chroot),
    ("move_mount", libc::SYS_move_mount),
    ("open_tree", libc::SYS_open_tree),
    ("fsopen", libc::SYS_fsopen),
    ("fsconfig", libc::SYS_fsconfig),
    ("fsmount", libc::SYS_fsmount),
    ("fspick", libc::SYS_fspick),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("unshare", libc::SYS_unshare),
    ("setns", libc::SYS_setns),
    ("clone", libc::SYS_clone),
    ("clone3", libc::SYS_clone3),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("openat2", libc::SYS_openat2),
    ("fchmod", libc::SYS_fchmod),
    ("fchmodat", libc::SYS_fchmodat),
    // The library has no name for these on each machine; their numbers are the same on all.
    ("fchmodat2", 452),
    ("mknodat", libc::SYS_mknodat),
    ("openat", libc::SYS_openat),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("bpf", libc::SYS_bpf),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("keyctl", libc::SYS_keyctl),
    ("add_key", libc::SYS_add_key),
    ("request_key", libc::SYS_request_key),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("remap_file_pages", libc::SYS_remap_file_pages),
    ("nfsservctl", libc::SYS_nfsservctl),
    ("memfd_secret", libc::SYS_memfd_secret),
    ("process_mrelease", libc::SYS_process_mrelease),
    ("set_mempolicy_home_node", libc::SYS_set_mempolicy_home_node),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("kcmp", libc::SYS_kcmp),
    ("personality", libc::SYS_personality),
    ("prctl", libc::SYS_prctl),
    ("init_module", libc::SYS_init_module),
    ("finit_module", libc::SYS_finit_module),
    ("delete_module", libc::SYS_delete_module),
    ("kexec_load", libc::SYS_kexec_load),
    ("kexec_file_load", libc::SYS_kexec_file_load),
    ("reboot", libc::SYS_reboot),
    ("swapon", libc::SYS_swapon),
    ("swapoff", libc::SYS_swapoff),
    ("acct", libc::SYS_acct),
    ("quotactl", libc::SYS_quotactl),
    ("quotactl_fd", libc::SYS_quotactl_fd),
    ("syslog", libc::SYS_syslog),
    ("vhangup", libc::SYS_vhangup),
    ("settimeofday", libc::SYS_settimeofday),
    ("clock_settime", libc::SYS_clock_settime),
    ("adjtimex", libc::SYS_adjtimex),
    ("clock_adjtime", libc::SYS_clock_adjtime),
    ("sethostname", libc::SYS_sethostname),
    ("setdomainname", libc::SYS_setdomainname),
    ("ioctl", libc::SYS_ioctl),
    ("socket", libc::SYS_socket),
    ("setsockopt", libc::SYS_setsockopt),
    ("lookup_dcookie", libc::SYS_lookup_dcookie),
    ("renameat", libc::SYS_renameat),
    ("renameat2", libc::SYS_renameat2),
    ("open_tree_attr", 467),
];

/// Those that newer machines do without.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[(&str, c_long)] = &[
    ("chmod", libc::SYS_chmod),
    ("creat", libc::SYS_creat),
    ("mknod", libc::SYS_mknod),
    ("open", libc::SYS_open),
    ("rename", libc::SYS_rename),
    ("iopl", libc::SYS_iopl),
    ("ioperm", libc::SYS_ioperm),
    ("modify_ldt", libc::SYS_modify_ldt),
    ("uselib", libc::SYS_uselib),
    ("ustat", libc::SYS_ustat),
    ("sysfs", libc::SYS_sysfs),
    ("_sysctl", libc::SYS__sysctl),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(&str, c_long)] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would do: the program, run by hand.
    fn outcome(program: &[libc::sock_filter], machine: u32, call: u32, arguments: [u64; 6]) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let line = program[at];
            at += 1;
            let mut leap = |holds: bool| at += usize::from(if holds { line.jt } else { line.jf });
            match line.code {
                LOAD => {
                    value = match line.k {
                        NUMBER => call,
                        MACHINE => machine,
                        k => arguments[((k - ARGUMENTS) / 8) as usize] as u32,
                    }
                }
                JUMP_EQUAL => leap(value == line.k),
                JUMP_GREATER => leap(value > line.k),
                JUMP_SET => leap(value & line.k != 0),
                RETURN => return line.k,
                other => panic!("{other}"),
            }
        }
    }

    fn told(call: &str, arguments: &[u64]) -> Option<c_int> {
        told_in(None, call, arguments)
    }

    fn told_in(exception: Option<Exception>, call: &str, arguments: &[u64]) -> Option<c_int> {
        let Filter { program, .. } = Filter::compiled(Notify::Nobody, exception);
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let number = number(call).unwrap_or_else(|| panic!("{call}"));
        let outcome = outcome(&program, ARCHITECTURE, number, all);
        (outcome != ALLOW).then(|| (outcome & 0xffff).cast_signed())
    }

    #[test]
    fn every_line_of_the_list_is_read_and_has_a_reason() {
        let rules: Rules = toml::from_str(RULES).unwrap();
        for refused in &rules.refuse {
            assert!(!refused.why.is_empty(), "{refused:?}");
            for call in &refused.calls {
                let old = ["vm86", "vm86old"].contains(&call.as_str());
                assert!(old || number(call).is_some(), "{call} has no number");
            }
        }
        for notified in &rules.notify {
            assert!(!notified.why.is_empty(), "{notified:?}");
            assert!(notified.calls.iter().any(|call| number(call).is_some()), "{notified:?}");
        }
    }

    #[test]
    fn calls_are_told_apart_by_number_machine_and_arguments() {
        assert_eq!(told("mount", &[]), Some(libc::EPERM));
        assert_eq!(told("clone3", &[]), Some(libc::ENOSYS));
        assert_eq!(told("clone", &[libc::SIGCHLD as u64]), None);
        assert_eq!(told("clone", &[libc::CLONE_NEWUSER as u64]), Some(libc::EPERM));
        assert_eq!(told("fchmod", &[3, 0o755]), None);
        assert_eq!(told("fchmod", &[3, 0o4755]), Some(libc::EPERM));
        assert_eq!(told("openat", &[0, 0, 0o100, 0o4755]), Some(libc::EPERM));
        assert_eq!(told("openat", &[0, 0, 0, 0o4755]), None);
        assert_eq!(told("ioctl", &[0, 0x5412]), Some(libc::EPERM));
        assert_eq!(told("ioctl", &[0, 0x1_0000_5412]), Some(libc::EPERM));
        assert_eq!(told("ioctl", &[0, 0x5413]), None);
        assert_eq!(told("socket", &[1, 1, 0]), None);
        assert_eq!(told("socket", &[2, 1, 0]), None);
        assert_eq!(told("socket", &[2, 3, 1]), Some(libc::EPERM));
        assert_eq!(told("socket", &[2, 0x80803, 1]), Some(libc::EPERM));
        assert_eq!(told("socket", &[40, 1, 0]), Some(libc::EAFNOSUPPORT));
        assert_eq!(told("socket", &[16, 3, 0]), None);
        assert_eq!(told("socket", &[16, 3, 12]), Some(libc::EPROTONOSUPPORT));
        assert_eq!(told("socket", &[2, 0x80005, 0]), Some(libc::EPROTONOSUPPORT));
        assert_eq!(told("socket", &[10, 1, 132]), Some(libc::EPROTONOSUPPORT));
        // MPTCP, which Go asks for.
        assert_eq!(told("socket", &[2, 1, 262]), None);
        assert_eq!(told("socket", &[1, 0x80005, 0]), None);
        assert_eq!(told("setsockopt", &[3, 6, 31]), Some(libc::ENOPROTOOPT));
        assert_eq!(told("setsockopt", &[3, 6, 1]), None);
        assert_eq!(told("setsockopt", &[3, 1, 31]), None);
        assert_eq!(told("ioctl", &[0, 0x5423]), Some(libc::EPERM));
        assert_eq!(told("personality", &[0xffff_ffff]), None);
        assert_eq!(told("personality", &[0x0008_0000]), Some(libc::EPERM));
        let Filter { program, .. } = Filter::compiled(Notify::Nobody, None);
        assert_eq!(outcome(&program, 0x4000_0003, 1, [0; 6]), ERRNO | libc::ENOSYS as u32);
        let x32 = 0x4000_0000 | libc::SYS_getpid as u32;
        assert_eq!(outcome(&program, ARCHITECTURE, x32, [0; 6]), ERRNO | libc::ENOSYS as u32);
        let Filter { program: notify, .. } = Filter::compiled(Notify::Mover, None);
        for call in ["rename", "renameat", "renameat2"].into_iter().filter_map(number) {
            assert_eq!(outcome(&program, ARCHITECTURE, call, [0; 6]), ALLOW);
            assert_eq!(outcome(&notify, ARCHITECTURE, call, [0; 6]), NOTIFY);
        }
        let getpid = libc::SYS_getpid as u32;
        assert_eq!(outcome(&notify, ARCHITECTURE, getpid, [0; 6]), ALLOW);
        assert_eq!(outcome(&program, ARCHITECTURE, getpid, [0; 6]), ALLOW);
    }
    #[test]
    fn set_id_bits_are_refused_by_every_call_except_to_root_in_layers() {
        let create = u64::from(libc::O_CREAT.cast_unsigned());
        for bit in [0o4000, 0o2000] {
            let mode = 0o755 | bit;
            let calls: [(&str, &[u64]); 9] = [
                ("chmod", &[0, mode]),
                ("fchmod", &[0, mode]),
                ("fchmodat", &[0, 0, mode]),
                ("fchmodat2", &[0, 0, mode]),
                ("creat", &[0, mode]),
                ("open", &[0, create, mode]),
                ("openat", &[0, 0, create, mode]),
                ("mknod", &[0, mode]),
                ("mknodat", &[0, 0, mode]),
            ];
            for (call, arguments) in calls.into_iter().filter(|(call, _)| number(call).is_some()) {
                let root = Some(Exception::RootInLayers);
                assert_eq!(told_in(None, call, arguments), Some(libc::EPERM), "{call}");
                assert_eq!(told_in(root, call, arguments), None, "{call}");
            }
        }
        let root = Some(Exception::RootInLayers);
        assert_eq!(told_in(root, "mount", &[]), Some(libc::EPERM));
        assert_eq!(told_in(root, "openat2", &[]), Some(libc::ENOSYS));
    }
}
