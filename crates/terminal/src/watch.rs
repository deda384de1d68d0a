//! Waits for a screen: until it shows something, until it stops changing, or until the run
//! has ended. It only decides; the caller reads the screen and the clock.

use crate::render;
use regex::{Regex, RegexBuilder};
use sessile_protocol::{RunPhase, Screen};

/// No pattern that a person writes for a screen is nearly as long.
const LONGEST_PATTERN: usize = 4096;

/// Maximum size of a compiled pattern in bytes; `\w{1000}` and the like exceed it.
const LARGEST_PROGRAM: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is too large: at most {LONGEST_PATTERN} bytes, and small repetitions")]
    TooLarge,
    #[error("the pattern is not a regular expression: {0}")]
    Invalid(String),
}

/// A regular expression for the contents of a screen. `^` and `$` match at the beginning
/// and end of a line.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// # Errors
    ///
    /// When it is not a regular expression, or too large.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        if pattern.len() > LONGEST_PATTERN {
            return Err(PatternError::TooLarge);
        }
        RegexBuilder::new(pattern)
            .multi_line(true)
            .size_limit(LARGEST_PROGRAM)
            .dfa_size_limit(LARGEST_PROGRAM)
            .build()
            .map(Self)
            .map_err(|error| {
                if matches!(error, regex::Error::CompiledTooBig(_)) {
                    PatternError::TooLarge
                } else {
                    PatternError::Invalid(error.to_string())
                }
            })
    }

    /// Returns whether the screen's text matches. Blanks at the end of a line look the same
    /// as an empty rest, so the line with the cursor is tried both without them and up to
    /// the cursor: `>>> $` and `>>>$` both find a prompt.
    #[must_use]
    pub fn matches(&self, screen: &Screen) -> bool {
        self.0.is_match(&render::text(screen))
            || up_to_cursor(screen).is_some_and(|text| self.0.is_match(&text))
    }
}

