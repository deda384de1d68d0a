//! What a sandbox looks like: decided from a policy, from what the host has, and from
//! where the session's files are. Pure: nothing is done here.
//!
//! The new root is a file system in memory that has only what is put there. A step that
//! puts something at a path makes the directories above it.

mod binds;
mod elf;
pub mod environment;
mod error;
mod etc;
mod hidden;
pub mod host;
mod installation;
mod letter_case;
mod owners;
mod programs;
mod root;
mod sockets;

use crate::check::{self, GUARDED, Missing};
use crate::limits::LimitPlan;
use crate::mover;
use crate::policy::{FileMode, HostRule, Level, Network, Policy};
use crate::rules::{Need, Rules};
pub use error::Refusal;
use host::{Host, Top};
use letter_case::LetterCase;
pub use owners::Owners;
pub use root::{Ids, Mapper, Others};
use root::{of_installation, of_system};
use std::path::{Path, PathBuf};

/// The path of the workspace inside, where runs begin.
pub const WORKSPACE: &str = "/workspace";
/// The user's home inside.
pub const HOME: &str = "/home/agent";
/// The user inside.
pub const AGENT: u32 = 1000;
/// Sessile's own directory inside.
const OWN: &str = "/.sessile";
/// Where kernels write their state, inside: in memory, with the session's other private
/// directories. Nothing of the host is there.
pub const DUMPS: &str = "/.sessile/dumps";
/// Where kernels find the states that their keeper gives them, read-only.
pub const GIVEN: &str = "/.sessile/given";
/// Where the layers on the system's directories are kept, for root inside.
pub const SYSTEM: &str = "system";
/// The part of a layer that has what was written.
pub const UPPER: &str = "upper";
/// The host name inside.
pub const HOSTNAME: &str = "sessile";

/// Size limit of a file that is copied into the new root instead of being mounted.
const SMALL: u64 = 64 << 10;

/// The paths that a sandbox is built around.
#[derive(Clone, Debug)]
pub struct Place {
    /// The name of the session's control group.
    pub group: String,
    /// The directory that is the workspace.
    pub workspace: PathBuf,
    /// Where the session keeps what is written.
    pub layer: PathBuf,
    /// The keeper's directory for the exchange with its kernels.
    pub scratch: PathBuf,
    /// What the keeper gives kernels to read; read-only inside.
    pub given: PathBuf,
    /// What must not be visible, even below something that is shown: the directories of
    /// sessions, and the user's state, which has tokens in it.
    pub hidden: Vec<PathBuf>,
}

impl Place {
    /// Whether something below a directory must not be visible.
    fn hides_below(&self, shown: &Path) -> bool {
        self.hidden.iter().any(|hidden| hidden.starts_with(shown))
    }
}

/// Everything that is to be done, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub user: User,
    pub ids: Ids,
    /// The user and the group of the workspace, if mounts show its files with other owners.
    pub owner: Option<(u32, u32)>,
    /// Whose files of the workspace are shown as the user's, or could be.
    pub claim: Claim,
    pub net: Net,
    pub steps: Vec<Step>,
    /// Paths inside that may be written below, for the second wall.
    pub writable: Vec<PathBuf>,
    /// A directory outside that the new root is mounted on, visible only inside.
    pub base: PathBuf,
    /// Shows a workspace whose paths have different levels.
    pub guard: Option<Guard>,
    /// What it may use of the machine, and what holds it to that.
    pub limits: LimitPlan,
    /// Variables by which programs inside find files that are not where they look first.
    pub locations: Vec<(&'static str, PathBuf)>,
    /// The system's file of trusted certificates, by its path inside.
    pub certificates: Option<&'static str>,
}

/// Our file system that shows a directory according to rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The rules, including what is never shown.
    pub policy: Policy,
    /// No other process changes the directory.
    pub is_alone: bool,
    /// The limit for writes to the layer, if there is one.
    pub account: Option<Account>,
}

/// Whose files are shown as those of the user inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// Those of the caller.
    #[default]
    Own,
    /// Everybody's: the caller is root.
    All,
    /// Those of the caller, and of groups that the caller is in.
    Groups,
}

/// A limit that the guard enforces: the layer and the private directories together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub limit: u64,
    /// For the private directories alone.
    pub most_private: u64,
    /// The upper directory of the layer, on the host.
    pub upper: PathBuf,
}

/// The user of the session's programs inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Agent,
    /// Of its own user namespace.
    Root,
}

impl User {
    #[must_use]
    pub fn id(self) -> u32 {
        match self {
            Self::Agent => AGENT,
            Self::Root => 0,
        }
    }
}

