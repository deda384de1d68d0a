//! Taking on what operations ask for, and checking that they may.

use super::kernels::Phase;
use super::operations::{Job, Rewound};
use super::{Checked, World};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use sessile_protocol::{Code, Failure, Language};
use sessile_session::operations::{Done, ImageId, Order, RequestId, Task};

impl World {
    pub(super) fn task(&mut self, task: Task) -> Checked {
        match task {
            Task::Answer { request, outcome } => self.answer_request(request, &outcome),
            Task::AnswerWritten { request, done } => self.answer_request(request, &Ok(done)),
            Task::Capture { language, as_of } => {
                let process = self.process(language);
                prop_assert_eq!(process.phase, Phase::Idle, "captured under a run");
                prop_assert_eq!(as_of, process.holds, "a capture under a false name");
                process.captures.push(as_of);
                self.desk.jobs.push(Job::Capture(language, as_of));
                Ok(())
            }
            Task::Copy { image, language } => {
                prop_assert_eq!(language, Language::Python);
                self.new_image(image, language)?;
                self.desk.jobs.push(Job::Image(image));
                Ok(())
            }
            Task::Dump { image, language } => {
                prop_assert_eq!(language, Language::Node);
                self.new_image(image, language)?;
                self.desk.jobs.push(Job::Image(image));
                Ok(())
            }
            Task::Keep { image, language, as_of } => {
                prop_assert!(language.is_shell());
                prop_assert_eq!(self.process(language).holds, as_of);
                self.new_image(image, language)
            }
            Task::Release { image } => {
                prop_assert!(self.desk.images.remove(&image), "{image:?} is let go of twice");
                self.desk.processes.remove(&image);
                self.desk.jobs.retain(|job| *job != Job::Image(image));
                Ok(())
            }
            Task::BringUp { copy, language, image } => {
                prop_assert!(self.desk.processes.contains(&image), "{image:?} is no process");
                self.desk.copies.insert(copy, (language, false));
                self.desk.jobs.push(Job::BringUp(copy));
                Ok(())
            }
            Task::Abandon { copies } => {
                for copy in copies {
                    self.desk.copies.remove(&copy);
                    self.desk.jobs.retain(|job| *job != Job::BringUp(copy));
                }
                Ok(())
            }
            Task::Mark { point } => {
                let point = self.session.operations().timeline().point(point);
                let before = point.and_then(|point| point.name.strip_prefix("before-"));
                let run = before.and_then(|name| name.split('-').next()?.parse().ok());
                self.desk.marked.extend(run.map(sessile_protocol::RunNo));
                Ok(())
            }
            Task::TakeFiles { files } => {
                self.desk.jobs.push(Job::Take(files));
                Ok(())
            }
            Task::PutFiles { files, to, before } => {
                prop_assert!(self.desk.trees.contains_key(&before), "nothing to go back to");
                let Some(content) = self.desk.trees.get(&to).copied() else {
                    return Err(TestCaseError::fail(format!("{to:?} was never taken")));
                };
                let now = self.desk.workspace;
                self.desk.rewind.files.get_or_insert((now, content));
                self.desk.jobs.push(Job::Put { files, to });
                Ok(())
            }
            Task::SweepFiles { keep } => {
                let taken = self.desk.jobs.iter().any(|job| matches!(job, Job::Put { .. }));
                prop_assert!(!taken, "files are swept while some are put back");
                self.desk.trees.retain(|files, _| keep.contains(files));
                Ok(())
            }
            Task::WriteJournal { .. } => {
                self.desk.jobs.push(Job::WriteJournal);
                Ok(())
            }
            Task::WriteStates { plan, .. } => {
                self.desk.rewind.plan = plan;
                self.desk.jobs.push(Job::WriteStates);
                Ok(())
            }
            Task::WriteTimeline { request: Some(request) } => {
                self.desk.jobs.push(Job::WriteTimeline(request));
                Ok(())
            }
            Task::RecordRewind { run, .. } => {
                prop_assert_eq!(run, self.last_run.next(), "a rewind has the next number");
                self.last_run = run;
                Ok(())
            }
            Task::PlanForks { request, order, .. } => {
                self.desk.jobs.push(Job::Plan { request, count: order.count });
                Ok(())
            }
            Task::MakeForks { request, .. } => {
                let count = match self.desk.requests.get(&request) {
                    Some(Order::Fork(order)) => order.count,
                    Some(Order::Checkpoint(_) | Order::Rewind(_) | Order::Drop(_)) | None => 1,
                };
                self.desk.jobs.push(Job::Make { request, count });
                Ok(())
            }
            Task::GatherSave { save, target, kernels } => self.gather_save(save, target, kernels),
            Task::WriteSave { save } => self.write_save(save),
            Task::ReleaseSave { save } => self.release_save(save),
            Task::RecordSave { save, place, outcome } => self.record_save(save, place, &outcome),
            Task::Upload { save } => self.upload(save),
            Task::CancelUpload => self.cancel_upload(),
            Task::LookAtStore => self.look_at_store(),
            Task::CancelLook => self.cancel_look(),
            Task::RecordMove { .. } => {
                // It ends here.
                self.desk.closing_asked();
                Ok(())
            }
            Task::WriteTimeline { request: None }
            | Task::NoteTimeline
            | Task::RemoveJournal
            | Task::EndForks { .. }
            | Task::Tell { .. } => Ok(()),
        }
    }

    fn new_image(&mut self, image: ImageId, language: Language) -> Checked {
        let phase = self.process(language).phase;
        prop_assert_eq!(phase, Phase::Idle, "an image of {} under a run", language);
        prop_assert!(self.desk.images.insert(image), "{image:?} is made twice");
        Ok(())
    }

    fn answer_request(&mut self, request: RequestId, outcome: &Result<Done, Failure>) -> Checked {
        if self.answer_save(request, outcome)? {
            return Ok(());
        }
        let Some(order) = self.desk.requests.remove(&request) else {
            return Err(TestCaseError::fail(format!("{request:?} is answered twice, or unasked")));
        };
        if let Order::Rewind(_) = order {
            if outcome.is_ok() {
                self.desk.saves.changed();
            }
            let rewind = std::mem::take(&mut self.desk.rewind);
            self.check_rewind(&rewind, outcome)?;
            // Nothing of one that is over goes on.
            let jobs = &mut self.desk.jobs;
            jobs.retain(|job| {
                !matches!(job, Job::WriteJournal | Job::WriteStates | Job::Put { .. })
            });
        }
        Ok(())
    }

    fn check_rewind(&self, rewind: &Rewound, outcome: &Result<Done, Failure>) -> Checked {
        let Rewound { files, is_torn, has_replaced, .. } = *rewind;
        match outcome {
            Ok(_) => {
                if let (Some((_, content)), false) = (files, is_torn) {
                    prop_assert_eq!(self.desk.workspace, content, "the files are others");
                }
            }
            // Everything ends, or begins anew.
            Err(failure) if failure.code == Code::Ending => {}
            Err(failure) => {
                prop_assert!(!has_replaced, "replaced, and then {failure:?}");
                if let (Some((before, _)), false) = (files, is_torn) {
                    prop_assert_eq!(self.desk.workspace, before, "changed, and then {:?}", failure);
                }
            }
        }
        Ok(())
    }
}
