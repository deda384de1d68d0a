//! Files of the host.

use super::{Attempt, all_fail, for_everybody, py, sh};
use sessile_testkit::harness;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

const ATTEMPTS: &[Attempt] = &[
    sh("a home of the host", "test -n \"$(ls -A /root/.ssh /home/*/.ssh 2>/dev/null)\""),
    sh("the shadow file", "cat /etc/shadow"),
    sh("sudoers", "cat /etc/sudoers"),
    sh("keys beside the certificates", "ls /etc/ssl/private"),
    sh("keys of the ssh server", "ls /etc/ssh"),
    sh("the top by dots", "ls /../../../../root/.bashrc"),
    sh("the workspace's parent", "test \"$(ls -A /workspace/..)\" != \"$(ls -A /)\""),
    sh("a link to the host", "ln -s /etc/shadow link && cat link"),
    sh("a link that leads up", "ln -s ../../../../../../etc/shadow up && cat up"),
    sh("a hard link to the system", "ln /usr/bin/env /workspace/env"),
    sh("a container's socket", "ls /var/run/docker.sock /run/docker.sock /run/containerd"),
    sh("the sessions of this user", "test -n \"$(ls -A /workspace/sessions)\""),
    sh("a file among the sessions", "touch /workspace/sessions/x"),
    sh("the mask taken away", "rmdir /workspace/sessions || mv /workspace/sessions y"),
    sh("the system, written to", "touch /usr/bin/x"),
    sh("a program of the system, replaced", "cp /bin/sh /usr/bin/env"),
    sh("the configuration", "echo x >>/etc/passwd"),
    sh("the root", "mkdir /x"),
    sh("a device, made", "mknod disk b 8 0"),
    sh("a device of the host", "cat /dev/sda /dev/vda /dev/nvme0n1 | head -c 1 | grep -q ."),
    sh("memory of the machine", "head -c 1 /dev/mem /dev/kmem /dev/port | grep -q ."),
    sh("/dev, written to", "touch /dev/x"),
    sh("the log of the kernel", "head -c 1 /dev/kmsg | grep -q ."),
    sh("sysfs", "ls /sys/kernel"),
    sh("control groups", "ls /sys/fs/cgroup/*"),
    sh("the kernel's memory", "head -c 1 /proc/kcore | grep -q ."),
    sh("the kernel's symbols", "head -c 1 /proc/kallsyms | grep -q ."),
    sh("the kernel's command line", "head -c 1 /proc/cmdline | grep -q ."),
    sh("the path of the program outside", "grep -q / /proc/1/cmdline"),
    sh("keys", "head -c 1 /proc/keys | grep -q ."),
    sh("a setting of the kernel", "echo 1 >/proc/sys/kernel/panic"),
    sh("where cores go", "echo '|/bin/true' >/proc/sys/kernel/core_pattern"),
    sh("the program that loads modules", "echo /tmp/x >/proc/sys/kernel/modprobe"),
    sh("programs for kinds of files", "echo x >/proc/sys/fs/binfmt_misc/register"),
    sh("the magic key", "echo h >/proc/sysrq-trigger && test ! -c /proc/sysrq-trigger"),
    sh("interrupts", "ls /proc/irq/* && echo 1 >/proc/irq/default_smp_affinity"),
    sh("a capability on a file", "cp /bin/sh c && setcap cap_sys_admin+ep c"),
    py("a file by its handle", "syscall(304, -100, b'x' * 16, 0)"),
    sh("what runs when a group is empty", "find / -name release_agent 2>/dev/null | grep -q ."),
    sh("a group of its own", "mkdir /sys/fs/cgroup || mkdir /sys/fs/cgroup/x"),
    sh(
        "where cores go, by another way",
        "cp /bin/true /proc/self/root/proc/sys/kernel/core_pattern",
    ),
    sh("the host by a process's root", "cat /proc/*/root/etc/shadow"),
    sh("the host by a working directory", "cat /proc/*/cwd/../../../etc/shadow"),
    py(
        "a descriptor that leads out",
        "outside = []\nfor fd in os.listdir('/proc/self/fd'):\n    try:\n        \
         if os.path.isdir(f'/proc/self/fd/{fd}'): outside += os.listdir(int(fd))\n    \
         except OSError: pass\nif not outside: raise OSError",
    ),
    py(
        "a descriptor that others have open",
        "for p in os.listdir('/proc'):\n    if p.isdigit() and os.stat(f'/proc/{p}').st_uid != 1000:\n        \
         os.listdir(f'/proc/{p}/fd'); break\nelse: raise OSError",
    ),
    py(
        "a file by its handle's name",
        "b = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))\nm = ctypes.create_string_buffer(8)\nsyscall(303, -100, b'/usr', ctypes.addressof(b), ctypes.addressof(m), 0)\nsyscall(304, os.open('/usr', 0), ctypes.addressof(b), 0)",
    ),
    py("a directory of the system, renamed", "os.rename('/usr/share/doc', '/usr/share/papers')"),
    py("a directory of the system, moved here", "os.rename('/usr/share/doc', '/workspace/doc')"),
    py("our pipes' directory, renamed", "os.rename('/.sessile', '/workspace/ours')"),
    py(
        "a directory behind a process's root, renamed",
        "os.rename('/proc/1/root/usr/share', '/workspace/usr')",
    ),
    py(
        "a directory behind a link, renamed",
        "os.makedirs('swap', exist_ok=True)\nos.path.lexists('swap/l') or os.symlink('/usr', 'swap/l')\nos.rename('swap/l/share', 'swap/share')",
    ),
    py("a path by openat2", "syscall(437, -100, b'/', b'\\0' * 24, 24)"),
    py(
        "our pipes' directory, written to",
        "import glob\nfor p in glob.glob('/dev/shm/.*.sessile/b'): open(p + '/x', 'w')",
    ),
    py(
        "our driver, replaced",
        "import glob\nfor p in glob.glob('/dev/shm/.*.sessile/p'): open(p + '/driver.py', 'w')",
    ),
    py(
        "our command file, removed",
        "import glob\nfor p in glob.glob('/dev/shm/.*.sessile/b/c'): os.unlink(p)",
    ),
];

