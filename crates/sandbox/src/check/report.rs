//! Finds out by trying what this machine can enforce: builds sandboxes and removes them,
//! and decides limits as for a session.

use super::{Missing, network_missing};
use crate::apply::Sandbox;
use crate::confine::{landlock_version, seccomp_is_there};
use crate::limits::{LimitPlan, LimitSupport};
use crate::plan::host::{Host, Wanted};
use crate::plan::{Place, plan};
use crate::policy::{DEFAULT_PRESET, Limits, PRESETS, preset};
use rustix::process::{Pid, WaitOptions, waitpid};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether a bare `--sandbox` works.
    pub ok: bool,
    pub default_preset: &'static str,
    pub presets: Vec<Preset>,
    pub findings: Vec<Finding>,
}

/// Whether a sandbox of this preset could be built.
#[derive(Debug, Serialize)]
pub struct Preset {
    pub preset: &'static str,
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Finding {
    pub what: &'static str,
    pub status: Status,
    /// What enforces it, or what prevents it.
    pub by: String,
    /// What an administrator would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Enforced,
    /// It is enforced, though not as well as possible.
    Weaker,
    Missing,
}

impl Status {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Weaker => "weaker",
            Self::Missing => "missing",
        }
    }
}

impl Finding {
    fn enforced(what: &'static str, by: impl Into<String>) -> Self {
        Self { what, status: Status::Enforced, by: by.into(), remedy: None }
    }

    fn missing(what: &'static str, missing: Missing) -> Self {
        let Missing { what: by, remedy } = missing;
        Self { what, status: Status::Missing, by, remedy: Some(remedy) }
    }

    fn of(what: &'static str, by: &str, missing: Option<Missing>) -> Self {
        match missing {
            None => Self::enforced(what, by),
            Some(missing) => Self::missing(what, missing),
        }
    }
}

/// Tries everything. `place` is an empty directory of the caller's, on the file system of
/// the sessions. The caller must have a single thread.
///
/// # Errors
/// When nothing can be made there.
pub fn report(place: &Path) -> std::io::Result<Report> {
    let host = look(place);
    let mut presets = Vec::new();
    for (name, _) in PRESETS {
        let why = try_preset(name, &host, place)?.err();
        presets.push(Preset { preset: name, ok: why.is_none(), why });
    }
    let why = |name: &str| {
        let tried = presets.iter().find(|tried| tried.preset == name);
        tried.and_then(|tried| tried.why.clone())
    };
    let namespaces = why("read-only");
    // A problem of all of them is reported once.
    let layer = why("full-access").filter(|_| namespaces.is_none());
    let mut findings = vec![
        told("namespaces", "user, mount, pid, ipc, uts, cgroup, network", namespaces),
        told("layer (--files overlay)", "overlayfs in a user namespace", layer),
        Finding::of(
            "rules for single paths",
            "a file system of ours on /dev/fuse",
            super::guard_missing(),
        ),
        Finding::of(
            "kernels closed to programs",
            "ptrace of kernels by their keeper alone",
            host.tracing_missing.clone(),
        ),
        users(&host),
        system_calls(),
        second_wall(),
    ];
    findings.extend(limits(&host.limit_support));
    let network = "none: a network of its own; hosts: a proxy of ours outside";
    findings.push(Finding::enforced("network", network));
    let full = "the host's, without its abstract sockets";
    findings.push(Finding::of("network: full", full, network_missing(host.landlock)));
    let ok = presets.iter().any(|tried| tried.preset == DEFAULT_PRESET && tried.ok);
    Ok(Report { ok, default_preset: DEFAULT_PRESET, presets, findings })
}

/// Returns a finding for a failure whose message includes its remedy.
fn told(what: &'static str, by: &str, why: Option<String>) -> Finding {
    match why {
        None => Finding::enforced(what, by),
        Some(why) => Finding { what, status: Status::Missing, by: why, remedy: None },
    }
}

fn look(place: &Path) -> Host {
    let search = std::ffi::OsStr::new("/usr/local/bin:/usr/bin:/bin");
    let wanted = Wanted {
        search,
        program: "sh",
        home: None,
        rustup: None,
        workspace: place,
        hidden: &[],
        rootfs: None,
    };
    Host::look(wanted)
}

