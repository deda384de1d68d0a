//! What saving and restoring a session came to.

use serde_json::{Map, Value, json};
use sessile_protocol::{LeftBehind, SavedFiles, SavedView, SessionId};
use sessile_store::{Manifest, Metadata};
use std::path::Path;

/// What `sessile save` prints.
#[must_use]
pub fn saved(session: &SessionId, path: &Path, view: &SavedView) -> Map<String, Value> {
    let kernel = |kernel: &sessile_protocol::SavedKernelView| {
        let mut value = json!({"language": kernel.language, "as_of_run": kernel.as_of_run});
        if let Some(carried) = kernel.carried {
            value["carried"] = carried.into();
        }
        value
    };
    let kernels: Vec<Value> = view.kernels.iter().map(kernel).collect();
    let mut fields = object(&[
        ("session_id", json!(session)),
        ("path", json!(path)),
        ("bytes", json!(view.bytes)),
        ("as_of_run", json!(view.as_of_run)),
        ("kernels", kernels.into()),
        ("left", left(&view.left)),
    ]);
    if let Some(found) = &view.files {
        fields.insert("files".into(), files(found));
    }
    fields
}

/// What `sessile restore` prints. `more`: what was left here, beyond what the
/// file says.
#[must_use]
pub fn restored(
    metadata: &Metadata,
    manifest: &Manifest,
    more: &[LeftBehind],
    has_files: bool,
) -> Map<String, Value> {
    let kernel = |kernel: &sessile_store::BundledKernel| {
        json!({
            "language": kernel.language,
            "version": kernel.version,
            "as_of_run": kernel.as_of_run,
            "carried": kernel.carried,
        })
    };
    let kernels: Vec<Value> = manifest.kernels.iter().map(kernel).collect();
    let all = [manifest.left.as_slice(), more].concat();
    let as_of = manifest.kernels.iter().map(|kernel| kernel.as_of_run).max().unwrap_or_default();
    let mut fields = object(&[
        ("session_id", json!(metadata.session_id)),
        ("command", json!(metadata.command)),
        ("work_dir", json!(metadata.work_dir)),
        ("status", json!("active")),
        ("restored_from", json!(manifest.session_id)),
        ("saved_at", json!(manifest.saved_at)),
        ("as_of_run", json!(as_of)),
        ("kernels", kernels.into()),
        ("left", left(&all)),
    ]);
    if let Some(found) = &manifest.files {
        let mut value = files(found);
        value["restored"] = has_files.into();
        fields.insert("files".into(), value);
    }
    fields
}

fn left(items: &[LeftBehind]) -> Value {
    let item = |item: &LeftBehind| {
        let mut value = json!({"name": item.name, "reason": item.reason});
        if let Some(language) = item.language {
            value["language"] = json!(language);
        }
        value
    };
    items.iter().map(item).collect::<Vec<Value>>().into()
}

fn files(found: &SavedFiles) -> Value {
    json!({
        "files": found.files,
        "directories": found.directories,
        "symlinks": found.symlinks,
        "bytes": found.bytes,
        "left_out": found.left_out,
        "examples": left(&found.examples),
    })
}

fn object(fields: &[(&str, Value)]) -> Map<String, Value> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}
