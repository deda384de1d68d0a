//! Decides what to do with a call of the model.

use super::open::Pending;
use super::{Approval, Config};
use crate::model::Arguments;
use crate::thread::{Ending, Outcome, Verdict};
use crate::tools::CallError;

/// The next action for a call.
pub(super) enum Next {
    Tell(Outcome),
    Approve,
    Perform,
}

/// Decides about a call. `is_uncertain`: it was in progress when the agent was interrupted.
pub(super) fn next_of(
    pending: &Pending,
    stopping: Option<&Ending>,
    is_uncertain: bool,
    config: &Config,
) -> Next {
    let call = &pending.call;
    let tell = |text: String| Next::Tell(Outcome::error(call.id.clone(), text));
    if let Some(ending) = stopping {
        let what = if is_uncertain { "perhaps not carried out" } else { "not carried out" };
        return tell(format!("{what}: {}", reason(ending)));
    }
    if !config.tools.contains(&call.tool) {
        let known = config.tools.join(", ");
        return tell(CallError::UnknownTool { name: call.tool.clone(), known }.to_string());
    }
    if let Arguments::Malformed(text) = &call.input {
        return tell(CallError::Malformed(text.chars().take(200).collect()).to_string());
    }
    match &pending.verdict {
        Some(Verdict::Allowed) => Next::Perform,
        Some(Verdict::Denied(why)) if why.is_empty() => tell("the user does not allow this".into()),
        Some(Verdict::Denied(why)) => tell(format!("the user does not allow this: {why}")),
        None => match &config.approval {
            Approval::Never => Next::Perform,
            Approval::Always => Next::Approve,
            Approval::Tools(tools) if tools.contains(&call.tool) => Next::Approve,
            Approval::Tools(_) => Next::Perform,
        },
    }
}

fn reason(ending: &Ending) -> &'static str {
    match ending {
        Ending::Cancelled => "the task was cancelled",
        Ending::Limit { .. } => "the task had reached a limit",
        Ending::Failed { .. } => "the task had failed",
        Ending::Done { .. } | Ending::Refused { .. } => "the task was over",
    }
}
