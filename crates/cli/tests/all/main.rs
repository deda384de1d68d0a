//! Tests of the real binary on real processes: one executable, a module per topic.
//!
//! Tests run at the same time, in threads of one process. So none changes what
//! belongs to all of them (variables of the environment, the directory), and
//! none counts on being alone.

mod agents;
mod branching;
mod docs;
mod languages;
mod lifecycle;
mod records;
mod runs;
mod sandbox;
mod saving;
mod security;
mod shells;
mod surfaces;
