//! A keeper that was stopped keeps nobody waiting over HTTP either.

use rustix::process::Signal;
use serde_json::json;
use sessile_testkit::{harness, until};
use std::collections::BTreeSet;

#[test]
fn every_call_of_a_stopped_keeper_is_told_so() {
    let h = harness!();
    let server = h.serve();
    let (s, well) = (h.session(), h.session());
    let keeper = s.keeper();
    let path = format!("/v1/sessions/{}", s.id());
    let exec = format!("{path}/exec");
    let body = json!({"command": ":", "timeout": "1s"});
    std::thread::scope(|scope| {
        // A run that is going, one whose connection is used again, new ones.
        server.exec_at(&path, "x=kept");
        let going = scope.spawn(|| server.post(&exec, &json!({"command": "sleep 1000"})));
        until("the run to be under way", || {
            let runs = server.get(&format!("{path}/runs")).json();
            (runs.as_array().unwrap().last().unwrap()["phase"] == "running").then_some(())
        });
        keeper.signal(Signal::STOP);
        let next = scope.spawn(|| server.post(&exec, &body));
        let state = scope.spawn(|| server.get(&format!("{path}/state")));
        for call in [going, next, state] {
            let refused = call.join().unwrap().is_refused(503, "keeper_stopped").text();
            assert!(refused.contains("kill -CONT"), "{refused}");
        }
    });
    server.exec_at(&format!("/v1/sessions/{}", well.id()), "echo fine");
    // It can go on as if nothing had been.
    keeper.signal(Signal::CONT);
    server.post(&format!("{path}/interrupt"), &json!({})).is(200);
    assert_eq!(server.prints_at(&path, "echo $x"), "kept\n");
    keeper.signal(Signal::STOP);
    server.delete(&path).is(200);
    keeper.wait_gone();
}

#[test]
fn all_are_ended_side_by_side_although_one_is_stopped() {
    let h = harness!();
    let server = h.serve();
    let stopped = h.session();
    let deaf: Vec<String> = (0..6).map(|_| server.session()).collect();
    for id in &deaf {
        let _ = server.exec(id, "(trap '' TERM; while :; do sleep 1000; done) >/dev/null 2>&1 &");
    }
    stopped.keeper().signal(Signal::STOP);
    let begun = std::time::Instant::now();
    let ended = server.delete("/v1/sessions").is(200).json();
    let ids: BTreeSet<&str> =
        ended["session_ids"].as_array().unwrap().iter().filter_map(|id| id.as_str()).collect();
    let wanted = deaf.iter().map(String::as_str).chain([stopped.id()]).collect();
    assert_eq!(ids, wanted, "{ended}");
    // One after the other they would take two seconds each.
    assert!(begun.elapsed().as_secs() < 12, "{:?}", begun.elapsed());
}
