//! Processes outside, and the first one inside.

use super::{Attempt, Outside, all_fail, for_everybody, py, sh};
use sessile_testkit::Harness;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

const ATTEMPTS: &[Attempt] = &[
    sh("a process of the host", "test $(ls -d /proc/[0-9]* | wc -l) -gt 40"),
    sh("the root of the first process", "ls /proc/1/root/"),
    sh("its descriptors", "readlink /proc/1/fd/* | grep -q ."),
    sh("its memory", "head -c 1 /proc/1/mem"),
    sh("its environment", "cat /proc/1/environ"),
    sh("its maps", "cat /proc/1/maps | grep -q ."),
    sh("its working directory", "ls /proc/1/cwd/"),
    sh("its end", "kill -9 1; sleep 0.1; kill -0 1 && exit 1"),
    sh("another user", "su root -c true </dev/null || sudo -n true"),
    sh("a user by number", "setpriv --reuid 0 true"),
    py("root by setuid", "os.setuid(0)"),
    py("root's group", "os.setgid(0)"),
    py("groups", "os.setgroups([0])"),
    py("the first process, traced", "syscall(101, 16, 1, 0, 0)"),
    py("the first process, seized", "syscall(101, 0x4206, 1, 0, 0)"),
    py(
        "its memory by a call",
        "syscall(310, 1, 0, 0, 0, 0, 0); os.pidfd_open(1); syscall(438, 3, 0, 0)",
    ),
    py("its descriptors by a call", "syscall(438, os.pidfd_open(1), 0, 0)"),
    py("a lower priority number", "os.setpriority(os.PRIO_PROCESS, 0, -10)"),
    py("real-time scheduling", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))"),
    py(
        "a higher limit",
        "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (-1, -1)); \
        resource.setrlimit(resource.RLIMIT_NICE, (40, 40))",
    ),
];

#[test]
fn nobody_outside_is_reached() {
    for_everybody(|h| {
        let s = h.session_with(&["--sandbox", "full-access"]);
        all_fail(&s, ATTEMPTS);
    });
}

#[test]
fn a_process_may_trace_its_own_children() {
    let h = sessile_testkit::harness!();
    let s = h.session_with(&["--sandbox", "full-access"]);
    let text = "import ctypes, os, signal\n\
        libc = ctypes.CDLL(None)\n\
        pid = os.fork()\n\
        if pid == 0:\n    libc.ptrace(0, 0, 0, 0); os.kill(os.getpid(), signal.SIGSTOP); os._exit(7)\n\
        os.waitpid(pid, 0); libc.ptrace(7, pid, 0, 0)\n\
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";
    s.run_in("python", text).exits(0).prints("7\n");
}

#[test]
fn what_a_session_does_is_not_seen_in_another() {
    let h = sessile_testkit::harness!();
    let [one, other] = [(); 2].map(|()| h.session_with(&["--sandbox", "full-access"]));
    one.run("echo mine >/tmp/x; echo mine >/dev/shm/x; echo mine >~/x; echo mine >x; sleep 100 &")
        .exits(0);
    other.run("pgrep -c sleep; ls -d /dev/shm/.*.sessile | wc -l").prints("0\n1\n");
    other.run("cat /tmp/x /dev/shm/x ~/x x").exits(1).prints("");
}

/// In Python, about something that is outside.
fn about(name: &'static str, text: String) -> Attempt {
    py(name, text.leak())
}

/// Signals need not be heard of to do harm: what they are sent to is looked at.
#[test]
fn no_signal_leaves_the_sandbox() {
    for_everybody(|h| {
        let mut outside = Outside::spawn();
        let s = h.session_with(&["--sandbox", "full-access"]);
        let pid = outside.id();
        let keeper = s.keeper().pid();
        let mut attempts = Vec::new();
        for pid in [pid.to_string(), keeper.to_string()] {
            let about = |name, text: &str| about(name, text.replace("PID", &pid));
            attempts.extend([
                about("a signal to a process outside", "os.kill(PID, 9)"),
                about("a signal to its group", "os.killpg(PID, 9)"),
                about("a signal to its thread", "syscall(234, PID, PID, 9)"),
                about("a signal with a value", "syscall(129, PID, 9, bytes(128))"),
                about("a handle to it", "os.pidfd_open(PID)"),
                about("its priority", "os.getpriority(os.PRIO_PROCESS, PID)"),
                about("its limits", "import resource\nresource.prlimit(PID, resource.RLIMIT_CPU)"),
                about("its trace", "syscall(101, 0x4206, PID, 0, 0)"),
                about(
                    "a signal by an owner of input",
                    "import fcntl\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, PID)",
                ),
            ]);
        }
        all_fail(&s, &attempts);
        // To everybody: those inside, the kernel among them.
        let _ = s.run("kill -9 -1");
        s.run("echo on").exits(0).prints("on\n");
        assert!(outside.is_alive());
    });
}

/// Whoever is connected can be given descriptors of the host: nobody is.
#[test]
fn no_socket_of_the_host_is_connected_to() {
    for_everybody(|h| {
        let other = h.session();
        let s = h.session_with(&["--sandbox", "full-access"]);
        let name = format!("{}-abstract", s.id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let hidden = UnixListener::bind_addr(&address).expect("a socket");
        let file = listen_in_workspace(h);
        let connect = |to: &str| {
            format!(
                "s = socket.socket(socket.AF_UNIX); s.connect({to})\n\
                 print(socket.recv_fds(s, 1, 1))"
            )
        };
        let keepers = |of: &std::path::Path| connect(&format!("'{}/keeper.sock'", of.display()));
        let attempts = [
            about("an abstract socket of the host", connect(&format!("'\\0{name}'"))),
            about("a socket in the workspace", connect("'/workspace/host.sock'")),
            about("another session's keeper", keepers(&other.dir())),
            about("its own keeper", keepers(&s.dir())),
            about(
                "another session's pipes",
                format!("os.open('{}/b/t', os.O_RDWR)", other.memory().display()),
            ),
        ];
        all_fail(&s, &attempts);
        let full = h.session_with(&["--sandbox", "full-access", "--network", "full"]);
        all_fail(&full, &attempts);
        for listener in [hidden, file] {
            listener.set_nonblocking(true).expect("a socket");
            assert!(listener.accept().is_err());
        }
    });
}

/// A server of the host that anybody may connect to.
fn listen_in_workspace(h: &Harness) -> UnixListener {
    let path = h.path("host.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("a socket");
    listener
}
