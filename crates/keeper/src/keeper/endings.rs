//! The ends of processes: kernels, copies, workers, and the session itself.

use super::{Keeper, Lifecycle, Live};
use crate::directory_watch::DirectoryWatch;
use crate::kernels::Report;
use crate::origins;
use rustix::process::Pid;
use sessile_protocol::{Language, RunNo};
use sessile_session::operations::Event;
use sessile_session::{self as session, Close, Input};
use sessile_store::{SavedKernel, SessionStatus};

impl Keeper {
    /// Handles the end of a child of this process that was reaped.
    pub(crate) fn child_ended(&mut self, pid: Pid, code: i32) {
        if let Some(confined) = &self.home.confined {
            confined.has_ended(pid);
        }
        if let Some(language) = self.kernels.language_of(pid) {
            self.kernel_died(language, code);
        } else {
            self.image_ended(pid);
            if code > 128 {
                self.look_for_lost_captures(pid);
            }
        }
        self.copy_ended(pid);
        self.look_for_orphans();
        let news = self.operations.saves.writer_ended(pid);
        self.operate_all(news);
    }

    /// A process was killed that may have been a shell's fork which writes a capture,
    /// for lack of memory, say. Such a one is a child of this process, and newer than
    /// the last run.
    fn look_for_lost_captures(&mut self, pid: Pid) {
        let may_be_capture = |live: &Live| {
            let is_newer = |than: Pid| origins::is_newer(pid, than) != Some(false);
            live.kernel.is_capturing() && live.capture_floor.is_none_or(is_newer)
        };
        let languages = self.kernels.live.iter().filter(|(_, live)| may_be_capture(live));
        let languages: Vec<Language> = languages.map(|(language, _)| *language).collect();
        for language in languages {
            // It may have reported before its end.
            self.read_reports(language);
            let live = self.kernels.live.get_mut(&language);
            if let Some(Report::NotCaptured) = live.and_then(|live| live.kernel.capture_lost()) {
                self.operate(Event::NotCaptured { language });
                self.captures_done(language);
            }
        }
    }

    /// While closing: whether anything is left that could end.
    pub(crate) fn look_for_end(&mut self) {
        if !self.session.is_open() && self.own_children().is_empty() {
            self.tell_of_deaths();
            self.step(Input::AllGone);
        }
    }

    /// Stops this keeper because the machine goes down or someone wants it gone. The
    /// session does not end: the next client continues from its last state.
    pub(crate) fn shut_down(&mut self) {
        self.settle();
        self.records.metadata.status = SessionStatus::Lost;
        self.records.metadata.ended_at = Some(sessile_store::timestamp());
        self.records.metadata.keeper_pid = None;
        let _ = self.write_metadata();
        self.home.directory.remove_socket();
        self.lifecycle = Lifecycle::Finished;
    }

    /// Handles a deletion in the session's directory. A session whose directory is gone
    /// can no longer be found, and ends with all that it has started.
    pub(crate) fn look_for_directory(&mut self) {
        let is_gone = self.home.watch.as_ref().is_some_and(DirectoryWatch::finds_nothing);
        if is_gone && self.session.is_open() {
            self.step(Input::Close(Close::End(session::Ending::Asked)));
        }
    }

    /// Reports a failed start if the first kernel has died and is not tried again.
    pub(super) fn report_failed_start(&mut self, language: Language) {
        if language == self.home.boot.kernel.language && !self.kernels.live.contains_key(&language)
        {
            let reason = self.kernels.why_not(language, self.home.limits_hint());
            self.report_start(Err(reason));
        }
    }

    /// Notes what is lost with a kernel whose state cannot be restored.
    pub(super) fn note_losses(
        &mut self,
        language: Language,
        current: Option<RunNo>,
        left_state: bool,
    ) {
        if left_state || language.is_shell() || !self.session.is_open() {
            return;
        }
        let saved =
            self.home.directory.state().and_then(|mut state| state.kernels.remove(&language));
        let saved = saved.filter(|saved| saved.comes_back_as_of().is_none());
        if let Some(note) = saved.and_then(|saved| losses(language, &saved)) {
            self.add_note(language, current, note);
        }
    }
}

/// Returns what is lost with a kernel that cannot be restored, by name.
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

/// Returns the names in a section of a state: keys of an object, or items of a list.
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
