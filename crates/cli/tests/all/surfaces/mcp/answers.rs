//! What a model gets to read, and what a program gets.

use super::peer::Peer;
use super::{exact, text};
use serde_json::{Value, json};
use sessile_testkit::{harness, until};

#[test]
fn an_answer_is_text_for_a_model_and_exact_for_a_program() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let result = peer.runtime(&json!({"action": "exec", "command": "echo out; echo err >&2"}));
    let told = text(&result);
    assert!(told.starts_with("exit code 0 after "), "{told}");
    assert!(told.ends_with("stdout:\nout\nstderr:\nerr"), "{told}");
    assert_eq!(result["isError"], false);
    let exact = exact(&result);
    assert_eq!(exact["success"], true);
    assert_eq!((&exact["stdout"], &exact["stderr"]), (&json!("out\n"), &json!("err\n")));
    assert_eq!((&exact["run"], &exact["new_session"]), (&json!(1), &json!(true)));
    peer.close();
}

#[test]
fn a_command_that_fails_is_no_error_of_the_protocol() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let result = peer.runtime(&json!({"action": "exec", "command": "ls /nowhere"}));
    assert_eq!((&result["isError"], &exact(&result)["exitCode"]), (&json!(true), &json!(2)));
    assert!(text(&result).contains("/nowhere"), "{result}");
    let raised = peer.runtime(&json!({"action": "eval", "command": "1/0"}));
    assert!(text(&raised).contains("error: ZeroDivisionError: division by zero"), "{raised}");
    let value = peer.runtime(&json!({"action": "eval", "command": "6*7"}));
    assert!(text(&value).ends_with("result:\n42"), "{value}");
    peer.close();
}

#[test]
fn wrong_arguments_are_answered_with_what_to_do() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "all"]);
    for (tool, arguments, hint, code) in [
        ("runtime", json!({"action": "jump"}), "Must be one of: exec, eval", "bad_request"),
        ("runtime", json!({}), "action is required", "bad_request"),
        ("runtime", json!({"action": "exec"}), "command is required", "bad_request"),
        ("runtime", json!({"action": "output", "run": 1}), "no session yet", "session_not_found"),
        (
            "runtime",
            json!({"action": "state", "workspace": "/nowhere"}),
            "not a directory",
            "bad_directory",
        ),
        ("session_exec", json!({"command": "ls"}), "session_start", "bad_request"),
        (
            "session_exec",
            json!({"session_id": "sess_00000000", "command": "ls"}),
            "not found",
            "session_not_found",
        ),
        ("session_start", json!({"shell": "perl"}), "perl", "unknown_program"),
        ("session_list", json!({"status": "odd"}), "must be one of", "bad_request"),
        (
            "runtime",
            json!({"action": "state", "sessionKey": "a"}),
            "unknown field \"sessionKey\"; did you mean \"session_key\"?",
            "bad_request",
        ),
        ("session_list", json!({"max": 5}), "there are status, limit", "bad_request"),
    ] {
        let result = peer.call(tool, &arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains(hint), "no {hint:?} in {result}");
        assert_eq!(exact(&result)["success"], false);
        assert_eq!(exact(&result)["code"], code, "{result}");
    }
    let id = peer.begin("jump", &json!({}));
    let refused = peer.reply(id);
    assert_eq!(refused["error"]["code"], -32602);
    assert!(refused["error"]["message"].as_str().unwrap().contains("runtime, session_start"));
    peer.close();
}

#[test]
fn a_model_sees_what_a_person_would() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let command = r"printf '\033[31mred\033[0m\n  0%%\r 50%%\r100%%\nabc\b\b\bxyz\n'";
    let result = peer.runtime(&json!({"action": "exec", "command": command}));
    assert!(text(&result).ends_with("stdout:\nred\n100%\nxyz"), "{}", text(&result));
    assert_eq!(exact(&result)["stdout"], "red\n100%\nxyz\n");
    assert_eq!(exact(&result)["rendered"], json!(["stdout"]));
    let raw = peer.runtime(&json!({"action": "exec", "command": command, "raw": true}));
    assert!(exact(&raw)["stdout"].as_str().unwrap().starts_with("\u{1b}[31mred"));
    peer.close();
}

