//! What a shell's capture script writes: KIND NUL NAME NUL VALUE NUL, the last
//! record being `end`.
//!
//! The text comes from a process that user code has had its hands on: nothing
//! of it is trusted to be there or to make sense.

use crate::labels::is_label;
use serde_json::{Map, Value};

/// Prompts that show nothing, as a kernel is started with.
const PROMPTS: [&str; 3] = [r"\[\]", "%{%}", ""];

/// How a shell prints that a limit is none.
const UNLIMITED: &str = "unlimited";

/// A captured shell, as far as the keeper cares.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) view: Map<String, Value>,
    pub(super) restore: String,
    pub(super) exit_trap: Option<String>,
    pub(super) debug_trap: Option<String>,
}

/// The records of a whole capture; `None` for a part of one.
pub(super) fn parse(bytes: &[u8]) -> Option<Captured> {
    let body = bytes.strip_suffix(b"\0")?;
    let fields: Vec<&[u8]> = body.split(|b| *b == 0).collect();
    let (records, rest) = fields.as_chunks::<3>();
    if !rest.is_empty() || records.last()?[0] != b"end" {
        return None;
    }
    let mut captured = Captured::default();
    let mut sections = Sections::default();
    let mut needless = None;
    for [kind, name, value] in records {
        let (name, value) = (lossy(name), lossy(value));
        match *kind {
            b"cwd" => captured.put("working_dir", value),
            b"env" => sections.env.put(name, value),
            b"var" => match plain_value(&value) {
                // Ours, not the user's.
                prompt if name == "PS1" && PROMPTS.contains(&prompt.as_str()) => {}
                plain => sections.variables.put(name, plain),
            },
            b"func" => sections.functions.push(Value::from(name)),
            b"alias" => sections.aliases.put(name, value),
            b"opt" => sections.options.put(name, value),
            b"umask" => captured.put("umask", value.trim_end().to_owned()),
            b"ulimit" => {
                let mut value = value.trim_end().replace('\n', " ");
                if name == "-R"
                    && let Some((soft, hard)) = value.split_once(' ')
                    && (is_label(soft) || soft == UNLIMITED)
                {
                    // A kernel starts with no limit, or with its own label.
                    needless = Some(format!("\n\\builtin ulimit -S -R {soft}\n"));
                    value = format!("{UNLIMITED} {hard}");
                }
                sections.limits.put(name, value);
            }
            b"arg" => sections.arguments.push(Value::from(value)),
            b"job" => sections.jobs.put(name, value),
            b"trap" => {
                match name.as_str() {
                    "EXIT" | "SIGEXIT" => captured.exit_trap = Some(value.clone()),
                    "DEBUG" => captured.debug_trap = Some(value.clone()),
                    _ => {}
                }
                sections.traps.put(name, value);
            }
            b"restore" => captured.restore = value,
            // A record of a newer script.
            _ => {}
        }
    }
    if let Some(line) = needless
        && let Some(at) = captured.restore.rfind(&line)
    {
        captured.restore.replace_range(at..at + line.len(), "\n");
    }
    sections.finish(&mut captured.view);
    Some(captured)
}

impl Captured {
    fn put(&mut self, name: &str, value: String) {
        self.view.insert(name.to_owned(), value.into());
    }
}

#[derive(Default)]
struct Sections {
    env: Map<String, Value>,
    variables: Map<String, Value>,
    functions: Vec<Value>,
    aliases: Map<String, Value>,
    options: Map<String, Value>,
    traps: Map<String, Value>,
    limits: Map<String, Value>,
    jobs: Map<String, Value>,
    arguments: Vec<Value>,
}

impl Sections {
    fn finish(self, view: &mut Map<String, Value>) {
        // The first five are promised to readers, empty or not.
        view.insert("env_vars".into(), self.env.into());
        view.insert("functions".into(), self.functions.into());
        view.insert("aliases".into(), self.aliases.into());
        view.insert("variables".into(), self.variables.into());
        for (name, section) in [
            ("options", self.options),
            ("traps", self.traps),
            ("limits", self.limits),
            ("jobs", self.jobs),
        ] {
            if !section.is_empty() {
                view.insert(name.into(), section.into());
            }
        }
        if !self.arguments.is_empty() {
            view.insert("arguments".into(), self.arguments.into());
        }
    }
}

trait Put {
    fn put(&mut self, name: String, value: String);
}

