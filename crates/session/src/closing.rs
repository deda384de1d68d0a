//! The end of a session, or of everything in it before a reset.

use crate::effect::Tick;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    End(Ending),
    Reset,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A client asked for it.
    Asked,
    /// Nothing happened for the idle timeout.
    Idle,
    /// The program that it was to end with has ended.
    WithProgram,
}

/// Graceful first; all of it within the two seconds that a caller is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Teardown {
    /// Kernels are asked to exit (their exit traps run); SIGINT for a run.
    Exit,
    /// SIGTERM to every process of the session.
    Terminate,
    /// SIGKILL to every process of the session.
    Kill,
}

impl Teardown {
    /// How long a step may take before the next. A shell's exit takes a few
    /// milliseconds, and hundreds of them on a machine that has too much to do;
    /// a server that shuts down properly gets most of a second.
    pub(crate) fn patience(self) -> Tick {
        match self {
            Self::Exit => 1_000,
            Self::Terminate => 800,
            // Killed processes are gone as soon as they are reaped; again, in
            // case one was just forking.
            Self::Kill => 20,
        }
    }

    pub(crate) fn next(self) -> Self {
        match self {
            Self::Exit => Self::Terminate,
            Self::Terminate | Self::Kill => Self::Kill,
        }
    }
}
