//! The agent's decisions, tried without a model, a session or a clock.

mod formats;
mod loops;
mod threads;
mod world;
