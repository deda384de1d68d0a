//! Converts SVG to PNG in a separate process (`cli/drawer.rs`), which has limits on
//! memory and time.

use super::pictures::Picture;
use crate::keepers::blocking;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::sync::Semaphore;

/// The first argument of that process.
pub const DRAWER: &str = "drawer";

/// Limits how many are drawn at a time, for all callers together.
static TURNS: Semaphore = Semaphore::const_new(2);

/// The result of drawing an SVG.
#[derive(Debug)]
pub(super) struct DrawnSvg {
    pub(super) picture: Option<Picture>,
    /// What is missing, or why there is no picture.
    pub(super) notes: Vec<String>,
}

pub(super) async fn draw(program: PathBuf, svg: String) -> DrawnSvg {
    let Ok(_turn) = TURNS.acquire().await else { return failed("the server ends") };
    let drawn = blocking(move || Ok(draw_now(&program, &svg)));
    drawn.await.unwrap_or_else(|error| failed(&error.to_string()))
}

/// The only variables that the process inherits: they say where fonts are. The server's
/// environment may hold keys of models, and the SVG may come from anywhere.
const INHERITED: [&str; 5] =
    ["HOME", "FONTCONFIG_FILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"];

fn without_secrets(command: &mut Command) -> &mut Command {
    let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.env_clear().envs(inherited)
}

fn draw_now(program: &Path, svg: &str) -> DrawnSvg {
    let started = without_secrets(&mut Command::new(program))
        .arg(DRAWER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut drawer = match started {
        Ok(drawer) => drawer,
        Err(error) => return failed(&error.to_string()),
    };
    if let Some(mut stdin) = drawer.stdin.take() {
        // Fails if the process has ended; its status says why.
        let _ = stdin.write_all(svg.as_bytes());
    }
    let mut png = Vec::new();
    if let Some(mut stdout) = drawer.stdout.take() {
        let _ = stdout.read_to_end(&mut png);
    }
    let ended = match drawer.wait_with_output() {
        Ok(ended) => ended,
        Err(error) => return failed(&error.to_string()),
    };
    let said = String::from_utf8_lossy(&ended.stderr);
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    if ended.status.success() {
        let notes = lines.map(|line| format!("the picture is incomplete: {line}")).collect();
        return DrawnSvg { picture: Some(Picture::png(&png)), notes };
    }
    match ended.status.signal() {
        Some(libc_signal::ALRM | libc_signal::XCPU | libc_signal::KILL) => {
            failed("it takes too long")
        }
        Some(_) => failed("it takes too much memory, or is nested too deeply"),
        None => failed(lines.next_back().unwrap_or("it is not an SVG")),
    }
}

/// Signal numbers of Linux.
mod libc_signal {
    pub(super) const KILL: i32 = 9;
    pub(super) const ALRM: i32 = 14;
    pub(super) const XCPU: i32 = 24;
}

fn failed(why: &str) -> DrawnSvg {
    let note = format!("the value is an SVG that cannot be drawn: {why}; print it to see its text");
    DrawnSvg { picture: None, notes: vec![note] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawer_inherits_nothing_but_where_fonts_are() {
        // Cargo sets it for tests; it stands for a secret in the server's environment.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let told = without_secrets(&mut Command::new("/usr/bin/env")).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        let mut names = told.lines().filter_map(|line| Some(line.split_once('=')?.0));
        assert!(names.all(|name| INHERITED.contains(&name)), "{told}");
    }
}
