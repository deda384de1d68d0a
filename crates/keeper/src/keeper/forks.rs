//! Forks: new sessions of this process with the state of this one.
//!
//! Shells get the state that was just captured, in a new process; a Python is
//! copied with all that it has. Each fork is a session of its own from the
//! moment that it is made: directory, socket, numbers, limits.

use super::images::Purpose;
use super::operations::{Progress, Stage};
use super::{Birth, Keeper, MARKER};
use crate::kernels::{Copy, Kind};
use sessile_protocol::{
    Answer, Carried, CarriedKernel, Code, Failure, ForkFiles, ForkOrder, ForkView, ForkedView,
    Language, LeftBehind, SessionId,
};
use sessile_session::{Origin, Session};
use sessile_store::{
    Directory, Durable, ForkedFrom, Metadata, SavedState, SessionStatus, Sessions, timestamp,
};
use std::io;
use std::path::{Path, PathBuf};

/// Forks that are coming up.
#[derive(Debug)]
pub(super) struct Forking {
    view: ForkedView,
    /// Those whose processes are not there yet.
    expected: Vec<SessionId>,
    failure: Option<Failure>,
}

/// What a fork starts from.
struct Seed {
    state: SavedState,
    known: Vec<(Language, Origin)>,
}

impl Keeper {
    pub(super) fn begin_forking(&mut self, order: &ForkOrder) -> Progress {
        let mut left = Vec::new();
        let seed = self.seed(&mut left);
        let kernels = self.carried(&seed);
        let as_of_run = self.session.last_run();
        left.extend(self.background_left());
        let view = ForkedView { as_of_run, forks: Vec::new(), kernels, left };
        let mut forking = Forking { view, expected: Vec::new(), failure: None };
        raise_descriptor_limit();
        for _ in 0..order.count {
            match self.fork_once(order, &seed) {
                Ok((fork, is_expected)) => {
                    if is_expected {
                        forking.expected.push(fork.session.clone());
                    }
                    forking.view.forks.push(fork);
                }
                Err(failure) => {
                    forking.failure = Some(failure);
                    break;
                }
            }
        }
        self.go_on_forking(forking, false)
    }

    pub(super) fn go_on_forking(&mut self, mut forking: Forking, is_over: bool) -> Progress {
        if is_over && !forking.expected.is_empty() {
            forking.expected.clear();
            forking.failure = Some(Failure::new(Code::ForkFailed, "a fork did not come up"));
        }
        if !forking.expected.is_empty() {
            return Progress::Waiting(Stage::Forking(forking), Self::copy_patience());
        }
        match forking.failure {
            None => Progress::Done(Ok(Answer::Forked(Box::new(forking.view)))),
            Some(failure) => {
                // All or none: nobody would know of them.
                self.unwanted.extend(forking.view.forks.into_iter().map(|fork| fork.session));
                Progress::failed(failure)
            }
        }
    }

    /// A fork's processes are there, or will not be.
    pub(crate) fn fork_came_up(&mut self, birth: Birth) {
        let Some(Stage::Forking(forking)) = self.stage() else {
            return;
        };
        forking.expected.retain(|session| *session != birth.child);
        match birth.outcome {
            Ok(left) => {
                for thing in left {
                    if !forking.view.left.contains(&thing) {
                        forking.view.left.push(thing);
                    }
                }
            }
            Err(failure) => forking.failure = Some(failure),
        }
        self.pump_operations();
    }

