//! What is done with a session as a whole: forks, checkpoints, going back.
//!
//! One at a time, and never while a run is going: no run begins until it is
//! done. Whoever does not want to wait for the runs is refused.
//!
//! ```text
//!  asked ─► waits for runs, and kernels that start ─► gathers states ─► done
//!              (no new run begins)                     (captures, copies)
//! ```

use super::Keeper;
use super::checkpoints::Checkpointing;
use super::forks::Forking;
use super::rewinding::Rewinding;
use super::waiters::{Caller, Ticket, Waiter, WaitsFor};
use super::workspace::Step;
use crate::source::ImageId;
use sessile_protocol::{
    Answer, Code, Failure, ForkOrder, Language, LeftBehind, NewCheckpoint, Rewind, RunNo,
};
use sessile_session::{Input, Refusal, Tick};
use std::collections::VecDeque;

/// A kernel that does not say what its state is within this is busy with
/// itself; the last captured state has to do.
const GATHERING_PATIENCE: Tick = 2000;

/// A dump may be gigabytes.
const DUMP_PATIENCE: Tick = 120_000;

/// Copies of a large process take their time; beyond this there is none.
const COPY_PATIENCE: Tick = 20_000;

const FILES_PATIENCE: Tick = 3_600_000;

#[derive(Debug)]
pub(super) enum OperationRequest {
    Fork(ForkOrder),
    Checkpoint(NewCheckpoint),
    Rewind(Rewind),
}

impl OperationRequest {
    fn waits(&self) -> bool {
        match self {
            Self::Fork(order) => order.wait,
            Self::Checkpoint(new) => new.wait,
            Self::Rewind(rewind) => rewind.wait,
        }
    }
}

/// What was asked of the session as a whole, and what is being done.
#[derive(Debug, Default)]
pub(super) struct Operations {
    pub(super) requests: VecDeque<(Ticket, OperationRequest)>,
    pub(super) current: Option<Operation>,
    /// What came of putting files back, and of copying them.
    pub(super) put_back: Option<Step>,
    pub(super) copied: Option<Result<Vec<LeftBehind>, Failure>>,
}

#[derive(Debug)]
pub(super) struct Operation {
    asker: Ticket,
    stage: Stage,
    /// Then it goes on with what there is.
    pub(super) due: Option<Tick>,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Kernels write their state down.
    Gathering {
        request: OperationRequest,
        missing: Vec<Language>,
        dumps: Vec<ImageId>,
    },
    Forking(Forking),
    Checkpointing(Checkpointing),
    Rewinding(Rewinding),
}

/// What became of a stage.
#[derive(Debug)]
pub(super) enum Progress {
    /// Something is missing that will be told of.
    Waiting(Stage, Tick),
    Done(Result<Answer, Failure>),
}

impl Progress {
    pub(super) fn failed(failure: Failure) -> Self {
        Self::Done(Err(failure))
    }
}

impl Keeper {
    /// Takes a request, to be answered when it is fulfilled.
    pub(super) fn request_operation(
        &mut self,
        caller: Caller,
        request: OperationRequest,
    ) -> Result<Option<Answer>, Failure> {
        if !self.session.is_open() {
            return Err(super::requests::refuse(&Refusal::Ending));
        }
        if let Some(run) = self.session.busy_with()
            && !request.waits()
        {
            return Err(busy(run));
        }
        let ticket = self.clients.waiters.add(caller, WaitsFor::Operation, None);
        self.operations.requests.push_back((ticket, request));
        self.session.hold();
        self.pump_operations();
        Ok(None)
    }

    /// Goes on with whatever can go on.
    pub(super) fn pump_operations(&mut self) {
        loop {
            let Some(Operation { asker, stage, mut due }) = self.operations.current.take() else {
                if !self.begin_operation() {
                    return;
                }
                continue;
            };
            let now = self.now();
            let is_over = due.is_some_and(|due| due <= now);
            let progress = match stage {
                Stage::Gathering { request, missing, dumps }
                    if is_over
                        || (missing.is_empty()
                            && !dumps.iter().any(|id| self.is_image_coming(*id))) =>
                {
                    due = None;
                    self.gathered(request)
                }
                stage @ Stage::Gathering { .. } => Progress::Waiting(stage, GATHERING_PATIENCE),
                Stage::Forking(forking) => self.go_on_forking(forking, is_over),
                Stage::Checkpointing(checkpointing) => {
                    self.go_on_checkpointing(checkpointing, is_over)
                }
                Stage::Rewinding(rewinding) => self.go_on_rewinding(rewinding, is_over),
            };
            match progress {
                Progress::Waiting(stage, patience) => {
                    // What goes on although its time is over has more of it.
                    let later = now + patience;
                    let due = due.filter(|due| *due > now).map_or(later, |due| due.min(later));
                    let due = Some(due);
                    self.operations.current = Some(Operation { asker, stage, due });
                    return;
                }
                Progress::Done(outcome) => {
                    self.clients.answer_ticket(asker, outcome, &self.reactor);
                    self.close_now();
                    if self.operations.requests.is_empty() {
                        let effects = self.session.release(self.now());
                        self.perform(effects);
                    }
                }
            }
        }
    }

