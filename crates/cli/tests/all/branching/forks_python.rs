//! A fork of a live Python: everything that it has, and nothing that is the
//! original's alone.

use sessile_testkit::{Process, Session, harness, memory_of, until};

/// What was set up before the fork; then, in turn: in which of the two, what is
/// run, and what it prints and shows.
type Case = (&'static str, &'static [(Side, &'static str, &'static str)]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Original,
    Fork,
}

use Side::{Fork, Original};

const CASES: &[Case] = &[
    (
        "x = {'a': [1]}; import os; os.environ['E'] = 'e'; os.chdir('/usr'); os.umask(0o27); 5",
        &[
            (
                Fork,
                "x['a'].append(2); os.environ['E'] = 'f'; os.chdir('/'); _ = os.umask(0o77)",
                "",
            ),
            (Original, "x, os.environ['E'], os.getcwd()", "({'a': [1]}, 'e', '/usr')\n"),
            (Original, "x['a'][0] = 9; oct(os.umask(0o27))", "'0o27'\n"),
            (Fork, "x, os.getcwd()", "({'a': [1, 2]}, '/')\n"),
            (
                Fork,
                "import subprocess; subprocess.check_output('echo $E', shell=True)",
                "b'f\\n'\n",
            ),
        ],
    ),
    ("41 + 1", &[(Fork, "_", "42\n"), (Original, "_ + 1", "43\n"), (Fork, "_", "42\n")]),
    // Files are opened again where they stood.
    (
        "f = open('read', 'w+'); f.write('abcdef'); f.flush(); _ = f.seek(0)",
        &[
            (Fork, "f.read(4)", "'abcd'\n"),
            (Original, "f.read(2)", "'ab'\n"),
            (Fork, "f.read()", "'ef'\n"),
            (Original, "f.read()", "'cdef'\n"),
        ],
    ),
    (
        "f = open('appended', 'a'); print('before', file=f, flush=True)",
        &[
            (Fork, "print('fork', file=f, flush=True)", ""),
            (Original, "print('original', file=f, flush=True)", ""),
            (Fork, "print(open('appended').read(), end='')", "before\nfork\noriginal\n"),
        ],
    ),
    (
        "import os; f = open('gone', 'w+'); f.write('kept'); f.flush(); os.unlink('gone'); _ = f.seek(0)",
        &[(Fork, "f.read()", "'kept'\n"), (Original, "f.read()", "'kept'\n")],
    ),
    (
        "import os; r, w = os.pipe(); _ = os.write(w, b'in')",
        &[
            (Fork, "os.read(r, 5)", "b''\n"),
            (
                Fork,
                "try: os.write(w, b'x')\nexcept OSError as e: print(type(e).__name__)",
                "BrokenPipeError\n",
            ),
            (Original, "os.read(r, 5)", "b'in'\n"),
        ],
    ),
    // Sockets stay with the original, and fail cleanly elsewhere.
    (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); a, _ = s.accept()",
        &[
            (Fork, "try: s.accept()\nexcept OSError: print('closed')", "closed\n"),
            (Fork, "try: c.send(b'x')\nexcept OSError: print('closed')", "closed\n"),
            (Fork, "s.close(); c.close(); a.close()", ""),
            (Original, "c.send(b'hi'), a.recv(9)", "(2, b'hi')\n"),
            (
                Original,
                "d = socket.create_connection(s.getsockname()); type(s.accept()[0]).__name__",
                "'socket'\n",
            ),
            (
                Fork,
                "n = socket.create_server(('127.0.0.1', 0)); m = socket.create_connection(n.getsockname()); n.accept()[0].send(b'yes'), m.recv(9)",
                "(3, b'yes')\n",
            ),
        ],
    ),
    // Children are the original's.
    (
        "import subprocess; p = subprocess.Popen(['sleep', '600'])",
        &[
            (Fork, "p.wait() is None, p.kill()", "(False, None)\n"),
            (Fork, "del p; import gc; _ = gc.collect()", ""),
            (Fork, "subprocess.call(['true'])", "0\n"),
            (Original, "p.poll() is None", "True\n"),
            (Original, "p.kill(); p.wait()", "-9\n"),
        ],
    ),
    (
        "import signal, os; hits = []; _ = signal.signal(signal.SIGCHLD, lambda *_: hits.append(1)); _ = signal.signal(signal.SIGUSR1, lambda *_: hits.append('usr'))",
        &[
            (Original, "hits", "[]\n"),
            (Original, "try: os.wait()\nexcept ChildProcessError: print('none')", "none\n"),
            (Fork, "hits, callable(signal.getsignal(signal.SIGCHLD))", "([], True)\n"),
            (Fork, "os.kill(os.getpid(), signal.SIGUSR1); hits", "['usr']\n"),
            (
                Fork,
                "os.waitpid(os.spawnlp(os.P_NOWAIT, 'true', 'true'), 0)[1], len(hits)",
                "(0, 2)\n",
            ),
            (Original, "hits", "[]\n"),
        ],
    ),
    (
        "import signal, os; _ = signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        &[
            (Fork, "signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN", "True\n"),
            (Original, "signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN", "True\n"),
        ],
    ),
    (
        "import multiprocessing as mp, time; p = mp.get_context('fork').Process(target=time.sleep, args=(600,), daemon=True); p.start()",
        &[
            (Fork, "mp.active_children()", "[]\n"),
            (
                Fork,
                "q = mp.get_context('fork').Process(target=print, args=(7,), kwargs={'flush': True}); q.start(); q.join(); q.exitcode",
                "7\n0\n",
            ),
            (Original, "p.is_alive(), len(mp.active_children())", "(True, 1)\n"),
            (Original, "p.terminate(); p.join(); p.exitcode", "-15\n"),
        ],
    ),
    // Memory, also what was made to be shared.
    (
        "import ctypes, mmap; b = ctypes.create_string_buffer(b'abc'); m = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); m[:3] = b'abc'",
        &[
            (Fork, "b.value = b'xyz'; m[:3] = b'xyz'", ""),
            (Original, "b.value, m[:3]", "(b'abc', b'abc')\n"),
        ],
    ),
    (
        "import mmap, multiprocessing as mp; m = mmap.mmap(-1, 8192); m[:3] = b'abc'; v = mp.get_context('fork').Value('i', 5)",
        &[
            (Fork, "m[:3], v.value", "(b'abc', 5)\n"),
            (Fork, "m[:3] = b'xyz'; v.value = 6; m[4096:4099] = b'far'", ""),
            (Original, "m[:3], v.value, m[4096:4099]", "(b'abc', 5, b'\\x00\\x00\\x00')\n"),
            (Original, "m[:3] = b'ooo'", ""),
            (Fork, "m[:3], v.value", "(b'xyz', 6)\n"),
            // For its own children it is still shared.
            (
                Fork,
                "def f(): v.value = 7\np = mp.get_context('fork').Process(target=f); p.start(); p.join(); v.value",
                "7\n",
            ),
        ],
    ),
    (
        "g = (i for i in range(9)); next(g); import contextvars; c = contextvars.ContextVar('c'); c.set(1); import json, sys; j = sys.modules['json']; _ = None",
        &[
            (Fork, "next(g), next(g), c.get(), j is json", "(1, 2, 1, True)\n"),
            (Fork, "_ = c.set(2)", ""),
            (Original, "next(g), c.get()", "(1, 1)\n"),
        ],
    ),
    (
        "import asyncio; done = []\nasync def later(): \n  await gate.wait(); done.append(1)\nasync def begin():\n  global gate, task\n  gate = asyncio.Event(); task = asyncio.create_task(later())\nawait begin()",
        &[
            (Original, "await asyncio.sleep(0); done", "[]\n"),
            (Fork, "await asyncio.sleep(0); done", "[]\n"),
            (Fork, "gate.set(); await task; done", "[1]\n"),
            (Original, "done, task.done()", "([], False)\n"),
            (Original, "gate.set(); await asyncio.wait_for(task, 5); done", "[1]\n"),
            (Fork, "await (await asyncio.create_subprocess_exec('true')).wait()", "0\n"),
            (Fork, "await asyncio.to_thread(len, 'abc')", "3\n"),
            (Original, "await asyncio.to_thread(len, 'abc')", "3\n"),
        ],
    ),
    // A thread that holds a lock for ever.
    (
        "import threading; lock = threading.Lock(); up = threading.Event()\ndef hold():\n  with lock: up.set(); threading.Event().wait()\nt = threading.Thread(target=hold, name='holder', daemon=True); t.start(); _ = up.wait()",
        &[
            (Fork, "t.is_alive(), threading.active_count()", "(False, 1)\n"),
            (Fork, "lock.acquire(timeout=0.05)", "False\n"),
            (Fork, "n = threading.Thread(target=print, args=(3,)); n.start(); n.join()", "3\n"),
            (Original, "t.is_alive(), lock.locked()", "(True, True)\n"),
        ],
    ),
];

