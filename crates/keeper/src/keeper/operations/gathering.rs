//! The parts of a save, as they come in: the kernels' states and dumps.

use crate::dumps::Dumps;
use crate::kernels::DumpOutcome;
use crate::processes;
use rustix::process::{Pid, Signal};
use sessile_protocol::{Code, Failure, Language, LeftBehind, RunNo};
use sessile_session::Epoch;
use sessile_session::operations::{Event, Part, SaveId};
use sessile_store::{Directory, SavedKernel, SavedState};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The parts of all kernels so far.
#[derive(Debug)]
pub(super) struct Gathering {
    dumps: Dumps,
    pub(super) kernels: BTreeMap<Language, Gathered>,
    /// What the save will not contain.
    pub(super) left: Vec<LeftBehind>,
}

#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) as_of: RunNo,
    /// Epoch of its process, if it has one.
    pub(super) epoch: Option<Epoch>,
    pub(super) state: Option<SavedKernel>,
    pub(super) dump: Dump,
}

#[derive(Debug)]
pub(super) enum Dump {
    /// There is none, and none will come.
    None,
    Ordered(PathBuf),
    Writing {
        path: PathBuf,
        writer: Pid,
    },
    Written {
        path: PathBuf,
        carried: Option<u64>,
    },
    /// A dump that existed before this save.
    Earlier(PathBuf),
}

impl Dump {
    /// Returns a file that was made for this save.
    pub(super) fn own_file(&self) -> Option<&Path> {
        match self {
            Self::None | Self::Earlier(_) => None,
            Self::Ordered(path) | Self::Writing { path, .. } | Self::Written { path, .. } => {
                Some(path)
            }
        }
    }

    fn writer(&self) -> Option<Pid> {
        match self {
            Self::Writing { writer, .. } => Some(*writer),
            Self::None | Self::Ordered(_) | Self::Written { .. } | Self::Earlier(_) => None,
        }
    }
}

impl Gathering {
    pub(super) fn new(dumps: Dumps, left: Vec<LeftBehind>) -> Self {
        Self { dumps, kernels: BTreeMap::new(), left }
    }

    /// Kernels without a process: what is known of them is on disk.
    pub(super) fn add_without_process(
        &mut self,
        state: SavedState,
        directory: &Directory,
        is_live: impl Fn(Language) -> bool,
    ) {
        for (language, saved) in state.kernels.into_iter().filter(|(l, _)| !is_live(*l)) {
            let Some(as_of) = saved.comes_back_as_of() else {
                self.leave_behind(language, "its process is gone, and its state with it");
                continue;
            };
            let path = saved.dump.as_ref().and_then(|name| directory.dump(name));
            let dump = path.map_or(Dump::None, Dump::Earlier);
            let gathered = Gathered { as_of, epoch: None, state: Some(saved), dump };
            self.kernels.insert(language, gathered);
        }
    }

    /// Lists everything of a kernel as left behind.
    pub(super) fn leave_behind(&mut self, language: Language, reason: &str) {
        let (name, reason) = (format!("all of {language}"), reason.to_owned());
        self.left.push(LeftBehind { language: Some(language), name, reason });
    }

    /// Returns the latest run that any of the kernels includes.
    pub(super) fn as_of(&self) -> RunNo {
        self.kernels.values().map(|kernel| kernel.as_of).max().unwrap_or_default()
    }

    // Reports of kernels.

    /// Whether the state of a kernel as of that run is missing.
    pub(super) fn wants_state(&self, language: Language, as_of: RunNo) -> bool {
        let kernel = self.kernels.get(&language);
        kernel.is_some_and(|kernel| kernel.state.is_none() && kernel.as_of == as_of)
    }

    pub(super) fn take_state(
        &mut self,
        save: SaveId,
        language: Language,
        saved: SavedKernel,
    ) -> Event {
        if let Some(kernel) = self.kernels.get_mut(&language) {
            kernel.state = Some(saved);
        }
        Event::SaveGathered { save, language, part: Part::State }
    }

    /// Whether a kernel is to write its dump there.
    pub(super) fn expects(&self, language: Language, path: &Path) -> bool {
        self.kernels.get(&language).is_some_and(|kernel| match &kernel.dump {
            Dump::Ordered(ordered) => ordered == path,
            Dump::None | Dump::Writing { .. } | Dump::Written { .. } | Dump::Earlier(_) => false,
        })
    }

    /// Notes the separate process that writes a kernel's dump.
    pub(super) fn take_writer(&mut self, language: Language, path: &Path, writer: Pid) {
        if let Some(kernel) = self.kernels.get_mut(&language) {
            kernel.dump = Dump::Writing { path: path.to_owned(), writer };
        }
    }

    /// Whether a process writes a dump.
    pub(super) fn has_writer(&self, pid: Pid) -> bool {
        self.kernels.values().any(|kernel| kernel.dump.writer() == Some(pid))
    }

    /// Returns the outcome of a process that wrote a dump and has ended.
    pub(super) fn left_by(&self, writer: Pid) -> Option<(Language, DumpOutcome)> {
        let mut kernels = self.kernels.iter();
        let (language, kernel) = kernels.find(|(_, k)| k.dump.writer() == Some(writer))?;
        Some((*language, self.left_at(kernel.dump.own_file()?)))
    }

    /// Returns the outcome of a dump whose writer has ended.
    pub(super) fn left_at(&self, path: &Path) -> DumpOutcome {
        let report = self.dumps.outcome(path);
        let dumped = report.and_then(|report| serde_json::from_slice(&report).ok());
        dumped.unwrap_or_else(|| self.cut_short(path.to_owned()))
    }

    /// Takes the report that a dump is written, or failed. Returns none if nobody asked
    /// for it.
    pub(super) fn take_dump(
        &mut self,
        save: SaveId,
        language: Language,
        dumped: DumpOutcome,
    ) -> Option<Event> {
        let kernel = self.kernels.get_mut(&language)?;
        if kernel.dump.own_file() != Some(&dumped.path) {
            return None;
        }
        let collected = match dumped.error {
            Some(error) => Err(error),
            None => self.dumps.collect(&dumped.path).map_err(|error| error.to_string()),
        };
        let path = match collected {
            Ok(path) => path,
            Err(error) => {
                let message = format!("the state of {language} could not be written down: {error}");
                return Some(Event::SaveFailed {
                    save,
                    failure: Failure::in_words(Code::Storage, message),
                });
            }
        };
        self.left.extend(dumped.left.into_iter().map(|item| LeftBehind {
            language: Some(language),
            name: item.name,
            reason: item.reason,
        }));
        kernel.dump = Dump::Written { path, carried: Some(dumped.carried) };
        Some(Event::SaveGathered { save, language, part: Part::Dump })
    }

    /// Kills the writers and removes the files of this save.
    pub(super) fn clear_away(self) {
        for kernel in self.kernels.into_values() {
            if let Some(writer) = kernel.dump.writer() {
                processes::signal(&[writer], Signal::KILL);
            }
            kernel.dump.own_file().into_iter().for_each(|path| self.dumps.remove(path));
        }
    }

    fn cut_short(&self, path: PathBuf) -> DumpOutcome {
        // On a full disk, not even the error can be written.
        let why = if self.dumps.are_full() {
            "no space left on device"
        } else {
            "the process that wrote it was ended"
        };
        DumpOutcome { path, carried: 0, left: Vec::new(), error: Some(why.to_owned()) }
    }
}