/// The network of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Net {
    /// Its own, with a loopback only.
    Own,
    /// Its own, and a proxy that leads to these hosts.
    Proxied(Vec<HostRule>),
    /// The host's.
    Hosts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Directory {
        at: PathBuf,
        mode: u32,
    },
    Link {
        at: PathBuf,
        to: PathBuf,
    },
    /// A file with this text.
    Text {
        at: PathBuf,
        text: Vec<u8>,
    },
    /// A directory or file of the host.
    Tree {
        host: PathBuf,
        at: PathBuf,
        access: Access,
    },
    /// A device of the host.
    Device {
        host: PathBuf,
        at: PathBuf,
    },
    /// An empty directory in memory. All of them share one size limit.
    Memory {
        at: PathBuf,
        mode: u32,
    },
    /// A directory of the session's own, initially empty, that outlives the sandbox.
    Persistent {
        directory: PathBuf,
        at: PathBuf,
    },
    /// A directory of the host with a layer on top that takes the changes.
    Layered {
        host: PathBuf,
        upper: PathBuf,
        work: PathBuf,
        at: PathBuf,
    },
    /// One of these, shown by the guard, and not reachable otherwise.
    Guarded {
        source: Box<Step>,
        at: PathBuf,
    },
    /// The processes of the sandbox, and the permitted information of the Linux kernel.
    Processes {
        at: PathBuf,
    },
    /// Terminals of its own.
    Terminals {
        at: PathBuf,
    },
    /// An empty directory or file that covers what is there, if anything is.
    Hidden {
        at: PathBuf,
    },
}

impl Step {
    /// Returns what the guard shows, or the step itself.
    pub(crate) fn inner(&self) -> &Self {
        if let Self::Guarded { source, .. } = self { source.inner() } else { self }
    }

    /// Whether new files there are made on the host, where others may find them.
    fn writes_to_host(&self) -> bool {
        match self {
            Self::Tree { access, .. } => *access == Access::Writable,
            Self::Guarded { source, .. } => source.writes_to_host(),
            Self::Layered { .. }
            | Self::Persistent { .. }
            | Self::Directory { .. }
            | Self::Link { .. }
            | Self::Text { .. }
            // Mounted read-only, which does not prevent its use.
            | Self::Device { .. }
            | Self::Memory { .. }
            | Self::Processes { .. }
            | Self::Terminals { .. }
            | Self::Hidden { .. } => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    Writable,
}

/// Decides.
///
/// # Errors
/// With what cannot be enforced of the policy.
pub fn plan(policy: &Policy, host: &Host, place: &Place) -> Result<Plan, Refusal> {
    unsupported(policy)?;
    let need = Rules::new(policy).need();
    let limits = LimitPlan::new(&policy.limits, &host.limit_support, &place.group);
    let limits = limits.map_err(Refusal::Limit)?;
    if policy.network == Network::Full
        && let Some(missing) = check::network_missing(host.landlock)
    {
        return Err(Refusal::Network(missing));
    }
    if let Some(missing) = &host.tracing_missing {
        return Err(Refusal::Tracing(missing.clone()));
    }
    let mut plan = Plan {
        user: if policy.root { User::Root } else { User::Agent },
        ids: host.range.clone().filter(|_| policy.root).unwrap_or(Ids::One),
        owner: None,
        claim: Claim::Own,
        net: match &policy.network {
            Network::Full => Net::Hosts,
            Network::None => Net::Own,
            Network::Hosts(hosts) => Net::Proxied(hosts.clone()),
        },
        steps: Vec::new(),
        writable: Vec::new(),
        base: place.layer.clone(),
        guard: None,
        limits,
        locations: Vec::new(),
        certificates: host.certificates,
    };
    if policy.root
        && let Some(missing) = &host.range_missing
    {
        plan.limits.notes.push(one_user(missing));
    }
    plan.claim = plan.owners(host);
    plan.system(policy, host, place)?;
    plan.kept(place);
    plan.private();
    plan.devices();
    plan.etc(host, &policy.network, place);
    plan.packages(host, place);
    plan.programs(host, place);
    plan.tell_of_certificates(policy);
    plan.workspace(policy, host, place, need)?;
    for bind in &policy.binds {
        plan.bind(bind, host, place, need)?;
    }
    // Pipes can be written to even on a read-only mount.
    let scratch = place.scratch.clone();
    let access = Access::ReadOnly;
    plan.steps.push(Step::Tree { host: scratch.clone(), at: scratch.clone(), access });
    plan.writable.push(scratch);
    plan.states(place);
    Ok(plan)
}

/// Refuses what is understood but not enforced yet.
fn unsupported(policy: &Policy) -> Result<(), Refusal> {
    // The guard counts writes to the workspace, but not to the system.
    if policy.root && policy.limits.layer_bytes.is_some() {
        return Err(Refusal::Unsupported("a limit on the layer together with --root"));
    }
    Ok(())
}

impl Plan {
    /// Whether a mover renames directories for the programs, which a layer refuses. If
    /// the guard has the layer, it does so itself.
    pub(crate) fn has_mover(&self) -> bool {
        mover::can_be_had() && self.steps.iter().any(|step| matches!(step, Step::Layered { .. }))
    }

    /// Whether programs are root, and all their writes stay the session's own: in its
    /// layers, which only its user can reach, or in memory.
    pub(crate) fn is_root_in_layers(&self) -> bool {
        self.user == User::Root && !self.steps.iter().any(Step::writes_to_host)
    }

    /// Whether writes go to a layer, on the disk of the session.
    #[must_use]
    pub fn has_layer(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Layered { .. } | Step::Persistent { .. } => true,
            Step::Guarded { source, .. } => matches!(**source, Step::Layered { .. }),
            Step::Directory { .. }
            | Step::Link { .. }
            | Step::Text { .. }
            | Step::Tree { .. }
            | Step::Device { .. }
            | Step::Memory { .. }
            | Step::Processes { .. }
            | Step::Terminals { .. }
            | Step::Hidden { .. } => false,
        })
    }

