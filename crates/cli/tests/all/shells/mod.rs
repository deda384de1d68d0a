//! What shells remember, and how they end.

mod endings;
mod state;
