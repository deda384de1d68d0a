//! Runs as they happen: `sessile logs`.

use rustix::process::Signal;
use serde_json::{Value, json};
use sessile_protocol::{Answer, Exec, Request, RunNo, RunPhase, Until};
use sessile_testkit::{Harness, Link, Process, Session, harness, order};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

/// A `logs --follow` that is going, line by line.
struct Log {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Log {
    fn follow(h: &Harness, s: &Session<'_>, options: &[&str]) -> Self {
        let args = [&["logs", s.id(), "--follow"], options].concat();
        let mut command = h.command(&args);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("spawn");
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The lines up to one that begins so, without the times.
    #[track_caller]
    fn until(&mut self, begin: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "no {begin:?} after {lines:?}");
            let is_last = line.starts_with(begin);
            lines.push(line);
            if is_last {
                return lines;
            }
        }
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Its exit code and what it has to say.
    fn finish(mut self) -> (Option<i32>, String, String) {
        let (mut rest, mut errors) = (String::new(), String::new());
        self.lines.read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), rest, errors)
    }
}

#[test]
fn finished_runs_are_printed_with_what_they_wrote() {
    let h = harness!();
    let s = h.session();
    s.run("echo out; echo err >&2; false");
    s.run_in("python", "print('héllo', end='')\n1/0");
    let open = s.run_with(&["--background"], "echo begun; sleep 1000").run();
    s.link().output(sessile_protocol::ReadOutput::waiting(RunNo(open)));
    let text = h.sessile(&["logs", s.id()]).exits(0).text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("1 > 20")
            && lines[0].ends_with(" bash: echo out; echo err >&2; false")
    );
    assert_eq!(lines[1..3], ["1 | out", "1 ! err"]);
    assert!(lines[3].starts_with("1 = exit 1 after "), "{text}");
    assert!(lines[4].ends_with(" python: print('héllo', end='')"), "{text}");
    assert_eq!(lines[5..7], ["2 >   1/0", "2 | héllo"]);
    let end = text.split_once("2 = exit 1 after ").unwrap().1;
    let end: Vec<&str> = end.lines().skip(1).collect();
    assert!(end[0].ends_with(" bash: echo begun; sleep 1000"), "{text}");
    assert_eq!(end[1..], ["3 | begun", "3 = running"]);
    assert!(!text.contains('\x1b'));
    // The newest of those that have finished, and no more of them.
    assert!(h.sessile(&["logs", s.id(), "--tail", "0"]).text().starts_with("3 > "));
    s.sessile("interrupt");
    s.link().result(RunNo(open));
    s.end();
    let after = h.sessile(&["logs", s.id(), "--tail", "1", "--json"]).exits(0).text();
    let events: Vec<Value> = after.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((&events[0]["event"], &events[1]["data"]), (&"started".into(), &"begun\n".into()));
    let end = events.last().unwrap();
    assert_eq!((&end["event"], &end["exit_code"]), (&"exited".into(), &130.into()));
}

