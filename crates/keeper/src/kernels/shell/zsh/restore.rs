//! Builds a text that gives a fresh zsh the state of another one.
//!
//! Everything that could disturb the rest comes last. Each item is independent, so that
//! one which zsh cannot read back affects no other.

use super::super::quoting::{Assigned, quote_bytes};
use super::listing::{State, Variable, elements};
use super::names::{FACTS_OF_START, NUMBERS, TIED};
use std::fmt::Write;

/// Variables of zsh itself: if the old kernel lacks them, the new one loses them.
const UNSET: [&str; 18] = [
    "CDPATH",
    "FIGNORE",
    "FPATH",
    "HOME",
    "IFS",
    "MAILPATH",
    "MANPATH",
    "NULLCMD",
    "OPTARG",
    "OPTIND",
    "PATH",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "READNULLCMD",
    "TERM",
    "WORDCHARS",
];

pub(super) fn script(state: &State<'_>) -> String {
    let mut text = include_str!("restore.zsh").to_owned();
    for name in UNSET {
        if !state.variables.iter().any(|variable| variable.name == name) {
            let _ = writeln!(text, "\\builtin unset -v {name}");
        }
    }
    // The previous directory as well, for `cd -`.
    let before = state.variables.iter().find(|variable| variable.name == "OLDPWD");
    if let Some(Assigned::Word { plain, .. }) = before.map(|variable| &variable.value) {
        let _ = writeln!(text, "\\builtin cd -q -- {}", quote_bytes(plain));
    }
    let _ = writeln!(text, "\\builtin cd -q -- {}", quote_bytes(state.cwd));
    text.push_str("\\builtin unset -v OLDPWD\n");
    for module in state.modules.iter().filter(|name| **name != "zsh/main") {
        let _ = writeln!(text, "\\builtin zmodload {}", quote_bytes(module.as_bytes()));
    }
    state.variables.iter().for_each(|variable| self::variable(variable, &mut text));
    for commands in [state.named_directories, state.styles].iter().filter(|list| !list.is_empty()) {
        let _ = writeln!(text, "\\builtin eval {}", quote_bytes(commands));
    }
    for alias in &state.aliases {
        let word = quote_bytes(&[&alias.name[..], b"=", &alias.value].concat());
        let _ = writeln!(text, "\\builtin alias {} -- {word}", alias.kind.unwrap_or_default());
    }
    let mut last = String::new();
    for function in &state.functions {
        // A function that is a trap would catch the remaining commands.
        let place = if function.name.starts_with(b"TRAP") { &mut last } else { &mut text };
        let _ = match autoloaded(function.text) {
            Some(flags) => {
                writeln!(place, "\\builtin autoload {flags} -- {}", quote_bytes(&function.name))
            }
            None => writeln!(place, "\\builtin eval {}", quote_bytes(function.text)),
        };
    }
    let _ = writeln!(text, "dirstack=({})", words(state.directories.iter()));
    let _ = writeln!(text, "\\builtin set -- {}", words(state.arguments.iter()));
    let _ = writeln!(text, "\\builtin umask {}", state.umask);
    for limit in state.limits.iter().filter(|limit| limit.is_carried()) {
        for (kind, value) in [('S', &limit.soft), ('H', &limit.hard)] {
            let _ = writeln!(text, "\\builtin ulimit -{kind} -{} {value}", limit.flag);
        }
    }
    for module in ["zsh/rlimits", "zsh/parameter"] {
        if !state.modules.contains(&module) {
            let _ = writeln!(text, "\\builtin zmodload -u {module}");
        }
    }
    for trap in &state.traps {
        let place =
            if ["DEBUG", "ZERR"].contains(&trap.name.as_str()) { &mut last } else { &mut text };
        let _ = writeln!(place, "\\builtin trap -- {} {}", quote_bytes(&trap.text), trap.name);
    }
    options(state, &mut text);
    text + &last
}

