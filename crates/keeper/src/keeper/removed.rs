//! Kernels whose private directory somebody else has removed or moved.
//!
//! The process of such a kernel goes on: it has its pipes open, and so has this one.
//! A new directory takes the place of the old, with all in it that the process opens
//! by path, and that is told. Most is noticed before an order or after a run; a run
//! that takes longer is looked at now and then.
//!
//! In a sandbox the process would see the removed directory for good. There it makes
//! way for a new one, which starts from what was captured.

use super::Keeper;
use super::live::Live;
use crate::kernels::Ended;
use crate::processes;
use crate::scratch::{LEFT, Scratch};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions};
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

    /// Whether single files are gone that a run begins with. It has failed then.
    fn lacks_files(&self, language: Language) -> bool {
        let text = language.is_shell().then(|| self.directory.join("c"));
        let needed = [self.stdout.path(), self.stderr.path()].into_iter().chain(text.as_deref());
        let is_gone = |path: &Path| rustix::fs::lstat(path).is_err_and(|e| e == Errno::NOENT);
        needed.into_iter().any(is_gone)
    }

    fn move_in(&mut self, scratch: &Scratch) -> io::Result<()> {
        let name = self.directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let directory = scratch.subdirectory_anew(name)?;
        match std::fs::create_dir(directory.join(LEFT)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.kernel.furnish()?;
        self.stdout.name_again()?;
        self.stderr.name_again()?;
        // The last one: it says that all is there.
        self.reports.name_again()
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
        let live = self.kernels.live.get(&language).filter(|_| self.home.confined.is_none());
        if !live.is_some_and(Live::is_without_directory) {
            return Ok(());
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
        live.move_in(&self.home.scratch)?;
        let has_lost_capture = was_capturing && !live.kernel.is_capturing();
        if has_lost_capture {
            self.operate(Event::NotCaptured { language });
            self.captures_done(language);
        }
        Ok(())
    }

    /// An idle kernel in a sandbox makes way for a new one if its directory is gone. The
    /// sandbox makes way with it, and so do the other kernels in there.
    pub(super) fn replace_without_directory(&mut self, language: Language) {
        let live = self.kernels.live.get(&language).filter(|_| self.home.confined.is_some());
        let idle = live.filter(|live| live.current.is_none() && live.has_come_up);
        let Some(pid) = idle.filter(|live| live.is_without_directory()).map(|live| live.pid) else {
            return;
        };
        processes::signal(&[pid], Signal::KILL);
        if let Ok(Some(_)) = rustix::process::waitpid(Some(pid), WaitOptions::empty()) {
            self.child_ended(pid, 128 + libc::SIGKILL);
        }
    }

    /// Both for all kernels, before something that needs them.
    pub(super) fn mend_directories(&mut self) {
        let languages: Vec<Language> = self.kernels.live.keys().copied().collect();
        for language in languages {
            // Tried again before the next run, which fails for it.
            let _ = self.renew_directory(language, None);
            self.replace_without_directory(language);
        }
    }

    /// A kernel that had no directory is gone, or will be.
    pub(super) fn tell_of_removal(&mut self, language: Language, run: Option<RunNo>) {
        let kernel = match self.home.confined {
            Some(_) => format!("{language} was started again"),
            None => format!("what {language} had at its end could not be written down"),
        };
        self.add_note(language, run, told(&kernel));
    }

    /// After a run's end, which was just told through the directory if it is there: one
    /// that was moved meanwhile is noticed before the next order. Whether the kernel
    /// has to make way for a new one.
    pub(super) fn has_lost_directory(&mut self, language: Language, ended: &Ended) -> bool {
        let (run, has_failed) = (Some(ended.run), ended.exit_code != 0);
        let Some(live) = self.kernels.live.get(&language) else {
            return false;
        };
        let is_without_directory = live.reports.was_removed();
        let lacks_something = is_without_directory || (has_failed && live.lacks_files(language));
        if !lacks_something {
            return false;
        }
        if self.home.confined.is_some() {
            self.tell_of_removal(language, run);
            return true;
        }
        // Tried again before the next run, which fails for it.
        if is_without_directory {
            let _ = self.renew_directory(language, run);
        } else if self.move_in(language).is_ok() {
            self.add_note(
                language,
                run,
                told("the command of this run may not have been carried out"),
            );
        }
        false
    }
}

/// What a run's answer says of it, and of the kernel.
fn told(kernel: &str) -> String {
    format!(
        "the session's private directory in memory was removed or moved by something else; it \
         was made anew, and {kernel}"
    )
}
