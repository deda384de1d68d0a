//! The outcome of a watched run: the one dim line after its output.

use super::words::{on_one_line, took};
use sessile_protocol::{Completed, KernelFate, Queued, RunNo};

/// Why an unfinished run is no longer watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StillRunning {
    /// The requested time is over.
    Time,
    /// The same, and it has not begun.
    Queued(Queued),
    /// It waits for input.
    Input,
}

/// Returns what a user should know besides the output; none after a plain success.
pub(crate) fn finished(done: &Completed) -> Option<String> {
    let mut parts = Vec::new();
    if done.exit_code != 0 || done.timed_out || done.interrupted {
        let why = match (done.timed_out, done.interrupted) {
            (true, _) => ", timed out",
            (false, true) => ", interrupted",
            (false, false) => "",
        };
        parts.push(format!("exit {} after {}{why}", done.exit_code, took(done.duration_us)));
    }
    match done.kernel {
        KernelFate::Kept => {}
        KernelFate::Restarted => {
            parts.push(format!("{} was restarted with its state", done.language));
        }
        KernelFate::Restored { as_of_run } => {
            parts.push(format!("{} was restored as of run {as_of_run}", done.language));
        }
        KernelFate::Fresh => parts.push(format!("{} starts afresh", done.language)),
    }
    parts.extend(done.jobs_ended.iter().map(|job| on_one_line(&job.told_with(done.run))));
    parts.extend(done.notes.iter().map(|note| on_one_line(note)));
    (!parts.is_empty()).then(|| format!("run {}: {}", done.run, parts.join("; ")))
}

/// Says how to go on with an unfinished run.
pub(crate) fn going(run: RunNo, session: &str, left: &StillRunning, has_terminal: bool) -> String {
    match (left, has_terminal) {
        (StillRunning::Queued(queued), _) => {
            let queued = on_one_line(&queued.to_string());
            format!("run {run} is {queued}; see: sessile output {session} {run} --follow")
        }
        (StillRunning::Time, false) => {
            format!("run {run} goes on; see: sessile output {session} {run} --follow")
        }
        (StillRunning::Input, false) => {
            format!("run {run} waits for input; give it some with: sessile input {session} {run}")
        }
        (StillRunning::Time | StillRunning::Input, true) => {
            format!("run {run} goes on in its own terminal; see: sessile screen {session} {run}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_protocol::Language;

    fn done(exit_code: i32, kernel: KernelFate) -> Completed {
        Completed {
            run: RunNo(3),
            language: Language::Bash,
            exit_code,
            duration_us: 1_234_000,
            stdout: sessile_protocol::StreamView::default(),
            stderr: sessile_protocol::StreamView::default(),
            kernel,
            timed_out: false,
            interrupted: false,
            result: None,
            error: None,
            notes: Vec::new(),
            jobs_ended: Vec::new(),
            limits_met: Vec::new(),
            repeated: false,
            unread: Vec::new(),
        }
    }

    #[test]
    fn a_success_says_nothing_and_everything_else_one_line() {
        assert_eq!(finished(&done(0, KernelFate::Kept)), None);
        let line = |done: Completed| finished(&done).unwrap();
        assert_eq!(line(done(7, KernelFate::Kept)), "run 3: exit 7 after 1.2 s");
        let restarted = done(5, KernelFate::Restarted);
        assert_eq!(line(restarted), "run 3: exit 5 after 1.2 s; bash was restarted with its state");
        let timed_out = Completed { timed_out: true, ..done(130, KernelFate::Kept) };
        assert_eq!(line(timed_out), "run 3: exit 130 after 1.2 s, timed out");
        let restored = KernelFate::Restored { as_of_run: RunNo(2) };
        let noted = Completed { notes: vec!["a\nb".to_owned()], ..done(0, restored) };
        assert_eq!(line(noted), "run 3: bash was restored as of run 2; a ↵ b");
    }
}
