//! Text for a model: output as a person would finally see it, and of long output the
//! beginning and the end, with advice on how to read the rest.
//!
//! Everything here is pure, takes any text, and returns no more of it than the limit allows.

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

pub use answer::{answer_text, chunk, last_line, sessions};
pub use branches::{checkpointed, checkpoints, forked, rewound};
pub use jobs::jobs;
pub use saved::{restored, saved};
pub use screen::{RenderedText, settle};
pub use secrets::{MASK, mask, mask_text};
pub use sizing::{
    LIMIT, MOST, OutputOptions, PICTURES, Rest, RunText, SVG, ShownRun, ShownStream, Sizing,
    StreamFrom, TextForm, bounded, fit, sentence, sentences,
};
pub use terminal::terminal;
pub use watching::{logs, top};
