//! A directory as a policy shows it, mounted for the calling thread alone. It
//! needs root, and `/dev/fuse`.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rustix::fs::{Mode, OFlags};
use sessile_sandbox::Rules;
use sessile_sandbox::fuse::{Caching, IdMap, Server, Window};

#[derive(Debug)]
pub(crate) struct Mounted {
    place: PathBuf,
    serving: Option<JoinHandle<std::io::Result<()>>>,
}

/// Why nothing can be mounted here, if so.
pub(crate) fn obstacle() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("mounting takes root");
    }
    let fuse = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    fuse.is_err().then_some("there is no /dev/fuse")
}

/// Parts the calling thread's mounts from everybody else's.
pub(crate) fn part_mounts() {
    // SAFETY: concerns this thread alone, which has nothing that would mind.
    let parted = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    assert_eq!(parted, 0, "{}", std::io::Error::last_os_error());
    mount("none", Path::new("/"), "", libc::MS_REC | libc::MS_PRIVATE, "");
}

pub(crate) fn mount(source: &str, place: &Path, kind: &str, flags: libc::c_ulong, options: &str) {
    let text = |bytes: &[u8]| CString::new(bytes).unwrap();
    let (source, kind) = (text(source.as_bytes()), text(kind.as_bytes()));
    let (place, options) = (text(place.as_os_str().as_bytes()), text(options.as_bytes()));
    // SAFETY: all five are texts that outlive the call.
    let mounted = unsafe {
        libc::mount(source.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    assert_eq!(mounted, 0, "{place:?}: {}", std::io::Error::last_os_error());
}

pub(crate) fn open_directory(path: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

impl Mounted {
    /// Shows `source` at `place`. The mounts must have been parted.
    pub(crate) fn new(source: &Path, place: &Path, rules: Rules, caching: Caching) -> Self {
        Self::with(source, place, rules, caching, |server| server)
    }

    pub(crate) fn with(
        source: &Path,
        place: &Path,
        rules: Rules,
        caching: Caching,
        prepare: fn(Server) -> Server,
    ) -> Self {
        let source = open_directory(source);
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let fuse = rustix::fs::open("/dev/fuse", flags, Mode::empty()).unwrap();
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other",
            fuse.as_raw_fd()
        );
        mount("sessile", place, "fuse", libc::MS_NOSUID | libc::MS_NODEV, &options);
        // A descriptor of the place itself would keep it mounted.
        let name = CString::new(place.file_name().unwrap().as_bytes()).unwrap();
        let window = Window { base: open_directory(place.parent().unwrap()), path: name };
        let serving = std::thread::spawn(move || {
            // SAFETY: parts this thread's umask from the others'.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_FS) }, 0);
            let server = Server::new(source, rules, IdMap::default(), caching)?;
            prepare(server).with_window(window).serve(fuse)
        });
        Self { place: place.to_owned(), serving: Some(serving) }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let place = CString::new(self.place.as_os_str().as_bytes()).unwrap();
        // SAFETY: a text that outlives the call.
        unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) };
        if let Some(serving) = self.serving.take()
            && !std::thread::panicking()
        {
            serving.join().unwrap().unwrap();
        }
    }
}
