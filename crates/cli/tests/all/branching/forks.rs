//! A fork and its original have nothing in common but their past.

use sessile_testkit::{Harness, Process, Session, harness};

const SHELLS: &[&str] = &["bash", "zsh", "sh"];

/// A process that was started in the background of a session.
#[track_caller]
fn job(session: &Session<'_>) -> Process {
    session.spawns("sleep 600 >/dev/null 2>&1 & echo $!")
}

#[track_caller]
fn jobs(session: &Session<'_>) -> usize {
    session.sessile("jobs").json().as_array().expect("jobs").len()
}

#[test]
fn a_fork_of_a_shell_has_all_of_its_state_and_none_of_its_later_changes() {
    const LOOK: &str = r#"echo "$x $(pwd) $E $(g) $(umask) $-" | tr -d is; trap | grep -c mark; eval al; sh -c 'echo $E'"#;
    let h = harness!();
    for shell in Harness::shells(SHELLS) {
        let s = h.session_of(shell);
        std::fs::create_dir_all(h.path("sub dir")).unwrap();
        s.run("x='a b'; cd 'sub dir'; export E=e; umask 027; set -f; trap 'echo mark' USR1");
        s.run("alias al='echo al'; g() { echo g; }").exits(0);
        if shell == "sh" {
            s.run("set -a");
        }
        let before = s.run(LOOK).stdout().to_owned();
        assert!(before.starts_with("a b"), "{shell}: {before:?}");
        let fork = s.fork();
        if shell == "sh" {
            // It has no way to list its functions, and says so.
            fork.run("g() { echo g; }");
        }
        fork.run(LOOK).prints(&before).exits(0).is_kept();
        fork.run("x=fork; cd /; E=f; umask 077; set +f; trap - USR1; alias al='echo no'; g() { echo no; }");
        s.run(LOOK).prints(&before).is_kept();
        s.run("x=original; cd /usr; E=o");
        fork.run("echo $x $(pwd) $E").prints("fork / f\n").is_kept();
        s.run("echo $x $(pwd) $E").prints("original /usr o\n").is_kept();
    }
}

#[test]
fn a_fork_counts_on_from_the_originals_runs_and_has_its_own_records() {
    let h = harness!();
    let s = h.session();
    s.run("true");
    s.run("echo one");
    let fork = s.fork();
    assert_eq!(fork.run("echo two").run(), 3);
    assert_eq!(s.run("echo three").run(), 3);
    fork.run("echo $SESSILE_SESSION_ID").prints(&format!("{}\n", fork.id()));
    s.run("echo $SESSILE_SESSION_ID").prints(&format!("{}\n", s.id()));
    s.wait_filed(3, "stdout", "three\n");
    fork.wait_filed(3, "stdout", "two\n");
}

#[test]
fn a_fork_does_not_have_the_originals_jobs() {
    let h = harness!();
    let s = h.session();
    let running = job(&s);
    let (forks, answer) = s.forks(&[]);
    let left = answer["left"].to_string();
    assert!(left.contains(&format!("process {}", running.pid())), "{left}");
    let fork = &forks[0];
    assert_eq!((jobs(&s), jobs(fork)), (1, 0));
    let its_own = job(fork);
    assert_eq!((jobs(&s), jobs(fork)), (1, 1));
    fork.end();
    its_own.wait_gone();
    running.assert_alive();
    s.run("jobs | wc -l").prints("1\n").is_kept();
}

#[test]
fn the_end_of_the_original_ends_its_jobs_and_leaves_the_fork_whole() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.python("y = 1");
    let ends_with_it = job(&s);
    let detached = s.spawns("setsid sh -c 'sleep 600 & echo $!' 2>/dev/null </dev/null");
    let fork = s.fork();
    let stays = job(&fork);
    s.end();
    ends_with_it.wait_gone();
    detached.wait_gone();
    stays.assert_alive();
    fork.run("echo $x").prints("1\n").is_kept();
    fork.python("y").shows("1").is_kept();
    fork.end();
    stays.wait_gone();
}

/// Starts what nothing speaks of: no environment, session, file or parent.
const HIDDEN: &str = "env -i setsid sh -c '(sleep 600 </dev/null >/dev/null 2>&1 & echo $!)'";

#[test]
fn what_hides_still_belongs_to_whoever_started_it() {
    let h = harness!();
    let s = h.session();
    let fork = s.fork();
    let of_fork = fork.spawns(HIDDEN);
    let of_original = s.spawns(HIDDEN);
    s.end();
    of_original.wait_gone();
    of_fork.assert_alive();
    let grandchild = fork.fork();
    let of_grandchild = grandchild.spawns(HIDDEN);
    fork.end();
    of_fork.wait_gone();
    of_grandchild.assert_alive();
    grandchild.run("echo here").prints("here\n").is_kept();
    grandchild.end();
    of_grandchild.wait_gone();
}

#[test]
fn what_hides_from_python_still_belongs_to_its_fork() {
    let h = harness!();
    let s = h.session();
    s.python("import subprocess");
    let fork = s.fork();
    let sibling = fork.fork();
    let hides = |of: &Session<'_>| {
        let code = format!("print(subprocess.getoutput({HIDDEN:?}))");
        Process::of(of.python(&code).exits(0).number())
    };
    let [of_original, of_fork, of_sibling] = [&s, &fork, &sibling].map(hides);
    fork.end();
    of_fork.wait_gone();
    of_original.assert_alive();
    of_sibling.assert_alive();
    sibling.end();
    of_sibling.wait_gone();
    of_original.assert_alive();
    s.end();
    of_original.wait_gone();
}

