//! Names in git's form: plain, or in quotes with escapes.

use std::fmt::Write;

/// Returns a path in printable form.
#[must_use]
pub fn quoted(path: &[u8]) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    match std::str::from_utf8(path) {
        Ok(text) if is_plain(text) => text.to_owned(),
        Ok(_) | Err(_) => format!("\"{}\"", escaped(path)),
    }
}

/// Returns it with `a/` or `b/` before it.
pub(crate) fn prefixed(prefix: &str, path: &[u8]) -> String {
    quoted(&[prefix.as_bytes(), path].concat())
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || c == '"' || c == '\\')
}

fn escaped(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len() + 8);
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                c if c.is_control() => {
                    let mut bytes = [0; 4];
                    c.encode_utf8(&mut bytes).bytes().for_each(|byte| octal(&mut text, byte));
                }
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| octal(&mut text, *byte));
    }
    text
}

fn octal(text: &mut String, byte: u8) {
    let _ = write!(text, "\\{byte:03o}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_git_writes_them() {
        for (path, text) in [
            (&b"src/main.rs"[..], "src/main.rs"),
            ("grün".as_bytes(), "grün"),
            (b"a b", "a b"),
            (b"a\nb", "\"a\\nb\""),
            (b"say \"x\"", "\"say \\\"x\\\"\""),
            (b"\xff\x1b[31m", "\"\\377\\033[31m\""),
        ] {
            assert_eq!(quoted(path), text);
        }
    }
}
