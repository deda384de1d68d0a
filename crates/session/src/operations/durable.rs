//! A durable session's own saves: on this machine, and in a store if it has one.
//!
//! A store that is down does not keep the session from being saved on this machine: each
//! place has its own pace. Failures are reported and tried again.

use super::ownership::{Activity, OwnershipChecks, RunWaitsFor, StoreReply};
use super::{Context, NotStored, Place, SaveId, Task};
use crate::Core;
use crate::durability::Durability;
use crate::effect::Tick;
use sessile_protocol::Failure;

const NO_FILE: &str = "no file was written for the store";

#[derive(Debug)]
pub(crate) struct Durable {
    here: Durability,
    store: Option<Store>,
}

#[derive(Debug)]
struct Store {
    pace: Durability,
    /// The save that is being uploaded.
    upload: Option<SaveId>,
    looks: OwnershipChecks,
}

/// State of the session's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InStore {
    /// There is no store.
    None,
    /// The store has everything that was saved on this machine.
    Current,
    /// An earlier keeper did not upload its last save.
    Behind,
}

/// Returns whether the store has answered.
fn store_reply(outcome: &Result<(), NotStored>) -> StoreReply {
    match outcome {
        Ok(()) | Err(NotStored::Moved { .. }) => StoreReply::Answered,
        Err(NotStored::Failed(_)) => StoreReply::Silent,
    }
}

/// The result of an ownership check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnershipOutcome {
    GoesOn,
    /// The same, and runs have waited for the answer.
    RunsWaited,
    /// The session belongs to another machine.
    Moved,
}

impl Durable {
    pub(crate) fn new(store: InStore, now: Tick) -> Self {
        let (mut pace, upload, looks) = (Durability::default(), None, OwnershipChecks::new(now));
        let store = match store {
            InStore::None => None,
            InStore::Current => Some(Store { pace, upload, looks }),
            InStore::Behind => {
                pace.changed(now);
                Some(Store { pace, upload, looks })
            }
        };
        Self { here: Durability::default(), store }
    }

    pub(crate) fn changed(&mut self, now: Tick) {
        self.here.changed(now);
        if let Some(store) = &mut self.store {
            store.pace.changed(now);
            store.looks.changed();
        }
    }

    pub(crate) fn due(&self) -> Option<Tick> {
        let store = self.store.as_ref().and_then(|store| store.pace.due());
        self.here.due().into_iter().chain(store).min()
    }

    /// Begins a save. Returns true when it is for the store as well.
    pub(crate) fn begin(&mut self, now: Tick) -> bool {
        self.here.begin(now);
        let store = self.store.as_mut().filter(|store| {
            store.upload.is_none() && store.pace.due().is_some_and(|due| due <= now)
        });
        if let Some(store) = store {
            store.pace.begin(now);
            return true;
        }
        false
    }

    /// Ends a save. If it succeeded, the outcome says what became of the file for the store.
    pub(crate) fn ended(
        &mut self,
        save: SaveId,
        for_store: bool,
        outcome: Result<Option<Result<(), String>>, Failure>,
        context: &mut Context<'_>,
    ) {
        let (here, outgoing) = match outcome {
            Ok(outgoing) => (Ok(()), outgoing.unwrap_or_else(|| Err(NO_FILE.to_owned()))),
            Err(failure) => (Err(failure.message.clone()), Err(failure.message)),
        };
        match here {
            Ok(()) => self.here.saved(context.now),
            Err(_) => self.here.failed(context.now),
        }
        context.task(Task::RecordSave { save, place: Place::Here, outcome: here });
        match outgoing {
            // Another upload may be in progress.
            Ok(()) | Err(_) if !for_store => {}
            Ok(()) => self.upload(save, context),
            Err(why) => self.not_stored(save, why, context),
        }
    }

    fn upload(&mut self, save: SaveId, context: &mut Context<'_>) {
        let store = self.store.as_mut().filter(|store| store.upload.is_none());
        if let Some(store) = store.filter(|store| store.pace.is_saving()) {
            store.upload = Some(save);
            context.task(Task::Upload { save });
        }
    }

