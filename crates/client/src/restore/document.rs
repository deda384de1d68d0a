//! Reads and checks a saved session's file. Nothing is made here.

use super::{RestoreError, RestoreOptions, Trust};
use rustix::fs::{Mode, OFlags};
use sessile_protocol::Language;
use sessile_snapshot::bundle::{Key, Kind, Limits, Reader};
use sessile_store::{Entry, FORMAT, Manifest, SavedKernel, Sessions, part};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Size limits of a manifest, and of a kernel's state in JSON. The largest that a keeper
/// writes are those of shells with megabytes of functions.
const MANIFEST_LIMIT: u64 = 16 << 20;
const STATE_LIMIT: u64 = 256 << 20;
const HISTORY_LIMIT: u64 = 1 << 30;

/// Maximum number of parts of a saved session.
const PARTS: u32 = 100;

/// No session has run numbers beyond this.
const LAST_RUN: u64 = 1 << 53;

/// A hundred years: longer times exceed the range of clocks.
const LONGEST_MS: u64 = 100 * 366 * 24 * 3600 * 1000;

#[derive(Debug)]
pub(super) struct Document {
    pub(super) reader: Reader<File>,
    pub(super) manifest: Manifest,
    pub(super) history: Vec<Entry>,
    pub(super) kernels: BTreeMap<Language, SavedKernel>,
}

impl Document {
    pub(super) fn open(
        sessions: &Sessions,
        restoring: &RestoreOptions,
    ) -> Result<Self, RestoreError> {
        let mut reader =
            Reader::new(open(&restoring.path)?, Limits { total: u64::MAX, parts: PARTS })?;
        let is_own = is_own(sessions, &mut reader)?;
        if !is_own {
            let total = reader.parts().iter().map(|part| part.length).fold(0, u64::saturating_add);
            if total > restoring.max_size {
                let limit = restoring.max_size;
                let error = sessile_snapshot::bundle::Error::TooLarge { limit, unit: "bytes" };
                return Err(error.into());
            }
        }
        let manifest = manifest(&mut reader)?;
        match (restoring.trust, is_own) {
            (Trust::Given, _) | (Trust::Own, true) => {}
            (Trust::Own, false) => return Err(RestoreError::Untrusted),
        }
        let history = history(&mut reader, &manifest)?;
        let kernels = kernels(&mut reader, &manifest)?;
        if reader.part(part::FILES).is_some() {
            expect_kind(&reader, part::FILES, Kind::Files)?;
        }
        Ok(Self { reader, manifest, history, kernels })
    }
}

/// Returns what a save says about its session, for display, without the environment, which
/// may contain secrets.
#[must_use]
pub fn about_save(path: &Path) -> Option<serde_json::Value> {
    let mut reader =
        Reader::new(open(path).ok()?, Limits { total: u64::MAX, parts: PARTS }).ok()?;
    let mut about = serde_json::to_value(manifest(&mut reader).ok()?).ok()?;
    about.as_object_mut()?.remove("env");
    Some(about)
}

/// Opens a regular file only: a FIFO would make us wait.
fn open(path: &Path) -> Result<File, RestoreError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map(File::from);
    let unopened = |source| RestoreError::Open { path: path.to_owned(), source };
    let file = opened.map_err(|error| unopened(error.into()))?;
    match file.metadata().map_err(unopened)?.is_file() {
        true => Ok(file),
        false => Err(RestoreError::NotAFile { path: path.to_owned() }),
    }
}

fn is_own(sessions: &Sessions, reader: &mut Reader<File>) -> Result<bool, RestoreError> {
    let Some(seal) = reader.seal()? else {
        return Ok(false);
    };
    // Without a usable secret, no file counts as our own.
    let secret = sessions.known_secret().unwrap_or_default();
    Ok(secret.is_some_and(|secret| seal.is_of(&Key::new(secret))))
}

