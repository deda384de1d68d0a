# Writes the whole state of a live zsh to a file: records for the keeper, among
# them a script that brings the state back in a fresh kernel.
#
# Called   \builtin trap > >(
#              \builtin set -- "$(<capture)" "${(@kv)options[@]}" "" OUT "$@"
#              \builtin emulate -R zsh -o noaliases -c "$1")
#          by the user's shell. Only there are all traps listed (any subshell
#          drops those of signals), and a process substitution is a fork that
#          reads the list from a pipe. It is evaluated, not sourced: after `exit`
#          in a function, zsh leaves a sourced file at its first empty line.
# Writes   KIND NUL NAME NUL VALUE NUL …; the last record is `end`. A stream
#          without it is incomplete and worth nothing.
#
# Invariants
# - Nothing of the user's runs: every command word is `\builtin …` (no function),
#   and all of this is parsed with zsh's default options and without aliases. If
#   the user has a function called `builtin`, the keeper leaves that word out.
# - No external command, no PATH, no temporary file and no further fork: the
#   module zsh/parameter has functions, aliases and options as arrays.
# - Our variables are called __sessile_*. If the user has such names (they might
#   be readonly), this file runs under a longer prefix instead.
# - What a fresh kernel reads back was quoted by zsh (typeset -p, ${(qqqq)…}) or
#   is fixed text, and each item stands in a statement of its own.
# - Time in proportion to the state, and little for a plain variable: one command
#   a record. (A command with all of them as its words takes longer by far.)
# It must not be sourced in the user's shell itself: it wrecks its own options.

\builtin trap - DEBUG ZERR
# Without the module, or with another thing of that name, there is no state.
[[ ${(t)parameters} == association*special ]] || \builtin exit 1
if [[ -n "${(k)parameters[(I)__sessile_*]}" ]]; then
    # Every use of the prefix moves out of the way, this very test included.
    \builtin set -- "${1//__sessile_/__sessile_x_}" "${(@)@[2,-1]}"
    \builtin eval "$1"
    \builtin exit 1
fi
__sessile_args=("$@") __sessile_dash=$-
# The first use of one of its arrays has just loaded zsh/parameter.
__sessile_modules=("${(@k)modules[(R)loaded]}")
__sessile_modules=(${__sessile_modules:#zsh/parameter})
\builtin setopt extendedglob noglob noequals noshortloops nobanghist
__sessile_i=${__sessile_args[(ei)]}
\builtin typeset -A __sessile_options
__sessile_options=("${(@)__sessile_args[2,__sessile_i-1]}")
__sessile_out=$__sessile_args[__sessile_i+1]
__sessile_args=("${(@)__sessile_args[__sessile_i+2,-1]}")
case $parameters[IFS] in
*readonly*) __sessile_trap_text=$(</dev/stdin) ;;
*) IFS= \builtin read -r -d '' __sessile_trap_text ;;
esac
\builtin exec </dev/null
# ulimit -f 0 kills whoever writes to a file; the soft limit is ours to lift.
__sessile_fsize=$(\builtin ulimit -S -f) __sessile_files=$(\builtin ulimit -S -n)
\builtin ulimit -S -f hard
() { \builtin exec >|$1 } "$__sessile_out" || \builtin exit 1

