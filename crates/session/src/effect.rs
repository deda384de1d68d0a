//! Effects: the orders to the driver.

use crate::closing::{Ending, Teardown};
use crate::operations::Task;
use crate::pacing::Urgency;
use sessile_protocol::{KernelFate, Language, RunNo};

/// Milliseconds of a monotonic clock.
pub type Tick = u64;

/// Number of a kernel process within its session and language. Each new process has a new
/// epoch, so that a late event of an old process is recognized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start a kernel process and restore `source` in it.
    Launch {
        language: Language,
        epoch: Epoch,
        source: Source,
    },
    /// Kill a kernel process that is no longer wanted. Nothing waits for its end.
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
    /// Take a step to end a run.
    Press {
        language: Language,
        epoch: Epoch,
        pressure: Pressure,
    },
    /// Report when a run last gave a sign of life, with [`Input::Heard`].
    ///
    /// [`Input::Heard`]: crate::Input::Heard
    Listen {
        language: Language,
        epoch: Epoch,
        run: RunNo,
    },
    /// Report, with [`Input::Life`], whether a process other than the kernels is alive in
    /// the session, or a client watches it. If neither, the session ends as idle.
    ///
    /// [`Input::Life`]: crate::Input::Life
    LookForLife,
    /// Capture the kernel's state without delaying its next run, and report the end with
    /// [`Input::CaptureOver`]. In idle time the capture may be refused with
    /// [`Input::CaptureRefused`].
    ///
    /// [`Input::CaptureOver`]: crate::Input::CaptureOver
    /// [`Input::CaptureRefused`]: crate::Input::CaptureRefused
    Capture {
        language: Language,
        epoch: Epoch,
        as_of: RunNo,
        urgency: Urgency,
    },
    /// Kill a kernel process that did not start.
    Abandon {
        language: Language,
        epoch: Epoch,
    },
    Complete {
        run: RunNo,
        outcome: Outcome,
    },
    /// Answer a run that will never begin, or never finish.
    Cancel {
        run: RunNo,
        why: CancelReason,
    },
    /// The session ends and this kernel's last state is not captured: have the kernel write
    /// it as it exits.
    Remember {
        language: Language,
        epoch: Epoch,
        as_of: RunNo,
    },
    /// End all processes of the session.
    Teardown(Teardown),
    /// After a reset's teardown: delete the history and the output of runs.
    Forget,
    /// Nothing is left: the keeper can exit.
    Finished(Ending),
    /// Perform a task of an operation on the session as a whole.
    Operate(Task),
}

/// The state that a new kernel process starts from.
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

/// How hard a run is pressed to end, from SIGINT to SIGKILL of the kernel.
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
    /// The run timed out because it gave no sign of life for this long.
    pub silent_for: Option<Tick>,
    pub interrupted: bool,
}

/// Why a run was answered without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    Reset,
    Ended,
    /// Interrupted while it was queued.
    Interrupted,
    /// Its queue timeout passed.
    QueueTimeout,
    /// The interpreter does not start.
    NoKernel,
}
