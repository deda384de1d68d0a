//! A session as one file, and a session from it.

use rustix::process::{Resource, Rlimit};
use serde_json::{Value, json};
use sessile_testkit::{Client, Harness, Session, harness, until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

mod damage;

#[track_caller]
fn save(h: &Harness, s: &Session<'_>, options: &[&str]) -> Value {
    h.sessile(&[&["save", s.id(), "-o", "w.sessile"], options].concat()).json()
}

#[track_caller]
fn restore<'h>(h: &'h Harness, options: &[&str]) -> (Session<'h>, Value) {
    let answer = h.sessile(&[&["restore", "w.sessile"], options].concat()).json();
    let id = answer["session_id"].as_str().expect("an id").to_owned();
    (h.session_called(&id), answer)
}

/// What was left, by name.
fn left(answer: &Value) -> Vec<(&str, &str)> {
    let text = |item: &Value, field: &str| item[field].as_str().map(ToOwned::to_owned);
    let items = answer["left"].as_array().expect("a list").iter();
    items
        .map(|item| {
            assert!(text(item, "name").is_some() && text(item, "reason").is_some(), "{item}");
            (item["name"].as_str().unwrap_or_default(), item["reason"].as_str().unwrap_or_default())
        })
        .collect()
}

/// Session directories, whole or not.
fn directories(h: &Harness) -> Vec<String> {
    let entries = fs::read_dir(h.sessions_dir()).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.starts_with("sess_"));
    names.sort();
    names
}

/// What is in a directory, hidden files too.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[test]
fn a_shell_goes_on_where_it_was_saved() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        s.run(
            "mkdir -p below; cd below; v='a  b'; f() { echo \"f $1\"; }; alias al='echo aliased'",
        );
        s.run("export STAGE=test; umask 027; set -- one two; set -o noglob; trap 'echo bye' USR1");
        let saved = save(&h, &s, &[]);
        assert_eq!((&saved["as_of_run"], left(&saved)), (&json!(2), vec![]), "{saved}");
        s.run("v=later");
        let (r, answer) = restore(&h, &[]);
        assert_eq!(answer["restored_from"], s.id());
        assert_eq!(answer["as_of_run"], 2);
        assert_ne!(r.id(), s.id());
        r.run("echo \"$v\"; f 1; echo \"$2\"; umask; sh -c 'echo $STAGE'; echo /*; pwd")
            .prints(&format!(
                "a  b\nf 1\ntwo\n{}\ntest\n/*\n{}\n",
                if shell == "zsh" { "027" } else { "0027" },
                h.path("below").display()
            ))
            .warns("")
            .is_restored_as_of(2)
            .has("run", 3);
        r.run("al x").prints("aliased x\n");
        if shell != "dash" {
            r.run("kill -USR1 $$; :").prints("bye\n");
        }
        // Neither knows of the other.
        r.run("echo $SESSILE_SESSION_ID").prints(&format!("{}\n", r.id()));
        s.run("echo $v").prints("later\n").is_kept();
        s.end();
        r.run("echo \"$v\"").prints("a  b\n").is_kept();
        r.end();
    }
}

#[test]
fn python_goes_on_where_it_was_saved() {
    let h = harness!();
    let s = h.session();
    s.run_in(
        "python",
        "import math as m, os, socket\nfrom math import floor\na = b = [1]\ncount = 0",
    );
    s.run_in(
        "python",
        "def tick(by=1):\n    global count\n    count += by\n    return count\n\
         class Point:\n    made = 0\n    def __init__(self, x): self.x = x; Point.made += 1\n\
         p = Point(a)\nadd = lambda v: v + p.x[0]\ns = socket.socket()\ntick()\n\
         os.environ['STAGE'] = 'test'\nos.mkdir('below'); os.chdir('below')",
    );
    let saved = save(&h, &s, &[]);
    assert_eq!(left(&saved), [("s", "a socket cannot be carried")], "{saved}");
    assert_eq!(saved["left"][0]["language"], "python");
    let (r, answer) = restore(&h, &[]);
    assert_eq!(left(&answer), [("s", "a socket cannot be carried")], "{answer}");
    r.run_in(
        "python",
        "a is b, p.x is a, add(1), tick(), Point.made, isinstance(p, Point), floor(m.pi), \
         os.environ['STAGE'], os.path.basename(os.getcwd())",
    )
    .is_restored_as_of(2);
    r.run_in("python", "print(a is b, p.x is a, add(1), tick(), Point.made, isinstance(p, Point))")
        .prints("True True 2 3 1 True\n")
        .is_kept();
    r.run_in("python", "print(floor(m.pi), os.environ['STAGE'], os.path.basename(os.getcwd()))")
        .prints("3 test below\n");
    // And once more, from the session that came of it.
    save(&h, &r, &[]);
    let (again, _) = restore(&h, &[]);
    again.run_in("python", "print(tick(), p.x is b)").prints("4 True\n").is_restored_as_of(5);
    for session in [s, r, again] {
        session.end();
    }
}

