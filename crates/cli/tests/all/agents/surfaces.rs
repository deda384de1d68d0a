//! Agents on the command line, and their events.

use super::{agent, begin, ended, exec, harness, serve, text};
use serde_json::{Value, json};
use sessile_testkit::{Format, ModelServer, Trouble};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

#[test]
fn the_command_line_runs_a_task_and_goes_on_with_it() {
    let script = vec![exec("x=41"), text("x is set"), exec("echo $((x+1))"), text("it is 42")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let _server = serve(&h, &model);
    let first = h.sessile(&["agent", "run", "--json", "Set x"]).exits(0).text();
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["output"], "x is set");
    let id = first["session_id"].as_str().unwrap();
    let second = h.sessile(&["agent", "run", "--agent", id, "What is x+1?"]).exits(0);
    assert_eq!(second.text(), "it is 42\n");
    let shown = h.sessile(&["agent", "show", id]).exits(0).text();
    for part in ["task 1: Set x", "→ runtime: x=41", "task 2: What is x+1?", "it is 42"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let list: Value = serde_json::from_str(&h.sessile(&["agent", "list"]).exits(0).text()).unwrap();
    assert_eq!(list[0]["task_count"], 2);
    let again = h.sessile(&["agent", "resume", id, "--json"]).exits(0).text();
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["task"], 2);
}

#[test]
fn forks_have_the_same_past_and_a_future_of_their_own() {
    let script = vec![exec("x=41"), text("set"), exec("x=$((x+1)); echo $x"), text("counted")];
    let model = ModelServer::start(Format::Messages, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "Set x");
    ended(&server, &id, task);
    let body = json!({ "count": 2 });
    let forks = server.post(&format!("/v1/agents/{id}/fork"), &body).is(201).json();
    for fork in forks["agents"].as_array().unwrap() {
        assert_eq!(fork["task_count"], 1);
        let fork = fork["session_id"].as_str().unwrap();
        let task = begin(&server, fork, "Count");
        assert_eq!(ended(&server, fork, task)["output"], "counted");
        let outcome = super::entries(&h, fork, "outcome").pop().unwrap();
        assert!(outcome["text"].as_str().unwrap().ends_with("42"), "{outcome}");
        let created = &super::entries(&h, fork, "created")[0];
        assert!(created["forked_from"].as_str().unwrap().starts_with("thread_"), "{created}");
    }
    assert_eq!(super::entries(&h, &id, "task").len(), 1);
}

