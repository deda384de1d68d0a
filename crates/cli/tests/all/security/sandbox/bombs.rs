//! Programs that take what they can get: of processes, memory, room on the disk,
//! descriptors. The session survives, or says why it did not, and nothing
//! outside is harmed.

use super::for_everybody;
use crate::sandbox::limits::{groups, has_groups};
use sessile_testkit::{Harness, Session, harness, until};

/// For whoever has no control groups: memory is that of each program then.
const LIMITS: &[&str] = &[
    "--sandbox",
    "full-access",
    "--memory",
    "96MiB",
    "--pids",
    "48",
    "--open-files",
    "256",
    "--output-cap",
    "1MiB",
    "--command-timeout",
    "20s",
];

/// Starts others without end, and says so when there is no room for another.
const FORKS: &str = "import os\nsaid = 0\nwhile True:\n    try: os.fork()\n    except OSError:\n        \
                     said = said or os.write(1, b\"met\\n\")";

/// It remembers, and has processes to spare.
fn is_well(s: &Session<'_>) {
    s.run_with(
        &["--timeout", "60s"],
        "echo $x; for i in 1 2 3 4 5; do true & done; wait; echo $x | cat",
    )
    .exits(0)
    .prints("5\n5\n");
}

fn session(h: &Harness) -> Session<'_> {
    let s = h.session_with(LIMITS);
    s.run("x=5").exits(0);
    s.wait_captured(1);
    s
}

/// Waits until a run, or what it has left, has written this.
fn wait_for(h: &Harness, s: &Session<'_>, run: u64, text: &str) {
    until(text, || {
        let seen = h.sessile(&["output", s.id(), &run.to_string()]).json();
        seen["stdout"].as_str()?.contains(text).then_some(())
    });
}

#[test]
fn processes_without_end_are_ended_when_their_run_is() {
    for_everybody(|h| {
        let s = session(h);
        let forks = format!("python3 -c '{FORKS}' 2>/dev/null");
        s.run_with(&["--background", "--timeout", "100s"], &forks).has("run", 2);
        wait_for(h, &s, 2, "met");
        s.sessile("interrupt").exits(0);
        assert_eq!(h.sessile(&["wait", s.id(), "2"]).json()["interrupted"], true);
        is_well(&s);
        // In the background, where no run waits for it, and in other sessions.
        s.run(format!("for i in 1 2 3; do setsid {forks} >met & done")).exits(0);
        // They may be ended before they have said that there was no room.
        let _ = s.run_with(&["--timeout", "10s"], "until [ -s met ]; do :; done");
        let _ = s.run_with(&["--timeout", "2s"], "while (exit 0); do :; done");
        is_well(&s);
    });
}

#[test]
fn a_run_does_not_wait_for_a_bomb_that_an_earlier_one_has_left() {
    for_everybody(|h| {
        let s = session(h);
        s.run(format!("setsid python3 -c '{FORKS}' 2>/dev/null &")).exits(0);
        wait_for(h, &s, 2, "met");
        // A shell that finds no room tries again after 1, 3 and 7 seconds.
        let answer = s.run_with(&["--timeout", "60s"], "echo $x | cat").exits(0).prints("5\n");
        let told = "processes that run 2 had left were ended";
        let notes = answer.is_kept().notes();
        assert!(notes.contains(told), "{notes}");
    });
}

/// The kernel hardly gets the processor beside the bomb, as on a busy machine. (It had to
/// stop for the next order within 10 seconds, in which nothing ended the bomb.)
#[test]
fn a_run_begins_although_a_bomb_takes_all_processor_time() {
    let h = harness!();
    if !has_groups(&h) {
        return;
    }
    let args = ["--sandbox", "full-access", "--pids", "48", "--cpus", "0.02"];
    let s = h.session_with(&args);
    s.run("x=5").exits(0);
    s.run(format!("setsid python3 -c '{FORKS}' 2>/dev/null &")).exits(0);
    wait_for(&h, &s, 2, "met");
    // With a fiftieth of a core, even a shell that has nothing to do takes seconds.
    s.run_with(&["--timeout", "120s"], "echo $x").exits(0).prints("5\n").is_kept();
}

/// Thirty workers, each of which works now and then.
const POOL: &str = "import os, time\nfor n in range(30):\n    if os.fork() == 0: break\n\
                    else: print(\"up\", flush=True)\nwhile True: time.sleep(0.01)";

#[test]
fn a_busy_pool_within_the_limit_is_left_alone() {
    for_everybody(|h| {
        // There is memory for all: at its limit, one of the pool might be killed.
        let s = h.session_with(&["--sandbox", "full-access", "--memory", "1GiB", "--pids", "48"]);
        s.run("x=5").exits(0);
        s.run(format!("python3 -c '{POOL}' &")).exits(0);
        wait_for(h, &s, 2, "up");
        let _ = s.run_with(&["--timeout", "1s"], "sleep 100").timed_out();
        // A run that itself meets the limit.
        let bomb = format!("python3 -c '{FORKS}' >/dev/null 2>&1");
        let _ = s.run_with(&["--timeout", "2s"], bomb).timed_out();
        s.run_with(&["--timeout", "60s"], "echo $x | cat").exits(0).prints("5\n").is_kept();
        let jobs = s.sessile("jobs").json();
        assert_eq!(jobs[0]["processes"], 31, "{jobs}");
    });
}

