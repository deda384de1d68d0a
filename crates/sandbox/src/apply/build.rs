//! Runs in the new init: builds the sandbox, then waits for ever.
//!
//! Sources are opened first, while the host's tree is unchanged. Targets are opened
//! within the new root, so that no link in what is shown leads out of it.

mod ids;
mod processes;

pub(super) use ids::map_range;

use super::owners::Mapped;
use super::{command_line, guard, init};
use crate::limits::Group;
use crate::plan::{AGENT, Access, HOME, HOSTNAME, Net, Plan, Step};
use crate::sys::{self, Depth, NODEV, NOEXEC, NOSUID, NewFileSystem, RDONLY};
use rustix::fs::{AtFlags, Gid, Uid, chownat};
use rustix::process::Signal;
use std::cell::{Cell, OnceCell};
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Minimum size: a machine may not report how much memory it has.
const LEAST_PRIVATE: u64 = 1 << 20;

/// The message when everything is done.
pub(super) const DONE: &str = "done";

/// The error says what could not be done.
type Outcome<T> = Result<T, String>;

/// Builds the sandbox, reports the outcome, and stays as its init. Never returns.
pub(super) fn become_init(
    plan: &Plan,
    ids: (u32, u32),
    group: Option<&Group>,
    mapped: Mapped,
    (ends, outcome, guard): (OwnedFd, OwnedFd, OwnedFd),
) -> ! {
    let mut kept = vec![ends.as_raw_fd(), outcome.as_raw_fd(), guard.as_raw_fd()];
    kept.extend(mapped.descriptors().map(AsRawFd::as_raw_fd));
    let work = || {
        enter_group(group)?;
        prepare(&mut kept).map_err(|error| format!("the first process: {error}"))?;
        build(plan, ids, mapped, guard.as_fd())
    };
    let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let (text, is_built) = match built {
        Ok(Ok(())) => (DONE.to_owned(), true),
        Ok(Err(why)) => (why, false),
        Err(_) => ("it went wrong".to_owned(), false),
    };
    let _ = File::from(outcome).write_all(text.as_bytes());
    drop(guard);
    if is_built {
        init::reap_for_ever(ends);
    }
    // SAFETY: ends this process without running any of the keeper's code.
    unsafe { libc::_exit(1) }
}

/// Enters the control group, which becomes the topmost one that the sandbox sees.
fn enter_group(group: Option<&Group>) -> Outcome<()> {
    let failed = |error: io::Error| format!("its control group: {error}");
    group.map_or(Ok(()), Group::enter).map_err(failed)?;
    sys::unshare(libc::CLONE_NEWCGROUP).map_err(failed)
}

fn build(plan: &Plan, ids: (u32, u32), mut mapped: Mapped, guard: BorrowedFd<'_>) -> Outcome<()> {
    let said = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    ids::map_ids(plan, ids, guard).map_err(said("the user's numbers cannot be mapped"))?;
    sys::mount(None, c"/", None, libc::MS_REC | libc::MS_SLAVE, None)
        .map_err(said("mounts cannot be separated from the host's"))?;
    let steps = plan.steps.iter().enumerate();
    let sources = steps.map(|(number, step)| open_source(step, mapped.take(number)));
    let sources = sources.collect::<Outcome<Vec<_>>>()?;
    let root = NewFileSystem::of(c"tmpfs").and_then(|new| {
        new.set(c"mode", c"0755")?;
        new.set(c"size", c"16m")?;
        new.mount(NOSUID | NODEV)
    });
    let root = root.map_err(said("the new root"))?;
    let base = open_path(&plan.base).map_err(named(&plan.base))?;
    sys::attach(root.as_fd(), base.as_fd()).map_err(said("the new root"))?;
    let root = Root { fd: root, guard, plan, private: OnceCell::new(), aside: Cell::new(0) };
    for (step, source) in plan.steps.iter().zip(sources) {
        root.take(step, source)?;
    }
    sys::restrict(root.fd.as_fd(), RDONLY | NOSUID | NODEV, Depth::This)
        .map_err(said("the new root"))?;
    rustix::process::fchdir(&root.fd).map_err(|e| said("the new root")(e.into()))?;
    sys::pivot_here().map_err(said("the new root"))?;
    sys::detach(c".").map_err(said("the host's tree cannot be let go of"))?;
    for _ in 0..root.aside.get() {
        sys::detach(ASIDE).map_err(said("the directories below layers"))?;
    }
    if root.private.get().is_some() {
        sys::detach(PRIVATE).map_err(said("private directories"))?;
    }
    rustix::process::chdir("/").map_err(|e| said("the new root")(e.into()))?;
    rustix::system::sethostname(HOSTNAME.as_bytes()).map_err(|e| said("its name")(e.into()))?;
    match plan.net {
        Net::Own => raise_loopback().map_err(said("the loopback"))?,
        Net::Proxied(_) => {
            raise_loopback().map_err(said("the loopback"))?;
            give_listener(guard).map_err(said("the proxy"))?;
        }
        Net::Hosts => {}
    }
    Ok(())
}

