//! A simulated keeper: it answers every request, in any order, and readers leave and
//! return at any moment.

use super::*;
use proptest::prelude::*;
use sessile_protocol::{Completed, KernelFate, Language, RunsView, StreamView};
use sessile_store::StreamName;

#[test]
fn a_run_that_is_not_told_says_why_by_its_code() {
    use sessile_protocol::Code;
    let (mut position, refused) = (Position::default(), Code::QueueTimeout);
    position.add(RunNo(3));
    position.add(RunNo(4));
    let made = Made { text: Vec::new(), written: 0, phase: RunPhase::Queued };
    let mut following = Following::new(position, Vec::new(), &[open(4, &made)], Detail::Ends);
    following.cancel(RunNo(3), Failure::new(Code::RunLost, "its keeper died"));
    let late = Err(Failure::new(refused, "it waited too long"));
    following.take(Query::Output(RunNo(4)), late).unwrap();
    let told = std::iter::from_fn(|| following.event())
        .map(|event| serde_json::to_value(event.fields()).unwrap()["code"].clone());
    assert_eq!(told.collect::<Vec<_>>(), ["run_lost", "queue_timeout"]);
}

/// A simulated run: its complete output, and how much of it is written yet.
#[derive(Clone, Debug)]
struct Made {
    text: Vec<u8>,
    written: usize,
    phase: RunPhase,
}

fn open(run: u64, made: &Made) -> OpenRun {
    OpenRun {
        run: RunNo(run),
        language: Language::Bash,
        command: format!("command {run}"),
        phase: made.phase,
        timestamp: None,
        interactive: false,
        waiting_for_input: false,
        terminal: false,
        queued: None,
    }
}

/// Returns the answer to a request; none while there is nothing to say.
fn answer(runs: &[Made], request: &Request) -> Option<Answer> {
    if let Request::Following { after, .. } = request {
        let news = runs.iter().enumerate().map(|(n, made)| open(n as u64 + 1, made));
        let runs: Vec<OpenRun> = news.filter(|run| run.run > *after).collect();
        return (!runs.is_empty()).then_some(Answer::Runs(RunsView { runs }));
    }
    if let Request::Output(read) = request {
        let made = &runs[read.run.0 as usize - 1];
        let from = usize::try_from(read.stdout_from).unwrap_or(usize::MAX).min(made.written);
        let stdout = made.text[from..made.written].to_vec();
        let is_news = made.phase > read.known.unwrap() || made.phase == RunPhase::Closed;
        return (is_news || !stdout.is_empty()).then_some(Answer::Output(OutputView {
            stdout,
            stdout_next: made.written as u64,
            stderr: Vec::new(),
            stderr_next: 0,
            phase: made.phase,
            waiting_for_input: false,
            queued: None,
        }));
    }
    let Request::Result { run, .. } = request else { panic!("{request:?}") };
    Some(Answer::Completed(Box::new(Completed {
        run: *run,
        language: Language::Bash,
        exit_code: 0,
        duration_us: 0,
        stdout: StreamView::default(),
        stderr: StreamView::default(),
        kernel: KernelFate::Kept,
        timed_out: false,
        interrupted: false,
        result: None,
        error: None,
        notes: Vec::new(),
        jobs_ended: Vec::new(),
        limits_met: Vec::new(),
        repeated: false,
        unread: Vec::new(),
    })))
}

/// A step of the simulation.
#[derive(Clone, Debug)]
enum Step {
    /// A run is accepted; it will write this.
    Accept(String),
    /// A run goes on, by that many bytes or to its next phase.
    Go(usize, usize),
    /// One of the open requests is answered, if possible.
    Answer(usize),
    /// The reader leaves, and returns with its last id.
    Return,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => "(a|é|界|🎉){0,9}".prop_map(Step::Accept),
        4 => (any::<usize>(), 1usize..6).prop_map(|(run, by)| Step::Go(run, by)),
        5 => any::<usize>().prop_map(Step::Answer),
        1 => Just(Step::Return),
    ]
}

struct World {
    runs: Vec<Made>,
    following: Following,
    asked: Vec<(Query, Request)>,
    told: Vec<Event>,
}

impl World {
    fn new() -> Self {
        let following = Following::new(Position::default(), Vec::new(), &[], Detail::Output);
        Self { runs: Vec::new(), following, asked: Vec::new(), told: Vec::new() }
    }

