//! The commands of Delta Engine, for users whose agents call them: linked as
//! `delta-sessions` or `delta-sessions-pty`, this program takes their arguments and
//! prints their answers, over our sessions.
//!
//! Arguments and output are those of these commands in their versions 1.5 and 1.4, down
//! to the indentation. What they cannot do (keep variables and functions, run side by
//! side) works as well.

mod escapes;
mod sessions;
mod terminals;

use crate::config::{SESSIONS_DIR, Source};
use crate::output;
use crate::settings::Settings;
use anyhow::Context;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command that this program was called as, if it is one of these.
pub(crate) fn answer() -> Option<ExitCode> {
    let mut args = std::env::args_os();
    let name = PathBuf::from(args.next()?);
    let outcome = match name.file_name()?.to_str()? {
        "delta-sessions" => sessions::main(args.collect()),
        "delta-sessions-pty" => terminals::main(args.collect()),
        _ => return None,
    };
    Some(outcome)
}

/// Takes `--sessions-dir DIR` from anywhere, also from behind a program to start.
fn settings(args: &mut Vec<OsString>) -> anyhow::Result<Settings> {
    let given = match args.iter().position(|arg| arg == "--sessions-dir") {
        None => None,
        Some(at) => {
            let mut words = args.drain(at..args.len().min(at + 2));
            words.next();
            Some(PathBuf::from(words.next().context("--sessions-dir requires a path argument")?))
        }
    };
    let variable = || std::env::var_os(SESSIONS_DIR.variable()).map(PathBuf::from);
    let source = match given {
        Some(_) => Source::Flag(SESSIONS_DIR.name),
        None => Source::Default,
    };
    Settings::resolve(given.or_else(variable).filter(|path| path != Path::new("")), source)
}

/// Prints JSON like `JSON.stringify(…, null, 2)`.
fn print(answer: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(answer)?;
    text.push('\n');
    output::all(&mut std::io::stdout().lock(), text.as_bytes())
}

/// Prints help or version; every mistake ends with 1.
fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        eprintln!("Error: {}", crate::usage(error));
        return ExitCode::FAILURE;
    }
    let _ = error.print();
    ExitCode::SUCCESS
}
