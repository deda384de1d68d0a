//! The queue of operations: one after the other, from the request to its answer.

use super::checkpointing::Checkpointing;
use super::durable::OwnershipOutcome;
use super::forking::Forking;
use super::gathering::Gathering;
use super::rewinding::Rewinding;
use super::{Context, Done, Event, ImageId, NotStored, Operations, Order, RequestId, Task};
use crate::closing::{Close, Ending};
use crate::effect::Tick;
use crate::input::Input;
use sessile_protocol::{Code, DropCheckpoints, Failure, Language, RunNo};

/// The operation in progress.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) request: RequestId,
    pub(crate) stage: Stage,
    /// Deadline: then it continues with what it has, or fails.
    pub(crate) due: Option<Tick>,
}

#[derive(Debug)]
pub(crate) enum Stage {
    Gathering(Gathering),
    Forking(Forking),
    Checkpointing(Checkpointing),
    Rewinding(Box<Rewinding>),
}

/// How long a stage may take from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience(pub(crate) Tick);

/// The result of a stage.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The stage waits for an event.
    Waiting(Stage, Patience),
    Done(Result<Done, Failure>),
}

impl Progress {
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Done(Err(failure))
    }
}

impl Order {
    fn waits(&self) -> bool {
        match self {
            Self::Fork(order) => order.wait,
            Self::Checkpoint(new) => new.wait,
            Self::Rewind(rewind) => rewind.wait,
            Self::Drop(_) => true,
        }
    }
}

