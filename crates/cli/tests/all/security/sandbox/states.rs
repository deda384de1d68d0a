//! Checkpoints, rewinds, forks and saves while somebody inside works against
//! them: the states of kernels pass through places that code inside can write
//! to, and a process outside takes them from there.

use super::{Outside, for_everybody};
use sessile_testkit::{Harness, Session, harness};
use std::path::PathBuf;

/// A file of the host that nobody inside may read or change.
fn victim(h: &Harness) -> PathBuf {
    let path = h.state_home().join("victim");
    std::fs::write(&path, "hostsecret").expect("a file");
    path
}

/// Nothing of it has come into the session's directory, and it is as it was.
fn is_untouched(s: &Session<'_>, victim: &PathBuf) {
    assert_eq!(std::fs::read_to_string(victim).expect("the file"), "hostsecret");
    let mut directories = vec![s.dir()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() && entry.file_name() != "history.log" {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                let has = bytes.windows(10).any(|window| window == b"hostsecret");
                assert!(!has, "{}", entry.path().display());
            }
        }
    }
}

/// Takes the place of every state, again and again: with a link, a FIFO, a
/// directory, a file without an end, and many hard links. It says when it does.
const REPLACING: &str = r#"
import os, sys
os.chdir('/.sessile/dumps')
victim = sys.argv[1]
names = [f'{kind}-{n}-{language}{end}' for kind in ('image', 'linked-image', 'save')
         for n in range(8) for language in ('node', 'python') for end in ('', '.report')]
def endless(name):
    os.ftruncate(os.open(name, os.O_CREAT | os.O_WRONLY), 1 << 50)
ways = [lambda n: os.symlink(victim, n), os.mkfifo, os.mkdir, endless,
        lambda n: os.symlink('/proc/self/cwd/etc/shadow', n)]
turn = 0
while True:
    for name in names:
        turn += 1
        try:
            os.rename(name, 'aside')
            os.unlink('aside')
        except OSError:
            try: os.rmdir('aside')
            except OSError: pass
        try: ways[turn % len(ways)](name)
        except OSError: pass
    if turn < 2 * len(names):
        open('/workspace/begun', 'w').close()
"#;

fn begin_replacing(s: &Session<'_>, victim: &std::path::Path) {
    s.run(format!("cat >/tmp/attack.py <<'EOF'\n{REPLACING}\nEOF")).exits(0);
    s.run(format!(
        "python3 /tmp/attack.py {} >/dev/null 2>&1 & until [ -e begun ]; do :; done; echo $! >/tmp/pid",
        victim.display()
    ))
    .exits(0);
}

fn end_replacing(s: &Session<'_>) {
    s.run("kill -9 $(cat /tmp/pid); rm -rf /.sessile/dumps/*").exits(0);
}

#[test]
fn no_file_of_the_host_is_reached_by_the_names_of_states() {
    for_everybody(|h| {
        let victim = victim(h);
        let s = h.session_with(&["--sandbox", "full-access"]);
        s.run_in("node", "globalThis.q = 1").exits(0);
        s.run_in("python", "q = 1").exits(0);
        begin_replacing(&s, &victim);
        for n in 0..4 {
            let point = format!("p{n}");
            let _ = s.call("checkpoint", &["--name", &point]);
            s.run_in("node", "globalThis.q += 1").exits(0);
            let _ = s.call("rewind", &[&point]);
            let saved = h.path(&format!("{n}.save")).display().to_string();
            let _ = s.call("save", &["-o", &saved]);
            let _ = s.call("fork", &[]);
            is_untouched(&s, &victim);
        }
        end_replacing(&s);
        // And then all of it works.
        s.run_in("node", "globalThis.q = 5").exits(0);
        s.checkpoint(&["--name", "last"]);
        s.run_in("node", "globalThis.q = 6").exits(0);
        s.rewind(&["last"]);
        s.run_in("node", "q").exits(0).shows("5");
        s.fork().run_in("node", "q").exits(0).shows("5");
        is_untouched(&s, &victim);
    });
}