#[test]
fn long_output_is_read_on_where_the_answer_says() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let result = peer.runtime(&json!({"action": "exec", "command": "seq 100000"}));
    let told = text(&result);
    assert!(told.len() < 17_000, "{} characters", told.len());
    let exactly = exact(&result).to_string();
    assert!(exactly.len() < 18_000, "{} bytes", exactly.len());
    assert!(told.contains("\n1\n2\n3\n") && told.ends_with("\n99999\n100000"));
    let call = told.split("read on with ").nth(1).unwrap().split(" …]").next().unwrap();
    let mut next: Value = serde_json::from_str(call).unwrap();
    let shown = told.split("stdout:\n").nth(1).unwrap().split("[…").next().unwrap();
    let mut all = shown.to_owned();
    loop {
        let piece = peer.runtime(&next);
        let piece = exact(&piece);
        all.push_str(piece["data"].as_str().unwrap());
        next["from"] = piece["next"].clone();
        if piece["more"] == false {
            break;
        }
    }
    let expected: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert!(all == expected, "{} bytes of {}", all.len(), expected.len());
    peer.close();
}

#[test]
fn a_session_is_shown_and_reset() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let started = peer.call("session_start", &json!({"env": ["WHO=me"]}));
    let id = exact(&started)["session_id"].as_str().unwrap().to_owned();
    let mut call = |tool: &str, more: Value| {
        let mut all = json!({"session_id": id});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        peer.call(tool, &all)
    };
    call("session_exec", json!({"command": "x=41; export E=e MY_TOKEN=hunter22; echo $WHO"}));
    let state = call("session_state", json!({}));
    assert!(state.to_string().len() < 3000, "{state:#}");
    assert_eq!(exact(&state)["state"]["variables"]["bash"]["x"], "41");
    assert!(text(&state).contains("\"MY_TOKEN\": \"[masked]\""), "{state:#}");
    assert_eq!(exact(&state)["state"]["env_vars"]["WHO"], json!(null));
    let all = call("session_state", json!({"all": true}));
    assert_eq!(exact(&all)["state"]["env_vars"]["WHO"], "me");
    let reset = call("session_reset", json!({}));
    assert!(text(&reset).contains("fresh"), "{reset}");
    let empty = call("session_exec", json!({"command": "echo [$x$WHO]"}));
    assert_eq!(exact(&empty)["stdout"], "[me]\n");
    peer.close();
}

#[test]
fn sessions_are_started_used_listed_and_ended() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let started = peer.call("session_start", &json!({"name": "mine", "env": {"WHO": "me"}}));
    let id = exact(&started)["session_id"].as_str().unwrap().to_owned();
    let mut run = |mut all: Value| {
        all["session_id"] = id.as_str().into();
        peer.call("session_exec", &all)
    };
    assert_eq!(exact(&run(json!({"command": "x=$WHO; echo $x"})))["stdout"], "me\n");
    let python = run(json!({"command": "print(6*7)", "language": "python"}));
    assert_eq!(exact(&python)["stdout"], "42\n");
    let failed = run(json!({"command": "exit 3"}));
    assert_eq!((&failed["isError"], &exact(&failed)["exit_code"]), (&json!(true), &json!(3)));
    assert_eq!(exact(&failed)["kernel"], "restarted");
    assert!(text(&failed).contains("a new one has its state"), "{failed}");
    assert_eq!(exact(&run(json!({"run": 1})))["stdout"], "me\n");
    assert_eq!(exact(&run(json!({"run": 1, "from": 1})))["data"], "e\n");
    // The count is written down a moment later.
    let line = format!("{id} (mine): active, bash, 3 runs, in ");
    until("three runs", || {
        let listed = peer.call("session_list", &json!({"status": "active"}));
        text(&listed).starts_with(&line).then_some(())
    });
    let ended = peer.call("session_end", &json!({"session_id": id}));
    assert_eq!(exact(&ended)["status"], "terminated");
    let again = peer.call("session_exec", &json!({"session_id": id, "command": "ls"}));
    assert_eq!(again["isError"], true);
    peer.close();
}