/// Closes everything that belongs to the keeper, and arranges to die with the keeper.
fn prepare(kept: &mut [i32]) -> io::Result<()> {
    guard::close_all_but(kept);
    // SAFETY: the mask and the dispositions are this process's own.
    unsafe {
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    command_line::show_as(&["sessile", "sandbox"]);
    rustix::process::setsid()?;
    // If the keeper has ended already, its guardian has inherited this process, and kills
    // all that it inherits. In this pid namespace, the parent's pid cannot tell.
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// What a step takes from the host.
enum Source {
    None,
    Mount(OwnedFd),
    Layers { lower: Lower, upper: OwnedFd, work: OwnedFd },
}

/// The directory below a layer.
enum Lower {
    There(OwnedFd),
    /// A mount that shows other owners, attached nowhere.
    Mapped(OwnedFd),
}

/// Opens what a step takes. A directory with other owners was made by the keeper.
fn open_source(step: &Step, mapped: Option<OwnedFd>) -> Outcome<Source> {
    Ok(match step {
        Step::Tree { host, access, .. } => {
            let tree = match mapped {
                Some(mapped) => mapped,
                None => sys::clone_tree(&text(host)?).map_err(named(host))?,
            };
            let read_only = match access {
                Access::ReadOnly => RDONLY,
                Access::Writable => 0,
            };
            let attributes = read_only | NOSUID | NODEV;
            sys::restrict(tree.as_fd(), attributes, Depth::AllBelow).map_err(named(host))?;
            Source::Mount(tree)
        }
        Step::Device { host, .. } => {
            let device = sys::clone_tree(&text(host)?).map_err(named(host))?;
            // Read-only protects its mode and owner, which are the host's; the device
            // itself can still be written to.
            let attributes = RDONLY | NOSUID | NOEXEC;
            sys::restrict(device.as_fd(), attributes, Depth::This).map_err(named(host))?;
            Source::Mount(device)
        }
        Step::Layered { host, upper, work, .. } => {
            for directory in [upper, work] {
                std::fs::create_dir_all(directory).map_err(named(directory))?;
            }
            let open = |path: &Path| open_path(path).map_err(named(path));
            let lower = match mapped {
                Some(mapped) => Lower::Mapped(mapped),
                None => Lower::There(open(host)?),
            };
            Source::Layers { lower, upper: open(upper)?, work: open(work)? }
        }
        Step::Persistent { directory, .. } => {
            std::fs::create_dir_all(directory).map_err(named(directory))?;
            let tree = sys::clone_tree(&text(directory)?).map_err(named(directory))?;
            sys::restrict(tree.as_fd(), NOSUID | NODEV, Depth::This).map_err(named(directory))?;
            Source::Mount(tree)
        }
        Step::Guarded { source, .. } => open_source(source, mapped)?,
        Step::Directory { .. }
        | Step::Link { .. }
        | Step::Text { .. }
        | Step::Memory { .. }
        | Step::Processes { .. }
        | Step::Terminals { .. }
        | Step::Hidden { .. } => Source::None,
    })
}

fn named(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

fn text(path: &Path) -> Outcome<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| "a path with a zero in it".to_owned())
}

fn open_path(path: &Path) -> io::Result<OwnedFd> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?)
}

