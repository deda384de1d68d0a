//! Finds the run that a process comes from.
//!
//! No event reports the start of a process, and searching for new ones after each run
//! would cost more than the run. But the time of each run is known, and so is the start
//! time of each process, to a hundredth of a second. Within the same hundredth, the pids
//! decide, which the system assigns in order. A result is kept for as long as the process
//! lives. If more than one run is possible, none is named.

use rustix::process::Pid;
use sessile_proc::Stat;
use sessile_protocol::{Language, RunNo};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// From the beginning of a run to its end, in clock ticks after boot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) run: RunNo,
    pub(crate) language: Language,
    pub(crate) kernel: Pid,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    /// The newest process before its beginning, and at its end.
    pub(crate) floor: Option<Pid>,
    pub(crate) ceiling: Option<Pid>,
}

impl Span {
    /// Whether a process's pid rules this run out.
    fn excludes(&self, pid: Pid) -> bool {
        let is_before = self.floor.is_some_and(|floor| is_newer(pid, floor) == Some(false));
        let is_after = self.ceiling.is_some_and(|ceiling| is_newer(pid, ceiling) == Some(true));
        is_before || is_after
    }
}

/// Pids wrap around, at 32768 at the earliest: two that are far apart cannot be compared.
const FAR: u32 = 1 << 14;

pub(crate) fn is_newer(pid: Pid, than: Pid) -> Option<bool> {
    let (pid, than) = (pid.as_raw_nonzero().get(), than.as_raw_nonzero().get());
    (pid.abs_diff(than) < FAR).then_some(pid > than)
}

/// A run and its language. If the run is unknown, the language may still be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) run: Option<RunNo>,
    pub(crate) language: Option<Language>,
}

#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// Runs that have ended since the last search for processes.
    spans: Vec<Span>,
    /// Keyed by process and start time.
    known: HashMap<(Pid, u64), Origin>,
    /// Kernels, including dead ones: the processes that they started are in their process
    /// sessions.
    kernels: HashMap<Pid, Language>,
    newest: Newest,
}

/// Tells the newest process of the system, if the system does.
#[derive(Debug, Default)]
struct Newest {
    /// Opened when it is first asked.
    source: OnceCell<Option<File>>,
}

impl Newest {
    /// Reads it with one system call on a descriptor that stays open.
    fn ask(&self) -> Option<Pid> {
        let open = || File::open("/proc/sys/kernel/ns_last_pid").ok();
        let source = self.source.get_or_init(open).as_ref()?;
        let mut buffer = [0; 16];
        let length = source.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..length]).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    }
}

/// Whether other kernels execute something when a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    AtRest,
    Busy,
}

/// Number of runs after which processes are searched in idle time, so that the spans of
/// these runs can be dropped.
const SPANS: usize = 256;

/// Limit of spans: a kernel whose state is captured without end must not fill the memory.
const MOST_SPANS: usize = 8 * SPANS;

/// Number of known processes after which they are searched again; most are gone by then.
const KNOWN: usize = 1024;

impl Origins {
    pub(crate) fn add(&mut self, span: Span) {
        if self.spans.len() >= MOST_SPANS {
            self.spans.drain(..SPANS);
        }
        self.spans.push(span);
    }

    /// Returns the newest process of the system.
    pub(crate) fn newest(&self) -> Option<Pid> {
        self.newest.ask()
    }

    /// Returns the newest process before a run that begins now, where that is needed to tell
    /// its processes from those of others: their start times do so unless another run is
    /// going, or has ended in the same hundredth of a second. `newest` is the result of a
    /// look at it that was necessary anyway.
    pub(crate) fn floor(&mut self, begun: u64, others: Others, newest: Option<Pid>) -> Option<Pid> {
        let is_of_same_time = |span: &&mut Span| span.ended >= begun;
        let mut just_ended = self.spans.iter_mut().rev().take_while(is_of_same_time).peekable();
        if others == Others::AtRest && just_ended.peek().is_none() {
            return None;
        }
        let newest = newest.or_else(|| self.newest.ask());
        for span in just_ended.filter(|span| span.ceiling.is_none()) {
            span.ceiling = newest;
        }
        newest
    }

    pub(crate) fn add_kernel(&mut self, pid: Pid, language: Language) {
        self.kernels.insert(pid, language);
    }

    /// Whether it is time to forget.
    pub(crate) fn should_compact(&self) -> bool {
        self.spans.len() >= SPANS || self.known.len() >= KNOWN
    }

    /// Returns what is known of a process or can be concluded; `going` are the runs that
    /// have not ended.
    pub(crate) fn of(&self, pid: Pid, stat: &Stat, going: &[Span]) -> Origin {
        if let Some(known) = self.known.get(&(pid, stat.started)) {
            return *known;
        }
        // A process that has left its kernel's process session may come from any kernel.
        let kernel = stat.leader.filter(|leader| self.kernels.contains_key(leader));
        let mut candidates: Vec<&Span> = self
            .spans
            .iter()
            .chain(going)
            .filter(|span| kernel.is_none_or(|kernel| kernel == span.kernel))
            .filter(|span| (span.begun..=span.ended).contains(&stat.started))
            .collect();
        if candidates.len() > 1 {
            candidates.retain(|span| !span.excludes(pid));
        }
        if let [span] = candidates[..] {
            return Origin { run: Some(span.run), language: Some(span.language) };
        }
        let language = kernel.and_then(|kernel| self.kernels.get(&kernel)).copied();
        Origin { run: None, language }
    }

