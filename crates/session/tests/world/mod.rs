//! A driver without processes, and what it sees of the session.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;
use sessile_protocol::{Language, RunNo};
use sessile_session::operations::Event;
use sessile_session::{
    Close, Core, Ending, Epoch, Input, Limits, Origin, Refusal, Session, Submission, Tick,
};
use std::collections::{BTreeMap, BTreeSet};

mod effects;
mod kernels;
mod operations;
mod saves;
mod tasks;
use kernels::{Phase, Process, Story};
pub(crate) use operations::Asked;
use operations::Desk;

type Checked = Result<(), TestCaseError>;

const LANGUAGES: [Language; 4] = [Language::Bash, Language::Python, Language::Zsh, Language::Node];

/// After an interrupt or a timeout the kernel itself is killed by then.
const PRESSED_FOR: Tick = 700;

/// What may be lost with a process that is killed.
const CAPTURED_WITHIN: Tick = 10_000;

/// What the random driver does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Submit {
        language: usize,
        queue: Option<Tick>,
        timeout: Option<Tick>,
        silence: Option<Tick>,
        risky: bool,
    },
    /// A run that is going gives a sign of life, of which nobody is told.
    Sign(Index),
    /// One of the things that could happen now.
    Happen(Index),
    /// One of the living processes dies, from within or by a signal.
    Die(Index),
    /// One of the living processes owes a report and will not make it.
    Stick(Index),
    /// Something is heard of a process that is gone.
    Stale(Index),
    Interrupt(Option<u64>),
    Inspect,
    Close(Close),
    Wait(Tick),
    /// Somebody asks for something to be done with the session as a whole.
    Ask {
        order: Asked,
        waits: bool,
    },
    /// Somebody who asked is gone.
    Leave(Index),
    /// Something that was asked of the driver is done, or fails.
    Fulfil(Index),
    Fail(Index),
    /// Something is told again.
    Repeat(Index),
}

#[derive(Clone, Copy, Debug)]
struct Times {
    submitted: Tick,
    queue: Option<Tick>,
    timeout: Option<Tick>,
    silence: Option<Tick>,
}

#[derive(Debug)]
pub(crate) struct World {
    session: Session,
    now: Tick,
    limits: Limits,
    processes: BTreeMap<Language, Process>,
    stories: BTreeMap<Language, Story>,
    /// Admitted and not answered.
    open: BTreeMap<RunNo, Language>,
    /// How long each run may wait, take, and be silent.
    times: BTreeMap<RunNo, Times>,
    /// What the session was told last.
    told: Option<Input>,
    answered: BTreeSet<RunNo>,
    last_run: RunNo,
    /// The last time that a run was admitted or ended.
    last_activity: Tick,
    /// The session wants to know whether anything lives in it.
    is_looked_for: bool,
    closing: bool,
    finished: bool,
    desk: Desk,
    /// What happened, for whoever reads of a failure.
    log: Vec<String>,
}

impl World {
    pub(crate) fn new(limits: Limits) -> Self {
        let session = Session::from(Core::new(Language::Bash, limits, 0));
        let mut world = Self::around(session, limits, RunNo(0));
        let effects = world.session.open(0);
        world.perform(effects).expect("a session that opens");
        world
    }

    pub(crate) fn revived(limits: Limits, last: u64, captured: Option<u64>) -> Self {
        let captured: Vec<(Language, RunNo)> =
            captured.map(|run| (Language::Bash, RunNo(run))).into_iter().collect();
        let known: Vec<(Language, Option<RunNo>)> =
            captured.iter().map(|(language, run)| (*language, Some(*run))).collect();
        let core = Core::revived(Language::Bash, limits, 0, RunNo(last), &known);
        let session = Session::from(core);
        let mut world = Self::around(session, limits, RunNo(last));
        let story = world.story(Language::Bash);
        story.captured.extend(captured.iter().map(|(_, run)| run));
        // Nobody has been told yet that the old process is gone.
        story.told_of = Epoch(0);
        let effects = world.session.open(0);
        world.perform(effects).expect("a session that opens");
        world
    }

