//! Who decides about sandboxes: whoever starts a server or has made a token, and
//! never who calls.

use crate::surfaces::mcp::peer::Peer;
use serde_json::{Value, json};
use sessile_testkit::{Harness, Server, harness};

/// Tells whether it is in a sandbox whose workspace is read-only.
const PROBE: &str = "pwd; touch made 2>/dev/null && echo made";

fn token(h: &Harness, name: &str, options: &[&str]) -> String {
    let made = h.sessile(&[&["token", "create", name], options].concat()).json();
    made["token"].as_str().expect("a token").to_owned()
}

fn post(server: &Server, token: &str, path: &str, body: &Value) -> sessile_testkit::http::Response {
    server.request("POST", path).token(token).json(body).send()
}

#[test]
fn sessions_of_a_token_are_confined_by_every_way_in() {
    let h = harness!();
    let server = h.serve();
    let agent = token(&h, "agent", &["--sandbox", "read-only"]);
    let exec = |id: &Value, token: &str| {
        let path = format!("/v1/sessions/{}/exec", id.as_str().expect("an id"));
        post(&server, token, &path, &json!({"command": PROBE}))
    };
    // Without a word of it, with a laxer word, and with none wanted at all.
    for body in [
        json!({}),
        json!({"sandbox": false}),
        json!({"sandbox": "full-access"}),
        json!({"sandbox": {"preset": "full-access", "files": "direct", "network": "full",
            "permissions": [{"pattern": "**/*", "permission": "write", "priority": 1000}],
            "binds": [{"host": h.root()}]}}),
    ] {
        let made = post(&server, &agent, "/v1/sessions", &body).is(201).json();
        let answer = exec(&made["session_id"], &agent).is(200).json();
        assert_eq!(answer["stdout"], "/workspace\n", "{body}");
    }
    // By an order with a key, which is another way.
    let keyed = server.request("POST", "/v1/sessions").token(&agent);
    let keyed = keyed.header("idempotency-key", "one").json(&json!({"sandbox": false}));
    let made = keyed.send().is(201).json();
    assert_eq!(exec(&made["session_id"], &agent).is(200).json()["stdout"], "/workspace\n");
    // One that is stricter than it has to be stays that.
    let strict = json!({"sandbox": {"preset": "full-access", "permissions":
        [{"pattern": "/secret", "permission": "none"}]}});
    std::fs::write(h.path("secret"), "s").expect("a file");
    let made = post(&server, &agent, "/v1/sessions", &strict).is(201).json();
    let path = format!("/v1/sessions/{}/exec", made["session_id"].as_str().expect("an id"));
    let listed = post(&server, &agent, &path, &json!({"command": "ls; touch x"})).is(200).json();
    assert!(!listed["stdout"].as_str().expect("text").contains("secret"), "{listed}");
    assert_eq!(listed["exit_code"], 1);

    let once = post(&server, &agent, "/v1/exec", &json!({"command": PROBE})).is(200).json();
    assert_eq!(once["stdout"], "/workspace\n");
    let tool = json!({"action": "exec", "command": PROBE});
    let told = post(&server, &agent, "/v1/tools/runtime", &tool).is(200).json();
    assert_eq!(told["stdout"], "/workspace\n", "{told}");
    let asked = json!({"action": "exec", "command": PROBE, "sandbox": "full-access"});
    let refused = post(&server, &agent, "/v1/tools/runtime", &asked).is(200).json();
    assert_eq!(refused["success"], false, "{refused}");
    assert!(refused["error"].to_string().contains("whoever starts the server"), "{refused}");
    assert!(!h.path("made").exists());

    // The owner's are the owner's, in the same workspace.
    let told = server.post("/v1/tools/runtime", &tool).is(200).json();
    assert_eq!(told["stdout"], format!("{}\nmade\n", h.root().display()));
    let own = h.session();
    let id = json!(own.id());
    exec(&id, &agent).is_refused(404, "session_not_found");
    let place = format!("/v1/sessions/{}", own.id());
    let get = |path: &str| server.request("GET", path).token(&agent).send();
    get(&place).is_refused(404, "session_not_found");
    get(&format!("{place}/files")).is_refused(404, "session_not_found");
    get(&format!("{place}/ports/80/")).is_refused(404, "session_not_found");
    let from = post(&server, &agent, "/v1/sessions", &json!({"from": own.id()}));
    from.is_refused(404, "session_not_found");
    let listed = get("/v1/sessions").is(200).json();
    let sessions = listed["sessions"].as_array().expect("a list");
    assert!(sessions.len() >= 6 && sessions.iter().all(|s| s["sandbox"].is_object()), "{listed}");
    // What would be done from outside of it.
    let saved = h.path("saved").display().to_string();
    h.sessile(&["save", own.id(), "--output", &saved]).exits(0);
    let restore = format!("/v1/restore?path={saved}");
    let restore = server.request("POST", &restore).token(&agent).send();
    restore.is_refused(403, "forbidden");
    let mine = sessions[0]["session_id"].as_str().expect("an id");
    let save = format!("/v1/sessions/{mine}/save");
    post(&server, &agent, &save, &json!({"path": "elsewhere"})).is_refused(403, "forbidden");
    assert!(!h.path("elsewhere").exists());
    // A fork is in the same sandbox.
    let fork = post(&server, &agent, &format!("/v1/sessions/{mine}/fork"), &json!({})).is(201);
    let fork = fork.json()["session_ids"][0].clone();
    assert_eq!(exec(&fork, &agent).is(200).json()["stdout"], "/workspace\n");
}

