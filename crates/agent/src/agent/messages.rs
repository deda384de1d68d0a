//! The types that an agent and its driver exchange.

use crate::continuity::Continuity;
use crate::ids::TaskNo;
use crate::limits::{Limits, Spent};
use crate::model::{Call, Failure, Reply, Usage};
use crate::thread::{Activity, Checkpoint, Ending, Entry, Intent, Outcome, Verdict};

/// When a call needs the caller's approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// The caller trusts the agent.
    #[default]
    Never,
    Always,
    /// Before calls of these tools.
    Tools(Vec<String>),
}

/// The settings of an agent.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Names of the available tools.
    pub tools: Vec<String>,
    pub approval: Approval,
    pub checkpoints: Checkpoints,
    pub worker: Worker,
}

/// What does the work of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Worker {
    /// A model, which may be asked any number of times.
    #[default]
    Model,
    /// A command-line agent, which acts by itself when it is asked, and has its own memory.
    Program,
}

/// When a checkpoint of the session is taken, so that a step can be undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpoints {
    #[default]
    Never,
    /// Before the first call of a step, except for calls of tools that only read.
    BeforeCalls,
    /// Before the model is asked, because it acts by itself.
    BeforeAsking,
}

/// The target of a rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindTo {
    /// Right after this step; 0 means before the first one.
    Step(u64),
    /// Before the last task.
    LastTask,
}

#[derive(Clone, Debug)]
pub struct Submission {
    pub text: String,
    pub limits: Limits,
    pub continuity: Continuity,
    /// The caller's key, under which the task is begun only once.
    pub key: Option<String>,
}

/// An event.
#[derive(Clone, Debug)]
pub enum Input {
    /// The model has answered.
    Replied(Reply),
    /// The model has failed.
    Failed(Failure),
    /// The usage of the answer in progress so far, as its server reports it.
    Using(Usage),
    /// The change that a call is about to make to a file. It is performed when that is recorded.
    Intended(Intent),
    /// The task cannot continue here. The last action was not begun.
    Stopped(Failure),
    /// The session was restored during a task.
    Continued(Continuity),
    /// A call has ended.
    Performed(Outcome),
    /// The caller has decided whether a call may be performed.
    Decided { call: String, verdict: Verdict },
    /// The caller cancels the task.
    Cancelled,
    /// A wait, or the time of the task, is over.
    Due,
    /// A checkpoint of the session was taken, or could not be.
    Checkpointed(Checkpoint),
    /// The session was rewound, with the number of the rewind in its history; or why it was not.
    Rewound(Result<Option<u64>, String>),
    /// A command-line agent reports an activity.
    Active(Activity),
}

/// The actions of the driver, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append the entry, and sync it to disk before continuing.
    Record(Entry),
    /// Ask the model, with [`Agent::turns`].
    Ask(Question),
    /// Call [`Agent::step`] with [`Input::Due`] at that time.
    WaitUntil {
        at_ms: u64,
        /// The failed attempt: 1, 2, …
        attempt: u32,
        failure: Failure,
    },
    /// Ask the caller about this call.
    Approve(Call),
    Perform {
        call: Call,
        /// The same each time this call is performed.
        key: String,
        /// It may have been performed before the agent was interrupted.
        is_repeated: bool,
        /// The change that it makes to a file, if known.
        intent: Option<Intent>,
    },
    /// Take a checkpoint of the session before this step.
    Checkpoint { step: u64 },
    /// Rewind the session to this checkpoint.
    Rewind { checkpoint: String },
    /// Abort the request to the model, or interrupt the call, whichever is in progress. The
    /// end of an interrupted call is still reported as [`Input::Performed`].
    Interrupt,
    /// The task is over.
    Ended { task: TaskNo, ending: Ending, spent: Spent },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To decide what to do next.
    Step,
    /// To summarize the conversation.
    Summary,
    /// To summarize a part of a conversation that is too long for the model.
    ShortSummary,
}

/// A request to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub purpose: Purpose,
    /// The same each time this is asked.
    pub key: String,
    /// Number of activities that a command-line agent has already reported.
    pub activities: u64,
}

/// The action in progress.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    Idle,
    Asking {
        purpose: Purpose,
        attempt: u32,
        /// The usage of the answer so far. It counts if the answer is given up.
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

/// Why a request is refused.
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
