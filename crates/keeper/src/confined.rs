//! The sandbox of a session: its plan, and the current instance.
//!
//! A session and the forks that share its files also share the sandbox. If its first
//! process is killed, all processes inside end with it; the next kernel gets a new
//! sandbox with the same layer.

use crate::processes;
use rustix::process::Pid;
use sessile_proc::{Process, Stat};
use sessile_protocol::{Boot, Code, Failure, OwnNetwork};
use sessile_sandbox::Policy;
use sessile_sandbox::apply::{End, Sandbox, command_line, has_changed_system};
use sessile_sandbox::limits::{Disk, LimitPlan};
use sessile_sandbox::plan::environment::environment;
use sessile_sandbox::plan::host::{Host, Wanted};
use sessile_sandbox::plan::{self, Net, Place, Plan, User, WORKSPACE};
use sessile_sandbox::proxy::Notice;
use sessile_sandbox::tracked;
use sessile_store::UserState;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Name of the session's layer in its directory.
pub(crate) const LAYER: &str = "layer";
/// Name of the directory with files that kernels inside are given to read.
const GIVEN: &str = "given";

#[derive(Debug)]
pub(crate) struct Confined {
    plan: Plan,
    given: PathBuf,
    search: OsString,
    /// The system tree, if it is not the host's.
    tree: Option<PathBuf>,
    /// What to tell of tracked files that the rules hide.
    hidden_from_git: Option<String>,
    sandbox: RefCell<Rc<Sandbox>>,
    /// The scratch directory that the sandbox shows to its kernels.
    scratch: PathBuf,
    /// Device and inode of that directory when it was last shown.
    shown: Cell<Option<(u64, u64)>>,
    /// Processes reported by their pids inside the sandbox, keyed by those.
    known: RefCell<BTreeMap<i32, Pid>>,
    /// The incidents at the last check.
    seen: Cell<Incidents>,
    /// The disk of its layer, if the layer has no limit.
    disk: Option<Disk>,
    /// Refusals that have not been passed to any session yet.
    refusals: RefCell<Vec<Notice>>,
}

/// Counts of what limits have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Incidents {
    /// Processes that were killed for memory.
    pub(crate) kills: u64,
    /// Processes that could not be started.
    pub(crate) refusals: u64,
    /// Writes for which there was no space.
    pub(crate) full: u64,
    /// Times that its programs were stopped because the disk was nearly full.
    pub(crate) stops: u64,
}

impl Incidents {
    fn of(sandbox: &Sandbox) -> Self {
        let counts = sandbox.group().map(|group| group.counts()).unwrap_or_default();
        let full = sandbox.tallied().map_or(0, |tallied| tallied.refused);
        Self { kills: counts.kills, refusals: counts.refusals, full, stops: 0 }
    }

    fn since(self, before: Self) -> Self {
        Self {
            kills: self.kills.saturating_sub(before.kills),
            refusals: self.refusals.saturating_sub(before.refusals),
            full: self.full.saturating_sub(before.full),
            stops: self.stops.saturating_sub(before.stops),
        }
    }
}

impl Confined {
    /// Builds the sandbox that a session was started with, if it has one.
    pub(crate) fn of(boot: &Boot, scratch: &Path) -> Result<Option<Rc<Self>>, Failure> {
        let Some(policy) = &boot.sandbox else { return Ok(None) };
        let refused = |why: String| Failure::new(Code::Sandbox, why);
        let policy: Policy = serde_json::from_str(policy).map_err(|error| {
            refused(format!("the session's sandbox cannot be read ({error}); it may be of a newer sessile: update this one"))
        })?;
        let layer = layer_of(&boot.directory)
            .map_err(|error| refused(format!("the session has no place for its layer: {error}")))?;
        let given = make_empty(boot.directory.join(GIVEN)).map_err(|error| {
            refused(format!("the session has no place for what its kernels read: {error}"))
        })?;
        let sessions = boot.directory.parent().unwrap_or(&boot.directory).to_owned();
        let mut hidden = vec![sessions, boot.user_state.clone()];
        // Sessions may have been started in directories below: what is written to their files
        // would run outside.
        let others = UserState::at(boot.user_state.clone()).places().into_iter();
        hidden.extend(others.filter(|place| !boot.work_dir.starts_with(place)));
        let variable = |name| {
            let given = boot.env.get(name).map(OsString::from);
            given.or_else(|| std::env::var_os(name))
        };
        let search = variable("PATH");
        let search = search.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let rustup = variable("RUSTUP_HOME").map(PathBuf::from);
        let host = Host::look(Wanted {
            search: &search,
            program: &boot.kernel.program,
            home: home.as_deref(),
            rustup: rustup.as_deref(),
            workspace: &boot.work_dir,
            hidden: &hidden,
            rootfs: policy.rootfs.as_deref(),
        });
        let place = Place {
            group: crate::groups::name_of(boot),
            workspace: boot.work_dir.clone(),
            layer,
            scratch: scratch.to_owned(),
            given: given.clone(),
            hidden,
        };
        let plan = plan::plan(&policy, &host, &place).map_err(|why| refused(why.to_string()))?;
        crate::groups::write_down(&boot.directory, plan.limits.group.as_ref());
        let has_open_layer = plan.limits.layer.is_none() && plan.has_layer();
        let disk = has_open_layer.then(|| Disk::of(&plan.base)).flatten();
        command_line::show_as(&["sessile", "keeper", boot.session.as_str()]);
        let sandbox = Sandbox::build(&plan).map_err(|why| refused(why.to_string()))?;
        Ok(Some(Rc::new(Self {
            plan,
            given,
            search: host.programs.search,
            hidden_from_git: tracked::note(&boot.work_dir, &policy),
            tree: policy.rootfs,
            sandbox: RefCell::new(Rc::new(sandbox)),
            scratch: scratch.to_owned(),
            shown: Cell::new(identity(scratch)),
            known: RefCell::default(),
            seen: Cell::default(),
            disk,
            refusals: RefCell::default(),
        })))
    }

