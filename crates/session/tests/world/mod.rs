//! A driver without processes, and what it sees of the session.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;
use sessile_protocol::{KernelFate, Language, RunNo};
use sessile_session::{
    Close, Effect, Epoch, Input, Limits, Outcome, Pressure, Refusal, Session, Source, Submission,
    Tick,
};
use std::collections::{BTreeMap, BTreeSet};

type Checked = Result<(), TestCaseError>;

const LANGUAGES: [Language; 3] = [Language::Bash, Language::Python, Language::Zsh];

/// After an interrupt or a timeout the kernel itself is killed by then.
const PRESSED_FOR: Tick = 700;

/// What the random driver does next.
#[derive(Clone, Debug)]
pub enum Act {
    Submit {
        language: usize,
        timeout: Option<Tick>,
        risky: bool,
    },
    /// One of the things that could happen now.
    Happen(Index),
    /// One of the living processes dies, from within or by a signal.
    Die(Index),
    /// Something is heard of a process that is gone.
    Stale(Index),
    Interrupt(Option<u64>),
    Inspect,
    Close(Close),
    Wait(Tick),
}

/// A kernel process as the model knows it.
#[derive(Debug, Default)]
struct Process {
    epoch: Epoch,
    phase: Phase,
    /// Captures that were asked for and are not written yet.
    captures: Vec<RunNo>,
    /// When the run was first pressed upon.
    pressed: Option<Tick>,
    has_been_killed: bool,
    /// It starts from nothing, so that nothing is lost if it does not.
    is_first: bool,
    /// The last run whose effects are in its state.
    holds: RunNo,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Gone,
    Starting,
    Idle,
    Busy(RunNo),
}

/// What has become of the state of a language's kernel.
#[derive(Debug)]
struct Story {
    /// The runs whose state was captured, since the last reset.
    captured: BTreeSet<RunNo>,
    /// The process that clients know of: the one that the last answer came
    /// from, or the successor that it announced.
    told_of: Epoch,
    last_begun: RunNo,
}

impl Story {
    fn of(first: Epoch) -> Self {
        Self { captured: BTreeSet::new(), told_of: first, last_begun: RunNo(0) }
    }
}

#[derive(Debug)]
pub struct World {
    session: Session,
    now: Tick,
    limits: Limits,
    processes: BTreeMap<Language, Process>,
    stories: BTreeMap<Language, Story>,
    /// Admitted and not answered.
    open: BTreeMap<RunNo, Language>,
    answered: BTreeSet<RunNo>,
    last_run: RunNo,
    closing: bool,
    finished: bool,
    /// What happened, for whoever reads of a failure.
    log: Vec<String>,
}

impl World {
    pub fn new(limits: Limits) -> Self {
        let session = Session::new(Language::Bash, limits, 0);
        let mut world = Self::around(session, limits, RunNo(0));
        let effects = world.session.open(0);
        world.perform(effects).expect("a session that opens");
        world
    }

    pub fn revived(limits: Limits, last: u64, captured: Option<u64>) -> Self {
        let captured: Vec<(Language, RunNo)> =
            captured.map(|run| (Language::Bash, RunNo(run))).into_iter().collect();
        let session = Session::revived(Language::Bash, limits, 0, RunNo(last), &captured);
        let mut world = Self::around(session, limits, RunNo(last));
        let story = world.story(Language::Bash);
        story.captured.extend(captured.iter().map(|(_, run)| run));
        // Nobody has been told yet that the old process is gone.
        story.told_of = Epoch(0);
        let effects = world.session.open(0);
        world.perform(effects).expect("a session that opens");
        world
    }

    fn around(session: Session, limits: Limits, last_run: RunNo) -> Self {
        Self {
            session,
            now: 0,
            limits,
            processes: BTreeMap::new(),
            stories: BTreeMap::new(),
            open: BTreeMap::new(),
            answered: BTreeSet::new(),
            last_run,
            closing: false,
            finished: false,
            log: Vec::new(),
        }
    }

    /// Does all of it and lets the world settle.
    pub fn live(mut self, acts: Vec<Act>) -> Checked {
        let outcome = acts.into_iter().try_for_each(|act| self.act(act));
        outcome
            .and_then(|()| self.settle())
            .map_err(|error| TestCaseError::fail(format!("{error}\n{}", self.log.join("\n"))))
    }

