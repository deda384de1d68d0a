//! dash, and any other shell that is called sh.

mod listing;
mod restore;

use super::MARK;
use super::builtin_calls::{BuiltinCalls, SURE_ECHO};
use super::dialect::{Dialect, FirstWords, Guard, Status};
use super::guard::{self, sets_option};
use super::terminal::TerminalSetup;
use super::traps::stands_alone;
use super::view::Interpreted;
use listing::State;
use sessile_protocol::RunNo;

#[derive(Debug)]
pub(super) struct Dash;

impl Dialect for Dash {
    /// Its `read` has no timeout.
    fn pause(&self, _: &str) -> String {
        "sleep 0.005".to_owned()
    }

    /// A status is forgotten once anyone has asked for it, and a fork does not know it. A
    /// dash at a terminal forgets it too, because it reports each job before a prompt.
    fn status_of(&self, _: &str) -> Status {
        Status::Unavailable
    }

    fn substitutes_processes(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "sh"
    }

    fn arguments(&self) -> &'static [&'static str] {
        &["-i", "-s"]
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[("capture", include_str!("capture.sh"))]
    }

    fn boot(&self) -> &'static str {
        "PS1=\n"
    }

    fn sources(&self) -> &'static [(&'static str, &'static str)] {
        &[("\\command ", "\\command ."), ("\\", "\\.")]
    }

    fn echoes(&self) -> &'static [&'static str] {
        &["\\command echo", "\\echo", SURE_ECHO]
    }

    fn redefining_words(&self) -> &'static [&'static str] {
        &["command()", "command ()"]
    }

    fn exec(&self, calls: BuiltinCalls) -> String {
        format!("{}exec", calls.prefix)
    }

    fn first_words(&self, first: FirstWords<'_>, _: &[u8]) -> Vec<u8> {
        let FirstWords { words, traces, shows, prefix } = first;
        let line = match (shows, traces) {
            // A line number that is too high in messages is a smaller fault than our
            // words.
            (true, _) => format!("{{ {prefix}set -v;{words} }} 2>/dev/null\n"),
            (false, true) => format!("{{ {words} }} 2>/dev/null;"),
            (false, false) => words.to_owned(),
        };
        line.into_bytes()
    }

    fn debug_trap(&self, _: &str, _: i32, _: &str) -> Option<String> {
        None
    }

    /// A special builtin, which functions cannot replace.
    fn returning(&self, status: i32, _: BuiltinCalls) -> String {
        format!("\\return {status}\n")
    }

    /// A sourced `return` would end the shell.
    fn failing(&self, status: i32, flags: &str) -> Option<String> {
        flags.contains('e').then(|| format!("( \\exit {status} )"))
    }

    fn hides_functions(&self) -> bool {
        true
    }

    fn halt_signal(&self) -> (i32, &'static str) {
        (libc::SIGRTMAX() - 1, "63")
    }

    /// At an interrupt, dash forgets what it has read ahead, so it is interrupted only if
    /// the user has a trap.
    fn halt_trap(&self, dir: &str, prefix: &str) -> String {
        format!(
            "{{ {prefix}: {MARK}; {prefix}trap >|{dir}/w/int; while {prefix}read -r __sessile_trap; do \
             case $__sessile_trap in *\\ INT) {prefix}unset __sessile_trap; {prefix}trap - INT; \
             {prefix}kill -s INT $$;; esac; done <{dir}/w/int; {prefix}unset __sessile_trap; }} 2>/dev/null"
        )
    }

    fn halts_by_itself(&self) -> bool {
        false
    }

    /// In braces, because a redirection of a special builtin that fails would end the
    /// shell.
    fn capture(&self, dir: &str, as_of: RunNo) -> String {
        format!(
            "{{ \\trap; }} >|{dir}/w/x{as_of}; ( ( \\set -- w/x{as_of} \"$@\"; \\. {dir}/capture; \
             \\command echo \"c {as_of}\" >{dir}/s ) & ) 9<{dir}/capture </dev/null 2>/dev/null\n"
        )
    }

    fn exit_trap(&self, dir: &str) -> String {
        format!("{{ : {MARK}; {}; }} 2>/dev/null", last_capture(dir, None, Guard::Off))
    }

    fn last_capture(&self, dir: &str, listing: Option<&str>, guard: Guard) -> String {
        format!("{{ {}; }} 2>/dev/null", last_capture(dir, listing, guard))
    }

    fn early_capture(&self, dir: &str, listing: Option<&str>, guard: Guard) -> String {
        let body = last_capture(dir, listing, guard);
        format!(
            "{{ __sessile_status=$?; {body}; ( \\exit $__sessile_status ) && \\:; }} 2>/dev/null"
        )
    }

    fn interpret(&self, bytes: &[u8]) -> Option<Interpreted> {
        let state = State::read(bytes)?;
        Some(Interpreted { view: state.view().finish(), restore: restore::script(&state) })
    }

    fn guard_revealing_words(&self) -> &'static [&'static str] {
        &["type trap", "command -v trap", "command -V", "alias trap", "alias -p"]
    }

    /// The name of the function would be in the trace.
    fn shows_guard(&self, flags: &str, text: &[u8]) -> bool {
        flags.contains('x') || sets_option(text, b'x', "xtrace") || stands_alone(text, "alias")
    }

    fn guard_script(&self, dir: &str, users: Option<&str>) -> String {
        let words = ["\"$__sessile_action\"", "\"${__sessile_signal#*=}\""];
        guard::script(self, include_str!("guard.sh"), words, dir, users)
    }

    fn guard(&self, dir: &str) -> String {
        format!("\\command alias trap >/dev/null 2>&1 || \\command . {dir}/h;")
    }

    fn unguard(&self) -> &'static str {
        "case $(\\command alias trap) in *__sessile_guard*) \\command unalias trap ;; esac;"
    }

    fn job_control(&self, program: Option<&str>) -> TerminalSetup {
        match program {
            Some("dash" | "busybox") => TerminalSetup::Monitor,
            Some("bash") => TerminalSetup::FailedExec,
            Some(_) | None => TerminalSetup::None,
        }
    }
}

/// In braces for the same reason as above.
fn last_capture(dir: &str, listing: Option<&str>, guard: Guard) -> String {
    let listing = listing.map(|word| format!("\\command printf '%s\\n' {word} >>{dir}/w/final; "));
    let clear = match guard {
        Guard::On => "\\command unalias trap; ",
        Guard::Off => "",
    };
    format!(
        "{{ \\trap; }} >|{dir}/w/final; {}( {clear}\\set -- w/final \"$@\"; \\. {dir}/capture ) \
         </dev/null >/dev/null",
        listing.unwrap_or_default()
    )
}