    /// A fork with a Python process that is about to say that it is there, and
    /// a shell with a saved state, which is all that it is known by.
    pub(crate) fn forked(limits: Limits, last: u64) -> Self {
        let run = RunNo(last);
        let known = [(Language::Bash, Origin::Saved(run)), (Language::Python, Origin::Image(run))];
        let session = Session::from(Core::forked(Language::Bash, limits, 0, run, &known));
        let mut world = Self::around(session, limits, run);
        let story = world.story(Language::Bash);
        story.captured.insert(run);
        *world.process(Language::Python) =
            Process { epoch: Epoch(1), phase: Phase::Starting, holds: run, ..Process::default() };
        let effects = world.session.open(0);
        world.perform(effects).expect("a fork that opens");
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
            times: BTreeMap::new(),
            told: None,
            answered: BTreeSet::new(),
            last_run,
            last_activity: 0,
            is_looked_for: false,
            closing: false,
            finished: false,
            desk: Desk::default(),
            log: Vec::new(),
        }
    }

    /// Does all of it and lets the world settle.
    pub(crate) fn live(mut self, acts: Vec<Act>) -> Checked {
        let outcome = acts.into_iter().try_for_each(|act| self.act(act));
        outcome
            .and_then(|()| self.settle())
            .map_err(|error| TestCaseError::fail(format!("{error}\n{}", self.log.join("\n"))))
    }

    fn act(&mut self, act: Act) -> Checked {
        match act {
            Act::Submit { language, queue, timeout, silence, risky } => {
                let times = Times { submitted: self.now, queue, timeout, silence };
                self.submit(LANGUAGES[language], times, risky)?;
            }
            Act::Sign(index) => {
                let now = self.now;
                let language = LANGUAGES[index.index(LANGUAGES.len())];
                self.process(language).heard = now;
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
            Act::Stick(index) => {
                let living = self.deaths();
                if !living.is_empty()
                    && let Input::Died { language, epoch, .. } = living[index.index(living.len())]
                    && !self.process(language).is_dying
                {
                    self.step(Input::Stuck { language, epoch })?;
                }
            }
            Act::Stale(index) => self.hear_from_the_dead(index)?,
            Act::Interrupt(run) => self.step(Input::Interrupt { run: run.map(RunNo) })?,
            Act::Inspect => self.step(Input::Inspect)?,
            Act::Close(why) => self.step(Input::Close(why))?,
            Act::Wait(time) => self.wait(time)?,
            Act::Ask { order, waits } => self.ask(order, waits)?,
            Act::Leave(index) => self.leave(index)?,
            Act::Fulfil(index) => self.fulfil(index)?,
            Act::Fail(index) => self.fail(index)?,
            Act::Repeat(index) => self.repeat(index)?,
        }
        self.check()
    }

    /// Lets everything that was begun come to its end, then ends the session:
    /// by then each run has been answered.
    fn settle(&mut self) -> Checked {
        for _ in 0..4000 {
            match self.possible().first().copied() {
                Some(input) => self.step(input)?,
                None if self.desk.has_jobs() => self.fulfil_first()?,
                None if !self.open.is_empty() || !self.desk.is_done() => self.wait(1000)?,
                None if self.finished || self.desk.saves.is_saved() => break,
                // What has failed is tried again, less and less often.
                None => self.wait(30_000)?,
            }
            self.check()?;
        }
        prop_assert!(self.open.is_empty(), "never answered: {:?}", self.open);
        prop_assert!(self.desk.is_done(), "requests never answered: {:?}", self.desk);
        let is_saved = self.finished || self.desk.saves.is_saved();
        prop_assert!(is_saved, "never saved: {:?}", self.desk.saves);
        if !self.finished {
            self.step(Input::Close(Close::End(Ending::Asked)))?;
            self.wait(3000)?;
            self.step(Input::AllGone)?;
        }
        prop_assert!(self.finished, "an end that does not come");
        Ok(())
    }

    fn submit(&mut self, language: Language, times: Times, risky: bool) -> Checked {
        let Times { queue, timeout, silence, .. } = times;
        let submission = Submission { language, queue_timeout: queue, timeout, silence, risky };
        let waiting = |world: &Self| {
            let busy = world.processes.get(&language).map(|p| p.phase);
            let runs = world.open.values().filter(|l| **l == language).count();
            let mut prepared = world.session.preparing();
            let prepared = prepared.find(|(l, ..)| *l == language).map(|(.., run)| run);
            let is_busy = matches!(busy, Some(Phase::Busy(run)) if world.open.contains_key(&run));
            let is_prepared = prepared.is_some_and(|run| world.open.contains_key(&run));
            runs - usize::from(is_busy || is_prepared)
        };
        let promised = self.session.admits(language);
        let answer = self.session.submit(submission, self.now);
        prop_assert_eq!(promised, answer.as_ref().map(|(run, _)| *run).map_err(|r| *r));
        match answer {
            Ok((run, effects)) => {
                prop_assert!(!self.closing && !self.finished, "admitted while closing");
                prop_assert_eq!(run, self.last_run.next(), "numbers go on one by one");
                prop_assert!(waiting(self) < self.limits.queue, "admitted beyond the limit");
                self.log.push(format!("{}: {run} -> {effects:?}", self.now));
                self.last_run = run;
                self.last_activity = self.now;
                self.open.insert(run, language);
                self.times.insert(run, times);
                self.perform(effects)
            }
            Err(Refusal::QueueFull { limit }) => {
                prop_assert_eq!(limit, self.limits.queue);
                // One that was being prepared goes back when its kernel dies.
                let waiting = waiting(self);
                prop_assert!((limit..=limit + 1).contains(&waiting), "refused with room");
                Ok(())
            }
            Err(Refusal::Ending) => {
                prop_assert!(self.closing || self.finished, "refused while open");
                Ok(())
            }
            Err(refusal @ Refusal::Busy { .. }) => {
                Err(TestCaseError::fail(format!("{refusal:?} for a run")))
            }
        }
    }

    /// What the processes could say next, if they live.
    fn possible(&self) -> Vec<Input> {
        let mut inputs = Vec::new();
        for (language, process) in &self.processes {
            let (language, epoch) = (*language, process.epoch);
            match process.phase {
                _ if process.is_dying => {
                    inputs.extend(process.deaths(language));
                    inputs.extend(process.last_report(language));
                }
                Phase::Gone | Phase::Idle => {}
                Phase::Starting => {
                    inputs.push(Input::Ready { language, epoch });
                    inputs.push(Input::Loading { language, epoch });
                }
                Phase::Busy(run) => {
                    inputs.push(Input::Reported { language, epoch, run, exit_code: 0 });
                    inputs.push(Input::Over { language, epoch, run });
                    let at = process.heard;
                    let heard = Input::Heard { language, epoch, run, at };
                    inputs.extend(process.is_listened_to.then_some(heard));
                }
            }
            let captures = process.captures.iter().map(|as_of| Input::Captured {
                language,
                epoch,
                as_of: *as_of,
            });
            inputs.extend(captures);
            let over = Input::CaptureOver { language, epoch };
            inputs.extend(process.capturing.map(|_| over));
        }
        if self.is_looked_for {
            inputs.extend([true, false].map(|found| Input::Life { found }));
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
                let (language, epoch) = (*language, process.epoch);
                let dying = (!process.is_dying).then_some(Input::Dying { language, epoch });
                let unsent = process.unsent(language);
                process.deaths(language).into_iter().chain(dying).chain(unsent)
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
                Input::Over { language, epoch, run },
                Input::Reported { language, epoch, run, exit_code: 1 },
                Input::Dying { language, epoch },
                Input::Died { language, epoch, exit_code: 1, left_state: true },
                Input::Unsent { language, epoch, run },
                Input::Captured { language, epoch, as_of: run },
                Input::CaptureOver { language, epoch },
                Input::CaptureRefused { language, epoch, chance: run.0 },
                Input::Heard { language, epoch, run, at: 0 },
                Input::Stuck { language, epoch },
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
            self.now = self.now.max(due);
            self.step(Input::Tick)?;
            self.check()?;
            let next = self.session.due();
            prop_assert!(next.is_none_or(|due| due > self.now), "a busy loop at {}", self.now);
        }
        self.now = self.now.max(until);
        self.check_captures()?;
        self.check()
    }

    /// Whether other sessions have all the turns at captures, now.
    fn is_crowded(&self) -> bool {
        (self.now / 512).is_multiple_of(2)
    }

    /// However crowded it is, what has changed is captured in the end.
    fn check_captures(&self) -> Checked {
        let is_open = !self.closing && !self.finished;
        let is_preparing = |language| self.session.preparing().any(|(l, ..)| l == language);
        for (language, process) in &self.processes {
            if process.phase != Phase::Idle || process.is_dying || is_preparing(*language) {
                continue;
            }
            if let Some(changed) = process.changed.filter(|_| is_open) {
                let since = changed.max(process.capturing.unwrap_or_default());
                prop_assert!(self.now < since + CAPTURED_WITHIN, "not captured: {process:?}");
            }
        }
        Ok(())
    }

    fn step(&mut self, input: Input) -> Checked {
        if self.finished {
            return Ok(());
        }
        // Some of it is told to operations first.
        if let Input::Died { language, epoch, .. } = input {
            self.kernel_gone(language, epoch)?;
        }
        if let Input::Captured { language, as_of, .. } = input {
            self.operate(Event::Captured { language, as_of })?;
        }
        if let Input::Close(_) = input {
            self.desk.closing_asked();
        }
        self.note(input);
        self.told = Some(input);
        let effects = self.session.step(input, self.now);
        self.log.push(format!("{}: {input:?} -> {effects:?}", self.now));
        self.perform(effects)?;
        if let Input::Captured { language, .. } = input {
            self.captures_done(language)?;
        }
        Ok(())
    }

    /// What the input means for the model's own processes.
    fn note(&mut self, input: Input) {
        let now = self.now;
        match input {
            Input::Ready { language, .. } => {
                let process = self.process(language);
                process.phase = Phase::Idle;
                process.has_been_killed = false;
            }
            Input::Over { language, .. } => self.process(language).is_over = true,
            Input::Dying { language, .. } => self.process(language).is_dying = true,
            Input::Unsent { language, run, .. } => {
                let process = self.process(language);
                (process.phase, process.is_dying) = (Phase::Idle, true);
                // It begins once more, and its turn has come in time.
                self.times.entry(run).and_modify(|times| times.queue = None);
                self.story(language).last_begun = RunNo(run.0 - 1);
            }
            Input::Reported { language, run, .. } => {
                let process = self.process(language);
                process.phase = Phase::Idle;
                process.is_over = false;
                process.holds = run;
                process.pressed = None;
                process.changed.get_or_insert(now);
            }
            Input::Died { language, epoch, exit_code, .. } => {
                let is_closing = self.closing;
                let process = self.process(language);
                (process.is_over, process.is_dying) = (false, false);
                let is_foul = exit_code == 137 && !process.has_been_killed && !is_closing;
                let is_starting = process.phase == Phase::Starting;
                process.repeated = process.repeatable.take().filter(|_| is_starting && is_foul);
                if is_starting && (process.is_first || process.repeated.is_some()) {
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
            Input::CaptureOver { language, .. } => self.process(language).capturing = None,
            Input::Heard { language, .. } => self.process(language).is_listened_to = false,
            Input::Life { found } => {
                if self.is_looked_for && found {
                    self.last_activity = now;
                }
                self.is_looked_for = false;
            }
            Input::KernelsGone | Input::AllGone => {
                for process in self.processes.values_mut() {
                    process.phase = Phase::Gone;
                    (process.is_over, process.is_dying) = (false, false);
                    process.captures.clear();
                    process.pressed = None;
                }
            }
            Input::CaptureRefused { .. }
            | Input::Stuck { .. }
            | Input::Loading { .. }
            | Input::Interrupt { .. }
            | Input::Inspect
            | Input::Adopted { .. }
            | Input::Close(_)
            | Input::Tick => {}
        }
    }

    fn process(&mut self, language: Language) -> &mut Process {
        self.processes.entry(language).or_default()
    }

    fn story(&mut self, language: Language) -> &mut Story {
        self.stories.entry(language).or_insert_with(|| Story::of(Epoch(1)))
    }

    fn check(&self) -> Checked {
        self.check_operations()?;
        if self.finished || self.closing {
            return Ok(());
        }
        for (language, process) in &self.processes {
            if process.is_over || process.is_dying {
                continue;
            }
            if let (Some(since), Phase::Busy(run)) = (process.pressed, process.phase) {
                let in_time = process.has_been_killed || self.now <= since + PRESSED_FOR;
                prop_assert!(in_time, "{run} in {language} is pressed since {since}");
            }
            if let (None, Phase::Busy(run)) = (process.pressed, process.phase) {
                let Times { timeout, silence, .. } = self.times[&run];
                let is_due = |since: Tick, limit: Option<Tick>| {
                    limit.is_some_and(|limit| since + limit < self.now)
                };
                prop_assert!(!is_due(process.begun, timeout), "{run} goes on beyond its time");
                let is_silent = is_due(process.heard, silence) && !process.is_listened_to;
                prop_assert!(!is_silent, "{run} is silent since {}", process.heard);
            }
        }
        self.check_queues()
    }

    /// Who has not begun knows its place, and does not wait longer than it may.
    fn check_queues(&self) -> Checked {
        for language in LANGUAGES {
            let begun = self.stories.get(&language).map_or(RunNo(0), |story| story.last_begun);
            let waiting = self.open.iter().filter(|(run, l)| **l == language && **run > begun);
            let going = self.processes.get(&language).and_then(|process| match process.phase {
                Phase::Busy(run) => Some(run),
                Phase::Gone | Phase::Starting | Phase::Idle => None,
            });
            for (at, (run, _)) in waiting.enumerate() {
                let place = self.session.place(*run);
                prop_assert_eq!(place.map(|place| place.number), Some(at + 1), "{}", run);
                if let Some(going) = going {
                    prop_assert_eq!(place.and_then(|place| place.behind), Some(going), "{}", run);
                }
                let Times { submitted, queue, .. } = self.times[run];
                let is_late = queue.is_some_and(|limit| submitted + limit < self.now);
                prop_assert!(!is_late, "{run} waits since {submitted}");
            }
            if let Some(going) = going {
                prop_assert_eq!(self.session.place(going), None, "{} is going", going);
            }
        }
        Ok(())
    }
}
