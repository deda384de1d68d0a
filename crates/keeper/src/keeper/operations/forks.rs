//! Forks: new sessions of this process with the state of this one.
//!
//! Shells get the state that was just captured, in a new process; a Python process is
//! copied as a whole. Each fork is a separate session from the start: it has its own
//! directory, socket, limits, and run numbers, which continue those of the original. In a
//! new session made in this way, the numbers begin with 1.

use super::super::{ForkOutcome, Keeper, Lifecycle, MARKER};
use super::copies::Purpose;
use super::images::Content;
use crate::confined::LAYER;
use crate::kernels::{Copy, Kind};
use crate::processes;
use crate::shortage::of_scratch;
use rustix::process::Pid;
use sessile_protocol::{
    Boot, BootPurpose, Carried, CarriedKernel, Code, Failure, ForkFiles, ForkOrder, ForkView,
    ForkedView, Language, LeftBehind, RunNo, SessionId,
};
use sessile_session::operations::{Event, KernelStart, RequestId};
use sessile_session::{Core, Origin, Session};
use sessile_store::{
    Directory, Durable, ForkedFrom, Metadata, SavedState, SessionStatus, Sessions, UserState,
    new_session_id, timestamp,
};
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Name of a fork's own workspace in its directory.
const WORKSPACE: &str = "workspace";

/// Forks that are being made.
#[derive(Debug)]
pub(super) struct Pending {
    request: RequestId,
    order: ForkOrder,
    /// Directories of forks that are still to be made.
    planned: Vec<(SessionId, Directory)>,
    view: ForkedView,
}

/// The state that a fork starts from.
struct Seed {
    state: SavedState,
    known: Vec<(Language, Origin)>,
    left: Vec<LeftBehind>,
}

impl Seed {
    /// Returns the same for a session whose numbers begin with 1.
    fn before_all_runs(mut self) -> Self {
        for saved in self.state.kernels.values_mut() {
            saved.as_of_run = RunNo(0);
        }
        for (_, origin) in &mut self.known {
            *origin = match origin {
                Origin::Saved(_) => Origin::Saved(RunNo(0)),
                Origin::Image(_) => Origin::Image(RunNo(0)),
                Origin::Nothing => Origin::Nothing,
            };
        }
        self
    }
}

type Kernels = [(Language, RunNo, KernelStart)];

impl Keeper {
    /// Creates the directories, and has the files copied if that is wanted.
    pub(super) fn plan_forks(&mut self, request: RequestId, order: ForkOrder, kernels: &Kernels) {
        if let Err(failure) = self.may_fork(&order) {
            return self.operate(Event::ForksPlanned { request, outcome: Err(failure) });
        }
        let seed = self.seed(&order, kernels);
        let kernels = self.carried(&seed);
        let as_of_run = self.session.last_begun();
        let mut left = seed.left;
        left.extend(self.background_left());
        let view = ForkedView { as_of_run, forks: Vec::new(), kernels, left };
        let files = order.files;
        let mut pending = Pending { request, order, planned: Vec::new(), view };
        let planned = self.make_directories(&pending.order, &mut pending.planned);
        let to = pending.planned.iter().map(|(_, at)| at.path().join(WORKSPACE)).collect();
        self.operations.forks = Some(pending);
        let outcome = match (planned, files) {
            (Ok(()), ForkFiles::Copy) => match self.copy_files(request, to) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            (planned, ForkFiles::Copy | ForkFiles::Share) => planned,
        };
        self.operate(Event::ForksPlanned { request, outcome });
    }

    /// Checks whether the fork is possible. A running process stays in its sandbox, and
    /// so does its copy.
    fn may_fork(&self, order: &ForkOrder) -> Result<(), Failure> {
        let refused = |why: &str| Err(Failure::new(Code::ForkFailed, why));
        let is_confined = self.home.confined.is_some();
        match &order.new {
            Some(new) if is_confined || new.sandbox.is_some() => refused(
                "what a session knows cannot be taken into a sandbox, nor out of one; \
                 fork it, or start it without --from",
            ),
            None if is_confined && order.files == ForkFiles::Copy => refused(
                "a live process stays in its sandbox, whose files are the directory itself; \
                 for files of its own, `sessile save --files` it and restore that",
            ),
            Some(_) | None => Ok(()),
        }
    }