# ---- Variables. `typeset -p` prints what a fresh kernel reads back; it runs
# once for the record and once for the restore text, which costs no fork.
# Asking for one parameter's type would load its module; listing all does not.
\builtin typeset -A __sessile_types
__sessile_types=("${(@kv)parameters}")
__sessile_plain=() __sessile_special=() __sessile_hidden=()
# Strings without any attribute, under names that only a user can have given:
# most variables of a large state.
__sessile_strings=(${(M)${(ok)__sessile_types[(R)scalar]}:#[a-z][a-zA-Z0-9_]#})
for __sessile_n in $__sessile_strings; do
    # The text is that of `typeset -p`; q+ quotes in the same way.
    \builtin printf 'var\0%s\0typeset %s=%s\n\0' $__sessile_n $__sessile_n "${(q+)${(P)__sessile_n}}"
done
for __sessile_n in ${(ok)__sessile_types:|__sessile_strings}; do
    __sessile_t=$__sessile_types[$__sessile_n]
    case $__sessile_n in
    __sessile_* | [^a-zA-Z_]* | _ | PWD | SHLVL)
        case $__sessile_n:$__sessile_t in [PS]*-export*)
            \builtin printf 'env\0%s\0%s\0' "$__sessile_n" "${${(P)__sessile_n}%%$'\0'*}"
            ;;
        esac
        \builtin continue
        ;;
    CPUTYPE | HOST | LOGNAME | MACHTYPE | OSTYPE | TTY | VENDOR | ZSH_ARGZERO | ZSH_NAME | ZSH_PATCHLEVEL | \
        ZSH_VERSION | ZSH_EXECUTION_STRING | signals)
        # Facts about the process; a user may still have exported one.
        case $__sessile_t in *export*) ;; *) \builtin continue ;; esac
        ;;
    esac
    case $__sessile_t in
    undefined | *-hide-*special*) \builtin continue ;;
    # The second half of a tied pair comes with the first.
    array*-tied*) \builtin continue ;;
    *special*)
        case $__sessile_n in
        [^A-Z]* | ARGC | COLUMNS | E[GU]ID | EPOCH* | ERRNO | [GU]ID | HISTCMD | LINENO | LINES | PPID | PROMPT* | RANDOM | \
            SECONDS | TRY_BLOCK_* | TTYIDLE | USERNAME | ZSH_EVAL_CONTEXT | ZSH_SUBSHELL) \builtin continue ;;
        esac
        __sessile_special+=($__sessile_n)
        ;;
    *) __sessile_plain+=($__sessile_n) ;;
    esac
    case $__sessile_t in *hideval*)
        __sessile_hidden+=($__sessile_n)
        \builtin typeset +H $__sessile_n
        ;;
    esac
    case $__sessile_t in
    # A value can hold NUL (IFS does), the environment cannot.
    *export*) \builtin printf 'env\0%s\0%s\0' "$__sessile_n" "${${(P)__sessile_n}%%$'\0'*}" ;;
    *special*) case $__sessile_n:$IFS in IFS:$' \t\n\0') ;; IFS:*) \builtin printf 'var\0IFS\0typeset IFS=%s\0' "${(qqqq)IFS}" ;; esac ;;
    *)
        case $__sessile_n in
        # As every fresh kernel has them: worth restoring, not worth reporting.
        KEYTIMEOUT | LISTMAX | MAILCHECK | TIMEFMT | TMPPREFIX) ;;
        *)
            \builtin printf 'var\0%s\0' "$__sessile_n"
            \builtin typeset -p $__sessile_n
            \builtin printf '\0'
            ;;
        esac
        ;;
    esac
done

# ---- Functions, aliases, arguments, directories.
for __sessile_n in "${(@ok)functions}"; do
    \builtin printf 'func\0%s\0%s () {\n%s\n}\0' "$__sessile_n" "$__sessile_n" "${functions[$__sessile_n]//$'\0'}"
done
# Trap functions are in the listing of traps as well. What is left there when
# those that we have are taken out are some that a fork drops, as TRAPINT.
for __sessile_n in "${(@k)functions[(I)TRAP*]}"; do
    __sessile_trap_text=${__sessile_trap_text//"$__sessile_n () {"$'\n'"$functions[$__sessile_n]"$'\n}\n'}
done
\builtin typeset -A __sessile_dropped
__sessile_lines=() __sessile_n= __sessile_t=
for __sessile_f in "${(@f)__sessile_trap_text}"; do
    case $__sessile_n:$__sessile_f in
    :TRAP[A-Z0-9+-]##' () {') __sessile_n=${__sessile_f%% *} __sessile_t= ;;
    :*) __sessile_lines+=("$__sessile_f") ;;
    *:'}')
        __sessile_dropped[$__sessile_n]=${__sessile_t%$'\n'}
        \builtin printf 'func\0%s\0%s () {\n%s}\0' "$__sessile_n" "$__sessile_n" "${__sessile_t//$'\0'}"
        __sessile_n=
        ;;
    *) __sessile_t+=$__sessile_f$'\n' ;;
    esac
done
for __sessile_n in "${(@ok)aliases}"; do
    case $__sessile_n=$aliases[$__sessile_n] in run-help=man | which-command=whence) \builtin continue ;; esac
    \builtin printf 'alias\0%s\0%s\0' "$__sessile_n" "${aliases[$__sessile_n]//$'\0'}"