/// The tree that is being built.
struct Root<'a> {
    fd: OwnedFd,
    /// The socket over which the keeper gets what the guard needs.
    guard: BorrowedFd<'a>,
    plan: &'a Plan,
    /// The file system of all private directories.
    private: OnceCell<OwnedFd>,
    /// How many directories are mounted aside.
    aside: Cell<u32>,
}

/// Where it is mounted while the tree is built.
const PRIVATE: &CStr = c"/mnt";
/// Where directories below layers are mounted while the tree is built: before Linux 6.15
/// a layer takes none that is attached nowhere.
const ASIDE: &CStr = c"/srv";

impl Root<'_> {
    fn take(&self, step: &Step, source: Source) -> Outcome<()> {
        match (step, source) {
            (Step::Directory { at, mode }, _) => {
                self.make_directory(at, *mode).map(drop).map_err(named(at))
            }
            (Step::Link { at, to }, _) => {
                let (above, name) = self.above(at).map_err(named(at))?;
                match rustix::fs::symlinkat(to, above, &*name) {
                    // Left in a kept directory by an earlier sandbox.
                    Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
                    Err(error) => Err(named(at)(error.into())),
                }
            }
            (Step::Text { at, text }, _) => self.write(at, text).map_err(named(at)),
            (
                Step::Tree { at, .. } | Step::Device { at, .. } | Step::Persistent { at, .. },
                Source::Mount(tree),
            ) => self.place(at, tree.as_fd()).map_err(named(at)),
            (Step::Memory { at, mode }, _) => self.memory(at, *mode).map_err(named(at)),
            (Step::Layered { host, at, .. }, Source::Layers { lower, upper, work }) => {
                let layers = self.layers(host, lower, [&upper, &work])?;
                self.place(at, layers.as_fd()).map_err(named(at))
            }
            (Step::Guarded { source, at }, Source::Layers { lower, upper, work }) => {
                let Step::Layered { host, .. } = &**source else {
                    return Err(format!("{}: it has no layer", at.display()));
                };
                self.guard(at, &self.layers(host, lower, [&upper, &work])?)
            }
            (Step::Guarded { at, .. }, Source::Mount(tree)) => self.guard(at, &tree),
            (Step::Processes { at }, _) => self.processes(at),
            (Step::Terminals { at }, _) => self.terminals(at).map_err(named(at)),
            (Step::Hidden { at }, _) => self.hide(at).map_err(named(at)),
            (
                Step::Tree { at, .. }
                | Step::Device { at, .. }
                | Step::Persistent { at, .. }
                | Step::Layered { at, .. }
                | Step::Guarded { at, .. },
                Source::None | Source::Mount(_) | Source::Layers { .. },
            ) => Err(format!("{}: it was not opened", at.display())),
        }
    }

    fn open(&self, at: &Path, flags: i32) -> io::Result<OwnedFd> {
        let inside = CString::new(at.as_os_str().as_bytes())?;
        sys::open_in(self.fd.as_fd(), &inside, flags)
    }

    /// Opens the directory above a path, and makes it if it is missing.
    fn above(&self, at: &Path) -> io::Result<(OwnedFd, PathBuf)> {
        let name = at.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let above = at.parent().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.make_directory(above, 0o755)?, name.into()))
    }

    /// Opens a directory, and makes it and its parents if they are missing.
    fn make_directory(&self, at: &Path, mode: u32) -> io::Result<OwnedFd> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        match self.open(at, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let (above, name) = self.above(at)?;
        match rustix::fs::mkdirat(above, &name, mode.into()) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => self.open(at, flags),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, at: &Path, text: &[u8]) -> io::Result<()> {
        use rustix::fs::OFlags;
        let (above, name) = self.above(at)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::openat(above, &name, flags, 0o644.into()) {
            // Left by an earlier sandbox, as above.
            Err(rustix::io::Errno::EXIST) => Ok(()),
            file => File::from(file?).write_all(text),
        }
    }

    /// Mounts something at a path; the mount point is made with the same type.
    fn place(&self, at: &Path, mount: BorrowedFd<'_>) -> io::Result<()> {
        let kind = rustix::fs::fstat(mount)?.st_mode;
        let is_directory =
            rustix::fs::FileType::from_raw_mode(kind) == rustix::fs::FileType::Directory;
        let onto = if is_directory {
            self.make_directory(at, 0o755)?
        } else {
            match self.open(at, libc::O_PATH) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.write(at, b"")?;
                    self.open(at, libc::O_PATH)?
                }
                opened => opened?,
            }
        };
        sys::attach(mount, onto.as_fd())
    }

    /// Makes a directory of the private file system: all of them share its size.
    fn memory(&self, at: &Path, mode: u32) -> io::Result<()> {
        let private = self.private()?;
        let name = at.to_string_lossy().replace('/', "-");
        rustix::fs::mkdirat(private, &*name, mode.into())?;
        // Whatever the umask is.
        rustix::fs::chmodat(private, &*name, mode.into(), AtFlags::empty())?;
        if at == Path::new(HOME) {
            let agent = (Uid::from_raw(AGENT), Gid::from_raw(AGENT));
            // For root inside, there may be no such user.
            let _ = chownat(private, &*name, Some(agent.0), Some(agent.1), AtFlags::empty());
        }
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        let directory = rustix::fs::openat(private, &*name, flags, 0.into())?;
        let again = sys::clone_tree_of(directory.as_fd())?;
        self.place(at, again.as_fd())
    }

    fn private(&self) -> io::Result<&OwnedFd> {
        if let Some(private) = self.private.get() {
            return Ok(private);
        }
        let bytes = self.plan.limits.private_bytes.max(LEAST_PRIVATE);
        let new = NewFileSystem::of(c"tmpfs")?;
        new.set(c"mode", c"0755")?;
        new.set(c"size", &CString::new(bytes.to_string())?)?;
        // Each inode takes a kilobyte of the Linux kernel's memory.
        let files = bytes / 8192 + 1000;
        new.set(c"nr_inodes", &CString::new(files.to_string())?)?;
        let mount = new.mount(NOSUID | NODEV)?;
        self.place(Path::new(OsStr::from_bytes(PRIVATE.to_bytes())), mount.as_fd())?;
        Ok(self.private.get_or_init(|| mount))
    }

    /// Mounts our file system, and gives the keeper what it takes to serve it. The
    /// directory itself is mounted nowhere: only the file system's server can reach it.
    fn guard(&self, at: &Path, source: &OwnedFd) -> Outcome<()> {
        let failed = |error: io::Error| format!("the rules of the workspace: {error}");
        let mount = || -> io::Result<()> {
            // Opened by the process that mounts it, in the namespace of the mount.
            let device = File::options().read(true).write(true).open("/dev/fuse")?;
            let new = NewFileSystem::of(c"fuse")?;
            let id = CString::new(self.plan.user.id().to_string())?;
            new.set(c"source", c"workspace")?;
            new.set(c"fd", &CString::new(device.as_raw_fd().to_string())?)?;
            new.set(c"rootmode", c"40000")?;
            new.set(c"user_id", &id)?;
            new.set(c"group_id", &id)?;
            new.set_flag(c"default_permissions")?;
            let mount = new.mount(NOSUID | NODEV)?;
            sys::send_descriptors(self.guard, [source.as_fd(), device.as_fd()])?;
            if self.plan.guard.as_ref().is_some_and(|guard| guard.account.is_some()) {
                let private = self.private()?;
                let size = sys::pick(private.as_fd())?;
                sys::send_descriptors(self.guard, [private.as_fd(), size.as_fd()])?;
            }
            let onto = self.make_directory(at, 0o755)?;
            sys::attach(mount.as_fd(), onto.as_fd())
        };
        mount().map_err(failed)
    }

    /// Returns a directory with a layer on top that takes the changes.
    fn layers(&self, host: &Path, lower: Lower, [upper, work]: [&OwnedFd; 2]) -> Outcome<OwnedFd> {
        let lower = match lower {
            Lower::There(lower) => lower,
            Lower::Mapped(mapped) => {
                let aside = Path::new(OsStr::from_bytes(ASIDE.to_bytes()));
                self.place(aside, mapped.as_fd()).map_err(named(host))?;
                self.aside.set(self.aside.get() + 1);
                mapped
            }
        };
        layers(host, [&lower, upper, work])
    }

    fn terminals(&self, at: &Path) -> io::Result<()> {
        let new = NewFileSystem::of(c"devpts")?;
        new.set(c"ptmxmode", c"0666")?;
        new.set(c"mode", c"0620")?;
        self.place(at, new.mount(NOSUID | NOEXEC)?.as_fd())
    }

    /// Covers what is there with something empty.
    fn hide(&self, at: &Path) -> io::Result<()> {
        let there = match self.open(at, libc::O_PATH) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let kind = rustix::fs::fstat(&there)?.st_mode;
        let is_directory =
            rustix::fs::FileType::from_raw_mode(kind) == rustix::fs::FileType::Directory;
        let nothing = if is_directory {
            let new = NewFileSystem::of(c"tmpfs")?;
            new.set(c"mode", c"0555")?;
            new.set(c"size", c"4k")?;
            new.mount(RDONLY | NOSUID | NODEV | NOEXEC)?
        } else {
            let null = self
                .open(Path::new("/dev/null"), libc::O_PATH)
                .or_else(|_| open_path(Path::new("/dev/null")))?;
            let null = sys::clone_tree_of(null.as_fd())?;
            sys::restrict(null.as_fd(), RDONLY | NOSUID | NOEXEC, Depth::This)?;
            null
        };
        sys::attach(nothing.as_fd(), there.as_fd())
    }
}

