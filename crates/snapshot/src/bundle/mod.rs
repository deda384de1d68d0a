//! One portable file of named parts.
//!
//! ```text
//! "\x93SESSILE"  version  part*  end  checksum
//! ```
//!
//! Parts are compressed one by one and can be written and read as streams. A file is
//! checked as a whole before anything in it is used: a flipped or missing byte anywhere is
//! an error at opening. The checksum guards against accidents, not against attackers, so
//! nothing in a bundle is trusted: all lengths are enforced limits, and no more is held in
//! memory than the caller allows. `docs/snapshot-format.md` describes the bytes.

mod format;
mod reader;
mod seal;
mod writer;

pub use format::{Error, Kind, VERSION};
pub(crate) use format::{has_no_room, reading_part};
pub use reader::{Limits, Part, PartReader, Reader};
pub use seal::{Key, Seal};
pub use writer::Writer;
