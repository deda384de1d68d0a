# Prints the state of a live zsh, just as its builtins list it: what it means is
# found out by the keeper (see listing.rs), when somebody needs it.
#
# Called   \builtin trap > >(
#              \builtin trap '' XFSZ
#              \builtin set +o >|OUT
#              \builtin set -- OUT "$@"
#              \builtin emulate -R zsh -o noaliases -c "$(<capture)")
#          by the user's shell. Only there are all traps listed (any subshell
#          drops those of signals), and a process substitution is a fork that
#          reads the list from a pipe. It is evaluated, not sourced: after `exit`
#          in a function, zsh leaves a sourced file at its first empty line.
# Writes   sections, a NUL after each. The last is `end`: without it a capture is
#          incomplete, and worth nothing.
#
# Invariants
# - Nothing of the user's runs: every command word is `\builtin …` (no function),
#   and all of this is parsed with zsh's default options and without aliases. If
#   the user has a function called `builtin`, the keeper leaves that word out.
# - No variable of ours is set, no module loaded but that of `ulimit`, and there
#   is no further fork.
# It must not be evaluated in the user's shell itself: it wrecks its own options.

\builtin trap - DEBUG ZERR
# The values of hidden variables would not be listed.
\builtin typeset -m +H '*'
{
    \builtin printf '\0%s\0' "$(</dev/stdin)"
    [[ $PWD == /* && $PWD -ef . ]] && \builtin print -r -- "$PWD" || \builtin pwd -r || \builtin print -r -- "$PWD"
    \builtin printf '\0'
    \builtin umask
    \builtin printf '\0'
    \builtin zmodload
    \builtin printf '\0'
    \builtin ulimit -S -a
    \builtin printf '\0'
    \builtin ulimit -H -a
    \builtin printf '\0'
    \builtin alias -L
    \builtin alias -s -L
    \builtin printf '\0'
    \builtin dirs -l -p
    \builtin printf '\0'
    \builtin hash -d -L
    \builtin printf '\0'
    \builtin zmodload -e zsh/zutil && \builtin zstyle -L
    \builtin printf '\0'
    \builtin typeset +f
    \builtin printf '\0'
    \builtin typeset -f
    \builtin printf '\0'
    \builtin typeset -p
    \builtin printf '\0end\0'
} >>"@DIR@/$1"