done
for __sessile_n in "${(@ok)galiases}"; do
    \builtin printf 'alias\0-g %s\0%s\0' "$__sessile_n" "${galiases[$__sessile_n]//$'\0'}"
done
for __sessile_n in "${(@ok)saliases}"; do
    \builtin printf 'alias\0-s %s\0%s\0' "$__sessile_n" "${saliases[$__sessile_n]//$'\0'}"
done
for ((__sessile_i = 1; __sessile_i <= $#__sessile_args; __sessile_i++)); do
    \builtin printf 'arg\0%d\0%s\0' $__sessile_i "${__sessile_args[__sessile_i]//$'\0'}"
done
__sessile_cwd=$PWD
[[ $PWD == /* && $PWD -ef . ]] || __sessile_cwd=$(\builtin pwd -r) || __sessile_cwd=$PWD
\builtin printf 'cwd\0\0%s\0' "$__sessile_cwd"

# ---- Options: a fresh kernel's are the defaults that this shell has now, but
# for those which we or the launch have set.
__sessile_on=() __sessile_off=() __sessile_flags=
for __sessile_n in "${(@ok)__sessile_options}"; do
    __sessile_t=$__sessile_options[$__sessile_n]
    case $__sessile_n in
    # Facts about the process, or what would leave it deaf to further commands.
    exec | globalrcs | interactive | login | privileged | rcs | restricted | shinstdin | singlecommand | zle) \builtin continue ;;
    # Second names of other options.
    braceexpand | dotglob | hashall | histappend | histexpand | log | mailwarn | onecmd | physical | promptvars | stdin | trackall) \builtin continue ;;
    esac
    case $__sessile_t in on) __sessile_on+=($__sessile_n) ;; *) __sessile_off+=($__sessile_n) ;; esac
    case $__sessile_n:$__sessile_t in
    aliases:on | banghist:off | equals:on | extendedglob:off | glob:on | shortloops:on | monitor:*) \builtin continue ;;
    aliases:* | banghist:* | equals:* | extendedglob:* | glob:* | shortloops:*) ;;
    *) case $__sessile_t in $options[$__sessile_n]) \builtin continue ;; esac ;;
    esac
    \builtin printf 'opt\0%s\0%s\0' "$__sessile_n" "$__sessile_t"
done
\builtin printf 'flags\0\0%s\0' "$__sessile_dash"

# ---- Traps: a line each, four words.
__sessile_traps= __sessile_debug=
for __sessile_n in "${(@ok)__sessile_dropped}"; do
    __sessile_debug+="functions[$__sessile_n]=${(qqqq)__sessile_dropped[$__sessile_n]}"$'\n'
done
for __sessile_f in "${__sessile_lines[@]}"; do
    # A quote behind \M- ends the string too early when it is read back.
    \builtin eval "__sessile_words=($__sessile_f)" ||
        \builtin eval "__sessile_words=(${__sessile_f//"\\M-'"/"\\247"})" ||
        \builtin continue
    (( $#__sessile_words == 4 )) || \builtin continue
    __sessile_t=$__sessile_words[3] __sessile_n=$__sessile_words[4]
    # A trap with this name in it is the keeper's own.
    case $__sessile_t in *__sessile''_exit*) \builtin continue ;; esac
    \builtin printf 'trap\0%s\0%s\0' "$__sessile_n" "${__sessile_t//$'\0'}"
    __sessile_t="\\builtin trap -- ${(qqqq)__sessile_t} $__sessile_n"$'\n'
    case $__sessile_n in DEBUG | ZERR) __sessile_debug+=$__sessile_t ;; *) __sessile_traps+=$__sessile_t ;; esac
done

# ---- Umask and limits print themselves.
\builtin printf 'umask\0\0'
\builtin umask
\builtin printf '\0'
for __sessile_n in c d e f i l m n q r s t u v x; do
    \builtin printf 'ulimit\0-%s\0' $__sessile_n
    case $__sessile_n in f) \builtin print -r -- $__sessile_fsize ;; *) \builtin ulimit -S -$__sessile_n ;; esac
    \builtin ulimit -H -$__sessile_n
    \builtin printf '\0'
done

# ---- The restore text. First empty the fresh kernel (a variable would keep its
# export attribute), then bring things back, what could disturb the rest last.
\builtin printf 'restore\0\0%s' '\builtin unsetopt aliases
\builtin setopt noglob
for __sessile_n __sessile_t in "${(@kv)parameters}"; do
    case $__sessile_n:$__sessile_t in
    __sessile_*|PWD:*|*special*|*:undefined|*readonly*|[^a-zA-Z_]*) ;;
    CPUTYPE:*|HOST:*|LOGNAME:*|MACHTYPE:*|OSTYPE:*|TTY:*|VENDOR:*|ZSH_*|signals:*) ;;
    *) \builtin unset -v $__sessile_n ;;
    esac
done
'
for __sessile_n in CDPATH FIGNORE FPATH HOME IFS MAILPATH MANPATH NULLCMD OPTARG OPTIND PATH PS1 PS2 PS3 PS4 READNULLCMD TERM WORDCHARS; do
    (( $+__sessile_types[$__sessile_n] )) || \builtin printf '\\builtin unset -v %s\n' $__sessile_n
done
\builtin printf '%s\n' '\builtin unset -v __sessile_n __sessile_t' \
    "\\builtin cd -q -- ${(qqqq)OLDPWD:-.}" "\\builtin cd -q -- ${(qqqq)__sessile_cwd}" '\builtin unset -v OLDPWD'
for __sessile_n in $__sessile_modules; do
    \builtin printf '\\builtin zmodload %s\n' "${(qqqq)__sessile_n}"
done
for __sessile_n in $__sessile_special; do
    __sessile_t=$__sessile_types[$__sessile_n]
    case $__sessile_t in *export*) __sessile_f=-x ;; *) __sessile_f=+x ;; esac
    case $__sessile_t in
    # Through the array: no elements and one empty element are not the same.
    *tied*) \builtin printf '%s=(%s)\ntypeset -g %s %s\n' ${(L)__sessile_n} "${(j: :)${(@qqqq)${(@P)${(L)__sessile_n}}}}" $__sessile_f $__sessile_n ;;
    *) \builtin printf 'typeset -g %s %s=%s\n' $__sessile_f $__sessile_n "${(qqqq)${(P)__sessile_n}}" ;;
    esac
    case $__sessile_t${__sessile_types[${(L)__sessile_n}]} in *unique*) \builtin printf 'typeset -gU %s\n' ${(L)__sessile_n} ;; esac
    case $__sessile_t in *readonly*) \builtin printf 'typeset -gr %s\n' $__sessile_n ;; esac
done
for __sessile_n in $__sessile_strings; do
    \builtin printf 'typeset -g %s=%s\n' $__sessile_n "${(qqqq)${(P)__sessile_n}}"
done
for __sessile_n in $__sessile_plain; do
    __sessile_t=$__sessile_types[$__sessile_n] __sessile_f=
    # `typeset -p` prints some bytes so that they do not read back (as \M-').
    # It has to do for what cannot hold such bytes, or has a width or a partner.
    case $__sessile_t in (integer*|float*|*left*|*right*|*tied*)
        \builtin typeset -p $__sessile_n
        # It leaves out the precision, which shows in the value.
        __sessile_f=${${${(P)__sessile_n}#*.}%%e*}
        case $__sessile_t:${(P)__sessile_n} in
        float*readonly*) ;;
        float*e*) \builtin printf 'typeset -E%d %s\n' $(($#__sessile_f + 1)) $__sessile_n ;;
        float*.*) \builtin printf 'typeset -F%d %s\n' $#__sessile_f $__sessile_n ;;
        esac
        \builtin continue
        ;;
    esac
    case $__sessile_t in *export*) __sessile_f+=x ;; esac
    case $__sessile_t in *readonly*) __sessile_f+=r ;; esac
    case $__sessile_t in *lower*) __sessile_f+=l ;; esac
    case $__sessile_t in *upper*) __sessile_f+=u ;; esac
    # Folding happens on the way out: without the attribute, the value as stored.
    case $__sessile_t in
    *readonly*) ;;
    *lower* | *upper*) \builtin typeset +l +u $__sessile_n ;;
    esac
    case $__sessile_t in *unique*) __sessile_f+=U ;; esac
    case $__sessile_t in *tag*) __sessile_f+=t ;; esac
    case $__sessile_t in
    array*) \builtin printf 'typeset -ga%s %s=(%s)\n' "$__sessile_f" $__sessile_n "${(j: :)${(@qqqq)${(@P)__sessile_n}}}" ;;
    association*)
        __sessile_words=()
        for __sessile_k in "${(@okP)__sessile_n}"; do
            __sessile_words+=("$__sessile_k" "${${(P)__sessile_n}[$__sessile_k]}")
        done
        \builtin printf 'typeset -gA%s %s=(%s)\n' "$__sessile_f" $__sessile_n "${(j: :)${(@qqqq)__sessile_words}}"
        ;;
    *) \builtin printf 'typeset -g%s %s=%s\n' "$__sessile_f" $__sessile_n "${(qqqq)${(P)__sessile_n}}" ;;
    esac
done
for __sessile_n in $__sessile_hidden; do
    \builtin printf 'typeset -gH %s\n' $__sessile_n
done
# As it prints them, while there is no function of that name.
\builtin printf 'functions=()\n'
case " $__sessile_modules " in
*' zsh/zutil '*) \builtin printf '\\builtin eval %s\n' "${(qqqq)$(\builtin zstyle -L)}" ;;
esac
for __sessile_n in "${(@ok)functions}"; do
    case $functions[$__sessile_n] in
    'builtin autoload -X'*)
        \builtin printf '\\builtin autoload %s -- %s\n' "${${functions[$__sessile_n]##*-X}:+-${functions[$__sessile_n]##*-X}}" "${(qqqq)__sessile_n}"
        ;;
    *) \builtin printf 'functions+=(%s %s)\n' "${(qqqq)__sessile_n}" "${(qqqq)functions[$__sessile_n]}" ;;
    esac
done
# Appending to one of these replaces it, so each comes as a whole; assigning
# nothing leaves it as it was.
\builtin printf '%s\n' '\builtin unalias -a' '\builtin unalias -s -a'
for __sessile_t in aliases galiases saliases; do
    __sessile_words=()
    for __sessile_n in "${(@okP)__sessile_t}"; do
        __sessile_words+=("$__sessile_n" "${${(P)__sessile_t}[$__sessile_n]}")
    done
    \builtin printf '%s=(%s)\n' $__sessile_t "${(j: :)${(@qqqq)__sessile_words}}"
done
\builtin printf '%s=(%s)\n' dirstack "${(j: :)${(@qqqq)dirstack}}" nameddirs "${(j: :)${(@kvqqqq)nameddirs}}"
\builtin printf '\\builtin set -- %s\n' "${(j: :)${(@qqqq)__sessile_args}}"
\builtin printf '\\builtin umask '
\builtin umask
for __sessile_n in c d e i l m n q r s t u v x; do
    # Fewer files leave no room for a run (see ROOM).
    case $__sessile_n/$__sessile_files in n/[0-9] | n/1[0-9]) \builtin continue ;; esac
    for __sessile_t in S H; do
        \builtin printf '\\builtin ulimit -%s -%s ' $__sessile_t $__sessile_n
        \builtin ulimit -$__sessile_t -$__sessile_n
    done
done
\builtin printf '\\builtin ulimit -S -f %s\n\\builtin ulimit -H -f ' $__sessile_fsize
\builtin ulimit -H -f
case "${(j: :)__sessile_modules}" in *zsh/rlimits*) ;; *) \builtin printf '\\builtin zmodload -u zsh/rlimits\n' ;; esac
(( $#__sessile_dropped )) || \builtin printf '\\builtin zmodload -u zsh/parameter\n'
__sessile_last=(${(M)__sessile_on:#(err*|xtrace|verbose)})
__sessile_on=(${__sessile_on:#(err*|xtrace|verbose)})
\builtin printf '%s' $__sessile_traps
\builtin printf '\\builtin unsetopt %s\n\\builtin setopt %s\n' "${(j: :)__sessile_off}" "${(j: :)__sessile_on}"
\builtin printf '\\builtin setopt %s\n' $__sessile_last
\builtin printf '%s' $__sessile_debug
(( $#__sessile_dropped == 0 )) || \builtin printf '\\builtin zmodload -u zsh/parameter\n'
\builtin printf '\0end\0\0001\0'
\builtin exit 0
