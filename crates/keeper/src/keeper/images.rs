//! Copies of kernel processes: those that wait to be gone back to, and those
//! that are just coming up.
//!
//! A copy is made by the interpreter itself, takes its orders in a directory of
//! its own, and says there that it is up. Until then its process has no number
//! that we know.

use super::Keeper;
use super::launching::letter;
use crate::kernels::{Copy, DriverFiles, Dumped, Kernel, Kind, open_channel};
use crate::processes;
use crate::reactor::Interest;
use crate::scratch::Inbox;
use crate::source::{ImageId, Source};
use crate::streams::Stream;
use rustix::process::{Pid, Signal};
use sessile_protocol::{Language, LeftBehind, RunNo};
use sessile_session::Epoch;
use sessile_store::{SavedKernel, StreamName};
use std::io;
use std::path::PathBuf;

/// The state of a kernel at some time.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) language: Language,
    pub(super) as_of: RunNo,
    pub(super) form: Form,
    /// What it does not have.
    pub(super) left: Vec<LeftBehind>,
    /// What it was taken of has threads or tasks, and changes without runs.
    pub(super) is_restless: bool,
}

#[derive(Debug)]
pub(super) enum Form {
    /// Asked for, and not there yet.
    Coming(Option<Channel>),
    /// Being written into that file.
    Dumping(PathBuf),
    /// A copy of the process, which waits.
    Process(Pid, Channel),
    Saved(Box<SavedKernel>),
    /// It is what state.json has at the moment.
    Current,
    /// There is none, and why.
    Lost(String),
}

/// Where a copy takes orders and reports.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) kernel: Box<dyn Kernel>,
    pub(super) reports: Inbox,
    pub(super) directory: PathBuf,
}

/// A kernel process that is about to say that it is there.
#[derive(Debug)]
pub(super) struct ComingKernel {
    pub(super) purpose: Purpose,
    pub(super) channel: Channel,
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
}

/// What a process is for that is coming up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The kernel that a fork begins with.
    First(Epoch),
    /// To take the place of another, when all that is needed is there.
    Successor,
}

impl Keeper {
    /// Prepares for a copy that becomes a kernel of this session.
    pub(super) fn expect(&mut self, language: Language, purpose: Purpose) -> io::Result<PathBuf> {
        let name = match purpose {
            Purpose::First(_) => letter(language).to_owned(),
            // The one that is there goes on until this one has come up.
            Purpose::Successor => {
                self.branches.last_image += 1;
                format!("{}{}", letter(language), self.branches.last_image)
            }
        };
        let directory = self.home.scratch.subdirectory(&name)?;
        let stdout = Stream::create(&directory, StreamName::Stdout)?;
        let stderr = Stream::create(&directory, StreamName::Stderr)?;
        let (kernel, reports) = open_channel(language, &directory, DriverFiles::Installed)?;
        self.reactor.add(&reports, Source::Copy(language), Interest::Read)?;
        let channel = Channel { kernel, reports, directory: directory.clone() };
        self.branches.coming.insert(language, ComingKernel { purpose, channel, stdout, stderr });
        Ok(directory)
    }

    /// Asks a live kernel for a copy of itself.
    pub(super) fn copy(&mut self, language: Language, copy: &Copy<'_>) -> io::Result<()> {
        let live = self.kernels.live.get_mut(&language).ok_or(io::ErrorKind::NotFound)?;
        live.kernel.copy(copy)
    }

    pub(super) fn add_image(&mut self, language: Language, as_of: RunNo, form: Form) -> ImageId {
        self.branches.last_image += 1;
        let id = ImageId(self.branches.last_image);
        self.put_image(id, language, as_of, form);
        id
    }

    fn put_image(&mut self, id: ImageId, language: Language, as_of: RunNo, form: Form) {
        let (left, is_restless) = (Vec::new(), false);
        self.branches.images.insert(id, Image { language, as_of, form, left, is_restless });
    }

    /// Has an image made of a live kernel, which is idle.
    pub(super) fn freeze(&mut self, language: Language, as_of: RunNo) -> ImageId {
        self.branches.last_image += 1;
        let id = ImageId(self.branches.last_image);
        let form = match self.try_freeze(language, id) {
            Ok(channel) => Form::Coming(Some(channel)),
            Err(error) => Form::Lost(format!("no copy of it could be made: {error}")),
        };
        self.put_image(id, language, as_of, form);
        id
    }

