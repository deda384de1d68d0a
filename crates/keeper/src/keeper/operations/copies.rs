//! Copies of kernel processes: some wait as checkpoints, others are to become kernels.
//!
//! The interpreter copies itself. The copy takes its orders in its own directory, and
//! reports there that it is up. Until then its pid is unknown.

use super::super::Keeper;
use super::super::launching::letter;
use super::super::live::Live;
use super::images::Content;
use crate::kernels::{CopyEvent, CopyReport, DriverFiles, Kernel, Report, open_channel};
use crate::processes;
use crate::reactor::Interest;
use crate::scratch::{Inbox, PipeAccess};
use crate::source::Source;
use crate::streams::Stream;
use rustix::process::Pid;
use sessile_protocol::{Code, Failure, Language, LeftBehind};
use sessile_session::operations::{CopyId, Event, ImageId};
use sessile_session::{Epoch, Input};
use sessile_store::StreamName;
use std::io;
use std::path::PathBuf;

/// Where a copy takes orders and reports.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) kernel: Box<dyn Kernel>,
    pub(super) reports: Inbox,
    pub(super) directory: PathBuf,
}

/// A kernel process that has not reported yet.
#[derive(Debug)]
pub(super) struct PendingCopy {
    pub(super) purpose: Purpose,
    pub(super) channel: Channel,
    stdout: Stream,
    stderr: Stream,
}

/// The purpose of a process that is starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The first kernel of a fork.
    First(Epoch),
    /// Replaces a kernel once everything needed is there.
    Successor(CopyId),
}

impl Channel {
    pub(super) fn open(
        language: Language,
        directory: PathBuf,
        files: DriverFiles,
        pipe_access: PipeAccess,
    ) -> io::Result<Self> {
        let (kernel, reports) = open_channel(language, &directory, files, pipe_access)?;
        Ok(Self { kernel, reports, directory })
    }

    pub(super) fn is_at(&self, directory: &str) -> bool {
        self.directory.as_os_str() == directory
    }

    fn read(&mut self, buffer: &mut [u8]) -> Vec<CopyEvent> {
        let read = rustix::io::read(&self.reports, &mut *buffer).unwrap_or(0);
        let reports = self.kernel.parse_reports(&buffer[..read]).into_iter();
        let about_copy = |report| if let Report::Copy(said) = report { Some(said) } else { None };
        reports.filter_map(about_copy).collect()
    }
}

impl Keeper {
    /// Prepares for a copy that becomes a kernel of this session.
    pub(super) fn expect(&mut self, language: Language, purpose: Purpose) -> io::Result<PathBuf> {
        let name = match purpose {
            Purpose::First(_) => letter(language).to_owned(),
            // The current kernel goes on until this one is up.
            Purpose::Successor(copy) => format!("{}{}", letter(language), copy.0),
        };
        let directory = self.home.scratch.subdirectory(&name)?;
        let stdout = Stream::create(&directory, StreamName::Stdout)?;
        let stderr = Stream::create(&directory, StreamName::Stderr)?;
        let channel = Channel::open(
            language,
            directory.clone(),
            DriverFiles::Installed,
            self.home.pipe_access(),
        )?;
        self.reactor.add(&channel.reports, Source::Copy(language), Interest::Read)?;
        let pending = PendingCopy { purpose, channel, stdout, stderr };
        self.operations.images.pending_copies.insert(language, pending);
        Ok(directory)
    }

    /// Reads the reports of a copy that is kept.
    pub(in super::super) fn read_image_reports(&mut self, image: ImageId) {
        let content = self.operations.images.get_mut(image);
        let Some(Content::PendingCopy(channel) | Content::Process(_, channel)) = content else {
            return;
        };
        let own = channel.directory.clone();
        for said in channel.read(&mut self.output.buffer) {
            match said {
                CopyEvent::Up(report) => self.image_is_up(image, &report),
                CopyEvent::Failed { directory, error } if own.as_os_str() == &*directory => {
                    self.operate(Event::ImageLost { image, why: error });
                }
                // About a copy of the image itself, which a rewind needs.
                CopyEvent::Failed { directory, error } => {
                    self.family.failed_copies.push((directory, error));
                }
                CopyEvent::Copied { directory, pid } => self.expect_copy(pid, directory),
            }
        }
    }

    fn image_is_up(&mut self, image: ImageId, report: &CopyReport) {
        let Some(pid) = self.own_child(report) else {
            let why = "it is no process of this keeper".to_owned();
            return self.operate(Event::ImageLost { image, why });
        };
        let images = &mut self.operations.images;
        match images.remove(image) {
            Some(Content::PendingCopy(channel)) => {
                images.put(image, Content::Process(pid, channel));
            }
            Some(other) => images.put(image, other),
            None => {}
        }
        let language = self.session.operations().image(image).map(|image| image.language);
        let left = language.map(|language| left_behind(language, report)).unwrap_or_default();
        self.operate(Event::ImageReady { image, left, is_restless: report.restless });
    }

    /// Reads the reports of a copy that is to become a kernel.
    pub(in super::super) fn read_copy_reports(&mut self, language: Language) {
        let Some(pending) = self.operations.images.pending_copies.get_mut(&language) else {
            return;
        };
        match pending.channel.read(&mut self.output.buffer).pop() {
            Some(CopyEvent::Up(report)) => self.copy_is_up(language, &report),
            Some(CopyEvent::Failed { error, .. }) => self.copy_failed(language, &error),
            Some(CopyEvent::Copied { .. }) | None => {}
        }
    }

