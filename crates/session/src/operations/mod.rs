//! What is done with a session as a whole: forks, checkpoints, going back, saves,
//! and the checkpoint before each run of a session that takes them by itself.
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
//! - One at a time, and never under a run: an operation begins when no run is
//!   going and no kernel is starting, and no run begins until the queue is empty.
//! - A rewind brings up everything that it needs, then puts the files back, and
//!   only then replaces what is there. Whatever fails before that, the session is
//!   as it was; files that were put back are taken back (`TakingBack`).
//! - Each request gets exactly one [`Task::Answer`].
//! - An image lives as long as a checkpoint needs it (`images`, `checkpoints`).
//! - Saves are apart from these: they only need a quiet moment, and runs go on
//!   beside them (`saving`, `durable`).
//! - What is waited for has a deadline, or an event that is certain to come: the
//!   end of a run, of a kernel's start, or of a process that works on the files.
//!
//! [`Task`]s go to the driver, and what became of them comes back as [`Event`]s.
//! What is inside of an image or a tree of files is the driver's; here they are
//! numbers.

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
    /// Names a request, and with it whoever is to be answered; given by the driver.
    RequestId
);
number!(
    /// Names the state of a kernel at some time.
    ImageId
);
number!(
    /// Names a process that is to take the place of a kernel.
    CopyId
);
number!(
    /// Names a job on the workspace's files, and the files that it has taken.
    FilesId
);

number!(
    /// Names a save, and the file of it that goes to a store.
    SaveId
);

/// Copies of a large process take their time; beyond this there is none.
const COPY_PATIENCE: Tick = 20_000;

/// Workspaces may be large, and disks slow.
const FILES_PATIENCE: Tick = 3_600_000;

#[derive(Debug)]
pub struct Operations {
    auto: Option<Auto>,
    /// What was asked for and has not begun.
    queue: VecDeque<(RequestId, Order)>,
    current: Option<Current>,
    /// Runs that wait for their checkpoints.
    preparing: Vec<Preparing>,
    pub(crate) checkpoints: Checkpoints,
    saves: Saves,
    /// Asked for while files were put back, which is not left half done.
    close: Option<Close>,
    last_copy: u64,
}

/// What operations act upon, and where they put what is to be done.
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

    // For the driver to look at.

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

    /// All images that there are.
    pub fn images(&self) -> impl Iterator<Item = (ImageId, &Image)> {
        self.checkpoints.images().iter()
    }

    /// What a checkpoint has.
    #[must_use]
    pub fn describe(&self, point: PointId) -> Option<Description> {
        self.checkpoints.describe(point)
    }

    /// Whether an operation is under way.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    /// Whether an operation is under way or asked for.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.current.is_some() || !self.queue.is_empty()
    }

    /// Whether a request waits for its turn.
    #[must_use]
    pub fn is_waiting(&self, request: RequestId) -> bool {
        self.queue.iter().any(|(waiting, _)| *waiting == request)
    }

    /// Whether the images that no checkpoint needs are needed all the same: the
    /// newest ones of a session that takes checkpoints by itself, and those that
    /// an operation waits for.
    #[must_use]
    pub fn needs(&self, image: ImageId) -> bool {
        self.checkpoints.needs(image, self.auto.is_some(), self.images_in_use())
    }

    /// When something that is waited for is given up.
    #[must_use]
    pub fn due(&self) -> Option<Tick> {
        let current = self.current.as_ref().and_then(|current| current.due);
        self.preparing.iter().filter_map(Preparing::due).chain(current).min()
    }

    /// When a save is given up, or due, or the store is to be asked.
    pub(crate) fn save_due(&self, core: &Core) -> Option<Tick> {
        self.saves.due(core).into_iter().chain(self.saves.look_due(core)).min()
    }

    // For the session.

    /// Looks at what the kernels are about to do, on its way to the driver.
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

    /// Whether [`Operations::advance`] may have something to do.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_active() && self.auto.is_none() && self.saves.is_idle()
    }

    /// Goes on with whatever can go on.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) {
        self.look(context);
        self.prepare_runs(context);
        self.go_on(context);
        self.saves.go_on(context);
    }

    /// After a reset, or at the end: nothing of it is needed any more.
    fn clear(&mut self, context: &mut Context<'_>) {
        self.preparing.clear();
        self.checkpoints.clear(context);
    }

    fn next_copy(&mut self) -> CopyId {
        self.last_copy += 1;
        CopyId(self.last_copy)
    }
}
