//! The decisions of an agent, separate from the I/O that its driver does.
//!
//! ```text
//!          Submitted        Ask               Replied with calls
//!  caller ───────────► Idle ─────► Asking ───────────────────────► Calling
//!                       ▲            ▲  │ Failed: Wait, Ask again     │ │ Approve?
//!                       │            │  ▼                             │ ▼
//!                       │            └──────── all calls have an outcome
//!                       └── Ended ◄── Replied without calls, a limit, a cancellation
//! ```
//!
//! An agent is a *thread* (the recorded conversation and actions, [`thread`]) and a
//! *session* (where the actions happen). A *task* is one request of the caller, carried out
//! in steps: the model is asked, its calls are performed, and it is asked again.
//! [`Agent::step`] takes an event and returns [`Effect`]s that the driver performs in
//! order. Invariants:
//! - there is no I/O, clock or process here;
//! - every decision is recorded before it is carried out ([`Effect::Record`] comes first),
//!   so
//!   that [`Agent::resumed`] continues from the thread alone;
//! - each call of a tool has exactly one outcome in the thread, also when its task ends
//!   early:
//!   models refuse a conversation in which one is missing;
//! - a call that is performed again after a crash has the same key;
//! - each submitted task ends once.

mod agent;
pub mod command;
pub mod continuity;
pub mod conversation;
pub mod ids;
pub mod limits;
pub mod model;
pub mod thread;
pub mod tools;

pub use agent::{
    Agent, Approval, Checkpoints, Config, Effect, Input, Purpose, Question, Refusal, RewindTo,
    Stage, Submission, Worker,
};
