//! What this machine can enforce.

use serde_json::Value;
use sessile_testkit::{Harness, harness, needs};

fn finding<'a>(found: &'a Value, what: &str) -> &'a Value {
    let all = found["findings"].as_array().unwrap();
    all.iter().find(|finding| finding["what"] == what).unwrap_or_else(|| panic!("{found}"))
}

/// What it says is what happens to those who ask for it.
fn is_true(h: &Harness, found: &Value) {
    for tried in found["presets"].as_array().unwrap() {
        let preset = tried["preset"].as_str().unwrap();
        let started = h.sessile(&["run", "--sandbox", preset, "true"]);
        if tried["ok"] == true {
            let _ = started.exits(0);
        } else {
            let (why, errors) = (tried["why"].as_str().unwrap(), started.exits(1).errors());
            assert!(errors.contains(why), "{preset}: {errors}");
        }
    }
}

#[test]
fn what_can_be_had_is_told_and_true() {
    let h = harness!();
    let output = h.sessile(&["sandbox", "check"]);
    let found: Value = serde_json::from_str(&output.text()).unwrap();
    assert_eq!(finding(&found, "namespaces")["status"], "enforced", "{found}");
    let _ = output.exits(if found["ok"] == true { 0 } else { 1 });
    is_true(&h, &found);
    let shown = h.at_a_terminal(&["sandbox", "check"]);
    assert!(shown.contains("limit: memory") && shown.contains("(the default)"), "{shown}");
    // Nothing of it stays.
    let left = std::fs::read_dir(h.state_home()).into_iter().flatten().filter_map(Result::ok);
    let is_left = |name: &str| name.starts_with("check-");
    assert!(!left.into_iter().any(|entry| is_left(entry.file_name().to_str().unwrap())));
}

#[test]
fn an_ordinary_user_is_told_what_an_administrator_would_do() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("only root can start a session as another user");
    }
    let h = Harness::unprivileged(env!("CARGO_BIN_EXE_sessile"));
    let output = h.sessile(&["sandbox", "check"]);
    let found: Value = serde_json::from_str(&output.text()).unwrap();
    is_true(&h, &found);
    let rules = finding(&found, "rules for single paths");
    if rules["status"] == "missing" {
        assert!(rules["remedy"].as_str().unwrap().contains("chmod 666 /dev/fuse"), "{rules}");
        assert_eq!(found["ok"], false);
        let _ = output.exits(1);
    }
    for what in ["limit: memory", "limit: CPUs"] {
        let finding = finding(&found, what);
        let has_remedy = finding.get("remedy").is_some();
        assert_eq!(finding["status"] != "enforced", has_remedy, "{finding}");
    }
}
