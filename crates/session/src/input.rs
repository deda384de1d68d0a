//! Inputs of the state machine: limits, runs, events; and why a request is refused.

use crate::closing::Close;
use crate::effect::{Epoch, Tick};
use sessile_protocol::{Auto, Language, RunNo};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The session ends after this long without activity; zero means never.
    pub idle_timeout: Tick,
    pub activity: Activity,
    /// Maximum number of queued runs per kernel.
    pub queue: usize,
    /// A checkpoint is taken before each run begins.
    pub auto: Option<Auto>,
}

/// Activity that keeps a session from being idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// Runs, and whatever [`crate::Effect::LookForLife`] finds.
    #[default]
    All,
    /// Only runs.
    Runs,
}

/// A run as the state machine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    pub language: Language,
    /// How long it may wait before it begins.
    pub queue_timeout: Option<Tick>,
    /// How long it may take once it has begun.
    pub timeout: Option<Tick>,
    /// How long it may go without a sign of life.
    pub silence: Option<Tick>,
    /// It may end its kernel (it mentions `kill` or `exec`, say): capture the state before
    /// it begins, even if that costs a millisecond.
    pub risky: bool,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A kernel process is up, and its state is restored.
    Ready {
        language: Language,
        epoch: Epoch,
    },
    /// A kernel process is up and loads its state.
    Loading {
        language: Language,
        epoch: Epoch,
    },
    /// A run has ended, and the keeper processes what it left before the end is reported.
    /// Its timeouts stop, and it is not pressed any more.
    Over {
        language: Language,
        epoch: Epoch,
        run: RunNo,
    },
    /// A kernel reports that its run has ended.
    Reported {
        language: Language,
        epoch: Epoch,
        run: RunNo,
        exit_code: i32,
    },
    /// A kernel process is gone, and the keeper processes what it left before
    /// [`Input::Died`] reports its end.
    Dying {
        language: Language,
        epoch: Epoch,
    },
    /// A kernel process is gone.
    Died {
        language: Language,
        epoch: Epoch,
        exit_code: i32,
        left_state: bool,
    },
    /// A kernel will never make the report that it owes.
    Stuck {
        language: Language,
        epoch: Epoch,
    },
    /// The order of a run could not be sent: the kernel process is gone, which
    /// [`Input::Died`] is still to report. The next process is given the run.
    Unsent {
        language: Language,
        epoch: Epoch,
        run: RunNo,
    },
    /// When a run last wrote output or was given input: the answer to [`crate::Effect::Listen`].
    Heard {
        language: Language,
        epoch: Epoch,
        run: RunNo,
        at: Tick,
    },
    /// Whether a process is alive in the session or a client watches it: the answer to
    /// [`crate::Effect::LookForLife`].
    Life {
        found: bool,
    },
    /// A kernel's state is captured, and can be restored.
    Captured {
        language: Language,
        epoch: Epoch,
        as_of: RunNo,
    },
    /// The capture that [`crate::Effect::Capture`] ordered is over, successful or not.
    CaptureOver {
        language: Language,
        epoch: Epoch,
    },
    /// An ordered capture was not begun in idle time, because the machine has enough of
    /// them in progress. `chance` is any number.
    CaptureRefused {
        language: Language,
        epoch: Epoch,
        chance: u64,
    },
    Interrupt {
        run: Option<RunNo>,
    },
    /// A client wants to see the state of all live kernels.
    Inspect,
    /// A session that was made ahead now belongs to a client, with this idle timeout.
    Adopted {
        idle_timeout: Tick,
    },
    Close(Close),
    /// While closing: no kernel is left, but processes that they started may be.
    KernelsGone,
    /// No process of the session is left.
    AllGone,
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    QueueFull {
        limit: usize,
    },
    Ending,
    /// A run is active or being prepared.
    Busy {
        run: RunNo,
    },
}
