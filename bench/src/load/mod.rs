//! Many sessions at once, over HTTP: runs per second, the duration of each, and its cost.
//!
//! One process drives all clients without threads, because it shares the cores with the
//! processes that it measures. Each client has its own connection and session, and sends
//! the next request when it has the answer to the last.

mod args;
mod clients;
mod cost;
mod crowd;
mod flood;
mod page;
mod parts;
mod report;

pub(crate) use args::Args;

use crate::server::Serve;
use crowd::Crowd;
use page::Page;
use sessile_protocol::Language;
use std::path::Path;

pub(crate) fn measure(sessile: &Path, args: &Args) -> anyhow::Result<()> {
    raise_open_files();
    let mut page = Page::default();
    for language in &args.languages {
        rates(sessile, args, *language, &mut page)?;
    }
    parts::floor(args)?;
    parts::quiet_beside_busy(sessile, args)?;
    flood::measure(sessile, args, &mut page)?;
    args.page.as_deref().map_or(Ok(()), |path| page.publish(path))
}

/// Returns a command that does nothing.
pub(crate) fn nothing(language: Language) -> &'static str {
    match language {
        Language::Bash | Language::Sh | Language::Zsh => ":",
        Language::Python => "pass",
        Language::Node => "0",
    }
}

/// Returns the program of a session of this language.
fn program(language: Language) -> &'static str {
    match language {
        Language::Python => "python3",
        Language::Bash | Language::Sh | Language::Zsh | Language::Node => language.as_str(),
    }
}

/// Measures all numbers of sessions of a language, in interleaved turns: those up to a
/// hundred are open together, and the larger numbers come at the end.
fn rates(sessile: &Path, args: &Args, language: Language, page: &mut Page) -> anyhow::Result<()> {
    let (small, large) = args.steps();
    let mut crowd = Crowd::new(Serve::start(sessile)?, language);
    println!("  {language}, `{}`", nothing(language));
    let mut report = report::Rates::default();
    if let Some(most) = small.iter().max() {
        crowd.open(*most)?;
        for _ in 0..args.rounds {
            for sessions in &small {
                report.add(*sessions, crowd.turn(*sessions, args.turn())?);
            }
        }
    }
    let mut outlook = parts::Outlook::default();
    for sessions in large {
        if !crowd.has_room_for(sessions)? {
            println!("    {sessions} sessions: not measured, memory would not do");
            continue;
        }
        outlook = parts::open_many(&mut crowd, sessions, args)?;
        for _ in 0..args.rounds {
            report.add(sessions, crowd.turn(sessions, args.turn())?);
        }
    }
    report.print(language, page);
    outlook.print(language, page);
    Ok(())
}

/// Raises the limit: a thousand connections need more than the usual 1,024 files.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
