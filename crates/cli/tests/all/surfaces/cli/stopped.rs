//! A keeper that was stopped keeps nobody waiting.

use rustix::process::Signal;
use sessile_testkit::harness;

#[test]
fn a_stopped_keeper_is_told_and_can_be_ended() {
    let h = harness!();
    let s = h.session();
    let other = h.session();
    let keeper = s.keeper();
    keeper.signal(Signal::STOP);
    let told = h.sessile(&["exec", s.id(), "--timeout", "1s", "--", ":"]).exits(1).errors();
    assert!(told.contains("is stopped") && told.contains("kill -CONT"), "{told}");
    // A healthy one beside it does not wait for it.
    other.run("echo fine").prints("fine\n");
    h.sessile(&["end", s.id()]).exits(0);
    keeper.wait_gone();
    other.end();
}

#[test]
fn all_sessions_are_ended_although_one_keeper_is_stopped() {
    let h = harness!();
    let stopped = h.session();
    let others: Vec<_> = (0..3).map(|_| h.session()).collect();
    stopped.keeper().signal(Signal::STOP);
    let ended = h.sessile(&["end", "--all"]).exits(0).json();
    assert_eq!(ended["session_ids"].as_array().map(Vec::len), Some(4), "{ended}");
    drop(others);
}
