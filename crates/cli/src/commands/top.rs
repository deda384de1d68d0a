use crate::settings::Settings;
use crate::top::terminal::{Terminal, Wake};
use crate::top::view::{self, Action, View};
use crate::{args, output};
use anyhow::bail;
use clap::Args;
use sessile_client::Client;
use sessile_client::top::{FIRST, Row, Sampler};
use sessile_protocol::{Request, SessionId};
use sessile_store::{Liveness, Scope, Sessions};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The shortest interval: more would be a load in itself.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);

/// Show sessions, runs, CPU and memory, live
///
/// CPU (of one processor) and memory include everything a session has started.
/// Keys: q quits, arrows or j and k select, c, m and n sort by CPU, memory and
/// age, a shows ended sessions, too, i interrupts the selected session's run. In
/// a pipe, prints a JSON array once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile top\n  \
    sessile top --interval 5s\n  \
    sessile top --once\n  \
    sessile top | jq '.[] | select(.cpu_percent > 50) | .session_id'")]
pub(crate) struct Top {
    /// Look again after this long
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::duration)]
    interval: Duration,
    /// Look once, print and exit
    #[arg(long)]
    once: bool,
    /// Show your sessions of all directories, and ended and lost ones of this directory
    #[arg(long, short)]
    all: bool,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl Top {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let scope = if self.all { Scope::User } else { Scope::Directory };
        let mut sampler = Sampler::new(settings.sessions.clone(), scope);
        let is_terminal = io::stdout().is_terminal();
        let is_live = is_terminal && io::stdin().is_terminal() && !self.once && !self.json;
        if is_live {
            return watch(&mut sampler, &settings.sessions, self.interval, self.all);
        }
        let before = sampler.look()?;
        // CPU usage is measured between two samples.
        std::thread::sleep(FIRST);
        let mut rows = sampler.look()?.rows(Some(&before), |_| true);
        rows.retain(|row| self.all || row.is_live());
        if is_terminal && !self.json {
            let rows: Vec<&Row> = rows.iter().collect();
            let text = view::table(&rows).join("\n") + "\n";
            output::all(&mut io::stdout().lock(), text.as_bytes())?;
        } else {
            output::json(&rows)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Shows the live view until the user quits.
fn watch(
    sampler: &mut Sampler,
    sessions: &Sessions,
    interval: Duration,
    is_all: bool,
) -> anyhow::Result<ExitCode> {
    let terminal = Terminal::take()?;
    let mut view = View::new(is_all);
    let mut pause = FIRST.min(interval);
    let mut before = None;
    loop {
        let now = sampler.look()?;
        view.update(now.rows(before.as_deref(), |_| true));
        before = Some(now);
        let due = Instant::now() + pause.max(LEAST_INTERVAL);
        pause = interval;
        loop {
            let (width, height) = terminal.size();
            if terminal.write(view.draw(width, height).as_bytes()).is_err() {
                return Ok(ExitCode::SUCCESS);
            }
            let keys = match terminal.wait(due) {
                Wake::Time => break,
                Wake::Resized => continue,
                Wake::Gone => return Ok(ExitCode::SUCCESS),
                Wake::Signal(signal) => {
                    return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
                }
                Wake::Keys(keys) => keys,
            };
            for key in view::keys(&keys) {
                match view.press(key) {
                    Action::None => {}
                    Action::Quit => return Ok(ExitCode::SUCCESS),
                    Action::Interrupt(id) => view.tell(interrupt(sessions, &id)),
                }
            }
        }
    }
}

/// Interrupts what a session runs, and returns a message.
fn interrupt(sessions: &Sessions, id: &SessionId) -> String {
    match try_interrupt(sessions, id) {
        Ok(()) => format!("{id} was interrupted"),
        Err(error) => error.to_string(),
    }
}

fn try_interrupt(sessions: &Sessions, id: &SessionId) -> anyhow::Result<()> {
    let all = sessions.recorded_in(Scope::User)?;
    let found = all.iter().find(|(_, metadata)| metadata.session_id == *id);
    let Some((directory, _)) = found else { bail!("{id} is gone") };
    let Liveness::Live(socket) = directory.connect() else {
        bail!("{id} has no keeper any more");
    };
    let mut client = Client::new(socket);
    client.ask(Request::Interrupt { run: None, call: None })?;
    // Waits for the answer: a request whose connection is closed at once may be ignored.
    client.reply_by(Instant::now() + FIRST)?;
    Ok(())
}
