//! Files that are damaged, or made to do harm.

use super::*;
use sessile_snapshot::bundle::{Kind, Writer};

#[track_caller]
fn refused(h: &Harness, bytes: &[u8], what: &str) -> String {
    fs::write(h.path("x.sessile"), bytes).unwrap();
    let refused = h.sessile(&["restore", "x.sessile", "--trust"]).exits(1).errors();
    let is_clear = refused.starts_with("Error: ") && refused.lines().count() == 1;
    assert!(is_clear && !refused.contains("panicked"), "{what}: {refused}");
    assert_eq!(directories(h).len(), 1, "{what}");
    refused
}

#[test]
fn a_damaged_file_is_refused_whichever_byte_it_is() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.run_in("python", "a = [1, 2]");
    save(&h, &s, &["--files"]);
    let whole = fs::read(h.path("w.sessile")).unwrap();
    // `sessile-snapshot` tests every bit and every length; here, that restoring asks it.
    let step = (whole.len() / 12).max(1);
    for at in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        refused(&h, &bytes, &format!("byte {at}"));
    }
    for length in (0..whole.len()).step_by(step) {
        refused(&h, &whole[..length], &format!("cut at {length}"));
    }
    refused(&h, &[&whole[..], b"x"].concat(), "longer");
    s.end();
}

/// Name, kind and bytes of a part.
type Forged = (String, Kind, Vec<u8>);

/// A file as somebody with time and no good intentions makes it.
fn forge(h: &Harness, change: impl FnOnce(&mut Value, &mut Vec<Forged>)) -> Vec<u8> {
    let mut manifest = json!({
        "format": 1, "sessile": "0", "saved_at": "now",
        "session_id": "sess_0123456789abcdef01234567", "language": "bash", "command": "bash",
        "created_at": "now", "work_dir": "/tmp", "idle_timeout_ms": 1_800_000,
        "command_timeout_ms": 30_000, "max_history": 100, "output_cap": 1000,
        "execution_count": 1, "last_run": 1,
        "kernels": [{"language": "bash", "as_of_run": 1}]
    });
    let state = json!({"as_of_run": 1, "restore": "x=1"}).to_string().into_bytes();
    let mut parts = vec![
        ("history.log".to_owned(), Kind::History, Vec::new()),
        ("kernel/bash/state.json".to_owned(), Kind::Kernel, state),
    ];
    change(&mut manifest, &mut parts);
    parts.push(("manifest.json".to_owned(), Kind::Session, manifest.to_string().into_bytes()));
    let path = h.path("forged");
    let mut writer = Writer::create(&path).unwrap();
    for (name, kind, bytes) in parts {
        writer.add(&name, kind, &bytes).unwrap();
    }
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_hostile_file_is_refused_and_changes_nothing() {
    let h = harness!();
    let s = h.session();
    let cases: [(&str, &str, Value); 12] = [
        ("format", "/format", json!(2)),
        ("program", "/command", json!("/bin/rm")),
        ("language", "/language", json!("cobol")),
        ("id", "/session_id", json!("../../etc")),
        ("runs", "/last_run", json!(u64::MAX)),
        ("count", "/execution_count", json!(u64::MAX)),
        ("variable", "/env", json!({"A=B": "c"})),
        ("kernel", "/kernels/0/language", json!("python")),
        (
            "kernels",
            "/kernels",
            json!([{"language": "bash", "as_of_run": 1}, {"language": "bash", "as_of_run": 1}]),
        ),
        ("later", "/kernels/0/as_of_run", json!(7)),
        ("directory", "/work_dir", json!(7)),
        ("manifest", "", json!([])),
    ];
    for (what, at, value) in cases {
        let bytes = forge(&h, |manifest, _| match at {
            "/env" => manifest["env"] = value,
            "" => *manifest = value,
            at => *manifest.pointer_mut(at).expect(at) = value,
        });
        refused(&h, &bytes, what);
    }
    let part = |change: fn(&mut Vec<Forged>)| forge(&h, |_, parts| change(parts));
    refused(&h, &part(|parts| parts[0].1 = Kind::Files), "another kind");
    refused(&h, &part(|parts| parts[0].2 = b"{\"run\":1}\n".to_vec()), "a bad history");
    refused(&h, &part(|parts| parts[1].2 = b"[".to_vec()), "a bad state");
    refused(&h, &part(|parts| drop(parts.remove(1))), "no state");
    let many = part(|parts| {
        parts.extend((0..200).map(|n| (format!("p{n}"), Kind::Unknown(99), Vec::new())));
    });
    refused(&h, &many, "many parts");
    let bomb = part(|parts| parts.push(("files".into(), Kind::Files, vec![0; 64 << 20])));
    fs::write(h.path("x.sessile"), &bomb).unwrap();
    let limited = ["restore", "x.sessile", "--trust", "--max-size", "1MiB"];
    let told = h.sessile(&limited).exits(1).errors();
    assert!(told.contains("holds more than 1048576 bytes"), "{told}");
    let told = h.sessile(&["restore", "x.sessile", "--trust", "--cwd", "new"]).exits(1).errors();
    assert!(told.contains("the part is not a tree of files"), "{told}");
    assert!(!h.path("new").exists() && directories(&h).len() == 1);
    // The same without any of it is a session.
    fs::write(h.path("x.sessile"), forge(&h, |_, _| ())).unwrap();
    let answer = h.sessile(&["restore", "x.sessile", "--trust"]).json();
    let r = h.session_called(answer["session_id"].as_str().expect("an id"));
    r.run("echo $x").prints("1\n");
    r.end();
    s.end();
}

#[test]
fn what_is_no_saved_session_is_refused() {
    let h = harness!();
    let s = h.session();
    refused(&h, b"", "empty");
    refused(&h, b"#!/bin/sh\n", "a script");
    let told = h.sessile(&["restore", "not-there"]).exits(1).errors();
    assert!(told.contains("cannot open not-there"), "{told}");
    fs::create_dir(h.path("folder")).unwrap();
    let told = h.sessile(&["restore", "folder"]).exits(1).errors();
    assert!(told.contains("folder is not a file"), "{told}");
    let told = h.sessile(&["restore", "/dev/zero"]).exits(1).errors();
    assert!(told.contains("/dev/zero is not a file"), "{told}");
    s.end();
}
