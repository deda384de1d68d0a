//! Builds a text that gives a fresh bash the state of another one.
//!
//! Everything that could disturb the rest comes last: attributes that forbid or change
//! values, options, traps, a function called `builtin`. Each item is independent, so that
//! one which bash cannot read back affects no other.

use super::super::quoting::{Assigned, quote_bytes};
use super::super::view::lossy;
use super::listing::{State, Variable};
use std::fmt::Write;

/// Options that would keep a kernel from taking further commands, and facts about the
/// process.
const NOT_CARRIED: [&str; 7] =
    ["login_shell", "noexec", "onecmd", "posix", "privileged", "restricted", "restricted_shell"];

pub(super) fn script(state: &State<'_>) -> String {
    let mut text = emptied(state);
    directories(state, &mut text);
    if !state.completions.is_empty() {
        // Before there are any functions; separately, because bash does not quote all of
        // it.
        let _ = writeln!(text, "\\builtin eval {}", quote_bytes(state.completions));
    }
    let mut last = Last::default();
    for variable in &state.variables {
        last.variable(variable, &mut text);
    }
    for (name, value) in &state.aliases {
        let alias = [name, &b"="[..], value].concat();
        let _ = writeln!(text, "\\builtin alias -- {}", quote_bytes(&alias));
    }
    for function in &state.functions {
        let (name, source) = (quote_bytes(function.name.as_bytes()), quote_bytes(function.text));
        let define = format!("\\builtin eval {source}\n");
        if function.name == "builtin" {
            // It would catch everything that follows it.
            last.function = define;
            continue;
        }
        text.push_str(&define);
        let attributes: String = function.attributes.chars().filter(|a| *a != 'r').collect();
        if !attributes.is_empty() {
            let _ = writeln!(text, "\\builtin declare -f{attributes} -- {name}");
        }
        if function.attributes.contains('r') {
            let _ = writeln!(last.locks, "\\builtin declare -fr -- {name}");
        }
    }
    let arguments: String =
        state.arguments.iter().map(|a| format!(" {}", quote_bytes(a))).collect();
    let _ = writeln!(text, "\\builtin set --{arguments}\n\\builtin umask {}", state.umask);
    for limit in state.limits.iter().filter(|limit| limit.is_carried()) {
        for (kind, value) in [('S', &limit.soft), ('H', &limit.hard)] {
            let _ = writeln!(text, "\\builtin ulimit -{kind} -{} {value}", limit.flag);
        }
    }
    for name in &state.disabled {
        let _ = writeln!(text, "\\builtin enable -n -- {}", quote_bytes(name.as_bytes()));
    }
    if !state.options.contains(&"noglob") {
        text.push_str("\\builtin set +f\n");
    }
    last.options(state);
    last.traps(state);
    text + &last.finish()
}

fn emptied(state: &State<'_>) -> String {
    // `${!a@}`: all names that begin with an `a`.
    let every = (b'A'..=b'Z').chain(b'a'..=b'z').chain([b'_']);
    let every: Vec<String> = every.map(|first| format!("${{!{}@}}", char::from(first))).collect();
    include_str!("restore.bash")
        .replace("@SHOPTS@", &state.shopts.join(":"))
        .replace("@OPTIONS@", &state.options.join(":"))
        .replace("@EVERY@", &every.join(" "))
}

fn directories(state: &State<'_>, text: &mut String) {
    let _ = writeln!(text, "\\builtin cd -- {}\n\\builtin unset -v OLDPWD", quote_bytes(state.cwd));
    for directory in state.directories.iter().skip(1).rev() {
        let _ = writeln!(text, "\\builtin pushd -n -- {}", quote_bytes(directory));
    }
}

/// What has to wait for all the rest.
#[derive(Default)]
struct Last {
    locks: String,
    options: String,
    posix: String,
    traps: String,
    function: String,
    errexit: &'static str,
    debug: String,
}

impl Last {
    /// Restores a variable in two steps: first the value, then the attributes that would
    /// change it (`-i` evaluates, `-l` and `-u` fold) or forbid it.
    fn variable(&mut self, variable: &Variable<'_>, text: &mut String) {
        let name = variable.name;
        let value = match &variable.value {
            Assigned::Nothing => String::new(),
            Assigned::Word { printed, .. } | Assigned::List { printed } => {
                format!("={}", lossy(printed))
            }
        };
        let only = |kept: &str| -> String {
            variable.attributes.chars().filter(|a| kept.contains(*a)).collect()
        };
        match name {
            "PWD" | "SHLVL" => return,
            // It turns POSIX mode on.
            "POSIXLY_CORRECT" => {
                let _ = writeln!(
                    self.posix,
                    "\\builtin declare -{} {name}{value}",
                    variable.attributes
                );
                return;
            }
            _ => {}
        }
        let kind = only("aAnx");
        let _ =
            writeln!(text, "declare -{} {name}{value}", if kind.is_empty() { "-" } else { &kind });
        let changing = only("cilntu");
        // A kernel could not start with an integer as IFS.
        if !changing.is_empty() && changing != "n" && name != "IFS" {
            let _ = writeln!(text, "declare -{changing} {name}");
        }
        if variable.has('r') {
            let _ = writeln!(self.locks, "\\builtin declare -{} {name}", only("nr"));
        }
    }

    fn options(&mut self, state: &State<'_>) {
        if state.options.contains(&"posix") {
            // It sets others, so it comes first.
            self.options = format!("\\builtin set -o posix\n{}", self.posix);
        }
        if !state.shopts.contains(&"extglob") {
            self.options.push_str("\\builtin shopt -u extglob\n");
        }
        for name in state.shopts.iter().filter(|name| !NOT_CARRIED.contains(name)) {
            let _ = writeln!(self.options, "\\builtin shopt -s {name}");
        }
        for name in state.options.iter().filter(|name| !NOT_CARRIED.contains(name)) {
            let _ = match *name {
                "errexit" => {
                    self.errexit = "\\builtin set -o errexit\n";
                    Ok(())
                }
                // When typed, they would take the next line from a terminal; when
                // sourced, they do not.
                "emacs" | "vi" => {
                    writeln!(self.options, "\\builtin . /dev/stdin <<<'\\builtin set -o {name}'")
                }
                name => writeln!(self.options, "\\builtin set -o {name}"),
            };
        }
    }

    /// Restores the traps. A DEBUG trap would run for each further command, so it is
    /// separate.
    fn traps(&mut self, state: &State<'_>) {
        for trap in &state.traps {
            let place = if trap.name == "DEBUG" { &mut self.debug } else { &mut self.traps };
            let _ = writeln!(place, "\\builtin trap -- {} {}", quote_bytes(&trap.text), trap.name);
        }
    }

    fn finish(self) -> String {
        let Self { locks, options, posix: _, traps, function, errexit, debug } = self;
        [&locks, &options, &traps, &function, errexit, &debug].concat()
    }
}
