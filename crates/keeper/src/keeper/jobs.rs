//! Background jobs that runs have left: finds, describes and signals them.
//!
//! A job is a process below this keeper with all its descendants, unless it is a kernel,
//! a fork of ours that writes down a kernel's state, or a process that a current run
//! waits for. Jobs are searched for only on request, never on the path of a run.

use super::live::{Kernels, Live};
use super::output::Output;
use crate::origins::{self, Origin, Span};
use crate::ports::Tables;
use crate::processes::{self, PipeId};
use crate::runs::Runs;
use rustix::process::Pid;
use sessile_proc::{Process, Stat};
use sessile_protocol::{Answer, Code, Failure, Job, JobState, JobsView, RunNo};
use sessile_store::timestamp_before;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// Bytes of a command line that are shown.
const COMMAND_SHOWN: usize = 1 << 10;

/// A process and its descendants: the root first, parents before children.
#[derive(Debug)]
pub(super) struct Tree {
    root: Pid,
    members: Vec<(Pid, Stat)>,
    origin: Origin,
}

impl Tree {
    fn stat(&self) -> Option<&Stat> {
        self.members.first().map(|(_, stat)| stat)
    }

    /// Returns the run that it comes from, if that is known.
    pub(super) fn run(&self) -> Option<RunNo> {
        self.origin.run
    }

    /// Returns the process that started it; if that has ended, another one.
    pub(super) fn parent(&self) -> Option<Pid> {
        self.stat()?.parent
    }

    /// Returns `None` if the process has ended meanwhile.
    pub(super) fn command_line(&self) -> Option<String> {
        command_line(self.root)
    }

    /// Returns `None` if the process has ended meanwhile.
    fn describe(&self, kernels: &Kernels, tables: &mut Tables) -> Option<Job> {
        let stat = self.stat()?;
        let ticks = sessile_proc::ticks_since_boot().saturating_sub(stat.started);
        let age = Duration::from_millis(10 * ticks);
        let sum = |of: fn(&Stat) -> u64| self.members.iter().map(|(_, stat)| of(stat)).sum::<u64>();
        Some(Job {
            pid: self.root.as_raw_nonzero().get().cast_unsigned(),
            command: self.command(kernels)?,
            run: self.origin.run,
            language: self.origin.language,
            state: if stat.is_stopped() { JobState::Stopped } else { JobState::Running },
            started_at: timestamp_before(age),
            age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            cpu_ms: 10 * sum(|stat| stat.cpu + stat.cpu_of_children),
            memory: rustix::param::page_size() as u64 * sum(|stat| stat.resident),
            processes: self.members.len() as u64,
            ports: tables.ports(self.members.iter().map(|(pid, _)| *pid)),
        })
    }

    /// Returns a job's command line. A fork of a kernel has only the kernel's command
    /// line, which says nothing; the command line of its own child says more.
    fn command(&self, kernels: &Kernels) -> Option<String> {
        let line = command_line(self.root)?;
        let kernel = kernels
            .live
            .iter()
            .find(|(_, live)| command_line(live.pid).is_some_and(|kernels| kernels == line));
        let Some((language, _)) = kernel else {
            return Some(line);
        };
        let work = self
            .members
            .iter()
            .skip(1)
            .find_map(|(pid, _)| command_line(*pid).filter(|work| *work != line));
        let work = work.map(|work| format!(" {work}")).unwrap_or_default();
        Some(format!("(fork of {language}){work}"))
    }
}

/// What a search for jobs looks at.
pub(super) struct Search<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) runs: &'a Runs,
    pub(super) output: &'a Output,
    pub(super) scratch: &'a Path,
    /// The session's children. A process that loses its parent becomes a child of this
    /// keeper.
    pub(super) children: Vec<Pid>,
    /// A run that its kernel has reported as ended: it waits for nothing any more.
    pub(super) ended: Option<RunNo>,
    /// Whether a kernel has been asked for a copy of itself that has not yet reported.
    pub(super) are_copies_pending: bool,
}

