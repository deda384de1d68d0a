//! What a descriptor's readiness means.

use super::{Deadline, Keeper};
use crate::kernels::{self, AboutCopy, Ended, Loaded, Report};
use crate::processes::{self, Room};
use crate::runs::{Run, ticks};
use crate::source::{ClientId, LeftPipeId, Pipe, Source};
use crate::streams::{CHUNK, Drained, Lingering, Stream};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal};
use sessile_protocol::{Code, Failure, Language, RunNo};
use sessile_session::{Epoch, Input, Tick};
use sessile_store::{SavedKernel, SessionStatus, StreamName};
use std::time::Instant;

/// What one stream may take up before others have their turn.
pub(super) const TURN: usize = 8 * CHUNK;

/// Between two turns of a stream of which more was written than is kept.
const EXCESS_PAUSE: Tick = 2;

/// How long a dead kernel's last capture, done by a fork of it, is waited for.
const CAPTURE_PATIENCE_MS: i64 = 200;

impl Keeper {
    pub(super) fn handle(&mut self, source: Source) {
        match source {
            Source::Listener => self.connections.accept(&self.reactor),
            Source::Client(client) => self.serve(client),
            Source::Signals => self.was_signalled = true,
            Source::Reports(language) => {
                self.hear(language);
            }
            Source::Pipe(Pipe::Current(language, name)) => self.take_output(language, name),
            Source::Pipe(Pipe::Left(id)) => self.take_late_output(id),
            Source::Terminal(language) => self.take_shown(language),
            Source::Stdin(run) => self.feed(run),
            Source::Image(id) => self.hear_image(id),
            Source::Copy(language) => self.hear_nascent(language),
            Source::SaveWorker => self.hear_worker(),
            Source::UploadWorker => self.hear_upload(),
            Source::FileWorker(id) => self.hear_file_worker(id),
        }
    }

    /// A client has sent something, or can take more.
    fn serve(&mut self, client: ClientId) {
        let calls = self.connections.receive(client, &mut self.buffer, &self.reactor);
        if !calls.is_empty() {
            self.alertness.ordered(Instant::now());
        }
        for call in calls {
            self.call(client, call.id, call.request);
        }
    }

    fn kernel_by(&self, is_it: impl Fn(&super::Live) -> bool) -> Option<Language> {
        self.kernels.iter().find(|(_, live)| is_it(live)).map(|(language, _)| *language)
    }

    /// A child of this process has ended, and was reaped.
    pub(crate) fn child_ended(&mut self, pid: Pid, code: i32) {
        if let Some(language) = self.kernel_by(|live| live.pid == pid) {
            self.kernel_died(language, code);
        } else {
            self.image_ended(pid);
        }
        self.copy_ended(pid);
        self.writer_ended(pid);
    }

    /// While closing: whether anything is left that could end.
    pub(crate) fn look_for_end(&mut self) {
        if !self.session.is_open() && self.own_children().is_empty() {
            self.step(Input::AllGone);
        }
    }

    /// The machine goes down, or somebody wants this keeper gone: the session
    /// is not ended by that, the next client goes on from its last state.
    pub(crate) fn shut_down(&mut self) {
        self.settle();
        self.metadata.status = SessionStatus::Lost;
        self.metadata.ended_at = Some(sessile_store::timestamp());
        self.metadata.keeper_pid = None;
        let _ = self.write_metadata();
        self.directory.remove_socket();
        self.has_finished = true;
    }

