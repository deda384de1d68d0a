//! Copies of kernel processes say that they are there, or that they are not.

use super::images::{Channel, ComingKernel, Form, Image, Purpose};
use super::{Keeper, Live};
use crate::kernels::{AboutCopy, Born, Report};
use crate::processes;
use crate::reactor::Interest;
use crate::source::{ImageId, Source};
use rustix::process::Pid;
use sessile_protocol::{Language, LeftBehind};
use sessile_session::{Epoch, Input};

impl Keeper {
    /// Reads what a copy that is kept says.
    pub(super) fn read_image_reports(&mut self, id: ImageId) {
        let Some(image) = self.branches.images.get_mut(&id) else {
            return;
        };
        let (Form::Coming(Some(channel)) | Form::Process(_, channel)) = &mut image.form else {
            return;
        };
        let own = channel.directory.clone();
        let mut copied = Vec::new();
        for said in read_reports(channel, &mut self.output.buffer) {
            match said {
                AboutCopy::Born(born) => {
                    image.left = left_behind(image.language, &born);
                    image.is_restless = born.restless;
                    if let Form::Coming(channel) = &mut image.form
                        && let (Some(channel), Some(pid)) = (channel.take(), own_child(&born))
                    {
                        image.form = Form::Process(pid, channel);
                    }
                }
                AboutCopy::Unborn { directory, error } if own.as_os_str() == &*directory => {
                    image.form = Form::Lost(error);
                }
                // Of a copy of the image itself, which is what going back needs.
                AboutCopy::Unborn { directory, error } => {
                    self.family.failed_copies.push((directory, error));
                }
                AboutCopy::Copied { directory, pid } => copied.push((pid, directory)),
            }
        }
        for (pid, directory) in copied {
            self.expect_copy(pid, directory);
        }
        self.pump_operations();
    }

    /// Reads what a copy says that is to become a kernel.
    pub(super) fn read_copy_reports(&mut self, language: Language) {
        let Some(coming) = self.branches.coming.get_mut(&language) else {
            return;
        };
        match read_reports(&mut coming.channel, &mut self.output.buffer).pop() {
            Some(AboutCopy::Born(born)) => self.copy_is_up(language, &born),
            Some(AboutCopy::Unborn { error, .. }) => self.copy_failed(language, &error),
            Some(AboutCopy::Copied { .. }) | None => {}
        }
    }

    /// A copy is there.
    fn copy_is_up(&mut self, language: Language, born: &Born) {
        let Some(pid) = own_child(born) else {
            return self.copy_failed(language, "it is no process of this keeper");
        };
        let Some(ComingKernel { purpose, channel, stdout, stderr }) =
            self.branches.coming.remove(&language)
        else {
            return;
        };
        self.kernels.origins.add_kernel(pid, language);
        if let Some(label) = self.label() {
            label.put_on(pid);
        }
        let epoch = match purpose {
            Purpose::First(epoch) => epoch,
            Purpose::Successor => Epoch::default(),
        };
        let live = Live::new(
            epoch,
            pid,
            channel.kernel,
            channel.reports,
            (stdout, stderr),
            channel.directory,
        );
        let live = Live { has_come_up: true, ..live };
        match purpose {
            Purpose::First(epoch) => {
                let reports = Source::Reports(language);
                self.reactor.change(&live.reports, reports, Interest::Read);
                self.kernels.live.insert(language, live);
                self.step(Input::Ready { language, epoch });
                self.report_fork(language, Ok(left_behind(language, born)));
            }
            Purpose::Successor => {
                self.branches.thawed.insert(language, live);
            }
        }
        self.pump_operations();
    }

