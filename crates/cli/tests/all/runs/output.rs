//! Much output: bounded on disk, in memory and in the answer.

use serde_json::Value;
use sessile_testkit::{Process, Session, harness};

const MIB: u64 = 1 << 20;

#[track_caller]
fn count(truncated: &Value, field: &str) -> u64 {
    truncated[field].as_u64().unwrap_or_else(|| panic!("{field} in {truncated}"))
}

/// The most memory that the process ever had, in KiB.
fn peak(process: &Process) -> u64 {
    let text = process.entry().status("VmHWM:").expect("a living process");
    text.trim_end_matches(" kB").parse().expect("a number")
}

fn stored(s: &Session<'_>) -> u64 {
    let files = std::fs::read_dir(s.dir().join("runs")).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn an_answer_shows_head_and_tail_and_tells_what_it_left_out() {
    let h = harness!();
    let s = h.session();
    let all: String = (1..=100_000).map(|i| format!("{i}\n")).collect();
    let answer = s.run_with(&["--max-output", "1KiB"], "seq 100000; echo short >&2");
    let answer = answer.warns("short\n").exits(0);
    let truncated = &answer.json()["truncated"]["stdout"];
    let (head, tail) = (count(truncated, "head_bytes"), count(truncated, "tail_bytes"));
    assert!(head > 0 && tail > 0 && head + tail <= 1024);
    assert_eq!(head + tail + count(truncated, "dropped_bytes"), all.len() as u64);
    let (head, tail) = (usize::try_from(head).unwrap(), usize::try_from(tail).unwrap());
    assert!(answer.stdout().starts_with(&all[..head]));
    assert!(answer.stdout().ends_with(&all[all.len() - tail..]));
    assert_eq!(answer.json()["truncated"].get("stderr"), None);
    let file = std::fs::read_to_string(s.dir().join("runs/1.stdout")).unwrap();
    assert_eq!(file, all, "the middle is on disk");
}

#[test]
fn an_answer_has_up_to_a_mebibyte_by_default() {
    let h = harness!();
    let s = h.session();
    let whole = s.run("head -c 1048576 /dev/zero | tr '\\0' x");
    assert_eq!(whole.stdout().len() as u64, MIB);
    assert_eq!(whole.json().get("truncated"), None);
    let cut = s.run("head -c 1048577 /dev/zero | tr '\\0' x");
    assert_eq!(count(&cut.json()["truncated"]["stdout"], "dropped_bytes"), 1);
    let large = s.run_with(&["--max-output", "8MiB"], "head -c 5000000 /dev/zero | tr '\\0' x");
    assert_eq!(large.stdout().len(), 5_000_000);
}

#[test]
fn a_run_stores_up_to_64_mebibytes_by_default_and_keeps_its_tail() {
    let h = harness!();
    let s = h.session();
    let text = "head -c 100000000 /dev/zero | tr '\\0' x; echo the end";
    let answer = s.run_with(&["--timeout", "5m"], text).exits(0);
    let truncated = &answer.json()["truncated"]["stdout"];
    assert_eq!(count(truncated, "total_bytes"), 100_000_008);
    assert_eq!(count(truncated, "stored_bytes"), 64 * MIB);
    assert!(answer.stdout().ends_with("xthe end\n"));
    let file = s.dir().join("runs/1.stdout");
    assert_eq!(std::fs::metadata(file).unwrap().len(), 64 * MIB);
    assert!(stored(&s) <= 65 * MIB);
    let peak = peak(&s.keeper());
    assert!(peak < 32 << 10, "the keeper took {peak} KiB");
}

#[test]
fn the_cap_of_a_session_can_be_chosen() {
    let h = harness!();
    let s = h.session_with(&["--output-cap", "64KiB"]);
    let answer = s.run("seq 100000; seq 100000 >&2");
    for stream in ["stdout", "stderr"] {
        let file = s.dir().join(format!("runs/1.{stream}"));
        assert_eq!(std::fs::metadata(file).unwrap().len(), 64 << 10);
        assert!(answer.json()[stream].as_str().unwrap().ends_with("99999\n100000\n"));
    }
    s.run("echo small").prints("small\n");
}

#[test]
fn yes_until_the_timeout_fills_neither_memory_nor_disk() {
    let h = harness!();
    let s = h.session_with(&["--output-cap", "4MiB"]);
    s.run("x=1");
    let answer = s.run_with(&["--timeout", "2s"], "yes").timed_out();
    assert!(count(&answer.json()["truncated"]["stdout"], "total_bytes") > 4 * MIB);
    assert!(answer.stdout().len() as u64 <= MIB + 200);
    assert!(stored(&s) <= 5 * MIB, "{} bytes on disk", stored(&s));
    let peak = peak(&s.keeper());
    assert!(peak < 32 << 10, "the keeper took {peak} KiB");
    s.run("echo $x").prints("1\n").is_kept();
}

#[test]
fn a_chatty_child_in_the_background_fills_neither_memory_nor_disk() {
    let h = harness!();
    let s = h.session_with(&["--output-cap", "1MiB"]);
    s.run("yes & yes >&2 &").exits(0);
    for i in 0..30 {
        s.run(format!("echo {i}")).prints(&format!("{i}\n")).warns("");
    }
    assert!(stored(&s) <= 5 * MIB, "{} bytes on disk", stored(&s));
    let peak = peak(&s.keeper());
    assert!(peak < 32 << 10, "the keeper took {peak} KiB");
}

#[test]
fn every_byte_of_a_large_output_passes_through_raw() {
    let h = harness!();
    let s = h.session();
    let raw = s.begin_with(&["--raw"], "seq 2000000; echo over >&2").finish();
    let all: String = (1..=2_000_000).map(|i| format!("{i}\n")).collect();
    assert!(raw.text() == all, "{} of {} bytes", raw.stdout.len(), all.len());
    raw.warns("over\n").exits(0);
}
