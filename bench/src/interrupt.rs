//! Cleans up when a measurement is interrupted.
//!
//! Sessions outlive the process that started them, so they do not end with this one. Each
//! directory with sessions is on a list until it has been cleaned.

use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use tokio::signal::unix::{SignalKind, signal};

static PLACES: Mutex<Vec<Place>> = Mutex::new(Vec::new());

#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    sessile: PathBuf,
    sessions: PathBuf,
    /// The directory that is removed with it.
    directory: PathBuf,
}

/// A directory with sessions; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Sessions {
    place: Place,
    live: bool,
}

impl Sessions {
    pub(crate) fn within(sessile: &Path, directory: &Path, name: &str) -> Self {
        let place = Place {
            sessile: sessile.to_owned(),
            sessions: directory.join(name),
            directory: directory.to_owned(),
        };
        places().push(place.clone());
        Self { place, live: true }
    }

    /// Records that they have already ended.
    pub(crate) fn are_ended(&mut self) {
        self.live = false;
    }

    pub(crate) fn path(&self) -> &Path {
        &self.place.sessions
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        if self.live {
            end(&self.place);
        }
        places().retain(|other| *other != self.place);
    }
}

fn places() -> std::sync::MutexGuard<'static, Vec<Place>> {
    PLACES.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn end(place: &Place) {
    let _ = Command::new(&place.sessile)
        .arg("--sessions-dir")
        .arg(&place.sessions)
        .args(["end", "--all"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Cleans up and exits at SIGINT and SIGTERM.
pub(crate) fn watch() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        eprintln!("interrupted: ending what was started");
        // Servers and bare loops first, so that nothing new is started.
        for child in crate::memory::children(std::process::id()) {
            if let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        for place in places().iter() {
            end(place);
            let _ = std::fs::remove_dir_all(&place.directory);
        }
        std::process::exit(130);
    });
    Ok(())
}