#[test]
fn an_original_that_dies_of_it_is_not_waited_for() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    let hook = "os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGKILL))";
    s.run(format!("import os, signal\n{hook}")).exits(0);
    let refused = s.sessile("fork").exits(1).errors();
    assert!(refused.contains("fork"), "{refused}");
    s.run("1").is_fresh();
    let _ = s.fork();
}

#[test]
fn a_copy_that_dies_at_once_is_not_waited_for() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    // There is a process in between, which has to live.
    let hook = "import os, signal\nforks = 0\ndef ended():\n    global forks\n    forks += 1\n\
                \x20   if forks == 2: os.kill(os.getpid(), signal.SIGKILL)\n\
                os.register_at_fork(after_in_child=ended)";
    s.run(hook).exits(0);
    for command in ["fork", "checkpoint"] {
        let refused = s.sessile(command).exits(1).errors();
        assert!(refused.contains("was ended before it was there"), "{refused}");
    }
    s.run("forks").shows("0").is_kept();
    s.run("forks = 3").exits(0);
    s.fork().run("forks").shows("5");
}

#[test]
fn whatever_is_done_on_one_side_is_not_done_on_the_other() {
    let h = harness!();
    for (setup, steps) in CASES {
        let s = h.session_with(&["python3"]);
        let answer = s.run(setup);
        assert_eq!(answer.json()["exit_code"], 0, "{answer:?}");
        let forked = h.sessile(&["fork", s.id()]);
        assert!(forked.status.success(), "{setup}: {}", forked.errors());
        let id = forked.json()["session_ids"][0].as_str().unwrap().to_owned();
        let fork = h.session_called(&id);
        for (side, text, printed) in *steps {
            let session = match side {
                Original => &s,
                Fork => &fork,
            };
            let answer = session.run(text);
            let value = answer.json()["result"].as_str().map(|value| format!("{value}\n"));
            let told = format!("{}{}", answer.stdout(), value.unwrap_or_default());
            assert_eq!(told, *printed, "{side:?} of {setup}: {answer:?}");
            answer.is_kept();
        }
        // The other is whole, whichever goes first.
        fork.end();
        s.run("print('whole')").prints("whole\n").is_kept();
        s.end();
    }
}

