//! The state of a shell as users and programs see it.

use super::quoting::{Assigned, Listing};
use super::{MARK, ROOM};
use crate::labels::is_label;
use serde_json::{Map, Value};

/// Prompts that show nothing, with which a kernel is started.
const PROMPTS: [&str; 3] = [r"\[\]", "%{%}", ""];

/// How a shell prints that there is no limit.
const UNLIMITED: &str = "unlimited";

/// A shell's state: for people, and as a text that restores it.
#[derive(Debug)]
pub(super) struct Interpreted {
    pub(super) view: Map<String, Value>,
    pub(super) restore: String,
}

#[derive(Debug, Default)]
pub(super) struct View {
    working_dir: String,
    umask: String,
    env: Map<String, Value>,
    variables: Map<String, Value>,
    functions: Vec<Value>,
    aliases: Map<String, Value>,
    options: Map<String, Value>,
    traps: Map<String, Value>,
    limits: Map<String, Value>,
    arguments: Vec<Value>,
}

impl View {
    pub(super) fn of(working_dir: &[u8], umask: &str) -> Self {
        Self { working_dir: lossy(working_dir), umask: umask.to_owned(), ..Self::default() }
    }

    pub(super) fn exported(&mut self, name: &str, value: &[u8]) {
        self.env.insert(name.to_owned(), lossy(value).into());
    }

    pub(super) fn variable(&mut self, name: &str, value: &Assigned<'_>) {
        let text = match value {
            Assigned::Nothing => String::new(),
            Assigned::Word { plain, .. } => lossy(plain),
            Assigned::List { printed } => lossy(printed),
        };
        let is_ours = name == "PS1" && PROMPTS.contains(&text.as_str());
        if !is_ours {
            self.variables.insert(name.to_owned(), text.into());
        }
    }

    pub(super) fn function(&mut self, name: &str) {
        self.functions.push(name.into());
    }

    pub(super) fn alias(&mut self, name: &str, value: &[u8]) {
        self.aliases.insert(name.to_owned(), lossy(value).into());
    }

    pub(super) fn option(&mut self, name: &str, is_on: bool) {
        self.options.insert(name.to_owned(), if is_on { "on" } else { "off" }.into());
    }

    pub(super) fn trap(&mut self, name: &str, text: &[u8]) {
        self.traps.insert(name.to_owned(), lossy(text).into());
    }

    pub(super) fn argument(&mut self, value: &[u8]) {
        self.arguments.push(lossy(value).into());
    }

    pub(super) fn limit(&mut self, limit: &Limit) {
        let soft = if limit.is_label() { UNLIMITED } else { &limit.soft };
        self.limits.insert(format!("-{}", limit.flag), format!("{soft} {}", limit.hard).into());
    }

    pub(super) fn finish(self) -> Map<String, Value> {
        let mut view = Map::new();
        let mut put = |name: &str, value: Value| view.insert(name.to_owned(), value);
        put("working_dir", self.working_dir.into());
        put("umask", self.umask.into());
        // Readers rely on the next four, empty or not.
        put("env_vars", self.env.into());
        put("functions", self.functions.into());
        put("aliases", self.aliases.into());
        put("variables", self.variables.into());
        for (name, section) in
            [("options", self.options), ("traps", self.traps), ("limits", self.limits)]
        {
            if !section.is_empty() {
                put(name, section.into());
            }
        }
        if !self.arguments.is_empty() {
            put("arguments", self.arguments.into());
        }
        view
    }
}

/// One of a process's limits, as `ulimit` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) flag: char,
    pub(super) soft: String,
    pub(super) hard: String,
}

impl Limit {
    /// Whether it is the label of a session's processes (a kernel starts with its own).
    pub(super) fn is_label(&self) -> bool {
        self.flag == 'R' && is_label(&self.soft)
    }