/// Returns the text with the blanks before the cursor, if there are any.
fn up_to_cursor(screen: &Screen) -> Option<String> {
    let cursor = screen.cursor?;
    let row = usize::from(cursor.row);
    let mut lines: Vec<_> = render::text(screen).lines().map(str::to_owned).collect();
    if lines.len() <= row {
        lines.resize(row + 1, String::new());
    }
    let seen = render::columns(screen.lines.get(row)?);
    let blanks = usize::from(cursor.col).checked_sub(seen).filter(|blanks| *blanks > 0)?;
    lines[row].push_str(&" ".repeat(blanks));
    Some(lines.join("\n"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The pattern was found, and the screen had settled if that was requested, too.
    Matched,
    Settled,
    /// The run is over: the screen will not change any more, though the awaited condition
    /// did not occur.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Done(Why),
    /// Look again when the revision grows, but after this long in any case.
    Wait {
        at_most_ms: u64,
    },
    GaveUp,
}

/// The awaited conditions, and the observations so far. Times are milliseconds of any
/// monotonic clock.
#[derive(Clone, Debug)]
pub struct Watch {
    pattern: Option<Pattern>,
    settle_ms: Option<u64>,
    deadline_ms: u64,
    seen: Option<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    revision: u64,
    /// When the revision was first seen.
    since_ms: u64,
    is_match: bool,
}

impl Watch {
    /// With both a pattern and a time to settle, the screen has to match and then stay
    /// unchanged for that long. With neither, the first look is enough.
    #[must_use]
    pub fn new(pattern: Option<Pattern>, settle_ms: Option<u64>, deadline_ms: u64) -> Self {
        Self { pattern, settle_ms, deadline_ms, seen: None }
    }

    /// Returns the last seen revision. The screen's keeper gets it, and answers when there
    /// is a newer one.
    #[must_use]
    pub fn known(&self) -> Option<u64> {
        self.seen.map(|seen| seen.revision)
    }

    pub fn look(
        &mut self,
        now_ms: u64,
        revision: u64,
        screen: &Screen,
        phase: RunPhase,
    ) -> Verdict {
        let seen = self.see(now_ms, revision, screen);
        let still_ms = now_ms.saturating_sub(seen.since_ms);
        let is_over = match phase {
            // Processes that an exited run has left may still draw.
            RunPhase::Queued | RunPhase::Running | RunPhase::Exited => false,
            RunPhase::Closed => true,
        };
        let missing_ms = self.settle_ms.map_or(0, |settle| settle.saturating_sub(still_ms));
        let is_settled = missing_ms == 0 || is_over;
        match (&self.pattern, seen.is_match, is_settled) {
            (Some(_), true, true) => Verdict::Done(Why::Matched),
            (Some(_) | None, _, _) if is_over => Verdict::Done(Why::Ended),
            (None, _, true) => Verdict::Done(Why::Settled),
            _ if now_ms >= self.deadline_ms => Verdict::GaveUp,
            (pattern, is_match, _) => {
                let left = self.deadline_ms - now_ms;
                let can_settle = pattern.is_none() || is_match;
                Verdict::Wait { at_most_ms: if can_settle { left.min(missing_ms) } else { left } }
            }
        }
    }

    fn see(&mut self, now_ms: u64, revision: u64, screen: &Screen) -> Seen {
        if let Some(seen) = self.seen.filter(|seen| seen.revision == revision) {
            return seen;
        }
        let is_match = self.pattern.as_ref().is_some_and(|pattern| pattern.matches(screen));
        let seen = Seen { revision, since_ms: now_ms, is_match };
        self.seen = Some(seen);
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Emulator;
    use sessile_protocol::TerminalSize;

    fn screen(bytes: &str) -> Screen {
        let mut emulator = Emulator::new(TerminalSize::DEFAULT);
        emulator.feed(bytes.as_bytes());
        emulator.screen()
    }

    fn pattern(text: &str) -> Option<Pattern> {
        Some(Pattern::new(text).unwrap())
    }

    const RUNNING: RunPhase = RunPhase::Running;

    #[test]
    fn a_pattern_is_awaited_until_the_deadline() {
        let mut watch = Watch::new(pattern("^ready$"), None, 1000);
        assert_eq!(watch.known(), None);
        let wait = |at_most_ms| Verdict::Wait { at_most_ms };
        assert_eq!(watch.look(0, 1, &screen("not ready"), RUNNING), wait(1000));
        assert_eq!(watch.known(), Some(1));
        assert_eq!(watch.look(400, 2, &screen("a\r\n"), RUNNING), wait(600));
        let mut late = watch.clone();
        assert_eq!(
            watch.look(500, 3, &screen("a\r\nready\r\nb"), RUNNING),
            Verdict::Done(Why::Matched)
        );
        assert_eq!(late.look(1000, 2, &screen("a\r\n"), RUNNING), Verdict::GaveUp);
        assert_eq!(late.look(1001, 3, &screen("ready"), RUNNING), Verdict::Done(Why::Matched));
    }

    #[test]
    fn a_screen_settles_when_it_stands_still() {
        let mut watch = Watch::new(None, Some(200), 1000);
        let empty = screen("");
        assert_eq!(watch.look(0, 7, &empty, RUNNING), Verdict::Wait { at_most_ms: 200 });
        assert_eq!(watch.look(150, 8, &empty, RUNNING), Verdict::Wait { at_most_ms: 200 });
        assert_eq!(watch.look(300, 8, &empty, RUNNING), Verdict::Wait { at_most_ms: 50 });
        assert_eq!(watch.look(350, 8, &empty, RUNNING), Verdict::Done(Why::Settled));
        assert_eq!(watch.look(900, 9, &empty, RUNNING), Verdict::Wait { at_most_ms: 100 });
        assert_eq!(watch.look(1000, 9, &empty, RUNNING), Verdict::GaveUp);
    }

    #[test]
    fn both_mean_a_match_that_stands_still() {
        let mut watch = Watch::new(pattern("ok"), Some(100), 1000);
        assert_eq!(watch.look(0, 1, &screen(""), RUNNING), Verdict::Wait { at_most_ms: 1000 });
        assert_eq!(watch.look(500, 1, &screen(""), RUNNING), Verdict::Wait { at_most_ms: 500 });
        assert_eq!(watch.look(600, 2, &screen("ok"), RUNNING), Verdict::Wait { at_most_ms: 100 });
        assert_eq!(watch.look(700, 2, &screen("ok"), RUNNING), Verdict::Done(Why::Matched));
    }

    #[test]
    fn neither_is_the_first_look() {
        let mut watch = Watch::new(None, None, 0);
        assert_eq!(watch.look(5, 1, &screen(""), RUNNING), Verdict::Done(Why::Settled));
    }

    #[test]
    fn a_run_that_is_over_is_not_waited_for() {
        let over = RunPhase::Closed;
        let mut watch = Watch::new(pattern("ok"), Some(100), 1000);
        assert_eq!(watch.look(0, 1, &screen("no"), over), Verdict::Done(Why::Ended));
        assert_eq!(watch.look(0, 2, &screen("ok"), over), Verdict::Done(Why::Matched));
        let mut watch = Watch::new(None, Some(100), 1000);
        assert_eq!(watch.look(0, 1, &screen("no"), over), Verdict::Done(Why::Ended));
    }

    #[test]
    fn a_prompt_is_found_with_and_without_its_blank() {
        let python = screen("Python 3\r\n>>> ");
        for text in [">>> $", ">>>$", "^>>> ?$", r"(?s)3\n>>> \z", "Python 3$"] {
            assert!(pattern(text).unwrap().matches(&python), "{text}");
        }
        assert!(!pattern(">>>  $").unwrap().matches(&python));
        assert!(pattern("^  $").unwrap().matches(&screen("a\r\n  ")));
        assert!(!pattern("x").unwrap().matches(&screen("")));
    }

    #[test]
    fn a_pattern_that_is_wrong_or_too_large_is_refused() {
        assert_eq!(Pattern::new(&"x".repeat(5000)).unwrap_err(), PatternError::TooLarge);
        assert_eq!(Pattern::new(r"(\w{100}){100}").unwrap_err(), PatternError::TooLarge);
        let wrong = Pattern::new("a(").unwrap_err();
        assert!(matches!(&wrong, PatternError::Invalid(why) if why.contains("unclosed group")));
    }
}
