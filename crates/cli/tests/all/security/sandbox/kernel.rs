//! Parts of the kernel that a session has no business with.

use super::{Attempt, all_fail, for_everybody, py, sh};

const ATTEMPTS: &[Attempt] = &[
    sh("a new user namespace", "unshare -U true"),
    sh("a new mount namespace", "unshare -m true"),
    sh("a new network", "unshare -n true"),
    sh("the namespaces of the first process", "nsenter -t 1 -m -u -n -i true"),
    sh("a mount", "mount -t tmpfs none /mnt"),
    sh("a bind mount", "mount --bind / /mnt"),
    sh("the system, mounted again", "mount -o remount,rw /usr"),
    sh("a mount, taken away", "umount /proc/sys || umount -l /workspace"),
    sh("another root", "chroot / true"),
    sh("a module", "modprobe loop || insmod x.ko"),
    sh("the clock", "date -s 2000-01-01"),
    sh("the machine's name", "hostname x"),
    sh("a reboot", "reboot -f"),
    sh("swap", "swapoff -a && test -s /proc/swaps"),
    py("mount by fsopen", "syscall(430, b'tmpfs', 0)"),
    py("mount by open_tree", "syscall(428, -100, b'/', 1)"),
    py("mount by mount_setattr", "syscall(442, -100, b'/', 0, b'\\0' * 32, 32)"),
    py("pivot_root", "syscall(155, b'/tmp', b'/tmp')"),
    py("unshare", "syscall(272, 0x10000000)"),
    py("setns", "syscall(308, os.open('/proc/self/ns/net', 0), 0)"),
    py("clone with a user namespace", "syscall(56, 0x10000011, 0, 0, 0, 0)"),
    py("clone3", "syscall(435, b'\\0' * 88, 88)"),
    py("keyctl", "syscall(250, 0, -3, 1)"),
    py("add_key", "syscall(248, b'user', b'x', b'y', 1, -3)"),
    py("bpf", "syscall(321, 0, b'\\0' * 64, 64)"),
    py("perf_event_open", "syscall(298, b'\\0' * 120, 0, -1, -1, 0)"),
    py("userfaultfd", "syscall(323, 1)"),
    py("io_uring", "syscall(425, 1, b'\\0' * 120)"),
    py("fanotify", "syscall(300, 0, 0)"),
    py("kexec", "syscall(246, 0, 0, 0, 0)"),
    py("init_module", "syscall(175, b'', 0, b'')"),
    py("finit_module", "syscall(313, 0, b'', 0)"),
    py("delete_module", "syscall(176, b'loop', 0)"),
    py("iopl", "syscall(172, 3)"),
    py("ioperm", "syscall(173, 0, 1, 1)"),
    py("acct", "syscall(163, b'/tmp/x')"),
    py("quotactl", "syscall(179, 0, b'', 0, 0)"),
    py("syslog", "syscall(103, 3, b'\\0' * 64, 64)"),
    py("a personality without defences", "syscall(135, 0x0400000)"),
    py("a call of x32", "syscall(0x40000000 + 39)"),
    py("a call that is newer than the list", "syscall(999)"),
    py("a raw socket", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
    py("a raw socket for IPv6", "socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)"),
    py("packets", "socket.socket(17, socket.SOCK_RAW, 3)"),
    py("the hypervisor", "socket.socket(40, socket.SOCK_STREAM)"),
    py("the kernel's ciphers", "socket.socket(38, socket.SOCK_SEQPACKET)"),
    py("netfilter", "socket.socket(16, socket.SOCK_RAW, 12)"),
    py("request_key", "syscall(249, b'user', b'x', 0, -3)"),
    py("the keyring of the session before", "syscall(250, 1, b'_ses'); syscall(250, 11, -3, 0, 0)"),
    // Where it may, it finds nothing at that address.
    py(
        "memory of others, written to",
        "b = ctypes.create_string_buffer(8)\nv = ctypes.create_string_buffer(struct.pack('QQQQ', ctypes.addressof(b), 8, 8, 8))\nat = ctypes.addressof(v)\ntry: syscall(311, 1, at, 1, at + 16, 1, 0)\nexcept OSError as e:\n    if e.errno != errno.EFAULT: raise",
    ),
    py("a comparison with the first process", "syscall(312, os.getpid(), 1, 0, 0, 0)"),
    py("advice for another's memory", "syscall(440, os.pidfd_open(1), 0, 0, 21, 0)"),
    py("pages of another", "syscall(279, 1, 0, 0, 0, 0, 0)"),
    py("a time namespace", "syscall(272, 0x80)"),
    py("a cgroup namespace", "syscall(272, 0x02000000)"),
    py("a mount moved", "syscall(429, -100, b'/tmp', -100, b'/workspace', 0)"),
    py("a file system, picked", "syscall(433, -100, b'/tmp', 0)"),
    py("the root, changed", "syscall(161, b'/tmp')"),
    py("the machine's domain", "syscall(171, b'x', 1)"),
    py("the clock, set", "syscall(227, 0, bytes(16))"),
    py("the clock, adjusted", "syscall(159, bytes([1]) + bytes(207))"),
    py("old swap", "syscall(168, b'/dev/zero')"),
    py("modify_ldt", "syscall(154, 1, bytes(16), 16)"),
    py("secret memory", "syscall(447, 0)"),
    py("landlock, undone", "syscall(446, -1, 0)"),
    py(
        "a process by its handle, signalled",
        "import signal\nsignal.pidfd_send_signal(os.pidfd_open(1), 9); raise OSError",
    ),
    py(
        "a console's selection",
        "import fcntl\nm, s = os.openpty(); fcntl.ioctl(s, 0x541C, b'\\x03' + b'\\0' * 16)",
    ),
    py(
        "a driver for a terminal's line",
        "import fcntl\nm, s = os.openpty(); fcntl.ioctl(s, 0x5423, struct.pack('i', 0))",
    ),
    py("SCTP", "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)"),
    py("SCTP by its kind", "socket.socket(socket.AF_INET6, socket.SOCK_SEQPACKET, 0)"),
    py("DCCP", "socket.socket(socket.AF_INET, 6, 33)"),
    py("TLS in the kernel", "socket.socket().setsockopt(6, 31, b'tls')"),
    py("typing on a terminal", "import fcntl\nm, s = os.openpty(); fcntl.ioctl(s, 0x5412, b'x')"),
];

#[test]
fn what_the_kernel_has_for_administrators_is_refused() {
    for_everybody(|h| {
        let s = h.session_with(&["--sandbox", "full-access"]);
        all_fail(&s, ATTEMPTS);
    });
}

#[test]
fn a_session_has_no_capability_and_gets_none() {
    let h = sessile_testkit::harness!();
    let s = h.session_with(&["--sandbox", "full-access"]);
    s.run("grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'")
        .prints(
            "CapPrm:0000000000000000\nCapEff:0000000000000000\nCapBnd:0000000000000000\n\
             CapAmb:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n",
        );
}