#[test]
fn node_goes_on_where_it_was_saved() {
    let h = harness!();
    if Harness::shells(&["node"]).is_empty() {
        return;
    }
    let s = h.session();
    s.run_in("node", "const a = [1], b = a; let n = 1; function inc(by = 1) { return n += by; }");
    s.run_in("node", "class P { constructor(x) { this.x = x; } twice() { return 2 * this.x; } }");
    s.run_in("node", "const p = new P(21), m = new Map([['k', a]]); process.env.STAGE = 'test'");
    s.run_in("node", "var timer = setTimeout(() => {}, 1e8); 0");
    let saved = save(&h, &s, &[]);
    let named: Vec<&str> = left(&saved).into_iter().map(|(name, _)| name).collect();
    assert_eq!(named, ["timer"], "{saved}");
    fs::create_dir(h.path("elsewhere")).unwrap();
    let (r, _) = restore(&h, &["--cwd", "elsewhere"]);
    r.run_in(
        "node",
        "console.log(a === b, m.get('k') === a, inc(2), n, p.twice(), p instanceof P, \
         process.env.STAGE, process.cwd())",
    )
    .prints(&format!("true true 3 3 42 true test {}\n", h.path("elsewhere").display()))
    .is_restored_as_of(4);
    s.end();
    r.end();
}

#[test]
fn a_python_session_of_its_own_is_carried_and_outlives_its_keeper() {
    let h = harness!();
    let s = h.session_of("python3");
    s.run("x = {'k': [1, 2]}\ndef f(): return x['k']");
    save(&h, &s, &[]);
    s.end();
    let (r, _) = restore(&h, &["--name", "second"]);
    assert_eq!(r.metadata()["name"], "second");
    r.run("f()").is_restored_as_of(1);
    r.run("y = 1");
    // What was saved is better than nothing.
    r.keeper().kill().wait_gone();
    r.run("print(f(), 'y' in globals())").prints("[1, 2] False\n").is_restored_as_of(1);
    r.end();
}

#[test]
fn a_name_that_cannot_be_loaded_is_told_with_the_next_run() {
    let h = harness!();
    fs::write(h.path("gone_later.py"), "class Thing: pass\n").unwrap();
    let s = h.session_of("python3");
    s.run("import gone_later\nthing = gone_later.Thing()\nok = 1");
    assert_eq!(left(&save(&h, &s, &[])), []);
    fs::remove_file(h.path("gone_later.py")).unwrap();
    let _ = fs::remove_dir_all(h.path("__pycache__"));
    let (r, _) = restore(&h, &[]);
    let answer = r.run("print(ok)").prints("1\n");
    let notes = answer.notes();
    assert!(notes.contains("not carried over: gone_later (module gone_later cannot"), "{notes}");
    assert!(notes.contains("thing (it cannot be loaded: ModuleNotFoundError"), "{notes}");
    s.end();
    r.end();
}

