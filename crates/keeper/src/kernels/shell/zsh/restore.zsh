# Empties a fresh kernel: a variable that is set again would keep its export
# attribute.
\builtin unsetopt aliases
\builtin setopt noglob
for __sessile_n __sessile_t in "${(@kv)parameters}"; do
    case $__sessile_n:$__sessile_t in
    __sessile_*|PWD:*|*special*|*:undefined|*readonly*|[^a-zA-Z_]*) ;;
    CPUTYPE:*|HOST:*|LOGNAME:*|MACHTYPE:*|OSTYPE:*|TTY:*|VENDOR:*|ZSH_*|signals:*) ;;
    *) \builtin unset -v $__sessile_n ;;
    esac
done
\builtin unset -v __sessile_n __sessile_t
functions=()
\builtin unalias -a
\builtin unalias -s -a