    /// Reads a kernel's reports. False when there were none.
    pub(super) fn hear(&mut self, language: Language) -> bool {
        let Some(live) = self.kernels.get_mut(&language) else {
            return false;
        };
        let Ok(n) = rustix::io::read(&live.reports, &mut self.buffer) else {
            return false;
        };
        let epoch = live.epoch;
        for report in live.kernel.hear(&self.buffer[..n]) {
            match report {
                Report::Ready => {
                    if let Some(live) = self.kernels.get_mut(&language) {
                        live.has_come_up = true;
                    }
                    self.report_start(Ok(()));
                    self.kernel_is_up(language, epoch);
                }
                Report::Ended(ended) => self.run_ended(language, ended),
                Report::Captured { as_of, saved } => {
                    if self.save(language, *saved) {
                        self.step(Input::Captured { language, epoch, as_of });
                    }
                    self.captures_done(language);
                    self.save_learns_state(language, as_of);
                }
                Report::NotCaptured => {
                    self.has_not_captured(language);
                    self.captures_done(language);
                }
                Report::LetGo => self.hang_up(language),
                Report::Copy(AboutCopy::Born(_)) => {}
                Report::Copy(AboutCopy::Unborn { directory, error }) => {
                    self.failed_copies.push((directory, error));
                }
                Report::Copy(AboutCopy::Copied { directory, pid }) => {
                    self.expect_copy(pid, directory);
                }
                Report::Wants { question, input } => self.learn(language, question, input),
                Report::Dumping { path, writer } => {
                    self.save_learns_writer(language, path, writer);
                }
                Report::Dumped(dumped) => {
                    if !self.image_dumped(language, &dumped) {
                        self.save_learns_dump(language, *dumped);
                    }
                }
                Report::Loaded(loaded) => self.kernel_has_loaded(language, epoch, *loaded),
            }
        }
        true
    }

    /// A kernel that starts from a file reads it before its first run.
    fn kernel_is_up(&mut self, language: Language, epoch: Epoch) {
        let live = self.kernels.get_mut(&language).filter(|live| live.epoch == epoch);
        let inheritance = live.and_then(|live| {
            let inheritance = live.inheritance.take()?;
            live.kernel.load(&inheritance.dump, inheritance.cwd.as_deref()).ok()
        });
        match inheritance {
            Some(()) => self.step(Input::Loading { language, epoch }),
            None => self.step(Input::Ready { language, epoch }),
        }
        self.pump_operations();
    }

    fn kernel_has_loaded(&mut self, language: Language, epoch: Epoch, loaded: Loaded) {
        if let Some(error) = loaded.error {
            let note = format!("the saved state of {language} could not be loaded: {error}");
            self.tell(language, None, note);
            // A new process starts without it, and that is told.
            self.step(Input::Stuck { language, epoch });
            return;
        }
        if !loaded.left.is_empty() {
            let named: Vec<String> =
                loaded.left.iter().map(|l| format!("{} ({})", l.name, l.reason)).collect();
            self.tell(language, None, format!("not carried over: {}", named.join("; ")));
        }
        self.step(Input::Ready { language, epoch });
        self.pump_operations();
    }

    fn run_ended(&mut self, language: Language, ended: Ended) {
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        if live.current != Some(ended.run) {
            return;
        }
        let (epoch, pid) = (live.epoch, live.pid);
        if live.is_pressed && language.is_shell() {
            // A program that a shell was just starting when SIGINT came may
            // have missed it; the shell has moved on, and would wait for it
            // with the next one.
            processes::signal(&live.awaited(), Signal::KILL);
        }
        let room = processes::make_room(pid, live.kernel.room());
        if let Room::Raised { to, .. } = room {
            let _ = live.kernel.got_room(to);
        }
        if let Some(run) = self.runs.get_mut(&ended.run) {
            run.value = ended.value;
            run.error = ended.error;
            run.notes.extend(ended.notes);
            run.notes.extend(about(room, language));
        }
        if let Room::Lacking(_) = room {
            // The run is over when the process is: no other one may get it.
            live.verdict = Some(ended.exit_code);
            return processes::signal(&[pid], Signal::KILL);
        }
        self.close_streams(language);
        self.step(Input::Reported { language, epoch, run: ended.run, exit_code: ended.exit_code });
    }