    fn act(&mut self, act: Act) -> Checked {
        match act {
            Act::Submit { language, timeout, risky } => {
                self.submit(LANGUAGES[language], timeout, risky)?
            }
            Act::Happen(index) => {
                let possible = self.possible();
                if !possible.is_empty() {
                    self.step(possible[index.index(possible.len())])?;
                }
            }
            Act::Die(index) => {
                let possible = self.deaths();
                if !possible.is_empty() {
                    self.step(possible[index.index(possible.len())])?;
                }
            }
            Act::Stale(index) => self.hear_from_the_dead(index)?,
            Act::Interrupt(run) => self.step(Input::Interrupt { run: run.map(RunNo) })?,
            Act::Inspect => self.step(Input::Inspect)?,
            Act::Close(why) => self.step(Input::Close(why))?,
            Act::Wait(time) => self.wait(time)?,
        }
        self.check()
    }

    /// Lets everything that was begun come to its end, then ends the session:
    /// by then each run has been answered.
    fn settle(&mut self) -> Checked {
        for _ in 0..2000 {
            match self.possible().first().copied() {
                Some(input) => self.step(input)?,
                None if self.open.is_empty() => break,
                None => self.wait(1000)?,
            }
            self.check()?;
        }
        prop_assert!(self.open.is_empty(), "never answered: {:?}", self.open);
        if !self.finished {
            self.step(Input::Close(Close::End))?;
            self.wait(3000)?;
            self.step(Input::AllGone)?;
        }
        prop_assert!(self.finished, "an end that does not come");
        Ok(())
    }

    fn submit(&mut self, language: Language, timeout: Option<Tick>, risky: bool) -> Checked {
        let submission = Submission { language, timeout, risky };
        let waiting = |world: &Self| {
            let busy = world.processes.get(&language).map(|p| p.phase);
            let runs = world.open.values().filter(|l| **l == language).count();
            runs - usize::from(
                matches!(busy, Some(Phase::Busy(run)) if world.open.contains_key(&run)),
            )
        };
        match self.session.submit(submission, self.now) {
            Ok((run, effects)) => {
                prop_assert!(!self.closing && !self.finished, "admitted while closing");
                prop_assert_eq!(run, self.last_run.next(), "numbers go on one by one");
                prop_assert!(waiting(self) < self.limits.queue, "admitted beyond the limit");
                self.log.push(format!("{}: {run} -> {effects:?}", self.now));
                self.last_run = run;
                self.open.insert(run, language);
                self.perform(effects)
            }
            Err(Refusal::QueueFull { limit }) => {
                prop_assert_eq!(limit, self.limits.queue);
                prop_assert_eq!(waiting(self), limit, "refused with room in the queue");
                Ok(())
            }
            Err(Refusal::Ending) => {
                prop_assert!(self.closing || self.finished, "refused while open");
                Ok(())
            }
        }
    }

    /// What the processes could say next, if they live.
    fn possible(&self) -> Vec<Input> {
        let mut inputs = Vec::new();
        for (language, process) in &self.processes {
            let (language, epoch) = (*language, process.epoch);
            match process.phase {
                Phase::Gone | Phase::Idle => {}
                Phase::Starting => inputs.push(Input::Ready { language, epoch }),
                Phase::Busy(run) => {
                    inputs.push(Input::Reported { language, epoch, run, exit_code: 0 })
                }
            }
            let captures = process.captures.iter().map(|as_of| Input::Captured {
                language,
                epoch,
                as_of: *as_of,
            });
            inputs.extend(captures);
        }
        if self.closing {
            inputs.extend([Input::AllGone, Input::KernelsGone]);
        }
        inputs
    }

    fn deaths(&self) -> Vec<Input> {
        let living = self.processes.iter().filter(|(_, p)| p.phase != Phase::Gone);
        living
            .flat_map(|(language, process)| {
                [true, false].map(|left_state| Input::Died {
                    language: *language,
                    epoch: process.epoch,
                    exit_code: if left_state { 3 } else { 137 },
                    // One that was killed leaves nothing, nor one in its start.
                    left_state: left_state
                        && !process.has_been_killed
                        && process.phase != Phase::Starting,
                })
            })
            .collect()
    }