    /// Adds programs and libraries. Root inside has a layer on each of its directories.
    fn system(&mut self, policy: &Policy, host: &Host, place: &Place) -> Result<(), Refusal> {
        if let Some(rootfs) = &policy.rootfs {
            let path = rootfs.clone();
            if !host.tops.iter().any(|(at, _)| at == Path::new("/usr") || at == Path::new("/bin")) {
                let reason = "there is neither /usr nor /bin in it, so it is no system tree";
                return Err(Refusal::Tree { path, reason });
            }
        }
        if self.user == User::Root && !host.is_owned {
            return Err(policy.rootfs.clone().map_or(Refusal::NotOwner, Refusal::TreeOfOther));
        }
        for (at, top) in &host.tops {
            let shown = host.of_system(at);
            let step = match (top, self.user) {
                (Top::Link(to), _) => Step::Link { at: at.clone(), to: to.clone() },
                (Top::Directory, User::Agent) => {
                    Step::Tree { host: shown.clone(), at: at.clone(), access: Access::ReadOnly }
                }
                (Top::Directory, User::Root) => {
                    self.writable.push(at.clone());
                    of_system(shown.clone(), at.clone(), place)
                }
            };
            self.steps.push(step);
            if policy.rootfs.is_some() {
                self.hide_below(&shown, at, place)?;
            }
        }
        Ok(())
    }

    /// Adds the session's private directories in memory.
    fn private(&mut self) {
        let homes: &[_] = match self.user {
            User::Agent => &[(HOME, 0o755)],
            // It may add users, whose homes are made there.
            User::Root => &[("/root", 0o700), ("/home", 0o755), (HOME, 0o755)],
        };
        for (at, mode) in [("/tmp", 0o1777)].iter().chain(homes) {
            self.steps.push(Step::Memory { at: at.into(), mode: *mode });
            self.writable.push(at.into());
        }
        for at in ["/run", "/var/lib", "/var/cache", "/mnt", "/opt", "/root", "/srv", "/sys"] {
            self.steps.push(Step::Directory { at: at.into(), mode: 0o755 });
        }
        let link = |at: &str, to: &str| Step::Link { at: at.into(), to: to.into() };
        self.steps.extend([link("/var/tmp", "../tmp"), link("/var/run", "../run")]);
        self.steps.push(Step::Processes { at: "/proc".into() });
        self.writable.push("/proc".into());
    }

    /// Adds the directories for kernels' states: out of the sandbox, and into it. Each is
    /// written to from one side only.
    fn states(&mut self, place: &Place) {
        self.steps.push(Step::Memory { at: DUMPS.into(), mode: 0o700 });
        self.writable.push(DUMPS.into());
        let (host, access) = (place.given.clone(), Access::ReadOnly);
        self.steps.push(Step::Tree { host, at: GIVEN.into(), access });
    }

    fn devices(&mut self) {
        for name in ["null", "zero", "full", "random", "urandom", "tty"] {
            let path = Path::new("/dev").join(name);
            self.steps.push(Step::Device { host: path.clone(), at: path });
        }
        self.steps.push(Step::Terminals { at: "/dev/pts".into() });
        self.steps.push(Step::Memory { at: "/dev/shm".into(), mode: 0o1777 });
        for (name, to) in [
            ("ptmx", "pts/ptmx"),
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ] {
            self.steps.push(Step::Link { at: Path::new("/dev").join(name), to: to.into() });
        }
        self.writable.push("/dev".into());
    }

