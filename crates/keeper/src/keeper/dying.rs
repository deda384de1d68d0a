//! A kernel process that is gone: what it has left comes first, and only then is
//! its death told to the session.
//!
//! ```text
//!  reaped ─► Capturing ─► Clearing ─► told
//! ```
//!
//! Both stages are skipped where there is nothing to wait for. They wait for events
//! and deadlines, and the keeper does other things meanwhile.

use super::bombs::{Next, Watch};
use super::resources::Ending;
use super::{Deadline, Keeper};
use crate::kernels;
use sessile_protocol::{Code, Failure, Language};
use sessile_session::{Input, Tick};
use sessile_store::SavedKernel;

/// How long a dead kernel's last capture, done by a fork of it, is waited for.
const CAPTURE_PATIENCE: Tick = 200;

/// A kernel that is gone, and what is waited for.
#[derive(Debug)]
pub(super) struct Death {
    exit_code: i32,
    due: Tick,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// A capture is written by a fork of the kernel, which may outlive it by a few
    /// milliseconds; it is worth more than an older one.
    Capturing,
    /// What runs have left at a limit: a new kernel would find no place.
    Clearing { watch: Box<Watch>, left_state: bool },
}

impl Keeper {
    /// A kernel process is gone, and reaped.
    pub(super) fn kernel_died(&mut self, language: Language, exit_code: i32) {
        if self.kernels.live.get(&language).is_none_or(|live| live.death.is_some()) {
            return;
        }
        // What it reported before it died counts.
        while self.read_reports(language) {}
        if self.is_capturing(language) {
            self.dies(language, exit_code, CAPTURE_PATIENCE, Stage::Capturing);
        } else {
            self.look_after_dead(language, exit_code);
        }
    }

    /// Goes on with those that have waited long enough.
    pub(super) fn go_on_dying(&mut self) {
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
    pub(super) fn dead_has_reported(&mut self, language: Language) {
        if self.is_capturing(language) {
            return;
        }
        let live = self.kernels.live.get_mut(&language);
        let is_awaited = |death: &mut Death| matches!(death.stage, Stage::Capturing);
        if let Some(death) = live.and_then(|live| live.death.take_if(is_awaited)) {
            self.next_stage(language, death);
        }
    }

    /// Nothing of the session is left that could be waited for.
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
        let epoch = live.epoch;
        live.death = Some(Death { exit_code, due, stage });
        self.deadlines.set_earlier(Deadline::Deaths, due);
        self.step(Input::Dying { language, epoch });
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
            // In a session that ends, no new kernel needs a place.
            Next::LookAgain(pause) if self.session.is_open() => {
                self.dies(language, exit_code, pause, Stage::Clearing { watch, left_state });
            }
            Next::LookAgain(_) => self.told_of_dead(language, exit_code, left_state, None),
            Next::Done(told) => self.told_of_dead(language, exit_code, left_state, told),
        }
    }

    /// Its state is on disk by now, if it could write that.
    fn look_after_dead(&mut self, language: Language, exit_code: i32) {
        let withheld = self.give_up_withheld(language);
        self.give_up_deferred(language);
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        let (current, verdict) = (live.current, live.verdict);
        let had_no_directory = live.reports.is_unlinked();
        let (last_words, farewell) = (live.kernel.last_words(), live.farewell);
        let as_of = current.or(farewell).or(self.session.idle_as_of(language)).unwrap_or_default();
        let left_state = last_words.is_some_and(|saved| {
            let saved = SavedKernel { as_of_run: as_of, ..saved };
            let saved = self.without_environment_of(as_of, saved);
            self.save(language, saved)
        });
        // The end of a session, or a reset, is no accident.
        if !left_state && verdict.is_none() && self.session.is_open() {
            if had_no_directory {
                self.tell_of_removal(language, current);
            }
            self.tell(language, current, death(language, exit_code));
        }
        let watch = self.tell_of_limits(language, current, Ending::Death, None);
        let Some(watch) = withheld.or(watch) else {
            return self.told_of_dead(language, exit_code, left_state, None);
        };
        let mut watch = Box::new(watch);
        let next = self.first_look(&mut watch);
        self.clear(language, exit_code, left_state, (watch, next));
    }

    /// The session learns of it.
    fn told_of_dead(
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
        note.into_iter().for_each(|note| self.tell(language, current, note));
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
}

fn death(language: Language, exit_code: i32) -> String {
    match exit_code - 128 {
        signal @ 1..=64 => format!("the {language} process was ended by signal {signal}"),
        _ => format!("the {language} process ended with status {exit_code}"),
    }
}