impl Operations {
    /// Handles an event.
    pub(crate) fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        let images = self.checkpoints.images_mut();
        match event {
            Event::Asked { request, order: Order::Drop(which) } => {
                self.drop_points(request, &which, context);
            }
            Event::Asked { request, order } => self.ask(request, order, context),
            Event::SaveAsked { request, order } => self.saves.ask(request, order, context),
            Event::ClientGone { request } => {
                self.leave(request, context);
                self.saves.leave(request, context);
            }
            Event::Captured { language, as_of } => images.captured(language, as_of),
            Event::NotCaptured { language } => images.not_captured(language, context),
            Event::Described { language } => self.described(language),
            Event::KernelGone { language, epoch, copies } => {
                images.kernel_gone(language, epoch, copies, context);
                self.described(language);
                self.saves.kernel_gone(language, epoch, context);
            }
            Event::ImageReady { image, left, is_restless } => {
                images.ready(image, left, is_restless);
            }
            Event::ImageLost { image, why } => images.lost(image, why, context),
            Event::FilesTaken { files, view } => self.files_taken(files, Ok(view), context),
            Event::FilesNotTaken { files, failure } => {
                self.files_taken(files, Err(failure), context);
            }
            Event::CopyUp { copy } => self.update_rewind(|rewinding| rewinding.copy_up(copy)),
            Event::CopyLost { copy, why } => {
                self.update_rewind(|rewinding| rewinding.copy_lost(copy, why));
            }
            Event::FilesPut { files, restored } => {
                self.update_rewind(|rewinding| rewinding.files_put(files, Ok(restored)));
            }
            Event::FilesNotPut { files, failure } => {
                self.update_rewind(|rewinding| rewinding.files_put(files, Err(failure)));
            }
            Event::JournalWritten { outcome } => {
                self.update_rewind(|rewinding| rewinding.journal_written(outcome));
            }
            Event::StatesWritten { outcome } => {
                self.update_rewind(|rewinding| rewinding.states_written(outcome));
            }
            Event::TimelineWritten { request, outcome } => {
                if let Some(Current { request: of, stage: Stage::Checkpointing(stage), .. }) =
                    &mut self.current
                    && *of == request
                {
                    stage.timeline_written(outcome);
                }
            }
            Event::ForksPlanned { request, outcome } => {
                self.update_fork(Some(request), |forking| forking.planned(outcome));
            }
            Event::ForksMade { request, expected, failure } => {
                self.update_fork(Some(request), |forking| forking.made(expected, failure));
            }
            Event::ForkUp { fork, outcome } => {
                self.update_fork(None, |forking| forking.fork_up(&fork, outcome));
            }
            Event::SaveGathered { save, language, part } => {
                self.saves.gathered(save, language, part);
            }
            Event::SaveFailed { save, failure } => self.saves.failed(save, failure, context),
            Event::SaveWritten { save, saved } => self.saves.written(save, saved, context),
            Event::Uploaded { save, outcome } => {
                let durable = self.saves.durable.as_mut();
                if durable.is_some_and(|durable| !durable.uploaded(save, outcome, context)) {
                    self.close(Close::End(Ending::Asked), context);
                }
            }
            Event::Looked { outcome } => self.looked(outcome, context),
        }
    }

    /// Holds a run that is about to come, if it has to wait for the store's answer that
    /// this machine still owns the session.
    pub(crate) fn before_run(&mut self, context: &mut Context<'_>) {
        let durable = self.saves.durable.as_mut().filter(|_| context.core.is_open());
        if durable.is_some_and(|durable| durable.before_run(context)) {
            context.core.hold();
        }
    }

    /// Asks the store if it is time to, and ends the waiting of runs when it is too long.
    pub(crate) fn look(&mut self, context: &mut Context<'_>) {
        let durable = self.saves.durable.as_mut().filter(|_| context.core.is_open());
        if durable.is_some_and(|durable| durable.look(context)) {
            self.release_unless_active(context);
        }
    }

    fn looked(&mut self, outcome: Result<(), NotStored>, context: &mut Context<'_>) {
        let Some(durable) = &mut self.saves.durable else { return };
        match durable.looked(outcome, context) {
            OwnershipOutcome::GoesOn => {}
            OwnershipOutcome::RunsWaited => self.release_unless_active(context),
            OwnershipOutcome::Moved => self.close(Close::End(Ending::Asked), context),
        }
    }

    /// Releases runs, unless an operation holds them: it releases them itself.
    fn release_unless_active(&mut self, context: &mut Context<'_>) {
        if context.core.is_open() && !self.is_active() {
            self.release(context);
        }
    }

    fn update_rewind(&mut self, update: impl FnOnce(&mut Rewinding)) {
        if let Some(Current { stage: Stage::Rewinding(rewinding), .. }) = &mut self.current {
            update(rewinding);
        }
    }

    fn update_fork(&mut self, of: Option<RequestId>, update: impl FnOnce(&mut Forking)) {
        if let Some(Current { request, stage: Stage::Forking(forking), .. }) = &mut self.current
            && of.is_none_or(|of| of == *request)
        {
            update(forking);
        }
    }

    /// Records that a kernel has written its state, or will not.
    fn described(&mut self, language: Language) {
        if let Some(Current { stage: Stage::Gathering(gathering), .. }) = &mut self.current {
            gathering.missing.retain(|other| *other != language);
        }
    }

    fn ask(&mut self, request: RequestId, order: Order, context: &mut Context<'_>) {
        let refusal = match context.core.busy_with() {
            _ if !context.core.is_open() => Some(ending()),
            Some(run) if !order.waits() => Some(busy(run)),
            Some(_) | None => None,
        };
        if let Some(failure) = refusal {
            return context.answer(request, Err(failure));
        }
        self.queue.push_back((request, order));
        context.core.hold();
    }

    fn leave(&mut self, request: RequestId, context: &mut Context<'_>) {
        let before = self.queue.len();
        self.queue.retain(|(other, _)| *other != request);
        if self.queue.len() < before && !self.is_active() {
            self.release(context);
        }
    }

    fn release(&mut self, context: &mut Context<'_>) {
        let effects = context.core.release(context.now);
        context.out.extend(effects);
    }

    pub(crate) fn advance_queue(&mut self, context: &mut Context<'_>) {
        loop {
            let Some(Current { request, stage, mut due }) = self.current.take() else {
                if !self.begin_next(context) {
                    return;
                }
                continue;
            };
            let now = context.now;
            let is_over = due.is_some_and(|due| due <= now);
            let progress = match stage {
                Stage::Gathering(gathering) if is_over || self.is_gathered(&gathering) => {
                    due = None;
                    self.gathered(request, gathering, context)
                }
                stage @ Stage::Gathering(_) => {
                    let left = due.map_or(0, |due| due - now);
                    Progress::Waiting(stage, Patience(left))
                }
                Stage::Forking(forking) => self.advance_fork(request, forking, is_over, context),
                Stage::Checkpointing(checkpointing) => {
                    self.advance_checkpoint(request, checkpointing, is_over, context)
                }
                Stage::Rewinding(rewinding) => self.advance_rewind(*rewinding, is_over, context),
            };
            match progress {
                Progress::Waiting(stage, Patience(patience)) => {
                    // A stage that continues past its deadline gets a new one.
                    let later = now.saturating_add(patience);
                    let due = due.filter(|due| *due > now).map_or(later, |due| due.min(later));
                    self.current = Some(Current { request, stage, due: Some(due) });
                    return;
                }
                Progress::Done(outcome) => self.done(request, outcome, context),
            }
        }
    }

    fn done(
        &mut self,
        request: RequestId,
        outcome: Result<Done, Failure>,
        context: &mut Context<'_>,
    ) {
        self.release_images(context);
        if let Ok(Done::Rewound(_)) = outcome {
            self.changed(context.now);
        }
        context.answer(request, outcome);
        if let Some(why) = self.close.take() {
            self.cancel(context);
            let effects = context.core.step(Input::Close(why), context.now);
            context.out.extend(effects);
        } else if self.queue.is_empty() {
            self.release(context);
        }
    }

    /// Begins the next request, if there is one and the session is settled.
    fn begin_next(&mut self, context: &mut Context<'_>) -> bool {
        if self.queue.is_empty() || !context.core.is_settled() {
            return false;
        }
        let Some((request, order)) = self.queue.pop_front() else {
            return false;
        };
        let (gathering, Patience(patience)) = self.gather(order, context);
        let (stage, due) = (Stage::Gathering(gathering), Some(context.now + patience));
        self.current = Some(Current { request, stage, due });
        true
    }

    fn gathered(
        &mut self,
        request: RequestId,
        gathering: Gathering,
        context: &mut Context<'_>,
    ) -> Progress {
        let Gathering { order, images, missing: _ } = gathering;
        match order {
            Order::Fork(order) => self.begin_forking(request, order, images, context),
            Order::Checkpoint(new) => self.begin_checkpointing(request, new, context),
            Order::Rewind(rewind) => self.begin_rewinding(&rewind, context),
            // Never queued.
            Order::Drop(_) => Progress::Done(Ok(Done::Dropped(Vec::new()))),
        }
    }

    /// Returns the images that the operation uses, whether or not a checkpoint needs them.
    pub(crate) fn images_in_use(&self) -> &[ImageId] {
        match self.current.as_ref().map(|current| &current.stage) {
            Some(Stage::Gathering(gathering)) => &gathering.images,
            Some(Stage::Forking(forking)) => forking.images(),
            Some(Stage::Checkpointing(_) | Stage::Rewinding(_)) | None => &[],
        }
    }

    /// Releases images and files that nothing needs.
    pub(crate) fn release_images(&mut self, context: &mut Context<'_>) {
        let in_use = self.images_in_use().to_vec();
        self.checkpoints.release_images(self.auto.is_some(), &in_use, context);
        if !self.needs_checkpoints() {
            self.checkpoints.sweep(false, context);
        }
    }

    /// Returns whether the operation in progress needs checkpoints to stay.
    fn needs_checkpoints(&self) -> bool {
        match self.current.as_ref().map(|current| &current.stage) {
            Some(Stage::Rewinding(_) | Stage::Checkpointing(_)) => true,
            Some(Stage::Gathering(_) | Stage::Forking(_)) | None => false,
        }
    }

    /// Returns whether the files of the workspace are being replaced.
    fn changes_files(&self) -> bool {
        match self.current.as_ref().map(|current| &current.stage) {
            Some(Stage::Rewinding(rewinding)) => rewinding.changes_files(),
            Some(Stage::Gathering(_) | Stage::Forking(_) | Stage::Checkpointing(_)) | None => false,
        }
    }

    /// Ends or resets the session: now, or when the files are consistent again.
    pub(crate) fn close(&mut self, why: Close, context: &mut Context<'_>) {
        if context.core.is_open() && self.changes_files() {
            return self.close_later(why);
        }
        if context.core.is_open() {
            self.cancel(context);
        }
        let effects = context.core.step(Input::Close(why), context.now);
        context.out.extend(effects);
    }

    fn close_later(&mut self, why: Close) {
        self.close = match (self.close, why) {
            // An end replaces a reset, and keeps the reason that came first.
            (Some(end @ Close::End(_)), Close::End(_) | Close::Reset) => Some(end),
            (Some(Close::Reset) | None, why) => Some(why),
        };
    }

    /// Cancels all operations, because the session ends or is reset.
    fn cancel(&mut self, context: &mut Context<'_>) {
        let mut gone: Vec<RequestId> = Vec::new();
        if let Some(Current { request, stage, .. }) = self.current.take() {
            gone.push(request);
            match stage {
                Stage::Forking(_) => context.task(Task::EndForks { request }),
                Stage::Rewinding(rewinding) => rewinding.abandon(context),
                Stage::Gathering(_) | Stage::Checkpointing(_) => {}
            }
        }
        gone.extend(self.queue.drain(..).map(|(request, _)| request));
        for request in gone {
            let message = "the session was ended or reset before it was done";
            context.answer(request, Err(Failure::new(Code::Ending, message)));
        }
        self.release_images(context);
        context.core.clear_hold();
    }

    /// Removes checkpoints at once.
    fn drop_points(
        &mut self,
        request: RequestId,
        which: &DropCheckpoints,
        context: &mut Context<'_>,
    ) {
        if let DropCheckpoints::Named(names) = which {
            let points = self.timeline().points();
            let unknown = names.iter().find(|name| points.iter().all(|p| p.name != **name));
            if let Some(name) = unknown {
                let failure =
                    self.checkpoints.explain(&crate::timeline::NoSuchPoint::Name(name.clone()));
                return context.answer(request, Err(failure));
            }
        }
        if self.needs_checkpoints() {
            let message = "a checkpoint is being taken or gone back to; try again when it is done";
            return context.answer(request, Err(Failure::new(Code::Busy, message)));
        }
        let gone = self.checkpoints.remove(|point| match which {
            DropCheckpoints::All => true,
            DropCheckpoints::Named(names) => names.contains(&point.name),
        });
        // Also the image that was made ahead of the next run.
        let in_use = self.images_in_use().to_vec();
        self.checkpoints.images_mut().forget_newest(|id| in_use.contains(&id));
        self.release_images(context);
        self.checkpoints.sweep(true, context);
        let names = gone.into_iter().map(|point| point.name).collect();
        context.task(Task::AnswerWritten { request, done: Done::Dropped(names) });
    }
}

fn ending() -> Failure {
    Failure::new(Code::Ending, "the session is ending or being reset; try again")
}

fn busy(run: RunNo) -> Failure {
    // Every surface shows it, so it names no command or flag.
    let message = format!(
        "run {run} is going; ask with `wait` to wait for it, or interrupt it and try again"
    );
    Failure::new(Code::Busy, message)
}
