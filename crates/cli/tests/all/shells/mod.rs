//! What shells remember, how they end, and what they are not told of us.

mod builtins;
mod endings;
mod limits;
mod mistreatment;
mod state;
mod tracing;

const ALL: &[&str] = &["bash", "zsh", "dash"];
const BASH: &[&str] = &["bash"];
