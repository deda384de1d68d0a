//! How the allocator of a long-lived process gives memory back.

/// Blocks of this size and more, bodies and outputs, go back to the system when they are
/// freed. By default the C library raises the threshold up to 32 MiB once it has seen
/// such blocks, and keeps them for later.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 512 << 10;

/// Has large blocks given back at once.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a number of the allocator's, which any thread may do.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}
