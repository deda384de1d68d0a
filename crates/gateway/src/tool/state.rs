//! The state of the kernels for a model: what belongs to the session itself, without secrets.

use super::answers::{HistoryRow, Success};
use crate::text::{mask, mask_text};
use serde::Serialize;
use serde_json::{Map, Value};
use sessile_protocol::{CHANGED_LIMITS, CHANGED_VARIABLES};
use sessile_store::Entry;

/// How many runs a state lists; the history has more.
pub const HISTORY: u64 = 5;

/// Limits for the characters of a value, and of a command.
const VALUE: usize = 150;
const COMMAND: usize = 200;

/// Environment variables that shells and launchers set by themselves.
const OWN: [&str; 6] = ["PWD", "OLDPWD", "SHLVL", "_", "SESSILE_SESSION_ID", "PS1"];

/// How much of a state is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateExtent {
    /// Without what was inherited and is unchanged.
    #[default]
    Own,
    All,
}

/// The state of the kernels.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    state: Map<String, Value>,
}

impl State {
    /// Returns the state of live kernels, with their changes: the parts that an agent
    /// looks for are at the top.
    #[must_use]
    pub fn of(
        mut state: Map<String, Value>,
        history: Vec<Entry>,
        extent: StateExtent,
    ) -> Success<Self> {
        gather(&mut state);
        match extent {
            StateExtent::Own => keep_own(&mut state),
            StateExtent::All => forget_changes(&mut state),
        }
        let rows: Vec<HistoryRow> = history.into_iter().map(HistoryRow::from).collect();
        let mut rows = serde_json::to_value(rows).unwrap_or_default();
        if extent == StateExtent::Own {
            shorten(&mut rows, COMMAND);
        }
        state.insert("history".into(), rows);
        for (name, value) in &mut state {
            mask_value(name, value);
        }
        Success::of(Self { state })
    }
}

/// Moves the parts that an agent looks for to the top, from all live kernels.
fn gather(state: &mut Map<String, Value>) {
    let kernels = state.get("kernels").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in ["functions", "imports"] {
        let mut all = Vec::new();
        for kernel in kernels.values() {
            for item in kernel.get(name).and_then(Value::as_array).into_iter().flatten() {
                let item = item.get("name").unwrap_or(item).clone();
                if !all.contains(&item) {
                    all.push(item);
                }
            }
        }
        state.insert(name.into(), all.into());
    }
    let mut variables = Map::new();
    for (language, kernel) in &kernels {
        if let Some(found) = kernel.get("variables") {
            variables.insert(language.clone(), found.clone());
        }
    }
    state.insert("variables".into(), variables.into());
    state.shift_remove("language");
    state.insert("languages".into(), kernels.keys().cloned().collect::<Vec<_>>().into());
}

fn forget_changes(state: &mut Map<String, Value>) {
    let kernels = state.get_mut("kernels").and_then(Value::as_object_mut);
    let kernels = kernels.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut);
    kernels.for_each(forget);
    forget(state);
}

fn forget(kernel: &mut Map<String, Value>) {
    kernel.shift_remove(CHANGED_VARIABLES);
    kernel.shift_remove(CHANGED_LIMITS);
}

/// Leaves out what was inherited and is unchanged, what is elsewhere in the state, and
/// what is empty.
fn keep_own(state: &mut Map<String, Value>) {
    let directory = state.get("working_dir").cloned().unwrap_or_default();
    let path = state.get("env_vars").and_then(|env| env.get("PATH")?.as_str()).map(str::to_owned);
    keep_changes(state);
    let top = state.get("env_vars").cloned().unwrap_or_default();
    for name in ["as_of_run", "busy", "shell", "umask", "options", "traps", "limits", "aliases"] {
        if name != "aliases" || state.get(name).is_some_and(is_empty) {
            state.shift_remove(name);
        }
    }
    let kernels = state.get_mut("kernels").and_then(Value::as_object_mut);
    for kernel in kernels.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        keep_changes(kernel);
        for name in ["variables", "imports", "shell", "umask", "aliases"] {
            kernel.shift_remove(name);
        }
        if kernel.get("working_dir") == Some(&directory) {
            kernel.shift_remove("working_dir");
        }
        // A shell's functions are names only; others have their parameters.
        let is_listed = |functions: &Value| {
            functions.as_array().is_some_and(|all| all.iter().all(Value::is_string))
        };
        if kernel.get("functions").is_some_and(is_listed) {
            kernel.shift_remove("functions");
        }
        if let Some(Value::Object(env)) = kernel.get_mut("env_vars") {
            env.retain(|name, value| {
                top.get(name) != Some(value) && !is_launchers(name, value, path.as_deref())
            });
        }
        let is_idle = |name: &str, value: &Value| name == "busy" && *value == false;
        kernel.retain(|name, value| !is_empty(value) && !is_idle(name, value));
    }
    if let Some(variables) = state.get_mut("variables") {
        for kernel in variables.as_object_mut().into_iter().flat_map(Map::values_mut) {
            let described = kernel.as_object_mut().into_iter().flat_map(Map::values_mut);
            for variable in described.filter_map(Value::as_object_mut) {
                variable.shift_remove("name");
            }
        }
        shorten(variables, VALUE);
    }
    if let Some(env) = state.get_mut("env_vars") {
        shorten(env, VALUE);
    }
}