    /// Takes what the current run has written, and leaves its pipes to it if
    /// somebody still holds them.
    pub(super) fn close_streams(&mut self, language: Language) {
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        let Some(number) = live.current.take() else {
            return;
        };
        self.origins.add(live.span(number, language));
        let Some(run) = self.runs.get_mut(&number) else {
            return;
        };
        let directory = live.directory.clone();
        for stream in [&mut live.stdout, &mut live.stderr] {
            let state = take_all(stream, &mut self.buffer, run);
            if state == Drained::Closed {
                run.open_streams -= 1;
                stream.unwatch(&self.reactor);
                continue;
            }
            let id = LeftPipeId(self.last_left + 1);
            let watched = stream.watch(Pipe::Left(id), &self.reactor);
            match (Stream::create(&directory, stream.name), watched) {
                (Ok(fresh), Ok(())) => {
                    self.last_left += 1;
                    let old = std::mem::replace(stream, fresh);
                    self.lingering.insert(id, Lingering { run: number, stream: old });
                    // What came since its edge was reported is not reported again.
                    self.again.push(Source::Pipe(Pipe::Left(id)));
                }
                // Without a new pipe the old one goes on; better mixed than lost.
                (_, _) => run.open_streams -= 1,
            }
        }
        self.leave_terminal(language, number);
    }

    /// Reads along with runs that take longer than a moment.
    pub(super) fn watch_streams(&mut self) {
        let going = self.kernels.iter_mut().filter(|(_, live)| live.current.is_some());
        for (language, live) in going {
            for stream in [&mut live.stdout, &mut live.stderr] {
                let pipe = Pipe::Current(*language, stream.name);
                if stream.watch(pipe, &self.reactor).is_ok() {
                    self.again.push(Source::Pipe(pipe));
                }
            }
        }
        self.expect_words();
    }

    fn take_output(&mut self, language: Language, name: StreamName) {
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        let current = live.current;
        let stream = live.stream_mut(name);
        let run = current.and_then(|number| self.runs.get_mut(&number));
        let state = match run {
            Some(run) => {
                let before = run.written();
                let state =
                    stream.drain(&mut self.buffer, TURN, |bytes| run.spool(name).push(bytes));
                run.note_sign(before, self.clock);
                if let Some(number) = current {
                    self.answer_waiters(number, false);
                }
                state
            }
            // Between two runs nobody but the kernel itself can write here.
            None => stream.drain(&mut self.buffer, TURN, |_| {}),
        };
        if state == Drained::More {
            let run = current.and_then(|number| self.runs.get_mut(&number));
            let is_excess = run.is_some_and(|run| run.spool(name).is_past_cap());
            self.read_on(Pipe::Current(language, name), is_excess);
        }
    }

    /// Comes back to a stream that has more: after others have had their turn,
    /// or, where most of it is thrown away, after a pause. Who writes without
    /// end has to wait then, and leaves the machine to other sessions.
    fn read_on(&mut self, pipe: Pipe, is_excess: bool) {
        if !is_excess {
            return self.again.push(Source::Pipe(pipe));
        }
        if let Some(stream) = self.stream(pipe) {
            stream.pause(&self.reactor);
            let due = ticks(self.clock) + EXCESS_PAUSE;
            self.deadlines.set_earlier(Deadline::Excess, due);
            self.excess.push(pipe);
        }
    }

    pub(super) fn take_excess(&mut self) {
        for pipe in std::mem::take(&mut self.excess) {
            if let Some(stream) = self.stream(pipe) {
                stream.resume(&self.reactor);
            }
        }
    }

    fn stream(&self, pipe: Pipe) -> Option<&Stream> {
        match pipe {
            Pipe::Current(language, name) => Some(self.kernels.get(&language)?.stream(name)),
            Pipe::Left(id) => self.lingering.get(&id).map(|lingering| &lingering.stream),
        }
    }

    /// Takes what a run that waits for input has written up to now.
    pub(super) fn catch_up(&mut self, number: RunNo) {
        let live = self.kernels.values_mut().find(|live| live.current == Some(number));
        let (Some(live), Some(run)) = (live, self.runs.get_mut(&number)) else {
            return;
        };
        let before = run.written();
        for stream in [&mut live.stdout, &mut live.stderr] {
            take_all(stream, &mut self.buffer, run);
        }
        if let Some(terminal) = live.terminal.as_mut().filter(|terminal| terminal.run == number) {
            terminal.drain(&mut self.buffer, TURN, &self.reactor, |bytes| run.stdout.push(bytes));
        }
        run.note_sign(before, self.clock);
        // What was taken here is not reported as an event any more.
        self.answer_waiting(number);
    }

