//! What a session decides, apart from what its keeper does.
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
//! [`Session::submit`], [`Session::step`] and [`Session::operate`] take what
//! happened and a time, and give back [`Effect`]s for the keeper's driver to
//! perform in order. Invariants:
//! - no I/O, no clock, no process here, so that every order of events can be
//!   tried by a property test;
//! - each admitted run ends in exactly one `Complete` or `Cancel`;
//! - runs of one kernel begin in the order of their numbers, one at a time;
//! - no run begins under an operation on the session as a whole ([`operations`]),
//!   nor, where checkpoints are taken by themselves, before the one that precedes
//!   it;
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
