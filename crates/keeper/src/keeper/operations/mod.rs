//! Forks, checkpoints, rewinds and saves: carries out the session's decisions about them.
//!
//! `sessile_session::operations` decides and orders [`Task`]s; the outcome of each goes
//! back as an [`Event`]. Nothing is decided here. The objects of tasks have a name there
//! and their content here: images of kernels (`images`, `copies`), files of the workspace
//! (`files`), points on disk (`record`), forks (`forks`), saves (`saves`).

mod bundle;
pub(super) mod checkpoints;
pub(super) mod copies;
pub(super) mod durable;
pub(super) mod files;
pub(super) mod forks;
mod gathering;
pub(super) mod images;
pub(super) mod record;
pub(super) mod rewinding;
pub(super) mod saves;

use super::Keeper;
use super::waiters::{Caller, WaiterId, WaitsFor};
use files::FileJobs;
use forks::Pending;
use images::Images;
use record::Record;
use saves::Saves;
use sessile_protocol::{Answer, Code, Failure, Language};
use sessile_session::Urgency;
use sessile_session::operations::{Done, Event, Order, RequestId, SaveOrder, Task};

/// State of a session's operations.
#[derive(Default)]
pub(super) struct Operations {
    pub(super) images: Images,
    pub(super) saves: Saves,
    /// Forks that are being made.
    forks: Option<Pending>,
    pub(super) record: Record,
    /// Work on the files of the workspace.
    files: FileJobs,
}

impl Keeper {
    /// Takes a request, which is answered once it is decided.
    pub(super) fn request_operation(
        &mut self,
        caller: Caller,
        order: Order,
    ) -> Result<Option<Answer>, Failure> {
        self.mend_directories();
        let request = self.new_request(caller);
        self.operate(Event::Asked { request, order });
        Ok(None)
    }

    /// Does the same for a save.
    pub(super) fn request_save(
        &mut self,
        caller: Caller,
        order: SaveOrder,
    ) -> Result<Option<Answer>, Failure> {
        if !order.path.is_absolute() {
            let message = "the path of a file to save to is absolute";
            return Err(Failure::new(Code::BadRequest, message));
        }
        self.mend_directories();
        let request = self.new_request(caller);
        self.operate(Event::SaveAsked { request, order });
        Ok(None)
    }

    fn new_request(&mut self, caller: Caller) -> RequestId {
        let WaiterId(number) = self.clients.waiters.add(caller, WaitsFor::Operation, None);
        RequestId(number)
    }

    /// Withdraws a request whose client is gone.
    pub(super) fn withdraw_operation(&mut self, ticket: WaiterId) {
        self.operate(Event::ClientGone { request: RequestId(ticket.0) });
    }

    pub(super) fn task(&mut self, task: Task) {
        match task {
            Task::Answer { request, outcome } => self.answer_request(request, outcome),
            Task::AnswerWritten { request, done } => {
                let written = self.write_timeline();
                self.answer_request(request, written.map(|()| done));
            }
            Task::Tell { language, note } => self.add_note(language, None, note),
            Task::Capture { language, as_of } => {
                if let Some(epoch) = self.session.epoch(language) {
                    self.capture(language, epoch, as_of, Urgency::Now);
                }
            }
            Task::Copy { image, language } => self.copy_to_image(image, language),
            Task::Dump { image, language } => self.dump_to_image(image, language),
            Task::Keep { image, language, as_of } => self.keep_state(image, language, as_of),
            Task::Release { image } => self.release_image(image),
            Task::BringUp { copy, language, image } => self.bring_up(copy, language, image),
            Task::Abandon { copies } => self.abandon_copies(&copies),
            Task::Mark { point } => self.operations.record.mark(point),
            Task::NoteTimeline => self.operations.record.is_written = false,
            Task::WriteTimeline { request } => {
                let outcome = self.write_timeline();
                if let Some(request) = request {
                    self.operate(Event::TimelineWritten { request, outcome });
                }
            }
            Task::TakeFiles { files } => self.take_files(files),
            Task::PutFiles { files, to, before } => self.put_files(files, to, before),
            Task::SweepFiles { keep } => self.sweep_files(&keep),
            Task::WriteJournal { point, plan, to, before } => {
                let outcome = self.write_journal(point, &plan, to, before);
                self.operate(Event::JournalWritten { outcome });
            }
            Task::RemoveJournal => self.remove_journal(),
            Task::WriteStates { point, plan } => {
                let outcome = self.write_states(point, &plan);
                self.operate(Event::StatesWritten { outcome });
            }
            Task::RecordRewind { run, checkpoint, undone } => {
                self.record_rewind(run, &checkpoint, &undone);
            }
            Task::PlanForks { request, order, kernels } => {
                self.plan_forks(request, order, &kernels);
            }
            Task::MakeForks { request, kernels } => self.make_forks(request, &kernels),
            Task::EndForks { request } => self.end_forks(request),
            Task::GatherSave { save, target, kernels } => self.gather_save(save, target, &kernels),
            Task::WriteSave { save } => self.write_save(save),
            Task::ReleaseSave { save } => self.release_save(save),
            Task::RecordSave { save, place, outcome } => self.record_save(save, place, outcome),
            Task::Upload { save } => self.upload(save),
            Task::CancelUpload => self.cancel_upload(),
            Task::LookAtStore => self.look_at_store(),
            Task::CancelLook => self.cancel_look(),
            Task::RecordMove { host } => self.record_move(host),
        }
    }

    fn answer_request(&mut self, request: RequestId, outcome: Result<Done, Failure>) {
        let outcome = outcome.and_then(|done| match done {
            Done::Forked => self.forked_view(request).map(|view| Answer::Forked(Box::new(view))),
            Done::Checkpointed(point) => {
                let view = self.checkpoint_view(point).ok_or_else(checkpoints::gone)?;
                Ok(Answer::Checkpointed(Box::new(view)))
            }
            Done::Rewound(view) => Ok(Answer::Rewound(view)),
            Done::Dropped(names) => Ok(Answer::Dropped { names }),
            Done::Saved(view) => Ok(Answer::Saved(view)),
        });
        self.clients.answer_ticket(WaiterId(request.0), outcome, &self.reactor);
    }

    /// Notes that a kernel has no more reports about its state.
    pub(super) fn has_described(&mut self, language: Language) {
        if self.session.operations().is_active() {
            self.operate(Event::Described { language });
        }
    }

    /// Removes all that operations have stored, after a reset or at the end. Images have
    /// been released one by one.
    pub(super) fn clear_checkpoints(&mut self) {
        self.operations.record.clear(&self.home.directory);
        self.remove_files();
    }
}