    /// Whether a new kernel should have it. It starts with its own label, and with fewer
    /// files there would be no room for a run.
    pub(super) fn is_carried(&self) -> bool {
        let has_no_room = || self.soft.parse::<u64>().is_ok_and(|files| files < ROOM);
        match self.flag {
            'R' => !self.is_label() && self.soft != UNLIMITED,
            'n' => !has_no_room(),
            _ => true,
        }
    }
}

/// Parses the output of `ulimit -S -a` and `ulimit -H -a`, line by line. The form depends
/// on the shell.
pub(super) fn limits(
    soft: &[u8],
    hard: &[u8],
    read: fn(&str) -> Option<(char, &str)>,
) -> Vec<Limit> {
    let (soft, hard) = (lossy(soft), lossy(hard));
    let values = |listing: &str| -> Vec<(char, String)> {
        let entries = listing.lines().filter_map(read);
        entries.map(|(flag, value)| (flag, value.trim().to_owned())).collect()
    };
    let hard = values(&hard);
    let pairs = values(&soft).into_iter().filter_map(|(flag, soft)| {
        let hard = hard.iter().find(|(other, _)| *other == flag)?.1.clone();
        Some(Limit { flag, soft, hard })
    });
    let mut limits: Vec<Limit> = pairs.collect();
    // This limit may forbid the remaining steps, so it comes last.
    limits.sort_by_key(|limit| limit.flag == 'f');
    limits
}

/// Returns a shell's text, which may be any bytes.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A trap as `trap` lists it: `trap -- 'text' NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trap {
    pub(super) name: String,
    pub(super) text: Vec<u8>,
}

impl Trap {
    fn is_ours(&self) -> bool {
        memchr::memmem::find(&self.text, MARK.as_bytes()).is_some()
    }
}

/// Returns the user's traps of a listing.
pub(super) fn users_traps(listing: &[u8]) -> Vec<Trap> {
    let mut all = traps(listing);
    // `-` is how bash's POSIX mode lists a signal without a trap.
    all.retain(|trap| trap.text != b"-" && !trap.is_ours());
    all
}

/// Returns all traps of a listing, without other contents (zsh's functions).
pub(super) fn traps(listing: &[u8]) -> Vec<Trap> {
    let mut listing = Listing::new(listing);
    let mut traps = Vec::new();
    while !listing.is_empty() {
        let mut entry = listing;
        let trap = entry.skip("trap -- ").then(|| entry.word()).flatten();
        match trap {
            Some(text) if entry.skip(" ") => {
                let name = lossy(entry.line());
                let name = name.strip_prefix("SIG").unwrap_or(&name).to_owned();
                traps.push(Trap { name, text });
                listing = entry;
            }
            Some(_) | None => {
                listing.line();
            }
        }
    }
    traps
}

/// Returns the trap of a signal in a listing.
pub(super) fn trap(listing: &[u8], names: &[&str]) -> Option<String> {
    let found = traps(listing).into_iter().find(|trap| names.contains(&trap.name.as_str()));
    found.map(|trap| lossy(&trap.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_trap_is_found_in_any_shells_listing() {
        let exit_trap = |listing: &str| trap(listing.as_bytes(), &["EXIT", "0"]);
        let bash = "trap -- 'echo '\\''a\nb'\\''' EXIT\ntrap -- '' SIGINT\n";
        assert_eq!(exit_trap(bash).unwrap(), "echo 'a\nb'");
        let dash = "trap -- 'x' INT\ntrap -- 'echo '\"'\"'q' EXIT\n";
        assert_eq!(exit_trap(dash).unwrap(), "echo 'q");
        let zsh = "TRAPINT () {\n\ttrap -- x EXIT\n}\ntrap -- $'echo bye $x\\nit\\'s' EXIT\n";
        assert_eq!(exit_trap(zsh).unwrap(), "echo bye $x\nit's");
        assert_eq!(exit_trap("trap -- x USR1\n"), None);
        assert_eq!(exit_trap("trap -- 'unfinished"), None);
    }
}
