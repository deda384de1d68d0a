//! Operations on a session as a whole: forks, checkpoints, rewinds, saves, and the
//! automatic checkpoint before each run.
//!
//! ```text
//!  Asked ─► queue ─► Gathering ─┬─► Forking       Planning ─► Making ─► ComingUp ─────┐
//!            │       (captures, ├─► Checkpointing Images and files ─► Writing ────────┤
//!            │        dumps)    └─► Rewinding     BringingUp ─► TakingFiles ─►        │
//!            │                       WritingJournal ─► PuttingFiles ─► WritingStates  │
//!            │                        ─► Settling ────────────────────────────────────┤
//!            └── refused, or the asker has left ─────────────────────────────────► Answer
//! ```
//!
//! - One operation at a time, and never during a run: an operation begins when no run is
//!   active and no kernel is starting, and no run begins until the queue is empty.
//! - A rewind brings up all processes that it needs, then puts the files back, and only
//!   then replaces the kernels. If anything fails before that, the session stays as it was;
//!   files that were put back are taken back (`TakingBack`).
//! - Each request gets exactly one [`Task::Answer`].
//! - An image lives as long as a checkpoint needs it (`images`, `checkpoints`).
//! - Saves are separate: they only need a quiet moment, and runs continue beside them
//!   (`saving`, `durable`).
//! - Every wait has a deadline, or ends with an event that is certain to come: the end of a
//!   run, of a kernel's start, or of a process that works on the files.
//!
//! The driver gets [`Task`]s and returns their outcomes as [`Event`]s. The contents of an
//! image or a tree of files belong to the driver; here they are numbers.

mod checkpointing;
mod checkpoints;
mod durable;
mod event;
mod forking;
mod gathering;
mod images;
mod ownership;
mod preparing;
mod queue;
mod rewinding;
mod saving;
mod task;

use crate::closing::Close;
use crate::core::Core;
use crate::effect::{Effect, Tick};
use crate::timeline::{PointId, Timeline};
use checkpoints::Checkpoints;
pub use checkpoints::{Checkpoint, Description, EarlierCheckpoint, EarlierKernel, Files, Recalled};
pub(crate) use durable::Durable;
pub use durable::InStore;
pub use event::{Copies, Event, NotStored, Order, Part, PutFailure, SaveOrder, Saved};
pub use images::{Form, Image, ImageMethod};
use preparing::Preparing;
use queue::Current;
use saving::Saves;
use sessile_protocol::{Auto, Failure};
use std::collections::VecDeque;
pub use task::{Done, KernelStart, Place, Target, Task};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    };
}

number!(
    /// Identifies a request, and the client to answer; given by the driver.
    RequestId
);
number!(
    /// Identifies the state of a kernel at some time.
    ImageId
);
number!(
    /// Identifies a process that is to replace a kernel.
    CopyId
);
number!(
    /// Identifies a job on the workspace's files, and the files that it has taken.
    FilesId
);

number!(
    /// Identifies a save, and its file for a store.
    SaveId
);

/// How long a copy of a process may take; large processes need some time.
const COPY_PATIENCE: Tick = 20_000;

/// Workspaces may be large, and disks slow.
const FILES_PATIENCE: Tick = 3_600_000;

#[derive(Debug)]
pub struct Operations {
    auto: Option<Auto>,
    /// Requests that have not begun.
    queue: VecDeque<(RequestId, Order)>,
    current: Option<Current>,
    /// Runs that wait for their checkpoints.
    preparing: Vec<Preparing>,
    pub(crate) checkpoints: Checkpoints,
    saves: Saves,
    /// Requested while files were being put back, which must not stop halfway.
    close: Option<Close>,
    last_copy: u64,
}

/// What operations act on, and the effects that they cause.
pub(crate) struct Context<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) now: Tick,
    pub(crate) out: Vec<Effect>,
}

