//! The ways by which a kernel is told what to do and says what came of it, with
//! hostile programs beside it that an earlier run has left: none of them takes an
//! order, makes an answer, or writes to the output of a later run.

use super::for_everybody;
use sessile_testkit::{Harness, Session};

/// In each language: what prints `real` and ends with that number, without any
/// program.
fn honest(language: &str, code: i64) -> String {
    match language {
        "python" => format!("print('real'); raise SystemExit({code})"),
        "node" => format!("console.log('real'); process.exitCode = {code}"),
        _ => format!("echo real; (exit {code})"),
    }
}

const LANGUAGES: [&str; 3] = ["bash", "python", "node"];

/// Every kernel is there, and has had a run.
fn start(h: &Harness) -> Session<'_> {
    let s = h.session_with(&["--sandbox", "full-access"]);
    for language in LANGUAGES {
        s.run_in(language, honest(language, 0)).exits(0).prints("real\n");
    }
    s
}

/// What later runs answer is their own.
fn answers_are_real(s: &Session<'_>) {
    for code in [3, 0, 7, 5] {
        for language in LANGUAGES {
            s.run_in(language, honest(language, code)).exits(code).prints("real\n").is_kept();
        }
    }
}

/// A program left by a shell's run: it goes through all that it finds of every
/// process and of the kernels' directories, again and again, reads from what it
/// can and writes to what it can. It says what it got.
const INTRUDER: &str = r#"
import glob, os, re, stat
own = {os.getpid(), os.getppid()}
place, = glob.glob('/dev/shm/.*.sessile')
got = os.open('/tmp/got', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
held = {}
def take(path, flags):
    try: fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError: return None
    return fd
def forge(fd, secret):
    for kernel in (f'r {secret} 0 hB\nd {secret}\n',
                   '{"op":"done","run":%d,"secret":"%s","exit_code":0}\n'):
        for run in range(1, 30) if '%d' in kernel else [0]:
            text = kernel % (run, secret) if '%d' in kernel else kernel
            try: os.write(fd, text.encode())
            except OSError: return
rounds = 0
while True:
    pids = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in own]
    paths = [os.path.join(d, n) for d, _, names in os.walk(place) for n in names
             if not d.endswith('/w')]  # what kernels write down of their state
    paths += [f'{place}/{k}/{n}' for k in 'bpn' for n in ('t', 's', 'n', 'o', 'e', 'ctl', 'rep')]
    paths += [f'/proc/{p}/fd/{n}' for p in pids for n in (*range(20), 1000, 999, 998, 997)]
    for path in paths:
        kind = os.path.basename(path)
        fd = take(path, os.O_RDONLY)
        if fd is not None:
            # What is in files is ours to read, too: programs, and the last run's text.
            try: text = os.read(fd, 65536) if stat.S_ISFIFO(os.fstat(fd).st_mode) else b''
            except OSError: text = b''
            for secret in re.findall(rb'r ([A-Za-z0-9_-]{8}) |"secret":"([A-Za-z0-9_-]{8})"', text):
                os.write(got, b'secret from %s: %s\n' % (path.encode(), text))
                for out in glob.glob(f'{place}/*/s'):
                    way = take(out, os.O_WRONLY)
                    if way is not None:
                        forge(way, (secret[0] or secret[1]).decode()); os.close(way)
            os.close(fd)
        fd = take(path, os.O_WRONLY)
        if fd is not None:
            if kind in ('s', 'rep'): forge(fd, 'AAAAAAAA')
            else:
                try:
                    if os.write(fd, b'forged\n'): os.write(got, b'wrote to %s\n' % path.encode())
                except OSError: pass
            os.close(fd)
    rounds += 1
    if rounds == 2: open('/workspace/begun', 'w').close()
"#;

