//! Why there is no plan.

use crate::check::Missing;
use std::path::PathBuf;

/// Why a policy cannot be enforced here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the sandbox cannot show {}: {reason}", path.display())]
    Path { path: PathBuf, reason: String },
    #[error("{0}, or choose a policy that is the same for all paths: read-only or full-access")]
    Guard(Missing),
    #[error("{0}")]
    Limit(Missing),
    #[error("{0}")]
    Network(Missing),
    #[error("{0}")]
    Tracing(Missing),
    #[error("{}: {reason}", path.display())]
    Tree { path: PathBuf, reason: &'static str },
    #[error(
        "root inside takes a system tree that is yours: this machine's belongs to its root; \
         name one with --rootfs, or start the session without --root"
    )]
    NotOwner,
    #[error(
        "{}: root inside takes a system tree that is yours, and this one belongs to another user; \
         unpack one of your own, or start the session without --root",
        .0.display()
    )]
    TreeOfOther(PathBuf),
    #[error("{0} is not supported in this version; start the session without it")]
    Unsupported(&'static str),
}
