//! What differs between shells.

use super::guard::AFTER;
use super::view::{self, Interpreted};
use super::voice::Voice;
use super::{MARK, quote};
use super::{bash, dash, zsh};
use sessile_protocol::{Language, RunNo};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Whether a script of ours stands in for `trap` (see guard.rs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    On,
    Off,
}

/// What goes around a run that has variables of its own.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) before: String,
    /// The sourcing command.
    pub(super) source: String,
    pub(super) after: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Bash,
    Zsh,
    /// dash, and whatever else calls itself sh.
    Posix,
}

/// Turns tracing off without a trace, and keeps whether it was on: words are
/// expanded before they are shown. Nothing else would do, because while `exit`
/// runs, zsh writes traces to a descriptor that no redirection reaches.
pub(super) const ZSH_HUSH: &str =
    "\\builtin : __sessile_exit ${__sessile_x::=$options[xtrace]} ${options[xtrace]::=off}";

/// What follows an `exec` that is no command, so that `set -e` does not mind it:
/// zsh gives it the status of the last command substitution, even of an earlier
/// run's.
pub(super) const ZSH_SURE: &str = " || \\builtin :";

/// How zsh's capture script is called (see capture.zsh).
fn zsh_capture(dir: &str, out: &str, tracing: &str) -> String {
    format!(
        "\\builtin set +o >|{dir}/{out}; {tracing}\\builtin set -- {out} \"$@\"; \
         \\builtin emulate -R zsh -o noaliases -c \"$(<{dir}/capture)\""
    )
}

/// The same once tracing was hushed.
fn zsh_last_capture(dir: &str, out: &str) -> String {
    let tracing = format!(
        "\\builtin print -r -- \"xtrace $__sessile_x\" >>{dir}/{out}; \\builtin unset __sessile_x; "
    );
    format!("\\builtin exec 2>/dev/null{ZSH_SURE}; {}", zsh_capture(dir, out, &tracing))
}

fn dash_last_capture(dir: &str, listing: &str, clear: &str) -> String {
    format!(
        "\\trap >|{dir}/final; {listing}\
         ( {clear}\\set -- final \"$@\"; \\. {dir}/capture ) </dev/null >/dev/null"
    )
}