    fn copy_is_up(&mut self, language: Language, report: &CopyReport) {
        let Some(pid) = self.own_child(report) else {
            return self.copy_failed(language, "it is no process of this keeper");
        };
        let Some(pending) = self.operations.images.pending_copies.remove(&language) else {
            return;
        };
        let PendingCopy {
            purpose,
            channel: Channel { kernel, reports, directory },
            stdout,
            stderr,
        } = pending;
        self.kernels.origins.add_kernel(pid, language);
        if let Some(label) = self.label() {
            label.put_on(pid);
        }
        let epoch = match purpose {
            Purpose::First(epoch) => epoch,
            Purpose::Successor(_) => Epoch::default(),
        };
        let live = Live::new(epoch, pid, kernel, reports, (stdout, stderr), directory);
        let live = Live { has_come_up: true, ..live };
        match purpose {
            Purpose::First(epoch) => {
                self.reactor.change(&live.reports, Source::Reports(language), Interest::Read);
                self.kernels.live.insert(language, live);
                self.step(Input::Ready { language, epoch });
                self.report_fork(language, Ok(left_behind(language, report)));
            }
            Purpose::Successor(copy) => {
                self.operations.images.successors.insert(language, (copy, live));
                self.operate(Event::CopyUp { copy });
            }
        }
    }

    /// Handles the failure of a copy that was to become a kernel.
    pub(in super::super) fn copy_failed(&mut self, language: Language, error: &str) {
        let Some(pending) = self.operations.images.pending_copies.remove(&language) else {
            return;
        };
        self.close_channel(&pending.channel);
        match pending.purpose {
            Purpose::First(epoch) => {
                let message = format!("the {language} process could not be copied: {error}");
                let failure = Failure::in_words(Code::KernelUnavailable, message.clone());
                self.kernels.launch_failures.insert(language, failure);
                self.add_note(language, None, message);
                self.report_fork(language, Err(error.to_owned()));
                self.step(Input::Died { language, epoch, exit_code: 127, left_state: false });
            }
            Purpose::Successor(copy) => {
                self.operate(Event::CopyLost { copy, why: error.to_owned() });
            }
        }
    }

    /// Returns the process that reports, if it descends from this one.
    fn own_child(&self, report: &CopyReport) -> Option<Pid> {
        let pid = self.home.process(Pid::from_raw(i32::try_from(report.pid).ok()?)?)?;
        processes::is_below(pid, rustix::process::getpid()).then_some(pid)
    }

    /// Notes that the original has made a copy, which has not reported yet.
    pub(in super::super) fn expect_copy(&mut self, told: Pid, directory: String) {
        let Some(pid) = self.home.process(told) else {
            self.family.failed_copies.push((directory, ENDED_EARLY.to_owned()));
            return;
        };
        self.family.copies.push((pid, directory));
        if processes::stat(pid).is_none_or(|stat| stat.has_ended()) {
            self.copy_ended(pid);
        }
    }

    /// Handles the end of a process: if it is a copy that has not reported, it never
    /// will. For other processes, nobody waits for a report.
    pub(in super::super) fn copy_ended(&mut self, pid: Pid) {
        let ended = self.family.copies.extract_if(.., |(copy, _)| *copy == pid);
        let ended = ended.map(|(_, directory)| (directory, ENDED_EARLY.to_owned()));
        self.family.failed_copies.extend(ended);
    }

    /// Handles the original's report that there is no copy for a directory.
    pub(crate) fn not_copied(&mut self, directory: &str, error: &str) {
        let images = &self.operations.images;
        if let Some(image) = images.pending_copy_in(directory) {
            return self.operate(Event::ImageLost { image, why: error.to_owned() });
        }
        let pending =
            images.pending_copies.iter().find(|(_, pending)| pending.channel.is_at(directory));
        if let Some(language) = pending.map(|(language, _)| *language) {
            self.copy_failed(language, error);
        }
    }

    /// Handles the end of a process that may have been an image.
    pub(in super::super) fn image_ended(&mut self, pid: Pid) {
        let images = &mut self.operations.images;
        if let Some(image) = images.of_process(pid) {
            return self.operate(Event::ImageLost { image, why: "its copy has ended".to_owned() });
        }
        let ended = images.successors.iter().find(|(_, (_, live))| live.pid == pid);
        if let Some((language, copy)) = ended.map(|(language, (copy, _))| (*language, *copy)) {
            images.successors.remove(&language);
            let why = "its process has ended".to_owned();
            self.operate(Event::CopyLost { copy, why });
        }
    }

    /// Replaces the kernel with a copy that is up.
    pub(in super::super) fn install(&mut self, language: Language, epoch: Epoch) {
        match self.operations.images.successors.remove(&language) {
            Some((_, live)) => {
                self.reactor.change(&live.reports, Source::Reports(language), Interest::Read);
                self.kernels.live.insert(language, Live { epoch, ..live });
                self.step(Input::Ready { language, epoch });
            }
            None => {
                self.step(Input::Died { language, epoch, exit_code: 127, left_state: false });
            }
        }
    }
}

/// Reason for a missing copy that never reported.
const ENDED_EARLY: &str = "its process was ended before it was there";

/// Returns what only the original has.
fn left_behind(language: Language, report: &CopyReport) -> Vec<LeftBehind> {
    let left = |name: &String, reason: &str| LeftBehind {
        language: Some(language),
        name: name.clone(),
        reason: reason.to_owned(),
    };
    let threads = report.threads.iter().map(|name| {
        left(&format!("thread {name}"), "a thread cannot be copied; it goes on in the original")
    });
    let rest = report.left.iter().map(|name| left(name, "it stays with the original"));
    threads.chain(rest).collect()
}
