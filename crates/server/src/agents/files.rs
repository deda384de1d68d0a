//! The file tools: they stay within the workspace as the session sees it, whatever links say.

use sessile_agent::thread::{FileState, Intent};
use sessile_agent::tools::{Edit, FileCall, Read, Search};
use sessile_client::Workspace;
use sessile_files::{FileError, Replace, Root, Writing};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;

/// Size limit of a file: a model edits texts, not disk images.
const MAX_FILE: u64 = 4 << 20;
/// Size limit of what a model reads at once.
const MAX_SHOWN: usize = 32_000;
const LINES: u64 = 400;
const MAX_MATCHES: usize = 100;
const MAX_LINE: usize = 300;

/// The outcome of a call.
pub(super) enum CallOutcome {
    /// The text for the model, whether it succeeded or failed.
    Finished(Result<String, String>),
    /// The intended change of a file. Nothing is done yet: the intent is recorded first.
    Intends { before: Option<String>, after: String },
}

/// Performs a call. It changes a file only once its intent is recorded, and only if the
/// file is still the one that the intent names.
pub(super) fn perform(
    workspace: &Workspace,
    call: &FileCall,
    intent: Option<&Intent>,
    is_repeated: bool,
) -> CallOutcome {
    let root = match Root::open(&workspace.path) {
        Ok(root) => root.called(workspace.called.clone()),
        Err(error) => {
            return CallOutcome::Finished(Err(format!("the workspace cannot be opened: {error}")));
        }
    };
    let done = match (call, intent) {
        (FileCall::Read(call), _) => Ok(CallOutcome::Finished(read(&root, call))),
        (FileCall::Search(call), _) => Ok(CallOutcome::Finished(search(&root, workspace, call))),
        (FileCall::Write(call), None) => hash_of_file(&root, &call.path)
            .map(|before| CallOutcome::Intends { before, after: hash(call.text.as_bytes()) }),
        (FileCall::Edit(call), None) => edited(&root, call).map(|(old, new)| {
            CallOutcome::Intends { before: Some(old), after: hash(new.as_bytes()) }
        }),
        (FileCall::Write(call), Some(intent)) => {
            carry_out(&root, &call.path, intent, is_repeated, || Ok(call.text.clone())).map(|()| {
                CallOutcome::Finished(Ok(format!(
                    "written: {} ({} bytes)",
                    call.path,
                    call.text.len()
                )))
            })
        }
        (FileCall::Edit(call), Some(intent)) => {
            let new = || edited(&root, call).map(|(_, new)| new);
            carry_out(&root, &call.path, intent, is_repeated, new)
                .map(|()| CallOutcome::Finished(Ok(format!("edited: {}", call.path))))
        }
    };
    done.unwrap_or_else(|why| CallOutcome::Finished(Err(why)))
}

