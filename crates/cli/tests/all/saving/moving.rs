//! A durable session's id now lives on another machine, with a store in between.
//!
//! A machine is a sessions directory with a state directory of its own.

use super::durable::{kill_all, wait_stored};
use crate::sandbox::limits::{groups, has_groups};
use serde_json::{Value, json};
use sessile_testkit::{Client, Harness, Session, harness, shared_object_server, until};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Has a machine use this store, by its configuration.
fn configure(h: &Harness, store: &str) {
    use std::io::Write;
    std::fs::create_dir_all(h.sessions_dir()).unwrap();
    let path = h.sessions_dir().join("sessile.toml");
    let mut file =
        std::fs::File::options().write(true).create_new(true).mode(0o600).open(path).unwrap();
    writeln!(file, "store = \"{store}\"").unwrap();
}

/// A store on a disk that all machines have.
fn store_in(directory: &Path) -> String {
    format!("file://{}/kept", directory.display())
}

/// Another machine takes a session up, as far as the store knows.
fn take_elsewhere(h: &Harness, store: &str, id: &str) -> Value {
    let order = json!({"take": {"url": store, "session_id": id, "file": h.path("taken")}});
    let client = Client::spawn(h.command(&["fetcher"]), order.to_string().as_bytes());
    serde_json::from_str(&client.finish().text()).expect("JSON")
}

fn moved(s: &Session<'_>) -> Value {
    until("an end", || {
        let metadata = s.metadata();
        (metadata["status"] == "terminated").then_some(metadata)
    })
}

#[test]
fn an_id_goes_on_where_it_is_asked_for() {
    let (h, other, shared) = (harness!(), harness!(), harness!());
    let store = store_in(&shared.root());
    configure(&h, &store);
    configure(&other, &store);
    let s = h.session_with(&["python3", "--durable", "--name", "work"]);
    s.run("x = {'a': 1}");
    s.run_in("bash", "y=5; cd /usr");
    assert_eq!(wait_stored(&s, 2)["store"]["url"], store);
    kill_all(&s);

    let there = other.session_called(s.id());
    let answer = there.run("x['b'] = 2; print(x)");
    let answer = answer.prints("{'a': 1, 'b': 2}\n").is_restored_as_of(1);
    assert!(answer.notes().contains("was taken up from"), "{}", answer.notes());
    assert_eq!(answer.run(), 3, "numbers go on");
    there.run_in("bash", "echo $y $PWD").prints("5 /usr\n").is_restored_as_of(2);
    let told = there.run("print(len(x))").prints("2\n").is_kept().notes();
    assert_eq!(told, "", "it is told once");
    let metadata = there.metadata();
    assert_eq!(metadata["session_id"], s.id());
    assert_eq!(metadata["name"], "work");
    assert_eq!(metadata["durable"]["store"]["epoch"], 1);
    assert!(metadata["durable"]["store"]["taken_from"].is_string());
    // It is saved from there, and can go on to a third one.
    wait_stored(&there, 5);
    let runs = there.history().as_array().map(Vec::len);
    assert_eq!(runs, Some(5), "the history comes along");
}

#[test]
fn it_goes_on_by_way_of_an_object_store() {
    let Some(server) = shared_object_server() else { return };
    let (h, other) = (harness!(), harness!());
    let start = |h: &Harness, args: &[&str], stdin: &str| {
        let mut command = h.command(args);
        command.envs(server.user()).env("SESSILE_STORE", "s3://saves/going-on");
        let output = Client::spawn(command, stdin.as_bytes()).finish();
        serde_json::from_str::<Value>(&output.text()).unwrap_or_default()
    };
    let started = start(&h, &["start", "python3", "--durable"], "");
    let id = started["session_id"].as_str().expect("an id");
    let s = h.session_called(id);
    s.run("x = 'from S3'");
    wait_stored(&s, 1);
    kill_all(&s);
    let answer = start(&other, &["exec", id], "print(x)");
    assert_eq!(answer["stdout"], "from S3\n", "{answer}");
    assert_eq!((&answer["kernel"], &answer["as_of_run"]), (&json!("restored"), &json!(1)));
}

