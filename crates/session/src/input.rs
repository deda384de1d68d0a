//! What the state machine is told: how a session is to be, runs, what happened; and
//! why it refuses something.

use crate::closing::Close;
use crate::effect::{Epoch, Tick};
use sessile_protocol::{Auto, Language, RunNo};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The session ends after this long without activity; zero: never.
    pub idle_timeout: Tick,
    pub activity: Activity,
    /// Runs that may wait for one kernel.
    pub queue: usize,
    /// A checkpoint is taken before each run, and only then does it begin.
    pub auto: Option<Auto>,
}

/// What keeps a session from being idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// Runs, and what [`crate::Effect::LookForLife`] finds besides.
    #[default]
    All,
    /// Runs alone.
    Runs,
}

/// A run as the state machine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    pub language: Language,
    /// How long it may wait for its beginning.
    pub queue_timeout: Option<Tick>,
    /// How long it may take from its beginning.
    pub timeout: Option<Tick>,
    /// How long it may go without a sign of life.
    pub silence: Option<Tick>,
    /// It may well end its kernel (it mentions `kill` or `exec`, say): have
    /// the state captured before, even if that costs it a millisecond.
    pub risky: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A kernel process is up, and what it was to start from is in place.
    Ready {
        language: Language,
        epoch: Epoch,
    },
    /// A kernel process is up, and takes over what it is to start from.
    Loading {
        language: Language,
        epoch: Epoch,
    },
    /// A run has come to its end, and what it has left is looked after before that is
    /// reported: it takes no more of its time, and nobody presses on it.
    Over {
        language: Language,
        epoch: Epoch,
        run: RunNo,
    },
    /// A kernel says that its run has ended.
    Reported {
        language: Language,
        epoch: Epoch,
        run: RunNo,
        exit_code: i32,
    },
    /// A kernel process is gone, and what it has left is looked after before
    /// [`Input::Died`] tells of it.
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
    /// A kernel owes a report that it will never make.
    Stuck {
        language: Language,
        epoch: Epoch,
    },
    /// When a run last wrote or was given something: asked for by
    /// [`crate::Effect::Listen`].
    Heard {
        language: Language,
        epoch: Epoch,
        run: RunNo,
        at: Tick,
    },
    /// Whether something lives in the session, or somebody looks at it: asked
    /// for by [`crate::Effect::LookForLife`].
    Life {
        found: bool,
    },
    /// A kernel's state has been written down, and can be brought back.
    Captured {
        language: Language,
        epoch: Epoch,
        as_of: RunNo,
    },
    /// What [`crate::Effect::Capture`] asked for is over, whatever came of it.
    CaptureOver {
        language: Language,
        epoch: Epoch,
    },
    /// What it asked for in idle time was not begun: the machine has enough of
    /// that. `chance` is any number.
    CaptureRefused {
        language: Language,
        epoch: Epoch,
        chance: u64,
    },
    Interrupt {
        run: Option<RunNo>,
    },
    /// Somebody wants to see the state of all live kernels.
    Inspect,
    /// A session that was made ahead becomes somebody's, who lets it be idle for
    /// this long.
    Adopted {
        idle_timeout: Tick,
    },
    Close(Close),
    /// While closing: no kernel is left, though what they started may be.
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
    /// A run is going, or about to.
    Busy {
        run: RunNo,
    },
}
