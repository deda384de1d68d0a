//! Snapshots of files, and bundles.

mod bundle;
mod files;