    /// Output of a run that is over, by something that it left behind.
    fn take_late_output(&mut self, id: LeftPipeId) {
        let Some(lingering) = self.lingering.get_mut(&id) else {
            return;
        };
        let (number, name) = (lingering.run, lingering.stream.name);
        let mut has_news = false;
        let run = self.runs.get_mut(&number);
        let state = match run {
            Some(run) => lingering.stream.drain(&mut self.buffer, TURN, |bytes| {
                run.spool(name).push(bytes);
                has_news = true;
            }),
            None => lingering.stream.drain(&mut self.buffer, TURN, |_| {}),
        };
        match state {
            Drained::More => {
                let run = self.runs.get_mut(&number);
                let is_excess = run.is_none_or(|run| run.spool(name).is_past_cap());
                self.read_on(Pipe::Left(id), is_excess);
            }
            Drained::Empty => {}
            Drained::Closed => {
                self.lingering.remove(&id);
                if let Some(run) = self.runs.get_mut(&number) {
                    run.open_streams -= 1;
                }
                has_news = true;
            }
        }
        if has_news {
            self.unsettle(number);
            self.answer_waiters(number, true);
        }
    }

    /// Nobody is left who could write: what is in the pipes of earlier runs is
    /// all that there will be.
    pub(super) fn close_lingering(&mut self) {
        for (_, mut lingering) in std::mem::take(&mut self.lingering) {
            let Some(run) = self.runs.get_mut(&lingering.run) else {
                continue;
            };
            take_all(&mut lingering.stream, &mut self.buffer, run);
            run.open_streams -= 1;
            self.unsettle(lingering.run);
            self.answer_waiters(lingering.run, true);
        }
    }

    /// A kernel process is gone, and reaped.
    fn kernel_died(&mut self, language: Language, exit_code: i32) {
        // What it reported before it died counts.
        while self.hear(language) {}
        self.await_captures(language);
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        let (epoch, current, verdict) = (live.epoch, live.current, live.verdict);
        let last_words = live.kernel.last_words();
        let as_of = current.or(self.session.idle_as_of(language)).unwrap_or_default();
        let left_state = last_words.is_some_and(|saved| {
            let saved = SavedKernel { as_of_run: as_of, ..saved };
            let saved = self.without_environment_of(as_of, saved);
            self.save(language, saved)
        });
        // The end of a session, or a reset, is no accident.
        if !left_state && verdict.is_none() && self.session.is_open() {
            self.tell(language, current, death(language, exit_code));
        }
        let exit_code = verdict.unwrap_or(exit_code);
        let directory = self.kernels.get(&language).map(|live| live.directory.clone());
        let directory = directory.unwrap_or_default();
        if let Some(said) = kernels::complaints(&directory) {
            self.launch_failures
                .insert(language, format!("{language} does not come up; it says: {said}"));
        }
        self.note_losses(language, current, left_state);
        self.close_streams(language);
        self.lose_terminal(language);
        self.kernels.remove(&language);
        self.answer_inspectors(Some(language));
        self.save_loses_kernel(language);
        self.images_lose_kernel(language);
        self.has_described(language);
        self.last_status.insert(language, exit_code);
        if self.session.is_open() {
            self.step(Input::Died { language, epoch, exit_code, left_state });
            self.report_failed_start(language);
            self.pump_operations();
        } else if self.kernels.is_empty() {
            self.step(Input::KernelsGone);
        }
    }

    /// A first kernel that has died, and is not tried again, is the end of the
    /// session's start.
    fn report_failed_start(&mut self, language: Language) {
        if language == self.boot.kernel.language && !self.kernels.contains_key(&language) {
            let reason = self.launch_failures.get(&language).cloned();
            let reason = reason.unwrap_or_else(|| format!("{language} does not come up"));
            self.report_start(Err(Failure::new(Code::KernelUnavailable, reason)));
        }
    }

    /// A note for the run that it happened in, or for the next one.
    pub(super) fn tell(&mut self, language: Language, run: Option<RunNo>, note: String) {
        match run.and_then(|number| self.runs.get_mut(&number)) {
            Some(run) => run.notes.push(note),
            None => self.news.entry(language).or_default().push(note),
        }
    }