    fn try_freeze(&mut self, language: Language, id: ImageId) -> io::Result<Channel> {
        let name = format!("i{}", id.0);
        let directory = self.home.scratch.subdirectory(&name)?;
        let (kernel, reports) = open_channel(language, &directory, DriverFiles::Absent)?;
        self.reactor.add(&reports, Source::Image(id), Interest::Read)?;
        let copy = Copy { directory: &directory, kind: Kind::Image };
        self.copy(language, &copy)?;
        Ok(Channel { kernel, reports, directory })
    }

    /// The written-down state of a kernel, which is there or about to be.
    pub(super) fn keep_captured(&mut self, language: Language, as_of: RunNo) -> ImageId {
        let form = match self.saves.aside.get(&language).filter(|saved| saved.as_of_run == as_of) {
            _ if self.session.is_captured(language) => Form::Current,
            Some(saved) => Form::Saved(Box::new(saved.clone())),
            None => Form::Coming(None),
        };
        self.add_image(language, as_of, form)
    }

    /// The state of a kernel whose process cannot be copied, in a file.
    pub(super) fn dump_image(&mut self, language: Language, as_of: RunNo) -> ImageId {
        let form = match self.try_dump(language) {
            Ok(path) => Form::Dumping(path),
            Err(error) => Form::Lost(format!("it could not be written down: {error}")),
        };
        self.add_image(language, as_of, form)
    }

    fn try_dump(&mut self, language: Language) -> io::Result<PathBuf> {
        self.branches.last_image += 1;
        let folder = self.home.directory.make_kernels().map_err(io::Error::other)?;
        let path = folder.join(format!("image-{}-{language}", self.branches.last_image));
        let _ = std::fs::remove_file(&path);
        let live = self.kernels.live.get_mut(&language).ok_or(io::ErrorKind::NotFound)?;
        live.kernel.dump(&path)?;
        Ok(path)
    }

    /// A kernel has written its state into a file. False: nobody here has asked.
    pub(super) fn image_dumped(&mut self, language: Language, dumped: &Dumped) -> bool {
        let is_it =
            |image: &&mut Image| matches!(&image.form, Form::Dumping(path) if *path == dumped.path);
        let view =
            self.home.directory.state().and_then(|mut state| state.kernels.remove(&language));
        let Some(image) = self.branches.images.values_mut().find(is_it) else {
            return false;
        };
        let name = dumped.path.file_name().and_then(|name| name.to_str());
        image.form = match (&dumped.error, name) {
            (None, Some(name)) => {
                let view = view.filter(|saved| saved.as_of_run == image.as_of);
                Form::Saved(Box::new(SavedKernel {
                    as_of_run: image.as_of,
                    view: view.map(|saved| saved.view).unwrap_or_default(),
                    restore: None,
                    dump: Some(name.to_owned()),
                    dump_as_of_run: Some(image.as_of),
                }))
            }
            (Some(error), _) => Form::Lost(error.clone()),
            (None, None) => Form::Lost("its file has no name".to_owned()),
        };
        image.left = dumped
            .left
            .iter()
            .map(|left| LeftBehind {
                language: Some(language),
                name: left.name.clone(),
                reason: left.reason.clone(),
            })
            .collect();
        self.pump_operations();
        true
    }

    /// A kernel process is gone that was to write its state down, or to copy
    /// itself.
    pub(super) fn images_lose_kernel(&mut self, language: Language) {
        // A copy that it had made is there, though it has not said so.
        let children = self.own_children();
        let is_on_its_way = children.iter().any(|pid| !self.is_known(*pid));
        let mut channels = Vec::new();
        for image in self.branches.images.values_mut().filter(|image| image.language == language) {
            let is_lost = match &image.form {
                Form::Dumping(_) | Form::Coming(None) => true,
                Form::Coming(Some(_)) => !is_on_its_way,
                Form::Process(..) | Form::Saved(_) | Form::Current | Form::Lost(_) => false,
            };
            if is_lost {
                let lost = Form::Lost("its process ended before it was written down".to_owned());
                channels.push(std::mem::replace(&mut image.form, lost));
            }
        }
        for form in channels {
            if let Form::Coming(Some(channel)) = form {
                self.close_channel(&channel);
            }
        }
    }

    /// Whether a process is there for something that is known.
    fn is_known(&self, pid: Pid) -> bool {
        self.kernels.live.values().any(|live| live.pid == pid)
            || self.is_copy(pid)
            || self.works_on_files(pid)
    }

    /// Whether something is asked for that is not there yet.
    pub(super) fn is_image_coming(&self, id: ImageId) -> bool {
        let form = self.branches.images.get(&id).map(|image| &image.form);
        matches!(form, Some(Form::Coming(_) | Form::Dumping(_)))
    }

    pub(super) fn coming_images(&self) -> Vec<ImageId> {
        self.branches.images.keys().copied().filter(|id| self.is_image_coming(*id)).collect()
    }

