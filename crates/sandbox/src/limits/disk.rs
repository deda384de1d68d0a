//! Keeps a layer without a limit from filling the disk. No mechanism that every user has
//! counts what is written to a layer at native speed, so this goes by the free space: it
//! is checked now and then, more often the less there is.

use crate::fuse::bytes_below;
use rustix::fs::{Mode, OFlags, StatVfs};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The fraction of the disk that sandboxes leave to others, and its maximum.
const PART: u64 = 20;
const MOST: u64 = 5 << 30;

/// A layer with less than this fraction of the reserve is not to blame, and one that was
/// stopped may write as much again: enough to tidy up.
const BLAME: u64 = 16;

/// The most bytes that programs write in a second; decides when to check again.
const SPEED: u64 = 4 << 30;
pub const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(5);

/// The disk of a layer.
#[derive(Debug)]
pub struct Disk {
    layer: PathBuf,
    /// How many bytes must stay free.
    reserve: u64,
    /// The layer's size when its programs were last stopped.
    stopped_at: Cell<Option<u64>>,
    stops: Cell<u64>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskCheck {
    /// There is room, or others have taken it. Check again after this time.
    Fine(Duration),
    /// Its programs are to be stopped; for the first time, or once more.
    Full(Stop),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    First,
    Again,
}

impl Disk {
    /// Returns none if the system does not report it.
    #[must_use]
    pub fn of(layer: &Path) -> Option<Self> {
        let stat = rustix::fs::statvfs(layer).ok()?;
        let reserve = reserve(stat.f_blocks.saturating_mul(stat.f_frsize), free(&stat));
        Some(Self {
            layer: layer.to_owned(),
            reserve,
            stopped_at: Cell::default(),
            stops: Cell::default(),
        })
    }

    #[must_use]
    pub fn reserve(&self) -> u64 {
        self.reserve
    }

    /// Returns how often its programs were stopped.
    #[must_use]
    pub fn stops(&self) -> u64 {
        self.stops.get()
    }

    /// Checks the disk. If it is full, the layer counts as stopped from now on.
    #[must_use]
    pub fn check(&self) -> DiskCheck {
        let Ok(stat) = rustix::fs::statvfs(&self.layer) else { return DiskCheck::Fine(LATEST) };
        let free = free(&stat);
        if free >= self.reserve {
            self.stopped_at.set(None);
            return DiskCheck::Fine(pause(free - self.reserve));
        }
        let stopped_at = self.stopped_at.get();
        match blame(self.reserve, self.layer_bytes(), stopped_at) {
            None => DiskCheck::Fine(SOONEST * 5),
            Some(bytes) => {
                self.stopped_at.set(Some(bytes));
                self.stops.set(self.stops.get() + 1);
                DiskCheck::Full(if stopped_at.is_none() { Stop::First } else { Stop::Again })
            }
        }
    }

    /// Returns none if it cannot be measured: a directory in it cannot be read.
    fn layer_bytes(&self) -> Option<u64> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let layer = rustix::fs::open(&self.layer, flags, Mode::empty()).ok()?;
        bytes_below(&layer).ok()
    }
}

fn free(stat: &StatVfs) -> u64 {
    stat.f_bavail.saturating_mul(stat.f_frsize)
}

/// Returns the bytes to keep free; on a disk that is rather full already, half of the
/// free space.
fn reserve(total: u64, free: u64) -> u64 {
    let usual = (total / PART).min(MOST);
    if free < 2 * usual { free / 2 } else { usual }
}

/// Returns the time until that much could have been written.
fn pause(spare: u64) -> Duration {
    Duration::from_millis(spare / (SPEED / 1000)).clamp(SOONEST, LATEST)
}

/// Returns the layer's size if its programs are to be stopped. A layer that cannot be
/// measured is blamed.
fn blame(reserve: u64, layer: Option<u64>, stopped_at: Option<u64>) -> Option<u64> {
    let Some(layer) = layer else { return Some(0) };
    let more = reserve / BLAME;
    let least = stopped_at.map_or(more, |before| before.saturating_add(more));
    (layer > 0 && layer >= least).then_some(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_part_of_the_disk_is_left_to_others() {
        assert_eq!(reserve(40 * GIB, 30 * GIB), 2 * GIB);
        assert_eq!(reserve(4000 * GIB, 900 * GIB), 5 * GIB);
        assert_eq!(reserve(40 * GIB, 3 * GIB), 3 * GIB / 2);
    }

    #[test]
    fn the_less_there_is_the_sooner_is_the_next_look() {
        assert_eq!(pause(100 * GIB), LATEST);
        assert_eq!(pause(4 * GIB), Duration::from_millis(1000));
        assert_eq!(pause(0), SOONEST);
    }

    #[test]
    fn whoever_has_written_much_is_to_blame_and_may_tidy_up() {
        let reserve = 1600;
        assert_eq!(blame(reserve, Some(99), None), None);
        assert_eq!(blame(reserve, Some(5000), None), Some(5000));
        assert_eq!(blame(reserve, Some(5050), Some(5000)), None);
        assert_eq!(blame(reserve, Some(5100), Some(5000)), Some(5100));
        assert_eq!(blame(reserve, Some(0), None), None);
        assert_eq!(blame(reserve, None, Some(5000)), Some(0));
    }
}
