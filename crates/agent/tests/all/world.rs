//! Random models, callers and crashes, against the rules of the loop.

use crate::loops::config;
use proptest::prelude::*;
use sessile_agent::continuity::{Continuity, Status};
use sessile_agent::conversation::Turn;
use sessile_agent::ids::ThreadId;
use sessile_agent::limits::Limits;
use sessile_agent::model::{Arguments, Block, Call, Failure, FailureKind, Reply, Stop, Usage};
use sessile_agent::thread::{Checkpoint, Entry, EntryKind, Intent, Outcome, Verdict, line};
use sessile_agent::tools::is_for_files;
use sessile_agent::{
    Agent, Approval, Checkpoints, Config, Effect, Input, Purpose, RewindTo, Stage, Submission,
};
use std::collections::HashMap;

#[derive(Clone, Debug)]
enum Act {
    Submit {
        steps: u32,
        time: Option<u64>,
        compact: Option<u64>,
    },
    Reply {
        calls: Vec<(u8, bool)>,
        tokens: u64,
    },
    Fail(bool),
    /// The conversation is too long for the model.
    TooLong,
    /// What a call does to a file is known.
    Intend,
    /// The session was brought back.
    Continue,
    Perform,
    Decide(bool),
    Cancel,
    /// Back by so many steps, as far as there are some.
    Rewind(u64),
    Undo,
    /// The session is marked, or has gone back; or that has failed.
    Settle(bool),
    Pass(u64),
    /// How many of the entries that were not yet on disk are lost with the crash.
    Crash,
    /// Another machine takes the thread up, which does not know of keys.
    TakeUp,
    /// Something late: an answer to what nobody asks any more.
    Late,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        2 => (1..6u32, proptest::option::of(1..5000u64), proptest::option::of(0..50u64))
            .prop_map(|(steps, time, compact)| Act::Submit { steps, time, compact }),
        6 => (proptest::collection::vec((0..3u8, any::<bool>()), 0..4), 0..100u64)
            .prop_map(|(calls, tokens)| Act::Reply { calls, tokens }),
        2 => any::<bool>().prop_map(Act::Fail),
        1 => Just(Act::TooLong),
        2 => Just(Act::Intend),
        1 => Just(Act::Continue),
        6 => Just(Act::Perform),
        3 => any::<bool>().prop_map(Act::Decide),
        1 => Just(Act::Cancel),
        2 => (0..5u64).prop_map(Act::Rewind),
        1 => Just(Act::Undo),
        6 => any::<bool>().prop_map(Act::Settle),
        3 => (1..3000u64).prop_map(Act::Pass),
        2 => Just(Act::Crash),
        1 => Just(Act::TakeUp),
        1 => Just(Act::Late),
    ];
    proptest::collection::vec(act, 1..80)
}

fn some_config(asks: bool) -> Config {
    let approval = if asks { Approval::Tools(vec!["edit_file".into()]) } else { Approval::Never };
    Config { approval, checkpoints: Checkpoints::BeforeCalls, ..config() }
}

struct World {
    agent: Agent,
    asks: bool,
    now: u64,
    disk: Vec<Entry>,
    /// What each key has been used for.
    keys: HashMap<String, Call>,
    submitted: u64,
    ended: u64,
    /// What the session would say: calls that count, and where it was at each mark.
    session: Vec<String>,
    marks: HashMap<String, Vec<String>>,
    /// The mark that the session is to go back to.
    goal: Option<String>,
}

