//! Which limit is enforced by what. Pure.

use super::group::{GroupPlan, PartPlan, Setting};
use super::support::{Hierarchy, LimitSupport, Version};
use super::{Mechanism, size};
use crate::check::Missing;
use crate::policy::Limits;

/// Default limit for processes and threads of a sandbox, where the system enforces it
/// without further cost: a build with hundreds of jobs has room, and a program that forks
/// without end does not take down the machine.
pub const DEFAULT_PROCESSES: u64 = 4096;

/// How the limits of a sandbox are enforced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitPlan {
    pub memory: Option<EnforcedLimit<u64>>,
    pub cpus: Option<EnforcedLimit<f64>>,
    pub pids: Option<EnforcedLimit<u64>>,
    pub open_files: Option<EnforcedLimit<u64>>,
    /// The layer and the private directories together.
    pub layer: Option<EnforcedLimit<u64>>,
    /// The control group to be made.
    pub group: Option<GroupPlan>,
    /// Size of all private directories together.
    pub private_bytes: u64,
    /// Limit for pids within the sandbox, if there is one.
    pub numbers: Option<u64>,
    /// What is weaker than requested.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnforcedLimit<T> {
    pub limit: T,
    pub by: Mechanism,
}

impl LimitPlan {
    /// Decides what enforces which limit. `name` is that of the control group.
    ///
    /// # Errors
    /// What is missing for a limit that nothing here can hold.
    pub fn new(limits: &Limits, support: &LimitSupport, name: &str) -> Result<Self, Missing> {
        let mut plan = Self::default();
        let mut parts = Parts::default();
        if let Some(limit) = limits.memory_bytes {
            let by = match &support.memory {
                Some(hierarchy) => parts.add(hierarchy, "memory", memory(hierarchy.version, limit)),
                None => {
                    plan.notes.push(weaker_memory(limit, support));
                    Mechanism::Rlimit
                }
            };
            plan.memory = Some(EnforcedLimit { limit, by });
        }
        if let Some(limit) = limits.cpus {
            let hierarchy =
                support.cpu.as_ref().ok_or_else(|| no_groups("a limit on CPUs", support))?;
            let by = parts.add(hierarchy, "cpu", cpus(hierarchy.version, limit));
            plan.cpus = Some(EnforcedLimit { limit, by });
        }
        plan.pids = processes(limits.pids, support, &mut parts)?;
        // There is a group anyway.
        if let (false, Some(hierarchy)) = (parts.0.is_empty(), &support.cpu) {
            parts.add(hierarchy, "cpu", Vec::new());
            parts.part(hierarchy).outer = weight(hierarchy.version);
        }
        if plan.pids.is_none() {
            plan.numbers = Some(DEFAULT_PROCESSES);
        }
        let by = Mechanism::Rlimit;
        plan.open_files = limits.open_files.map(|limit| EnforcedLimit { limit, by });
        let by = Mechanism::FileSystem;
        plan.layer = limits.layer_bytes.map(|limit| EnforcedLimit { limit, by });
        // They are in memory, and what fills that up is no program that could be
        // killed for it.
        let memory = limits.memory_bytes.map_or(support.total_memory / 4, |bytes| bytes / 2);
        plan.private_bytes = limits.layer_bytes.map_or(memory, |layer| layer.min(memory));
        plan.group =
            (!parts.0.is_empty()).then(|| GroupPlan { name: name.to_owned(), parts: parts.0 });
        Ok(plan)
    }

