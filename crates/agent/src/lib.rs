//! What an agent decides, apart from what its driver does.
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
//! An agent is a *thread* (what was said and done, [`thread`]) and a *session*
//! (where it was done). A *task* is one request of the caller, carried out in
//! steps: the model is asked, the calls that it wants are performed, and it is
//! asked again. [`Agent::step`] takes what happened and gives back [`Effect`]s for
//! the driver to perform in order. Invariants:
//! - no I/O, no clock and no process here;
//! - whatever was decided is recorded before it is done ([`Effect::Record`] comes
//!   first), so that [`Agent::resumed`] finds from the thread alone where to go on;
//! - each call of a tool has exactly one outcome in the thread, also when its task
//!   ends early: models refuse a conversation in which one is missing;
//! - a call that is performed again after a crash has the same key;
//! - each task that was submitted ends once.

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