#[test]
fn memory_descriptors_watches_and_output_have_an_end() {
    for_everybody(|h| {
        let s = session(h);
        let _ = s.run_with(
            &["--timeout", "20s"],
            "python3 -c 'a = []\nwhile 1: a.append(bytearray(1 << 20))'",
        );
        let text = "python3 -c 'import os\na = []\ntry:\n  while 1: a.append(os.dup(0))\n\
                    except OSError: print(len(a))'";
        assert!(s.run(text).exits(0).number() <= 256);
        // What is in memory without a program.
        s.run("head -c 200M /dev/zero >/dev/shm/x").exits(1).complains("No space left");
        s.run("rm /dev/shm/x; cd /tmp; n=0; while : >$n; do n=$((n+1)); done; cd; rm -r /tmp/*")
            .exits(0)
            .complains("No space left");
        // A user has 128 of them, for all programs.
        let text = "python3 -c 'import ctypes\nc = ctypes.CDLL(None); n = 0\n\
                    while c.inotify_init() >= 0: n += 1\nprint(n)'";
        assert!(s.run(text).exits(0).number() <= 32);
        let answer = s.run_with(&["--timeout", "1s"], "yes").timed_out();
        assert!(answer.stdout().len() <= 2 << 20);
        is_well(&s);
    });
}

#[test]
fn a_disk_is_not_filled() {
    let h = harness!();
    let limited = [LIMITS, &["--layer-size", "16MiB"]].concat();
    let s = h.session_with(&limited);
    s.run("x=5").exits(0);
    s.run("yes >a & yes >b & yes >/tmp/c & yes >/home/agent/d & wait").exits(0);
    let taken = "du -sk --total . /tmp /home/agent | tail -1 | cut -f1";
    assert!(s.run(taken).exits(0).number() <= 17 << 10);
    // Some were never made: the others had filled it before.
    s.run("rm -f a b /tmp/c ~/d").exits(0);
    // Sparse files are filled, files without a name written to.
    s.run("truncate -s 1T a; dd if=/dev/zero of=a conv=notrunc bs=1M count=64; rm a")
        .complains("space");
    s.run("exec 8>a; rm a; yes >&8; exec 8>&-").complains("No space left");
    s.run("fallocate -l 1G a").exits(1).complains("No space left");
    // Files without content, and links that lead nowhere.
    let text = "import os\nn = 0\ntry:\n    while True:\n        \
        open(f'f{n}', 'w').close(); os.symlink('x', f'g{n}'); n += 1\n\
        except OSError as e: print(2 * n if e.errno == 28 else e)";
    let made = s.run_with(&["--timeout", "60s"], format!("python3 -c \"{text}\""));
    assert!(made.exits(0).number() <= 4096);
    s.run_with(&["--timeout", "60s"], "rm f* g*").exits(0);
    // Deeper than a path can be.
    let text = "import os\nfor n in range(250):\n    os.mkdir('d' * 20); os.chdir('d' * 20)\n\
                try:\n    open('f', 'wb').write(bytes(64 << 20))\nexcept OSError as e: print(e.errno)";
    s.run(format!("python3 -c \"{text}\"")).prints("28\n");
    s.run("rm -rf d*; echo $x; echo fine >z; cat z").exits(0).prints("5\nfine\n");
}

/// Twenty at once, each with another bomb, and one that is in no sandbox.
/// (`cargo xtask bench bombs` measures its answers.)
#[test]
fn twenty_sessions_under_bombs_leave_another_in_peace_and_nothing_behind() {
    let bombs = [
        "b() { b | b & }; b; sleep 100",
        &format!("setsid python3 -c '{FORKS}' >/dev/null 2>&1 & sleep 100"),
        "while :; do y=$y$y-; done",
        "python3 -c 'a = []\nwhile 1: a.append(bytearray(1 << 20))'; while :; do :; done",
        "yes >a & yes >/tmp/b & yes >/dev/shm/c & wait; while :; do :; done",
        "n=0; while :; do : >$n; : >/tmp/$n; n=$((n + 1)); done 2>/dev/null",
        "python3 -c 'import os\nwhile 1:\n  try: os.dup(0)\n  except OSError: pass'",
        "yes",
    ];
    let h = harness!();
    let beside = h.session();
    beside.run("x=5").exits(0);
    let args = ["--sandbox", "full-access", "--memory", "64MiB", "--pids", "24"];
    let args = [&args[..], &["--open-files", "128", "--layer-size", "16MiB"]].concat();
    let sessions: Vec<Session<'_>> = (0..20).map(|_| h.session_with(&args)).collect();
    let begin =
        |(n, s): (usize, &Session<'_>)| s.begin_with(&["--timeout", "4s"], bombs[n % bombs.len()]);
    let clients: Vec<_> = sessions.iter().enumerate().map(begin).collect();
    for n in 0..30 {
        beside
            .run(format!("echo $((x + {n})); true | cat"))
            .exits(0)
            .prints(&format!("{}\n", 5 + n))
            .is_kept();
    }
    for client in clients {
        let _ = client.finish();
    }
    for s in &sessions {
        s.run_with(&["--timeout", "60s"], "echo alive | cat").prints("alive\n");
    }
    beside.run("echo $x").exits(0).prints("5\n").is_kept();
    // The harness looks for processes.
    for s in &sessions {
        s.sessile("end").exits(0);
        until("the end of its control groups", || groups(s.id()).is_empty().then_some(()));
    }
}
