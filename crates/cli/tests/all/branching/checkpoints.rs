//! Going back: to checkpoints, and before the last run.

use sessile_testkit::{Harness, Process, Session, harness, until};

const SHELLS: &[&str] = &["bash", "zsh", "sh"];

/// Names of what there is of a session in memory, besides its kernels' places.
fn copies_in_memory(session: &Session<'_>) -> Vec<String> {
    let names = std::fs::read_dir(session.memory()).unwrap().flatten();
    let mut names: Vec<String> =
        names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.starts_with('i'));
    names.sort();
    names
}

/// What ends programs for lack of memory may hit the fork that writes a shell's state.
#[test]
fn a_capture_that_is_killed_is_taken_again() {
    let h = harness!();
    let s = h.session();
    let (kernel, keeper) = (s.kernel(), s.keeper());
    // So much that it takes a while.
    s.run("for i in {1..5000}; do printf -v v$i %s $i; done").exits(0);
    let is_capture = |child: &Process| child.pid() != kernel.pid();
    until("a capture", || keeper.children().into_iter().find(is_capture)).kill();
    s.checkpoint(&["--name", "here"]);
    s.run("v7=x").exits(0);
    s.rewind(&["here"]);
    s.run("echo $v7").prints("7\n");
}

#[test]
fn a_rewind_works_whatever_has_become_of_the_shell() {
    let h = harness!();
    for shell in Harness::shells(SHELLS) {
        let s = h.session_of(shell);
        s.run("x=1; cd /usr; export E=e; umask 027; trap 'echo t' USR1; alias al='echo al'");
        s.checkpoint(&["--name", "here"]);
        for ending in ["x=2; exit 3", "x=2; exec true", "x=2; kill -9 $$", "x=2; unset E; cd /"] {
            s.run(ending);
            let told = s.rewind(&["here"]);
            assert_eq!(told["checkpoint"], "here");
            s.run("echo $x $(pwd) $(umask) $E; trap >/tmp/$$.t; grep -c USR1 /tmp/$$.t; rm /tmp/$$.t; eval al")
                .prints(&format!("1 /usr {} e\n1\nal\n", if shell == "zsh" { "027" } else { "0027" }))
                .exits(0);
        }
        s.run_with(&["--timeout", "0.2"], "trap '' INT TERM; while :; do x=9; done").timed_out();
        s.rewind(&["here"]);
        s.run("echo $x").prints("1\n");
    }
}

#[test]
fn a_rewind_works_whatever_has_become_of_the_python() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run("x = [1]; import json, os; os.chdir('/usr'); f = lambda: x");
    s.checkpoint(&["--name", "here"]);
    for ending in [
        "x.append(2); import os; os._exit(3)",
        "x.append(2); os.kill(os.getpid(), 9)",
        "x.append(2); import ctypes; ctypes.string_at(0)",
        "x.append(2); os.execlp('true', 'true')",
        "x.append(2); exit(4)",
        "x.append(2); del f; os.chdir('/')",
    ] {
        s.run(ending);
        let told = s.rewind(&["here"]);
        assert_eq!(told["kernels"][0]["carried"], "live", "{ending}: {told}");
        s.run("f(), os.getcwd(), json.dumps(1)").shows("([1], '/usr', '1')");
    }
    s.run_with(
        &["--timeout", "0.2"],
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: x = 5",
    )
    .timed_out();
    s.rewind(&["here"]);
    s.run("x").shows("[1]");
    s.call("drop", &["--all"]).exits(0);
    s.wait_children(1);
    assert_eq!(copies_in_memory(&s), Vec::<String>::new());
}

#[test]
fn the_same_random_numbers_come_after_going_back() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run("import random; random.seed(3); own = random.Random(4); random.random()");
    s.checkpoint(&["--name", "here"]);
    let look = "random.random(), random.gauss(0, 1), own.random()";
    let first = s.run(look).json()["result"].clone();
    for _ in 0..3 {
        s.rewind(&[]);
        assert_eq!(s.run(look).json()["result"], first);
    }
}

#[test]
fn memory_that_is_shared_with_children_goes_back_as_well() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run("import mmap; m = mmap.mmap(-1, 4096); m[:2] = b'ab'");
    s.checkpoint(&[]);
    s.run("m[:2] = b'xy'");
    s.rewind(&[]);
    s.run("m[:2]").shows("b'ab'");
    s.run("m[:2] = b'xy'");
    s.rewind(&[]);
    s.run("m[:2]").shows("b'ab'");
}