#[test]
fn runs_are_followed_as_they_happen_in_all_kernels_at_once() {
    let h = harness!();
    let s = h.session();
    s.run("echo old; mkfifo go");
    let mut log = Log::follow(&h, &s, &[]);
    assert_eq!(log.until("1 = ").len(), 3);
    // Two at once, and one that is over in no time.
    let bash = s.begin("echo first; read -r _ <go; echo last");
    assert_eq!(log.until("2 | ")[1], "2 | first");
    s.run_in("python", "import sys; print('ready', file=sys.stderr)");
    assert_eq!(log.until("3 = ")[1], "3 ! ready");
    std::fs::write(h.path("go"), "\n").unwrap();
    assert_eq!(log.until("2 = ")[0], "2 | last");
    s.answer(bash, "");
    for n in 4..40 {
        s.link().accept(Exec { until: Until::Accepted, ..order(&format!("echo {n}")) });
    }
    // Each line says whose it is, so those of several may be mixed.
    let lines: Vec<String> = (0..3 * 36).map(|_| log.line()).collect();
    for n in 4..40 {
        let own: Vec<&String> = lines.iter().filter(|l| l.starts_with(&format!("{n} "))).collect();
        assert!(own[0].ends_with(&format!(" bash: echo {n}")), "{own:?}");
        assert_eq!(own[1], &format!("{n} | {n}"));
        assert!(own[2].starts_with(&format!("{n} = exit 0 after ")), "{own:?}");
    }
    // What a run has left in the background writes later.
    s.run("{ read -r _ <go; echo late; } & echo now");
    assert_eq!(log.until("40 = ")[1], "40 | now");
    let text = h.sessile(&["logs", s.id(), "--tail", "0"]).text();
    assert!(text.lines().next().unwrap().ends_with("& echo now"), "{text}");
    std::fs::write(h.path("go"), "\n").unwrap();
    assert_eq!(log.line(), "40 | late");
    s.end();
    let (code, rest, errors) = log.finish();
    assert_eq!((code, rest.as_str(), errors.as_str()), (Some(0), "the session has ended\n", ""));
}

#[test]
fn events_are_followed_as_json() {
    let h = harness!();
    let s = h.session();
    let mut log = Log::follow(&h, &s, &["--json"]);
    // It goes on until it was seen to begin: who comes later is told less.
    let text = "until [ -e go ]; do sleep 0.01; done; printf '\\377'; exit 3";
    s.link().accept(Exec { until: Until::Accepted, ..order(text) });
    let started = log.json();
    assert_eq!((&started["event"], &started["run"]), (&"started".into(), &1.into()));
    std::fs::write(h.path("go"), "").expect("a file");
    let output = log.json();
    assert_eq!((&output["data"], &output["encoding"]), (&"/w==".into(), &"base64".into()));
    let exited = log.json();
    assert_eq!((&exited["event"], &exited["exit_code"]), (&"exited".into(), &3.into()));
    assert_eq!(log.json()["event"], "closed");
    s.end();
    assert_eq!(log.json()["status"], "terminated");
}

/// A queued run that never begins is told, too.
#[test]
fn a_reset_does_not_end_it() {
    let h = harness!();
    let s = h.session();
    let mut log = Log::follow(&h, &s, &[]);
    let mut link = s.link();
    link.accept(Exec { until: Until::Accepted, ..order("echo one; sleep 1000") });
    link.accept(Exec { until: Until::Accepted, ..order("echo two") });
    log.until("1 | one");
    s.sessile("reset").exits(0);
    // Each line says whose it is: which of them ends first is not said.
    let mut ends: Vec<String> = std::iter::from_fn(|| Some(log.line()))
        .filter(|line| line.contains(" = ") || line.is_empty())
        .take(2)
        .collect();
    ends.sort();
    assert!(ends[0].starts_with("1 = ") && ends[1].starts_with("2 = "), "{ends:?}");
    s.run("echo three");
    assert_eq!(log.until("3 = ")[1], "3 | three");
    s.end();
    assert_eq!(log.finish().0, Some(0));
}

#[test]
fn a_slow_or_killed_reader_holds_up_nobody() {
    let h = harness!();
    let s = h.session();
    // Nobody reads this one.
    let slow = Log::follow(&h, &s, &[]);
    s.run("head -c 20000000 /dev/zero | tr '\\0' x; echo").exits(0);
    s.run("echo on").prints("on\n").is_kept();
    Process::of(slow.child.id().cast_signed()).signal(Signal::KILL);
    s.run("echo and on").prints("and on\n").is_kept();
    assert_eq!(slow.finish().0, None);
    // One whose reader goes away goes, too, though nothing happens any more.
    let mut log = Log::follow(&h, &s, &["--tail", "1"]);
    log.until("3 = ");
    drop(log.lines);
    assert_eq!(log.child.wait().unwrap().code(), Some(0));
    s.run("echo still").prints("still\n").is_kept();
}

