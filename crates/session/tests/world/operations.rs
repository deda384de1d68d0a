//! Those who want something done with the session as a whole, and a driver that
//! does what it is asked to in its own time.

use super::saves::{SaveDesk, SaveJob};
use super::{Checked, LANGUAGES, World};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;
use sessile_protocol::{
    Code, DropCheckpoints, Failure, FilesView, ForkFiles, ForkOrder, Language, NewCheckpoint,
    RestoredFiles, Rewind, RewindTo, RunNo, SessionId,
};
use sessile_session::operations::{
    Copies, CopyId, Event, FilesId, Form, ImageId, Order, PutFailure, RequestId,
};
use sessile_session::{Epoch, Origin};
use std::collections::{BTreeMap, BTreeSet};

/// What somebody asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Fork { count: u32, files: bool },
    Checkpoint { name: usize, files: bool },
    Rewind { to: usize, files: bool },
    Drop(Option<usize>),
    Save { files: bool },
}

/// Something that the driver was asked to do and has not reported yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// A process copies itself, or writes its state into a file.
    Image(ImageId),
    BringUp(CopyId),
    Take(FilesId),
    Put {
        files: FilesId,
        to: FilesId,
    },
    WriteJournal,
    WriteStates,
    WriteTimeline(RequestId),
    Plan {
        request: RequestId,
        count: u32,
    },
    Make {
        request: RequestId,
        count: u32,
    },
    ForkUp(SessionId),
    /// It is yet to be told that a kernel is gone.
    Gone(Language, Epoch),
    /// A state is written down, but not into the file; or not at all.
    Capture(Language, RunNo),
    Save(SaveJob),
}

/// What is on the driver's desk.
#[derive(Debug, Default)]
pub(super) struct Desk {
    last_request: u64,
    /// Asked for and not answered.
    pub(super) requests: BTreeMap<RequestId, Order>,
    pub(super) jobs: Vec<Job>,
    /// What was told, to be told again.
    told: Vec<Event>,
    /// Images that the driver has; those that are processes.
    pub(super) images: BTreeSet<ImageId>,
    pub(super) processes: BTreeSet<ImageId>,
    pub(super) copies: BTreeMap<CopyId, (Language, bool)>,
    /// What the workspace looks like, and what was taken of it.
    pub(super) workspace: u64,
    last_workspace: u64,
    pub(super) trees: BTreeMap<FilesId, u64>,
    pub(super) rewind: Rewound,
    pub(super) marked: BTreeSet<RunNo>,
    pub(super) saves: SaveDesk,
    is_closing_asked: bool,
    last_fork: u32,
}

/// How far a rewind has got.
#[derive(Debug, Default)]
pub(super) struct Rewound {
    /// The workspace when files were first put back, and what it is to become.
    pub(super) files: Option<(u64, u64)>,
    /// A process that put files back was ended, or refused to take them back.
    pub(super) is_torn: bool,
    pub(super) plan: Vec<(Language, Origin)>,
    pub(super) are_states_written: bool,
    pub(super) has_replaced: bool,
}

impl Desk {
    pub(super) fn has_jobs(&self) -> bool {
        self.jobs.iter().any(|job| !matches!(job, Job::Capture(..)))
    }

    pub(super) fn is_done(&self) -> bool {
        self.requests.is_empty() && self.saves.asked.is_empty()
    }

    pub(super) fn is_marked(&self, run: RunNo) -> bool {
        self.marked.contains(&run)
    }

    pub(super) fn workspace_changes(&mut self) {
        self.last_workspace += 1;
        self.workspace = self.last_workspace;
    }

    pub(super) fn closing_asked(&mut self) {
        self.is_closing_asked = true;
    }

    pub(super) fn is_closing_asked(&self) -> bool {
        self.is_closing_asked
    }

    pub(super) fn closed(&mut self) {
        self.is_closing_asked = false;
    }

    /// What a kernel is replaced by: only when all that is needed is there.
    pub(super) fn replaces(&mut self, language: Language) -> Result<Origin, TestCaseError> {
        prop_assert!(self.rewind.are_states_written, "replaced before its state is there");
        self.rewind.has_replaced = true;
        let planned = self.rewind.plan.iter().find(|(of, _)| *of == language);
        let Some((_, origin)) = planned.copied() else {
            return Err(TestCaseError::fail(format!("{language} is replaced without a plan")));
        };
        if let Origin::Image(_) = origin {
            let is_up = self.copies.values().any(|copy| *copy == (language, true));
            prop_assert!(is_up, "{language} is replaced by a process that is not there");
        }
        self.copies.retain(|_, (of, _)| *of != language);
        Ok(origin)
    }

