//! A mark that every process of a fork keeps, whatever it does.
//!
//! Several sessions share one keeper, which inherits orphaned processes. A process may
//! discard its environment, leave its process session and close all files, but its
//! children always inherit its resource limits. One of these limits is for real-time
//! scheduling only: how many microseconds such a process may compute without ever
//! waiting. A soft limit of tens of thousands of years limits nothing, and has room for a
//! number that identifies the session.
//!
//! The first session of a keeper has no label, so that sessions without forks have no
//! extra cost.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use sessile_proc::Process;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Labels are 19 digits long.
const LEAST: u64 = 1 << 61;
const MOST: u64 = (1 << 62) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(u64);

impl Label {
    pub(crate) fn of_session(id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        Self(LEAST | (hasher.finish() & (MOST - LEAST)))
    }

    fn from_limit(limit: u64) -> Option<Self> {
        (LEAST..=MOST).contains(&limit).then_some(Self(limit))
    }

    /// Returns the label of a process; none also if user code has set its own limit.
    pub(crate) fn of_process(pid: Pid) -> Option<Self> {
        limit(pid)?.current.and_then(Self::from_limit)
    }

    /// Labels a process that was copied from another session's.
    pub(crate) fn put_on(self, pid: Pid) {
        if let Some(now) = limit(pid).filter(|now| self.fits(*now)) {
            let _ = prlimit(Some(pid), Resource::Rttime, self.in_place_of(now));
        }
    }

    /// Labels this process, which is about to become a kernel. Only makes system calls.
    pub(crate) fn put_on_self(self) {
        let now = getrlimit(Resource::Rttime);
        if self.fits(now) {
            let _ = setrlimit(Resource::Rttime, self.in_place_of(now));
        }
    }

    /// Whether the label can be set. A limit that the user has set stays: then other
    /// marks must do.
    fn fits(self, limit: Rlimit) -> bool {
        let is_free = limit.current.is_none_or(|soft| Self::from_limit(soft).is_some());
        is_free && limit.maximum.is_none_or(|hard| hard >= self.0)
    }

    fn in_place_of(self, limit: Rlimit) -> Rlimit {
        Rlimit { current: Some(self.0), ..limit }
    }
}

fn limit(pid: Pid) -> Option<Rlimit> {
    let limit = Process::new(pid).limit("Max realtime timeout")?;
    Some(Rlimit { current: limit.soft, maximum: limit.hard })
}

/// Whether a shell's soft limit, as printed by `ulimit -S -R`, is a label.
pub(crate) fn is_label(printed: &str) -> bool {
    printed.parse().ok().and_then(Label::from_limit).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_label_is_handed_on_and_a_limit_of_the_users_stays() {
        let [ours, other] = ["sess_1", "sess_2"].map(Label::of_session);
        assert_ne!(ours, other);
        let start = |script: &str| {
            let mut command = Command::new("bash");
            let command = command.args(["-c", script]).stdin(Stdio::piped());
            command.stdout(Stdio::piped()).spawn().unwrap()
        };
        let run = |mut child: std::process::Child| {
            drop(child.stdin.take());
            String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
        };
        let child =
            start("read x; ulimit -S -R; env -i setsid bash -c 'ulimit -S -R; ulimit -H -R'");
        let pid = Pid::from_child(&child);
        assert_eq!(Label::of_process(pid), None);
        other.put_on(pid);
        ours.put_on(pid);
        assert_eq!(Label::of_process(pid), Some(ours));
        let told = run(child);
        let mut told = told.lines();
        assert!(told.by_ref().take(2).all(|soft| is_label(soft) && soft == ours.0.to_string()));
        assert_eq!(told.next(), Some("unlimited"));

        let mut child = start("ulimit -S -R 500000; echo; read x; ulimit -S -R");
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        ours.put_on(Pid::from_child(&child));
        assert_eq!(run(child), "500000\n");
    }
}
