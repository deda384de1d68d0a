//! `sessile cp` and `sessile files`.

use sessile_testkit::{Client, harness};
use std::fs;

#[test]
fn files_and_trees_go_in_and_out_and_between_sessions() {
    let h = harness!();
    for name in ["one", "two"] {
        fs::create_dir(h.path(name)).expect("a directory");
    }
    let (one, two) =
        (h.session_with(&["--cwd", "one"]), h.session_with(&["--cwd", "two", "--name", "second"]));
    let id = one.id();
    let cp = |from: &str, to: &str| h.sessile(&["cp", from, to]).json();
    fs::create_dir_all(h.path("tree/sub")).expect("directories");
    fs::write(h.path("tree/sub/file"), "content").expect("a file");
    std::os::unix::fs::symlink("sub/file", h.path("tree/link")).expect("a link");
    let copied = cp("tree", &format!("{id}:"));
    assert_eq!((&copied["files"], &copied["links"]), (&1.into(), &1.into()));
    one.run("cat tree/link").prints("content");
    // To a name that is not there, the tree itself; then out, and on.
    cp("tree", &format!("{id}:other"));
    one.run("cat other/sub/file; echo more >> other/sub/file").prints("content");
    cp(&format!("{id}:other/sub/file"), "back.txt");
    assert_eq!(fs::read_to_string(h.path("back.txt")).expect("a file"), "contentmore\n");
    cp(&format!("{id}:other"), "second:");
    two.run("cat other/sub/file").prints("contentmore\n");
    cp("back.txt", "second:in/a/new/place/");
    two.run("cat in/a/new/place/back.txt").prints("contentmore\n");
    // Nothing outside of the workspace, whatever lies there.
    one.run("ln -s ../back.txt out; ln -s /etc other/etc");
    let said = h.sessile(&["cp", &format!("{id}:out"), "stolen"]).exits(1).errors();
    assert!(said.contains("outside the workspace"), "{said}");
    let told = h.sessile(&["cp", &format!("{id}:other"), "out"]).exits(0);
    assert!(told.errors().contains("left out out/etc"), "{}", told.errors());
    let said = h.sessile(&["cp", "tree", "elsewhere"]).exits(1).errors();
    assert!(said.contains("ID:path"), "{said}");
}

#[test]
fn files_are_looked_at_and_changed_without_a_run() {
    let h = harness!();
    let s = h.session_with(&["--name", "web"]);
    let files = |args: &[&str]| h.sessile(&[&["files"], args].concat());
    let put = h.command(&["files", "put", "--parents", "web:src/a.py"]);
    let _ = Client::spawn(put, b"x = 1\n").finish().exits(0).prints("");
    files(&["cat", "web:src/a.py"]).exits(0).prints("x = 1\n");
    let listed = files(&["ls", "web:src"]).json();
    assert_eq!((&listed[0]["path"], &listed[0]["size"]), (&"src/a.py".into(), &6.into()));
    let _ = files(&["mkdir", "-p", "web:src/deep/er"]).exits(0);
    let tree = files(&["tree", "web:src"]).json();
    let paths: Vec<&str> =
        tree.as_array().expect("a list").iter().filter_map(|e| e["path"].as_str()).collect();
    assert_eq!(paths, ["src/a.py", "src/deep", "src/deep/er"]);
    let _ = files(&["mv", "web:src/a.py", "src/b.py"]).exits(0);
    assert_eq!(files(&["stat", "web:src/b.py"]).json()["type"], "file");
    // With the session named as well, by whatever it is called.
    let _ = files(&["mv", "web:src/b.py", "web:src/c.py"]).exits(0);
    let _ = files(&["mv", "web:src/c.py", &format!("{}:src/d:e", s.id())]).exits(0);
    let _ = files(&["mv", "web:src/d:e", "src/b.py"]).exits(0);
    // A name that is no session's is one of a file.
    let _ = files(&["mv", "web:src/b.py", "b:c"]).exits(0);
    let _ = files(&["mv", "web:b:c", "src/b.py"]).exits(0);
    assert_eq!(files(&["ls", "web:src"]).json()[0]["path"], "src/b.py");
    let other = h.session_with(&["--name", "other"]);
    let said = files(&["mv", "web:src/b.py", "other:b.py"]).exits(1).errors();
    assert!(said.contains("sessile cp web:src/b.py other:b.py"), "{said}");
    other.end();
    let said = files(&["rm", "web:src"]).exits(1).errors();
    assert!(said.contains("not empty"), "{said}");
    let _ = files(&["rm", "-r", "web:src"]).exits(0);
    s.run("ls -d src").exits(2);
    let shown = h.at_a_terminal(&["files", "ls", "web"]);
    assert!(shown.contains("PATH"), "{shown}");
}
