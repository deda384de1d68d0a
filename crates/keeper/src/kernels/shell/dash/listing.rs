//! Parses the state of a POSIX shell, as printed by capture.sh.

use super::super::quoting::{Assigned, Listing};
use super::super::view::{Limit, Trap, View, limits, lossy, users_traps};

/// Everything that the shell has listed of itself.
#[derive(Debug)]
pub(super) struct State<'a> {
    pub(super) traps: Vec<Trap>,
    /// Commands that set each option, as the shell prints them.
    pub(super) options: Vec<&'a str>,
    pub(super) aliases: Vec<(Vec<u8>, Vec<u8>)>,
    /// Functions that the keeper knows of.
    pub(super) functions: Vec<String>,
    pub(super) cwd: &'a [u8],
    pub(super) umask: String,
    pub(super) limits: Vec<Limit>,
    pub(super) exported: Vec<&'a str>,
    pub(super) readonly: Vec<&'a str>,
    pub(super) variables: Vec<(&'a str, Vec<u8>)>,
    pub(super) arguments: Vec<&'a [u8]>,
}

impl<'a> State<'a> {
    /// Returns `None` for an incomplete capture, or for other bytes.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let sections: Vec<&[u8]> = bytes.strip_suffix(b"\0")?.split(|b| *b == 0).collect();
        let (sections, rest) = sections.split_first_chunk()?;
        let [
            traps,
            options,
            aliases,
            functions,
            cwd,
            umask,
            soft,
            hard,
            exported,
            readonly,
            variables,
        ] = sections;
        let (end, arguments) = rest.split_last()?;
        let options = std::str::from_utf8(options).ok()?;
        Some(Self {
            traps: users_traps(traps),
            options: options.lines().filter(|line| is_carried(line)).collect(),
            aliases: assignments(aliases).into_iter().collect(),
            functions: lossy(functions).lines().filter_map(function).collect(),
            cwd: cwd.strip_suffix(b"\n").unwrap_or(cwd),
            umask: lossy(umask).trim_end().to_owned(),
            limits: limits(soft, hard, limit),
            exported: names("export ", exported),
            readonly: names("readonly ", readonly),
            variables: self::variables(variables),
            arguments: arguments.to_vec(),
        })
        .filter(|_| *end == b"end")
    }

    pub(super) fn view(&self) -> View {
        let mut view = View::of(self.cwd, &self.umask);
        for (name, value) in &self.variables {
            if self.exported.contains(name) {
                view.exported(name, value);
            } else if !is_usual(name, value) {
                view.variable(name, &Assigned::Word { printed: b"", plain: value.clone() });
            }
        }
        self.functions.iter().for_each(|function| view.function(function));
        self.aliases.iter().for_each(|(name, value)| view.alias(&lossy(name), value));
        self.arguments.iter().for_each(|argument| view.argument(argument));
        self.traps.iter().for_each(|trap| view.trap(&trap.name, &trap.text));
        self.limits.iter().for_each(|limit| view.limit(limit));
        let on = self.options.iter().filter_map(|line| line.strip_prefix("set -o "));
        on.filter(|name| !USUALLY_ON.contains(name)).for_each(|name| view.option(name, true));
        view
    }
}

/// Options that are on in a shell that is not dash.
const USUALLY_ON: [&str; 4] = ["braceexpand", "hashall", "interactive-comments", "posix"];

/// Whether an option is restored. Not restored are facts about the process, and options
/// that would keep it from taking further commands.
fn is_carried(line: &str) -> bool {
    let not =
        ["debug", "interactive", "noexec", "nolog", "onecmd", "privileged", "restricted", "stdin"];
    line.rsplit(' ').next().is_some_and(|name| !not.contains(&name))
}

/// Whether every fresh kernel has this value: worth restoring, not worth showing.
fn is_usual(name: &str, value: &[u8]) -> bool {
    match name {
        "PWD" | "OLDPWD" => true,
        "IFS" => value == b" \t\n",
        "OPTIND" => value == b"1",
        "PS1" => [&b"# "[..], b"$ "].contains(&value),
        "PS2" => value == b"> ",
        "PS4" => value == b"+ ",
        _ => false,
    }
}

/// Parses the output of `command -V`.
fn function(line: &str) -> Option<String> {
    let name = line.strip_suffix(" is a shell function");
    name.or_else(|| line.strip_suffix(" is a function")).map(str::to_owned)
}

/// Parses a limit. dash has its own names for limits; others print the letter by which
/// they are set.
fn limit(line: &str) -> Option<(char, &str)> {
    let (name, value) = line.trim_end().rsplit_once([' ', '\t'])?;
    let name = name.trim_end();
    let flag = match name.split('(').next()? {
        "time" => 't',
        "file" => 'f',
        "data" => 'd',
        "stack" => 's',
        "coredump" => 'c',
        "memory" => 'm',
        "locked memory" => 'l',
        "process" => 'p',
        "nofiles" => 'n',
        "vmemory" => 'v',
        "locks" => 'w',
        "rtprio" => 'r',
        _ => match name.strip_prefix('-') {
            Some(rest) => rest.chars().next()?,
            None => name.strip_suffix(')')?.chars().next_back()?,
        },
    };
    Some((flag, value))
}

/// Returns the names in a listing of commands: `export NAME='value'`.
fn names<'a>(command: &str, listing: &'a [u8]) -> Vec<&'a str> {
    let mut listing = Listing::new(listing);
    let mut names = Vec::new();
    while listing.skip(command) {
        let name = std::str::from_utf8(listing.before(b"=\n"));
        let is_whole = listing.assigned().is_some();
        listing.line();
        names.extend(name.ok().filter(|name| is_whole && is_name(name)));
    }
    names
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.starts_with(|c: char| !c.is_ascii_digit())
        && name != "_"
}

fn variables(listing: &[u8]) -> Vec<(&str, Vec<u8>)> {
    let mut listing = Listing::new(listing);
    let mut variables = Vec::new();
    while !listing.is_empty() {
        let name = std::str::from_utf8(listing.before(b"=\n")).ok().filter(|name| is_name(name));
        let value = listing.assigned();
        listing.line();
        match (name, value) {
            (Some("PPID" | "LINENO"), _) => {}
            (Some(name), Some(Assigned::Word { plain, .. })) => variables.push((name, plain)),
            (_, Some(Assigned::Nothing | Assigned::Word { .. } | Assigned::List { .. }) | None) => {
            }
        }
    }
    variables
}

/// Parses aliases: `NAME='value'`, with `alias` before it in bash.
fn assignments(listing: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut listing = Listing::new(listing);
    let mut found = Vec::new();
    while !listing.is_empty() {
        listing.skip("alias ");
        let Some(entry) = listing.word() else { break };
        listing.line();
        if let Some(at) = entry.iter().position(|b| *b == b'=') {
            found.push((entry[..at].to_vec(), entry[at + 1..].to_vec()));
        }
    }
    found
}
