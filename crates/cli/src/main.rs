//! `sessile`: the command line, and the program that keepers are copies of.
//!
//! The only place that reads the environment, prints, or exits.

mod args;
mod commands;
mod encoding;
mod interrupts;
mod output;
mod render;
mod settings;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a keeper is long-lived and wants nothing of what
    // the command line needs.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == settings::KEEPER)
    {
        return sessile_keeper::main();
    }
    let args = match args::parse() {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match commands::dispatch(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
