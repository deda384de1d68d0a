//! An agent goes to another server, with its session and its thread.

use super::{KEY, agent, begin, ended, entries, exec, harness, serve, text};
use serde_json::{Value, json};
use sessile_testkit::{Format, ModelServer};

#[test]
fn an_agent_goes_on_with_another_server_and_says_so() {
    let script = vec![
        exec("x=41; echo kept > file; secret=$(env | grep -c sk-test)"),
        text("set"),
        exec("echo $((x+1)) $secret; cat file"),
        text("it is 42"),
    ];
    let model = ModelServer::start(Format::Messages, script);
    let (h, other) = (harness(), harness());
    std::fs::create_dir(h.path("project")).unwrap();
    let (server, there) = (serve(&h, &model), serve(&other, &model));
    let id = agent(&server, &json!({ "workspace": h.path("project") }));
    let task = begin(&server, &id, "set x");
    ended(&server, &id, task);

    let exported = server.owner("GET", &format!("/v1/agents/{id}/export")).send().is(200);
    let said = |name: &str| exported.header(name).unwrap().parse::<u64>().unwrap();
    let (length, as_of_run) = (said("sessile-entries"), said("sessile-as-of-run"));
    assert_eq!(as_of_run, 1);

    // Whoever made a file decides what runs here: it has to be trusted.
    let import = |query: &str| {
        there.owner("POST", &format!("/v1/agents/import?{query}")).file(&exported.body).send()
    };
    let cwd = other.path("moved").display().to_string();
    let _ = import(&format!("cwd={cwd}")).is_refused(403, "untrusted");
    let made = import(&format!("trust=true&cwd={cwd}")).is(201).json();
    let new = made["agent"]["session_id"].as_str().unwrap();
    assert_eq!(made["agent"]["thread_id"], json!(thread_of(&server, &id)));
    assert_eq!(made["session"]["restored_from"], id, "{made}");

    // It has not gone on here since, so it can be said to have moved.
    let moved = json!({ "url": "https://there.example", "session_id": new,
        "entries": length, "as_of_run": as_of_run });
    let late = json!({ "url": "https://there.example", "session_id": new, "entries": length - 1 });
    let _ = server.post(&format!("/v1/agents/{id}/moved"), &late).is_refused(409, "busy");
    let view = server.post(&format!("/v1/agents/{id}/moved"), &moved).is(200).json();
    assert_eq!((&view["status"], &view["moved_to"]["session_id"]), (&json!("moved"), &json!(new)));
    let refused = server.post(&format!("/v1/agents/{id}/tasks"), &json!({ "text": "more" }));
    let refused = refused.is_refused(410, "agent_moved");
    assert!(refused.text().contains("https://there.example"), "{}", refused.text());

    let task = begin(&there, new, "what is x+1?");
    assert_eq!(task, 2);
    assert_eq!(ended(&there, new, task)["output"], "it is 42");
    let outcome = entries(&other, new, "outcome").pop().unwrap();
    assert!(outcome["text"].as_str().unwrap().ends_with("42 0\nkept"), "{outcome}");
    assert_eq!(entries(&other, new, "imported")[0]["from_session"], id);
    let messages = model.requests().last().unwrap().body["messages"].to_string();
    assert!(messages.contains("set x") && messages.contains("was moved"), "{messages}");

    // No key came along: the one there is that server's own.
    let found = std::process::Command::new("grep")
        .args(["-r", "-l", KEY, "."])
        .current_dir(other.path("."))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "./model.key\n");
}

fn thread_of(server: &sessile_testkit::Server, id: &str) -> Value {
    server.get(&format!("/v1/agents/{id}")).is(200).json()["thread_id"].clone()
}

#[test]
fn the_command_line_writes_an_agent_into_a_file_and_makes_one_of_it() {
    let model = ModelServer::start(Format::Chat, vec![exec("x=7"), text("set"), text("again")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "set x");
    ended(&server, &id, task);
    let said = h.sessile(&["agent", "export", &id, "a.agent", "--no-files"]).exits(0).json();
    assert_eq!(said["as_of_run"], 1, "{said}");
    // One's own file is known by its seal.
    let made = h.sessile(&["agent", "import", "a.agent"]).exits(0).json();
    let new = made["agent"]["session_id"].as_str().unwrap();
    assert_eq!(super::prints(&server, new, "echo $x"), "7\n");
    let again = h.sessile(&["agent", "run", "--agent", new, "go on"]).exits(0);
    assert_eq!(again.text(), "again\n");

    // A file that was changed anywhere is not one.
    let mut bytes = std::fs::read(h.path("a.agent")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(h.path("b.agent"), bytes).unwrap();
    let refused = h.sessile(&["agent", "import", "b.agent", "--trust"]).exits(1).errors();
    assert!(refused.contains("not an exported agent"), "{refused}");
    let missing = h.sessile(&["agent", "export", "sess_00000000", "c.agent"]).exits(1).errors();
    assert!(missing.contains("sess_00000000"), "{missing}");
    assert!(!h.path("c.agent").exists());
}