/// Not among the attempts of others: reports that nobody made are dropped, so that
/// all but the kernels' own is.
#[test]
fn a_program_that_a_run_has_left_answers_for_no_later_run() {
    for_everybody(|h| {
        let s = start(h);
        s.run(format!("cat >/tmp/intruder.py <<'EOF'\n{INTRUDER}\nEOF")).exits(0);
        s.run("python3 /tmp/intruder.py >/dev/null 2>/tmp/why & until [ -e begun ]; do :; done")
            .exits(0);
        // What it wrote before to pipes with names, which nobody listens to any
        // more, is no matter.
        s.run(": >/tmp/got").exits(0);
        answers_are_real(&s);
        s.run("while read -r line; do echo \"$line\"; done </tmp/got; kill -0 $!")
            .exits(0)
            .prints("");
    });
}

/// A copy of the kernel's own process has all that it had open.
#[test]
fn a_copy_of_a_shell_hears_no_later_order() {
    let thief = r#"d=${BASH_SOURCE%/*}; steal() { trap - EXIT; exec 2>/dev/null; : >/tmp/stolen
        until [ -e go ]; do :; done  # what is its own run's is no matter
        while :; do for f in {0..30} {990..1023}; do
            while read -r -t 0 -u $f && read -r -t 1 -u $f line; do
                echo "$f: $line" >>/tmp/stolen
                [[ $line =~ r\ ([A-Za-z0-9_-]{8})\  ]] &&
                    printf 'r %s 0 hB\nd %s\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[1]}" >$d/s
            done
        done; : >begun; done; }
        steal &"#;
    let begin = ": >go; until [ -e begun ]; do :; done";
    for_everybody(|h| {
        let s = start(h);
        s.run(thief).exits(0);
        s.run(begin).exits(0);
        answers_are_real(&s);
        s.run("read -r line </tmp/stolen; echo \"$line\"; kill -0 $!").exits(0).prints("\n");
        // Nor one that a later run leaves, with an earlier one beside it.
        s.run("rm -f go begun; until ! [ -e begun ]; do rm -f begun; done").exits(0);
        s.run(thief).exits(0);
        s.run(begin).exits(0);
        answers_are_real(&s);
        s.run("read -r line </tmp/stolen; echo \"$line\"").exits(0).prints("\n");
    });
}

/// The same of Python, whose copies have its objects, too.
#[test]
fn a_copy_of_python_hears_no_later_order() {
    let thief = r"
import os, select, threading, stat
if (child := os.fork()) == 0:
    pipes = []
    for fd in range(3, 1001):
        try: found = os.fstat(fd)
        except OSError: continue
        if stat.S_ISFIFO(found.st_mode): pipes.append(fd)
    log = os.open('/tmp/stolen', os.O_CREAT | os.O_WRONLY)
    # What is its own run's is no matter.
    while not os.path.exists('/workspace/go'): pass
    open('/workspace/begun', 'w').close()
    while True:
        for fd in select.select(pipes, [], [])[0]:
            try: text = os.read(fd, 65536)
            except OSError: text = b''
            if text: os.write(log, text)
            else: pipes.remove(fd)
";
    for_everybody(|h| {
        let s = start(h);
        s.run_in("python", thief).exits(0);
        s.run(": >go; until [ -e begun ]; do :; done").exits(0);
        answers_are_real(&s);
        s.run_in("python", "print(open('/tmp/stolen').read())").exits(0).prints("\n");
    });
}

