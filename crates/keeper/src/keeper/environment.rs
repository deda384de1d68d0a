//! The environment in a kernel's state. Only the difference from the session's initial
//! environment is kept.

use crate::limits;
use serde_json::{Map, Value};
use sessile_protocol::{Boot, CHANGED_LIMITS, CHANGED_VARIABLES};
use sessile_store::SavedKernel;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The environment that a session's kernels start with.
type Initial = BTreeMap<OsString, OsString>;

/// The fields of a state for changed variables and for the names of removed ones.
const CHANGED: &str = "env_vars";
const REMOVED: &str = "env_removed";

/// Reduces a whole environment to its difference from the initial one.
pub(super) fn keep_changes(initial: &Initial, saved: &mut SavedKernel) {
    let Some(Value::Object(env)) = saved.view.get_mut(CHANGED) else {
        return;
    };
    let removed: Vec<Value> = initial
        .keys()
        .filter_map(|name| name.to_str())
        .filter(|name| !env.contains_key(*name))
        .map(Into::into)
        .collect();
    env.retain(|name, value| {
        let value = value.as_str().unwrap_or_default();
        let before = initial.get(OsStr::new(name));
        before.is_none_or(|before| before.to_string_lossy() != value)
    });
    if !removed.is_empty() {
        saved.view.insert(REMOVED.into(), removed.into());
    }
}

/// Returns a kernel's state with its whole environment, as text.
pub(super) fn whole_view(initial: &Initial, saved: SavedKernel) -> String {
    let mut view = saved.view;
    let removed = view.remove(REMOVED).unwrap_or_default();
    let changed = match view.get_mut(CHANGED) {
        Some(Value::Object(env)) => std::mem::take(env),
        Some(_) | None => Map::new(),
    };
    let is_removed = |name: &str| {
        let list = removed.as_array();
        list.is_some_and(|list| list.iter().any(|gone| gone.as_str() == Some(name)))
    };
    let names: Vec<Value> = changed.keys().map(|name| name.as_str().into()).collect();
    view.insert(CHANGED_VARIABLES.into(), names.into());
    if let Some(Value::Object(limits)) = view.get("limits") {
        let changed: Map<String, Value> = limits
            .iter()
            .filter(|(flag, value)| !limits::is_inherited(flag, value.as_str().unwrap_or_default()))
            .map(|(flag, value)| (flag.clone(), value.clone()))
            .collect();
        view.insert(CHANGED_LIMITS.into(), changed.into());
    }
    let mut env = Map::new();
    for (name, value) in initial {
        let name = name.to_string_lossy();
        if !is_removed(&name) {
            env.insert(name.into_owned(), value.to_string_lossy().into());
        }
    }
    env.extend(changed);
    view.insert(CHANGED.into(), env.into());
    Value::Object(view).to_string()
}

/// Sets variables back to what they were before a run that had its own values for them.
pub(super) fn take_out<'a>(
    initial: &Initial,
    before: Option<&SavedKernel>,
    names: impl Iterator<Item = &'a str>,
    saved: &mut SavedKernel,
) {
    let before = before.and_then(|saved| saved.view.get(CHANGED));
    for name in names {
        let changed = before.and_then(|env| env.get(name)?.as_str()).map(str::to_owned);
        let at_first = || initial.get(OsStr::new(name))?.to_str().map(str::to_owned);
        let value = changed.or_else(at_first);
        if let Some(restore) = &mut saved.restore {
            restore.push_str(&match &value {
                Some(value) => format!("\nexport {name}='{}'", value.replace('\'', r"'\''")),
                None => format!("\nunset {name}"),
            });
        }
        if let Some(Value::Object(env)) = saved.view.get_mut(CHANGED) {
            match value {
                Some(value) => env.insert(name.to_owned(), value.into()),
                None => env.remove(name),
            };
        }
    }
}

/// Returns the part of this process's environment that a session gets: all of it, or what
/// its server allows.
pub(crate) fn inherited(boot: &Boot) -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter_map(|(name, value)| match &boot.inherited {
        Some(inherited) => inherited.value(&name, value).map(|value| (name, value)),
        None => Some((name, value)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sessile_protocol::RunNo;

    fn initial() -> Initial {
        [("HOME", "/root"), ("LANG", "C")].map(|(n, v)| (n.into(), v.into())).into()
    }

    fn saved(env: &Value, restore: Option<&str>) -> SavedKernel {
        let view = json!({ CHANGED: env, "cwd": "/" });
        let Value::Object(view) = view else { unreachable!() };
        SavedKernel {
            as_of_run: RunNo(1),
            view,
            restore: restore.map(str::to_owned),
            dump: None,
            dump_as_of_run: None,
        }
    }

    #[test]
    fn changes_are_kept_and_the_whole_comes_back() {
        let env = json!({ "HOME": "/home", "NEW": "1" });
        let mut saved = saved(&env, None);
        keep_changes(&initial(), &mut saved);
        assert_eq!(saved.view[CHANGED], env);
        assert_eq!(saved.view[REMOVED], json!(["LANG"]));
        let whole: Value = serde_json::from_str(&whole_view(&initial(), saved)).unwrap();
        let names = json!(["HOME", "NEW"]);
        assert_eq!(whole, json!({ CHANGED: env, "cwd": "/", CHANGED_VARIABLES: names }));
    }

    #[test]
    fn what_is_as_at_first_is_not_kept() {
        let mut saved = saved(&json!({ "HOME": "/root", "LANG": "C" }), None);
        keep_changes(&initial(), &mut saved);
        assert_eq!((&saved.view[CHANGED], saved.view.get(REMOVED)), (&json!({}), None));
    }

    #[test]
    fn a_runs_own_variables_go_with_it() {
        let before = saved(&json!({ "A": "it's" }), None);
        let mut after = saved(&json!({ "A": "x", "HOME": "x", "B": "x" }), Some("#"));
        take_out(&initial(), Some(&before), ["A", "HOME", "B"].into_iter(), &mut after);
        assert_eq!(after.view[CHANGED], json!({ "A": "it's", "HOME": "/root" }));
        let restore = "#\nexport A='it'\\''s'\nexport HOME='/root'\nunset B";
        assert_eq!(after.restore.as_deref(), Some(restore));
    }
}
