//! Forks and checkpoints of Node, whose values are carried and whose process is not.

use sessile_testkit::harness;

#[test]
fn a_fork_of_node_has_its_values_and_none_of_its_later_changes() {
    let h = harness!();
    let s = h.session_with(&["node"]);
    s.run("let x = {a: [1, new Map([['k', 2]])]}; function f() { return x.a[0]; } process.chdir('/usr'); process.env.E = 'e'; class C { n() { return 7; } } const c = new C()");
    s.run("const server = require('net').createServer().listen(0); const timer = setInterval(() => {}, 1e6)");
    let (forks, answer) = s.forks(&[]);
    let left = answer["left"].to_string();
    assert!(left.contains("server"), "{left}");
    let fork = &forks[0];
    let look = "console.log(x.a[0], x.a[1].get('k'), f(), process.cwd(), process.env.E, c.n())";
    fork.run(look).prints("1 2 1 /usr e 7\n");
    fork.run("x.a[0] = 9; process.chdir('/'); process.env.E = 'f'").exits(0);
    s.run(look).prints("1 2 1 /usr e 7\n").is_kept();
    s.run("x.a[0] = 5");
    fork.run(look).prints("9 2 9 / f 7\n").is_kept();
    s.run("server.listening").shows("true");
    fork.end();
    s.run("f()").shows("5").is_kept();
}

#[test]
fn node_goes_back_after_whatever_has_become_of_it() {
    let h = harness!();
    let s = h.session_with(&["node", "--auto", "9"]);
    s.run("var x = [1]");
    s.checkpoint(&["--name", "here"]);
    for ending in [
        "x.push(2); process.exit(3)",
        "x.push(2); process.kill(process.pid, 'SIGKILL')",
        "x.push(2)",
    ] {
        s.run(ending);
        s.rewind(&["here"]);
        s.run("x.length").shows("1");
        s.run("x.push(3)");
        s.undo();
        s.run("x.length").shows("1");
    }
    s.run_with(&["--timeout", "0.3"], "x.push(2); for (;;);").timed_out();
    s.undo();
    s.run("x.length").shows("1");
    s.call("drop", &["--all"]).exits(0);
    s.wait_children(1);
    let left: Vec<_> = std::fs::read_dir(s.dir().join("kernels"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("image-"))
        .collect();
    assert_eq!(left, Vec::<std::ffi::OsString>::new());
}
