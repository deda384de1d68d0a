//! How sessions, keepers and servers end: in order, by force, or for want of room.

mod full_disk;
mod idle;
mod killing;
mod leaving;
mod shortages;
mod stress;
mod version;