/// What a kernel says of its dumps comes on a pipe that anybody inside can write
/// to: a path in it is no order to remove a file, and a number none to kill.
#[test]
fn a_path_or_a_process_that_somebody_names_is_left_alone() {
    for_everybody(|h| {
        let victim = victim(h);
        let s = h.session_with(&["--sandbox", "full-access"]);
        let mut outside = Outside::spawn();
        for (language, place) in [("python", "p"), ("node", "n")] {
            s.run_in(language, "1").exits(0);
            for path in [&victim, &s.dir().join("metadata.json")] {
                let path = path.display();
                let pid = outside.id();
                let forge = format!(
                    "f=$(echo /dev/shm/.*.sessile/{place}/rep)\n\
                     echo '{{\"op\":\"dumped\",\"path\":\"{path}\",\"carried\":1}}' >$f\n\
                     echo '{{\"op\":\"dumping\",\"path\":\"{path}\",\"pid\":{pid}}}' >$f\n\
                     echo '{{\"op\":\"unborn\",\"directory\":\"{path}\",\"error\":\"x\"}}' >$f\n\
                     echo '{{\"op\":\"copied\",\"directory\":\"{path}\",\"pid\":{pid}}}' >$f\n\
                     echo '{{\"op\":\"born\",\"pid\":{pid}}}' >$f"
                );
                s.run(forge).exits(0);
            }
            // The keeper has read all of it when it has read what came after.
            s.run_in(language, "1").exits(0).is_kept();
        }
        assert!(s.dir().join("metadata.json").exists());
        assert!(outside.is_alive());
        is_untouched(&s, &victim);
        let saved = h.path("a.save").display().to_string();
        let saving = s.call("save", &["-o", &saved]);
        assert!(saving.status.success(), "{}", String::from_utf8_lossy(&saving.stderr));
    });
}

/// The session's own folder of states is not there for code inside, whatever it
/// is called.
#[test]
fn the_folder_of_states_is_not_seen_and_what_is_given_not_written() {
    for_everybody(|h| {
        let s = h.session_with(&["--sandbox", "full-access"]);
        s.run_in("node", "globalThis.q = 1").exits(0);
        s.checkpoint(&["--name", "one"]);
        assert!(s.dir().join("kernels").read_dir().expect("states").count() > 0);
        s.run(format!("ls {} {}/kernels", s.dir().display(), s.dir().display())).exits(2);
        s.run("ls -A /.sessile/dumps /.sessile/given | grep -c node").exits(1).prints("0\n");
        s.run("touch /.sessile/given/x || mkdir /.sessile/x || mv /.sessile/dumps /.sessile/x")
            .exits(1)
            .complains("Read-only file system");
        s.run("rm -rf /.sessile/dumps; rmdir /.sessile/given").exits(1);
        s.rewind(&["one"]);
        s.run_in("node", "q").exits(0).shows("1");
    });
}

/// What kernels write for their keeper is within the limit of the layer, or
/// small, and has a number of files.
#[test]
fn the_ways_to_the_keeper_are_no_room_for_files() {
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access", "--layer-size", "16MiB"]);
    s.run("x=5; d=${BASH_SOURCE%/*}/w").exits(0);
    s.run("head -c 64M /dev/zero >/.sessile/dumps/a").exits(1).complains("No space left");
    s.run("head -c 64M /dev/zero >/tmp/a; head -c 64M /dev/zero >$d/a").complains("No space left");
    let taken = "du -sk --total . /tmp /.sessile $d | tail -1 | cut -f1";
    assert!(s.run(taken).exits(0).number() <= 18 << 10);
    s.run("rm -f /.sessile/dumps/a /tmp/a $d/a").exits(0);
    for place in ["/.sessile/dumps", "$d"] {
        let fill = format!("n=0; while : >{place}/f$n; do n=$((n+1)); done 2>/dev/null; echo $n");
        assert!(s.run(fill).exits(0).number() < 5000, "{place}");
        s.run(format!("rm -f {place}/f*; echo $x")).exits(0).prints("5\n");
    }
    // A full one is told, and nothing of it is on the host's disk.
    s.run("head -c 64M /dev/zero >/.sessile/dumps/a").exits(1);
    s.run_in("node", "globalThis.big = 'x'.repeat(1 << 20)").exits(0);
    let said = s.call("checkpoint", &[]).stderr;
    let said = String::from_utf8_lossy(&said).to_lowercase();
    assert!(said.contains("no space left"), "{said}");
    s.run("rm /.sessile/dumps/a; echo $x").exits(0).prints("5\n");
    s.checkpoint(&["--name", "fits"]);
}
