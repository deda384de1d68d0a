//! Text that is made for a model: what a person would see in the end, and of
//! long output the beginning and the end, with a word on how to read the rest.
//!
//! Everything here is pure, takes any text, and answers with no more of it than
//! it was allowed.

mod answer;
mod branches;
mod excerpt;
mod frames;
mod history;
mod jobs;
mod saved;
mod screen;
mod secrets;
mod sizing;
mod terminal;
mod tokens;
mod watching;

pub use answer::{chunk, last_line, sessions, tell};
pub use branches::{checkpointed, checkpoints, forked, rewound};
pub use jobs::jobs;
pub use saved::{restored, saved};
pub use screen::{Settled, settle};
pub use secrets::{MASK, mask, mask_text};
pub use sizing::{
    Form, LIMIT, MOST, OutputOptions, PICTURES, Rest, RunText, SVG, Shown, ShownRun, Sizing,
    Written, bounded, fit, sentence, sentences,
};
pub use terminal::terminal;
pub use watching::{logs, top};
