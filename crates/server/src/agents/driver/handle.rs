//! The interface to a driver, and what others see of it.

use crate::agents::following::{Progress, Retrying};
use crate::agents::gone;
use crate::agents::thread_file::Identity;
use crate::service::ServiceError;
use sessile_agent::continuity::Continuity;
use sessile_agent::ids::TaskNo;
use sessile_agent::limits::Price;
use sessile_agent::thread::{Moved, Rewind, Verdict};
use sessile_agent::{RewindTo, Submission};
use sessile_protocol::RewoundView;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// A request to an agent.
#[derive(Debug)]
pub(in crate::agents) enum Order {
    Submit(Submission, oneshot::Sender<Result<(TaskNo, Continuity), ServiceError>>),
    Cancel,
    Decide {
        call: String,
        verdict: Verdict,
        answer: oneshot::Sender<Result<(), ServiceError>>,
    },
    Rewind(RewindTo, oneshot::Sender<Result<AgentRewound, ServiceError>>),
    /// The agent goes on elsewhere, as it was after this many entries.
    Move {
        to: Moved,
        entries: u64,
        answer: oneshot::Sender<Result<(), ServiceError>>,
    },
}

/// The result of rewinding an agent.
#[derive(Debug)]
pub(crate) struct AgentRewound {
    pub(crate) rewind: Rewind,
    /// The session's answer; none if nothing was done in it since.
    pub(crate) session: Option<Box<RewoundView>>,
}

/// The sending side of a driver.
#[derive(Clone, Debug)]
pub(in crate::agents) struct Handle {
    pub(super) orders: mpsc::Sender<Order>,
    /// The progress of the thread.
    pub(in crate::agents) status: watch::Receiver<DriverStatus>,
    pub(super) progress: broadcast::Sender<Progress>,
    /// The price of its model.
    pub(in crate::agents) price: Price,
    /// The thread file that it writes.
    pub(super) file: Option<Identity>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::agents) struct DriverStatus {
    /// Number of entries on disk.
    pub(in crate::agents) entries: u64,
    /// A task is unfinished.
    pub(in crate::agents) is_busy: bool,
    /// The call that waits for approval.
    pub(in crate::agents) waiting: Option<String>,
    /// The model has failed and will be asked again.
    pub(in crate::agents) retrying: Option<Retrying>,
}

impl Handle {
    pub(in crate::agents) fn is_live(&self) -> bool {
        !self.orders.is_closed()
    }

    pub(in crate::agents) fn waiting(&self) -> Option<String> {
        self.status.borrow().waiting.clone()
    }

    /// Whether a task is in progress and does not wait for approval.
    pub(in crate::agents) fn is_working(&self) -> bool {
        let status = self.status.borrow();
        self.is_live() && status.is_busy && status.waiting.is_none()
    }

    /// Whether it works on the thread file that is there now.
    pub(in crate::agents) fn works_on(&self, found: Option<Identity>) -> bool {
        self.file.is_some() && self.file == found
    }

    pub(in crate::agents) fn progress(&self) -> broadcast::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(in crate::agents) async fn send(&self, order: Order) -> Result<(), ServiceError> {
        self.orders.send(order).await.map_err(|_| gone())
    }
}