    /// Adds programs outside of the system's program directories. Root inside may install
    /// packages there, too.
    fn programs(&mut self, host: &Host, place: &Place) {
        let (files, directories) = (&host.programs.files, &host.programs.directories);
        let read_only = |path: &PathBuf| Step::Tree {
            host: path.clone(),
            at: path.clone(),
            access: Access::ReadOnly,
        };
        self.steps.extend(files.iter().map(read_only));
        match self.user {
            User::Agent => self.steps.extend(directories.iter().map(read_only)),
            User::Root => {
                self.steps.extend(directories.iter().map(|path| of_installation(path, place)));
                self.writable.extend(directories.iter().cloned());
            }
        }
        self.locations.extend(host.programs.rustup.clone().map(|at| ("RUSTUP_HOME", at)));
        for (at, to) in &host.programs.links {
            self.steps.push(Step::Link { at: at.clone(), to: to.clone() });
        }
    }

    fn workspace(
        &mut self,
        policy: &Policy,
        host: &Host,
        place: &Place,
        need: Need,
    ) -> Result<(), Refusal> {
        let at = PathBuf::from(WORKSPACE);
        let shown = place.workspace.clone();
        let tree = |access| Step::Tree { host: shown.clone(), at: at.clone(), access };
        let writable = match policy.files {
            FileMode::Overlay => Step::Layered {
                host: shown.clone(),
                upper: place.layer.join(UPPER),
                work: place.layer.join("work"),
                at: at.clone(),
            },
            FileMode::Direct => tree(Access::Writable),
        };
        let account = self.limits.layer.filter(|_| policy.files == FileMode::Overlay);
        let account = account.map(|held| Account {
            limit: held.limit,
            most_private: self.limits.private_bytes,
            upper: place.layer.join(UPPER),
        });
        // The guard is what shows files of several owners as the user's.
        let is_shared = match self.claim {
            Claim::Own => false,
            Claim::All => host.owners.is_some_and(|owners| owners.are_several),
            Claim::Groups => policy.files == FileMode::Overlay,
        };
        let is_guarded = account.is_some() || (is_shared && host.guard_missing.is_none());
        match need {
            Need::Uniform(Level::Write) if !is_guarded => {
                if is_shared {
                    self.limits.notes.push(owners::note(host, self.claim));
                }
                self.steps.push(writable);
                self.writable.push(at.clone());
                match policy.files {
                    FileMode::Direct => self.cover_sockets(host, &shown, &at),
                    // Through a layer, sockets cannot be connected to.
                    FileMode::Overlay => {}
                }
            }
            Need::Uniform(Level::Read) => {
                self.steps.push(tree(Access::ReadOnly));
                self.cover_sockets(host, &shown, &at);
            }
            Need::Uniform(Level::None | Level::View | Level::Write) | Need::PerPath => {
                if (host.letter_case, need) == (LetterCase::Ignored, Need::PerPath) {
                    let reason = letter_case::NO_RULES.to_owned();
                    return Err(Refusal::Path { path: shown, reason });
                }
                if let Some(missing) = &host.guard_missing {
                    return Err(match need {
                        Need::Uniform(Level::Write) => Refusal::Limit(Missing {
                            what: missing.what.replacen(GUARDED, "a limit on the layer needs", 1),
                            remedy: missing.remedy.clone(),
                        }),
                        Need::Uniform(Level::None | Level::View | Level::Read) | Need::PerPath => {
                            Refusal::Guard(missing.clone())
                        }
                    });
                }
                self.steps.push(Step::Guarded { source: Box::new(writable), at: at.clone() });
                self.writable.push(at.clone());
                let is_alone = policy.files == FileMode::Overlay;
                let policy = hidden::also(policy, place);
                self.guard = Some(Guard { policy, is_alone, account });
            }
        }
        self.hide_below(&place.workspace, &at, place)?;
        if host.letter_case == LetterCase::Ignored && place.hides_below(&place.workspace) {
            let reason = letter_case::NOTHING_HIDDEN.to_owned();
            return Err(Refusal::Path { path: place.workspace.clone(), reason });
        }
        Ok(())
    }

    /// Covers sockets of the host's servers in a directory that is shown as it is.
    fn cover_sockets(&mut self, host: &Host, shown: &Path, at: &Path) {
        let covered = sockets::below(&host.sockets, shown, at);
        self.steps.extend(covered.map(|at| Step::Hidden { at }));
    }
}

/// Returns the size limit for what a kernel writes for its keeper, separate from the
/// private directories: a kernel that fills those can still list its state. A listing
/// takes kilobytes; one with huge variables, megabytes.
#[must_use]
pub fn slate_bytes(private_bytes: u64) -> u64 {
    (private_bytes / 16).clamp(1 << 20, 256 << 20)
}

/// Says what root inside cannot do without a range of ids.
fn one_user(missing: &Missing) -> String {
    format!(
        "root inside is the only user there, so packages with users of their own cannot be installed: {missing}"
    )
}

/// Whether a file is copied rather than mounted.
fn is_small(bytes: u64) -> bool {
    bytes <= SMALL
}

#[cfg(test)]
mod tests;