#[test]
fn a_session_that_begins_from_a_stricter_one_is_as_strict() {
    let h = harness!();
    std::fs::write(h.path("secret"), "s").expect("a file");
    let server = h.serve();
    let agent = token(&h, "agent", &["--sandbox", "full-access"]);
    let started = |key: Option<&str>, body: &Value| {
        let mut order = server.request("POST", "/v1/sessions").token(&agent).json(body);
        if let Some(key) = key {
            order = order.header("idempotency-key", key);
        }
        let id = order.send().is(201).json()["session_id"].clone();
        id.as_str().expect("an id").to_owned()
    };
    let files_of = |id: &str| {
        let path = format!("/v1/sessions/{id}/exec");
        let listed = post(&server, &agent, &path, &json!({"command": "ls secret; echo $x"}));
        listed.is(200).json()["stdout"].as_str().expect("text").to_owned()
    };
    let rules = json!([{"pattern": "/secret", "permission": "none"}]);
    let strict = started(None, &json!({"sandbox": {"permissions": rules}}));
    let path = format!("/v1/sessions/{strict}/exec");
    post(&server, &agent, &path, &json!({"command": "x=41"})).is(200);
    assert_eq!(files_of(&started(None, &json!({}))), "secret\n\n");
    for key in [None, Some("once")] {
        let copy = started(key, &json!({"from": strict}));
        assert_eq!(files_of(&copy), "41\n", "{key:?}");
    }
}

#[test]
fn a_layer_that_a_token_demands_is_applied_by_its_owner_alone() {
    let h = harness!();
    let server = h.serve();
    let writer = token(&h, "writer", &["--sandbox", "full-access"]);
    let made = post(&server, &writer, "/v1/sessions", &json!({})).is(201).json();
    let place = format!("/v1/sessions/{}", made["session_id"].as_str().expect("an id"));
    let exec = format!("{place}/exec");
    post(&server, &writer, &exec, &json!({"command": "echo x >written"})).is(200);
    let apply = format!("{place}/apply");
    post(&server, &writer, &apply, &json!({})).is_refused(403, "forbidden");
    assert!(!h.path("written").exists());
    server.post(&apply, &json!({})).is(200);
    assert_eq!(std::fs::read_to_string(h.path("written")).expect("a file"), "x\n");
}

