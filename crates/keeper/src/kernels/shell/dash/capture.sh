# Prints the state of a live POSIX sh (dash above all), just as its builtins list
# it: what it means is found out by the keeper (see listing.rs), when somebody
# needs it.
#
# Called   . capture   in a forked subshell that has the name of the file and the
#          user's positional parameters as its own. The file has the listing of
#          traps, which a subshell would not have. @DIR@ stands for the kernel's
#          private directory: the keeper puts its path there when it installs
#          this file. In there is `names`, a script that asks about each function
#          that a run may have defined: dash cannot list its functions.
# Writes   sections, a NUL after each. The last is `end`: without it a capture is
#          incomplete, and worth nothing.
#
# Invariants
# - Nothing of the user's runs: special builtins come before functions, the others
#   are called by `command`, words are quoted against aliases, and there are no
#   aliases any more when the first reserved word comes.
# - No variable of ours is set, and there is no further fork.
# It must not be sourced in the user's shell itself.

\unset -f command
\command printf '\0' >>"@DIR@/$1"
\set +o >>"@DIR@/$1"
\set +e +u +v +x
# A limit of what may be written shall be no one's end.
\trap '' XFSZ
\command printf '\0' >>"@DIR@/$1"
\command alias >>"@DIR@/$1"
\command unalias -a
{
    \command printf '\0'
    \. @DIR@/names
    \command printf '\0'
    \command pwd
    \command printf '\0'
    \command umask
    \command printf '\0'
    \command ulimit -S -a
    \command printf '\0'
    \command ulimit -H -a
    \command printf '\0'
    \export -p
    \command printf '\0'
    \readonly -p
    \command printf '\0'
    \set
    \shift
    \command printf '\0%s' "$@" end ''
} >>"@DIR@/$1"