/// Returns a directory with a layer on top that takes the changes.
fn layers(host: &Path, [lower, upper, work]: [&OwnedFd; 3]) -> Outcome<OwnedFd> {
    let new = NewFileSystem::of(c"overlay").map_err(|_| {
        "this system has no overlayfs; `modprobe overlay` (as root) gives it, \
         or start with --files direct"
            .to_owned()
    })?;
    let path = |fd: &OwnedFd| CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    let set = |key: &CStr, fd: &OwnedFd| -> io::Result<()> { new.set(key, &path(fd)?) };
    let set = || -> io::Result<()> {
        set(c"lowerdir", lower)?;
        set(c"upperdir", upper)?;
        set(c"workdir", work)?;
        new.set_flag(c"userxattr")
    };
    let failed = |error: io::Error| format!("the layer on {}: {error}", host.display());
    set().map_err(failed)?;
    new.mount(NOSUID | NODEV).map_err(|error| match mounted_below(host) {
        Some(mount) if error.raw_os_error() == Some(libc::EINVAL) => has_mount(host, &mount),
        Some(_) | None => failed(error),
    })
}

pub(super) fn has_mount(host: &Path, mount: &Path) -> String {
    format!(
        "the layer on {}: Linux makes none on a directory with a mount in it, and {} is one; \
         unmount it, or start with --files direct",
        host.display(),
        mount.display()
    )
}

/// Returns a mount point somewhere below a directory.
pub(super) fn mounted_below(directory: &Path) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    // mountinfo escapes blanks and the like as octal numbers.
    let mut places = places.map(|place| PathBuf::from(place.replace("\\040", " ")));
    places.find(|place| place != directory && place.starts_with(directory))
}

/// Brings up the loopback of a new network, which starts down.
fn raise_loopback() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: the request is a structure of ours, zeroed and then filled; its name is
    // zero-terminated.
    unsafe {
        let mut request = std::mem::zeroed::<libc::ifreq>();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Creates the proxy's listener inside, and sends it out.
fn give_listener(to: BorrowedFd<'_>) -> io::Result<()> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, crate::proxy::PORT))?;
    sys::send_descriptors(to, [listener.as_fd()])
}