    fn make_directories(
        &self,
        order: &ForkOrder,
        planned: &mut Vec<(SessionId, Directory)>,
    ) -> Result<(), Failure> {
        if let Some(new) = &order.new {
            planned.push((new.session.clone(), Directory::at(new.directory.clone())));
            return Ok(());
        }
        let failed = |error: &(dyn Error + 'static)| Failure::from_error(Code::ForkFailed, error);
        let root = self.home.directory.path().parent().unwrap_or(Path::new("/")).to_owned();
        for _ in 0..order.count {
            let session = new_session_id().map_err(|error| failed(&error))?;
            let user_state = UserState::at(self.home.boot.user_state.clone());
            let directory = Sessions::at(root.clone(), user_state).create(&session);
            let directory = directory.map_err(|error| failed(&error))?;
            planned.push((session, directory));
        }
        Ok(())
    }

    /// Handles the outcome of copying the workspace for forks.
    pub(super) fn files_copied(
        &mut self,
        request: RequestId,
        copied: Result<Vec<LeftBehind>, Failure>,
    ) {
        let pending = self.operations.forks.as_mut();
        let outcome = copied.map(|left| {
            if let Some(pending) = pending.filter(|pending| pending.request == request) {
                pending.view.left.extend(left);
            }
        });
        self.operate(Event::ForksPlanned { request, outcome });
    }

    pub(super) fn make_forks(&mut self, request: RequestId, kernels: &Kernels) {
        processes::raise_descriptor_limit();
        let Some(mut pending) = self.operations.forks.take() else {
            return;
        };
        let seed = self.seed(&pending.order, kernels);
        let (mut expected, mut failure) = (Vec::new(), None);
        let planned = std::mem::take(&mut pending.planned);
        let names = pending.order.names();
        for (at, (session, directory)) in planned.iter().enumerate() {
            let fork = (session, directory, names.get(at).cloned());
            match self.fork_once(&pending.order, fork, &seed) {
                Ok((fork, is_expected)) => {
                    expected.extend(is_expected.then(|| fork.session.clone()));
                    pending.view.forks.push(fork);
                }
                Err(why) => {
                    discard(&planned[at..]);
                    failure = Some(why);
                    break;
                }
            }
        }
        self.operations.forks = Some(pending);
        self.operate(Event::ForksMade { request, expected, failure });
    }

    /// Ends all forks of a request that failed: no client would know of them.
    pub(super) fn end_forks(&mut self, request: RequestId) {
        let pending = self.operations.forks.take_if(|pending| pending.request == request);
        if let Some(pending) = pending {
            discard(&pending.planned);
            self.family.unwanted.extend(pending.view.forks.into_iter().map(|fork| fork.session));
        }
    }

    pub(super) fn forked_view(&mut self, request: RequestId) -> Result<ForkedView, Failure> {
        let pending = self.operations.forks.take_if(|pending| pending.request == request);
        let gone =
            || Failure::new(Code::ForkFailed, "the forks ended before they had started; try again");
        pending.map(|pending| pending.view).ok_or_else(gone)
    }

    /// Handles the report that a fork's processes are up, or failed.
    pub(crate) fn fork_came_up(&mut self, outcome: ForkOutcome) {
        let ForkOutcome { child: fork, outcome, .. } = outcome;
        let pending = self.operations.forks.as_mut();
        let outcome = outcome.map(|left| {
            if let Some(pending) = pending {
                for thing in left {
                    if !pending.view.left.contains(&thing) {
                        pending.view.left.push(thing);
                    }
                }
            }
        });
        self.operate(Event::ForkUp { fork, outcome });
    }

    /// Takes the forks that were made and are not wanted.
    pub(crate) fn take_unwanted(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.family.unwanted)
    }

    fn pid(&self, language: Language) -> Option<Pid> {
        self.kernels.live.get(&language).map(|live| live.pid)
    }

