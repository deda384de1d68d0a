//! `sessile`: the command line, and the program that keepers are started from.
//!
//! The only place that reads the environment, prints, or exits.

mod advice;
mod args;
mod attach;
mod branching;
mod call;
mod commands;
mod completion;
mod config;
mod confinement;
mod copier;
mod delta;
mod display;
mod drawer;
mod fetcher;
mod following;
mod interrupts;
mod layers;
mod local;
mod log;
mod memory;
mod open_files;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "no_otlp.rs"]
mod otlp;
mod output;
mod progress;
mod reader;
mod script;
mod secrets;
mod server_file;
mod settings;
mod streaming;
mod tool;
mod top;
mod transcript;
mod uploader;
mod viewer;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a keeper is long-lived and needs nothing of the command line.
    if std::env::args_os().nth(1).is_some_and(|word| word == settings::KEEPER) {
        open_files::restore(std::env::args().nth(2).as_deref());
        return sessile_keeper::main();
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == sessile_keeper::UPLOADER) {
        return uploader::main();
    }
    if let Some(code) = completion::answer() {
        return code;
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == sessile_client::FETCHER) {
        return fetcher::main();
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == sessile_client::COPIER) {
        return copier::main();
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == sessile_server::mcp::DRAWER) {
        return drawer::main();
    }
    if let Some(code) = delta::answer() {
        return code;
    }
    let args = match args::parse() {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            eprintln!("Error: {}", usage(&error));
            return ExitCode::from(2);
        }
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    match commands::dispatch(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("Error: {}", told(&error));
            ExitCode::FAILURE
        }
    }
}

/// Returns an error, its causes, and advice.
fn told(error: &anyhow::Error) -> String {
    let text = reasons(error);
    match advice::of(error) {
        Some(advice) => format!("{text}; {advice}"),
        None => text,
    }
}

/// Returns an error and its causes, each once: some messages include theirs.
fn reasons(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Reduces clap's paragraph and summary to one line.
fn usage(error: &clap::Error) -> String {
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is required, such as start, exec or list; see --help".to_owned();
    }
    if let Some(line) = unquoted(error) {
        return line;
    }
    let text = error.render().to_string();
    if error.kind() == clap::error::ErrorKind::UnknownArgument {
        return unknown(&text);
    }
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    // Rust's own messages are replaced.
    let line = words
        .join(" ")
        .replace("invalid digit found in string", "a whole number is wanted")
        .replace("number too large to fit in target type", "it is too large")
        // A paragraph of its own before.
        .replace(" tip: ", "; ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    let line = line.trim_end_matches(" For more information, try '--help'.").trim_end_matches('.');
    format!("{line}; see --help")
}

/// Returns the message for a word that a command does not take: a similar one if there is
/// one, or else all that it does take. Clap's advice to pass an unknown flag as a value is
/// left out, because it is hardly ever what was meant.
fn unknown(text: &str) -> String {
    let line = |start: &str| text.lines().map(str::trim).find_map(|line| line.strip_prefix(start));
    let what = line("error: ").unwrap_or_default();
    let similar = line("tip: ").filter(|tip| tip.contains("similar"));
    match (similar, line("Usage: ")) {
        (Some(tip), _) => format!("{what}; {tip}; see --help"),
        (None, Some(usage)) => format!("{what}; the form is: {usage}; see --help"),
        (None, None) => format!("{what}; see --help"),
    }
}

/// Returns the message for `exec work echo hi`: clap does not know that the words are one command.
fn unquoted(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let is_exec = matches!(error.get(ContextKind::Usage),
        Some(ContextValue::StyledStr(usage)) if usage.to_string().contains(" exec "));
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word))
            if is_exec && error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-') =>
        {
            Some(format!("unexpected word '{word}'; quote the command, or put -- before it"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_word_too_many_is_answered_with_the_form_of_the_command() {
        let told = |words: &[&str]| {
            let words = [&["sessile"], words].concat();
            usage(&clap::Parser::try_parse_from(words).map(|_: args::Args| ()).unwrap_err())
        };
        assert_eq!(
            told(&["save", "work", "work.sessile"]),
            "unexpected argument 'work.sessile' found; \
             the form is: sessile save [OPTIONS] --output <FILE> <ID>; see --help"
        );
        assert_eq!(
            told(&["rewind", "work", "--files"]),
            "unexpected argument '--files' found; \
             the form is: sessile rewind <ID> [NAME]; see --help"
        );
        assert_eq!(
            told(&["start", "--nme", "work"]),
            "unexpected argument '--nme' found; a similar argument exists: '--name'; see --help"
        );
    }

    #[test]
    fn a_reason_is_told_once() {
        let missing = || Err::<(), _>(std::io::Error::other("no such file"));
        let path = std::path::PathBuf::from("x");
        let source = missing().unwrap_err();
        let told = sessile_client::RestoreError::Open { path, source };
        assert_eq!(reasons(&told.into()), "cannot open x: no such file");
        let told = missing().context("it cannot be read").unwrap_err();
        assert_eq!(reasons(&told), "it cannot be read: no such file");
    }
}
