//! Saves, where they can be kept.

mod azure;
mod clouds;
mod disk;
mod s3;
