//! Files after a rewind that fails once they were put back.

use super::*;
use crate::core::Core;
use crate::effect::Effect;
use crate::input::{Activity, Limits};
use crate::operations::{Event, Order, RequestId};
use crate::session::Session;
use sessile_protocol::{NewCheckpoint, RewindTo};

fn tasks(effects: Vec<Effect>) -> Vec<Task> {
    let task = |effect| {
        let Effect::Operate(task) = effect else { return None };
        Some(task)
    };
    effects.into_iter().filter_map(task).collect()
}

fn storage() -> Failure {
    Failure::new(Code::Storage, "no space left on device")
}

struct Play(Session);

impl Play {
    fn hear(&mut self, event: Event) -> Vec<Task> {
        tasks(self.0.operate(event, 0))
    }

    fn rewind(&mut self, request: u64, to: &str) -> FilesId {
        let to = RewindTo::Name(to.to_owned());
        let order = Order::Rewind(Rewind { to, keep_files: false, wait: false });
        let asked = self.hear(Event::Asked { request: RequestId(request), order });
        let Some(Task::TakeFiles { files }) = asked.last() else { panic!("{asked:?}") };
        *files
    }

    /// Returns a rewind whose files were put back and whose states cannot be written, so
    /// that the files are being taken back.
    fn fails_late() -> (Self, FilesId) {
        let limits = Limits { idle_timeout: 0, activity: Activity::All, queue: 1, auto: None };
        let mut play = Self(Session::from(Core::new(Language::Bash, limits, 0)));
        let new = NewCheckpoint { name: Some("then".to_owned()), files: true, wait: false };
        let order = Order::Checkpoint(new);
        let request = RequestId(1);
        let asked = play.hear(Event::Asked { request, order });
        let Some(Task::TakeFiles { files }) = asked.last() else { panic!("{asked:?}") };
        play.hear(Event::FilesTaken { files: *files, view: FilesView::default() });
        play.hear(Event::TimelineWritten { request, outcome: Ok(()) });

        let before = play.rewind(2, "then");
        play.hear(Event::FilesTaken { files: before, view: FilesView::default() });
        let put = play.hear(Event::JournalWritten { outcome: Ok(()) });
        let [Task::PutFiles { files, .. }] = put.as_slice() else { panic!("{put:?}") };
        let restored = RestoredFiles::default();
        play.hear(Event::FilesPut { files: *files, restored });
        let back = play.hear(Event::StatesWritten { outcome: Err(storage()) });
        let [Task::PutFiles { files, to, .. }] = back.as_slice() else { panic!("{back:?}") };
        assert_eq!(*to, before);
        (play, *files)
    }
}

fn answer(tasks: &[Task]) -> Failure {
    let answer = tasks.iter().find_map(|task| {
        let Task::Answer { outcome: Err(failure), .. } = task else { return None };
        Some(failure.clone())
    });
    answer.unwrap_or_else(|| panic!("{tasks:?}"))
}

#[test]
fn files_that_are_taken_back_leave_the_session_as_it_was() {
    let (mut play, files) = Play::fails_late();
    let over = play.hear(Event::FilesPut { files, restored: RestoredFiles::default() });
    assert_eq!(answer(&over), storage());
}

#[test]
fn files_that_cannot_be_taken_back_are_kept_and_told() {
    let (mut play, files) = Play::fails_late();
    let failure = PutFailure::Refused(storage());
    let over = play.hear(Event::FilesNotPut { files, failure });
    let told = answer(&over).message;
    assert!(told.contains("could not be taken back") && told.contains(BEFORE_REWIND), "{told}");
    // The files are available by that name.
    play.rewind(3, BEFORE_REWIND);
}

#[test]
fn a_process_that_is_killed_over_it_has_successors() {
    let (mut play, mut files) = Play::fails_late();
    for _ in 1..MOST_ATTEMPTS {
        let again = play.hear(Event::FilesNotPut { files, failure: PutFailure::Killed });
        let [Task::PutFiles { files: next, .. }] = again.as_slice() else { panic!("{again:?}") };
        files = *next;
    }
    let over = play.hear(Event::FilesNotPut { files, failure: PutFailure::Killed });
    assert!(answer(&over).message.contains("could not be taken back"));
}
