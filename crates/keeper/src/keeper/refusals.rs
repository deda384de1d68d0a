//! Attempts to leave the sandbox that were refused: added to the notes of the run that
//! made them, and logged.

use super::Keeper;
use super::family::Position;
use rustix::process::Pid;
use sessile_protocol::{Language, RunNo};
use sessile_sandbox::proxy::Notice;
use sessile_store::RefusalEntry;

/// Number of refusals that one run is told of; the rest is in the log.
const TOLD: usize = 20;

/// Text that every such note contains.
const WORDS: &str = " was refused by the sandbox: ";

/// Which refusals are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalScope {
    /// Those of the session's own processes.
    Own,
    Anybodys,
}

impl Keeper {
    /// Takes what the proxy has told.
    pub(crate) fn take_refusals(&mut self, whose: RefusalScope) {
        let Some(confined) = &self.home.confined else { return };
        let is_taken = |notice: &Notice| match whose {
            RefusalScope::Anybodys => true,
            RefusalScope::Own => self.family.position == Position::Alone || self.is_own(notice),
        };
        for notice in confined.take_refusals(is_taken) {
            self.note_refusal(&notice);
        }
    }

    pub(crate) fn has_refusals(&self) -> bool {
        self.home.confined.as_ref().is_some_and(|confined| confined.has_refusals())
    }

    fn is_own(&self, notice: &Notice) -> bool {
        let Some(pid) = pid_of(notice) else { return false };
        let own = self.own_descendants();
        own.contains(&pid)
    }

    fn note_refusal(&mut self, notice: &Notice) {
        let origin = pid_of(notice).map(|pid| self.search(None).origin_of(pid)).unwrap_or_default();
        // If its process is gone already, it most likely belonged to the current run.
        let going = || {
            let mut live = self.kernels.live.iter();
            live.find_map(|(language, live)| Some((*language, live.current?)))
        };
        let (language, run) = match (origin.language, origin.run) {
            (Some(language), run) => (language, run),
            (None, _) => match going() {
                Some((language, run)) => (language, Some(run)),
                None => (self.home.boot.kernel.language, None),
            },
        };
        let _ = self.home.directory.log_refusal(&RefusalEntry {
            at: sessile_store::timestamp(),
            run,
            program: notice.program.as_deref(),
            target: &notice.target,
            reason: &notice.why,
            untold: notice.untold,
        });
        self.tell_of_refusal(language, run, text(notice));
    }

    /// Adds the note to the run, or, if it is over, to the current run or the next one.
    fn tell_of_refusal(&mut self, language: Language, run: Option<RunNo>, note: String) {
        let is_open = |run: &RunNo| self.runs.get(run).is_some_and(|run| run.finished().is_none());
        let current = self.kernels.live.get(&language).and_then(|live| live.current);
        let run = run.filter(is_open).or(current.filter(is_open));
        let told: &[String] = match run.and_then(|run| self.runs.get(&run)) {
            Some(run) => &run.notes,
            None => self.kernels.news.get(&language).map(Vec::as_slice).unwrap_or_default(),
        };
        if told.contains(&note) {
            return;
        }
        let count = told.iter().filter(|note| note.contains(WORDS)).count();
        match count.cmp(&TOLD) {
            std::cmp::Ordering::Less => self.add_note(language, run, note),
            std::cmp::Ordering::Equal => {
                let note = format!("more{WORDS}see network.log in the session's directory");
                self.add_note(language, run, note);
            }
            std::cmp::Ordering::Greater => {}
        }
    }
}

fn pid_of(notice: &Notice) -> Option<Pid> {
    notice.pid.and_then(Pid::from_raw)
}

/// Returns the text of a note: which program, which target, and why it was refused.
fn text(notice: &Notice) -> String {
    let who = notice.program.as_deref().unwrap_or("a program");
    let to = if notice.target.is_empty() { "a host" } else { &notice.target };
    format!("{who} wanted to reach {to}, which{WORDS}{}", notice.why)
}
