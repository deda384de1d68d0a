//! Shells at their limits: of files, of room, of what they may write.

use super::ALL;
use sessile_testkit::{Harness, harness};

#[test]
fn a_shell_that_has_all_of_its_files_open_goes_on() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        s.run("x=1");
        s.wait_captured(1);
        let leak = "x=2; ulimit -S -n 64; for i in {3..9}; do eval \"exec $i</dev/null\"; done; \
                    for i in {1..70}; do exec {fd}</dev/null || break; done";
        let leaking = s.run_with(&["--timeout", "20s"], leak);
        assert!(leaking.notes().contains("`ulimit -n` is"), "{shell}: {leaking:?}");
        s.run("echo $x").prints("2\n").warns("").is_kept();
        s.run("exit 3").exits(3).is_restarted();
        s.run("echo $x").prints("2\n").is_kept();
    }
}

/// zsh lists its traps into a pipe. Whoever reads it must not end at a limit.
#[test]
fn a_shell_that_may_write_no_file_outlives_its_captures() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        // More than a pipe holds.
        s.run("long=$(head -c 200000 /dev/zero | tr '\\0' x); trap \": $long\" USR1");
        s.run("ulimit -f 0; x=2").is_kept();
        for _ in 0..3 {
            let _ = s.state();
            s.run("echo $x").prints("2\n").is_kept();
        }
    }
}

#[test]
fn a_shell_whose_state_cannot_be_read_exits_with_its_own_status() {
    let h = harness!();
    for (shell, text) in [("bash", "ulimit -f 0"), ("zsh", "ulimit -f 0")] {
        for shell in Harness::shells(&[shell]) {
            let s = h.session_of(shell);
            s.run("x=1");
            s.wait_captured(1);
            s.run(text).is_kept();
            s.run("x=2; exit 4").exits(4).warns("").is_restored_as_of(1);
            s.run("echo $x").prints("1\n").is_kept();
            s.end();
        }
    }
}

/// Who has the privilege gets more of them, all others a new shell.
#[test]
fn a_limit_that_leaves_no_room_for_another_run_is_not_the_end() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        for limit in [3, 6, 12] {
            let s = h.session_of(shell);
            s.run("x=1");
            s.wait_captured(1);
            let limited = s.run(format!("x=2; ulimit -n {limit}"));
            assert!(limited.notes().contains("`ulimit -n"), "{shell} {limit}: {limited:?}");
            let is_kept = limited.json()["kernel"] == "kept";
            s.run("echo $x").prints(if is_kept { "2\n" } else { "1\n" }).exits(0).is_kept();
            s.run("x=3; exit 4").exits(4).is_restarted();
            s.run("echo $x; ls -d /").prints("3\n/\n").is_kept();
            s.end();
        }
    }
}