#[test]
fn a_saved_state_that_kills_its_kernel_is_given_up() {
    let h = harness!();
    let s = h.session_of("python3");
    s.run("import os\nclass End:\n    def __reduce__(self): return (os._exit, (7,))\nend = End()\nx = 1");
    save(&h, &s, &[]);
    let (r, _) = restore(&h, &[]);
    r.run("print('x' in globals())").prints("False\n").is_fresh();
    r.run("x = 2");
    r.keeper().kill().wait_gone();
    r.run("print('x' in globals())").prints("False\n").is_fresh();
    s.end();
    r.end();
}

#[test]
fn background_processes_stay_and_are_named() {
    let h = harness!();
    let s = h.session();
    s.run("sleep 1000 & sleep 2000 &");
    until("both sleep", || {
        let jobs = s.sessile("jobs").json();
        let is_sleep =
            |job: &Value| job["command"].as_str().is_some_and(|c| c.starts_with("sleep"));
        jobs.as_array()?.iter().all(is_sleep).then_some(())
    });
    let saved = save(&h, &s, &[]);
    let found: Vec<&str> = left(&saved).into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, ["sleep 1000", "sleep 2000"]);
    s.end();
}

#[test]
fn the_history_is_carried_and_says_where_it_is_from() {
    let h = harness!();
    let s = h.session();
    s.run("echo one");
    s.run("false");
    save(&h, &s, &[]);
    let (r, _) = restore(&h, &[]);
    r.run("echo three");
    let history = r.history();
    let rows: Vec<(u64, &str, Option<&str>)> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| {
            let command = row["command"].as_str().expect("a command");
            (row["run"].as_u64().expect("a number"), command, row["from_session"].as_str())
        })
        .collect();
    let from = Some(s.id());
    assert_eq!(rows, [(1, "echo one", from), (2, "false", from), (3, "echo three", None)]);
    assert_eq!(r.metadata()["restored_from"], s.id());
    s.end();
    r.end();
}

