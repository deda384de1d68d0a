//! What the driver is asked to do.

use crate::closing::{Ending, Teardown};
use crate::operations::Task;
use crate::pacing::Urgency;
use sessile_protocol::{KernelFate, Language, RunNo};

/// Milliseconds on a clock that never goes back.
pub type Tick = u64;

/// Number of a kernel process within its session's language: a new process, a
/// new epoch, so that a late event of the old one is known as such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start a kernel process and bring `source` back in it.
    Launch {
        language: Language,
        epoch: Epoch,
        source: Source,
    },
    /// Kill a kernel process that is not wanted any more; nobody waits for its
    /// end.
    Discard {
        language: Language,
        epoch: Epoch,
    },
    /// Hand a run to its kernel, which is idle.
    Begin {
        language: Language,
        epoch: Epoch,
        run: RunNo,
    },
    /// Press on a run that should end.
    Press {
        language: Language,
        epoch: Epoch,
        pressure: Pressure,
    },
    /// Say when a run last gave a sign of life, with [`Input::Heard`].
    ///
    /// [`Input::Heard`]: crate::Input::Heard
    Listen {
        language: Language,
        epoch: Epoch,
        run: RunNo,
    },
    /// Say whether anything lives in the session besides its kernels, or anybody
    /// looks at it, with [`Input::Life`]: else it ends, because it is idle.
    ///
    /// [`Input::Life`]: crate::Input::Life
    LookForLife,
    /// Write down the kernel's state, without keeping it from its next run, and
    /// say when that is over, with [`Input::CaptureOver`]. In idle time it may be
    /// left, with [`Input::CaptureRefused`].
    ///
    /// [`Input::CaptureOver`]: crate::Input::CaptureOver
    /// [`Input::CaptureRefused`]: crate::Input::CaptureRefused
    Capture {
        language: Language,
        epoch: Epoch,
        as_of: RunNo,
        urgency: Urgency,
    },
    /// Kill a kernel process that did not come up.
    Abandon {
        language: Language,
        epoch: Epoch,
    },
    Complete {
        run: RunNo,
        outcome: Outcome,
    },
    /// Answer a run that will never run, or never finish.
    Cancel {
        run: RunNo,
        why: CancelReason,
    },
    /// The session ends and this kernel's last state is not written down: have it
    /// write it as it exits.
    Remember {
        language: Language,
        epoch: Epoch,
        as_of: RunNo,
    },
    /// End everything that the session started.
    Teardown(Teardown),
    /// After a reset's teardown: history and output of runs go.
    Forget,
    /// Nothing is left: the keeper can go.
    Finished(Ending),
    /// Do something for an operation on the session as a whole.
    Operate(Task),
}

/// What a new kernel process starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The session's initial directory and environment.
    Nothing,
    /// The state that the previous process left when it ended.
    Final,
    /// The last captured state.
    Captured { as_of: RunNo },
    /// A copy of an earlier process, as it was after that run.
    Image { as_of: RunNo },
}

/// How hard a run is pressed to end, from a request to a certainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pressure {
    /// SIGINT to the kernel and its foreground work: state is kept.
    Interrupt,
    /// SIGTERM to the foreground work, SIGINT to the kernel.
    Terminate,
    /// SIGKILL to the foreground work, SIGINT to the kernel.
    KillWork,
    /// SIGKILL to the kernel itself: its state is the last captured one.
    KillKernel,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub exit_code: i32,
    pub fate: KernelFate,
    pub timed_out: bool,
    /// It timed out because it had given no sign of life for this long.
    pub silent_for: Option<Tick>,
    pub interrupted: bool,
}

/// Why a run was answered without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    Reset,
    Ended,
    /// Interrupted while it was still waiting for its turn.
    Interrupted,
    /// It waited for its turn as long as it may.
    QueueTimeout,
    /// The interpreter does not come up.
    NoKernel,
}
