//! Prints events of runs: line by line for people, or as JSON.
//!
//! Every line for people begins with the number of its run and a sign: `>` its command,
//! `|` its stdout, `!` its stderr, `=` how it ended, or `*` an entry that is not a run (a
//! rewind). An incomplete line is shown at once, and continues where it stopped unless
//! something else was shown in between.

use crate::display::words::took;
use crate::following::{Began, Ended, Event, NotARun};
use serde::Serialize;
use sessile_gateway::following::{NamedEvent, TranscriptNote};
use sessile_protocol::RunNo;
use sessile_store::StreamName;
use std::fmt::Write as _;
use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Coloured,
    Json,
}

/// Whether the output is still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    On,
    Over,
}

#[derive(Debug)]
pub(crate) struct Transcript<W> {
    to: W,
    form: Form,
    /// The run and the stream of an incomplete line.
    open: Option<(RunNo, StreamName)>,
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";

impl<W: Write> Transcript<W> {
    pub(crate) fn new(to: W, form: Form) -> Self {
        Self { to, form, open: None }
    }

    pub(crate) fn show(&mut self, event: &Event) -> io::Result<Reading> {
        let bytes = match self.form {
            Form::Json => line(&NamedEvent::from(event)),
            Form::Plain | Form::Coloured => self.text(event),
        };
        self.write(&bytes)
    }

    /// Prints a note about the session itself.
    pub(crate) fn note(&mut self, status: &str, text: &str) -> io::Result<Reading> {
        let bytes = match self.form {
            Form::Json => line(&TranscriptNote::Session { status }),
            Form::Plain | Form::Coloured => {
                let mut out = self.closed_line();
                let _ = writeln!(out, "{}", self.painted(BOLD, text));
                out.into_bytes()
            }
        };
        self.write(&bytes)
    }

    /// Prints the phase of an unfinished run that is not followed further.
    pub(crate) fn leave(&mut self, run: RunNo, phase: &str) -> io::Result<Reading> {
        let bytes = match self.form {
            Form::Json => line(&TranscriptNote::Open { run, phase }),
            Form::Plain | Form::Coloured => {
                let mut out = self.closed_line();
                let _ = writeln!(out, "{run} = {phase}");
                out.into_bytes()
            }
        };
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<Reading> {
        match self.to.write_all(bytes).and_then(|()| self.to.flush()) {
            Ok(()) => Ok(Reading::On),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reading::Over),
            Err(error) => Err(error),
        }
    }

    fn text(&mut self, event: &Event) -> Vec<u8> {
        match event {
            Event::Began(began) => {
                let mut out = self.closed_line();
                let _ = self.head(&mut out, began);
                out.into_bytes()
            }
            Event::Output { run, stream, bytes, skipped } => {
                let mut out = self.gap(*run, *skipped);
                out.extend(self.lines(*run, *stream, bytes));
                out
            }
            Event::Ended(ended) => {
                let mut out = self.closed_line();
                let colour = if ended.exit_code == 0 { GREEN } else { RED };
                let _ = writeln!(out, "{}", self.painted(colour, &end(ended)));
                out.into_bytes()
            }
            Event::Closed(_) => Vec::new(),
            Event::Left(run) => {
                let mut out = self.closed_line();
                let _ =
                    writeln!(out, "{run} = what it has left behind is not followed any further");
                out.into_bytes()
            }
            Event::NotARun(happened) => {
                let mut out = self.closed_line();
                let _ = writeln!(out, "{}", self.painted(BOLD, &news(happened)));
                out.into_bytes()
            }
            Event::Cancelled { run, why, .. } => {
                let mut out = self.closed_line();
                let _ = writeln!(out, "{}", self.painted(RED, &format!("{run} = {why}")));
                out.into_bytes()
            }
        }
    }

    /// Says that some output is missing.
    fn gap(&mut self, run: RunNo, skipped: u64) -> Vec<u8> {
        if skipped == 0 {
            return Vec::new();
        }
        let mut out = self.closed_line();
        let text = format!("{run} = {skipped} bytes are not kept");
        let _ = writeln!(out, "{}", self.painted(RED, &text));
        out.into_bytes()
    }

    /// Ends an incomplete line.
    fn closed_line(&mut self) -> String {
        if self.open.take().is_some() { "\n".to_owned() } else { String::new() }
    }