/// Carries out the intent, unless that was done before or the file has changed since.
fn carry_out(
    root: &Root,
    path: &str,
    intent: &Intent,
    is_repeated: bool,
    new: impl FnOnce() -> Result<String, String>,
) -> Result<(), String> {
    match intent.found(hash_of_file(root, path)?.as_deref()) {
        FileState::After => Ok(()),
        FileState::Before => store(root, path, &new()?),
        FileState::Neither if is_repeated => Err(format!(
            "whether this was done is not known: it was interrupted, and {path} has changed \
             since. Read it before you do it again"
        )),
        FileState::Neither => Err(format!(
            "{path} has changed in this moment, and was left as it is. Read it, and try again"
        )),
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns the hash of a file; none if there is no file.
fn hash_of_file(root: &Root, path: &str) -> Result<Option<String>, String> {
    let inside = root.path(path.as_bytes()).map_err(told)?;
    let mut content = match root.read(&inside) {
        Ok(content) => content,
        Err(FileError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(told(error)),
    };
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match content.file.read(&mut piece).map_err(|e| format!("{path}: {e}"))? {
            0 => return Ok(Some(hex(&hasher.finalize()))),
            count => hasher.update(&piece[..count]),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn told(error: FileError) -> String {
    match error {
        FileError::Outside(_) => format!("{error}; use the runtime tool for files elsewhere"),
        FileError::IsADirectory(_) => format!("{error}; list it with the runtime tool"),
        FileError::BadPath(..)
        | FileError::NotFound(_)
        | FileError::Exists(_)
        | FileError::NotADirectory(_)
        | FileError::NotAFile(_)
        | FileError::NotEmpty(_)
        | FileError::Denied(_)
        | FileError::NoRoom(_)
        | FileError::TooManyWatches(_)
        | FileError::BadArchive(_)
        | FileError::Io { .. } => error.to_string(),
    }
}

fn text_of(root: &Root, path: &str) -> Result<String, String> {
    let inside = root.path(path.as_bytes()).map_err(told)?;
    let content = root.read(&inside).map_err(told)?;
    let mut bytes = Vec::new();
    content.file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| format!("{path}: {e}"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("{path} is larger than 4 MiB; use the runtime tool"));
    }
    String::from_utf8(bytes).map_err(|_| format!("{path} is not text; use the runtime tool"))
}

fn read(root: &Root, call: &Read) -> Result<String, String> {
    let text = text_of(root, &call.path)?;
    let total = text.lines().count() as u64;
    let from = call.from_line.unwrap_or(1).max(1);
    let most = call.lines.unwrap_or(LINES);
    let mut shown = String::new();
    let mut last = from - 1;
    for (number, line) in (1..).zip(text.lines()).skip_while(|(number, _)| *number < from) {
        if number - from >= most || shown.len() + line.len() > MAX_SHOWN {
            break;
        }
        let _ = writeln!(shown, "{number}\t{line}");
        last = number;
    }
    if total == 0 {
        return Ok("(the file is empty)".to_owned());
    }
    if from > total {
        return Err(format!("{} has {total} lines", call.path));
    }
    if last < from {
        return Err(format!("line {from} is too long to be shown; use the runtime tool"));
    }
    if last < total {
        let _ = writeln!(shown, "[… {total} lines in all; read on from line {} …]", last + 1);
    }
    Ok(shown)
}

/// Writes a file atomically.
fn store(root: &Root, path: &str, text: &str) -> Result<(), String> {
    let inside = root.path(path.as_bytes()).map_err(told)?;
    let writing = Writing { mode: None, parents: true, replace: Replace::Yes, modified: None };
    let mut draft = root.write(&inside, writing).map_err(told)?;
    draft.write(text.as_bytes()).map_err(told)?;
    draft.finish().map_err(told)?;
    Ok(())
}

/// Returns the hash of a file and its content after the edit.
fn edited(root: &Root, call: &Edit) -> Result<(String, String), String> {
    let text = text_of(root, &call.path)?;
    let new = call.apply(&text).map_err(|misfit| format!("{}: {misfit}", call.path))?;
    Ok((hash(text.as_bytes()), new))
}

fn search(root: &Root, workspace: &Workspace, call: &Search) -> Result<String, String> {
    let pattern = regex::RegexBuilder::new(&call.pattern)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| format!("the pattern is not a regular expression: {error}"))?;
    let given = call.path.as_deref().unwrap_or(".");
    let below = root.path(given.as_bytes()).map_err(told)?;
    // Fails if it does not exist; the walk itself follows no links.
    root.stat(&below).map_err(told)?;
    let from = workspace.path.join(std::ffi::OsStr::from_bytes(below.bytes()));
    let mut walk = ignore::WalkBuilder::new(from);
    walk.require_git(false).follow_links(false);
    if let Some(glob) = &call.glob {
        let mut overrides = ignore::overrides::OverrideBuilder::new(&workspace.path);
        overrides.add(glob).map_err(|e| format!("glob: {e}"))?;
        walk.overrides(overrides.build().map_err(|e| format!("glob: {e}"))?);
    }
    let mut found = String::new();
    let mut matches = 0;
    for entry in walk.build().flatten() {
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(relative) = entry.path().strip_prefix(&workspace.path) else { continue };
        let relative = relative.to_string_lossy();
        // Skips files that are not text, or too large.
        let Ok(text) = text_of(root, &relative) else { continue };
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| pattern.is_match(line)) {
            if matches == MAX_MATCHES || found.len() > MAX_SHOWN {
                found.push_str("[… more lines match; search for something rarer …]\n");
                return Ok(found);
            }
            let line: String = line.chars().take(MAX_LINE).collect();
            let _: std::fmt::Result = writeln!(found, "{relative}:{number}:{line}");
            matches += 1;
        }
    }
    if matches == 0 { Ok("(no line matches)".to_owned()) } else { Ok(found) }
}
