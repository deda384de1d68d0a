# Keeps our EXIT trap behind one that the text of this run sets: for the time
# of the run `trap` is this function, which lets the builtin do its work and
# then adds ours. Not for texts that would notice (see guard.rs).
#
# The keeper puts in, at words between @: our trap alone, ours behind the user's
# and its listing, and the trap to begin with.

function trap {
    # A trace shows the call, which is the user's, and nothing of what follows.
    { \builtin local -; \builtin set +x; } 2>/dev/null
    \builtin trap "$@" || \builtin return
    # The trap of a subshell is its own affair.
    case $BASHPID in "$$") ;; *) \builtin return 0 ;; esac
    \builtin set -- "$(\builtin trap -p EXIT)"
    case $1 in
    *__sessile_exit*) \builtin return 0 ;;
    '') \builtin trap -- @OURS@ EXIT ;;
    *)
        # The listing is a command, whose third word is the trap.
        \builtin eval "\\builtin set -- \"\$1\" $1"
        \builtin trap -- @BEHIND@ EXIT
        ;;
    esac
}
\builtin trap -- @ARMED@ EXIT
