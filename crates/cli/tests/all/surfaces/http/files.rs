//! Files of a session's workspace over HTTP. What leads out and what does not is
//! tested in `sessile-files`; here, that callers get what it says.

use serde_json::{Value, json};
use sessile_testkit::http::Response;
use sessile_testkit::{Event, Harness, Server, harness, until};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A session with a workspace.
struct Place {
    server: Server,
    session: String,
    workspace: PathBuf,
}

fn place(h: &Harness) -> Place {
    let server = h.serve();
    let workspace = h.path("project");
    std::fs::create_dir(&workspace).expect("a directory");
    let session = server.started(&json!({"workspace": workspace}));
    Place { server, session, workspace }
}

impl Place {
    fn url(&self, rest: &str) -> String {
        format!("{}/files{rest}", self.session)
    }

    fn get(&self, rest: &str) -> Response {
        self.server.get(&self.url(rest))
    }

    fn put(&self, rest: &str, body: &[u8]) -> Response {
        self.server.owner("PUT", &self.url(rest)).file(body).send()
    }

    fn post(&self, rest: &str, body: &Value) -> Response {
        self.server.post(&self.url(rest), body)
    }

    fn delete(&self, rest: &str) -> Response {
        self.server.delete(&self.url(rest))
    }
}

#[test]
fn files_are_written_read_listed_moved_and_removed() {
    let h = harness!();
    let p = place(&h);
    p.put("/content?path=src/a.txt", b"x").is_refused(404, "file_not_found");
    let made = p.put("/content?path=src/a.txt&parents=true&mode=0755", b"hello").is(201).json();
    assert_eq!((&made["path"], &made["type"]), (&json!("src/a.txt"), &json!("file")));
    assert_eq!((&made["size"], &made["mode"]), (&json!(5), &json!("0755")));
    p.put("/content?path=src/a.txt", b"hello, you").is(200);
    assert_eq!(
        p.server.prints_at(&p.session, "cat src/a.txt; stat -c ' %a' src/a.txt"),
        "hello, you 755\n"
    );
    // By its whole path, too.
    let whole = format!("/content?path={}/src/a.txt", p.workspace.display());
    assert_eq!(p.get(&whole).is(200).text(), "hello, you");
    p.server.exec_at(&p.session, "ln -s src/a.txt link; mkdir -p src/deep/er; mkfifo pipe");
    let names = |list: &Value| -> Vec<String> {
        let entries = list["entries"].as_array().expect("entries");
        entries
            .iter()
            .map(|e| format!("{} {}", e["path"].as_str().unwrap(), e["type"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(names(&p.get("").is(200).json()), ["link symlink", "pipe other", "src directory"]);
    let deep = p.get("?path=src&depth=9").is(200).json();
    assert_eq!(names(&deep), ["src/a.txt file", "src/deep directory", "src/deep/er directory"]);
    assert_eq!(p.get("?limit=1").is(200).json()["truncated"], true);
    assert_eq!(p.get("/stat?path=link").is(200).json()["target"], "src/a.txt");
    p.post("/directory", &json!({"path": "one/two"})).is_refused(404, "file_not_found");
    p.post("/directory", &json!({"path": "one/two", "parents": true})).is(201);
    p.post("/directory", &json!({"path": "one"})).is_refused(409, "file_exists");
    p.post("/move", &json!({"from": "src/a.txt", "to": "one/b"})).is(200);
    p.put("/content?path=c", b"c").is(201);
    p.post("/move", &json!({"from": "c", "to": "one/b"})).is_refused(409, "file_exists");
    p.post("/move", &json!({"from": "c", "to": "one/b", "overwrite": true})).is(200);
    p.delete("?path=one").is_refused(409, "directory_not_empty");
    p.delete("?path=one&recursive=true").is(200);
    p.delete("?path=one").is_refused(404, "file_not_found");
    p.delete("?recursive=true").is_refused(400, "bad_request");
    assert_eq!(names(&p.get("").is(200).json()), ["link symlink", "pipe other", "src directory"]);
}

#[test]
fn a_part_of_a_file_can_be_had_and_what_is_the_same_is_not_sent_again() {
    let h = harness!();
    let p = place(&h);
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    p.put("/content?path=big", &content).is(201);
    let whole = p.get("/content?path=big").is(200);
    assert_eq!(whole.body, content);
    let tag = whole.header("etag").expect("a tag").to_owned();
    let ask = |name: &str, value: &str| {
        p.server.owner("GET", &p.url("/content?path=big")).header(name, value).send()
    };
    let part = ask("range", "bytes=300000-699999").is(206);
    assert_eq!(part.body, content[300_000..700_000]);
    assert_eq!(part.header("content-range"), Some("bytes 300000-699999/1000000"));
    assert_eq!(ask("range", "bytes=-5").is(206).body, content[999_995..]);
    let none = ask("range", "bytes=1000000-").is_refused(416, "bad_range");
    assert_eq!(none.header("content-range"), Some("bytes */1000000"));
    assert_eq!(ask("if-none-match", &tag).is(304).body, b"");
    p.put("/content?path=big", b"other").is(200);
    assert_eq!(ask("if-none-match", &tag).is(200).text(), "other");
    let new = p.server.owner("PUT", &p.url("/content?path=big")).header("if-none-match", "*");
    new.file(b"x").send().is_refused(409, "file_exists");
}

#[test]
fn a_body_that_is_cut_off_changes_nothing() {
    let h = harness!();
    let p = place(&h);
    p.put("/content?path=a", b"before").is(201);
    for (path, kind) in
        [("content?path=a", "application/octet-stream"), ("archive?path=b", "application/x-tar")]
    {
        let mut stream = sessile_testkit::http::connect(p.server.address);
        let head = format!(
            "PUT {} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: {kind}\r\ncontent-length: 100000\r\n\r\n",
            p.url(&format!("/{path}")),
            p.server.address,
            p.server.token().trim()
        );
        stream.write_all(head.as_bytes()).expect("a connection");
        stream.write_all(&[b'x'; 50_000]).expect("a connection");
        stream.shutdown(std::net::Shutdown::Write).expect("a connection");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert_eq!(p.get("/content?path=a").is(200).text(), "before");
    let names = |path: &str| std::fs::read_dir(p.workspace.join(path)).expect("a list").count();
    until("nothing beside it", || (names("") <= 2).then_some(()));
}

#[test]
fn nothing_outside_of_the_workspace_is_reached() {
    let h = harness!();
    let p = place(&h);
    std::fs::write(h.path("secret"), "secret").expect("a file");
    p.server.exec_at(&p.session, "ln -s ../secret out; ln -s .. up; ln -s /etc/passwd abs");
    for path in ["out", "up/secret", "abs", "/etc/passwd"] {
        p.get(&format!("/content?path={path}")).is_refused(403, "outside_workspace");
        p.put(&format!("/content?path={path}"), b"x").is_refused(403, "outside_workspace");
    }
    p.get("/content?path=../secret").is_refused(400, "bad_path");
    p.get("?path=up").is_refused(403, "outside_workspace");
    p.delete("?path=up/secret").is_refused(403, "outside_workspace");
    p.get("/content").is_refused(400, "is_a_directory");
    p.get("/content?path=a%00b").is_refused(400, "bad_path");
    assert_eq!(std::fs::read_to_string(h.path("secret")).expect("a file"), "secret");
    // Whoever may not use the session does not learn of its files.
    let token = h
        .sessile(&[
            "token",
            "create",
            "other",
            "--workspace",
            h.root().join("sessions").to_str().unwrap(),
        ])
        .json();
    let other = p.server.request("GET", &p.url("")).token(token["token"].as_str().unwrap()).send();
    other.is_refused(404, "session_not_found");
}

#[test]
fn a_tree_goes_and_comes_as_a_tar() {
    let h = harness!();
    let p = place(&h);
    p.server.exec_at(
        &p.session,
        "mkdir -p tree/sub; echo one > tree/a; head -c 300000 /dev/zero > tree/sub/zeros; chmod 600 tree/a; ln -s a tree/link",
    );
    let archive = p.get("/archive?path=tree").is(200);
    assert_eq!(archive.header("content-type"), Some("application/x-tar"));
    let send = |body: &[u8]| {
        let request = p.server.owner("PUT", &p.url("/archive?path=copy/of")).file(body);
        request.with_type("application/x-tar").send()
    };
    let told = send(&archive.body).is(200).json();
    assert_eq!(
        (&told["files"], &told["links"], &told["skipped_count"]),
        (&json!(2), &json!(1), &json!(0))
    );
    let same = "diff -r tree copy/of && stat -c %a copy/of/a && readlink copy/of/link";
    assert_eq!(p.server.prints_at(&p.session, same), "600\na\n");
    let zeros = std::fs::metadata(p.workspace.join("copy/of/sub/zeros")).expect("a file");
    assert!(zeros.blocks() < 100, "zeros take no room");
    // tar itself reads and writes them.
    let tar = "tar -cf t.tar -C tree . && mkdir x";
    p.server.exec_at(&p.session, tar);
    let made = std::fs::read(p.workspace.join("t.tar")).expect("a tar");
    assert_eq!(send(&made).is(200).json()["files"], 2);
    send(b"no tar").is_refused(400, "bad_archive");
    p.put("/archive?path=x", &archive.body).is_refused(415, "unsupported_media_type");
    p.get("/archive?path=nothing").is_refused(404, "file_not_found");
}

#[test]
fn names_that_are_not_text_are_told_and_taken_as_they_are() {
    let h = harness!();
    let p = place(&h);
    p.put("/content?path=caf%E9", b"x").is(201);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    assert!(p.workspace.join(name).exists());
    let entry = p.get("").is(200).json()["entries"][0].clone();
    assert_eq!((&entry["path"], &entry["encoding"]), (&json!("Y2Fm6Q=="), &json!("base64")));
    let order = json!({"from": "Y2Fm6Q==", "to": "Yg==", "encoding": "base64"});
    p.post("/move", &order).is(200);
    assert_eq!(p.get("/content?path=b").is(200).text(), "x");
    p.put("/content?path=100%25+sure%26", b"y").is(201);
    assert!(p.workspace.join("100% sure&").exists());
}

#[test]
fn what_happens_to_files_is_told() {
    let h = harness!();
    let p = place(&h);
    p.post("/directory", &json!({"path": "d"})).is(201);
    let request = p.server.owner("GET", &p.url("/watch?recursive=true"));
    let mut events = request.events();
    let mut next = || -> (String, String) {
        let Event { name, data, .. } = events.next().expect("an event");
        (name, data["path"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(next().0, "ready");
    p.put("/content?path=d/a", b"x").is(201);
    assert_eq!(next(), ("created".to_owned(), "d/a".to_owned()));
    // Nothing is told of how it is replaced; what came before may be told of the first.
    p.put("/content?path=d/a", b"xy").is(200);
    p.put("/content?path=d/b", b"").is(201);
    loop {
        let (name, path) = next();
        if path == "d/b" {
            assert_eq!(name, "created");
            break;
        }
        assert_eq!((name.as_str(), path.as_str()), ("modified", "d/a"));
    }
    p.server.exec_at(&p.session, "echo more >> d/a");
    while next() != ("modified".to_owned(), "d/a".to_owned()) {}
    p.server.exec_at(&p.session, "mkdir -p e/f; echo x > e/f/g");
    while next() != ("created".to_owned(), "e/f/g".to_owned()) {}
    p.delete("?path=d&recursive=true").is(200);
    while next() != ("removed".to_owned(), "d".to_owned()) {}
    p.get("/watch?path=nothing").is_refused(404, "file_not_found");
    p.server.delete(&p.session).is(200);
    while next().0 != "ended" {}
    assert!(events.next().is_none(), "nothing comes after the end");
}