#[test]
fn limits_are_the_users_in_a_fork_too() {
    let h = harness!();
    let s = h.session();
    let limits = |of: &Session<'_>| of.state()["limits"].clone();
    assert_eq!(limits(&s), limits(&s.fork().fork()), "what tells processes apart is not shown");
    s.run("ulimit -S -R 900000000").exits(0);
    s.fork().run("ulimit -S -R").prints("900000000\n");
}

#[test]
fn a_killed_kernel_of_a_fork_is_the_forks_loss_alone() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.python("y = 1");
    let fork = s.fork();
    fork.run("x=2").exits(0);
    fork.run("kill -9 $$").is_restored_as_of(3);
    fork.python("import os; os.kill(os.getpid(), 9)").is_fresh();
    fork.run("echo $x").prints("2\n");
    s.run("echo $x").prints("1\n").is_kept();
    s.python("y").shows("1").is_kept();
    s.run("kill -9 $$");
    s.python("import os; os._exit(3)").is_fresh();
    fork.run("echo $x").prints("2\n").is_kept();
}

#[test]
fn a_timeout_reaches_only_the_session_that_has_it() {
    let h = harness!();
    let s = h.session();
    s.python("import time");
    let fork = s.fork();
    let (slow, quick) = ("time.sleep(600)", ["--language", "python", "--timeout", "0.2"]);
    for (one, other) in [(&s, &fork), (&fork, &s)] {
        let going = one.begin_with(&["--language", "python"], "input_seen = 1; time.sleep(600)");
        going.wait_blocked();
        other.run_with(&quick, slow).timed_out().is_kept();
        other.python("1 + 1").shows("2").is_kept();
        one.call("interrupt", &[]).exits(0);
        one.answer(going, "").has("interrupted", true).is_kept();
        one.python("input_seen").shows("1").is_kept();
    }
}

#[test]
fn forks_of_forks_of_forks() {
    let h = harness!();
    let first = h.session();
    first.run("x=0");
    first.python("y = [0]");
    let mut all = vec![first];
    for generation in 1..=4 {
        let fork = all.last().expect("one").fork();
        fork.run(format!("x=$x$((x + {generation}))")).exits(0);
        fork.python(format!("y.append({generation})")).exits(0);
        all.push(fork);
    }
    // In the middle of the line.
    all.remove(2).end();
    all.remove(0).end();
    all[0].python("y").shows("[0, 1]").is_kept();
    all[1].python("y").shows("[0, 1, 2, 3]").is_kept();
    all[2].python("y").shows("[0, 1, 2, 3, 4]").is_kept();
    let fork = all[1].fork();
    fork.python("y").shows("[0, 1, 2, 3]").is_kept();
}

#[test]
fn twenty_forks_at_once_are_used_at_once() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    s.python("y = list(range(1000))");
    let (forks, _) = s.forks(&["--count", "20"]);
    assert_eq!(forks.len(), 20);
    let python = ["--language", "python"];
    let begun: Vec<_> = forks
        .iter()
        .enumerate()
        .map(|(n, fork)| {
            (fork.begin(format!("x={n}")), fork.begin_with(&python, format!("y[0] = {n}")))
        })
        .collect();
    for (fork, (shell, python)) in forks.iter().zip(begun) {
        fork.answer(shell, "").exits(0);
        fork.answer(python, "").exits(0).is_kept();
    }
    for (n, fork) in forks.iter().enumerate() {
        fork.run("echo $x").prints(&format!("{n}\n"));
        fork.python("y[0], sum(y)").shows(&format!("({n}, {})", 499_500 + n));
    }
    s.python("y[0]").shows("0").is_kept();
    for fork in &forks {
        fork.end();
    }
    s.wait_children(2);
}

#[test]
fn a_fork_during_a_run_is_refused_or_waits_as_asked() {
    let h = harness!();
    let s = h.session();
    let fifo = h.path("go");
    s.run("mkfifo go; x=1; y=1");
    let going = s.begin("x=2; read line <go; x=3");
    going.wait_blocked();
    let refused = h.sessile(&["fork", s.id()]).exits(1).errors();
    assert!(refused.contains("run 2 is going"), "{refused}");
    let waiting = h.begin(&["fork", s.id(), "--wait"], b"");
    waiting.wait_blocked();
    let next = s.begin("x=4");
    std::fs::write(&fifo, "\n").unwrap();
    let answer = waiting.finish().json();
    s.answer(going, "").exits(0);
    s.answer(next, "").exits(0);
    let fork = h.session_called(answer["session_ids"][0].as_str().unwrap());
    // After the run that was going, or after both: never in between.
    let as_of = answer["as_of_run"].as_u64().unwrap();
    assert!(as_of >= 2, "{answer}");
    fork.run("echo $x").prints(&format!("{}\n", as_of + 1));
    s.run("echo $x").prints("4\n").is_kept();
}

#[test]
fn a_fork_with_files_has_its_own_from_that_moment_on() {
    let h = harness!();
    let s = h.session();
    s.run("mkdir -p w/sub; cd w/sub; echo 1 >f; ln -s f link; chmod 640 f");
    s.python("import os; os.chdir('w/sub')");
    let (forks, _) = s.forks(&["--files", "copy"]);
    let fork = &forks[0];
    fork.run("echo 2 >f; cat link; stat -c %a f").prints("2\n640\n");
    fork.python("open('f').read()").shows("'2\\n'");
    s.run("cat link; rm f; ls").prints("1\nlink\n");
    fork.run("cat f; pwd | grep -c workspace").prints("2\n1\n");
    s.end();
    fork.run("cat f").prints("2\n");
}
