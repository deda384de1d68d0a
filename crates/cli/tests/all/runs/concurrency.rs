//! Runs of one session queue; sessions never wait for each other.

use sessile_testkit::{Harness, harness, until};
use std::collections::BTreeMap;

#[test]
fn clients_of_one_session_are_queued_in_order_and_get_their_own_output() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        s.run(":>order");
        let text = |i: usize| {
            format!(
                "echo start {i}; echo err {i} >&2; echo {i} >>order; \
                 n=0; while [ $n -lt 300 ]; do n=$((n+1)); echo {i}; done; (exit {i})"
            )
        };
        let clients: Vec<_> = (1..=12).map(|i| (i, s.begin(text(i)))).collect();
        let mut by_run = BTreeMap::new();
        for (i, client) in clients {
            let answer = s
                .answer(client, text(i))
                .prints(&format!("start {i}\n{}", format!("{i}\n").repeat(300)))
                .warns(&format!("err {i}\n"))
                .exits(i64::try_from(i).unwrap())
                .is_kept();
            by_run.insert(answer.run(), format!("{i}\n"));
        }
        assert_eq!(by_run.keys().copied().collect::<Vec<_>>(), (2..=13).collect::<Vec<_>>());
        let order: String = by_run.into_values().collect();
        assert_eq!(std::fs::read_to_string(h.path("order")).unwrap(), order);
    }
}

#[test]
fn a_busy_session_does_not_delay_another() {
    let h = harness!();
    let mut busy = Vec::new();
    for (i, hang) in
        ["while :; do :; done", "sleep 1000", "yes", "cat /dev/zero"].iter().enumerate()
    {
        let s = h.session();
        let text = format!("touch begun{i}; {hang}");
        busy.push(s.begin_with(&["--timeout", "0"], text));
        h.wait_for_file(&format!("begun{i}"));
    }
    let other = h.session();
    for i in 0..20 {
        other.run(format!("echo {i}")).prints(&format!("{i}\n"));
    }
    for client in &mut busy {
        assert!(client.is_waiting());
    }
    h.sessile(&["end", "--all"]).exits(0);
    for client in busy {
        let output = client.finish().exits(1).prints("");
        assert_eq!(output.errors().lines().count(), 1);
    }
}

#[test]
fn a_busy_session_can_be_looked_at() {
    let h = harness!();
    let s = h.session();
    s.run("cd /usr; x=1");
    s.wait_captured(1);
    let text = format!("cd /; touch {}; sleep 1000", h.path("begun").display());
    let client = s.begin(&text);
    h.wait_for_file("begun");
    let state = s.state();
    assert_eq!(state["working_dir"], "/usr", "the last captured one");
    assert_eq!(state["busy"], true);
    assert_eq!(s.history().as_array().unwrap().len(), 1);
    assert_eq!(h.list()[0]["status"], "active");
    s.sessile("interrupt").exits(0);
    s.answer(client, &text).exits(130).is_kept();
    assert_eq!(s.state()["working_dir"], "/");
}

#[test]
fn a_queued_run_goes_on_when_the_one_before_it_ends_its_kernel() {
    let h = harness!();
    for (ending, fate) in [("exit 3", "restarted"), ("kill -9 $$", "restored")] {
        let s = h.session();
        s.run("x=1; mkfifo go");
        let first = format!("cat go >/dev/null; {ending}");
        let blocked = s.begin(&first);
        let rest: Vec<_> = (0..4).map(|_| s.begin("echo $x")).collect();
        s.run_gate(&h);
        s.answer(blocked, &first).has("kernel", fate);
        for client in rest {
            s.answer(client, "echo $x").prints("1\n").is_kept();
        }
        s.run("rm go");
    }
}

/// Opening the other side of the FIFO tells that the first run has begun.
trait Gate {
    fn run_gate(&self, h: &Harness);
}

impl Gate for sessile_testkit::Session<'_> {
    fn run_gate(&self, h: &Harness) {
        let path = h.path("go");
        until("the run to begin", || std::fs::write(&path, "go\n").ok());
    }
}

#[test]
fn ctrl_c_of_a_queued_client_is_not_for_the_run_before_it() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo go");
    let first = "touch begun; cat go";
    let running = s.begin(first);
    h.wait_for_file("begun");
    let queued = s.begin("touch reached");
    queued.wait_blocked().process().signal(rustix::process::Signal::INT);
    let _ = queued.finish().exits(1).prints("");
    std::fs::write(h.path("go"), "went on\n").unwrap();
    s.answer(running, first).prints("went on\n").exits(0);
    assert!(!h.path("reached").exists());
}

#[test]
fn sessions_started_at_once_do_not_disturb_each_other() {
    let h = harness!();
    std::thread::scope(|scope| {
        for i in 0..8 {
            let h = &h;
            scope.spawn(move || {
                let s = h.session();
                s.run(format!("x={i}"));
                s.run("exit 1").is_restarted();
                s.run("echo $x").prints(&format!("{i}\n"));
            });
        }
    });
    assert_eq!(h.list().len(), 8);
}

#[test]
fn looking_at_the_state_at_any_moment_harms_no_run() {
    let h = harness!();
    let s = h.session();
    std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            for _ in 0..30 {
                assert!(s.state().is_object());
            }
        });
        for i in 0..30 {
            s.run(format!("x={i}; echo $x; (exit {i})"))
                .prints(&format!("{i}\n"))
                .warns("")
                .exits(i)
                .is_kept();
        }
        looker.join().unwrap();
    });
}
