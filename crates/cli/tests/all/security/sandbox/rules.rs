//! Rules of paths, against every system call that takes a path, and against
//! those who change names while they are asked.

use super::HELPERS;
use sessile_testkit::{Harness, Session, harness, needs};

/// What is hidden, viewed and only read, with a secret in each.
fn workspace(h: &Harness) {
    for directory in ["secrets", "view", "read", "open"] {
        std::fs::create_dir_all(h.path(directory)).unwrap();
    }
    for file in [".env", "secrets/s", "open/a.key", "view/f", "read/f", "open/f"] {
        std::fs::write(h.path(file), format!("SECRET of {file}\n")).unwrap();
    }
    std::fs::write(h.path("read/program"), "#!/bin/sh\necho ran\n").unwrap();
    std::fs::write(h.path("open/.env.program"), "#!/bin/sh\necho ran\n").unwrap();
    for program in ["read/program", "open/.env.program"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(h.path(program), mode).unwrap();
    }
}

fn session(h: &Harness) -> Session<'_> {
    workspace(h);
    let rules = ["--allow", "/view/**=view", "--allow", "/read/**=read"];
    let s = h.session_with(&[["--sandbox", "development"].as_slice(), &rules].concat());
    s.run_in("python", HELPERS).exits(0);
    s.run_in("python", CALLS).exits(0);
    s
}

/// Whether this user can have rules of single paths at all.
fn has_rules() -> bool {
    let opened = std::fs::File::options().read(true).write(true).open("/dev/fuse").is_ok();
    if !opened {
        needs::not_permitted("/dev/fuse cannot be opened");
    }
    opened
}

/// Each call by its number, as `(name, call)`, where `p` is the path that is tried
/// and `q` one that may be written. Those that change something are apart.
const CALLS: &str = r"
AT = -100
buf = lambda n=256: bytes(n)
def reads(p, q):
    yield 'open', lambda: syscall(2, p, 0)
    yield 'openat', lambda: syscall(257, AT, p, 0)
    yield 'execve', lambda: run(p)
    yield 'execveat', lambda: runat(p)
    yield 'uselib', lambda: syscall(134, p)
    yield 'getxattr', lambda: syscall(191, p, b'user.x', buf(), 256)
    yield 'connect', lambda: socket.socket(socket.AF_UNIX).connect(p)
def looks(p, q):
    yield 'open a path', lambda: syscall(2, p, 0o10000000)
    yield 'stat', lambda: syscall(4, p, buf())
    yield 'lstat', lambda: syscall(6, p, buf())
    yield 'newfstatat', lambda: syscall(262, AT, p, buf(), 0)
    yield 'statx', lambda: syscall(332, AT, p, 0, 0xfff, buf())
    yield 'access', lambda: syscall(21, p, 0)
    yield 'faccessat', lambda: syscall(269, AT, p, 0)
    yield 'faccessat2', lambda: syscall(439, AT, p, 0, 0)
    yield 'statfs', lambda: syscall(137, p, buf())
    yield 'listxattr', lambda: syscall(194, p, buf(), 256)
    yield 'llistxattr', lambda: syscall(195, p, buf(), 256)
    yield 'inotify', lambda: syscall(254, syscall(294, 0), p, 0xfff)
    yield 'name_to_handle_at', lambda: syscall(303, AT, p, bytes([128, 0, 0, 0]) + buf(), buf(8), 0)
    yield 'open_tree', lambda: syscall(428, AT, p, 0)
    yield 'readlink', lambda: syscall(89, p, buf(), 256)
def changes(p, q):
    yield 'open to write', lambda: syscall(2, p, 1)
    yield 'open to empty', lambda: syscall(2, p, 0o1000)
    yield 'openat to append', lambda: syscall(257, AT, p, 0o2002)
    yield 'truncate', lambda: syscall(76, p, 0)
    yield 'chmod', lambda: syscall(90, p, 0o777)
    yield 'fchmodat', lambda: syscall(268, AT, p, 0o777)
    yield 'fchmodat2', lambda: syscall(452, AT, p, 0o777, 0)
    yield 'chown', lambda: syscall(92, p, 1000, 1000)
    yield 'lchown', lambda: syscall(94, p, 1000, 1000)
    yield 'fchownat', lambda: syscall(260, AT, p, 1000, 1000, 0)
    yield 'utime', lambda: syscall(132, p, 0)
    yield 'utimes', lambda: syscall(235, p, 0)
    yield 'futimesat', lambda: syscall(261, AT, p, 0)
    yield 'utimensat', lambda: syscall(280, AT, p, 0, 0)
    yield 'setxattr', lambda: syscall(188, p, b'user.x', b'y', 1, 0)
    yield 'lsetxattr', lambda: syscall(189, p, b'user.x', b'y', 1, 0)
    yield 'removexattr', lambda: syscall(197, p, b'user.x')
    yield 'rename away', lambda: syscall(82, p, q)
    yield 'rename over', lambda: (open(q, 'w').close(), syscall(82, q, p))
    yield 'renameat away', lambda: syscall(264, AT, p, AT, q)
    yield 'renameat2 away', lambda: syscall(316, AT, p, AT, q, 0)
    yield 'exchange', lambda: (open(q, 'w').close(), syscall(316, AT, p, AT, q, 2))
    yield 'exchange back', lambda: (open(q, 'w').close(), syscall(316, AT, q, AT, p, 2))
    yield 'link', lambda: (gone(q), syscall(86, p, q))
    yield 'linkat', lambda: (gone(q), syscall(265, AT, p, AT, q, 0))
    yield 'link over', lambda: (open(q, 'w').close(), syscall(86, q, p))
    yield 'symlink', lambda: syscall(88, b'f', p)
    yield 'symlinkat', lambda: syscall(266, b'f', AT, p)
    yield 'unlink', lambda: syscall(87, p)
    yield 'unlinkat', lambda: syscall(263, AT, p, 0)
    yield 'rmdir', lambda: syscall(84, p)
    yield 'mkdir', lambda: syscall(83, p, 0o777)
    yield 'mkdirat', lambda: syscall(258, AT, p, 0o777)
    yield 'mknod', lambda: syscall(133, p, 0o010666, 0)
    yield 'mknodat', lambda: syscall(259, AT, p, 0o010666, 0)
    yield 'bind', lambda: socket.socket(socket.AF_UNIX).bind(p)
    yield 'acct', lambda: syscall(163, p)
    yield 'swapon', lambda: syscall(167, p, 0)