#[test]
fn undo_goes_back_run_by_run_across_languages() {
    let h = harness!();
    let s = h.session_with(&["--auto", "10"]);
    s.run("x=1");
    s.python("y = 1");
    s.run("x=2");
    s.python("y = 2");
    let told = s.undo();
    assert_eq!(told["undone"], serde_json::json!([4]));
    s.undo();
    s.run("echo $x").prints("1\n");
    s.undo();
    s.python("y").shows("1");
    s.undo();
    s.undo();
    // A kernel that had not been there is not there.
    s.python("'y' in globals()").shows("False");
    s.undo();
    s.undo();
    s.run("echo ${x-none}").prints("none\n");
}

#[test]
fn undo_right_after_quick_runs_finds_each_of_them() {
    let h = harness!();
    for language in ["bash", "python3", "zsh", "sh"] {
        if language != "python3" && Harness::shells(&[language]).is_empty() {
            continue;
        }
        let s = h.session_with(&[language, "--auto", "50"]);
        // Queued, so that nothing is idle in between.
        let begun: Vec<_> = (0..12).map(|_| s.begin("x=1")).collect();
        for client in begun {
            s.answer(client, "").exits(0);
        }
        let look = if language == "python3" { "print(n)" } else { "echo $n" };
        for n in 0..5 {
            s.run(format!("n={n}")).exits(0);
        }
        for n in (0..4).rev() {
            s.undo();
            s.run(look).prints(&format!("{n}\n"));
            s.undo();
        }
        for _ in 0..13 {
            s.undo();
        }
        let refused = s.call("undo", &[]).exits(1).errors();
        assert!(refused.contains("has not made 1 runs"), "{refused}");
    }
}

#[test]
fn only_so_many_are_kept_and_the_rest_is_given_back() {
    let h = harness!();
    let s = h.session_with(&["python3", "--auto", "3"]);
    for n in 0..20 {
        s.run(format!("x = {n}")).exits(0);
    }
    assert_eq!(s.checkpoints(), ["before-18", "before-19", "before-20"]);
    // The kernel, three images, and one that was made ahead of the next run.
    s.wait_children(5);
    let refused = s.call("rewind", &["--runs", "4"]).exits(1).errors();
    assert!(refused.contains("no checkpoint from right before run 17"), "{refused}");
    s.rewind(&["--runs", "3"]);
    s.run("x").shows("16");
    s.call("drop", &["--all"]).exits(0);
    s.wait_children(1);
    until("memory to be given back", || copies_in_memory(&s).is_empty().then_some(()));
}

/// A copy is no job, also before it has said that it is there.
#[test]
fn copies_that_take_long_to_come_up_are_no_jobs() {
    let h = harness!();
    let s = h.session_with(&["python3", "--auto", "5"]);
    // Copies of copies wait for as long as there is a file.
    let hook = "import os, time\nme = os.getpid()\n\
                def wait():\n    while os.getppid() != me and os.path.exists('hold'): time.sleep(0.01)\n\
                os.register_at_fork(after_in_child=wait)";
    s.run(hook).exits(0);
    s.run("open('hold', 'w').close()").exits(0);
    // The kernel, the images before both runs, and the one that waits.
    s.wait_children(4);
    assert_eq!(s.sessile("jobs").json(), serde_json::json!([]));
    std::fs::remove_file(h.path("hold")).unwrap();
}

/// Nothing is waited for that nobody is left to do.
#[test]
fn a_copy_that_ends_after_its_original_is_told_at_once() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    let hook = "import os, time\n\
                def wait():\n    if os.path.exists('hold'):\n        \
                with open('forked', 'w') as f: f.write(f'{os.getpid()}\\n')\n        \
                time.sleep(1000)\n\
                os.register_at_fork(after_in_child=wait); print(os.getpid())";
    let kernel = Process::of(s.run(hook).exits(0).number());
    std::fs::write(h.path("hold"), "").unwrap();
    let client = h.begin(&["checkpoint", s.id()], b"");
    let copy = Process::of(h.wait_for_line("forked").parse().unwrap());
    let keeper = s.keeper().pid();
    kernel.kill();
    kernel.wait_gone();
    until("its adoption", || (copy.parent()?.pid() == keeper).then_some(()));
    copy.kill();
    let told = client.finish().exits(1).errors();
    assert!(told.contains("its process ended before it was written down"), "{told}");
}

