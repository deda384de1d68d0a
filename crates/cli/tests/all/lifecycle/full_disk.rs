//! A disk without room: a clear error soon, and nothing is lost.

use sessile_testkit::{harness, needs};
use std::process::{Command, Stdio};

/// Runs in a place of its own, with a small disk at `small`, on which a session
/// is started with these arguments.
const SCENE: &str = r#"
mount -t tmpfs -o size=1m tmpfs small && cd small || exit 1
export SESSILE_SESSIONS_DIR=$PWD/.sessions
sessile() { "$SESSILE" "$@" 2>&1; }
ID=$("$SESSILE" start $START | grep -o 'sess_[0-9a-f]*')
run() { printf '%s' "$1" | sessile exec $ID --raw || echo "status $?"; }
fill() { head -c 2M /dev/zero >>fill 2>/dev/null; }
"#;

/// What the scene prints, or nothing where such a place cannot be had.
fn play(start: &str, script: &str) -> Option<Vec<String>> {
    let apart = ["--user", "--map-root-user", "--mount"];
    let can = Command::new("unshare").args(apart).arg("true").stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        needs::not_permitted("this system does not let its users mount file systems");
        return None;
    }
    let h = harness!();
    std::fs::create_dir(h.path("small")).unwrap();
    let script = format!("{SCENE}{script}\nrm -f fill; sessile end $ID >/dev/null\n");
    let output = Command::new("unshare")
        .args(apart)
        .args(["sh", "-c", &script])
        .env("SESSILE", env!("CARGO_BIN_EXE_sessile"))
        .env("START", start)
        .env("XDG_STATE_HOME", h.state_home())
        .current_dir(h.root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    // Told or not, depending on how late it is: the output is there either way.
    let lines = told.lines().filter(|line| !line.contains("the run's output could not be written"));
    Some(lines.map(ToOwned::to_owned).collect())
}

#[test]
fn no_branch_is_made_and_the_reason_is_told() {
    for (start, set, show) in [
        ("bash", "x=1", "echo $x"),
        ("zsh", "x=1", "echo $x"),
        ("python3", "x = 1", "print(x)"),
        ("node", "let x = 1", "console.log(x)"),
    ] {
        let script = format!(
            "run '{set}'; fill; for what in checkpoint 'fork' 'save -o w.sessile'; do\n\
             set -- $what; word=$1; shift; sessile $word $ID \"$@\"; done; run '{show}'"
        );
        let Some(told) = play(start, &script) else {
            return;
        };
        let (last, errors) = told.split_last().unwrap();
        assert_eq!(errors.len(), 3, "{start}: {told:#?}");
        for error in errors {
            let is_clear = error.starts_with("Error: ")
                && error.to_lowercase().contains("no space left on device");
            assert!(is_clear, "{start}: {told:#?}");
        }
        assert_eq!(last, "1", "{start}");
    }
}

#[test]
fn what_runs_print_is_not_lost() {
    let script = "fill; run 'echo one'; run 'echo two'; for n in 1 2; do sessile output $ID $n \
                  --follow; done; rm fill; run 'echo three'; sessile output $ID 1 --follow";
    let Some(told) = play("bash", script) else {
        return;
    };
    let is_note = |line: &String| line.starts_with("sessile: the run is not in");
    let (notes, told): (Vec<String>, Vec<String>) = told.into_iter().partition(is_note);
    assert_eq!(notes.len(), 2, "{notes:#?}");
    assert_eq!(told, ["one", "two", "one", "two", "three", "one"]);
}

#[test]
fn runs_that_were_to_be_on_disk_before_their_answer_are_not_lost_either() {
    let script = "ask() { sessile exec $ID \"$1\" >/dev/null; }\n\
                  fill; ask 'echo one'; ask 'echo two'; for n in 1 2; do sessile output $ID $n \
                  --follow; done; rm fill; ask 'echo three'; sessile output $ID 1 --follow";
    let Some(told) = play("bash", script) else {
        return;
    };
    assert_eq!(told, ["one", "two", "one"]);
}

#[test]
fn a_run_that_neither_the_disk_nor_the_memory_had_room_for_is_not_called_unfinished() {
    let script = "fill; for i in $(seq 20); do sessile exec $ID 'echo' >/dev/null; done\n\
                  sessile output $ID 1";
    let Some(told) = play("bash", script) else {
        return;
    };
    assert_eq!(told, ["Error: run 1 has ended, but the disk had no space for its result"]);
}

