//! Parses the state of a zsh, as printed by capture.zsh.

use super::super::quoting::{Assigned, Listing};
use super::super::view::{Limit, Trap, View, limits, lossy, users_traps};
use super::names::{
    DYNAMIC, DYNAMIC_ARRAYS, FACTS, FACTS_OF_START, NUMBERS, ON_BY_DEFAULT, STARTED_OTHERWISE,
    TIED, USUAL,
};

/// Everything that a zsh has listed of itself.
#[derive(Debug)]
pub(super) struct State<'a> {
    /// Each by its name, and whether it is on.
    pub(super) options: Vec<(&'a str, bool)>,
    pub(super) traps: Vec<Trap>,
    pub(super) cwd: &'a [u8],
    pub(super) umask: String,
    pub(super) modules: Vec<&'a str>,
    pub(super) limits: Vec<Limit>,
    pub(super) aliases: Vec<Alias>,
    pub(super) directories: Vec<&'a [u8]>,
    /// Commands, as zsh prints them.
    pub(super) named_directories: &'a [u8],
    pub(super) styles: &'a [u8],
    pub(super) functions: Vec<Function<'a>>,
    pub(super) variables: Vec<Variable<'a>>,
    pub(super) arguments: Vec<Vec<u8>>,
}

#[derive(Debug)]
pub(super) struct Alias {
    /// `-g` or `-s`.
    pub(super) kind: Option<&'static str>,
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Function<'a> {
    pub(super) name: Vec<u8>,
    pub(super) text: &'a [u8],
}

#[derive(Debug)]
pub(super) struct Variable<'a> {
    pub(super) name: &'a str,
    pub(super) is_exported: bool,
    /// As one word, for example `a` for an array.
    pub(super) attributes: String,
    /// The array that has the same value as this string, by its elements.
    pub(super) tied: Option<&'a str>,
    /// The separator of the elements in the string.
    pub(super) separator: Option<Vec<u8>>,
    pub(super) value: Assigned<'a>,
}

impl<'a> State<'a> {
    /// Returns `None` for an incomplete capture, or for other bytes.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let sections: Vec<&[u8]> = bytes.strip_suffix(b"\0")?.split(|b| *b == 0).collect();
        let [
            options,
            traps,
            cwd,
            umask,
            modules,
            soft,
            hard,
            aliases,
            directories,
            named_directories,
            styles,
            names,
            functions,
            variables,
            b"end",
        ] = sections[..]
        else {
            return None;
        };
        let mut functions = self::functions(names, functions)?;
        functions.extend(dropped(traps, &functions));
        let (variables, arguments) = self::variables(variables)?;
        Some(Self {
            options: self::options(options)?,
            traps: users_traps(traps),
            cwd: cwd.strip_suffix(b"\n").unwrap_or(cwd),
            umask: lossy(umask).trim_end().to_owned(),
            modules: std::str::from_utf8(modules).ok()?.lines().collect(),
            limits: limits(soft, hard, |line| {
                let (flag, rest) = line.strip_prefix('-')?.split_once(": ")?;
                Some((flag.parse().ok()?, rest.rsplit(' ').next()?))
            }),
            aliases: self::aliases(aliases),
            // The first is the working directory.
            directories: directories
                .split(|b| *b == b'\n')
                .skip(1)
                .filter(|d| !d.is_empty())
                .collect(),
            named_directories,
            styles,
            functions,
            variables,
            arguments,
        })
    }

    pub(super) fn view(&self) -> View {
        let mut view = View::of(self.cwd, &self.umask);
        self.variables.iter().for_each(|variable| variable.show(&mut view));
        self.functions.iter().for_each(|function| view.function(&lossy(&function.name)));
        for alias in self.aliases.iter().filter(|alias| !alias.is_usual()) {
            let kind = alias.kind.map(|kind| format!("{kind} ")).unwrap_or_default();
            view.alias(&(kind + &lossy(&alias.name)), &alias.value);
        }
        self.arguments.iter().for_each(|argument| view.argument(argument));
        self.traps.iter().for_each(|trap| view.trap(&trap.name, &trap.text));
        self.limits.iter().for_each(|limit| view.limit(limit));
        for (name, is_on) in &self.options {
            let is_usual = ON_BY_DEFAULT.contains(name) == *is_on;
            if is_usual == STARTED_OTHERWISE.contains(name) && !FACTS_OF_START.contains(name) {
                view.option(name, *is_on);
            }
        }
        view
    }
}

