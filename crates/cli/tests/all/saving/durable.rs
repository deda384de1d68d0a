//! Durable sessions: saved in idle time, and gone on with when everything that
//! kept them is gone.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Session, harness, object_server, shared_object_server, until};
use std::process::Command;

/// Waits until a session's saves on the disk have got to this run.
#[track_caller]
pub(super) fn wait_saved(s: &Session<'_>, run: u64) -> Value {
    until("a save", || {
        let durable = s.metadata()["durable"].clone();
        (durable["as_of_run"].as_u64() >= Some(run)).then_some(durable)
    })
}

/// The same for its store.
#[track_caller]
pub(super) fn wait_stored(s: &Session<'_>, run: u64) -> Value {
    until("a save in the store", || {
        let durable = s.metadata()["durable"].clone();
        (durable["store"]["as_of_run"].as_u64() >= Some(run)).then_some(durable)
    })
}

/// As when the machine goes down: nobody has time for anything.
pub(super) fn kill_all(s: &Session<'_>) {
    let keeper = s.keeper();
    let guardian = keeper.parent().expect("a guardian");
    guardian.kill();
    keeper.kill();
    guardian.wait_gone();
    keeper.wait_gone();
}

#[test]
fn a_killed_session_goes_on_from_its_last_save() {
    let h = harness!();
    let s = h.session_with(&["python3", "--durable"]);
    s.run("x = {'a': [1, 2]}\nimport math\ndef double(n): return 2 * n");
    s.run_in("bash", "y=5; cd /usr");
    assert_eq!(wait_saved(&s, 2)["error"], Value::Null);
    kill_all(&s);
    s.run("print(x, math.floor(1.5), double(4))")
        .prints("{'a': [1, 2]} 1 8\n")
        .is_restored_as_of(1);
    s.run_in("bash", "echo $y $PWD").prints("5 /usr\n").is_restored_as_of(2);
    s.run("print(len(x))").prints("1\n").is_kept();
}

#[test]
fn values_of_node_come_back_as_well() {
    let h = harness!();
    if Harness::shells(&["node"]).is_empty() {
        return;
    }
    let s = h.session_with(&["node", "--durable"]);
    s.run("m = new Map([[1, 'one']]); function twice(n) { return 2 * n }");
    wait_saved(&s, 1);
    kill_all(&s);
    s.run("console.log(m.get(1), twice(21))").prints("one 42\n").is_restored_as_of(1);
}

#[test]
fn a_fork_of_a_durable_session_is_saved_for_itself() {
    let h = harness!();
    let s = h.session_with(&["python3", "--durable"]);
    s.run("x = 1");
    wait_saved(&s, 1);
    let forked = s.sessile("fork").json();
    let fork = h.session_called(forked["session_ids"][0].as_str().expect("an id"));
    fork.run("x = 2");
    wait_saved(&fork, 2);
    s.run("print(x)").prints("1\n");
    wait_saved(&s, 2);
    // Both are kept by the same processes.
    kill_all(&s);
    fork.run("print(x)").prints("2\n");
    s.run("print(x)").prints("1\n");
}

#[test]
fn saves_leave_checkpoints_alone() {
    let h = harness!();
    for (program, look) in [("node", "console.log(x)"), ("python3", "print(x)")] {
        if Harness::shells(&[program]).is_empty() {
            continue;
        }
        let s = h.session_with(&[program, "--durable"]);
        s.run("x = 1");
        s.sessile("checkpoint").exits(0);
        wait_saved(&s, 1);
        s.run("x = 2");
        wait_saved(&s, 2);
        s.sessile("rewind").exits(0);
        let back = s.run(look).prints("1\n").run();
        // What it has gone back to is what the next save has.
        wait_saved(&s, back);
        kill_all(&s);
        s.run(look).prints("1\n");
    }
}

#[test]
fn a_session_that_was_killed_again_and_again_goes_on() {
    let h = harness!();
    let s = h.session_with(&["python3", "--durable"]);
    s.run("n = 0");
    for n in 1..4 {
        let run = s.run("n += 1; print(n)").prints(&format!("{n}\n")).run();
        wait_saved(&s, run);
        kill_all(&s);
    }
    s.run("print(n)").prints("3\n");
}

