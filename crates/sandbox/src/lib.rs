//! What a session may see, touch and use, and how that is enforced.
//!
//! `policy` is what people write and what a session is started with; `rules`
//! answers which level a path has. Both are pure. `plan` decides what a sandbox
//! is to look like, `apply` builds it, and `confine` is what a program has to
//! give up in it. `limits` is what may be used of the machine, and what holds
//! that. `proxy` is the way out to a list of hosts, `mover` renames directories
//! for programs. `check` says what this machine can enforce.

pub mod apply;
pub mod check;
pub mod confine;
pub mod fuse;
pub mod limits;
pub mod mover;
pub mod plan;
pub mod policy;
pub mod proxy;
pub mod rules;
mod sys;

pub use policy::{
    Bind, Draft, FileMode, HostRule, Level, Limits, Network, Pattern, Policy, PolicyError, Rule,
    RuleType,
};
pub use rules::Rules;
