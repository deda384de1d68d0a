//! zsh.

mod listing;
mod names;
mod restore;

use super::builtin_calls::{BuiltinCalls, SURE_ECHO};
use super::dialect::{Dialect, Environment, FirstWords, Guard, Status};
use super::guard::AFTER;
use super::quoting::quote;
use super::terminal::TerminalSetup;
use super::traps::stands_alone;
use super::view::Interpreted;
use listing::State;
use sessile_protocol::RunNo;
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Debug)]
pub(super) struct Zsh;

/// Turns tracing off without a trace, and records whether it was on: words are expanded
/// before they are shown. Nothing else works, because while `exit` runs, zsh writes
/// traces to a descriptor that no redirection reaches.
const HUSH: &str =
    "\\builtin : __sessile_exit ${__sessile_x::=$options[xtrace]} ${options[xtrace]::=off}";

/// Follows an `exec` without a command, so that `set -e` has no effect: zsh gives it the
/// status of the last command substitution, even of an earlier run's.
const SURE: &str = " || \\builtin :";

impl Dialect for Zsh {
    /// In forks: a status is forgotten once it was asked for, and is then that of a
    /// missing program.
    fn status_of(&self, pid: &str) -> Status {
        let is_known = format!("\\builtin test -z \"$(\\builtin wait {pid} 2>&1)\"");
        Status::AskedIfKnown { is_known, wait: format!("(\\builtin wait {pid})") }
    }

