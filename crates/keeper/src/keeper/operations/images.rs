//! Contents of images: a waiting copy of a process, a file, or a text.

use super::super::Keeper;
use super::super::live::Live;
use super::copies::{Channel, PendingCopy, Purpose};
use crate::kernels::{Copy, DriverFiles, DumpOutcome, Kind};
use crate::processes;
use crate::reactor::Interest;
use crate::scratch::remove_tree;
use crate::source::Source;
use rustix::process::{Pid, Signal};
use sessile_protocol::{Language, LeftBehind, RunNo};
use sessile_session::Epoch;
use sessile_session::operations::{Copies, CopyId, Event, ImageId};
use sessile_store::SavedKernel;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

#[derive(Default)]
pub(in super::super) struct Images {
    contents: BTreeMap<ImageId, Content>,
    /// Copies that are to become kernels and have not reported yet.
    pub(super) pending_copies: BTreeMap<Language, PendingCopy>,
    /// Processes that are to replace kernels.
    pub(super) successors: BTreeMap<Language, (CopyId, Live)>,
    /// States that were captured last and could not be written to the file.
    pub(in super::super) aside: BTreeMap<Language, SavedKernel>,
    /// Kernels that are gone and may have made copies which have not reported yet.
    orphaned: Vec<(Language, Epoch)>,
}

#[derive(Debug)]
pub(super) enum Content {
    /// A copy that has not reported yet.
    PendingCopy(Channel),
    /// A copy that waits.
    Process(Pid, Channel),
    /// The state is being written to this file.
    Dumping(PathBuf),
    /// The capture of that language as of that run, still to come.
    PendingCapture(Language, RunNo),
    /// The current state of that language in state.json.
    Current(Language),
    Saved(Box<SavedKernel>),
}

impl Images {
    pub(super) fn get(&self, id: ImageId) -> Option<&Content> {
        self.contents.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: ImageId) -> Option<&mut Content> {
        self.contents.get_mut(&id)
    }

    pub(super) fn put(&mut self, id: ImageId, content: Content) {
        self.contents.insert(id, content);
    }

    pub(super) fn remove(&mut self, id: ImageId) -> Option<Content> {
        self.contents.remove(&id)
    }

    /// Returns the image whose copy takes orders in that directory and has not reported
    /// yet.
    pub(super) fn pending_copy_in(&self, directory: &str) -> Option<ImageId> {
        let is_it = |content: &Content| matches!(content, Content::PendingCopy(channel) if channel.is_at(directory));
        self.contents.iter().find(|(_, content)| is_it(content)).map(|(id, _)| *id)
    }

    /// Returns the image that consists of a process.
    pub(super) fn of_process(&self, pid: Pid) -> Option<ImageId> {
        let is_it = |content: &Content| matches!(content, Content::Process(of, _) if *of == pid);
        self.contents.iter().find(|(_, content)| is_it(content)).map(|(id, _)| *id)
    }

    pub(in super::super) fn are_copies_pending(&self) -> bool {
        self.contents.values().any(|content| matches!(content, Content::PendingCopy(_)))
    }
}

impl Keeper {
    /// Asks a live kernel for a copy of itself.
    pub(super) fn copy(&mut self, language: Language, copy: &Copy<'_>) -> io::Result<()> {
        self.renew_directory(language, None)?;
        let live = self.kernels.live.get_mut(&language).ok_or(io::ErrorKind::NotFound)?;
        live.kernel.copy(copy)
    }

    pub(super) fn copy_to_image(&mut self, image: ImageId, language: Language) {
        match self.try_copy_to_image(image, language) {
            Ok(channel) => self.operations.images.put(image, Content::PendingCopy(channel)),
            Err(error) => {
                let why = format!("no copy of it could be made: {error}");
                self.operate(Event::ImageLost { image, why });
            }
        }
    }

    fn try_copy_to_image(&mut self, image: ImageId, language: Language) -> io::Result<Channel> {
        let directory = self.home.scratch.subdirectory(&format!("i{}", image.0))?;
        let channel = Channel::open(
            language,
            directory.clone(),
            DriverFiles::Absent,
            self.home.pipe_access(),
        )?;
        self.reactor.add(&channel.reports, Source::Image(image), Interest::Read)?;
        self.copy(language, &Copy { directory: &directory, kind: Kind::Image })?;
        Ok(channel)
    }

    /// Has a kernel whose process cannot be copied write its state to a file.
    pub(super) fn dump_to_image(&mut self, image: ImageId, language: Language) {
        match self.try_dump_to_image(image, language) {
            Ok(path) => self.operations.images.put(image, Content::Dumping(path)),
            Err(error) => {
                let why = format!("it could not be written down: {error}");
                self.operate(Event::ImageLost { image, why });
            }
        }
    }

