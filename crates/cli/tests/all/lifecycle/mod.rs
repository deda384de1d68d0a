//! How sessions, keepers and servers end: in order, by force, or for want of room.

mod full_disk;
mod killing;
mod leaving;
mod stress;
mod version;