    fn name(&self) -> &'static str {
        "zsh"
    }

    fn arguments(&self) -> &'static [&'static str] {
        &["-f", "-i", "-s", "+o", "zle", "+o", "banghist"]
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[("capture", include_str!("capture.zsh"))]
    }

    fn boot(&self) -> &'static str {
        "PS1='%{%}'; unsetopt promptsp promptcr\n"
    }

    /// In zsh, `command` is for programs.
    fn sources(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("\\builtin ", "\\builtin ."),
            ("\\builtin ", "\\builtin source"),
            ("\\", "\\."),
            ("\\", "\\source"),
        ]
    }

    fn echoes(&self) -> &'static [&'static str] {
        &["\\builtin echo", "\\echo", SURE_ECHO]
    }

    fn redefining_words(&self) -> &'static [&'static str] {
        &["disable", "builtin()", "builtin ()", "function builtin"]
    }

    /// Before a builtin, zsh would set but not export them.
    fn environment(
        &self,
        variables: &BTreeMap<String, String>,
        calls: BuiltinCalls,
    ) -> Environment {
        let prefix = calls.prefix;
        let mut env = Environment { source: calls.source.to_owned(), ..Environment::default() };
        for (name, value) in variables {
            let kept = format!("__sessile_kept_{name}");
            let _ = write!(
                env.before,
                "{kept}=${{{name}+x}}${{{name}-}};{prefix}export {name}={};",
                quote(value)
            );
            let _ = write!(
                env.after,
                ";[[ -z ${kept} ]] && {prefix}unset {name} || {name}=${{{kept}#x}};\
                 {prefix}unset {kept}"
            );
        }
        env
    }

    fn sure(&self) -> &'static str {
        SURE
    }

    fn protect_source(
        &self,
        source: String,
        has_terminal: bool,
        shows_next: bool,
        calls: BuiltinCalls,
    ) -> String {
        let mut always = Vec::new();
        if has_terminal {
            // Line editing would take its next line from the terminal.
            always.push(format!("{}unsetopt zle", calls.prefix));
        }
        if shows_next {
            // If the text is aborted, the next line of ours would be shown.
            always.push(calls.rewrite(format!("\\exec 2>/dev/null{SURE}")));
        }
        match always.is_empty() {
            true => source,
            false => format!("{{ {source}; }} always {{ {}; }}", always.join("; ")),
        }
    }

    fn traces_around(&self) -> bool {
        true
    }

    /// In the user's first line, which our words print if it would be shown.
    fn first_words(&self, first: FirstWords<'_>, text: &[u8]) -> Vec<u8> {
        let FirstWords { words, traces, shows, prefix } = first;
        let first = if traces { format!("{{ {words} }} 2>/dev/null;") } else { words.to_owned() };
        if !shows {
            return first.into_bytes();
        }
        let mut lines = text.splitn(2, |b| *b == b'\n');
        let mut words = format!("{prefix}print -rnu2 -- ").into_bytes();
        words.extend(quote_bytes(lines.next().unwrap_or_default()));
        // Not verbatim: the lines of the text would be counted from the second.
        words.extend(lines.next().map_or(&b""[..], |_| br"$'\n'"));
        words.extend(format!(";{prefix}set -v;{first}").into_bytes());
        words
    }

    /// It was removed because it would see our lines.
    fn debug_trap(&self, set: &str, status: i32, prefix: &str) -> Option<String> {
        Some(match status {
            0 => format!("{set};"),
            status => format!("{set} && /bin/sh -c 'exit {status}' && {prefix}:;"),
        })
    }

    /// zsh knows no real-time signals; nothing sends this one either.
    fn halt_signal(&self) -> (i32, &'static str) {
        (libc::SIGSTKFLT, "STKFLT")
    }

    /// Under `set -e` an interrupt would end it, so that option is turned off, listed and
    /// restored as well.
    fn halt_trap(&self, dir: &str, prefix: &str) -> String {
        format!(
            "{HUSH}; {{ {prefix}trap; {prefix}print \"options $- $__sessile_x\"; }} >|{dir}/w/int; \
             {prefix}unset __sessile_x; {prefix}unsetopt errexit; {prefix}trap - INT; \
             {prefix}kill -s INT $$"
        )
    }

    fn forgets_interrupts(&self) -> bool {
        true
    }

    fn ends_at_interrupts(&self) -> bool {
        true
    }

    fn waits_for_jobs(&self) -> bool {
        true
    }

    fn keeps_limits(&self) -> bool {
        true
    }

    fn capture(&self, dir: &str, as_of: RunNo) -> String {
        format!(
            "\\builtin trap 2>/dev/null > >(\\builtin exec 9<{dir}/capture{SURE}; {}; \
             \\builtin echo \"c {as_of}\" >{dir}/s)\n",
            capture(dir, &format!("w/x{as_of}"), "")
        )
    }

    /// A word and not a comment, which zsh would drop; braces make zsh wait for the
    /// process.
    fn exit_trap(&self, dir: &str) -> String {
        // Where its directory was removed, that process ends too soon, and zsh with 13 at
        // the broken pipe.
        let capture = last_capture(dir, "w/final");
        format!("{HUSH}; [[ ! -d {dir}/w ]] || {{ \\builtin trap }} 2>/dev/null > >({capture})")
    }

    fn last_capture(&self, dir: &str, _: Option<&str>, _: Guard) -> String {
        last_capture(dir, AFTER)
    }

    fn early_capture(&self, _: &str, _: Option<&str>, _: Guard) -> String {
        String::new()
    }

    fn traps_section(&self) -> usize {
        1
    }

    fn interpret(&self, bytes: &[u8]) -> Option<Interpreted> {
        let state = State::read(bytes)?;
        Some(Interpreted { view: state.view().finish(), restore: restore::script(&state) })
    }

    fn has_exit_hook(&self) -> bool {
        true
    }

    fn guard_revealing_words(&self) -> &'static [&'static str] {
        &["zshexit", "functions", "typeset", "whence", "which", "declare"]
    }

    fn shows_guard(&self, _: &str, text: &[u8]) -> bool {
        stands_alone(text, "set")
    }

    fn guard_script(&self, dir: &str, _: Option<&str>) -> String {
        let script = include_str!("guard.zsh").replace("@HUSH@", HUSH).replace("@DIR@", dir);
        script.replace("@AFTER@", &last_capture(dir, AFTER))
    }

    fn guard(&self, dir: &str) -> String {
        format!("\\builtin . {dir}/h;")
    }

    fn unguard(&self) -> &'static str {
        "zshexit_functions=(\"${(@)zshexit_functions:#__sessile_bye}\"); \
         [[ -n \"$zshexit_functions\" ]] || \\builtin unset zshexit_functions; \
         \\builtin unset __sessile_args; \\builtin unfunction __sessile_bye || \\builtin :;"
    }

    fn job_control(&self, _: Option<&str>) -> TerminalSetup {
        TerminalSetup::Suspend
    }
}

/// Returns the call of the capture script (see capture.zsh).
///
/// First, it ignores SIGXFSZ, so that a limit on file sizes ends nothing: the shell lists
/// its traps into a pipe to this process, and would end with it.
fn capture(dir: &str, out: &str, tracing: &str) -> String {
    format!(
        "\\builtin trap '' XFSZ; \\builtin set +o >|{dir}/{out}; {tracing}\\builtin set -- {out} \"$@\"; \
         \\builtin emulate -R zsh -o noaliases -c \"$(<{dir}/capture)\""
    )
}

/// Returns the same for when tracing was turned off.
fn last_capture(dir: &str, out: &str) -> String {
    let tracing = format!(
        "\\builtin print -r -- \"xtrace $__sessile_x\" >>{dir}/{out}; \\builtin unset __sessile_x; "
    );
    format!("\\builtin exec 2>/dev/null{SURE}; {}", capture(dir, out, &tracing))
}

/// Returns any bytes as one word of any POSIX shell.
fn quote_bytes(text: &[u8]) -> Vec<u8> {
    let inner = text.split(|b| *b == b'\'').collect::<Vec<_>>().join(&br"'\''"[..]);
    [b"'", &inner[..], b"'"].concat()
}
