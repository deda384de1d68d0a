//! What `ps` shows of the first process inside. It is a copy of the keeper, in whose command
//! line is the path of the program on the host.

/// Its words, each with its zero.
const SHOWN: &[u8] = b"sessile\0sandbox\0";

/// Replaces the command line of this process. Where the system does not say where that is, it
/// stays.
pub(super) fn replace() {
    let Some((start, length)) = place() else { return };
    let mut line = SHOWN.to_vec();
    line.resize(length, 0);
    if let Some(last) = line.last_mut() {
        *last = 0;
    }
    let start = std::ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: the system has put the command line there, on the stack of the first thread;
    // this process has that thread only, and nothing in it reads its arguments.
    unsafe { std::ptr::copy_nonoverlapping(line.as_ptr(), start, length) }
}

/// Returns where the command line is in memory, and its length.
fn place() -> Option<(usize, usize)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before it may have any characters. `arg_start` and `arg_end` are the fields 48
    // and 49; the first one here is the third.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(45);
    let (start, end): (usize, usize) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((start, end.checked_sub(start)?)).filter(|_| start > 0)
}
