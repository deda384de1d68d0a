//! Bodies about forks and checkpoints.

use super::wire::within;
use crate::service::{ErrorCode, ServiceError};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use sessile_gateway::input;
use sessile_protocol::{Auto, ForkFiles, ForkOrder, NewCheckpoint, Rewind, RewindTo};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// Upper limit for the number of automatic checkpoints that a session keeps.
const MOST_KEPT: u64 = 1000;

/// Forks to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkRequest {
    /// Number of forks. Default: 1
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1000, default = 1, example = 3)]
    count: u32,
    /// `share`: the same workspace; `copy`: a copy of it as it is now
    #[serde(default)]
    #[schema(inline)]
    files: Files,
    /// Wait for active runs instead of refusing
    #[serde(default)]
    wait: bool,
    /// Their name
    #[schema(
        nullable,
        min_length = 1,
        max_length = 100,
        pattern = r"^(?!sess_)[\p{Alphabetic}\p{N} _.:/-]+$"
    )]
    pub(super) name: Option<String>,
    /// End them with the calling process, as for a new session. Default: forks without a name
    /// end with the same process as their original
    #[schema(nullable)]
    pub(super) ends_with_caller: Option<bool>,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Files {
    #[default]
    Share,
    Copy,
}

impl From<ForkRequest> for ForkOrder {
    fn from(body: ForkRequest) -> Self {
        let files = match body.files {
            Files::Share => ForkFiles::Share,
            Files::Copy => ForkFiles::Copy,
        };
        Self { count: body.count, files, wait: body.wait, name: body.name, new: None }
    }
}

/// A checkpoint to take.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointRequest {
    /// Its name. Default: `checkpoint-` and the number of the last run
    #[schema(
        nullable,
        min_length = 1,
        max_length = 100,
        example = "before-refactoring",
        pattern = r"^(?![\s-])[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f]$"
    )]
    name: Option<String>,
    /// Include the files of the workspace
    #[serde(default)]
    files: bool,
    /// Wait for active runs instead of refusing
    #[serde(default)]
    wait: bool,
}

impl From<CheckpointRequest> for NewCheckpoint {
    fn from(body: CheckpointRequest) -> Self {
        Self { name: body.name, files: body.files, wait: body.wait }
    }
}

/// The target of a rewind: a checkpoint, or a number of runs. Default: the newest checkpoint.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RewindRequest {
    /// The checkpoint
    #[schema(nullable, example = "before-refactoring")]
    checkpoint: Option<String>,
    /// Undo this many runs, in a session that was started with `auto`
    #[serde(default, deserialize_with = "runs")]
    #[schema(nullable, minimum = 1, maximum = 1000)]
    runs: Option<u64>,
    /// Do not restore the files of the checkpoint
    #[serde(default)]
    keep_files: bool,
    /// Wait for active runs instead of refusing
    #[serde(default)]
    wait: bool,
}

fn runs<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(Option::<u64>::deserialize(d)?, 1, MOST_KEPT)
}

impl RewindRequest {
    pub(super) fn order(self) -> Result<Rewind, ServiceError> {
        let to = match (self.checkpoint, self.runs) {
            (None, None) => RewindTo::Newest,
            (Some(name), None) => RewindTo::Name(name),
            (None, Some(runs)) => RewindTo::Runs(runs),
            (Some(_), Some(_)) => {
                let message = "give either checkpoint, or runs, to go back to";
                return Err(ServiceError::new(ErrorCode::BadRequest, message));
            }
        };
        Ok(Rewind { to, keep_files: self.keep_files, wait: self.wait })
    }
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UndoRequest {
    /// Do not restore the files of the checkpoint
    #[serde(default)]
    keep_files: bool,
    /// Wait for active runs instead of refusing
    #[serde(default)]
    wait: bool,
}

impl From<UndoRequest> for Rewind {
    fn from(UndoRequest { keep_files, wait }: UndoRequest) -> Self {
        Self { to: RewindTo::Runs(1), keep_files, wait }
    }
}

/// Automatic checkpoints of a session: their number, or an object with more settings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AutoCheckpoints(pub(super) Option<Auto>);

/// Checkpoints before each run.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AutoRequest {
    /// How many are kept
    #[schema(minimum = 1, maximum = 1000, example = 10)]
    keep: u32,
    /// Include the files of the workspace
    #[serde(default)]
    files: bool,
}

impl<'de> Deserialize<'de> for AutoCheckpoints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const FORMS: &str =
            "expected a number of checkpoints to keep, or {\"keep\": 10, \"files\": true}";
        let AutoRequest { keep, files } = match Value::deserialize(deserializer)? {
            Value::Null => return Ok(Self(None)),
            value @ Value::Number(_) => {
                let keep = input::from_value(value).map_err(|_| D::Error::custom(FORMS))?;
                AutoRequest { keep, files: false }
            }
            value @ Value::Object(_) => input::from_value(value).map_err(D::Error::custom)?,
            Value::Bool(_) | Value::String(_) | Value::Array(_) => {
                return Err(D::Error::custom(FORMS));
            }
        };
        within(Some(u64::from(keep)), 1, MOST_KEPT)?;
        Ok(Self(Some(Auto { keep, files })))
    }
}

impl PartialSchema for AutoCheckpoints {
    fn schema() -> RefOr<Schema> {
        let keep = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(MOST_KEPT))
            .description(Some("How many are kept"));
        let either = OneOfBuilder::new()
            .item(keep)
            .item(Ref::from_schema_name("AutoRequest"))
            .description(Some("Checkpoints before each run: how many are kept, or that and files"));
        Schema::OneOf(either.build()).into()
    }
}

impl ToSchema for AutoCheckpoints {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((AutoRequest::name().into_owned(), AutoRequest::schema()));
        AutoRequest::schemas(schemas);
    }
}