    /// Keeps the origins that were found.
    pub(crate) fn keep(&mut self, found: &[(Pid, Stat, Origin)]) {
        let known = found.iter().map(|(pid, stat, origin)| ((*pid, stat.started), *origin));
        self.known.extend(known);
    }

    /// Forgets everything except the origins of these processes, which are all that
    /// exist, and the kernels that live.
    pub(crate) fn forget_but(&mut self, found: &[(Pid, Stat, Origin)], alive: &[Pid]) {
        self.known.clear();
        self.keep(found);
        self.spans = Vec::new();
        self.kernels.retain(|kernel, _| {
            alive.contains(kernel) || found.iter().any(|(_, stat, _)| stat.leader == Some(*kernel))
        });
    }

    pub(crate) fn forget(&mut self) {
        let newest = std::mem::take(&mut self.newest);
        *self = Self { newest, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    fn stat(leader: i32, started: u64) -> Stat {
        let line = format!("1 (x) S 1 1 {leader} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0 0");
        Stat::parse(&line).unwrap()
    }

    fn span(run: u64, kernel: i32, begun: u64, ended: u64) -> Span {
        let (run, language, kernel) = (RunNo(run), Language::Bash, pid(kernel));
        Span { run, language, kernel, begun, ended, floor: None, ceiling: None }
    }

    #[test]
    fn numbers_tell_runs_of_the_same_moment_apart() {
        let mut origins = Origins::default();
        origins.add_kernel(pid(10), Language::Bash);
        origins.add(Span { ceiling: Some(pid(40)), ..span(1, 10, 100, 100) });
        let (floor, ceiling) = (Some(pid(40)), Some(pid(50)));
        origins.add(Span { floor, ceiling, ..span(2, 10, 100, 100) });
        let going = [Span { floor: ceiling, ..span(3, 10, 100, u64::MAX) }];
        let run = |number| origins.of(pid(number), &stat(10, 100), &going).run;
        assert_eq!([39, 41, 50, 51].map(run), [1, 2, 2, 3].map(|run| Some(RunNo(run))));
        assert_eq!(run(30_000), None, "numbers have begun anew, or many have passed");
    }

    #[test]
    fn the_system_tells_the_newest_process() {
        let origins = Origins::default();
        let newest = origins.newest();
        let child = std::process::Command::new("true").spawn().map(|mut child| {
            child.wait().unwrap();
            Pid::from_child(&child)
        });
        if let Some(newest) = newest {
            assert_eq!(is_newer(child.unwrap(), newest), Some(true));
        }
    }

    #[test]
    fn numbers_are_asked_for_only_where_times_do_not_tell() {
        let mut origins = Origins::default();
        let newest = origins.newest();
        assert_eq!(origins.floor(100, Others::AtRest, None), None, "there was no run before");
        origins.add(span(1, 10, 90, 99));
        assert_eq!(origins.floor(100, Others::AtRest, None), None);
        assert_eq!(origins.spans[0].ceiling, None);
        assert_eq!(origins.floor(100, Others::Busy, None).is_some(), newest.is_some());
        origins.add(span(2, 10, 100, 100));
        let floor = origins.floor(100, Others::AtRest, None);
        assert_eq!(floor.is_some(), newest.is_some());
        assert_eq!((origins.spans[0].ceiling, origins.spans[1].ceiling), (None, floor));
    }

    #[test]
    fn a_process_belongs_to_the_run_that_it_was_started_in() {
        let mut origins = Origins::default();
        origins.add_kernel(pid(10), Language::Bash);
        origins.add_kernel(pid(20), Language::Python);
        origins.add_kernel(pid(30), Language::Node);
        origins.add(span(1, 10, 100, 110));
        origins.add(span(2, 10, 120, 120));
        origins.add(span(3, 20, 100, 200));
        let going = [span(4, 10, 130, u64::MAX)];
        let run = |leader, started| origins.of(pid(5), &stat(leader, started), &going).run;
        assert_eq!(run(10, 105), Some(RunNo(1)));
        assert_eq!(run(10, 120), Some(RunNo(2)));
        assert_eq!(run(20, 105), Some(RunNo(3)));
        assert_eq!(run(10, 131), Some(RunNo(4)));
        assert_eq!(run(10, 115), None, "between two runs");
        assert_eq!(run(30, 105), None, "of a kernel that was in no run then");
        assert_eq!(run(5, 105), None, "it may be of either kernel");
        assert_eq!(run(5, 115), Some(RunNo(3)), "only one was in a run");
    }

    #[test]
    fn what_was_found_out_stays_and_the_rest_is_forgotten() {
        let mut origins = Origins::default();
        origins.add(span(1, 10, 100, 110));
        let known = origins.of(pid(5), &stat(10, 105), &[]);
        origins.forget_but(&[(pid(5), stat(10, 105), known)], &[]);
        assert_eq!(origins.of(pid(5), &stat(10, 105), &[]).run, Some(RunNo(1)));
        assert_eq!(origins.of(pid(5), &stat(10, 106), &[]).run, None, "another of that number");
        assert_eq!(origins.of(pid(6), &stat(10, 105), &[]).run, None);
    }
}
