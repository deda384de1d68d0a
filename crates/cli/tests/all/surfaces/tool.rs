//! The `runtime` tool: one JSON request in, one JSON answer out.

use serde_json::{Value, json};
use sessile_testkit::{Client, Harness, harness};
use std::path::{Path, PathBuf};

/// Calls the tool with a request on stdin.
#[track_caller]
fn call(h: &Harness, request: &Value) -> Value {
    h.begin(&["tool"], request.to_string().as_bytes()).finish().json()
}

#[track_caller]
fn exec(h: &Harness, command: &str) -> Value {
    call(h, &json!({"action": "exec", "command": command}))
}

#[track_caller]
fn eval(h: &Harness, command: &str, language: &str) -> Value {
    call(h, &json!({"action": "eval", "command": command, "language": language}))
}

/// Each of the fields has its value.
#[track_caller]
fn assert_has(answer: &Value, fields: &Value) {
    for (name, value) in fields.as_object().expect("fields") {
        assert_eq!(&answer[name], value, "{name} of {answer:#}");
    }
}

fn workspace(h: &Harness, name: &str) -> PathBuf {
    let path = h.path(name);
    std::fs::create_dir(&path).unwrap();
    path
}

#[test]
fn exec_answers_with_all_of_its_fields() {
    let h = harness!();
    let first = exec(&h, "x=41; echo out; echo err >&2");
    let fields = json!({
        "success": true, "stdout": "out\n", "stderr": "err\n", "exitCode": 0, "error": null,
        "language": "bash", "run": 1, "kernel": "kept", "timed_out": false, "new_session": true,
    });
    assert_has(&first, &fields);
    assert!(first["duration"].is_number(), "{first}");
    assert!(first["session_id"].as_str().unwrap().starts_with("sess_"), "{first}");
    let second = exec(&h, "echo $((x+1))");
    assert_has(&second, &json!({"stdout": "42\n", "session_id": first["session_id"], "run": 2}));
    assert_eq!(second.get("new_session"), None, "{second}");
}

