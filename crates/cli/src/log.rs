//! The server's log, on stderr.

use crate::config::LogForm;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt;

/// A layer besides the log.
pub(crate) type ExtraLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging.
pub(crate) fn init(form: LogForm, level: &str, further: Option<ExtraLayer>) -> anyhow::Result<()> {
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let lines: ExtraLayer = match form {
        LogForm::Text => lines.boxed(),
        LogForm::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    let level: LevelFilter = level.parse()?;
    let mut layers = vec![lines.with_filter(ours(level)).boxed()];
    if level >= LevelFilter::WARN {
        layers.push(
            VerbatimLines.with_filter(Targets::new().with_target(LINE, LevelFilter::WARN)).boxed(),
        );
    }
    layers.extend(further);
    tracing_subscriber::registry().with(layers).try_init()?;
    Ok(())
}

/// Returns a filter: our own messages at the given level. Libraries are limited to
/// warnings: their details may be headers and bodies.
pub(crate) fn ours(level: LevelFilter) -> Targets {
    Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("sessile", level)
        .with_target(LINE, LevelFilter::OFF)
}

/// Target of lines whose form is a contract: they are written unchanged, in either form
/// of the log.
const LINE: &str = "sessile_line";

struct VerbatimLines;

impl<S: tracing::Subscriber> Layer<S> for VerbatimLines {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        struct Line(String);
        impl tracing::field::Visit for Line {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "line" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        eprintln!("{}", line.0);
    }
}
