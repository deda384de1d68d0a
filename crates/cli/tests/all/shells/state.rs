//! What a session remembers from run to run.

use sessile_testkit::{Harness, harness};

const ALL: &[&str] = &["bash", "zsh", "dash"];
const BASH: &[&str] = &["bash"];
const ZSH: &[&str] = &["zsh"];

/// In which shells, what is run, what is asked later, what comes.
type Case = (&'static [&'static str], &'static str, &'static str, &'static str);

const KEPT: &[Case] = &[
    (ALL, "v='a  b'", "echo \"$v\"", "a  b\n"),
    (ALL, "multi='1\n2'", "echo \"$multi\"", "1\n2\n"),
    (ALL, "utf='é😀'", "echo \"$utf\"", "é😀\n"),
    (ALL, "export E=exported", "sh -c 'echo $E'", "exported\n"),
    (ALL, "unset HOME", "echo ${HOME-unset}", "unset\n"),
    (BASH, "cd /; pushd /usr >/dev/null; pushd /etc >/dev/null", "dirs", "/tmp /usr /\n"),
    (ALL, "cd /usr; cd /tmp", "pwd; echo $OLDPWD", "/tmp\n/usr\n"),
    (ALL, "f() { echo \"f $1\"; }", "f 1", "f 1\n"),
    (ALL, "alias al='echo aliased'", "al x", "aliased x\n"),
    (ALL, "set -o noglob", "echo /*", "/*\n"),
    (ALL, "umask 027", "umask -S", "u=rwx,g=rx,o=\n"),
    (ALL, "ulimit -n 200", "ulimit -n; sh -c 'ulimit -n'", "200\n200\n"),
    (ALL, "set -- one 'two 2'", "echo \"$# $2\"", "2 two 2\n"),
    (ALL, "trap 'echo caught' USR1", "kill -USR1 $$; :", "caught\n"),
    (ALL, "echo from-file >f; exec 5<f", "read l <&5; echo $l", "from-file\n"),
    (ALL, "printf 'lib() { echo lib $L; }; L=1' >lib.sh; . ./lib.sh", "lib", "lib 1\n"),
    (BASH, "trap 'echo err $?' ERR", "(exit 6); trap - ERR", "err 6\n"),
    (ALL, "readonly ro=1", "(ro=2) 2>/dev/null || echo $ro", "1\n"),
    (BASH, "a=(1 '2 x' [5]=3)", "echo \"${#a[@]} ${!a[*]} ${a[1]}\"", "3 0 1 5 2 x\n"),
    (BASH, "declare -A m=([k]=v [k2]='w w')", "echo \"${m[k2]}\"", "w w\n"),
    (BASH, "declare -i n=5", "n+=1; echo $n", "6\n"),
    (
        BASH,
        "shopt -s nullglob extglob",
        "set +f; echo /no/such/*; shopt -q extglob; echo $?",
        "\n0\n",
    ),
    (BASH, "set -o pipefail", "false | true; echo $?", "1\n"),
    (BASH, "exported() { echo yes; }; export -f exported", "bash -c exported", "yes\n"),
    (BASH, "complete -W 'a b' cmd", "complete -p cmd", "complete -W 'a b' cmd\n"),
    (ZSH, "a=(1 '2 x' 3)", "echo ${#a} $a[2]", "3 2 x\n"),
    (ZSH, "typeset -A m; m[k]='w w'", "echo $m[k]", "w w\n"),
    (ZSH, "setopt extendedglob", "[[ -o extendedglob ]]; echo $?", "0\n"),
];

#[test]
fn what_a_run_sets_is_there_in_later_ones() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        let cases = || KEPT.iter().filter(|(shells, ..)| shells.contains(&shell));
        for (_, set, ..) in cases() {
            s.run(set).prints("").warns("").exits(0).is_kept();
        }
        for (_, _, ask, answer) in cases() {
            s.run(ask).prints(answer).warns("").is_kept();
        }
    }
}

#[test]
fn the_last_status_is_that_of_the_last_run() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("echo $?").prints("0\n");
        for status in [7, 0, 1, 255, 42] {
            s.run(format!("(exit {status})")).exits(status);
            s.run("echo $?").prints(&format!("{status}\n")).exits(0);
        }
        s.run("(exit 3)");
        s.run("true && echo $?").prints("0\n");
        s.run("return 9").exits(9).is_kept();
        s.run("echo $?").prints("9\n");
    }
}

#[test]
fn the_last_status_survives_a_look_at_the_state_and_a_capture() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("(exit 7)");
        s.wait_captured(1);
        assert!(s.state().is_object());
        s.run("echo $?").prints("7\n").is_kept();
    }
}

#[test]
fn background_jobs_are_the_shells_own_in_later_runs() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("sleep 1000 &").prints("").warns("");
        let jobs = s.run("jobs").warns("").exits(0);
        // Without job control, dash does not know what its jobs are called.
        let known = if shell == "dash" { "Running" } else { "sleep 1000" };
        assert!(jobs.stdout().contains(known), "{shell}: {jobs:?}");
        assert_eq!(jobs.stdout().lines().count(), 1, "{shell}: {jobs:?}");
        s.run("kill -0 $! && echo alive").prints("alive\n");
        s.run("kill $!; wait $!; echo $?").prints("143\n");
        s.run("(exit 5) &").prints("").warns("");
        s.run("wait $!; echo $?").prints("5\n").warns("");
        s.run("sh -c 'exit 6' & p=$!; : & :").warns("");
        s.run("wait $p; echo $?").prints("6\n");
        s.run("wait; jobs >/dev/null; jobs").prints("").warns("").is_kept();
    }
}

#[test]
fn a_job_that_ends_between_runs_says_nothing_by_itself() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        let job = s.spawns("sleep 1000 & echo $!");
        job.kill().wait_ended();
        s.run("echo mine").prints("mine\n").warns("");
    }
}

#[test]
fn a_virtual_environment_stays_activated() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("python3 -m venv --without-pip venv && . venv/bin/activate").warns("").exits(0);
        let python = format!("{}/venv/bin/python\n", h.root().display());
        s.run("command -v python").prints(&python);
        s.run("deactivate; command -v python").is_kept();
        s.run("echo ${VIRTUAL_ENV-none}").prints("none\n");
    }
}

#[test]
fn an_rc_file_of_the_users_is_not_read_and_no_history_file_written() {
    let h = harness!();
    for file in [".bashrc", ".zshrc", ".profile", ".zshenv", "env"] {
        std::fs::write(h.path(file), "echo CHATTER; x=from-rc\n").unwrap();
    }
    let home = format!("HOME={}", h.root().display());
    let env = format!("ENV={}/env", h.root().display());
    for shell in Harness::shells(ALL) {
        let s = h.session_with(&[shell, "--env", &home, "--env", &env]);
        s.run("echo hi").prints("hi\n").warns("");
        s.end();
    }
    for file in [".bash_history", ".zsh_history", ".histfile"] {
        assert!(!h.path(file).exists(), "{file}");
    }
}

#[test]
fn interactive_only_settings_do_not_get_into_the_way() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("echo 'wow!'; echo \"a!b !!\"").prints("wow!\na!b !!\n");
        s.run("# a comment\necho hi # another").prints("hi\n").warns("");
        s.run("set -o | grep -c '^monitor *on'").prints("0\n");
    }
}