impl Context<'_> {
    fn task(&mut self, task: Task) {
        self.out.push(Effect::Operate(task));
    }

    fn answer(&mut self, request: RequestId, outcome: Result<Done, Failure>) {
        self.task(Task::Answer { request, outcome });
    }
}

impl Operations {
    pub(crate) fn new(auto: Option<Auto>) -> Self {
        Self {
            auto,
            queue: VecDeque::new(),
            current: None,
            preparing: Vec::new(),
            checkpoints: Checkpoints::default(),
            saves: Saves::default(),
            close: None,
            last_copy: 0,
        }
    }

    // Queries of the driver.

    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        self.checkpoints.timeline()
    }

    #[must_use]
    pub fn checkpoint(&self, point: PointId) -> Option<&Checkpoint> {
        self.checkpoints.get(point)
    }

    #[must_use]
    pub fn image(&self, image: ImageId) -> Option<&Image> {
        self.checkpoints.images().get(image)
    }

    /// Returns all images.
    pub fn images(&self) -> impl Iterator<Item = (ImageId, &Image)> {
        self.checkpoints.images().iter()
    }

    /// Returns the contents of a checkpoint.
    #[must_use]
    pub fn describe(&self, point: PointId) -> Option<Description> {
        self.checkpoints.describe(point)
    }

    /// Returns whether an operation is in progress.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    /// Returns whether an operation is in progress or queued.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.current.is_some() || !self.queue.is_empty()
    }

    /// Returns whether a request is queued.
    #[must_use]
    pub fn is_waiting(&self, request: RequestId) -> bool {
        self.queue.iter().any(|(waiting, _)| *waiting == request)
    }

    /// Returns whether an image is needed: by a checkpoint, as the newest one of a session
    /// with automatic checkpoints, or by an operation in progress.
    #[must_use]
    pub fn needs(&self, image: ImageId) -> bool {
        self.checkpoints.needs(image, self.auto.is_some(), self.images_in_use())
    }

    /// Returns when the next wait ends.
    #[must_use]
    pub fn due(&self) -> Option<Tick> {
        let current = self.current.as_ref().and_then(|current| current.due);
        self.preparing.iter().filter_map(Preparing::due).chain(current).min()
    }

    /// Returns when a save is given up or due, or the store is to be asked.
    pub(crate) fn save_due(&self, core: &Core) -> Option<Tick> {
        self.saves.due(core).into_iter().chain(self.saves.look_due(core)).min()
    }

    // Used by the session.

    /// Looks at an effect of the kernels on its way to the driver.
    pub(crate) fn observe(&mut self, effect: &Effect, context: &mut Context<'_>) {
        match effect {
            Effect::Begin { run, .. } => self.checkpoints.ran(*run),
            Effect::Capture { language, .. } => self.prepare_ahead(*language, context),
            Effect::Complete { .. } => self.changed(context.now),
            Effect::Teardown(_) => self.saves.cancel(context),
            Effect::Forget => {
                self.clear(context);
                self.changed(context.now);
            }
            Effect::Finished(_) => self.clear(context),
            Effect::Launch { .. }
            | Effect::Discard { .. }
            | Effect::Press { .. }
            | Effect::Listen { .. }
            | Effect::LookForLife
            | Effect::Abandon { .. }
            | Effect::Cancel { .. }
            | Effect::Remember { .. }
            | Effect::Operate(_) => {}
        }
    }

    /// Returns whether [`Operations::advance`] has nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_active() && self.auto.is_none() && self.saves.is_idle()
    }

    /// Continues whatever can continue.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) {
        self.look(context);
        self.prepare_runs(context);
        self.advance_queue(context);
        self.saves.advance_saves(context);
    }

    /// Removes everything, after a reset or at the end.
    fn clear(&mut self, context: &mut Context<'_>) {
        self.preparing.clear();
        self.checkpoints.clear(context);
    }

    fn next_copy(&mut self) -> CopyId {
        self.last_copy += 1;
        CopyId(self.last_copy)
    }
}
