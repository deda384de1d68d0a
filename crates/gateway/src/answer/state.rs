//! The state of a session's kernels: that of the default language at the top, each
//! language's below `kernels`.

use serde::Serialize;
use serde_json::{Map, Value};
use sessile_protocol::{CHANGED_LIMITS, CHANGED_VARIABLES, SessionId, StateView};
use sessile_store::{Durable, Entry, Metadata, SavedState, SessionStatus};
use utoipa::ToSchema;

/// The state of a session
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct State {
    /// The state of the default language's kernel: `language`, `working_dir`, `env_vars`,
    /// `aliases`, `variables`, `functions` and more. Also `kernels`, by language, and the
    /// `resources` of a sandbox with limits
    #[serde(flatten)]
    #[schema(value_type = Object)]
    top: Map<String, Value>,
    /// The newest entries
    history: Vec<Entry>,
    session_id: SessionId,
    status: SessionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    durable: Option<Durable>,
}

impl State {
    /// `kernels`: from [`Self::live`] or [`Self::saved`].
    #[must_use]
    pub fn new(kernels: Map<String, Value>, history: Vec<Entry>, metadata: &Metadata) -> Self {
        Self {
            top: kernels,
            history,
            session_id: metadata.session_id.clone(),
            status: metadata.status,
            durable: metadata.durable.clone(),
        }
    }

    /// Returns the state of live kernels.
    #[must_use]
    pub fn live(view: &StateView) -> Map<String, Value> {
        Self::assembled(view, |kernel| {
            kernel.shift_remove(CHANGED_VARIABLES);
            kernel.shift_remove(CHANGED_LIMITS);
        })
    }

    /// Returns the same with the changes since the session's start.
    #[must_use]
    pub fn live_with_changes(view: &StateView) -> Map<String, Value> {
        Self::assembled(view, |_| {})
    }

    fn assembled(view: &StateView, tidy: fn(&mut Map<String, Value>)) -> Map<String, Value> {
        let kernels = view.kernels.iter().map(|kernel| {
            let mut fields: Map<String, Value> =
                serde_json::from_str(&kernel.json).unwrap_or_default();
            tidy(&mut fields);
            fields.insert("as_of_run".into(), kernel.as_of_run.0.into());
            fields.insert("busy".into(), kernel.busy.into());
            (kernel.language.to_string(), fields)
        });
        let mut all = assemble(kernels, view.default_language.as_str());
        if let Some(limits) = view.limits.as_ref().and_then(|l| serde_json::to_value(l).ok()) {
            all.insert("resources".into(), limits);
        }
        all
    }

    /// Returns the last captured state of a session that is not live.
    #[must_use]
    pub fn saved(state: &SavedState, default: &str) -> Map<String, Value> {
        let kernels = state.kernels.iter().map(|(language, saved)| {
            let mut fields = saved.view.clone();
            fields.insert("as_of_run".into(), saved.as_of_run.0.into());
            (language.to_string(), fields)
        });
        assemble(kernels, default)
    }
}

fn assemble(
    all: impl Iterator<Item = (String, Map<String, Value>)>,
    default: &str,
) -> Map<String, Value> {
    let mut top = Map::new();
    let mut kernels = Map::new();
    for (language, fields) in all {
        if language == default {
            top.clone_from(&fields);
        }
        kernels.insert(language, fields.into());
    }
    // These fields are always present.
    top.entry("language").or_insert_with(|| default.into());
    top.entry("working_dir").or_insert(Value::Null);
    for name in ["env_vars", "aliases", "variables"] {
        top.entry(name).or_insert_with(|| Map::new().into());
    }
    top.entry("functions").or_insert_with(|| Vec::<Value>::new().into());
    top.insert("kernels".into(), kernels.into());
    top
}
