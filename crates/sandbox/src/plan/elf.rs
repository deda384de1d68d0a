//! Which libraries a program names, and where it says they are: just enough ELF for that.
//! A file that is not understood names none.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What a 64-bit object in this machine's byte order says about libraries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Linked {
    /// Names, such as `libpython3.13.so.1.0`.
    pub(super) libraries: Vec<PathBuf>,
    /// Where these are searched before the system's own directories.
    pub(super) directories: Vec<PathBuf>,
}

/// Objects have about ten.
const MOST_HEADERS: u64 = 256;
/// Large programs have some hundred.
const MOST_ENTRIES: u64 = 4096;
/// Limit for a name, or a list of directories.
const MOST_TEXT: usize = 4096;

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;

const NEEDED: u64 = 1;
const TEXTS: u64 = 5;
const RPATH: u64 = 15;
const RUNPATH: u64 = 29;

/// A part of the file, and its address in memory.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    length: u64,
}

pub(super) fn linked(path: &Path) -> Linked {
    read(path).unwrap_or_default()
}

fn read(path: &Path) -> Option<Linked> {
    let file = File::open(path).ok()?;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    let byte_order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if !head.starts_with(b"\x7fELF\x02") || head[5] != byte_order {
        return None;
    }
    let first = u64::from_ne_bytes(head[32..40].try_into().ok()?);
    let size = u64::from(u16::from_ne_bytes([head[54], head[55]]));
    let count = u64::from(u16::from_ne_bytes([head[56], head[57]]));
    let segments: Vec<Segment> = (0..count.min(MOST_HEADERS))
        .map_while(|n| segment(&file, first.checked_add(n.checked_mul(size)?)?))
        .collect();
    let table = segments.iter().find(|segment| segment.kind == DYNAMIC)?;
    let entries: Vec<(u64, u64)> = (0..(table.length / 16).min(MOST_ENTRIES))
        .map_while(|n| entry(&file, table.offset.checked_add(n * 16)?))
        .take_while(|(tag, _)| *tag != 0)
        .collect();
    let texts = entries.iter().find(|(tag, _)| *tag == TEXTS)?.1;
    let within = segments.iter().find(|segment| {
        segment.kind == LOAD
            && (segment.address..segment.address.saturating_add(segment.length)).contains(&texts)
    })?;
    let texts = texts - within.address + within.offset;
    let all = |wanted: u64| -> Vec<Vec<u8>> {
        let of_kind = entries.iter().filter(|(tag, _)| *tag == wanted);
        of_kind.filter_map(|(_, at)| text(&file, texts.checked_add(*at)?)).collect()
    };
    let origin = path.parent()?;
    let lists = [all(RUNPATH), all(RPATH)].concat();
    let directories = lists
        .iter()
        .flat_map(|list| list.split(|byte| *byte == b':'))
        .filter_map(|directory| expand(directory, origin))
        .collect();
    let libraries = all(NEEDED).iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
    Some(Linked { libraries, directories })
}

fn segment(file: &File, at: u64) -> Option<Segment> {
    let mut bytes = [0; 56];
    file.read_exact_at(&mut bytes, at).ok()?;
    let number = |at: usize| Some(u64::from_ne_bytes(bytes[at..at + 8].try_into().ok()?));
    Some(Segment {
        kind: u32::from_ne_bytes(bytes[..4].try_into().ok()?),
        offset: number(8)?,
        address: number(16)?,
        length: number(32)?,
    })
}

fn entry(file: &File, at: u64) -> Option<(u64, u64)> {
    let mut bytes = [0; 16];
    file.read_exact_at(&mut bytes, at).ok()?;
    let (tag, value) = bytes.split_at(8);
    Some((u64::from_ne_bytes(tag.try_into().ok()?), u64::from_ne_bytes(value.try_into().ok()?)))
}

fn text(file: &File, at: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; MOST_TEXT];
    let read = file.read_at(&mut bytes, at).ok()?;
    bytes.truncate(read);
    let end = bytes.iter().position(|byte| *byte == 0)?;
    bytes.truncate(end);
    Some(bytes)
}

/// Expands `$ORIGIN/../lib`, relative to the object's directory. Other relative paths are ignored.
fn expand(directory: &[u8], origin: &Path) -> Option<PathBuf> {
    let rest =
        [&b"$ORIGIN"[..], b"${ORIGIN}"].iter().find_map(|word| directory.strip_prefix(*word));
    let path = match rest {
        Some(rest) => {
            let below = OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest));
            origin.join(below)
        }
        None => PathBuf::from(OsStr::from_bytes(directory)),
    };
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_its_libraries() {
        let found = linked(&std::env::current_exe().unwrap());
        assert!(found.libraries.contains(&PathBuf::from("libc.so.6")), "{found:?}");
    }

    #[test]
    fn what_is_no_program_names_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        for text in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01", &[0xff; 200]] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(linked(&path), Linked::default());
        }
        let mut broken = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        broken.truncate(4096);
        std::fs::write(&path, broken).unwrap();
        linked(&path);
    }

    #[test]
    fn directories_are_meant_from_where_the_object_is() {
        let at = |text: &str| expand(text.as_bytes(), Path::new("/a/bin"));
        assert_eq!(at("$ORIGIN/../lib"), Some("/a/bin/../lib".into()));
        assert_eq!(at("${ORIGIN}"), Some("/a/bin/".into()));
        assert_eq!(at("/opt/lib"), Some("/opt/lib".into()));
        assert_eq!(at("lib"), None);
        assert_eq!(at(""), None);
    }
}
