//! Images: states of kernels at some time, and their life cycle.
//!
//! ```text
//!  Copy  (Python) ─► Pending ─► Process ─┐
//!  Dump  (Node) ───► Pending ─► Written ─┼─► Lost, with a reason
//!  Keep  (shells) ─► Pending ─► Written ─┘
//! ```
//!
//! An image that shows the current state of a kernel is reused. The driver has the contents
//! of each image, and releases them at [`Task::Release`].

use super::{Context, Copies, ImageId, Task};
use crate::effect::Epoch;
use sessile_protocol::{Language, LeftBehind, RunNo};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub language: Language,
    pub as_of: RunNo,
    /// The process that the image shows.
    epoch: Epoch,
    pub form: Form,
    /// The parts of the state that the image lacks.
    pub left: Vec<LeftBehind>,
    /// The process has threads or tasks, and changes without runs.
    pub is_restless: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Ordered, and not there yet.
    Pending(ImageMethod),
    /// A copy of the process, which waits.
    Process,
    Written,
    /// There is no image; with the reason.
    Lost(String),
}

/// How an image is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageMethod {
    Copy,
    Dump,
    Capture,
}

#[derive(Debug, Default)]
pub(crate) struct Images {
    images: BTreeMap<ImageId, Image>,
    /// The newest image of each language, with the process that it shows.
    newest: BTreeMap<Language, (Epoch, ImageId)>,
    /// The run as of which each kernel's state was last captured.
    captured: BTreeMap<Language, RunNo>,
    last: u64,
}

impl Images {
    pub(crate) fn get(&self, id: ImageId) -> Option<&Image> {
        self.images.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ImageId, &Image)> {
        self.images.iter().map(|(id, image)| (*id, image))
    }

    /// Returns whether an image is pending.
    pub(crate) fn is_pending(&self, id: ImageId) -> bool {
        self.get(id).is_some_and(|image| matches!(image.form, Form::Pending(_)))
    }

    pub(crate) fn pending(&self) -> Vec<ImageId> {
        self.images.keys().copied().filter(|id| self.is_pending(*id)).collect()
    }

    pub(crate) fn is_newest(&self, id: ImageId) -> bool {
        self.newest.values().any(|(_, newest)| *newest == id)
    }

    /// Returns the newest image of a process.
    pub(crate) fn newest_of(&self, language: Language, epoch: Epoch) -> Option<(ImageId, &Image)> {
        let (_, id) = self.newest.get(&language).filter(|(of, _)| *of == epoch)?;
        Some((*id, self.images.get(id)?))
    }

    /// Returns an image of a kernel as it is now; the existing one, if it is current.
    pub(crate) fn of_now(
        &mut self,
        language: Language,
        as_of: RunNo,
        context: &mut Context<'_>,
    ) -> ImageId {
        let epoch = context.core.epoch(language).unwrap_or_default();
        if let Some((id, image)) = self.newest_of(language, epoch)
            && image.as_of == as_of
            && !image.is_restless
            && !matches!(image.form, Form::Lost(_))
        {
            return id;
        }
        let image = self.next();
        let form = match language {
            Language::Python => {
                context.task(Task::Copy { image, language });
                Form::Pending(ImageMethod::Copy)
            }
            Language::Node => {
                context.task(Task::Dump { image, language });
                Form::Pending(ImageMethod::Dump)
            }
            Language::Bash | Language::Sh | Language::Zsh => {
                context.task(Task::Keep { image, language, as_of });
                let is_there = context.core.is_captured(language)
                    || self.captured.get(&language) == Some(&as_of);
                if is_there { Form::Written } else { Form::Pending(ImageMethod::Capture) }
            }
        };
        self.newest.insert(language, (epoch, image));
        self.add(image, language, as_of, epoch, form)
    }

    /// Adds an image of an earlier keeper, which is written or lost.
    pub(crate) fn recall(&mut self, language: Language, as_of: RunNo, form: Form) -> ImageId {
        let image = self.next();
        self.add(image, language, as_of, Epoch::default(), form)
    }

    fn next(&mut self) -> ImageId {
        self.last += 1;
        ImageId(self.last)
    }

