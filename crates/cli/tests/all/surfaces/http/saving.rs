//! Sessions saved and restored over HTTP.

use serde_json::json;
use sessile_testkit::http::Response;
use sessile_testkit::{Gate, Harness, Server, harness, session_path, until};
use std::io::Read;
use std::path::Path;

fn download(server: &Server, session: &str) -> Vec<u8> {
    server.get(&format!("{session}/save")).is(200).body
}

fn restore(server: &Server, file: &[u8], query: &str) -> Response {
    server.owner("POST", &format!("/v1/restore{query}")).file(file).send()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What is under way to somebody, of any session.
fn handed_out(h: &Harness) -> Vec<String> {
    let sessions = names(h.sessions_dir());
    let kernels = sessions.iter().map(|id| h.sessions_dir().join(id).join("kernels"));
    let all = kernels.flat_map(|folder| names(&folder));
    all.filter(|name| name.starts_with("handed-out") || name.starts_with("save-")).collect()
}

/// Files without a name that the server has open.
fn nameless(server: &Server) -> usize {
    let links = server.process().entry().descriptors().filter_map(|open| open.link());
    links.filter(|link| link.to_string_lossy().ends_with("(deleted)")).count()
}

#[test]
fn a_session_is_handed_out_as_a_file_and_goes_on_from_it() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({"name": "first"}));
    server.prints_at(&session, "x=41");
    let file = server.get(&format!("{session}/save")).is(200);
    assert_eq!(file.header("content-type"), Some("application/octet-stream"));
    assert_eq!(file.header("content-length"), Some(file.body.len().to_string().as_str()));
    let id = session.rsplit('/').next().expect("an id");
    let disposition = format!("attachment; filename=\"{id}.sessile\"");
    assert_eq!(file.header("content-disposition"), Some(disposition.as_str()));
    assert_eq!(file.header("sessile-as-of-run"), Some("1"));
    assert_eq!(file.header("sessile-left"), Some("0"));
    let _ = server.delete(&session).is(200);
    let restored = restore(&server, &file.body, "?durable=true").is(201).json();
    assert_eq!(restored["restored_from"], json!(id), "{restored}");
    assert_eq!((&restored["as_of_run"], &restored["left"]), (&json!(1), &json!([])));
    let again = session_path(&restored["session_id"]);
    assert_eq!(server.prints_at(&again, "echo $x"), "41\n");
    let shown = server.get(&again).is(200).json();
    assert_eq!(shown["name"], "first");
    assert!(shown["durable"].is_object(), "{shown}");
    let second = restore(&server, &file.body, "?name=second").is(201).json();
    let named = session_path(&second["session_id"]);
    assert_eq!(server.get(&named).is(200).json()["name"], "second");
    // The durable one saves itself about now.
    until("nothing under way", || handed_out(&h).is_empty().then_some(()));
    until("an end", || (nameless(&server) == 0).then_some(()));
}

#[test]
fn what_is_not_carried_is_counted_and_named() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({"shell": "python3"}));
    server.prints_at(&session, "import socket; x = 1; s = socket.socket()");
    let file = server.get(&format!("{session}/save")).is(200);
    assert_eq!(file.header("sessile-left"), Some("1"));
    let restored = restore(&server, &file.body, "").is(201).json();
    let left = &restored["left"][0];
    assert_eq!((&left["name"], &left["language"]), (&json!("s"), &json!("python")), "{restored}");
    let body = json!({"path": "work.sessile"});
    let saved = server.post(&format!("{session}/save"), &body).is(200).json();
    assert_eq!(saved["left"][0]["name"], "s");
    assert_eq!(saved["continuity"]["status"], "live");
    assert_eq!(saved["path"], json!(h.path("work.sessile")));
}

#[test]
fn files_are_carried_into_a_directory_that_is_new() {
    let h = harness!();
    let server = h.serve();
    std::fs::create_dir_all(h.path("project/data")).expect("a directory");
    std::fs::write(h.path("project/data/table"), "1,2").expect("a file");
    let session = server.started(&json!({"cwd": "project"}));
    server.prints_at(&session, "cd data");
    let file = server.get(&format!("{session}/save?files=true")).is(200).body;
    let full = restore(&server, &file, "?cwd=project").is_refused(400, "bad_directory");
    assert!(full.text().contains("not empty"), "{}", full.text());
    let _ = restore(&server, &file, "?cwd=no/such").is_refused(400, "bad_directory");
    let restored = restore(&server, &file, "?cwd=elsewhere").is(201).json();
    assert_eq!(restored["files"]["restored"], true, "{restored}");
    let again = session_path(&restored["session_id"]);
    let expected = format!("{}\n1,2", h.path("elsewhere/data").display());
    assert_eq!(server.prints_at(&again, "pwd; cat table"), expected);
    assert_eq!(restore(&server, &file, "").is(201).json()["files"]["restored"], false);
}

