//! Arguments of the tools for forks and checkpoints.

use super::request::{Fields, refuse, whole_number};
use super::sessions::session_of;
use crate::{Error, Result};
use serde_json::{Map, Value};
use sessile_protocol::{
    Auto, DropCheckpoints, ForkFiles, ForkOrder, NewCheckpoint, Rewind, RewindTo, SessionId,
};

/// Upper limit for the number of automatic checkpoints that a session keeps.
const MOST_KEPT: u64 = 1000;

/// An operation on a session as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Branch {
    Fork(ForkOrder),
    Checkpoint(NewCheckpoint),
    Checkpoints,
    Rewind(Rewind),
    Drop(DropCheckpoints),
}

/// The same for a workspace's session, whose forks are found by a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceBranch {
    Fork { order: ForkOrder, new_key: String },
    Other(Branch),
}

/// A call of `session_fork`, `session_checkpoint`, ….
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCall {
    pub session: SessionId,
    pub branch: Branch,
}

/// Which of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchTool {
    Fork,
    Checkpoint,
    Checkpoints,
    Rewind,
    Undo,
    Drop,
}

impl BranchCall {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(tool: BranchTool, arguments: &Map<String, Value>) -> Result<Self> {
        let session = session_of(arguments)?;
        let fields = Fields(arguments);
        let branch = match tool {
            BranchTool::Fork => Branch::Fork(fields.fork()?),
            BranchTool::Checkpoint => Branch::Checkpoint(fields.new_checkpoint("name")?),
            BranchTool::Checkpoints => Branch::Checkpoints,
            BranchTool::Rewind => Branch::Rewind(fields.rewind()?),
            BranchTool::Undo => Branch::Rewind(fields.undo()?),
            BranchTool::Drop => Branch::Drop(fields.drop_checkpoints()?),
        };
        Ok(Self { session, branch })
    }
}