#[test]
fn whoever_had_it_is_fenced_off_and_told() {
    let (h, shared) = (harness!(), harness!());
    let store = store_in(&shared.root());
    configure(&h, &store);
    let s = h.session_with(&["--durable"]);
    s.run("x=saved");
    wait_stored(&s, 1);
    let taken = take_elsewhere(&h, &store, s.id());
    assert_eq!(taken["taken"]["epoch"], 1, "{taken}");

    // It does not know yet. What it does now is not what the session goes on from.
    s.run("x=late").is_kept();
    let metadata = moved(&s);
    let host = taken["taken"]["from"].as_str().expect("a host");
    assert_eq!(metadata["ended_by"], format!("a move to {host}"));
    assert_eq!(metadata["durable"]["store"]["moved_to"], host);
    let error = metadata["durable"]["store"]["error"].as_str().unwrap_or_default();
    assert!(error.contains("now lives on"), "{metadata}");

    // Asked for again, it comes back from where it has been.
    let answer = s.run("echo $x").prints("saved\n").is_restored_as_of(1);
    assert!(answer.notes().contains("was taken up from"), "{}", answer.notes());
    assert_eq!(s.metadata()["durable"]["store"]["epoch"], 2);
    wait_stored(&s, 2);
}

#[test]
fn two_keepers_of_one_session_leave_each_other_alone() {
    let (h, other, shared) = (harness!(), harness!(), harness!());
    let store = store_in(&shared.root());
    configure(&h, &store);
    configure(&other, &store);
    let s = h.session_with(&["--durable"]);
    let job = s.spawns("x=saved; sleep 1000 & echo $!");
    wait_stored(&s, 1);
    // Nothing is saved during a run. One that asks only now and then hears later of the
    // move than the run takes.
    let keeper = s.keeper();
    let running = s.begin("echo yes >begun; sleep 25; echo finished");
    h.wait_for_line("begun");

    let there = other.session_called(s.id());
    let stays = there.spawns("sleep 1000 & echo $!");
    there.run("echo $x").prints("saved\n");
    keeper.assert_alive();
    job.assert_alive();

    // Fenced off, with what was going in it; the other one does not notice.
    let told = running.finish().exits(1).prints("").errors();
    assert!(told.contains("the session now lives on"), "{told}");
    moved(&s);
    keeper.wait_gone();
    job.wait_gone();
    stays.assert_alive();
    there.run("echo $x").prints("saved\n").is_kept();
}

#[test]
fn two_keepers_of_one_session_have_control_groups_of_their_own() {
    let (h, other, shared) = (harness!(), harness!(), harness!());
    if !has_groups(&h) {
        return;
    }
    let store = store_in(&shared.root());
    configure(&h, &store);
    configure(&other, &store);
    let s = h.session_with(&["--durable", "--sandbox", "full-access", "--memory", "96MiB"]);
    s.run("x=saved").exits(0);
    wait_stored(&s, 1);
    let running = s.begin("sleep 25; echo finished");
    running.wait_blocked();

    // The end of one takes its own groups only.
    let there = other.session_called(s.id());
    there.run("echo $x").prints("saved\n");
    there.end();
    let told = running.finish().exits(1).prints("").errors();
    assert!(told.contains("the session now lives on"), "{told}");
    moved(&s);
    until("no groups", || groups(s.id()).is_empty().then_some(()));
}

#[test]
fn whoever_had_it_finds_out_although_it_does_nothing() {
    let Some(server) = shared_object_server() else { return };
    let h = harness!();
    let store = "s3://saves/found-out";
    let mut command = h.command(&["start", "--durable"]);
    command.envs(server.user()).env("SESSILE_STORE", store);
    let started = Client::spawn(command, b"").finish().json();
    let s = h.session_called(started["session_id"].as_str().expect("an id"));
    s.run("x=saved; sleep 1000 &");
    wait_stored(&s, 1);
    let job = s.sessile("jobs").json()[0]["pid"].clone();
    assert!(job.is_number(), "{job}");
    let order = json!({"take": {"url": store, "session_id": s.id(), "file": h.path("taken")}});
    let mut command = h.command(&["fetcher"]);
    command.envs(server.user());
    let taken = Client::spawn(command, order.to_string().as_bytes()).finish().json();
    let host = taken["taken"]["from"].as_str().expect("a host");

    // Within half a minute, with all that it started.
    let metadata = moved(&s);
    assert_eq!(metadata["ended_by"], format!("a move to {host}"));
    assert_eq!(metadata["durable"]["store"]["moved_to"], host);
    assert_eq!(metadata["execution_count"], 1, "nothing was run for it");
}

