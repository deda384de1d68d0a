//! The process that brings saves to their store, on a real object store.

use serde_json::{Value, json};
use sessile_testkit::{Client, Harness, harness, shared_object_server};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

const ID: &str = "sess_0123456789ab";

fn begin(h: &Harness, variables: &BTreeMap<String, String>, order: &Value) -> Client {
    let mut command = h.command(&["uploader"]);
    command.envs(variables);
    Client::spawn(command, order.to_string().as_bytes())
}

fn upload(h: &Harness, variables: &BTreeMap<String, String>, order: &Value) -> Value {
    serde_json::from_str(&begin(h, variables, order).finish().text()).expect("JSON")
}

fn order(url: &str, run: u64, file: &Path) -> Value {
    json!({"url": url, "session_id": ID, "as_of_run": run, "file": file})
}

fn file(h: &Harness, length: usize) -> std::path::PathBuf {
    let path = h.path(&format!("save-{length}"));
    std::fs::write(&path, vec![b'x'; length]).expect("a file");
    path
}

#[test]
fn a_save_is_brought_to_a_directory() {
    let h = harness!();
    let url = format!("file://{}", h.path("kept").display());
    let outcome = upload(&h, &BTreeMap::new(), &order(&url, 3, &file(&h, 10)));
    assert_eq!(outcome["saved"]["as_of_run"], 3);
    assert_eq!(outcome["saved"]["size"], 10);
    let outcome = upload(&h, &BTreeMap::new(), &order(&url, 2, &file(&h, 11)));
    assert_eq!(outcome["error"]["code"], "superseded");
}

#[test]
fn what_is_wrong_is_told_as_json() {
    let h = harness!();
    let none = BTreeMap::new();
    let outcome = upload(&h, &none, &json!({"url": 3}));
    assert_eq!(outcome["error"]["code"], "bad_request");
    let outcome = upload(&h, &none, &order("ftp://x/y", 1, &file(&h, 1)));
    assert_eq!(outcome["error"]["code"], "bad_url");
    let url = format!("file://{}", h.path("kept").display());
    let outcome = upload(&h, &none, &order(&url, 1, Path::new("/no/such/file")));
    assert_eq!(outcome["error"]["code"], "io");
}

#[test]
fn a_killed_uploader_leaves_the_old_save() {
    let Some(server) = shared_object_server() else { return };
    let h = harness!();
    let url = "s3://saves/killed";
    let outcome = upload(&h, &server.user(), &order(url, 1, &file(&h, 10)));
    assert_eq!(outcome["saved"]["as_of_run"], 1, "{outcome}");

    let mut slow = server.user();
    let (narrow, is_full) = narrow(&slow["AWS_ENDPOINT_URL"], 12 << 20);
    slow.insert("AWS_ENDPOINT_URL".to_owned(), narrow);
    let client = begin(&h, &slow, &order(url, 2, &file(&h, 30 << 20)));
    is_full.recv().expect("half of the save on its way");
    client.process().kill();

    // The next one finds the first save in its place, and goes on from there.
    let outcome = upload(&h, &server.user(), &order(url, 0, &file(&h, 1)));
    let message = outcome["error"]["message"].as_str().expect("a reason");
    assert!(message.contains("as of run 1"), "{message}");
    let outcome = upload(&h, &server.user(), &order(url, 2, &file(&h, 30 << 20)));
    assert_eq!(outcome["saved"]["size"], 30 << 20, "{outcome}");
}

/// An address that passes this much on to a server and then no more, and word
/// of it.
fn narrow(server: &str, limit: usize) -> (String, Receiver<()>) {
    let server = server.strip_prefix("http://").expect("an address").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (tell, is_full) = channel();
    let budget = std::sync::Arc::new(std::sync::Mutex::new(limit));
    std::thread::spawn(move || {
        for there in listener.incoming().flatten() {
            let onward = TcpStream::connect(&server).expect("the server");
            let (mut back_from, mut back_to) =
                (onward.try_clone().expect("a socket"), there.try_clone().expect("a socket"));
            std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
            let (budget, tell) = (budget.clone(), tell.clone());
            std::thread::spawn(move || {
                let (mut there, mut onward) = (there, onward);
                let mut piece = vec![0; 64 << 10];
                while let Ok(n @ 1..) = there.read(&mut piece) {
                    let mut left = budget.lock().expect("a number");
                    *left = left.saturating_sub(n);
                    if *left == 0 {
                        // Whoever holds this up has no connection any more.
                        let _ = tell.send(());
                        loop {
                            std::thread::park();
                        }
                    }
                    drop(left);
                    if onward.write_all(&piece[..n]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, is_full)
}