/// The memory of kernels, their descriptors and their control.
#[test]
fn kernels_are_closed_to_what_they_run() {
    let attempt = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for pid in map(int, sys.argv[1:]):
    for name in ('mem', 'environ', 'auxv', 'maps', 'syscall', 'fd/0', 'fd/1', 'fd/1000'):
        try:
            with open(f'/proc/{pid}/{name}', 'rb', 0) as file:
                if name == 'mem': file.seek(0x1000)
                if file.read(1) or name.startswith('fd'): print(pid, name)
        except OSError: pass
    for request in (16, 0x4206):
        if libc.ptrace(request, pid, 0, 0) == 0: print(pid, 'traced')
    here = ctypes.create_string_buffer(8)
    class Part(ctypes.Structure): _fields_ = [('at', ctypes.c_void_p), ('length', ctypes.c_size_t)]
    for call in (310, 311):
        ctypes.set_errno(0)
        libc.syscall(call, pid, ctypes.byref(Part(ctypes.addressof(here), 8)), 1,
                     ctypes.byref(Part(0x400000, 8)), 1, 0)
        if ctypes.get_errno() != 1: print(pid, 'memory', ctypes.get_errno())
    if libc.syscall(438, os.pidfd_open(pid), 0, 0) >= 0: print(pid, 'descriptor')
print('done')
"#;
    for_everybody(|h| {
        let s = start(h);
        let pid =
            |language, text: &str| s.run_in(language, text).exits(0).stdout().trim().to_owned();
        let python = pid("python", "import os; print(os.getpid())");
        let node = pid("node", "console.log(process.pid)");
        s.run(format!("cat >/tmp/look.py <<'EOF'\n{attempt}\nEOF")).exits(0);
        let look = format!("python3 /tmp/look.py $$ {python} {node}");
        s.run(&look).exits(0).prints("done\n");
        // Also from a copy of the kernel itself.
        s.run("( read -r x </proc/$$/environ; read -r x </proc/$$/fd/1000 ) 2>/dev/null").exits(1);
        // And a kernel cannot be opened again, by what runs in it.
        let open = "import ctypes; print(ctypes.CDLL(None).prctl(4, 1, 0, 0, 0))";
        s.run_in("python", open).exits(0).prints("-1\n");
        s.run(&look).exits(0).prints("done\n");
    });
}

/// Nor in the moment in which they come up, for those who wait for that.
#[test]
fn kernels_are_closed_from_their_first_moment() {
    let watch = r"
import os
log = os.open('/tmp/opened', os.O_CREAT | os.O_WRONLY)
def parent(pid):
    try: return open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1]
    except OSError: return None
while True:
    for pid in os.listdir('/proc'):
        # Who has a parent outside is a kernel, or the first process.
        if not pid.isdigit() or parent(pid) != '0': continue
        for name, flags in (('mem', os.O_RDWR), ('environ', os.O_RDONLY), ('fd/0', os.O_RDONLY)):
            try:
                fd = os.open(f'/proc/{pid}/{name}', flags | os.O_NONBLOCK)
                if name != 'environ' or os.read(fd, 1): os.write(log, b'%s ' % name.encode())
                os.close(fd)
            except OSError: pass
    open('/workspace/begun', 'w').close()
";
    for_everybody(|h| {
        let s = start(h);
        s.run(format!("cat >/tmp/watch.py <<'EOF'\n{watch}\nEOF")).exits(0);
        s.run("setsid python3 /tmp/watch.py 2>/tmp/why & until [ -e begun ]; do :; done").exits(0);
        for _ in 0..5 {
            s.run("kill -9 $$").exits(137);
            s.run("read -r line </tmp/opened; echo \"$line\"").exits(0).prints("\n");
        }
        s.run("read -r line </tmp/why; echo \"$line\"; pkill -c -f watch.py")
            .exits(0)
            .prints("\n1\n");
    });
}

/// Node would open its inspector for whoever sends it this signal.
#[test]
fn a_signal_opens_no_debugger_in_node() {
    let h = sessile_testkit::harness!();
    let s = start(&h);
    let pid = s.run_in("node", "console.log(process.pid)").exits(0).stdout().trim().to_owned();
    s.run(format!("kill -USR1 {pid}")).exits(0);
    // The signal has been heard when a later one of another kind has.
    let seen = "await new Promise((done) => { process.once('SIGUSR2', done); \
                process.kill(process.pid, 'SIGUSR2'); }); \
                console.log(require('inspector').url(), process.listenerCount('SIGUSR1'))";
    s.run_in("node", seen).exits(0).prints("undefined 0\n").is_kept();
    s.run_in(
        "node",
        "await new Promise((done) => { process.once('SIGUSR1', done); \
                      process.kill(process.pid, 'SIGUSR1'); }); console.log('own')",
    )
    .exits(0)
    .prints("own\n");
}