#[test]
fn whoever_takes_it_back_is_told_which_runs_are_dropped() {
    let (h, shared) = (harness!(), harness!());
    let store = store_in(&shared.root());
    configure(&h, &store);
    let s = h.session_with(&["--durable"]);
    s.run("x=saved");
    wait_stored(&s, 1);
    let taken = take_elsewhere(&h, &store, s.id());
    let host = taken["taken"]["from"].as_str().expect("a host");
    s.run("x=late").is_kept();
    moved(&s);
    let notes = s.run("echo $x").prints("saved\n").is_restored_as_of(1).notes();
    let why = format!("made here after the last save that {host} could take up");
    assert!(notes.contains(&format!("run 2 of this machine ({why})")), "{notes}");
    let notes = s.run("echo $x").prints("saved\n").notes();
    assert!(!notes.contains("of this machine"), "it is told once: {notes}");

    // Nothing is dropped, and nothing is said, if all had been saved.
    wait_stored(&s, 3);
    kill_all(&s);
    take_elsewhere(&h, &store, s.id());
    let notes = s.run("echo $x").prints("saved\n").is_restored_as_of(3).notes();
    assert!(!notes.contains("of this machine"), "{notes}");
}

#[test]
fn a_lost_session_asks_its_store_before_it_goes_on() {
    let (h, shared) = (harness!(), harness!());
    let store = store_in(&shared.root());
    configure(&h, &store);
    let s = h.session_with(&["--durable"]);
    s.run("x=saved");
    wait_stored(&s, 1);
    // A keeper that is killed, and nobody else: it goes on from the disk.
    kill_all(&s);
    s.run("x=here").is_restored_as_of(1);
    wait_stored(&s, 2);
    assert!(s.metadata()["durable"]["store"]["taken_from"].is_null());

    // Another machine has it meanwhile: what is on the disk here is not its state.
    kill_all(&s);
    let taken = take_elsewhere(&h, &store, s.id());
    assert_eq!(taken["taken"]["epoch"], 1, "{taken}");
    let answer = s.run("echo $x").prints("here\n").is_restored_as_of(2);
    assert!(answer.notes().contains("was taken up from"), "{}", answer.notes());
    assert_eq!(s.metadata()["durable"]["store"]["epoch"], 2, "it was taken up, not revived");

    // The same by a server, and by one that has no store of its own to take it from.
    wait_stored(&s, 3);
    kill_all(&s);
    take_elsewhere(&h, &store, s.id());
    std::fs::remove_file(h.sessions_dir().join("sessile.toml")).unwrap();
    let server = h.serve();
    let path = format!("/v1/sessions/{}/exec", s.id());
    let error = server.post(&path, &json!({"command": "echo $x"})).is(410).json();
    assert_eq!(error["error"]["code"], "session_ended", "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("now lives on"), "{error}");

    // A store that cannot be asked keeps nobody from working.
    let other = h.session_with(&[&format!("--durable={store}")]);
    other.run("y=5");
    wait_stored(&other, 1);
    kill_all(&other);
    std::fs::remove_dir_all(shared.path("kept")).unwrap();
    std::fs::write(shared.path("kept"), "no directory").unwrap();
    other.run("echo $y").prints("5\n").is_restored_as_of(1);
}

#[test]
fn of_clients_that_ask_at_once_each_is_answered_by_the_same_session() {
    let (h, other, shared) = (harness!(), harness!(), harness!());
    let store = store_in(&shared.root());
    configure(&h, &store);
    configure(&other, &store);
    let s = h.session_with(&["--durable"]);
    s.run("n=0");
    wait_stored(&s, 1);
    kill_all(&s);
    let there = other.session_called(s.id());
    let clients: Vec<Client> = (0..4).map(|_| there.begin("n=$((n+1))")).collect();
    for client in clients {
        there.answer(client, "n=$((n+1))").exits(0);
    }
    there.run("echo $n").prints("4\n");
    assert_eq!(there.metadata()["durable"]["store"]["epoch"], 1);
}

#[test]
fn an_id_that_no_store_has_is_not_found() {
    let (h, shared) = (harness!(), harness!());
    let asked = |h: &Harness| h.sessile(&["exec", "sess_0123456789abcdef01234567", "--", "true"]);
    let before = asked(&h).exits(1).errors();
    assert!(before.contains("not found"), "{before}");
    configure(&h, &store_in(&shared.root()));
    assert_eq!(asked(&h).exits(1).errors(), before);
    assert!(!shared.path("kept").exists(), "to ask leaves nothing behind");
}

#[test]
fn beside_a_save_is_what_is_in_it() {
    let (h, shared) = (harness!(), harness!());
    let store = store_in(&shared.root());
    configure(&h, &store);
    let s = h.session_with(&["python3", "--durable", "--name", "work", "--env", "KEY=hidden"]);
    s.run("x = 1\nimport socket\nopen_socket = socket.socket()");
    wait_stored(&s, 1);
    let folder = shared.root().join("kept").join(s.id());
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_record = |path: &Path| {
        path.extension().is_some_and(|e| e == "json")
            && path.file_name().is_some_and(|name| name != "latest.json")
    };
    let record = names.into_iter().find(|path| is_record(path)).expect("a record");
    let text = std::fs::read_to_string(record).unwrap();
    assert!(!text.contains("hidden"), "{text}");
    let record: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record["session_id"], s.id());
    assert_eq!(record["as_of_run"], 1);
    assert_eq!(record["session"]["name"], "work");
    assert_eq!(record["session"]["kernels"][0]["language"], "python");
    assert_eq!(record["session"]["left"][0]["name"], "open_socket");
}

