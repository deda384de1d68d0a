//! Removes the name of the file with a run's text from the shell's own messages.
//!
//! A shell names the file in its error messages. It is one of our files, whose name means
//! nothing to the author of the text. So the name is left out where such a message begins
//! a line of the run's stderr, and the message reads as if the shell had read the text
//! from its stdin.
//!
//! dash writes a message in pieces, so that two jobs which fail at once may share a line.
//! The first piece, `sh: 3: FILE: `, is one write: it is recognized anywhere.
//!
//! Nothing else is changed: other mentions of the file are the user's own.

/// A shell's name for itself, and for the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OwnName {
    shell: Vec<u8>,
    file: Vec<u8>,
}

/// Replacement of a part of a line.
struct Change<'a> {
    from: usize,
    to: usize,
    by: &'a [u8],
}

impl OwnName {
    pub(crate) fn new(shell: &str, file: String) -> Self {
        Self { shell: shell.into(), file: file.into() }
    }

    /// Returns the output without the name of the file; `None` if the name is not in it.
    /// The first line counts only if the output begins a line.
    pub(crate) fn leave_out(&self, bytes: &[u8], begins_line: bool) -> Option<Vec<u8>> {
        let mut shown: Option<Vec<u8>> = None;
        let mut taken = 0;
        for at in memchr::memmem::find_iter(bytes, &self.file) {
            let line = memchr::memrchr(b'\n', &bytes[..at]).map(|end| end + 1);
            let line = line.or_else(|| begins_line.then_some(0));
            let change = line.and_then(|line| self.change(bytes, line, at));
            let Some(change) = change.or_else(|| self.piece(bytes, at)) else { continue };
            let shown = shown.get_or_insert_default();
            shown.extend_from_slice(&bytes[taken..change.from]);
            shown.extend_from_slice(change.by);
            taken = change.to;
        }
        let mut shown = shown?;
        shown.extend_from_slice(&bytes[taken..]);
        Some(shown)
    }

    /// Returns the change if the line is a message with the file's name at this place.
    fn change(&self, bytes: &[u8], line: usize, at: usize) -> Option<Change<'_>> {
        let (before, end) = (&bytes[line..at], at + self.file.len());
        let after = &bytes[end..];
        let without = Change { from: at, to: end + ": ".len(), by: b"" };
        if before.is_empty() {
            return is_placed(after).then_some(Change { from: at, to: end, by: &self.shell });
        }
        let before = before.strip_prefix(self.shell.as_slice())?.strip_prefix(b": ")?;
        // bash: `bash: FILE: line 3: syntax error`.
        (before.is_empty() && after.starts_with(b": line ")).then_some(without)
    }

    /// Returns the change if the name is in the first piece of a dash message:
    /// `sh: 3: FILE: `.
    fn piece(&self, bytes: &[u8], at: usize) -> Option<Change<'_>> {
        let before = bytes[..at].strip_suffix(b": ")?;
        let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (before, number) = before.split_at(before.len() - digits);
        before.strip_suffix(b": ")?.strip_suffix(self.shell.as_slice())?;
        let end = at + self.file.len();
        let is_piece = is_number(number) && bytes[end..].starts_with(b": ");
        is_piece.then_some(Change { from: at, to: end + ": ".len(), by: b"" })
    }
}

/// Whether a line that begins with the file continues with a position in it. bash writes
/// `FILE: line 3: nosuch: command not found` for background commands, zsh
/// `FILE:3: parse error` and `FILE:cd:3: no such file`.
fn is_placed(after: &[u8]) -> bool {
    let Some(after) = after.strip_prefix(b":") else { return false };
    let mut parts = after.split(|byte| *byte == b':');
    let first = parts.next().unwrap_or_default();
    if let Some(number) = first.strip_prefix(b" line ") {
        return is_number(number) && parts.next().is_some();
    }
    let is_word = !first.iter().any(u8::is_ascii_whitespace);
    is_number(first) || is_word && parts.next().is_some_and(is_number)
}

fn is_number(part: &[u8]) -> bool {
    !part.is_empty() && part.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(shell: &str, text: &str) -> String {
        let own = OwnName::new(shell, "/d/c".to_owned());
        let shown = own.leave_out(text.as_bytes(), true);
        shown.map_or(text.to_owned(), |shown| String::from_utf8(shown).unwrap())
    }

    #[test]
    fn messages_read_as_if_the_text_had_come_from_stdin() {
        for (shell, message, wanted) in [
            (
                "bash",
                "bash: /d/c: line 3: syntax error near `fi'\nbash: /d/c: line 3: `fi'\n",
                "bash: line 3: syntax error near `fi'\nbash: line 3: `fi'\n",
            ),
            (
                "bash",
                "/d/c: line 1: nosuch: command not found\n",
                "bash: line 1: nosuch: command not found\n",
            ),
            ("zsh", "x\n/d/c:3: parse error near `fi'\n", "x\nzsh:3: parse error near `fi'\n"),
            ("zsh", "/d/c:cd:1: no such file: /x\n", "zsh:cd:1: no such file: /x\n"),
            ("sh", "sh: 12: /d/c: Syntax error: \"fi\"\n", "sh: 12: Syntax error: \"fi\"\n"),
        ] {
            assert_eq!(shown(shell, message), wanted);
        }
    }

    #[test]
    fn jobs_of_dash_that_fail_at_once_do_not_show_the_file() {
        let mixed = "sh: 1: /d/c: sh: 2: /d/c: a: not foundsh: 3: /d/c: b: not found\n\n";
        assert_eq!(shown("sh", mixed), "sh: 1: sh: 2: a: not foundsh: 3: b: not found\n\n");
        let own = OwnName::new("sh", "/d/c".to_owned());
        let rest = own.leave_out(b"sh: 1: /d/c: x\n", false);
        assert_eq!(rest.as_deref(), Some(&b"sh: 1: x\n"[..]));
    }

    #[test]
    fn what_is_no_message_of_the_shell_is_left_alone() {
        for text in [
            "/d/c\n",
            "see /d/c: line 3: x\n",
            "bash: /d/c: Permission denied\n",
            "bash: /d/cc: line 3: x\n",
            "zsh: /d/c: line 3: x\n",
            "bash: x: /d/c: y\n",
            "/d/c: 3\n",
            "/d/c: line 3\n",
            "/d/c: line x: y\n",
        ] {
            assert_eq!(shown("bash", text), text);
        }
        let own = OwnName::new("bash", "/d/c".to_owned());
        assert_eq!(own.leave_out(b"bash: /d/c: line 3: x\n", false), None);
    }
}