#[test]
fn files_are_carried_into_a_new_directory() {
    let h = harness!();
    fs::create_dir_all(h.path("work/sub")).unwrap();
    fs::write(h.path("work/sub/data"), "42").unwrap();
    fs::write(h.path("work/tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(h.path("work/tool"), fs::Permissions::from_mode(0o6755)).unwrap();
    fs::write(h.path("work/.gitignore"), "*.log\n").unwrap();
    fs::write(h.path("work/big.log"), "x").unwrap();
    std::os::unix::fs::symlink("sub/data", h.path("work/link")).unwrap();
    let s = h.session_with(&["--cwd", "work"]);
    s.run("cd sub");
    let saved = save(&h, &s, &["--files"]);
    assert_eq!(saved["files"]["files"], 3);
    assert_eq!(saved["files"]["left_out"], 1);
    assert_eq!(saved["files"]["examples"][0]["name"], "big.log");
    fs::remove_dir_all(h.path("work")).unwrap();
    let (r, answer) = restore(&h, &["--cwd", "fresh"]);
    assert_eq!(answer["files"]["restored"], true);
    r.run("pwd; cat data ../link").prints(&format!("{}\n4242", h.path("fresh/sub").display()));
    let mode = fs::metadata(h.path("fresh/tool")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755, "never setuid");
    assert!(!h.path("fresh/big.log").exists());

    // Only into an empty one.
    let before = directories(&h);
    fs::create_dir(h.path("full")).unwrap();
    fs::write(h.path("full/mine"), "mine").unwrap();
    let refused = h.sessile(&["restore", "w.sessile", "--cwd", "full"]).exits(1).errors();
    assert!(refused.contains("it is not empty"), "{refused}");
    assert_eq!((names(&h.path("full")), directories(&h)), (vec!["mine".to_owned()], before));
    // Without a place for them they stay where they are, and that is told.
    let (stays, answer) = restore(&h, &[]);
    assert_eq!(answer["files"]["restored"], false);
    let named: Vec<&str> = left(&answer).into_iter().map(|(name, _)| name).collect();
    assert_eq!(named, ["the session's directory", "the working directory"]);
    for session in [s, r, stays] {
        session.end();
    }
}

#[test]
fn a_file_from_elsewhere_needs_to_be_trusted() {
    let (h, other) = (harness!(), harness!());
    let s = h.session();
    s.run("touch ran; x=1");
    save(&h, &s, &[]);
    s.end();
    fs::copy(h.path("w.sessile"), other.path("w.sessile")).unwrap();
    let refused = other.sessile(&["restore", "w.sessile"]).exits(1).errors();
    assert!(refused.contains("restoring it runs code") && refused.contains("--trust"), "{refused}");
    assert_eq!(directories(&other), [""; 0]);
    // A secret that others can read is none.
    fs::create_dir_all(other.sessions_dir()).unwrap();
    let secret = other.private_dir().join("secret");
    fs::copy(h.private_dir().join("secret"), &secret).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let _ = other.sessile(&["restore", "w.sessile"]).exits(1);
    fs::remove_file(secret).unwrap();
    let (r, _) = restore(&other, &["--trust"]);
    r.run("echo $x").prints("1\n");
    // The environment of here, where the session had not changed it.
    r.run("echo $SESSILE_TEST").prints(&format!("{}\n", other.root().display()));
    // Now that there are sessions here, their files are their own.
    save(&other, &r, &[]);
    let (own, _) = restore(&other, &[]);
    own.end();
    r.end();
}

#[test]
fn a_run_that_is_going_is_not_saved_and_may_be_waited_for() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo gate; x=1");
    let going = s.begin("touch begun; read line <gate; x=2");
    h.wait_for_file("begun");
    let refused = h.sessile(&["save", s.id(), "-o", "w.sessile"]).exits(1).errors();
    assert!(refused.contains("a run is going"), "{refused}");
    assert!(!h.path("w.sessile").exists());
    let waiting = h.begin(&["save", s.id(), "-o", "w.sessile", "--wait"], b"");
    waiting.wait_blocked();
    fs::write(h.path("gate"), "go\n").unwrap();
    s.answer(going, "").exits(0);
    assert_eq!(waiting.finish().json()["as_of_run"], 2);
    let (r, _) = restore(&h, &[]);
    r.run("echo $x").prints("2\n");
    s.end();
    r.end();
}

/// A Python session whose dump waits for a line in a FIFO.
fn slow<'h>(h: &'h Harness) -> Session<'h> {
    let s = h.session_of("python3");
    s.run(
        "import os\nos.mkfifo('gate')\nclass Slow:\n    def __reduce__(self):\n        \
         if not os.path.exists('begun'):\n            open('begun', 'w').close()\n            \
         open('gate').read()\n        return (Slow, ())\n\
         slow = Slow()\nx = 1",
    );
    s
}

#[test]
fn runs_go_on_while_a_session_is_saved() {
    let h = harness!();
    let s = slow(&h);
    let saving = h.begin(&["save", s.id(), "-o", "w.sessile"], b"");
    h.wait_for_file("begun");
    s.run("x = 2\nprint(x)").prints("2\n").is_kept();
    assert_eq!(s.sessile("jobs").json(), json!([]));
    fs::write(h.path("gate"), "").unwrap();
    assert_eq!(saving.finish().json()["as_of_run"], 1);
    let (r, _) = restore(&h, &[]);
    r.run("print(x)").prints("1\n").is_restored_as_of(1);
    s.end();
    r.end();
}

#[test]
fn whoever_goes_takes_the_save_back() {
    let h = harness!();
    let s = slow(&h);
    let saving = h.begin(&["save", s.id(), "-o", "w.sessile"], b"");
    h.wait_for_file("begun");
    saving.process().signal(rustix::process::Signal::INT);
    let _ = saving.finish();
    until("nothing is left of it", || names(&s.dir().join("kernels")).is_empty().then_some(()));
    assert!(!h.path("w.sessile").exists());
    s.run("del slow");
    save(&h, &s, &[]);
    s.end();
}

#[test]
fn a_session_that_ends_meanwhile_is_not_saved() {
    let h = harness!();
    let s = slow(&h);
    let saving = h.begin(&["save", s.id(), "-o", "w.sessile"], b"");
    h.wait_for_file("begun");
    s.end();
    let refused = saving.finish().exits(1).errors();
    assert!(refused.contains("nothing was saved"), "{refused}");
    assert!(!h.path("w.sessile").exists());
}

