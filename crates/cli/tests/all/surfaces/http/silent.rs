//! A keeper that neither is stopped nor answers keeps nobody waiting for ever.

use serde_json::json;
use sessile_testkit::{harness, until};
use std::process::Command;

#[test]
fn calls_of_a_keeper_that_hangs_come_to_an_end_and_it_can_be_ended() {
    let h = harness!();
    let server = h.serve();
    let s = h.session();
    let keeper = s.keeper();
    let path = format!("/v1/sessions/{}", s.id());
    server.exec_at(&path, "echo hi");
    let kept = h.sessions_dir().join(s.id()).join("runs/1.stdout");
    until("the output to be on disk", || kept.exists().then_some(()));
    // Another run, so that the first one's output is only there.
    server.exec_at(&path, ":");
    // Whoever opens this waits for somebody to write.
    std::fs::remove_file(&kept).unwrap();
    assert!(Command::new("mkfifo").arg(&kept).status().unwrap().success());
    let endless = json!({"command": "sleep 1000"});
    std::thread::scope(|scope| {
        let going = scope.spawn(|| server.post(&format!("{path}/exec"), &endless));
        until("the run to be under way", || {
            let runs = server.get(&format!("{path}/runs")).json();
            (runs.as_array().unwrap().last().unwrap()["phase"] == "running").then_some(())
        });
        let reader = scope.spawn(|| server.get(&format!("{path}/runs/1/output")));
        // The command line is told as well.
        let typed = scope.spawn(|| h.sessile(&["exec", s.id(), "--", ":"]).exits(1).errors());
        for call in [going, reader] {
            let refused = call.join().unwrap().is_refused(503, "keeper_unavailable").text();
            assert!(refused.contains("does not answer"), "{refused}");
        }
        let told = typed.join().unwrap();
        assert!(told.contains("does not answer"), "{told}");
    });
    server.delete(&path).is(200);
    keeper.wait_gone();
}

/// Its keeper says that it is there.
#[test]
fn a_run_that_is_silent_for_longer_than_a_keeper_may_be_is_waited_for() {
    let h = harness!();
    let server = h.serve();
    let long = json!({"command": "sleep 21; echo done", "timeout": 0});
    let path = format!("/v1/sessions/{}/exec", h.session().id());
    assert_eq!(server.post(&path, &long).is(200).json()["stdout"], "done\n");
}
