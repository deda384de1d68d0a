//! Forks and checkpoints, as every surface tells of them.

use serde_json::{Map, Value, json};
use sessile_protocol::{
    Carried, CarriedKernel, CheckpointView, FilesView, ForkedView, LeftBehind, RestoredFiles,
    RewoundView,
};

/// `{"session_ids": […], …}`
#[must_use]
pub fn forked(view: &ForkedView) -> Value {
    let ids: Vec<&str> = view.forks.iter().map(|fork| fork.session.as_str()).collect();
    let sessions: Vec<Value> = view
        .forks
        .iter()
        .map(|fork| json!({"session_id": fork.session, "work_dir": fork.work_dir}))
        .collect();
    json!({
        "session_ids": ids,
        "as_of_run": view.as_of_run,
        "sessions": sessions,
        "kernels": kernels(&view.kernels),
        "left": lefts(&view.left),
    })
}

#[must_use]
pub fn checkpoint(view: &CheckpointView) -> Value {
    let mut fields = json!({
        "name": view.name,
        "created_at": view.created_at,
        "as_of_run": view.as_of_run,
        "auto": view.auto,
        "kernels": kernels(&view.kernels),
        "left": lefts(&view.left),
    });
    if let Some(taken) = &view.files {
        fields["files"] = files(taken);
    }
    fields
}

#[must_use]
pub fn rewound(view: &RewoundView) -> Value {
    let mut fields = json!({
        "checkpoint": view.checkpoint,
        "as_of_run": view.as_of_run,
        "run": view.run,
        "undone": view.undone,
        "kernels": kernels(&view.kernels),
        "left": lefts(&view.left),
    });
    if let Some(restored) = &view.files {
        fields["files"] = restored_files(restored);
    }
    fields
}

#[must_use]
pub fn lefts(left: &[LeftBehind]) -> Vec<Value> {
    left.iter().map(left_thing).collect()
}

fn left_thing(left: &LeftBehind) -> Value {
    let mut fields = Map::new();
    if let Some(language) = left.language {
        fields.insert("language".into(), language.as_str().into());
    }
    fields.insert("name".into(), left.name.clone().into());
    fields.insert("reason".into(), left.reason.clone().into());
    fields.into()
}

fn kernels(kernels: &[CarriedKernel]) -> Vec<Value> {
    let kernel = |kernel: &CarriedKernel| {
        let carried = match kernel.carried {
            Carried::Live => "live",
            Carried::Saved => "saved",
            Carried::Busy => "busy",
            Carried::Lost => "lost",
        };
        json!({
            "language": kernel.language.as_str(),
            "as_of_run": kernel.as_of_run,
            "carried": carried,
        })
    };
    kernels.iter().map(kernel).collect()
}

fn files(files: &FilesView) -> Value {
    json!({
        "files": files.files,
        "bytes": files.bytes,
        "stored_bytes": files.stored_bytes,
        "left_out": files.left_out,
        "examples": lefts(&files.examples),
    })
}

fn restored_files(files: &RestoredFiles) -> Value {
    json!({
        "written": files.written,
        "removed": files.removed,
        "before": files.before,
        "problems": lefts(&files.problems),
    })
}
