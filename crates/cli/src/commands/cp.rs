use crate::display::words::count;
use crate::progress::{Counter, Progress};
use crate::settings::Settings;
use crate::workspace::Place;
use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::Serialize;
use sessile_files::{FileError, Kind, RelativePath, Replace, Root, Unpacked, Writing};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

/// How many bytes are copied at once.
const PIECE: usize = 256 << 10;

/// Copy files and directories into a session's workspace, out of it, or between two
///
/// ID:path is in a session's workspace; anything else is a path of this machine.
/// A directory is copied with its contents. Copying to an existing directory
/// copies into it. Links that lead out of the workspace, and devices, are left
/// out and reported.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile cp data.csv sess_…:\n  \
    sessile cp ./project sess_…:work\n  sessile cp sess_…:build/report.html .\n  \
    sessile cp sess_…:src web:src")]
pub(crate) struct Cp {
    /// A file or directory, as path or ID:path
    #[arg(value_name = "FROM")]
    from: String,
    /// Where it goes, as path or ID:path
    #[arg(value_name = "TO")]
    to: String,
}

/// One end of a copy.
struct End {
    root: Root,
    path: RelativePath,
}

/// What was copied.
#[derive(Debug, Default, Serialize)]
struct Copied {
    files: u64,
    directories: u64,
    links: u64,
    bytes: u64,
    skipped: u64,
}

impl Cp {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        ensure!(
            Place::parse(&self.from).is_some() || Place::parse(&self.to).is_some(),
            "neither is in a session; write ID:path for one of them"
        );
        let from = source(settings, &self.from)?;
        let whole = from.root.stat(&from.path)?;
        let name = match (whole.path.is_root(), Path::new(&self.from).file_name()) {
            // Of a whole workspace, the content is copied.
            (true, _) | (_, None) => None,
            (false, Some(_)) => Some(whole.path.name().to_vec()),
        };
        let to = destination(settings, &self.to, name.as_deref())?;
        let so_far = CopyProgress::default();
        let (shown, doing) = (so_far.clone(), format!("copying {}", self.from));
        let progress = Progress::show(move || format!("{doing}: {}", shown.text()));
        let copied = match whole.kind {
            Kind::Directory => tree(&from, &to, &so_far)?,
            Kind::File | Kind::Symlink => file(&from, &to, &so_far)?,
            Kind::Other => bail!("{} is neither a file nor a directory", self.from),
        };
        drop(progress);
        crate::display::Form::of_stdout(false).print(|| &copied, |_| told(&copied))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn told(copied: &Copied) -> String {
    format!("{}\n", amount(copied.files, copied.bytes))
}

fn amount(files: u64, bytes: u64) -> String {
    let files = count(usize::try_from(files).unwrap_or(usize::MAX), "file");
    format!("{files}, {}", size(bytes))
}

/// The progress of a copy: whole files, and bytes of all.
#[derive(Clone, Debug, Default)]
struct CopyProgress {
    files: Counter,
    bytes: Counter,
}

impl CopyProgress {
    fn text(&self) -> String {
        amount(self.files.get(), self.bytes.get())
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576.. => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn source(settings: &Settings, text: &str) -> anyhow::Result<End> {
    if let Some(place) = Place::parse(text) {
        let (root, path) = place.open(settings)?;
        return Ok(End { root, path });
    }
    let real = std::fs::canonicalize(text).with_context(|| format!("cannot open {text}"))?;
    on_this_machine(&real)
}

/// Returns the end for a path of this machine without links.
fn on_this_machine(real: &Path) -> anyhow::Result<End> {
    let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
        return Ok(End { root: Root::open(real)?, path: RelativePath::default() });
    };
    let root = Root::open(folder)?;
    let path = root.path(name.as_bytes())?;
    Ok(End { root, path })
}

/// Resolves the destination: within an existing directory, under its own name.
fn destination(settings: &Settings, text: &str, name: Option<&[u8]>) -> anyhow::Result<End> {
    let end = match Place::parse(text) {
        Some(place) => {
            let (root, path) = place.open(settings)?;
            End { root, path }
        }
        None => match std::fs::canonicalize(text) {
            Ok(real) => on_this_machine(&real)?,
            Err(_) => {
                let path = std::path::absolute(text)?;
                let (Some(folder), Some(_)) = (path.parent(), path.file_name()) else {
                    bail!("cannot write to {text}");
                };
                let folder = std::fs::canonicalize(folder)
                    .with_context(|| format!("there is no directory for {text}"))?;
                on_this_machine(&folder.join(path.file_name().unwrap_or_default()))?
            }
        },
    };
    let is_directory = match end.root.stat(&end.path) {
        Ok(entry) => entry.kind == Kind::Directory,
        Err(FileError::NotFound(_)) => text.ends_with('/'),
        Err(error) => return Err(error.into()),
    };
    match name {
        Some(name) if is_directory => {
            let path = end.path.join(name);
            Ok(End { path, ..end })
        }
        Some(_) | None => Ok(end),
    }
}

fn file(from: &End, to: &End, so_far: &CopyProgress) -> anyhow::Result<Copied> {
    let mut content = from.root.read(&from.path)?;
    let entry = content.entry;
    let writing = Writing {
        mode: Some(entry.mode),
        parents: true,
        replace: Replace::Yes,
        modified: Some(entry.modified.0),
    };
    let mut draft = to.root.write(&to.path, writing)?;
    let mut piece = vec![0; PIECE];
    loop {
        let length = content.file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        draft.write(&piece[..length])?;
        so_far.bytes.add(length as u64);
    }
    draft.finish()?;
    Ok(Copied { files: 1, bytes: so_far.bytes.get(), ..Copied::default() })
}

/// Copies a tree through a pipe, as a tar archive: one thread packs, the other unpacks.
fn tree(from: &End, to: &End, so_far: &CopyProgress) -> anyhow::Result<Copied> {
    let (reader, writer) = io::pipe()?;
    let (packed, unpacked) = std::thread::scope(|threads| {
        let packing = threads
            .spawn(|| from.root.pack(&from.path, io::BufWriter::with_capacity(PIECE, writer)));
        let reader = io::BufReader::with_capacity(PIECE, reader);
        let unpacked = to.root.unpack_telling(&to.path, reader, &mut |unpacked| {
            so_far.files.set(unpacked.files);
            so_far.bytes.set(unpacked.bytes);
        });
        (packing.join(), unpacked)
    });
    // An error of unpacking says more than the broken pipe that it causes.
    let unpacked = unpacked?;
    packed.map_err(|_| anyhow::anyhow!("the copy was given up"))??;
    tell_skipped(&unpacked);
    Ok(Copied {
        files: unpacked.files,
        directories: unpacked.directories,
        links: unpacked.links,
        bytes: unpacked.bytes,
        skipped: unpacked.skipped_count,
    })
}

fn tell_skipped(unpacked: &Unpacked) {
    for skipped in &unpacked.skipped {
        eprintln!("left out {}: {}", String::from_utf8_lossy(&skipped.path), skipped.reason);
    }
    let more = unpacked.skipped_count - unpacked.skipped.len() as u64;
    if more > 0 {
        eprintln!("left out {more} more");
    }
}
