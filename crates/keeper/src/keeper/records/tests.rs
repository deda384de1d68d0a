//! Tests on a real directory.

use super::*;
use sessile_protocol::{Exec, KernelFate, Language, RunValue, SessionId};
use sessile_session::Outcome;
use sessile_store::{SessionStatus, Sessions, UserState, new_session_id, timestamp};
use std::os::unix::fs::MetadataExt;

struct Bench {
    _root: tempfile::TempDir,
    directory: Directory,
    records: Records,
    runs: Runs,
    max_history: u64,
}

impl Bench {
    fn new(max_history: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let id = new_session_id().unwrap();
        let directory =
            Sessions::at(root.path().to_owned(), UserState::at(root.path().join("user")))
                .create(&id)
                .unwrap();
        let history = directory.history();
        let accepted = directory.accepted(RunNo(0)).ok();
        let records = Records::new(metadata(&id), history, accepted);
        Self { _root: root, directory, records, runs: Runs::new(), max_history }
    }

    /// A run that has written its number and ended.
    fn run(&mut self, number: u64) {
        self.run_text(number, format!("echo {number}"), None);
    }

    fn run_text(&mut self, number: u64, text: String, value: Option<RunValue>) {
        let number = RunNo(number);
        self.records.accept(number);
        let order = Exec { text: text.into_bytes(), ..Exec::default() };
        let directory = &self.directory;
        let mut run = Run::new(number, Language::Bash, order, &directory.runs(), 1 << 20);
        run.begin();
        run.stdout.push(format!("{number}\n").as_bytes());
        run.open_streams = 0;
        run.value = value;
        run.finish(Outcome {
            exit_code: 0,
            fate: KernelFate::Kept,
            timed_out: false,
            silent_for: None,
            interrupted: false,
        });
        self.records.record(number, &mut run, directory);
        self.records.unsettle(number, Some(&run), 0);
        self.runs.insert(number, run);
    }

    fn settle(&mut self, is_awaited: impl Fn(RunNo) -> bool) {
        let Self { directory, records, runs, max_history, .. } = self;
        let disk = Disk { directory, max_history: *max_history, clock: Instant::now() };
        records.settle(runs, &disk, is_awaited);
    }

    fn known(&self) -> Vec<u64> {
        self.runs.keys().map(|number| number.0).collect()
    }

    fn recorded(&self) -> Vec<u64> {
        let entries = self.directory.history().newest(100);
        entries.into_iter().map(|entry| entry.run.0).collect()
    }
}

fn metadata(session_id: &SessionId) -> Metadata {
    let metadata = serde_json::json!({
        "session_id": session_id,
        "language": Language::Bash,
        "created_at": timestamp(),
        "status": SessionStatus::Active,
        "work_dir": "/",
        "command": "bash",
        "last_executed_at": null,
        "execution_count": 0,
        "idle_timeout_ms": 0,
        "command_timeout_ms": 0,
        "max_history": 100,
        "output_cap": 1 << 20,
    });
    serde_json::from_value(metadata).unwrap()
}

#[test]
fn a_line_is_there_at_once_and_the_output_after_settling() {
    let mut bench = Bench::new(10);
    bench.run(1);
    assert_eq!(bench.recorded(), [1]);
    assert!(
        bench.directory.recorded_run(RunNo(1), 100).is_none_or(|run| run.stdout.head.is_empty())
    );
    assert!(bench.records.due().is_some());
    bench.settle(|_| false);
    let done = bench.directory.recorded_run(RunNo(1), 100).unwrap();
    assert_eq!(done.stdout.head, b"1\n");
    assert_eq!((bench.known(), bench.records.due()), (vec![], None));
    assert_eq!(bench.directory.metadata().unwrap().execution_count, 1);
}