    /// Whatever an earlier process says changes nothing at all.
    fn hear_from_the_dead(&mut self, index: Index) -> Checked {
        for (language, process) in &self.processes {
            let (language, Epoch(epoch)) = (*language, process.epoch);
            let old = if process.phase == Phase::Gone { epoch } else { epoch.wrapping_sub(1) };
            let epoch = Epoch(old);
            let run = RunNo(index.index(60) as u64);
            let words = [
                Input::Ready { language, epoch },
                Input::Reported { language, epoch, run, exit_code: 1 },
                Input::Died { language, epoch, exit_code: 1, left_state: true },
                Input::Captured { language, epoch, as_of: run },
            ];
            let word = words[index.index(words.len())];
            if process.phase == Phase::Gone {
                continue;
            }
            let before = format!("{:?}", self.session);
            let effects = self.session.step(word, self.now);
            prop_assert_eq!(effects, vec![], "{:?} of a dead process", word);
            let after = format!("{:?}", self.session);
            prop_assert_eq!(before, after, "{:?} of a dead process", word);
        }
        Ok(())
    }

    /// Time passes, with a tick whenever the session wants one.
    fn wait(&mut self, time: Tick) -> Checked {
        let until = self.now + time;
        for _ in 0..10_000 {
            let Some(due) = self.session.due().filter(|due| *due <= until) else {
                break;
            };
            prop_assert!(due >= self.now || self.closing, "due {due} before {}", self.now);
            self.now = self.now.max(due);
            self.step(Input::Tick)?;
            self.check()?;
            let next = self.session.due();
            prop_assert!(next.is_none_or(|due| due > self.now), "a busy loop at {}", self.now);
        }
        self.now = self.now.max(until);
        self.check()
    }

    fn step(&mut self, input: Input) -> Checked {
        if let Input::Close(_) = input
            && !self.finished
        {
            self.closing = true;
        }
        self.note(input);
        let effects = self.session.step(input, self.now);
        self.log.push(format!("{}: {input:?} -> {effects:?}", self.now));
        self.perform(effects)
    }

    /// What the input means for the model's own processes.
    fn note(&mut self, input: Input) {
        match input {
            Input::Ready { language, .. } => {
                let process = self.process(language);
                process.phase = Phase::Idle;
                process.has_been_killed = false;
            }
            Input::Reported { language, run, .. } => {
                let process = self.process(language);
                process.phase = Phase::Idle;
                process.holds = run;
                process.pressed = None;
            }
            Input::Died { language, epoch, .. } => {
                let process = self.process(language);
                if process.phase == Phase::Starting && process.is_first {
                    let story = self.story(language);
                    if story.told_of == epoch {
                        story.told_of = Epoch(epoch.0 + 1);
                    }
                }
                let process = self.process(language);
                if let Phase::Busy(run) = process.phase {
                    process.holds = run;
                }
                process.phase = Phase::Gone;
                process.captures.clear();
                process.pressed = None;
            }
            Input::Captured { language, as_of, .. } => {
                self.process(language).captures.retain(|c| *c != as_of);
                self.story(language).captured.insert(as_of);
            }
            Input::KernelsGone | Input::AllGone => {
                for process in self.processes.values_mut() {
                    process.phase = Phase::Gone;
                    process.captures.clear();
                    process.pressed = None;
                }
            }
            Input::Interrupt { .. } | Input::Inspect | Input::Close(_) | Input::Tick => {}
        }
    }

    fn process(&mut self, language: Language) -> &mut Process {
        self.processes.entry(language).or_default()
    }

    fn story(&mut self, language: Language) -> &mut Story {
        self.stories.entry(language).or_insert_with(|| Story::of(Epoch(1)))
    }

    fn perform(&mut self, effects: Vec<Effect>) -> Checked {
        for effect in effects {
            prop_assert!(!self.finished, "{effect:?} after the end");
            self.effect(effect)?;
        }
        Ok(())
    }

    fn effect(&mut self, effect: Effect) -> Checked {
        match effect {
            Effect::Launch { language, epoch, source } => self.launch(language, epoch, source),
            Effect::Begin { language, epoch, run } => self.begin(language, epoch, run),
            Effect::Press { language, epoch, pressure } => self.press(language, epoch, pressure),
            Effect::Capture { language, epoch, as_of } => {
                let process = self.process(language);
                prop_assert_eq!(process.epoch, epoch);
                prop_assert!(process.phase == Phase::Idle, "captured while {:?}", process.phase);
                prop_assert_eq!(as_of, process.holds, "a capture under a false name");
                process.captures.push(as_of);
                Ok(())
            }
            Effect::Abandon { language, epoch } => {
                let process = self.process(language);
                prop_assert_eq!(process.epoch, epoch);
                prop_assert_eq!(process.phase, Phase::Starting);
                process.has_been_killed = true;
                Ok(())
            }
            Effect::Complete { run, outcome } => self.complete(run, &outcome),
            Effect::Cancel { run, .. } => self.answer(run).map(|_| ()),
            Effect::Teardown(_) => {
                self.closing = true;
                Ok(())
            }
            Effect::Forget => {
                // The next process is what the reset promised.
                for (language, process) in &self.processes {
                    let next = Story::of(Epoch(process.epoch.0 + 1));
                    self.stories.insert(*language, next);
                }
                self.closing = false;
                prop_assert!(self.open.is_empty(), "forgotten: {:?}", self.open);
                Ok(())
            }
            Effect::Finished => {
                self.finished = true;
                prop_assert!(self.open.is_empty(), "left behind: {:?}", self.open);
                Ok(())
            }
        }
    }

