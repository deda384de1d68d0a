//! Parses a shell's answer to questions about its jobs.
//!
//! There are our own lines, such as `= 1234 3`: the job with that pid has ended with that
//! status (`?` if it is unknown, `-` if the job lives). And there is the output of
//! `jobs -l`, in which a pipeline has a line for each process, and the last one is the
//! job's pid:
//!
//! ```text
//! [2] + 1235 Running
//! [1] - 1233 Done(3)
//!       1234
//! ```

/// A job, identified by the value of `$!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedJob {
    pub(super) pid: u32,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Lives,
    /// With this status, if it is known.
    Ended(Option<i32>),
}

/// Returns the jobs, the oldest first, each once. A status in the list counts only for
/// dash: the other shells are asked for it.
pub(super) fn read(answer: &[u8]) -> Vec<ListedJob> {
    let text = String::from_utf8_lossy(answer);
    let mut found: Vec<ListedJob> = Vec::new();
    for line in text.lines() {
        if let Some(answer) = line.strip_prefix("= ") {
            found.extend(answered(answer));
        } else if let Some((_, job)) = line.strip_prefix('[').and_then(|job| job.split_once(']')) {
            found.extend(listed(job));
        } else if let (Some(pid), Some(job)) = (first_number(line), found.last_mut()) {
            job.pid = pid;
        }
    }
    // A job that has ended since it was listed appears twice: the last entry counts.
    found.reverse();
    found.sort_by_key(|job| job.pid);
    found.dedup_by_key(|job| job.pid);
    found
}

fn answered(line: &str) -> Option<ListedJob> {
    let (pid, status) = line.split_once(' ')?;
    let state = match status {
        "-" => State::Lives,
        status => State::Ended(status.parse().ok()),
    };
    Some(ListedJob { pid: pid.parse().ok()?, state })
}

/// ` + 1235 Running sleep 5 &`
fn listed(line: &str) -> Option<ListedJob> {
    let line = line.trim_start_matches([' ', '\t', '+', '-']);
    let (pid, state) = line.split_once(' ').unwrap_or((line, ""));
    Some(ListedJob { pid: pid.parse().ok()?, state: state_of(state.trim_start()) })
}

fn first_number(line: &str) -> Option<u32> {
    line.split_whitespace().next()?.parse().ok()
}

/// Parses a state in the words of a shell, followed by the command.
fn state_of(words: &str) -> State {
    /// The names of signals in the C library.
    const SIGNALS: [(&str, i32); 15] = [
        ("Hangup", 1),
        ("Interrupt", 2),
        ("Quit", 3),
        ("Illegal instruction", 4),
        ("Trace/breakpoint trap", 5),
        ("Aborted", 6),
        ("Bus error", 7),
        ("Floating point exception", 8),
        ("Killed", 9),
        ("User defined signal 1", 10),
        ("Segmentation fault", 11),
        ("User defined signal 2", 12),
        ("Broken pipe", 13),
        ("Alarm clock", 14),
        ("Terminated", 15),
    ];
    if let Some(rest) = words.strip_prefix("Done(") {
        return State::Ended(rest.split(')').next().and_then(|code| code.parse().ok()));
    }
    if words.starts_with("Done") {
        return State::Ended(Some(0));
    }
    let signal = SIGNALS.iter().find(|(name, _)| words.starts_with(name));
    signal.map_or(State::Lives, |(_, number)| State::Ended(Some(128 + number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lives(pid: u32) -> ListedJob {
        ListedJob { pid, state: State::Lives }
    }

    fn ended(pid: u32, status: i32) -> ListedJob {
        ListedJob { pid, state: State::Ended(Some(status)) }
    }

    #[test]
    fn a_list_of_dash_has_all_jobs() {
        let text = "[4] + 9817 Running               \n\
                    [3] - 9816 Done(5)               \n\
                    [2]   9814 Killed                \n\
                    [1]   9812 Done                  \n      9813\n";
        let all = [ended(9813, 0), ended(9814, 137), ended(9816, 5), lives(9817)];
        assert_eq!(read(text.as_bytes()), all);
    }

    #[test]
    fn answers_count_more_than_what_was_listed() {
        let text = "[2]-  12 Running                 a &\n[3]+  13 Running        sleep 5 &\n\
                    = 11 127\n= 12 3\n= 14 ?\n";
        let unknown = ListedJob { pid: 14, state: State::Ended(None) };
        assert_eq!(read(text.as_bytes()), [ended(11, 127), ended(12, 3), lives(13), unknown]);
    }

    #[test]
    fn lists_of_bash_and_zsh_are_read() {
        assert_eq!(read(b"[2]+  9782 Running                 sleep 5 &\n"), [lives(9782)]);
        assert_eq!(read(b"[3]  + 12077 running    sleep 5\n"), [lives(12077)]);
        let pipeline =
            b"[1]+  20 Running                 a\n      21                       | b &\n";
        assert_eq!(read(pipeline), [lives(21)]);
    }

    #[test]
    fn anything_else_is_passed_over() {
        for text in ["", "= ", "= x 1", "[", "[1]", "12", "[1] + x y", "\u{0}"] {
            assert_eq!(read(text.as_bytes()), [], "{text}");
        }
    }
}
