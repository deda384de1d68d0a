//! The end of a session, or of all its processes before a reset.

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
    /// The idle timeout passed without activity.
    Idle,
    /// The program that the session is bound to has ended.
    WithProgram,
}

/// Steps of the teardown, graceful first. All of it ends within the two seconds that a
/// caller is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Teardown {
    /// Kernels are asked to exit (their exit traps run); an active run gets SIGINT.
    Exit,
    /// SIGTERM to every process of the session.
    Terminate,
    /// SIGKILL to every process of the session.
    Kill,
}

impl Teardown {
    /// Returns how long a step may take before the next. A shell exits within a few
    /// milliseconds, or hundreds of them on an overloaded machine; a server that shuts down
    /// properly gets most of a second.
    pub(crate) fn patience(self) -> Tick {
        match self {
            Self::Exit => 1_000,
            Self::Terminate => 800,
            // Killed processes are gone as soon as they are reaped. The step repeats in
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
