//! bash.

mod listing;
mod restore;

use super::MARK;
use super::builtin_calls::{BuiltinCalls, SURE_ECHO};
use super::dialect::{Dialect, Environment, FirstWords, Guard, Status, assignments};
use super::guard::{self, has_word};
use super::terminal::TerminalSetup;
use super::traps::stands_alone;
use super::view::Interpreted;
use listing::State;
use sessile_protocol::RunNo;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Bash;

impl Dialect for Bash {
    fn status_of(&self, pid: &str) -> Status {
        Status::Asked { wait: format!("\\builtin wait {pid}") }
    }

    /// A script that is sourced would set off a RETURN trap of the user's.
    fn perform(&self, path: &str, calls: BuiltinCalls) -> String {
        format!("{}eval \"$(<{path})\"", calls.prefix)
    }

    fn name(&self) -> &'static str {
        "bash"
    }

    fn arguments(&self) -> &'static [&'static str] {
        &["--norc", "--noprofile", "--noediting", "+o", "history", "+H", "-i", "-s"]
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[("capture", include_str!("capture.bash"))]
    }

    fn boot(&self) -> &'static str {
        "PS1='\\[\\]'\n"
    }

    fn restore(&self, dir: &str) -> String {
        format!("\\builtin eval \"$(<{dir}/restore)\" </dev/null >/dev/null 2>&1")
    }

    fn sources(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("\\builtin ", "\\builtin ."),
            ("\\builtin ", "\\builtin source"),
            ("\\command ", "\\command ."),
            ("\\command ", "\\command source"),
            ("\\", "\\."),
            ("\\", "\\source"),
        ]
    }

    fn echoes(&self) -> &'static [&'static str] {
        &["\\builtin echo", "\\command echo", "\\echo", SURE_ECHO]
    }

    fn redefining_words(&self) -> &'static [&'static str] {
        &["enable", "builtin()", "builtin ()", "function builtin"]
    }

    fn environment(
        &self,
        variables: &BTreeMap<String, String>,
        calls: BuiltinCalls,
    ) -> Environment {
        let mut source = assignments(variables);
        // Such variables are dropped after the first command behind `builtin`.
        if !variables.is_empty() && calls.prefix == "\\builtin " {
            source.push_str("\\builtin command ");
            source.push_str(calls.source.trim_start_matches(calls.prefix));
        } else {
            source.push_str(calls.source);
        }
        Environment { source, ..Environment::default() }
    }

    fn first_words(&self, first: FirstWords<'_>, _: &[u8]) -> Vec<u8> {
        let FirstWords { words, shows, prefix, .. } = first;
        let line =
            if shows { uncounted(&format!("{prefix}set -v;{words}")) } else { uncounted(words) };
        line.into_bytes()
    }

    /// Sourcing hides it from the sourced text.
    fn debug_trap(&self, set: &str, status: i32, prefix: &str) -> Option<String> {
        Some(match status {
            0 => format!("{set};"),
            status => format!("{set};( /bin/sh -c 'exit {status}' ) && {prefix}:;"),
        })
    }

    /// bash goes on with the next command after a program that ignores SIGINT had to be
    /// killed. A trap runs right after the child's end, before that.
    fn stop_signal(&self) -> Option<(i32, &'static str)> {
        Some((libc::SIGRTMAX(), "RTMAX"))
    }

    fn halt_signal(&self) -> (i32, &'static str) {
        (libc::SIGRTMAX() - 1, "RTMAX-1")
    }

    fn halt_trap(&self, dir: &str, prefix: &str) -> String {
        format!(
            "{{ {prefix}: {MARK}; {prefix}trap -p INT >|{dir}/w/int; {prefix}trap - INT; \
             {prefix}kill -s INT $$; }} 2>/dev/null"
        )
    }

    fn hides_debug_trap(&self) -> bool {
        true
    }

    fn shows_traps(&self) -> bool {
        true
    }

    fn capture(&self, dir: &str, as_of: RunNo) -> String {
        format!(
            "( \\builtin trap -p >|{dir}/w/x{as_of}; \
             ( \\builtin . {dir}/capture w/x{as_of} \"$@\"; \\builtin echo \"c {as_of}\" >{dir}/s ) & ) \
             9<{dir}/capture </dev/null || \\builtin echo \"c {as_of}\" >{dir}/s\n"
        )
    }

    fn exit_trap(&self, dir: &str) -> String {
        format!("{} # {MARK}", self.last_capture(dir, None, Guard::Off))
    }

    fn last_capture(&self, dir: &str, listing: Option<&str>, guard: Guard) -> String {
        let body = last_capture(dir, listing, guard);
        format!("( {body} ) </dev/null >/dev/null 2>&1 || \\builtin :")
    }

    fn early_capture(&self, dir: &str, listing: Option<&str>, guard: Guard) -> String {
        let body = last_capture(dir, listing, guard);
        format!(
            "{{ ( \\builtin set -- $? \"$@\"; ( \\builtin shift; {body} ); \\builtin exit $1 ) \
             </dev/null >/dev/null 2>&1 && \\builtin :; }} 2>/dev/null"
        )
    }

    fn interpret(&self, bytes: &[u8]) -> Option<Interpreted> {
        let state = State::read(bytes)?;
        Some(Interpreted { view: state.view().finish(), restore: restore::script(&state) })
    }

    fn guard_revealing_words(&self) -> &'static [&'static str] {
        &[
            "type trap",
            "type -",
            "declare -f",
            "declare -F",
            "typeset -f",
            "typeset -F",
            "compgen",
            "command -V",
            "trap()",
            "trap ()",
            "function trap",
            "FUNCNAME",
            "caller",
            "functrace",
            "set -T",
            "export -f",
        ]
    }

    /// Functions have their own ERR and RETURN traps, and under `set -a` and `set -T`
    /// they are exported and traced.
    fn shows_guard(&self, flags: &str, text: &[u8]) -> bool {
        flags.contains(['a', 'T'])
            || ["ERR", "RETURN"].iter().any(|name| has_word(text, name))
            || stands_alone(text, "set")
    }

    fn guard_script(&self, dir: &str, users: Option<&str>) -> String {
        guard::script(self, include_str!("guard.bash"), ["\"$4\"", "\"${1@Q}\""], dir, users)
    }

    fn guard(&self, dir: &str) -> String {
        format!("\\builtin declare -F trap >/dev/null || \\builtin . {dir}/h;")
    }

    fn unguard(&self) -> &'static str {
        "[[ $(\\builtin declare -f trap) != *__sessile_exit* ]] || \
         \\builtin unset -f trap || \\builtin :;"
    }

    fn job_control(&self, _: Option<&str>) -> TerminalSetup {
        TerminalSetup::FailedExec
    }

    fn without_hangups(&self, _: &str, commands: &str, calls: BuiltinCalls) -> (String, String) {
        let prefix = calls.prefix;
        let script = format!("{commands};{prefix}eval \"${{1:-trap - HUP}}\"\n");
        (script, format!(" \"$({prefix}trap -p HUP)\""))
    }
}

fn last_capture(dir: &str, listing: Option<&str>, guard: Guard) -> String {
    let listing = listing.map(|word| format!("\\builtin printf '%s\\n' {word} >>{dir}/w/final; "));
    let clear = match guard {
        Guard::On => "\\builtin unset -f trap; ",
        Guard::Off => "",
    };
    format!(
        "\\builtin trap -p >|{dir}/w/final; {}{clear}\\builtin . {dir}/capture w/final \"$@\"",
        listing.unwrap_or_default()
    )
}

/// Returns our line in front of the user's first one, in such a way that bash does not
/// count it. A line number that is set in a command would be forgotten after it, but not
/// in its redirection. A LINENO of the user is left alone, whether unset or read-only.
fn uncounted(commands: &str) -> String {
    // Its attributes as digits: without attributes, or with `i`, a multiple of 18.
    let is_users = "36#0${LINENO+${LINENO@a}}%18";
    let zero = format!("${{__sessile_[{is_users}?0:(${{LINENO+LINENO=}}0)]-}}");
    format!("{{ {commands} }} 2>/dev/null\"{zero}\"\n")
}