#[test]
fn what_is_not_in_the_last_save_is_told() {
    let h = harness!();
    let s = h.session_with(&["python3", "--durable"]);
    s.run("x = 1\nimport socket\nopen_socket = socket.socket()");
    let durable = wait_saved(&s, 1);
    assert_eq!(durable["left"][0]["name"], "open_socket", "{durable}");

    // No further save gets done.
    let obstacle = s.dir().join("saved.json.new");
    std::fs::create_dir(&obstacle).unwrap();
    s.run("y = 2");
    s.run("z = 3");
    let told = until("an error", || s.metadata()["durable"]["error"].as_str().map(str::to_owned));
    assert!(told.contains("saved.json"), "{told}");
    assert_eq!(s.state()["durable"]["as_of_run"], 1);
    assert_eq!(h.list()[0]["durable"]["error"], json!(told));
    kill_all(&s);

    let answer = s.run("print(x, 'y' in globals())").prints("1 False\n").is_restored_as_of(1);
    let notes = answer.notes();
    assert!(notes.contains("as of run 1: what runs 2 to 3 changed in it is lost"), "{notes}");
    assert!(notes.contains("open_socket (a socket cannot be carried)"), "{notes}");

    // What stood in the way is gone, and the next attempt succeeds.
    std::fs::remove_dir(&obstacle).unwrap();
    assert_eq!(wait_saved(&s, 4)["error"], Value::Null);
}

#[test]
fn the_next_run_does_not_wait_for_a_save() {
    let h = harness!();
    let s = h.session_with(&["python3", "--durable"]);
    let (begun, released) = (h.path("begun"), h.path("released"));
    s.run(format!(
        "import os, time\nclass Slow:\n    def __reduce__(self):\n        open({begun:?}, 'w').close()\n        \
         while not os.path.exists({released:?}): time.sleep(0.01)\n        return (Slow, ())\nslow = Slow()"
    ));
    h.wait_for_file("begun");
    s.run("print(1)").prints("1\n").is_kept();
    assert_eq!(s.metadata()["durable"]["as_of_run"], Value::Null, "the save is still going on");
    assert_eq!(s.sessile("jobs").json(), json!([]), "nobody's job");
    std::fs::write(&released, "").unwrap();
    wait_saved(&s, 1);
}

#[test]
fn a_kernel_that_dies_comes_back_from_the_last_save() {
    let h = harness!();
    let s = h.session_with(&["python3", "--durable"]);
    s.run("x = 7");
    wait_saved(&s, 1);
    s.run("import os; os._exit(3)").exits(3);
    s.run("print(x)").prints("7\n");
}

#[test]
fn a_session_that_is_not_durable_is_not_saved() {
    let h = harness!();
    let (plain, durable) = (h.session_of("python3"), h.session_with(&["python3", "--durable"]));
    plain.run("x = 1");
    durable.run("x = 1");
    wait_saved(&durable, 1);
    assert_eq!(plain.metadata()["durable"], Value::Null);
    assert!(!plain.dir().join("saved.json").exists());
}

#[test]
fn a_reset_is_saved_as_well() {
    let h = harness!();
    let s = h.session_with(&["python3", "--durable"]);
    s.run("x = 1");
    wait_saved(&s, 1);
    s.sessile("reset").exits(0);
    s.run("y = 2");
    wait_saved(&s, 2);
    kill_all(&s);
    s.run("print('x' in globals(), y)").prints("False 2\n");
}

#[test]
fn a_url_that_is_no_store_is_refused() {
    let h = harness!();
    let told = h.sessile(&["start", "--durable=ftp://host/x"]).exits(2).errors();
    assert!(told.contains("s3://bucket/prefix"), "{told}");
    assert!(h.list().is_empty());
}

#[test]
fn a_store_that_does_not_work_is_told_and_tried_again() {
    let h = harness!();
    std::fs::write(h.path("kept"), "in the way").unwrap();
    let url = format!("--durable=file://{}", h.path("kept").display());
    let s = h.session_with(&[&url]);
    s.run("x=1");
    let error =
        until("an error", || s.metadata()["durable"]["store"]["error"].as_str().map(str::to_owned));
    assert!(error.contains("kept"), "{error}");
    // The session itself is saved all the same.
    wait_saved(&s, 1);
    std::fs::remove_file(h.path("kept")).unwrap();
    let durable = wait_stored(&s, 1);
    assert_eq!(durable["store"]["error"], Value::Null);
}

