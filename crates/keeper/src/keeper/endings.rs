//! The ends of processes: kernels, copies, workers, and the session's own.

use super::resources::Ending;
use super::{Keeper, Lifecycle};
use crate::absence::Watch;
use crate::kernels;
use rustix::event::{PollFd, PollFlags};
use rustix::process::Pid;
use sessile_protocol::{Code, Failure, Language, RunNo};
use sessile_session::{self as session, Close, Input, Tick};
use sessile_store::{SavedKernel, SessionStatus};

/// How long a dead kernel's last capture, done by a fork of it, is waited for.
const CAPTURE_PATIENCE_MS: i64 = 200;

impl Keeper {
    /// A child of this process has ended, and was reaped.
    pub(crate) fn child_ended(&mut self, pid: Pid, code: i32) {
        if let Some(confined) = &self.home.confined {
            confined.has_ended(pid);
        }
        if let Some(language) = self.kernels.language_of(pid) {
            self.kernel_died(language, code);
        } else {
            self.image_ended(pid);
        }
        self.copy_ended(pid);
        let news = self.operations.saves.writer_ended(pid);
        self.operate_all(news);
    }

    /// While closing: whether anything is left that could end.
    pub(crate) fn look_for_end(&mut self) {
        if !self.session.is_open() && self.own_children().is_empty() {
            self.step(Input::AllGone);
        }
    }

    /// The machine goes down, or somebody wants this keeper gone: the session
    /// is not ended by that, the next client goes on from its last state.
    pub(crate) fn shut_down(&mut self) {
        self.settle();
        self.records.metadata.status = SessionStatus::Lost;
        self.records.metadata.ended_at = Some(sessile_store::timestamp());
        self.records.metadata.keeper_pid = None;
        let _ = self.write_metadata();
        self.home.directory.remove_socket();
        self.lifecycle = Lifecycle::Finished;
    }

    /// Something was deleted from a session's directory. One whose directory is
    /// gone is found by nobody any more, and ends with all that it has started.
    pub(crate) fn look_for_directory(&mut self) {
        let is_gone = self.home.watch.as_ref().is_some_and(Watch::finds_nothing);
        if is_gone && self.session.is_open() {
            self.step(Input::Close(Close::End(session::Ending::Asked)));
        }
    }

    /// A kernel process is gone, and reaped.
    fn kernel_died(&mut self, language: Language, exit_code: i32) {
        // What it reported before it died counts.
        while self.read_reports(language) {}
        self.await_captures(language);
        let withheld = self.give_up_withheld(language);
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        let (epoch, current, verdict) = (live.epoch, live.current, live.verdict);
        let (last_words, farewell) = (live.kernel.last_words(), live.farewell);
        let as_of = current.or(farewell).or(self.session.idle_as_of(language)).unwrap_or_default();
        let left_state = last_words.is_some_and(|saved| {
            let saved = SavedKernel { as_of_run: as_of, ..saved };
            let saved = self.without_environment_of(as_of, saved);
            self.save(language, saved)
        });
        // The end of a session, or a reset, is no accident.
        if !left_state && verdict.is_none() && self.session.is_open() {
            self.tell(language, current, death(language, exit_code));
        }
        // A new one would find no place: this cannot wait.
        let watch = self.tell_of_limits(language, current, Ending::Death, None);
        let note = withheld.or(watch).and_then(|watch| self.see_through(watch));
        note.into_iter().for_each(|note| self.tell(language, current, note));
        let exit_code = verdict.unwrap_or(exit_code);
        let directory = self.kernels.live.get(&language).map(|live| live.directory.clone());
        let directory = directory.unwrap_or_default();
        if let Some(said) = kernels::complaints(&self.home.outside(&directory)) {
            let message = format!("{language} does not come up; it says: {said}");
            let failure = Failure::in_words(Code::KernelUnavailable, message);
            self.kernels.launch_failures.insert(language, failure);
        }
        self.note_losses(language, current, left_state);
        self.finish_output(language);
        self.lose_terminal(language);
        self.kernels.live.remove(&language);
        self.answer_inspectors(language);
        self.images_lose_kernel(language, epoch);
        self.has_described(language);
        self.kernels.last_status.insert(language, exit_code);
        if self.session.is_open() {
            self.step(Input::Died { language, epoch, exit_code, left_state });
            self.report_failed_start(language);
        } else if self.kernels.live.is_empty() {
            self.step(Input::KernelsGone);
        }
    }

    /// A first kernel that has died, and is not tried again, is the end of the
    /// session's start.
    fn report_failed_start(&mut self, language: Language) {
        if language == self.home.boot.kernel.language && !self.kernels.live.contains_key(&language)
        {
            let reason = self.kernels.why_not(language);
            self.report_start(Err(reason));
        }
    }

    /// What dies with a kernel whose state cannot be brought back.
    fn note_losses(&mut self, language: Language, current: Option<RunNo>, left_state: bool) {
        if left_state || language.is_shell() || !self.session.is_open() {
            return;
        }
        let saved =
            self.home.directory.state().and_then(|mut state| state.kernels.remove(&language));
        let saved = saved.filter(|saved| saved.comes_back_as_of().is_none());
        if let Some(note) = saved.and_then(|saved| losses(language, &saved)) {
            self.tell(language, current, note);
        }
    }

    /// A capture is written by a fork of the kernel, which may outlive it by a
    /// few milliseconds; it is worth more than an older one.
    fn await_captures(&mut self, language: Language) {
        let deadline = self.now() + CAPTURE_PATIENCE_MS.cast_unsigned();
        loop {
            let Some(live) = self.kernels.live.get(&language) else {
                return;
            };
            let now: Tick = self.now();
            if !live.kernel.is_capturing() || !language.is_shell() || now >= deadline {
                return;
            }
            let wait = rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: i64::try_from(deadline - now).unwrap_or(0) * 1_000_000,
            };
            let mut fds = [PollFd::new(&live.reports, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&wait)) {
                Ok(1..) => {
                    self.read_reports(language);
                }
                Ok(0) | Err(_) => return,
            }
        }
    }
}

fn death(language: Language, exit_code: i32) -> String {
    match exit_code - 128 {
        signal @ 1..=64 => format!("the {language} process was ended by signal {signal}"),
        _ => format!("the {language} process ended with status {exit_code}"),
    }
}

/// What goes with a kernel that cannot be brought back, by name.
pub(super) fn losses(language: Language, saved: &SavedKernel) -> Option<String> {
    let named: Vec<String> = ["variables", "functions", "classes", "imports"]
        .iter()
        .filter_map(|section| {
            let names = names_in(saved.view.get(*section)?);
            (!names.is_empty()).then(|| format!("{section} {}", names.join(", ")))
        })
        .collect();
    (!named.is_empty()).then(|| format!("lost with the {language} process: {}", named.join("; ")))
}

/// Names in a section of a state: keys of an object, or items of a list.
fn names_in(section: &serde_json::Value) -> Vec<String> {
    const SHOWN: usize = 20;
    let names: Vec<&str> = match section {
        serde_json::Value::Object(map) => map.keys().map(String::as_str).collect(),
        serde_json::Value::Array(list) => list
            .iter()
            .filter_map(|item| item.as_str().or_else(|| item.get("name")?.as_str()))
            .collect(),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => Vec::new(),
    };
    let more = names.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = names.into_iter().take(SHOWN).map(str::to_owned).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown
}