impl World {
    fn new(asks: bool) -> Self {
        let (agent, effects) = Agent::new(some_config(asks), ThreadId::of([3; 12]), 0);
        let (disk, keys) = (Vec::new(), HashMap::new());
        let mut world = Self {
            agent,
            asks,
            now: 0,
            disk,
            keys,
            submitted: 0,
            ended: 0,
            session: Vec::new(),
            marks: HashMap::new(),
            goal: None,
        };
        world.perform(effects);
        world
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Record(entry) => self.disk.push(entry),
                Effect::Perform { call, key, .. } => {
                    let known = self.keys.entry(key).or_insert_with(|| call.clone());
                    assert_eq!(*known, call, "a key is of one call");
                }
                Effect::Ended { .. } => self.ended += 1,
                Effect::Ask(_)
                | Effect::WaitUntil { .. }
                | Effect::Approve(_)
                | Effect::Checkpoint { .. }
                | Effect::Interrupt => {}
                Effect::Rewind { checkpoint } => self.goal = Some(checkpoint),
            }
        }
    }

    fn act(&mut self, act: &Act) {
        let input = match act {
            Act::Submit { steps, time, compact } => {
                let limits = Limits {
                    max_steps: *steps,
                    max_time_ms: *time,
                    compact_above_tokens: *compact,
                    ..Limits::default()
                };
                let continuity = Continuity::default();
                let submission = Submission { text: "do".into(), limits, continuity, key: None };
                if let Ok((_, effects)) = self.agent.submit(submission, self.now) {
                    self.submitted += 1;
                    self.perform(effects);
                }
                return;
            }
            Act::Crash => {
                let entries = self.disk.clone();
                let config = some_config(self.asks);
                let (agent, effects) = Agent::resumed(config, entries, self.now).unwrap();
                self.agent = agent;
                return self.perform(effects);
            }
            Act::TakeUp => return self.take_up(),
            Act::Pass(ms) => {
                self.now += ms;
                if self.agent.due_ms().is_none_or(|due| due > self.now) {
                    return;
                }
                Input::Due
            }
            Act::Reply { calls, tokens } => Input::Replied(reply(calls, *tokens)),
            Act::Fail(helps) => {
                let fault = if *helps { FailureKind::Unavailable } else { FailureKind::BadRequest };
                Input::Failed(Failure::new(fault, "no"))
            }
            Act::TooLong => Input::Failed(Failure::new(FailureKind::TooLong, "too long")),
            Act::Intend => {
                let Stage::Performing { call } = self.agent.stage() else { return };
                let (call, after) = (call.clone(), "new".to_owned());
                Input::Intended(Intent { call, before: None, after })
            }
            Act::Continue => {
                let status = Status::Restored;
                Input::Continued(Continuity { status, ..Continuity::default() })
            }
            Act::Perform => {
                let Stage::Performing { call } = self.agent.stage() else { return };
                self.session.push(call.clone());
                Input::Performed(outcome(call))
            }
            Act::Decide(yes) => {
                let Stage::Approving { call } = self.agent.stage() else { return };
                let verdict = if *yes { Verdict::Allowed } else { Verdict::Denied(String::new()) };
                Input::Decided { call: call.clone(), verdict }
            }
            Act::Cancel => Input::Cancelled,
            Act::Rewind(back) => {
                let step = self.steps().saturating_sub(*back);
                return self.rewind(RewindTo::Step(step));
            }
            Act::Undo => return self.rewind(RewindTo::LastTask),
            Act::Settle(is_fine) => match self.agent.stage() {
                Stage::Checkpointing { step } => {
                    let name = is_fine.then(|| format!("mark-{step}"));
                    if let Some(name) = &name {
                        self.marks.insert(name.clone(), self.session.clone());
                    }
                    let error = (!is_fine).then(|| "no room".to_owned());
                    Input::Checkpointed(Checkpoint { step: *step, name, files: true, error })
                }
                Stage::Rewinding => {
                    if !is_fine {
                        Input::Rewound(Err("no".to_owned()))
                    } else {
                        self.session = self.marks[self.goal.as_ref().unwrap()].clone();
                        Input::Rewound(Ok(Some(1)))
                    }
                }
                Stage::Idle
                | Stage::Asking { .. }
                | Stage::Waiting { .. }
                | Stage::Approving { .. }
                | Stage::Performing { .. } => return,
            },
            Act::Late => Input::Performed(outcome("nobody's")),
        };
        let effects = self.agent.step(input, self.now);
        self.perform(effects);
    }

    /// A call that may have been carried out is not carried out again.
    fn take_up(&mut self) {
        let config = some_config(self.asks);
        let continuity = Continuity { status: Status::Restored, ..Continuity::default() };
        let appended = Agent::taken_up(config.clone(), &self.disk, continuity, self.now);
        self.disk.extend(appended);
        let begun: Vec<String> = self.keys.keys().cloned().collect();
        let (agent, effects) = Agent::resumed(config, self.disk.clone(), self.now).unwrap();
        for effect in &effects {
            if let Effect::Perform { key, call, .. } = effect {
                assert!(is_for_files(&call.tool) || !begun.contains(key), "{call:?} again");
            }
        }
        self.agent = agent;
        self.perform(effects);
    }

    fn steps(&self) -> u64 {
        let step = |entry: &&Entry| matches!(entry.what, EntryKind::Reply { .. });
        line(&self.disk).iter().filter(|entry| step(entry)).count() as u64
    }

    fn rewind(&mut self, to: RewindTo) {
        if let Ok(effects) = self.agent.rewind(to, self.now) {
            self.perform(effects);
        }
    }

    /// Whatever is under way comes to an end, if nobody asks for more.
    fn settle(&mut self) {
        for _ in 0..1000 {
            match self.agent.stage().clone() {
                Stage::Idle => return,
                Stage::Asking { .. } => self.act(&Act::Reply { calls: vec![], tokens: 0 }),
                Stage::Waiting { until_ms, .. } => {
                    let rest = until_ms.saturating_sub(self.now).max(1);
                    self.act(&Act::Pass(rest));
                }
                Stage::Approving { .. } => self.act(&Act::Decide(true)),
                Stage::Performing { .. } => self.act(&Act::Perform),
                Stage::Checkpointing { .. } | Stage::Rewinding => self.act(&Act::Settle(true)),
            }
        }
        panic!("it never ends: {:?}", self.agent.stage());
    }

    fn check(&self) {
        assert_eq!(self.disk, self.agent.entries(), "what is decided is recorded");
        let mut pending: Vec<String> = Vec::new();
        for entry in line(&self.disk) {
            match &entry.what {
                EntryKind::Reply { reply, .. } => {
                    assert!(pending.is_empty(), "{pending:?} have no outcome");
                    pending.extend(reply.calls().map(|call| call.id.clone()));
                }
                EntryKind::Outcome(outcome) => {
                    let at = pending.iter().position(|id| *id == outcome.call);
                    pending.remove(at.expect("one outcome a call"));
                }
                EntryKind::Ended { .. } => {
                    assert!(pending.is_empty(), "{pending:?} have no outcome");
                }
                EntryKind::Created { .. }
                | EntryKind::Task { .. }
                | EntryKind::Approval { .. }
                | EntryKind::Intent(_)
                | EntryKind::Summary { .. }
                | EntryKind::Stopping { .. }
                | EntryKind::Checkpoint(_)
                | EntryKind::Rewinding(_)
                | EntryKind::Rewound { .. }
                | EntryKind::NotRewound { .. }
                | EntryKind::SessionRewound { .. }
                | EntryKind::Activity { .. }
                | EntryKind::Imported { .. }
                | EntryKind::Moved(_)
                | EntryKind::Continued(_) => {}
            }
        }
    }

    /// The session has done what the thread says, and nothing else.
    fn check_session(&self) {
        let done = line(&self.disk).into_iter().filter_map(|entry| {
            let EntryKind::Outcome(outcome) = &entry.what else { return None };
            (!outcome.is_error).then(|| outcome.call.clone())
        });
        assert_eq!(done.collect::<Vec<_>>(), self.session);
    }

    /// As servers of models want a conversation.
    fn check_turns(&self) {
        Self::check_calls(&self.agent.turns(Purpose::Step));
        Self::check_calls(&self.agent.turns(Purpose::ShortSummary));
    }

    fn check_calls(turns: &[Turn]) {
        for (index, turn) in turns.iter().enumerate() {
            let Turn::Model(blocks) = turn else { continue };
            let calls: Vec<_> = blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Call(call) => Some(call.id.as_str()),
                    Block::Text { .. } | Block::Opaque { .. } => None,
                })
                .collect();
            let next: Vec<_> = match turns.get(index + 1) {
                Some(Turn::Outcomes(outcomes)) => {
                    outcomes.iter().map(|outcome| outcome.call.as_str()).collect()
                }
                _ => Vec::new(),
            };
            assert_eq!(calls, next);
        }
    }
}