    /// A copy that was to become a kernel does not come up.
    pub(super) fn copy_failed(&mut self, language: Language, error: &str) {
        let Some(coming) = self.branches.coming.remove(&language) else {
            return;
        };
        let purpose = coming.purpose;
        self.close_channel(&coming.channel);
        match purpose {
            Purpose::First(epoch) => {
                let message = format!("the {language} process could not be copied: {error}");
                self.kernels.launch_failures.insert(language, message.clone());
                self.tell(language, None, message);
                self.report_fork(language, Err(error.to_owned()));
                self.step(Input::Died { language, epoch, exit_code: 127, left_state: false });
            }
            Purpose::Successor => {
                self.branches.thaw_failures.insert(language, error.to_owned());
            }
        }
        self.pump_operations();
    }

    /// The original has made a copy, which has not said anything yet.
    pub(super) fn expect_copy(&mut self, pid: Pid, directory: String) {
        self.family.copies.push((pid, directory));
        if processes::stat(pid).is_none_or(|stat| stat.has_ended()) {
            self.copy_ended(pid);
        }
    }

    /// A process has ended: if it is a copy that has not said anything, it will
    /// not. Of the others nobody waits for that.
    pub(super) fn copy_ended(&mut self, pid: Pid) {
        let ended = self.family.copies.extract_if(.., |(copy, _)| *copy == pid);
        let why = "its process was ended before it was there";
        self.family.failed_copies.extend(ended.map(|(_, directory)| (directory, why.to_owned())));
    }

    /// The original says that there is no copy for that directory.
    pub(crate) fn not_copied(&mut self, directory: &str, error: &str) {
        let is_there = |channel: &Channel| channel.directory.as_os_str() == directory;
        for image in self.branches.images.values_mut() {
            if let Form::Coming(Some(channel)) = &image.form
                && is_there(channel)
            {
                image.form = Form::Lost(error.to_owned());
                self.pump_operations();
                return;
            }
        }
        let coming = self.branches.coming.iter().find(|(_, coming)| is_there(&coming.channel));
        if let Some(language) = coming.map(|(language, _)| *language) {
            self.copy_failed(language, error);
        }
    }

    /// A process has ended: it may have been an image.
    pub(super) fn image_ended(&mut self, pid: Pid) {
        for image in self.branches.images.values_mut() {
            if let Form::Process(of, _) = &image.form
                && *of == pid
            {
                image.form = Form::Lost("its copy has ended".to_owned());
            }
        }
        let thawed = self.branches.thawed.iter().find(|(_, live)| live.pid == pid);
        if let Some(language) = thawed.map(|(language, _)| *language) {
            self.branches.thawed.remove(&language);
            self.branches.thaw_failures.insert(language, "its process has ended".to_owned());
            self.pump_operations();
        }
    }

    /// Whether a process is a copy that waits: no job of anybody's.
    pub(super) fn is_copy(&self, pid: Pid) -> bool {
        let is_image = |image: &Image| matches!(&image.form, Form::Process(of, _) if *of == pid);
        self.branches.images.values().any(is_image)
            || self.branches.thawed.values().any(|live| live.pid == pid)
    }
}

fn read_reports(channel: &mut Channel, buffer: &mut [u8]) -> Vec<AboutCopy> {
    let read = rustix::io::read(&channel.reports, &mut *buffer).unwrap_or(0);
    let reports = channel.kernel.hear(&buffer[..read]).into_iter();
    let about_copy = |report| if let Report::Copy(said) = report { Some(said) } else { None };
    reports.filter_map(about_copy).collect()
}

/// The process that says that it is there, if it descends from this one.
fn own_child(born: &Born) -> Option<Pid> {
    let pid = Pid::from_raw(i32::try_from(born.pid).ok()?)?;
    processes::is_below(pid, rustix::process::getpid()).then_some(pid)
}

/// What the original alone has.
fn left_behind(language: Language, born: &Born) -> Vec<LeftBehind> {
    let left = |name: &String, reason: &str| LeftBehind {
        language: Some(language),
        name: name.clone(),
        reason: reason.to_owned(),
    };
    let threads = born.threads.iter().map(|name| {
        left(&format!("thread {name}"), "a thread cannot be copied; it goes on in the original")
    });
    let rest = born.left.iter().map(|name| left(name, "it stays with the original"));
    threads.chain(rest).collect()
}