    fn add(
        &mut self,
        id: ImageId,
        language: Language,
        as_of: RunNo,
        epoch: Epoch,
        form: Form,
    ) -> ImageId {
        let (left, is_restless) = (Vec::new(), false);
        self.images.insert(id, Image { language, as_of, epoch, form, left, is_restless });
        id
    }

    // State changes.

    pub(crate) fn ready(&mut self, id: ImageId, left: Vec<LeftBehind>, is_restless: bool) {
        let Some(image) = self.images.get_mut(&id) else {
            return;
        };
        image.form = match image.form {
            Form::Pending(ImageMethod::Copy) => Form::Process,
            Form::Pending(ImageMethod::Dump) => Form::Written,
            // A capture completes it, or the event is late.
            Form::Pending(ImageMethod::Capture) | Form::Process | Form::Written | Form::Lost(_) => {
                return;
            }
        };
        (image.left, image.is_restless) = (left, is_restless);
    }

    /// Marks an image as lost, and releases its contents.
    pub(crate) fn lost(&mut self, id: ImageId, why: String, context: &mut Context<'_>) {
        let Some(image) = self.images.get_mut(&id) else {
            return;
        };
        match image.form {
            Form::Pending(_) | Form::Process => {
                image.form = Form::Lost(why);
                context.task(Task::Release { image: id });
            }
            Form::Written | Form::Lost(_) => {}
        }
    }

    pub(crate) fn captured(&mut self, language: Language, as_of: RunNo) {
        self.captured.insert(language, as_of);
        for image in self.images.values_mut() {
            let is_it = image.language == language && image.as_of == as_of;
            if is_it && image.form == Form::Pending(ImageMethod::Capture) {
                image.form = Form::Written;
            }
        }
    }

    pub(crate) fn not_captured(&mut self, language: Language, context: &mut Context<'_>) {
        let is_it = |image: &Image| image.form == Form::Pending(ImageMethod::Capture);
        self.lose_all(language, is_it, "it could not be written down", context);
    }

    pub(crate) fn kernel_gone(
        &mut self,
        language: Language,
        epoch: Epoch,
        copies: Copies,
        context: &mut Context<'_>,
    ) {
        let is_it = |image: &Image| {
            image.epoch == epoch
                && match image.form {
                    Form::Pending(ImageMethod::Dump | ImageMethod::Capture) => true,
                    // A copy that it has made exists, though it has not reported yet.
                    Form::Pending(ImageMethod::Copy) => copies == Copies::Lost,
                    Form::Process | Form::Written | Form::Lost(_) => false,
                }
        };
        self.lose_all(language, is_it, "its process ended before it was written down", context);
    }

    fn lose_all(
        &mut self,
        language: Language,
        is_it: impl Fn(&Image) -> bool,
        why: &str,
        context: &mut Context<'_>,
    ) {
        let images = self.images.iter();
        let gone = images.filter(|(_, image)| image.language == language && is_it(image));
        let gone: Vec<ImageId> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            self.lost(id, why.to_owned(), context);
        }
    }

    /// Releases the images that nothing needs.
    pub(crate) fn keep_only(
        &mut self,
        is_needed: impl Fn(ImageId) -> bool,
        context: &mut Context<'_>,
    ) {
        let gone: Vec<ImageId> = self.images.keys().copied().filter(|id| !is_needed(*id)).collect();
        for image in gone {
            // A lost image was released when it was lost.
            match self.images.remove(&image).map(|image| image.form) {
                Some(Form::Pending(_) | Form::Process | Form::Written) => {
                    context.task(Task::Release { image });
                }
                Some(Form::Lost(_)) | None => {}
            }
        }
        let there = &self.images;
        self.newest.retain(|_, (_, id)| there.contains_key(id));
    }

    /// Forgets the images made ahead of a run, unless they are in use.
    pub(crate) fn forget_newest(&mut self, is_in_use: impl Fn(ImageId) -> bool) {
        self.newest.retain(|_, (_, id)| is_in_use(*id));
    }

    pub(crate) fn clear(&mut self, context: &mut Context<'_>) {
        self.newest.clear();
        self.captured.clear();
        self.keep_only(|_| false, context);
    }
}
