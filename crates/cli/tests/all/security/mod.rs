//! What code in a session tries against the session itself, a case per attempt.

mod memory;
mod reports;
mod sandbox;
