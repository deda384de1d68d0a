//! Every level with every call that takes a path.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Timestamps, XattrFlags};
use rustix::io::Errno;

use crate::{Place, can_mount, inventory};

type Call = (&'static str, fn(&Path) -> Result<(), Errno>);

/// What looks at a path.
const LOOKS: [Call; 6] = [
    ("stat", |p| rustix::fs::stat(p).map(drop)),
    ("lstat", |p| rustix::fs::lstat(p).map(drop)),
    ("access", |p| rustix::fs::access(p, rustix::fs::Access::EXISTS)),
    ("statx", |p| {
        let mask = rustix::fs::StatxFlags::ALL;
        rustix::fs::statx(CWD, p, AtFlags::empty(), mask).map(drop)
    }),
    ("open O_PATH", |p| open(p, OFlags::PATH)),
    ("statfs", |p| rustix::fs::statfs(p).map(drop)),
];

/// What reads it.
const READS: [Call; 2] = [
    ("open to read", |p| open(p, OFlags::RDONLY)),
    ("execve", |p| {
        let error = std::process::Command::new(p).spawn().and_then(|mut c| c.wait()).err();
        error.map_or(Ok(()), |e| Err(Errno::from_io_error(&e).unwrap()))
    }),
];

/// What changes it.
const CHANGES: [Call; 18] = [
    ("open to write", |p| open(p, OFlags::WRONLY)),
    ("open to read and write", |p| open(p, OFlags::RDWR)),
    ("open to truncate", |p| open(p, OFlags::RDONLY | OFlags::TRUNC)),
    ("open to append", |p| open(p, OFlags::WRONLY | OFlags::APPEND)),
    ("truncate", |p| {
        let path = std::ffi::CString::new(p.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: a text that outlives the call.
        result(unsafe { libc::truncate(path.as_ptr(), 0) })
    }),
    ("chmod", |p| rustix::fs::chmod(p, Mode::RWXU)),
    ("chown", |p| rustix::fs::chown(p, Some(rustix::fs::Uid::from_raw(7)), None)),
    ("lchown", |p| {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::chownat(CWD, p, Some(rustix::fs::Uid::from_raw(7)), None, flags)
    }),
    ("utimensat", |p| {
        let now = rustix::fs::Timespec { tv_sec: 1, tv_nsec: 1 };
        let times = Timestamps { last_access: now, last_modification: now };
        rustix::fs::utimensat(CWD, p, &times, AtFlags::empty())
    }),
    ("setxattr", |p| rustix::fs::setxattr(p, "user.a", b"b", XattrFlags::empty())),
    ("removexattr", |p| rustix::fs::removexattr(p, "user.kept")),
    ("unlink", |p| rustix::fs::unlink(p)),
    ("rename", |p| rustix::fs::rename(p, p.with_file_name("free"))),
    ("rename over it", |p| rustix::fs::rename(p.with_file_name("own"), p)),
    ("exchange", |p| {
        let own = p.with_file_name("own");
        rustix::fs::renameat_with(CWD, own, CWD, p, RenameFlags::EXCHANGE)
    }),
    ("link", |p| rustix::fs::link(p, p.with_file_name("free"))),
    ("open by O_PATH and change the mode", |p| {
        let fd = rustix::fs::open(p, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
        rustix::fs::chmod(path, Mode::RWXU)
    }),
    ("open by O_PATH and write", |p| {
        let fd = rustix::fs::open(p, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
        rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).map(drop)
    }),
];

/// What would come into being there.
const MAKES: [Call; 6] = [
    ("mkdir", |p| rustix::fs::mkdir(p, Mode::RWXU)),
    ("symlink", |p| rustix::fs::symlink("own", p)),
    ("mkfifo", |p| rustix::fs::mknodat(CWD, p, FileType::Fifo, Mode::RWXU, 0)),
    ("mknod", |p| rustix::fs::mknodat(CWD, p, FileType::RegularFile, Mode::RWXU, 0)),
    ("rename to it", |p| rustix::fs::rename(p.with_file_name("own"), p)),
    ("link to it", |p| rustix::fs::link(p.with_file_name("own"), p)),
];

fn open(path: &Path, flags: OFlags) -> Result<(), Errno> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).map(drop)
}

fn result(code: i32) -> Result<(), Errno> {
    if code == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap())
}