#[test]
fn a_session_whose_keeper_dies_is_told_to_be_lost() {
    let h = harness!();
    let s = h.session();
    let mut log = Log::follow(&h, &s, &[]);
    s.run("echo one");
    log.until("1 = ");
    s.keeper().kill().wait_gone();
    let (code, rest, errors) = log.finish();
    assert_eq!((code, rest.as_str()), (Some(1), "the session is lost\n"));
    assert!(errors.starts_with("Error: the session's keeper has died"), "{errors}");
    // Reading does not bring it back.
    assert_eq!(h.sessile(&["logs", s.id()]).exits(0).text().lines().count(), 3);
    assert_eq!(h.list()[0]["status"], "lost");
    s.run("echo two").prints("two\n");
}

#[test]
fn runs_are_followed_over_http_too() {
    let h = harness!();
    let server = h.serve();
    let session = server.session();
    let path = format!("/v1/sessions/{session}/events");
    assert_eq!(server.exec(&session, "echo old")["run"], 1);
    server.post(
        &format!("/v1/sessions/{session}/exec"),
        &json!({"command": "sleep 1000", "wait": 0}),
    );
    let mut events = server.owner("GET", &path).events();
    let open = events.next().unwrap();
    assert_eq!((open.id.as_str(), open.name.as_str()), ("2", "run"));
    assert_eq!(
        (&open.data["command"], &open.data["phase"]),
        (&"sleep 1000".into(), &"running".into())
    );
    // One that another client gives the order for.
    h.sessile(&["exec", &session, "--language", "python", "--", "1+1"]).exits(0);
    assert_eq!(events.next().unwrap().data["command"], "1+1");
    // A reader that comes back is told what it has missed.
    let mut again = server.owner("GET", &path).header("Last-Event-ID", "0").events();
    assert_eq!(again.by_ref().take(3).map(|e| e.id).collect::<Vec<_>>(), ["1", "2", "3"]);
    server.owner("GET", &path).header("Last-Event-ID", "x").send().is_refused(400, "bad_request");
    server.delete(&format!("/v1/sessions/{session}")).is(200);
    for mut stream in [events, again] {
        let last = stream.next().unwrap();
        assert_eq!((last.name.as_str(), &last.data["status"]), ("ended", &"terminated".into()));
        assert_eq!(stream.next(), None);
    }
    let ended = server.owner("GET", &path).events().next().unwrap();
    assert_eq!(ended.name, "ended");
}

fn following(link: &mut Link, after: u64, patience_ms: Option<u64>) -> Vec<(u64, RunPhase)> {
    let answer = link.call(Request::Following { after: RunNo(after), patience_ms });
    let Ok(Answer::Runs(view)) = answer else { panic!("{answer:?}") };
    view.runs.into_iter().map(|run| (run.run.0, run.phase)).collect()
}

#[test]
fn a_keeper_tells_of_runs_that_were_over_before_it_was_asked() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    assert_eq!(following(&mut link, 0, Some(1)), []);
    for _ in 0..3 {
        s.run(":");
    }
    let closed = |n| (n, RunPhase::Closed);
    assert_eq!(following(&mut link, 0, None), [closed(1), closed(2), closed(3)]);
    assert_eq!(following(&mut link, 2, None), [closed(3)]);
    assert_eq!(following(&mut link, 3, Some(0)), []);
    assert_eq!(following(&mut link, u64::MAX, Some(0)), []);
    let call = link.send(Request::Following { after: RunNo(3), patience_ms: None });
    let mut other = s.link();
    let run = other.accept(Exec { until: Until::Accepted, ..order("sleep 1000") });
    let Ok(Answer::Runs(view)) = link.reply(call) else { panic!() };
    assert_eq!((view.runs[0].run, view.runs[0].phase), (run, RunPhase::Running));
    assert_eq!(view.runs[0].command, "sleep 1000");
    other.call(Request::Interrupt { run: Some(run), call: None }).unwrap();
    other.result(run);
}
