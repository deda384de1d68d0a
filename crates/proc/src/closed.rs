//! Processes that are not dumpable, because their user or we have made them so
//! (`PR_SET_DUMPABLE`). Then root owns some of their files in /proc, and an ordinary user
//! can read them only through descriptors that were opened before.

use rustix::process::Pid;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;

thread_local! {
    static OPEN: RefCell<BTreeMap<i32, Files>> = const { RefCell::new(BTreeMap::new()) };
}

#[derive(Debug)]
struct Files {
    call: Option<File>,
    memory: Option<File>,
}

/// While this value lives, this thread can still read a process that became non-dumpable
/// after the value was made.
#[derive(Debug)]
pub struct ProcessAccess(i32);

impl ProcessAccess {
    #[must_use]
    pub fn into(pid: Pid) -> Self {
        let number = pid.as_raw_nonzero().get();
        let open = |name: &str| File::open(format!("/proc/{number}/{name}")).ok();
        let files = Files { call: open("syscall"), memory: open("mem") };
        OPEN.with_borrow_mut(|all| all.insert(number, files));
        Self(number)
    }
}

impl Drop for ProcessAccess {
    fn drop(&mut self) {
        let _ = OPEN.try_with(|all| all.borrow_mut().remove(&self.0));
    }
}

pub(crate) fn with_call<T>(process: i32, read: impl FnOnce(&File) -> Option<T>) -> Option<T> {
    OPEN.with_borrow(|all| read(all.get(&process)?.call.as_ref()?))
}

pub(crate) fn with_memory<T>(process: i32, read: impl FnOnce(&File) -> Option<T>) -> Option<T> {
    OPEN.with_borrow(|all| read(all.get(&process)?.memory.as_ref()?))
}