impl Put for Map<String, Value> {
    fn put(&mut self, name: String, value: String) {
        self.insert(name, value.into());
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The trap of a signal in a listing by `trap`, whose entries read
/// `trap -- 'text' NAME`. zsh lists functions as well.
pub(super) fn trap(listing: &str, names: &[&str]) -> Option<String> {
    let mut rest = listing;
    loop {
        let Some(entry) = rest.strip_prefix("trap -- ") else {
            (_, rest) = rest.split_once('\n')?;
            continue;
        };
        let (text, after) = word(entry)?;
        let (name, next) = after.trim_start_matches(' ').split_once('\n')?;
        if names.contains(&name) {
            return Some(text);
        }
        rest = next;
    }
}

/// The first word of a text, unquoted, and what follows it. Shells list traps
/// in single quotes, and a quote itself as `'\''` or `'"'"'`.
fn word(text: &str) -> Option<(String, &str)> {
    let mut plain = String::new();
    let mut rest = text;
    loop {
        if let Some(ansi) = rest.strip_prefix("$'") {
            let (text, after) = ansi_word(ansi)?;
            plain.push_str(&text);
            rest = after;
            continue;
        }
        rest = match rest.chars().next()? {
            quote @ ('\'' | '"') => {
                let (inside, after) = rest[1..].split_once(quote)?;
                plain.push_str(inside);
                after
            }
            '\\' => {
                let escaped = rest[1..].chars().next()?;
                plain.push(escaped);
                &rest[1 + escaped.len_utf8()..]
            }
            ' ' | '\n' => return Some((plain, rest)),
            other => {
                plain.push(other);
                &rest[other.len_utf8()..]
            }
        };
    }
}

/// The rest of a `$'…'`, as zsh lists traps of several lines.
fn ansi_word(text: &str) -> Option<(String, &str)> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'\'' => return Some((unescape(&text[..at])?, &text[at + 1..])),
            _ => {}
        }
    }
    None
}

/// The value in a declaration such as `declare -- x="41"`, when it is a plain
/// string; the declaration's right side otherwise (an array, say).
fn plain_value(declaration: &str) -> String {
    let value = declaration.split_once('=').map_or("", |(_, value)| value).trim_end_matches('\n');
    unquote(value).unwrap_or_else(|| value.to_owned())
}

/// A word that a shell quoted for itself; `None` when it is more than one
/// quoted string.
fn unquote(word: &str) -> Option<String> {
    if let Some(body) = word.strip_prefix("$'").and_then(|w| w.strip_suffix('\'')) {
        return unescape(body);
    }
    if let Some(body) = word.strip_prefix('"').and_then(|w| w.strip_suffix('"')) {
        let mut plain = String::new();
        let mut chars = body.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => plain.push(chars.next()?),
                '"' => return None,
                c => plain.push(c),
            }
        }
        return Some(plain);
    }
    if let Some(body) = word.strip_prefix('\'').and_then(|w| w.strip_suffix('\'')) {
        let plain = body.replace("'\\''", "\u{0}");
        return (!plain.contains('\'')).then(|| plain.replace('\u{0}', "'"));
    }
    (!word.contains(['\'', '"', '(', '\\', '$'])).then(|| word.to_owned())
}

/// ANSI-C escapes, as in `$'a\nb'`.
fn unescape(body: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = body.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'e' | b'E' => 27,
            b'f' => 12,
            b'v' => 11,
            digit @ b'0'..=b'7' => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(next @ b'0'..=b'7') = rest.peek().copied() {
                        value = value * 8 + u32::from(next - b'0');
                        rest.next();
                    }
                }
                u8::try_from(value).ok()?
            }
            other => other,
        });
    }
    Some(lossy(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_capture_is_none() {
        let whole = b"cwd\0\0/tmp\0var\0x\0declare -- x=\"4\\\"1\"\0end\0\x001\0";
        let captured = parse(whole).unwrap();
        assert_eq!(captured.view["working_dir"], "/tmp");
        assert_eq!(captured.view["variables"]["x"], "4\"1");
        for cut in 0..whole.len() {
            assert!(parse(&whole[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn the_exit_trap_is_found_in_any_shells_listing() {
        let exit_trap = |listing| trap(listing, &["EXIT", "0"]);
        let bash = "trap -- 'echo '\\''a\nb'\\''' EXIT\ntrap -- '' SIGINT\n";
        assert_eq!(exit_trap(bash).unwrap(), "echo 'a\nb'");
        let dash = "trap -- 'x' INT\ntrap -- 'echo '\"'\"'q' EXIT\n";
        assert_eq!(exit_trap(dash).unwrap(), "echo 'q");
        let zsh = "trap -- $'echo bye $x\\nit\\'s' EXIT\n";
        assert_eq!(exit_trap(zsh).unwrap(), "echo bye $x\nit's");
        assert_eq!(exit_trap("trap -- x USR1\n"), None);
        assert_eq!(exit_trap("trap -- 'unfinished"), None);
    }

    #[test]
    fn values_are_shown_as_the_user_set_them() {
        assert_eq!(plain_value("declare -- x=\"a\\$b\""), "a$b");
        assert_eq!(plain_value("declare -- x=$'a\\n\\303\\251'"), "a\né");
        assert_eq!(plain_value("typeset x='it'\\''s'"), "it's");
        assert_eq!(plain_value("declare -a a=([0]=\"1\" [1]=\"2\")"), "([0]=\"1\" [1]=\"2\")");
        assert_eq!(plain_value("typeset n=5"), "5");
    }
}
