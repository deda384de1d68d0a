//! Resource use of a confined session, and the effects of its limits.

use super::Keeper;
use super::bombs::{Ended, Watch};
use super::live::Force;
use crate::confined::{Confined, Incidents};
use sessile_protocol::{
    CpuLimit, Evidence, FilesLimit, Language, LayerLimit, LimitedResource, LimitsView, MemoryLimit,
    MetLimit, PidsLimit, RunError, RunNo,
};
use sessile_sandbox::limits::{LimitPlan, Mechanism, size};

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With its own exit status.
    Status(i32),
    /// With the death of its kernel.
    Death,
}

/// A limit that was met, and the note about it.
type LimitNote = (MetLimit, String);

/// The status of a program that was ended by SIGKILL, as shells report it.
const KILLED: i32 = 128 + libc::SIGKILL;

/// The status of a shell command for which no process could be started.
const NO_FORK: i32 = 254;

/// The statuses of programs that give up when they get no memory: SIGABRT, as in C++, and
/// SIGTRAP, as in Node.
const OUT_OF_MEMORY: [i32; 2] = [128 + libc::SIGABRT, 128 + libc::SIGTRAP];

impl Keeper {
    /// Reports what limits have done since the last check, in the run that has just ended
    /// or else in the next one. Returns a watch if the processes that the run left must
    /// be dealt with before its end is reported.
    pub(super) fn tell_of_limits(
        &mut self,
        language: Language,
        run: Option<RunNo>,
        ending: Ending,
        error: Option<&RunError>,
    ) -> Option<Watch> {
        let confined = self.home.confined.as_ref()?;
        let incidents = confined.take_incidents();
        // A run that succeeded was not kept from starting anything.
        if incidents == Incidents::default() && ending == Ending::Status(0) {
            return run.and_then(|run| self.take_clearing(run));
        }
        let mut met = counted(confined, incidents, ending);
        met.extend(guesses(confined.limits(), ending, error));
        if let Some(run) = run.and_then(|number| self.runs.get_mut(&number)) {
            run.limits_met.extend(met.iter().map(|(limit, _)| *limit));
        }
        let is_of_pids = |(limit, _): &LimitNote| limit.resource == LimitedResource::Pids;
        let was_refused = met.iter().any(is_of_pids);
        let notes: Vec<String> = met.into_iter().map(|(_, note)| note).collect();
        let live = self.kernels.live.get(&language);
        let force = live.map_or(Force::None, |live| live.force);
        let begun = run.and_then(|run| self.take_clearing(run));
        let watch = begun.or_else(|| self.watch_bomb(Ended { run, force, was_refused }));
        for note in notes {
            self.add_note(language, run, note);
        }
        watch
    }

    /// Returns the limits and how much of them is used.
    pub(super) fn limits_view(&self) -> Option<LimitsView> {
        let confined = self.home.confined.as_ref()?;
        let (sandbox, limits) = (confined.sandbox(), confined.limits());
        let group = sandbox.group();
        let counts = group.map(|group| group.counts()).unwrap_or_default();
        let tallied = sandbox.tallied();
        let used = || sandbox.private_bytes().map(|(used, _)| used);
        let view = LimitsView {
            memory: limits.memory.map(|held| MemoryLimit {
                limit_bytes: held.limit,
                used_bytes: group.and_then(|group| group.memory_used()),
                peak_bytes: group.and_then(|group| group.memory_peak()),
                kills: counts.kills,
                held_by: held.by.as_str().to_owned(),
            }),
            cpus: limits
                .cpus
                .map(|held| CpuLimit { limit: held.limit, held_by: held.by.as_str().to_owned() }),
            pids: limits.pids.map(|held| PidsLimit {
                limit: held.limit,
                used: group.and_then(|group| group.processes()),
                refused: counts.refusals,
                held_by: held.by.as_str().to_owned(),
            }),
            open_files: limits
                .open_files
                .map(|held| FilesLimit { limit: held.limit, held_by: held.by.as_str().to_owned() }),
            layer: limits.layer.map(|held| LayerLimit {
                limit_bytes: held.limit,
                used_bytes: tallied.map(|tallied| tallied.used).or_else(used),
                refused: tallied.map_or(0, |tallied| tallied.refused),
                held_by: held.by.as_str().to_owned(),
            }),
        };
        (view != LimitsView::default()).then_some(view)
    }
}