    /// A kernel was replaced; it is told of that later.
    pub(super) fn kernel_went(&mut self, language: Language, epoch: Epoch) {
        self.jobs.push(Job::Gone(language, epoch));
    }

    fn next_fork(&mut self) -> SessionId {
        self.last_fork += 1;
        format!("sess_{:024x}", self.last_fork).parse().expect("an id")
    }
}

impl World {
    pub(super) fn ask(&mut self, asked: Asked, wait: bool) -> Checked {
        if self.finished {
            return Ok(());
        }
        let name = |n: usize| ["one", "two", "three"][n].to_owned();
        self.desk.last_request += 1;
        let request = RequestId(self.desk.last_request);
        let order = match asked {
            Asked::Save { files } => return self.ask_for_save(request, files, wait),
            Asked::Fork { count, files } => {
                let files = if files { ForkFiles::Copy } else { ForkFiles::Share };
                Order::Fork(ForkOrder { count, files, wait, name: None, new: None })
            }
            Asked::Checkpoint { name: n, files } => {
                let name = (n < 2).then(|| name(n));
                Order::Checkpoint(NewCheckpoint { name, files, wait })
            }
            Asked::Rewind { to, files } => {
                let to = match to {
                    0 => RewindTo::Newest,
                    1 | 2 => RewindTo::Runs(to as u64),
                    _ => RewindTo::Name(name(to - 3)),
                };
                Order::Rewind(Rewind { to, keep_files: !files, wait })
            }
            Asked::Drop(None) => Order::Drop(DropCheckpoints::All),
            Asked::Drop(Some(n)) => Order::Drop(DropCheckpoints::Named(vec![name(n)])),
        };
        self.desk.requests.insert(request, order.clone());
        self.operate(Event::Asked { request, order })
    }

    pub(super) fn leave(&mut self, index: Index) -> Checked {
        let desk = &self.desk;
        let requests = desk.requests.keys().chain(desk.saves.asked.keys());
        let requests: Vec<RequestId> = requests.copied().collect();
        if self.finished || requests.is_empty() {
            return Ok(());
        }
        let request = requests[index.index(requests.len())];
        // A save is taken back, however far it is.
        self.desk.saves.asked.remove(&request);
        // What else has begun goes on, and is answered to nobody.
        let was_waiting = self.session.operations().is_waiting(request);
        if was_waiting {
            self.desk.requests.remove(&request);
        }
        self.operate(Event::ClientGone { request })
    }

    pub(super) fn operate(&mut self, event: Event) -> Checked {
        if self.finished {
            return Ok(());
        }
        self.told = None;
        let effects = self.session.operate(event.clone(), self.now);
        self.log.push(format!("{}: {event:?} -> {effects:?}", self.now));
        if is_repeatable(&event) {
            self.desk.told.push(event);
        }
        self.perform(effects)
    }

    pub(super) fn repeat(&mut self, index: Index) -> Checked {
        let told = &self.desk.told;
        if told.is_empty() {
            return Ok(());
        }
        let event = told[index.index(told.len())].clone();
        // What is about something that is there now is not told twice.
        let is_of_now = if let Event::ImageLost { image, .. } = &event {
            self.desk.images.contains(image)
        } else if let Event::KernelGone { language, epoch, .. } = &event {
            self.process(*language).epoch == *epoch
        } else {
            false
        };
        if is_of_now { Ok(()) } else { self.operate(event) }
    }

    pub(super) fn fulfil_first(&mut self) -> Checked {
        let at = self.desk.jobs.iter().position(|job| !matches!(job, Job::Capture(..)));
        match at {
            Some(at) => self.fulfil_at(at),
            None => Ok(()),
        }
    }

    pub(super) fn fulfil(&mut self, index: Index) -> Checked {
        match self.desk.jobs.len() {
            0 => Ok(()),
            jobs => self.fulfil_at(index.index(jobs)),
        }
    }

