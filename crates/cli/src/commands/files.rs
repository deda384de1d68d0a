use crate::display::Form;
use crate::settings::Settings;
use crate::workspace::Place;
use crate::{display, output};
use anyhow::ensure;
use clap::{Args, Subcommand};
use sessile_files::{Entry, RelativePath, Replace, Root, Writing};
use sessile_gateway::answer::FileEntry;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::process::ExitCode;

/// How many bytes are copied at once.
const PIECE: usize = 256 << 10;

/// Inspect and change files of a session's workspace
///
/// Files are named ID:path, relative to the session's workspace; nothing outside
/// it can be reached. `sessile cp` copies files and directories in and out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile files ls sess_…:src\n  \
    sessile files cat sess_…:src/main.py\n  echo 'x = 1' | sessile files put sess_…:conf.py\n  \
    sessile files tree sess_… --depth 3\n  sessile files rm -r sess_…:build")]
pub(crate) struct Files {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what is in a directory
    ///
    /// Prints a JSON array; at a terminal, a table.
    Ls {
        /// The session, or ID:path
        place: String,
        /// JSON at a terminal, too
        #[arg(long)]
        json: bool,
    },
    /// List a directory and everything below it
    ///
    /// Prints a JSON array; at a terminal, a table.
    Tree {
        /// The session, or ID:path
        place: String,
        /// How deep
        #[arg(long, value_name = "N", default_value_t = 100)]
        depth: u32,
        /// JSON at a terminal, too
        #[arg(long)]
        json: bool,
    },
    /// Print a file's metadata as JSON
    Stat {
        /// ID:path
        place: String,
    },
    /// Print a file
    Cat {
        /// ID:path
        place: String,
    },
    /// Write stdin to a file, completely or not at all
    Put {
        /// ID:path
        place: String,
        /// Create missing parent directories
        #[arg(long, short)]
        parents: bool,
    },
    /// Create a directory
    Mkdir {
        /// ID:path
        place: String,
        /// Create missing parents, and accept an existing directory
        #[arg(long, short)]
        parents: bool,
    },
    /// Move or rename a file or a directory
    Mv {
        /// ID:path
        place: String,
        /// Its new path in the same workspace, as path or ID:path
        to: String,
        /// Replace an existing file
        #[arg(long, short)]
        force: bool,
    },
    /// Remove a file, a link or an empty directory
    Rm {
        /// ID:path
        place: String,
        /// Remove a directory with its contents
        #[arg(long, short)]
        recursive: bool,
    },
}

impl Files {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let open = |text: &str| Place::of(text).open(settings);
        match self.action {
            Action::Ls { place, json } => {
                let (root, path) = open(&place)?;
                list(&root, &path, 1, json)?;
            }
            Action::Tree { place, depth, json } => {
                let (root, path) = open(&place)?;
                list(&root, &path, depth, json)?;
            }
            Action::Stat { place } => {
                let (root, path) = open(&place)?;
                output::json(&FileEntry::from(&root.stat(&path)?))?;
            }
            Action::Cat { place } => {
                let (root, path) = open(&place)?;
                cat(&root, &path)?;
            }
            Action::Put { place, parents } => {
                let (root, path) = open(&place)?;
                put(&root, &path, parents)?;
            }
            Action::Mkdir { place, parents } => {
                let (root, path) = open(&place)?;
                if parents {
                    root.make_all(&path)?;
                } else {
                    root.make(&path)?;
                }
            }
            Action::Mv { place, to, force } => {
                let (root, path) = open(&place)?;
                let replace = if force { Replace::Yes } else { Replace::No };
                let to = new_path(settings, &place, &to)?;
                root.rename(&path, &root.path(to.as_bytes())?, replace)?;
            }
            Action::Rm { place, recursive } => {
                let (root, path) = open(&place)?;
                if recursive {
                    root.remove_all(&path)?;
                } else {
                    root.remove(&path)?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Resolves the new path of a file within its workspace. It may name a session, too, if
/// that is the same one; a name with a colon that is not a session's is just a name.
fn new_path(settings: &Settings, place: &str, to: &str) -> anyhow::Result<String> {
    let from = Place::of(place).session;
    let Some(named) = Place::parse(to) else { return Ok(to.to_owned()) };
    if named.session == from {
        return Ok(named.path);
    }
    let there = match settings.session(&named.session) {
        Ok(there) => there,
        Err(error) if named.session.starts_with(SESSION) => return Err(error),
        Err(_) => return Ok(to.to_owned()),
    };
    ensure!(
        there == settings.session(&from)?,
        "a file is moved within one session; from one to another: sessile cp {place} {to}, then \
         sessile files rm {place}"
    );
    Ok(named.path)
}

/// The beginning of a session's id.
const SESSION: &str = "sess_";

fn list(root: &Root, path: &RelativePath, depth: u32, json: bool) -> anyhow::Result<()> {
    let mut entries: Vec<Entry> = Vec::new();
    root.list(path, depth, |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    })?;
    let entries: Vec<FileEntry> = entries.iter().map(FileEntry::from).collect();
    Form::of_stdout(json).print(|| &entries, |page| display::files::list(&entries, page))
}

fn cat(root: &Root, path: &RelativePath) -> anyhow::Result<()> {
    let mut file = root.read(path)?.file;
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(()),
            length => output::all(&mut io::stdout().lock(), &piece[..length])?,
        }
    }
}

fn put(root: &Root, path: &RelativePath, parents: bool) -> anyhow::Result<()> {
    let writing = Writing { mode: None, parents, replace: Replace::Yes, modified: None };
    let mut draft = root.write(path, writing)?;
    let mut piece = vec![0; PIECE];
    loop {
        match io::stdin().lock().read(&mut piece)? {
            0 => break,
            length => draft.write(&piece[..length])?,
        }
    }
    draft.finish()?;
    Ok(())
}
