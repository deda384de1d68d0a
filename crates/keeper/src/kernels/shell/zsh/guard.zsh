# Writes the state down after an EXIT trap that the text of this run sets in the
# place of ours: zsh calls the functions in zshexit_functions when that is done.
# (A function in the place of `trap` would not do: an EXIT trap that is set in a
# function is that function's.) A hook does not see the shell's positional
# parameters, so that those of now must do. Not for texts that would notice (see
# guard.rs). The keeper puts in the capture, its directory, and what ends tracing.

__sessile_args=("$@")
function __sessile_bye {
    @HUSH@
    [[ -e @DIR@/w/final || ! -d @DIR@/w ]] || { \builtin trap } 2>/dev/null > >(
        \builtin set -- "${__sessile_args[@]}"
        \builtin unset __sessile_args
        zshexit_functions=("${(@)zshexit_functions:#__sessile_bye}")
        [[ -n "$zshexit_functions" ]] || \builtin unset zshexit_functions
        \builtin unfunction __sessile_bye
        @AFTER@)
}
zshexit_functions+=(__sessile_bye)