    fn fulfil_at(&mut self, at: usize) -> Checked {
        let job = self.desk.jobs.remove(at);
        let event = match job {
            Job::Image(image) => {
                let of = self.session.operations().image(image).map(|image| &image.form);
                if let Some(Form::Pending(sessile_session::operations::ImageMethod::Copy)) = of {
                    self.desk.processes.insert(image);
                }
                Event::ImageReady { image, left: Vec::new(), is_restless: at % 3 == 1 }
            }
            Job::BringUp(copy) => {
                if let Some((_, is_up)) = self.desk.copies.get_mut(&copy) {
                    *is_up = true;
                }
                Event::CopyUp { copy }
            }
            Job::Take(files) => {
                self.desk.trees.insert(files, self.desk.workspace);
                Event::FilesTaken { files, view: FilesView::default() }
            }
            Job::Put { files, to } => {
                self.desk.workspace = self.desk.trees[&to];
                Event::FilesPut { files, restored: RestoredFiles::default() }
            }
            Job::WriteJournal => Event::JournalWritten { outcome: Ok(()) },
            Job::WriteStates => {
                self.desk.rewind.are_states_written = true;
                Event::StatesWritten { outcome: Ok(Vec::new()) }
            }
            Job::WriteTimeline(request) => Event::TimelineWritten { request, outcome: Ok(()) },
            Job::Plan { request, .. } => Event::ForksPlanned { request, outcome: Ok(()) },
            Job::Make { request, count } => {
                let expected: Vec<SessionId> = (0..count).map(|_| self.desk.next_fork()).collect();
                self.desk.jobs.extend(expected.iter().cloned().map(Job::ForkUp));
                Event::ForksMade { request, expected, failure: None }
            }
            Job::Save(job) => self.save_job_done(job, at),
            Job::ForkUp(fork) => Event::ForkUp { fork, outcome: Ok(()) },
            Job::Gone(language, epoch) => {
                Event::KernelGone { language, epoch, copies: Copies::OnTheirWay }
            }
            Job::Capture(language, as_of) => {
                // Aside: the file has no room for it.
                self.process(language).captures.retain(|run| *run != as_of);
                self.operate(Event::Captured { language, as_of })?;
                return self.captures_done(language);
            }
        };
        self.operate(event)
    }

    pub(super) fn fail(&mut self, index: Index) -> Checked {
        // What is there may go as well.
        let processes: Vec<ImageId> = self.desk.processes.iter().copied().collect();
        let ups = self.desk.copies.iter().filter(|(_, (_, is_up))| *is_up);
        let ups: Vec<CopyId> = ups.map(|(copy, _)| *copy).collect();
        let jobs = self.desk.jobs.len();
        let all = jobs + processes.len() + ups.len();
        if self.finished || all == 0 {
            return Ok(());
        }
        let at = index.index(all);
        let why = || "it was ended".to_owned();
        if at >= jobs + processes.len() {
            let copy = ups[at - jobs - processes.len()];
            self.desk.copies.remove(&copy);
            return self.operate(Event::CopyLost { copy, why: why() });
        }
        if at >= jobs {
            let image = processes[at - jobs];
            self.desk.processes.remove(&image);
            return self.operate(Event::ImageLost { image, why: why() });
        }
        let failure = Failure::new(Code::Storage, "no space left on device");
        let job = self.desk.jobs.remove(at);
        let event = match job {
            Job::Image(image) => Event::ImageLost { image, why: why() },
            Job::BringUp(copy) => {
                self.desk.copies.remove(&copy);
                Event::CopyLost { copy, why: why() }
            }
            Job::Take(files) => Event::FilesNotTaken { files, failure },
            Job::Put { files, to } if at.is_multiple_of(2) => {
                // Those from before may be refused as well; that is told.
                let before = self.desk.rewind.files.map(|(before, _)| before);
                self.desk.rewind.is_torn |= self.desk.workspace != self.desk.trees[&to]
                    && before == Some(self.desk.trees[&to]);
                Event::FilesNotPut { files, failure: PutFailure::Refused(failure) }
            }
            Job::Put { files, .. } => {
                self.desk.workspace_changes();
                self.desk.rewind.is_torn = true;
                Event::FilesNotPut { files, failure: PutFailure::Killed }
            }
            Job::WriteJournal => Event::JournalWritten { outcome: Err(failure) },
            Job::WriteStates => Event::StatesWritten { outcome: Err(failure) },
            Job::WriteTimeline(request) => {
                Event::TimelineWritten { request, outcome: Err(failure) }
            }
            Job::Plan { request, .. } => Event::ForksPlanned { request, outcome: Err(failure) },
            Job::Make { request, .. } => {
                let expected = vec![self.desk.next_fork()];
                self.desk.jobs.extend(expected.iter().cloned().map(Job::ForkUp));
                Event::ForksMade { request, expected, failure: Some(failure) }
            }
            Job::Save(job) => self.save_job_fails(job),
            Job::ForkUp(fork) => Event::ForkUp { fork, outcome: Err(failure) },
            Job::Gone(language, epoch) => {
                Event::KernelGone { language, epoch, copies: Copies::Lost }
            }
            Job::Capture(language, as_of) => {
                self.process(language).captures.retain(|run| *run != as_of);
                self.operate(Event::NotCaptured { language })?;
                return self.captures_done(language);
            }
        };
        self.operate(event)
    }