#[test]
fn a_file_of_the_servers_machine_is_named_by_its_path() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({}));
    server.prints_at(&session, "x=1");
    let save = |path: &str| server.post(&format!("{session}/save"), &json!({"path": path}));
    let _ = save("work.sessile").is(200);
    let again = server.owner("POST", "/v1/restore?path=work.sessile").send().is(201).json();
    assert_eq!(server.prints_at(&session_path(&again["session_id"]), "echo $x"), "1\n");
    std::fs::create_dir(h.path("folder")).expect("a directory");
    for (wrong, status, code) in [
        ("folder", 400, "bad_file"),
        ("folder/", 400, "bad_directory"),
        ("", 400, "bad_directory"),
        ("..", 400, "bad_directory"),
        ("no/such/file", 400, "bad_directory"),
        ("../out", 403, "forbidden"),
        ("/etc/out", 403, "forbidden"),
        ("a\0b", 400, "bad_directory"),
        ("sessions/token", 403, "forbidden"),
    ] {
        let _ = save(wrong).is_refused(status, code);
    }
    std::os::unix::fs::symlink("/etc/passwd", h.path("link")).expect("a link");
    for (wrong, status, code) in [
        ("link", 400, "bad_file"),
        ("folder", 400, "bad_file"),
        ("nothing", 400, "bad_file"),
        ("/etc/passwd", 403, "forbidden"),
    ] {
        let refused = server.owner("POST", &format!("/v1/restore?path={wrong}")).send();
        let _ = refused.is_refused(status, code);
    }
    let _ = restore(&server, b"x", "?path=work.sessile").is_refused(400, "bad_request");
    // A link in its place is replaced, and where it leads is left alone.
    let _ = save("link").is(200);
    assert!(h.path("link").symlink_metadata().expect("a file").is_file());
}

#[test]
fn a_file_from_elsewhere_needs_to_be_trusted() {
    let (here, there) = (harness!(), harness!());
    let (ours, theirs) = (here.serve(), there.serve());
    let session = theirs.started(&json!({}));
    theirs.prints_at(&session, "x=1");
    let file = download(&theirs, &session);
    let before = names(here.sessions_dir());
    let refused = restore(&ours, &file, "").is_refused(403, "untrusted");
    assert!(refused.text().contains("runs code that is in it"), "{}", refused.text());
    assert!(!refused.text().contains("--trust"), "{}", refused.text());
    assert_eq!(names(here.sessions_dir()), before);
    let restored = restore(&ours, &file, "?trust=true").is(201).json();
    // Where it was is none of this server's directories.
    assert_eq!(restored["work_dir"], json!(here.root()));
    let reason = restored["left"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("is outside of the directories"), "{restored}");
    assert_eq!(ours.prints_at(&session_path(&restored["session_id"]), "echo $x"), "1\n");
}

#[test]
fn a_damaged_file_is_refused_and_nothing_is_left() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({"shell": "python3"}));
    server.prints_at(&session, "x = 1");
    let file = download(&server, &session);
    let before = names(h.sessions_dir());
    let mut flipped = file.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let cut = &file[..file.len() - 1];
    for wrong in [&flipped[..], cut, &file[..20], b"", b"not a session at all"] {
        for query in ["", "?trust=true"] {
            let _ = restore(&server, wrong, query).is_refused(400, "bad_file");
        }
    }
    let as_json = server.owner("POST", "/v1/restore").json(&json!({})).send();
    let _ = as_json.is_refused(415, "unsupported_media_type");
    let _ = restore(&server, &file, "?name=%00").is_refused(400, "bad_request");
    let _ = restore(&server, &file, "?trust=maybe").is_refused(400, "bad_request");
    assert_eq!(names(h.sessions_dir()), before);
    until("an end", || (nameless(&server) == 0).then_some(()));
}

#[test]
fn a_token_keeps_to_its_directories_and_to_its_number_of_sessions() {
    let h = harness!();
    for name in ["mine", "theirs"] {
        std::fs::create_dir_all(h.path(name)).expect("a directory");
    }
    let server = h.server(&["--max-sessions-per-token", "3"]);
    let made = h.sessile(&["token", "create", "mine", "--workspace", "mine"]).json();
    let token = made["token"].as_str().expect("a token");
    let ask = |method: &str, path: &str| server.request(method, path).token(token);
    let theirs = server.started(&json!({"cwd": "theirs"}));
    server.prints_at(&theirs, "x=1");
    let file = download(&server, &theirs);
    let _ = ask("GET", &format!("{theirs}/save")).send().is_refused(404, "session_not_found");
    let body = json!({"path": "mine/x"});
    let save = ask("POST", &format!("{theirs}/save")).json(&body).send();
    let _ = save.is_refused(404, "session_not_found");
    // A session of another place goes on in the caller's own.
    let restore = |query: &str| ask("POST", &format!("/v1/restore{query}")).file(&file).send();
    let restored = restore("").is(201).json();
    assert_eq!(restored["work_dir"], json!(h.path("mine")), "{restored}");
    let reason = restored["left"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("is outside of the directories"), "{restored}");
    let session = session_path(&restored["session_id"]);
    assert_eq!(ask("GET", &session).send().is(200).json()["owner"], "mine");
    for cwd in ["../theirs", "../new", "/tmp", "/nowhere/at/all"] {
        let _ = restore(&format!("?cwd={cwd}")).is_refused(403, "forbidden");
    }
    let _ = std::os::unix::fs::symlink(h.path("theirs"), h.path("mine/link"));
    let _ = restore("?cwd=link").is_refused(403, "forbidden");
    let _ = restore("?cwd=link/new").is_refused(403, "forbidden");
    std::fs::write(h.path("theirs/file"), &file).expect("a file");
    let _ = ask("POST", "/v1/restore?path=../theirs/file").send().is_refused(403, "forbidden");
    for path in ["../theirs/out", "link/out"] {
        let save = ask("POST", &format!("{session}/save")).json(&json!({"path": path})).send();
        let _ = save.is_refused(403, "forbidden");
    }
    assert_eq!(restore("?cwd=new").is(201).json()["work_dir"], json!(h.path("mine/new")));
    let _ = restore("").is(201);
    let _ = restore("").is_refused(429, "too_many_sessions");
    assert_eq!(names(&h.path("theirs")), ["file"]);
}