fn manifest(reader: &mut Reader<File>) -> Result<Manifest, RestoreError> {
    expect_kind(reader, part::MANIFEST, Kind::Session)?;
    let bytes = reader.read(part::MANIFEST, MANIFEST_LIMIT)?;
    let damaged = |error: serde_json::Error| damaged(format!("{}: {error}", part::MANIFEST));
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(damaged)?;
    let format = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or_default();
    if format > u64::from(FORMAT) {
        let format = u32::try_from(format).unwrap_or(u32::MAX);
        return Err(RestoreError::Newer { format });
    }
    let mut manifest: Manifest = serde_json::from_value(value).map_err(damaged)?;
    check(&manifest)?;
    for limit in [&mut manifest.idle_timeout_ms, &mut manifest.command_timeout_ms] {
        *limit = (*limit).min(LONGEST_MS);
    }
    manifest.max_history = manifest.max_history.clamp(1, LAST_RUN);
    Ok(manifest)
}

fn check(manifest: &Manifest) -> Result<(), RestoreError> {
    if Language::of_program(&manifest.command) != Some(manifest.language) {
        return Err(damaged(format!("{:?} is not {}", manifest.command, manifest.language)));
    }
    if manifest.last_run.0 > LAST_RUN || manifest.execution_count > LAST_RUN {
        return Err(damaged("it counts too many runs"));
    }
    let is_variable = |(name, value): (&String, &String)| {
        !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
    };
    if !manifest.env.iter().all(is_variable) {
        return Err(damaged("it has an environment variable that cannot be one"));
    }
    for (index, kernel) in manifest.kernels.iter().enumerate() {
        if manifest.kernels[..index].iter().any(|other| other.language == kernel.language) {
            return Err(damaged(format!("it has {} twice", kernel.language)));
        }
        if kernel.as_of_run > manifest.last_run {
            return Err(damaged("a kernel is of a later run than there was"));
        }
    }
    Ok(())
}

fn history(reader: &mut Reader<File>, manifest: &Manifest) -> Result<Vec<Entry>, RestoreError> {
    expect_kind(reader, part::HISTORY, Kind::History)?;
    let bytes = reader.read(part::HISTORY, HISTORY_LIMIT)?;
    let mut entries = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut entry: Entry = serde_json::from_slice(line)
            .map_err(|error| damaged(format!("{}: {error}", part::HISTORY)))?;
        if entry.run > manifest.last_run {
            return Err(damaged("its history has a later run than there was"));
        }
        // That file is not carried.
        entry.has_value_file = false;
        entry.from_session.get_or_insert_with(|| manifest.session_id.clone());
        entries.push(entry);
    }
    Ok(entries)
}

fn kernels(
    reader: &mut Reader<File>,
    manifest: &Manifest,
) -> Result<BTreeMap<Language, SavedKernel>, RestoreError> {
    let mut kernels = BTreeMap::new();
    for kernel in &manifest.kernels {
        let name = part::state(kernel.language);
        expect_kind(reader, &name, Kind::Kernel)?;
        let bytes = reader.read(&name, STATE_LIMIT)?;
        let mut saved: SavedKernel =
            serde_json::from_slice(&bytes).map_err(|error| damaged(format!("{name}: {error}")))?;
        (saved.dump, saved.dump_as_of_run) = (None, None);
        saved.as_of_run = kernel.as_of_run;
        if !kernel.language.is_shell() {
            saved.restore = None;
        }
        if reader.part(&part::dump(kernel.language)).is_some() {
            expect_kind(reader, &part::dump(kernel.language), Kind::Kernel)?;
            saved.dump = Some(format!("{}.dump", kernel.language));
            saved.dump_as_of_run = Some(kernel.as_of_run);
        }
        kernels.insert(kernel.language, saved);
    }
    Ok(kernels)
}

fn expect_kind(reader: &Reader<File>, name: &str, kind: Kind) -> Result<(), RestoreError> {
    match reader.part(name) {
        Some(part) if part.kind == kind => Ok(()),
        Some(_) => Err(damaged(format!("its part \"{name}\" is of another kind"))),
        None => Err(sessile_snapshot::bundle::Error::NoSuchPart(name.to_owned()).into()),
    }
}

fn damaged(what: impl Into<String>) -> RestoreError {
    RestoreError::Damaged(what.into())
}