#[test]
fn a_server_takes_sessions_up_for_those_who_may_be_anywhere() {
    let (h, other, shared) = (harness!(), harness!(), harness!());
    let store = store_in(&shared.root());
    configure(&h, &store);
    configure(&other, &store);
    let first = h.serve();
    let started = first.post("/v1/sessions", &json!({"shell": "python3", "durable": true}));
    let id = started.is(201).json()["session_id"].as_str().unwrap().to_owned();
    let s = h.session_called(&id);
    s.run("x = 1");
    assert_eq!(wait_stored(&s, 1)["store"]["url"], store);
    drop(first);
    kill_all(&s);

    std::fs::create_dir(other.path("mine")).unwrap();
    let server = other.serve();
    let made = other.sessile(&["token", "create", "mine", "--workspace", "mine"]).json();
    let token = made["token"].as_str().expect("a token");
    let exec = format!("/v1/sessions/{id}/exec");
    let body = json!({"command": "print(x)"});
    server.request("POST", &exec).token(token).json(&body).send().is(404);
    let answer = server.post(&exec, &body).is(200).json();
    assert_eq!(answer["stdout"], "1\n", "{answer}");
    assert_eq!(answer["continuity"]["status"], "restored");
    assert_eq!(answer["continuity"]["as_of_run"], 1);
    let again = server.post(&exec, &body).is(200).json();
    assert_eq!(again["continuity"]["status"], "live");

    // It is taken back when the server is asked for it again.
    let there = other.session_called(&id);
    let keeper = there.keeper();
    take_elsewhere(&other, &store, &id);
    // It may have found out already, and refuse this.
    server.post(&exec, &json!({"command": "x = 'late'"}));
    moved(&there);
    keeper.wait_gone();
    let answer = server.post(&exec, &body).is(200).json();
    assert_eq!(answer["stdout"], "1\n", "{answer}");
    assert_eq!(answer["continuity"]["status"], "restored");
}