    fn go(&mut self, run: usize, by: usize) {
        let Some(at) = run.checked_rem(self.runs.len()) else { return };
        let made = &mut self.runs[at];
        made.phase = match made.phase {
            RunPhase::Queued => RunPhase::Running,
            RunPhase::Running if made.written < made.text.len() => {
                made.written = made.text.len().min(made.written + by);
                RunPhase::Running
            }
            RunPhase::Running => RunPhase::Exited,
            RunPhase::Exited | RunPhase::Closed => RunPhase::Closed,
        };
    }

    /// Returns with the text of its position.
    fn come_back(&mut self) {
        let position: Position = self.following.position().to_string().parse().unwrap();
        let is_over = |run: &RunNo| self.runs[run.0 as usize - 1].phase == RunPhase::Closed;
        let view = |run: RunNo| open(run.0, &self.runs[run.0 as usize - 1]);
        let past = position.open().filter(is_over).map(|run| Began::from(&view(run))).collect();
        let going: Vec<OpenRun> = position.open().filter(|run| !is_over(run)).map(view).collect();
        self.following = Following::new(position, past, &going, Detail::Output);
        self.asked.clear();
    }

    fn advance(&mut self, answered: usize) -> bool {
        // One at a time, so that a reader also leaves in the middle of an answer.
        if let Some(event) = self.following.event() {
            self.told.push(event);
            return true;
        }
        while let Some(question) = self.following.question() {
            self.asked.push(question);
        }
        let can = |at: &usize| answer(&self.runs, &self.asked[*at].1).is_some();
        let ready: Vec<usize> = (0..self.asked.len()).filter(can).collect();
        let Some(at) = answered.checked_rem(ready.len()).map(|n| ready[n]) else { return false };
        let (asked, request) = self.asked.remove(at);
        let answer = answer(&self.runs, &request).unwrap();
        self.following.take(asked, Ok(answer)).unwrap();
        true
    }
}

proptest! {
    #![proptest_config(sessile_testkit::cases(256))]
    #[test]
    fn every_run_is_told_once_in_its_order_whoever_comes_and_goes(steps in prop::collection::vec(step(), 0..200)) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Accept(text) => world.runs.push(Made {
                    text: text.into_bytes(), written: 0, phase: RunPhase::Queued,
                }),
                Step::Go(run, by) => world.go(run, by),
                Step::Answer(which) => drop(world.advance(which)),
                Step::Return => world.come_back(),
            }
        }
        for made in &mut world.runs {
            (made.written, made.phase) = (made.text.len(), RunPhase::Closed);
        }
        while world.advance(0) {}
        for (n, made) in world.runs.iter().enumerate() {
            let run = RunNo(n as u64 + 1);
            let own: Vec<&Event> = world.told.iter().filter(|event| event.run() == run).collect();
            prop_assert!(matches!(own[0], Event::Began(_)), "{:?}", own);
            let [.., Event::Ended(_), Event::Closed(_)] = own[..] else {
                panic!("{own:?}");
            };
            let mut written: Vec<u8> = Vec::new();
            for event in &own[1..own.len() - 2] {
                let Event::Output { stream: StreamName::Stdout, bytes, skipped: 0, .. } = event else {
                    panic!("{own:?}");
                };
                prop_assert!(std::str::from_utf8(bytes).is_ok());
                written.extend(bytes);
            }
            prop_assert_eq!(&written, &made.text);
        }
        prop_assert_eq!(world.following.position().open().count(), 0);
    }
}

#[test]
fn of_many_jobs_the_oldest_are_left() {
    let mut world = World::new();
    let made = Made { text: b"x".to_vec(), written: 1, phase: RunPhase::Exited };
    world.runs = vec![made; LEFT_BEHIND + 5];
    while world.advance(0) {}
    let left: Vec<u64> = world
        .told
        .iter()
        .filter_map(|event| match event {
            Event::Left(run) => Some(run.0),
            Event::Began(_)
            | Event::Output { .. }
            | Event::Ended(_)
            | Event::Closed(_)
            | Event::NotARun(_)
            | Event::Cancelled { .. } => None,
        })
        .collect();
    assert_eq!(left, [1, 2, 3, 4, 5]);
    assert!(world.following.position().to_string().len() < 4096);
}
