//! Takes keys of models out of the environment.
//!
//! Programs in a session without a sandbox run as the same user as the server, and can
//! read the server's environment (`/proc/PID/environ`). So the server keeps its keys only
//! in its memory, which other processes cannot read.

use rustix::process::DumpableBehavior;
use sessile_server::Model;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};

/// Gives models the keys from their variables, and removes these variables.
pub(crate) fn with_keys(models: Vec<Model>) -> Vec<Model> {
    // Several models may share one.
    let mut keys: BTreeMap<String, Option<String>> = BTreeMap::new();
    for name in models.iter().filter_map(Model::key_variable) {
        keys.entry(name).or_insert_with_key(|name| take(name));
    }
    if !keys.is_empty() {
        // No other program of the user may read this one's memory, and no core dump
        // contains it. Children are not affected: they execute other programs.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    let with_key = |model: Model| {
        let said = model.key_variable().and_then(|name| keys.get(&name).cloned().flatten());
        model.with_key(said)
    };
    models.into_iter().map(with_key).collect()
}

/// Returns the value of a variable. Removes it from the environment, and overwrites it
/// where the system shows it from.
fn take(name: &str) -> Option<String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    let said = std::env::var(name).ok();
    let is_it = |variable: &[u8]| {
        variable.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
    };
    // SAFETY: the server has only one thread yet, which does nothing else with its
    // environment. The list ends with a null pointer, and each of its texts with a zero
    // byte; as many bytes as a text has are written over it.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            let text = CStr::from_ptr(*at).to_bytes();
            if is_it(text) {
                let value = (*at).add(name.len() + 1);
                for byte in 0..text.len() - name.len() - 1 {
                    // Volatile, so that the write is not optimized away.
                    value.add(byte).write_volatile(0);
                }
            }
            at = at.add(1);
        }
        std::env::remove_var(name);
    }
    said
}

unsafe extern "C" {
    /// The environment of this process, as in C.
    static environ: *const *mut c_char;
}