fn outcome(call: &str) -> Outcome {
    Outcome { call: call.into(), text: "ok".into(), is_error: false, run: None }
}

fn reply(calls: &[(u8, bool)], tokens: u64) -> Reply {
    const TOOLS: [&str; 3] = ["runtime", "edit_file", "nothing"];
    let call = |(index, (tool, is_fine)): (usize, &(u8, bool))| {
        let input = Arguments::parse(if *is_fine { "{}" } else { "{" });
        let tool = TOOLS[usize::from(*tool)].into();
        Block::Call(Call { id: index.to_string(), tool, input })
    };
    let usage = Usage { input_tokens: tokens, cached_tokens: 0, output_tokens: 1 };
    let mut blocks: Vec<_> = calls.iter().enumerate().map(call).collect();
    if calls.is_empty() {
        blocks.push(Block::Text { text: "fine".into() });
    }
    let stop = if calls.is_empty() { Stop::Done } else { Stop::Calls };
    Reply { blocks, stop, usage, model: String::new() }
}

proptest! {
    #![proptest_config(sessile_testkit::cases(2000))]
    #[test]
    fn every_call_has_one_outcome_and_every_task_one_end(acts in acts(), asks: bool) {
        let mut world = World::new(asks);
        for act in &acts {
            world.act(act);
            world.check();
        }
        world.settle();
        world.check();
        world.check_session();
        world.check_turns();
        prop_assert_eq!(world.submitted, world.ended);
    }
}