impl Search<'_> {
    /// Finds all jobs, except processes that work for the session itself.
    pub(super) fn find(&self, works_for_us: impl Fn(Pid) -> bool) -> Vec<Tree> {
        let is_going = |live: &&Live| live.current.is_some() && live.current != self.ended;
        let going = self.kernels.live.values().filter(is_going);
        let foreground: HashSet<Pid> = going.flat_map(Live::awaited).collect();
        let spans = self.going_spans();
        let of_kernel = |live: &Live| {
            let left = processes::children(live.pid).into_iter();
            left.filter(|pid| !self.may_be_capture(live, *pid)).collect::<Vec<Pid>>()
        };
        let mut roots: HashSet<Pid> = self.children.iter().copied().collect();
        // Processes started by a kernel that is still starting are part of its start.
        let up = self.kernels.live.values().filter(|live| live.has_come_up);
        roots.extend(up.flat_map(of_kernel));
        roots
            .into_iter()
            .filter(|pid| !self.kernels.has_pid(*pid) && !foreground.contains(pid))
            .filter(|pid| !self.is_capture(*pid) && !works_for_us(*pid))
            .filter(|pid| !self.may_be_copy(*pid))
            .filter_map(|root| self.tree(root, &spans))
            .collect()
    }

    /// A killed process ends only when it gets the processor. Until then it may have
    /// children that live.
    fn tree(&self, root: Pid, going: &[Span]) -> Option<Tree> {
        let living = |pid: Pid| {
            let stat = processes::stat(pid).filter(|stat| !stat.has_ended())?;
            (!is_killed(pid)).then_some((pid, stat))
        };
        let stat = processes::stat(root)?;
        let all = std::iter::once(root).chain(processes::descendants(root));
        let members: Vec<(Pid, Stat)> = all.filter_map(living).collect();
        let (first, _) = *members.first()?;
        Some(Tree { root: first, members, origin: self.origin(root, &stat, going) })
    }

    fn origin(&self, pid: Pid, stat: &Stat, going: &[Span]) -> Origin {
        match self.run_of_pipes(pid) {
            Some(run) => {
                let language = self.runs.get(&run).map(|run| run.language);
                Origin { run: Some(run), language }
            }
            None => self.kernels.origins.of(pid, stat, going),
        }
    }

    /// Returns the run that a process below this keeper comes from. The process may be a
    /// kernel.
    pub(super) fn origin_of(&self, pid: Pid) -> Origin {
        let kernel = self.kernels.live.iter().find(|(_, live)| live.pid == pid);
        if let Some((language, live)) = kernel {
            return Origin { run: live.current, language: Some(*language) };
        }
        let stat = processes::stat(pid);
        stat.map(|stat| self.origin(pid, &stat, &self.going_spans())).unwrap_or_default()
    }

    /// Returns the spans of the runs that have not ended.
    fn going_spans(&self) -> Vec<Span> {
        let going = self.kernels.live.iter().filter_map(|(language, live)| {
            let run = live.current?;
            Some(Span { ended: u64::MAX, ..live.span(run, *language) })
        });
        going.collect()
    }

    /// Returns the run whose output pipe a process has open.
    fn run_of_pipes(&self, pid: Pid) -> Option<RunNo> {
        let of_going = self
            .kernels
            .live
            .values()
            .filter_map(|live| Some((live.current?, [live.stdout.id(), live.stderr.id()])));
        let of_ended = self.output.background_pipes().map(|pipe| (pipe.run, [pipe.stream.id(); 2]));
        let pipes: Vec<(RunNo, [PipeId; 2])> = of_going.chain(of_ended).collect();
        [1, 2].into_iter().find_map(|fd| {
            let id = PipeId::of(&Process::new(pid).descriptor(fd).metadata()?);
            pipes.iter().find(|(_, ids)| ids.contains(&id)).map(|(run, _)| *run)
        })
    }

    /// Whether a child of a kernel may be a fork that is about to write down the kernel's
    /// state, but cannot be recognized yet.
    fn may_be_capture(&self, live: &Live, pid: Pid) -> bool {
        let is_newer = |than: Pid| origins::is_newer(pid, than) != Some(false);
        live.kernel.is_capturing()
            && live.capture_floor.is_none_or(is_newer)
            && command_line(pid) == command_line(live.pid)
            && self.run_of_pipes(pid).is_none()
    }

    /// Whether a process may be a copy of a kernel that the kernel has not reported yet.
    fn may_be_copy(&self, pid: Pid) -> bool {
        let is_fork_of = |live: &Live| command_line(pid) == command_line(live.pid);
        self.are_copies_pending
            && self.kernels.live.values().any(is_fork_of)
            && self.run_of_pipes(pid).is_none()
    }

    /// Whether a process is a fork of a kernel that writes down its state. Such a fork
    /// has one of our files at descriptor 9, and at first the kernel's order pipe as its
    /// stdin, which no process of a run has.
    fn is_capture(&self, pid: Pid) -> bool {
        let target = |fd: u32| {
            let target = Process::new(pid).descriptor(fd).link()?;
            Some(target.strip_prefix(self.scratch).ok()?.to_owned())
        };
        // The second is what the system calls one whose directory was removed.
        let is_orders = |path: &Path| path.ends_with("t") || path.ends_with("t (deleted)");
        target(9).is_some() || target(0).is_some_and(|path| is_orders(&path))
    }
}