    /// Returns the environment that kernels start with.
    pub(crate) fn environment(&self, boot: &Boot) -> BTreeMap<OsString, OsString> {
        let host = crate::keeper::inherited(boot);
        let given = boot.env.iter().map(|(name, value)| (name.into(), value.into()));
        environment(host, &self.search, given, &self.plan)
    }

    /// Returns the current sandbox, which may have ended.
    pub(crate) fn sandbox(&self) -> Rc<Sandbox> {
        Rc::clone(&self.sandbox.borrow())
    }

    /// Returns the sandbox; a new one if its first process has ended.
    pub(crate) fn living(&self) -> io::Result<Rc<Sandbox>> {
        let sandbox = self.sandbox();
        if sandbox.is_alive() && self.show_scratch().is_ok() {
            return Ok(sandbox);
        }
        sandbox.kill();
        self.shown.set(identity(&self.scratch));
        let fresh = Rc::new(Sandbox::build(&self.plan).map_err(io::Error::other)?);
        self.known.borrow_mut().clear();
        self.seen.take();
        *self.sandbox.borrow_mut() = Rc::clone(&fresh);
        Ok(fresh)
    }

    /// Makes sure that kernels inside see the scratch directory that there is, and not one
    /// that was removed.
    pub(crate) fn show_scratch(&self) -> io::Result<()> {
        let there = identity(&self.scratch);
        if there != self.shown.get() {
            self.sandbox().show_again(&self.scratch)?;
            self.shown.set(there);
        }
        Ok(())
    }

    /// Returns what its limits have done since the last check.
    pub(crate) fn take_incidents(&self) -> Incidents {
        let stops = self.disk.as_ref().map_or(0, Disk::stops);
        let now = Incidents { stops, ..Incidents::of(&self.sandbox.borrow()) };
        now.since(self.seen.replace(now))
    }

    /// Whether a process could not be started since the last check.
    pub(crate) fn has_refused(&self) -> bool {
        let now = Incidents::of(&self.sandbox.borrow());
        now.since(self.seen.get()).refusals > 0
    }

