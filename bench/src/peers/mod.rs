//! The same work on other runtimes and on ours, interleaved, in one run.
//!
//! A separate Python process drives each peer as its users would (`bench/peers/`). Ours is
//! driven the same way, over HTTP. The results are kept in a file, so that a part can be
//! measured again: the table and the charts show all results in it.

mod cases;
mod chart;
mod driver;
mod results;
mod rows;
mod table;

use crate::{interrupt, page};
use clap::Parser;
use driver::Driver;
use results::Results;
use std::path::{Path, PathBuf};

/// The same work on other runtimes and on ours
#[derive(Clone, Debug, Parser)]
#[command(name = "peers")]
pub(crate) struct Args {
    /// The Python that has them installed; `cargo xtask bench --peers` gives it
    #[arg(long)]
    python: PathBuf,
    /// The folder with their drivers
    #[arg(long, default_value = "bench/peers")]
    drivers: PathBuf,
    /// Where results are kept
    #[arg(long, default_value = "target/peers/results.json")]
    results: PathBuf,
    /// Only these parts, added to what is kept: cold, warm, many, output, memory, cases
    #[arg(long, value_delimiter = ',')]
    parts: Vec<Part>,
    /// The page that the table goes into; charts go into the folder images beside it
    #[arg(long, default_value = "docs/performance.md")]
    page: PathBuf,
}

impl Args {
    /// Parses the arguments after the part's name. Errors and `--help` end the process.
    pub(crate) fn of_command_line() -> Self {
        Self::parse_from(std::env::args().skip(1))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Cold,
    Warm,
    Many,
    Output,
    Memory,
    Cases,
}

impl Part {
    const ALL: [Self; 6] =
        [Self::Cold, Self::Warm, Self::Many, Self::Output, Self::Memory, Self::Cases];
}

/// The language of a peer. Peers are compared within one language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Bash,
    Python,
}

impl Language {
    const ALL: [Self; 2] = [Self::Bash, Self::Python];

    fn nothing(self) -> &'static str {
        match self {
            Self::Bash => ":",
            Self::Python => "pass",
        }
    }

    fn echo(self) -> &'static str {
        match self {
            Self::Bash => "echo hi",
            Self::Python => "print('hi')",
        }
    }

    /// Returns a command that prints this many bytes in lines of sixteen.
    fn output(self, bytes: u64) -> String {
        match self {
            Self::Bash => format!("yes 0123456789abcde 2>/dev/null | head -c {bytes}"),
            // In a hundred parts: no peer has to handle all of it as one message.
            Self::Python => {
                let lines = bytes / 1600;
                format!("for _ in range(100): print('0123456789abcde\\n' * {lines}, end='')")
            }
        }
    }
}

/// A runtime, and the arguments of its driver.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Its name in the results file.
    key: &'static str,
    title: &'static str,
    language: Language,
    driver: &'static str,
    argument: Option<&'static str>,
}

/// The first of each language is ours.
const PEERS: [Peer; 7] = [
    peer("sessile-bash", "Sessile", Language::Bash, "sessile.py", Some("bash")),
    peer("swe-rex", "SWE-ReX", Language::Bash, "swe_rex.py", None),
    peer("pexpect", "pexpect", Language::Bash, "pexpect_bash.py", None),
    peer(
        "pexpect-without-delay",
        "pexpect, its delay off",
        Language::Bash,
        "pexpect_bash.py",
        Some("without-delay"),
    ),
    peer("sessile-python", "Sessile", Language::Python, "sessile.py", Some("python3")),
    peer("ipykernel", "ipykernel", Language::Python, "ipykernel_client.py", None),
    peer("jupyter-server", "jupyter_server", Language::Python, "jupyter_server_client.py", None),
];

const fn peer(
    key: &'static str,
    title: &'static str,
    language: Language,
    driver: &'static str,
    argument: Option<&'static str>,
) -> Peer {
    Peer { key, title, language, driver, argument }
}

fn of(language: Language) -> impl Iterator<Item = &'static Peer> {
    PEERS.iter().filter(move |peer| peer.language == language)
}

fn ours(language: Language) -> &'static str {
    match language {
        Language::Bash => "sessile-bash",
        Language::Python => "sessile-python",
    }
}

pub(crate) fn measure(sessile: &Path, args: &Args) -> anyhow::Result<()> {
    // Processes that a peer leaves become our children, and are ended with us.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut results = Results::read(&args.results)?;
    let parts = if args.parts.is_empty() { Part::ALL.to_vec() } else { args.parts.clone() };
    for part in parts {
        for language in Language::ALL {
            println!("{part:?}, {language:?}");
            let mut drivers = Vec::new();
            for peer in of(language) {
                drivers.push(Driver::start(peer, sessile, args)?);
            }
            rows::measure(part, language, &mut drivers, &mut results)?;
            for driver in &drivers {
                results.name(driver.peer.key, &driver.name);
            }
            drop(drivers);
            driver::end_leftovers();
        }
        results.write(&args.results)?;
    }
    print!("{}", table::plain(&results));
    publish(&results, &args.page)
}

/// Writes the table and the charts into the documentation.
fn publish(results: &Results, path: &Path) -> anyhow::Result<()> {
    page::replace(path, "peers", &table::markdown(results))?;
    let images = path.with_file_name("images");
    std::fs::create_dir_all(&images)?;
    for (name, svg) in chart::all(results) {
        std::fs::write(images.join(name), svg)?;
    }
    Ok(())
}

/// Our sessions, in a directory that is removed with its driver.
#[derive(Debug)]
struct Place {
    sessions: interrupt::Sessions,
    temporary: tempfile::TempDir,
}

impl Place {
    fn new(sessile: &Path) -> anyhow::Result<Self> {
        let temporary = tempfile::tempdir()?;
        // Where the user's own server has them, with this directory for the user's state.
        let sessions = interrupt::Sessions::within(sessile, temporary.path(), "sessile/local");
        Ok(Self { sessions, temporary })
    }
}
