# Empties a fresh kernel: a variable that is set again would keep its export
# attribute. Unsetting the dynamic variables would take their meaning from them
# for good, and unsetting BASH_XTRACEFD closes a descriptor. The keeper puts in
# which options are to stay on.
\builtin shopt -u expand_aliases
\builtin shopt -s extglob
\builtin set -f
for __sessile_n in $(\builtin declare -F); do
    case $__sessile_n in declare | -*) ;; *) \builtin unset -f -- "$__sessile_n" ;; esac
done
__sessile_o=:@SHOPTS@:extglob:
for __sessile_n in ${BASHOPTS//:/ }; do
    case $__sessile_o in *:$__sessile_n:*) ;; *) \builtin shopt -u "$__sessile_n" ;; esac
done
__sessile_o=:@OPTIONS@:noglob:
for __sessile_n in ${SHELLOPTS//:/ }; do
    case $__sessile_o in *:$__sessile_n:*) ;; *) \builtin set +o "$__sessile_n" ;; esac
done
for __sessile_n in @EVERY@; do
    case $__sessile_n in
    __sessile_* | BASH | BASH_XTRACEFD | BASHOPTS | BASHPID | BASH_ALIASES | BASH_ARG* | BASH_CMDS | BASH_COMMAND | BASH_EXECUTION_STRING | \
        BASH_LINENO | BASH_MONOSECONDS | BASH_SOURCE | BASH_SUBSHELL | BASH_TRAPSIG | BASH_VERS* | COMP_WORDBREAKS | \
        DIRSTACK | EPOCH* | EUID | FUNCNAME | GROUPS | HISTCMD | LINENO | PIPESTATUS | PPID | PWD | RANDOM | SECONDS | SHELLOPTS | SHLVL | SRANDOM | UID | _) ;;
    *) \builtin unset -v "$__sessile_n" ;;
    esac
done
\builtin unset -v __sessile_n __sessile_o
