//! What the guard has counted, for the keeper to read: a page that both share.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The use of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallied {
    /// Bytes of the layer and of the private directories, as last measured.
    pub used: u64,
    /// Writes that were refused because it was full.
    pub refused: u64,
}

#[derive(Debug)]
#[repr(C)]
struct Page {
    used: AtomicU64,
    refused: AtomicU64,
}

/// Shared with the processes that are forked after it was made.
#[derive(Debug)]
pub struct Tally(NonNull<Page>);

impl Tally {
    pub(super) fn new() -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which no other value points to. It is zeroed, as large
        // as a page, and aligned to one.
        let page =
            unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Page>(), access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?))
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped as long as this value lives, and only ever accessed through atomics.
        unsafe { self.0.as_ref() }
    }

    /// Returns it for the guard, which is a copy of this process and has the same page.
    /// It must not be called anywhere else: dropping it unmaps the page.
    pub(super) fn of_guard(&self) -> Self {
        Self(self.0)
    }

    pub(super) fn read(&self) -> Tallied {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Tallied { used: get(&self.page().used), refused: get(&self.page().refused) }
    }

    pub(crate) fn set_used(&self, bytes: u64) {
        self.page().used.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_refusal(&self) {
        self.page().refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new`, and there are no references to it.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Page>()) };
    }
}