#[test]
fn what_is_long_makes_no_file_before_it_is_settled() {
    let mut bench = Bench::new(10);
    bench.run(1);
    let files = |bench: &Bench| {
        let folder = bench.directory.path();
        let all = [folder.to_owned(), bench.directory.runs()].map(std::fs::read_dir);
        let all = all.into_iter().flatten().flatten().flatten();
        let mut found: Vec<_> = all.map(|e| (e.path(), e.metadata().unwrap().ino())).collect();
        found.sort();
        found
    };
    let before = files(&bench);
    let text = "x".repeat(10_000);
    let value = RunValue { text: "v".repeat(10_000), data_json: None };
    bench.run_text(2, text.clone(), Some(value.clone()));
    assert_eq!(files(&bench), before);
    // If everything is killed now, the run is in the history, and a note tells what is
    // missing.
    let seen = bench.directory.history().find(RunNo(2)).unwrap();
    assert_eq!(seen.command_bytes, Some(10_000));
    let told = bench.directory.recorded_run(RunNo(2), 100).unwrap();
    assert!(told.notes[0].contains("not in the session's files"), "{:?}", told.notes);
    bench.settle(|_| false);
    assert_eq!(bench.directory.history().find(RunNo(2)).unwrap().command, text);
    let told = bench.directory.recorded_run(RunNo(2), 100).unwrap();
    assert_eq!((told.result, told.notes.len()), (Some(value), 0));
    assert_eq!((bench.recorded(), bench.records.due()), (vec![1, 2], None));
}

#[test]
fn a_run_that_somebody_waits_for_stays_known() {
    let mut bench = Bench::new(10);
    bench.run(1);
    bench.run(2);
    bench.settle(|run| run == RunNo(2));
    assert_eq!(bench.known(), [2]);
}

#[test]
fn the_oldest_runs_are_dropped_with_their_output() {
    let mut bench = Bench::new(2);
    (1..=5).for_each(|number| bench.run(number));
    bench.settle(|_| false);
    assert_eq!(bench.recorded(), [4, 5]);
    assert!(bench.directory.recorded_run(RunNo(3), 100).is_none());
    assert!(bench.directory.recorded_run(RunNo(5), 100).is_some());
}

#[test]
fn after_a_reset_only_the_numbers_go_on() {
    let mut bench = Bench::new(10);
    bench.run(1);
    bench.records.forget();
    bench.runs.clear();
    assert_eq!(bench.recorded(), Vec::<u64>::new());
    assert_eq!(bench.records.accepted.as_ref().map(Accepted::last), Some(RunNo(1)));
    bench.settle(|_| false);
    assert_eq!(bench.recorded(), Vec::<u64>::new());
}

#[test]
fn a_note_on_what_is_not_on_disk_names_the_cause_once() {
    let bench = Bench::new(10);
    let runs = bench.directory.runs();
    let mut run = Run::new(RunNo(1), Language::Bash, Exec::default(), &runs, 1 << 20);
    let out_of_descriptors = io::Error::from_raw_os_error(libc::EMFILE);
    run.note_unwritten("output", &out_of_descriptors);
    run.note_unwritten("output", &out_of_descriptors);
    let [note] = run.notes.as_slice() else { panic!("{:?}", run.notes) };
    assert!(note.contains("out of file descriptors") && !note.contains("refused"), "{note}");
}

#[test]
fn what_could_not_be_written_is_told_at_the_end_by_number() {
    let mut bench = Bench::new(100);
    bench.run(1);
    // No line can be written: a directory has taken the file's place.
    let history = bench.directory.path().join("history.log");
    std::fs::remove_file(&history).unwrap();
    std::fs::create_dir(&history).unwrap();
    bench.records.history = bench.directory.history();
    for number in [2, 3, 5] {
        bench.run(number);
    }
    bench.records.close(&bench.runs);
    let told = &bench.records.metadata.lost_at_end;
    assert!(told[0].starts_with("runs 2 to 3 and 5 are not in the history: "), "{told:?}");
    // A reset leaves nothing to report.
    bench.records.forget();
    bench.records.close(&bench.runs);
    assert!(bench.records.metadata.lost_at_end.is_empty());
}
