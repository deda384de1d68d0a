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

/// How long after its start a server gives back what the start has used and freed. By then
/// its first requests are answered.
const AFTER_START: std::time::Duration = std::time::Duration::from_secs(1);

/// Returns freed memory of the start to the system: about 4 MB, in pieces that are too
/// small for the allocator to return by itself.
pub(crate) async fn give_back_after_start() {
    tokio::time::sleep(AFTER_START).await;
    #[cfg(target_env = "gnu")]
    // SAFETY: it only changes the allocator's own data, under its locks.
    let _ = tokio::task::spawn_blocking(|| unsafe { libc::malloc_trim(0) }).await;
}