impl Alias {
    /// Whether every zsh has it.
    fn is_usual(&self) -> bool {
        let usual: [(&[u8], &[u8]); 2] = [(b"run-help", b"man"), (b"which-command", b"whence")];
        self.kind.is_none() && usual.contains(&(&self.name, &self.value))
    }
}

impl Variable<'_> {
    fn is_carried(&self) -> bool {
        let is_fact = FACTS.contains(&self.name) || self.name.starts_with("ZSH_");
        let is_name = self.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_name
            && !self.name.starts_with("__sessile_")
            && !DYNAMIC.contains(&self.name)
            && !DYNAMIC_ARRAYS.contains(&self.name)
            && (self.is_exported || !is_fact)
            // The second half of a pair comes with the first.
            && !(self.tied.is_some() && self.attributes.contains('a'))
    }

    fn show(&self, view: &mut View) {
        let is_usual =
            USUAL.contains(&self.name) || TIED.contains(&self.name) || NUMBERS.contains(&self.name);
        match &self.value {
            // A value can contain NUL (IFS does), the environment cannot.
            Assigned::Word { plain, .. } if self.is_exported => {
                view.exported(self.name, plain.split(|b| *b == 0).next().unwrap_or_default());
            }
            Assigned::List { printed } if self.is_exported && self.tied.is_some() => {
                let separator = self.separator.as_deref().unwrap_or(b":");
                view.exported(self.name, &elements(printed).unwrap_or_default().join(separator));
            }
            Assigned::Word { plain, .. } if self.name == "IFS" && plain != b" \t\n\0" => {
                view.variable(self.name, &self.value);
            }
            Assigned::Nothing | Assigned::Word { .. } | Assigned::List { .. } if is_usual => {}
            value @ (Assigned::Nothing | Assigned::Word { .. } | Assigned::List { .. }) => {
                view.variable(self.name, value);
            }
        }
    }
}

/// Parses lines such as `set -o NAME`: an option that is usually on is listed by what
/// turns it off. The last line may contain the value of an option before it was turned
/// off for the capture.
fn options(listing: &[u8]) -> Option<Vec<(&str, bool)>> {
    let mut options: Vec<(&str, bool)> = Vec::new();
    for line in std::str::from_utf8(listing).ok()?.lines() {
        if line == "xtrace on" {
            options.retain(|(name, _)| *name != "xtrace");
            options.push(("xtrace", true));
        }
        let Some((sign, name)) = line.strip_prefix("set ").and_then(|l| l.split_once("o ")) else {
            continue;
        };
        match name.strip_prefix("no") {
            Some(usual) if !["match", "tify"].contains(&usual) => {
                options.push((usual, sign == "+"));
            }
            Some(_) | None => options.push((name, sign == "-")),
        }
    }
    Some(options)
}

/// Parses `alias -g NAME=VALUE`, each a quoted word.
fn aliases(listing: &[u8]) -> Vec<Alias> {
    let mut listing = Listing::new(listing);
    let mut aliases = Vec::new();
    while listing.skip("alias ") {
        let kind = ["-g", "-s"].into_iter().find(|kind| listing.skip(kind));
        listing.skip(" ");
        listing.skip("-- ");
        let Some(entry) = listing.word() else { break };
        listing.line();
        if let Some(at) = entry.iter().position(|b| *b == b'=') {
            aliases.push(Alias {
                kind,
                name: entry[..at].to_vec(),
                value: entry[at + 1..].to_vec(),
            });
        }
    }
    aliases
}

