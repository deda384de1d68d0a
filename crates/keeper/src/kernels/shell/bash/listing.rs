//! Parses the state of a bash, as printed by capture.bash.

use super::super::quoting::{Assigned, Listing};
use super::super::view::{Limit, Trap, View, limits, lossy, users_traps};

/// Everything that a bash has listed of itself.
#[derive(Debug)]
pub(super) struct State<'a> {
    pub(super) traps: Vec<Trap>,
    pub(super) disabled: Vec<String>,
    /// `set -o` and `shopt` options that are on.
    pub(super) options: Vec<&'a str>,
    pub(super) shopts: Vec<&'a str>,
    pub(super) cwd: &'a [u8],
    pub(super) umask: String,
    pub(super) limits: Vec<Limit>,
    pub(super) aliases: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) completions: &'a [u8],
    pub(super) functions: Vec<Function<'a>>,
    pub(super) variables: Vec<Variable<'a>>,
    pub(super) directories: Vec<&'a [u8]>,
    pub(super) arguments: Vec<&'a [u8]>,
}

#[derive(Debug)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// `x`, `t`, `r`.
    pub(super) attributes: &'a str,
    pub(super) text: &'a [u8],
}

#[derive(Debug)]
pub(super) struct Variable<'a> {
    pub(super) name: &'a str,
    /// `-` if there are none.
    pub(super) attributes: &'a str,
    pub(super) value: Assigned<'a>,
}

impl<'a> State<'a> {
    /// Returns `None` for an incomplete capture, or for other bytes.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let sections: Vec<&[u8]> = bytes.strip_suffix(b"\0")?.split(|b| *b == 0).collect();
        let (
            [
                first,
                _flags,
                options,
                shopts,
                cwd,
                umask,
                soft,
                hard,
                aliases,
                completions,
                names,
                functions,
                variables,
            ],
            rest,
        ) = sections.split_first_chunk()?;
        let (last, rest) = rest.split_last()?;
        let parting = rest.iter().position(|directory| directory.is_empty())?;
        Some(Self {
            traps: users_traps(first),
            disabled: disabled(first),
            options: names_in(options)?,
            shopts: names_in(shopts)?,
            cwd: cwd.strip_suffix(b"\n").unwrap_or(cwd),
            umask: lossy(umask).trim_end().to_owned(),
            limits: limits(soft, hard, limit),
            aliases: self::aliases(aliases),
            completions,
            functions: self::functions(names, functions)?,
            variables: self::variables(variables)?,
            directories: rest[..parting].to_vec(),
            arguments: rest[parting + 1..].to_vec(),
        })
        .filter(|_| *last == b"end")
    }

    pub(super) fn view(&self) -> View {
        let mut view = View::of(self.cwd, &self.umask);
        for variable in &self.variables {
            variable.show(&mut view);
        }
        self.functions.iter().for_each(|function| view.function(function.name));
        self.aliases.iter().for_each(|(name, value)| view.alias(&lossy(name), value));
        self.arguments.iter().for_each(|argument| view.argument(argument));
        self.traps.iter().for_each(|trap| view.trap(&trap.name, &trap.text));
        self.limits.iter().for_each(|limit| view.limit(limit));
        self.show_options(&mut view);
        view
    }

    fn show_options(&self, view: &mut View) {
        let is_posix = self.options.contains(&"posix");
        for name in self.options.iter().chain(&self.shopts) {
            // POSIX mode and BASH_COMPAT imply these, and are not always listed.
            let is_implied = name.starts_with("compat")
                || (is_posix && ["inherit_errexit", "shift_verbose"].contains(name));
            if !is_implied && !USUALLY_ON.contains(name) && !DEPENDS.contains(name) {
                view.option(name, true);
            }
        }
        let is_on = |name: &str| self.options.contains(&name) || self.shopts.contains(&name);
        USUALLY_ON.iter().filter(|name| !is_on(name)).for_each(|name| view.option(name, false));
    }
}

impl Variable<'_> {
    pub(super) fn has(&self, attribute: char) -> bool {
        self.attributes.contains(attribute)
    }

    fn is_array(&self) -> bool {
        self.has('a') || self.has('A')
    }

    /// Whether it is a fact about the process and not about its state, or computed on
    /// access.
    fn is_dynamic(&self) -> bool {
        DYNAMIC.contains(&self.name)
    }

    fn show(&self, view: &mut View) {
        if let Assigned::Word { plain, .. } = &self.value
            && self.has('x')
            && !self.is_array()
            && !self.has('n')
        {
            view.exported(self.name, plain);
        } else if !USUAL.contains(&self.name) && !self.is_as_in_every_kernel() {
            view.variable(self.name, &self.value);
        }
    }

    fn is_as_in_every_kernel(&self) -> bool {
        DEFAULTS.iter().any(|(name, attributes, value)| {
            let is_value = match &self.value {
                Assigned::Nothing => value.is_none(),
                Assigned::Word { plain, .. } => value.is_some_and(|v| v.as_bytes() == plain),
                Assigned::List { .. } => false,
            };
            *name == self.name && *attributes == self.attributes && is_value
        })
    }
}

/// Options that are on in a fresh kernel.
const USUALLY_ON: [&str; 12] = [
    "braceexpand",
    "hashall",
    "interactive-comments",
    "cmdhist",
    "expand_aliases",
    "extquote",
    "force_fignore",
    "hostcomplete",
    "interactive_comments",
    "progcomp",
    "promptvars",
    "sourcepath",
];