    /// Returns the state of kernels that can be handed on.
    fn seed(&self, order: &ForkOrder, kernels: &Kernels) -> Seed {
        let mut state = self.home.directory.state().unwrap_or_default();
        state.kernels.retain(|language, _| kernels.iter().any(|(l, ..)| l == language));
        let (mut known, mut left) = (Vec::new(), Vec::new());
        for (language, as_of, heritage) in kernels.iter().copied() {
            let origin = match heritage {
                KernelStart::Copy => Origin::Image(as_of),
                KernelStart::Image(id) => {
                    let image = self.session.operations().image(id);
                    left.extend(image.iter().flat_map(|image| image.left.iter().cloned()));
                    match self.operations.images.get(id) {
                        Some(Content::Saved(saved)) => {
                            state.kernels.insert(language, (**saved).clone());
                            Origin::Saved(as_of)
                        }
                        Some(_) | None => Origin::Nothing,
                    }
                }
                KernelStart::Written => {
                    let saved = state.kernels.get(&language);
                    match saved.filter(|saved| saved.restore.is_some()) {
                        Some(saved) => Origin::Saved(saved.as_of_run),
                        None => Origin::Nothing,
                    }
                }
                KernelStart::Nothing => Origin::Nothing,
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
        let seed = Seed { state, known, left };
        if order.new.is_some() { seed.before_all_runs() } else { seed }
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

    /// Returns the background processes, which cannot be copied.
    fn background_left(&mut self) -> Vec<LeftBehind> {
        let jobs = self.jobs().jobs;
        let left = jobs.into_iter().map(|job| LeftBehind {
            language: None,
            name: format!("process {} ({})", job.pid, job.command),
            reason: "a background process belongs to the original".to_owned(),
        });
        left.collect()
    }

    /// Makes one fork. Returns true if its processes are still to come.
    fn fork_once(
        &mut self,
        order: &ForkOrder,
        (session, directory, name): (&SessionId, &Directory, Option<String>),
        seed: &Seed,
    ) -> Result<(ForkView, bool), Failure> {
        let failed =
            |error: io::Error| of_scratch(Code::ForkFailed, "no fork could be made", &error);
        let (mut child, is_expected) =
            self.build_fork((session, directory, name), order, seed).map_err(failed)?;
        if let Err(error) = self.copy_kernels(&mut child, order) {
            child.home.scratch.remove();
            return Err(failed(error));
        }
        let view =
            ForkView { session: session.clone(), work_dir: child.home.boot.work_dir.clone() };
        self.family.new_forks.push(child);
        Ok((view, is_expected))
    }

    fn build_fork(
        &self,
        (session, directory, name): (&SessionId, &Directory, Option<String>),
        order: &ForkOrder,
        seed: &Seed,
    ) -> io::Result<(Self, bool)> {
        let (boot, metadata, last) = match &order.new {
            Some(new) => {
                let metadata = Metadata::of_bytes(new.metadata.as_deref().unwrap_or_default());
                let metadata = metadata.map_err(io::Error::other)?;
                (Boot { metadata: None, ..Boot::clone(new) }, metadata, RunNo(0))
            }
            None => {
                let (boot, metadata) = self.boot_of_fork(session, directory, order);
                (boot, Metadata { name, ..metadata }, self.session.last_begun())
            }
        };
        // The fork exists even if its first kernel does not start.
        let boot = Boot { duty: BootPurpose::GoOn, ..boot };
        let keeper_pid = Some(std::process::id());
        let metadata = Metadata { status: SessionStatus::Active, keeper_pid, ..metadata };
        let lock = directory.lock().map_err(io::Error::other)?;
        let lock = lock.ok_or(io::ErrorKind::AlreadyExists)?;
        let state = self.state_of_fork(&seed.state, directory, &boot, order)?;
        directory.write_state(&state).map_err(io::Error::other)?;
        // Written last: without it there is no session, whenever a process dies.
        directory.write_metadata(&metadata).map_err(io::Error::other)?;
        let scratch = self.home.scratch.for_fork(session.as_str())?;
        let limits = Self::limits(&boot);
        let core = Core::forked(boot.kernel.language, limits, 0, last, &seed.known);
        let forked = Session::from(core);
        let directory = Directory::at(directory.path().to_owned());
        // The fork shares the files and their sandbox. If it has to go on alone later, it
        // finds the layer by this name.
        if self.home.confined.is_some() {
            let layer = self.home.directory.path().join(LAYER);
            let layer = std::fs::canonicalize(&layer).unwrap_or(layer);
            std::os::unix::fs::symlink(layer, directory.path().join(LAYER))?;
        }
        let confined = self.home.confined.clone();
        let mut child =
            Self::assemble(boot, directory, lock, metadata, (scratch, confined), forked)?;
        child.begin_listening()?;
        child.lifecycle = Lifecycle::Serving;
        child.session.changed(child.now());
        child.family.parent = Some(self.home.boot.session.clone());
        let is_expected = seed.known.iter().any(|(_, origin)| matches!(origin, Origin::Image(_)));
        child.family.is_expected = is_expected;
        Ok((child, is_expected))
    }

    /// Returns the boot parameters and the metadata of a fork.
    fn boot_of_fork(
        &self,
        session: &SessionId,
        directory: &Directory,
        order: &ForkOrder,
    ) -> (Boot, Metadata) {
        let work_dir = match order.files {
            ForkFiles::Share => self.home.boot.work_dir.clone(),
            ForkFiles::Copy => directory.path().join(WORKSPACE),
        };
        let metadata = Metadata {
            session_id: session.clone(),
            created_at: timestamp(),
            last_executed_at: None,
            work_dir: work_dir.clone(),
            workspace: None,
            forked_from: Some(ForkedFrom {
                session_id: self.home.boot.session.clone(),
                as_of_run: self.session.last_begun(),
            }),
            durable: self.records.metadata.durable.as_ref().map(Durable::afresh),
            ..self.records.metadata.clone()
        };
        let boot = Boot {
            session: session.clone(),
            directory: directory.path().to_owned(),
            work_dir,
            ..self.home.boot.clone()
        };
        (boot, metadata)
    }

    /// Returns the written state with the fork's own id, files and directory.
    fn state_of_fork(
        &self,
        state: &SavedState,
        directory: &Directory,
        boot: &Boot,
        order: &ForkOrder,
    ) -> io::Result<SavedState> {
        let mut state = state.clone();
        for saved in state.kernels.values_mut() {
            if let Some(name) = &mut saved.dump {
                *name = self.link_dump(name, directory).map_err(io::Error::other)?;
            }
            let there = saved.view.get("working_dir").and_then(|at| at.as_str());
            let there = there.and_then(|at| self.moved(Path::new(at), boot, order));
            if let Some(there) = &there {
                saved.view.insert("working_dir".into(), there.display().to_string().into());
            }
            if let Some(restore) = &mut saved.restore {
                restore.push_str(&format!("\nexport {MARKER}='{}'", boot.session));
                if let Some(there) = there {
                    let there = quoted(&there.display().to_string());
                    restore.push_str(&format!("\n\\builtin cd -- {there}"));
                }
                for (name, value) in variables(order).filter(|(name, _)| is_shell_name(name)) {
                    restore.push_str(&format!("\nexport {name}={}", quoted(value)));
                }
            }
        }
        Ok(state)
    }

    /// Translates a directory of the workspace for a fork that has its own. A new session
    /// starts in its own directory, wherever the original is.
    fn moved(&self, path: &Path, boot: &Boot, order: &ForkOrder) -> Option<PathBuf> {
        if order.new.is_some() {
            return Some(boot.work_dir.clone());
        }
        if boot.work_dir == self.home.boot.work_dir {
            return None;
        }
        let inside = path.strip_prefix(&self.home.boot.work_dir).ok()?;
        Some(boot.work_dir.join(inside))
    }

    /// Has the processes copied that the fork gets as a whole.
    fn copy_kernels(&mut self, child: &mut Self, order: &ForkOrder) -> io::Result<()> {
        let copied: Vec<Language> =
            self.kernels.live.keys().copied().filter(|l| *l == Language::Python).collect();
        for language in copied {
            let epoch = child.session.epoch(language).unwrap_or_default();
            let directory = child.expect(language, Purpose::First(epoch))?;
            let cwd = self.pid(language).and_then(processes::directory);
            let cwd = cwd.and_then(|cwd| self.moved(&cwd, &child.home.boot, order));
            let env = variables(order).collect();
            let session = child.home.boot.session.as_str();
            let kind = Kind::Fork { session, cwd: cwd.as_deref(), env: &env };
            self.copy(language, &Copy { directory: &directory, kind })?;
        }
        Ok(())
    }

    /// In a fork: reports that one of its kernels is up, or failed.
    pub(super) fn report_fork(
        &mut self,
        language: Language,
        outcome: Result<Vec<LeftBehind>, String>,
    ) {
        let family = &mut self.family;
        let Some(parent) = family.parent.clone().filter(|_| family.is_expected) else {
            return;
        };
        let outcome = outcome.map_err(|error| {
            Failure::in_words(Code::ForkFailed, format!("{language} was not forked: {error}"))
        });
        let child = self.home.boot.session.clone();
        family.is_expected = false;
        family.fork_outcome = Some(ForkOutcome { parent, child, outcome });
    }
}

/// Returns the variables that a new session sets.
fn variables(order: &ForkOrder) -> impl Iterator<Item = (&str, &str)> {
    let env = order.new.iter().flat_map(|new| &new.env);
    env.map(|(name, value)| (name.as_str(), value.as_str()))
}

/// Whether a shell can assign the variable. Other variables can only be inherited, which
/// a new process does anyway.
fn is_shell_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Removes the directories of forks that are given up.
fn discard(planned: &[(SessionId, Directory)]) {
    for (_, directory) in planned {
        let _ = directory.remove();
    }
}
