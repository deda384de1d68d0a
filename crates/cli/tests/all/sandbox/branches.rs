//! Sessions in a sandbox that go back, are forked, saved and restored: the layer
//! goes along.

use rustix::process::Pid;
use serde_json::Value;
use sessile_testkit::{Harness, Process, Session, harness, until};
use std::fs;

const PRESETS: [&str; 2] = ["full-access", "development"];

fn sandboxed<'h>(h: &'h Harness, preset: &str) -> Session<'h> {
    h.session_with(&["--sandbox", preset])
}

fn answer(h: &Harness, args: &[&str]) -> Value {
    let output = h.sessile(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Three languages that remember something, and a layer with every kind of change.
fn live_in(s: &Session<'_>) {
    s.run("x=41; mkdir sub; echo one >sub/f; rm gone; rm -r d; mkdir d; cd sub").exits(0);
    s.run_in("python", "y = [1, 2]").exits(0);
    s.run_in("node", "let z = {k: 1}").exits(0);
}

fn knows_all(s: &Session<'_>) {
    s.run("echo $((x + 1)); pwd; cat f; ls ../d; ls ../gone 2>/dev/null")
        .exits(2)
        .prints("42\n/workspace/sub\none\n");
    s.run_in("python", "print(y)").exits(0).prints("[1, 2]\n");
    s.run_in("node", "console.log(z)").exits(0).prints("{ k: 1 }\n");
}

fn real_files(h: &Harness) {
    fs::write(h.path("gone"), "gone\n").expect("a file");
    fs::create_dir(h.path("d")).expect("a directory");
    fs::write(h.path("d/x"), "x\n").expect("a file");
}

#[test]
fn forks_with_files_of_their_own_have_a_layer_of_their_own() {
    for preset in PRESETS {
        let h = harness!();
        real_files(&h);
        let s = sandboxed(&h, preset);
        live_in(&s);
        let forked = answer(&h, &["fork", s.id(), "--files", "copy", "--count", "2"]);
        let ids = forked["session_ids"].as_array().expect("ids");
        let forks: Vec<Session<'_>> =
            ids.iter().map(|id| h.session_called(id.as_str().expect("an id"))).collect();
        assert_eq!(forks.len(), 2);
        for (n, fork) in forks.iter().enumerate() {
            knows_all(fork);
            fork.run(format!("echo {n} >f; echo $HOME; kill -0 {}", s.keeper().pid())).exits(1);
        }
        for (n, fork) in forks.iter().enumerate() {
            fork.run("cat f").exits(0).prints(&format!("{n}\n"));
            let diff = answer(&h, &["diff", fork.id(), "--json"]);
            let paths: Vec<&str> = diff["changes"]
                .as_array()
                .expect("changes")
                .iter()
                .filter_map(|change| change["path"].as_str())
                .collect();
            assert_eq!(paths, ["d/x", "gone", "sub", "sub/f"], "{preset}");
        }
        s.run("cat f").exits(0).prints("one\n").is_kept();
        // One is gone with all that is its own, and the others go on.
        forks[0].end();
        forks[1].run("cat f").exits(0).prints("1\n");
        assert!(h.path("gone").exists() && h.path("d/x").exists());
    }
}

#[test]
fn a_rewind_takes_the_layer_back_and_knows_what_it_was_based_on() {
    for preset in PRESETS {
        let h = harness!();
        real_files(&h);
        fs::write(h.path("a"), "real\n").expect("a file");
        let s = sandboxed(&h, preset);
        live_in(&s);
        s.run("echo session >../a").exits(0);
        answer(&h, &["checkpoint", s.id(), "--files", "--name", "before"]);
        s.run("x=0; echo two >f; echo later >../a; echo new >../new").exits(0);
        s.run_in("python", "y.append(3)").exits(0);
        fs::write(h.path("a"), "people\n").expect("a file");
        answer(&h, &["rewind", s.id(), "before"]);
        knows_all(&s);
        s.run("cat ../a; ls ../new 2>/dev/null").exits(2).prints("session\n");
        let refused = h.sessile(&["apply", s.id(), "a"]);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(message.contains("a (it was changed there)"), "{preset}: {message}");
    }
}

#[test]
fn a_save_is_restored_into_the_same_sandbox_and_layer() {
    for preset in PRESETS {
        let h = harness!();
        real_files(&h);
        let s = sandboxed(&h, preset);
        live_in(&s);
        let file = h.path("saved.sessile");
        for _ in 0..3 {
            answer(&h, &["save", s.id(), "-o", file.to_str().expect("text")]);
            knows_all(&s);
        }
        let mut restore = h.command(&["restore", file.to_str().expect("text")]);
        let restored = restore.env("OF_THE_HOST", "secret").output().expect("an answer");
        let restored: Value = serde_json::from_slice(&restored.stdout).expect("JSON");
        assert_eq!(restored["left"], serde_json::json!([]), "{preset}");
        let second = h.session_called(restored["session_id"].as_str().expect("an id"));
        knows_all(&second);
        // Nothing of the host's environment comes along.
        second.run("echo ${OF_THE_HOST-none}; id -un").exits(0).prints("none\nagent\n");
        second.run("echo two >f; ls /workspace/saved.sessile").exits(0);
        s.run("cat f").exits(0).prints("one\n");
    }
}

#[test]
fn a_session_from_one_in_a_sandbox_is_in_one() {
    let h = harness!();
    real_files(&h);
    let s = sandboxed(&h, "full-access");
    live_in(&s);
    let second = h.session_with(&["--from", s.id()]);
    second.run("echo $((x + 1)); pwd; cat gone; id -un").prints("42\n/workspace\ngone\nagent\n");
    second.run_in("python", "print(y)").exits(0).prints("[1, 2]\n");
    s.end();
    let third = h.session_with(&["--from", s.id(), "--sandbox", "read-only"]);
    third.run("echo $((x + 1)); pwd; touch t").exits(1).prints("42\n/workspace\n");
    // What knows the host stays out.
    let plain = h.session();
    let refused = h.sessile(&["start", "--from", plain.id(), "--sandbox"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("host's environment"));
}

#[test]
fn a_durable_session_in_a_sandbox_goes_on_after_its_keeper_and_leaves_nothing() {
    for preset in PRESETS {
        let h = harness!();
        real_files(&h);
        let s = h.session_with(&["--sandbox", preset, "--durable"]);
        live_in(&s);
        // Saved in idle time, all three languages.
        until("a save", || {
            (s.metadata()["durable"]["as_of_run"].as_u64() >= Some(3)).then_some(())
        });
        let keeper = s.keeper();
        let inside = sessile_proc::Process::new(Pid::from_raw(keeper.pid()).unwrap()).descendants();
        keeper.kill().wait_gone();
        inside.iter().for_each(|pid| Process::of(pid.as_raw_nonzero().get()).wait_gone());
        s.run("echo $((x + 1)); pwd; cat f").exits(0).prints("42\n/workspace/sub\none\n");
        s.run_in("python", "print(y)").exits(0).prints("[1, 2]\n");
        s.run_in("node", "console.log(z)").exits(0).prints("{ k: 1 }\n");
    }
}