#[test]
fn nothing_of_the_host_is_read_or_written() {
    for_everybody(|h| {
        let s = h.session_with(&["--sandbox", "full-access"]);
        all_fail(&s, ATTEMPTS);
    });
}

#[test]
fn variables_of_the_host_stay_outside() {
    let h = sessile_testkit::harness!();
    let mut start = h.command(&["start", "--sandbox", "full-access", "--env", "GIVEN=1"]);
    start.env("AWS_SECRET_ACCESS_KEY", "s3cret").env("GITHUB_TOKEN", "s3cret");
    let started = sessile_testkit::Client::spawn(start, b"").finish().json();
    let s = h.session_called(started["session_id"].as_str().unwrap());
    s.run("env | grep -c s3cret; echo $GIVEN $HOME").prints("0\n1 /home/agent\n");
    s.run("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c s3cret").prints("0\n");
}

/// What a kernel writes for its keeper is read as what it is, or not at all.
#[test]
fn a_link_in_the_place_of_a_captured_state_is_not_followed() {
    let h = sessile_testkit::harness!();
    std::fs::write(h.state_home().join("secret"), "a\0b\0end\0").unwrap();
    let s = h.session_with(&["--sandbox", "full-access"]);
    let secret = h.state_home().join("secret").display().to_string();
    s.run(format!(
        "d=$(echo /dev/shm/.*.sessile/b/w); ln -sf {secret} $d/x2; ln -sf {secret} $d/final"
    ))
    .exits(0);
    s.run("x=1").exits(0);
    s.run("echo $x; exit 3").exits(3).prints("1\n");
    s.run("echo on").exits(0).prints("on\n");
    assert_eq!(std::fs::read(h.state_home().join("secret")).unwrap(), b"a\0b\0end\0");
}

/// A program is shown, and not what its owner keeps beside it.
#[test]
fn a_directory_is_not_shown_because_an_interpreter_is_on_the_search_path() {
    for_everybody(|h| {
        let work = h.state_home().join("work");
        std::fs::create_dir_all(work.join("bin")).unwrap();
        std::fs::create_dir_all(work.join("private")).unwrap();
        std::fs::copy("/bin/bash", work.join("bin/bash")).unwrap();
        std::fs::write(work.join("private/secret"), "s3cret").unwrap();
        std::fs::write(work.join("bin/notes"), "s3cret").unwrap();
        let bin = work.join("bin").display().to_string();
        let path = format!("{bin}:/usr/bin:/bin");
        let mut start = h.command(&["start", "--sandbox", "full-access"]);
        start.env("PATH", &path);
        let started = sessile_testkit::Client::spawn(start, b"").finish().json();
        let s = h.session_called(started["session_id"].as_str().unwrap());
        s.run("echo $PATH; echo $BASH").prints(&format!("{path}\n{bin}/bash\n"));
        s.run(format!("find {} -type f", work.display())).prints(&format!("{bin}/bash\n"));
    });
}

