//! States of kernels at some time, and what becomes of them.
//!
//! ```text
//!  Copy  (Python) ─► Coming ─► Process ─┐
//!  Dump  (Node) ───► Coming ─► Written ─┼─► Lost, with a reason
//!  Keep  (shells) ─► Coming ─► Written ─┘
//! ```
//!
//! An image that shows a kernel as it is now is used again. The driver has what
//! is inside of each, and lets go of it at [`Task::Release`].

use super::{Context, Copies, ImageId, Task};
use crate::effect::Epoch;
use sessile_protocol::{Language, LeftBehind, RunNo};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub language: Language,
    pub as_of: RunNo,
    /// The process that it is an image of.
    epoch: Epoch,
    pub form: Form,
    /// What it does not have.
    pub left: Vec<LeftBehind>,
    /// What it was taken of has threads or tasks, and changes without runs.
    pub is_restless: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Asked for, and not there yet.
    Coming(ImageMethod),
    /// A copy of the process, which waits.
    Process,
    Written,
    /// There is none, and why.
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
    /// By language, with the process that it is an image of.
    newest: BTreeMap<Language, (Epoch, ImageId)>,
    /// As of which run the last state of a kernel was written down.
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

    /// Whether something is asked for that is not there yet.
    pub(crate) fn is_coming(&self, id: ImageId) -> bool {
        self.get(id).is_some_and(|image| matches!(image.form, Form::Coming(_)))
    }

    pub(crate) fn coming(&self) -> Vec<ImageId> {
        self.images.keys().copied().filter(|id| self.is_coming(*id)).collect()
    }

    pub(crate) fn is_newest(&self, id: ImageId) -> bool {
        self.newest.values().any(|(_, newest)| *newest == id)
    }

    /// The newest image of a process.
    pub(crate) fn newest_of(&self, language: Language, epoch: Epoch) -> Option<(ImageId, &Image)> {
        let (_, id) = self.newest.get(&language).filter(|(of, _)| *of == epoch)?;
        Some((*id, self.images.get(id)?))
    }

    /// An image of a kernel as it is; the one that there is already, if it will do.
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
                Form::Coming(ImageMethod::Copy)
            }
            Language::Node => {
                context.task(Task::Dump { image, language });
                Form::Coming(ImageMethod::Dump)
            }
            Language::Bash | Language::Sh | Language::Zsh => {
                context.task(Task::Keep { image, language, as_of });
                let is_there = context.core.is_captured(language)
                    || self.captured.get(&language) == Some(&as_of);
                if is_there { Form::Written } else { Form::Coming(ImageMethod::Capture) }
            }
        };
        self.newest.insert(language, (epoch, image));
        self.add(image, language, as_of, epoch, form)
    }

    /// An image of an earlier keeper, which was written down or is lost.
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

    // What becomes of them.

    pub(crate) fn ready(&mut self, id: ImageId, left: Vec<LeftBehind>, is_restless: bool) {
        let Some(image) = self.images.get_mut(&id) else {
            return;
        };
        image.form = match image.form {
            Form::Coming(ImageMethod::Copy) => Form::Process,
            Form::Coming(ImageMethod::Dump) => Form::Written,
            // It is filled by a capture, or it is late.
            Form::Coming(ImageMethod::Capture) | Form::Process | Form::Written | Form::Lost(_) => {
                return;
            }
        };
        (image.left, image.is_restless) = (left, is_restless);
    }

    /// Whatever was there is let go of.
    pub(crate) fn lost(&mut self, id: ImageId, why: String, context: &mut Context<'_>) {
        let Some(image) = self.images.get_mut(&id) else {
            return;
        };
        match image.form {
            Form::Coming(_) | Form::Process => {
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
            if is_it && image.form == Form::Coming(ImageMethod::Capture) {
                image.form = Form::Written;
            }
        }
    }

    pub(crate) fn not_captured(&mut self, language: Language, context: &mut Context<'_>) {
        let is_it = |image: &Image| image.form == Form::Coming(ImageMethod::Capture);
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
                    Form::Coming(ImageMethod::Dump | ImageMethod::Capture) => true,
                    // A copy that it had made is there, though it has not said so.
                    Form::Coming(ImageMethod::Copy) => copies == Copies::Lost,
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

    /// Lets go of images that nobody needs any more.
    pub(crate) fn keep_only(
        &mut self,
        is_needed: impl Fn(ImageId) -> bool,
        context: &mut Context<'_>,
    ) {
        let gone: Vec<ImageId> = self.images.keys().copied().filter(|id| !is_needed(*id)).collect();
        for image in gone {
            // One that is lost was let go of when that was known.
            match self.images.remove(&image).map(|image| image.form) {
                Some(Form::Coming(_) | Form::Process | Form::Written) => {
                    context.task(Task::Release { image });
                }
                Some(Form::Lost(_)) | None => {}
            }
        }
        let there = &self.images;
        self.newest.retain(|_, (_, id)| there.contains_key(id));
    }

    /// Those made ahead of a run are not wanted either.
    pub(crate) fn forget_newest(&mut self, is_in_use: impl Fn(ImageId) -> bool) {
        self.newest.retain(|_, (_, id)| is_in_use(*id));
    }

    pub(crate) fn clear(&mut self, context: &mut Context<'_>) {
        self.newest.clear();
        self.captured.clear();
        self.keep_only(|_| false, context);
    }
}