#[test]
fn threads_sockets_and_pipes_are_named_as_left_behind() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run("import threading, socket, os; t = threading.Thread(target=threading.Event().wait, name='watcher', daemon=True); t.start(); s = socket.socket(); p = os.pipe()");
    let (_, answer) = s.forks(&[]);
    let left = answer["left"].to_string();
    for thing in ["thread watcher", "a socket", "a pipe"] {
        assert!(left.contains(thing), "{thing} in {left}");
    }
}

#[test]
fn what_the_original_does_at_its_end_is_not_done_by_its_forks() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run(
        "import atexit, tempfile, weakref\n\
         atexit.register(lambda: open('ended', 'a').write('atexit '))\n\
         class Thing: pass\n\
         thing = Thing(); weakref.finalize(thing, lambda: open('ended', 'a').write('finalize '))\n\
         directory = tempfile.TemporaryDirectory(dir='.'); named = tempfile.NamedTemporaryFile(dir='.', prefix='named')\n\
         class Del:\n  def __del__(self): open('ended', 'a').write('del ')\n\
         d = Del(); print(directory.name)",
    )
    .exits(0);
    let directory =
        s.run("import os; print(os.path.basename(directory.name), os.path.basename(named.name))");
    let names: Vec<&str> = directory.stdout().split_whitespace().collect();
    let fork = s.fork();
    fork.run("atexit.register(lambda: open('fork-ended', 'w').write('yes'))").exits(0);
    let of_fork = fork.fork();
    of_fork.end();
    fork.end();
    assert_eq!(std::fs::read_to_string(h.path("fork-ended")).unwrap(), "yes");
    assert!(!h.path("ended").exists());
    assert!(names.iter().all(|name| h.path(name).exists()), "{names:?}");
    s.end();
    let said = std::fs::read_to_string(h.path("ended")).unwrap();
    assert!(said.contains("atexit") && said.contains("finalize"), "{said}");
    assert!(names.iter().all(|name| !h.path(name).exists()), "{names:?}");
}

