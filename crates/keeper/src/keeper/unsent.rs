//! Runs whose order did not reach their kernel: it has ended before, or cannot be reached in
//! private.

use super::Keeper;
use super::effects::NOT_BEGUN;
use crate::processes;
use crate::runs::Sending;
use rustix::process::Signal;
use sessile_proc::Process;
use sessile_protocol::{Language, RunNo};
use sessile_session::Input;
use std::io;

impl Keeper {
    /// Whether a kernel's process is gone, although it was not reaped yet.
    pub(super) fn has_ended(&self, language: Language) -> bool {
        let stat = self.kernels.live.get(&language).map(|live| processes::stat(live.pid));
        stat.is_some_and(|stat| stat.is_none_or(|stat| stat.has_ended()))
    }

    /// Leaves a run to the next process of its kernel, once: this one has ended on its own
    /// before it was told of the run.
    pub(super) fn take_back(&mut self, language: Language, number: RunNo) {
        let Some(run) = self.runs.get_mut(&number) else { return };
        match run.sending {
            Sending::First => {
                run.sending = Sending::Again;
                let Some(live) = self.kernels.live.get_mut(&language) else { return };
                live.deferred = None;
                let epoch = live.epoch;
                self.step(Input::Unsent { language, epoch, run: number });
            }
            Sending::Again => {
                run.notes.push(format!("the run was not begun: {language} ended before that"));
                self.give_up_unsent(language, number);
            }
        }
    }

    pub(super) fn abandon_unsent(&mut self, language: Language, number: RunNo, error: &io::Error) {
        let pid = self.kernels.live.get(&language).map(|live| live.pid);
        let limit = pid.and_then(|pid| Process::new(pid).limit("Max open files")?.soft);
        let why = match (error.raw_os_error(), limit) {
            // The number of its pipe is beyond the limit, or there is no number for another.
            (Some(libc::EBADF | libc::EMFILE), Some(limit)) => {
                format!("its limit of open files is {limit}, which is too low for that")
            }
            _ => error.to_string(),
        };
        if let Some(run) = self.runs.get_mut(&number) {
            run.notes.push(format!(
                "the run was not begun: {language} could not be reached by a way that nobody else \
                 in the sandbox hears ({why}), so that its process was ended"
            ));
        }
        self.give_up_unsent(language, number);
        if let Some(live) = self.kernels.live.get(&language) {
            processes::signal(&[live.pid], Signal::KILL);
        }
    }

    /// The run ends with the process, and not with its status.
    fn give_up_unsent(&mut self, language: Language, number: RunNo) {
        if let Some(run) = self.runs.get_mut(&number) {
            run.begin();
        }
        if let Some(live) = self.kernels.live.get_mut(&language) {
            live.deferred = None;
            live.current = Some(number);
            live.verdict = Some(NOT_BEGUN);
        }
    }
}
