//! Libraries of Python that change what can be carried, and how.

use serde_json::Value;
use sessile_testkit::{Harness, Session, harness, needs};

/// The interpreter that has a library.
fn interpreter(variable: &str) -> Option<String> {
    Some(needs::installed(variable)?.into_os_string().into_string().expect("a name in UTF-8"))
}

/// Saves and restores; what was left by name, which both have to say.
#[track_caller]
fn carried<'h>(h: &'h Harness, s: &Session<'h>) -> (Session<'h>, Vec<String>) {
    let left = |answer: &Value| -> Vec<String> {
        let items = answer["left"].as_array().expect("a list").iter();
        items.map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
    };
    let saved = h.sessile(&["save", s.id(), "-o", "w.sessile"]).json();
    let restored = h.sessile(&["restore", "w.sessile"]).json();
    assert_eq!(left(&saved), left(&restored), "what was saved comes back");
    let id = restored["session_id"].as_str().expect("an id");
    (h.session_called(id), left(&saved))
}

/// What has no source that was typed.
const MADE: &str = r#"
import types
n = 2
by_text = eval("lambda x: x * n")
space = {}
exec("def elsewhere(x): return x * 4", space)
elsewhere = space.pop("elsewhere")
del space
code = by_text.__code__
view = types.MappingProxyType({"a": n})
def maker(m):
    return lambda x: x * m
typed = [maker(5)]
"#;

#[test]
fn without_a_library_what_has_no_source_is_named() {
    let h = harness!();
    h.session().run("python3 -m venv --without-pip bare").exits(0);
    let s = h.session_with(&["bare/bin/python"]);
    s.run(MADE).exits(0);
    let (again, left) = carried(&h, &s);
    assert_eq!(left, ["by_text", "elsewhere", "code", "view"]);
    again.run("typed[0](2), n").shows("(10, 2)");
}

#[test]
fn a_library_carries_what_has_no_source() {
    for variable in ["SESSILE_TEST_CLOUDPICKLE", "SESSILE_TEST_DILL"] {
        let Some(python) = interpreter(variable) else {
            continue;
        };
        let h = harness!();
        let s = h.session_with(&[&python]);
        s.run(MADE).exits(0);
        let (again, left) = carried(&h, &s);
        assert_eq!(left, Vec::<String>::new(), "{variable}");
        again
            .run("by_text(3), elsewhere(2), code.co_name, dict(view), typed[0](2)")
            .shows("(6, 8, '<lambda>', {'a': 2}, 10)");
        // It is the session's own variable that the function sees.
        again.run("n = 3; by_text(3)").shows("9");
    }
}

#[test]
fn a_module_that_was_made_by_hand_is_carried_or_named() {
    let make = "import types, math; made = types.ModuleType('made'); made.x = 5";
    for (variable, expected) in
        [("SESSILE_TEST_CLOUDPICKLE", Vec::new()), ("SESSILE_TEST_DILL", vec!["made"])]
    {
        let Some(python) = interpreter(variable) else {
            continue;
        };
        let h = harness!();
        let s = h.session_with(&[&python]);
        s.run(make).exits(0);
        let (again, left) = carried(&h, &s);
        assert_eq!(left, expected, "{variable}");
        again.run("math.floor(2.5)").shows("2");
        if expected.is_empty() {
            again.run("made.x").shows("5");
        }
    }
}

#[test]
fn arrays_are_forked_saved_and_brought_back_and_draw_their_own_numbers() {
    let Some(python) = interpreter("SESSILE_TEST_CLOUDPICKLE") else {
        return;
    };
    let h = harness!();
    let s = h.session_with(&[&python]);
    s.run("import numpy as np\nnp.random.seed(1)\nrng = np.random.default_rng(1)").exits(0);
    s.run("a = np.arange(1_000_000); b = a[::2]").exits(0);
    s.checkpoint(&[]);
    let show = |of: &Session<'_>, text: &str| of.run(text).exits(0).json()["result"].clone();
    let draw = |of: &Session<'_>| show(of, "np.random.rand()");
    let fork = s.fork();
    assert_ne!(draw(&s), draw(&fork), "numpy's own generator");
    let draw_own = |of: &Session<'_>| show(of, "rng.random()");
    assert_eq!(draw_own(&s), draw_own(&fork), "one that the user has made");
    fork.run("a[0] = 7; b[0]").shows("np.int64(7)");
    s.run("a[0]").shows("np.int64(0)");
    let second = draw(&s);
    s.rewind(&[]);
    let _ = draw(&s);
    assert_eq!(draw(&s), second, "after a rewind the numbers are those that were to come");
    let (again, left) = carried(&h, &s);
    assert_eq!(left, Vec::<String>::new());
    again.run("int(a.sum()), a.dtype == np.arange(1).dtype").shows("(499999500000, True)");
}
