//! A terminal as text: the state of the run, then the screen.

use super::excerpt::{clip, cut};
use crate::answer::WaitOutcome;
use sessile_protocol::{RunPhase, ScreenView};
use sessile_terminal::render;
use sessile_terminal::watch::Why;
use std::fmt::Write;

/// Returns the text of a screen, with at most `limit` characters of its content. The exit
/// code is given for a finished run.
#[must_use]
pub fn terminal(
    view: &ScreenView,
    awaited: WaitOutcome,
    exit_code: Option<i32>,
    limit: usize,
) -> String {
    let (run, screen) = (view.run, &view.screen);
    let mut text = match (view.phase, exit_code, view.waiting_for_input) {
        (RunPhase::Queued, _, _) => format!("run {run} waits for its turn"),
        (RunPhase::Running, _, true) => format!("run {run} waits for input"),
        (RunPhase::Running, _, false) => format!("run {run} is running"),
        (RunPhase::Exited | RunPhase::Closed, Some(code), _) => {
            format!("run {run} has ended with exit code {code}")
        }
        (RunPhase::Exited | RunPhase::Closed, None, _) => format!("run {run} has ended"),
    };
    let _ = write!(text, "; {} columns, {} rows", screen.size.cols, screen.size.rows);
    match screen.cursor {
        Some(at) => {
            let _ = write!(text, ", cursor at row {}, column {} (from 0)", at.row, at.col);
        }
        None => text.push_str(", cursor hidden"),
    }
    if !screen.title.is_empty() {
        let _ = write!(text, ", title {:?}", clip(&screen.title, 100));
    }
    match awaited {
        WaitOutcome::Nothing | WaitOutcome::Came(Why::Matched | Why::Settled | Why::Ended) => {}
        WaitOutcome::TimedOut => text.push_str("\nwhat was waited for has not come in time"),
    }
    let shown = render::text(screen);
    match cut(&shown, limit) {
        None if shown.is_empty() => text.push_str("\n(the screen is empty)"),
        None => {
            let _ = write!(text, "\nscreen:\n{shown}");
        }
        Some(cut) => {
            let (head, tail) = (&shown[..cut.head], &shown[cut.tail..]);
            let left_out = shown[cut.head..cut.tail].chars().count();
            let _ = write!(text, "\nscreen:\n{head}\n[… {left_out} characters left out …]\n{tail}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_protocol::{RunNo, TerminalSize};

    fn view(bytes: &str, size: TerminalSize) -> ScreenView {
        let mut emulator = sessile_terminal::Emulator::new(size);
        emulator.feed(bytes.as_bytes());
        let (run, phase, screen) = (RunNo(3), RunPhase::Running, emulator.screen());
        ScreenView { run, phase, screen, revision: 1, waiting_for_input: true }
    }

    #[test]
    fn a_screen_is_told_as_a_person_sees_it() {
        let view = view("\x1b]0;py\x07\x1b[1mPython\x1b[0m\r\n>>> ", TerminalSize::DEFAULT);
        assert_eq!(
            terminal(&view, WaitOutcome::TimedOut, None, 1000),
            "run 3 waits for input; 80 columns, 24 rows, cursor at row 1, column 4 (from 0), title \"py\"\n\
             what was waited for has not come in time\nscreen:\nPython\n>>>"
        );
        let over = ScreenView { phase: RunPhase::Closed, ..view };
        let told = terminal(&over, WaitOutcome::Nothing, Some(1), 1000);
        assert!(told.starts_with("run 3 has ended with exit code 1; 80"), "{told}");
    }

    #[test]
    fn a_large_screen_is_told_with_its_beginning_and_end() {
        let size = TerminalSize { cols: 1000, rows: 1000 };
        let told = terminal(&view(&"x".repeat(900_000), size), WaitOutcome::Nothing, None, 1000);
        assert!(told.len() < 2000 && told.contains("left out"), "{told}");
    }
}