    fn try_dump_to_image(&mut self, image: ImageId, language: Language) -> io::Result<PathBuf> {
        let path = self.home.dumps().for_image(&format!("{}-{language}", image.0))?;
        self.renew_directory(language, None)?;
        let live = self.kernels.live.get_mut(&language).ok_or(io::ErrorKind::NotFound)?;
        live.kernel.dump(&path)?;
        Ok(path)
    }

    /// Handles the report that a kernel has written its state to a file. Returns false if
    /// it was not for an image.
    pub(in super::super) fn image_dumped(
        &mut self,
        language: Language,
        dumped: &DumpOutcome,
    ) -> bool {
        let is_it =
            |content: &Content| matches!(content, Content::Dumping(path) if *path == dumped.path);
        let contents = &mut self.operations.images.contents;
        let Some((image, content)) = contents.iter_mut().find(|(_, content)| is_it(content)) else {
            return false;
        };
        let image = *image;
        let as_of = self.session.operations().image(image).map(|image| image.as_of);
        let name = match &dumped.error {
            Some(error) => Err(error.clone()),
            None => self.home.dumps().collect(&dumped.path).map_err(|error| error.to_string()),
        };
        let name = name.map(|path| path.file_name().and_then(OsStr::to_str).map(str::to_owned));
        let event = match (name, as_of) {
            (Ok(Some(name)), Some(as_of)) => {
                let view = self
                    .home
                    .directory
                    .state()
                    .and_then(|mut state| state.kernels.remove(&language));
                let view = view.filter(|saved| saved.as_of_run == as_of);
                *content = Content::Saved(Box::new(SavedKernel {
                    as_of_run: as_of,
                    view: view.map(|saved| saved.view).unwrap_or_default(),
                    restore: None,
                    dump: Some(name),
                    dump_as_of_run: Some(as_of),
                }));
                let left = dumped.left.iter().map(|left| LeftBehind {
                    language: Some(language),
                    name: left.name.clone(),
                    reason: left.reason.clone(),
                });
                Event::ImageReady { image, left: left.collect(), is_restless: false }
            }
            (Err(why), _) => Event::ImageLost { image, why },
            (Ok(_), _) => Event::ImageLost { image, why: "its file has no name".to_owned() },
        };
        self.operate(event);
        true
    }

    /// Keeps the written state of a kernel, which exists or is about to.
    pub(super) fn keep_state(&mut self, image: ImageId, language: Language, as_of: RunNo) {
        let state = self.home.directory.state().unwrap_or_default();
        let is_current = |saved: &&SavedKernel| saved.as_of_run == as_of && saved.restore.is_some();
        let aside = self.operations.images.aside.get(&language);
        let content = match aside.filter(|saved| saved.as_of_run == as_of) {
            _ if state.kernels.get(&language).filter(is_current).is_some() => {
                Content::Current(language)
            }
            Some(saved) => Content::Saved(Box::new(saved.clone())),
            None => Content::PendingCapture(language, as_of),
        };
        self.operations.images.put(image, content);
    }

    /// Keeps the state of a kernel that is about to be replaced in the file.
    pub(in super::super) fn take_out_of_file(&mut self, language: Language, saved: &SavedKernel) {
        for content in self.operations.images.contents.values_mut() {
            if matches!(content, Content::Current(of) if *of == language) {
                *content = Content::Saved(Box::new(saved.clone()));
            }
        }
    }

    /// Notes that a kernel's state has been written to the file.
    pub(in super::super) fn has_captured(&mut self, language: Language, as_of: RunNo) {
        for content in self.operations.images.contents.values_mut() {
            if matches!(content, Content::PendingCapture(of, run) if (*of, *run) == (language, as_of))
            {
                *content = Content::Current(language);
            }
        }
        self.operate(Event::Captured { language, as_of });
    }

    /// Notes a kernel's state that is not in the file, and will not be.
    pub(in super::super) fn has_captured_aside(&mut self, saved: &SavedKernel, language: Language) {
        let as_of = saved.as_of_run;
        for content in self.operations.images.contents.values_mut() {
            if matches!(content, Content::PendingCapture(of, run) if (*of, *run) == (language, as_of))
            {
                *content = Content::Saved(Box::new(saved.clone()));
            }
        }
        self.operations.images.aside.insert(language, saved.clone());
        self.operate(Event::Captured { language, as_of });
    }

