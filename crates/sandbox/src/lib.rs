//! What a session may see, touch and use, and how that is enforced.
//!
//! `policy` is what people write and what a session is started with; `rules` decides the
//! level of a path. Both are pure. `plan` decides what a sandbox looks like, `apply`
//! builds it, and `confine` takes rights away from programs in it. `limits` decides what
//! may be used of the machine, and how that is enforced. `proxy` leads to a list of
//! hosts, `mover` renames directories for programs. `check` says what this machine can
//! enforce, and `tracked` which files of a repository are hidden.

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
pub mod tracked;

pub use policy::{
    Bind, Draft, FileMode, HostRule, Level, Limits, Network, Pattern, Policy, PolicyError, Rule,
    RuleType,
};
pub use rules::Rules;