#[test]
fn a_record_of_an_agent_outlives_its_session() {
    let model = ModelServer::start(Format::Chat, vec![text("hello")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "Greet me");
    ended(&server, &id, task);
    let _ = server.delete(&format!("/v1/sessions/{id}")).is(200);
    h.sessile(&["cleanup"]).exits(0);
    let file = h.sessions_dir().join(format!("{id}.json"));
    let record: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(record["sessionId"], id);
    assert_eq!(record["taskCount"], 1);
    assert!(record["threadId"].as_str().unwrap().starts_with("thread_"), "{record}");
    assert!(record["lastActivity"].as_str() >= record["created"].as_str(), "{record}");
}

#[test]
fn a_server_without_a_model_says_what_to_do() {
    let h = harness();
    let server = h.serve();
    let refused = server.post("/v1/agents", &json!({})).is_refused(400, "bad_request");
    assert!(refused.text().contains("add a [[model]]"), "{}", refused.text());
}

#[test]
fn an_agent_in_a_sandbox_has_the_files_that_its_session_sees() {
    let script = vec![
        super::call("read_file", json!({ "path": ".env" })),
        super::call("write_file", json!({ "path": "src/new.txt", "text": "one two\n" })),
        exec("cat src/new.txt; echo three >> src/new.txt"),
        super::call(
            "edit_file",
            json!({ "path": "/workspace/src/new.txt",
            "old_text": "two", "new_text": "2" }),
        ),
        super::call("search_files", json!({ "pattern": "three" })),
        exec("cat src/new.txt"),
        text("done"),
    ];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    std::fs::create_dir(h.path("project")).unwrap();
    std::fs::write(h.path("project/.env"), "SECRET=1\n").unwrap();
    let server = serve(&h, &model);
    let project = h.path("project").display().to_string();
    let id = agent(&server, &json!({ "workspace": project, "sandbox": "development" }));
    let task = begin(&server, &id, "work");
    assert_eq!(ended(&server, &id, task)["output"], "done");
    let outcomes = super::entries(&h, &id, "outcome");
    let said: Vec<_> = outcomes.iter().map(|o| o["text"].as_str().unwrap()).collect();
    assert_eq!(outcomes[0]["is_error"], true, "the preset hides it: {}", said[0]);
    assert!(!said[0].contains("SECRET"), "{}", said[0]);
    assert!(said[2].contains("one two"), "{said:?}");
    assert!(said[4].starts_with("src/new.txt:2:three"), "{said:?}");
    assert!(said[5].contains("one 2\nthree"), "{said:?}");
    // What it wrote is in the sandbox's layer.
    assert!(!h.path("project/src").exists());
}

#[test]
fn a_reader_of_events_goes_on_after_the_last_one_that_it_saw() {
    let model = ModelServer::start(Format::Chat, vec![exec("echo a"), text("done")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "do it");
    ended(&server, &id, task);
    let path = format!("/v1/agents/{id}/events");
    let all = server.owner("GET", &path).send().is(200).text();
    let names: Vec<_> = all.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["created", "task", "reply", "checkpoint", "outcome", "reply", "ended"]);
    let rest = server.owner("GET", &path).header("last-event-id", "4").send().is(200).text();
    let names: Vec<_> = rest.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["outcome", "reply", "ended"]);
}

#[test]
fn whoever_leaves_a_task_is_told_that_it_goes_on() {
    let model = ModelServer::start(Format::Chat, vec![exec("sleep 1000"), text("done")]);
    let h = harness();
    let _server = serve(&h, &model);
    let mut terminal = h.tty(&["agent", "run", "--checkpoints", "0", "sleep"], (200, 24));
    terminal.shows("→ runtime: sleep 1000");
    terminal.press("\u{3}");
    let (code, shown) = terminal.finish();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("the task goes on"), "{shown}");
    let list = h.sessile(&["agent", "list"]).exits(0).json();
    let id = list[0]["session_id"].as_str().unwrap();
    assert_eq!(list[0]["status"], "running", "{list}");
    assert!(shown.contains(&format!("sessile agent resume {id}")), "{shown}");
    // At a question, too.
    h.sessile(&["agent", "cancel", id]).exits(0);
    let mut terminal = h.tty(&["agent", "run", "--approve", "runtime", "sleep"], (200, 24));
    terminal.shows("carry this out?");
    terminal.press("\u{3}");
    let (code, shown) = terminal.finish();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("the task goes on"), "{shown}");
}

#[test]
fn a_local_server_without_a_model_says_which_file_to_add_it_to() {
    let h = harness();
    let server = h.local_server(&[]);
    let refused = server.post("/v1/agents", &json!({})).is_refused(400, "bad_request").text();
    let file = h.state_home().join("sessile/local/sessile.toml");
    assert!(refused.contains(&format!("add a [[model]] to {}", file.display())), "{refused}");
    assert!(refused.contains("whoever needs it next starts it again"), "{refused}");
}