    /// Whoever waits for a kernel's state has what there is.
    pub(super) fn captures_done(&mut self, language: Language) -> Checked {
        let captures = &self.process(language).captures;
        let left = captures.clone();
        let jobs = &mut self.desk.jobs;
        jobs.retain(|job| {
            !matches!(job, Job::Capture(of, as_of) if *of == language && !left.contains(as_of))
        });
        if left.is_empty() { self.operate(Event::Described { language }) } else { Ok(()) }
    }

    pub(super) fn kernel_gone(&mut self, language: Language, epoch: Epoch) -> Checked {
        let copies = if self.now.is_multiple_of(2) { Copies::Lost } else { Copies::OnTheirWay };
        self.desk.jobs.retain(|job| !matches!(job, Job::Capture(of, _) if *of == language));
        self.saves_lose_kernel(language, epoch);
        self.operate(Event::KernelGone { language, epoch, copies })
    }

    pub(super) fn check_operations(&self) -> Checked {
        if self.finished {
            return Ok(());
        }
        let operations = self.session.operations();
        let there = operations.images().filter(|(_, image)| !matches!(image.form, Form::Lost(_)));
        let there: BTreeSet<ImageId> = there.map(|(id, _)| id).collect();
        prop_assert_eq!(&there, &self.desk.images, "images that only one side knows of");
        if !operations.is_active() {
            let points = operations.timeline().points().iter();
            let checkpoints = points.filter_map(|point| operations.checkpoint(point.id));
            let needed: BTreeSet<ImageId> =
                checkpoints.flat_map(|checkpoint| checkpoint.images.values().copied()).collect();
            let spare = there.difference(&needed).count();
            let most = if self.limits.auto.is_some() { LANGUAGES.len() } else { 0 };
            prop_assert!(spare <= most, "{spare} images outlive their checkpoints");
        }
        if operations.is_under_way() {
            prop_assert!(operations.due().is_some(), "nothing ends an operation");
        }
        let is_waiting = operations.is_active() && !operations.is_under_way();
        let is_going = self.session.running().next().is_some();
        let is_coming = self.session.preparing().next().is_some() || self.session.due().is_some();
        // The driver tells of every death that it has announced.
        let is_dying = self.processes.values().any(|process| process.is_dying);
        let has_reason = is_going || is_coming || is_dying;
        prop_assert!(!is_waiting || has_reason, "an operation waits for nothing");
        Ok(())
    }
}

/// What may come again, late: it says what it is about.
fn is_repeatable(event: &Event) -> bool {
    match event {
        Event::Described { .. }
        | Event::KernelGone { .. }
        | Event::ImageReady { .. }
        | Event::ImageLost { .. }
        | Event::CopyUp { .. }
        | Event::CopyLost { .. }
        | Event::FilesTaken { .. }
        | Event::FilesNotTaken { .. }
        | Event::FilesPut { .. }
        | Event::FilesNotPut { .. }
        | Event::ForksPlanned { .. }
        | Event::ForksMade { .. }
        | Event::ForkUp { .. }
        | Event::TimelineWritten { .. }
        | Event::SaveGathered { .. }
        | Event::SaveFailed { .. }
        | Event::SaveWritten { .. }
        | Event::Uploaded { .. }
        | Event::ClientGone { .. } => true,
        Event::Asked { .. }
        | Event::SaveAsked { .. }
        | Event::Captured { .. }
        | Event::NotCaptured { .. }
        | Event::JournalWritten { .. }
        | Event::Looked { .. }
        | Event::StatesWritten { .. } => false,
    }
}