#[test]
fn a_dump_that_dies_is_told_and_costs_nothing() {
    let h = harness!();
    let s = h.session_of("python3");
    s.run("import os\nclass End:\n    def __reduce__(self): os._exit(3)\nend = End()\nx = 1");
    let refused = h.sessile(&["save", s.id(), "-o", "w.sessile"]).exits(1).errors();
    assert!(refused.contains("the state of python could not be written down"), "{refused}");
    assert_eq!(names(&s.dir().join("kernels")), [""; 0]);
    s.run("print(x)").prints("1\n").is_kept();
    s.end();
}

#[test]
fn a_keeper_that_is_killed_leaves_no_half_file() {
    let h = harness!();
    fs::create_dir(h.path("out")).unwrap();
    // The writer asks for the secret last: then all else is written.
    let s = h.session();
    s.run("x=1");
    let secret = h.private_dir().join("secret");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &secret,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let saving = h.begin(&["save", s.id(), "-o", "out/w.sessile", "--files"], b"");
    let _held = fs::File::options().write(true).open(&secret).unwrap();
    let keeper = s.keeper();
    keeper.kill().wait_gone();
    saving.finish().exits(1);
    until("all is gone", || h.processes().is_empty().then_some(()));
    assert_eq!(names(&h.path("out")), [""; 0]);
    drop(_held);
    fs::remove_file(secret).unwrap();
    s.run("echo $x").prints("1\n").is_restored_as_of(1);
    h.sessile(&["save", s.id(), "-o", "out/w.sessile"]).exits(0);
    assert_eq!(names(&h.path("out")), ["w.sessile"]);
    let kernels = s.dir().join("kernels");
    assert!(!kernels.exists() || names(&kernels).is_empty(), "what was left is cleared away");
    s.end();
}

#[test]
fn a_full_disk_is_told_and_nothing_is_left() {
    let h = harness!();
    fs::create_dir_all(h.path("work")).unwrap();
    fs::create_dir(h.path("out")).unwrap();
    // A file that may not grow is what every user can have of a full disk.
    let mut start = h.command(&["start", "--cwd", "work"]);
    let limit = Rlimit { current: Some(400_000), maximum: Some(400_000) };
    // SAFETY: setrlimit is async-signal-safe.
    unsafe {
        start.pre_exec(move || Ok(rustix::process::setrlimit(Resource::Fsize, limit)?));
    }
    let started = Client::spawn(start, b"").finish().json();
    let s = h.session_called(started["session_id"].as_str().expect("an id"));
    let mut noise = 1_u64;
    for name in ["a", "b", "c"] {
        let bytes = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (noise >> 56) as u8
        });
        fs::write(h.path("work").join(name), bytes.take(200_000).collect::<Vec<u8>>()).unwrap();
    }
    let out = h.path("out/w.sessile");
    fs::write(&out, "the old one").unwrap();
    let command = ["save", s.id(), "-o", "out/w.sessile", "--files"];
    let refused = h.sessile(&command).exits(1).errors();
    assert!(refused.contains("there is no room to save the session"), "{refused}");
    s.run_in("python", "x = 'a' * 1000000");
    let refused = h.sessile(&command[..4]).exits(1).errors();
    assert!(refused.contains("the state of python could not be written down"), "{refused}");
    assert_eq!(fs::read(&out).unwrap(), b"the old one");
    assert_eq!(names(&h.path("out")), ["w.sessile"]);
    assert_eq!(names(&s.dir().join("kernels")), [""; 0]);
    s.end();
}

#[test]
fn a_path_that_cannot_be_written_is_told() {
    let h = harness!();
    let s = h.session();
    for path in ["not/there/w.sessile", "/proc/w.sessile", "/", "/dev/full/x"] {
        let refused = h.sessile(&["save", s.id(), "-o", path]).exits(1).errors();
        assert!(refused.starts_with("Error: the session cannot be saved: "), "{path}: {refused}");
    }
    s.end();
}