#[test]
fn a_run_that_is_going_is_not_saved_and_may_be_waited_for() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({}));
    let gate = Gate::occupy(&h, &server, &session);
    let refused = server.get(&format!("{session}/save")).is_refused(409, "busy");
    assert!(!refused.text().contains("--wait"), "{}", refused.text());
    let _ =
        server.post(&format!("{session}/save"), &json!({"path": "file"})).is_refused(409, "busy");
    // One that does not want to wait any longer takes it back.
    let gone = server.owner("GET", &format!("{session}/save?wait=true")).open();
    until("a place", || (!handed_out(&h).is_empty()).then_some(()));
    drop(gone);
    until("no place", || handed_out(&h).is_empty().then_some(()));
    let mut waiting = server
        .owner("GET", &format!("{session}/save?wait=true"))
        .header("connection", "close")
        .open();
    until("a place", || (!handed_out(&h).is_empty()).then_some(()));
    gate.open();
    let mut bytes = Vec::new();
    waiting.read_to_end(&mut bytes).expect("an answer");
    let file = Response::parse(&bytes).expect("an answer").is(200).body;
    let again = session_path(&restore(&server, &file, "").is(201).json()["session_id"]);
    assert_eq!(server.prints_at(&again, "echo $x"), "late\n");
    assert_eq!(handed_out(&h), Vec::<String>::new());
}

/// The most memory that the server has had, in MB.
fn peak(server: &Server) -> u64 {
    let peak = server.process().entry().status("VmHWM:").expect("a peak");
    peak.split_whitespace().next().expect("a number").parse::<u64>().expect("a number") / 1024
}

#[test]
fn a_large_session_passes_through_and_whoever_leaves_in_the_middle_leaves_nothing() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({"shell": "python3"}));
    server.prints_at(&session, "import os; x = os.urandom(30 << 20)");
    let digest = "import hashlib; print(hashlib.sha256(x).hexdigest())";
    let expected = server.prints_at(&session, digest);
    let before = peak(&server);
    let mut gone = server.owner("GET", &format!("{session}/save")).open();
    let mut head = [0; 1000];
    gone.read_exact(&mut head).expect("a beginning");
    // It has no name any more while it is sent.
    assert_eq!(handed_out(&h), Vec::<String>::new());
    assert_eq!(nameless(&server), 1);
    drop(gone);
    until("an end", || (nameless(&server) == 0).then_some(()));
    let file = download(&server, &session);
    assert!(file.len() > 30 << 20, "{}", file.len());
    let half = server.owner("POST", "/v1/restore").file(&file);
    drop(half.open());
    until("an end", || (nameless(&server) == 0).then_some(()));
    let restored = restore(&server, &file, "").is(201).json();
    assert_eq!(server.prints_at(&session_path(&restored["session_id"]), digest), expected);
    let grown = peak(&server) - before;
    assert!(grown < 16, "{grown} MB");
}

#[test]
fn whoever_runs_the_server_says_how_much_is_restored_if_anything() {
    let h = harness!();
    let server = h.server(&["--max-restored", "2KiB"]);
    let session = server.started(&json!({"shell": "python3"}));
    server.prints_at(&session, "x = 1");
    let small = download(&server, &session);
    server.prints_at(&session, "import os; x = os.urandom(100 << 10)");
    let large = download(&server, &session);
    let before = names(h.sessions_dir());
    let _ = restore(&server, &large, "").is_refused(413, "too_large");
    assert_eq!(names(h.sessions_dir()), before);
    server.kill();
    let server = h.server(&["--max-restored", "0"]);
    let refused = restore(&server, &small, "?trust=true").is_refused(403, "forbidden");
    assert!(refused.text().contains("restores no sessions"), "{}", refused.text());
    std::fs::write(h.path("file"), &small).expect("a file");
    let refused = server.owner("POST", "/v1/restore?path=file").send();
    let _ = refused.is_refused(403, "forbidden");
}
