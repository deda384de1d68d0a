//! One task after the other.

use super::leaving::Interrupt;
use super::{Chat, Server, wait};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};
use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

impl Chat {
    pub(super) fn execute(self, server: &Server<'_>) -> anyhow::Result<ExitCode> {
        let agent = self.made.agent(server)?;
        let mut lines = Lines::of_stdin()?;
        if let Lines::Typed(_) = lines {
            eprintln!("agent {agent}; Ctrl-C cancels a task, Ctrl-D ends the chat");
        }
        let mut status = ExitCode::SUCCESS;
        while let Some(line) = lines.next()? {
            if line.trim().is_empty() {
                continue;
            }
            let outcome = server
                .submit(&agent, line.trim(), &self.made.most)
                .and_then(|task| wait(server, &agent, task, false, Interrupt::Cancels));
            status = match (outcome, &lines) {
                (Ok(status), _) => status,
                // Whoever is there can do something about it, and try again.
                (Err(error), Lines::Typed(_)) => {
                    eprintln!("{error:#}");
                    ExitCode::FAILURE
                }
                (Err(error), Lines::Read) => return Err(error),
            };
        }
        if let Lines::Typed(_) = lines {
            eprintln!("go on with: sessile agent chat --agent {agent}");
        }
        Ok(status)
    }
}

/// Where tasks come from.
enum Lines {
    /// A person at a terminal.
    Typed(Box<Editor<(), MemHistory>>),
    Read,
}

impl Lines {
    fn of_stdin() -> anyhow::Result<Self> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(Self::Read);
        }
        let config = Config::builder().auto_add_history(true).build();
        Ok(Self::Typed(Box::new(Editor::with_history(config, MemHistory::new())?)))
    }

    /// None when there are no more.
    fn next(&mut self) -> anyhow::Result<Option<String>> {
        match self {
            Self::Typed(editor) => loop {
                return match editor.readline("> ") {
                    Ok(line) => Ok(Some(line)),
                    // Ctrl-C drops the line.
                    Err(ReadlineError::Interrupted) => continue,
                    // The terminal may be gone, and the person with it.
                    Err(ReadlineError::Eof | ReadlineError::Io(_) | ReadlineError::Errno(_)) => {
                        Ok(None)
                    }
                    Err(error) => Err(error.into()),
                };
            },
            Self::Read => {
                let mut line = String::new();
                let read = io::stdin().lock().read_line(&mut line)?;
                Ok((read > 0).then_some(line))
            }
        }
    }
}

/// What a person answers to a question at the terminal; none if Ctrl-C.
pub(super) fn answer(question: &str) -> anyhow::Result<Option<String>> {
    let mut editor: Editor<(), MemHistory> =
        Editor::with_history(Config::default(), MemHistory::new())?;
    match editor.readline(question) {
        Ok(line) => Ok(Some(line)),
        Err(ReadlineError::Interrupted) => Ok(None),
        // Nobody is there to allow it.
        Err(ReadlineError::Eof | ReadlineError::Io(_) | ReadlineError::Errno(_)) => {
            Ok(Some(String::new()))
        }
        Err(error) => Err(error.into()),
    }
}
