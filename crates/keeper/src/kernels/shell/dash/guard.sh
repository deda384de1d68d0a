# Keeps our EXIT trap behind one that the text of this run sets: for the time
# of the run `trap` is an alias of this function, which lets the builtin do its
# work and then adds ours. The function stays, because the alias is in those
# that the text defines; dash cannot list it. Not for texts that would notice
# (see guard.rs).
#
# The keeper puts in, at words between @: our trap alone, ours behind the user's
# and its listing, and the trap to begin with.

__sessile_guard() {
    \trap "$@" || \return
    # The trap of a subshell, which has a process id of its own, is its affair.
    IFS=' ' \command read -r __sessile_signal __sessile_action </proc/self/stat
    case $__sessile_signal in "$$") ;; *) \set -- ;; esac
    case ${1-} in --) \shift ;; esac
    case $# in
    0 | 1) __sessile_action=- ;;
    *) __sessile_action=$1 && \shift ;;
    esac
    for __sessile_signal; do
        case $__sessile_signal in EXIT | 0) \break ;; esac
    done
    case $#/$__sessile_signal/$__sessile_action in
    [!0]*/EXIT/- | [!0]*/0/-) \trap -- @OURS@ EXIT ;;
    [!0]*/EXIT/* | [!0]*/0/*)
        # `alias NAME` prints NAME='…': it quotes for us, here twice.
        \command alias "__sessile_q=$__sessile_action"
        __sessile_signal=$(\command alias __sessile_q)
        \command alias "__sessile_q=trap -- ${__sessile_signal#*=} EXIT"
        __sessile_signal=$(\command alias __sessile_q)
        \command unalias __sessile_q
        \trap -- @BEHIND@ EXIT
        ;;
    esac
    \unset -v __sessile_signal __sessile_action
}
\trap -- @ARMED@ EXIT
\command alias trap=__sessile_guard