#[test]
fn a_server_that_confines_does_so_for_its_owner_too() {
    let h = harness!();
    let outside = h.session();
    let server = h.server(&["--sandbox", "read-only", "--workspace-root", "."]);
    let tool = json!({"action": "exec", "command": PROBE});
    let told = server.post("/v1/tools/runtime", &tool).is(200).json();
    assert_eq!(told["stdout"], "/workspace\n", "{told}");
    let made = server.post("/v1/sessions", &json!({"sandbox": "full-access"})).is(201).json();
    let id = made["session_id"].as_str().expect("an id");
    assert_eq!(server.exec(id, PROBE)["stdout"], "/workspace\n");
    server.get(&format!("/v1/sessions/{}", outside.id())).is_refused(404, "session_not_found");
    // A token can only be stricter.
    let lax = token(&h, "lax", &["--sandbox", "full-access"]);
    let told = post(&server, &lax, "/v1/tools/runtime", &tool).is(200).json();
    assert_eq!(told["stdout"], "/workspace\n", "{told}");
    assert!(!h.path("made").exists());
}

#[test]
fn the_tool_and_mcp_are_confined_by_whoever_starts_them() {
    let h = harness!();
    let request = json!({"action": "exec", "command": format!("{PROBE}; x=1")}).to_string();
    let told = h.sessile(&["tool", "--sandbox", "read-only", &request]).json();
    assert_eq!(told["stdout"], "/workspace\n", "{told}");
    let again = json!({"action": "exec", "command": "echo $x"}).to_string();
    let told = h.sessile(&["tool", "--sandbox", "read-only", &again]).json();
    assert_eq!(told["stdout"], "1\n", "{told}");
    // Another one than that without a sandbox; the environment says it as well.
    let plain = h.sessile(&["tool", &again]).json();
    assert_eq!(plain["stdout"], "\n");
    let mut command = h.command(&["tool", &again]);
    command.env("SESSILE_SANDBOX", "read-only");
    let told = sessile_testkit::Client::spawn(command, b"").finish().json();
    assert_eq!(told["stdout"], "1\n");
    let asked = json!({"action": "exec", "command": "pwd", "sandbox": false}).to_string();
    let refused = h.sessile(&["tool", "--sandbox", "read-only", &asked]).json();
    assert_eq!(refused["success"], false, "{refused}");

    let mut peer = Peer::start(&h, &["--sandbox", "read-only", "--tools", "all"]);
    let said = peer.exec(PROBE);
    assert!(said.contains("/workspace") && !said.contains("made"), "{said}");
    let started = peer.call("session_start", &json!({}));
    let id = started["structuredContent"]["session_id"].clone();
    let ran = peer.call("session_exec", &json!({"session_id": id, "command": PROBE}));
    assert_eq!(ran["structuredContent"]["stdout"], "/workspace\n", "{ran}");
    let refused = peer.call("session_start", &json!({"sandbox": false}));
    assert_eq!(refused["isError"], true, "{refused}");
    peer.close();
    assert!(!h.path("made").exists());
}

#[test]
fn a_token_tells_its_sandbox_and_a_bad_one_is_not_made() {
    let h = harness!();
    token(&h, "agent", &["--sandbox", "agent-safe", "--network", "api.example.com"]);
    let listed = h.sessile(&["token", "list"]).json();
    assert_eq!(listed[0]["sandbox"]["preset"], "agent-safe");
    assert_eq!(listed[0]["sandbox"]["network"], json!(["api.example.com"]));
    let refused = h.sessile(&["token", "create", "x", "--sandbox", "nope"]).exits(1).errors();
    assert!(refused.contains("neither a preset"), "{refused}");
    let refused = h.no_server(&["--sandbox", "nope"]);
    assert!(refused.contains("neither a preset"), "{refused}");
    // A file is looked for where the configuration is.
    std::fs::create_dir(h.path("etc")).expect("a directory");
    std::fs::write(h.path("etc/conf.toml"), "sandbox = \"policy.toml\"\n").expect("a file");
    std::fs::write(h.path("etc/policy.toml"), "\nextends = \"nope\"\n").expect("a file");
    let refused = h.no_server(&["--config", "etc/conf.toml"]);
    assert!(refused.contains("etc/policy.toml:2: there is no preset"), "{refused}");
}