def gone(q):
    if os.path.lexists(q): os.unlink(q)
def run(p):
    if os.spawnv(os.P_WAIT, p, [p]) != 0: raise OSError(0, 'it did not run')
def runat(p):
    pid = os.fork()
    if pid == 0:
        try: syscall(322, AT, p, 0, 0, 0)
        finally: os._exit(1)
    if os.waitpid(pid, 0)[1] != 0: raise OSError(0, 'it did not run')
def attempt(calls, paths):
    for path in paths:
        for name, call in calls(path.encode(), b'open/q'):
            try: call()
            except (OSError, ValueError): continue
            print(name, path)
hidden = ['.env', 'secrets', 'secrets/s', 'open/a.key', 'open/.env.program', 'open/../.env',
          '/workspace/secrets/s', '/proc/self/cwd/.env', '/proc/self/root/workspace/.env']
";

#[test]
fn no_system_call_that_takes_a_path_gets_around_a_rule() {
    if !has_rules() {
        return;
    }
    let h = harness!();
    let s = session(&h);
    s.run_in("python", "attempt(reads, hidden); attempt(looks, hidden); attempt(changes, hidden)")
        .exits(0)
        .prints("");
    // What can be viewed is looked at, and that is all.
    s.run_in("python", "attempt(reads, ['view/f']); attempt(changes, ['view/f'])")
        .exits(0)
        .prints("");
    s.run_in("python", "attempt(changes, ['read/f', 'read/program'])").exits(0).prints("");
    s.run_in("python", "print(os.stat('view/f').st_size, open('read/f').read(), end='')")
        .exits(0)
        .prints("17 SECRET of read/f\n");
    s.run("read/program; cd secrets || ls -a open; cat open/f")
        .prints("ran\n.\n..\nf\nq\nSECRET of open/f\n");
    for file in [".env", "secrets/s", "open/a.key", "view/f", "read/f"] {
        let text = std::fs::read_to_string(h.path(file)).unwrap();
        assert_eq!(text, format!("SECRET of {file}\n"));
    }
}

/// Whoever changes names all the time finds no moment in which a rule does not
/// hold.
#[test]
fn names_that_change_while_they_are_opened_show_nothing_hidden() {
    if !has_rules() {
        return;
    }
    let h = harness!();
    let s = session(&h);
    let text = r"
import threading
os.makedirs('open/d/x', exist_ok=True)
open('open/d/x/s', 'w').write('mine')
stop, found = [], []
def flip_link():
    while not stop:
        for to in ('f', '../.env', '../secrets/s', 'a.key', '../view/f'):
            gone('open/l'); os.symlink(to, 'open/t'); os.rename('open/t', 'open/l')
def flip_directory():
    while not stop:
        for one, other in (('open/d', 'open/e'), ('open/e', 'open/d')):
            try: os.rename(one, other)
            except OSError: pass
        for to in ('open/d', 'secrets', 'view'):
            gone('open/way'); os.symlink('../' + to, 'open/way')
def refused_moves():
    while not stop:
        for one, other in (('secrets', 'open/z'), ('open/a.key', 'open/z'), ('open', 'secrets'),
                           ('view/f', 'open/z'), ('open/f', 'open/g.key')):
            try: os.rename(one, other); found.append((one, other))
            except OSError: pass
def read():
    for n in range(3000):
        for p in ('open/l', 'open/way/s', 'open/way/f', 'open/d/../../.env', 'open/d/x/../../../secrets/s'):
            try: text = open(p).read()
            except OSError: continue
            if 'SECRET' in text and text != 'SECRET of open/f\n': found.append((p, text))
changers = [threading.Thread(target=t) for t in (flip_link, flip_directory, refused_moves)]
for t in changers: t.start()
read(); stop.append(1)
for t in changers: t.join()
print(found)";
    s.run_in("python", text).exits(0).prints("[]\n");
    for file in [".env", "secrets/s", "open/a.key", "view/f", "open/f"] {
        let text = std::fs::read_to_string(h.path(file)).unwrap();
        assert_eq!(text, format!("SECRET of {file}\n"));
    }
}

/// What cannot be enforced is not promised.
#[test]
fn who_may_not_have_rules_is_refused_and_told_the_remedy() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("only root can start a session as another user");
    }
    let h = Harness::unprivileged(env!("CARGO_BIN_EXE_sessile"));
    workspace(&h);
    let started = h.sessile(&["start", "--sandbox"]);
    let errors = started.errors();
    if errors.is_empty() {
        // This system lets everybody have them.
        let s = h.session_with(&["--sandbox"]);
        s.run("cat .env").exits(1).complains("No such file");
        return;
    }
    let _ = started.exits(1);
    assert!(errors.contains("chmod 666 /dev/fuse"), "{errors}");
    assert_eq!(h.list().len(), 0);
}
