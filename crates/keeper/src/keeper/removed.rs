//! Kernels whose private directory somebody else has removed or moved.
//!
//! The process of such a kernel continues: it has its pipes open, and so has the keeper.
//! The keeper makes a new directory, with all files that the process opens by path, and
//! adds a note to the answer. The directory is checked before an order, after a run, and
//! now and then during a run that takes longer.
//!
//! A sandbox would show the removed directory for ever, so the new one is mounted in its
//! place.

use super::Keeper;
use super::live::Live;
use crate::confined::Confined;
use crate::kernels::Ended;
use crate::names::Names;
use crate::privacy::Privacy;
use crate::reactor::Interest;
use crate::scratch::{LEFT, PipeAccess, Scratch, hidden_directory};
use crate::source::Source;
use rustix::io::Errno;
use sessile_protocol::{Language, RunNo};
use sessile_session::operations::Event;
use std::io;
use std::path::Path;

impl Live {
    /// Whether the directory is gone in which it finds its orders, and a run its
    /// output.
    fn is_without_directory(&self) -> bool {
        self.death.is_none() && self.reports.is_unlinked()
    }

    /// What a run has lost if single files are gone that it begins with.
    fn loses(&self, language: Language, ended: &Ended) -> Option<&'static str> {
        let has_failed = ended.exit_code != 0;
        let is_gone = |path: &Path| rustix::fs::lstat(path).is_err_and(|e| e == Errno::NOENT);
        let lacks_text = has_failed && language.is_shell() && is_gone(&self.directory.join("c"));
        let lacks_streams = self.stdout.was_removed() || self.stderr.was_removed();
        if lacks_text || (lacks_streams && has_failed) {
            Some("this run may not have been carried out, or its output is lost")
        } else if lacks_streams && language.is_shell() {
            // It has written to a file of its own making.
            Some("output of this run may be lost")
        } else {
            None
        }
    }

    /// Whether a file may be gone that runs need, judging by its directory. In a sandbox the
    /// streams are in another one, below it.
    fn may_have_lost_files(&mut self) -> bool {
        let are_hidden = self.stdout.is_hidden() || self.stderr.is_hidden();
        // Each of them remembers what it has seen.
        let streams = are_hidden && self.hidden_names.may_have_changed();
        self.names.may_have_changed() || streams
    }

    fn move_in(&mut self, scratch: &Scratch, confined: Option<&Confined>) -> io::Result<()> {
        self.names = Names::default();
        self.hidden_names = Names::default();
        let name = self.directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let directory = scratch.subdirectory_anew(name)?;
        let left = directory.join(LEFT);
        match std::fs::create_dir(&left) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        match confined {
            Some(confined) => self.recreate_files_inside(confined, &left)?,
            None => self.kernel.recreate_files(PipeAccess::Open).map(drop)?,
        }
        let pipe_access = if confined.is_some() { PipeAccess::Closed } else { PipeAccess::Open };
        self.stdout.name_again(pipe_access)?;
        self.stderr.name_again(pipe_access)?;
        self.name_streams()?;
        // The last one: it says that all is there.
        self.reports.name_again(pipe_access)?;
        self.names = Names::of(&self.directory);
        self.hidden_names = Names::of(&hidden_directory(&self.directory));
        Ok(())
    }

    /// Makes sure that the next run finds its streams.
    fn name_streams(&mut self) -> io::Result<()> {
        if self.current.is_none() {
            self.stdout.ensure_name(&self.directory)?;
            self.stderr.ensure_name(&self.directory)?;
        }
        Ok(())
    }

    fn recreate_files_inside(&mut self, confined: &Confined, left: &Path) -> io::Result<()> {
        // Kernels that will never see the new one are started again, in a new sandbox.
        confined.show_scratch().inspect_err(|_| confined.sandbox().kill())?;
        confined.sandbox().mount_slate(left)?;
        let named = self.kernel.recreate_files(PipeAccess::Closed)?;
        let kernel = (&mut *self.kernel, self.pid);
        Privacy::rename(&mut self.privacy, kernel, confined, named)
    }
}

impl Keeper {
    /// Makes a directory anew that is gone, for a kernel that goes on. The run that
    /// is given tells of it, or else the next one.
    pub(super) fn renew_directory(
        &mut self,
        language: Language,
        run: Option<RunNo>,
    ) -> io::Result<()> {
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return Ok(());
        };
        if !live.is_without_directory() {
            return live.name_streams();
        }
        self.move_in(language)?;
        self.add_note(language, run, told(&format!("{language} goes on with all that it had")));
        Ok(())
    }

    fn move_in(&mut self, language: Language) -> io::Result<()> {
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return Ok(());
        };
        let was_capturing = live.kernel.is_capturing();
        live.move_in(&self.home.scratch, self.home.confined.as_deref())?;
        if self.home.confined.is_some() {
            self.reactor.add(&live.reports, Source::Reports(language), Interest::Read)?;
        }
        let has_lost_capture = was_capturing && !live.kernel.is_capturing();
        if has_lost_capture {
            self.operate(Event::NotCaptured { language });
            self.captures_done(language);
        }
        Ok(())
    }

    /// Does the same for all kernels, before something that needs them.
    pub(super) fn mend_directories(&mut self) {
        let languages: Vec<Language> = self.kernels.live.keys().copied().collect();
        for language in languages {
            // Tried again before the next run, which fails for it.
            let _ = self.renew_directory(language, None);
        }
    }

    /// A kernel that had no directory is gone.
    pub(super) fn tell_of_removal(&mut self, language: Language, run: Option<RunNo>) {
        let kernel = format!("what {language} had at its end could not be written down");
        self.add_note(language, run, told(&kernel));
    }

    /// After a run's end, which was just told through the directory if it is there: one
    /// that was moved meanwhile is noticed before the next order.
    pub(super) fn look_for_lost_directory(&mut self, language: Language, ended: &Ended) {
        let run = Some(ended.run);
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        if !live.may_have_lost_files() {
            return;
        }
        // What cannot be done now is tried again before the next run, which fails for it.
        if live.reports.was_removed() {
            let _ = self.renew_directory(language, run);
        } else if let Some(loss) = live.loses(language, ended)
            && self.move_in(language).is_ok()
        {
            self.add_note(language, run, told(loss));
        }
    }
}

/// What a run's answer says of it, and of the kernel.
fn told(kernel: &str) -> String {
    format!(
        "the session's private directory in memory was removed or moved by something else; it \
         was made anew, and {kernel}"
    )
}
