//! `thread.jsonl`: what is read back is what was written, or is refused.

use crate::loops::{calls, config};
use sessile_agent::continuity::Continuity;
use sessile_agent::ids::ThreadId;
use sessile_agent::limits::Limits;
use sessile_agent::thread::{Unreadable, read};
use sessile_agent::{Agent, Input, Submission};

fn file() -> (Agent, Vec<u8>) {
    let (mut agent, _) = Agent::new(config(), ThreadId::of([1; 12]), 5);
    agent
        .submit(
            Submission {
                text: "a\nb".into(),
                limits: Limits::default(),
                continuity: Continuity::default(),
                key: None,
            },
            6,
        )
        .unwrap();
    agent.step(Input::Replied(calls(&[("a", "runtime"), ("b", "nothing")])), 7);
    let mut file = Vec::new();
    for entry in agent.entries() {
        serde_json::to_writer(&mut file, entry).unwrap();
        file.push(b'\n');
    }
    (agent, file)
}

#[test]
fn a_thread_reads_back_as_it_was() {
    let (agent, file) = file();
    let contents = read(&file).unwrap();
    assert_eq!(contents.entries, agent.entries());
    assert_eq!(contents.bytes, file.len() as u64);
}

#[test]
fn a_file_cut_anywhere_is_a_shorter_thread() {
    let (agent, file) = file();
    let first = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in first..file.len() {
        let contents = read(&file[..length]).unwrap();
        assert!(agent.entries().starts_with(&contents.entries));
        assert_eq!(file[contents.bytes as usize - 1], b'\n');
    }
    assert!(matches!(read(&file[..first - 1]), Err(Unreadable::Empty)));
}

#[test]
fn a_file_that_was_changed_is_refused_by_line() {
    let (_, file) = file();
    let text = String::from_utf8(file).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let swapped = format!("{}\n{}\n{}\n", lines[0], lines[2], lines[1]);
    assert!(matches!(read(swapped.as_bytes()), Err(Unreadable::Line { line: 2, .. })));
    let headless = format!("{}\n", lines[1].replace("\"entry\":2", "\"entry\":1"));
    assert!(matches!(read(headless.as_bytes()), Err(Unreadable::Line { line: 1, .. })));
    let newer = format!("{}\n", lines[0].replace("\"format\":1", "\"format\":2"));
    assert!(matches!(read(newer.as_bytes()), Err(Unreadable::Newer(2))));
    assert!(matches!(read(b"{}\n"), Err(Unreadable::Line { line: 1, .. })));
}
