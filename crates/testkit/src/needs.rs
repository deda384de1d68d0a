//! Programs that tests need, and that a machine may not have: interpreters, and third-party
//! clients and servers, which `cargo xtask test` installs.
//!
//! In CI (`CI=true`) a test fails if one is missing. On a developer's machine its cases are
//! skipped by name, and `cargo xtask test` counts them at the end, from the file that
//! [`LIST`] names.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

/// The variable with the path of the file that lists skipped tests.
const LIST: &str = "SESSILE_TEST_PASSED_OVER";

/// Returns whether a program is in PATH.
///
/// # Panics
/// When it is not, in CI.
#[track_caller]
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    if !found {
        missing(&format!("{name} is not installed"));
    }
    found
}

/// Returns the path of a third-party program: the value of a variable that
/// `cargo xtask test` sets and `cargo xtask clients` prints.
///
/// # Panics
/// When it is not set, in CI; when it is set and the path does not exist.
#[must_use]
#[track_caller]
pub fn installed(variable: &str) -> Option<PathBuf> {
    let Some(place) = std::env::var_os(variable).map(PathBuf::from) else {
        missing(&format!("{variable} is not set; `cargo xtask clients` prints it"));
        return None;
    };
    assert!(place.exists(), "{variable} is {}, which is not there", place.display());
    Some(place)
}

/// Skips a case that this system does not permit its users, also in CI: no package would
/// change that.
pub fn not_permitted(what: &str) {
    pass_over(what);
}

#[track_caller]
fn missing(what: &str) {
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!is_ci, "{what}, and in CI nothing is passed over");
    pass_over(what);
}

fn pass_over(what: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let thread = std::thread::current();
    let line = format!("passed over: {}: {what}\n", thread.name().unwrap_or("?"));
    if !TOLD.lock().expect("no test panics here").insert(line.clone()) {
        return;
    }
    // Written to stderr directly: printed output is shown only when a test fails.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os(LIST) {
        let file = std::fs::File::options().create(true).append(true).open(list);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the list");
    }
}