    /// Returns what the start of a session is told.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.plan.limits.notes.iter().chain(&self.hidden_from_git).cloned().collect()
    }

    /// Returns what the first run is told as well: of tracked files that the rules hide.
    pub(crate) fn hidden_from_git(&self) -> Option<&String> {
        self.hidden_from_git.as_ref()
    }

    /// What it may use, and what holds it to that.
    pub(crate) fn limits(&self) -> &LimitPlan {
        &self.plan.limits
    }

    /// Returns the disk of its layer, if nothing else limits that.
    pub(crate) fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// Whether root inside has changed one of the system's directories.
    pub(crate) fn has_changed_system(&self) -> bool {
        has_changed_system(&self.plan)
    }

    /// Returns the directory of the system tree, if it is not the host's.
    pub(crate) fn tree(&self) -> Option<&Path> {
        self.tree.as_deref()
    }

    /// Returns the directory for what is written.
    pub(crate) fn layer(&self) -> &Path {
        &self.plan.base
    }

    /// Returns the directory where kernels inside find files to read; they cannot write
    /// there.
    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    /// Returns its own network, if it has one.
    pub(crate) fn network(&self) -> Option<OwnNetwork> {
        match self.plan.net {
            Net::Hosts => None,
            Net::Own | Net::Proxied(_) => {
                let init = self.sandbox().init();
                let inode = Process::new(init).network_namespace()?;
                Some(OwnNetwork { pid: init.as_raw_nonzero().get().cast_unsigned(), inode })
            }
        }
    }

    /// Takes the refusals that `is_ones` selects.
    pub(crate) fn take_refusals(&self, is_ones: impl Fn(&Notice) -> bool) -> Vec<Notice> {
        let sandbox = self.sandbox();
        let Some(proxy) = sandbox.proxy() else { return Vec::new() };
        let mut refusals = self.refusals.borrow_mut();
        refusals.extend(proxy.take_notices());
        let (taken, left) = std::mem::take(&mut *refusals).into_iter().partition(is_ones);
        *refusals = left;
        taken
    }

    /// Whether there are refusals that no session has taken.
    pub(crate) fn has_refusals(&self) -> bool {
        !self.refusals.borrow().is_empty()
    }

    /// Returns the directory where runs begin.
    pub(crate) fn work_dir(&self) -> &'static Path {
        Path::new(WORKSPACE)
    }

    /// Handles the end of a child of this process. A sandbox without its attendants is of
    /// no use: it is killed, and the next kernel gets a new one. A proxy is started
    /// again.
    pub(crate) fn has_ended(&self, pid: Pid) {
        let sandbox = self.sandbox();
        if sandbox.attendants().any(|one| one == pid) {
            sandbox.kill();
        }
        if let Some(proxy) = sandbox.proxy() {
            proxy.has_ended(pid);
        }
    }

    /// Returns the process with this pid inside, and reports its end later.
    pub(crate) fn process(&self, inside: Pid) -> Option<Pid> {
        let number = inside.as_raw_nonzero().get();
        let init = self.sandbox().init();
        let me = rustix::process::getpid();
        // Processes outside, or in a sandbox of their own, may have the same pid.
        let inside = namespace_of(init)?;
        let is_it = |pid: &Pid| {
            *pid != init
                && inner_number(*pid) == Some(number)
                && namespace_of(*pid).as_ref() == Some(&inside)
        };
        // A process in between may end during a walk: its children then have another parent,
        // whose children were listed before. The next walk finds them.
        let walk = || processes::descendants(me).into_iter().find(is_it);
        let found = (0..processes::LOOKS).find_map(|_| walk())?;
        self.known.borrow_mut().insert(number, found);
        Some(found)
    }

    /// Returns the user of its programs.
    pub(crate) fn user(&self) -> User {
        self.plan.user
    }

    /// Whether there is any process inside other than the first one and this one.
    pub(crate) fn has_others_than(&self, process: Pid) -> io::Result<bool> {
        // The sandbox's own /proc lists only its processes.
        let own = self.sandbox().outside(Path::new("/proc"));
        let known = [Some(1), inner_number(process)];
        for entry in std::fs::read_dir(own)? {
            let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
            if number.is_some() && !known.contains(&number) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the number of processes and threads that `RLIMIT_NPROC` counts: those
    /// inside, including ended ones that were not reaped, and attendants outside that
    /// belong to its user namespace.
    pub(crate) fn tasks(&self) -> u64 {
        let sandbox = self.sandbox();
        let own = sandbox.outside(Path::new("/proc"));
        let threads = |stat: Option<Stat>| stat.map_or(1, |stat| stat.threads.max(1));
        let inside = std::fs::read_dir(own).into_iter().flatten().filter_map(|entry| {
            let path = entry.ok()?.path();
            let _: u32 = path.file_name()?.to_str()?.parse().ok()?;
            let text = std::fs::read_to_string(path.join("stat")).ok();
            Some(threads(text.and_then(|text| Stat::parse(&text))))
        });
        let users =
            |pid: Pid| std::fs::read_link(format!("/proc/{}/ns/user", pid.as_raw_nonzero())).ok();
        let theirs = users(sandbox.init());
        let outside = sandbox.attendants().filter(|pid| users(*pid) == theirs);
        inside.sum::<u64>() + outside.map(|pid| threads(processes::stat(pid))).sum::<u64>()
    }

    /// Takes the orphaned processes that have ended, of those returned by `process`.
    pub(crate) fn take_ends(&self) -> Vec<(Pid, i32)> {
        let mut known = self.known.borrow_mut();
        let ends = self.sandbox().take_ends().into_iter();
        ends.filter_map(|End { pid, code }| Some((known.remove(&pid)?, code))).collect()
    }
}

/// Returns the device and inode of a directory.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::lstat(path).ok()?;
    Some((found.st_dev, found.st_ino))
}

/// Creates an empty private directory, without what an earlier keeper has left there.
fn make_empty(path: PathBuf) -> io::Result<PathBuf> {
    match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    rustix::fs::mkdir(&path, rustix::fs::Mode::RWXU)?;
    Ok(path)
}

/// Returns the directory of a session's layer: a fork may use that of its original.
fn layer_of(directory: &Path) -> io::Result<PathBuf> {
    let path = directory.join(LAYER);
    match std::fs::canonicalize(&path) {
        Ok(layer) => return Ok(layer),
        // The original is gone, and its files with it.
        Err(_) if path.is_symlink() => std::fs::remove_file(&path)?,
        Err(_) => {}
    }
    std::fs::create_dir_all(&path)?;
    std::fs::canonicalize(&path)
}

impl Drop for Confined {
    fn drop(&mut self) {
        self.sandbox.borrow().kill();
    }
}

/// Returns the pid namespace in which a process has its innermost pid.
fn namespace_of(pid: Pid) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{}/ns/pid", pid.as_raw_nonzero())).ok()
}

/// Returns the pid of a process in its innermost namespace.
fn inner_number(pid: Pid) -> Option<i32> {
    Process::new(pid).namespace_numbers()?.last().copied()
}
