//! How a long-lived process gives memory back.

use std::time::Duration;

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
const AFTER_START: Duration = Duration::from_secs(1);

/// How often a server looks whether it is idle.
const INTERVAL: Duration = Duration::from_secs(5);

/// The processor time of an interval in which a server did nothing but look.
const IDLE: Duration = Duration::from_millis(2);

/// Returns memory to the system after the start, and whenever the server has become idle.
pub(crate) async fn give_back_when_idle() {
    tokio::time::sleep(AFTER_START).await;
    give_back_now().await;
    let (mut last, mut was_idle) = (processor_time(), true);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = processor_time();
        let is_idle = now.saturating_sub(last) < IDLE;
        if is_idle && !was_idle {
            give_back_now().await;
        }
        (last, was_idle) = (now, is_idle);
    }
}

async fn give_back_now() {
    let _ = tokio::task::spawn_blocking(|| {
        // Freed memory, in pieces that are too small for the allocator to return by itself.
        // After the start it is about 4 MB.
        #[cfg(target_env = "gnu")]
        // SAFETY: it only changes the allocator's own data, under its locks.
        unsafe {
            libc::malloc_trim(0);
        }
        unmap_code();
    })
    .await;
}

/// Unmaps the pages of the program's code, about 15 MB. Most of them were used once, or only
/// lie beside one that was. Those that are used again are mapped again, from the cache of
/// the file: about half a millisecond in all, for the first request after a pause.
fn unmap_code() {
    // SAFETY: the callback gets valid headers for the time of its call, and no data.
    unsafe { libc::dl_iterate_phdr(Some(unmap_code_of), std::ptr::null_mut()) };
}

unsafe extern "C" fn unmap_code_of(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the C library passes a valid entry, whose headers stay mapped.
    let (info, headers) = unsafe {
        let info = &*info;
        (info, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let page = rustix::param::page_size();
    for header in headers {
        let only_code = libc::PF_R | libc::PF_X;
        if header.p_type != libc::PT_LOAD || header.p_flags != only_code {
            continue;
        }
        let start = (info.dlpi_addr + header.p_vaddr) as usize;
        let end = (start + header.p_memsz as usize).next_multiple_of(page);
        let start = start - start % page;
        // SAFETY: the segment is mapped from a file and cannot be written, so that its pages
        // are those of the file whenever they are needed again.
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED);
        }
    }
    // The program itself comes first; its libraries are small, and shared by others.
    1
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
