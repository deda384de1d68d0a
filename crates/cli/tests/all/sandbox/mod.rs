//! Sessions in a sandbox: that they are sessions as ever. What hostile programs
//! try is in `security`.

mod basics;
mod branches;
mod callers;
mod check;
mod files;
mod git;
mod layer;
pub(crate) mod limits;
mod network;
mod owners;
mod renames;
mod systems;