    /// A kernel's state is about to be replaced in the file.
    pub(super) fn take_out_of_file(&mut self, language: Language, saved: &SavedKernel) {
        for image in self.branches.images.values_mut().filter(|image| image.language == language) {
            if let Form::Current = image.form {
                image.form = Form::Saved(Box::new(saved.clone()));
            }
        }
    }

    /// A kernel's state has been written to the file.
    pub(super) fn has_captured(&mut self, language: Language, as_of: RunNo) {
        for image in self.branches.images.values_mut().filter(|image| image.language == language) {
            if let Form::Coming(None) = image.form
                && image.as_of == as_of
            {
                image.form = Form::Current;
            }
        }
        self.pump_preparing();
        self.pump_operations();
    }

    /// A kernel's state is known that is not in the file, and will not be.
    pub(super) fn has_captured_aside(&mut self, saved: &SavedKernel, language: Language) {
        for image in self.branches.images.values_mut().filter(|image| image.language == language) {
            if let Form::Coming(None) = image.form
                && image.as_of == saved.as_of_run
            {
                image.form = Form::Saved(Box::new(saved.clone()));
            }
        }
        self.saves.aside.insert(language, saved.clone());
        self.pump_preparing();
        self.pump_operations();
    }

    /// A kernel has failed to write its state down.
    pub(super) fn has_not_captured(&mut self, language: Language) {
        for image in self.branches.images.values_mut().filter(|image| image.language == language) {
            if let Form::Coming(None) = image.form {
                image.form = Form::Lost("it could not be written down".to_owned());
            }
        }
        self.pump_preparing();
    }

    /// Has a process made of an image, which stays as it is.
    pub(super) fn thaw(&mut self, id: ImageId) -> Result<(), String> {
        let language =
            self.branches.images.get(&id).map(|image| image.language).ok_or("it is gone")?;
        let directory = self.expect(language, Purpose::Successor).map_err(|e| e.to_string())?;
        let copy = Copy { directory: &directory, kind: Kind::Kernel };
        let outcome = match self.branches.images.get_mut(&id).map(|image| &mut image.form) {
            Some(Form::Process(_, channel)) => {
                channel.kernel.copy(&copy).map_err(|error| error.to_string())
            }
            Some(Form::Lost(why)) => Err(why.clone()),
            Some(Form::Coming(_) | Form::Dumping(_) | Form::Saved(_) | Form::Current) | None => {
                Err("it is no process".to_owned())
            }
        };
        if outcome.is_err() {
            self.branches.coming.remove(&language);
        }
        outcome
    }

    /// Ends the processes that were to take the place of others.
    pub(super) fn abandon_thawed(&mut self) {
        let is_successor = |coming: &ComingKernel| coming.purpose == Purpose::Successor;
        let coming: Vec<Language> =
            self.branches.coming.iter().filter(|(_, n)| is_successor(n)).map(|(l, _)| *l).collect();
        for language in coming {
            if let Some(coming) = self.branches.coming.remove(&language) {
                self.close_channel(&coming.channel);
            }
        }
        for (_, live) in std::mem::take(&mut self.branches.thawed) {
            processes::signal(&[live.pid], Signal::KILL);
            let _ = std::fs::remove_dir_all(&live.directory);
        }
        self.branches.thaw_failures.clear();
    }

    /// Lets go of images that nobody needs any more.
    pub(super) fn drop_images(&mut self, is_needed: impl Fn(ImageId) -> bool) {
        let gone: Vec<ImageId> =
            self.branches.images.keys().copied().filter(|id| !is_needed(*id)).collect();
        for id in gone {
            match self.branches.images.remove(&id).map(|image| image.form) {
                Some(Form::Process(pid, channel)) => {
                    processes::signal(&[pid], Signal::KILL);
                    self.close_channel(&channel);
                }
                // It may come up any moment; then it finds nobody, and ends.
                Some(Form::Coming(Some(channel))) => self.close_channel(&channel),
                Some(Form::Dumping(path)) => {
                    let _ = std::fs::remove_file(path);
                }
                Some(Form::Saved(saved)) => {
                    let dump =
                        saved.dump.as_deref().and_then(|name| self.home.directory.dump(name));
                    if let Some(dump) = dump {
                        let _ = std::fs::remove_file(dump);
                    }
                }
                Some(Form::Coming(None) | Form::Current | Form::Lost(_)) | None => {}
            }
        }
    }

    pub(super) fn close_channel(&self, channel: &Channel) {
        self.reactor.remove(&channel.reports);
        let _ = std::fs::remove_dir_all(&channel.directory);
    }
}
