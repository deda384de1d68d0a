//! The decisions of a session, separate from the I/O that its keeper does.
//!
//! ```text
//!            submit            Begin                Reported
//!  client ──────────► queue ──────────► Busy ──────────────────► Idle ──► Capture
//!                       ▲                │  due, interrupt         │ ▲
//!                       │                ▼                         │ │ Ready
//!                       │          Interrupting ── KillKernel ─┐   │ │
//!                       │                                      ▼   ▼ │
//!                       └────────────────────────────────── Died ► Starting
//! ```
//!
//! [`Session::submit`], [`Session::step`] and [`Session::operate`] take an event and a
//! time, and return the [`Effect`]s that the keeper's driver performs in order. Invariants:
//! - there is no I/O, clock or process here, so that a property test can try every order of
//!   events;
//! - each admitted run ends in exactly one `Complete` or `Cancel`;
//! - runs of one kernel begin in the order of their numbers, one at a time;
//! - no run begins during an operation on the session as a whole ([`operations`]); in a
//!   session with automatic checkpoints, no run begins before its checkpoint is taken;
//! - an event of an earlier kernel process (an old epoch) changes nothing.

mod closing;
mod core;
mod durability;
mod effect;
mod input;
mod kernel;
pub mod operations;
mod pacing;
mod session;
mod timeline;

pub use closing::{Close, Ending, Teardown};
pub use core::Core;
pub use effect::{CancelReason, Effect, Epoch, Outcome, Pressure, Source, Tick};
pub use input::{Activity, Input, Limits, Refusal, Submission};
pub use kernel::{Origin, Place};
pub use pacing::{Pacing, Urgency};
pub use session::Session;
pub use timeline::{NoSuchPoint, Point, PointId, Timeline};