    /// Begins with the next request, if there is one and nothing is in its way.
    fn begin_operation(&mut self) -> bool {
        if self.operations.requests.is_empty() || !self.session.is_settled() {
            return false;
        }
        let Some((asker, request)) = self.operations.requests.pop_front() else {
            return false;
        };
        let (mut missing, mut dumps, mut patience) = (Vec::new(), Vec::new(), GATHERING_PATIENCE);
        match &request {
            // What is not a process that can be copied is written down.
            OperationRequest::Fork(_) | OperationRequest::Checkpoint(_) => {
                let live = self.kernels.live.keys().copied();
                missing.extend(live.filter(|language| *language != Language::Python));
                if !missing.is_empty() {
                    self.step(Input::Inspect);
                }
                if missing.contains(&Language::Node) {
                    dumps.extend(self.image_of_kernel(Language::Node));
                    patience = DUMP_PATIENCE;
                }
            }
            // Some may have been asked for a moment ago, of kernels that go.
            OperationRequest::Rewind(_) => {
                dumps = self.coming_images();
                patience = COPY_PATIENCE;
            }
        }
        let due = Some(self.now() + patience);
        let stage = Stage::Gathering { request, missing, dumps };
        self.operations.current = Some(Operation { asker, stage, due });
        true
    }

    fn gathered(&mut self, request: OperationRequest) -> Progress {
        match request {
            OperationRequest::Fork(order) => self.begin_forking(order),
            OperationRequest::Checkpoint(new) => self.begin_checkpoint(new),
            OperationRequest::Rewind(rewind) => self.begin_rewind(&rewind),
        }
    }

    /// A kernel has written its state down, or will not.
    pub(super) fn has_described(&mut self, language: Language) {
        if let Some(Operation { stage: Stage::Gathering { missing, .. }, .. }) =
            &mut self.operations.current
        {
            missing.retain(|other| *other != language);
            self.pump_operations();
        }
    }

    pub(super) fn stage(&mut self) -> Option<&mut Stage> {
        self.operations.current.as_mut().map(|operation| &mut operation.stage)
    }

    /// Whether the workspace is neither what it was nor what it is to be.
    pub(super) fn changes_files(&self) -> bool {
        match self.operations.current.as_ref().map(|operation| &operation.stage) {
            Some(Stage::Rewinding(rewinding)) => rewinding.changes_files(),
            Some(Stage::Gathering { .. } | Stage::Forking(_) | Stage::Checkpointing(_)) | None => {
                false
            }
        }
    }

    /// Whether something is done for which checkpoints have to stay.
    pub(super) fn needs_checkpoints(&self) -> bool {
        match self.operations.current.as_ref().map(|operation| &operation.stage) {
            Some(Stage::Rewinding(_) | Stage::Checkpointing(_)) => true,
            Some(Stage::Gathering { .. } | Stage::Forking(_)) | None => false,
        }
    }

    pub(super) fn operation_due(&self) -> Option<Tick> {
        self.operations.current.as_ref().and_then(|operation| operation.due)
    }

    /// Whoever asked for this is gone: it is not done, unless it has begun.
    pub(super) fn withdraw_operation(&mut self, ticket: Ticket) {
        let before = self.operations.requests.len();
        self.operations.requests.retain(|(asker, _)| *asker != ticket);
        let is_withdrawn = self.operations.requests.len() < before;
        if is_withdrawn && self.operations.requests.is_empty() && self.operations.current.is_none()
        {
            let effects = self.session.release(self.now());
            self.perform(effects);
        }
    }

    /// What was asked for while files were put back.
    fn close_now(&mut self) {
        let later = |waiter: &Waiter| matches!(waiter.waits_for, WaitsFor::CloseLater(_));
        for waiter in self.clients.waiters.take_all(later) {
            if let WaitsFor::CloseLater(closing) = waiter.waits_for {
                let _ = self.close(waiter.caller, closing);
            }
        }
    }

    /// The session ends, or begins anew.
    pub(super) fn cancel_operations(&mut self) {
        if self.operations.current.is_none() && self.operations.requests.is_empty() {
            return;
        }
        let message = "the session was ended or reset before it was done";
        let gone = Failure::new(Code::Ending, message);
        let active = self.operations.current.take();
        if let Some(Operation { stage: Stage::Forking(forking), .. }) = &active {
            self.family.unwanted.extend(forking.abandon());
        }
        let active = active.map(|operation| operation.asker);
        let waiting =
            std::mem::take(&mut self.operations.requests).into_iter().map(|(asker, _)| asker);
        for asker in active.into_iter().chain(waiting) {
            self.clients.answer_ticket(asker, Err(gone.clone()), &self.reactor);
        }
        self.abandon_thawed();
        (self.operations.put_back, self.operations.copied) = (None, None);
        let effects = self.session.release(self.now());
        self.perform(effects);
    }

    pub(super) fn copy_patience() -> Tick {
        COPY_PATIENCE
    }

    /// Workspaces may be large, and disks slow.
    pub(super) fn files_patience() -> Tick {
        FILES_PATIENCE
    }
}

fn busy(run: RunNo) -> Failure {
    let message = format!(
        "run {run} is going; wait for it (or ask with --wait), or interrupt it, and try again"
    );
    Failure::new(Code::Busy, message)
}
