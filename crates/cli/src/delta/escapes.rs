//! Text with escapes, for `delta-sessions-pty write`.

/// Replaces `\n`, `\t`, `\x1b`, `\u001b` and the like; `\\` is a backslash. Anything else
/// stays as it is.
pub(super) fn parse(text: &str) -> String {
    let mut parsed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        parsed.push_str(before);
        let (read, length) = one(after).unwrap_or(('\\', 0));
        parsed.push(read);
        rest = &after[length..];
    }
    parsed.push_str(rest);
    parsed
}

/// Returns the character of an escape, and its length behind the backslash.
fn one(after: &str) -> Option<(char, usize)> {
    let simple = |read| Some((read, 1));
    match after.as_bytes().first()? {
        b'\\' => simple('\\'),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'b' => simple('\x08'),
        b'f' => simple('\x0c'),
        b'v' => simple('\x0b'),
        b'x' => hexadecimal(after, 2),
        b'u' => hexadecimal(after, 4),
        _ => None,
    }
}

fn hexadecimal(after: &str, digits: usize) -> Option<(char, usize)> {
    let digits = after.get(1..=digits)?;
    let is_number = digits.bytes().all(|b| b.is_ascii_hexdigit());
    let code = is_number.then(|| u32::from_str_radix(digits, 16).ok())??;
    Some((char::from_u32(code)?, 1 + digits.len()))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn escapes_are_what_they_stand_for() {
        assert_eq!(parse(r"ls -la\n"), "ls -la\n");
        assert_eq!(parse(r"\x1b[A\u001b[B\t"), "\x1b[A\x1b[B\t");
        assert_eq!(parse(r"a\\nb"), r"a\nb");
        assert_eq!(parse(r"\q \x1 \xzz \u12 \"), r"\q \x1 \xzz \u12 \");
        assert_eq!(parse("plain ü\n"), "plain ü\n");
    }
}