    /// What each process of the sandbox is limited to by itself, as the system
    /// numbers it.
    pub(crate) fn rlimits(&self) -> Vec<(u32, u64)> {
        let of = |resource: u32, held: Option<EnforcedLimit<u64>>| match held?.by {
            Mechanism::Rlimit | Mechanism::UserRlimit => Some((resource, held?.limit)),
            Mechanism::Groups(_) | Mechanism::FileSystem => None,
        };
        [
            of(libc::RLIMIT_DATA, self.memory),
            of(libc::RLIMIT_NPROC, self.pids),
            of(libc::RLIMIT_NOFILE, self.open_files),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn processes(
    asked: Option<u64>,
    support: &LimitSupport,
    parts: &mut Parts,
) -> Result<Option<EnforcedLimit<u64>>, Missing> {
    let limit = asked.unwrap_or(DEFAULT_PROCESSES);
    let setting = || vec![Setting::must("pids.max", limit.to_string())];
    match (&support.pids, asked) {
        // The guard would be counted as well, were it not outside.
        (Some(hierarchy), Some(_)) => {
            Ok(Some(EnforcedLimit { limit, by: parts.add(hierarchy, "pids", setting()) }))
        }
        // There is a group anyway.
        (Some(hierarchy), None) if !parts.0.is_empty() => {
            Ok(Some(EnforcedLimit { limit, by: parts.add(hierarchy, "pids", setting()) }))
        }
        (None | Some(_), _) if support.counts_processes => {
            Ok(Some(EnforcedLimit { limit, by: Mechanism::UserRlimit }))
        }
        (None, Some(_)) => Err(no_groups("a limit on processes", support)),
        (None | Some(_), None) => Ok(None),
    }
}

/// The parts of a group, one for each hierarchy.
#[derive(Default)]
struct Parts(Vec<PartPlan>);

impl Parts {
    fn add(
        &mut self,
        hierarchy: &Hierarchy,
        controller: &'static str,
        settings: Vec<Setting>,
    ) -> Mechanism {
        let part = self.part(hierarchy);
        if !part.controllers.contains(&controller) {
            part.controllers.push(controller);
        }
        part.settings.extend(settings);
        Mechanism::Groups(hierarchy.version)
    }

    fn part(&mut self, hierarchy: &Hierarchy) -> &mut PartPlan {
        let known = self.0.iter().position(|part| part.hierarchy == *hierarchy);
        let n = known.unwrap_or_else(|| {
            self.0.push(PartPlan {
                hierarchy: hierarchy.clone(),
                controllers: Vec::new(),
                settings: Vec::new(),
                outer: Vec::new(),
            });
            self.0.len() - 1
        });
        &mut self.0[n]
    }
}

/// Returns the settings for memory. Swapped memory counts, too: a limit is a limit.
fn memory(version: Version, bytes: u64) -> Vec<Setting> {
    match version {
        Version::One => vec![
            Setting::must("memory.limit_in_bytes", bytes.to_string()),
            Setting::may("memory.memsw.limit_in_bytes", bytes.to_string()),
        ],
        Version::Two => vec![
            Setting::must("memory.max", bytes.to_string()),
            Setting::may("memory.swap.max", "0".to_owned()),
        ],
    }
}

/// Returns the settings for CPUs: a quota for each tenth of a second.
fn cpus(version: Version, cpus: f64) -> Vec<Setting> {
    const PERIOD: u64 = 100_000;
    let quota = ((cpus * PERIOD as f64) as u64).max(1000);
    match version {
        Version::One => vec![
            Setting::must("cpu.cfs_period_us", PERIOD.to_string()),
            Setting::must("cpu.cfs_quota_us", quota.to_string()),
        ],
        Version::Two => vec![Setting::must("cpu.max", format!("{quota} {PERIOD}"))],
    }
}

/// Returns a weight of an eighth of other programs' that compete for the same core.
/// Measured with twenty harmful sandboxes at once on two cores (`cargo xtask bench bombs`):
/// a run of 2 ms beside them takes 17 ms without this (p99 52 ms), and 6 ms with it (p99
/// 22 ms). Without competition it changes nothing.
fn weight(version: Version) -> Vec<Setting> {
    match version {
        Version::One => vec![Setting::may("cpu.shares", "128".to_owned())],
        Version::Two => vec![Setting::may("cpu.weight", "12".to_owned())],
    }
}

fn weaker_memory(bytes: u64, support: &LimitSupport) -> String {
    format!(
        "the memory limit of {} holds for each program by itself, not for all together: there are \
         no control groups for this user; an administrator can give them: `{}`",
        size(bytes),
        support.groups_remedy
    )
}

fn no_groups(what: &str, support: &LimitSupport) -> Missing {
    Missing {
        what: format!("{what} needs control groups, and this user may not make any"),
        remedy: format!("an administrator can allow it: `{}`", support.groups_remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn at(version: Version, path: &str) -> Option<Hierarchy> {
        Some(Hierarchy { version, directory: PathBuf::from(path) })
    }

    fn all() -> Limits {
        Limits {
            memory_bytes: Some(1 << 30),
            cpus: Some(1.5),
            pids: Some(200),
            open_files: Some(64),
            layer_bytes: Some(1 << 28),
        }
    }

    #[test]
    fn groups_hold_memory_cpus_and_processes() {
        let one = |path| at(Version::One, path);
        let support = LimitSupport {
            memory: one("/m"),
            cpu: one("/c"),
            pids: one("/p"),
            ..LimitSupport::default()
        };
        let plan = LimitPlan::new(&all(), &support, "x").unwrap();
        let group = plan.group.clone().unwrap();
        let settings: Vec<String> = group
            .parts
            .iter()
            .flat_map(|part| &part.settings)
            .map(|setting| format!("{} {}", setting.file, setting.value))
            .collect();
        assert_eq!(
            settings,
            [
                "memory.limit_in_bytes 1073741824",
                "memory.memsw.limit_in_bytes 1073741824",
                "cpu.cfs_period_us 100000",
                "cpu.cfs_quota_us 150000",
                "pids.max 200",
            ]
        );
        assert_eq!(plan.rlimits(), [(libc::RLIMIT_NOFILE, 64)]);
        assert!(plan.notes.is_empty() && plan.private_bytes == 1 << 28);
    }

    #[test]
    fn a_sandbox_with_a_group_yields_its_core_to_others() {
        let one = |path| at(Version::One, path);
        let support = LimitSupport { memory: one("/m"), cpu: one("/c"), ..LimitSupport::default() };
        let limits = Limits { memory_bytes: Some(1 << 30), ..Limits::default() };
        let group = LimitPlan::new(&limits, &support, "x").unwrap().group.unwrap();
        // In the outer group: the inner one only competes with others of its session.
        let is_weight = |setting: &Setting| setting.file == "cpu.shares";
        assert!(group.parts.iter().flat_map(|part| &part.outer).any(is_weight));
        assert!(!group.parts.iter().flat_map(|part| &part.settings).any(is_weight));
        assert_eq!(LimitPlan::new(&Limits::default(), &support, "x").unwrap().group, None);
    }

    #[test]
    fn version_two_has_one_group_for_all_of_them() {
        let two = || at(Version::Two, "/g");
        let support =
            LimitSupport { memory: two(), cpu: two(), pids: two(), ..LimitSupport::default() };
        let group = LimitPlan::new(&all(), &support, "x").unwrap().group.unwrap();
        let [part] = group.parts.as_slice() else { panic!("{group:?}") };
        assert_eq!(part.controllers, ["memory", "cpu", "pids"]);
        assert!(part.settings.iter().any(|s| s.file == "cpu.max" && s.value == "150000 100000"));
    }

    #[test]
    fn an_ordinary_user_without_groups_has_what_processes_are_limited_by() {
        let support = LimitSupport {
            counts_processes: true,
            groups_remedy: "give them".to_owned(),
            ..LimitSupport::default()
        };
        let limits = Limits { cpus: None, ..all() };
        let held = LimitPlan::new(&limits, &support, "x").unwrap();
        assert_eq!(
            held.rlimits(),
            [(libc::RLIMIT_DATA, 1 << 30), (libc::RLIMIT_NPROC, 200), (libc::RLIMIT_NOFILE, 64)]
        );
        assert_eq!(held.group, None);
        let [note] = held.notes.as_slice() else { panic!("{:?}", held.notes) };
        assert!(note.contains("1 GiB holds for each program by itself"), "{note}");
        let refused = LimitPlan::new(&all(), &support, "x").unwrap_err().to_string();
        assert!(refused.contains("CPUs") && refused.contains("`give them`"), "{refused}");
    }

    #[test]
    fn nothing_said_takes_no_group_and_leaves_room_for_a_build() {
        let memory = at(Version::One, "/m");
        let support = LimitSupport {
            pids: memory.clone(),
            memory,
            total_memory: 1 << 34,
            ..LimitSupport::default()
        };
        let held = LimitPlan::new(&Limits::default(), &support, "x").unwrap();
        assert_eq!((held.group, held.pids), (None, None));
        assert_eq!((held.numbers, held.private_bytes), (Some(DEFAULT_PROCESSES), 1 << 32));
        let support = LimitSupport { counts_processes: true, ..LimitSupport::default() };
        let held = LimitPlan::new(&Limits::default(), &support, "x").unwrap();
        assert_eq!(held.rlimits(), [(libc::RLIMIT_NPROC, DEFAULT_PROCESSES)]);
    }
}