/// Where no control group counts, the system does not tell that a limit was met.
/// What a run's end says of it is told as what it is: a guess.
fn guesses(limits: &LimitPlan, ending: Ending, error: Option<&RunError>) -> Vec<LimitNote> {
    let is_uncounted = |by: Mechanism| match by {
        Mechanism::Rlimit | Mechanism::UserRlimit => true,
        Mechanism::Groups(_) | Mechanism::FileSystem => false,
    };
    let says =
        |word: &str| error.is_some_and(|error| error.kind == word || error.message.contains(word));
    let has_status =
        |all: &[i32]| matches!(ending, Ending::Status(status) if all.contains(&status));
    let guessed = |resource, limit| MetLimit { resource, limit, evidence: Evidence::Guessed };
    let mut met = Vec::new();
    let lacked_memory = has_status(&OUT_OF_MEMORY) || says("MemoryError");
    if let Some(held) = limits.memory.filter(|held| lacked_memory && is_uncounted(held.by)) {
        let note = format!(
            "perhaps the memory limit was met, which is {} for each program by itself",
            size(held.limit)
        );
        met.push((guessed(LimitedResource::Memory, held.limit), note));
    }
    let lacked_process =
        has_status(&[NO_FORK]) || says("BlockingIOError") || says("can't start new thread");
    if let Some(held) = limits.pids.filter(|held| lacked_process && is_uncounted(held.by)) {
        let note = format!(
            "perhaps the limit of {} processes and threads was met: one could not be started",
            held.limit
        );
        met.push((guessed(LimitedResource::Pids, held.limit), note));
    }
    met
}

fn counted(confined: &Confined, incidents: Incidents, ending: Ending) -> Vec<LimitNote> {
    let limits = confined.limits();
    let counted = |resource, limit| MetLimit { resource, limit, evidence: Evidence::Counted };
    let mut met = Vec::new();
    if let Some(held) = limits.memory.filter(|_| incidents.kills > 0) {
        let sandbox = confined.sandbox();
        let peak = sandbox.group().and_then(|group| group.memory_peak());
        let peak = peak.map(|bytes| format!("; the peak was {}", size(bytes))).unwrap_or_default();
        let whom = match (ending, incidents.kills) {
            (Ending::Death | Ending::Status(KILLED), 1) => String::new(),
            (Ending::Status(_), 1) => "a process was ".to_owned(),
            (Ending::Death | Ending::Status(_), n) => format!("{n} processes were "),
        };
        let note = format!("{whom}killed by the memory limit of {}{peak}", size(held.limit));
        met.push((counted(LimitedResource::Memory, held.limit), note));
    }
    if let Some(held) = limits.pids.filter(|_| incidents.refusals > 0) {
        let times = match incidents.refusals {
            1 => "a process could not be started".to_owned(),
            n => format!("processes could not be started {n} times"),
        };
        let note = format!("{times}: the limit is {} processes and threads", held.limit);
        met.push((counted(LimitedResource::Pids, held.limit), note));
    }
    if let Some(held) = limits.layer.filter(|_| incidents.full > 0) {
        let limit = size(held.limit);
        let note = format!(
            "writes failed with `No space left on device`: the layer and the private directories \
             may have {limit}"
        );
        met.push((counted(LimitedResource::Layer, held.limit), note));
    }
    if let Some(disk) = confined.disk().filter(|_| incidents.stops > 0) {
        let reserve = disk.reserve();
        let note = format!(
            "programs were killed because the disk was nearly full: what the session has written \
             to its layer leaves less than {} of it; --layer-size sets a limit of its own",
            size(reserve)
        );
        met.push((counted(LimitedResource::Layer, reserve), note));
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_sandbox::limits::{EnforcedLimit, Version};

    fn limits(by: Mechanism) -> LimitPlan {
        let held = |limit| Some(EnforcedLimit { limit, by });
        LimitPlan { memory: held(100 << 20), pids: held(20), ..LimitPlan::default() }
    }

    #[test]
    fn where_nothing_counts_an_end_is_a_hint_and_no_more() {
        let weak = limits(Mechanism::Rlimit);
        let error = |kind: &str, message: &str| RunError {
            kind: kind.to_owned(),
            message: message.to_owned(),
        };
        let told = |status, error: Option<&RunError>| -> Vec<String> {
            let met = guesses(&weak, Ending::Status(status), error);
            met.into_iter().map(|(_, note)| note).collect()
        };
        let memory =
            ["perhaps the memory limit was met, which is 100 MiB for each program by itself"];
        let process =
            ["perhaps the limit of 20 processes and threads was met: one could not be started"];
        assert_eq!(told(1, Some(&error("MemoryError", ""))), memory);
        assert_eq!(told(134, None), memory);
        assert_eq!(told(254, None), process);
        assert_eq!(told(1, Some(&error("RuntimeError", "can't start new thread"))), process);
        assert!(told(1, None).is_empty());
        assert!(told(1, Some(&error("ValueError", "no"))).is_empty());
        assert!(guesses(&weak, Ending::Death, None).is_empty());
        // Control groups count, and what they say is told instead.
        let strong = limits(Mechanism::Groups(Version::Two));
        assert!(guesses(&strong, Ending::Status(254), None).is_empty());
    }
}