/// Builds a sandbox with this preset, and removes it.
fn try_preset(name: &str, host: &Host, place: &Path) -> std::io::Result<Result<(), String>> {
    let below = |what: &str| -> std::io::Result<PathBuf> {
        let path = place.join(name).join(what);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    };
    let place = Place {
        group: format!("check-{}", std::process::id()),
        workspace: below("workspace")?,
        layer: below("layer")?,
        scratch: below("scratch")?,
        given: below("given")?,
        hidden: Vec::new(),
    };
    let build = || -> Result<(), String> {
        let policy = preset(name).map_err(|error| error.to_string())?;
        let plan = plan(&policy, host, &place).map_err(|refusal| refusal.to_string())?;
        let sandbox = Sandbox::build(&plan).map_err(|error| error.to_string())?;
        sandbox.kill();
        // The guard ends with the file system that it serves.
        std::iter::once(sandbox.init()).chain(sandbox.attendants()).for_each(reap);
        Ok(())
    };
    Ok(build())
}

fn reap(pid: Pid) {
    let is_interrupted =
        || matches!(waitpid(Some(pid), WaitOptions::empty()), Err(rustix::io::Errno::INTR));
    while is_interrupted() {}
}

/// Tries it: a user with a range may not be allowed to use it here.
fn users(host: &Host) -> Finding {
    let what = "packages with --root";
    match (&host.range, &host.range_missing) {
        (Some(_), _) => match sessile_subids::Owner::try_it() {
            Ok(()) => Finding::enforced(what, "a range of user ids"),
            Err(error) => Finding {
                what,
                status: Status::Missing,
                by: format!("a range of user ids is there, and cannot be used: {error}"),
                remedy: None,
            },
        },
        (None, Some(missing)) => Finding::missing(what, missing.clone()),
        (None, None) => Finding::enforced(what, "one user"),
    }
}

fn system_calls() -> Finding {
    let missing = (!seccomp_is_there()).then(|| Missing {
        what: "the kernel has no seccomp filters".to_owned(),
        remedy: "use a kernel with CONFIG_SECCOMP_FILTER".to_owned(),
    });
    Finding::of("filter of system calls", "seccomp", missing)
}

/// Reports Landlock. Without it, sandboxes work, with one wall less.
fn second_wall() -> Finding {
    let what = "second wall";
    match landlock_version() {
        0 => Finding {
            what,
            status: Status::Weaker,
            by: "no Landlock: mounts are the only wall".to_owned(),
            remedy: Some(
                "a kernel of 5.13 or later, with `landlock` in its parameter `lsm=`".to_owned(),
            ),
        },
        version => Finding::enforced(what, format!("Landlock, version {version}")),
    }
}

/// Each limit by itself.
fn limits(support: &LimitSupport) -> Vec<Finding> {
    let none = Limits::default();
    let one = |what: &'static str, limits: Limits| match LimitPlan::new(&limits, support, "check") {
        Err(missing) => Finding::missing(what, missing),
        Ok(held) => {
            let by = match what {
                MEMORY => held.memory.map(|held| held.by),
                CPUS => held.cpus.map(|held| held.by),
                PIDS => held.pids.map(|held| held.by),
                _ => held.open_files.map(|held| held.by),
            };
            let by = by.map_or_else(String::new, |by| by.as_str().to_owned());
            match held.notes.first() {
                None => Finding::enforced(what, by),
                Some(_) => Finding {
                    what,
                    status: Status::Weaker,
                    by: format!("{by}, for each program by itself"),
                    remedy: Some(support.groups_remedy.clone()),
                },
            }
        }
    };
    let layer = super::guard_missing().map(|missing| Missing {
        what: missing.what.replacen(super::GUARDED, "a limit on the layer needs", 1),
        remedy: missing.remedy,
    });
    vec![
        one(MEMORY, Limits { memory_bytes: Some(1 << 30), ..none.clone() }),
        one(CPUS, Limits { cpus: Some(1.0), ..none.clone() }),
        one(PIDS, Limits { pids: Some(100), ..none.clone() }),
        one(FILES, Limits { open_files: Some(100), ..none }),
        Finding::of("limit: layer", "what our file system counts, and tmpfs", layer),
    ]
}

const MEMORY: &str = "limit: memory";
const CPUS: &str = "limit: CPUs";
const PIDS: &str = "limit: processes";
const FILES: &str = "limit: open files";