#[test]
fn all_runs_are_in_the_history_when_there_is_room_again() {
    let script = "fill; for i in $(seq 60); do run \"echo $i\" >/dev/null; done; rm fill\n\
                  run 'echo last'; grep -c '\"command\":\"echo [0-9]' .sessions/$ID/history.log";
    let Some(told) = play("bash --max-history 100", script) else {
        return;
    };
    assert_eq!(told, ["last", "60"]);
}

/// The runs that a sentence like "runs 3 and 5 to 7 are not …" names.
fn named(sentence: &str) -> Vec<u64> {
    let list = sentence.trim_start_matches("runs ").trim_start_matches("run ");
    let list = list.split_once(" are ").or(list.split_once(" is ")).expect("a verb").0;
    let list = list.replace(" and ", ", ");
    let spans = list.split(", ").map(|span| {
        let (first, last) = span.split_once(" to ").unwrap_or((span, span));
        first.parse().unwrap()..=last.parse().unwrap()
    });
    spans.flatten().collect()
}

#[test]
fn what_is_lost_when_a_session_is_ended_is_told_then_and_later() {
    let script = "fill; for i in $(seq 40); do run \"echo $i\" >/dev/null; done; fill\n\
                  sessile end $ID; rm fill; sessile list; sessile history $ID --limit 100";
    let Some(told) = play("bash --max-history 100", script) else {
        return;
    };
    let json = |line: &String| serde_json::from_str::<serde_json::Value>(line).ok();
    let (said, answers): (Vec<&String>, Vec<&String>) =
        told.iter().partition(|line| line.starts_with("sessile: "));
    let answers: Vec<_> = answers.into_iter().filter_map(json).collect();
    let [ended, listed, history] = answers.as_slice() else { panic!("{told:#?}") };
    let lost = ended["lost"].as_array().expect("what was lost");
    assert_eq!(listed[0]["lost_at_end"], ended["lost"]);
    let is_history = |line: &&str| line.contains("not in the history");
    let lines: Vec<&str> = lost.iter().map(|line| line.as_str().unwrap()).collect();
    let missing = lines.iter().copied().find(is_history).expect("a line on the history");
    assert!(missing.ends_with("No space left on device (os error 28)"), "{missing}");
    let mut all = named(missing);
    all.extend(history.as_array().unwrap().iter().map(|entry| entry["run"].as_u64().unwrap()));
    all.sort_unstable();
    assert_eq!(all, (1..=40).collect::<Vec<u64>>(), "{told:#?}");
    assert_eq!(said.len(), lines.len(), "{said:#?}");
    assert!(lines.iter().any(|line| line.contains("no output on disk")), "{lines:#?}");
}

#[test]
fn room_is_kept_for_the_history_of_a_session_that_has_run_something() {
    let script = "run 'echo first' >/dev/null; sessile runs $ID >/dev/null\n\
                  until test -e .sessions/$ID/runs/1.stdout; do :; done\n\
                  fill; for i in $(seq 40); do run \"echo $i\" >/dev/null; done\n\
                  sessile end $ID; rm fill; sessile history $ID --limit 100 | grep -o '\"run\"' | wc -l";
    let Some(told) = play("bash --max-history 100", script) else {
        return;
    };
    assert_eq!(told.last().map(String::as_str), Some("41"), "{told:#?}");
    assert!(told.iter().all(|line| !line.contains("not in the history")), "{told:#?}");
}

#[test]
fn a_session_that_was_ended_stays_so() {
    let script = "run 'x=1'; fill; run 'echo $x' >/dev/null; sessile end $ID\n\
                  rm fill; sessile list";
    let Some(told) = play("bash", script) else {
        return;
    };
    let told = told.concat();
    assert_eq!(told.matches("\"status\":\"terminated\"").count(), 2, "{told}");
}

#[test]
fn what_cannot_be_undone_is_told_and_later_runs_can() {
    for (start, show) in [("bash", "echo $x"), ("python3", "print(x)")] {
        let script = format!(
            "run 'x=1'; fill; run 'x=2'; run 'x=3'; rm fill; sessile undo $ID; run '{show}'\n\
             run 'x=4'; run 'x=5'; sessile undo $ID >/dev/null; run '{show}'"
        );
        let Some(told) = play(&format!("{start} --auto 3 --files"), &script) else {
            return;
        };
        let (notes, shown): (Vec<_>, Vec<_>) =
            told.iter().partition(|line| line.starts_with("sessile: undo will not"));
        assert!(notes.len() == 2 && shown.len() == 3, "{start}: {told:#?}");
        assert!(shown[0].contains("\"undone\":[3]"), "{start}: {told:#?}");
        assert_eq!((&**shown[1], &**shown[2]), ("2", "4"), "{start}: {told:#?}");
    }
}
