# Jobs that ordinary runs have left are in the shell's own process group. zsh does
# not reckon with such while it has job control: `fg` would wait for ever, whatever
# key is pressed, and `kill %1` would find nobody. For the time of a run with a
# terminal, and where the user has no functions of these names.

[[ $(\builtin whence -w fg) == *builtin ]] && function fg {
    \builtin : __sessile_jobs
    \builtin local pid=${${=${"$(\builtin jobs -p ${1:-%+} 2>/dev/null)"#*\]}}[(r)<->]}
    if [[ -n $pid && $(</proc/$pid/stat) == *\)\ ?\ <->\ $$\ * ]] 2>/dev/null; then
        \builtin print -ru2 -- "fg: process $pid was started without a terminal, and stays in the background"
        \builtin return 1
    fi
    \builtin fg "$@"
}
[[ $(\builtin whence -w kill) == *builtin ]] && function kill {
    \builtin : __sessile_jobs
    \builtin setopt localoptions nomonitor
    \builtin kill "$@"
}
\builtin :