    /// Handles the end of a kernel process that was to write down its state or to copy
    /// itself.
    pub(in super::super) fn images_lose_kernel(&mut self, language: Language, epoch: Epoch) {
        let copies = if self.may_have_copies() {
            self.operations.images.orphaned.push((language, epoch));
            Copies::OnTheirWay
        } else {
            Copies::Lost
        };
        self.operate(Event::KernelGone { language, epoch, copies });
    }

    /// Handles the end of a process. If it was the last one that could have been a copy
    /// made by a dead kernel, that copy will not come.
    pub(in super::super) fn look_for_orphans(&mut self) {
        if self.operations.images.orphaned.is_empty() || self.may_have_copies() {
            return;
        }
        for (language, epoch) in std::mem::take(&mut self.operations.images.orphaned) {
            self.operate(Event::KernelGone { language, epoch, copies: Copies::Lost });
        }
    }

    /// Whether there is a process that may be a copy which has not reported yet.
    fn may_have_copies(&self) -> bool {
        self.operations.images.are_copies_pending()
            && self.own_children().iter().any(|pid| !self.is_known(*pid))
    }

    /// Whether the purpose of a process is known.
    fn is_known(&self, pid: Pid) -> bool {
        self.kernels.live.values().any(|live| live.pid == pid)
            || self.is_copy(pid)
            || self.works_on_files(pid)
    }

    /// Whether a process is a waiting copy, and therefore no job.
    pub(in super::super) fn is_copy(&self, pid: Pid) -> bool {
        let images = &self.operations.images;
        images.of_process(pid).is_some()
            || images.successors.values().any(|(_, live)| live.pid == pid)
    }

    /// Has a process made from an image. The image stays as it is.
    pub(super) fn bring_up(&mut self, copy: CopyId, language: Language, image: ImageId) {
        if let Err(error) = self.try_bring_up(copy, language, image) {
            self.operations.images.pending_copies.remove(&language);
            self.operate(Event::CopyLost { copy, why: error.to_string() });
        }
    }

    fn try_bring_up(&mut self, copy: CopyId, language: Language, image: ImageId) -> io::Result<()> {
        let directory = self.expect(language, Purpose::Successor(copy))?;
        let order = Copy { directory: &directory, kind: Kind::Kernel };
        match self.operations.images.get_mut(image) {
            Some(Content::Process(_, channel)) => channel.kernel.copy(&order),
            Some(
                Content::PendingCopy(_)
                | Content::Dumping(_)
                | Content::PendingCapture(..)
                | Content::Current(_)
                | Content::Saved(_),
            )
            | None => Err(io::Error::other("it is no process")),
        }
    }

    /// Ends processes that were to replace kernels.
    pub(super) fn abandon_copies(&mut self, copies: &[CopyId]) {
        let images = &mut self.operations.images;
        let is_one = |purpose: Purpose| match purpose {
            Purpose::First(_) => false,
            Purpose::Successor(copy) => copies.contains(&copy),
        };
        let pending = images.pending_copies.iter().filter(|(_, pending)| is_one(pending.purpose));
        let pending: Vec<Language> = pending.map(|(language, _)| *language).collect();
        images.successors.retain(|_, (copy, live)| {
            let is_kept = !copies.contains(copy);
            if !is_kept {
                processes::signal(&[live.pid], Signal::KILL);
                let _ = remove_tree(&live.directory);
            }
            is_kept
        });
        for language in pending {
            if let Some(pending) = self.operations.images.pending_copies.remove(&language) {
                self.close_channel(&pending.channel);
            }
        }
    }

    /// Releases an image.
    pub(super) fn release_image(&mut self, image: ImageId) {
        match self.operations.images.remove(image) {
            Some(Content::Process(pid, channel)) => {
                processes::signal(&[pid], Signal::KILL);
                self.close_channel(&channel);
            }
            // The copy may start at any moment; it then finds no keeper and ends.
            Some(Content::PendingCopy(channel)) => self.close_channel(&channel),
            Some(Content::Dumping(path)) => self.home.dumps().remove(&path),
            Some(Content::Saved(saved)) => {
                let dump = saved.dump.as_deref().and_then(|name| self.home.directory.dump(name));
                if let Some(dump) = dump {
                    let _ = std::fs::remove_file(dump);
                }
            }
            Some(Content::PendingCapture(..) | Content::Current(_)) | None => {}
        }
    }

    pub(super) fn close_channel(&self, channel: &Channel) {
        self.reactor.remove(&channel.reports);
        let _ = remove_tree(&channel.directory);
    }
}
