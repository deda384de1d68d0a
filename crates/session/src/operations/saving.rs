//! Saves: all kernels write their state at one moment between two runs; then the file is
//! written.
//!
//! ```text
//! Waiting ──quiet──► Gathering ──all there──► Writing ──► answered, or uploaded
//! ```
//!
//! - The kernels are free again as soon as they have their orders: later runs are not in
//!   the save, and do not wait for it.
//! - One save at a time. A client that leaves cancels its save.
//! - A durable session saves itself (`durable`). Such a save waits its turn like any other.
//! - The temporary data of a save is released exactly once, by [`Task::ReleaseSave`].

use super::durable::Durable;
use super::{Context, Done, Operations, Part, RequestId, SaveId, SaveOrder, Saved, Target, Task};
use crate::core::Core;
use crate::effect::{Epoch, Tick};
use crate::input::Input;
use sessile_protocol::{Code, Failure, Language, RunNo, SavedView};
use std::collections::{BTreeMap, VecDeque};

/// How long a kernel may take to describe itself.
const STATE_PATIENCE: Tick = 10_000;

/// The same for a dump, which may be gigabytes on a slow disk.
const DUMP_PATIENCE: Tick = 600_000;

#[derive(Debug, Default)]
pub(crate) struct Saves {
    /// The first is in progress.
    queue: VecDeque<Saving>,
    pub(super) durable: Option<Durable>,
    last: u64,
}

#[derive(Debug)]
struct Saving {
    id: SaveId,
    requester: Requester,
    phase: Phase,
}

/// The origin of a save.
#[derive(Debug)]
enum Requester {
    Client(RequestId, SaveOrder),
    /// The session is durable, and was quiet.
    Durability {
        for_store: bool,
    },
}

impl Requester {
    fn target(&self) -> Target {
        match self {
            Self::Client(_, order) => Target::File { path: order.path.clone(), files: order.files },
            Self::Durability { for_store } => Target::Here { for_store: *for_store },
        }
    }
}

#[derive(Debug)]
enum Phase {
    /// Waits for runs to end and for kernels to start.
    Waiting,
    Gathering {
        kernels: BTreeMap<Language, Gathered>,
        began: Tick,
    },
    Writing,
}

/// The parts of a kernel so far.
#[derive(Debug)]
struct Gathered {
    epoch: Epoch,
    is_described: bool,
    dump: Dump,
}

#[derive(Debug)]
enum Dump {
    Ordered,
    /// A separate process writes it, which outlives the kernel.
    Writing,
    /// The dump is there, or none will come.
    Settled,
}

impl Gathered {
    fn is_complete(&self) -> bool {
        match self.dump {
            Dump::Settled => self.is_described,
            Dump::Ordered | Dump::Writing => false,
        }
    }

    /// Returns whether the kernel process itself has work left.
    fn needs_kernel(&self) -> bool {
        match self.dump {
            Dump::Ordered => true,
            Dump::Writing | Dump::Settled => !self.is_described,
        }
    }

    fn has(&mut self, part: Part) {
        match (part, &self.dump) {
            (Part::State, _) => self.is_described = true,
            (Part::Writer, Dump::Ordered) => self.dump = Dump::Writing,
            (Part::Dump, Dump::Ordered | Dump::Writing) => self.dump = Dump::Settled,
            (Part::Writer, Dump::Writing | Dump::Settled) | (Part::Dump, Dump::Settled) => {}
        }
    }
}

impl Saving {
    /// Returns the deadline of the current phase.
    fn due(&self) -> Option<Tick> {
        match &self.phase {
            // A run's end, a kernel's start and a worker's answer are certain.
            Phase::Waiting | Phase::Writing => None,
            Phase::Gathering { kernels, began } => {
                let is_described = kernels.values().all(|kernel| kernel.is_described);
                Some(began + if is_described { DUMP_PATIENCE } else { STATE_PATIENCE })
            }
        }
    }

    /// Returns a kernel that the save waits for.
    fn missing(&self) -> Option<Language> {
        match &self.phase {
            Phase::Waiting | Phase::Writing => None,
            Phase::Gathering { kernels, .. } => {
                let missing = kernels.iter().find(|(_, kernel)| !kernel.is_complete());
                missing.map(|(language, _)| *language)
            }
        }
    }

