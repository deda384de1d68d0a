//! A tree as a tar, both ways, of any size.

mod pack;
mod unpack;

pub use unpack::{Skipped, Unpacked};
