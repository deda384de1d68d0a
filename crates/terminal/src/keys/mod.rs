//! Keys as people write them, and the bytes that a terminal sends for them:
//! `ihello<Esc>:wq<Enter>`.
//!
//! Text is typed as it is, but a name in angle brackets is a key. A `<` without the name of
//! a key and `>` after it stands for itself, and so does `<lt>`. A line break is Enter. The
//! bytes are those of xterm.

mod key;

use crate::Modes;
use key::Key;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "<{0}> is not a key: write <lt>{0}> for the text itself, or one of {names}",
        names = key::NAMES
    )]
    UnknownInText(String),
    #[error("{0:?} is not a key: name a single character or one of {names}", names = key::NAMES)]
    Unknown(String),
    #[error(
        "there is no key {0}: Ctrl goes with letters, Space, @ [ \\ ] ^ _ / ? and named keys, \
         Shift with letters and named keys"
    )]
    NoSuchCombination(String),
}

/// The longest name is `Ctrl-Shift-Alt-PageDown`; a longer one is not a key.
const LONGEST_NAME: usize = 32;

/// Returns the bytes for typing a text.
///
/// # Errors
///
/// When a name in angle brackets is not that of a key.
pub fn encode(text: &str, modes: Modes) -> Result<Vec<u8>, KeyError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(ch) = rest.chars().next() {
        if let Some(name) = name_at(rest) {
            match Key::parse(name) {
                Ok(key) => key.write(modes, &mut bytes),
                Err(key::KeyProblem::Name) => return Err(KeyError::UnknownInText(name.to_owned())),
                Err(key::KeyProblem::Combination) => {
                    return Err(KeyError::NoSuchCombination(name.to_owned()));
                }
            }
            rest = &rest[name.len() + 2..];
            continue;
        }
        if let Some(after) = rest.strip_prefix("\r\n") {
            bytes.push(b'\r');
            rest = after;
            continue;
        }
        write_char(ch, &mut bytes);
        rest = &rest[ch.len_utf8()..];
    }
    Ok(bytes)
}

/// Returns the bytes of a single key: `Enter`, `up`, `C-c`, `ctrl-c`, `ctrl+c`, `^C`,
/// `<Esc>`, `x`.
///
/// # Errors
///
/// When the name is not that of a key.
pub fn named(name: &str, modes: Modes) -> Result<Vec<u8>, KeyError> {
    let mut bytes = Vec::new();
    let mut chars = name.chars();
    if let (Some(ch), None) = (chars.next(), chars.next()) {
        write_char(ch, &mut bytes);
        return Ok(bytes);
    }
    let bare = name.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(name);
    let caret = bare.strip_prefix('^').map(|rest| format!("C-{rest}"));
    match Key::parse(caret.as_deref().unwrap_or(bare)) {
        Ok(key) => key.write(modes, &mut bytes),
        Err(key::KeyProblem::Name) => return Err(KeyError::Unknown(name.to_owned())),
        Err(key::KeyProblem::Combination) => {
            return Err(KeyError::NoSuchCombination(name.to_owned()));
        }
    }
    Ok(bytes)
}

/// Returns the bytes for pasting a text: marked as a paste in bracketed mode, otherwise as
/// if typed.
#[must_use]
pub fn paste(text: &str, modes: Modes) -> Vec<u8> {
    let typed = text.replace("\r\n", "\r").replace('\n', "\r");
    if !modes.bracketed_paste {
        return typed.into_bytes();
    }
    // An ESC inside could end the paste early and turn the rest into commands.
    let inner = typed.replace('\x1b', "");
    format!("\x1b[200~{inner}\x1b[201~").into_bytes()
}

fn write_char(ch: char, bytes: &mut Vec<u8>) {
    // Enter sends a carriage return.
    let ch = if ch == '\n' { '\r' } else { ch };
    bytes.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Returns the name between `<` and `>`, if the text there looks like one.
fn name_at(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?;
    let end = inner.bytes().take(LONGEST_NAME + 1).position(|byte| byte == b'>')?;
    let name = &inner[..end];
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric();
    let (last, front) = name.as_bytes().split_last()?;
    let is_name = match front.split_first() {
        None => last.is_ascii_alphabetic(),
        Some((first, middle)) => {
            first.is_ascii_alphabetic()
                && middle.iter().all(|byte| is_letter(*byte) || matches!(byte, b'-' | b'+'))
                // Ctrl also combines with some punctuation.
                && (is_letter(*last)
                    || (front.ends_with(b"-") && last.is_ascii_graphic() && *last != b'<'))
        }
    };
    is_name.then_some(name)
}

#[cfg(test)]
mod tests;