/// Whether a process has been killed but still exists: on a busy machine, a kernel that
/// was replaced may remain for a while.
fn is_killed(pid: Pid) -> bool {
    Process::new(pid).signals().is_some_and(|signals| signals.pending.has(libc::SIGKILL))
}

/// Returns the jobs as they are shown, the oldest first.
pub(super) fn view(trees: &[Tree], kernels: &Kernels) -> JobsView {
    let mut tables = Tables::default();
    let mut jobs: Vec<(u64, Job)> = trees
        .iter()
        .filter_map(|tree| Some((tree.stat()?.started, tree.describe(kernels, &mut tables)?)))
        .collect();
    jobs.sort_by_key(|(started, job)| (*started, job.pid));
    JobsView { jobs: jobs.into_iter().map(|(_, job)| job).collect() }
}

/// Signals a job or a part of one: a process and its descendants.
pub(super) fn signal(trees: &[Tree], pid: u32, signal: i32) -> Result<Answer, Failure> {
    let wanted = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let is_it = |tree: &&Tree| tree.members.iter().any(|(member, _)| Some(*member) == wanted);
    let (Some(wanted), Some(job)) = (wanted, trees.iter().find(is_it)) else {
        let message = format!("process {pid} is not a job of this session");
        return Err(Failure::new(Code::JobNotFound, message));
    };
    let targets = if wanted == job.root {
        job.members.iter().map(|(member, _)| *member).collect()
    } else {
        [vec![wanted], processes::descendants(wanted)].concat()
    };
    Ok(Answer::Signalled { processes: send(&targets, signal) })
}

/// Signals the processes that an ended run has left. Returns how many got the signal.
pub(super) fn signal_those_of(trees: &[Tree], run: RunNo, signal: i32) -> u64 {
    let left = trees.iter().filter(|tree| tree.origin.run == Some(run));
    let members = left.flat_map(|tree| tree.members.iter().map(|(member, _)| *member));
    send(&members.collect::<Vec<Pid>>(), signal)
}

/// Returns all processes, each with the origin of its tree.
pub(super) fn members(trees: &[Tree]) -> Vec<(Pid, Stat, Origin)> {
    let of_tree = |tree: &Tree| {
        let origin = tree.origin;
        tree.members.iter().map(move |(pid, stat)| (*pid, *stat, origin)).collect::<Vec<_>>()
    };
    trees.iter().flat_map(of_tree).collect()
}

/// Checks that a signal number exists.
pub(super) fn check_signal(signal: i32) -> Result<(), Failure> {
    if (1..=libc::SIGRTMAX()).contains(&signal) {
        return Ok(());
    }
    Err(Failure::new(
        Code::BadRequest,
        format!("there is no signal {signal}; use 1 to 64, or a name such as TERM"),
    ))
}

/// Sends a signal. Returns how many processes got it.
fn send(targets: &[Pid], signal: i32) -> u64 {
    let reached = targets.iter().filter(|pid| processes::signal_by_number(**pid, signal));
    reached.count() as u64
}

/// Returns `None` if the process is gone.
fn command_line(pid: Pid) -> Option<String> {
    Process::new(pid).command_line(COMMAND_SHOWN)
}