#[test]
fn forks_draw_different_random_numbers() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run("import random, uuid, ssl, secrets; random.seed(7); uuid.uuid1(); ssl.RAND_bytes(4)");
    let (forks, _) = s.forks(&["--count", "3"]);
    let look = "random.random(), str(uuid.uuid4()), ssl.RAND_bytes(8), str(uuid.uuid1())";
    let mut seen: Vec<String> =
        forks.iter().chain([&s]).map(|s| s.run(look).json()["result"].to_string()).collect();
    for part in 0..4 {
        let mut parts: Vec<&str> = seen.iter().map(|s| s.split(", ").nth(part).unwrap()).collect();
        parts.sort_unstable();
        parts.dedup();
        assert_eq!(parts.len(), 4, "{seen:?}");
    }
    let original = seen.pop().unwrap();
    assert!(original.contains("(0.32383276483316237"), "its own go on: {original}");
}

#[test]
fn a_thread_that_prints_and_locks_all_the_time_does_not_keep_a_fork_from_working() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run(
        "import threading, logging, sys\n\
         def busy():\n\
         \x20 while True:\n\
         \x20   sys.stderr.write(''); logging.getLogger('x').debug('y'); __import__('json'); print(end='', flush=True)\n\
         for _ in range(3): threading.Thread(target=busy, daemon=True).start()",
    )
    .exits(0);
    for _ in 0..10 {
        let fork = s.fork();
        fork.run(
            "logging.getLogger('x').debug('y'); import decimal; print(threading.active_count())",
        )
        .prints("1\n")
        .is_kept();
        fork.end();
    }
    s.run("threading.active_count()").shows("4").is_kept();
}

/// With much memory, a fork is there before the process that it came from has
/// ended, and so before it has become a child of the keeper.
#[test]
fn a_fork_of_a_large_session_can_be_ended_at_once() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    let note = "os.register_at_fork(after_in_child=lambda: print(os.getpid(), file=notes))";
    let notes = "notes = open('forked', 'a', buffering=1)";
    s.run(format!("import os\ndata = bytearray(b'x') * (200 << 20)\n{notes}\n{note}")).exits(0);
    for _ in 0..3 {
        s.fork().end();
        s.run("len(data)").shows("209715200").is_kept();
        let waited = s.run("os.wait()").exits(1);
        assert!(waited.stderr().contains("ChildProcessError"), "{waited:?}");
    }
    let forked = h.wait_for_file("forked");
    let forked: Vec<i32> = forked.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(forked.len(), 6, "{forked:?}");
    forked.iter().for_each(|pid| Process::of(*pid).wait_gone());
    s.wait_children(1);
}

#[test]
fn nothing_of_a_fork_is_left_in_memory_or_among_the_processes() {
    let h = harness!();
    let s = h.session_with(&["python3"]);
    s.run("x = 1");
    let before = scratch_of(&s);
    let (forks, _) = s.forks(&["--count", "3"]);
    let ids: Vec<String> = forks.iter().map(|fork| fork.id().to_owned()).collect();
    s.wait_children(4);
    forks[1].run("import os; os._exit(1)").is_fresh();
    forks.iter().for_each(Session::end);
    s.wait_children(1);
    assert_eq!(scratch_of(&s), before);
    for id in ids {
        until("a fork's memory to be given back", || (!memory_of(&id).exists()).then_some(()));
    }
}

/// What a session has in memory.
fn scratch_of(session: &Session<'_>) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = std::fs::read_dir(session.memory())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    names
}
