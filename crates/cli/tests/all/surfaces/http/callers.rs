//! Under which names and from which pages a server is called, and what of its own
//! it lets its sessions and callers see.

use serde_json::json;
use sessile_testkit::http::{Response, connect};
use sessile_testkit::{Harness, Server, harness};
use std::io::{Read, Write};

/// A request whose first lines are written as they are.
fn raw(server: &Server, head: &str) -> Response {
    let mut stream = connect(server.address);
    let token = server.token();
    let text = format!("{head}authorization: Bearer {token}\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).expect("a server");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    Response::parse(&bytes).expect("an answer")
}

#[test]
fn every_name_in_a_request_is_the_servers() {
    let h = harness!();
    let server = h.serve();
    let own = server.address;
    let get =
        |target: &str, headers: &str| raw(&server, &format!("GET {target} HTTP/1.1\r\n{headers}"));
    let host = format!("host: {own}\r\n");
    get("/v1/sessions", &host).is(200);
    get(&format!("http://{own}/v1/sessions"), &host).is(200);
    get("/v1/sessions", &format!("{host}host: evil.example\r\n")).is_refused(400, "bad_request");
    get("/v1/sessions", &format!("{host}{host}")).is_refused(400, "bad_request");
    let other = get("http://evil.example/v1/sessions", &host);
    other.is_refused(403, "host_not_allowed");
    let differs = get(&format!("http://localhost:{}/v1/sessions", own.port()), &host);
    differs.is_refused(400, "bad_request");
    get("/v1/sessions", "").is_refused(403, "host_not_allowed");
    let page = |origin: &str| get("/v1/sessions", &format!("{host}origin: {origin}\r\n"));
    page(&format!("http://{own}")).is(200);
    page(&format!("https://{own}")).is_refused(403, "origin_not_allowed");
    page(&format!("http://{own}\r\norigin: http://evil")).is_refused(400, "bad_request");
}

#[test]
fn a_limited_token_does_not_see_what_is_counted_of_all() {
    let h = harness!();
    std::fs::create_dir(h.path("mine")).unwrap();
    let server = h.serve();
    let token = |args: &[&str]| {
        let made = h.sessile(&[&["token", "create"], args].concat()).json();
        made["token"].as_str().expect("a token").to_owned()
    };
    let metrics = |token: &str| server.request("GET", "/metrics").token(token).send();
    metrics(&token(&["limited", "--workspace", "mine"])).is_refused(403, "forbidden");
    metrics(&token(&["whole"])).is(200);
    metrics(server.token()).is(200);
}

#[test]
fn the_owner_is_told_how_a_directory_can_be_used() {
    let h = harness!();
    let server = h.serve();
    let refused = server.post("/v1/sessions", &json!({"cwd": "/"})).is_refused(403, "forbidden");
    assert!(refused.text().contains("--workspace-root"), "{}", refused.text());
    let tool = json!({"action": "exec", "command": "pwd", "workspace": "/"});
    let refused = server.post("/v1/tools/runtime", &tool).is(200).json();
    let told = refused["error"].as_str().expect("an error");
    assert!(told.contains("--workspace-root"), "{told}");
}

const SHOWN: &str = "echo $AWS_SECRET_ACCESS_KEY,$SESSILE_TOKEN,$MINE,$LC_TIME,${PATH:+path},$OWN";

fn serve(h: &Harness, args: &[&str]) -> Server {
    let mut command = h.command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
    command.env("AWS_SECRET_ACCESS_KEY", "secret").env("SESSILE_TOKEN", "secret");
    command.env("MINE", "mine").env("LC_TIME", "C");
    Server::spawn(command, h)
}

#[test]
fn sessions_have_what_is_allowed_of_the_servers_environment() {
    let h = harness!();
    let server = serve(&h, &["--allow-env", "SESSILE_TEST"]);
    let body = json!({"env": {"OWN": "own"}});
    let path = server.started(&body);
    assert_eq!(server.prints_at(&path, SHOWN), ",,,C,path,own\n");
    let python = json!({"command": "import os; print(os.environ.get('AWS_SECRET_ACCESS_KEY'))"});
    let seen = server.post(&format!("{path}/eval"), &python).is(200).json();
    assert_eq!(seen["stdout"], "None\n");
    // One that begins from it, one without a session, and one that was lost.
    let copy = server.started(&json!({"from": path.rsplit('/').next().unwrap()}));
    assert_eq!(server.prints_at(&copy, SHOWN), ",,,C,path,own\n", "that one's state");
    let once = server.post("/v1/exec", &json!({"command": SHOWN})).is(200).json();
    assert_eq!(once["stdout"], ",,,C,path,\n");
    let keeper = server.get(&path).json()["keeper_pid"].as_i64().unwrap();
    let keeper = sessile_testkit::Process::of(i32::try_from(keeper).unwrap());
    keeper.kill().wait_gone();
    assert_eq!(server.prints_at(&path, SHOWN), ",,,C,path,own\n");
    drop(server);
    let server = serve(&h, &["--allow-env", "SESSILE_TEST", "--allow-env", "M*"]);
    let path = server.started(&json!({}));
    assert_eq!(server.prints_at(&path, SHOWN), ",,mine,C,path,\n");
}

#[test]
fn a_proxys_password_stays_with_the_server() {
    let h = harness!();
    let serve = |args: &[&str]| {
        let mut command = h.command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        command.env("http_proxy", "http://me:hunter2@proxy:3128");
        Server::spawn(command, &h)
    };
    let shown = |server: &Server| server.prints_at(&server.started(&json!({})), "echo $http_proxy");
    let server = serve(&["--allow-env", "SESSILE_TEST"]);
    assert_eq!(shown(&server), "http://proxy:3128\n");
    drop(server);
    let server = serve(&["--allow-env", "SESSILE_TEST", "--allow-env", "http_proxy"]);
    assert_eq!(shown(&server), "http://me:hunter2@proxy:3128\n");
}

#[test]
fn the_command_line_keeps_its_callers_environment() {
    let h = harness!();
    let mut command = h.command(&["run", "echo $AWS_SECRET_ACCESS_KEY"]);
    let output = command.env("AWS_SECRET_ACCESS_KEY", "secret").output().expect("sessile");
    assert!(String::from_utf8_lossy(&output.stdout).contains("secret"), "{output:?}");
}