#[test]
fn the_command_line_confines_an_agent() {
    let script = vec![exec("pwd; cat .env; echo new > made; echo $STAGE"), text("done")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    std::fs::create_dir(h.path("project")).unwrap();
    std::fs::write(h.path("project/.env"), "SECRET=1\n").unwrap();
    let _server = serve(&h, &model);
    let place = ["--workspace", "project", "--env", "STAGE=test"];
    let sandbox = ["--sandbox", "--network", "none", "--memory", "256MiB"];
    let args = [&["agent", "run", "--json"], &place[..], &sandbox, &["--", "Work"]].concat();
    let view = h.sessile(&args).exits(0).json();
    assert_eq!(view["output"], "done", "{view}");
    let id = view["session_id"].as_str().unwrap();
    let outcome = super::entries(&h, id, "outcome").pop().unwrap();
    let said = outcome["text"].as_str().unwrap();
    assert!(said.contains("/workspace\n") && said.contains("test"), "{said}");
    assert!(!said.contains("SECRET"), "{said}");
    assert!(!h.path("project/made").exists(), "it is in the session's layer");
    let refused = h.sessile(&["agent", "run", "--agent", id, "--sandbox", "--", "more"]).exits(1);
    assert!(refused.errors().contains("sandbox"), "{}", refused.errors());
    // What it writes is where it is said to be.
    let direct = ["agent", "run", "--workspace", "project", "--sandbox", "--files", "direct"];
    h.sessile(&[&direct[..], &["--", "Work"]].concat()).exits(0);
    assert!(h.path("project/made").exists());
}

#[test]
fn words_that_broke_off_have_a_line_of_their_own_at_a_terminal_and_none_elsewhere() {
    let trouble = |last| (1..=last).map(|number| (number, Trouble::CutOff)).collect();
    let script = || vec![text("half a word")];
    let model = ModelServer::with_trouble(Format::Chat, script(), trouble(3));
    let h = harness();
    let _server = serve(&h, &model);
    let (code, shown) = h.tty(&["agent", "run", "Say it"], (200, 30)).finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("half \r\n") && shown.contains("half a word\r\n"), "{shown:?}");

    let model = ModelServer::with_trouble(Format::Chat, script(), trouble(1));
    let h = harness();
    let _server = serve(&h, &model);
    h.sessile(&["agent", "run", "Say it"]).exits(0).prints("half a word\n");
}

/// Stands between a client and a server. The answer to the first request for this path goes
/// astray: the server has done it, and the client does not know.
fn losing_an_answer(server: SocketAddr, path: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut is_lost = false;
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut there = TcpStream::connect(server).unwrap();
            let mut head = [0; 4096];
            let count = client.read(&mut head).unwrap();
            there.write_all(&head[..count]).unwrap();
            let is_it = String::from_utf8_lossy(&head[..count]).starts_with(path);
            let (mut from, mut to) = (client.try_clone().unwrap(), there.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            if is_it && !is_lost {
                is_lost = true;
                assert!(there.read(&mut head).unwrap() > 0);
                let _ = client.shutdown(Shutdown::Both);
                continue;
            }
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut there, &mut client);
                let _ = client.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

#[test]
fn what_a_server_did_before_it_could_say_so_is_not_done_again() {
    for path in ["POST /v1/agents ", "POST /v1/agents/sess_"] {
        let model = ModelServer::start(Format::Chat, vec![text("done")]);
        let h = harness();
        let server = serve(&h, &model);
        let presence = h.private_dir().join("servers");
        let file = std::fs::read_dir(&presence).unwrap().next().unwrap().unwrap().path();
        let mut said: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        said["url"] = format!("http://{}", losing_an_answer(server.address, path)).into();
        // The server has a lock on the file, which is to stay the same.
        std::fs::write(&file, said.to_string()).unwrap();
        let ran = h.sessile(&["agent", "run", "--json", "Do it"]).exits(0).text();
        let ran: Value = serde_json::from_str(&ran).unwrap();
        assert_eq!((&ran["task"], &ran["output"]), (&json!(1), &json!("done")), "{ran}");
        let agents = server.get("/v1/agents").is(200).json();
        assert_eq!(agents["agents"].as_array().unwrap().len(), 1, "{agents}");
        assert_eq!(agents["agents"][0]["task_count"], 1, "{agents}");
    }
}
