//! Makes sense of a shell's capture, for the tests of the capture scripts:
//! `interpret bash` reads one on stdin, and writes JSON.

use std::io::{Read, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let language = std::env::args().nth(1).and_then(|name| name.parse().ok());
    let mut capture = Vec::new();
    let read = std::io::stdin().read_to_end(&mut capture);
    let saved = language.and_then(|language| sessile_keeper::interpret(language, capture));
    match (read, saved.and_then(|saved| serde_json::to_vec(&saved).ok())) {
        (Ok(_), Some(json)) if std::io::stdout().write_all(&json).is_ok() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