fn words<'a>(items: impl Iterator<Item = impl AsRef<[u8]> + 'a>) -> String {
    items.map(|item| quote_bytes(item.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Returns the flags of a function that is still to be loaded, which is listed as a call.
fn autoloaded(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, flags) = text.split_once("\n\tbuiltin autoload -X")?;
    let flags = flags.lines().next().unwrap_or_default();
    Some(if flags.is_empty() { String::new() } else { format!("-{flags}") })
}

fn variable(variable: &Variable<'_>, text: &mut String) {
    let name = variable.name;
    if ["PWD", "SHLVL"].contains(&name) {
        return;
    }
    let export = if variable.is_exported { "-x" } else { "+x" };
    let is_own_pair = TIED.contains(&name);
    let _ = match (&variable.value, variable.tied) {
        // Through the array: no elements and one empty element are not the same.
        (Assigned::List { printed }, Some(array)) if is_own_pair => {
            let list = words(elements(printed).unwrap_or_default().iter());
            if variable.attributes.contains('U') {
                let _ = writeln!(text, "typeset -gU {array}");
            }
            writeln!(text, "{array}=({list})\ntypeset -g {export} {name}")
        }
        (Assigned::List { printed }, Some(array)) => {
            let list = words(elements(printed).unwrap_or_default().iter());
            let separator = variable.separator.as_deref().map(quote_bytes).unwrap_or_default();
            let attributes = &variable.attributes;
            writeln!(text, "typeset -g{attributes} {export} {name} {array}=({list}) {separator}")
        }
        (Assigned::List { printed }, None) => {
            let list = words(elements(printed).unwrap_or_default().iter());
            writeln!(text, "typeset -g{} {export} {name}=({list})", variable.attributes)
        }
        (Assigned::Word { plain, .. }, _) if NUMBERS.contains(&name) => {
            writeln!(text, "typeset -g {export} {name}={}", quote_bytes(plain))
        }
        (Assigned::Word { plain, .. }, _) => {
            let attributes = with_precision(&variable.attributes, plain);
            writeln!(text, "typeset -g{attributes} {export} {name}={}", quote_bytes(plain))
        }
        (Assigned::Nothing, _) => {
            writeln!(text, "typeset -g{} {export} {name}", variable.attributes)
        }
    };
    if is_own_pair && variable.attributes.contains('r') {
        let _ = writeln!(text, "typeset -gr {name}");
    }
}

/// Adds the number of digits to the attributes: zsh leaves it out, but the value shows
/// it.
fn with_precision(attributes: &str, value: &[u8]) -> String {
    let fraction = value.iter().skip_while(|b| **b != b'.').skip(1);
    let digits = fraction.take_while(|b| b.is_ascii_digit()).count();
    let add = |kind: char, digits: usize| attributes.replace(kind, &format!("{kind}{digits}"));
    match attributes {
        _ if digits == 0 => attributes.to_owned(),
        text if text.contains('F') => add('F', digits),
        text if text.contains('E') => add('E', digits + 1),
        text => text.to_owned(),
    }
}

fn options(state: &State<'_>, text: &mut String) {
    // These would affect the remaining commands.
    let is_last = |name: &str| name.starts_with("err") || ["verbose", "xtrace"].contains(&name);
    let carried = state
        .options
        .iter()
        .filter(|(name, _)| *name == "monitor" || !FACTS_OF_START.contains(name));
    let (last, first): (Vec<_>, Vec<_>) = carried.partition(|(name, _)| is_last(name));
    for (command, wanted) in [("unsetopt", false), ("setopt", true)] {
        let names = |options: &[&(&str, bool)]| -> Vec<String> {
            let those = options.iter().filter(|(_, is_on)| *is_on == wanted);
            those.map(|(name, _)| (*name).to_owned()).collect()
        };
        let _ = writeln!(text, "\\builtin {command} {}", names(&first).join(" "));
    }
    for (name, is_on) in last {
        let _ = writeln!(text, "\\builtin {} {name}", if *is_on { "setopt" } else { "unsetopt" });
    }
}