    /// Returns whether the driver has work for it in progress.
    fn has_begun(&self) -> bool {
        match self.phase {
            Phase::Waiting => false,
            Phase::Gathering { .. } | Phase::Writing => true,
        }
    }
}

impl Saves {
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.durable.is_none()
    }

    /// Returns when a decision is due without an event.
    pub(crate) fn due(&self, core: &Core) -> Option<Tick> {
        match self.queue.front() {
            Some(saving) => saving.due(),
            None if core.is_open() && !core.is_working() => {
                self.durable.as_ref().and_then(Durable::due)
            }
            None => None,
        }
    }

    /// Returns when the store is to be asked about ownership.
    pub(crate) fn look_due(&self, core: &Core) -> Option<Tick> {
        let durable = self.durable.as_ref().filter(|_| core.is_open());
        durable.and_then(|durable| durable.look_due(core))
    }

    // Inputs.

    pub(crate) fn ask(&mut self, request: RequestId, order: SaveOrder, context: &mut Context<'_>) {
        if !context.core.is_open() {
            return context.answer(request, Err(ending()));
        }
        if !order.wait && context.core.is_working() {
            let message = "a run is going, and its state cannot be saved before it ends; wait for it, or save with --wait";
            return context.answer(request, Err(Failure::new(Code::Busy, message)));
        }
        self.add(Requester::Client(request, order));
    }

    fn add(&mut self, requester: Requester) {
        self.last += 1;
        let id = SaveId(self.last);
        self.queue.push_back(Saving { id, requester, phase: Phase::Waiting });
    }

    /// Cancels the save of a client that is gone.
    pub(crate) fn leave(&mut self, request: RequestId, context: &mut Context<'_>) {
        let is_it =
            |saving: &Saving| matches!(saving.requester, Requester::Client(of, _) if of == request);
        let at = self.queue.iter().position(is_it);
        if let Some(saving) = at.and_then(|at| self.queue.remove(at))
            && saving.has_begun()
        {
            context.task(Task::ReleaseSave { save: saving.id });
        }
    }

    pub(crate) fn gathered(&mut self, save: SaveId, language: Language, part: Part) {
        let saving = self.queue.front_mut().filter(|saving| saving.id == save);
        if let Some(Saving { phase: Phase::Gathering { kernels, .. }, .. }) = saving
            && let Some(kernel) = kernels.get_mut(&language)
        {
            kernel.has(part);
        }
    }

    /// Handles the end of a kernel: its missing parts will not come.
    pub(crate) fn kernel_gone(
        &mut self,
        language: Language,
        epoch: Epoch,
        context: &mut Context<'_>,
    ) {
        let is_missed = match self.queue.front().map(|saving| &saving.phase) {
            Some(Phase::Gathering { kernels, .. }) => kernels
                .get(&language)
                .is_some_and(|kernel| kernel.epoch == epoch && kernel.needs_kernel()),
            Some(Phase::Waiting | Phase::Writing) | None => false,
        };
        if is_missed {
            let message = format!("the {language} process ended before its state was written down");
            self.end(Err(Failure::new(Code::Storage, message)), context);
        }
    }

    /// Ends a save with a failure.
    pub(crate) fn failed(&mut self, save: SaveId, failure: Failure, context: &mut Context<'_>) {
        if self.is_under_way(save) {
            self.end(Err(failure), context);
        }
    }

    pub(crate) fn written(&mut self, save: SaveId, saved: Saved, context: &mut Context<'_>) {
        let front = self.queue.front().filter(|saving| saving.id == save);
        if front.is_some_and(|saving| matches!(saving.phase, Phase::Writing)) {
            self.end(Ok(saved), context);
        }
    }

    fn is_under_way(&self, save: SaveId) -> bool {
        self.queue.front().is_some_and(|saving| saving.id == save && saving.has_begun())
    }

    // Actions.

    /// Continues the first save as far as possible.
    pub(crate) fn advance_saves(&mut self, context: &mut Context<'_>) {
        self.begin_due(context);
        while let Some(saving) = self.queue.front_mut() {
            let is_over = saving.due().is_some_and(|due| due <= context.now);
            match &saving.phase {
                Phase::Waiting if context.core.is_quiet() => saving.phase = gather(saving, context),
                Phase::Gathering { kernels, .. } if kernels.values().all(Gathered::is_complete) => {
                    context.task(Task::WriteSave { save: saving.id });
                    saving.phase = Phase::Writing;
                }
                Phase::Gathering { .. } if is_over => {
                    let slow = saving.missing().map_or("a kernel".to_owned(), |l| l.to_string());
                    let message = format!("{slow} does not write its state down; try again");
                    self.end(Err(Failure::new(Code::Storage, message)), context);
                }
                Phase::Waiting | Phase::Gathering { .. } | Phase::Writing => return,
            }
        }
    }

    /// Begins a durable session's own save, when nothing is in its way.
    fn begin_due(&mut self, context: &Context<'_>) {
        let is_free = self.queue.is_empty() && context.core.is_open() && !context.core.is_working();
        let durable = self.durable.as_mut().filter(|_| is_free);
        let Some(durable) = durable.filter(|d| d.due().is_some_and(|due| due <= context.now))
        else {
            return;
        };
        let for_store = durable.begin(context.now);
        self.add(Requester::Durability { for_store });
    }

    /// Answers the first save, and releases its temporary data.
    fn end(&mut self, outcome: Result<Saved, Failure>, context: &mut Context<'_>) {
        let Some(saving) = self.queue.pop_front() else {
            return;
        };
        let (save, has_begun) = (saving.id, saving.has_begun());
        let release = |context: &mut Context<'_>| {
            if has_begun {
                context.task(Task::ReleaseSave { save });
            }
        };
        match saving.requester {
            Requester::Client(request, _) => {
                // When the client has the answer, no temporary data is left.
                release(context);
                context.answer(request, outcome.and_then(Saved::file).map(Done::Saved));
            }
            Requester::Durability { for_store } => {
                if let Some(durable) = &mut self.durable {
                    durable.ended(save, for_store, outcome.and_then(Saved::here), context);
                }
                release(context);
            }
        }
    }

    /// Cancels all saves, because the session ends or is reset.
    pub(crate) fn cancel(&mut self, context: &mut Context<'_>) {
        while !self.queue.is_empty() {
            self.end(Err(ending()), context);
        }
        if let Some(durable) = &mut self.durable {
            durable.cancel_upload(context);
            durable.cancel_look(context);
        }
    }
}

