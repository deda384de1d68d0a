//! Watches a session without touching it: shows runs as they come, and redraws the
//! terminals of those that have one.

use super::console::Mode;
use super::{Attachment, say};
use crate::following::{Event, ExistingRuns, Following, Next};
use crate::reader::Reader;
use crate::settings::Settings;
use crate::transcript::{Form, Transcript};
use sessile_client::Client;
use sessile_protocol::{Answer, ReadScreen, Request, RunNo, RunPhase};
use sessile_store::Liveness;
use sessile_terminal::render;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// The minimum time between two redraws.
const FRAME: Duration = Duration::from_millis(40);

pub(crate) fn watch(attachment: &Attachment, settings: &Settings) -> anyhow::Result<()> {
    let mut reader = Reader::find(settings, &attachment.id)?;
    let past = ExistingRuns::read(&mut reader, 0)?;
    let key = char::from(attachment.detach_key + 64);
    say(&format!("watching {}; Ctrl-{key} or q leaves\n", attachment.id))?;
    // In raw mode, the drawing ends its lines itself.
    let raw = Mode::raw()?;
    let detach_key = attachment.detach_key;
    let keys = std::thread::spawn(move || await_leave(detach_key));
    let open: Vec<RunNo> = past.open.iter().filter(|run| run.terminal).map(|r| r.run).collect();
    let Some(mut following) = Following::after(&past, reader)? else {
        drop(raw);
        return say("the session is over\n");
    };
    let directory = attachment.directory.clone();
    let shower = std::thread::spawn(move || -> anyhow::Result<()> {
        let mut drawn = open;
        let mut transcript = Transcript::new(Vec::new(), Form::Coloured);
        let stdout = io::stdout();
        loop {
            let event = match following.next(stdout.as_fd())? {
                Next::Event(event) => event,
                Next::Unread => return Ok(()),
                Next::Over(status) => {
                    return say(&format!("the session is {}\r\n", status.as_str()));
                }
            };
            let run = event.run();
            let is_new = matches!(&event, Event::Began(began) if began.has_terminal);
            if is_new && !drawn.contains(&run) {
                drawn.push(run);
            }
            if !(matches!(event, Event::Output { .. }) && drawn.contains(&run)) {
                transcript.show(&event)?;
                say(&with_returns(&transcript.take()))?;
            }
            if matches!(event, Event::Began(_))
                && drawn.contains(&run)
                && let Liveness::Live(socket) = directory.connect()
            {
                mirror(&mut Client::new(socket), run)?;
            }
        }
    });
    // Until the user leaves or the session is over.
    while !keys.is_finished() && !shower.is_finished() {
        std::thread::sleep(FRAME);
    }
    drop(raw);
    say("\x1b[0m\x1b[?25h\r\n")?;
    // Reports what ended the watching, unless the user left.
    if shower.is_finished() { shower.join().unwrap_or(Ok(())) } else { Ok(()) }
}

/// Waits for the key that leaves.
fn await_leave(detach_key: u8) {
    let mut keys = [0; 64];
    loop {
        match rustix::io::read(io::stdin(), &mut keys) {
            Ok(0) | Err(_) => return,
            Ok(n) => {
                let leaves = |key: &u8| *key == detach_key || matches!(key, b'q' | 3 | 4);
                if keys[..n].iter().any(leaves) {
                    return;
                }
            }
        }
    }
}

/// Draws the terminal of a run until the run is over.
fn mirror(client: &mut Client, run: RunNo) -> anyhow::Result<()> {
    let mut known = None;
    say("\x1b[2J")?;
    loop {
        let read = ReadScreen { run, known, patience_ms: Some(1000) };
        let Answer::Screen(view) = client.call(Request::Screen(read))? else {
            return Ok(());
        };
        if known != Some(view.revision) {
            say(&render::ansi(&view.screen))?;
        }
        known = Some(view.revision);
        if view.phase >= RunPhase::Exited {
            let below = view.screen.lines.iter().rposition(|line| !line.spans.is_empty());
            return say(&format!("\x1b[{};1H\x1b[0m\x1b[?25h", below.map_or(1, |row| row + 2)));
        }
        std::thread::sleep(FRAME);
    }
}

/// Adds the carriage returns that a terminal in raw mode needs.
fn with_returns(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\n', "\r\n")
}