    /// Ends an upload. Returns false when the session belongs to another machine.
    #[must_use]
    pub(crate) fn uploaded(
        &mut self,
        save: SaveId,
        outcome: Result<(), NotStored>,
        context: &mut Context<'_>,
    ) -> bool {
        let Some(store) = self.store.as_mut().filter(|store| store.upload == Some(save)) else {
            return true;
        };
        store.upload = None;
        store.looks.saved(store_reply(&outcome), context.now);
        match outcome {
            Ok(()) => {
                store.pace.saved(context.now);
                context.task(Task::RecordSave { save, place: Place::Store, outcome: Ok(()) });
            }
            Err(NotStored::Failed(why)) => self.not_stored(save, why, context),
            Err(NotStored::Moved { host }) => {
                let why = format!("the session now lives on {host}");
                self.not_stored(save, why, context);
                context.task(Task::RecordMove { host });
                return false;
            }
        }
        true
    }

    /// Records that a save for the store did not get there.
    fn not_stored(&mut self, save: SaveId, why: String, context: &mut Context<'_>) {
        if let Some(store) = self.store.as_mut().filter(|store| store.pace.is_saving()) {
            store.pace.failed(context.now);
            context.task(Task::RecordSave { save, place: Place::Store, outcome: Err(why) });
        }
    }

    // Ownership checks. During an upload there are none, because its outcome answers as well.

    fn ownership_checks(&mut self) -> Option<&mut OwnershipChecks> {
        self.store.as_mut().filter(|store| store.upload.is_none()).map(|store| &mut store.looks)
    }

    /// Returns when to ask the store, or when runs stop waiting for its answer.
    pub(crate) fn look_due(&self, core: &Core) -> Option<Tick> {
        let store = self.store.as_ref()?;
        let activity = Activity::of(core);
        let question = store.upload.is_none().then(|| store.looks.due(activity)).flatten();
        question.into_iter().chain(store.looks.waits_until()).min()
    }

    /// Asks the store if it is time to. Returns true when runs have waited long enough.
    pub(crate) fn look(&mut self, context: &mut Context<'_>) -> bool {
        let Some(store) = &mut self.store else { return false };
        if store.looks.waits_until().is_some_and(|until| until <= context.now) {
            store.looks.give_up(context.now);
            return true;
        }
        let activity = Activity::of(context.core);
        if let Some(looks) = self.ownership_checks()
            && looks.due(activity).is_some_and(|due| due <= context.now)
        {
            looks.ask();
            context.task(Task::LookAtStore);
        }
        false
    }

    /// Returns whether a run that is about to come has to wait for the store's answer.
    pub(crate) fn before_run(&mut self, context: &mut Context<'_>) -> bool {
        let now = context.now;
        match self.ownership_checks().map_or(RunWaitsFor::Nothing, |looks| looks.before_run(now)) {
            RunWaitsFor::Nothing => false,
            RunWaitsFor::Answer => true,
            RunWaitsFor::Question => {
                context.task(Task::LookAtStore);
                true
            }
        }
    }

    /// Takes the store's answer about ownership, or that there is none.
    pub(crate) fn looked(
        &mut self,
        outcome: Result<(), NotStored>,
        context: &mut Context<'_>,
    ) -> OwnershipOutcome {
        let Some(store) = &mut self.store else { return OwnershipOutcome::GoesOn };
        let waited = store.looks.answered(store_reply(&outcome), context.now);
        match outcome {
            Err(NotStored::Moved { host }) => {
                context.task(Task::RecordMove { host });
                OwnershipOutcome::Moved
            }
            // A store that is down does not block runs; saves report it.
            Ok(()) | Err(NotStored::Failed(_)) if waited => OwnershipOutcome::RunsWaited,
            Ok(()) | Err(NotStored::Failed(_)) => OwnershipOutcome::GoesOn,
        }
    }

    /// Cancels the ownership check, because the session ends or is reset.
    pub(crate) fn cancel_look(&mut self, context: &mut Context<'_>) {
        if self.store.as_mut().is_some_and(|store| store.looks.cancel()) {
            context.task(Task::CancelLook);
        }
    }

    /// Cancels the upload, because the session ends or is reset.
    pub(crate) fn cancel_upload(&mut self, context: &mut Context<'_>) {
        let upload = self.store.as_mut().and_then(|store| store.upload.take());
        if let Some(save) = upload {
            context.task(Task::CancelUpload);
            self.not_stored(save, "the session was ended or reset".to_owned(), context);
        }
    }
}
