//! A new session that begins with the state of a prepared one.

use sessile_testkit::{Harness, Session, harness};

/// What prepares a session, and what shows that it is prepared.
const PREPARED: &[(&str, &str, &str)] = &[
    ("bash", "x=1; g() { echo $x $E; }; export E=template; cd /", "g; pwd"),
    ("zsh", "x=1; g() { echo $x $E; }; export E=template; cd /", "g; pwd"),
    (
        "python3",
        "import os; x = 1; g = lambda: print(x, os.environ['E']); os.environ['E'] = 'template'; os.chdir('/')",
        "g(); print(os.getcwd())",
    ),
];

#[track_caller]
fn start_from<'h>(template: &Session<'h>, options: &[&str]) -> Session<'h> {
    let args = [&["--from", template.id()], options].concat();
    template.harness().session_with(&args)
}

#[test]
fn a_new_session_has_the_state_and_all_else_is_its_own() {
    let h = harness!();
    std::fs::create_dir(h.path("it's own")).unwrap();
    for (shell, prepare, look) in PREPARED {
        if Harness::shells(&[shell]).is_empty() {
            continue;
        }
        let template = h.session_of(shell);
        template.run(prepare).exits(0);
        let here = h.root().display().to_string();
        let new = start_from(&template, &[]);
        let first = new.run(look).prints(&format!("1 template\n{here}\n")).exits(0).is_kept();
        assert_eq!(first.run(), 1, "{shell}");
        let other = start_from(&template, &["--env", "E=it's", "--cwd", "it's own"]);
        other.run(look).prints(&format!("1 it's\n{here}/it's own\n"));
        new.run("x=2");
        template.run(look).prints("1 template\n/\n").is_kept();
        other.run(look).prints(&format!("1 it's\n{here}/it's own\n")).is_kept();
        assert_eq!(new.history().as_array().map(Vec::len), Some(2), "{shell}");
        assert_eq!(new.metadata()["forked_from"], serde_json::Value::Null);
        assert_eq!(new.metadata()["command"], *shell);
        template.end();
        new.run("x=3").is_kept();
    }
}

#[test]
fn what_it_starts_later_has_its_directory_and_environment() {
    let h = harness!();
    std::fs::create_dir(h.path("own")).unwrap();
    let template = h.session_of("python3");
    template.run("x = 1");
    let new = start_from(&template, &["--cwd", "own", "--env", "E=own"]);
    let own = h.path("own").display().to_string();
    new.run_in("bash", "echo $E $PWD $SESSILE_SESSION_ID")
        .prints(&format!("own {own} {}\n", new.id()));
}

#[test]
fn it_goes_on_after_its_keeper_was_killed() {
    let h = harness!();
    let template = h.session();
    template.run("x=prepared");
    let new = start_from(&template, &[]);
    new.run("y=own").exits(0);
    new.wait_captured(1);
    new.keeper().kill();
    new.run("echo $x $y").prints("prepared own\n").is_restored_as_of(1);
}

#[test]
fn what_the_shell_of_an_ended_session_knew_can_be_begun_from() {
    let h = harness!();
    let template = h.session();
    template.run("x=prepared; f() { echo $x; }");
    template.end();
    let new = start_from(&template, &[]);
    new.run("f").prints("prepared\n");
    new.end();
}

#[test]
fn a_template_that_is_busy_or_unknown_is_named() {
    let h = harness!();
    let template = h.session();
    let refusal = |args: &[&str], code| {
        let args = [&["start"], args].concat();
        h.sessile(&args).exits(code).errors()
    };
    let from = ["--from", template.id()];
    template.run("mkfifo gate");
    let running = template.begin("echo begun > begun; read line < gate");
    h.wait_for_file("begun");
    let busy = refusal(&from, 1);
    assert!(busy.contains("run 2 is going"), "{busy}");
    std::fs::write(h.path("gate"), "\n").unwrap();
    let _ = running.finish().exits(0);
    let unknown = refusal(&["--from", "sess_000000000000000000000000"], 1);
    assert!(unknown.contains("not found"), "{unknown}");
    let both = refusal(&["bash", "--from", template.id()], 2);
    assert!(both.contains("cannot be used with"), "{both}");
    assert_eq!(h.list().len(), 1, "nothing is left of those that were not started");
}