impl Dialect {
    pub(super) fn of(language: Language) -> Self {
        match language {
            Language::Bash => Self::Bash,
            Language::Zsh => Self::Zsh,
            Language::Sh | Language::Python | Language::Node => Self::Posix,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Posix => "sh",
        }
    }

    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Bash => {
                &["--norc", "--noprofile", "--noediting", "+o", "history", "+H", "-i", "-s"]
            }
            Self::Zsh => &["-f", "-i", "-s", "+o", "zle", "+o", "banghist"],
            Self::Posix => &["-i", "-s"],
        }
    }

    pub(super) fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Bash => &[("capture", include_str!("bash/capture.bash"))],
            Self::Zsh => &[("capture", include_str!("zsh/capture.zsh"))],
            Self::Posix => &[("capture", include_str!("dash/capture.sh")), ("names", "")],
        }
    }

    /// A script of ours in the words that work. bash and dash have other ways to
    /// get past a function called `builtin`, say.
    pub(super) fn spoken(self, script: String, voice: Voice) -> String {
        match self {
            Self::Zsh if voice.prefix == "\\" => script.replace("\\builtin ", voice.prefix),
            Self::Bash => script.replace("\\builtin ", voice.prefix),
            Self::Zsh | Self::Posix => script,
        }
    }

    /// Makes sense of a capture.
    pub(super) fn interpret(self, bytes: &[u8]) -> Option<Interpreted> {
        match self {
            Self::Bash => bash::interpret(bytes),
            Self::Zsh => zsh::interpret(bytes),
            Self::Posix => dash::interpret(bytes),
        }
    }

    /// The user's EXIT and DEBUG traps in a capture, for a first look.
    pub(super) fn traps_in(self, bytes: &[u8]) -> [Option<String>; 2] {
        let section = match self {
            Self::Bash | Self::Posix => 0,
            Self::Zsh => 1,
        };
        let listing = bytes.split(|b| *b == 0).nth(section).unwrap_or_default();
        ["EXIT", "DEBUG"].map(|name| view::trap(listing, &[name]))
    }

    /// How variables are set for one run alone.
    pub(super) fn environment(
        self,
        variables: &BTreeMap<String, String>,
        voice: Voice,
    ) -> Environment {
        let mut env = Environment::default();
        let prefix = voice.prefix;
        match self {
            Self::Bash | Self::Posix => {
                for (name, value) in variables {
                    let _ = write!(env.source, "{name}={} ", quote(value));
                }
            }
            // Before a builtin, zsh would set but not export them.
            Self::Zsh => {
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
            }
        }
        // bash drops such variables after the first command behind `builtin`.
        if self == Self::Bash && !variables.is_empty() && prefix == "\\builtin " {
            env.source.push_str("\\builtin command ");
            env.source.push_str(voice.source.trim_start_matches(prefix));
        } else {
            env.source.push_str(voice.source);
        }
        env
    }

    /// A signal whose trap of ours ends the run, for a shell that takes a
    /// SIGINT seriously only if its child died of it: bash goes on with the
    /// next command after a program that ignores SIGINT had to be killed. A
    /// trap runs right after the child's end, before that next command.
    pub(super) fn stop_signal(self) -> Option<(i32, &'static str)> {
        match self {
            Self::Bash => Some((libc::SIGRTMAX(), "RTMAX")),
            Self::Zsh | Self::Posix => None,
        }
    }

    /// A signal whose trap of ours takes a trap of the user's on SIGINT away,
    /// and then interrupts the shell, with its name.
    pub(super) fn halt_signal(self) -> (i32, &'static str) {
        match self {
            Self::Bash => (libc::SIGRTMAX() - 1, "RTMAX-1"),
            Self::Posix => (libc::SIGRTMAX() - 1, "63"),
            // It knows no real-time signals; nothing sends this one either.
            Self::Zsh => (libc::SIGSTKFLT, "STKFLT"),
        }
    }

    /// The text of that trap. It leaves a listing for the keeper, which puts
    /// the user's trap back. zsh would end at an interrupt under `set -e`, which
    /// is listed and put back as well. dash, which forgets at an interrupt what
    /// it has read ahead, is interrupted only where the user has a trap.
    pub(super) fn halt_trap(self, dir: &str, prefix: &str) -> String {
        let interrupt = format!("{prefix}trap - INT; {prefix}kill -s INT $$");
        let halt = match self {
            Self::Bash => format!("{prefix}trap -p INT >|{dir}/int; {interrupt}"),
            Self::Zsh => {
                return format!(
                    "{ZSH_HUSH}; {{ {prefix}trap; {prefix}print \"options $- $__sessile_x\"; }} \
                     >|{dir}/int; {prefix}unset __sessile_x; {prefix}unsetopt errexit; {interrupt}"
                );
            }
            Self::Posix => format!(
                "{prefix}trap >|{dir}/int; while {prefix}read -r __sessile_trap; do \
                 case $__sessile_trap in *\\ INT) {prefix}unset __sessile_trap; {interrupt};; esac; \
                 done <{dir}/int; {prefix}unset __sessile_trap"
            ),
        };
        // Without a trace.
        format!("{{ {prefix}: {MARK}; {halt}; }} 2>/dev/null")
    }

    /// It has no way to list its functions.
    pub(super) fn hides_functions(self) -> bool {
        match self {
            Self::Posix => true,
            Self::Bash | Self::Zsh => false,
        }
    }

    /// `$?` is 0 after a loop of builtins was interrupted.
    pub(super) fn forgets_interrupts(self) -> bool {
        match self {
            Self::Zsh => true,
            Self::Bash | Self::Posix => false,
        }
    }

    /// The first lines: a prompt that shows nothing, though it is not empty
    /// (rc files take an empty one for a shell that is not interactive).
    pub(super) fn boot(self, _dir: &str) -> String {
        match self {
            Self::Bash => "PS1='\\[\\]'\n".to_owned(),
            Self::Zsh => "PS1='%{%}'; unsetopt promptsp promptcr\n".to_owned(),
            Self::Posix => "PS1=\n".to_owned(),
        }
    }

    /// A script that does nothing but have a status. No alias or function of
    /// the user's gets in between.
    pub(super) fn returning(self, status: i32, voice: Voice) -> String {
        match self {
            // Then `return` may be anything.
            Self::Bash | Self::Zsh if voice.prefix == "\\" => {
                format!("/bin/sh -c 'exit {status}'\n")
            }
            Self::Bash | Self::Zsh => format!("{}return {status}\n", voice.prefix),
            // A special builtin, which functions cannot replace.
            Self::Posix => format!("\\return {status}\n"),
        }
    }

    pub(super) fn restore(self, dir: &str) -> String {
        match self {
            Self::Bash => {
                format!("\\builtin eval \"$(<{dir}/restore)\" </dev/null >/dev/null 2>&1")
            }
            Self::Zsh | Self::Posix => {
                format!(
                    "{} {dir}/restore </dev/null >/dev/null 2>&1",
                    Voice::among(self, &[]).source
                )
            }
        }
    }

    /// A line that has the state written to `x<run>` by a fork of the shell,
    /// which reports it; the shell itself is free again at once. The status
    /// goes through unchanged. A fork has a file of ours at descriptor 9, by
    /// which it is told from a job of the user's.
    pub(super) fn capture(self, dir: &str, as_of: RunNo) -> String {
        let out = format!("{dir}/x{as_of}");
        match self {
            Self::Bash => format!(
                "( \\builtin trap -p >|{out}; \
                 ( \\builtin . {dir}/capture x{as_of} \"$@\"; \\builtin echo \"c {as_of}\" >{dir}/s ) & ) \
                 9<{dir}/capture </dev/null || \\builtin echo \"c {as_of}\" >{dir}/s\n"
            ),
            Self::Zsh => format!(
                "\\builtin trap 2>/dev/null > >(\\builtin exec 9<{dir}/capture{ZSH_SURE}; {}; \
                 \\builtin echo \"c {as_of}\" >{dir}/s)\n",
                zsh_capture(dir, &format!("x{as_of}"), "")
            ),
            Self::Posix => format!(
                "\\trap >|{out}; ( ( \\set -- x{as_of} \"$@\"; \\. {dir}/capture; \
                 \\command echo \"c {as_of}\" >{dir}/s ) & ) 9<{dir}/capture </dev/null 2>/dev/null\n"
            ),
        }
    }

    /// What the EXIT trap does: the same, to `final`, and waited for. Under
    /// `set -e` its failure must not become the shell's.
    pub(super) fn exit_trap(self, dir: &str) -> String {
        match self {
            Self::Bash => format!(
                "( \\builtin trap -p >|{dir}/final; \\builtin . {dir}/capture final \"$@\" ) \
                 </dev/null >/dev/null 2>&1 || \\: # {MARK}"
            ),
            // A word and not a comment, which zsh would drop; braces make zsh
            // wait for the process.
            Self::Zsh => format!(
                "{ZSH_HUSH}; {{ \\builtin trap }} 2>/dev/null > >({})",
                zsh_last_capture(dir, "final")
            ),
            Self::Posix => {
                format!("{{ : {MARK}; {}; }} 2>/dev/null", dash_last_capture(dir, "", ""))
            }
        }
    }

    /// The same where the user has an EXIT trap, which reads so in a listing, as
    /// one quoted word: it is not listed any more when it runs. Under a guard
    /// there is something of ours that is nothing of the user's.
    pub(super) fn last_capture(self, dir: &str, listing: Option<&str>, guard: Guard) -> String {
        let body = self.last_capture_body(dir, listing, guard);
        match self {
            Self::Bash => format!("( {body} ) </dev/null >/dev/null 2>&1 || \\:"),
            Self::Zsh => zsh_last_capture(dir, AFTER),
            Self::Posix => format!("{{ {body}; }} 2>/dev/null"),
        }
    }

    /// The same before the user's trap, which may call `exit` and leave us no
    /// other time. It goes through with `$?` unchanged and without a trace; `&&`
    /// keeps `set -e` from taking that for a failure of ours.
    pub(super) fn early_capture(
        self,
        dir: &str,
        listing: Option<&str>,
        guard: Guard,
    ) -> Option<String> {
        let body = self.last_capture_body(dir, listing, guard);
        match self {
            Self::Bash => Some(format!(
                "{{ ( \\builtin set -- $? \"$@\"; ( \\builtin shift; {body} ); \\builtin exit $1 ) \
                 </dev/null >/dev/null 2>&1 && \\:; }} 2>/dev/null"
            )),
            Self::Zsh => None,
            Self::Posix => Some(format!(
                "{{ __sessile_status=$?; {body}; ( \\exit $__sessile_status ) && \\:; }} 2>/dev/null"
            )),
        }
    }

    fn last_capture_body(self, dir: &str, listing: Option<&str>, guard: Guard) -> String {
        match self {
            Self::Bash => {
                let listing =
                    listing.map(|word| format!("\\builtin printf '%s\\n' {word} >>{dir}/final; "));
                let clear = match guard {
                    Guard::On => "\\builtin unset -f trap; ",
                    Guard::Off => "",
                };
                format!(
                    "\\builtin trap -p >|{dir}/final; {}{clear}\
                     \\builtin . {dir}/capture final \"$@\"",
                    listing.unwrap_or_default()
                )
            }
            Self::Zsh => String::new(),
            Self::Posix => {
                let listing =
                    listing.map(|word| format!("\\command printf '%s\\n' {word} >>{dir}/final; "));
                let clear = match guard {
                    Guard::On => "\\command unalias trap; ",
                    Guard::Off => "",
                };
                dash_last_capture(dir, &listing.unwrap_or_default(), clear)
            }
        }
    }

    /// Puts a guard in place, unless the user has something there.
    pub(super) fn guard(self, dir: &str) -> String {
        match self {
            Self::Bash => {
                format!("\\builtin declare -F trap >/dev/null || \\builtin . {dir}/h;")
            }
            Self::Zsh => format!("\\builtin . {dir}/h;"),
            Self::Posix => {
                format!("\\command alias trap >/dev/null 2>&1 || \\command . {dir}/h;")
            }
        }
    }

    /// Takes it away again, if it is still there. On the left of `||`, because
    /// of `set -e`.
    pub(super) fn unguard(self) -> &'static str {
        match self {
            Self::Bash => {
                "[[ $(\\builtin declare -f trap) != *__sessile_exit* ]] || \
                 \\builtin unset -f trap || \\builtin :;"
            }
            Self::Zsh => {
                "zshexit_functions=(\"${(@)zshexit_functions:#__sessile_bye}\"); \
                 [[ -n \"$zshexit_functions\" ]] || \\builtin unset zshexit_functions; \
                 \\builtin unset __sessile_args; \\builtin unfunction __sessile_bye || \\builtin :;"
            }
            Self::Posix => {
                "case $(\\command alias trap) in *__sessile_guard*) \\command unalias trap ;; esac;"
            }
        }
    }
}