/// Keeps only the changes of the environment and the limits.
fn keep_changes(kernel: &mut Map<String, Value>) {
    let changed = kernel.shift_remove(CHANGED_VARIABLES);
    if let (Some(Value::Array(changed)), Some(Value::Object(env))) =
        (changed, kernel.get_mut("env_vars"))
    {
        let is_changed = |name: &str| changed.iter().any(|c| c.as_str() == Some(name));
        env.retain(|name, _| is_changed(name) && !OWN.contains(&name.as_str()));
    }
    match kernel.shift_remove(CHANGED_LIMITS) {
        Some(limits) => kernel.insert("limits".into(), limits),
        None => kernel.shift_remove("limits"),
    };
}

/// Whether a launcher of an interpreter (pyenv, nvm) has set the variable.
fn is_launchers(name: &str, value: &Value, path: Option<&str>) -> bool {
    let is_longer_path = || {
        let (value, path) = (value.as_str().unwrap_or_default(), path.unwrap_or("\0"));
        name == "PATH" && value.ends_with(path)
    };
    name.trim_start_matches('_').starts_with("PYENV_") || is_longer_path()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Shortens all texts in a value.
fn shorten(value: &mut Value, most: usize) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(most) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| shorten(item, most)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(field, most)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks what looks like a secret. `name`: the name of the value.
fn mask_value(name: &str, value: &mut Value) {
    match value {
        Value::String(text) => {
            let is_text = matches!(name, "command" | "notes");
            let masked = if is_text { mask_text(text) } else { mask(name, text) };
            *text = masked.into_owned();
        }
        Value::Array(list) => list.iter_mut().for_each(|item| mask_value(name, item)),
        Value::Object(fields) => {
            for (field, value) in fields {
                // These fields describe the value, so its name applies.
                let is_description = matches!(field.as_str(), "repr" | "text" | "value");
                mask_value(if is_description { name } else { field }, value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(extent: StateExtent) -> Value {
        let env: Map<String, Value> = (0..200)
            .map(|n| (format!("INHERITED_{n}"), json!("x".repeat(60))))
            .chain([
                ("E".to_owned(), json!("e")),
                ("GITHUB_TOKEN".to_owned(), json!("hunter22")),
                ("PWD".to_owned(), json!("/w")),
                ("PATH".to_owned(), json!("/bin")),
            ])
            .collect();
        let bash = json!({"working_dir": "/w", "umask": "0022", "env_vars": env, "functions": ["greet"],
            "aliases": {}, "variables": {"x": "41", "db_password": "hunter22"},
            "limits": {"-n": "20000 20000", "-t": "77 unlimited"},
            CHANGED_VARIABLES: ["E", "GITHUB_TOKEN", "PWD"], CHANGED_LIMITS: {"-t": "77 unlimited"},
            "as_of_run": 1, "busy": false});
        let mut python_env = env;
        python_env.insert("PATH".to_owned(), json!("/shims:/bin"));
        python_env.insert("PYENV_DIR".to_owned(), json!("/w"));
        let python = json!({"working_dir": "/w", "env_vars": python_env, "threads": [],
            "functions": [{"name": "area", "signature": "area(r)"}], "imports": ["math"], "classes": [],
            "variables": {"y": {"name": "y", "type": "str", "repr": format!("'{}'", "z".repeat(900))},
                "api_key": {"name": "api_key", "type": "str", "repr": "'abcd1234'"}},
            CHANGED_VARIABLES: ["E", "GITHUB_TOKEN", "PATH", "PYENV_DIR"], "as_of_run": 2, "busy": false});
        let Value::Object(mut all) = bash.clone() else { panic!("an object") };
        all.insert("kernels".into(), json!({"bash": bash, "python": python}));
        serde_json::to_value(State::of(all, Vec::new(), extent)).unwrap()["state"].clone()
    }

    #[test]
    fn what_was_inherited_is_left_out() {
        let state = state(StateExtent::Own);
        assert!(state.to_string().len() < 1000, "{state}");
        assert_eq!(state["env_vars"], json!({"E": "e", "GITHUB_TOKEN": "[masked]"}));
        assert_eq!(state["limits"], json!(null));
        assert_eq!(
            state["kernels"]["bash"],
            json!({"limits": {"-t": "77 unlimited"}, "as_of_run": 1})
        );
        let area = json!([{"name": "area", "signature": "area(r)"}]);
        assert_eq!(state["kernels"]["python"], json!({"functions": area, "as_of_run": 2}));
        assert_eq!(state["functions"], json!(["greet", "area"]));
        assert_eq!(state["variables"]["bash"], json!({"x": "41", "db_password": "[masked]"}));
        assert_eq!(state["variables"]["python"]["api_key"]["repr"], "[masked]");
    }

    #[test]
    fn all_of_it_is_told_when_asked_for_without_secrets() {
        let state = state(StateExtent::All);
        assert_eq!(state["env_vars"]["INHERITED_7"], "x".repeat(60));
        assert_eq!(state["env_vars"]["GITHUB_TOKEN"], "[masked]");
        assert_eq!(state["kernels"]["python"]["env_vars"]["PYENV_DIR"], "/w");
        assert_eq!(state["kernels"]["bash"]["limits"]["-n"], "20000 20000");
        assert_eq!(state["kernels"]["bash"][CHANGED_VARIABLES], json!(null));
        assert_eq!(state["variables"]["python"]["api_key"]["repr"], "[masked]");
    }
}