/// A script at `path` under each of some names, and a file of one's own.
fn place() -> Place {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.put("own", "own");
    place.put("script", "#!/bin/sh\nexit 0\n");
    let script = place.source.join("script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    rustix::fs::setxattr(&script, "user.kept", b"v", XattrFlags::empty()).unwrap();
    place
}

/// Makes each call, and expects the same of all; nothing may have changed.
fn expect(level: &str, calls: &[Call], expected: Result<(), Errno>) {
    let place = place();
    let before = inventory(&place.source);
    let shown = place.show(&[&format!("/script={level}")]);
    for (name, call) in calls {
        assert_eq!(call(&place.shown.join("script")), expected, "{name}, with level {level}");
    }
    drop(shown);
    if expected.is_err() {
        assert_eq!(inventory(&place.source), before);
    }
}

#[test]
fn what_is_hidden_does_not_exist_for_any_call() {
    if !can_mount() {
        return;
    }
    expect("none", &LOOKS, Err(Errno::NOENT));
    expect("none", &READS, Err(Errno::NOENT));
    let (over, others): (Vec<Call>, Vec<Call>) =
        CHANGES.iter().partition(|(name, _)| name.ends_with("over it"));
    let (exchange, others): (Vec<Call>, Vec<Call>) =
        others.into_iter().partition(|(name, _)| *name == "exchange");
    expect("none", &others, Err(Errno::NOENT));
    expect("none", &exchange, Err(Errno::NOENT));
    // What is there must not be told apart from what is not.
    expect("none", &over, Err(Errno::ACCESS));
    expect("none", &MAKES, Err(Errno::ACCESS));
    let place = place();
    let _shown = place.show(&["/script=none", "/nothing=none"]);
    for (name, call) in LOOKS.iter().chain(&READS).chain(&others).chain(&MAKES).chain(&exchange) {
        let [one, other] = ["script", "nothing"].map(|path| call(&place.shown.join(path)));
        assert_eq!(one, other, "{name} tells whether something hidden is there");
    }
    let names: Vec<_> =
        std::fs::read_dir(&place.shown).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["own"]);
}

#[test]
fn what_can_be_viewed_can_be_neither_read_nor_changed() {
    if can_mount() {
        expect("view", &LOOKS, Ok(()));
        expect("view", &READS, Err(Errno::ACCESS));
        expect("view", &CHANGES, Err(Errno::ACCESS));
    }
}

#[test]
fn what_can_be_read_cannot_be_changed() {
    if can_mount() {
        expect("read", &LOOKS, Ok(()));
        expect("read", &READS, Ok(()));
        expect("read", &CHANGES, Err(Errno::ACCESS));
    }
}

#[test]
fn a_file_that_is_made_under_a_hidden_name_is_gone_when_it_is_closed() {
    if !can_mount() {
        return;
    }
    use std::io::{Read, Seek, Write};
    let place = place();
    place.put("taken.pem", "precious");
    let before = inventory(&place.source);
    let shown = place.show(&["**/*.pem=none"]);
    for name in ["free.pem", "taken.pem"] {
        let path = place.shown.join(name);
        let mut file = std::fs::OpenOptions::new();
        let file = file.read(true).write(true).create(true).truncate(true);
        let mut file = file.open(&path).unwrap();
        file.write_all(b"content").unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), file.metadata().unwrap().len()), ("content", 7));
        assert_eq!(std::fs::read(&path).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        drop(file);
        assert!(!path.exists());
    }
    drop(shown);
    assert_eq!(inventory(&place.source), before);
}
