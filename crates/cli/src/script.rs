//! The command for a script file that `run` was given in place of a command. No I/O here.

use std::path::Path;

/// How many bytes of a file are searched for its first line.
pub(crate) const FIRST_LINE: usize = 256;

/// Returns the command that runs a file, if it is a script: one with a `#!` line, or with
/// the extension of a language that we know.
///
/// It runs in its own interpreter, as it would anywhere else: with its arguments, its
/// `__main__`, and everything that it waits for before its end.
pub(crate) fn command(
    path: &str,
    head: &[u8],
    interpreter: Option<&str>,
    arguments: &[String],
) -> Option<String> {
    let by_head = || shebang(head).or_else(|| Some(vec![by_extension(path)?.to_owned()]));
    let mut words = match interpreter {
        Some(interpreter) => by_head().map(|_| vec![interpreter.to_owned()])?,
        None => by_head()?,
    };
    // Must not look like an option.
    words.push(if path.starts_with('-') { format!("./{path}") } else { path.to_owned() });
    words.extend(arguments.iter().cloned());
    Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// Returns the interpreter of a `#!` line, with the rest of the line as one argument, as
/// the system parses it.
fn shebang(head: &[u8]) -> Option<Vec<String>> {
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = str::from_utf8(line).ok()?.trim();
    let (interpreter, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let words = [interpreter, rest.trim()];
    let words: Vec<String> =
        words.into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}

fn by_extension(path: &str) -> Option<&'static str> {
    match Path::new(path).extension()?.to_str()? {
        "sh" | "bash" => Some("bash"),
        "zsh" => Some("zsh"),
        "py" => Some("python3"),
        "js" | "mjs" | "cjs" => Some("node"),
        _ => None,
    }
}

/// Quotes a word for every shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str, head: &str, arguments: &[&str]) -> Option<String> {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        command(path, head.as_bytes(), None, &arguments)
    }

    #[test]
    fn a_script_is_known_by_its_first_line_or_its_name() {
        assert_eq!(told("a.py", "print(1)", &[]).unwrap(), "python3 a.py");
        assert_eq!(told("a.mjs", "", &["x"]).unwrap(), "node a.mjs x");
        assert_eq!(told("-a.sh", "", &["it's"]).unwrap(), r"bash ./-a.sh 'it'\''s'");
        let head = "#!/usr/bin/env python3\nprint(1)";
        assert_eq!(told("my tool", head, &[]).unwrap(), "/usr/bin/env python3 'my tool'");
        let head = "#! /bin/sh -eu -x\r\n";
        assert_eq!(told("a.py", head, &[]).unwrap(), "/bin/sh '-eu -x' a.py");
        for (path, head) in [("ls", ""), ("a.txt", "text"), ("a", "#!\n"), ("a", "#!\u{1}")] {
            assert_eq!(told(path, head, &[]).is_some(), head == "#!\u{1}", "{path} {head:?}");
        }
    }

    #[test]
    fn an_interpreter_that_was_asked_for_runs_it() {
        assert_eq!(command("a.py", b"", Some("/opt/python"), &[]).unwrap(), "/opt/python a.py");
        assert_eq!(command("echo", b"", Some("/opt/python"), &[]), None, "no script");
    }
}
