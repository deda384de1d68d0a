//! The points that a session can go back to, and the runs that led to its current state.
//!
//! ```text
//!  run 1 ── run 2 ──●── run 3 ── run 4        the line is 1 2 3 4
//!                   └── run 6 ── run 7        after going back (5): 1 2 6 7
//! ```
//!
//! Going back removes nothing: points of an abandoned branch stay, and the session can go
//! to them. A run has one predecessor, so the last run of a line identifies the whole line.

use sessile_protocol::{RewindTo, RunNo};

/// Length of the line; older runs cannot be counted back to.
const LONGEST_LINE: usize = 1000;

/// Identifies a point; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointId(u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    pub id: PointId,
    pub name: String,
    pub is_auto: bool,
    /// The point is not on the line: a rewind reaches it only by name.
    pub is_aside: bool,
    /// The newest number given out before the point.
    pub as_of: RunNo,
    line: Vec<RunNo>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSuchPoint {
    /// No point has this name.
    Name(String),
    /// There are no points.
    Empty,
    /// The line has fewer runs.
    TooFew { runs: u64 },
    /// No point is right before this run.
    Before(RunNo),
}

#[derive(Debug, Default)]
pub struct Timeline {
    points: Vec<Point>,
    line: Vec<RunNo>,
    last: u64,
}

impl Point {
    /// Returns the runs that led to the point.
    #[must_use]
    pub fn line(&self) -> &[RunNo] {
        &self.line
    }
}

impl Timeline {
    /// Adds a run that has begun.
    pub fn ran(&mut self, run: RunNo) {
        self.line.push(run);
        if self.line.len() > LONGEST_LINE {
            self.line.drain(..LONGEST_LINE / 2);
        }
    }

    /// Returns the points, oldest first.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    #[must_use]
    pub fn point(&self, id: PointId) -> Option<&Point> {
        self.points.iter().find(|point| point.id == id)
    }

    /// Adds a named point. Returns none when the name is taken.
    pub fn mark(&mut self, name: Option<String>, as_of: RunNo) -> Option<PointId> {
        let name = name.unwrap_or_else(|| self.free_name("checkpoint", as_of));
        if self.points.iter().any(|point| point.name == name) {
            return None;
        }
        Some(self.add(name, false, as_of))
    }

    /// Adds a point before a run, and returns those that exceed the number to keep.
    pub fn mark_before(
        &mut self,
        run: RunNo,
        as_of: RunNo,
        keep: usize,
    ) -> (PointId, Vec<PointId>) {
        let name = self.free_name("before", run);
        let id = self.add(name, true, as_of);
        let autos: Vec<PointId> = self.points.iter().filter(|p| p.is_auto).map(|p| p.id).collect();
        let surplus = autos.len().saturating_sub(keep.max(1));
        let gone = autos[..surplus].to_vec();
        self.points.retain(|point| !gone.contains(&point.id));
        (id, gone)
    }

    /// Adds a point that no count of runs leads to. It replaces the point with the same
    /// name, if there is one.
    pub fn mark_aside(&mut self, name: &str, as_of: RunNo) -> (PointId, Vec<PointId>) {
        let gone = self.remove(|point| point.name == name);
        let id = self.add(name.to_owned(), false, as_of);
        if let Some(point) = self.points.last_mut() {
            point.is_aside = true;
        }
        (id, gone.into_iter().map(|point| point.id).collect())
    }

    /// Adds a point from an earlier keeper, with the runs that led to it.
    pub fn bring_back(
        &mut self,
        name: String,
        is_auto: bool,
        as_of: RunNo,
        line: Vec<RunNo>,
    ) -> PointId {
        let id = self.add(name, is_auto, as_of);
        if let Some(point) = self.points.last_mut() {
            point.line = line;
        }
        id
    }

    /// Returns the runs that led to the session's current state.
    #[must_use]
    pub fn line(&self) -> &[RunNo] {
        &self.line
    }

    pub fn set_line(&mut self, line: Vec<RunNo>) {
        self.line = line;
    }

    fn add(&mut self, name: String, is_auto: bool, as_of: RunNo) -> PointId {
        self.last += 1;
        let id = PointId(self.last);
        let line = self.line.clone();
        self.points.push(Point { id, name, is_auto, is_aside: false, as_of, line });
        id
    }

