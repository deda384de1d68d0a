//! Timed work that no event triggers.

use sessile_session::Tick;

/// What is due at some time. If several are due, they are met in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deadline {
    /// The session has something to decide.
    Session,
    /// Writes to disk what is only in memory.
    Settle,
    /// Continues to read pipes whose excess output is thrown away.
    Excess,
    /// Watches the pipes of runs that take longer than a moment.
    Output,
    /// Shows the end of input to runs whose stdin has ended.
    Stdins,
    /// Releases the terminals of ended runs that nothing else has open.
    Terminals,
    /// Answers overdue calls with what there is.
    Calls,
    /// Checks the kernels that owe a report.
    Silence,
    /// Checks whether interactive runs wait for input.
    Prompts,
    /// Deals with processes that runs have left at a limit.
    Bombs,
    /// Checks whether such processes keep something waiting.
    ProcessLimit,
    /// Tries the runs again whose kernels could not be reached.
    Deferred,
    /// Ends the wait for what a dead kernel has left.
    Deaths,
    /// Checks the disk space that a layer without a limit has left.
    Disk,
}

const ALL: [Deadline; 14] = [
    Deadline::Session,
    Deadline::Settle,
    Deadline::Excess,
    Deadline::Output,
    Deadline::Stdins,
    Deadline::Terminals,
    Deadline::Calls,
    Deadline::Silence,
    Deadline::Prompts,
    Deadline::Bombs,
    Deadline::ProcessLimit,
    Deadline::Deferred,
    Deadline::Deaths,
    Deadline::Disk,
];

/// Each deadline, with its time if it has one.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    due: [Option<Tick>; ALL.len()],
}

impl Deadlines {
    /// Sets or clears the time.
    pub(super) fn set(&mut self, deadline: Deadline, due: impl Into<Option<Tick>>) {
        self.due[deadline as usize] = due.into();
    }

    /// Sets the time, unless the deadline is due earlier.
    pub(super) fn set_earlier(&mut self, deadline: Deadline, due: impl Into<Option<Tick>>) {
        let at = &mut self.due[deadline as usize];
        *at = at.iter().copied().chain(due.into()).min();
    }

    pub(super) fn is_set(&self, deadline: Deadline) -> bool {
        self.due[deadline as usize].is_some()
    }

    /// Returns when the next of them is due.
    pub(super) fn next(&self) -> Option<Tick> {
        self.due.iter().flatten().min().copied()
    }

    /// Takes the deadlines that are due now, each once.
    pub(super) fn take_due(&mut self, now: Tick) -> impl Iterator<Item = Deadline> + use<> {
        let is_due = ALL.map(|deadline| {
            let at = &mut self.due[deadline as usize];
            at.take_if(|due| *due <= now).is_some()
        });
        ALL.into_iter().zip(is_due).filter_map(|(deadline, is_due)| is_due.then_some(deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(deadlines: &mut Deadlines, now: Tick) -> Vec<Deadline> {
        deadlines.take_due(now).collect()
    }

    #[test]
    fn each_deadline_has_a_place_of_its_own() {
        for (at, deadline) in ALL.into_iter().enumerate() {
            assert_eq!(deadline as usize, at);
        }
    }

    #[test]
    fn what_is_due_is_met_once() {
        let mut deadlines = Deadlines::default();
        assert_eq!(deadlines.next(), None);
        deadlines.set(Deadline::Calls, 5);
        deadlines.set(Deadline::Session, 7);
        deadlines.set(Deadline::Settle, 9);
        assert_eq!(deadlines.next(), Some(5));
        assert_eq!(taken(&mut deadlines, 4), []);
        assert_eq!(taken(&mut deadlines, 7), [Deadline::Session, Deadline::Calls]);
        assert_eq!(taken(&mut deadlines, 7), []);
        assert_eq!(deadlines.next(), Some(9));
    }

    #[test]
    fn an_earlier_time_wins_where_that_is_wanted() {
        let mut deadlines = Deadlines::default();
        deadlines.set_earlier(Deadline::Calls, 8);
        deadlines.set_earlier(Deadline::Calls, 9);
        deadlines.set_earlier(Deadline::Calls, None);
        assert_eq!(deadlines.next(), Some(8));
        deadlines.set(Deadline::Calls, 9);
        assert_eq!(deadlines.next(), Some(9));
        deadlines.set(Deadline::Calls, None);
        assert!(!deadlines.is_set(Deadline::Calls));
    }
}