/// What code of the user's closes is opened again, as without a sandbox.
#[test]
fn a_kernel_that_closes_everything_goes_on() {
    for_everybody(|h| {
        let s = start(h);
        s.run("x=5").exits(0);
        s.run_in("python", "x = 5; import os; os.closerange(3, 1 << 16)").exits(0);
        s.run_in("python", "print(x)").exits(0).prints("5\n").is_kept();
        s.run("for fd in {3..255}; do eval \"exec $fd>&-\"; done; exec 10</dev/null").exits(0);
        s.run("echo $x").exits(0).prints("5\n").is_kept();
        answers_are_real(&s);
    });
}

/// Files of ours that a kernel reads are nobody's to change.
#[test]
fn the_directories_of_kernels_are_not_changed_from_inside() {
    for_everybody(|h| {
        let s = start(h);
        s.run(
            "cd ${BASH_SOURCE%/*}; for f in c s t capture x ../p/driver.py ../n/kernel.js; do \
               mv $f $f.old; rm -rf $f; echo x >>$f.new; chmod 666 $f; ln -s /etc/passwd $f.l; \
               done 2>/dev/null; ls *.old *.new *.l; cd /workspace",
        )
        .prints("");
        s.run("ls ${BASH_SOURCE%/*}/x").exits(2).complains("Permission denied");
        answers_are_real(&s);
    });
}

/// Leaves a shell busy with what it does before each prompt, until `RELEASE`, and
/// somebody beside it who may have its pipes: for its next order it needs others.
fn keep_busy_between_runs(s: &Session<'_>, then: &str) {
    let prompt = format!("while [ -e hold ]; do sleep 0.01; done; {then}");
    s.run(format!("sleep 1000 & x=5; PROMPT_COMMAND='{prompt}'")).exits(0);
    s.run_in("python", "import os; open('hold', 'w').close()").exits(0);
    // For that it gets a line, with a prompt after it.
    s.sessile("state").exits(0);
    s.run_in("python", "os.system('true')").exits(0);
}

const RELEASE: &str = "os.remove('hold')";

#[test]
fn a_shell_that_is_busy_between_runs_keeps_nobody_waiting() {
    for_everybody(|h| {
        let s = h.session_with(&["--sandbox", "full-access"]);
        keep_busy_between_runs(&s, ":");
        s.run_with(&["--background"], "echo $x").has("run", 4);
        s.run_in("python", RELEASE).exits(0);
        let waited = h.sessile(&["wait", s.id(), "4"]).json();
        assert_eq!((&waited["stdout"], &waited["kernel"]), (&"5\n".into(), &"kept".into()));
        s.run("echo $x").prints("5\n").is_kept();
    });
}

#[test]
fn a_run_that_its_shell_has_not_heard_of_is_interrupted() {
    for_everybody(|h| {
        let s = h.session_with(&["--sandbox", "full-access"]);
        keep_busy_between_runs(&s, ":");
        let late = s.run_with(&["--timeout", "300ms"], "x=6").timed_out().is_kept();
        assert!(late.notes().contains("not begun"), "{}", late.notes());
        s.run_in("python", RELEASE).exits(0);
        s.run("echo $x").prints("5\n").is_kept();
    });
}

/// A run that no kernel was told of has no exit status: it goes to the next kernel.
#[test]
fn a_run_whose_shell_ends_before_it_is_told_goes_to_the_next_one() {
    for_everybody(|h| {
        let s = h.session_with(&["--sandbox", "full-access"]);
        keep_busy_between_runs(&s, "[ -e last ] && { rm last; exit 3; }");
        s.run_with(&["--background"], "echo $x").has("run", 4);
        s.run_in("python", "open('last', 'w').close()").exits(0);
        s.run_in("python", RELEASE).exits(0);
        let waited = h.sessile(&["wait", s.id(), "4"]).json();
        assert_eq!((&waited["stdout"], &waited["exit_code"]), (&"5\n".into(), &0.into()));
        assert_eq!(waited["kernel"], "restarted", "{waited}");
        s.run("echo $x").prints("5\n").is_kept();
    });
}
