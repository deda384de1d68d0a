//! Packs and unpacks a tree of any size as a tar.

mod pack;
mod unpack;

pub use unpack::{Skipped, Unpacked};