    fn head(&self, out: &mut String, began: &Began) -> std::fmt::Result {
        let Began { run, language, command, timestamp, .. } = began;
        let time = timestamp.as_deref().unwrap_or_default();
        let time = to_second(time);
        let mut lines = command.trim_end().lines();
        let first = format!("{run} > {time} {language}: {}", lines.next().unwrap_or_default());
        writeln!(out, "{}", self.painted(BOLD, &first))?;
        for more in lines {
            writeln!(out, "{}", self.painted(BOLD, &format!("{run} >   {more}")))?;
        }
        Ok(())
    }

    fn lines(&mut self, run: RunNo, stream: StreamName, bytes: &[u8]) -> Vec<u8> {
        let (sign, colour) = match stream {
            StreamName::Stdout => ('|', DIM),
            StreamName::Stderr => ('!', RED),
        };
        let prefix = self.painted(colour, &format!("{run} {sign} "));
        let mut out = Vec::new();
        if self.open.is_some_and(|open| open != (run, stream)) {
            out.extend(self.closed_line().into_bytes());
        }
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            if self.open.is_none() {
                out.extend(prefix.as_bytes());
            }
            out.extend(piece);
            self.open = (!piece.ends_with(b"\n")).then_some((run, stream));
        }
        out
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        match self.form {
            // Resets what the run itself has switched on.
            Form::Coloured => format!("\x1b[0;{colour}m{text}\x1b[0m"),
            Form::Plain | Form::Json => text.to_owned(),
        }
    }
}

impl Transcript<Vec<u8>> {
    /// Returns what was printed since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.to)
    }
}

fn news(happened: &NotARun) -> String {
    let NotARun { run, command, timestamp, notes, .. } = happened;
    let mut text = format!("{run} * {} {command}", to_second(timestamp));
    for note in notes {
        let _ = write!(text, "; {note}");
    }
    text
}

/// Shortens a time for people.
fn to_second(timestamp: &str) -> String {
    timestamp.chars().take(19).collect::<String>().replace('T', " ")
}

fn end(ended: &Ended) -> String {
    let Ended { run, exit_code, duration_us, .. } = ended;
    let mut text = format!("{run} = exit {exit_code} after {}", took(*duration_us));
    for (is_so, word) in [(ended.timed_out, "timed out"), (ended.interrupted, "interrupted")] {
        if is_so {
            let _ = write!(text, ", {word}");
        }
    }
    text
}

fn line(value: &impl Serialize) -> Vec<u8> {
    // Cannot fail: all of these are structs with string keys.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_protocol::Language;

    fn output(run: u64, stream: StreamName, text: &str) -> Event {
        Event::Output { run: RunNo(run), stream, bytes: text.as_bytes().to_vec(), skipped: 0 }
    }

    fn shown(form: Form, events: &[Event]) -> String {
        let mut bytes = Vec::new();
        let mut transcript = Transcript::new(&mut bytes, form);
        for event in events {
            transcript.show(event).unwrap();
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_line_says_whose_it_is() {
        let began = Event::Began(Began {
            run: RunNo(3),
            language: Language::Bash,
            command: "one\ntwo\n".to_owned(),
            timestamp: Some("2026-11-16T03:04:05.678Z".to_owned()),
            has_terminal: false,
            happened: None,
        });
        let ended = Event::Ended(Ended {
            run: RunNo(3),
            exit_code: 1,
            duration_us: 1_234_567,
            timed_out: true,
            interrupted: false,
        });
        let events = [
            began,
            output(3, StreamName::Stdout, "a\nb"),
            output(3, StreamName::Stdout, "c"),
            output(4, StreamName::Stdout, "x\n"),
            output(3, StreamName::Stdout, "d\n"),
            output(3, StreamName::Stderr, "no newline"),
            ended,
        ];
        let text = "3 > 2026-11-16 03:04:05 bash: one\n3 >   two\n3 | a\n3 | bc\n4 | x\n3 | d\n3 ! no newline\n3 = exit 1 after 1.2 s, timed out\n";
        assert_eq!(shown(Form::Plain, &events), text);
        assert!(shown(Form::Coloured, &events).contains("\x1b["));
        assert_eq!(shown(Form::Json, &events).lines().count(), events.len());
    }
}