/// Options that are on in a fresh kernel of some versions of bash.
const DEPENDS: [&str; 5] =
    ["checkwinsize", "complete_fullquote", "globasciiranges", "globskipdots", "patsub_replacement"];

const DYNAMIC: [&str; 34] = [
    "BASH",
    "BASHOPTS",
    "BASHPID",
    "BASH_ALIASES",
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_CMDS",
    "BASH_COMMAND",
    "BASH_EXECUTION_STRING",
    "BASH_LINENO",
    "BASH_MONOSECONDS",
    "BASH_SOURCE",
    "BASH_SUBSHELL",
    "BASH_TRAPSIG",
    "BASH_VERSINFO",
    "BASH_VERSION",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SRANDOM",
    "UID",
    "_",
];

/// The same in every fresh kernel: worth restoring, not worth showing.
const USUAL: [&str; 9] = [
    "BASH_LOADABLES_PATH",
    "COLUMNS",
    "HOSTNAME",
    "HOSTTYPE",
    "LINES",
    "MACHTYPE",
    "OSTYPE",
    "SHELL",
    "TERM",
];

/// The same while they have these values.
const DEFAULTS: [(&str, &str, Option<&str>); 11] = [
    ("HISTFILESIZE", "-", Some("500")),
    ("HISTSIZE", "-", Some("500")),
    ("IFS", "-", Some(" \t\n")),
    ("MAILCHECK", "i", Some("60")),
    ("OLDPWD", "x", None),
    ("OPTERR", "-", Some("1")),
    ("OPTIND", "i", Some("1")),
    ("POSIXLY_CORRECT", "-", Some("y")),
    ("PS1", "-", Some(r"\s-\v\$ ")),
    ("PS2", "-", Some("> ")),
    ("PS4", "-", Some("+ ")),
];

/// Parses the lines after the traps: `enable -n NAME`.
fn disabled(listing: &[u8]) -> Vec<String> {
    let lines = listing.rsplit(|b| *b == b'\n').skip_while(|line| line.is_empty());
    lines.map_while(|line| Some(lossy(line.strip_prefix(b"enable -n ")?))).collect()
}

fn names_in(list: &[u8]) -> Option<Vec<&str>> {
    let list = std::str::from_utf8(list).ok()?;
    Some(list.split(':').filter(|name| !name.is_empty()).collect())
}

/// Parses lines such as `open files   (-n) 1024`.
fn limit(line: &str) -> Option<(char, &str)> {
    let (name, value) = line.split_once(") ")?;
    // The size of pipes is no limit.
    let flag = name.chars().next_back().filter(|flag| !"bkpPT".contains(*flag))?;
    Some((flag, value))
}

/// Parses `alias NAME='…'`, with `--` before a name that begins with a dash.
fn aliases(listing: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut listing = Listing::new(listing);
    let mut aliases = Vec::new();
    while listing.skip("alias ") {
        listing.skip("-- ");
        let Some(entry) = listing.word() else { break };
        listing.line();
        if let Some(at) = entry.iter().position(|b| *b == b'=') {
            aliases.push((entry[..at].to_vec(), entry[at + 1..].to_vec()));
        }
    }
    aliases
}

/// Parses `declare -ATTRIBUTES NAME`, with `=…` if it has a value. Before 5.2, values
/// contain newlines.
fn variables(listing: &[u8]) -> Option<Vec<Variable<'_>>> {
    let mut listing = Listing::new(listing);
    let mut variables = Vec::new();
    while listing.skip("declare -") {
        let attributes = std::str::from_utf8(listing.before(b" \n")).ok()?;
        listing.skip(" ");
        let name = std::str::from_utf8(listing.before(b"=\n")).ok()?;
        let value = listing.assigned()?;
        listing.line();
        let variable = Variable { name, attributes, value };
        if !variable.is_dynamic() {
            variables.push(variable);
        }
    }
    listing.is_empty().then_some(variables)
}

/// Parses the functions' names with their attributes, and their texts one after another
/// in the same order. A text begins with a line that contains only its name.
fn functions<'a>(names: &'a [u8], texts: &'a [u8]) -> Option<Vec<Function<'a>>> {
    let names = std::str::from_utf8(names).ok()?;
    let mut starts = Vec::new();
    let mut at = 0;
    for line in names.lines() {
        let (attributes, name) = line.strip_prefix("declare -f")?.split_once(' ')?;
        at = start_of(name, texts, at)?;
        starts.push((name, attributes, at));
        at += name.len();
    }
    let ends = starts.iter().skip(1).map(|(_, _, start)| *start).chain([texts.len()]);
    let functions = starts.iter().zip(ends).map(|((name, attributes, start), end)| {
        let text = &texts[*start..end];
        Function { name, attributes, text: text.strip_suffix(b"\n").unwrap_or(text) }
    });
    Some(functions.collect())
}

fn start_of(name: &str, texts: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let line = texts.get(at..)?;
        let line = line.strip_prefix(b"function ").unwrap_or(line);
        if line.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b" () \n")) {
            return Some(at);
        }
        at += texts[at..].iter().position(|b| *b == b'\n')? + 1;
    }
}
