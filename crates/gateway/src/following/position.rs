//! A reader's position in the runs of a session, as a text. A reader can return with it,
//! also to another server, because nothing is kept for readers.
//!
//! `20_7.120.0.r_9~11`: all runs up to 20 are reported, except run 7, which is running
//! and reported up to byte 120 of its stdout, and 9 to 11, which have not begun.

use super::event::Event;
use super::pieces::Pieces;
use sessile_protocol::{RunNo, RunPhase};
use sessile_store::StreamName;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Limit for the runs that a position names: more than any session has open. It also
/// bounds the cost of a text from outside.
const NAMED: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub(super) after: RunNo,
    /// Runs that are not reported to their end.
    open: BTreeMap<RunNo, Reported>,
}

/// How far a run was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    Nothing,
    Running([u64; 2]),
    Exited([u64; 2]),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of an event; use the `id` of one that you were sent, or leave it out")]
pub struct InvalidPosition(String);

impl Position {
    /// Returns the position after this run.
    #[must_use]
    pub fn after(run: RunNo) -> Self {
        Self { after: run, open: BTreeMap::new() }
    }

    /// Adds a run that has not begun.
    pub fn add(&mut self, run: RunNo) {
        self.after = self.after.max(run);
        self.open.entry(run).or_insert(Reported::Nothing);
    }

    /// Returns the last known run.
    #[must_use]
    pub fn last(&self) -> RunNo {
        self.after
    }

    /// Returns the runs that are not reported to their end.
    pub fn open(&self) -> impl Iterator<Item = RunNo> + '_ {
        self.open.keys().copied()
    }

    pub(super) fn pieces(&self, run: RunNo) -> Pieces {
        match self.open.get(&run) {
            None | Some(Reported::Nothing) => Pieces::default(),
            Some(Reported::Running(streams)) => Pieces::after(RunPhase::Running, *streams),
            Some(Reported::Exited(streams)) => Pieces::after(RunPhase::Exited, *streams),
        }
    }

    pub(super) fn advance(&mut self, event: &Event) {
        let run = event.run();
        if let Event::Closed(_) | Event::Left(_) | Event::NotARun(_) | Event::Cancelled { .. } =
            event
        {
            self.open.remove(&run);
            return;
        }
        let told = self.open.entry(run).or_insert(Reported::Nothing);
        let mut streams = match told {
            Reported::Nothing => [0, 0],
            Reported::Running(streams) | Reported::Exited(streams) => *streams,
        };
        match event {
            Event::Output { stream, bytes, skipped, .. } => {
                let at = match stream {
                    StreamName::Stdout => &mut streams[0],
                    StreamName::Stderr => &mut streams[1],
                };
                *at = at.saturating_add(*skipped).saturating_add(bytes.len() as u64);
                *told = match told {
                    Reported::Nothing | Reported::Running(_) => Reported::Running(streams),
                    Reported::Exited(_) => Reported::Exited(streams),
                };
            }
            Event::Began(_) => *told = Reported::Running(streams),
            Event::Ended(_) => *told = Reported::Exited(streams),
            Event::Closed(_) | Event::Left(_) | Event::NotARun(_) | Event::Cancelled { .. } => {}
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.after)?;
        let mut runs = self.open.iter().peekable();
        while let Some((first, told)) = runs.next() {
            match told {
                Reported::Running([stdout, stderr]) => write!(f, "_{first}.{stdout}.{stderr}.r")?,
                Reported::Exited([stdout, stderr]) => write!(f, "_{first}.{stdout}.{stderr}.x")?,
                Reported::Nothing => {
                    let mut last = first.0;
                    while let Some((run, _)) =
                        runs.next_if(|(run, told)| run.0 == last + 1 && **told == Reported::Nothing)
                    {
                        last = run.0;
                    }
                    match last > first.0 {
                        true => write!(f, "_{first}~{last}")?,
                        false => write!(f, "_{first}")?,
                    }
                }
            }
        }
        Ok(())
    }
}

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        parse(text).ok_or_else(|| InvalidPosition(text.chars().take(100).collect()))
    }
}

fn parse(text: &str) -> Option<Position> {
    let mut parts = text.split('_');
    let mut position = Position::after(RunNo(parts.next()?.parse().ok()?));
    for part in parts {
        let words: Vec<&str> = part.split('.').collect();
        match words[..] {
            [runs] => {
                let (first, last) = runs.split_once('~').unwrap_or((runs, runs));
                let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
                let count = usize::try_from(last.checked_sub(first)?).ok()?;
                if count + position.open.len() >= NAMED {
                    return None;
                }
                position.open.extend((first..=last).map(|run| (RunNo(run), Reported::Nothing)));
            }
            [run, stdout, stderr, phase] => {
                let streams = [stdout.parse().ok()?, stderr.parse().ok()?];
                let told = match phase {
                    "r" => Reported::Running(streams),
                    "x" => Reported::Exited(streams),
                    _ => return None,
                };
                if position.open.len() >= NAMED {
                    return None;
                }
                position.open.insert(RunNo(run.parse().ok()?), told);
            }
            _ => return None,
        }
    }
    // A named run must be a known one.
    let last = position.open.keys().next_back().copied().unwrap_or_default();
    (last <= position.after).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told() -> impl Strategy<Value = Reported> {
        prop_oneof![
            3 => Just(Reported::Nothing),
            1 => any::<[u64; 2]>().prop_map(Reported::Running),
            1 => any::<[u64; 2]>().prop_map(Reported::Exited),
        ]
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn a_position_survives_its_text(open in prop::collection::btree_map(0u64..60, told(), 0..40), more in 0u64..9) {
            let after = open.keys().next_back().copied().unwrap_or_default() + more;
            let open = open.into_iter().map(|(run, told)| (RunNo(run), told)).collect();
            let position = Position { after: RunNo(after), open };
            let text = position.to_string();
            prop_assert_eq!(text.parse::<Position>().unwrap(), position, "{}", text);
        }

        #[test]
        fn any_text_is_taken_or_refused(text in "[0-9_.~rx]{0,40}") {
            if let Ok(position) = text.parse::<Position>() {
                prop_assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
            }
        }
    }

    #[test]
    fn a_position_is_short_and_bounded() {
        let mut position = Position::after(RunNo(3));
        (4..=300).for_each(|run| position.add(RunNo(run)));
        position.advance(&Event::Closed(RunNo(7)));
        assert_eq!(position.to_string(), "300_4~6_8~300");
        for wrong in ["", "x", "3_9", "9_3~2", "9_1.2.3", "9_1.2.3.q", "9999999999_1~9999999999"] {
            assert!(wrong.parse::<Position>().is_err(), "{wrong}");
        }
    }
}