    /// Forks that were made and are not wanted: the rest of a failed request.
    pub(crate) fn take_unwanted(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.unwanted)
    }

    /// What kernels have that can be handed on.
    fn seed(&self, left: &mut Vec<LeftBehind>) -> Seed {
        let mut state = self.directory.state().unwrap_or_default();
        let states: Vec<_> = self.session.states().collect();
        state.kernels.retain(|language, _| states.iter().any(|(l, _)| l == language));
        let mut known = Vec::new();
        for (language, as_of) in states {
            let saved = state.kernels.get(&language);
            let origin = match language {
                Language::Python => Origin::Image(as_of),
                Language::Bash | Language::Sh | Language::Zsh | Language::Node => {
                    match saved.filter(|saved| saved.restore.is_some()) {
                        Some(saved) => Origin::Saved(saved.as_of_run),
                        None => Origin::Nothing,
                    }
                }
            };
            if origin == Origin::Nothing && as_of.0 > 0 {
                left.push(LeftBehind {
                    language: Some(language),
                    name: "state".to_owned(),
                    reason: format!("the state of {language} could not be written down"),
                });
            }
            known.push((language, origin));
        }
        Seed { state, known }
    }

    fn carried(&self, seed: &Seed) -> Vec<CarriedKernel> {
        let carried = seed.known.iter().filter_map(|(language, origin)| {
            let (as_of_run, carried) = match origin {
                Origin::Saved(as_of) => (*as_of, Carried::Saved),
                Origin::Image(as_of) => (*as_of, Carried::Live),
                Origin::Nothing => return None,
            };
            Some(CarriedKernel { language: *language, as_of_run, carried })
        });
        carried.collect()
    }

    /// Background processes, which nobody can copy.
    fn background_left(&mut self) -> Vec<LeftBehind> {
        let jobs = self.jobs().jobs;
        let left = jobs.into_iter().map(|job| LeftBehind {
            language: None,
            name: format!("process {} ({})", job.pid, job.command),
            reason: "a background process belongs to the original".to_owned(),
        });
        left.collect()
    }

    /// Makes one fork. True: its processes are yet to come.
    fn fork_once(&mut self, order: &ForkOrder, seed: &Seed) -> Result<(ForkView, bool), Failure> {
        let failed = |why: String| Failure::new(Code::ForkFailed, why);
        let session = new_id().map_err(|error| failed(error.to_string()))?;
        let root = self.directory.path().parent().unwrap_or(Path::new("/")).to_owned();
        let directory = Sessions::at(root).create(&session);
        let directory = directory.map_err(|error| failed(error.to_string()))?;
        let made = self.bear(&session, &directory, order, seed);
        let (mut child, is_expected) = match made {
            Ok(made) => made,
            Err(error) => {
                let _ = directory.remove();
                return Err(failed(format!("no fork could be made: {error}")));
            }
        };
        let outcome = self.copy_kernels(&mut child, &session);
        if let Err(error) = outcome {
            child.scratch.remove();
            let _ = directory.remove();
            return Err(failed(format!("no fork could be made: {error}")));
        }
        let view = ForkView { session, work_dir: child.boot.work_dir.clone() };
        self.newborn.push(child);
        Ok((view, is_expected))
    }

    fn bear(
        &self,
        session: &SessionId,
        directory: &Directory,
        order: &ForkOrder,
        seed: &Seed,
    ) -> io::Result<(Self, bool)> {
        let work_dir = self.work_dir_of_fork(directory, order.files)?;
        let metadata = Metadata {
            session_id: session.clone(),
            created_at: timestamp(),
            last_executed_at: None,
            status: SessionStatus::Active,
            work_dir: work_dir.clone(),
            keeper_pid: Some(std::process::id()),
            workspace: None,
            name: order.name.clone(),
            forked_from: Some(ForkedFrom {
                session_id: self.boot.session.clone(),
                as_of_run: self.session.last_run(),
            }),
            durable: self.metadata.durable.as_ref().map(Durable::afresh),
            ..self.metadata.clone()
        };
        let mut boot = self.boot.clone();
        boot.session = session.clone();
        boot.directory = directory.path().to_owned();
        boot.work_dir = work_dir;
        // Its first kernel need not come up for it to be there.
        boot.revive = true;
        let lock = directory.lock().map_err(io::Error::other)?;
        let lock = lock.ok_or(io::ErrorKind::AlreadyExists)?;
        directory.write_metadata(&metadata).map_err(io::Error::other)?;
        directory.write_state(&marked(&seed.state, session)).map_err(io::Error::other)?;
        let scratch = self.scratch.for_fork(session.as_str())?;
        let limits = Self::limits(&boot);
        let last = self.session.last_run();
        let forked = Session::forked(boot.kernel.language, limits, 0, last, &seed.known);
        let directory = Directory::at(directory.path().to_owned());
        let mut child = Self::assemble(boot, directory, lock, metadata, scratch, forked)?;
        child.accepted = child.directory.accepted(last).ok();
        child.has_reported = true;
        child.durable_changed();
        child.parent = Some(self.boot.session.clone());
        let is_expected = seed.known.iter().any(|(_, origin)| matches!(origin, Origin::Image(_)));
        child.is_expected = is_expected;
        Ok((child, is_expected))
    }

    fn work_dir_of_fork(&self, _: &Directory, files: ForkFiles) -> io::Result<PathBuf> {
        match files {
            ForkFiles::Share | ForkFiles::Copy => Ok(self.boot.work_dir.clone()),
        }
    }

    /// Has the processes copied that the fork gets whole.
    fn copy_kernels(&mut self, child: &mut Self, session: &SessionId) -> io::Result<()> {
        let copied: Vec<Language> =
            self.kernels.keys().copied().filter(|l| *l == Language::Python).collect();
        for language in copied {
            let epoch = child.session.epoch(language).unwrap_or_default();
            let directory = child.expect(language, Purpose::First(epoch))?;
            let kind = Kind::Fork { session: session.as_str(), cwd: None };
            self.copy(language, &Copy { directory: &directory, kind })?;
        }
        Ok(())
    }

    /// In a fork: one of its kernels is there, or will not be.
    pub(super) fn birth_of(
        &mut self,
        language: Language,
        outcome: Result<Vec<LeftBehind>, String>,
    ) {
        let Some(parent) = self.parent.clone().filter(|_| self.is_expected) else {
            return;
        };
        self.is_expected = false;
        let outcome = outcome.map_err(|error| {
            Failure::new(Code::ForkFailed, format!("{language} was not forked: {error}"))
        });
        self.birth = Some(Birth { parent, child: self.boot.session.clone(), outcome });
    }
}

/// The states of shells with the fork's own id in their environment.
fn marked(state: &SavedState, session: &SessionId) -> SavedState {
    let mut state = state.clone();
    for saved in state.kernels.values_mut() {
        // The files with states of kernels are its parent's.
        (saved.dump, saved.dump_as_of_run) = (None, None);
        if let Some(restore) = &mut saved.restore {
            restore.push_str(&format!("\nexport {MARKER}='{session}'"));
        }
    }
    state
}

fn new_id() -> io::Result<SessionId> {
    let mut bytes = [0; 12];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(SessionId::from_random(bytes))
}

/// Each session has about a dozen descriptors, and a hundred of them more than
/// the usual limit. Kernels keep the one that they were started with.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let _ =
            setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}