impl Fields<'_> {
    /// Parses the arguments of `runtime`; none when it is another action.
    pub(super) fn branch(&self, action: &str) -> Result<Option<WorkspaceBranch>> {
        let branch = match action {
            "fork" => {
                let new_key = self.text("new_key")?.filter(|key| !key.is_empty());
                let new_key = new_key.ok_or_else(|| {
                    Error::bad_request("new_key is required for fork action: the session_key that the fork is found by")
                })?;
                let files = if self.flag("files")? { ForkFiles::Copy } else { ForkFiles::Share };
                let (wait, name) = (self.flag("wait")?, None);
                let order = ForkOrder { count: 1, files, wait, name, new: None };
                return Ok(Some(WorkspaceBranch::Fork { order, new_key }));
            }
            "checkpoint" => Branch::Checkpoint(self.new_checkpoint("checkpoint")?),
            "checkpoints" => Branch::Checkpoints,
            "rewind" => Branch::Rewind(self.rewind()?),
            "undo" => Branch::Rewind(self.undo()?),
            _ => return Ok(None),
        };
        Ok(Some(WorkspaceBranch::Other(branch)))
    }

    fn fork(&self) -> Result<ForkOrder> {
        let files = match self.text("files")?.as_deref() {
            None | Some("share") => ForkFiles::Share,
            Some("copy") => ForkFiles::Copy,
            Some(other) => return refuse(format!("files must be share or copy, not {other}")),
        };
        let count = self.number("count")?.unwrap_or(1);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let (wait, name) = (self.flag("wait")?, self.text("name")?);
        let order = ForkOrder { count, files, wait, name, new: None };
        order.check()?;
        Ok(order)
    }

    fn new_checkpoint(&self, name: &str) -> Result<NewCheckpoint> {
        let (files, wait) = (self.flag("files")?, self.flag("wait")?);
        let new = NewCheckpoint { name: self.text(name)?, files, wait };
        new.check()?;
        Ok(new)
    }

    fn rewind(&self) -> Result<Rewind> {
        let to = match (self.text("checkpoint")?, self.number("runs")?) {
            (None, None) => RewindTo::Newest,
            (Some(name), None) => RewindTo::Name(name),
            (None, Some(0)) => return refuse("runs must be at least 1"),
            (None, Some(runs)) => RewindTo::Runs(runs),
            (Some(_), Some(_)) => {
                return refuse("give either checkpoint, or runs, to go back to");
            }
        };
        self.back(to)
    }

    fn undo(&self) -> Result<Rewind> {
        self.back(RewindTo::Runs(1))
    }

    fn back(&self, to: RewindTo) -> Result<Rewind> {
        Ok(Rewind { to, keep_files: self.flag("keep_files")?, wait: self.flag("wait")? })
    }

    fn drop_checkpoints(&self) -> Result<DropCheckpoints> {
        match (self.text("checkpoint")?, self.flag("all")?) {
            (Some(name), false) => Ok(DropCheckpoints::Named(vec![name])),
            (None, true) => Ok(DropCheckpoints::All),
            (Some(_), true) | (None, false) => {
                refuse("give either checkpoint, the one to drop, or all")
            }
        }
    }

    /// Parses the automatic checkpoints: their number, or an object with more settings.
    pub(super) fn auto(&self) -> Result<Option<Auto>> {
        let wrong = |value: &Value| {
            format!(
                "auto must be from 1 to {MOST_KEPT}, or {{\"keep\": 10, \"files\": true}}, not {value}"
            )
        };
        let Some(value) = self.get("auto") else {
            return match self.flag("auto_files")? {
                true => refuse("auto_files says what auto keeps: give auto, too"),
                false => Ok(None),
            };
        };
        let (keep, files) = match value {
            Value::Object(more) => {
                let more = Fields(more);
                (more.number("keep")?, more.flag("files")?)
            }
            Value::Number(_) => (whole_number(value), self.flag("auto_files")?),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => (None, false),
        };
        let keep = keep.filter(|keep| (1..=MOST_KEPT).contains(keep));
        match keep.and_then(|keep| u32::try_from(keep).ok()) {
            Some(keep) => Ok(Some(Auto { keep, files })),
            None => refuse(wrong(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(tool: BranchTool, more: &Value) -> Result<Branch> {
        let mut arguments = json!({"session_id": "sess_0123456789ab"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let call = BranchCall::from_arguments(tool, arguments.as_object().unwrap());
        call.map(|call| call.branch)
    }

    #[test]
    fn a_rewind_says_where_to() {
        let to = |more: Value| match call(BranchTool::Rewind, &more) {
            Ok(Branch::Rewind(rewind)) => rewind.to,
            other => panic!("{other:?}"),
        };
        assert_eq!(to(json!({})), RewindTo::Newest);
        assert_eq!(to(json!({"checkpoint": "a"})), RewindTo::Name("a".to_owned()));
        assert_eq!(to(json!({"runs": 2})), RewindTo::Runs(2));
        let both = call(BranchTool::Rewind, &json!({"checkpoint": "a", "runs": 1}));
        assert!(both.unwrap_err().message.starts_with("give either"));
        assert!(call(BranchTool::Rewind, &json!({"runs": 0})).is_err());
    }

    #[test]
    fn a_wrong_call_is_told_what_to_do() {
        let wrong = |tool, more: Value| call(tool, &more).unwrap_err().message;
        assert!(wrong(BranchTool::Fork, json!({"count": 0})).contains("1 to 1000"));
        assert!(wrong(BranchTool::Fork, json!({"files": "move"})).contains("share or copy"));
        assert!(wrong(BranchTool::Checkpoint, json!({"name": "-x"})).contains("no dash"));
        assert!(wrong(BranchTool::Drop, json!({})).starts_with("give either"));
        assert!(wrong(BranchTool::Drop, json!({"all": true, "checkpoint": "a"})).contains("all"));
    }

    #[test]
    fn checkpoints_before_runs_are_a_number_or_more() {
        let auto = |value: Value| Fields(json!({"auto": value}).as_object().unwrap()).auto();
        assert_eq!(auto(json!(null)).map_err(|e| e.message), Ok(None));
        assert_eq!(auto(json!(3)).map_err(|e| e.message), Ok(Some(Auto { keep: 3, files: false })));
        let more = json!({"keep": 4, "files": true});
        assert_eq!(auto(more).map_err(|e| e.message), Ok(Some(Auto { keep: 4, files: true })));
        for wrong in [json!(0), json!(1001), json!(true), json!("3"), json!({"files": true})] {
            assert!(
                auto(wrong.clone()).unwrap_err().message.starts_with("auto must be"),
                "{wrong}"
            );
        }
    }
}
