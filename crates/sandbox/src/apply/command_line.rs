//! What `ps` shows of processes of ours that are seen inside: the first one, and a kernel's
//! before it executes its program. Both have the keeper's command line otherwise, with the
//! path of the program on the host.

/// Replaces the command line of this process, which must have a single thread. Where the
/// system does not say where that is, it stays.
pub fn show_as(words: &[&str]) {
    let Some((start, length)) = place() else { return };
    let mut line: Vec<u8> =
        words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
    line.resize(length, 0);
    if let Some(last) = line.last_mut() {
        *last = 0;
    }
    let start = std::ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: the system has put the command line there, on the stack of the first thread;
    // there is no other thread, and a process of ours reads its arguments only at its start.
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