    /// What dies with a kernel whose state cannot be brought back.
    fn note_losses(&mut self, language: Language, current: Option<RunNo>, left_state: bool) {
        if left_state || language.is_shell() || !self.session.is_open() {
            return;
        }
        let saved = self.directory.state().and_then(|mut state| state.kernels.remove(&language));
        let saved = saved.filter(|saved| saved.comes_back_as_of().is_none());
        if let Some(note) = saved.and_then(|saved| losses(language, &saved)) {
            self.tell(language, current, note);
        }
    }

    /// A capture is written by a fork of the kernel, which may outlive it by a
    /// few milliseconds; it is worth more than an older one.
    fn await_captures(&mut self, language: Language) {
        let deadline = self.now() + CAPTURE_PATIENCE_MS.cast_unsigned();
        loop {
            let Some(live) = self.kernels.get(&language) else {
                return;
            };
            let now: Tick = self.now();
            if !live.kernel.is_capturing() || !language.is_shell() || now >= deadline {
                return;
            }
            let wait = rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: i64::try_from(deadline - now).unwrap_or(0) * 1_000_000,
            };
            let mut fds = [PollFd::new(&live.reports, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&wait)) {
                Ok(1..) => {
                    self.hear(language);
                }
                Ok(0) | Err(_) => return,
            }
        }
    }
}

/// Everything that is in a pipe at this moment.
fn take_all(stream: &mut Stream, buffer: &mut [u8], run: &mut Run) -> Drained {
    let name: StreamName = stream.name;
    // Most runs have left nothing, or little, and nobody who could write more.
    match stream.drain(buffer, 1, |bytes| run.spool(name).push(bytes)) {
        Drained::More => {}
        state @ (Drained::Closed | Drained::Empty) => return state,
    }
    let waiting = stream.waiting();
    // One byte more than there is: finds out whether the pipe is closed, but
    // never follows somebody who writes without end.
    stream.drain(buffer, waiting + 1, |bytes| run.spool(name).push(bytes))
}

/// The name of a kernel's directory.
pub(super) fn letter(language: Language) -> &'static str {
    match language {
        Language::Bash => "b",
        Language::Sh => "s",
        Language::Zsh => "z",
        Language::Python => "p",
        Language::Node => "n",
    }
}

fn death(language: Language, exit_code: i32) -> String {
    match exit_code - 128 {
        signal @ 1..=64 => format!("the {language} process was ended by signal {signal}"),
        _ => format!("the {language} process ended with status {exit_code}"),
    }
}

/// What goes with a kernel that cannot be brought back, by name.
pub(super) fn losses(language: Language, saved: &SavedKernel) -> Option<String> {
    let named: Vec<String> = ["variables", "functions", "classes", "imports"]
        .iter()
        .filter_map(|section| {
            let names = names_in(saved.view.get(*section)?);
            (!names.is_empty()).then(|| format!("{section} {}", names.join(", ")))
        })
        .collect();
    (!named.is_empty()).then(|| format!("lost with the {language} process: {}", named.join("; ")))
}

/// Names in a section of a state: keys of an object, or items of a list.
fn names_in(section: &serde_json::Value) -> Vec<String> {
    const SHOWN: usize = 20;
    let names: Vec<&str> = match section {
        serde_json::Value::Object(map) => map.keys().map(String::as_str).collect(),
        serde_json::Value::Array(list) => list
            .iter()
            .filter_map(|item| item.as_str().or_else(|| item.get("name")?.as_str()))
            .collect(),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => Vec::new(),
    };
    let more = names.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = names.into_iter().take(SHOWN).map(str::to_owned).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown
}

/// What a run's answer says of the room that is left for the next one.
pub(super) fn about(room: Room, language: Language) -> Option<String> {
    match room {
        Room::Enough => None,
        Room::Raised { from, to } => Some(format!(
            "`ulimit -n` is {to} instead of {from}, which leaves {language} no room for another run"
        )),
        Room::Lacking(limit) => Some(format!(
            "`ulimit -n {limit}` leaves {language} no room for another run, so that its process \
             was ended; the new one is without that limit"
        )),
    }
}
