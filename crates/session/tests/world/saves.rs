//! Those who want the session saved, a session that saves itself, and a driver
//! that gathers, writes and uploads in its own time.

use super::operations::Job;
use super::{Checked, World};
use crate::world::kernels::Phase;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use sessile_protocol::{Code, Failure, Language, RunNo};
use sessile_session::Epoch;
use sessile_session::operations::{
    Done, Event, InStore, NotStored, Part, Place, RequestId, SaveId, SaveOrder, Saved, Target,
};
use std::collections::{BTreeMap, BTreeSet};

/// Something that a save needs and that has not been reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaveJob {
    Part { save: SaveId, language: Language, part: Part, by: By },
    Write(SaveId),
    Upload(SaveId),
    Look,
}

/// Who does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Kernel(Epoch),
    /// A process that outlives its kernel.
    Writer,
}

impl SaveJob {
    fn is_of(&self, save: SaveId) -> bool {
        match self {
            Self::Part { save: of, .. } | Self::Write(of) => *of == save,
            Self::Upload(_) | Self::Look => false,
        }
    }
}

/// What the driver has for saves.
#[derive(Debug, Default)]
pub(super) struct SaveDesk {
    /// Asked for and not answered.
    pub(super) asked: BTreeMap<RequestId, SaveOrder>,
    current: Option<Current>,
    /// Files to bring to the store, with the changes that they have.
    outgoing: BTreeMap<SaveId, u64>,
    is_uploading: bool,
    released: BTreeSet<SaveId>,
    last: Option<Current>,
    durable: Option<Durable>,
    /// So often something has changed that a save would have.
    changes: u64,
}

#[derive(Debug)]
struct Current {
    save: SaveId,
    target: Target,
    changes: u64,
    is_written: bool,
}

/// Up to which change a durable session is saved.
#[derive(Debug)]
struct Durable {
    here: Option<u64>,
    store: Option<u64>,
    has_store: bool,
}

impl SaveDesk {
    pub(super) fn changed(&mut self) {
        self.changes += 1;
    }

    /// Whether a durable session has come to be saved as it is.
    pub(super) fn is_saved(&self) -> bool {
        let now = Some(self.changes);
        self.durable.as_ref().is_none_or(|durable| {
            durable.here.max(Some(0)) == now && (!durable.has_store || durable.store == now)
        })
    }
}

impl World {
    pub(crate) fn durable(mut self, store: Option<InStore>) -> Self {
        if let Some(store) = store {
            self.session.make_durable(store, 0);
            let (in_store, has_store) = match store {
                InStore::None => (None, false),
                InStore::Current => (Some(0), true),
                InStore::Behind => (None, true),
            };
            self.desk.saves.durable = Some(Durable { here: None, store: in_store, has_store });
        }
        self
    }

    pub(super) fn ask_for_save(&mut self, request: RequestId, files: bool, wait: bool) -> Checked {
        let order = SaveOrder { path: format!("/save-{}", request.0).into(), files, wait };
        self.desk.saves.asked.insert(request, order.clone());
        self.operate(Event::SaveAsked { request, order })
    }

    // What it is asked to do.

    pub(super) fn gather_save(
        &mut self,
        save: SaveId,
        target: Target,
        kernels: Vec<(Language, Epoch, RunNo)>,
    ) -> Checked {
        prop_assert!(self.desk.saves.current.is_none(), "two saves at once");
        let there = self.processes.values().filter(|process| process.phase != Phase::Gone);
        prop_assert_eq!(there.count(), kernels.len(), "a kernel is not in the save");
        for (language, epoch, as_of) in kernels {
            let process = self.process(language);
            prop_assert_eq!(process.phase, Phase::Idle, "saved under a run");
            prop_assert_eq!((process.epoch, process.holds), (epoch, as_of));
            let by = By::Kernel(epoch);
            let dump = if language == Language::Python { Part::Writer } else { Part::Dump };
            for part in [Part::State, dump] {
                self.desk.jobs.push(Job::Save(SaveJob::Part { save, language, part, by }));
            }
        }
        let changes = self.desk.saves.changes;
        self.desk.saves.current = Some(Current { save, target, changes, is_written: false });
        Ok(())
    }

    pub(super) fn write_save(&mut self, save: SaveId) -> Checked {
        let current = self.desk.saves.current.as_ref().map(|current| current.save);
        prop_assert_eq!(current, Some(save), "written, but not gathered");
        let missing =
            self.desk.jobs.iter().find(
                |job| matches!(job, Job::Save(SaveJob::Part { save: of, .. }) if *of == save),
            );
        prop_assert_eq!(missing, None, "written before all is there");
        self.desk.jobs.push(Job::Save(SaveJob::Write(save)));
        Ok(())
    }

    pub(super) fn release_save(&mut self, save: SaveId) -> Checked {
        let current = self.desk.saves.current.take();
        let id = current.as_ref().map(|current| current.save);
        prop_assert_eq!(id, Some(save), "let go of, but not there");
        self.desk.saves.last = current;
        prop_assert!(self.desk.saves.released.insert(save), "{save:?} is let go of twice");
        self.desk.jobs.retain(|job| !matches!(job, Job::Save(job) if job.is_of(save)));
        Ok(())
    }

    pub(super) fn record_save(
        &mut self,
        save: SaveId,
        place: Place,
        outcome: &Result<(), String>,
    ) -> Checked {
        let saves = &mut self.desk.saves;
        let Some(durable) = &mut saves.durable else {
            return Err(TestCaseError::fail("nobody wants it to be durable"));
        };
        if outcome.is_err() {
            return Ok(());
        }
        match place {
            Place::Here => {
                let current = saves.current.as_ref().filter(|c| c.save == save && c.is_written);
                prop_assert!(current.is_some(), "saved, but not written");
                durable.here = current.map(|current| current.changes);
            }
            Place::Store => {
                let changes = saves.outgoing.remove(&save);
                prop_assert!(changes.is_some(), "stored, but not uploaded");
                durable.store = changes;
            }
        }
        Ok(())
    }