/// A server of the host whose socket is in a directory that is shown as it is, by
/// whatever way.
#[test]
fn sockets_of_the_host_are_covered_where_a_directory_is_shown_as_it_is() {
    let connect = "python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); \
                   s.connect(sys.argv[1])' ";
    for_everybody(|h| {
        let place = h.path("shown");
        std::fs::create_dir_all(place.join("run")).expect("a directory");
        let socket = place.join("run/a b.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        for path in [&place, &place.join("run"), &socket] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("a mode");
        }
        let shown = place.display().to_string();
        for args in [
            vec!["--sandbox", "read-only", "--workspace", &shown],
            vec!["--sandbox", "full-access", "--files", "direct", "--workspace", &shown],
            vec!["--sandbox", "full-access", "--workspace", &shown],
        ] {
            let s = h.session_with(&args);
            s.run(format!("{connect} '/workspace/run/a b.sock'")).exits(1);
        }
        for way in ["", ":ro"] {
            let bind = format!("{shown}:/shown{way}");
            let s = h.session_with(&["--sandbox", "full-access", "--bind", &bind]);
            s.run(format!("{connect} '/shown/run/a b.sock'")).exits(1);
        }
        // Who shows the socket itself means it.
        let bind = format!("{}:/shown/own.sock", socket.display());
        let s = h.session_with(&["--sandbox", "full-access", "--bind", &bind]);
        s.run(format!("{connect} /shown/own.sock")).exits(0);
    });
}

/// As a container engine does that is started later, or again.
#[test]
fn a_socket_that_the_host_creates_later_answers_nobody_through_a_layer() {
    let connect = "python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); \
                   s.connect(sys.argv[1])' ";
    for_everybody(|h| {
        let place = h.path("shown");
        std::fs::create_dir_all(&place).expect("a directory");
        let shown = place.display().to_string();
        let can_have_rules = h.sessile(&["sandbox", "check"]).text().starts_with("{\"ok\":true");
        let presets =
            if can_have_rules { &["full-access", "development"][..] } else { &["full-access"] };
        for preset in presets {
            let s = h.session_with(&["--sandbox", preset, "--workspace", &shown]);
            s.run("ls").exits(0);
            let socket = place.join(format!("{preset}.sock"));
            let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
            std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o777)).expect("a mode");
            s.run(format!("{connect} /workspace/{preset}.sock")).exits(1);
            // By its name outside it is not there at all, nor is any other.
            s.run(format!("ls {shown} /run/docker.sock /var/run/docker.sock /run/containerd"))
                .exits(2);
            s.run("find / -xdev -type s -not -path '/workspace/*' 2>/dev/null").prints("");
        }
    });
}

/// Their states are text that is run when they come back, outside.
#[test]
fn sessions_that_were_started_below_the_workspace_are_not_shown() {
    for_everybody(|h| {
        let project = h.path("project");
        let below = project.join("sub");
        std::fs::create_dir_all(&below).expect("directories");
        let owner = std::fs::metadata(h.root()).expect("a directory");
        for path in [&project, &below] {
            chown(path, Some(owner.uid()), Some(owner.gid())).expect("an owner");
        }
        let kept = below.join(".sessions");
        let (kept, below) = (kept.to_str().expect("text"), below.to_str().expect("text"));
        let aside = h.path("project/named");
        let aside = aside.to_str().expect("text");
        for sessions in [kept, aside] {
            let args = ["start", "--sessions-dir", sessions, "--cwd", below, "--env", "KEY=secret"];
            h.sessile(&args).exits(0);
        }
        let work = project.to_str().expect("text");
        for args in [&["--files", "overlay"][..], &["--files", "direct"]] {
            let args = [&["--sandbox", "full-access", "--cwd", work], args].concat();
            let s = h.session_with(&args);
            s.run("grep -r secret . || touch sub/.sessions/x || touch named/sess_*/x || exit 7")
                .exits(7);
            s.run("echo fine >sub/f; cat sub/f").exits(0).prints("fine\n");
        }
        for sessions in [kept, aside] {
            h.sessile(&["end", "--all", "--sessions-dir", sessions]).exits(0);
        }
    });
}

/// With rules, directories are moved entry by entry, whatever is mounted on one.
#[test]
fn a_directory_with_sessions_in_it_is_not_moved_where_they_would_be_seen() {
    let h = harness!();
    let project = h.path("project");
    let below = project.join("a [1]");
    std::fs::create_dir_all(&below).expect("directories");
    let kept = below.join(".sessions");
    let (kept, below) = (kept.to_str().expect("text"), below.to_str().expect("text"));
    let args = ["start", "--sessions-dir", kept, "--cwd", below, "--env", "KEY=secret"];
    h.sessile(&args).exits(0);
    let work = project.to_str().expect("text");
    for files in ["overlay", "direct"] {
        let s = h.session_with(&["--sandbox", "--files", files, "--cwd", work]);
        s.run("python3 -c 'import os; os.rename(\"a [1]\", \"b\")' || exit 7").exits(7);
        s.run("grep -r secret . || mkdir 'a [1]/.sessions' || exit 7").exits(7);
        s.run("echo fine >'a [1]/f'; cat a*/f").exits(0).prints("fine\n");
    }
    h.sessile(&["end", "--all", "--sessions-dir", kept]).exits(0);
}