/// Orders the parts from all kernels.
fn gather(saving: &Saving, context: &mut Context<'_>) -> Phase {
    let there: Vec<(Language, RunNo)> = context.core.states().collect();
    let effects = context.core.step(Input::Inspect, context.now);
    context.out.extend(effects);
    let mut kernels = BTreeMap::new();
    let mut asked = Vec::new();
    for (language, as_of) in there {
        let epoch = context.core.epoch(language).unwrap_or_default();
        asked.push((language, epoch, as_of));
        let gathered = Gathered { epoch, is_described: false, dump: Dump::Ordered };
        kernels.insert(language, gathered);
    }
    let (save, target) = (saving.id, saving.requester.target());
    context.task(Task::GatherSave { save, target, kernels: asked });
    Phase::Gathering { kernels, began: context.now }
}

impl Operations {
    /// Makes the session save itself from now on.
    pub(crate) fn make_durable(&mut self, durable: Durable) {
        self.saves.durable = Some(durable);
    }

    /// Notes a change that a save includes.
    pub(crate) fn changed(&mut self, now: Tick) {
        if let Some(durable) = &mut self.saves.durable {
            durable.changed(now);
        }
    }
}

impl Saved {
    fn file(self) -> Result<Box<SavedView>, Failure> {
        match self {
            Self::File(view) => Ok(view),
            Self::Here { .. } => Err(unwritten()),
        }
    }

    /// Returns what became of the file for the store.
    fn here(self) -> Result<Option<Result<(), String>>, Failure> {
        match self {
            Self::Here { outgoing } => Ok(outgoing),
            Self::File(_) => Err(unwritten()),
        }
    }
}

fn ending() -> Failure {
    Failure::new(Code::Ending, "the session is ending or being reset; nothing was saved")
}

fn unwritten() -> Failure {
    Failure::new(Code::Storage, "the file was not written: its writer did something else")
}