    pub(super) fn upload(&mut self, save: SaveId) -> Checked {
        let saves = &mut self.desk.saves;
        prop_assert!(!saves.is_uploading, "two uploads at once");
        let current = saves.current.as_ref().filter(|c| c.save == save && c.is_written);
        let Some(current) = current else {
            return Err(TestCaseError::fail("uploaded, but not written"));
        };
        prop_assert_eq!(&current.target, &Target::Here { for_store: true });
        saves.outgoing.insert(save, current.changes);
        saves.is_uploading = true;
        self.desk.jobs.push(Job::Save(SaveJob::Upload(save)));
        Ok(())
    }

    pub(super) fn cancel_upload(&mut self) -> Checked {
        prop_assert!(self.desk.saves.is_uploading, "there is no upload");
        self.desk.saves.is_uploading = false;
        self.desk.jobs.retain(|job| !matches!(job, Job::Save(SaveJob::Upload(_))));
        Ok(())
    }

    pub(super) fn look_at_store(&mut self) -> Checked {
        let look = Job::Save(SaveJob::Look);
        prop_assert!(!self.desk.jobs.contains(&look), "two questions at once");
        prop_assert!(!self.desk.saves.is_uploading, "the upload would tell");
        self.desk.jobs.push(look);
        Ok(())
    }

    pub(super) fn cancel_look(&mut self) -> Checked {
        let before = self.desk.jobs.len();
        self.desk.jobs.retain(|job| *job != Job::Save(SaveJob::Look));
        prop_assert!(self.desk.jobs.len() < before, "there is no question");
        Ok(())
    }

    /// True when a save was asked for by this.
    pub(super) fn answer_save(
        &mut self,
        request: RequestId,
        outcome: &Result<Done, Failure>,
    ) -> Result<bool, TestCaseError> {
        let Some(order) = self.desk.saves.asked.remove(&request) else {
            return Ok(false);
        };
        if let Ok(done) = outcome {
            prop_assert!(matches!(done, Done::Saved(_)), "{done:?} for a save");
            prop_assert!(self.desk.saves.current.is_none(), "answered while something is left");
            let last = self.desk.saves.last.as_ref().filter(|last| last.is_written);
            let wanted = Target::File { path: order.path, files: order.files };
            prop_assert_eq!(last.map(|current| &current.target), Some(&wanted));
        }
        Ok(true)
    }

    // What it reports.

    pub(super) fn save_job_done(&mut self, job: SaveJob, at: usize) -> Event {
        match job {
            SaveJob::Part { save, language, part, .. } => {
                if part == Part::Writer {
                    let (part, by) = (Part::Dump, By::Writer);
                    self.desk.jobs.push(Job::Save(SaveJob::Part { save, language, part, by }));
                }
                Event::SaveGathered { save, language, part }
            }
            SaveJob::Write(save) => {
                let saves = &mut self.desk.saves;
                let current = saves.current.as_mut().filter(|current| current.save == save);
                let target = current.map(|current| {
                    current.is_written = true;
                    current.target.clone()
                });
                let saved = match target {
                    Some(Target::Here { for_store }) => {
                        let is_full = at % 5 == 4;
                        let written =
                            if is_full { Err("no space left".to_owned()) } else { Ok(()) };
                        Saved::Here { outgoing: for_store.then_some(written) }
                    }
                    Some(Target::File { .. }) | None => Saved::File(Box::default()),
                };
                Event::SaveWritten { save, saved }
            }
            SaveJob::Upload(save) => {
                self.desk.saves.is_uploading = false;
                Event::Uploaded { save, outcome: Ok(()) }
            }
            SaveJob::Look => Event::Looked { outcome: Ok(()) },
        }
    }

    pub(super) fn save_job_fails(&mut self, job: SaveJob) -> Event {
        let failure = Failure::new(Code::Storage, "no space left on device");
        match job {
            SaveJob::Part { save, .. } | SaveJob::Write(save) => {
                Event::SaveFailed { save, failure }
            }
            SaveJob::Upload(save) => {
                self.desk.saves.is_uploading = false;
                self.desk.saves.outgoing.remove(&save);
                Event::Uploaded { save, outcome: Err(self.not_stored(failure)) }
            }
            SaveJob::Look => Event::Looked { outcome: Err(self.not_stored(failure)) },
        }
    }

    fn not_stored(&self, failure: Failure) -> NotStored {
        if self.now.is_multiple_of(4) {
            NotStored::Moved { host: "another".to_owned() }
        } else {
            NotStored::Failed(failure.message)
        }
    }

    /// What only the kernel could have done will not be.
    pub(super) fn saves_lose_kernel(&mut self, language: Language, epoch: Epoch) {
        self.desk.jobs.retain(|job| match job {
            Job::Save(SaveJob::Part { language: of, by: By::Kernel(by), .. }) => {
                (*of, *by) != (language, epoch)
            }
            Job::Save(_)
            | Job::Image(_)
            | Job::BringUp(_)
            | Job::Take(_)
            | Job::Put { .. }
            | Job::WriteJournal
            | Job::WriteStates
            | Job::WriteTimeline(_)
            | Job::Plan { .. }
            | Job::Make { .. }
            | Job::ForkUp(_)
            | Job::Gone(..)
            | Job::Capture(..) => true,
        });
    }
}
