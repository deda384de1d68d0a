//! The words that an agent and its driver speak to each other.

use crate::continuity::Continuity;
use crate::ids::TaskNo;
use crate::limits::{Limits, Spent};
use crate::model::{Call, Failure, Reply, Usage};
use crate::thread::{Activity, Checkpoint, Ending, Entry, Intent, Outcome, Verdict};

/// What an agent may do without being asked about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// The caller trusts it.
    #[default]
    Never,
    Always,
    /// Before calls of these tools.
    Tools(Vec<String>),
}

/// What an agent is made with.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Names of the tools that there are.
    pub tools: Vec<String>,
    pub approval: Approval,
    pub checkpoints: Checkpoints,
    pub worker: Worker,
}

/// Who does the work of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Worker {
    /// A model, which may be asked any number of times.
    #[default]
    Model,
    /// A command-line agent, which does things itself when it is asked, and has a memory
    /// of its own.
    Program,
}

/// When the session is marked, so that a step can be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpoints {
    #[default]
    Never,
    /// Before the first call of a step, but for calls of tools that only read.
    BeforeCalls,
    /// Before the model is asked: it does things itself.
    BeforeAsking,
}

/// Where to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindTo {
    /// Right after this step; 0: before the first one.
    Step(u64),
    /// Before the last task.
    LastTask,
}

#[derive(Clone, Debug)]
pub struct Submission {
    pub text: String,
    pub limits: Limits,
    pub continuity: Continuity,
    /// The caller's name for it, under which it is begun once.
    pub key: Option<String>,
}

/// What has happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The model has answered.
    Replied(Reply),
    /// It has not.
    Failed(Failure),
    /// What the answer that is under way has used so far, as its server tells it.
    Using(Usage),
    /// What a call is about to do to a file. It is performed when that is recorded.
    Intended(Intent),
    /// The task cannot go on here. What was to be done last was not begun.
    Stopped(Failure),
    /// The session was brought back in the middle of a task.
    Continued(Continuity),
    /// A call has come to an end.
    Performed(Outcome),
    /// The caller has said whether a call may be performed.
    Decided { call: String, verdict: Verdict },
    /// The caller does not want the task any more.
    Cancelled,
    /// Time has passed: a wait is over, or the task's time is.
    Due,
    /// The session was marked, or could not be.
    Checkpointed(Checkpoint),
    /// The session has gone back, and the number that this has in its history; or
    /// why it has not.
    Rewound(Result<Option<u64>, String>),
    /// A command-line agent tells of what it does.
    Active(Activity),
}

/// What the driver has to do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append it, and have it on disk before going on.
    Record(Entry),
    /// Ask the model, with [`Agent::turns`].
    Ask(Question),
    /// Call [`Agent::step`] with [`Input::Due`] then.
    WaitUntil {
        at_ms: u64,
        /// The attempt that has failed: 1, 2, …
        attempt: u32,
        failure: Failure,
    },
    /// Ask the caller about this call.
    Approve(Call),
    Perform {
        call: Call,
        /// The same each time that this call is performed.
        key: String,
        /// It may have been performed before the agent was interrupted.
        is_repeated: bool,
        /// What it is known to do to a file.
        intent: Option<Intent>,
    },
    /// Mark the session, so that it can go back to before this step.
    Checkpoint { step: u64 },
    /// Take the session back to this checkpoint of its own.
    Rewind { checkpoint: String },
    /// Give up what was asked of the model, or interrupt the call, whichever is
    /// under way. An interrupted call is told as [`Input::Performed`] all the same.
    Interrupt,
    /// The task is over.
    Ended { task: TaskNo, ending: Ending, spent: Spent },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// What to do next.
    Step,
    /// To sum up the conversation.
    Summary,
    /// The same of a conversation that is too long for the model: of a part of it.
    ShortSummary,
}

/// What the model is asked for, and how often that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub purpose: Purpose,
    /// The same each time that this is asked.
    pub key: String,
    /// What a command-line agent has told of already.
    pub activities: u64,
}

/// What is under way.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    Idle,
    Asking {
        purpose: Purpose,
        attempt: u32,
        /// What the answer has used so far. It counts if the answer is given up.
        used: Usage,
    },
    Waiting {
        purpose: Purpose,
        attempt: u32,
        until_ms: u64,
    },
    Approving {
        call: String,
    },
    Performing {
        call: String,
    },
    /// Before the step's first call, or before the model is asked.
    Checkpointing {
        step: u64,
    },
    Rewinding,
}

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("task {0} is not over; wait for it, or cancel it")]
    Busy(TaskNo),
    #[error("the task is empty; say what is to be done")]
    Empty,
    #[error("task {0} was given with this key, and was another one")]
    KeyReused(TaskNo),
    #[error("the agent is just going back; try again")]
    Rewinding,
    #[error("this agent has no step {step} to go back to; {known}")]
    UnknownStep { step: u64, known: String },
    #[error("there is no task to take back")]
    NothingToUndo,
    #[error("what step {step} did cannot be taken back: {why}")]
    NoCheckpoint { step: u64, why: String },
    #[error("this agent was moved to {url}, where its session is {session_id}; use it there")]
    Moved { url: String, session_id: String },
}
