//! What became of a session since it was last used.

use serde::{Deserialize, Serialize};
use sessile_gateway::answer::Continuity;
use sessile_protocol::{Language, RunNo};
use sessile_store::{Directory, Metadata};
use std::collections::{BTreeMap, BTreeSet};

/// How many runs are searched for lost changes.
const LOOKED_AT: u64 = 1000;

/// File with the losses that were already reported: each is reported once.
const LOST: &str = "lost.json";

#[derive(Debug, Default, Serialize, Deserialize)]
struct ReportedLosses {
    /// Lost kernels, each with its last run at that time.
    kernels: BTreeMap<Language, RunNo>,
    /// Runs that were going.
    runs: BTreeSet<RunNo>,
}

/// What was kept of a session without a keeper.
pub(super) struct LostSession {
    as_of_run: Option<RunNo>,
    lost_runs: Vec<RunNo>,
    lost: Vec<String>,
    ran: RunsByLanguage,
    /// All lost runs, including those already reported.
    all_lost_runs: BTreeSet<RunNo>,
}

/// The runs of each kernel.
type RunsByLanguage = BTreeMap<Language, BTreeSet<RunNo>>;

impl LostSession {
    pub(super) fn of(directory: &Directory) -> Self {
        let kernels = directory.state().into_iter().flat_map(|state| state.kernels);
        // The run as of which each kernel comes back, if it does.
        let kept: BTreeMap<Language, Option<RunNo>> =
            kernels.map(|(language, saved)| (language, saved.comes_back_as_of())).collect();
        let history = directory.history().newest(LOOKED_AT);
        let mut ran = RunsByLanguage::new();
        for entry in history.iter().filter(|entry| entry.event.is_none()) {
            ran.entry(entry.language).or_default().insert(entry.run);
        }
        let told: ReportedLosses = directory.read_json(LOST).unwrap_or_default();
        let rewinds = history.iter().filter(|entry| entry.event.as_deref() == Some("rewind"));
        let rewound = rewinds.map(|entry| entry.run).max().unwrap_or_default();
        let lost = lost(&kept, &ran, &told.kernels, rewound);
        let left = directory.metadata().map(|metadata| left_behind(&metadata)).unwrap_or_default();
        let as_of_run = kept.into_values().flatten().max();
        let lost = lost.into_iter().chain(left).collect();
        let all_lost_runs = directory.lost_runs();
        let is_new = |run: &RunNo| !told.runs.contains(run);
        let lost_runs = all_lost_runs.iter().copied().filter(is_new).collect();
        let all_lost_runs = all_lost_runs.into_iter().collect();
        Self { as_of_run, lost_runs, lost, ran, all_lost_runs }
    }

    /// Marks everything lost up to now as reported.
    pub(super) fn remember(&self, directory: &Directory) {
        let last = self.ran.iter().filter_map(|(language, runs)| Some((*language, *runs.last()?)));
        let told = ReportedLosses { kernels: last.collect(), runs: self.all_lost_runs.clone() };
        // If the write fails, it is reported twice.
        let _ = directory.write_json(LOST, &told);
    }

    pub(super) fn into_continuity(self, previous: Box<Metadata>) -> Continuity {
        let Self { as_of_run, lost_runs, lost, .. } = self;
        match as_of_run {
            Some(as_of_run) => Continuity::Restored { as_of_run, lost_runs, lost, previous },
            None => Continuity::Fresh { lost_runs, lost, previous },
        }
    }
}

/// Returns what does not come back of the kernels, by name. `told`: the last run of each
/// kernel whose loss was already reported; a kernel that ran nothing since has nothing
/// more to lose. `rewound`: the last rewind, which took back what is not in the saved states.
fn lost(
    kept: &BTreeMap<Language, Option<RunNo>>,
    ran: &RunsByLanguage,
    told: &BTreeMap<Language, RunNo>,
    rewound: RunNo,
) -> Vec<String> {
    let name = |(language, runs): (&Language, &BTreeSet<RunNo>)| {
        let told = told.get(language).copied().unwrap_or_default();
        let after = |from: RunNo| runs.iter().copied().filter(|r| *r > from).collect::<Vec<_>>();
        let what = match kept.get(language).copied().flatten() {
            Some(back) => {
                format!("what {} changed", numbered(&after(back.max(told).max(rewound)))?)
            }
            None => numbered(&after(told)).map(|_| ALL.to_owned())?,
        };
        Some(format!("{}: {what}", language.as_str()))
    };
    ran.iter().filter_map(name).collect()
}

const ALL: &str = "its variables and other state";

/// Returns runs in words.
fn numbered(runs: &[RunNo]) -> Option<String> {
    match runs {
        [] => None,
        [run] => Some(format!("run {run}")),
        [first, .., last] => Some(format!("runs {first} to {last}")),
    }
}

/// Returns what the last save of a durable session does not contain.
pub(super) fn left_behind(metadata: &Metadata) -> Vec<String> {
    let left = metadata.durable.iter().flat_map(|durable| &durable.left);
    let mut names: Vec<String> = Vec::new();
    for left in left {
        let of = left.language.map(|language| format!("{}: ", language.as_str()));
        let name = format!("{}{} ({})", of.unwrap_or_default(), left.name, left.reason);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use Language::{Bash, Python};

    fn lost_of(
        kept: &[(Language, Option<u64>)],
        ran: &[(Language, &[u64])],
        told: &[(Language, u64)],
        rewound: u64,
    ) -> Vec<String> {
        let kept = kept.iter().map(|(language, back)| (*language, back.map(RunNo)));
        let ran = ran.iter().map(|(language, runs)| {
            (*language, runs.iter().copied().map(RunNo).collect::<BTreeSet<_>>())
        });
        let told = told.iter().map(|(language, run)| (*language, RunNo(*run)));
        lost(&kept.collect(), &ran.collect(), &told.collect(), RunNo(rewound))
    }

    #[test]
    fn kernels_that_do_not_come_back_are_named() {
        let ran: [(Language, &[u64]); 2] = [(Bash, &[1, 3, 4]), (Python, &[2])];
        let none: [String; 0] = [];
        assert_eq!(lost_of(&[(Bash, Some(4)), (Python, Some(2))], &ran, &[], 0), none);
        let python = "python: its variables and other state";
        assert_eq!(
            lost_of(&[(Bash, Some(1)), (Python, None)], &ran, &[], 0),
            ["bash: what runs 3 to 4 changed", python]
        );
        // Nothing was saved of it yet.
        assert_eq!(lost_of(&[(Bash, Some(4))], &ran, &[], 0), [python]);
        // What was taken back is not lost, but Python's state is.
        assert_eq!(lost_of(&[(Bash, Some(1)), (Python, None)], &ran, &[], 5), [python]);
        // It was reported before, and ran nothing since.
        let told = [(Bash, 3), (Python, 2)];
        assert_eq!(
            lost_of(&[(Bash, Some(1)), (Python, None)], &ran, &told, 0),
            ["bash: what run 4 changed"]
        );
        assert_eq!(lost_of(&[], &[], &[], 0), none);
    }
}
