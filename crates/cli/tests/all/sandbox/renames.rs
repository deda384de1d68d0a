//! Directories that were there before the session are renamed as anywhere else,
//! though the layer cannot do that by itself.

use sessile_testkit::{Harness, harness, needs, until};
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;

/// With a directory that has a tree in it, and an empty one.
fn make_tree(h: &Harness) {
    let owner = fs::metadata(h.root()).expect("a directory");
    let give = |path: &Path| {
        chown(path, Some(owner.uid()), Some(owner.gid())).expect("it is given away");
    };
    for name in ["old", "old/deep", "old/deep/deeper", "empty", "full"] {
        fs::create_dir(h.path(name)).expect("a directory");
        give(&h.path(name));
    }
    for name in ["old/a", "old/deep/b", "old/deep/deeper/c", "full/x"] {
        fs::write(h.path(name), name).expect("a file");
        give(&h.path(name));
    }
}

/// By mounts alone, as root and as an ordinary user.
fn for_everybody(check: impl Fn(&Harness)) {
    check(&harness!());
    if rustix::process::geteuid().is_root() {
        check(&Harness::unprivileged(env!("CARGO_BIN_EXE_sessile")));
    }
}

#[test]
fn a_directory_is_renamed_whole_in_every_language() {
    for_everybody(|h| {
        make_tree(h);
        let s = h.session_with(&["--sandbox", "full-access"]);
        s.run_in(
            "python",
            "import os; os.rename('old', 'p'); print(open('p/deep/deeper/c').read())",
        )
        .exits(0)
        .prints("old/deep/deeper/c\n");
        s.run_in("node", "fs.renameSync('/workspace/p/deep/', 'empty')").exits(0);
        s.run("find old p empty -type f 2>/dev/null | sort")
            .prints("empty/b\nempty/deeper/c\np/a\n");
        assert_eq!(fs::read(h.path("old/deep/b")).expect("a file"), b"old/deep/b");
        assert!(!h.path("p").exists());
    });
}

#[test]
fn git_moves_a_directory() {
    if !needs::has_program("git") {
        return;
    }
    let h = harness!();
    make_tree(&h);
    for args in [&["init", "--quiet"][..], &["add", "old"]] {
        let output = Command::new("git").args(args).current_dir(h.root()).output();
        assert!(output.expect("git").status.success());
    }
    let s = h.session_with(&["--sandbox", "full-access"]);
    s.run("git mv old new 2>&1 && git ls-files")
        .exits(0)
        .prints("new/a\nnew/deep/b\nnew/deep/deeper/c\n");
}

#[test]
fn what_cannot_be_renamed_is_told_as_anywhere_else() {
    for_everybody(|h| {
        make_tree(h);
        let s = h.session_with(&["--sandbox", "full-access"]);
        s.run_in(
            "python",
            "import os, errno
def told(old, new, **more):
    try:
        os.rename(old, new, **more)
    except OSError as error:
        return errno.errorcode[error.errno]
    return 'done'
os.symlink('old', 'link')
print(told('old', 'full'), told('old', 'full/x'), told('nothing', 'new'), told('old', 'old/deep/new'),
      told('old', '/tmp/new'), told('old/.', 'new'), told('old', ''), told('old', 'no/new'))
os.chdir('old/deep')
print(told('../../full', '../moved'), sorted(os.listdir('/workspace/old')))
os.chdir('/workspace')
directory = os.open('old', os.O_RDONLY)
print(told('deep', '../beside', src_dir_fd=directory, dst_dir_fd=directory), os.listdir('beside/deeper'), os.listdir('old/moved'))
print(told('link', 'other'), os.readlink('other'))",
        )
        .exits(0)
        .prints(
            "ENOTEMPTY ENOTDIR ENOENT EINVAL EXDEV EBUSY ENOENT ENOENT\n\
             done ['a', 'deep', 'moved']\n\
             done ['c'] ['x']\n\
             done old\n",
        );
    });
}

#[test]
fn renames_go_on_whatever_programs_end() {
    let h = harness!();
    make_tree(&h);
    let s = h.session_with(&["--sandbox", "full-access"]);
    // Everybody inside but the caller, which has no right to more.
    s.run("touch f; (trap '' TERM; kill -KILL -1); mv f g; ls").exits(137);
    s.run("mv g h 2>/dev/null || mv f h; python3 -c 'import os; os.rename(\"old\", \"new\")'; ls h new")
        .exits(0)
        .prints("h\n\nnew:\na\ndeep\n");
}

#[test]
fn root_of_a_system_tree_renames_its_directories() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("a layer on the system's directories");
    }
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access", "--root"]);
    s.run("python3 -c 'import os; os.rename(\"/usr/share/doc/bash\", \"/usr/share/doc/shell\")' && ls -d /usr/share/doc/shell /usr/share/doc/bash")
        .exits(2)
        .prints("/usr/share/doc/shell\n");
}

/// Files of a directory that takes a while to be moved.
const MANY: usize = 3000;

#[test]
fn a_move_that_is_killed_in_the_middle_leaves_the_directory_as_it_was() {
    for preset in ["full-access", "development"] {
        let h = harness!();
        if preset == "development" && h.sessile(&["sandbox", "check"]).json()["ok"] != true {
            needs::not_permitted("rules for single paths");
            continue;
        }
        fs::create_dir_all(h.path("old/deep/empty")).expect("directories");
        for number in 0..MANY {
            fs::write(h.path(&format!("old/deep/{number}")), "text").expect("a file");
        }
        let s = h.session_with(&["--sandbox", preset]);
        s.run("echo changed >old/deep/7").exits(0);
        s.wait_captured(1);
        let upper = h.sessions_dir().join(s.id()).join("layer/upper");
        let moving = h.begin(&["exec", s.id(), "--", "mv -T old new"], b"");
        until("a part of it to be moved", || {
            let staged = fs::read_dir(upper.join(".sessile-moving-0/deep")).ok()?.count();
            (staged > 10).then_some(())
        });
        s.keeper().kill().wait_gone();
        let _ = moving.finish();
        // Nobody is shown what is in the middle.
        let shown = h.sessile(&["diff", s.id(), "--json"]).exits(0).text();
        assert!(!shown.contains("sessile-moving") && shown.contains("is being moved"), "{shown}");
        s.run("ls -A; ls old/deep | wc -l; cat old/deep/7; test -d old/deep/empty")
            .exits(0)
            .prints(&format!("old\nsessions\n{}\nchanged\n", MANY + 1));
        let shown = h.sessile(&["diff", s.id(), "--stat"]).exits(0).text();
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.contains("old/deep/7"), "{shown}");
        s.run("mv -T old new && ls new/deep | wc -l").exits(0).prints(&format!("{}\n", MANY + 1));
    }
}