fn start_in(
    h: &Harness,
    url: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> String {
    let mut command = h.command(&["start", "python3", &format!("--durable={url}")]);
    command.envs(variables);
    let output = command.output().unwrap();
    let started: Value = serde_json::from_slice(&output.stdout).unwrap();
    started["session_id"].as_str().unwrap().to_owned()
}

fn output(mut command: Command) -> (Value, String) {
    let output = command.output().unwrap();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (answer, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_session_goes_on_on_another_machine_from_its_store() {
    let Some(server) = shared_object_server() else { return };
    let h = harness!();
    let url = "s3://saves/moving";
    let id = start_in(&h, url, server.user());
    let s = h.session_called(&id);
    s.run("x = 'from S3'");
    let durable = wait_stored(&s, 1);
    assert_eq!(durable["store"]["url"], url);
    assert!(!s.dir().join("saves/outgoing.sessile").exists());

    let elsewhere = harness!();
    let restore = |options: &[&str]| {
        let place = format!("{url}/{id}");
        let mut command = elsewhere.command(&[&["restore", &place], options].concat());
        command.envs(server.user());
        output(command)
    };
    let (_, refused) = restore(&[]);
    assert!(refused.contains("--trust"), "{refused}");
    let (_, refused) = restore(&["--trust", "--max-size", "10B"]);
    assert!(refused.contains("--max-size"), "{refused}");
    let (restored, errors) = restore(&["--trust"]);
    let other = restored["session_id"].as_str().unwrap_or_else(|| panic!("{errors}"));
    elsewhere.session_called(other).run("print(x)").prints("from S3\n");
    let names = std::fs::read_dir(elsewhere.sessions_dir()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".gitignore", "CACHEDIR.TAG", other]);
}

#[test]
fn a_store_that_is_down_holds_nothing_up() {
    let Some(mut server) = object_server() else { return };
    let h = harness!();
    let id = start_in(&h, "s3://saves/down", server.user());
    let s = h.session_called(&id);
    s.run("x = 1");
    wait_stored(&s, 1);
    server.kill();
    s.run("x = 2");
    let durable = wait_saved(&s, 2);
    assert_eq!(durable["error"], Value::Null);
    let error =
        until("an error", || s.metadata()["durable"]["store"]["error"].as_str().map(str::to_owned));
    assert!(error.contains("cannot be reached"), "{error}");
    assert_eq!(s.metadata()["durable"]["store"]["as_of_run"], 1);
    s.run("print(x)").prints("2\n").is_kept();
    server.restart();
    let durable = wait_stored(&s, 3);
    assert_eq!(durable["store"]["error"], Value::Null);
}

#[test]
fn the_server_starts_durable_sessions() {
    let h = harness!();
    let server = h.serve();
    let started = server.post("/v1/sessions", &json!({"shell": "python3", "durable": true}));
    let id = started.is(201).json()["session_id"].as_str().unwrap().to_owned();
    let s = h.session_called(&id);
    s.run("x = 1");
    wait_saved(&s, 1);
    let state = server.get(&format!("/v1/sessions/{id}/state")).is(200).json();
    assert_eq!(state["durable"]["as_of_run"], 1);
    drop(server);

    let server = h.server(&["--durable", "yes"]);
    let by_default = server.session();
    assert!(h.session_called(&by_default).metadata()["durable"].is_object());
    let refused = server.post("/v1/sessions", &json!({"durable": false}));
    let id = refused.is(201).json()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(h.session_called(&id).metadata()["durable"], Value::Null);
}

#[test]
fn the_advice_for_an_ended_session_can_be_followed() {
    let h = harness!();
    let server = h.serve();
    let ended = |args: &[&str], text: &str| {
        let s = h.session_with(args);
        s.run(text);
        if args.contains(&"--durable") {
            wait_saved(&s, 1);
        } else {
            s.wait_captured(1);
        }
        s.end();
        s
    };
    for (args, text, show, shown) in [
        (&["bash"][..], "x=41", "echo $((x+1))", Some("42\n")),
        (&["python3", "--durable"], "x = 41", "print(x + 1)", Some("42\n")),
        (&["node", "--durable"], "let x = 41", "console.log(x + 1)", Some("42\n")),
        (&["python3"], "x = 41", "", None),
    ] {
        let s = ended(args, text);
        let gone = h.begin(&["exec", s.id()], b"1").finish().exits(1).errors();
        let restored = h.sessile(&["restore", s.id()]).exits(1).errors();
        assert_eq!(restored, gone, "the same advice");
        let advised: Vec<&str> = gone.split('`').collect();
        let path = format!("/v1/sessions/{}/exec", s.id());
        let refused = server.post(&path, &json!({"command": "1"})).is(410).json();
        let hint = refused["error"]["hint"].as_str().unwrap().to_owned();
        let Some(shown) = shown else {
            assert_eq!((advised.len(), hint.as_str()), (1, "start a new session"), "{gone}");
            continue;
        };
        let words: Vec<&str> = advised[1].split(' ').skip(1).collect();
        let id = h.sessile(&words).json()["session_id"].as_str().unwrap().to_owned();
        h.session_called(&id).run(show).prints(shown);
        let from = format!("\"from\": \"{}\"", s.id());
        assert!(hint.contains(&from), "{hint}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(&from), "models read the message alone: {message}");
        let made = server.post("/v1/sessions", &json!({"from": s.id()})).is(201).json();
        h.session_called(made["session_id"].as_str().unwrap()).run(show).prints(shown);
    }
}