/// Parses the functions' names, and their texts one after another in the same order. A
/// text begins with a line `NAME () {`.
fn functions<'a>(names: &'a [u8], texts: &'a [u8]) -> Option<Vec<Function<'a>>> {
    let mut functions: Vec<(Vec<u8>, usize)> = Vec::new();
    let mut at = 0;
    for name in names.split(|b| *b == b'\n').filter(|name| !name.is_empty()) {
        while !begins(name, texts.get(at..)?) {
            at += texts[at..].iter().position(|b| *b == b'\n')? + 1;
        }
        functions.push((name.to_vec(), at));
        at += 1;
    }
    let ends: Vec<usize> =
        functions.iter().skip(1).map(|(_, start)| *start).chain([texts.len()]).collect();
    let function = |((name, start), end)| Function { name, text: &texts[start..end] };
    Some(functions.into_iter().zip(ends).map(function).collect())
}

fn begins(name: &[u8], text: &[u8]) -> bool {
    let mut line = Listing::new(text);
    line.word().is_some_and(|word| word == name) && line.skip(" () {\n")
}

/// Returns trap functions that are only in the listing of traps: a fork drops some of
/// them, such as TRAPINT.
fn dropped<'a>(traps: &'a [u8], known: &[Function<'_>]) -> Vec<Function<'a>> {
    let mut found = Vec::new();
    let mut rest = traps;
    while !rest.is_empty() {
        let mut line = Listing::new(rest);
        let name = line.before(b" \n").to_vec();
        let is_function = name.starts_with(b"TRAP") && line.skip(" () {\n");
        let end = match find(rest, b"\n}\n") {
            Some(end) if is_function => end + 3,
            None if is_function => rest.len(),
            Some(_) | None => find(rest, b"\n").map_or(rest.len(), |end| end + 1),
        };
        if is_function && !known.iter().any(|function| function.name == name) {
            found.push(Function { name, text: &rest[..end] });
        }
        rest = &rest[end..];
    }
    found
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

type Variables<'a> = (Vec<Variable<'a>>, Vec<Vec<u8>>);

/// Parses `typeset -ATTRIBUTES NAME=VALUE`, or `export …`. The positional parameters are
/// among them, behind the name of the capture.
fn variables(listing: &[u8]) -> Option<Variables<'_>> {
    let mut listing = Listing::new(listing);
    let (mut variables, mut arguments): Variables<'_> = Default::default();
    let mut unique = Vec::new();
    while !listing.is_empty() {
        let command = listing.before(b" \n");
        listing.skip(" ");
        let mut attributes = String::new();
        while listing.skip("-") {
            attributes.push_str(std::str::from_utf8(listing.before(b" \n")).ok()?);
            listing.skip(" ");
        }
        let mut name = std::str::from_utf8(listing.before(b"= \n")).ok()?;
        let mut tied = None;
        if attributes.contains('T') {
            listing.skip(" ");
            let other = std::str::from_utf8(listing.before(b"= \n")).ok()?;
            if attributes.contains('a') {
                name = other;
            }
            tied = Some(other);
        }
        if attributes.contains('T') && attributes.contains('U') {
            unique.push(name);
        }
        let value = listing.assigned()?;
        listing.skip(" ");
        let separator = listing.word()?;
        listing.line();
        if name == "argv"
            && let Assigned::List { printed } = value
        {
            arguments = elements(printed)?.split_off(1);
            continue;
        }
        let variable = Variable {
            name,
            is_exported: command == b"export" || attributes.contains('x'),
            attributes,
            tied,
            separator: Some(separator).filter(|word| !word.is_empty()),
            value,
        };
        if variable.is_carried() {
            variables.push(variable);
        }
    }
    for variable in &mut variables {
        if variable.tied.is_some_and(|array| unique.contains(&array)) {
            variable.attributes.push('U');
        }
    }
    Some((variables, arguments))
}

/// Returns the elements of an array that was printed in parentheses; for an associative
/// one, each key followed by its value.
pub(super) fn elements(printed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut list = Listing::new(printed);
    let mut elements = Vec::new();
    list.skip("(");
    loop {
        while list.skip(" ") || list.skip("\n") {}
        if list.skip(")") {
            return Some(elements);
        }
        if let Some(key) = list.key() {
            elements.push(key);
        }
        elements.push(list.word()?);
    }
}