#[test]
fn copies_that_are_not_wanted_any_more_when_they_come_up_end() {
    let h = harness!();
    let s = h.session_with(&["python3", "--auto", "1"]);
    s.run("x = 0");
    for _ in 0..3 {
        let begun: Vec<_> = (0..15).map(|_| s.begin("x += 1")).collect();
        for client in begun {
            s.answer(client, "").exits(0);
        }
    }
    // The kernel, the image before the last run, and the one ahead of the next.
    s.wait_children(3);
    s.undo();
    s.run("x").shows("44");
    s.call("drop", &["--all"]).exits(0);
    s.wait_children(1);
}

#[test]
fn dropping_one_leaves_others_that_share_its_state() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run("x = 1");
    s.run_in("bash", "y=1");
    s.checkpoint(&["--name", "one"]);
    s.checkpoint(&["--name", "two"]);
    s.run_in("bash", "y=2");
    s.checkpoint(&["--name", "three"]);
    // One copy of Python for all three, besides the two kernels.
    s.wait_children(3);
    s.run("x = 2");
    s.call("drop", &["one"]).exits(0);
    s.rewind(&["two"]);
    s.run("x").shows("1");
    s.run_in("bash", "echo $y").prints("1\n");
    s.call("drop", &["two"]).exits(0);
    s.rewind(&["three"]);
    s.run("x").shows("1");
    s.run_in("bash", "echo $y").prints("2\n");
    s.call("drop", &["three"]).exits(0);
    s.wait_children(2);
    let refused = s.call("rewind", &["three"]).exits(1).errors();
    assert!(refused.contains("no checkpoint"), "{refused}");
}

#[test]
fn what_runs_in_the_background_goes_on_and_is_named() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.checkpoint(&[]);
    let running = s.spawns("sleep 600 >/dev/null 2>&1 & echo $!");
    let of_python =
        s.python("import subprocess; print(subprocess.Popen(['sleep', '600']).pid)").number();
    let told = s.rewind(&[])["left"].to_string();
    for pid in [running.pid(), of_python] {
        assert!(told.contains(&format!("process {pid} ")), "{told}");
        Process::of(pid).assert_alive();
    }
    assert_eq!(s.sessile("jobs").json().as_array().unwrap().len(), 2);
    s.run("echo $x").prints("1\n");
    s.end();
    running.wait_gone();
}

#[test]
fn a_branch_that_was_left_is_still_there() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.checkpoint(&["--name", "base"]);
    s.run("x=2");
    s.python("y = 2");
    s.checkpoint(&["--name", "left branch"]);
    s.rewind(&["base"]);
    s.run("x=3");
    s.checkpoint(&["--name", "right"]);
    s.rewind(&["left branch"]);
    s.run("echo $x").prints("2\n");
    s.python("y").shows("2");
    s.rewind(&["right"]);
    s.run("echo $x").prints("3\n");
    s.python("'y' in globals()").shows("False");
    let commands = s.history().to_string();
    assert!(commands.contains("rewind left branch"), "{commands}");
}

#[test]
fn names_may_be_anything_and_are_never_taken_twice() {
    let h = harness!();
    let s = h.session();
    let long = "n".repeat(100);
    let names = ["a b", "ü/../../etc", "\"q'\\", "..", "{}", "/", long.as_str()];
    for name in names {
        s.run("x=$((x + 1))");
        s.checkpoint(&["--name", name]);
        let refused = s.call("checkpoint", &["--name", name]).exits(1).errors();
        assert!(refused.contains("already"), "{refused}");
    }
    assert_eq!(s.checkpoints(), names);
    for (n, name) in names.iter().enumerate().rev() {
        assert_eq!(s.rewind(&[name])["checkpoint"], *name);
        s.run("echo $x").prints(&format!("{}\n", n + 1));
    }
    for name in ["", "line\nbreak", &"n".repeat(101)] {
        let refused = s.call("checkpoint", &["--name", name]).exits(1).errors();
        assert!(refused.contains("cannot be the name"), "{refused}");
    }
    s.call("drop", &[names[1], names[2]]).exits(0);
    assert_eq!(s.checkpoints().len(), names.len() - 2);
}

