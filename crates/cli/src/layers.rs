//! The layers of sessions in a sandbox, as commands use them.

use crate::display::{Colour, Paint};
use crate::settings::Settings;
use sessile_client::SessionLayer;
use sessile_gateway::answer::SkippedChange;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

pub(crate) fn open(settings: &Settings, session: &str) -> anyhow::Result<SessionLayer> {
    let id = settings.session(session)?;
    let directory = settings.sessions.find(&id)?;
    Ok(SessionLayer::of(&directory, settings.sessions.user().root())?)
}

pub(crate) fn bytes(paths: Vec<OsString>) -> Vec<Vec<u8>> {
    paths.into_iter().map(OsString::into_vec).collect()
}

/// Lists paths for people.
pub(crate) fn paths(paths: &[String], none: &str) -> String {
    if paths.is_empty() {
        return none.to_owned();
    }
    paths.iter().map(|path| format!("{path}\n")).collect()
}

pub(crate) fn tell_skipped(skipped: &[SkippedChange]) {
    for SkippedChange { path, reason } in skipped {
        eprintln!("sessile: left alone: {path}: {reason}");
    }
}

/// Returns a diff in colours.
pub(crate) fn painted(diff: &str) -> String {
    let paint = |line: &str| {
        let colour = match line.as_bytes().first() {
            Some(b'+') if !line.starts_with("+++ ") => Colour::Green,
            Some(b'-') if !line.starts_with("--- ") => Colour::Red,
            Some(b'@') => Colour::Cyan,
            Some(b' ' | b'\\') | None => return line.to_owned(),
            Some(_) => Colour::Bold,
        };
        let text = line.strip_suffix('\n').unwrap_or(line);
        let end = &line[text.len()..];
        format!("{}{end}", Paint::Colours.text(colour, text))
    };
    diff.split_inclusive('\n').map(paint).collect()
}
