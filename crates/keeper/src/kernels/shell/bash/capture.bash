# Prints the state of a live bash, just as its builtins list it: what it means is
# found out by the keeper (see listing.rs), when somebody needs it.
#
# Called   . capture OUT ARG…   in a forked subshell, which has put the listing of
#          traps into the file (sourcing hides DEBUG and RETURN); ARG… are the
#          positional parameters.
# Writes   sections, a NUL after each. The last is `end`: without it a capture is
#          incomplete, and worth nothing.
#
# Invariants
# - Nothing of the user's runs: every command word is `\builtin …` (no alias, no
#   function), and no reserved word comes before aliases are off. Where the user
#   has a function called `builtin`, the keeper puts another word there.
# - No variable of ours is set, and there is no further fork: each takes longer
#   than all of the listings.
# It must not be sourced in the user's shell itself: it wrecks its own options.

\builtin enable -n >>"@DIR@/$1"
\builtin enable alias complete declare printf pwd set shift shopt ulimit umask
\builtin printf '\0%s' "$-" "$SHELLOPTS" "$BASHOPTS" '' >>"@DIR@/$1"
\builtin set +evxuETk
\builtin shopt -u expand_aliases
\builtin trap - DEBUG ERR RETURN
# A limit of what may be written shall be no one's end.
\builtin trap '' XFSZ
{
    [[ $PWD == /* && $PWD -ef . ]] && \builtin printf '%s\n' "$PWD" || \builtin pwd -P || \builtin printf '%s\n' "$PWD"
    \builtin printf '\0'
    \builtin umask
    \builtin printf '\0'
    \builtin ulimit -S -a
    \builtin printf '\0'
    \builtin ulimit -H -a
    \builtin printf '\0'
    \builtin alias -p
    \builtin printf '\0'
    \builtin complete -p
    \builtin printf '\0'
    \builtin declare -F
    \builtin printf '\0'
    \builtin declare -f
    \builtin printf '\0'
    \builtin declare -p
    \builtin shift
    \builtin printf '\0%s' "${DIRSTACK[@]}" '' "$@" 'end' ''
} >>"@DIR@/$1"