    fn launch(&mut self, language: Language, epoch: Epoch, source: Source) -> Checked {
        prop_assert!(!self.closing, "launched while closing");
        if let Source::Captured { as_of } = source {
            let known = &self.story(language).captured;
            prop_assert!(known.contains(&as_of), "{source:?} was never captured");
        }
        let process = self.process(language);
        prop_assert_eq!(process.phase, Phase::Gone, "a second process of {}", language);
        prop_assert!(epoch > process.epoch, "{epoch:?} after {:?}", process.epoch);
        let holds = match source {
            Source::Nothing => RunNo(0),
            Source::Final => process.holds,
            Source::Captured { as_of } => as_of,
        };
        *process = Process {
            epoch,
            holds,
            phase: Phase::Starting,
            is_first: source == Source::Nothing,
            ..Process::default()
        };
        Ok(())
    }

    fn begin(&mut self, language: Language, epoch: Epoch, run: RunNo) -> Checked {
        prop_assert_eq!(self.open.get(&run), Some(&language), "begun but not open");
        let story = self.story(language);
        prop_assert!(run > story.last_begun, "{run} after {}", story.last_begun);
        story.last_begun = run;
        let earlier = self.open.iter().find(|(r, l)| **l == language && **r < run);
        prop_assert_eq!(earlier, None, "overtaken");
        let process = self.process(language);
        prop_assert_eq!(process.epoch, epoch);
        prop_assert_eq!(process.phase, Phase::Idle, "begun in a kernel that is not ready");
        process.phase = Phase::Busy(run);
        Ok(())
    }

    fn press(&mut self, language: Language, epoch: Epoch, pressure: Pressure) -> Checked {
        let now = self.now;
        let process = self.process(language);
        prop_assert_eq!(process.epoch, epoch);
        prop_assert!(matches!(process.phase, Phase::Busy(_)), "pressed while {:?}", process.phase);
        process.pressed.get_or_insert(now);
        process.has_been_killed |= pressure == Pressure::KillKernel;
        Ok(())
    }

    fn complete(&mut self, run: RunNo, outcome: &Outcome) -> Checked {
        let language = self.answer(run)?;
        prop_assert!(!(outcome.timed_out && outcome.interrupted));
        let process = self.process(language);
        let (epoch, is_alive) = (process.epoch, process.phase != Phase::Gone);
        let story = self.story(language);
        let is_known = is_alive && story.told_of == epoch;
        match outcome.fate {
            KernelFate::Kept => prop_assert!(is_known, "{run} says kept, but it is another"),
            KernelFate::Restored { as_of_run } => {
                prop_assert!(!is_known, "{run} says restored, but it is the same process");
                let known = story.captured.contains(&as_of_run) || as_of_run == RunNo(0);
                prop_assert!(known, "restored as of {as_of_run}, which was not captured");
            }
            KernelFate::Restarted | KernelFate::Fresh => {
                prop_assert!(!is_known, "{run} says new, but it is the same process");
            }
        }
        // Who died in this run is told of by this answer; its successor is next.
        story.told_of = if is_alive { epoch } else { Epoch(epoch.0 + 1) };
        Ok(())
    }

    fn answer(&mut self, run: RunNo) -> Result<Language, TestCaseError> {
        prop_assert!(self.answered.insert(run), "{run} is answered twice");
        let language = self.open.remove(&run);
        prop_assert!(language.is_some(), "{run} is answered, but was never admitted");
        Ok(language.unwrap_or(Language::Bash))
    }

    fn check(&self) -> Checked {
        if self.finished || self.closing {
            return Ok(());
        }
        for (language, process) in &self.processes {
            if let (Some(since), Phase::Busy(run)) = (process.pressed, process.phase) {
                let in_time = process.has_been_killed || self.now <= since + PRESSED_FOR;
                prop_assert!(in_time, "{run} in {language} is pressed since {since}");
            }
        }
        Ok(())
    }
}