    fn free_name(&self, word: &str, number: RunNo) -> String {
        let is_free = |name: &String| self.points.iter().all(|point| point.name != *name);
        let plain = format!("{word}-{number}");
        let numbered = (2_u64..).map(|n| format!("{word}-{number}-{n}"));
        std::iter::once(plain).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// # Errors
    /// When there is no such point.
    pub fn find(&self, to: &RewindTo) -> Result<PointId, NoSuchPoint> {
        match to {
            RewindTo::Newest => {
                let newest = self.points.iter().rev().find(|point| !point.is_aside);
                newest.map(|point| point.id).ok_or(NoSuchPoint::Empty)
            }
            RewindTo::Name(name) => {
                let found = self.points.iter().find(|point| point.name == *name);
                found.map(|point| point.id).ok_or_else(|| NoSuchPoint::Name(name.clone()))
            }
            RewindTo::Runs(runs) => self.find_before(*runs),
        }
    }

    fn find_before(&self, runs: u64) -> Result<PointId, NoSuchPoint> {
        let count = usize::try_from(runs).unwrap_or(usize::MAX);
        let at = self.line.len().checked_sub(count).filter(|_| count > 0);
        let at = at.ok_or(NoSuchPoint::TooFew { runs })?;
        let predecessor = at.checked_sub(1).and_then(|before| self.line.get(before));
        // An empty line is the beginning only if nothing was cut off.
        let is_it = |point: &&Point| !point.is_aside && point.line.last() == predecessor;
        let found = self.points.iter().rev().find(is_it);
        let unfound = || NoSuchPoint::Before(self.line.get(at).copied().unwrap_or_default());
        found.map(|point| point.id).ok_or_else(unfound)
    }

    /// Goes back to a point, and returns the runs that are no longer in the line.
    pub fn rewind(&mut self, id: PointId) -> Vec<RunNo> {
        let Some(line) = self.point(id).map(|point| point.line.clone()) else {
            return Vec::new();
        };
        let before = std::mem::replace(&mut self.line, line);
        before.into_iter().filter(|run| !self.line.contains(run)).collect()
    }

    /// Removes points, and returns them.
    pub fn remove(&mut self, is_unwanted: impl Fn(&Point) -> bool) -> Vec<Point> {
        let (gone, kept) = std::mem::take(&mut self.points).into_iter().partition(is_unwanted);
        self.points = kept;
        gone
    }

    /// Removes all points and runs.
    pub fn clear(&mut self) {
        self.points.clear();
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(runs: &[u64]) -> Vec<RunNo> {
        runs.iter().copied().map(RunNo).collect()
    }

    /// Adds runs with a point before each.
    fn ran(timeline: &mut Timeline, runs: std::ops::RangeInclusive<u64>) {
        for run in runs {
            timeline.mark_before(RunNo(run), RunNo(run - 1), 100);
            timeline.ran(RunNo(run));
        }
    }

    #[test]
    fn going_back_twice_takes_back_two_runs() {
        let mut timeline = Timeline::default();
        ran(&mut timeline, 1..=3);
        let last = timeline.find(&RewindTo::Runs(1)).unwrap();
        assert_eq!(timeline.rewind(last), numbers(&[3]));
        let last = timeline.find(&RewindTo::Runs(1)).unwrap();
        assert_eq!(timeline.rewind(last), numbers(&[2]));
        assert_eq!(timeline.find(&RewindTo::Runs(2)), Err(NoSuchPoint::TooFew { runs: 2 }));
    }

    #[test]
    fn what_was_taken_back_is_not_counted_again() {
        let mut timeline = Timeline::default();
        ran(&mut timeline, 1..=3);
        let before = timeline.find(&RewindTo::Runs(2)).unwrap();
        assert_eq!(timeline.rewind(before), numbers(&[2, 3]));
        ran(&mut timeline, 5..=5);
        let both = timeline.find(&RewindTo::Runs(2)).unwrap();
        assert_eq!(timeline.rewind(both), numbers(&[1, 5]));
    }

    #[test]
    fn a_branch_that_was_left_can_be_gone_to() {
        let mut timeline = Timeline::default();
        ran(&mut timeline, 1..=2);
        let there = timeline.mark(Some("there".to_owned()), RunNo(2)).unwrap();
        let start = timeline.find(&RewindTo::Runs(2)).unwrap();
        timeline.rewind(start);
        ran(&mut timeline, 4..=4);
        assert_eq!(timeline.find(&RewindTo::Name("there".to_owned())), Ok(there));
        assert_eq!(timeline.rewind(there), numbers(&[4]));
        assert_eq!(timeline.mark(Some("there".to_owned()), RunNo(5)), None);
    }

    #[test]
    fn only_so_many_are_kept_and_named_ones_always() {
        let mut timeline = Timeline::default();
        timeline.mark(Some("mine".to_owned()), RunNo(0));
        for run in 1..=5 {
            let (_, gone) = timeline.mark_before(RunNo(run), RunNo(run - 1), 2);
            assert_eq!(gone.len(), usize::from(run > 2));
            timeline.ran(RunNo(run));
        }
        let names: Vec<&str> = timeline.points().iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["mine", "before-4", "before-5"]);
        assert_eq!(timeline.find(&RewindTo::Runs(3)), Err(NoSuchPoint::Before(RunNo(3))));
    }
}
