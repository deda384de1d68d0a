//! The death of a kernel process: its leftovers are dealt with first, and only then is
//! the death reported to the session.
//!
//! ```text
//!  reaped ─► Capturing ─► Clearing ─► reported
//! ```
//!
//! Both stages are skipped if there is nothing to wait for. They wait for events and
//! deadlines; the keeper does other work meanwhile.

use super::bombs::{Next, Watch};
use super::resources::Ending;
use super::{Deadline, Keeper};
use crate::kernels;
use sessile_protocol::{Code, Failure, Language};
use sessile_session::{Input, Tick};
use sessile_store::SavedKernel;

/// How long to wait for a dead kernel's last capture, written by a fork of it.
const CAPTURE_PATIENCE: Tick = 200;

/// A kernel that is gone, and the stage of its death.
#[derive(Debug)]
pub(super) struct Death {
    exit_code: i32,
    due: Tick,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// A fork of the kernel still writes a capture. It may outlive the kernel by a few
    /// milliseconds, and its capture is worth more than an older one.
    Capturing,
    /// Processes that runs have left fill the process limit: a new kernel would find no
    /// place.
    Clearing { watch: Box<Watch>, left_state: bool },
}

impl Keeper {
    /// Handles the end of a kernel process that was reaped.
    pub(super) fn kernel_died(&mut self, language: Language, exit_code: i32) {
        let Some(live) = self.kernels.live.get(&language).filter(|live| live.death.is_none())
        else {
            return;
        };
        // Reports that it sent before it died count, but no run begins after them.
        let epoch = live.epoch;
        self.step(Input::Dying { language, epoch });
        while self.read_reports(language) {}
        if self.is_capturing(language) {
            self.dies(language, exit_code, CAPTURE_PATIENCE, Stage::Capturing);
        } else {
            self.look_after_dead(language, exit_code);
        }
    }

    /// Goes on with those that have waited long enough.
    pub(super) fn continue_deaths(&mut self) {
        let now = self.now();
        let languages: Vec<Language> = self.kernels.live.keys().copied().collect();
        for language in languages {
            let live = self.kernels.live.get_mut(&language);
            let Some(death) = live.and_then(|live| live.death.take_if(|death| death.due <= now))
            else {
                continue;
            };
            self.next_stage(language, death);
        }
        let due = self.kernels.live.values().filter_map(|live| Some(live.death.as_ref()?.due));
        self.deadlines.set(Deadline::Deaths, due.min());
    }

    /// A kernel has reported, perhaps after its end: that its capture is done.
    pub(super) fn note_report_of_dead(&mut self, language: Language) {
        if self.is_capturing(language) {
            return;
        }
        let live = self.kernels.live.get_mut(&language);
        let is_awaited = |death: &mut Death| matches!(death.stage, Stage::Capturing);
        if let Some(death) = live.and_then(|live| live.death.take_if(is_awaited)) {
            self.next_stage(language, death);
        }
    }

    /// Completes all pending deaths: no process of the session is left to wait for.
    pub(super) fn tell_of_deaths(&mut self) {
        let languages: Vec<Language> = self.kernels.live.keys().copied().collect();
        for language in languages {
            while self.read_reports(language) {}
            let live = self.kernels.live.get_mut(&language);
            if let Some(death) = live.and_then(|live| live.death.take()) {
                self.next_stage(language, death);
            }
        }
    }

    fn is_capturing(&self, language: Language) -> bool {
        let live = self.kernels.live.get(&language);
        language.is_shell() && live.is_some_and(|live| live.kernel.is_capturing())
    }

    fn dies(&mut self, language: Language, exit_code: i32, patience: Tick, stage: Stage) {
        let due = self.now() + patience;
        let Some(live) = self.kernels.live.get_mut(&language) else { return };
        live.death = Some(Death { exit_code, due, stage });
        self.deadlines.set_earlier(Deadline::Deaths, due);
    }

    fn next_stage(&mut self, language: Language, death: Death) {
        let exit_code = death.exit_code;
        match death.stage {
            Stage::Capturing => self.look_after_dead(language, exit_code),
            Stage::Clearing { mut watch, left_state } => {
                let next = self.look(&mut watch);
                self.clear(language, exit_code, left_state, (watch, next));
            }
        }
    }

    fn clear(
        &mut self,
        language: Language,
        exit_code: i32,
        left_state: bool,
        (watch, next): (Box<Watch>, Next),
    ) {
        match next {
            // A session that ends needs no place for a new kernel.
            Next::LookAgain(pause) if self.session.is_open() => {
                self.dies(language, exit_code, pause, Stage::Clearing { watch, left_state });
            }
            Next::LookAgain(_) => self.report_death(language, exit_code, left_state, None),
            Next::Done(told) => self.report_death(language, exit_code, left_state, told),
        }
    }

    /// Saves the state that the dead kernel has left, if it could write one, and deals
    /// with its leftovers.
    fn look_after_dead(&mut self, language: Language, exit_code: i32) {
        let withheld = self.release_delayed_end(language);
        self.take_back_deferred(language);
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        let (current, verdict) = (live.current, live.verdict);
        let had_no_directory = live.reports.is_unlinked();
        let (final_state, farewell) = (live.kernel.final_state(), live.farewell);
        let as_of = current.or(farewell).or(self.session.idle_as_of(language)).unwrap_or_default();
        let left_state = final_state.is_some_and(|saved| {
            let saved = SavedKernel { as_of_run: as_of, ..saved };
            let saved = self.without_environment_of(as_of, saved);
            self.save(language, saved)
        });
        // The end of a session, or a reset, is no accident.
        if !left_state && verdict.is_none() && self.session.is_open() {
            if had_no_directory {
                self.tell_of_removal(language, current);
            }
            self.add_note(language, current, death(language, exit_code));
        }
        let watch = self.tell_of_limits(language, current, Ending::Death, None);
        let Some(watch) = withheld.or(watch) else {
            return self.report_death(language, exit_code, left_state, None);
        };
        let mut watch = Box::new(watch);
        let next = self.first_look(&mut watch);
        self.clear(language, exit_code, left_state, (watch, next));
    }

    /// The session learns of it.
    fn report_death(
        &mut self,
        language: Language,
        exit_code: i32,
        left_state: bool,
        note: Option<String>,
    ) {
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        let (epoch, current) = (live.epoch, live.current);
        let exit_code = live.verdict.unwrap_or(exit_code);
        let directory = live.directory.clone();
        note.into_iter().for_each(|note| self.add_note(language, current, note));
        if let Some(said) = kernels::complaints(&self.home.outside(&directory)) {
            let hint = self.home.limits_hint();
            let message = format!("{language} does not come up{hint}; it says: {said}");
            let failure = Failure::in_words(Code::KernelUnavailable, message);
            self.kernels.launch_failures.insert(language, failure);
        }
        self.note_losses(language, current, left_state);
        self.finish_output(language);
        self.drop_terminal(language);
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
}

fn death(language: Language, exit_code: i32) -> String {
    match exit_code - 128 {
        signal @ 1..=64 => format!("the {language} process was ended by signal {signal}"),
        _ => format!("the {language} process ended with status {exit_code}"),
    }
}