#[test]
fn the_request_may_be_an_argument() {
    let h = harness!();
    let answer = h.sessile(&["tool", r#"{"action": "exec", "command": "echo hi"}"#]).json();
    assert_has(&answer, &json!({"success": true, "stdout": "hi\n"}));
}

/// What fails: the request's further fields, the exit code, the kernel, and the
/// error.
fn failures() -> Vec<(Value, i64, &'static str, &'static str)> {
    let python = |command: &str| json!({"command": command, "language": "python"});
    vec![
        (json!({"command": "(exit 3)"}), 3, "kept", "exit code 3"),
        (json!({"command": "exit 4"}), 4, "restarted", "exit code 4"),
        (json!({"command": "nope-nope 2>/dev/null"}), 127, "kept", "exit code 127"),
        (python("1/0"), 1, "kept", "ZeroDivisionError: division by zero"),
        (python("raise KeyError"), 1, "kept", "KeyError"),
        (python("raise SystemExit(6)"), 6, "kept", "SystemExit: 6"),
        (python("import os; os._exit(7)"), 7, "fresh", "exit code 7"),
        (json!({"command": "sleep 1000", "timeout_ms": 200}), 130, "kept", "timed out after"),
        (
            json!({"command": "while True: pass", "language": "python", "timeout_ms": 500}),
            130,
            "kept",
            "timed out after",
        ),
    ]
}

#[test]
fn success_is_false_and_error_set_whenever_it_failed() {
    let h = harness!();
    eval(&h, "x = 1", "python");
    for action in ["exec", "eval"] {
        for (mut request, code, kernel, error) in failures() {
            let fields = request.as_object_mut().unwrap();
            fields.insert("action".into(), action.into());
            fields.entry("language").or_insert("bash".into());
            let answer = call(&h, &request);
            assert_has(&answer, &json!({"success": false, "exitCode": code, "kernel": kernel}));
            assert!(answer["error"].as_str().unwrap().starts_with(error), "{request}: {answer:#}");
            assert_eq!(answer["timed_out"], error.starts_with("timed out"), "{answer:#}");
        }
    }
    assert_has(&exec(&h, "echo fine"), &json!({"success": true, "error": null}));
}

#[test]
fn eval_answers_with_the_value() {
    let h = harness!();
    let answer = call(&h, &json!({"action": "eval", "command": "r = 6\nprint('p')\nr * 7"}));
    let fields = json!({"success": true, "result": "42", "stdout": "p\n", "language": "python"});
    assert_has(&answer, &fields);
    let none = eval(&h, "r += 1", "python");
    assert_has(&none, &json!({"success": true, "result": null}));
    assert!(none.as_object().unwrap().contains_key("result"), "{none}");
    assert_has(&eval(&h, "r", "python"), &json!({"result": "7"}));
    assert_has(&eval(&h, "echo a; echo b", "bash"), &json!({"result": "a\nb"}));
    if !Harness::shells(&["node"]).is_empty() {
        let sorted = eval(&h, "[3, 1, 2].sort()", "node");
        assert_has(&sorted, &json!({"result": "[ 1, 2, 3 ]", "language": "node"}));
    }
}

#[test]
fn what_goes_to_a_model_is_bounded() {
    let h = harness!();
    let answer = exec(&h, "seq 1 200000");
    let length = answer.to_string().len();
    assert!(length < 17_000, "{length} bytes");
    let stdout = answer["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("1\n2\n") && stdout.ends_with("\n200000\n"), "{stdout}");
    // The hint is a command that goes on where the beginning ends.
    let hint = stdout.split("read on with: ").nth(1).unwrap().split(" …]").next().unwrap();
    let head = stdout.split("[…").next().unwrap();
    let next = exec(&h, hint);
    let expected: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    let read_on = next["stdout"].as_str().unwrap();
    assert!(expected.starts_with(&format!("{head}{read_on}")), "{read_on}");
    let few = call(&h, &json!({"action": "exec", "command": "seq 1 200000", "max_output": 100}));
    assert!(few["stdout"].as_str().unwrap().len() < 400, "{few}");
    let most = json!({"action": "exec", "command": "seq 1 100000", "max_output": 1 << 20});
    assert_eq!(call(&h, &most)["stdout"].as_str().unwrap().len(), 588_895);
    let raised = exec(&h, &format!("{}; false", "echo x >&2; ".repeat(9000)));
    assert!(raised.to_string().len() < 18_000, "{}", raised.to_string().len());
}

#[test]
fn a_model_is_told_what_a_person_would_want_to_see() {
    let h = harness!();
    let bar = "for i in range(5001): print(f'\\r{i:5}/5000 ' + '#' * (i // 100), end='')";
    let answer = eval(&h, &format!("{bar}\nprint('\\n\\x1b[32mdone\\x1b[0m')"), "python");
    let done = format!(" 5000/5000 {}\ndone\n", "#".repeat(50));
    assert_has(&answer, &json!({"stdout": done, "rendered": ["stdout"]}));
    let raw = json!({"action": "exec", "command": r"printf '\033[32mok\033[0m'", "raw": true});
    assert_has(&call(&h, &raw), &json!({"stdout": "\u{1b}[32mok\u{1b}[0m", "rendered": null}));
    let functions = "def a(n): b(n - 1) if n else 1 / 0\ndef b(n): a(n)\n";
    let deep = eval(&h, &format!("{functions}a(200)"), "python");
    let stderr = deep["stderr"].as_str().unwrap();
    assert!(stderr.len() < 4000, "{} bytes", stderr.len());
    assert!(stderr.contains(" frames left out; read on with: tail -c +"), "{stderr}");
    assert!(stderr.trim_end().ends_with("ZeroDivisionError: division by zero"), "{stderr}");
}

#[test]
fn a_state_is_what_the_session_has_made_its_own_without_secrets() {
    let h = harness!();
    exec(&h, "export E=e MY_TOKEN=hunter22; x=41; db_password=hunter22; ulimit -t 7777; cd /usr");
    eval(&h, "import math\napi_key = 'abcd1234efgh5678'\ndef area(r): return r", "python");
    let answer = call(&h, &json!({"action": "state"}));
    let length = answer.to_string().len();
    assert!(length < 2000, "{length} bytes: {answer:#}");
    assert!(!answer.to_string().contains("hunter22"), "{answer:#}");
    let state = &answer["state"];
    assert_eq!(state["env_vars"], json!({"E": "e", "MY_TOKEN": "[masked]"}));
    assert_eq!(state["kernels"]["bash"]["limits"]["-t"], "7777 7777", "{state:#}");
    assert_eq!(state["kernels"]["bash"]["limits"].as_object().unwrap().len(), 1, "{state:#}");
    assert_eq!(state["variables"]["python"]["api_key"]["repr"], "[masked]");
    let all = call(&h, &json!({"action": "state", "all": true}));
    assert!(all["state"]["env_vars"]["PATH"].is_string(), "{all:#}");
    assert!(!all.to_string().contains("hunter22"), "{all:#}");
    // For people and programs it is complete.
    let id = answer["session_id"].as_str().unwrap();
    let plain = h.sessile(&["state", id]).json();
    assert_eq!(plain["env_vars"]["MY_TOKEN"], "hunter22");
    assert_eq!(plain["env_changed"], json!(null));
}

#[test]
fn what_models_write_is_taken() {
    let h = harness!();
    assert_has(&call(&h, &json!({"action": "eval", "code": "6 * 7"})), &json!({"result": "42"}));
    let floats =
        json!({"action": "exec", "command": "echo $A", "timeout_ms": 2000.0, "env": ["A=b=c"]});
    assert_has(&call(&h, &floats), &json!({"stdout": "b=c\n"}));
}

#[test]
fn state_is_that_of_all_live_kernels() {
    let h = harness!();
    exec(&h, "cd /usr; export E=e; x=41; greet() { echo hi; }");
    eval(&h, "import math\nfrom os import path\ny = 5\ndef area(r): return r", "python");
    let has_node = !Harness::shells(&["node"]).is_empty();
    if has_node {
        eval(&h, "const z = 6; function twice(n) { return 2 * n }; require('node:os'); 0", "node");
    }
    let answer = call(&h, &json!({"action": "state"}));
    assert_has(&answer, &json!({"success": true}));
    let state = &answer["state"];
    assert_has(state, &json!({"working_dir": "/usr"}));
    assert_eq!(state["env_vars"]["E"], "e");
    assert_eq!(state["variables"]["bash"]["x"], "41");
    assert_eq!(state["variables"]["python"]["y"]["repr"], "5");
    let has = |section: &str, name: &str| {
        let found = state[section].as_array().unwrap().contains(&name.into());
        assert!(found, "{name} in {}", state[section]);
    };
    for (section, name) in
        [("functions", "greet"), ("functions", "area"), ("imports", "math"), ("imports", "os")]
    {
        has(section, name);
    }
    if has_node {
        has("functions", "twice");
        has("imports", "node:os");
        assert_eq!(state["variables"]["node"]["z"]["repr"], "6");
    }
    let history = state["history"].as_array().unwrap();
    assert_eq!(history.len(), if has_node { 3 } else { 2 });
}

#[test]
fn history_has_the_newest_entries() {
    let h = harness!();
    for i in 0..25 {
        exec(&h, &format!("echo {i}; (exit {i})"));
    }
    eval(&h, "1", "python");
    let history = |request: Value| {
        let answer = call(&h, &request);
        assert_has(&answer, &json!({"success": true}));
        answer["history"].as_array().unwrap().clone()
    };
    let newest = history(json!({"action": "history", "limit": 2}));
    assert_eq!(newest.len(), 2);
    assert_has(
        &newest[0],
        &json!({"command": "echo 24; (exit 24)", "language": "bash", "exitCode": 24}),
    );
    assert_has(&newest[1], &json!({"command": "1", "language": "python", "exitCode": 0}));
    for entry in &newest {
        assert!(entry["duration"].is_number() && entry["timestamp"].is_string(), "{entry}");
    }
    assert_eq!(history(json!({"action": "history"})).len(), 20);
    assert_eq!(history(json!({"action": "history", "limit": 0})).len(), 0);
    assert_eq!(history(json!({"action": "history", "limit": 1000})).len(), 26);
}

#[test]
fn reset_gives_fresh_kernels_and_an_empty_history() {
    let h = harness!();
    let first = exec(&h, "x=1; cd /usr; sleep 1000 & echo $!");
    let child =
        sessile_testkit::Process::of(first["stdout"].as_str().unwrap().trim().parse().unwrap());
    eval(&h, "x = 1", "python");
    let answer = call(&h, &json!({"action": "reset"}));
    assert_has(&answer, &json!({"success": true, "session_id": first["session_id"]}));
    assert!(answer["message"].is_string(), "{answer}");
    child.wait_gone();
    let history = call(&h, &json!({"action": "history"}));
    assert_has(&history, &json!({"success": true, "history": []}));
    let here = format!("[]\n{}\n", h.root().display());
    assert_has(&exec(&h, "echo [$x]; pwd"), &json!({"stdout": here}));
    assert_has(&eval(&h, "'x' in globals()", "python"), &json!({"result": "False"}));
}

#[test]
fn stdin_and_env_are_for_one_command() {
    let h = harness!();
    let given = json!({"action": "exec", "command": "sort; echo $WHO", "stdin": "b\na\n", "env": {"WHO": "me"}});
    assert_has(&call(&h, &given), &json!({"stdout": "a\nb\nme\n"}));
    assert_has(&exec(&h, "sort; echo [$WHO]"), &json!({"stdout": "[]\n"}));
    let code = "import os; (input(), os.environ['WHO'])";
    let given = json!({"action": "eval", "command": code, "stdin": "line", "env": {"WHO": "me"}});
    assert_has(&call(&h, &given), &json!({"result": "('line', 'me')"}));
    let again = eval(&h, "os.environ.get('WHO'), __import__('sys').stdin.read()", "python");
    assert_has(&again, &json!({"result": "(None, '')"}));
}

#[test]
fn a_timeout_of_none_and_a_null_field_are_as_documented() {
    let h = harness!();
    let never = json!({"action": "exec", "command": "sleep 0.3; echo done", "timeout_ms": 0});
    assert_has(&call(&h, &never), &json!({"stdout": "done\n", "timed_out": false}));
    let nulls = json!({
        "action": "exec", "command": "echo hi", "language": null, "workspace": null,
        "session_key": null, "timeout_ms": null, "stdin": null, "env": null,
    });
    assert_has(&call(&h, &nulls), &json!({"success": true, "stdout": "hi\n", "run": 2}));
}

const ACTIONS: &str = "Must be one of: exec, eval, state, reset, history";

/// A request as it is sent, and how its error begins or what it has to name.
const WRONG: &[(&str, &str)] = &[
    (
        r#"{"action": "jump"}"#,
        "Invalid action: jump. Must be one of: exec, eval, state, reset, history",
    ),
    (r#"{"action": ""}"#, ACTIONS),
    (r#"{"action": "EXEC", "command": "x=2"}"#, ACTIONS),
    (r#"{"action": 5}"#, "action"),
    (r#"{"action": null}"#, ACTIONS),
    (r#"{"command": "x=2"}"#, ACTIONS),
    (r#"{"action": "exec"}"#, "command is required for exec action"),
    (r#"{"action": "eval"}"#, "command is required for eval action"),
    (r#"{"action": "exec", "command": ""}"#, "command is required for exec action"),
    (r#"{"action": "exec", "command": " \n"}"#, "command is required for exec action"),
    (r#"{"action": "exec", "command": ["x=2"]}"#, "command"),
    (r#"{"action": "exec", "command": "x=2", "language": "perl"}"#, "bash, python, node"),
    (r#"{"action": "exec", "command": "x=2", "language": 3}"#, "language"),
    (r#"{"action": "exec", "command": "x=2", "timeout_ms": -1}"#, "timeout_ms"),
    (r#"{"action": "exec", "command": "x=2", "timeout_ms": "1s"}"#, "timeout_ms"),
    (r#"{"action": "exec", "command": "x=2", "timeout_ms": 1.5}"#, "timeout_ms"),
    (r#"{"action": "exec", "command": "x=2", "stdin": 1}"#, "stdin"),
    (r#"{"action": "exec", "command": "x=2", "env": 5}"#, "env"),
    (r#"{"action": "exec", "command": "x=2", "env": ["A"]}"#, "NAME=value"),
    (r#"{"action": "exec", "command": "x=2", "env": {"A": 1}}"#, "env.A"),
    (r#"{"action": "exec", "command": "x=2", "env": {"": "1"}}"#, "env"),
    (r#"{"action": "exec", "command": "x=2", "env": {"A=B": "1"}}"#, "env"),
    (r#"{"action": "exec", "command": "x=2", "env": {"A": "\u0000"}}"#, "env"),
    (r#"{"action": "exec", "command": "x=2", "workspace": 1}"#, "workspace"),
    (r#"{"action": "exec", "command": "x=2", "workspace": "/nowhere"}"#, "/nowhere"),
    (r#"{"action": "exec", "command": "x=2", "workspace": "/etc/passwd"}"#, "/etc/passwd"),
    (r#"{"action": "exec", "command": "x=2", "session_key": 1}"#, "session_key"),
    (r#"{"action": "history", "limit": -1}"#, "limit"),
    (r#"{"action": "exec", "command": "x=2", "sessionKey": "a"}"#, "did you mean \"session_key\"?"),
    (r#"{"action": "reset", "everything": true}"#, "unknown field \"everything\""),
    (r#"{"action": "exec", "command": "x=2", "code": "x=3"}"#, "either command or code"),
    (r#"{"action": "history", "limit": "all"}"#, "limit"),
    (r#"{"action": "reset", "workspace": ["."]}"#, "workspace"),
    (r#"{"action": "reset", "session_key": {}}"#, "session_key"),
    ("", "Invalid JSON"),
    ("ls", "Invalid JSON"),
    (r#"{"action": "exec", "command": "x=2""#, "Invalid JSON"),
    (r#"{"action": "reset"} {"action": "reset"}"#, "Invalid JSON"),
    ("[]", "JSON object"),
    ("null", "JSON object"),
    (r#""exec""#, "JSON object"),
];

#[track_caller]
fn assert_refused(h: &Harness, request: &str, word: &str) {
    let answer = h.begin(&["tool"], request.as_bytes()).finish().json();
    assert_eq!(answer["success"], false, "{request}: {answer}");
    let error = answer["error"].as_str().unwrap_or_else(|| panic!("{request}: {answer}"));
    assert!(error.contains(word), "{request}: {answer}");
    assert_eq!(error.lines().count(), 1, "{request}: {answer}");
    let code = if word.starts_with('/') { "bad_directory" } else { "bad_request" };
    assert_eq!(answer["code"], code, "{request}: {answer}");
}

#[test]
fn a_wrong_request_says_what_to_do_and_makes_no_session() {
    let h = harness!();
    for (request, word) in WRONG {
        assert_refused(&h, request, word);
        let entries = std::fs::read_dir(h.root()).unwrap().count();
        assert_eq!(entries, 0, "after {request}");
    }
    let bytes = h.begin(&["tool"], b"\xff\xfe").finish().json();
    assert_has(&bytes, &json!({"success": false}));
    assert!(h.list().is_empty());
}

#[test]
fn a_wrong_request_changes_nothing_of_a_session() {
    let h = harness!();
    exec(&h, "x=1");
    for (request, word) in WRONG {
        assert_refused(&h, request, word);
    }
    assert_has(&exec(&h, "echo $x"), &json!({"stdout": "1\n", "run": 2, "kernel": "kept"}));
    assert_eq!(h.list().len(), 1);
}

#[test]
fn the_schema_names_all_that_a_request_may_have() {
    let h = harness!();
    let schema = h.sessile(&["tool", "--schema"]).json();
    assert_eq!(schema["name"], "runtime");
    assert!(schema["description"].as_str().unwrap().len() > 100);
    let input = &schema["input_schema"];
    assert_eq!(input["required"], json!(["action"]));
    let actions = json!(["exec", "eval", "state", "reset", "history"]);
    assert_eq!(input["properties"]["action"]["enum"], actions);
    for name in
        ["command", "language", "limit", "workspace", "session_key", "timeout_ms", "stdin", "env"]
    {
        assert!(input["properties"][name]["type"].is_string(), "{name}");
    }
    assert!(h.list().is_empty(), "and makes no session");
}

/// The tool as an agent has it: with sessions kept in the workspace.
fn plain(h: &Harness, from: &Path, request: &Value) -> Client {
    let mut command = h.command(&["tool"]);
    command.env_remove("SESSILE_SESSIONS_DIR").current_dir(from);
    Client::spawn(command, request.to_string().as_bytes())
}

#[track_caller]
fn end_all_in(h: &Harness, workspace: &Path) {
    let dir = workspace.join(".sessions").display().to_string();
    h.sessile(&["--sessions-dir", &dir, "end", "--all"]).exits(0);
}

#[test]
fn a_workspace_is_found_again_from_any_directory_and_sees_no_other() {
    let h = harness!();
    let (one, two) = (workspace(&h, "one"), workspace(&h, "two"));
    std::os::unix::fs::symlink(&one, h.path("link")).unwrap();
    let ask = |from: &Path, workspace: Option<&str>, command: &str| {
        let request = json!({"action": "exec", "command": command, "workspace": workspace});
        plain(&h, from, &request).finish().json()
    };
    let first = ask(&one, None, "who=first; pwd");
    let here = format!("{}\n", one.display());
    assert_has(&first, &json!({"new_session": true, "stdout": here}));
    let other = ask(&two, None, "echo [$who]; who=second");
    assert_has(&other, &json!({"new_session": true, "stdout": "[]\n"}));
    let full = one.display().to_string();
    let root = h.root();
    let ways: [(&Path, Option<&str>); 6] = [
        (&one, None),
        (&root, Some("one")),
        (&two, Some("../one")),
        (&root, Some("link")),
        (Path::new("/"), Some(&full)),
        (&two, Some("../two/../one/.")),
    ];
    for (from, workspace) in ways {
        let again = ask(from, workspace, "echo [$who]");
        assert_has(&again, &json!({"stdout": "[first]\n", "session_id": first["session_id"]}));
    }
    assert_has(&ask(&root, Some("two"), "echo [$who]"), &json!({"stdout": "[second]\n"}));
    end_all_in(&h, &one);
    end_all_in(&h, &two);
}

#[test]
fn workspaces_and_keys_share_one_sessions_directory_without_seeing_each_other() {
    let h = harness!();
    workspace(&h, "one");
    workspace(&h, "two");
    let places = [
        ("one", None),
        ("two", None),
        ("one", Some("a")),
        ("one", Some("b")),
        ("two", Some("a")),
        ("one", Some("one")),
    ];
    let ask = |(workspace, key): (&str, Option<&str>), command: String, language: &str| {
        let request = json!({"action": "eval", "command": command, "language": language, "workspace": workspace, "session_key": key});
        call(&h, &request)
    };
    for (i, place) in places.into_iter().enumerate() {
        assert_has(&ask(place, format!("x={i}"), "bash"), &json!({"new_session": true}));
        ask(place, format!("x = {i}"), "python");
    }
    for (i, place) in places.into_iter().enumerate() {
        assert_has(&ask(place, "echo $x".into(), "bash"), &json!({"result": i.to_string()}));
        assert_has(&ask(place, "x".into(), "python"), &json!({"result": i.to_string()}));
    }
    assert_eq!(h.list().len(), places.len());
}

#[test]
fn a_session_that_was_ended_is_made_anew_and_says_so() {
    let h = harness!();
    for action in ["exec", "eval", "state", "reset", "history"] {
        let first = exec(&h, "x=1");
        let id = first["session_id"].as_str().unwrap();
        h.sessile(&["end", id]).exits(0);
        let answer = call(&h, &json!({"action": action, "command": "1"}));
        assert_has(&answer, &json!({"new_session": true}));
        assert_ne!(answer["session_id"], id, "{action}");
        assert_has(
            &exec(&h, "echo [$x]"),
            &json!({"stdout": "[]\n", "session_id": answer["session_id"]}),
        );
    }
}

#[test]
fn a_session_whose_directory_is_gone_is_made_anew() {
    let h = harness!();
    let first = exec(&h, "x=1");
    let id = first["session_id"].as_str().unwrap();
    h.sessile(&["end", id]).exits(0);
    std::fs::remove_dir_all(h.sessions_dir().join(id)).unwrap();
    assert_has(&exec(&h, "echo [$x]"), &json!({"new_session": true, "stdout": "[]\n"}));
}

/// All of them have counted in one session, which one of them made.
#[track_caller]
fn assert_shared(clients: Vec<Client>) {
    let answers: Vec<Value> = clients.into_iter().map(|client| client.finish().json()).collect();
    assert!(answers.iter().all(|answer| answer["success"] == true), "{answers:#?}");
    let mut counts: Vec<_> = answers.iter().map(|a| a["stdout"].as_str().unwrap()).collect();
    counts.sort_unstable();
    assert_eq!(counts, ["1\n", "2\n", "3\n", "4\n"]);
    let new = answers.iter().filter(|a| a["new_session"] == true).count();
    assert_eq!(new, 1, "{answers:#?}");
    assert!(answers.iter().all(|a| a["session_id"] == answers[0]["session_id"]));
}

#[test]
fn the_first_use_of_a_workspace_by_many_at_once_makes_one_session() {
    let h = harness!();
    exec(&h, ":");
    for i in 0..5 {
        let place = workspace(&h, &format!("w{i}"));
        let request = json!({"action": "exec", "command": "echo $((++x))", "workspace": place});
        let request = request.to_string();
        let clients = (0..4).map(|_| h.begin(&["tool"], request.as_bytes()));
        assert_shared(clients.collect());
    }
}

#[test]
fn the_very_first_use_of_the_tool_by_many_at_once_makes_one_session() {
    let h = harness!();
    for i in 0..5 {
        let place = workspace(&h, &format!("w{i}"));
        let request = json!({"action": "exec", "command": "echo $((++x))"});
        assert_shared((0..4).map(|_| plain(&h, &place, &request)).collect());
        end_all_in(&h, &place);
    }
}
