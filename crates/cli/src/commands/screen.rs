use crate::output;
use crate::reader::Reader;
use crate::settings::Settings;
use crate::viewer::ScreenWaitArgs;
use clap::{Args, ValueEnum};
use sessile_gateway::answer;
use sessile_protocol::RunNo;
use sessile_terminal::render;
use std::io;
use std::process::ExitCode;

/// Show the terminal of a run, as a person would see it
///
/// Works for runs started with --pty, even after their end. With --wait-for or
/// --settle it waits for the screen; if that times out, it prints the screen and
/// exits with 1.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile screen sess_… 3\n  \
    sessile screen sess_… 3 --wait-for '^>>> $' --timeout 5s\n  \
    sessile screen sess_… 3 --settle 200ms --format json\n  \
    sessile screen sess_… 3 --format png >screen.png")]
pub(crate) struct Screen {
    /// The session
    id: String,
    /// The run's number
    run: u64,
    /// text: as it looks; json: the text, the cursor and the title; cells: with
    /// colours; svg, png: a picture
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    waiting: ScreenWaitArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Cells,
    Svg,
    Png,
}

impl Screen {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        print(&mut reader, RunNo(self.run), &self.waiting, None, self.format)
    }
}

/// Waits for a screen and prints it.
pub(crate) fn print(
    reader: &mut Reader,
    run: RunNo,
    waiting: &ScreenWaitArgs,
    before: Option<u64>,
    format: Format,
) -> anyhow::Result<ExitCode> {
    let (view, awaited) = waiting.look(reader, run, before)?;
    let screen = &view.screen;
    match format {
        Format::Json => output::json(&answer::Screen::of(&view, awaited))?,
        Format::Cells => output::json(&render::cells(screen))?,
        Format::Text => bytes(format!("{}\n", render::text(screen)).as_bytes())?,
        Format::Svg => bytes(render::svg(screen).as_bytes())?,
        Format::Png => bytes(&render::png(screen)?)?,
    }
    Ok(if waiting.has_failed(awaited) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    output::all(&mut io::stdout().lock(), bytes)
}
