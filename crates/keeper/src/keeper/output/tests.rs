//! Tests on real pipes, with this process as the writer.

use super::*;
use crate::kernels::{DriverFiles, open_channel};
use crate::scratch::PipeAccess;
use sessile_protocol::Exec;
use sessile_session::Epoch;
use std::fs::File;
use std::io::Write;

const STDOUT: (Language, StreamName) = (Language::Python, StreamName::Stdout);
const RUN: RunNo = RunNo(1);

/// A kernel without a process, in a run.
struct Bench {
    root: tempfile::TempDir,
    reactor: Reactor<Source>,
    deadlines: Deadlines,
    kernels: Kernels,
    runs: Runs,
    output: Output,
    clock: Instant,
}

impl Bench {
    fn new(cap: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().to_owned();
        let (kernel, reports) =
            open_channel(Language::Python, &directory, DriverFiles::Absent, PipeAccess::Open)
                .unwrap();
        let [stdout, stderr] = [StreamName::Stdout, StreamName::Stderr]
            .map(|name| Stream::create(&directory, name).unwrap());
        let pid = rustix::process::getpid();
        let streams = (stdout, stderr);
        let mut live = Live::new(Epoch(1), pid, kernel, reports, streams, directory.clone());
        live.current = Some(RUN);
        let mut kernels = Kernels::default();
        kernels.live.insert(Language::Python, live);
        let mut run = Run::new(RUN, Language::Python, Exec::default(), &directory, cap);
        run.begin();
        let clock = Instant::now();
        let (reactor, deadlines) = (Reactor::new().unwrap(), Deadlines::default());
        let (runs, output) = (Runs::from([(RUN, run)]), Output::default());
        Self { root, reactor, deadlines, kernels, runs, output, clock }
    }

    fn open(&self) -> File {
        File::options().write(true).open(self.root.path().join("o")).unwrap()
    }

    fn take_current(&mut self) -> Option<RunNo> {
        let Self { reactor, deadlines, kernels, runs, output, clock, .. } = self;
        let mut context = Context { reactor, deadlines, clock: *clock };
        output.take_current(STDOUT, kernels, runs, &mut context)
    }

    fn take_background(&mut self, id: BackgroundPipeId) -> Option<RunNo> {
        let Self { reactor, deadlines, runs, output, clock, .. } = self;
        let mut context = Context { reactor, deadlines, clock: *clock };
        output.take_background(id, runs, &mut context)
    }

    fn finish(&mut self) {
        let live = self.kernels.live.get_mut(&Language::Python).unwrap();
        live.current = None;
        let run = self.runs.get_mut(&RUN).unwrap();
        self.output.finish(live, (RUN, run), &self.reactor);
    }

    fn again(&mut self) -> Vec<Source> {
        let mut again = Vec::new();
        self.output.take_again(&mut again);
        again
    }

    fn written(&self) -> Vec<u8> {
        self.runs[&RUN].stdout.read(0, 1 << 20).0
    }
}

#[test]
fn what_is_written_is_read_and_a_run_that_nobody_holds_is_closed() {
    let mut bench = Bench::new(1 << 20);
    let mut writer = bench.open();
    writer.write_all(b"one ").unwrap();
    assert_eq!(bench.take_current(), Some(RUN));
    writer.write_all(b"two").unwrap();
    drop(writer);
    bench.finish();
    assert_eq!(bench.written(), b"one two");
    assert_eq!((bench.runs[&RUN].open_streams, bench.output.background_pipes().count()), (0, 0));
    assert_eq!(bench.again(), []);
}

#[test]
fn a_pipe_that_something_holds_stays_with_its_run() {
    let mut bench = Bench::new(1 << 20);
    let mut writer = bench.open();
    writer.write_all(b"before ").unwrap();
    bench.finish();
    assert_eq!(bench.runs[&RUN].open_streams, 1);
    let id = BackgroundPipeId(1);
    assert_eq!(bench.again(), [Source::Pipe(Pipe::Background(id))]);
    assert_eq!(bench.take_background(id), None, "there is nothing new");
    writer.write_all(b"after").unwrap();
    bench.open().write_all(b"of the next run").unwrap();
    assert_eq!(bench.take_background(id), Some(RUN));
    assert_eq!(bench.written(), b"before after");
    drop(writer);
    assert_eq!(bench.take_background(id), Some(RUN));
    assert_eq!(bench.runs[&RUN].open_streams, 0);
    assert_eq!(bench.take_background(id), None, "it is gone");
}

#[test]
fn who_writes_more_than_is_kept_has_to_pause() {
    let mut bench = Bench::new(1);
    let mut writer = bench.open();
    let flood = std::thread::spawn(move || while writer.write_all(&[b'x'; CHUNK]).is_ok() {});
    while !bench.deadlines.is_set(Deadline::Excess) {
        bench.take_current();
    }
    let paused = [Pipe::Current(STDOUT.0, STDOUT.1)];
    assert_eq!(bench.output.excess, paused);
    bench.output.resume(&bench.kernels, &bench.reactor);
    assert_eq!(bench.output.excess, []);
    // Nothing reads any more.
    drop(bench);
    flood.join().unwrap();
}
