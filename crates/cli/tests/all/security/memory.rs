//! The private directories in memory, removed by somebody else.

use sessile_testkit::{Harness, Session, harness, until};

const TOLD: &str = "private directory in memory was removed or moved";

/// Its keeper may be writing there at this moment.
fn remove_memory(s: &Session<'_>) {
    until("the memory to be gone", || std::fs::remove_dir_all(s.memory()).ok());
}

#[test]
fn no_pattern_for_names_takes_the_memory_of_all_sessions() {
    let h = harness!();
    let names = [h.session(), h.session()].map(|s| {
        assert!(s.memory().is_dir());
        s.memory().file_name().unwrap().to_str().unwrap().to_owned()
    });
    for name in &names {
        assert!(name.starts_with('.') && !name.starts_with(".sessile"), "{name}");
    }
}

#[test]
fn a_session_whose_memory_is_removed_in_idle_time_goes_on_from_its_state() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "sh"]) {
        let s = h.session_of(shell);
        s.run("x=1").exits(0);
        s.wait_captured(1);
        remove_memory(&s);
        let answer = s.run("echo $x").exits(0).prints("1\n").is_restored_as_of(1);
        assert!(answer.notes().contains(TOLD), "{shell}: {}", answer.notes());
        assert_eq!(s.run("echo $x").prints("1\n").is_kept().notes(), "");
    }
    let s = h.session();
    for language in ["python", "node"] {
        s.run_in(language, "0").exits(0);
        remove_memory(&s);
        let answer = s.run_in(language, "6 * 7").exits(0).is_fresh();
        assert!(answer.notes().contains(TOLD), "{language}: {}", answer.notes());
        s.run_in(language, "1").exits(0).is_kept();
    }
}

#[test]
fn a_durable_session_whose_memory_is_removed_in_idle_time_is_saved_all_the_same() {
    let h = harness!();
    std::fs::write(h.path("kept"), "in the way").unwrap();
    let url = format!("--durable=file://{}", h.path("kept").display());
    let s = h.session_with(&[&url]);
    s.run("x=1");
    let store = |name: &str| s.metadata()["durable"]["store"][name].clone();
    until("an upload that fails", || store("error").is_string().then_some(()));
    s.wait_captured(1);
    remove_memory(&s);
    std::fs::remove_file(h.path("kept")).unwrap();
    until("a save in the store", || (store("as_of_run") == 1).then_some(()));
    s.run("echo $x").prints("1\n").is_restored_as_of(1);
}

#[test]
fn a_run_that_removes_the_memory_of_its_session_is_answered_as_it_ended() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "sh"]) {
        let s = h.session_of(shell);
        s.run("x=1").exits(0);
        s.wait_captured(1);
        let text = format!("rm -rf {}; echo out; (exit 3)", s.memory().display());
        let answer = s.run(text).exits(3).prints("out\n").is_restored_as_of(1);
        assert!(answer.notes().contains(TOLD), "{shell}: {}", answer.notes());
        s.run("echo $x").exits(0).prints("1\n").is_kept();
    }
    let s = h.session();
    let text = format!("import shutil; shutil.rmtree({:?}); print('out')", s.memory());
    let answer = s.python(text).exits(0).prints("out\n").is_fresh();
    assert!(answer.notes().contains(TOLD), "{}", answer.notes());
    s.python("print(1)").exits(0).prints("1\n").is_kept();
}

#[test]
fn whatever_is_asked_first_brings_a_removed_memory_back() {
    let h = harness!();
    let s = h.session();
    s.run("x=1").exits(0);
    s.wait_captured(1);
    for word in ["state", "checkpoint"] {
        remove_memory(&s);
        let asked = h.sessile(&[word, s.id()]).json();
        assert!(asked.get("error").is_none(), "{asked}");
        let answer = s.run("echo $x").exits(0).prints("1\n");
        assert!(answer.notes().contains(TOLD), "{word}: {}", answer.notes());
        s.wait_captured(answer.run());
    }
}

#[test]
fn a_run_that_moves_the_memory_of_its_session_is_told_what_happened() {
    let h = harness!();
    let s = h.session();
    s.run("x=1").exits(0);
    s.wait_captured(1);
    let memory = s.memory();
    let moved = format!("{}.moved", memory.display());
    let answer = s.run(format!("mv {} {moved}; (exit 3)", memory.display())).exits(3);
    assert!(answer.notes().contains(TOLD), "{}", answer.notes());
    assert!(!answer.notes().contains("builtin"), "{}", answer.notes());
    s.run("echo $x").exits(0).prints("1\n").is_kept();
    std::fs::remove_dir_all(moved).unwrap();
}

#[test]
fn a_reset_and_a_fork_work_although_the_memory_was_removed() {
    let h = harness!();
    let s = h.session();
    s.run("x=1").exits(0);
    s.wait_captured(1);
    remove_memory(&s);
    let fork = s.fork();
    fork.run("echo $x").exits(0).prints("1\n");
    remove_memory(&s);
    fork.run("echo ok").exits(0).prints("ok\n");
    s.sessile("reset").exits(0);
    s.run("echo ok").exits(0).prints("ok\n");
}