#[test]
fn a_reset_and_an_end_leave_no_process_and_no_file_of_checkpoints() {
    let h = harness!();
    let s = h.session_with(&["python3", "--auto", "5", "--files"]);
    for n in 0..6 {
        s.run(format!("x = {n}; open('f', 'w').write('{n}')")).exits(0);
    }
    s.checkpoint(&["--name", "mine", "--files"]);
    let keeper = s.keeper();
    let copies = keeper.children();
    s.call("reset", &[]).exits(0);
    for copy in copies {
        copy.wait_gone();
    }
    assert_eq!(s.checkpoints(), Vec::<String>::new());
    assert!(!s.dir().join("files").exists() && !s.dir().join("checkpoints.json").exists());
    let refused = s.call("rewind", &["mine"]).exits(1).errors();
    assert!(refused.contains("mine"), "{refused}");
    s.run("x = 1; x").shows("1");
    s.checkpoint(&["--files"]);
    let copies = keeper.children();
    s.end();
    for copy in copies {
        copy.wait_gone();
    }
    assert!(!s.dir().join("files").exists() && !s.dir().join("checkpoints.json").exists());
}

#[test]
fn after_the_keepers_death_shells_can_be_rewound_and_python_is_said_to_be_lost() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.checkpoint(&["--name", "shell"]);
    s.run("x=2");
    s.python("y = 1");
    s.checkpoint(&["--name", "both"]);
    let last = s.run("x=3").run();
    s.wait_captured(last);
    s.keeper().kill().wait_gone();
    s.run("echo $x").prints("3\n");
    assert_eq!(s.checkpoints(), ["shell", "both"]);
    let refused = s.call("rewind", &["both"]).exits(1).errors();
    assert!(refused.contains("python is gone"), "{refused}");
    s.run("echo $x").prints("3\n").is_kept();
    s.rewind(&["shell"]);
    s.keeper().kill().wait_gone();
    s.run("echo $x").prints("1\n");
}

#[test]
fn a_keeper_that_dies_right_after_a_rewind_leaves_the_state_gone_back_to() {
    let h = harness!();
    for shell in Harness::shells(SHELLS) {
        let s = h.session_with(&[shell, "--auto", "5"]);
        s.run("x=1");
        s.run("x=2");
        let last = s.run("x=3").run();
        s.wait_captured(last);
        s.undo();
        s.keeper().kill().wait_gone();
        s.run("echo $x").prints("2\n").is_restored_as_of(2);
        // And counts from there.
        s.undo();
        s.undo();
        s.run("echo $x").prints("1\n");
    }
}

#[test]
fn state_that_changes_between_runs_is_taken_as_it_is() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run("import threading; x = 1; go = threading.Event(); done = threading.Event()\ndef f():\n  global x\n  import os\n  while not os.path.exists('go'): pass\n  x = 2; open('done', 'w').write('')\nthreading.Thread(target=f, daemon=True).start()");
    s.checkpoint(&["--name", "before"]);
    std::fs::write(h.path("go"), "").unwrap();
    h.wait_for_file("done");
    s.checkpoint(&["--name", "after"]);
    // Nothing has been run since: what goes on in it goes on.
    s.rewind(&["after"]);
    s.run_in("bash", "true");
    s.run("x, threading.active_count()").shows("(2, 1)");
    s.rewind(&["before"]);
    s.run("x").shows("1");
    s.rewind(&["after"]);
    s.run("x").shows("2");
}

#[test]
fn checkpoints_wait_for_runs_only_if_asked() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo go; x=1");
    s.checkpoint(&["--name", "base"]);
    let going = s.begin("x=2; read line <go; x=3");
    going.wait_blocked();
    for args in [["checkpoint", s.id()], ["rewind", s.id()]] {
        let refused = h.sessile(&args).exits(1).errors();
        assert!(refused.contains("is going"), "{refused}");
    }
    let waiting = h.begin(&["checkpoint", s.id(), "--wait", "--name", "late"], b"");
    waiting.wait_blocked();
    std::fs::write(h.path("go"), "\n").unwrap();
    let _ = waiting.finish().json();
    s.answer(going, "").exits(0);
    s.run("x=4");
    s.rewind(&["late"]);
    s.run("echo $x").prints("3\n");
}
